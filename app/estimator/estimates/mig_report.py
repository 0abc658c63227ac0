"""`mig`: verdict, figures, charts and formula steps of a result."""

from app.estimator.common_inputs import input_error
from app.estimator.estimates.mig import MigInputs, read_instances
from app.estimator.fits import capacity_note
from app.estimator.formula_steps import StepBuilder, format_sum
from app.estimator.hardware.catalog import Accelerator, find_accelerator
from app.estimator.hardware.mig import (
    MigGpu,
    MigProfile,
    find_card,
    list_mig_gpus,
    max_more_instances,
    place_instances,
)
from app.estimator.registry import EstimateSpec
from app.estimator.result import (
    BarSegment,
    Estimate,
    Figure,
    FormulaStep,
    Output,
    ResultTable,
    StackedBar,
    Verdict,
    outputs_by_name,
)

OUTPUTS = (
    Output("fits", "Fits", better="more"),
    Output("instances", "Instances"),
    Output("memory", "Memory of the instances", "B"),
    Output("compute_slices", "Compute slices asked for"),
    Output("memory_slices", "Memory slices asked for"),
    Output("compute_share", "Share of compute", "%"),
    Output("memory_share", "Share of memory", "%"),
    Output("more", "Room for more of the smallest", better="more"),
)
_OUT = outputs_by_name(OUTPUTS)
_WORKING = StepBuilder(_OUT, "mig")


def build_verdict(
    card: MigGpu, gpu: Accelerator, wanted: tuple[MigProfile, ...], starts: object
) -> Verdict:
    """Return whether the instances fit together, and the slices they use."""
    compute_used = sum(p.compute_slices for p in wanted)
    memory_used = sum(p.memory_slices for p in wanted)
    if starts is not None:
        one = len(wanted) == 1
        count = "1 instance uses" if one else f"{len(wanted)} instances use"
        text = (
            f"{count} {compute_used} of {card.compute_slices} compute slices and "
            f"{memory_used} of {card.memory_slices} memory slices of the {gpu.name}."
        )
        return Verdict("fits", "Fits.", text)
    if compute_used > card.compute_slices:
        text = _over_limit_text(compute_used, "compute slices", card.compute_slices)
    elif memory_used > card.memory_slices:
        text = _over_limit_text(memory_used, "memory slices", card.memory_slices)
    else:
        text = (
            "There are slices enough, but a profile starts only at certain memory "
            "slices, and the instances would overlap."
        )
    return Verdict("no", "Does not fit.", text)


def _over_limit_text(inputs: int, what: str, there: int) -> str:
    return f"The instances ask for {inputs} {what}, and the GPU has {there}."


def build_figures(
    card: MigGpu, wanted: tuple[MigProfile, ...], starts: object
) -> tuple[Figure, ...]:
    """Return the slices and memory that the instances use."""
    compute_used = sum(p.compute_slices for p in wanted)
    memory_used = sum(p.memory_slices for p in wanted)
    memory = sum(p.capacity for p in wanted)
    more = max_more_instances(card, card.profiles[0], wanted) if starts is not None else 0
    return (
        Figure(_OUT["fits"], starts is not None, primary=True),
        Figure(_OUT["instances"], len(wanted)),
        Figure(_OUT["memory"], memory),
        Figure(_OUT["compute_slices"], compute_used),
        Figure(_OUT["memory_slices"], memory_used),
        Figure(_OUT["compute_share"], compute_used / card.compute_slices),
        Figure(_OUT["memory_share"], memory_used / card.memory_slices),
        Figure(_OUT["more"], more, note=f"Of {card.profiles[0].name}."),
    )


def build_steps(card: MigGpu, wanted: tuple[MigProfile, ...]) -> tuple[FormulaStep, ...]:
    """Return the sum of slices, compared with those of the GPU."""
    computed = sum(p.compute_slices for p in wanted)
    placed = sum(p.memory_slices for p in wanted)
    return (
        _WORKING.line(
            "compute_slices",
            f"compute slices of each, at most {card.compute_slices} in all",
            " + ".join(str(p.compute_slices) for p in wanted),
            computed,
            "mig-guide",
            label="Compute slices",
        ),
        _WORKING.line(
            "memory_slices",
            f"memory slices of each, at most {card.memory_slices} in all",
            " + ".join(str(p.memory_slices) for p in wanted),
            placed,
            "mig-guide",
            label="Memory slices",
        ),
        _WORKING.line(
            "memory",
            "memory of each",
            format_sum((p.capacity for p in wanted), "B"),
            sum(p.capacity for p in wanted),
            "mig-guide",
            label="Memory",
        ),
    )


def build_bar(card: MigGpu, wanted: tuple[MigProfile, ...]) -> StackedBar:
    """Return the memory slices of the instances and of the GPU as a bar."""
    segments = tuple(BarSegment("other", p.name, p.memory_slices) for p in wanted)
    limit = f"{card.memory_slices} memory slices"
    return StackedBar("Memory slices", segments, card.memory_slices, limit, unit="slice")


def build_table(
    card: MigGpu, wanted: tuple[MigProfile, ...], starts: tuple[int, ...] | None
) -> ResultTable:
    """Return the profiles of the GPU, with the start slices of chosen instances."""
    rows = []
    for profile in card.profiles:
        placed = [
            str(start)
            for p, start in zip(wanted, starts or (), strict=starts is not None)
            if p is profile
        ]
        rows.append(
            (
                profile.name,
                (profile.memory, "B"),
                (profile.reported, "B") if profile.reported else "not published",
                f"{profile.compute_slices} of {card.compute_slices}",
                f"{profile.memory_slices} of {card.memory_slices}",
                str(max_more_instances(card, profile)),
                ", ".join(placed) or "–",
            )
        )
    memory = ("Memory in the name", "Memory by the driver")
    slices = ("Compute slices", "Memory slices")
    columns = ("Profile", *memory, *slices, "At most", "Starts at memory slice")
    return ResultTable("Profiles of this GPU", columns, tuple(rows))


def build_notes(
    card: MigGpu,
    gpu: Accelerator,
    wanted: tuple[MigProfile, ...],
    starts: tuple[int, ...] | None,
) -> tuple[str, ...]:
    """Return what instances of a GPU share and what is separate."""
    apart = (
        "Memory, cache and compute of an instance are its own; instances have neither "
        "NVLink nor peer-to-peer transfers between them."
    )
    notes = [apart, capacity_note(gpu)]
    if not all(p.reported for p in wanted):
        notes.append("Where no reading of an instance is published, the size in its name counts.")
    idle = card.compute_slices - sum(p.compute_slices for p in wanted)
    if starts is not None and idle and max_more_instances(card, card.profiles[0], wanted) == 0:
        notes.append(
            f"{idle} of {card.compute_slices} compute slices stay idle: no memory "
            "slice is left for them."
        )
    return tuple(notes)


def estimate(inputs: MigInputs) -> Estimate:
    """Place the instances on the slices of the GPU, or report that they do not fit."""
    gpu = find_accelerator(inputs.gpu)
    card = find_card(gpu.id)
    if card is None:
        why = "cannot be partitioned"
        if gpu.mig_instances:
            why = f"has {gpu.mig_instances} instances, whose profiles are not published"
        message = f"The {gpu.name} {why}; GPUs that can: {', '.join(list_mig_gpus())}."
        raise input_error("gpu", inputs.gpu, message)
    wanted = read_instances(card, inputs.instances)
    starts = place_instances(card, wanted)
    return Estimate(
        name="mig",
        verdict=build_verdict(card, gpu, wanted, starts),
        figures=build_figures(card, wanted, starts),
        steps=build_steps(card, wanted),
        pictures=(build_bar(card, wanted),),
        tables=(build_table(card, wanted, starts),),
        notes=build_notes(card, gpu, wanted, starts),
    )


ENTRY = EstimateSpec(
    name="mig",
    title="MIG partitions",
    summary="Which instances fit together on one GPU, and what each gets.",
    group="Hardware",
    inputs=MigInputs,
    answer=estimate,
    outputs=OUTPUTS,
    first=("instances", "memory", "more"),
    topic="mig",
)
