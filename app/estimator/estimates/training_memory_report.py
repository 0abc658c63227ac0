"""`training-memory`: verdict, figures, charts and formula steps of a result."""

import dataclasses
from collections.abc import Callable

from app.estimator.common_inputs import (
    LEAST_RECOMPUTE,
    USUAL_ZERO,
    chosen_recompute_note,
    fill_in_default_gpu_count,
)
from app.estimator.estimates.training_memory import (
    USUAL_GPUS,
    TrainingMemoryInputs,
    TrainingMemoryResult,
    build_requested_layout,
    build_requested_training_step,
    compute_memory_range_with_changed_inputs,
    compute_requested_stage_memories,
    fill_in_usual_zero_and_recompute,
    find_fewest_gpus,
    find_longest_sure_sequence,
    find_memory_remedies,
    find_requested_framework,
    find_verdict_changes,
    is_head_fp32,
    list_input_changes_to_plain_trainer,
    validate_inputs,
)
from app.estimator.formula_steps import (
    FormulaTexts,
    StepBuilder,
    format_term,
    format_terms_of_exact_sum,
)
from app.estimator.hardware.catalog import Accelerator, find_accelerator
from app.estimator.memory.model_states import (
    LOSS_KERNELS,
    USUAL,
    build_trained_weights,
    state_bytes_per_parameter,
)
from app.estimator.memory.parallel_layout import (
    ParametersPerGpu,
    PipelineStage,
    list_distinct_pipeline_stages,
    micro_batches_in_flight,
    stage_parameters_per_gpu,
)
from app.estimator.memory.training_memory import (
    OVERHEAD_RANGE,
    StageMemory,
    allocated_memory_error_factors,
    bytes_per_logit_of_loss,
    micro_batch_tokens_per_gpu,
    transient_bytes_per_token_of_stage,
)
from app.estimator.memory_verdict import (
    MemoryLimit,
    build_memory_verdict,
    real_capacity_note,
    uncertain_fit_note,
)
from app.estimator.models.lookup import find_model
from app.estimator.registry import EstimateSpec
from app.estimator.result import (
    BarSegment,
    Bounds,
    Estimate,
    FormulaStep,
    ModeledOutput,
    OutputSpec,
    OutputValue,
    ResultTable,
    StackedBar,
    Verdict,
    read_figures,
    value_with_range_factors,
)
from app.estimator.training.training_plan import RECOMPUTE_TEXTS
from app.estimator.units import format_number, format_value
from app.estimator.verdict_changes import describe_fewest_gpus

# Range of measured activations relative to the formula (fused and unfused kernels).
_ACTIVATION_RANGE = Bounds(0.9, 1.25)
_PIPELINE_FRAGMENTS = 1.14
_TEXT_BY_PEAK_MOMENT = {
    "pass": "on the fullest stage",
    "end": "at the end of the backward pass, on the fullest stage",
    "step": "in the optimizer step, on the fullest stage",
}


def _allocated_memory_error_factors(result: TrainingMemoryResult) -> Bounds:
    return allocated_memory_error_factors(
        result.fullest_stage_memory, find_requested_framework(result.inputs).id
    )


def _free_memory(result: TrainingMemoryResult) -> OutputValue:
    low, high = result.memory_bounds
    return OutputValue(
        result.memory_limit - result.fullest_stage_memory.total,
        result.memory_limit - high,
        result.memory_limit - low,
    )


def _fits_memory(result: TrainingMemoryResult) -> OutputValue:
    note = uncertain_fit_note(result.memory_limit, *result.memory_bounds)
    return OutputValue(result.fullest_stage_memory.total <= result.memory_limit, note=note)


def _allocated_peak(result: TrainingMemoryResult) -> OutputValue:
    """Return PyTorch's peak of allocated memory, without the CUDA context."""
    return value_with_range_factors(
        result.fullest_stage_memory.total - result.fullest_stage_memory.overhead,
        _allocated_memory_error_factors(result),
    )


def _reserved_peak(result: TrainingMemoryResult) -> OutputValue:
    framework = find_requested_framework(result.inputs).id
    if not framework.startswith("torch"):
        return OutputValue(None, note="Known for PyTorch FSDP and DeepSpeed.")
    peak = result.fullest_stage_memory.total - result.fullest_stage_memory.overhead
    fragments = _PIPELINE_FRAGMENTS if result.inputs.pipeline_parallel > 1 else 1.0
    return value_with_range_factors(peak * fragments, _allocated_memory_error_factors(result))


def _fewest_gpus(result: TrainingMemoryResult) -> OutputValue:
    """Return the fewest GPUs that surely fit in this layout, with those that may as the low end."""
    low, fewest, sure = result.fewest_gpus
    if fewest is None:
        return OutputValue(None, note="More copies alone do not make it fit.")
    if sure is None:
        note = (
            "May not fit. If the memory is as high as its range allows, more GPUs alone do not "
            "make it fit."
        )
        return OutputValue(fewest, note=note)
    note = f"{describe_fewest_gpus(sure, fewest)} {_describe_layout_of_fewest_gpus(result)}"
    return OutputValue(sure, low, sure, note.strip())


def _describe_layout_of_fewest_gpus(result: TrainingMemoryResult) -> str:
    """Return what stays the same on the fewest GPUs, where parallelism-plan changes everything."""
    typed = result.typed_inputs
    if typed.zero == USUAL_ZERO and typed.recompute == LEAST_RECOMPUTE:
        return "In this layout, with the ZeRO stage and recomputation that they need."
    recompute = RECOMPUTE_TEXTS.get(typed.recompute, "the recomputation that they need")
    zero = "the ZeRO stage that they need" if typed.zero == USUAL_ZERO else f"ZeRO {typed.zero}"
    return f"In this layout, with {zero} and {recompute}; in others fewer may do."


def _modeled_memory_output(
    name: str,
    label: str,
    read: Callable[[TrainingMemoryResult], float],
    range_factors: Bounds = _ACTIVATION_RANGE,
) -> OutputSpec[TrainingMemoryResult]:
    return ModeledOutput(
        name, label, "B", "less", lambda r: value_with_range_factors(read(r), range_factors)
    )


OUTPUTS: tuple[OutputSpec[TrainingMemoryResult], ...] = (
    OutputSpec("weights", "Weights", "B", "less", lambda r: r.fullest_stage_memory.weights),
    OutputSpec("gradients", "Gradients", "B", "less", lambda r: r.fullest_stage_memory.gradients),
    OutputSpec("optimizer", "Optimizer", "B", "less", lambda r: r.fullest_stage_memory.optimizer),
    OutputSpec(
        "copies",
        "Copies of the optimizer step",
        "B",
        "less",
        lambda r: r.fullest_stage_memory.optimizer_step_copies,
    ),
    _modeled_memory_output(
        "activations", "Activations", lambda r: r.fullest_stage_memory.activations
    ),
    _modeled_memory_output("logits", "Logits and loss", lambda r: r.fullest_stage_memory.logits),
    _modeled_memory_output(
        "overhead",
        "Overhead",
        lambda r: r.fullest_stage_memory.overhead + r.fullest_stage_memory.buffers,
        OVERHEAD_RANGE,
    ),
    ModeledOutput(
        "per_gpu",
        "On each GPU",
        "B",
        "less",
        lambda r: OutputValue(r.fullest_stage_memory.total, *r.memory_bounds),
        primary=True,
    ),
    ModeledOutput("allocated", "Allocated by PyTorch", "B", "less", _allocated_peak),
    ModeledOutput("reserved", "Reserved by PyTorch", "B", "less", _reserved_peak),
    ModeledOutput("free", "Free on each GPU", "B", "more", _free_memory),
    OutputSpec("fits", "Fits", better="more", read=_fits_memory),
    ModeledOutput("fewest_gpus", "Fewest GPUs", "GPU", "less", _fewest_gpus),
    OutputSpec("states", "States of the whole model", "B", "less"),
    OutputSpec("weights_total", "Weights of the whole model", "B", "less"),
    OutputSpec("gradients_total", "Gradients of the whole model", "B", "less"),
    OutputSpec("optimizer_total", "Optimizer of the whole model", "B", "less"),
    OutputSpec(
        "bytes_per_parameter",
        "Bytes per parameter",
        "B",
        "less",
        lambda r: r.states / r.model.parameters,
    ),
    OutputSpec("trained", "Trained parameters", "parameter", read=lambda r: r.trained_parameters),
    OutputSpec(
        "host",
        "On the host, per GPU",
        "B",
        "less",
        lambda r: r.fullest_stage_memory.offloaded_to_host,
    ),
)
_STEPS = StepBuilder(OUTPUTS, "training-memory")


def estimate(inputs: TrainingMemoryInputs) -> Estimate:
    typed = fill_in_default_gpu_count(inputs, USUAL_GPUS)
    model = find_model(typed.model)
    gpu = find_accelerator(typed.gpu)
    limit = gpu.engine_visible_memory
    validate_inputs(model, typed, build_requested_layout(dataclasses.replace(typed, zero="1")), gpu)
    inputs = fill_in_usual_zero_and_recompute(model, typed, limit)
    layout = build_requested_layout(inputs)
    memories = compute_requested_stage_memories(model, inputs)
    result = TrainingMemoryResult(
        model=model,
        inputs=inputs,
        typed_inputs=typed,
        gpu=gpu,
        layout=layout,
        state_bytes_per_parameter=state_bytes_per_parameter(inputs.optimizer, inputs.precision),
        trained_weights=build_trained_weights(
            inputs, model, inputs.offload, inputs.qlora_embeddings
        ),
        stage_memories=memories,
        fewest_gpus=find_fewest_gpus(model, typed, layout, limit),
    )
    if not result.surely_fits:
        remedies = find_memory_remedies(result)
        result = dataclasses.replace(result, memory_remedies=remedies)
    memory, bounds = result.fullest_stage_memory, result.memory_bounds
    verdict = build_memory_verdict(
        memory.total, MemoryLimit(limit, limit, gpu.memory), inputs.gpus, *bounds
    )
    text = f"{verdict.text} {_describe_framework_zero_and_recompute(result)}"
    return Estimate(
        name="training-memory",
        verdict=_add_verdict_of_plain_trainer(result, dataclasses.replace(verdict, text=text)),
        figures=read_figures(OUTPUTS, result),
        steps=_build_steps(result),
        pictures=(build_memory_bar(memory, gpu),),
        tables=(_build_pipeline_stages_table(result),) if len(memories) > 1 else (),
        notes=(
            *chosen_recompute_note(typed, inputs),
            *_build_notes(result),
            real_capacity_note(gpu),
        ),
        changes=find_verdict_changes(result),
    )


_ZERO_TEXTS = {
    "0": "ZeRO 0 (nothing divided)",
    "1": "ZeRO 1 (optimizer divided)",
    "2": "ZeRO 2 (optimizer and gradients divided)",
    "3": "ZeRO 3 (FSDP)",
}


def _describe_framework_zero_and_recompute(result: TrainingMemoryResult) -> str:
    parts = []
    if result.trained_weights.are_adapters and result.inputs.framework == USUAL:
        parts.append(find_requested_framework(result.inputs).id)
    if result.layout.zero_shards > 1:
        shards = format_number(result.layout.zero_shards)
        parts.append(f"{_ZERO_TEXTS[result.inputs.zero]} over {shards} GPUs")
    recompute = RECOMPUTE_TEXTS[result.inputs.recompute]
    return f"With {', '.join(parts)} and {recompute}." if parts else f"With {recompute}."


def _build_steps(result: TrainingMemoryResult) -> tuple[FormulaStep, ...]:
    bytes_each, zero, memory = (
        result.state_bytes_per_parameter,
        result.layout.zero,
        result.fullest_stage_memory,
    )
    steps = [
        _state_step(result, "weights", bytes_each.weights, memory.weights, zero >= 3),
        _state_step(result, "gradients", bytes_each.gradients, memory.gradients, zero >= 2),
        _state_step(result, "optimizer", bytes_each.optimizer, memory.optimizer, zero >= 1),
    ]
    if memory.optimizer_step_copies:
        steps.append(
            _state_step(
                result,
                "copies",
                bytes_each.optimizer_step_copy,
                memory.optimizer_step_copies,
                zero >= 1,
            )
        )
    return (*steps, *_activations_to_total_steps(result))


def _state_step(
    result: TrainingMemoryResult,
    output_name: str,
    bytes_per_parameter: float,
    value: float,
    is_sharded: bool,
) -> FormulaStep:
    """Return the step: parameters of the fullest stage, times bytes, over the shards."""
    if not value and result.trained_weights.offloaded_to_host != "none":
        formula, numbers = "waits on the host", "0 B"
    elif output_name == "gradients" and not value:
        formula, numbers = (
            "none yet at the peak, which is before the backward pass makes them",
            "0 B",
        )
    elif result.trained_weights.are_adapters:
        formula, numbers = _adapter_bytes_formula(
            result, output_name, bytes_per_parameter, is_sharded=is_sharded
        )
    else:
        parameters, layout = _fullest_stage_parameters(result), result.layout
        formula = "parameters on this GPU"
        numbers = format_term(parameters.dense_parameters)
        if is_sharded:
            formula += " ÷ shards"
            numbers += f" ÷ {format_term(layout.zero_shards)}"
        if parameters.expert_parameters:
            expert_shards = layout.expert_zero_shards if is_sharded else 1
            formula += " + experts on it" + (" ÷ theirs" if is_sharded else "")
            numbers = f"({numbers} + {format_term(parameters.expert_parameters)} ÷ {expert_shards})"
        formula = f"({formula}) × {format_term(bytes_per_parameter)} B"
        numbers += f" × {format_term(bytes_per_parameter)} B"
    source = "zero"
    if output_name == "copies":
        source = "torch-foreach"
    elif result.trained_weights.are_adapters:
        is_four_bit = result.trained_weights.frozen_bytes_per_parameter < 2
        source = "qlora" if output_name == "weights" and is_four_bit else "lora"
    return _STEPS.build_step(output_name, formula, numbers, value, source)


def _fullest_pipeline_stage(result: TrainingMemoryResult) -> PipelineStage:
    layout, index = result.layout, result.fullest_stage_memory.stage_index
    stages = list_distinct_pipeline_stages(result.model, layout.pipeline, layout.chunks_per_stage)
    return next(stage for stage in stages if stage.index == index)


def _fullest_stage_parameters(result: TrainingMemoryResult) -> ParametersPerGpu:
    return stage_parameters_per_gpu(result.model, _fullest_pipeline_stage(result), result.layout)


def _adapter_bytes_formula(
    result: TrainingMemoryResult, output_name: str, bytes_per_parameter: float, *, is_sharded: bool
) -> FormulaTexts:
    """Return adapters on this GPU as a formula, for weights with the frozen parameters."""
    layout, tuning = result.layout, result.trained_weights
    layer_share = _fullest_pipeline_stage(result).layer_total / result.model.layers
    count = tuning.adapter_parameters * layer_share / layout.tensor
    formula = f"adapters × {format_term(bytes_per_parameter)} B"
    numbers = f"{format_term(count)} × {format_term(bytes_per_parameter)} B"
    if output_name == "weights":
        base = f"{format_term(tuning.frozen_bytes_per_parameter)} B"
        parameters = _fullest_stage_parameters(result)
        frozen = parameters.dense_parameters + parameters.expert_parameters
        formula = f"(frozen × {base} + {formula})"
        numbers = f"({format_term(frozen)} × {base} + {numbers})"
    if is_sharded:
        return FormulaTexts(f"{formula} ÷ shards", f"{numbers} ÷ {layout.zero_shards}")
    return FormulaTexts(formula, numbers)


def _activations_to_total_steps(result: TrainingMemoryResult) -> tuple[FormulaStep, ...]:
    layout, memory = result.layout, result.fullest_stage_memory
    step = build_requested_training_step(result.inputs)
    transient = transient_bytes_per_token_of_stage(
        result.model, _fullest_pipeline_stage(result), layout, step, result.trained_weights
    )
    tokens = micro_batch_tokens_per_gpu(layout, step)
    in_flight = micro_batches_in_flight(transient.stage_index, layout, step.micro_batches)
    saved, working = (
        format_term(transient.saved_activations, "B"),
        format_term(transient.in_use_at_peak, "B"),
    )
    formula = (
        "tokens × (bytes that all layers keep per token × micro-batches in flight + "
        "bytes per token of the layer being computed)"
    )
    numbers = f"{format_term(tokens)} × ({saved} × {format_term(in_flight)} + {working})"
    if memory.peak_moment == "end":
        formula = "tokens × bytes per token of the layer being computed"
        numbers = f"{format_term(tokens)} × {format_term(transient.in_use_in_layer_backward, 'B')}"
    elif memory.peak_moment == "step":
        formula, numbers = "none held at the moment of highest memory use", "0 B"
    states = (memory.weights, memory.gradients, memory.optimizer, memory.optimizer_step_copies)
    parts = (memory.activations, memory.logits, memory.overhead, memory.buffers)
    return (
        _STEPS.build_step("activations", formula, numbers, memory.activations, "korthikanti-2022"),
        _logits_step(result, tokens),
        _STEPS.build_step(
            "overhead",
            f"context, communication and fragmentation{_describe_buffers(result)}",
            format_terms_of_exact_sum((memory.overhead, memory.buffers), "B"),
            memory.overhead + memory.buffers,
            "fsdp",
        ),
        _STEPS.build_step(
            "per_gpu",
            f"states + activations + logits + overhead + buffers, {_TEXT_BY_PEAK_MOMENT[memory.peak_moment]}",
            format_terms_of_exact_sum((*states, *parts), "B"),
            memory.total,
            "zero",
        ),
    )


def _describe_buffers(result: TrainingMemoryResult) -> str:
    """Return what the framework keeps besides states and activations, as a summand; empty if nothing."""
    if not result.fullest_stage_memory.buffers:
        return ""
    if find_requested_framework(result.inputs).preallocates_dummy_gradients:
        return " + a preallocated gradient of each shape of weights"
    if result.layout.pipeline > 1 and result.inputs.offload != "all":
        return " + gathered weights of the stage"
    return " + gathered weights: embeddings, output head and two layers"


def _logits_step(result: TrainingMemoryResult, tokens: float) -> FormulaStep:
    """Return the step for the loss, if it is part of the peak."""
    inputs, memory = result.inputs, result.fullest_stage_memory
    if not memory.logits:
        formula = "none held at the moment of highest memory use"
        return _STEPS.build_step("logits", formula, "0 B", 0.0, "korthikanti-2022")
    kernel, vocabulary = LOSS_KERNELS[inputs.loss], format_term(result.model.vocabulary)
    if kernel.chunk_tokens:
        formula = f"vocabulary × (tokens of a chunk × {kernel.bytes_per_logit:g} B"
        chunk = min(kernel.chunk_tokens, tokens)
        numbers = f"{vocabulary} × ({format_term(chunk)} × {kernel.bytes_per_logit:g} B"
        if not is_head_fp32(inputs):
            formula += " + hidden size × 4 B of a copied head"
            numbers += f" + {format_term(result.model.hidden)} × 4 B"
        formula += ") ÷ tensor parallel, on the last stage"
        numbers += f") ÷ {inputs.tensor_parallel}"
        return _STEPS.build_step("logits", formula, numbers, memory.logits, "korthikanti-2022")
    width = format_term(
        bytes_per_logit_of_loss(
            build_requested_layout(inputs), build_requested_training_step(inputs)
        )
    )
    numbers = f"{format_term(tokens)} × {vocabulary} × {width} B ÷ {inputs.tensor_parallel}"
    formula = f"tokens × vocabulary × {width} B ÷ tensor parallel, on the last stage"
    return _STEPS.build_step("logits", formula, numbers, memory.logits, "korthikanti-2022")


def build_memory_bar(memory: StageMemory, gpu: Accelerator) -> StackedBar:
    limit = gpu.engine_visible_memory
    return StackedBar(
        "Memory of each GPU",
        (
            BarSegment("weights", "Weights", memory.weights),
            BarSegment("gradients", "Gradients", memory.gradients),
            BarSegment("optimizer", "Optimizer", memory.optimizer + memory.optimizer_step_copies),
            BarSegment("activations", "Activations", memory.activations),
            BarSegment("other", "Logits and loss", memory.logits),
            BarSegment("overhead", "Overhead", memory.overhead + memory.buffers),
        ),
        limit,
        f"{format_value(limit, 'B')} of {gpu.name}",
    )


def _build_pipeline_stages_table(result: TrainingMemoryResult) -> ResultTable:
    columns = ("Stage", "States", "Activations", "Logits", "Overhead", "Sum")
    rows = tuple(
        (
            str(memory.stage_index + 1),
            (
                memory.weights + memory.gradients + memory.optimizer + memory.optimizer_step_copies,
                "B",
            ),
            (memory.activations, "B"),
            (memory.logits, "B"),
            (memory.overhead + memory.buffers, "B"),
            (memory.total, "B"),
        )
        for memory in result.stage_memories
    )
    return ResultTable("Pipeline stages that differ", columns, rows)


def _build_notes(result: TrainingMemoryResult) -> tuple[str, ...]:
    inputs, memory = result.inputs, result.fullest_stage_memory
    notes = [] if inputs.framework != USUAL else [_usual_framework_note(result)]
    notes += _recipe_notes(result)
    if inputs.overhead is None:
        notes.append(f"Overhead of {format_value(memory.overhead, 'B')} per GPU is assumed.")
    if inputs.pipeline_parallel > 1:
        notes.append(
            f"Stage {memory.stage_index + 1} is the fullest: early stages keep the most "
            "micro-batches, the last one the logits."
        )
    if inputs.recompute != "full":
        notes.append(
            "Activations are those of fused kernels; unfused ones keep up to a quarter more."
        )
    notes += _memory_peak_moment_notes(result)
    if result.trained_weights.are_adapters:
        notes.append(
            "Frozen weights have neither gradients nor optimizer; gradients still pass "
            "through them, so most activations stay."
        )
        notes += _qlora_embedding_notes(result)
    if result.trained_weights.offloaded_to_host != "none":
        notes.append(
            f"{format_value(memory.offloaded_to_host, 'B')} per GPU wait on the host and cross PCIe in every step."
        )
    if inputs.optimizer == "muon":
        notes.append("Muon's one moment is counted for every parameter.")
    return tuple(notes)


def _usual_framework_note(result: TrainingMemoryResult) -> str:
    """Name the framework that is assumed, and what adapters need in the Transformers Trainer."""
    label = find_requested_framework(result.inputs).label
    if not result.trained_weights.are_adapters:
        kind = "mixtures of experts" if result.model.is_routed else "dense models"
        return f"The framework is the usual one of {kind}: {label}."
    usual = {"framework": "transformers"}
    plain = list_input_changes_to_plain_trainer(result.typed_inputs)
    recipes = [
        f"the Transformers Trainer as in the measured runs needs {_describe_recipe(result, usual)}"
    ]
    if plain != usual:
        recipes.append(f"the plain Trainer {_describe_recipe(result, plain)}")
        recipes.append(f"TRL's SFTTrainer {_describe_recipe(result, usual | {'loss': 'chunked'})}")
    return (
        f"The framework is the usual one of adapters: {label}. With others, {'; '.join(recipes)}."
    )


def _recipe_notes(result: TrainingMemoryResult) -> list[str]:
    """Say what the Transformers Trainer is counted with, and what its recipes of today need.

    The default is that of the measured runs of fms-acceleration, which neither recipe has.
    """
    trainer = list_input_changes_to_plain_trainer(result.inputs)
    if not trainer or result.inputs.framework == USUAL:
        return []
    counted, plain = "The loss is counted", "The plain Trainer"
    if "qlora_embeddings" in trainer:
        counted = "Loss, embeddings and output head are counted"
        plain += " with prepare_model_for_kbit_training"
    needs = f"{plain} needs {_describe_recipe(result, trainer)}"
    if result.trained_weights.are_adapters:  # The gradients of a trained head are not counted.
        needs += f"; TRL's SFTTrainer {_describe_recipe(result, {'loss': 'chunked'})}"
    choices = "The input “Loss kernel” counts that"
    if len(trainer) > 1:
        choices += ", with “Embeddings and head in QLoRA”"
    return [f"{counted} as in the measured runs of fms-acceleration. {needs}. {choices}."]


def _add_verdict_of_plain_trainer(result: TrainingMemoryResult, verdict: Verdict) -> Verdict:
    """Return the verdict of adapters that surely fit with that of the plain Trainer if it differs."""
    changes = list_input_changes_to_plain_trainer(result.inputs)
    if not changes or not result.trained_weights.are_adapters or not result.surely_fits:
        return verdict
    memory = compute_memory_range_with_changed_inputs(result, **changes)
    if memory.high <= result.memory_limit:
        return verdict
    fits = "may not fit" if memory.low <= result.memory_limit else "does not fit"
    needed, most = format_value(memory.central, "B"), format_value(memory.high, "B")
    if result.inputs.framework == USUAL:  # Then it is another choice than the one counted.
        other = f"With the plain Transformers Trainer it {fits}: {needed}, up to {most}."
        return dataclasses.replace(verdict, text=f"{verdict.text} {other}")
    other = (
        f"This counts the kernels of measured runs; without them it {fits}: {needed}, up to {most}."
    )
    return Verdict("tight", "Tight.", f"{verdict.text} {other}")


def _describe_recipe(result: TrainingMemoryResult, changes: dict[str, str]) -> str:
    """Return the memory with changed inputs, and the longest sequence that surely fits."""
    needed = compute_memory_range_with_changed_inputs(result, **changes).central
    longest = find_longest_sure_sequence(result, **changes)
    fits = f"sequences to {format_value(longest, 'token')} surely fit" if longest else "none fits"
    return f"{format_value(needed, 'B')} ({fits})"


def _qlora_embedding_notes(result: TrainingMemoryResult) -> list[str]:
    """Return how embeddings and head of a quantized model are counted, and what PEFT adds.

    In 16 bit they are in the measured runs of QLoRA, for example fms-acceleration's.
    """
    inputs, layout = result.inputs, result.layout
    if inputs.method != "qlora":
        return []
    table_parameters = result.model.embedding_parameters + result.model.head_parameters
    shards = layout.zero_shards if layout.zero == _FSDP_ZERO_STAGE else 1
    added = format_value(_KBIT_BYTES * table_parameters / layout.tensor / shards, "B")
    if inputs.qlora_embeddings == "fp32":
        return [
            (
                "Embeddings and output head are counted in FP32, as prepare_model_for_kbit_training "
                f"of PEFT casts them: {added} more than in 16 bit. Norms in FP32 can make activations "
                "larger, too."
            )
        ]
    return [
        (
            f"Embeddings and output head stay in 16 bit, as in {_name_qlora_recipe(inputs)} and in "
            "the measured runs. prepare_model_for_kbit_training of PEFT, which other recipes call, casts them to "
            f"FP32, which adds {added}; the input “Embeddings and head in QLoRA” counts that."
        )
    ]


def _name_qlora_recipe(inputs: TrainingMemoryInputs) -> str:
    is_torchtune = find_requested_framework(inputs).id == "torchtune"
    return "torchtune" if is_torchtune else "TRL's SFTTrainer"


# FP32 instead of 16 bit: huggingface/peft, issue 816. TRL no longer casts them since its pull
# requests 4335 and 4577 of October and November 2025.
_KBIT_BYTES, _FSDP_ZERO_STAGE = 2, 3


def _memory_peak_moment_notes(result: TrainingMemoryResult) -> list[str]:
    """Return when memory use is highest, if it is not the same throughout."""
    if not find_requested_framework(result.inputs).frees_gradients:
        return []
    if result.fullest_stage_memory.peak_moment == "step":
        return ["The peak is in the optimizer step, so shorter sequences alone do not lower it."]
    if result.fullest_stage_memory.gradients:
        return ["Gradients of earlier micro-batches are in memory during the passes."]
    return ["The peak is in the forward and backward pass, while there are no gradients yet."]


ENTRY = EstimateSpec(
    name="training-memory",
    title="Training memory",
    summary="Whether training fits, part by part and stage by stage.",
    group="Memory",
    inputs_type=TrainingMemoryInputs,
    compute_estimate=estimate,
    outputs=OUTPUTS,
    most_important_outputs=("per_gpu", "states", "fewest_gpus"),
    main_inputs=("model", "gpu", "gpus"),
    topic="training-memory",
)
