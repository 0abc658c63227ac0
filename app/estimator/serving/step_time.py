"""Time of one engine step: prefill, decode, speculative decoding."""

import dataclasses
import math
from collections.abc import Sequence
from typing import NamedTuple

from app.estimator import data_files
from app.estimator.hardware.catalog import Accelerator
from app.estimator.hardware.collectives import (
    Interconnect,
    collective_time,
    inference_engine_collective_time,
    point_to_point_send_time,
)
from app.estimator.memory.kv_cache import cache_share_per_gpu
from app.estimator.memory.parallel_layout import (
    ServingSetup,
    build_model_of_gpu_layers,
    describe_fp8_checkpoint_split_problem,
    find_quantization_block_problem,
)
from app.estimator.models.architecture import Architecture
from app.estimator.models.layers import Layer
from app.estimator.models.weight_formats import (
    CACHE_BITS,
    WeightFormat,
    find_weight_format,
    is_mostly_in_format,
    mean_matrix_bits,
    share_of_whole_experts,
)
from app.estimator.serving.engine_speed import (
    EngineConstants,
    EngineSpeed,
    KernelRates,
    SharedEngineConstants,
    count_launched_matmuls,
    does_gpu_unpack_weights,
    expected_distinct_experts,
    expected_experts_on_fullest_gpu,
    find_engine_speed,
    find_kernel_rates,
    load_shared_engine_constants,
)
from app.estimator.training.flops import mixer_forward_flops_outside_matrices
from app.estimator.units import format_count, format_number, format_value

_CUBE_ROOT_EXPONENT = 1 / 3
TILE_ROWS = 16.0
# Kernels per layer that are neither products nor attention; kernels that score, rank and
# select the tokens of sparse attention; kernels that route tokens to experts.
_SMALL_KERNELS, _SELECTION_KERNELS, _ROUTING_KERNELS = 6, 10, 6


@dataclasses.dataclass(frozen=True, slots=True)
class StepBatch:
    """The work of one step, per attention replica.

    `prompt_tokens` tokens of prompts, the last of them at position `prompt_end_position`;
    `sequences` that each get one token at a context of `context` tokens;
    `output_head_rows` is how many rows the output head computes.
    """

    prompt_tokens: float = 0.0
    prompt_end_position: float = 0.0
    sequences: float = 0.0
    context: float = 0.0
    output_head_rows: float = 0.0

    @property
    def rows(self) -> float:
        """Return the tokens in the products of this step."""
        return self.prompt_tokens + self.sequences


@dataclasses.dataclass(frozen=True, slots=True)
class InferenceStepTime:
    """Seconds of one step by category; they sum to `total`."""

    weights: float
    compute: float
    attention: float
    communication: float
    launch: float
    host: float
    host_layers: float = 0.0

    @property
    def total(self) -> float:
        work = self.weights + self.compute + self.attention + self.host_layers
        return work + self.communication + self.launch + self.host

    @property
    def request_dependent_time(self) -> float:
        """Return the time that depends on the requests, not on the rows [s]."""
        return self.attention + self.host


class MatrixCost(NamedTuple):
    """Seconds of compute per row, and of reading the weights, of a dense matrix."""

    seconds_per_row: float
    reading_seconds: float


@dataclasses.dataclass(frozen=True, slots=True)
class LayerCosts:
    """The work of one kind of layer on one GPU, precomputed for all steps.

    `layer_count` is as if every pipeline stage were as long as the longest. A prompt launches
    `launches` kernels one by one. A routed expert counts as far as it is on one GPU; both are 0 in
    a layer without routed experts.
    """

    layer: Layer
    layer_count: float
    matrix_costs: tuple[MatrixCost, ...]
    kernel_gap_seconds: float
    launches: int
    moved_bytes_per_row_outside_matmuls: float
    weights_per_routed_expert: float
    bytes_per_routed_expert: float


@dataclasses.dataclass(frozen=True, slots=True)
class PlacedModel:
    """A model on its GPUs with everything that does not change between steps.

    `prompt_launch_seconds` are those of a step with prompts, which has no recorded graph.
    """

    model: Architecture
    gpu: Accelerator
    fabric: Interconnect
    setup: ServingSetup
    weight_format: WeightFormat
    kernel_rates: KernelRates
    engine: EngineSpeed
    shared_constants: SharedEngineConstants
    unpacks_weights: bool
    cache_element_bytes: float
    layer_costs: tuple[LayerCosts, ...]
    prompt_launch_seconds: float

    @property
    def seconds_before_prompt(self) -> float:
        """Return the time of transfer to the engine, and of launching a prompt [s]."""
        return self.engine.seconds_before_queue + self.prompt_launch_seconds

    @property
    def load_refusal(self) -> str:
        """Return why engines do not load the weights divided so; empty if they do."""
        serving = self.setup
        return (
            find_quantization_block_problem(
                self.model, serving.weight_format, serving.tensor_parallel, serving.gpus_per_expert
            )
            or ""
        )

    @property
    def published_fp8_warning(self) -> str:
        """Return why engines do not load the publisher's FP8 checkpoint so; empty if they do."""
        serving = self.setup
        return describe_fp8_checkpoint_split_problem(
            self.model, serving.weight_format, serving.tensor_parallel, serving.gpus_per_expert
        )


def place_model(
    model: Architecture,
    gpu: Accelerator,
    fabric: Interconnect,
    setup: ServingSetup,
    fitted_constants: EngineConstants | None = None,
) -> PlacedModel:
    """Place a model on GPUs; raises ValueError if the GPU lacks a needed value.

    `fitted_constants` replace those of the catalog.
    """
    model = build_model_of_gpu_layers(model, setup.engine_id)
    form = find_weight_format(model, setup.weight_format)
    rates = find_kernel_rates(gpu, form)
    engine, common = fitted_constants or EngineConstants(
        find_engine_speed(setup.engine_id), load_shared_engine_constants()
    )
    setup = engine.use_whole_layer_split_if_required(setup)
    limit = engine.bandwidth_limit_on(gpu)
    if limit < math.inf:
        rates = dataclasses.replace(
            rates,
            matmul=min(rates.matmul, engine.compute_limit),
            matmul_16bit=min(rates.matmul_16bit, engine.compute_limit),
            bandwidth=min(rates.bandwidth, limit),
            # llama.cpp multiplies packed weights as they are: unpacking them does not slow it
            # down. With the rate of unpacking, Q4_K_M comes out a third too slow (decode_tpot).
            unpacking_bandwidth=min(rates.bandwidth, limit),
            cache_bandwidth=min(rates.cache_bandwidth, limit),
        )
    unpacks_weights = does_gpu_unpack_weights(gpu, form)
    bandwidth = rates.unpacking_bandwidth if unpacks_weights else rates.bandwidth
    unevenness, stages = 1.0, setup.pipeline_stages
    if not setup.stages_take_turns:
        unevenness = math.ceil(model.layers / stages) * stages / model.layers
    costs = tuple(
        _precompute_layer_costs(
            layer, number * unevenness, model.hidden, setup, form, rates, engine, bandwidth
        )
        for layer, number in model.layer_counts
    )
    launches = sum(cost.layer_count * cost.launches for cost in costs)
    return PlacedModel(
        model=model,
        gpu=gpu,
        fabric=fabric,
        setup=setup,
        weight_format=form,
        kernel_rates=rates,
        engine=engine,
        shared_constants=common,
        unpacks_weights=unpacks_weights,
        cache_element_bytes=CACHE_BITS[setup.cache_format] / 8,
        layer_costs=costs,
        prompt_launch_seconds=launches * engine.launch_seconds_per_eager_kernel * (gpu.host or 1.0),
    )


def _precompute_layer_costs(
    layer: Layer,
    layer_count: float,
    hidden: int,
    setup: ServingSetup,
    form: WeightFormat,
    rates: KernelRates,
    engine: EngineSpeed,
    bandwidth: float,
) -> LayerCosts:
    matrix_costs, weights_per_routed_expert, bytes_per_routed_expert = [], 0.0, 0.0
    for matrix in layer.matrices:
        weights = matrix.input_width * matrix.output_width
        size = weights * mean_matrix_bits(form, matrix) / 8
        if matrix.part == "experts":
            weights_per_routed_expert += weights / setup.gpus_per_expert
            bytes_per_routed_expert += size / setup.gpus_per_expert
            continue
        split = 1 if matrix.tensor_parallel_split == "whole" else setup.tensor_parallel
        if matrix.tensor_parallel_split == "heads":
            split = min(setup.tensor_parallel, max(1, layer.mixer.kv_heads))
        rate = rates.matmul if is_mostly_in_format(form, matrix) else rates.matmul_16bit
        matrix_costs.append(MatrixCost(2 * weights / split / rate, size / split / bandwidth))
    launched = count_launched_matmuls(layer)
    kernels = launched + _SMALL_KERNELS
    kernels += _SELECTION_KERNELS if layer.mixer.indexer_selected_tokens else 0
    gap_seconds = (
        kernels * engine.launch_seconds_per_kernel + launched * rates.group_scaling_seconds
    )
    return LayerCosts(
        layer=layer,
        layer_count=layer_count,
        matrix_costs=tuple(matrix_costs),
        kernel_gap_seconds=gap_seconds,
        launches=kernels + (_ROUTING_KERNELS if weights_per_routed_expert else 0),
        moved_bytes_per_row_outside_matmuls=2
        * (10 * hidden + 4 * layer.mlp.width / setup.tensor_parallel),
        weights_per_routed_expert=weights_per_routed_expert,
        bytes_per_routed_expert=bytes_per_routed_expert,
    )


@dataclasses.dataclass(slots=True)
class _StepTimeSums:
    reading: float = 0.0
    computing: float = 0.0
    products: float = 0.0
    attention: float = 0.0
    communication: float = 0.0
    launch: float = 0.0


def engine_step_time(placed: PlacedModel, batch: StepBatch) -> InferenceStepTime:
    """Time of one engine step [s], part by part.

    Per layer: products at (c³ + m³)^⅓ of computing and reading weights; attention over the
    cache and over the prompt; two all-reduces; launches. Then the output head and the host.
    From pope-2022; constants of data/engines.toml.

    >>> from app.estimator.models.lookup import find_model
    >>> from app.estimator.hardware.catalog import find_accelerator
    >>> from app.estimator.hardware.collectives import build_gpu_interconnect
    >>> a100 = find_accelerator("a100-sxm4-80")
    >>> placed = place_model(find_model("llama-2-7b"), a100, build_gpu_interconnect(a100),
    ...     ServingSetup(engine_id="compiled"))
    >>> step = engine_step_time(placed, StepBatch(sequences=1, context=200, output_head_rows=1))
    >>> 0.008 < step.total < 0.011
    True
    """
    sums = _StepTimeSums()
    padded = padded_rows(placed, batch.rows)
    for work in placed.layer_costs:
        number = work.layer_count
        for seconds_per_row, reading in work.matrix_costs:
            computing = padded * seconds_per_row
            sums.computing += number * computing
            sums.reading += number * reading
            sums.products += number * (computing**3 + reading**3) ** _CUBE_ROOT_EXPONENT
        sums.launch += number * work.kernel_gap_seconds
        sums.launch += (
            number
            * batch.rows
            * work.moved_bytes_per_row_outside_matmuls
            / placed.kernel_rates.bandwidth
        )
        if work.weights_per_routed_expert:
            _add_routed_experts_time(sums, placed, work, batch)
        sums.attention += number * _attention_time(placed, work.layer, batch)
        sums.communication += number * _layer_collective_time(placed, work.layer, batch)
    _add_output_head_time(sums, placed, batch)
    if placed.setup.pipeline_stages > 1:
        sums.communication += pipeline_handover_time(placed, batch.rows)
    share = sums.reading / max(1e-30, sums.reading + sums.computing)
    return InferenceStepTime(
        weights=sums.products * share,
        compute=sums.products * (1 - share),
        attention=sums.attention,
        communication=sums.communication,
        launch=sums.launch,
        host=placed.engine.host_seconds_per_step
        + placed.engine.host_seconds_per_sequence * batch.output_head_rows,
    )


def padded_rows(placed: PlacedModel, rows: float) -> float:
    """Return the rows that a product computes: whole tiles, unless it takes vectors."""
    if rows <= placed.engine.max_unpadded_rows:
        return rows
    return math.ceil(rows / TILE_ROWS) * TILE_ROWS


class ChosenExpertsPerGpu(NamedTuple):
    """Experts of a layer that tokens choose on one GPU: in the mean, and where it is most."""

    mean: float
    max: float


def _chosen_experts_per_gpu(placed: PlacedModel, layer: Layer, rows: float) -> ChosenExpertsPerGpu:
    serving, mlp = placed.setup, layer.mlp
    tokens, skew = rows * serving.attention_replicas, placed.shared_constants.routing_skew
    hit = (
        expected_distinct_experts(mlp.experts, mlp.experts_per_token, tokens, skew)
        / serving.expert_parallel
    )
    most = expected_experts_on_fullest_gpu(
        hit, mlp.experts / serving.expert_parallel, serving.expert_parallel
    )
    return ChosenExpertsPerGpu(hit, most)


def bytes_of_unchosen_experts(placed: PlacedModel, rows: float) -> float:
    """Return the bytes of experts on one GPU that no token of a step with `rows` chooses [B]."""
    return sum(
        number
        * (
            work.layer.mlp.experts
            * share_of_whole_experts(placed.model, placed.setup.expert_parallel)
            - _chosen_experts_per_gpu(placed, work.layer, rows).max
        )
        * work.bytes_per_routed_expert
        for work, (_, number) in zip(placed.layer_costs, placed.model.layer_counts, strict=True)
        if work.weights_per_routed_expert
    )


def _add_routed_experts_time(
    sums: _StepTimeSums, placed: PlacedModel, work: LayerCosts, batch: StepBatch
) -> None:
    """Add routed experts: chosen experts are read once."""
    serving, mlp = placed.setup, work.layer.mlp
    common = placed.shared_constants
    mean_hit, hit = _chosen_experts_per_gpu(placed, work.layer, batch.rows)
    pairs = (
        batch.rows * serving.attention_replicas * mlp.experts_per_token / serving.expert_parallel
    )
    pairs *= hit / mean_hit
    if batch.rows > placed.engine.max_unpadded_rows:
        pairs += hit * common.padding_rows_per_expert
    rate = math.sqrt(placed.kernel_rates.matmul * placed.kernel_rates.matmul_16bit)
    rate *= placed.engine.grouped_matmul_factor
    if serving.dispatches_tokens:  # Few experts on each GPU have many rows, as one product has.
        rate = placed.kernel_rates.matmul
    computing = 2 * pairs * work.weights_per_routed_expert / rate
    bandwidth = (
        placed.kernel_rates.unpacking_bandwidth
        if placed.unpacks_weights
        else placed.kernel_rates.bandwidth
    )
    reading = hit * work.bytes_per_routed_expert / bandwidth
    sums.computing += work.layer_count * computing
    sums.reading += work.layer_count * reading
    sums.products += work.layer_count * (computing**2 + reading**2) ** 0.5
    sums.launch += work.layer_count * common.extra_seconds_per_routed_layer


def cache_and_state_bytes_moved_per_gpu(
    placed: PlacedModel, sequences: float, context: float
) -> float:
    """Return the bytes of cache and states that a decode step moves on one GPU [B]."""
    return sequences * sum(
        number
        * (
            _cache_bytes_read_per_sequence(placed, layer, context)
            + _state_bytes_moved_per_sequence(placed, layer)
        )
        for layer, number in placed.model.layer_counts
    )


def _cache_bytes_read_per_sequence(placed: PlacedModel, layer: Layer, context: float) -> float:
    """Return the bytes of one layer's cache that a token attends to, or scores, on one GPU [B]."""
    mixer, cached = layer.mixer, _count_tokens_in_window(layer, context)
    near = mixer.extra_cache_elements_per_near_token * min(context, mixer.near_tokens)
    part = cache_share_per_gpu(mixer.kv_heads, placed.setup.tensor_parallel)
    seen = _count_attended_tokens(layer, context)
    chosen = (seen * mixer.cache_elements_per_token + near) * placed.cache_element_bytes
    return chosen * part + cached * mixer.indexer_cache_bytes_per_token


def _count_tokens_in_window(layer: Layer, context: float) -> float:
    window = layer.mixer.window_tokens
    return min(context, window) if window else context


def _count_attended_tokens(layer: Layer, context: float) -> float:
    mixer, cached = layer.mixer, _count_tokens_in_window(layer, context)
    if not mixer.indexer_selected_tokens:
        return cached
    return min(cached, mixer.indexer_selected_tokens * mixer.compression_rate)


def _state_bytes_moved_per_sequence(placed: PlacedModel, layer: Layer) -> float:
    """Return the bytes of one layer's recurrent state that a step reads and writes [B]."""
    return 8.0 * layer.mixer.state_elements / placed.setup.tensor_parallel


def _attention_time(placed: PlacedModel, layer: Layer, batch: StepBatch) -> float:
    """Time of one layer's attention over the cache and over the prompt [s]."""
    mixer, tensor, rates = layer.mixer, placed.setup.tensor_parallel, placed.kernel_rates
    total = 0.0
    if batch.sequences and (
        mixer.cache_elements_per_token or mixer.extra_cache_elements_per_near_token
    ):
        read = batch.sequences * _cache_bytes_read_per_sequence(placed, layer, batch.context)
        seen = _count_attended_tokens(layer, batch.context)
        total += placed.shared_constants.extra_seconds_per_attention_kernel + max(
            read / rates.cache_bandwidth,
            _latent_attention_time(placed, layer, batch.sequences * seen),
        )
    if mixer.state_elements:
        moved = batch.sequences * _state_bytes_moved_per_sequence(placed, layer)
        total += (
            placed.shared_constants.extra_seconds_per_attention_kernel
            + moved / rates.cache_bandwidth
        )
    if batch.prompt_tokens:
        reached = 2 * batch.prompt_end_position - batch.prompt_tokens
        total += (
            mixer_forward_flops_outside_matrices(mixer, reached)
            * batch.prompt_tokens
            / tensor
            / rates.attention
        )
    return total


def _latent_attention_time(placed: PlacedModel, layer: Layer, attended_tokens: float) -> float:
    """Time of latent attention, which multiplies with the latent vector for every head [s]."""
    mixer = layer.mixer
    if mixer.kind != "latent":
        return 0.0
    width = 2 * mixer.latent_width + mixer.rope_dim
    heads = mixer.heads / placed.setup.tensor_parallel
    return 2 * heads * width * attended_tokens / (placed.kernel_rates.attention)


def _layer_collective_time(placed: PlacedModel, layer: Layer, batch: StepBatch) -> float:
    """Time of the collectives of one layer [s]."""
    serving = placed.setup
    message = 2 * batch.rows * placed.model.hidden
    latency = placed.kernel_rates.collective_base_latency
    total = 0.0
    if serving.tensor_parallel > 1:
        ranks, fabric = serving.tensor_parallel, placed.fabric
        if placed.engine.uses_library_all_reduce:
            one = collective_time("all_reduce", ranks, message, fabric)
        else:
            one = inference_engine_collective_time("all_reduce", ranks, message, fabric, latency)
        total += one * (1 if serving.attention_replicas > 1 and layer.mlp.is_routed else 2)
    if serving.attention_replicas > 1 and layer.mlp.is_routed:
        ranks = serving.expert_parallel * serving.gpus_per_expert
        if serving.dispatches_tokens:
            return total + _dispatch_and_combine_time(placed, layer, batch.rows, ranks)
        # Engines gather all tokens everywhere, packed if 4-bit, and scatter the sums.
        sent = message * ranks
        packed = (
            placed.weight_format.bits_with_scales / 16
            if placed.weight_format.math == "nvfp4"
            else 1.0
        )
        total += inference_engine_collective_time(
            "alltoall", ranks, sent * packed, placed.fabric, latency
        )
        total += inference_engine_collective_time("alltoall", ranks, sent, placed.fabric, latency)
    return total


# Bytes of an element on the way to its experts, in FP8, and back, in BF16, as in DeepEP.
_DISPATCHED_ELEMENT_BYTES, _COMBINED_ELEMENT_BYTES = 1, 2


def _dispatch_and_combine_time(placed: PlacedModel, layer: Layer, rows: float, ranks: int) -> float:
    """Time to send tokens to the GPUs of their experts, and the results back [s].

    The bytes are those of `expert_parallel_layer_bytes_per_rank`. Nothing else runs at the same time.
    """
    copies = rows * layer.mlp.experts_per_token * placed.model.hidden
    return sum(
        inference_engine_collective_time(
            "alltoall",
            ranks,
            copies * width,
            placed.fabric,
            placed.kernel_rates.collective_base_latency,
        )
        for width in (_DISPATCHED_ELEMENT_BYTES, _COMBINED_ELEMENT_BYTES)
    )


def pipeline_handover_time(placed: PlacedModel, rows: float) -> float:
    """Time to hand `rows` tokens from stage to stage [s].

    Each GPU sends its part of two tensors, the hidden states and the residual, as vLLM
    does (GroupCoordinator.send_tensor_dict in vllm/distributed/parallel_state.py).
    """
    serving, fabric = placed.setup, placed.fabric
    message = 2 * 2 * rows * placed.model.hidden / serving.tensor_parallel
    domains = math.ceil(
        serving.pipeline_stages / max(1, fabric.gpus_per_domain // serving.gpus_per_stage)
    )
    bridges = math.ceil(
        serving.pipeline_stages / max(1, fabric.bridged_gpus // serving.gpus_per_stage)
    )
    bridges = max(domains, bridges)
    inside = (bridges - domains) * point_to_point_send_time(message, fabric)
    inside += (serving.pipeline_stages - bridges) * point_to_point_send_time(
        message, fabric, uses_bridge=True
    )
    if domains == 1:
        return inside
    return inside + (domains - 1) * point_to_point_send_time(message, fabric, crosses_domains=True)


def _add_output_head_time(sums: _StepTimeSums, placed: PlacedModel, batch: StepBatch) -> None:
    weights = placed.model.vocabulary * placed.model.hidden / placed.setup.tensor_parallel
    rows = padded_rows(placed, max(1.0, batch.output_head_rows))
    computing = 2 * rows * weights / placed.kernel_rates.matmul_16bit
    reading = weights * placed.weight_format.rest / 8 / placed.kernel_rates.bandwidth
    sums.computing += computing
    sums.reading += reading
    sums.products += (computing**3 + reading**3) ** _CUBE_ROOT_EXPONENT


def decode_step_time(placed: PlacedModel, sequences: float, context: float) -> InferenceStepTime:
    """Time for one token of each of `sequences` at a mean context [s]."""
    return engine_step_time(placed, StepBatch(0.0, 0.0, sequences, context, sequences))


def prefill_step_time(placed: PlacedModel, prompt_tokens: float) -> InferenceStepTime:
    """Time to process a prompt of `prompt_tokens` tokens in one step [s]."""
    step = engine_step_time(placed, StepBatch(prompt_tokens, prompt_tokens, 0.0, 0.0, 1.0))
    slower = placed.engine.prefill_time_factor
    return dataclasses.replace(step, compute=step.compute * slower)


def tokens_per_step(acceptance: float, draft_tokens: int) -> float:
    """Expected tokens from one verification by the large model [token].

    (1 − α^{γ+1}) / (1 − α), and γ + 1 if everything is accepted, for the probability α that a
    proposed token is. From leviathan-2023, equation 1.

    >>> round(tokens_per_step(0.8, 4), 4)
    3.3616
    """
    if not 0 <= acceptance <= 1:
        raise ValueError(f"the acceptance must lie between 0 and 1, not {acceptance}")
    if draft_tokens < 0:
        raise ValueError(f"draft tokens cannot be negative: {draft_tokens}")
    if acceptance == 1:
        return draft_tokens + 1.0
    return (1 - acceptance ** (draft_tokens + 1)) / (1 - acceptance)


class AcceptanceRate(NamedTuple):
    """The assumed probability that a draft token is accepted, and its likely range [1]."""

    assumed: float
    low: float
    high: float


def _acceptance_around(assumed: float) -> AcceptanceRate:
    """Return an acceptance rate with its range.

    Heads and texts differ by that much: more drafts are accepted in code and math than in prose.

    >>> [round(value, 2) for value in _acceptance_around(0.8)]
    [0.8, 0.6, 0.9]
    """
    return AcceptanceRate(assumed, max(0.0, assumed - 0.2), min(1.0, assumed + 0.1))


# Public EAGLE-3 heads of Llama: 2.77 and 2.88 tokens a step of 7 drafts, with the heads of yuhuili
# for Llama 3.1 8B and of Red Hat for Llama 3.3 70B:
# huggingface.co/nebius/EAGLE3-Llama-3.3-70B-Instruct.
_HEAD_ACCEPTANCE = _acceptance_around(0.65)
# The first token that DeepSeek-V3's own module proposes, over various topics: section 5.4.3 of the
# DeepSeek-V3 Technical Report. For each token after it, 65% keeps 2.81 tokens a step of 3 drafts
# and 3.4 of 7. SGLang's test of V3-0324 on 8 H200 requires more than 2.8 of 3 on GSM8K and on one
# prompt (test_deepseek_v3_mtp.py); of 7, 3.2 are published for MT-bench, HumanEval and GSM8K
# (huggingface.co/nebius/MTP-DeepSeek-V3-0324).
_MODULE_ACCEPTANCE = AcceptanceRate(0.875, 0.85, 0.90)
_LATER_ACCEPTANCE = _acceptance_around(0.65)


def typed_or_usual_acceptance(
    typed_rate: float | None, model: Architecture, draft_tokens: int
) -> AcceptanceRate:
    """Return the typed acceptance rate, or the usual one of an MTP module or an EAGLE head."""
    if typed_rate is not None:
        return _acceptance_around(typed_rate)
    if not model.prediction_module_count or not draft_tokens:
        return _HEAD_ACCEPTANCE
    pairs = zip(_MODULE_ACCEPTANCE, _LATER_ACCEPTANCE, strict=True)
    return AcceptanceRate(
        *(_equivalent_single_acceptance(first, later, draft_tokens) for first, later in pairs)
    )


def describe_acceptance(
    acceptance: AcceptanceRate, draft_tokens: int, seconds_per_token_at_bounds: Sequence[float]
) -> str:
    """Return the acceptance length that is assumed, and the pace at each end of its range [s].

    An acceptance length counts the token that the large model adds, as in the logs of vLLM.
    """
    length = tokens_per_step(acceptance.assumed, draft_tokens)
    kept = format_value((length - 1) / draft_tokens, "%")
    paces = " and ".join(
        f"one every {format_value(pace, 's')} at "
        f"{format_number(round(tokens_per_step(bound, draft_tokens), 2))}"
        for bound, pace in zip(
            (acceptance.low, acceptance.high), seconds_per_token_at_bounds, strict=True
        )
    )
    return (
        f" That assumes an acceptance length of {format_number(round(length, 2))} tokens a step, "
        f"{kept} of the drafts; it is {paces}."
    )


def _equivalent_single_acceptance(first: float, later: float, draft_tokens: int) -> float:
    """Return the one rate for all drafts that accepts as many tokens as these two rates do [1].

    >>> round(_equivalent_single_acceptance(0.875, 0.65, 1), 4), round(_equivalent_single_acceptance(0.875, 0.65, 3), 4)
    (0.875, 0.7686)
    """
    kept = 1 + first * tokens_per_step(later, draft_tokens - 1)
    low, high = sorted((first, later))
    for _ in range(50):
        middle = (low + high) / 2
        if tokens_per_step(middle, draft_tokens) < kept:
            low = middle
        else:
            high = middle
    return high


@dataclasses.dataclass(frozen=True, slots=True)
class SpeculativeDecoding:
    """Drafting: tokens proposed per step, the share of them that is kept, and what one costs.

    `relative_draft_step_time` is the time of a draft step as a share of the model's own [1].
    """

    draft_tokens: int = 0
    acceptance: float = 0.65
    relative_draft_step_time: float = 0.05

    @property
    def tokens_per_step(self) -> float:
        """Return the tokens of a sequence that a step yields on average [token]."""
        return tokens_per_step(self.acceptance, self.draft_tokens)


def draft_verification_step_time(
    placed: PlacedModel, draft: SpeculativeDecoding, sequences: float, context: float
) -> InferenceStepTime:
    """Time of the step that checks the drafts of all sequences, without the drafting.

    Without drafts it is a decode step.
    """
    each = draft.draft_tokens + 1.0
    return decode_step_time(placed, sequences * each, context / each)


def draft_and_verify_step_time(
    placed: PlacedModel,
    draft: SpeculativeDecoding,
    sequences: float,
    context: float,
    plain_step_seconds: float,
) -> float:
    """Time of one step that verifies drafts, with the drafting; a plain step has none [s]."""
    if not draft.draft_tokens:
        return plain_step_seconds
    wide = draft_verification_step_time(placed, draft, sequences, context)
    return (
        max(plain_step_seconds, wide.total)
        + draft.draft_tokens * draft.relative_draft_step_time * plain_step_seconds
    )


# Fewer measurements of a setup than this say nothing about its range.
_MIN_MEASUREMENTS = 4
_FAMILY_LABELS = {
    "dense": "dense models",
    "routed": "mixtures of experts",
    "latent": "latent attention",
    "hybrid": "hybrids of attention and recurrent layers",
}
_GPU_LABELS = {"one": "one GPU", "several": "several GPUs", "nodes": "several servers"}


@dataclasses.dataclass(frozen=True, slots=True)
class MeasurementCoverage:
    """Published measurements of setups like this one: how many, and of what."""

    count: int
    setup_description: str

    @property
    def is_enough(self) -> bool:
        return self.count >= _MIN_MEASUREMENTS

    @property
    def note(self) -> str:
        """Return a sentence on the measurements behind the ranges."""
        if self.is_enough:
            return f"{self.count} measurements of {self.setup_description} are behind these ranges."
        few = f"Only {format_count(self.count, 'measurement')}" if self.count else "No measurements"
        verb = "is" if self.count == 1 else "are"
        return f"{few} of {self.setup_description} {verb} behind these ranges, so they are wider."

    def error_interval_name(self, interval_name: str) -> str:
        """Return the error interval of a time: wider if nothing like it was measured."""
        return interval_name if self.is_enough else f"{interval_name}-unmeasured"


def model_kind_for_engine(model: Architecture) -> str:
    """Return what kind of model this is for an engine.

    >>> from app.estimator.models.lookup import find_model
    >>> [model_kind_for_engine(find_model(m)) for m in ("llama-3-8b", "mixtral-8x7b", "deepseek-v3")]
    ['dense', 'routed', 'latent']
    """
    mixers = [layer.mixer for layer, _ in model.layer_counts]
    if any(mixer.state_elements for mixer in mixers):
        return "hybrid"
    if any(mixer.kind == "latent" for mixer in mixers):
        return "latent"
    return "routed" if model.is_routed else "dense"


class SetupClass(NamedTuple):
    """Kernels of the GPU, engine, family of the model, and spread over GPUs."""

    kernel_rates_table_id: str
    engine: str
    model_kind: str
    gpu_spread: str


def classify_setup(placed: PlacedModel) -> SetupClass:
    gpus = placed.setup.gpus
    spread = "one" if gpus == 1 else "several"
    if gpus > placed.fabric.gpus_per_domain:
        spread = "nodes"
    kind = model_kind_for_engine(placed.model)
    return SetupClass(placed.kernel_rates.rates_table_id, placed.engine.id, kind, spread)


def find_measurement_coverage(placed: PlacedModel) -> MeasurementCoverage:
    """Return the measurements of setups like this one.

    >>> from app.estimator.models.lookup import find_model
    >>> from app.estimator.hardware.catalog import find_accelerator
    >>> from app.estimator.hardware.collectives import build_gpu_interconnect
    >>> def measured(gpu: str) -> MeasurementCoverage:
    ...     card, setup = find_accelerator(gpu), ServingSetup(engine_id="vllm")
    ...     return find_measurement_coverage(
    ...         place_model(find_model("llama-3-8b"), card, build_gpu_interconnect(card), setup))
    >>> measured("H100").is_enough, measured("L40S").note
    (True, 'No measurements of vLLM with dense models on one GPU of Ada Lovelace are behind these ranges, so they are wider.')
    """
    key = classify_setup(placed)
    counts = data_files.load_toml("measurements.toml")
    setup = (
        f"{placed.engine.label} with {_FAMILY_LABELS[key.model_kind]} on {_GPU_LABELS[key.gpu_spread]} "
        f"of {placed.gpu.architecture}"
    )
    if placed.setup.pipeline_stages > 1:
        whole_layers = placed.setup.stages_take_turns
        how = "with whole layers on each" if whole_layers else "in pipeline stages"
        return MeasurementCoverage(0, f"{setup} {how}")
    return MeasurementCoverage(counts.get(" ".join(key), 0), setup)
