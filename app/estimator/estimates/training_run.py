"""`training-run`: a whole run, composed of sections from memory to cost."""

import dataclasses
import functools
import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Protocol, TypeVar

from app.estimator import common_inputs
from app.estimator.common_inputs import COST, NETWORK
from app.estimator.estimates.composition import (
    LEFT_OUT,
    NOTE,
    ComposedResult,
    SectionComposer,
    add_cost_section,
    add_network_section,
    add_power_section,
    declare_section_output,
    find_reason_for_no_cluster,
    find_typed_or_first_system,
    system_input,
)
from app.estimator.estimates.cost import CostInputs
from app.estimator.estimates.fabric import FabricInputs
from app.estimator.estimates.parallelism_plan import (
    ParallelismPlanInputs,
    list_gpu_counts_for_typed_batch,
)
from app.estimator.estimates.parallelism_plan_report import UNDIVIDED_LEAD, describe_batch
from app.estimator.estimates.power_cooling import PowerCoolingInputs
from app.estimator.estimates.storage import StorageInputs
from app.estimator.estimates.training_time import (
    USUAL_GPUS,
    TrainingTimeInputs,
    round_up_to_divisible_gpu_count,
)
from app.estimator.formula_steps import StepBuilder, format_term
from app.estimator.hardware.catalog import Accelerator, System, find_accelerator
from app.estimator.hardware.collectives import build_gpu_interconnect
from app.estimator.hardware.prices import rental_price_source_notes
from app.estimator.inputs import reuse_input
from app.estimator.memory.model_states import build_trained_weights
from app.estimator.memory.parallel_layout import default_batch_tokens
from app.estimator.models.lookup import find_model
from app.estimator.registry import EstimateSpec
from app.estimator.result import (
    Estimate,
    FormulaStep,
    ModeledOutput,
    OutputSpec,
    OutputValue,
    SubEstimate,
    Verdict,
    VerdictChange,
    read_figures,
)
from app.estimator.training.run_costs import GPU_MTBF, WRITE_BANDWIDTH, checkpoint_bytes
from app.estimator.training.step_time import (
    LOST_TIME_SHARE,
    find_fastest_usual_plan,
    optimizer_step_time,
)
from app.estimator.training.training_plan import TrainingPlan, find_training_software
from app.estimator.units import format_number, format_value


@dataclasses.dataclass(frozen=True, slots=True)
class TrainingRunInputs:
    model: str = common_inputs.model_input(default="llama-3.1-8b")
    tokens: float = reuse_input(TrainingTimeInputs, "tokens")
    gpu: str = common_inputs.counted_gpu_input(count_field="gpus")
    gpus: int | None = common_inputs.gpus_input(
        default=None,
        kind="count",
        help=f"All GPUs of the job; left empty: about as many whole systems as meet the deadline, "
        f"{USUAL_GPUS} without one, or with adapters as few of 1, 2, 4 and 8 as hold the model.",
    )
    deadline: float | None = reuse_input(
        TrainingTimeInputs,
        "deadline",
        group="Run",
        help=f"The run should be over by then; left empty: no limit, on {USUAL_GPUS} GPUs if "
        "their number is left empty as well.",
    )
    method: str = common_inputs.method_input(group="Run")
    rank: int = common_inputs.rank_input(group="Run")
    targets: str = common_inputs.targets_input(group="Run")
    sequence: int = common_inputs.sequence_input(group="Run")
    global_batch: int | None = reuse_input(ParallelismPlanInputs, "global_batch", group="Run")
    number_format: str = common_inputs.number_format_input(group="Run")
    software: str = common_inputs.training_software_input(group="Run")
    system: str | None = system_input()
    oversubscription: float = reuse_input(FabricInputs, "oversubscription", group=NETWORK.heading)
    write_bandwidth: float | None = reuse_input(
        StorageInputs,
        "write_bandwidth",
        help="What the storage takes from all nodes together.",
        compute_usual_value=lambda _: WRITE_BANDWIDTH,
    )
    read_bandwidth: float = reuse_input(StorageInputs, "read_bandwidth")
    bytes_per_token: float = reuse_input(StorageInputs, "bytes_per_token", group="Storage")
    rack_limit: float | None = reuse_input(
        PowerCoolingInputs, "rack_limit", group="Power", compute_usual_value=None
    )
    site_limit: float | None = reuse_input(PowerCoolingInputs, "site_limit", group="Power")
    pue: float = reuse_input(PowerCoolingInputs, "pue", group="Power")
    usd_per_gpu_hour: float | None = common_inputs.price_input()
    utilisation: float = reuse_input(CostInputs, "utilisation", group=COST.heading)
    price: float = reuse_input(CostInputs, "price", group=COST.heading)
    electricity: float = reuse_input(CostInputs, "electricity", group=COST.heading)


@dataclasses.dataclass(frozen=True, slots=True)
class AllowedGpuCounts:
    """The numbers of GPUs that a run may have: whole systems, and those that divide its batch.

    None has fewer than the `minimum`.
    """

    system_gpus: int
    counts_that_divide_batch: tuple[int, ...] = ()
    minimum: float = 1.0

    def round_up_to_allowed_count(self, gpus: float) -> int:
        """Return the next larger number of GPUs, or the largest.

        >>> [AllowedGpuCounts(8, (8, 16, 32)).round_up_to_allowed_count(gpus) for gpus in (17, 40)]
        [32, 32]
        >>> AllowedGpuCounts(8).round_up_to_allowed_count(17)
        24
        """
        gpus = max(gpus, self.minimum)
        if not self.counts_that_divide_batch:
            return round_up_to_divisible_gpu_count(gpus, self.system_gpus)
        return next(
            (count for count in self.counts_that_divide_batch if count >= gpus),
            self.counts_that_divide_batch[-1],
        )

    def list_allowed_counts_below(self, gpus: int, least: float) -> tuple[int, ...]:
        """Return numbers of GPUs from the least to below `gpus`, the fewest first.

        All of up to 127 systems; of more, those in steps of at most a 64th of them.

        >>> AllowedGpuCounts(8).list_allowed_counts_below(32, 14.5)
        (16, 24)
        >>> AllowedGpuCounts(8).list_allowed_counts_below(2048, 2000)
        (2016,)
        """
        least = max(least, self.minimum)
        step = self.system_gpus << max(0, (gpus // self.system_gpus // 64).bit_length() - 1)
        counts = self.counts_that_divide_batch or range(math.ceil(least / step) * step, gpus, step)
        return tuple(count for count in counts if least <= count < gpus)


class TimedPlan(Protocol):
    @property
    def run_time(self) -> float:
        """Return the time of the whole run [s]; infinite if no layout fits."""


PlanT = TypeVar("PlanT", bound=TimedPlan)


class PlanSection(NamedTuple):
    """The section with the parallelism plan on a number of GPUs."""

    section: SubEstimate

    @property
    def run_time(self) -> float:
        """Return the time of the whole run [s]; infinite if no layout fits."""
        time = self.section.estimate["time"].value
        return math.inf if time is None else float(time)


@dataclasses.dataclass(frozen=True, slots=True)
class TrainingRunResult(ComposedResult):
    """The sections; another number of GPUs is rounded to one of the `allowed_gpu_counts`.

    `larger_plan_meeting_deadline`, on more GPUs, meets a missed deadline or has a layout at all;
    `larger_plan_meeting_deadline_at_slow_end` meets it at the slow end of the range. None if there
    is none. `gpus_for_adapters` are the fewest that hold them, None for full training.
    """

    inputs: TrainingRunInputs
    allowed_gpu_counts: AllowedGpuCounts
    gpu: Accelerator
    gpus: int
    nodes: int
    larger_plan_meeting_deadline: PlanSection | None = None
    larger_plan_meeting_deadline_at_slow_end: PlanSection | None = None
    gpus_for_adapters: int | None = None


def compute_training_run(inputs: TrainingRunInputs) -> TrainingRunResult:
    gpu = find_accelerator(inputs.gpu)
    system = find_typed_or_first_system(gpu, inputs.system)
    run = SectionComposer(inputs)
    counts = _build_allowed_gpu_counts(run, system)
    layout = _choose_and_add_layout(run, counts)
    gpus = layout.gpus
    nodes = math.ceil(gpus / system.gpus) if system else 0
    if layout.training_time_inputs is not None:
        run.add_section(
            "Memory",
            "training-memory",
            _training_memory_inputs(inputs, layout.training_time_inputs, gpus),
        )
        time_inputs = {
            **layout.training_time_inputs,
            "gpus": gpus,
            "checkpoint_time": _checkpoint_write_seconds(inputs),
        }
        reason = find_reason_for_no_cluster(gpu, system, gpus)
        if system is None or reason:
            run.add_section("Time", "training-time", time_inputs)
            run.omission_reason_by_section |= dict.fromkeys(
                ("Network", "Storage", "Power", "Cost"), reason
            )
        else:
            network = add_network_section(run, system, nodes)
            if power := add_power_section(run, system, nodes, network):
                machines = float(power.estimate["machines_typical"].value or 0)
                time_inputs["watts_per_gpu"] = machines / gpus
            time = run.add_section("Time", "training-time", time_inputs)
            if power:
                run.sections.remove(power)
                seconds = min(max(float(time.estimate["time"].value or 0), 60.0), 1e10)
                add_power_section(run, system, nodes, network, duration=seconds)
            run.add_section_or_note_omission("Storage", "storage", _storage_inputs(time))
            add_cost_section(run, system, gpus, {"run": time.estimate["gpu_hours"].value})
    sections = sorted(run.sections, key=lambda section: _SECTION_ORDER.index(section.heading))
    return TrainingRunResult(
        sections=tuple(sections),
        omission_reason_by_section=run.omission_reason_by_section,
        inputs=inputs,
        allowed_gpu_counts=counts,
        gpu=gpu,
        gpus=gpus,
        nodes=nodes,
        larger_plan_meeting_deadline=layout.larger_plan_meeting_deadline,
        larger_plan_meeting_deadline_at_slow_end=layout.larger_plan_meeting_deadline_at_slow_end,
        gpus_for_adapters=layout.gpus_for_adapters,
    )


_SECTION_ORDER = ("Layout", "Memory", "Time", "Network", "Storage", "Power", "Cost")


class ChosenLayout(NamedTuple):
    """The inputs of training-time that say the layout, None if none fits; and the GPUs.

    For the others see `TrainingRunResult`.
    """

    training_time_inputs: dict[str, Any] | None
    gpus: int
    larger_plan_meeting_deadline: PlanSection | None = None
    larger_plan_meeting_deadline_at_slow_end: PlanSection | None = None
    gpus_for_adapters: int | None = None


def _build_allowed_gpu_counts(composer: SectionComposer, system: System | None) -> AllowedGpuCounts:
    inputs = composer.inputs
    if inputs.method != "full":
        return AllowedGpuCounts(min(system.gpus if system else 1, inputs.gpus or 1))
    system_gpus = system.gpus if system else 1
    machine_gpus = min(system_gpus, inputs.gpus or system_gpus)
    with composer.map_section_errors_to_own_inputs():
        plan_inputs = composer.merge_section_inputs_with_own(
            "parallelism-plan", {"gpus": machine_gpus}
        )
    of_batch = list_gpu_counts_for_typed_batch(plan_inputs, find_model(inputs.model))
    return AllowedGpuCounts(machine_gpus, tuple(n for n in of_batch if n % machine_gpus == 0))


# The figures of a layout that are inputs of training-time by the same name.
_LAYOUT_FIELD_NAMES = (
    "tensor_parallel",
    "pipeline_parallel",
    "context_parallel",
    "expert_parallel",
    "interleave",
    "micro_batch",
    "global_batch",
    "recompute",
    "zero",
)
_MOST_SEARCHES = 4
_LEAST_BEFORE_ROUNDING = 0.85  # A number that divides well is at most an eighth more.
# Where no layout fits on so many, the states are not what is too large.
_LARGE_CLUSTER_GPU_COUNT = 4096


def _choose_and_add_layout(composer: SectionComposer, counts: AllowedGpuCounts) -> ChosenLayout:
    """Choose the layout and the GPUs, and add the section that they are from.

    Adapters are trained in copies: on one GPU, or with states divided over all.
    """
    inputs = composer.inputs
    if inputs.method != "full":
        fewest = _count_gpus_for_adapters(composer)
        gpus = inputs.gpus or fewest
        return ChosenLayout(_adapter_layout_inputs(gpus), gpus, gpus_for_adapters=fewest)
    gpus = inputs.gpus or counts.round_up_to_allowed_count(_guess_gpus_for_deadline(inputs))
    compute_plan = functools.partial(_compute_plan_section, composer)
    chosen = compute_plan(gpus)
    plans = {gpus: chosen}
    if not inputs.gpus:
        limit = inputs.deadline or math.inf
        chosen = find_smallest_timely_or_largest_plan(compute_plan, plans, gpus, counts, limit)
    gpus = chosen.section.inputs.gpus
    time = chosen.section.estimate["time"]
    later: list[PlanSection | None] = [None, None]
    if inputs.gpus and math.isinf(chosen.run_time):
        found = find_smallest_timely_or_largest_plan(compute_plan, plans, gpus, counts, math.inf)
        later[0] = found if math.isfinite(found.run_time) else None
    for number, seconds in enumerate((chosen.run_time, time.high)):
        if inputs.deadline and seconds and inputs.deadline < seconds < math.inf:
            limit = inputs.deadline * chosen.run_time / seconds
            found = find_smallest_timely_or_largest_plan(compute_plan, plans, gpus, counts, limit)
            later[number] = found if found.run_time <= limit else None
    composer.sections.append(chosen.section)
    figures = chosen.section.estimate
    layout = (
        {name: figures[name].value for name in _LAYOUT_FIELD_NAMES}
        if figures["fits"].value
        else None
    )
    return ChosenLayout(layout, gpus, later[0], later[1])


def _adapter_layout_inputs(gpus: int) -> dict[str, Any]:
    return {"zero": "0" if gpus == 1 else "3"}


def _count_gpus_for_adapters(composer: SectionComposer) -> int:
    """Return the fewest of 1, 2, 4 and 8 GPUs that hold the model; 1 if none does."""
    for gpus in (1, 2, 4, 8):
        values = _training_memory_inputs(composer.inputs, _adapter_layout_inputs(gpus), gpus)
        memory = composer.compute_section("Memory", "training-memory", values)
        if memory.estimate["fits"].value:
            return gpus
    return 1


def _compute_plan_section(composer: SectionComposer, gpus: int) -> PlanSection:
    return PlanSection(composer.compute_section("Layout", "parallelism-plan", {"gpus": gpus}))


def find_smallest_timely_or_largest_plan(
    compute_plan: Callable[[int], PlanT],
    known_plans_by_gpu_count: dict[int, PlanT],
    first_gpu_count: int,
    counts: AllowedGpuCounts,
    max_run_seconds: float,
) -> PlanT:
    """Return the plan on the fewest whole systems that take no longer than the limit [s].

    GPU-hours hardly depend on the number of GPUs, so a few searches from the first number find one
    that divides well; fewer are tried from where the least GPU-hours so far would be in time.
    `known_plans_by_gpu_count` must hold the plan on `first_gpu_count`; new ones are added.
    If none is in time, the plan is one on the most GPUs.
    """
    for _ in range(_MOST_SEARCHES):
        seconds = known_plans_by_gpu_count[first_gpu_count].run_time
        if math.isinf(seconds) and first_gpu_count >= _LARGE_CLUSTER_GPU_COUNT:
            break
        growth = (
            2.0
            if math.isinf(seconds)
            else 1.0
            if math.isinf(max_run_seconds)
            else seconds / max_run_seconds
        )
        first_gpu_count = counts.round_up_to_allowed_count(first_gpu_count * growth)
        if growth <= 1 and first_gpu_count in known_plans_by_gpu_count:
            break
        if first_gpu_count not in known_plans_by_gpu_count:
            known_plans_by_gpu_count[first_gpu_count] = compute_plan(first_gpu_count)
    fitting = {n: p for n, p in known_plans_by_gpu_count.items() if math.isfinite(p.run_time)}
    in_time = [n for n, plan in fitting.items() if plan.run_time <= max_run_seconds]
    if not in_time:
        return known_plans_by_gpu_count[max(fitting or known_plans_by_gpu_count)]
    fewest = min(in_time)
    least = min(n * plan.run_time for n, plan in fitting.items()) / max_run_seconds
    if least < _LEAST_BEFORE_ROUNDING * fewest:  # Memory decides, not time.
        return known_plans_by_gpu_count[fewest]
    for gpus in counts.list_allowed_counts_below(fewest, least):
        if gpus not in known_plans_by_gpu_count:
            known_plans_by_gpu_count[gpus] = compute_plan(gpus)
        if known_plans_by_gpu_count[gpus].run_time <= max_run_seconds:
            return known_plans_by_gpu_count[gpus]
    return known_plans_by_gpu_count[fewest]


def _guess_gpus_for_deadline(inputs: TrainingRunInputs) -> float:
    """Return about how many GPUs would meet the deadline in the usual layout."""
    if inputs.deadline is None:
        return USUAL_GPUS
    try:
        return guess_gpus_for_run_time(inputs, inputs.deadline)
    except (ValueError, TypeError, KeyError):
        return USUAL_GPUS


def guess_gpus_for_run_time(
    inputs: TrainingRunInputs | ParallelismPlanInputs, run_seconds: float
) -> float:
    """Return about how many GPUs train in this time in the usual layout.

    Raises ValueError or TypeError if the rates of the GPU are not known.
    """
    model, gpu = find_model(inputs.model), find_accelerator(inputs.gpu)
    sequence = min(inputs.sequence, _TOKENS_AT_ONCE)
    wanted = TrainingPlan(
        sequence=sequence,
        micro_batch=_TOKENS_AT_ONCE // sequence,
        number_format=inputs.number_format,
        software=find_training_software(inputs.software, model),
    )
    gpus = float(_FIRST_GUESS)
    for _ in range(2):  # The speed depends on the number of GPUs as well.
        count = max(USUAL_GPUS, round(gpus))
        batch = default_batch_tokens(count, inputs.tokens)
        plan = find_fastest_usual_plan(model, gpu, wanted, count, batch)
        step = optimizer_step_time(model, gpu, build_gpu_interconnect(gpu), plan)
        gpus = (
            inputs.tokens
            / plan.tokens_per_step
            * step.total
            * plan.gpus
            / (1 - LOST_TIME_SHARE)
            / run_seconds
        )
    return gpus


_FIRST_GUESS = 512
# Shorter sequences are batched, because products with few rows use a GPU poorly.
_TOKENS_AT_ONCE = 8192


def _training_memory_inputs(
    inputs: TrainingRunInputs, layout: Mapping[str, Any], gpus: int
) -> dict[str, Any]:
    """Return the inputs of training-memory, which counts as the plan and the time do."""
    values = {**layout, "gpus": gpus}
    if inputs.method == "full":
        group = math.prod(
            layout[f"{degree}_parallel"] for degree in ("tensor", "pipeline", "context")
        )
        replicas = gpus // group * layout["micro_batch"]
        software = find_training_software(inputs.software, find_model(inputs.model))
        values["micro_batches"] = max(1, values.pop("global_batch") // replicas)
        values |= {"framework": software.framework_id, "fused_loss": software.fuses_loss}
    return values


def _checkpoint_write_seconds(inputs: TrainingRunInputs) -> float:
    """Return the time to write everything that is trained to storage [s]."""
    model = find_model(inputs.model)
    trained = build_trained_weights(inputs, model).trained_parameters(model)
    return min(
        max(checkpoint_bytes(trained) / (inputs.write_bandwidth or WRITE_BANDWIDTH), 0.001), 86400.0
    )


def _storage_inputs(time_section: SubEstimate) -> dict[str, Any]:
    values = {
        "gpus": time_section.inputs.gpus,
        "gpu_rate": time_section.estimate["tokens_per_second_per_gpu"].value,
        "restart": time_section.inputs.restart_time,
    }
    if time_section.inputs.mtbf_per_gpu != GPU_MTBF:
        values["mtbf"] = time_section.inputs.mtbf_per_gpu
    if (
        time_section.inputs.method != "full"
    ):  # Of adapters; `storage` itself counts the whole model.
        values["stall"] = time_section.inputs.checkpoint_time
    return values


_TIME_ESTIMATE_NAME = "training-time"


def _owned_run_cost(result: TrainingRunResult) -> OutputValue:
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


OUTPUTS: tuple[OutputSpec[TrainingRunResult], ...] = (
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


def _default_batch_notes(result: TrainingRunResult) -> tuple[str, ...]:
    """Return the batch of the layout, if nobody typed it."""
    plan = result.find_section("parallelism-plan")
    if plan is None or plan.inputs.global_batch or not plan.estimate["fits"].value:
        return ()
    return (describe_batch(plan.inputs, int(plan.estimate["global_batch"].value or 0)),)


def _lost_time_notes(result: TrainingRunResult) -> tuple[str, ...]:
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


def _power_behind_energy_notes(result: TrainingRunResult) -> tuple[str, ...]:
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


def _find_verdict_changes(result: TrainingRunResult) -> tuple[VerdictChange, ...]:
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


def _build_verdict(result: TrainingRunResult) -> Verdict:
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


def _faster_unsure_layout_text(result: TrainingRunResult) -> str:
    """Name the faster layout that may not fit, if one that surely does was chosen instead."""
    plan = result.find_section("parallelism-plan")
    change = plan.estimate.find_verdict_change("usable_memory") if plan else None
    if change is None:
        return ""
    return (
        f"This layout surely fits. {change.verdict_after.rstrip('.')}: to see it, set the usable "
        f"memory of the parallelism plan to {change.new_value}."
    )


def _build_gpu_hours_or_tried_gpus_step(result: TrainingRunResult) -> tuple[FormulaStep, ...]:
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
