"""`training-time`: verdict, figures, charts and formula steps of a result."""

import dataclasses
from collections.abc import Callable, Mapping

from app.estimator.common_inputs import (
    LEAST_RECOMPUTE,
    chosen_recompute_note,
    fill_in_default_gpu_count,
)
from app.estimator.data_files import rate_with_error_range, time_with_error_range
from app.estimator.estimates.training_time import (
    USUAL_GPUS,
    TrainingTimeInputs,
    TrainingTimeResult,
    build_requested_plan,
    compute_productive_time_share,
    compute_requested_step_time,
    compute_training_time_result,
    fill_in_usual_zero_and_recompute,
    find_bubble_reductions,
    find_first_remedy_that_fits,
    find_gpus_for_deadline,
    find_requested_framework,
    find_verdict_changes,
    validate_inputs,
)
from app.estimator.formula_steps import (
    StepBuilder,
    adapter_training_flops_per_token_formula,
    daly_interval_formula,
    format_sum_in_formula,
    format_term,
    training_flops_per_token_formula,
)
from app.estimator.hardware.catalog import Accelerator, find_accelerator
from app.estimator.hardware.prices import (
    UNKNOWN,
    rental_price_source_notes,
    typed_or_list_price_per_hour,
)
from app.estimator.hardware.throughput import compute_sustained_rates, find_sustained_peak_shares
from app.estimator.inputs import format_value_as_typed, input_specs
from app.estimator.memory.training_memory import plausible_bytes_range
from app.estimator.memory_verdict import (
    MemoryLimit,
    build_memory_verdict,
    real_capacity_note,
    uncertain_fit_note,
)
from app.estimator.models.architecture import Architecture
from app.estimator.models.lookup import find_model
from app.estimator.registry import EstimateSpec, require_estimate
from app.estimator.result import (
    Better,
    Bounds,
    Estimate,
    EstimateLink,
    FormulaStep,
    ModeledOutput,
    OutputSpec,
    OutputValue,
    ResultTable,
    Timeline,
    TimelineSpan,
    Verdict,
    read_figures,
    value_with_range_over,
)
from app.estimator.training.run_costs import (
    daly_checkpoint_interval,
    probability_of_no_failure,
    rental_cost,
)
from app.estimator.training.step_time import OptimizerStepTime, pipeline_bubble
from app.estimator.training.training_plan import RECOMPUTE_TEXTS, TrainingPlan
from app.estimator.units import format_count, format_number, format_value

_Read = Callable[[TrainingTimeResult], float]


def _time_with_error_range_up_to_peak(interval_name: str, value: float, hfu: float) -> OutputValue:
    """Return a training time, or what grows with it, with its error range.

    No chip computes faster than its peak, so that the range begins where the HFU is 100%.
    """
    return time_with_error_range(interval_name, value, floor=value * hfu)


def _rate_with_error_range_up_to_peak(interval_name: str, value: float, hfu: float) -> OutputValue:
    return rate_with_error_range(interval_name, value, ceiling=value / hfu)


def _output_with_step_error_range(
    name: str,
    label: str,
    unit: str,
    read: _Read,
    add_range: Callable[[str, float, float], OutputValue] = _time_with_error_range_up_to_peak,
) -> OutputSpec[TrainingTimeResult]:
    """Declare a time of one step, or a rate, which is better if it is higher."""
    return ModeledOutput(
        name,
        label,
        unit,
        "more" if add_range is _rate_with_error_range_up_to_peak else "less",
        lambda r: add_range(step_error_interval_name(r.model, r.gpu), read(r), r.hfu),
    )


def _step_part_output(name: str, label: str, read: _Read) -> OutputSpec[TrainingTimeResult]:
    """Declare a part of the time of one step, of which the peak says nothing."""
    return ModeledOutput(
        name,
        label,
        "s",
        "less",
        lambda r: time_with_error_range(step_error_interval_name(r.model, r.gpu), read(r)),
    )


def _output_with_run_error_range(
    name: str, label: str, unit: str, read: _Read, *, primary: bool = False
) -> OutputSpec[TrainingTimeResult]:
    """Declare a time of the whole run, or what grows with it."""
    return ModeledOutput(
        name,
        label,
        unit,
        "less",
        lambda r: value_with_run_error_range(r.model, r.gpu, r.hfu, read(r)),
        primary=primary,
    )


def value_with_run_error_range(
    model: Architecture, gpu: Accelerator, hfu: float, value: float
) -> OutputValue:
    """Return what grows with the time of a whole run, with its error range."""
    interval_name = "run-unmeasured" if _name_unmeasured_part(model, gpu) else "run"
    return _time_with_error_range_up_to_peak(interval_name, value, hfu)


def _failure_rate_ranged_output(
    name: str,
    label: str,
    unit: str,
    read: Callable[[TrainingTimeResult, float], float],
    better: Better = "",
) -> OutputSpec[TrainingTimeResult]:
    """Declare an output of the time between failures, with the range of published ones."""
    return ModeledOutput(
        name,
        label,
        unit,
        better,
        lambda r: value_with_range_over(read(r, r.mtbf), (read(r, mtbf) for mtbf in r.mtbf_bounds)),
    )


# Accelerators and layers whose rates were not fitted to training runs.
_UNMEASURED_GPU_GENERATIONS = ("ada", "cdna", "other")


def _name_unmeasured_part(model: Architecture, gpu: Accelerator) -> str:
    """Name the part of a run without measurements; empty if all of it was measured."""
    if find_sustained_peak_shares(gpu.architecture).id in _UNMEASURED_GPU_GENERATIONS:
        return f"training on the {gpu.name}"
    if any(layer.state_elements or layer.mixer.residual_streams for layer, _ in model.layer_counts):
        return "training recurrent layers or several residual streams"
    return ""


def step_error_interval_name(model: Architecture, gpu: Accelerator) -> str:
    if _name_unmeasured_part(model, gpu):
        return "training-unmeasured"
    return "training-routed" if model.is_routed else "training"


def run_error_interval_name(model: Architecture, gpu: Accelerator) -> str:
    return "run-unmeasured" if _name_unmeasured_part(model, gpu) else "run"


def describe_measurements_behind_ranges(model: Architecture, gpu: Accelerator) -> str:
    if unmeasured_part := _name_unmeasured_part(model, gpu):
        return (
            f"No measurements of {unmeasured_part} were fitted yet, so the ranges are wider; none "
            "goes beyond the chip's peak."
        )
    return "Published training runs of such models on such GPUs are behind these ranges."


def _fits_memory(result: TrainingTimeResult) -> OutputValue:
    limit = result.gpu.engine_visible_memory
    note = uncertain_fit_note(limit, *_plausible_memory_range(result))
    return OutputValue(result.memory_per_gpu <= limit, note=note)


def _plausible_memory_range(result: TrainingTimeResult) -> Bounds:
    framework = find_requested_framework(result.inputs, result.model)
    return plausible_bytes_range(result.stage_memory, framework.id)


def _run_cost(result: TrainingTimeResult) -> OutputValue:
    price = typed_or_list_price_per_hour(result.gpu, result.inputs.usd_per_gpu_hour)
    if price is None:
        return OutputValue(None, note=UNKNOWN)
    cost = rental_cost(result.gpu_hours, price)
    return value_with_run_error_range(result.model, result.gpu, result.hfu, cost)


def _expected_failures(result: TrainingTimeResult) -> OutputValue:
    time = value_with_run_error_range(result.model, result.gpu, result.hfu, result.run_seconds)
    return OutputValue(
        result.expected_failures,
        (time.low or result.run_seconds) / result.mtbf_bounds.high,
        (time.high or result.run_seconds) / result.mtbf_bounds.low,
        describe_expected_failures(result.expected_failures, result.mtbf),
    )


def describe_expected_failures(failures: float, mtbf: float) -> str:
    """Return the chance that none of the failures happens, and the time between two [s]."""
    chance = probability_of_no_failure(failures)
    none = "less than 0.1%" if chance < 0.001 else format_value(chance, "%")
    none = "more than 99.9%" if chance > 0.999 else none
    return f"The chance of none is {none}; one every {format_value(mtbf, 's')} on average."


OUTPUTS: tuple[OutputSpec[TrainingTimeResult], ...] = (
    _output_with_step_error_range("step_time", "One step", "s", lambda r: r.step_time.total),
    _output_with_step_error_range(
        "tokens_per_second",
        "Tokens per second",
        "token/s",
        lambda r: r.tokens_per_second,
        _rate_with_error_range_up_to_peak,
    ),
    _output_with_step_error_range(
        "tokens_per_second_per_gpu",
        "Tokens per second and GPU",
        "token/s",
        lambda r: r.tokens_per_second / r.inputs.gpus,
        _rate_with_error_range_up_to_peak,
    ),
    _output_with_step_error_range(
        "mfu", "MFU", "%", lambda r: r.mfu, _rate_with_error_range_up_to_peak
    ),
    _output_with_step_error_range(
        "hfu", "HFU", "%", lambda r: r.hfu, _rate_with_error_range_up_to_peak
    ),
    _output_with_run_error_range("time", "Whole run", "s", lambda r: r.run_seconds, primary=True),
    _output_with_run_error_range("gpu_hours", "GPU-hours", "GPU-h", lambda r: r.gpu_hours),
    _failure_rate_ranged_output(
        "goodput",
        "Useful share of the time",
        "%",
        lambda r, mtbf: compute_productive_time_share(r.inputs, r.checkpoint_stall, mtbf),
        "more",
    ),
    ModeledOutput("failures", "Expected failures", "", "less", _expected_failures),
    OutputSpec(
        "total_flops",
        "Operations of the run",
        "FLOP",
        read=lambda r: r.flops_per_token * r.inputs.tokens,
    ),
    OutputSpec("flops_per_token", "Operations per token", "FLOP", read=lambda r: r.flops_per_token),
    _step_part_output(
        "communication",
        "Exposed communication per step",
        lambda r: r.step_time.exposed_communication,
    ),
    _step_part_output("bubble", "Pipeline bubble per step", lambda r: r.step_time.bubble),
    OutputSpec(
        "bubble_share",
        "Bubble over ideal time",
        "%",
        "less",
        lambda r: pipeline_bubble(r.plan.pipeline, r.plan.micro_batches, r.plan.chunks_per_stage),
    ),
    ModeledOutput(
        "memory",
        "Memory on each GPU",
        "B",
        "less",
        lambda r: OutputValue(r.memory_per_gpu, *_plausible_memory_range(r)),
    ),
    OutputSpec("fits", "Fits in memory", better="more", read=_fits_memory),
    ModeledOutput("cost", "Cost", "USD", "less", _run_cost),
    _output_with_run_error_range("energy", "Energy", "Wh", lambda r: r.site_energy_wh),
    _failure_rate_ranged_output(
        "checkpoint_interval",
        "Time between checkpoints",
        "s",
        lambda r, mtbf: daly_checkpoint_interval(r.checkpoint_stall, mtbf),
    ),
)
_STEPS = StepBuilder(OUTPUTS, "parallelism")

_LABEL_BY_STEP_PART = {
    "matmul": "Matrix products",
    "attention": "Attention",
    "head": "Output head and loss",
    "traffic": "Memory traffic",
    "launch": "Launches and gaps",
    "tensor": "Tensor-parallel traffic",
    "expert": "Expert traffic",
    "context": "Context traffic",
    "gather": "Gathering sharded weights",
    "bubble": "Pipeline bubble",
    "data": "Gradients and weights",
    "optimizer": "Optimizer",
}

_COMMUNICATION_PARTS = {"tensor", "expert", "context", "gather", "data"}


def estimate(inputs: TrainingTimeInputs) -> Estimate:
    typed = fill_in_default_gpu_count(inputs, USUAL_GPUS)
    model, gpu = find_model(typed.model), find_accelerator(typed.gpu)
    validate_inputs(model, typed, gpu)
    inputs = fill_in_usual_zero_and_recompute(model, gpu, typed)
    plan = build_requested_plan(inputs)
    step = compute_requested_step_time(model, gpu, inputs, plan)
    result = compute_training_time_result(model, gpu, inputs, plan, step)
    result = dataclasses.replace(result, chooses_least_recompute=typed.recompute == LEAST_RECOMPUTE)
    if result.memory_per_gpu > gpu.engine_visible_memory:
        result = dataclasses.replace(
            result, memory_remedy=find_first_remedy_that_fits(model, gpu, inputs)
        )
    elif inputs.deadline is not None and result.run_seconds > inputs.deadline:
        result = dataclasses.replace(
            result, gpus_for_deadline=find_gpus_for_deadline(model, gpu, inputs)
        )
    result = dataclasses.replace(result, bubble_reductions=find_bubble_reductions(result))
    return Estimate(
        name="training-time",
        verdict=_build_verdict(result),
        figures=read_figures(OUTPUTS, result),
        steps=_build_steps(result),
        pictures=(build_step_timeline(result.step_time),),
        tables=(_build_step_parts_table(result), _build_run_parts_table(result)),
        notes=(
            *chosen_recompute_note(typed, inputs),
            *_build_notes(result),
            *rental_price_source_notes(gpu, inputs.usd_per_gpu_hour),
            real_capacity_note(gpu),
        ),
        changes=find_verdict_changes(result),
        links=_link_to_parallelism_plan(typed),
    )


def _build_verdict(result: TrainingTimeResult) -> Verdict:
    inputs, gpu = result.inputs, result.gpu
    duration = format_value(result.run_seconds, "s")
    gpus_text = f"{format_number(inputs.gpus)} {gpu.name}"
    if result.memory_per_gpu > gpu.engine_visible_memory:
        memory = MemoryLimit(gpu.engine_visible_memory, gpu.engine_visible_memory, gpu.memory)
        least = _plausible_memory_range(result).low
        verdict = build_memory_verdict(result.memory_per_gpu, memory, inputs.gpus, least)
        text = f"{verdict.text} The run would take {duration}."
        return dataclasses.replace(verdict, text=text)
    mfu_text = f"{result.mfu:.0%} of the peak{_describe_layout(result.plan)}"
    packing_text = _describe_packing_assumption(result)
    if inputs.deadline is None:
        return Verdict("info", f"{duration}.", f"On {gpus_text}, at {mfu_text}.{packing_text}")
    limit = format_value(inputs.deadline, "s")
    text = f"It takes {duration} on {gpus_text}, at {mfu_text}; {limit} are allowed.{packing_text}"
    if result.run_seconds > inputs.deadline:
        return Verdict("no", "Too late.", f"{text}{_suggest_search_for_faster_layout(result)}")
    is_close = result.run_seconds > 0.9 * inputs.deadline
    return Verdict(
        "tight" if is_close else "fits", "Just in time." if is_close else "In time.", text
    )


def _describe_layout(plan: TrainingPlan) -> str:
    """Return the layout that the time is for, as it may not be the fastest; empty on one GPU."""
    if plan.gpus == 1:
        return ""
    degrees = (
        ("tensor", plan.tensor),
        ("pipeline", plan.pipeline),
        ("context", plan.context),
        ("expert", plan.expert),
    )
    parts = [f"{name} parallel {degree}" for name, degree in degrees if degree > 1]
    if plan.data > 1:
        parts.append(f"ZeRO {plan.zero}" + " (FSDP)" * (plan.zero == 3))
    recompute = RECOMPUTE_TEXTS[plan.recompute]
    named = ", ".join(parts)
    return f", with {named} and {recompute}" if named else f", with {recompute}"


def _suggest_search_for_faster_layout(result: TrainingTimeResult) -> str:
    """Say who looks for a faster layout, unless the layout is given or adapters have one only."""
    if result.inputs.method != "full" or not result.chooses_least_recompute:
        return ""
    return " Another layout may be faster: training-run finds the fastest one that surely fits."


def _describe_packing_assumption(result: TrainingTimeResult) -> str:
    """Return what the time of adapters assumes of the data, as a sentence; else nothing.

    Examples for fine-tuning are shorter than a sequence and are often padded, not packed.
    """
    if result.inputs.method == "full":
        return ""
    return (
        f" That is with examples packed into sequences of {format_number(result.inputs.sequence)} "
        "tokens (the input “Sequence”). Without packing, tokens per second of text fall by the "
        "share of padding: count the padding in “Training tokens”."
    )


def micro_batch_stage_time(plan: TrainingPlan, step: OptimizerStepTime) -> float:
    """Return the time of one micro-batch on a stage [s]."""
    busy = step.total - step.bubble - step.data - step.optimizer
    return busy / plan.micro_batches


def build_step_time_formula_step(plan: TrainingPlan, step: OptimizerStepTime) -> FormulaStep:
    formula = "micro-batches × time of one on a stage"
    numbers = f"{format_term(plan.micro_batches)} × "
    numbers += format_term(micro_batch_stage_time(plan, step), "s")
    if plan.pipeline > 1:
        formula += " + (stages − 1) ÷ chunks of a stage × its time on an average stage"
        average = step.bubble * plan.chunks_per_stage / (plan.pipeline - 1)
        numbers += f" + ({plan.pipeline} − 1) ÷ {plan.chunks_per_stage} × "
        numbers += format_term(average, "s")
    return _STEPS.build_step(
        "step_time",
        f"{formula} + gradients and weights + optimizer",
        f"{numbers} + {format_sum_in_formula((step.data, step.optimizer), 's')}",
        step.total,
        "megatron-2021",
    )


def _build_steps(result: TrainingTimeResult) -> tuple[FormulaStep, ...]:
    plan, step = result.plan, result.step_time
    flops_formula = "6 × weights that multiply a token + causal attention"
    flops_numbers = training_flops_per_token_formula(result.model, result.flops_per_token)
    if plan.trained_weights.are_adapters:
        flops_formula = "4 × frozen weights + 6 × weights of the adapters + causal attention"
        flops_numbers = adapter_training_flops_per_token_formula(
            result.model, result.flops_per_token, plan.trained_weights.adapter_parameters
        )
    return (
        _STEPS.build_step(
            "flops_per_token",
            flops_formula,
            flops_numbers,
            result.flops_per_token,
            "lora" if plan.trained_weights.are_adapters else "megatron-2021",
        ),
        _micro_batch_time_formula_step(result),
        build_step_time_formula_step(plan, step),
        build_mfu_step(result),
        *_build_goodput_and_failure_steps(result),
        *_run_cost_steps(result),
    )


def build_mfu_step(result: TrainingTimeResult) -> FormulaStep:
    rate = result.tokens_per_second / result.plan.gpus
    peak = result.gpu.dense_peak_rate(result.plan.number_format) or 1.0
    return _STEPS.build_step_from_template(
        "mfu",
        "[operations per token] × [tokens per second and GPU] ÷ [peak]",
        ((result.flops_per_token, "FLOP"), rate, (peak, "FLOP/s")),
        result.mfu,
        "palm",
        topic="number-formats",
    )


def build_run_time_step(result: TrainingTimeResult) -> FormulaStep:
    step_seconds, useful_share = (result.step_time.total, "s"), (result.productive_time_share, "%")
    return _STEPS.build_step_from_template(
        "time",
        "[tokens] ÷ [tokens per step] × [step] ÷ [useful share]",
        (result.inputs.tokens, result.plan.tokens_per_step, step_seconds, useful_share),
        result.run_seconds,
        "megatron-2021",
    )


def _micro_batch_time_formula_step(result: TrainingTimeResult) -> FormulaStep:
    plan, step, other_parts = result.plan, result.step_time, {"bubble", "data", "optimizer"}
    times = {
        label: getattr(step, n) for n, label in _LABEL_BY_STEP_PART.items() if n not in other_parts
    }
    return FormulaStep(
        "One micro-batch on a stage",
        f"({' + '.join(label.lower() for label in times if times[label])}) ÷ micro-batches",
        f"({format_sum_in_formula(times.values(), 's')}) ÷ {format_term(plan.micro_batches)}",
        micro_batch_stage_time(plan, step),
        "s",
        "megatron-bridge",
        "parallelism",
    )


def _build_goodput_and_failure_steps(result: TrainingTimeResult) -> tuple[FormulaStep, ...]:
    inputs = result.inputs
    stall, mtbf = format_term(result.checkpoint_stall, "s"), format_term(result.mtbf, "s")
    interval, restart = (
        format_term(result.checkpoint_interval, "s"),
        format_term(inputs.restart_time, "s"),
    )
    return (
        _STEPS.build_step(
            "checkpoint_interval",
            *daly_interval_formula(result.checkpoint_stall, result.mtbf),
            result.checkpoint_interval,
            "daly-2006",
            topic="cluster-components",
        ),
        _STEPS.build_step(
            "goodput",
            "(1 − evaluation, repeats and slower steps) × interval ÷ (MTBF × e^(restart ÷ MTBF) × "
            "(e^((interval + stall) ÷ MTBF) − 1)); MTBF is the mean time between failures of the job",
            f"(1 − {format_term(inputs.other_time, '%')}) × {interval} ÷ ({mtbf} × exp({restart} ÷ "
            f"{mtbf}) × (exp(({interval} + {stall}) ÷ {mtbf}) − 1))",
            result.productive_time_share,
            "daly-2006",
            topic="cluster-components",
        ),
        build_run_time_step(result),
        *_failure_and_lost_time_steps(result),
    )


def _failure_and_lost_time_steps(result: TrainingTimeResult) -> tuple[FormulaStep, ...]:
    """Return the failures of the run, and what they and the checkpoints cost."""
    inputs = result.inputs
    _, saving, lost_work, restarts = result.lost_seconds_by_label.values()
    failures = format_term(result.expected_failures)

    def step(
        label: str,
        formula: str,
        numbers: str,
        value: float,
        unit: str = "s",
        source: str = "daly-2006",
    ) -> FormulaStep:
        return FormulaStep(label, formula, numbers, value, unit, source, "cluster-components")

    return (
        step(
            "Mean time between failures of the job (MTBF)",
            "hours between failures of a GPU ÷ GPUs",
            f"{format_term(inputs.mtbf_per_gpu / 3600)} h ÷ {format_term(inputs.gpus)}",
            result.mtbf,
            source="kokolis-2025",
        ),
        _STEPS.build_step_from_template(
            "failures",
            "[whole run] ÷ [MTBF of the job]",
            ((result.run_seconds, "s"), (result.mtbf, "s")),
            result.expected_failures,
            "daly-2006",
            topic="cluster-components",
        ),
        step(
            "Chance of no failure",
            "e^(−expected failures)",
            f"exp(−{format_term(result.expected_failures)})",
            probability_of_no_failure(result.expected_failures),
            "%",
        ),
        step(
            "Time lost to saving checkpoints",
            "computing ÷ (1 − evaluation, repeats and slower steps) ÷ interval × stall; "
            "saves go on during evaluation",
            f"{format_term(result.run_seconds_without_losses, 's')} ÷ "
            f"(1 − {format_term(inputs.other_time, '%')}) ÷ {format_term(result.checkpoint_interval, 's')} × "
            f"{format_term(result.checkpoint_stall, 's')}",
            saving,
        ),
        step(
            "Lost work, done again since the last checkpoint",
            "expected failures × work lost by each, about half an interval; a failure during "
            "evaluation loses it as well",
            f"{failures} × {format_term(result.work_lost_by_failure, 's')}",
            lost_work,
        ),
        step(
            "Time lost to restarts",
            "expected failures × restart, also after a failure during evaluation",
            f"{failures} × {format_term(result.restart_time_per_failure, 's')}",
            restarts,
        ),
    )


def _run_cost_steps(result: TrainingTimeResult) -> tuple[FormulaStep, ...]:
    price = typed_or_list_price_per_hour(result.gpu, result.inputs.usd_per_gpu_hour)
    if price is None:
        return ()
    return (
        _STEPS.build_step_from_template(
            "cost",
            "[GPU-hours] × [price]",
            (result.gpu_hours, (price, "USD/h")),
            rental_cost(result.gpu_hours, price),
            "deepseek-v3",
            topic="cluster-components",
        ),
    )


def build_step_timeline(step: OptimizerStepTime) -> Timeline:
    spans, start = [], 0.0
    for name, label in _LABEL_BY_STEP_PART.items():
        length = getattr(step, name)
        if length <= 0:
            continue
        lane = "Communication" if name in _COMMUNICATION_PARTS else "Computing"
        lane = "Idle" if name == "bubble" else lane
        spans.append(TimelineSpan(lane, label, start, start + length, lane != "Computing"))
        start += length
    return Timeline("Where one step goes", tuple(spans))


def _build_step_parts_table(result: TrainingTimeResult) -> ResultTable:
    times = {label: getattr(result.step_time, name) for name, label in _LABEL_BY_STEP_PART.items()}
    shown = {label: seconds for label, seconds in times.items() if seconds > 0}
    return _build_time_parts_table("Parts of one step", shown, result.step_time.total)


def _build_run_parts_table(result: TrainingTimeResult) -> ResultTable:
    """Return where the time of the whole run goes: computing, and each kind of loss."""
    parts = {"Computing": result.run_seconds_without_losses, **result.lost_seconds_by_label}
    return _build_time_parts_table("Parts of the whole run", parts, result.run_seconds)


def _build_time_parts_table(
    label: str, seconds_by_label: Mapping[str, float], total_seconds: float
) -> ResultTable:
    rows = tuple(
        (part, (time, "s"), (time / total_seconds, "%")) for part, time in seconds_by_label.items()
    )
    return ResultTable(label, ("Part", "Time", "Share"), rows)


def _build_notes(result: TrainingTimeResult) -> tuple[str, ...]:
    plan = result.plan
    notes = [
        describe_measurements_behind_ranges(result.model, result.gpu),
        *_adapter_software_notes(result),
        *_unsearched_layout_notes(result),
        _batch_note(plan, result.inputs.global_batch),
        "Hidden traffic is not drawn: the timeline shows what a step waits for.",
        "MFU counts the causal half of attention and no recomputation.",
    ]
    notes += _older_attention_rate_notes(result)
    if plan.micro_batches < plan.pipeline:
        notes.append("Fewer micro-batches than stages: most of the pipeline idles.")
    if result.inputs.watts_per_gpu is None:
        notes.append(
            f"{format_value(result.watts_per_gpu, 'W')} per GPU with its server assumed, 1.7 times "
            "the card's limit; training-run counts the typical load of its servers instead, as "
            "power-cooling does."
        )
    return tuple(notes)


def _adapter_software_notes(result: TrainingTimeResult) -> tuple[str, ...]:
    if result.inputs.method == "full":
        return ()
    framework = find_requested_framework(result.inputs, result.model)
    note = (
        f"The time of adapters is that of {result.plan.software.label}, their memory that of "
        f"{framework.label}; training-memory also knows that of the Transformers Trainer."
    )
    return (note,)


def _unsearched_layout_notes(result: TrainingTimeResult) -> tuple[str, ...]:
    if result.inputs.method != "full" or result.plan.gpus == 1:
        return ()
    note = (
        "The layout is the one of these inputs, and others may be faster: parallelism-plan and "
        "training-run look for them, and for the same layout they give the same time."
    )
    return (note,)


def _older_attention_rate_notes(result: TrainingTimeResult) -> list[str]:
    """Return the assumed rate of attention, if newer kernels are much faster."""
    if not result.plan.software.has_previous_attention_kernels or not result.step_time.attention:
        return []
    gpu, number_format = result.gpu, result.plan.number_format
    rate, newer_rate = (
        compute_sustained_rates(gpu, number_format, older_kernels=older_kernels).attention
        for older_kernels in (True, False)
    )
    if newer_rate < _MUCH_FASTER * rate:
        return []
    return [
        (
            f"Attention is computed at {format_value(rate, 'FLOP/s')}, counting the scores that the "
            "backward pass computes again. That is measured: in runs of this software on sequences "
            "of 16,384 to 131,072 tokens, most of whose time is attention. With FlashAttention 3, "
            f"as in Megatron Bridge, {format_value(newer_rate, 'FLOP/s')} are assumed."
        )
    ]


_MUCH_FASTER = 1.5


def _batch_note(plan: TrainingPlan, typed_batch: int | None) -> str:
    sequences, tokens = (
        format_count(plan.global_batch, "sequence"),
        format_count(plan.tokens_per_step, "token"),
    )
    note = f"{sequences} with {tokens} per step"
    if typed_batch in {None, plan.global_batch}:
        return f"{note}."
    return (
        f"{note}: the {format_number(typed_batch or 0)} that were typed cannot be divided over "
        f"{format_count(plan.data, 'replica')} with micro-batches of {plan.micro_batch}."
    )


def _link_to_parallelism_plan(inputs: TrainingTimeInputs) -> tuple[EstimateLink, ...]:
    """Return the link to the search for the fastest layout of this run; none for adapters."""
    if inputs.method != "full":
        return ()
    specs = input_specs(require_estimate("parallelism-plan").inputs_type)
    own = input_specs(TrainingTimeInputs)
    typed = {
        name: format_value_as_typed(spec, getattr(inputs, name))
        for name, spec in specs.items()
        if name in own and own[name].quantity == spec.quantity
        if getattr(inputs, name) is not None
    }
    return (EstimateLink("parallelism-plan", "Faster layouts of this run", typed),)


ENTRY = EstimateSpec(
    name="training-time",
    title="Training time",
    summary="How long a run takes, where each step goes, and what it costs.",
    group="Training",
    inputs_type=TrainingTimeInputs,
    compute_estimate=estimate,
    outputs=OUTPUTS,
    most_important_outputs=("time", "tokens_per_second", "mfu", "gpu_hours"),
    main_inputs=("model", "gpu", "gpus"),
    topic="parallelism",
)
