"""`serving-capacity`: inputs, result, and the input values where the verdict changes."""

import dataclasses
import math
from typing import Any, Literal, NamedTuple

from app.estimator import common_inputs
from app.estimator.common_inputs import (
    ENGINE,
    HARDWARE,
    LOAD,
    impossible_input_error,
    reject_gguf_without_llama_cpp,
    reject_transformers_engine,
)
from app.estimator.estimates.inference_memory import InferenceMemoryInputs
from app.estimator.estimates.latency import validate_gpu_format_and_split
from app.estimator.hardware.catalog import find_accelerator
from app.estimator.hardware.collectives import build_gpu_interconnect
from app.estimator.inputs import InputGroup, reuse_input
from app.estimator.memory.engine_memory import MaxNumSeqsRefusal
from app.estimator.memory.parallel_layout import (
    MOST_GPUS_TRIED,
    ReplicaPool,
    ServingSetup,
    count_nodes,
    find_serving_pipeline_problem,
    find_tensor_parallel_problem,
    find_whole_experts_problem,
    list_default_gpu_counts_per_replica,
)
from app.estimator.models.architecture import Architecture
from app.estimator.models.lookup import find_model
from app.estimator.models.weight_formats import (
    GGUF_CHOICES,
    PUBLISHED_CHOICES,
    PUBLISHED_OR_FP8,
)
from app.estimator.result import Bounds
from app.estimator.serving.replica import (
    PREFILL_LOAD,
    LatencyTargets,
    OperatingPoint,
    ReplicaProfile,
    RequestLengths,
    RequestPattern,
    build_prefill_replica,
    find_max_rate_batch,
    highest_load_within_targets,
    operating_point_at_batch,
    operating_point_at_rate,
    profile_replica_by_batch,
    saturated_request_rate,
)
from app.estimator.serving.replica_memory import (
    UnsureFit,
    find_max_num_seqs_refusal_of_replica,
    find_unsure_fit,
    lacking_bytes_at_upper_bound,
    max_sequences_in_memory,
)
from app.estimator.serving.simulation import SimulationResult, simulate_replica
from app.estimator.serving.step_time import (
    MeasurementCoverage,
    PlacedModel,
    SpeculativeDecoding,
    find_measurement_coverage,
    model_kind_for_engine,
    place_model,
    typed_or_usual_acceptance,
)

_TARGETS = InputGroup("Targets", "batching-and-latency")


def _latency_target_field(default: float | None, label: str, help_text: str) -> Any:
    text = f"{help_text} Leave it empty for no target."
    spec = {"unit": "ms", "limits": (1e-4, 3600.0), "clearable": default is not None}
    return _TARGETS.declare_input_field(default, label, help=text, **spec)


PRESET_TPOT = 0.05
"""Target for the time per output token that counts unless another is set [s]."""
MOST_REPLICAS = 100_000
SHARES = {"p50": 0.5, "p95": 0.95, "p99": 0.99}
"""Percentiles by name, and the shares of requests that they mean."""


def _prefill_decode_field(name: str, replica_task: str) -> Any:
    return HARDWARE.declare_advanced_input_field(
        None,
        f"GPUs of a {name} replica",
        kind="count",
        unit="GPU",
        limits=(1, 1024),
        help=f"Prefill and decode apart: GPUs of a replica that only {replica_task}. They divide "
        "experts, and requests in attention; a dense model is divided over them. GPUs that "
        "share the model do not count then. Left empty in both: together.",
        topic="batching-and-latency",
    )


def _length_variation_field(label: str) -> Any:
    return LOAD.declare_advanced_input_field(
        0.5,
        label,
        limits=(0.0, 10.0),
        help="How much the lengths differ: 0 all alike, 0.5 as in a chat, 1 many short and "
        "a few long. It is the squared coefficient of variation.",
    )


def _count_usual_gpus(inputs: Any) -> int:
    """Return the GPUs that share the model, with all groups of attention that are not given."""
    filled = fill_in_formats_and_gpus(inputs)
    return filled.tensor_parallel * filled.attention_parallel // int(inputs.attention_parallel)


@dataclasses.dataclass(frozen=True, slots=True)
class ServingCapacityInputs:
    model: str = common_inputs.model_input()
    weights: str = common_inputs.engine_weights_input(
        choices=(
            *PUBLISHED_CHOICES,
            (PUBLISHED_OR_FP8, "As published, FP8 instead of BF16"),
            *GGUF_CHOICES,
        ),
    )
    cache: str = common_inputs.cache_input()
    gpu: str = common_inputs.counted_gpu_input(count_field="tensor_parallel")
    tensor_parallel: int = common_inputs.declare_gpus_per_replica_input(
        _count_usual_gpus,
        "the number with which the fewest GPUs in all keep the targets. Models with latent "
        "attention (DeepSeek, Kimi K2) are also tried with attention data parallel over them.",
        replaced_by="decode_gpus",
    )
    attention_parallel: int = HARDWARE.declare_advanced_input_field(
        1,
        "Attention data parallel",
        limits=(1, 1024),
        help="Groups of GPUs in a replica that run attention on different requests "
        "and share the experts.",
        term="data-parallelism",
        replaced_by="decode_gpus",
    )
    expert_parallel: int = HARDWARE.declare_advanced_input_field(
        1,
        "Expert parallel",
        limits=(1, 1024),
        help="Parts that the experts of a layer are divided into, on the same GPUs: as many as "
        "share the model, or those of all groups, is what --enable-expert-parallel does in vLLM.",
        term="expert-parallelism",
        replaced_by="decode_gpus",
    )
    expert_tensor_parallel: int | None = HARDWARE.declare_advanced_input_field(
        None,
        "GPUs that share an expert",
        kind="count",
        unit="GPU",
        limits=(1, 1024),
        help="Left empty: those of a replica, divided by expert parallel.",
        term="tensor-parallelism",
        replaced_by="decode_gpus",
    )
    pipeline_parallel: int = common_inputs.serving_pipeline_input(replaced_by="decode_gpus")
    prefill_gpus: int | None = _prefill_decode_field("prefill", "reads prompts")
    decode_gpus: int | None = _prefill_decode_field("decode", "answers")
    replicas: int | None = HARDWARE.declare_input_field(
        None,
        "Replicas",
        kind="count",
        limits=(1, MOST_REPLICAS),
        help="Copies of the model; left empty: as few as keep the targets.",
        topic="batching-and-latency",
    )
    prompt_tokens: int = common_inputs.tokens_input(
        default=1000, label="Prompt", help="Tokens of a prompt on average."
    )
    output_tokens: int = common_inputs.tokens_input(
        default=300, label="Answer", help="Tokens of an answer on average."
    )
    concurrent: int = LOAD.declare_input_field(
        100,
        "Users at once",
        limits=(1, 10_000_000),
        help="Requests that are being answered at the same time, of people who wait for one: "
        "people × time of an answer ÷ (time of an answer + pause until the next question). "
        "40 people with 8 s for an answer and pauses of 40 s are 40 × 8 ÷ 48 = 7 of them. "
        "Requests per second replace them.",
        replaced_by="requests_per_second",
    )
    requests_per_second: float | None = LOAD.declare_input_field(
        None,
        "Requests per second",
        unit="request/s",
        limits=(1e-6, 1e7),
        help="Instead of the users at once: how many requests arrive, on average.",
    )
    run_requests: int | None = LOAD.declare_advanced_input_field(
        None,
        "Requests of a benchmark",
        kind="count",
        limits=(1, 1_000_000_000),
        help="Left empty: a service, to which requests always come. A benchmark ends, and "
        "its last requests no longer fill the GPUs, which lowers the saturated rate.",
    )
    peak: float = LOAD.declare_advanced_input_field(
        1.0,
        "Peak over mean",
        limits=(1.0, 100.0),
        help="The load to plan for as a multiple of the one given.",
    )
    prompt_variation: float = _length_variation_field("Variation of prompts")
    answer_variation: float = _length_variation_field("Variation of answers")
    ttft_target: float | None = _latency_target_field(
        None, "Target: first token", "The longest wait for the first token."
    )
    tpot_target: float | None = _latency_target_field(
        PRESET_TPOT,
        "Target: per token",
        "The longest time per token, averaged over an answer; preset to 50 ms.",
    )
    percentile: str = _TARGETS.declare_input_field(
        "p95",
        "Targets hold for",
        choices=(("p50", "half"), ("p95", "95 of 100"), ("p99", "99 of 100")),
        help="For how many requests the targets have to hold.",
    )
    spare: int = HARDWARE.declare_input_field(
        1,
        "Spare replicas",
        limits=(0, 1000),
        help="Copies that may fail while the targets are still met.",
        topic="cluster-components",
    )
    gpus_per_node: int | None = HARDWARE.declare_advanced_input_field(
        None,
        "GPUs per node",
        kind="count",
        unit="GPU",
        limits=(1, 72),
        help="GPUs of one server; left empty: 8, or the 72 of a rack such as GB200 NVL72.",
        topic="cluster-components",
    )
    memory_utilization: float = common_inputs.usable_share_input(advanced=True)
    max_sequences: int | None = reuse_input(InferenceMemoryInputs, "max_sequences")
    engine: str = common_inputs.engine_input()
    polling: int = ENGINE.declare_advanced_input_field(
        1,
        "Steps between admissions",
        limits=(1, 1000),
        help="After how many steps the engine takes in new requests, 1 for each step. SGLang "
        "calls it scheduler-recv-interval.",
    )
    cached_share: float = common_inputs.cached_share_input()
    draft_tokens: int = common_inputs.draft_tokens_input()
    acceptance: float | None = common_inputs.acceptance_input()
    draft_cost: float = common_inputs.draft_cost_input()
    cost_per_gpu_hour: float | None = common_inputs.price_input()
    network_rate: float = common_inputs.network_rate_input()
    domain: int | None = common_inputs.domain_input()
    simulate: bool = ENGINE.declare_advanced_input_field(
        False, "Simulate", help="Serve 1,500 random requests step by step beside the formula."
    )
    seed: int = ENGINE.declare_advanced_input_field(
        1, "Random seed", limits=(0, 2**31), help="Another number draws other random requests."
    )


class MissedTarget(NamedTuple):
    """A latency target, and what is reached instead of it [s]; preset, or set by someone."""

    target: Literal["ttft", "tpot"]
    limit_seconds: float
    reached_seconds: float
    is_preset: bool


class CountBounds(NamedTuple):
    """A count if all times lie at the low or at the high end; None: no number is enough."""

    if_times_are_low: int | None
    if_times_are_high: int | None


class ServedLoad(NamedTuple):
    """GPUs, and the requests per second that all of them serve [1/s]."""

    gpus: int
    requests_per_second: float


@dataclasses.dataclass(frozen=True, slots=True)
class CapacityResult:
    """Replicas and the operating point of each, the highest load, and what was simulated.

    `highest_load_point` is the highest load within the targets, `max_rate_batch` the batch with the
    highest rate; with `is_prefill_bound` they are what the prefill replicas can feed. `fits_memory`:
    weights and one request fit.
    `replica_bounds` are None where the replicas are given or not counted, `load_bounds` where no
    load meets the targets at the high end of all times. `plausible_loads` are those with as many
    replicas as times within the range take; empty if it is always the same number.
    `split_if_times_are_high` takes fewer GPUs then, with as many replicas as it takes; ranges are
    with it if `is_split_open`, as nobody typed another one.
    `point_of_single_request` is that of a request by itself if no load meets the targets.
    `unrelaxed_preset_tpot` is the preset target that counts relaxed in `inputs`, because even a request by
    itself misses it [s].
    """

    inputs: ServingCapacityInputs
    replica_profile: ReplicaProfile
    replicas: int | None
    operating_point: OperatingPoint | None
    highest_load_point: OperatingPoint | None
    max_rate_batch: float
    meets_targets_of_inputs: bool
    fits_memory: bool
    measurements: MeasurementCoverage
    simulation: SimulationResult | None = None
    point_of_single_request: OperatingPoint | None = None
    prefill_replicas: int | None = None
    is_prefill_bound: bool = False
    replica_bounds: CountBounds | None = None
    load_bounds: Bounds | None = None
    plausible_loads: tuple[ServedLoad, ...] = ()
    split_if_times_are_high: "CapacityResult | None" = None
    is_split_open: bool = False
    unrelaxed_preset_tpot: float | None = None

    @property
    def inputs_with_unrelaxed_targets(self) -> ServingCapacityInputs:
        """Return the inputs with the target that counts relaxed as it was."""
        if self.unrelaxed_preset_tpot is None:
            return self.inputs
        return dataclasses.replace(self.inputs, tpot_target=self.unrelaxed_preset_tpot)

    @property
    def keeps_unrelaxed_targets(self) -> bool:
        """Return whether the load keeps the targets, none of them relaxed."""
        return self.meets_targets_of_inputs and self.unrelaxed_preset_tpot is None

    @property
    def missed_targets(self) -> tuple[MissedTarget, ...]:
        """Return the targets that the load misses; or a request by itself, if none is served."""
        point = self.operating_point or self.point_of_single_request
        if self.replicas is None:
            point = self.point_of_single_request
        if point is None:
            return ()
        share, inputs = SHARES[self.inputs.percentile], self.inputs_with_unrelaxed_targets
        targets = (
            MissedTarget("ttft", inputs.ttft_target or math.inf, point.ttft_by_share[share], False),
            MissedTarget(
                "tpot",
                inputs.tpot_target or math.inf,
                point.tpot_by_share[share],
                inputs.tpot_target == PRESET_TPOT,
            ),
        )
        return tuple(target for target in targets if target.reached_seconds > target.limit_seconds)

    @property
    def misses_only_preset_targets(self) -> bool:
        missed = self.missed_targets
        return bool(missed) and all(target.is_preset for target in missed)

    @property
    def unsure_memory_fit(self) -> UnsureFit | None:
        """Return what lacks for the requests at this load; None if they surely fit, or none do."""
        point, profile = self.operating_point, self.replica_profile
        if point is None or not self.fits_memory:
            return None
        at_once = min(round(point.batch, 1), max(1, int(profile.max_batch)))
        context, share = (
            profile.request_pattern.mean_context_of_running_sequence,
            self.inputs.memory_utilization,
        )
        return find_unsure_fit(profile.placed, at_once, profile.max_batch, context, share)

    @property
    def may_exceed_memory(self) -> bool:
        """Return whether requests that the memory holds may not fit by the end of its range."""
        waits = self.requests_waiting_for_memory_per_replica >= 1
        return self.unsure_memory_fit is not None and not waits

    @property
    def start_refusal(self) -> MaxNumSeqsRefusal | None:
        """Return with how many sequences vLLM does not start; None if it does, or nothing fits."""
        if not self.fits_memory:
            return None
        return find_max_num_seqs_refusal_of_replica(
            self.replica_profile.placed, self.inputs.memory_utilization
        )

    @property
    def has_targets(self) -> bool:
        return self.inputs.ttft_target is not None or self.inputs.tpot_target is not None

    @property
    def requests_waiting_for_memory_per_replica(self) -> float:
        """Return the requests of a replica that wait for memory, at a fixed number of users."""
        if not self.fits_memory or self.replicas is None or self.inputs.requests_per_second:
            return 0.0
        return self.users_per_replica - self.replica_profile.batch_of_users(self.users_per_replica)

    @property
    def users_per_replica(self) -> float:
        return self.inputs.concurrent * self.inputs.peak / (self.replicas or 1)

    @property
    def only_waits_for_memory(self) -> bool:
        """Return whether the load would keep the targets if no request waited for memory."""
        waits = self.requests_waiting_for_memory_per_replica > 0
        return waits and not self.meets_targets_of_inputs and not self.missed_targets

    @property
    def gpus_of_decode_and_its_prefill(self) -> int:
        """Return the GPUs of a decode replica and of the prefill replicas for it."""
        answering, *reading = self.replica_pools_with_spares
        copies = sum(pool.replicas for pool in reading) / max(1, answering.replicas)
        each = sum(pool.gpus_per_replica for pool in reading)
        return answering.gpus_per_replica + math.ceil(copies) * each

    @property
    def max_prefill_request_rate(self) -> float:
        """Return the requests per second that the prefill replicas read [1/s]; inf without any."""
        if self.replica_profile.prefill_replica is None or self.prefill_replicas is None:
            return math.inf
        return (
            PREFILL_LOAD
            * self.replica_profile.prefill_replica.max_prompts_per_second
            * self.prefill_replicas
        )

    @property
    def share_of_highest_load(self) -> float | None:
        """Return the load as a share of the highest one that meets the targets; at least 1 if it waits.

        While requests wait for memory, fewer are answered per second than if just none waited.
        """
        if self.operating_point is None or self.highest_load_point is None:
            return None
        share = (
            self.operating_point.requests_per_second / self.highest_load_point.requests_per_second
        )
        return max(share, 1.0) if self.requests_waiting_for_memory_per_replica else share

    @property
    def lateness_and_waiting_sort_key(self) -> tuple[float, float]:
        """Return the times over their targets, the worst of them, and the requests that wait.

        Of a request by itself if no load meets the targets; inf if none is answered.
        """
        point = self.point_of_single_request or self.operating_point
        if point is None or not self.fits_memory or self.replica_profile.placed.load_refusal:
            return math.inf, math.inf
        share, inputs = SHARES[self.inputs.percentile], self.inputs
        over = [
            times[share] / target
            for times, target in (
                (point.ttft_by_share, inputs.ttft_target),
                (point.tpot_by_share, inputs.tpot_target),
            )
            if target
        ]
        return max(over, default=0.0), self.requests_waiting_for_memory_per_replica

    @property
    def target_missed_first(self) -> Literal["ttft", "tpot"] | None:
        """Return the target that a higher load would miss first; None if something else limits it."""
        top = self.highest_load_point
        if top is None or self.is_prefill_bound or top.batch >= self.max_rate_batch * (1 - 1e-6):
            return None
        share, inputs = SHARES[self.inputs.percentile], self.inputs
        used_shares: dict[Literal["ttft", "tpot"], float] = {}
        if inputs.ttft_target is not None:
            used_shares["ttft"] = top.ttft_by_share[share] / inputs.ttft_target
        if inputs.tpot_target is not None:
            used_shares["tpot"] = top.tpot_by_share[share] / inputs.tpot_target
        return max(used_shares, key=used_shares.__getitem__, default=None)

    def is_overfilled_at(self, point: OperatingPoint, replicas: int) -> bool:
        """Return whether each of so few replicas would have more requests than give the highest rate.

        The point itself has at most the requests that fit the memory.
        """
        users = self.inputs.concurrent * self.inputs.peak / replicas
        wanted = point.batch if self.inputs.requests_per_second is not None else users
        return wanted > self.max_rate_batch

    @property
    def target_setting_replica_count(self) -> Literal["ttft", "tpot"] | None:
        """Return the target for which there are several replicas; None if for none, or if typed."""
        is_decided = not self.inputs.replicas and self.meets_targets_of_inputs
        return self.target_missed_first if is_decided and (self.replicas or 0) > 1 else None

    @property
    def gpus(self) -> int | None:
        """Return the GPUs of all replicas, spare ones included."""
        if self.replicas is None or (self.inputs.prefill_gpus and self.prefill_replicas is None):
            return None
        return sum(pool.replicas * pool.gpus_per_replica for pool in self.replica_pools_with_spares)

    @property
    def replica_pools_with_spares(self) -> tuple[ReplicaPool, ...]:
        spare, prefill = self.inputs.spare, self.replica_profile.prefill_replica
        pools = [ReplicaPool((self.replicas or 0) + spare, self.replica_profile.placed.setup.gpus)]
        if prefill and self.prefill_replicas is not None:
            prefill_gpus = prefill.placed.setup.gpus
            pools.append(ReplicaPool(self.prefill_replicas + spare, prefill_gpus))
        return tuple(pools)

    @property
    def gpus_if_times_are_high(self) -> int | None:
        """Return the GPUs of as many replicas as it takes if all times are long."""
        most = self.replica_bounds.if_times_are_high if self.replica_bounds else None
        return dataclasses.replace(self, replicas=most).gpus

    @property
    def nodes(self) -> int | None:
        """Return the number of servers; a replica that fits in one server is not split.

        A rack whose GPUs are all linked counts as one.
        """
        if self.gpus is None:
            return None
        return count_nodes(self.replica_pools_with_spares, gpus_per_server_or_rack(self.inputs))

    @property
    def request_rate(self) -> float | None:
        if self.operating_point is None or not self.replicas:
            return None
        return self.operating_point.requests_per_second * self.replicas

    @property
    def output_token_rate(self) -> float | None:
        return None if self.request_rate is None else self.request_rate * self.inputs.output_tokens

    @property
    def max_request_rate_within_targets(self) -> float | None:
        if self.highest_load_point is None or not self.replicas:
            return None
        return self.highest_load_point.requests_per_second * self.replicas

    @property
    def saturated_token_rate(self) -> float | None:
        """Return the output tokens per second when requests are always waiting."""
        if not self.fits_memory or self.replicas is None:
            return None
        requests = self.inputs.run_requests
        run = requests / self.replicas if requests else None
        rate = min(
            self.max_prefill_request_rate,
            saturated_request_rate(self.replica_profile, run) * self.replicas,
        )
        return rate * self.inputs.output_tokens


def fill_in_formats_and_gpus(inputs: ServingCapacityInputs) -> ServingCapacityInputs:
    """Return the inputs with formats and GPUs that they leave open.

    Raises InvalidInputsError if the model cannot run on the GPUs.
    """
    reject_transformers_engine(inputs.engine)
    reject_gguf_without_llama_cpp(inputs.weights, inputs.engine)
    inputs = common_inputs.replace_as_published_formats(inputs)
    model, gpu = find_model(inputs.model), find_accelerator(inputs.gpu)
    shared = 1 if inputs.decode_gpus else inputs.tensor_parallel or 1
    validate_gpu_format_and_split(model, gpu, inputs.weights, shared, inputs.engine)
    validate_expert_split(model, inputs)
    validate_pipeline(model, inputs)
    validate_prefill_decode_split(model, inputs)
    if inputs.tensor_parallel or inputs.decode_gpus:
        return dataclasses.replace(inputs, tensor_parallel=inputs.tensor_parallel or 1)
    best = compute_capacity_with_best_split(inputs)
    return dataclasses.replace(best.inputs, simulate=inputs.simulate)


def compute_capacity_with_best_split(inputs: ServingCapacityInputs) -> CapacityResult:
    """Return the capacity with as many GPUs per replica as the fewest in all keep the targets.

    Of several with as many in all, with those that surely fit, and keep the targets by the widest
    margin; if no number keeps them, with that which comes closest. Experts whose parts engines do not load
    are divided whole, unless a split of them is given.
    """
    splits = list_splits_to_try(inputs)
    tried = [compute_capacity(split, build_replica_profile(split)) for split in splits]
    keeping = [result for result in tried if result.meets_targets_of_inputs]
    if keeping:
        return min(
            keeping,
            key=lambda result: (
                result.gpus or 0,
                result.unsure_memory_fit is not None,
                *result.lateness_and_waiting_sort_key,
            ),
        )
    return min(
        reversed(tried),
        key=lambda result: (
            *result.lateness_and_waiting_sort_key,
            result.inputs.attention_parallel,
        ),
    )


# Engines in which groups of attention share the experts: --data-parallel-size in vLLM,
# --enable-dp-attention in SGLang, enable_attention_dp in TensorRT-LLM.
_ENGINES_WITH_DATA_PARALLEL_ATTENTION = ("vllm", "sglang", "trtllm")


def list_splits_to_try(inputs: ServingCapacityInputs) -> list[ServingCapacityInputs]:
    """Return the inputs with each number of GPUs per replica that is tried where it is left open.

    Tensor parallelism does not divide a latent cache, so attention data parallel with expert
    parallelism is tried for it, too. vLLM advises that for high load:
    docs.vllm.ai/projects/recipes/en/latest/DeepSeek/DeepSeek-V3.html.
    """
    model = find_model(inputs.model)

    def divide_over(gpus: int) -> ServingCapacityInputs:
        split = dataclasses.replace(inputs, tensor_parallel=gpus, simulate=False)
        if inputs.expert_parallel > 1 or inputs.expert_tensor_parallel:
            return split
        return find_loadable_split(split) or split

    def has_room(gpus: int) -> bool:
        return has_room_for_request(divide_over(gpus))

    def surely_has_room(gpus: int) -> bool:
        return has_room_for_request(divide_over(gpus), surely=True)

    def is_enough(gpus: int) -> bool:
        return not place_replica_model(divide_over(gpus)).load_refusal and has_room(gpus)

    most = max(1, gpus_per_server_or_rack(inputs) // inputs.attention_parallel)
    counts = list_default_gpu_counts_per_replica(model, inputs.engine, most, is_enough)
    while is_enough(counts[0]) and not surely_has_room(counts[-1]) and most < MOST_GPUS_TRIED:
        most *= 2  # A server may be too small: several do, if the model surely fits them.
        counts = list_default_gpu_counts_per_replica(model, inputs.engine, most, is_enough)
    if not is_enough(counts[0]):  # What fits is refused by the engine, which says why.
        counts = list_default_gpu_counts_per_replica(model, inputs.engine, most, has_room)
    divided = [divide_over(gpus) for gpus in counts]
    is_split_given = inputs.expert_tensor_parallel or not (
        inputs.attention_parallel == inputs.expert_parallel == inputs.pipeline_parallel == 1
    )
    if (
        is_split_given
        or inputs.engine not in _ENGINES_WITH_DATA_PARALLEL_ATTENTION
        or not (model.is_routed and model_kind_for_engine(model) == "latent")
    ):
        return divided
    alone = dataclasses.replace(inputs, tensor_parallel=1, simulate=False)
    return divided + [
        dataclasses.replace(alone, attention_parallel=gpus, expert_parallel=gpus)
        for gpus in counts
        if gpus > 1 and model.experts % gpus == 0
    ]


def find_loadable_split(inputs: ServingCapacityInputs) -> ServingCapacityInputs | None:
    """Return the inputs, with experts divided whole if engines load them only so; None if never.

    Weights in FP8 are taken as loaded from the publisher's FP8 checkpoint where there is a choice.
    """
    gpus = inputs.tensor_parallel * inputs.attention_parallel
    whole = dataclasses.replace(inputs, expert_parallel=gpus, expert_tensor_parallel=None)
    placed = [(split, place_replica_model(split)) for split in (inputs, whole)]
    loaded = [(split, replica) for split, replica in placed if not replica.load_refusal]
    published = (split for split, replica in loaded if not replica.published_fp8_warning)
    return next(published, loaded[0][0] if loaded else None)


def gpus_per_server_or_rack(inputs: ServingCapacityInputs) -> int:
    return (
        inputs.gpus_per_node or build_gpu_interconnect(find_accelerator(inputs.gpu)).gpus_per_domain
    )


def has_room_for_request(
    inputs: ServingCapacityInputs, *, surely: bool = False, **changes: Any
) -> bool:
    """Return whether weights and one request fit in a replica with changed inputs.

    `surely`: by the upper end of the estimate, too.
    """
    inputs = dataclasses.replace(inputs, **changes)
    context, share = (
        build_request_pattern(inputs).mean_context_of_running_sequence,
        inputs.memory_utilization,
    )
    placed = place_replica_model(inputs)
    if surely and lacking_bytes_at_upper_bound(placed, 1.0, context, share) > 0:
        return False
    return max_sequences_in_memory(placed, context, share) >= 1


def place_replica_model(inputs: ServingCapacityInputs) -> PlacedModel:
    gpu = find_accelerator(inputs.gpu)
    fabric = build_gpu_interconnect(gpu, inputs.network_rate, gpus_per_domain=inputs.domain or 0)
    return place_model(find_model(inputs.model), gpu, fabric, build_serving_setup(inputs))


def build_request_pattern(inputs: ServingCapacityInputs) -> RequestPattern:
    cached = inputs.prompt_tokens * inputs.cached_share
    return RequestPattern(
        RequestLengths(inputs.prompt_tokens, inputs.output_tokens, cached),
        inputs.prompt_variation,
        inputs.answer_variation,
        has_open_arrivals=inputs.requests_per_second is not None,
    )


def build_replica_profile(inputs: ServingCapacityInputs) -> ReplicaProfile:
    placed, traffic = place_replica_model(inputs), build_request_pattern(inputs)
    model, gpu, fabric = placed.model, placed.gpu, placed.fabric
    acceptance = typed_or_usual_acceptance(inputs.acceptance, model, inputs.draft_tokens)
    draft = SpeculativeDecoding(inputs.draft_tokens, acceptance.assumed, inputs.draft_cost)
    prefill = None
    if inputs.prefill_gpus and inputs.decode_gpus:
        setup = _build_prefill_or_decode_setup(inputs, inputs.prefill_gpus)
        gpus = inputs.prefill_gpus + inputs.decode_gpus
        reading = place_model(model, gpu, fabric, setup)
        if max_sequences_in_memory(reading, inputs.prompt_tokens, inputs.memory_utilization) < 1:
            message = f"The weights leave no room for a prompt on {inputs.prefill_gpus} {gpu.name}."
            raise impossible_input_error("prefill_gpus", inputs.prefill_gpus, message)
        prefill = build_prefill_replica(reading, traffic, gpus)
    return profile_replica_by_batch(placed, traffic, inputs.memory_utilization, draft, prefill)


def build_serving_setup(inputs: ServingCapacityInputs) -> ServingSetup:
    """Return the formats and splits of one replica; of one that decodes, if they are apart."""
    if inputs.decode_gpus:
        return _build_prefill_or_decode_setup(inputs, inputs.decode_gpus)
    gpus = inputs.tensor_parallel * inputs.attention_parallel
    return ServingSetup(
        **_build_shared_setup_arguments(inputs),
        tensor_parallel=inputs.tensor_parallel,
        attention_replicas=inputs.attention_parallel,
        expert_parallel=inputs.expert_parallel,
        gpus_per_expert=inputs.expert_tensor_parallel or max(1, gpus // inputs.expert_parallel),
        pipeline_stages=inputs.pipeline_parallel,
    )


def _build_prefill_or_decode_setup(inputs: ServingCapacityInputs, gpus: int) -> ServingSetup:
    if not find_model(inputs.model).is_routed:
        return ServingSetup(
            **_build_shared_setup_arguments(inputs), tensor_parallel=gpus, gpus_per_expert=gpus
        )
    return ServingSetup(
        **_build_shared_setup_arguments(inputs),
        tensor_parallel=1,
        attention_replicas=gpus,
        expert_parallel=gpus,
        gpus_per_expert=1,
        dispatches_tokens=True,
    )


def _build_shared_setup_arguments(inputs: ServingCapacityInputs) -> dict[str, Any]:
    return {
        "weight_format": inputs.weights,
        "cache_format": inputs.cache,
        "engine_id": inputs.engine,
        "polling_interval_steps": inputs.polling,
        "draft_tokens": inputs.draft_tokens,
        "max_sequences": inputs.max_sequences,
    }


def validate_prefill_decode_split(model: Architecture, inputs: ServingCapacityInputs) -> None:
    """Reject half of a split into prefill and decode, and splits that are impossible."""
    sizes = {"prefill_gpus": inputs.prefill_gpus, "decode_gpus": inputs.decode_gpus}
    if not any(sizes.values()):
        return
    for field, gpus in sizes.items():
        problem: str | None = "Give the GPUs of a prefill replica and those of a decode replica."
        if gpus:
            problem = (
                find_whole_experts_problem(model, gpus, inputs.engine)
                if model.is_routed
                else find_tensor_parallel_problem(model, gpus)
            )
        if problem:
            raise impossible_input_error(field, gpus, problem)
    for field, value, usual in (
        ("attention_parallel", inputs.attention_parallel, 1),
        ("expert_parallel", inputs.expert_parallel, 1),
        ("pipeline_parallel", inputs.pipeline_parallel, 1),
    ):
        if value != usual:
            message = "With prefill and decode apart, the GPUs of their replicas say how."
            raise impossible_input_error(field, value, f"{message} Leave this at its default.")
    if inputs.simulate:
        message = (
            "Replicas that only read prompts or only answer are not simulated: leave this out."
        )
        raise impossible_input_error("simulate", inputs.simulate, message)


def validate_expert_split(model: Architecture, inputs: ServingCapacityInputs) -> None:
    parts = inputs.expert_parallel
    if parts > 1 and not model.is_routed:
        message = f"{model.name} has no experts to divide; use 1."
        raise impossible_input_error("expert_parallel", parts, message)
    if parts > max(1, model.experts):
        message = f"{model.experts} experts cannot be divided into {parts} parts."
        raise impossible_input_error("expert_parallel", parts, message)


def validate_pipeline(model: Architecture, inputs: ServingCapacityInputs) -> None:
    stages = inputs.pipeline_parallel
    problem = find_serving_pipeline_problem(model, stages, inputs.engine)
    if inputs.attention_parallel > 1 and stages > 1:
        problem = "Stages are not computed together with data-parallel attention: use 1."
    if problem:
        raise impossible_input_error("pipeline_parallel", stages, problem)


def build_latency_targets(inputs: ServingCapacityInputs) -> LatencyTargets:
    return LatencyTargets(SHARES[inputs.percentile], inputs.ttft_target, inputs.tpot_target)


def find_highest_load(
    inputs: ServingCapacityInputs, profile: ReplicaProfile
) -> OperatingPoint | None:
    """Return the highest load of a replica within the targets, whatever prefill replicas read."""
    return highest_load_within_targets(
        profile, build_latency_targets(inputs), find_max_rate_batch(profile)
    )


def compute_capacity(inputs: ServingCapacityInputs, profile: ReplicaProfile) -> CapacityResult:
    targets = build_latency_targets(inputs)
    best = find_max_rate_batch(profile)
    top = highest_load_within_targets(profile, targets, best)
    replicas = inputs.replicas or count_fewest_replicas(inputs, top)
    operating_point = operating_point_of_each_replica(inputs, profile, replicas or 1)
    fits_memory = profile.max_batch >= 1
    lone_request = operating_point_at_batch(profile, 1.0) if fits_memory and top is None else None
    result = CapacityResult(
        inputs=inputs,
        replica_profile=profile,
        replicas=replicas,
        operating_point=operating_point,
        highest_load_point=top,
        max_rate_batch=best,
        meets_targets_of_inputs=bool(
            replicas and operating_point and targets.are_met_at(operating_point)
        ),
        fits_memory=fits_memory,
        measurements=_find_measurements(profile),
        simulation=_simulate_replica(inputs, profile, operating_point, replicas or 1),
        prefill_replicas=_count_prefill_replicas(profile, operating_point, replicas),
        point_of_single_request=lone_request,
    )
    if prefill := profile.prefill_replica:
        counted = dataclasses.replace(
            prefill,
            gpus_on_shared_link=max(
                prefill.gpus_on_shared_link, result.gpus_of_decode_and_its_prefill
            ),
            decode_replicas=max(prefill.decode_replicas, result.replicas or 1),
        )
        # The cache of some prompts comes from further away, or more replicas answer prompts.
        is_farther = counted.transfer_seconds > prefill.transfer_seconds
        if is_farther or counted.decode_replicas > prefill.decode_replicas:
            return compute_capacity(inputs, dataclasses.replace(profile, prefill_replica=counted))
    result = _limit_highest_load_to_prefill(result)
    if result.meets_targets_of_inputs and profile.placed.load_refusal:
        return dataclasses.replace(result, meets_targets_of_inputs=False)
    # Without a target for that, what can be asked of a service is that nobody waits for memory.
    is_open = inputs.ttft_target is None
    if (
        result.meets_targets_of_inputs
        and is_open
        and result.requests_waiting_for_memory_per_replica
    ):
        return dataclasses.replace(result, meets_targets_of_inputs=False)
    return result


def _limit_highest_load_to_prefill(result: CapacityResult) -> CapacityResult:
    """Return a result whose highest load is what the counted prefill replicas can feed."""
    if result.highest_load_point is None or not result.replicas:
        return result
    rate = result.max_prefill_request_rate / result.replicas
    if rate >= result.highest_load_point.requests_per_second:
        return result
    top = operating_point_at_rate(result.replica_profile, rate)
    batch = top.batch if top else result.max_rate_batch
    return dataclasses.replace(
        result,
        highest_load_point=top,
        max_rate_batch=min(result.max_rate_batch, batch),
        is_prefill_bound=True,
    )


def _find_measurements(profile: ReplicaProfile) -> MeasurementCoverage:
    """Return the measurements of setups like this one; there are none of prefill apart."""
    counts = find_measurement_coverage(profile.placed)
    if profile.prefill_replica:
        return MeasurementCoverage(0, f"{counts.setup_description} with prefill apart")
    return counts


def _count_prefill_replicas(
    profile: ReplicaProfile, operating_point: OperatingPoint | None, replicas: int | None
) -> int | None:
    """Return the prefill replicas that read all prompts at their usual load."""
    if profile.prefill_replica is None or operating_point is None or replicas is None:
        return None
    prompts_per_second = operating_point.requests_per_second * replicas
    return max(
        1,
        math.ceil(
            prompts_per_second / (PREFILL_LOAD * profile.prefill_replica.max_prompts_per_second)
        ),
    )


def count_fewest_replicas(
    inputs: ServingCapacityInputs, highest_point: OperatingPoint | None
) -> int | None:
    """Return the fewest replicas that stay within the highest load; None if none do."""
    if highest_point is None:
        return None
    if inputs.requests_per_second is not None:
        needed = inputs.requests_per_second * inputs.peak / highest_point.requests_per_second
    else:
        needed = inputs.concurrent * inputs.peak / highest_point.batch
    count = max(1, math.ceil(needed - 1e-9))
    return count if count <= MOST_REPLICAS else None


def operating_point_of_each_replica(
    inputs: ServingCapacityInputs, profile: ReplicaProfile, replicas: int
) -> OperatingPoint | None:
    """Return the operating point of one of `replicas`; None if it cannot keep up."""
    if profile.max_batch < 1:
        return None
    if inputs.requests_per_second is not None:
        return operating_point_at_rate(profile, inputs.requests_per_second * inputs.peak / replicas)
    return operating_point_at_batch(profile, inputs.concurrent * inputs.peak / replicas)


def _simulate_replica(
    inputs: ServingCapacityInputs,
    profile: ReplicaProfile,
    operating_point: OperatingPoint | None,
    replicas: int,
) -> SimulationResult | None:
    if not inputs.simulate or operating_point is None:
        return None
    users = None
    if inputs.requests_per_second is None:
        users = max(1, round(inputs.concurrent * inputs.peak / replicas))
    return simulate_replica(
        profile, operating_point.requests_per_second, seed=inputs.seed, fixed_users=users
    )
