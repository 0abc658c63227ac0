"""`mig`: inputs, result, and the input values where the verdict changes."""

import dataclasses
import re

from app.estimator.common_inputs import ask_gpu, input_error
from app.estimator.hardware.catalog import Accelerator, list_accelerators
from app.estimator.hardware.mig import MigGpu, MigProfile, max_more_instances
from app.estimator.inputs import input_field


@dataclasses.dataclass(frozen=True, slots=True)
class MigInputs:
    """The GPU, and its instances."""

    gpu: str = ask_gpu(
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


_COUNTED = re.compile(r"^(?:(\d{1,3})\s*[x×*]\s*)?(\S.*)$")


def read_instances(card: MigGpu, text: str) -> tuple[MigProfile, ...]:
    """Parse `3g.40gb, 7x 1g.10gb`; the InvalidInputsError names the GPU's profiles."""
    wanted: list[MigProfile] = []
    for word in re.split(r"[,;+\n]+", text):
        match = _COUNTED.match(word.strip())
        if match is None:
            continue
        profile = card.find(match[2])
        if profile is None:
            names = ", ".join(p.name for p in card.profiles)
            message = f"“{match[2]}” is not a profile of this GPU: {names}."
            raise input_error("instances", word.strip(), message)
        wanted += [profile] * min(int(match[1] or 1), 16)
    if not wanted:
        names = ", ".join(p.name for p in card.profiles)
        raise input_error("instances", text, f"Name at least one profile: {names}.")
    return tuple(wanted[:64])


@dataclasses.dataclass(frozen=True, slots=True)
class MigResult:
    """The instances of a GPU; `starts` are their memory slices, None if they don't fit."""

    gpu: Accelerator
    card: MigGpu
    wanted: tuple[MigProfile, ...]
    starts: tuple[int, ...] | None

    @property
    def compute_slices(self) -> int:
        return sum(p.compute_slices for p in self.wanted)

    @property
    def memory_slices(self) -> int:
        return sum(p.memory_slices for p in self.wanted)

    @property
    def memory(self) -> float:
        return sum(p.capacity for p in self.wanted)

    @property
    def more(self) -> int:
        """Return how many of the smallest instances fit beside."""
        if self.starts is None:
            return 0
        return max_more_instances(self.card, self.card.profiles[0], self.wanted)

    @property
    def fits(self) -> bool:
        return self.starts is not None

    @property
    def compute_share(self) -> float:
        return self.compute_slices / self.card.compute_slices

    @property
    def memory_share(self) -> float:
        return self.memory_slices / self.card.memory_slices
