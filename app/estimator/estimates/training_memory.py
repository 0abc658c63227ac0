"""`training-memory`: inputs, result, and the input values where the verdict changes."""

import dataclasses
import functools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

from app.estimator import common_inputs
from app.estimator.common_inputs import (
    BATCH,
    HARDWARE,
    LAYOUT,
    RECIPE,
    fill_in_zero_stage_and_recompute,
    impossible_input_error,
    reject_impossible_tensor_parallel,
)
from app.estimator.hardware.catalog import Accelerator
from app.estimator.inputs import input_specs, non_default_inputs_to_query, parse_inputs
from app.estimator.memory.model_states import (
    FRAMEWORK_CHOICES,
    FRAMEWORKS,
    LOSS_KERNELS,
    OPTIMIZERS,
    PRECISIONS,
    USUAL,
    BytesPerParameter,
    TrainedWeights,
    TrainingFramework,
    build_trained_weights,
    find_training_framework,
    state_bytes_per_parameter,
)
from app.estimator.memory.parallel_layout import (
    ParallelLayout,
    default_micro_batch_count,
)
from app.estimator.memory.training_memory import (
    StageMemory,
    TrainingStep,
    default_overhead_bytes_per_gpu,
    memory_of_fullest_stage,
    peak_memory_by_distinct_stage,
    plausible_bytes_range,
)
from app.estimator.memory_verdict import memory_status
from app.estimator.models.architecture import Architecture
from app.estimator.models.lookup import find_model
from app.estimator.result import Bounds, VerdictChange
from app.estimator.training.training_plan import FREE_PLACES, USUAL_SOFTWARE, find_training_software
from app.estimator.units import format_count, format_value
from app.estimator.verdict_changes import TIGHT_FIT, find_largest_fit, round_up_to_usual_gpu_count

USUAL_GPUS = 32


@dataclasses.dataclass(frozen=True, slots=True)
class TrainingMemoryInputs:
    model: str = common_inputs.model_input()
    optimizer: str = RECIPE.declare_input_field(
        "adamw",
        "Optimizer",
        choices=tuple((name, one.label) for name, one in OPTIMIZERS.items()),
        help="How many moments it keeps for each parameter.",
        term="optimizer-state",
    )
    precision: str = RECIPE.declare_input_field(
        "bf16-mixed",
        "Precision",
        choices=tuple((name, one.label) for name, one in PRECISIONS.items()),
        help="Formats of weights, gradients and master copy.",
        term="mixed-precision",
        topic="number-formats",
    )
    gpu: str = common_inputs.counted_gpu_input(count_field="gpus")
    gpus: int = common_inputs.declare_training_gpus_input(USUAL_GPUS, topic="training-memory")
    zero: str = common_inputs.zero_input()
    tensor_parallel: int = common_inputs.tensor_parallel_input()
    pipeline_parallel: int = common_inputs.pipeline_input(limits=(1, 1024))
    context_parallel: int = common_inputs.context_parallel_input(limits=(1, 1024))
    expert_parallel: int = common_inputs.experts_input(limits=(1, 1024))
    interleave: int = LAYOUT.declare_advanced_input_field(
        1, "Interleaving", limits=(1, 64), help="Chunks of layers on each pipeline stage."
    )
    sequence: int = common_inputs.sequence_input()
    micro_batch: int = BATCH.declare_input_field(
        1,
        "Micro-batch",
        unit="sequence",
        limits=(1, 100_000),
        help="Sequences in one forward pass.",
        term="micro-batch",
    )
    micro_batches: int | None = BATCH.declare_advanced_input_field(
        None,
        "Micro-batches per step",
        kind="count",
        limits=(1, 1_000_000),
        help="Left empty: one for each stage in Transformers and torchtune; otherwise about "
        "eight million tokens, or 1,024 for each GPU if that is more, and at least one for each "
        "stage.",
        topic="parallelism",
    )
    recompute: str = common_inputs.recompute_input()
    framework: str = RECIPE.declare_input_field(
        USUAL,
        "Framework",
        choices=FRAMEWORK_CHOICES,
        help="Decides which tensors are kept beside the formula; usual are compiled PyTorch "
        "FSDP for a dense model, Megatron for a mixture of experts, torchtune for adapters, "
        "as in training-time.",
    )
    flash_attention: bool = RECIPE.declare_advanced_input_field(
        True, "Flash attention", help="Without it the attention scores are kept as well."
    )
    sequence_parallel: bool = common_inputs.sequence_parallel_input()
    overlapped: bool = RECIPE.declare_advanced_input_field(
        True,
        "Overlapped tensor parallelism",
        help="Transfers run inside the products, so that no whole sequence is "
        "gathered; in PyTorch.",
        topic="parallelism",
    )
    fused_loss: bool = RECIPE.declare_advanced_input_field(
        False,
        "Fused loss",
        help="A loss that never makes FP32 copies of the logits; in Transformers "
        "Liger's, which never makes the logits either. The usual frameworks have one.",
    )
    loss: str = RECIPE.declare_advanced_input_field(
        USUAL,
        "Loss kernel",
        choices=tuple((name, kernel.label) for name, kernel in LOSS_KERNELS.items()),
        help="How many bytes each logit takes at the peak of the loss. The Trainer of "
        "Transformers 5.23 takes 12, three values in FP32. TRL's SFTTrainer computes the loss in "
        "chunks with the output head since 1.7, unless it is told otherwise.",
    )
    optimizer_step: str = RECIPE.declare_advanced_input_field(
        USUAL,
        "Optimizer step",
        choices=(
            (USUAL, "As in the framework"),
            ("foreach", "All tensors at once (foreach)"),
            ("fused", "Fused"),
        ),
        help="PyTorch's foreach optimizers copy all trained parameters in the step.",
        term="optimizer-state",
    )
    method: str = common_inputs.method_input()
    rank: int = common_inputs.rank_input()
    targets: str = common_inputs.targets_input()
    qlora_embeddings: str = RECIPE.declare_advanced_input_field(
        "bf16",
        "Embeddings and head in QLoRA",
        choices=(
            ("bf16", "16 bit: as TRL and torchtune leave them"),
            ("fp32", "FP32: as PEFT's prepare_model_for_kbit_training casts them"),
        ),
        help="What a recipe does with the weights that are not quantized. TRL's SFTTrainer has not "
        "cast them since the end of 2025; recipes with PEFT and the Trainer of Transformers do.",
        term="lora",
    )
    offload: str = LAYOUT.declare_advanced_input_field(
        "none",
        "Offload to the host",
        choices=(("none", "Nothing"), ("optimizer", "Optimizer"), ("all", "Optimizer and weights")),
        help="What waits in the memory of the server until it is needed.",
        topic="training-memory",
    )
    overhead: float | None = HARDWARE.declare_input_field(
        None,
        "Overhead per GPU",
        unit="GB",
        limits=(0.0, 1e12),
        quantity="overhead of training",
        help="CUDA context, communication buffers, workspaces, fragmentation; left "
        "empty: 4 GB, or 1 GB for a GPU by itself.",
        topic="training-memory",
    )


class MemoryRemedy(NamedTuple):
    """An input value with which a job that is too large fits; `is_sure`: by the high end, too."""

    field: str
    value: Any
    is_sure: bool = True

    def is_offered_by(self, framework: TrainingFramework) -> bool:
        if self.field == "loss":
            return framework.id == "transformers"
        return self.value != "operators" or framework.can_recompute_every_second_product


class FewestGpusByCertainty(NamedTuple):
    """The fewest GPUs that fit by the low end, the center and the high end of the memory's range.

    None where no number is found.
    """

    at_low_end: int | None
    by_central_estimate: int | None
    surely: int | None


@dataclasses.dataclass(frozen=True, slots=True)
class TrainingMemoryResult:
    """The inputs with the resulting layout and the memory use of each different stage.

    `typed_inputs` may leave ZeRO stage and recomputation open.
    """

    model: Architecture
    inputs: TrainingMemoryInputs
    typed_inputs: TrainingMemoryInputs
    gpu: Accelerator
    layout: ParallelLayout
    state_bytes_per_parameter: BytesPerParameter
    trained_weights: TrainedWeights
    stage_memories: tuple[StageMemory, ...]
    fewest_gpus: FewestGpusByCertainty
    memory_remedies: tuple[MemoryRemedy, ...] = ()

    @property
    def fullest_stage_memory(self) -> StageMemory:
        return memory_of_fullest_stage(self.stage_memories)

    @property
    def memory_limit(self) -> float:
        return self.gpu.engine_visible_memory

    @property
    def memory_bounds(self) -> Bounds:
        """Return the least and the most memory that is plausible [B]."""
        return plausible_bytes_range(
            self.fullest_stage_memory, find_requested_framework(self.inputs).id
        )

    @property
    def surely_fits(self) -> bool:
        return self.memory_bounds.high <= self.memory_limit

    @property
    def trained_parameters(self) -> float:
        return self.trained_weights.trained_parameters(self.model)

    @property
    def weights_total(self) -> float:
        """Return the weights of the whole model, before they are sharded [B]."""
        trained = self.state_bytes_per_parameter.weights * self.trained_parameters
        if not self.trained_weights.are_adapters:
            return trained
        return self.model.parameters * self.trained_weights.frozen_bytes_per_parameter + trained

    @property
    def gradients_total(self) -> float:
        return self.state_bytes_per_parameter.gradients * self.trained_parameters

    @property
    def optimizer_total(self) -> float:
        return self.state_bytes_per_parameter.optimizer * self.trained_parameters

    @property
    def states(self) -> float:
        """Return the model states of the whole model [B]."""
        return self.weights_total + self.gradients_total + self.optimizer_total


# Changes that save memory, in the order of their cost in time.
_MEMORY_REMEDIES = (
    MemoryRemedy("qlora_embeddings", "bf16"),
    MemoryRemedy("loss", "linear"),
    MemoryRemedy("zero", "3"),
    MemoryRemedy("recompute", "operators"),
    MemoryRemedy("recompute", "full"),
    MemoryRemedy("offload", "optimizer"),
    MemoryRemedy("method", "lora"),
)


def fill_in_usual_zero_and_recompute(
    model: Architecture, inputs: TrainingMemoryInputs, limit: float
) -> TrainingMemoryInputs:
    """Return the inputs with the usual ZeRO stage and recomputation, if they leave these open."""
    changed: TrainingMemoryInputs = fill_in_zero_stage_and_recompute(
        inputs,
        find_requested_framework(inputs),
        lambda tried: memory_of_fullest_stage(compute_requested_stage_memories(model, tried)),
        limit,
    )
    return changed


def surely_fits_with_changed_inputs(result: TrainingMemoryResult, **changes: Any) -> bool:
    """Return whether the verdict with changed inputs is that it fits, by the high end, too."""
    memory = compute_memory_range_with_changed_inputs(result, **changes)
    return memory.high <= result.memory_limit


def fits_central_estimate_with_changed_inputs(result: TrainingMemoryResult, **changes: Any) -> bool:
    memory = compute_memory_range_with_changed_inputs(result, **changes)
    return memory.central <= result.memory_limit


class MemoryRange(NamedTuple):
    """The memory that a GPU needs [B]."""

    low: float
    central: float
    high: float


def compute_memory_range_with_changed_inputs(
    result: TrainingMemoryResult, **changes: Any
) -> MemoryRange:
    changed = dataclasses.replace(result.typed_inputs, **changes)
    return _compute_memory_range(result.model, changed, result.memory_limit)


def _compute_memory_range(
    model: Architecture, typed: TrainingMemoryInputs, limit: float
) -> MemoryRange:
    """Return the memory on the fullest stage, with what `typed` leaves open chosen for `limit`."""
    inputs = fill_in_usual_zero_and_recompute(model, typed, limit)
    memory = memory_of_fullest_stage(compute_requested_stage_memories(model, inputs))
    bounds = plausible_bytes_range(memory, find_requested_framework(inputs).id)
    return MemoryRange(bounds.low, memory.total, bounds.high)


def find_memory_remedies(result: TrainingMemoryResult) -> tuple[MemoryRemedy, ...]:
    """Return single changes of the recipe with which a job that is too large fits.

    One that may fit gets only those with which it surely fits.
    """
    model, inputs, limit = result.model, result.inputs, result.memory_limit
    is_too_large = result.fullest_stage_memory.total > limit
    found: dict[str, MemoryRemedy] = {}
    for remedy in _MEMORY_REMEDIES:
        before = found.get(remedy.field)
        if getattr(inputs, remedy.field) == remedy.value or (before and before.is_sure):
            continue
        if not remedy.is_offered_by(find_requested_framework(inputs)):
            continue
        if remedy.field == "qlora_embeddings" and inputs.method != "qlora":
            continue
        change = {remedy.field: remedy.value}
        if surely_fits_with_changed_inputs(result, **change):
            found[remedy.field] = remedy
        elif is_too_large and before is None:
            changed = dataclasses.replace(inputs, **change)
            if (
                memory_of_fullest_stage(compute_requested_stage_memories(model, changed)).total
                <= limit
            ):
                found[remedy.field] = remedy._replace(is_sure=False)
    return tuple(found.values())


def build_requested_layout(inputs: Any) -> ParallelLayout:
    """Return the layout of the inputs of training-memory or training-time."""
    return ParallelLayout(
        gpus=inputs.gpus,
        tensor=inputs.tensor_parallel,
        pipeline=inputs.pipeline_parallel,
        context=inputs.context_parallel,
        expert=inputs.expert_parallel,
        chunks_per_stage=inputs.interleave,
        zero=int(inputs.zero),
        sequence_parallel=inputs.sequence_parallel,
    )


def build_requested_training_step(inputs: TrainingMemoryInputs) -> TrainingStep:
    """Return the training step of the inputs, with the usual micro-batches by default."""
    layout = build_requested_layout(inputs)
    framework = find_requested_framework(inputs)
    model = find_model(inputs.model)
    software = find_training_software(USUAL_SOFTWARE, model)
    has_usual_fused_loss = inputs.framework == USUAL and software.fuses_loss
    if inputs.optimizer_step != USUAL:
        foreach = inputs.optimizer_step == "foreach"
        framework = dataclasses.replace(framework, steps_on_all_tensors_at_once=foreach)
    if framework.frees_gradients:  # Software for fine-tuning, which accumulates nothing by default.
        default_count = layout.pipeline
    else:
        default_count = default_micro_batch_count(layout, inputs.sequence, inputs.micro_batch)
    return TrainingStep(
        sequence=inputs.sequence,
        micro_batch=inputs.micro_batch,
        micro_batches=inputs.micro_batches or default_count,
        recompute=inputs.recompute,
        flash_attention=inputs.flash_attention,
        framework=framework,
        fused_loss=inputs.fused_loss or has_usual_fused_loss,
        loss_bytes_per_logit=LOSS_KERNELS[inputs.loss].compute_bytes_per_logit(
            inputs.sequence * inputs.micro_batch / layout.context,
            model.hidden,
            is_head_fp32=is_head_fp32(inputs),
        ),
        overlaps_tensor_parallel=inputs.overlapped,
    )


def is_head_fp32(inputs: TrainingMemoryInputs) -> bool:
    if inputs.method == "full":
        return inputs.precision == "fp32"
    return inputs.method == "qlora" and inputs.qlora_embeddings == "fp32"


def find_requested_framework(inputs: TrainingMemoryInputs) -> TrainingFramework:
    """Return the chosen framework, or that of the default software of training-time."""
    if inputs.framework == USUAL and inputs.method == "full":
        return FRAMEWORKS[
            find_training_software(USUAL_SOFTWARE, find_model(inputs.model)).framework_id
        ]
    return find_training_framework(inputs.framework, inputs.method)


def compute_requested_stage_memories(
    model: Architecture, inputs: TrainingMemoryInputs
) -> tuple[StageMemory, ...]:
    overhead = (
        default_overhead_bytes_per_gpu(inputs.gpus) if inputs.overhead is None else inputs.overhead
    )
    return peak_memory_by_distinct_stage(
        model,
        build_requested_layout(inputs),
        build_requested_training_step(inputs),
        state_bytes_per_parameter(inputs.optimizer, inputs.precision),
        overhead,
        trained_weights=build_trained_weights(
            inputs, model, inputs.offload, inputs.qlora_embeddings
        ),
    )


def validate_inputs(
    model: Architecture, inputs: TrainingMemoryInputs, layout: ParallelLayout, gpu: Accelerator
) -> None:
    """Reject impossible layouts, with the values that are possible."""
    reject_impossible_layout(model, layout)
    if not gpu.engine_visible_memory:
        raise impossible_input_error(
            "gpu", inputs.gpu, f"The memory of the {gpu.name} is not known."
        )
    if inputs.precision.startswith("bf16") and gpu.lacks_format("bf16"):
        raise impossible_input_error(
            "precision", inputs.precision, f"The {gpu.name} cannot compute in BF16."
        )


def reject_impossible_layout(model: Architecture, layout: ParallelLayout) -> None:
    reject_impossible_tensor_parallel(model, layout.tensor)
    ranks = layout.tensor * layout.pipeline * layout.context
    if layout.gpus % ranks:
        raise impossible_input_error(
            "gpus",
            layout.gpus,
            f"{format_count(layout.gpus, 'GPU')} cannot be divided into groups of {ranks} (tensor × "
            f"pipeline × context parallel); use a multiple of {ranks}.",
        )
    _reject_impossible_pipeline(model, layout)
    _reject_impossible_expert_split(model, layout)


def _reject_impossible_pipeline(model: Architecture, layout: ParallelLayout) -> None:
    chunks = layout.pipeline * layout.chunks_per_stage
    max_chunks = model.layers + FREE_PLACES
    if chunks > max_chunks:
        field = "interleave" if layout.chunks_per_stage > 1 else "pipeline_parallel"
        value = layout.chunks_per_stage if layout.chunks_per_stage > 1 else layout.pipeline
        raise impossible_input_error(
            field,
            value,
            f"{format_count(model.layers, 'layer')} cannot fill {chunks} parts of a pipeline; at most "
            f"{max_chunks}.",
        )
    if layout.chunks_per_stage > 1 and layout.pipeline == 1:
        raise impossible_input_error(
            "interleave",
            layout.chunks_per_stage,
            f"Interleaving {layout.chunks_per_stage} chunks needs a pipeline of at least 2.",
        )


def _reject_impossible_expert_split(model: Architecture, layout: ParallelLayout) -> None:
    expert, group = layout.expert, layout.gpus // layout.pipeline
    if expert == 1:
        return
    message = ""
    if not model.experts:
        message = f"{model.name} has no experts to divide; use 1."
    elif model.experts % expert:
        message = f"{model.experts} experts cannot be divided over {expert} GPUs; use a divisor of {model.experts}."
    elif group % expert:
        message = f"Expert parallel {expert} does not divide the {group} GPUs of a stage."
    if message:
        raise impossible_input_error("expert_parallel", expert, message)


def find_fewest_gpus(
    model: Architecture, typed: TrainingMemoryInputs, layout: ParallelLayout, limit: float
) -> FewestGpusByCertainty:
    """Return the fewest GPUs that fit, by changing the number of replicas of the layout.

    Only what ZeRO shards shrinks with more replicas; the rest must fit on its own.
    """
    step = _gpu_count_granularity(layout)

    @functools.cache
    def compute_range(multiple: int) -> MemoryRange:
        return _compute_memory_range(model, dataclasses.replace(typed, gpus=multiple * step), limit)

    def find_fewest(read: Callable[[MemoryRange], float]) -> int | None:
        def is_too_large(multiple: int) -> bool:
            return read(compute_range(multiple)) > limit

        if not is_too_large(1):  # A GPU by itself has less overhead than each of two.
            return step
        most = _MOST_GPUS // step
        if is_too_large(most):
            return None
        return step * (find_largest_fit(is_too_large, layout.gpus // step, most) + 1)

    return FewestGpusByCertainty(
        find_fewest(lambda memory: memory.low),
        find_fewest(lambda memory: memory.central),
        find_fewest(lambda memory: memory.high),
    )


def _gpu_count_granularity(layout: ParallelLayout) -> int:
    """Return the GPUs of which a job with this layout has a multiple."""
    replica_ranks = layout.tensor * layout.context
    replicas = layout.expert // math.gcd(layout.expert, replica_ranks)
    return replica_ranks * layout.pipeline * replicas


_MOST_GPUS = 1_000_000


def find_longest_sure_sequence(result: TrainingMemoryResult, **changes: Any) -> int:
    """Return the longest sequence that surely fits with changed inputs; 0 if none does."""
    most = int(input_specs(TrainingMemoryInputs)["sequence"].maximum or result.inputs.sequence)
    return find_largest_fit(
        lambda tokens: surely_fits_with_changed_inputs(result, sequence=tokens, **changes),
        result.inputs.sequence,
        most,
    )


def find_verdict_changes(result: TrainingMemoryResult) -> tuple[VerdictChange, ...]:
    """Return what would make a job fit that is too large, and where one that fits ends.

    Its own verdict bears out each: “fits” is said of values with which it surely does.
    """
    inputs = result.inputs
    changes = [
        *_gpu_count_changes(result),
        *_sequence_changes(result),
        *_qlora_fp32_embedding_changes(result),
        *_transformers_framework_changes(result),
    ]
    for remedy in result.memory_remedies:
        spec = input_specs(TrainingMemoryInputs)[remedy.field]
        labels = dict(spec.choices)
        now, then = labels[getattr(inputs, remedy.field)], labels[remedy.value]
        becomes = _sure_fit_verdict_after_change(result) if remedy.is_sure else _MAY_FIT
        changes.append(VerdictChange(remedy.field, spec.label, now, then, becomes))
    # What makes it fit goes before what may, and where it no longer does.
    return tuple(
        sorted(
            (_mark_change_if_tight_fit(result, change) for change in changes),
            key=lambda change: change.verdict_after.startswith(("No", "May")),
        )
    )


def _mark_change_if_tight_fit(result: TrainingMemoryResult, change: VerdictChange) -> VerdictChange:
    """Return the change with the words of the verdict that its values lead to."""
    if change.verdict_after not in (_FITS, _FITS_AT_HIGH_END):
        return change
    typed = {**non_default_inputs_to_query(result.typed_inputs), **change.typed_values_by_field}
    changed = parse_inputs(TrainingMemoryInputs, typed)
    limit = result.memory_limit
    is_tight = (
        memory_status(_compute_memory_range(result.model, changed, limit).central, limit) == "tight"
    )
    plain = list_input_changes_to_plain_trainer(changed)
    if plain and changed.method != "full":
        trainer = dataclasses.replace(changed, **plain)
        is_tight |= _compute_memory_range(result.model, trainer, limit).high > limit
    return dataclasses.replace(change, verdict_after=TIGHT_FIT) if is_tight else change


def list_input_changes_to_plain_trainer(inputs: TrainingMemoryInputs) -> dict[str, str]:
    """Return the inputs that count the Trainer without TRL; none where they are chosen.

    Adapters may be trained with it if their framework is left open.
    """
    changes = {}
    if inputs.framework == USUAL and inputs.method != "full":
        changes["framework"] = "transformers"
    elif inputs.framework != "transformers":
        return {}
    if inputs.loss == USUAL and not inputs.fused_loss:
        changes["loss"] = "transformers"
        if inputs.method == "qlora":
            changes["qlora_embeddings"] = "fp32"
    return changes


_FITS, _MAY_FIT = "Fits.", "May fit."
_FITS_AT_HIGH_END = "Fits even at the high end of the range."


def _sure_fit_verdict_after_change(result: TrainingMemoryResult) -> str:
    fits = result.fullest_stage_memory.total <= result.memory_limit
    return _FITS_AT_HIGH_END if fits else _FITS


def _gpu_count_changes(result: TrainingMemoryResult) -> tuple[VerdictChange, ...]:
    """Return the fewest GPUs that surely fit, or else that may; none if there are as many.

    If more are needed, as many as people have: 1, 2, 4 or 8, or whole machines.
    """
    now, sure = result.inputs.gpus, result.fewest_gpus.surely
    is_too_large = result.fullest_stage_memory.total > result.memory_limit
    gpus, becomes = sure, _sure_fit_verdict_after_change(result)
    if sure is None:
        gpus, becomes = result.fewest_gpus.by_central_estimate if is_too_large else None, _MAY_FIT
    elif result.surely_fits:
        becomes = "The fewest that fit."
    if not gpus or gpus == now or (gpus < now and not result.surely_fits):
        return ()
    if gpus > now:
        usual = round_up_to_usual_gpu_count(gpus, _gpu_count_granularity(result.layout))
        gpus = usual if usual <= _MOST_GPUS else gpus
    return (VerdictChange("gpus", "GPUs", str(now), str(gpus), becomes),)


def _qlora_fp32_embedding_changes(result: TrainingMemoryResult) -> tuple[VerdictChange, ...]:
    """Return embeddings and head in FP32 if a QLoRA that surely fits may not fit with them."""
    if result.inputs.method != "qlora" or not result.surely_fits:
        return ()
    if surely_fits_with_changed_inputs(result, qlora_embeddings="fp32"):
        return ()
    return (_build_no_longer_fits_change(result, "qlora_embeddings", "fp32"),)


def _transformers_framework_changes(result: TrainingMemoryResult) -> tuple[VerdictChange, ...]:
    """Return Transformers if adapters that surely fit in the usual framework may not in it."""
    inputs = result.inputs
    if inputs.method == "full" or inputs.framework != USUAL or not result.surely_fits:
        return ()
    if surely_fits_with_changed_inputs(result, framework="transformers"):
        return ()
    return (_build_no_longer_fits_change(result, "framework", "transformers"),)


def _build_no_longer_fits_change(
    result: TrainingMemoryResult, field: str, value: str
) -> VerdictChange:
    """Return the change to a choice with which a job that surely fits may not fit."""
    change: dict[str, Any] = {field: value}
    changed = dataclasses.replace(result.typed_inputs, **change)
    least = _compute_memory_range(result.model, changed, result.memory_limit).low
    becomes = "May not fit." if least <= result.memory_limit else "No longer fits."
    spec = input_specs(TrainingMemoryInputs)[field]
    labels = dict(spec.choices)
    now = labels[getattr(result.inputs, field)]
    return VerdictChange(field, spec.label, now, labels[value], becomes)


def _sequence_changes(result: TrainingMemoryResult) -> tuple[VerdictChange, ...]:
    """Return the first sequence that may not fit, or else the longest that surely fits.

    Without one that surely fits, the longest that may.
    """
    now = result.inputs.sequence
    if result.surely_fits:
        most = int(input_specs(TrainingMemoryInputs)["sequence"].maximum or now)
        longest = find_longest_sure_sequence(result)
        then, becomes = longest + 1 if longest < most else 0, "May not fit."
    else:
        then = find_largest_fit(
            lambda tokens: surely_fits_with_changed_inputs(result, sequence=tokens), now, now - 1
        )
        becomes = _sure_fit_verdict_after_change(result)
    if not then and result.fullest_stage_memory.total > result.memory_limit:
        then = find_largest_fit(
            lambda tokens: fits_central_estimate_with_changed_inputs(result, sequence=tokens),
            now,
            now - 1,
        )
        becomes = _MAY_FIT
    if not then:
        return ()
    now_text, then_text = (format_value(tokens, "token") for tokens in (now, then))
    return (VerdictChange("sequence", "Sequence", now_text, then_text, becomes),)
