"""Memory of one GPU per pipeline stage."""

import dataclasses
from typing import Literal, NamedTuple

from app.estimator.memory.activations import (
    compute_fused_saved_bytes_per_token,
    mlp_backward_bytes_per_token,
    saved_logits_bytes,
    unfused_layer_saved_bytes_per_token,
)
from app.estimator.memory.model_states import (
    FRAMEWORKS,
    BytesPerParameter,
    ModelStateBytes,
    TrainedWeights,
    TrainingFramework,
    model_state_bytes_per_gpu,
    state_bytes_under_zero_stage,
)
from app.estimator.memory.parallel_layout import (
    ParallelLayout,
    PipelineStage,
    layer_parameters_per_gpu,
    list_distinct_pipeline_stages,
    micro_batches_in_flight,
    stage_parameters_per_gpu,
)
from app.estimator.models.architecture import Architecture
from app.estimator.models.layers import Layer
from app.estimator.result import Bounds

_ALL_WEIGHTS_TRAINED = TrainedWeights()


def default_overhead_bytes_per_gpu(gpus: int) -> float:
    """Default bytes for CUDA context, workspaces and fragmentation of a GPU [B].

    With several GPUs, communication buffers are included.
    """
    return 1e9 if gpus == 1 else 4e9


@dataclasses.dataclass(frozen=True, slots=True)
class TrainingStep:
    """The parts of a training step that determine memory.

    `micro_batch` sequences of one forward pass, `micro_batches` of one optimizer step. With
    `overlaps_tensor_parallel` transfers run inside the products, so that no whole sequence is
    gathered. `loss_bytes_per_logit` at the peak of the loss are those of the framework if None.
    """

    sequence: int
    micro_batch: float = 1
    micro_batches: int = 1
    recompute: str = "none"
    flash_attention: bool = True
    framework: TrainingFramework = FRAMEWORKS["torch"]
    fused_loss: bool = False
    overlaps_tensor_parallel: bool = True
    loss_bytes_per_logit: float | None = None


Moment = Literal["pass", "end", "step"]


@dataclasses.dataclass(frozen=True, slots=True)
class StageMemory:
    """Bytes on one GPU of one pipeline stage at its peak.

    `peak_moment` is in the forward and backward pass, at the end of the
    backward pass, or in the optimizer step. `optimizer_step_copies` are made by the step. `offloaded_to_host` is what
    is offloaded to its server.
    """

    stage_index: int
    weights: float
    gradients: float
    optimizer: float
    activations: float
    logits: float
    buffers: float = 0.0
    overhead: float = 0.0
    offloaded_to_host: float = 0.0
    optimizer_step_copies: float = 0.0
    peak_moment: Moment = "pass"

    @property
    def total(self) -> float:
        states = self.weights + self.gradients + self.optimizer + self.optimizer_step_copies
        moving = self.activations + self.logits
        return states + moving + self.buffers + self.overhead


@dataclasses.dataclass(frozen=True, slots=True)
class ResidentMemory:
    """Bytes on one GPU of one stage that do not depend on its micro-batches."""

    stage_index: int
    weights: float
    gradients: float
    optimizer: float
    buffers: float
    optimizer_step_copies: float = 0.0

    @property
    def total(self) -> float:
        return self.weights + self.gradients + self.optimizer + self.buffers


class TransientMemory(NamedTuple):
    """Bytes of a stage's micro-batches in flight."""

    activations: float
    logits: float


@dataclasses.dataclass(frozen=True, slots=True)
class TransientBytesPerToken:
    """Temporary memory of a stage at its peak, in bytes per token.

    `saved_activations` by all layers, for all micro-batches in flight; in addition `in_use_at_peak`, what is in
    use at the peak. `in_use_in_layer_backward` is in use in the backward pass of one layer.
    """

    stage_index: int
    saved_activations: float
    in_use_at_peak: float
    logits: float
    in_use_in_layer_backward: float = 0.0

    def compute_transient_memory(self, tokens: float, in_flight: float) -> TransientMemory:
        activations = tokens * (self.saved_activations * in_flight + self.in_use_at_peak)
        return TransientMemory(activations, tokens * self.logits)


def peak_memory_by_distinct_stage(
    model: Architecture,
    layout: ParallelLayout,
    step: TrainingStep,
    state_bytes: BytesPerParameter,
    overhead: float,
    *,
    trained_weights: TrainedWeights = _ALL_WEIGHTS_TRAINED,
) -> tuple[StageMemory, ...]:
    """Return the memory use of a GPU on each different pipeline stage.

    If gradients are freed between steps, it is the largest of three moments: the loss or
    the first layer's backward pass, without gradients; the end of the backward pass,
    with all of them and one layer; and the optimizer step, with the copies it makes. With
    several micro-batches the gradients of the earlier ones are there from the start.
    """
    resident_by_stage = resident_memory_by_distinct_stage(
        model, layout, step.framework, state_bytes, trained_weights
    )
    transient_by_stage = transient_bytes_per_token_by_distinct_stage(
        model, layout, step, trained_weights
    )
    tokens = micro_batch_tokens_per_gpu(layout, step)
    loads = []
    for resident, transient in zip(resident_by_stage, transient_by_stage, strict=True):
        in_flight = micro_batches_in_flight(transient.stage_index, layout, step.micro_batches)
        in_use = transient.compute_transient_memory(tokens, in_flight)
        load = _add_up_stage_memory(resident, in_use, overhead, trained_weights)
        if step.framework.frees_gradients:
            layer_bytes = tokens * transient.in_use_in_layer_backward
            load = _peak_stage_memory(load, resident, layer_bytes, step, trained_weights)
        loads.append(load)
    return tuple(loads)


def _peak_stage_memory(
    memory: StageMemory,
    resident: ResidentMemory,
    backward_layer_bytes: float,
    step: TrainingStep,
    trained_weights: TrainedWeights,
) -> StageMemory:
    """Return the memory of a stage at the largest of its moments.

    `memory` has everything at once; `backward_layer_bytes` are in use in the backward pass of
    a layer.
    """
    copies = (
        resident.optimizer_step_copies
        if step.framework.steps_on_all_tensors_at_once
        and trained_weights.offloaded_to_host == "none"
        else 0.0
    )
    moments = (
        memory if step.micro_batches > 1 else dataclasses.replace(memory, gradients=0.0),
        dataclasses.replace(
            memory, activations=backward_layer_bytes, logits=0.0, peak_moment="end"
        ),
        dataclasses.replace(
            memory,
            activations=0.0,
            logits=0.0,
            buffers=0.0,
            optimizer_step_copies=copies,
            peak_moment="step",
        ),
    )
    return max(moments, key=lambda moment: moment.total)


# Range of the overhead relative to the default.
OVERHEAD_RANGE = Bounds(0.4, 1.6)
# Measured over computed peaks by framework: allocated in traces of Megatron, reserved
# in logs of FSDP, which reserves more if pipeline stages alternate. Those of Transformers
# contain 90% of the rows of fms-acceleration, where the loss kernel is not always known.
_PEAK_BOUNDS_BY_FRAMEWORK = {
    "megatron": Bounds(0.98, 1.02),
    "torch": Bounds(0.92, 1.08),
    "torch-eager": Bounds(0.92, 1.08),
    "torchtune": Bounds(0.9, 1.08),
    "transformers": Bounds(0.84, 1.19),
}
# In the optimizer step every byte is a state; another moment may turn out to be larger.
_STEP_PEAK = Bounds(0.98, 1.1)


def allocated_memory_error_factors(memory: StageMemory, framework: str) -> Bounds:
    """Return the range of allocated memory, relative to what is computed."""
    return _STEP_PEAK if memory.peak_moment == "step" else _PEAK_BOUNDS_BY_FRAMEWORK[framework]


def plausible_bytes_range(memory: StageMemory, framework: str) -> Bounds:
    """Return the range of a GPU's total [B]: that of allocated memory, and of the overhead."""
    allocated = memory.total - memory.overhead
    peaks, overhead = allocated_memory_error_factors(memory, framework), OVERHEAD_RANGE
    return Bounds(
        allocated * peaks.low + overhead.low * memory.overhead,
        allocated * peaks.high + overhead.high * memory.overhead,
    )


def most_bytes_that_surely_fit(limit: float, overhead: float, framework: str) -> float:
    """Return the total of a GPU whose range ends at a limit [B]; the overhead is part of it.

    It is that of frameworks which keep all states until the end of a step.
    """
    allocated = (limit - OVERHEAD_RANGE.high * overhead) / _PEAK_BOUNDS_BY_FRAMEWORK[framework].high
    return allocated + overhead


def memory_of_fullest_stage(stage_memories: tuple[StageMemory, ...]) -> StageMemory:
    return max(stage_memories, key=lambda load: load.total)


def resident_memory_by_distinct_stage(
    model: Architecture,
    layout: ParallelLayout,
    framework: TrainingFramework,
    state_bytes: BytesPerParameter,
    trained_weights: TrainedWeights = _ALL_WEIGHTS_TRAINED,
) -> tuple[ResidentMemory, ...]:
    """Return states and buffers on each different stage.

    Layouts that differ only in how sequences are divided have the same result.
    """
    by_stage = []
    for stage in list_distinct_pipeline_stages(model, layout.pipeline, layout.chunks_per_stage):
        states = _model_state_bytes_of_stage(model, stage, layout, state_bytes, trained_weights)
        if framework.preallocates_dummy_gradients:
            buffers = _preallocated_gradient_bytes(model, stage, layout)
        else:
            buffers = _gathered_weight_bytes(model, stage, layout, state_bytes, trained_weights)
        copies = (
            states.optimizer * state_bytes.optimizer_step_copy / state_bytes.optimizer
            if state_bytes.optimizer
            else 0.0
        )
        by_stage.append(ResidentMemory(stage.index, *states, buffers, copies))
    return tuple(by_stage)


def transient_bytes_per_token_by_distinct_stage(
    model: Architecture,
    layout: ParallelLayout,
    step: TrainingStep,
    trained_weights: TrainedWeights = _ALL_WEIGHTS_TRAINED,
) -> tuple[TransientBytesPerToken, ...]:
    """Return temporary memory per token on each different stage.

    Steps that differ only in their micro-batches have the same result.
    """
    return tuple(
        transient_bytes_per_token_of_stage(model, stage, layout, step, trained_weights)
        for stage in list_distinct_pipeline_stages(model, layout.pipeline, layout.chunks_per_stage)
    )


def micro_batch_tokens_per_gpu(layout: ParallelLayout, step: TrainingStep) -> float:
    return step.sequence * step.micro_batch / layout.context


def _add_up_stage_memory(
    resident: ResidentMemory,
    transient: TransientMemory,
    overhead: float,
    trained_weights: TrainedWeights,
) -> StageMemory:
    """Return everything on one stage, without what is offloaded to the host."""
    is_optimizer_on_gpu = trained_weights.offloaded_to_host == "none"
    are_weights_offloaded = trained_weights.offloaded_to_host == "all"
    host = 0.0 if is_optimizer_on_gpu else resident.optimizer
    if are_weights_offloaded:
        host += resident.weights
    return StageMemory(
        stage_index=resident.stage_index,
        weights=0.0 if are_weights_offloaded else resident.weights,
        gradients=resident.gradients,
        optimizer=resident.optimizer if is_optimizer_on_gpu else 0.0,
        activations=transient.activations,
        logits=transient.logits,
        buffers=resident.buffers,
        overhead=overhead,
        offloaded_to_host=host,
    )


def _model_state_bytes_of_stage(
    model: Architecture,
    stage: PipelineStage,
    layout: ParallelLayout,
    state_bytes: BytesPerParameter,
    trained_weights: TrainedWeights,
) -> ModelStateBytes:
    """Return the bytes of one GPU; with adapters the model itself is frozen."""
    share = stage_parameters_per_gpu(model, stage, layout)
    if not trained_weights.are_adapters:
        return model_state_bytes_per_gpu(share, state_bytes, layout)
    shards = layout.zero_shards if layout.zero >= 3 else 1
    frozen = (
        (share.dense_parameters + share.expert_parameters)
        * trained_weights.frozen_bytes_per_parameter
        / shards
    )
    adapter_parameters = (
        trained_weights.adapter_parameters * stage.layer_total / model.layers / layout.tensor
    )
    adapters = state_bytes_under_zero_stage(
        adapter_parameters, state_bytes, layout.zero_shards, layout.zero
    )
    return adapters._replace(weights=frozen + adapters.weights)


def transient_bytes_per_token_of_stage(
    model: Architecture,
    stage: PipelineStage,
    layout: ParallelLayout,
    step: TrainingStep,
    trained_weights: TrainedWeights,
) -> TransientBytesPerToken:
    """Return activations and logits per token at the higher of two peaks.

    During the loss, logits are in memory. At the start of the backward pass, one layer's
    temporaries are (or the recomputed layer). At both, the saved activations of all
    micro-batches in flight are in memory.
    """
    saved = sum(
        n * _saved_bytes_per_token(model, a, layout, step, trained_weights)
        for a, n in stage.layer_counts
    )
    working = max(
        (
            _layer_backward_bytes_per_token(model, a, layout, step, trained_weights)
            for a, _ in stage.layer_counts
        ),
        default=0.0,
    )
    peak_working, logits = working, 0.0
    if stage.is_last:
        width = bytes_per_logit_of_loss(layout, step)
        logits_per_token = saved_logits_bytes(1.0, model.vocabulary, layout.tensor, width)
        head_inputs = _head_input_and_norm_bytes_per_token(model, layout, step)
        if logits_per_token + head_inputs >= working:
            peak_working, logits = head_inputs, logits_per_token
    return TransientBytesPerToken(
        stage_index=stage.index,
        saved_activations=saved,
        in_use_at_peak=peak_working + _unreusable_bytes_per_token(model, stage, layout, step),
        logits=logits,
        in_use_in_layer_backward=working,
    )


def _saved_bytes_per_token(
    model: Architecture,
    layer: Layer,
    layout: ParallelLayout,
    step: TrainingStep,
    trained_weights: TrainedWeights,
) -> float:
    if step.framework.saves_inputs_of_every_operation and step.recompute == "none":
        saved = unfused_layer_saved_bytes_per_token(
            model, layer, step.sequence, saves_attention_scores=not step.flash_attention
        )
        return saved / layout.tensor
    fused = compute_fused_saved_bytes_per_token(
        layer, model.hidden, flash_attention=step.flash_attention
    )
    saved = fused.bytes_per_token(layout, step.sequence, step.recompute)
    if layout.context > 1 and step.recompute != "full":
        # Context-parallel GPUs exchange the output, so it is stored twice.
        saved += 2.0 * layer.mixer.heads * layer.mixer.value_dim / layout.tensor
    if trained_weights.are_adapters and step.recompute in {"none", "selective"}:
        unsaved = trained_weights.unsaved_activation_bytes_per_token(model.hidden, layer.mlp.width)
        saved -= unsaved.sequence_parallel_part / (layout.tensor if layout.sequence_parallel else 1)
        saved -= unsaved.tensor_parallel_part / layout.tensor
    return saved


def _layer_backward_bytes_per_token(
    model: Architecture,
    layer: Layer,
    layout: ParallelLayout,
    step: TrainingStep,
    trained_weights: TrainedWeights,
) -> float:
    """Return the temporary bytes per token in the backward pass of one layer.

    All of a recomputed layer is in memory, otherwise the MLP's gradients. Whole sequences
    are gathered around the products of tensor parallelism.
    """
    fused = compute_fused_saved_bytes_per_token(
        layer, model.hidden, flash_attention=step.flash_attention
    )
    hidden = 2.0 * model.hidden
    if (
        step.recompute == "full"
        and step.framework.saves_inputs_of_every_operation
        and not step.framework.backward_temporaries_factor
    ):
        # Its modules save what they do without recomputation, and the gradients of the MLP
        # are there as well. Adapters under FSDP have two layers at once: 123 to 126 bytes
        # per token and width, against 63 to 65 on one GPU (fms-acceleration, 2024-11).
        saved = unfused_layer_saved_bytes_per_token(
            model, layer, step.sequence, saves_attention_scores=not step.flash_attention
        )
        working = (saved + mlp_backward_bytes_per_token(layer.mlp)) / layout.tensor
        sharded = layout.zero >= 3 and layout.zero_shards > 1
        working *= 2 if trained_weights.are_adapters and sharded else 1
    elif step.recompute == "full":
        working = fused.bytes_per_token(layout, step.sequence, "none")
    else:
        working = fused.mlp_backward_bytes / layout.tensor + hidden / layout.tensor
    if layout.pipeline > 1:
        working += hidden / layout.tensor
    if layout.tensor > 1:
        gathered = (
            1
            if step.framework.preallocates_dummy_gradients
            else 4
            if step.overlaps_tensor_parallel
            else 6
        )
        working += gathered * hidden
    return working


def _unreusable_bytes_per_token(
    model: Architecture, stage: PipelineStage, layout: ParallelLayout, step: TrainingStep
) -> float:
    """Return bytes per token of unfused operations that the allocator cannot reuse."""
    if not step.framework.backward_temporaries_factor or not stage.layer_counts:
        return 0.0
    layer = stage.layer_counts[-1][0]
    layer_bytes = unfused_layer_saved_bytes_per_token(
        model, layer, step.sequence, saves_attention_scores=not step.flash_attention
    )
    return step.framework.backward_temporaries_factor * layer_bytes / layout.tensor


def bytes_per_logit_of_loss(layout: ParallelLayout, step: TrainingStep) -> float:
    framework = step.framework
    if step.loss_bytes_per_logit is not None:
        return step.loss_bytes_per_logit
    if step.fused_loss:
        return framework.fused_loss_bytes_per_logit
    return (
        framework.unfused_loss_bytes_per_logit
        if layout.tensor == 1
        else framework.split_loss_bytes_per_logit
    )


def _head_input_and_norm_bytes_per_token(
    model: Architecture, layout: ParallelLayout, step: TrainingStep
) -> float:
    """Return bytes per token around the loss: final norm, input and gradient of the head."""
    hidden = 2.0 * model.hidden
    split = layout.tensor if layout.sequence_parallel else 1
    gathers = step.framework.preallocates_dummy_gradients or not step.overlaps_tensor_parallel
    return 2 * hidden / split + (2 if layout.tensor > 1 and gathers else 1) * hidden


# Workspaces of the math libraries.
_WORKSPACE_BYTES = 7e7


def _preallocated_gradient_bytes(
    model: Architecture, stage: PipelineStage, layout: ParallelLayout
) -> float:
    """Return one preallocated 16-bit gradient of each weight shape of the stage.

    Equal layers share theirs; grouped experts have one.
    """
    largest = 0.0
    for layer, _ in stage.layer_counts:
        share = layer_parameters_per_gpu(layer, layout.tensor, layout.gpus_sharing_experts)
        gradient_elements = share.dense_parameters
        if layer.mlp.experts:
            gradient_elements += (
                share.expert_parameters * layout.gpus_sharing_experts / layer.mlp.experts
            )
        largest = max(largest, gradient_elements)
    head_elements = model.vocabulary * model.hidden / layout.tensor if stage.is_last else 0.0
    return 2.0 * (largest + head_elements) + _WORKSPACE_BYTES


def _gathered_weight_bytes(
    model: Architecture,
    stage: PipelineStage,
    layout: ParallelLayout,
    state_bytes: BytesPerParameter,
    trained_weights: TrainedWeights,
) -> float:
    """Return the weights that ZeRO-3 gathers while they are used.

    Two layers, the one in use and the prefetched one, and the embedding tables, which stay;
    in a pipeline the whole stage stays gathered and its gradients accumulate in FP32.
    From Zhao (2023), section 3. Tables in FP32 are gathered in 16 bit, the `param_dtype` of
    FSDP's mixed precision.
    """
    are_weights_offloaded = trained_weights.offloaded_to_host == "all"
    if (layout.zero < 3 or layout.zero_shards == 1) and not are_weights_offloaded:
        return 0.0
    width = (
        trained_weights.frozen_bytes_per_parameter
        if trained_weights.are_adapters
        else min(state_bytes.weights, 2.0)
    )
    if layout.pipeline > 1 and not are_weights_offloaded:
        share = stage_parameters_per_gpu(model, stage, layout)
        bytes_per_weight = width if trained_weights.are_adapters else width + 4.0
        return bytes_per_weight * (share.dense_parameters + share.expert_parameters)
    largest = max((a.parameters for a, _ in stage.layer_counts), default=0)
    table_parameters = model.embedding_parameters + model.head_parameters
    return (width * 2 * largest + 2.0 * table_parameters) / layout.tensor
