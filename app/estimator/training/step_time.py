"""Time of one optimizer step, part by part; pipeline bubble; the usual layout of a run."""

import dataclasses
import math
from typing import NamedTuple

from app.estimator.hardware.catalog import Accelerator
from app.estimator.hardware.collectives import Interconnect, build_gpu_interconnect, collective_time
from app.estimator.hardware.throughput import SustainedRates, compute_sustained_rates, matmul_time
from app.estimator.models.architecture import Architecture
from app.estimator.models.layers import Layer, TokenMixer, WeightMatrix
from app.estimator.training.flops import mixer_forward_flops_outside_matrices
from app.estimator.training.training_plan import (
    Recompute,
    TrainingPlan,
    count_layers_of_fullest_stage,
    count_parameters_per_gpu_before_zero,
    fullest_stage_memory,
    has_free_layer_places_for_head,
)

# Fitted to a third of the published training rows (data/training_rates.toml). Each factor
# multiplies the time of the quantity in its comment.
_TRAFFIC_FACTOR = 0.656  # Counted activation traffic, with fused kernels.
# The same if every operation is a separate kernel, relative to fused.
_UNFUSED_TRAFFIC_FACTOR = 2.58
_CAST_TRAFFIC_FACTOR = 0.78  # Counted traffic of conversions to 8 and 4 bit.
_EXPERT_CAST = 0.84  # The same for routed experts.
_KERNEL_GAP_SECONDS = 2e-5  # Seconds between kernels of a layer, per kernel.
_EXPERT_LAUNCH = 3.7e-3  # Seconds per routed layer and micro-batch without graphs.
_GRAPH_GAP_SHARE = 0.1  # Share of that with graphs.
_GROUPED_PRODUCT_RATE = 0.473  # Rate in products of many experts, relative to one product.
_GROUPED_PRODUCT_RATE_LOW_PRECISION = 0.529  # The same in 8 and 4 bit.
_TENSOR_TRAFFIC = 1.6  # A collective, relative to its time alone: concurrent products slow down.
_EXPERT_TRAFFIC = 0.2  # Exposed all-to-all.
_DATA_TRAFFIC = 1.12  # Gradient and weight traffic.
_GATHER_TRAFFIC = 0.45  # Traffic of sharded weights, which slows concurrent products.

_BACKWARD_ATTENTION = 2.5  # Relative to forward: scores are recomputed.
# Bytes per score if scores are written, by counting what each kernel reads and writes:
# softmax 2 + 2 and dropout 2 + 2 with a mask of 1, then their gradients.
_SCORES_FORWARD, _SCORES_BACKWARD = 9.0, 11.0
_OPTIMIZER_BYTES = 30.0  # Bytes that Adam reads and writes per parameter in mixed precision.
_NORM_PASSES = 22  # Passes over h per layer, forward and backward: norms and residuals.
# The same for each of several residual streams, around a mixer or an MLP.
_RESIDUAL_STREAM_PASSES = 12
_GATED_MLP_PASSES, _PLAIN_MLP_PASSES = 8, 5  # Passes over the width of the MLP.
_ROPE_PASSES = 4  # Passes over queries and keys.
_EXPERT_ROUTING_PASSES = 8  # Passes over h per expert of a token: sorting and weighting.
# A recurrent mixer, forward: what is projected in is read and written by the convolution and
# read by the scan; what comes out is written, gated and normalized; the state of each chunk
# is written, passed on and read in FP32. Backward it is all done again, and its gradients.
_SCAN_IN, _SCAN_OUT, _SCAN_STATE, _SCAN_CHUNK_TOKENS = 3, 4, 8, 128
_SCAN_BACKWARD = 2.5
# Rates of a scan's products, and of attention to chosen tokens, relative to attention
# (assumed: Triton kernels, and the ratio that FlashMLA states for its sparse kernel).
_SCAN_RATE, _CHOSEN_RATE = 0.35, 0.6
_HEAD_FUSED, _HEAD_PLAIN = 14.0, 24.0  # Bytes per logit.


class OptimizerStepTime(NamedTuple):
    """Seconds of one optimizer step by category; they sum to `total`."""

    matmul: float
    attention: float
    head: float
    traffic: float
    launch: float
    tensor: float
    expert: float
    context: float
    gather: float
    bubble: float
    data: float
    optimizer: float

    @property
    def total(self) -> float:
        return sum(self)

    @property
    def exposed_communication(self) -> float:
        return self.tensor + self.expert + self.context + self.gather + self.data


@dataclasses.dataclass(slots=True)
class AllLayersMicroBatchTime:
    """Seconds per micro-batch, over all layers of the model."""

    matmul: float = 0.0
    attention: float = 0.0
    memory_traffic: float = 0.0
    launch: float = 0.0
    tensor_parallel: float = 0.0
    expert_parallel: float = 0.0
    context_parallel: float = 0.0

    @property
    def total_without_weight_gather(self) -> float:
        """Return the total without gathering of weights [s]."""
        work = self.matmul + self.attention + self.memory_traffic + self.launch
        return work + self.tensor_parallel + self.expert_parallel + self.context_parallel


def optimizer_step_time(
    model: Architecture, gpu: Accelerator, fabric: Interconnect, plan: TrainingPlan
) -> OptimizerStepTime:
    """Time of one optimizer step [s], part by part.

    Products, attention and memory traffic of every layer on a stage; the traffic
    of tensor, expert, context and data parallelism that is exposed; the bubble
    (p−1)/v of a stage; the optimizer. T = (m + (p−1)/v)·t_stage + t_data + t_opt.

    Raises ValueError if the accelerator lacks the format. From megatron-2021; constants fitted
    on published runs.

    >>> from app.estimator.models.lookup import find_model
    >>> from app.estimator.hardware.catalog import find_accelerator
    >>> from app.estimator.hardware.collectives import build_gpu_interconnect
    >>> h100 = find_accelerator("H100")
    >>> plan = TrainingPlan(tensor=4, pipeline=8, data=2, chunks_per_stage=5, sequence=8192,
    ...     micro_batches=128, number_format="fp8")
    >>> step = optimizer_step_time(find_model("llama-3-70b"), h100, build_gpu_interconnect(h100), plan)
    >>> 1400 < plan.tokens_per_step / step.total / plan.gpus < 1900
    True
    """
    older = plan.software.has_previous_attention_kernels
    engine = compute_sustained_rates(gpu, plan.number_format, older_kernels=older)
    all_layers = compute_all_layers_micro_batch_time(model, engine, fabric, plan)
    return compute_step_time_from_layers(model, engine, fabric, plan, all_layers)


def compute_step_time_from_layers(
    model: Architecture,
    rates: SustainedRates,
    fabric: Interconnect,
    plan: TrainingPlan,
    all_layers: AllLayersMicroBatchTime,
) -> OptimizerStepTime:
    """Return the step of a plan whose layers take `all_layers` time; see `optimizer_step_time`."""
    micro_batches, stages = plan.micro_batches, plan.pipeline
    # Share of the layers on the fullest stage, and the time of a micro-batch in them.
    stage = count_layers_of_fullest_stage(model, stages, plan.chunks_per_stage) / model.layers
    head = _output_head_time(model, rates, plan)
    gather = _weight_gather_time(
        model, fabric, plan, all_layers.total_without_weight_gather * stage
    )
    stage_seconds = all_layers.total_without_weight_gather * stage + gather
    parameters = count_parameters_per_gpu_before_zero(model, plan)
    if plan.trained_weights.are_adapters:
        parameters = plan.trained_weights.adapter_parameters / (plan.tensor * stages)
    shards = plan.data * plan.context if plan.zero else 1
    return OptimizerStepTime(
        matmul=micro_batches * all_layers.matmul * stage,
        attention=micro_batches * all_layers.attention * stage,
        traffic=micro_batches * all_layers.memory_traffic * stage,
        launch=micro_batches * all_layers.launch * stage,
        head=micro_batches
        * head
        * (
            1.0 / stages
            if has_free_layer_places_for_head(model, stages, plan.chunks_per_stage)
            else 1.0
        ),
        tensor=micro_batches * all_layers.tensor_parallel * stage,
        expert=micro_batches * all_layers.expert_parallel * stage,
        context=micro_batches * all_layers.context_parallel * stage,
        gather=micro_batches * gather,
        bubble=(stages - 1) / plan.chunks_per_stage * (stage_seconds + head / stages),
        data=_data_parallel_time(parameters, fabric, plan, stage_seconds),
        optimizer=parameters / shards * _OPTIMIZER_BYTES / rates.bandwidth,
    )


def compute_all_layers_micro_batch_time(
    model: Architecture, rates: SustainedRates, fabric: Interconnect, plan: TrainingPlan
) -> AllLayersMicroBatchTime:
    """Return the times of one micro-batch with all layers on one stage.

    Layouts that differ only in stages, chunks, replicas and ZeRO stage have the same result.
    """
    sums = AllLayersMicroBatchTime()
    tokens = plan.micro_batch * plan.sequence / plan.context
    message = tokens * model.hidden * 2
    tensor = _tensor_parallel_time(message, fabric, plan)
    passes = {"full": 4.0, "operators": 3.5}.get(plan.recompute, 3.0)
    if plan.trained_weights.are_adapters:  # Frozen weights get no gradients.
        passes -= 1.0
    for layer, number in model.layer_counts:
        forward = sum(_forward_product_time(m, layer, tokens, rates, plan) for m in layer.matrices)
        sums.matmul += number * forward * passes
        sums.attention += number * sum(
            _attention_time(mixer, tokens, rates, plan) for mixer in layer.mixers
        )
        sums.memory_traffic += number * _memory_traffic_time(model, layer, tokens, rates, plan)
        sums.memory_traffic += number * _weight_unpack_time(layer, rates, plan)
        sums.launch += number * _layer_launch_time(layer, plan)
        sums.tensor_parallel += number * tensor
        if plan.expert > 1 and layer.mlp.is_routed:
            sums.expert_parallel += number * _exposed_expert_parallel_time(
                layer, tokens, fabric, plan
            )
        if plan.context > 1:
            sums.context_parallel += number * _context_parallel_time(layer, tokens, fabric, plan)
    return sums


def _forward_product_time(
    matrix: WeightMatrix, layer: Layer, tokens: float, rates: SustainedRates, plan: TrainingPlan
) -> float:
    """Time of the forward product with one matrix of a layer [s]."""
    if matrix.part == "experts":
        return _forward_expert_products_time(matrix, layer, tokens, rates, plan)
    inputs, outputs = float(matrix.input_width), float(matrix.output_width)
    if matrix.tensor_parallel_split == "rows":
        inputs /= plan.tensor
    elif matrix.tensor_parallel_split != "whole":
        outputs /= plan.tensor
    return matmul_time(tokens, inputs, outputs, rates.matmul, rates)


def _forward_expert_products_time(
    matrix: WeightMatrix, layer: Layer, tokens: float, rates: SustainedRates, plan: TrainingPlan
) -> float:
    """Time of the products of the experts on this GPU [s]."""
    experts_per_gpu = layer.mlp.experts / plan.expert
    rows = tokens * layer.mlp.experts_per_token / experts_per_gpu / plan.tensor
    grouped_factor = (
        _GROUPED_PRODUCT_RATE
        if rates.matmul == rates.matmul_16bit
        else _GROUPED_PRODUCT_RATE_LOW_PRECISION
    )
    multiprocessors = rates.multiprocessors / experts_per_gpu
    rates_per_expert = dataclasses.replace(rates, multiprocessors=multiprocessors)
    matmul_rate = rates.matmul * grouped_factor
    inputs, outputs = matrix.input_width, matrix.output_width
    return matmul_time(rows, inputs, outputs, matmul_rate, rates_per_expert) * experts_per_gpu


def _attention_time(
    mixer: TokenMixer, tokens: float, rates: SustainedRates, plan: TrainingPlan
) -> float:
    """Time of scores and their products with values, forward and backward [s]."""
    if not mixer.heads and not mixer.state_elements:
        return 0.0
    if plan.software.writes_attention_scores and mixer.heads:
        return _unfused_attention_time(mixer, tokens, rates, plan)
    rate = rates.attention
    if not mixer.heads:
        rate *= _SCAN_RATE
    elif mixer.indexer_selected_tokens:
        rate *= _CHOSEN_RATE
    forward = (
        mixer_forward_flops_outside_matrices(mixer, plan.sequence) * tokens / plan.tensor / rate
    )
    forward *= 1 + 300 / plan.sequence
    recomputed_passes = 1 if plan.recompute in ("full", "selective") else 0
    return forward * (1 + recomputed_passes + _BACKWARD_ATTENTION)


def _unfused_attention_time(
    mixer: TokenMixer, tokens: float, rates: SustainedRates, plan: TrainingPlan
) -> float:
    """Time of attention that writes its scores to memory, forward and backward [s].

    Every operation is a kernel: two products forward and four backward, none of which
    skips masked scores, and between them softmax and dropout of all scores.
    """
    rows = tokens * mixer.heads / plan.tensor
    recomputed_passes = 1 if plan.recompute in ("full", "selective") else 0
    product = matmul_time(rows, mixer.head_dim, plan.sequence, rates.matmul_16bit, rates)
    bytes_per_score = _SCORES_FORWARD * (1 + recomputed_passes) + _SCORES_BACKWARD
    moved_bytes = rows * plan.sequence * bytes_per_score
    return (2 * (1 + recomputed_passes) + 4) * product + moved_bytes / rates.bandwidth


def _memory_traffic_time(
    model: Architecture, layer: Layer, tokens: float, rates: SustainedRates, plan: TrainingPlan
) -> float:
    """Time of the memory traffic of everything that is not a product [s]."""
    mlp, mixer, tensor = layer.mlp, layer.mixer, plan.tensor
    hidden = model.hidden / tensor if plan.sequence_parallel else model.hidden
    width = float(mlp.width)
    if mlp.is_routed:
        width = mlp.experts_per_token * mlp.width + mlp.shared_width
    width /= tensor
    heads = mixer.heads * mixer.head_dim / tensor
    keys = 2 * mixer.kv_heads * mixer.head_dim / tensor
    passes = (
        _norm_and_residual_passes(layer) * hidden
        + (_GATED_MLP_PASSES if mlp.gated else _PLAIN_MLP_PASSES) * width
    )
    rope_passes = 2 if mixer.kind == "compressed" else 1  # Outputs are rotated back as well.
    passes += _ROPE_PASSES * (heads * rope_passes + keys)
    passes += sum(_recurrent_memory_passes(each) for each in layer.mixers) / tensor
    if mlp.is_routed:
        passes += _EXPERT_ROUTING_PASSES * mlp.experts_per_token * mlp.expert_input_width / tensor
    if plan.number_format not in ("bf16", "fp16"):
        passes += _format_conversion_passes(layer, hidden, width, heads)
    recompute_factor = {"full": 1.35, "operators": 1.15}.get(plan.recompute, 1.0)
    traffic_factor = _TRAFFIC_FACTOR * (
        1.0 if plan.software.fuses_norms_and_activations else _UNFUSED_TRAFFIC_FACTOR
    )
    return 2 * passes * tokens * recompute_factor * traffic_factor / rates.bandwidth


def _recurrent_memory_passes(mixer: TokenMixer) -> float:
    """Return the passes of a recurrent mixer, forward and backward; 0 of attention."""
    if not mixer.state_elements:
        return 0.0
    inward = sum(m.output_width for m in mixer.matrices if m.tensor_parallel_split == "columns")
    outward = sum(m.input_width for m in mixer.matrices if m.tensor_parallel_split == "rows")
    forward = (
        _SCAN_IN * inward
        + _SCAN_OUT * outward
        + _SCAN_STATE * mixer.state_elements / _SCAN_CHUNK_TOKENS
    )
    return forward * (1 + _SCAN_BACKWARD)


def _norm_and_residual_passes(layer: Layer) -> float:
    """Return the passes over h of norms and residuals, forward and backward.

    A layer of a hybrid may have only one of mixer and MLP. Several residual streams are
    normalized, mixed into one, and written back around each of them.
    """
    parts = bool(layer.mixer.matrices) + bool(layer.mlp.matrices)
    return parts * (_NORM_PASSES / 2 + _RESIDUAL_STREAM_PASSES * layer.mixer.residual_streams)


def _weight_unpack_time(layer: Layer, rates: SustainedRates, plan: TrainingPlan) -> float:
    """Time to write the weights of a 4-bit layer in 16 bit before each of its products [s]."""
    frozen_bytes = plan.trained_weights.frozen_bytes_per_parameter
    if not plan.trained_weights.are_adapters or frozen_bytes >= _BF16_WEIGHT_BYTES:
        return 0.0
    passes = 3 if plan.recompute == "full" else 2
    moved_bytes = layer.parameters / plan.tensor * (frozen_bytes + _BF16_WEIGHT_BYTES)
    return passes * moved_bytes / rates.bandwidth


_BF16_WEIGHT_BYTES = 2.0  # Bytes of a weight in 16 bit.


def _format_conversion_passes(layer: Layer, hidden: float, width: float, heads: float) -> float:
    """Return the passes that convert inputs of products to a narrower format."""
    if not layer.mlp.is_routed:
        return _CAST_TRAFFIC_FACTOR * 3 * (2 * hidden + 2 * width + heads)
    routed = layer.mlp.experts_per_token * hidden + 2 * width
    return _CAST_TRAFFIC_FACTOR * 3 * (hidden + heads) + _EXPERT_CAST * 3 * routed


def _layer_launch_time(layer: Layer, plan: TrainingPlan) -> float:
    """Time between the kernels of a layer [s]."""
    passes = 4 if plan.recompute == "full" else 3
    other_kernels = 20.0 if plan.software.fuses_norms_and_activations else 45.0
    other_kernels *= (bool(layer.mixer.matrices) + bool(layer.mlp.matrices)) / 2
    gaps = _KERNEL_GAP_SECONDS * (len(layer.matrices) * passes + other_kernels)
    if layer.mlp.is_routed:
        gaps += _EXPERT_LAUNCH * (
            _GRAPH_GAP_SHARE if plan.software.launches_experts_ahead_of_host else 1.0
        )
    return gaps


def _tensor_parallel_time(message: float, fabric: Interconnect, plan: TrainingPlan) -> float:
    """Time of tensor-parallel communication in one layer [s]."""
    if plan.tensor == 1:
        return 0.0
    collective_pairs = 3 if plan.recompute == "full" else 2
    if plan.sequence_parallel:
        pair_time = collective_time("all_gather", plan.tensor, message, fabric)
        pair_time += collective_time("reduce_scatter", plan.tensor, message, fabric)
    else:
        pair_time = 2 * collective_time("all_reduce", plan.tensor, message, fabric)
    return _TENSOR_TRAFFIC * collective_pairs * pair_time


def _exposed_expert_parallel_time(
    layer: Layer, tokens: float, fabric: Interconnect, plan: TrainingPlan
) -> float:
    """Exposed time of one layer's all-to-all [s]."""
    exchanges = 6 if plan.recompute == "full" else 4
    size = tokens * layer.mlp.expert_input_width * 2 * layer.mlp.experts_per_token / plan.tensor
    exchange_time = collective_time("alltoall", plan.expert, size, fabric)
    return _EXPERT_TRAFFIC * exchanges * exchange_time


def _context_parallel_time(
    layer: Layer, tokens: float, fabric: Interconnect, plan: TrainingPlan
) -> float:
    """Time to exchange keys and values in context parallelism, half of it overlapped [s]."""
    kv_bytes = layer.mixer.cache_elements_per_token / plan.tensor * 2 * tokens * plan.context
    gather_time = collective_time("all_gather", plan.context, kv_bytes, fabric, plan.tensor)
    return _TENSOR_TRAFFIC * 1.5 * gather_time


def _output_head_time(model: Architecture, rates: SustainedRates, plan: TrainingPlan) -> float:
    """Time of output head and loss, forward and backward, in 16 bit [s]."""
    tokens = plan.micro_batch * plan.sequence / plan.context
    outputs = model.vocabulary / plan.tensor
    product = matmul_time(tokens, model.hidden, outputs, rates.matmul_16bit, rates)
    bytes_per_logit = _HEAD_FUSED if plan.software.fuses_loss else _HEAD_PLAIN
    products = (2 if plan.trained_weights.are_adapters else 3) * product
    return products + tokens * outputs * bytes_per_logit / rates.bandwidth


def _weight_gather_time(
    model: Architecture, fabric: Interconnect, plan: TrainingPlan, stage_seconds: float
) -> float:
    """Time that gathering fully sharded weights adds to a micro-batch [s]."""
    if plan.zero != 3:
        return 0.0
    ranks, trained = plan.data * plan.context, plan.trained_weights
    layer_count = max(1.0, model.layers / plan.pipeline)
    bytes_per_parameter = trained.frozen_bytes_per_parameter if trained.are_adapters else 2.0
    stage_bytes = bytes_per_parameter * count_parameters_per_gpu_before_zero(model, plan)
    layer_bytes = stage_bytes / layer_count
    layer_time = 2 * collective_time("all_gather", ranks, layer_bytes, fabric, plan.tensor)
    if not trained.are_adapters:
        layer_time += collective_time("reduce_scatter", ranks, layer_bytes, fabric, plan.tensor)
    communication = layer_time * layer_count
    return max(0.0, communication - stage_seconds) + _GATHER_TRAFFIC * min(
        communication, stage_seconds
    )


def _data_parallel_time(
    parameters: float, fabric: Interconnect, plan: TrainingPlan, stage_seconds: float
) -> float:
    """Exposed time of reducing gradients and gathering weights in a step [s].

    `stage_seconds`: time of a micro-batch on a stage [s].
    """
    ranks = plan.data * plan.context
    if plan.zero == 3 or ranks == 1:
        return 0.0
    gradient_size = parameters * plan.gradient_bytes
    reduced = collective_time("reduce_scatter", ranks, gradient_size, fabric, plan.tensor)
    gathered = collective_time("all_gather", ranks, 2 * parameters, fabric, plan.tensor)
    per_step = _DATA_TRAFFIC * (reduced + gathered)
    if plan.zero != 2:
        return per_step
    # Divided gradients are reduced after every micro-batch, which slows concurrent products
    # where the backward pass, two thirds of the time, is long enough to hide it.
    overlapped = min(reduced, stage_seconds * 2 / 3)
    exposed_per_micro_batch = reduced - overlapped + _GATHER_TRAFFIC * overlapped
    return per_step + (plan.micro_batches - 1) * exposed_per_micro_batch


def pipeline_bubble(stages: int, microbatches: int, virtual_stages: int = 1) -> float:
    """Idle time of a pipeline over its ideal time [1].

    (p − 1) / (v·m) for GPipe, 1F1B (v = 1) and interleaved 1F1B (v > 1). From megatron-2021, section 2.2.

    >>> pipeline_bubble(8, 64)
    0.109375
    """
    if min(stages, microbatches, virtual_stages) < 1:
        raise ValueError("stages, micro-batches and chunks must be at least 1")
    return (stages - 1) / (virtual_stages * microbatches)


# Share of booked time without progress: restarts, checkpoints, evaluation, and steps
# slower than in a benchmark. The median excess of published totals over benchmark rates
# (3 to 15 % for restarts alone).
LOST_TIME_SHARE = 0.16

_MAX_PIPELINE_STAGES = 64  # Pipeline stages.


def find_fastest_usual_plan(
    model: Architecture, gpu: Accelerator, plan: TrainingPlan, gpus: int, tokens_per_step: float
) -> TrainingPlan:
    """Return the fastest of the usual layouts of a run, one per tensor parallelism.

    Each has the fewest pipeline stages with which it fits in memory, and the least
    recomputation for that, from that of `plan`; all have its other values.

    >>> from app.estimator.models.lookup import find_model
    >>> from app.estimator.hardware.catalog import find_accelerator
    >>> model, a100 = find_model("llama-2-7b"), find_accelerator("a100-sxm4-80")
    >>> plan = TrainingPlan(sequence=4096, recompute="selective")
    >>> plan = find_fastest_usual_plan(model, a100, plan, 1024, 4e6)
    >>> seconds = optimizer_step_time(model, a100, build_gpu_interconnect(a100), plan).total
    >>> 1.4e5 < 2e12 * seconds / plan.tokens_per_step * plan.gpus / 3600 / (1 - LOST_TIME_SHARE) < 2.3e5
    True
    """
    found = [
        _find_plan_with_fewest_stages(
            model, gpu, dataclasses.replace(plan, tensor=tensor), gpus, tokens_per_step
        )
        for tensor in (1, 2, 4, 8)
        if not model.heads or model.heads % tensor == 0
    ]
    fabric = build_gpu_interconnect(gpu)
    return min(
        [plan for plan, fits in found if fits] or [plan for plan, _ in found],
        key=lambda plan: (
            optimizer_step_time(model, gpu, fabric, plan).total * plan.gpus / plan.tokens_per_step
        ),
    )


def _find_plan_with_fewest_stages(
    model: Architecture, gpu: Accelerator, plan: TrainingPlan, gpus: int, tokens_per_step: float
) -> tuple[TrainingPlan, bool]:
    """Return the plan with the fewest stages that fits, or with the most, and whether it fits."""
    pipeline = 1
    while True:
        staged = _build_plan_with_pipeline_stages(model, plan, pipeline, gpus, tokens_per_step)
        recomputes: tuple[Recompute, ...] = (plan.recompute, "selective", "full")
        for recompute in dict.fromkeys(recomputes):
            tried = dataclasses.replace(staged, recompute=recompute)
            if fullest_stage_memory(model, tried).total <= gpu.engine_visible_memory:
                return tried, True
        if pipeline == _MAX_PIPELINE_STAGES:
            return tried, False
        pipeline *= 2


def _build_plan_with_pipeline_stages(
    model: Architecture, plan: TrainingPlan, pipeline: int, gpus: int, tokens_per_step: float
) -> TrainingPlan:
    data = max(1, gpus // (plan.tensor * pipeline))
    batches = max(1, round(tokens_per_step / plan.sequence / data / plan.micro_batch))
    return dataclasses.replace(
        plan,
        pipeline=pipeline,
        data=data,
        expert=min(math.gcd(model.experts, 64), data) if model.is_routed else 1,
        chunks_per_stage=2 if pipeline > 1 else 1,
        micro_batches=max(batches, 2 * pipeline if pipeline > 1 else 1),
    )
