"""`training-run`: verdict, figures and formula steps of a result."""

from collections.abc import Callable

from app.estimator.estimates.training_run import (
    TrainingRunInputs,
    TrainingRunResult,
    compute_training_run,
)
from app.estimator.formula_steps import StepBuilder
from app.estimator.hardware.prices import price_note
from app.estimator.registry import EstimateSpec
from app.estimator.result import (
    Better,
    Estimate,
    FormulaStep,
    Output,
    Status,
    Value,
    Verdict,
    read_figures,
)
from app.estimator.units import format_number

_Run = TrainingRunResult


def _from(estimate: str, figure: str) -> Callable[[_Run], Value]:
    """Read a figure of a section as it stands there."""

    def read(result: _Run) -> Value:
        found = result.find(estimate, figure)
        if found is None:
            return Value(None, note="This section is left out.", applies=False)
        return Value(found.value, found.low, found.high, found.note, found.applies)

    return read


def _figure(
    name: str,
    label: str,
    unit: str,
    better: Better,
    source: tuple[str, str],
    *,
    modeled: bool = False,
    primary: bool = False,
) -> Output[_Run]:
    read = _from(*source)
    return Output(name, label, unit, better, read, modeled=modeled, primary=primary)


_TIME = "training-time"
OUTPUTS: tuple[Output[_Run], ...] = (
    Output("gpus", "GPUs", "GPU", "less", lambda r: r.gpus),
    Output("nodes", "Systems", "node", "less", lambda r: r.nodes or Value(None, applies=False)),
    _figure(
        "per_gpu",
        "Memory on each GPU",
        "B",
        "less",
        ("training-memory", "per_gpu"),
        modeled=True,
    ),
    _figure("fits", "Fits in memory", "", "more", ("training-memory", "fits")),
    _figure("time", "Whole run", "s", "less", (_TIME, "time"), modeled=True, primary=True),
    _figure("gpu_hours", "GPU-hours", "GPU-h", "less", (_TIME, "gpu_hours"), modeled=True),
    _figure("mfu", "MFU", "%", "more", (_TIME, "mfu"), modeled=True),
    _figure("cost", "Cost, rented", "USD", "less", (_TIME, "cost"), modeled=True),
    _figure("run_owned", "Cost, owned", "USD", "less", ("cost", "run_owned"), modeled=True),
    _figure("energy", "Energy", "Wh", "less", (_TIME, "energy"), modeled=True),
    _figure("switches", "Switches", "", "less", ("fabric", "switches")),
    _figure("cables", "Cables", "", "less", ("fabric", "cables")),
    _figure("checkpoint", "One checkpoint", "B", "less", ("storage", "checkpoint")),
    _figure("fast", "Fast storage", "B", "less", ("storage", "fast")),
    _figure("racks", "Racks", "", "less", ("power-cooling", "racks")),
    _figure("site_power", "Power of the site", "W", "less", ("power-cooling", "site_power")),
)
_STEPS = StepBuilder(OUTPUTS, "parallelism")


def estimate(inputs: TrainingRunInputs) -> Estimate:
    """Take the run through all calculators that it concerns."""
    result = compute_training_run(inputs)
    return Estimate(
        name="training-run",
        verdict=_build_verdict(result),
        figures=read_figures(OUTPUTS, result),
        steps=_build_steps(result),
        notes=(
            _SECTIONS,
            *_missing_notes(result),
            *price_note(result.gpu, inputs.usd_per_gpu_hour),
        ),
        sections=result.sections,
    )


_SECTIONS = (
    "Every section is a calculator's result: its link opens the calculator with the same "
    "inputs, where its working and its assumptions are."
)


def _missing_notes(result: _Run) -> tuple[str, ...]:
    """Return one note for each reason why sections are left out."""
    reasons: dict[str, list[str]] = {}
    for heading, reason in result.missing.items():
        reasons.setdefault(reason, []).append(heading)
    return tuple(f"Left out: {', '.join(names)}. {why}" for why, names in reasons.items())


_WORST: tuple[Status, ...] = ("no", "tight")


def _build_verdict(result: _Run) -> Verdict:
    where = f"{format_number(result.gpus)} {result.gpu.name}"
    hours, time = result.find(_TIME, "gpu_hours"), result.find(_TIME, "time")
    layout = result.sections[0].estimate.verdict
    if hours is None or time is None:
        return Verdict("no", "No layout fits.", layout.text)
    cost, power = result.find(_TIME, "cost"), result.find("power-cooling", "site_power")
    parts = [f"{where} take {hours.words}"]
    if cost is not None and cost.value is not None:
        parts.append(f"{cost.words} rented")
    if power is not None and power.value is not None:
        parts.append(f"{power.words} at the site")
    text = f"{', '.join(parts)}."
    for status in _WORST:
        objections = [s for s in result.sections if s.estimate.verdict.status == status]
        if objections:
            named = " ".join(f"{s.heading}: {s.estimate.verdict.lead}" for s in objections)
            return Verdict(status, f"{time.words}.", f"{text} {named}")
    return Verdict("fits" if result.inputs.deadline else "info", f"{time.words}.", text)


def _build_steps(result: _Run) -> tuple[FormulaStep, ...]:
    hours, time = result.find(_TIME, "gpu_hours"), result.find(_TIME, "time")
    if hours is None or time is None:
        return (
            _STEPS.fill(
                "gpus", "[GPUs that were tried]", (result.gpus,), result.gpus, "megatron-2021"
            ),
        )
    seconds = float(time.value or 0)
    return (
        _STEPS.fill(
            "gpu_hours",
            "[GPUs] × [whole run] ÷ [an hour]",
            (result.gpus, (seconds, "s"), (3600.0, "s")),
            float(hours.value or 0),
            "megatron-2021",
        ),
    )


ENTRY = EstimateSpec(
    name="training-run",
    title="Training run, from memory to cost",
    summary="One run entered once: layout, memory, time, network, storage, power and cost.",
    group="End to end",
    inputs=TrainingRunInputs,
    answer=estimate,
    outputs=OUTPUTS,
    first=("time", "gpu_hours", "cost"),
    main=("model", "tokens", "gpu"),
    topic="training-memory",
    is_search=True,
)
