"""`latency`: inputs, result, and the input values where the verdict changes."""

import bisect
import dataclasses
import math
from typing import NamedTuple

from app.estimator import common_inputs
from app.estimator.common_inputs import (
    ENGINE,
    HARDWARE,
    impossible_input_error,
    reject_gguf_without_llama_cpp,
    reject_gpu_without_rates_or_memory,
    reject_host_layers_without_llama_cpp,
    reject_transformers_engine,
)
from app.estimator.estimates.inference_memory import InferenceMemoryInputs
from app.estimator.hardware.catalog import Accelerator, find_accelerator
from app.estimator.hardware.collectives import build_gpu_interconnect
from app.estimator.inputs import reuse_input
from app.estimator.memory.engine_memory import MaxNumSeqsRefusal
from app.estimator.memory.parallel_layout import (
    ServingSetup,
    build_model_of_gpu_layers,
    build_model_of_host_layers,
    find_engine_split_problem,
    find_serving_pipeline_problem,
    list_default_gpu_counts_per_replica,
)
from app.estimator.models.architecture import Architecture
from app.estimator.models.lookup import find_model
from app.estimator.models.weight_formats import (
    build_published_format_clause,
    find_weight_format,
)
from app.estimator.result import Bounds, VerdictChange
from app.estimator.serving.engine_speed import find_fp8_problem, find_math_bits
from app.estimator.serving.replica_memory import (
    bounds_of_lacking_bytes,
    find_max_num_seqs_refusal_of_replica,
    lacking_bytes_at_upper_bound,
    max_sequences_in_memory,
    max_sequences_that_surely_fit,
    weight_bytes_read_per_gpu,
)
from app.estimator.serving.step_time import (
    TILE_ROWS,
    InferenceStepTime,
    MeasurementCoverage,
    PlacedModel,
    SpeculativeDecoding,
    StepBatch,
    cache_and_state_bytes_moved_per_gpu,
    decode_step_time,
    draft_and_verify_step_time,
    draft_verification_step_time,
    engine_step_time,
    find_measurement_coverage,
    padded_rows,
    place_model,
    prefill_step_time,
    typed_or_usual_acceptance,
)
from app.estimator.units import format_number
from app.estimator.verdict_changes import add_max_num_seqs_change, build_max_num_seqs_changes


@dataclasses.dataclass(frozen=True, slots=True)
class LatencyInputs:
    model: str = common_inputs.model_input(default="llama-3.1-8b")
    weights: str = common_inputs.engine_weights_input()
    cache: str = common_inputs.cache_input()
    gpu: str = common_inputs.counted_gpu_input(count_field="tensor_parallel")
    tensor_parallel: int = common_inputs.declare_gpus_per_replica_input(
        lambda inputs: fill_in_formats_and_gpus(inputs).tensor_parallel,
        "the fewest on which the engine loads the model and the sequences fit.",
    )
    pipeline_parallel: int = common_inputs.serving_pipeline_input()
    beyond_heads: bool = HARDWARE.declare_advanced_input_field(
        False,
        "Divided beyond the heads",
        help="A layer is divided over more chips than its heads divide into, as "
        "compilers for TPUs do.",
    )
    prompt: int = common_inputs.tokens_input(
        default=1024, label="Prompt", help="Tokens of the prompt."
    )
    answer: int = common_inputs.tokens_input(
        default=256, label="Answer", help="Tokens of the answer."
    )
    batch: int = common_inputs.sequences_at_once_input(
        default=1,
        label="Sequences at once",
        help="Sequences that are answered in the same step.",
    )
    chunk: int | None = ENGINE.declare_advanced_input_field(
        None,
        "Prompt chunk",
        kind="count",
        unit="token",
        limits=(16, 10_000_000),
        help="Tokens of a prompt computed in one step beside the answers of others; "
        "left empty: the whole prompt at once.",
        term="chunked-prefill",
    )
    cached_share: float = common_inputs.cached_share_input()
    draft_tokens: int = common_inputs.draft_tokens_input()
    acceptance: float | None = common_inputs.acceptance_input()
    draft_cost: float = common_inputs.draft_cost_input()
    max_sequences: int | None = reuse_input(InferenceMemoryInputs, "max_sequences")
    engine: str = common_inputs.engine_input()
    gpu_layers: int | None = common_inputs.gpu_layers_input()
    host_bandwidth: float = common_inputs.host_bandwidth_input()
    network_rate: float = common_inputs.network_rate_input()
    domain: int | None = common_inputs.domain_input()


class TimeRange(NamedTuple):
    """A time with the least and the most that it may be [s]."""

    usual: float = 0.0
    least: float = 0.0
    most: float = 0.0


class RateRange(NamedTuple):
    """A rate, or a share of one, with the highest and the lowest that were published."""

    usual: float
    highest: float
    lowest: float

    def compute_time_range(self, amount: float) -> TimeRange:
        """Return the time that an amount takes at these rates [s]."""
        return TimeRange(*(amount / rate for rate in self))


class HostLayerTimes(NamedTuple):
    """What layers in the memory of the host add to a prompt, and to each token of an answer.

    A token reads `bytes_per_token` of weights and cache there [B].
    """

    prompt: TimeRange = TimeRange()
    token: TimeRange = TimeRange()
    bytes_per_token: float = 0.0


_NO_HOST_LAYERS = HostLayerTimes()


@dataclasses.dataclass(frozen=True, slots=True)
class LatencyResult:
    """Steps of prompt and answer, and times of the first and of each token [s].

    `decode` is the step in use: with drafts the one that checks them. `step_seconds_without_drafts` is that
    of one without, and `drafting_seconds_per_step` is what proposing the drafts adds to `decode`.
    From `batch_where_compute_exceeds_weights` on, compute takes longer than reading weights; from
    `non_memory_bound_batch` on, the step is no longer memory-bound.
    """

    inputs: LatencyInputs
    placed_model: PlacedModel
    prefill_step: InferenceStepTime
    decode_step: InferenceStepTime
    step_seconds_without_drafts: float
    drafting_seconds_per_step: float
    ttft: float
    time_per_output_token: float
    tokens_per_step: float
    batch_where_compute_exceeds_weights: int | None
    non_memory_bound_batch: int | None
    fits: bool
    lacking_bytes: Bounds
    measurements: MeasurementCoverage
    start_refusal: MaxNumSeqsRefusal | None = None
    host_layers: HostLayerTimes = _NO_HOST_LAYERS

    @property
    def is_fit_unsure(self) -> bool:
        """Return whether the limit lies within the range of the memory that a GPU needs."""
        return self.lacking_bytes.low <= 0 < self.lacking_bytes.high

    def error_interval_name(self, step_phase: str) -> str:
        """Return the error interval of a part, decode or prefill; servers have their own.

        The measurements contain no prompt outside of a server.
        """
        if self.placed_model.engine.launch_seconds_per_eager_kernel:
            return self.measurements.error_interval_name(
                {"decode": "tpot", "prefill": "ttft"}[step_phase]
            )
        return (
            "prefill"
            if step_phase == "prefill"
            else self.measurements.error_interval_name(step_phase)
        )

    @property
    def decode_step_seconds(self) -> float:
        """Return the time of a decode step, with its drafts [s]."""
        return self.decode_step.total + self.drafting_seconds_per_step

    @property
    def decode_step_memory_seconds(self) -> float:
        """Return the time to read weights and cache in a decode step [s]."""
        return self.decode_step.weights + self.decode_step.attention

    @property
    def least_decode_step_seconds(self) -> float:
        """Return the time in which a step without drafts could read at the data sheet's rate [s]."""
        inputs, placed = self.inputs, self.placed_model
        context = inputs.prompt + inputs.answer / 2
        read = weight_bytes_read_per_gpu(placed, float(inputs.batch))
        read += cache_and_state_bytes_moved_per_gpu(placed, inputs.batch, context)
        host_seconds = self.host_layers.bytes_per_token / inputs.host_bandwidth
        return read / (placed.gpu.memory_bandwidth or math.inf) + host_seconds

    @property
    def least_time_per_output_token(self) -> float:
        """Return the time for each token of the least decode time, if all drafts are kept [s]."""
        return self.least_decode_step_seconds / (self.inputs.draft_tokens + 1)

    @property
    def least_prefill_time(self) -> float:
        """Return the time of the prompt's matrix products at the peak of the data sheet [s].

        The parts of a prompt may be computed by all stages of a pipeline at once. Products in
        llama.cpp are in formats of its own, so that their peak is not known: 0.
        """
        placed, model = self.placed_model, self.placed_model.model
        if self.inputs.engine == common_inputs.LLAMA_CPP:
            return 0.0
        tokens = self.inputs.prompt * (1 - self.inputs.cached_share)
        tables = model.embedding_parameters + model.per_layer_embedding_parameters
        matrices = model.active_parameters - tables - model.head_parameters
        return 2 * matrices * tokens / placed.setup.gpus / datasheet_peak_rate(placed)

    @property
    def decode_step_overhead_seconds(self) -> float:
        """Return the time of launches and host in a decode step [s]."""
        return self.decode_step.launch + self.decode_step.host

    @property
    def bound(self) -> str:
        return name_largest_step_part(self.decode_step)


def validate_gpu_format_and_split(
    model: Architecture, gpu: Accelerator, weights: str, tensor_parallel: int, engine: str
) -> None:
    """Reject a GPU with unknown rates, an unsupported format, or an impossible split."""
    reject_gpu_without_rates_or_memory(gpu)
    form = find_weight_format(model, weights)
    if reason := find_fp8_problem(gpu, form, engine, has_experts=model.is_routed):
        message = f"The {gpu.name} cannot compute in {form.label}"
        raise impossible_input_error(
            "weights",
            weights,
            f"{message}{build_published_format_clause(model, weights)}. {reason}",
        )
    problem = find_engine_split_problem(model, tensor_parallel, engine)
    if problem:
        raise impossible_input_error("tensor_parallel", tensor_parallel, problem)


def fill_in_formats_and_gpus(inputs: LatencyInputs) -> LatencyInputs:
    """Return the inputs with formats and GPUs that they leave open.

    Raises InvalidInputsError if the model cannot run on the GPUs.
    """
    reject_transformers_engine(inputs.engine)
    inputs = common_inputs.replace_as_published_formats(inputs)
    model, gpu = find_model(inputs.model), find_accelerator(inputs.gpu)
    tensor = 1 if inputs.beyond_heads else inputs.tensor_parallel or 1
    validate_gpu_format_and_split(model, gpu, inputs.weights, tensor, inputs.engine)
    problem = find_serving_pipeline_problem(model, inputs.pipeline_parallel, inputs.engine)
    if problem:
        raise impossible_input_error("pipeline_parallel", inputs.pipeline_parallel, problem)
    reject_gguf_without_llama_cpp(inputs.weights, inputs.engine)
    _validate_host_layers(inputs)
    if inputs.tensor_parallel:
        return inputs

    def is_enough(gpus: int) -> bool:
        placed = place_requested_model(dataclasses.replace(inputs, tensor_parallel=gpus))
        fits = max_sequences_in_memory(placed, inputs.prompt + inputs.answer) >= inputs.batch
        return fits and not placed.load_refusal

    counts = list_default_gpu_counts_per_replica(model, inputs.engine, 1, is_enough)
    return dataclasses.replace(inputs, tensor_parallel=counts[0])


def _validate_host_layers(inputs: LatencyInputs) -> None:
    reject_host_layers_without_llama_cpp(inputs.gpu_layers, inputs.engine)
    if inputs.gpu_layers is None:
        return
    for field, least in (("batch", 1), ("draft_tokens", 0)):
        if (value := getattr(inputs, field)) > least:
            message = (
                "With layers in the memory of the host, one sequence without drafts is estimated: "
                f"use {least}."
            )
            raise impossible_input_error(field, value, message)


def place_requested_model(inputs: LatencyInputs) -> PlacedModel:
    """Return the model, or the layers that are not on the host, on GPUs, of resolved inputs."""
    model = find_model(inputs.model)
    return _place(build_model_of_gpu_layers(model, inputs.engine, inputs.gpu_layers), inputs)


def _place(model: Architecture, inputs: LatencyInputs) -> PlacedModel:
    gpu = find_accelerator(inputs.gpu)
    fabric = build_gpu_interconnect(gpu, inputs.network_rate, gpus_per_domain=inputs.domain or 0)
    serving = ServingSetup(
        weight_format=inputs.weights,
        cache_format=inputs.cache,
        tensor_parallel=inputs.tensor_parallel,
        gpus_per_expert=inputs.tensor_parallel,
        engine_id=inputs.engine,
        pipeline_stages=inputs.pipeline_parallel,
        draft_tokens=inputs.draft_tokens,
        max_sequences=inputs.max_sequences,
    )
    return place_model(model, gpu, fabric, serving)


def compute_latency(inputs: LatencyInputs, placed: PlacedModel) -> LatencyResult:
    uncached_tokens = max(1.0, inputs.prompt * (1 - inputs.cached_share))
    context = inputs.prompt + inputs.answer / 2
    host = _compute_host_layer_times(inputs, uncached_tokens)
    plain = decode = dataclasses.replace(
        decode_step_time(placed, inputs.batch, context), host_layers=host.token.usual
    )
    # The GPU computes a prompt in all layers, wherever they are kept.
    whole = _place(find_model(inputs.model), inputs) if inputs.gpu_layers else placed
    prefill = dataclasses.replace(
        prefill_step_time(whole, uncached_tokens), host_layers=host.prompt.usual
    )
    ttft = placed.seconds_before_prompt + prefill.total
    if inputs.chunk and inputs.chunk < uncached_tokens:
        ttft = _chunked_time_to_first_token(inputs, placed, inputs.chunk, uncached_tokens)
        ttft += host.prompt.usual
    acceptance = typed_or_usual_acceptance(inputs.acceptance, placed.model, inputs.draft_tokens)
    draft = SpeculativeDecoding(inputs.draft_tokens, acceptance.assumed, inputs.draft_cost)
    tokens = draft.tokens_per_step
    step_seconds = draft_and_verify_step_time(placed, draft, inputs.batch, context, plain.total)
    if draft.draft_tokens:
        checking = draft_verification_step_time(placed, draft, inputs.batch, context)
        decode = max(plain, checking, key=lambda step: step.total)
    compute_bound_batch = non_memory_bound_batch = None
    if decode.weights > decode.compute:
        compute_bound_batch = weights_compute_crossover_batch(
            placed, draft, context, inputs.batch, decode
        )
        non_memory_bound_batch = first_non_memory_bound_batch(
            placed, draft, context, inputs.batch, compute_bound_batch
        )
    max_batch = max_sequences_in_memory(placed, inputs.prompt + inputs.answer)
    if non_memory_bound_batch is not None and non_memory_bound_batch > max_batch:
        non_memory_bound_batch = None
    return LatencyResult(
        inputs=inputs,
        placed_model=placed,
        prefill_step=prefill,
        decode_step=decode,
        step_seconds_without_drafts=plain.total,
        drafting_seconds_per_step=step_seconds - decode.total,
        ttft=ttft,
        time_per_output_token=step_seconds / tokens,
        tokens_per_step=tokens,
        batch_where_compute_exceeds_weights=compute_bound_batch,
        non_memory_bound_batch=non_memory_bound_batch,
        fits=inputs.batch <= max_batch,
        lacking_bytes=bounds_of_lacking_bytes(placed, inputs.batch, inputs.prompt + inputs.answer),
        measurements=find_measurement_coverage(placed),
        start_refusal=find_max_num_seqs_refusal_of_replica(placed),
        host_layers=host,
    )


# Shares of the data sheet's bandwidth at which llama.cpp reads layers in host memory: 0.61 of two
# channels of DDR4-2666 (inventivehq.com/blog/vram-offload-cliff-gpu-layers-benchmark), about 0.5 of
# four channels of DDR4-2933 (github.com/AlexsJones/llmfit/pull/774).
HOST_BANDWIDTH_SHARES = RateRange(0.55, 0.85, 0.4)
# Rates at which the weights there are sent to the GPU for a prompt [B/s]: 1.6 to 2.7 GB/s from
# pageable memory in 2024 (github.com/ggml-org/llama.cpp/pull/6083), at most that of PCIe 4.
SENDING_RATES = RateRange(6e9, 25e9, 1.6e9)
PROMPT_BATCH = 512  # Tokens of a prompt that llama.cpp computes at once (-ub).


def _compute_host_layer_times(inputs: LatencyInputs, uncached_tokens: float) -> HostLayerTimes:
    """Return what the layers in host memory add.

    The processor computes the tokens of an answer; the weights are sent to the GPU for a prompt.
    """
    on_host = build_model_of_host_layers(find_model(inputs.model), inputs.gpu_layers)
    if on_host is None:
        return _NO_HOST_LAYERS
    placed = _place(on_host, inputs)
    read = weight_bytes_read_per_gpu(placed, 1.0)
    read += cache_and_state_bytes_moved_per_gpu(placed, 1.0, inputs.prompt + inputs.answer / 2)
    sent = weight_bytes_read_per_gpu(placed, float(PROMPT_BATCH))
    sent *= math.ceil(uncached_tokens / PROMPT_BATCH)
    return HostLayerTimes(
        SENDING_RATES.compute_time_range(sent),
        HOST_BANDWIDTH_SHARES.compute_time_range(read / inputs.host_bandwidth),
        read,
    )


def _chunked_time_to_first_token(
    inputs: LatencyInputs, placed: PlacedModel, chunk: int, uncached_tokens: float
) -> float:
    """Return the time to first token of a prompt that takes several steps [s]."""
    chunks = math.ceil(uncached_tokens / chunk)
    context = inputs.prompt + inputs.answer / 2
    other_sequences = inputs.batch - 1.0
    total, processed_tokens = 0.0, inputs.prompt - uncached_tokens
    for _ in range(min(chunks, _MOST_CHUNKS)):
        size = min(chunk, inputs.prompt - processed_tokens)
        processed_tokens += size
        batch = StepBatch(size, processed_tokens, other_sequences, context, other_sequences + 1)
        total += engine_step_time(placed, batch).total
    scale = chunks / min(chunks, _MOST_CHUNKS)
    return placed.seconds_before_prompt + total * scale


# At most this many chunks are timed one by one; a larger number is scaled.
_MOST_CHUNKS = 64


def weights_compute_crossover_batch(
    placed: PlacedModel,
    draft: SpeculativeDecoding,
    context: float,
    start_batch: int,
    start_batch_step: InferenceStepTime,
) -> int | None:
    """Return the batch from which compute takes longer than reading the weights.

    Solved directly for a dense model, since compute grows with tiles of rows, or with each row
    while they are multiplied as vectors. For experts, found by doubling from `start_batch`, whose
    step is `start_batch_step`. None if no batch up to 65,536 reaches it.
    """
    if not placed.model.is_routed:
        each = draft.draft_tokens + 1
        rows = (
            padded_rows(placed, start_batch * each)
            * start_batch_step.weights
            / start_batch_step.compute
        )
        crossover_rows = math.floor(rows) + 1
        if crossover_rows > placed.engine.max_unpadded_rows:
            crossover_rows = int(TILE_ROWS) * math.floor(rows / TILE_ROWS) + 1
        return math.ceil(crossover_rows / each) if crossover_rows <= _MOST_ROWS else None
    batch = start_batch
    while start_batch_step.compute <= start_batch_step.weights and batch <= _MOST_ROWS:
        batch *= 2
        start_batch_step = draft_verification_step_time(placed, draft, batch, context)
    return batch if batch <= _MOST_ROWS else None


def first_non_memory_bound_batch(
    placed: PlacedModel,
    draft: SpeculativeDecoding,
    context: float,
    start_batch: int,
    crossover_batch: int | None,
) -> int | None:
    """Return the fewest sequences for which reading is no longer the longest part.

    None if the cache, which grows with every sequence, always takes longer.
    """

    def has_other_bound(batch: int) -> bool:
        return (
            name_largest_step_part(draft_verification_step_time(placed, draft, batch, context))
            != "memory"
        )

    below, batch = start_batch, crossover_batch or _MOST_ROWS + 1
    while batch <= _MOST_ROWS:
        step = draft_verification_step_time(placed, draft, batch, context)
        if name_largest_step_part(step) != "memory":
            return bisect.bisect_left(range(batch), True, below + 1, key=has_other_bound)
        if step.attention >= step.compute:
            return None
        below, batch = batch, 2 * batch
    return None


_MOST_ROWS = 65536


def name_largest_step_part(step: InferenceStepTime) -> str:
    """Return the largest part of a step: memory, compute, exchange, overhead or host memory."""
    parts = {
        "memory": step.weights + step.attention,
        "compute": step.compute,
        "communication": step.communication,
        "overhead": step.launch + step.host,
        "host memory": step.host_layers,
    }
    return max(parts, key=lambda name: parts[name])


def datasheet_peak_rate(placed: PlacedModel) -> float:
    """Return the peak rate in the format that the weights are multiplied in [FLOP/s]."""
    gpu = placed.gpu
    kind = {"16": "bf16", "8": "fp8", "4": "fp4"}[find_math_bits(gpu, placed.weight_format)]
    return (
        gpu.dense_peak_rate(kind)
        or gpu.dense_peak_rate("int8")
        or gpu.dense_peak_rate("bf16")
        or 1.0
    )


def find_verdict_changes(result: LatencyResult) -> tuple[VerdictChange, ...]:
    """Return where it surely fits, where vLLM starts, and the batch that is not memory-bound."""
    refused = result.start_refusal if result.fits else None
    if not result.fits and result.inputs.engine == common_inputs.LLAMA_CPP:
        return _find_gpu_layer_changes(result.inputs)
    if not result.fits or result.is_fit_unsure:
        return _find_sure_fit_changes(result)
    starts = build_max_num_seqs_changes(refused)
    if starts and refused:
        limited = dataclasses.replace(result.inputs, max_sequences=refused.advised_sequences)
        result = compute_latency(limited, place_requested_model(limited))
    if result.bound != "memory" or result.non_memory_bound_batch is None:
        return starts
    now, then = format_number(result.inputs.batch), format_number(result.non_memory_bound_batch)
    becomes = "Memory no longer bounds it."
    change = VerdictChange("batch", "Sequences at once", now, then, becomes)
    return (*starts, add_max_num_seqs_change(change, refused))


def _find_sure_fit_changes(result: LatencyResult) -> tuple[VerdictChange, ...]:
    """Return the most sequences and the fewest GPUs with which the model surely fits."""
    inputs, placed = result.inputs, result.placed_model
    context = inputs.prompt + inputs.answer

    def is_enough(gpus: int) -> bool:
        if gpus <= inputs.tensor_parallel:
            return False
        wider = place_requested_model(dataclasses.replace(inputs, tensor_parallel=gpus))
        lacking = lacking_bytes_at_upper_bound(wider, inputs.batch, context)
        return lacking <= 0 and not wider.load_refusal

    most = max_sequences_that_surely_fit(placed, context)
    gpus = list_default_gpu_counts_per_replica(placed.model, inputs.engine, 1, is_enough)[0]
    changes = (
        ("batch", "Sequences at once", inputs.batch, most),
        ("tensor_parallel", "GPUs", inputs.tensor_parallel, gpus),
    )
    return tuple(
        VerdictChange(field, label, format_number(now), format_number(then), "It surely fits.")
        for field, label, now, then in changes
        if then and (field == "batch" or then > now)
    )


def _find_gpu_layer_changes(inputs: LatencyInputs) -> tuple[VerdictChange, ...]:
    """Return the most layers that surely fit on the GPUs if the rest stays on the host."""
    if inputs.batch > 1 or inputs.draft_tokens:
        return ()

    def is_too_large(layers: int) -> bool:
        placed = place_requested_model(dataclasses.replace(inputs, gpu_layers=layers))
        return lacking_bytes_at_upper_bound(placed, 1, inputs.prompt + inputs.answer) > 0

    layers = range(1, find_model(inputs.model).layers + 1)
    most = bisect.bisect_left(layers, True, key=is_too_large)
    if not most:
        return ()
    now = "all" if inputs.gpu_layers is None else str(inputs.gpu_layers)
    becomes = "Fits, the other layers in the memory of the host."
    return (VerdictChange("gpu_layers", "Layers on the GPUs", now, str(most), becomes),)
