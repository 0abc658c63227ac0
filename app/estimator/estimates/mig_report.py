"""`mig`: verdict, figures, charts and formula steps of a result."""

from app.estimator.common_inputs import input_error
from app.estimator.estimates.mig import MigInputs, MigResult, read_instances
from app.estimator.fits import capacity_note
from app.estimator.formula_steps import StepBuilder, format_sum
from app.estimator.hardware.catalog import find_accelerator
from app.estimator.hardware.mig import find_card, list_mig_gpus, max_more_instances, place_instances
from app.estimator.registry import EstimateSpec
from app.estimator.result import (
    BarSegment,
    Estimate,
    FormulaStep,
    Output,
    ResultTable,
    StackedBar,
    Value,
    Verdict,
    read_figures,
)

OUTPUTS: tuple[Output[MigResult], ...] = (
    Output("fits", "Fits", better="more", primary=True),
    Output("instances", "Instances", read=lambda r: len(r.wanted)),
    Output("memory", "Memory of the instances", "B"),
    Output("compute_slices", "Compute slices asked for"),
    Output("memory_slices", "Memory slices asked for"),
    Output("compute_share", "Share of compute", "%"),
    Output("memory_share", "Share of memory", "%"),
    Output(
        "more",
        "Room for more of the smallest",
        better="more",
        read=lambda r: Value(r.more, note=f"Of {r.card.profiles[0].name}."),
    ),
)
_STEPS = StepBuilder(OUTPUTS, "mig")


def build_verdict(result: MigResult) -> Verdict:
    """Return whether the instances fit together, and the slices they use."""
    card, compute_used, memory_used = result.card, result.compute_slices, result.memory_slices
    if result.fits:
        one = len(result.wanted) == 1
        count = "1 instance uses" if one else f"{len(result.wanted)} instances use"
        text = (
            f"{count} {compute_used} of {card.compute_slices} compute slices and "
            f"{memory_used} of {card.memory_slices} memory slices of the {result.gpu.name}."
        )
        return Verdict("fits", "Fits.", text)
    text = (
        "There are slices enough, but a profile starts only at certain memory "
        "slices, and the instances would overlap."
    )
    for used, kind, limit in (
        (memory_used, "memory slices", card.memory_slices),
        (compute_used, "compute slices", card.compute_slices),
    ):
        if used > limit:
            text = f"The instances ask for {used} {kind}, and the GPU has {limit}."
    return Verdict("no", "Does not fit.", text)


def build_steps(result: MigResult) -> tuple[FormulaStep, ...]:
    """Return the sum of slices, compared with those of the GPU."""
    wanted = result.wanted
    return (
        _STEPS.line(
            "compute_slices",
            f"compute slices of each, at most {result.card.compute_slices} in all",
            " + ".join(str(p.compute_slices) for p in wanted),
            result.compute_slices,
            "mig-guide",
            label="Compute slices",
        ),
        _STEPS.line(
            "memory_slices",
            f"memory slices of each, at most {result.card.memory_slices} in all",
            " + ".join(str(p.memory_slices) for p in wanted),
            result.memory_slices,
            "mig-guide",
            label="Memory slices",
        ),
        _STEPS.line(
            "memory",
            "memory of each",
            format_sum((p.capacity for p in wanted), "B"),
            result.memory,
            "mig-guide",
            label="Memory",
        ),
    )


def build_bar(result: MigResult) -> StackedBar:
    """Return the memory slices of the instances and of the GPU as a bar."""
    segments = tuple(BarSegment("other", p.name, p.memory_slices) for p in result.wanted)
    limit = f"{result.card.memory_slices} memory slices"
    return StackedBar("Memory slices", segments, result.card.memory_slices, limit, unit="slice")


def build_table(result: MigResult) -> ResultTable:
    """Return the profiles of the GPU, with the start slices of chosen instances."""
    card, starts = result.card, tuple(zip(result.wanted, result.starts or (), strict=False))
    rows = tuple(
        (
            profile.name,
            (profile.memory, "B"),
            (profile.reported, "B") if profile.reported else "not published",
            f"{profile.compute_slices} of {card.compute_slices}",
            f"{profile.memory_slices} of {card.memory_slices}",
            str(max_more_instances(card, profile)),
            ", ".join(str(start) for p, start in starts if p is profile) or "–",
        )
        for profile in card.profiles
    )
    memory = ("Memory in the name", "Memory by the driver")
    slices = ("Compute slices", "Memory slices")
    columns = ("Profile", *memory, *slices, "At most", "Starts at memory slice")
    return ResultTable("Profiles of this GPU", columns, rows)


def build_notes(result: MigResult) -> tuple[str, ...]:
    """Return what instances of a GPU share and what is separate."""
    apart = (
        "Memory, cache and compute of an instance are its own; instances have neither "
        "NVLink nor peer-to-peer transfers between them."
    )
    notes = [apart, capacity_note(result.gpu)]
    if not all(p.reported for p in result.wanted):
        notes.append("Where no reading of an instance is published, the size in its name counts.")
    slices = result.card.compute_slices
    idle = slices - result.compute_slices
    if result.fits and idle and result.more == 0:
        notes.append(
            f"{idle} of {slices} compute slices stay idle: no memory slice is left for them."
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
    result = MigResult(gpu, card, wanted, place_instances(card, wanted))
    return Estimate(
        name="mig",
        verdict=build_verdict(result),
        figures=read_figures(OUTPUTS, result),
        steps=build_steps(result),
        pictures=(build_bar(result),),
        tables=(build_table(result),),
        notes=build_notes(result),
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
