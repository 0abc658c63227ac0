"""`training-run`: verdict, figures and formula steps of a result."""

from app.estimator.estimates.composition import LEFT_OUT, NOTE, declare_section_output
from app.estimator.estimates.parallelism_plan_report import UNDIVIDED_LEAD, describe_batch
from app.estimator.estimates.training_run import (
    TrainingRunInputs,
    TrainingRunResult,
    compute_training_run,
)
from app.estimator.formula_steps import StepBuilder, format_term
from app.estimator.hardware.prices import rental_price_source_notes
from app.estimator.registry import EstimateSpec
from app.estimator.result import (
    Estimate,
    FormulaStep,
    ModeledOutput,
    OutputSpec,
    OutputValue,
    Verdict,
    VerdictChange,
    read_figures,
)
from app.estimator.units import format_number, format_value

_RunResult = TrainingRunResult


_TIME_ESTIMATE_NAME = "training-time"


def _owned_run_cost(result: _RunResult) -> OutputValue:
    """Return the cost on machines of one's own, with the range of the GPU-hours."""
    cost, hours = (
        result.find_figure("cost", "run_owned"),
        result.find_figure(_TIME_ESTIMATE_NAME, "gpu_hours"),
    )
    if cost is None or hours is None:
        return LEFT_OUT
    usd_per_hour = float(cost.value or 0) / float(hours.value or 1)
    low, high = (usd_per_hour * (bound or 0) for bound in (hours.low, hours.high))
    return OutputValue(cost.value, low, high)


OUTPUTS: tuple[OutputSpec[_RunResult], ...] = (
    OutputSpec("gpus", "GPUs", "GPU", "less", lambda r: r.gpus),
    OutputSpec(
        "nodes",
        "Systems",
        better="less",
        read=lambda r: r.nodes or OutputValue(None, applies=False),
    ),
    declare_section_output(
        "per_gpu", "Memory on each GPU", "B", "less", "training-memory", is_modeled=True
    ),
    declare_section_output("fits", "Fits in memory", "", "more", "training-memory"),
    declare_section_output(
        "time", "Whole run", "s", "less", _TIME_ESTIMATE_NAME, is_modeled=True, is_primary=True
    ),
    declare_section_output(
        "gpu_hours", "GPU-hours", "GPU-h", "less", _TIME_ESTIMATE_NAME, is_modeled=True
    ),
    declare_section_output("mfu", "MFU", "%", "more", _TIME_ESTIMATE_NAME, is_modeled=True),
    declare_section_output(
        "failures", "Expected failures", "", "less", _TIME_ESTIMATE_NAME, is_modeled=True
    ),
    declare_section_output(
        "cost", "Cost, rented", "USD", "less", _TIME_ESTIMATE_NAME, is_modeled=True
    ),
    ModeledOutput("run_owned", "Cost, owned", "USD", "less", _owned_run_cost),
    declare_section_output("energy", "Energy", "Wh", "less", _TIME_ESTIMATE_NAME, is_modeled=True),
    declare_section_output("switches", "Switches", "", "less", "fabric"),
    declare_section_output("cables", "Cables", "", "less", "fabric"),
    declare_section_output("checkpoint", "One checkpoint", "B", "less", "storage"),
    declare_section_output("fast", "Fast storage", "B", "less", "storage"),
    declare_section_output("racks", "Racks", "", "less", "power-cooling"),
    declare_section_output("site_power", "Power of the site", "W", "less", "power-cooling"),
)
_STEPS = StepBuilder(OUTPUTS, "parallelism")


def estimate(inputs: TrainingRunInputs) -> Estimate:
    result = compute_training_run(inputs)
    return Estimate(
        name="training-run",
        verdict=_build_verdict(result),
        figures=read_figures(OUTPUTS, result),
        steps=_build_gpu_hours_or_tried_gpus_step(result),
        notes=(
            NOTE,
            *_default_batch_notes(result),
            *_lost_time_notes(result),
            *_power_behind_energy_notes(result),
            *result.omission_notes,
            *rental_price_source_notes(result.gpu, inputs.usd_per_gpu_hour),
        ),
        changes=_find_verdict_changes(result),
        sections=result.sections,
    )


def _default_batch_notes(result: _RunResult) -> tuple[str, ...]:
    """Return the batch of the layout, if nobody typed it."""
    plan = result.find_section("parallelism-plan")
    if plan is None or plan.inputs.global_batch or not plan.estimate["fits"].value:
        return ()
    return (describe_batch(plan.inputs, int(plan.estimate["global_batch"].value or 0)),)


def _lost_time_notes(result: _RunResult) -> tuple[str, ...]:
    """Say which part of the time brings no progress, and why."""
    time = result.find_section(_TIME_ESTIMATE_NAME)
    if time is None:
        return ()
    goodput, other_share = float(time.estimate["goodput"].value or 0), time.inputs.other_time
    saves = 1 - goodput / (1 - other_share)
    saves_text = "less than 0.1%" if saves < _LEAST_SHARE else format_value(saves, "%")
    return (
        (
            f"{format_value(goodput, '%')} of the time is progress. Evaluation, repeats and "
            f"slower steps take {format_value(other_share, '%')} of the time between saves and "
            f"failures, an input of training-time; saving and failures take {saves_text} of all."
        ),
    )


_LEAST_SHARE = 0.001


def _power_behind_energy_notes(result: _RunResult) -> tuple[str, ...]:
    """Say which power the energy is counted with, if it follows from the servers."""
    time = result.find_section(_TIME_ESTIMATE_NAME)
    if time is None or time.inputs.watts_per_gpu is None:
        return ()
    watts = format_value(time.inputs.watts_per_gpu, "W")
    note = (
        f"Energy counts {watts} per GPU, the typical load of its server; training-time alone does "
        "not know the server and assumes 1.7 times the card's limit."
    )
    return (note,)


def _find_verdict_changes(result: _RunResult) -> tuple[VerdictChange, ...]:
    """Return the GPUs on which a layout or adapters fit, or those that meet the deadline.

    They meet it as estimated, and at the slow end of the range. For adapters, which are not
    searched for, the first are those of training-time.
    """
    section, deadline = result.find_section(_TIME_ESTIMATE_NAME), result.inputs.deadline
    now = format_number(result.gpus)
    if section is None and result.larger_plan_meeting_deadline:
        gpus = format_number(result.larger_plan_meeting_deadline.section.inputs.gpus)
        return (VerdictChange("gpus", "GPUs", now, gpus, "A layout fits."),)
    if result.gpus_for_adapters and result.gpus_for_adapters > result.gpus:
        gpus = format_number(result.gpus_for_adapters)
        return (VerdictChange("gpus", "GPUs", now, gpus, "Fits in memory."),)
    if section is None or not deadline or (section.estimate["time"].high or 0.0) <= deadline:
        return ()
    safe = "In time even if the run is as slow as the range of the estimate allows."
    if result.inputs.method == "full":
        plans = {
            "In time.": result.larger_plan_meeting_deadline,
            safe: result.larger_plan_meeting_deadline_at_slow_end,
        }
        becomes_by_gpus = {p.section.inputs.gpus: becomes for becomes, p in plans.items() if p}
        return tuple(
            VerdictChange("gpus", "GPUs", now, format_number(gpus), becomes)
            for gpus, becomes in becomes_by_gpus.items()
        )
    changes = [change for change in section.estimate.changes if change.field == "gpus"]
    safe_gpus = result.allowed_gpu_counts.round_up_to_allowed_count(
        result.gpus * (section.estimate["time"].high or 0.0) / deadline
    )
    return (*changes, VerdictChange("gpus", "GPUs", now, format_number(safe_gpus), safe))


def _build_verdict(result: _RunResult) -> Verdict:
    gpus_text = f"{format_number(result.gpus)} {result.gpu.name}"
    hours, time = (
        result.find_figure(_TIME_ESTIMATE_NAME, "gpu_hours"),
        result.find_figure(_TIME_ESTIMATE_NAME, "time"),
    )
    layout = result.sections[0].estimate.verdict
    if hours is None or time is None:
        undivided = layout.lead == UNDIVIDED_LEAD
        return Verdict("no", layout.lead if undivided else "No layout fits.", layout.text)
    cost, power = (
        result.find_figure(_TIME_ESTIMATE_NAME, "cost"),
        result.find_figure("power-cooling", "site_power"),
    )
    parts = [f"{gpus_text} {'take' if result.gpus > 1 else 'takes'} {hours.formatted_value}"]
    if cost is not None and cost.value is not None:
        parts.append(f"{cost.formatted_value} rented")
    if power is not None and power.value is not None:
        parts.append(f"{power.formatted_value} at the site")
    text = f"{', '.join(parts)}."
    status, objections = result.summarize_worst_sections()
    if status == "fits" and not result.inputs.deadline:
        status = "info"
    sentences = (text, objections, _faster_unsure_layout_text(result))
    return Verdict(status, f"{time.formatted_value}.", " ".join(filter(None, sentences)))


def _faster_unsure_layout_text(result: _RunResult) -> str:
    """Name the faster layout that may not fit, if one that surely does was chosen instead."""
    plan = result.find_section("parallelism-plan")
    change = plan.estimate.find_verdict_change("usable_memory") if plan else None
    if change is None:
        return ""
    return (
        f"This layout surely fits. {change.verdict_after.rstrip('.')}: to see it, set the usable "
        f"memory of the parallelism plan to {change.new_value}."
    )


def _build_gpu_hours_or_tried_gpus_step(result: _RunResult) -> tuple[FormulaStep, ...]:
    hours, time = (
        result.find_figure(_TIME_ESTIMATE_NAME, "gpu_hours"),
        result.find_figure(_TIME_ESTIMATE_NAME, "time"),
    )
    if hours is None or time is None:
        return (
            _STEPS.build_step_from_template(
                "gpus", "[GPUs that were tried]", (result.gpus,), result.gpus, "megatron-2021"
            ),
        )
    seconds = float(time.value or 0)
    return (
        _STEPS.build_step(
            "gpu_hours",
            "GPUs × whole run ÷ an hour",
            f"{format_term(result.gpus)} × {format_term(seconds, 's')} ÷ 1 h",
            float(hours.value or 0),
            "megatron-2021",
        ),
    )


ENTRY = EstimateSpec(
    name="training-run",
    title="Training run, from memory to cost",
    summary="One run entered once: layout, memory, time, network, storage, power and cost.",
    group="End to end",
    inputs_type=TrainingRunInputs,
    compute_estimate=estimate,
    outputs=OUTPUTS,
    most_important_outputs=("time", "gpu_hours", "cost"),
    main_inputs=("model", "tokens", "gpu"),
    topic="training-memory",
    is_search=True,
)
