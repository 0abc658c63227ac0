"""The estimate `mig`: profiles and their placement, inputs, result, and verdict."""

import dataclasses
import re
from typing import Any

from app.estimator import data_files
from app.estimator.common_inputs import gpu_input, impossible_input_error
from app.estimator.formula_steps import StepBuilder, format_terms_of_exact_sum
from app.estimator.hardware.catalog import Accelerator, find_accelerator, list_accelerators
from app.estimator.inputs import input_field
from app.estimator.memory_verdict import real_capacity_note
from app.estimator.registry import EstimateSpec
from app.estimator.result import (
    BarSegment,
    Estimate,
    EstimateLink,
    FormulaStep,
    OutputSpec,
    OutputValue,
    ResultTable,
    StackedBar,
    Verdict,
    read_figures,
)

_MIG_CARD_TABLE = ("mig.toml", "card")


@dataclasses.dataclass(frozen=True, slots=True)
class MigProfile:
    """A MIG profile: its slices, its memory [B] and its possible start slices.

    The driver reports another size than the one in its name. The profile of the whole GPU has
    what programs get of the undivided one.
    """

    name: str
    memory_in_name: float
    reported_memory: float | None
    compute_slices: int
    memory_slices: int
    start_slices: tuple[int, ...]
    is_whole_gpu: bool = False

    @property
    def program_visible_bytes(self) -> float:
        """Return the bytes that programs get: as they are reported, or else by the name [B]."""
        return self.reported_memory or self.memory_in_name


@dataclasses.dataclass(frozen=True, slots=True)
class MigGpu:
    id: str
    compute_slices: int
    memory_slices: int
    profiles: tuple[MigProfile, ...]
    source: tuple[str, ...]

    def find_profile(self, name: str) -> MigProfile | None:
        """Return the profile called `name`, as in `1g.10gb`.

        `1g` is the profile of that size with the least memory, on any GPU.
        """
        text = name.strip().lower().removeprefix("mig-").removeprefix("mig ")
        matching = (p for p in self.profiles if text in (p.name, p.name.partition(".")[0]))
        return min(matching, key=lambda p: p.memory_in_name, default=None)


def find_profiles_with_memory(mig_gpu: MigGpu, memory: float) -> tuple[MigProfile, ...]:
    """Return the profiles whose programs get this memory [B], to a thousandth.

    >>> card = find_mig_gpu("h100-sxm5-80")
    >>> [profile.name for profile in find_profiles_with_memory(card, 19.62 * 2**30)]
    ['1g.20gb', '2g.20gb']
    """
    return tuple(
        p for p in mig_gpu.profiles if abs(p.program_visible_bytes - memory) <= 0.001 * memory
    )


def find_mig_gpu(accelerator_id: str) -> MigGpu | None:
    """Return an accelerator with its MIG profiles by its id; None if it has no MIG."""
    row = data_files.load_table_entries_by_id(*_MIG_CARD_TABLE).get(accelerator_id)
    if row is None:
        return None
    undivided = find_accelerator(accelerator_id).engine_visible_memory
    slices = (row["compute_slices"], row["memory_slices"])

    def read_memory(profile: dict[str, Any]) -> float | None:
        if (profile["compute"], profile["memory"]) == slices:
            return undivided
        return profile["reported_gib"] * 2.0**30 if "reported_gib" in profile else None

    return MigGpu(
        id=accelerator_id,
        compute_slices=row["compute_slices"],
        memory_slices=row["memory_slices"],
        profiles=tuple(
            MigProfile(
                name=p["name"],
                memory_in_name=p["memory_gb"] * 1e9,
                reported_memory=read_memory(p),
                compute_slices=p["compute"],
                memory_slices=p["memory"],
                start_slices=tuple(p["starts"]),
                is_whole_gpu=(p["compute"], p["memory"]) == slices,
            )
            for p in row["profiles"]
        ),
        source=tuple(row["source"]),
    )


def list_mig_gpu_ids() -> tuple[str, ...]:
    return tuple(data_files.load_table_entries_by_id(*_MIG_CARD_TABLE))


def find_start_slices(mig_gpu: MigGpu, profiles: tuple[MigProfile, ...]) -> tuple[int, ...] | None:
    """Return a start slice for each of `profiles`; None if they do not fit together.

    Tries every start, largest profiles first; instances never share a slice.
    """
    if sum(p.compute_slices for p in profiles) > mig_gpu.compute_slices:
        return None
    order = sorted(range(len(profiles)), key=lambda i: -profiles[i].memory_slices)
    starts = _find_remaining_start_slices([profiles[i] for i in order], frozenset())
    if starts is None:
        return None
    start_slices = [0] * len(profiles)
    for index, start in zip(order, starts, strict=True):
        start_slices[index] = start
    return tuple(start_slices)


def _find_remaining_start_slices(
    profiles: list[MigProfile], occupied_slices: frozenset[int]
) -> list[int] | None:
    if not profiles:
        return []
    profile, *other_profiles = profiles
    for start in profile.start_slices:
        slices = frozenset(range(start, start + profile.memory_slices))
        if not slices & occupied_slices:
            other_starts = _find_remaining_start_slices(other_profiles, occupied_slices | slices)
            if other_starts is not None:
                return [start, *other_starts]
    return None


def max_more_instances(
    mig_gpu: MigGpu, profile: MigProfile, other_profiles: tuple[MigProfile, ...] = ()
) -> int:
    """Return how many more instances of a profile fit next to the given ones.

    >>> card = find_mig_gpu("a100-sxm4-80")
    >>> max_more_instances(card, card.find_profile("1g.10gb"))
    7
    """
    count = 0
    while find_start_slices(mig_gpu, (*other_profiles, *([profile] * (count + 1)))) is not None:
        count += 1
    return count


@dataclasses.dataclass(frozen=True, slots=True)
class MigInputs:
    gpu: str = gpu_input(
        choices=tuple((a.id, a.name) for a in list_accelerators() if a.mig_instances),
        help="The GPU to divide; only GPUs that have MIG are listed.",
        topic="mig",
    )
    instances: str = input_field(
        "3g, 2g, 1g",
        "Instances",
        kind="text",
        maximum=400,
        help="The profiles to create, with commas between them: 3g.40gb, 2x 1g.10gb. "
        "3g means three compute slices, 40gb the memory; 3g alone takes the profile of "
        "three slices with the least memory. A table of the result lists the profiles "
        "of this GPU.",
        term="multi-instance-gpu-mig",
        group="Partitions",
        topic="mig",
    )


_COUNTED_INSTANCE = re.compile(r"^(?:(\d{1,3})\s*[x×*]\s*)?(\S.*)$")


def parse_instances(mig_gpu: MigGpu, text: str) -> tuple[MigProfile, ...]:
    """Parse `3g.40gb, 7x 1g.10gb`; the InvalidInputsError names the GPU's profiles."""
    mig_profiles: list[MigProfile] = []
    for instance_text in re.split(r"[,;+\n]+", text):
        match = _COUNTED_INSTANCE.match(instance_text.strip())
        if match is None:
            continue
        profile = mig_gpu.find_profile(match[2])
        if profile is None:
            names = ", ".join(p.name for p in mig_gpu.profiles)
            message = f"“{match[2]}” is not a profile of this GPU: {names}."
            raise impossible_input_error("instances", instance_text.strip(), message)
        mig_profiles += [profile] * min(int(match[1] or 1), 16)
    if not mig_profiles:
        names = ", ".join(p.name for p in mig_gpu.profiles)
        raise impossible_input_error("instances", text, f"Name at least one profile: {names}.")
    return tuple(mig_profiles[:64])


@dataclasses.dataclass(frozen=True, slots=True)
class MigResult:
    """The instances of a GPU, and the memory slices where they start; None if they don't fit."""

    gpu: Accelerator
    mig_gpu: MigGpu
    instances: tuple[MigProfile, ...]
    start_slices: tuple[int, ...] | None

    @property
    def compute_slices(self) -> int:
        return sum(p.compute_slices for p in self.instances)

    @property
    def memory_slices(self) -> int:
        return sum(p.memory_slices for p in self.instances)

    @property
    def memory(self) -> float:
        return sum(p.program_visible_bytes for p in self.instances)

    @property
    def max_more_smallest_instances(self) -> int:
        if self.start_slices is None:
            return 0
        return max_more_instances(self.mig_gpu, self.mig_gpu.profiles[0], self.instances)

    @property
    def fits(self) -> bool:
        return self.start_slices is not None

    @property
    def compute_share(self) -> float:
        return self.compute_slices / self.mig_gpu.compute_slices

    @property
    def memory_share(self) -> float:
        return self.memory_slices / self.mig_gpu.memory_slices


OUTPUTS: tuple[OutputSpec[MigResult], ...] = (
    OutputSpec("fits", "Fits", better="more", primary=True),
    OutputSpec("instances", "Instances", read=lambda r: len(r.instances)),
    OutputSpec("memory", "Memory of the instances", "B"),
    OutputSpec("compute_slices", "Compute slices asked for"),
    OutputSpec("memory_slices", "Memory slices asked for"),
    OutputSpec("compute_share", "Share of compute", "%"),
    OutputSpec("memory_share", "Share of memory", "%"),
    OutputSpec(
        "more",
        "Room for more of the smallest",
        better="more",
        read=lambda r: OutputValue(
            r.max_more_smallest_instances, note=f"Of {r.mig_gpu.profiles[0].name}."
        ),
    ),
)
_STEPS = StepBuilder(OUTPUTS, "mig")


def build_verdict(result: MigResult) -> Verdict:
    card, compute_used, memory_used = result.mig_gpu, result.compute_slices, result.memory_slices
    if result.fits:
        is_single = len(result.instances) == 1
        count = "1 instance uses" if is_single else f"{len(result.instances)} instances use"
        text = (
            f"{count} {compute_used} of {card.compute_slices} compute slices and "
            f"{memory_used} of {card.memory_slices} memory slices of the {result.gpu.name}."
        )
        return Verdict("fits", "Fits.", text)
    text = (
        "There are slices enough, but a profile starts only at certain memory "
        "slices, and the instances would overlap."
    )
    for used_slices, kind, limit in (
        (memory_used, "memory slices", card.memory_slices),
        (compute_used, "compute slices", card.compute_slices),
    ):
        if used_slices > limit:
            text = f"The instances ask for {used_slices} {kind}, and the GPU has {limit}."
    return Verdict("no", "Does not fit.", text)


def build_steps(result: MigResult) -> tuple[FormulaStep, ...]:
    profiles = result.instances
    slices = tuple(
        _STEPS.build_step(
            f"{kind}_slices",
            f"sum of the {kind} slices, at most {getattr(result.mig_gpu, f'{kind}_slices')} in all",
            " + ".join(str(getattr(profile, f"{kind}_slices")) for profile in profiles),
            getattr(result, f"{kind}_slices"),
            "mig-guide",
            label=f"{kind.capitalize()} slices",
        )
        for kind in ("compute", "memory")
    )
    sizes = format_terms_of_exact_sum((p.program_visible_bytes for p in profiles), "B")
    formula = "sum of the memory"
    return *slices, _STEPS.build_step(
        "memory", formula, sizes, result.memory, "mig-guide", label="Memory"
    )


def build_memory_slices_bar(result: MigResult) -> StackedBar:
    segments = tuple(BarSegment("other", p.name, p.memory_slices) for p in result.instances)
    limit = f"{result.mig_gpu.memory_slices} memory slices"
    return StackedBar("Memory slices", segments, result.mig_gpu.memory_slices, limit, unit="slice")


def build_profiles_table(result: MigResult) -> ResultTable:
    card, starts = (
        result.mig_gpu,
        tuple(zip(result.instances, result.start_slices or ("no room",) * 64, strict=False)),
    )
    rows = tuple(
        (
            profile.name,
            (profile.memory_in_name, "B"),
            (profile.reported_memory, "B") if profile.reported_memory else "not published",
            f"{profile.compute_slices} of {card.compute_slices}",
            f"{profile.memory_slices} of {card.memory_slices}",
            str(max_more_instances(card, profile)),
            ", ".join(str(start) for p, start in starts if p is profile) or "not asked for",
        )
        for profile in card.profiles
    )
    memory = ("Memory in the name", "Memory for programs")
    slices = ("Compute slices", "Memory slices")
    columns = ("Profile", *memory, *slices, "At most", "Starts at memory slice")
    return ResultTable("Profiles of this GPU", columns, rows)


def build_inference_memory_link(gpu: Accelerator, profile: MigProfile) -> EstimateLink:
    """Return the link to `inference-memory` on one instance, where the model is then chosen."""
    typed = {"gpu": gpu.id, "tensor_parallel": "1"}
    if profile.reported_memory is None:
        typed["shown_memory"] = f"{profile.memory_in_name / 1e9:g} GB"
    elif not profile.is_whole_gpu:
        typed["shown_memory"] = f"{profile.reported_memory / 2**30:g} GiB"
    text = f"Inference memory of a model of your choice on {profile.name}"
    return EstimateLink("inference-memory", text, typed)


def build_notes(result: MigResult) -> tuple[str, ...]:
    isolation_note = (
        "Memory, cache and compute of an instance are its own; instances have neither "
        "NVLink nor peer-to-peer transfers between them."
    )
    notes = [isolation_note]
    notes.append(
        f"{real_capacity_note(result.gpu)} The profile of the whole GPU has what programs get of it "
        "undivided; of the others, what the driver or a program on an instance reports counts."
    )
    if not all(p.reported_memory for p in result.instances):
        notes.append("Where no reading of an instance is published, the size in its name counts.")
    slices = result.mig_gpu.compute_slices
    idle_slices = slices - result.compute_slices
    if result.fits and idle_slices and result.max_more_smallest_instances == 0:
        notes.append(
            f"{idle_slices} of {slices} compute slices stay idle: no memory slice is left for them."
        )
    return tuple(notes)


def estimate(inputs: MigInputs) -> Estimate:
    gpu = find_accelerator(inputs.gpu)
    card = find_mig_gpu(gpu.id)
    if card is None:
        reason = "cannot be partitioned"
        if gpu.mig_instances:
            reason = f"has {gpu.mig_instances} instances, whose profiles are not published"
        message = f"The {gpu.name} {reason}; GPUs that can: {', '.join(list_mig_gpu_ids())}."
        raise impossible_input_error("gpu", inputs.gpu, message)
    instances = parse_instances(card, inputs.instances)
    result = MigResult(gpu, card, instances, find_start_slices(card, instances))
    return Estimate(
        name="mig",
        verdict=build_verdict(result),
        figures=read_figures(OUTPUTS, result),
        steps=build_steps(result),
        pictures=(build_memory_slices_bar(result),),
        tables=(build_profiles_table(result),),
        notes=build_notes(result),
        links=tuple(build_inference_memory_link(gpu, profile) for profile in card.profiles),
    )


ENTRY = EstimateSpec(
    name="mig",
    title="MIG partitions",
    summary="Which instances fit together on one GPU, and what each gets.",
    group="Hardware",
    inputs_type=MigInputs,
    compute_estimate=estimate,
    outputs=OUTPUTS,
    most_important_outputs=("instances", "memory", "more"),
    topic="mig",
)
