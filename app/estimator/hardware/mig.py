"""Multi-Instance GPU profiles and placement."""

import dataclasses

from app.estimator import data_files

_CARDS = ("mig.toml", "card")


@dataclasses.dataclass(frozen=True, slots=True)
class MigProfile:
    """A MIG profile: its slices, its memory [B] and its possible start slices.

    `memory` is the size in its name, `reported` the size that the driver reports.
    """

    name: str
    memory: float
    reported: float | None
    compute_slices: int
    memory_slices: int
    starts: tuple[int, ...]

    @property
    def size(self) -> str:
        """Return the compute part of its name, as in `1g`."""
        return self.name.partition(".")[0]

    @property
    def capacity(self) -> float:
        """Return the usable bytes: as reported by the driver, or else by its name [B]."""
        return self.reported or self.memory


@dataclasses.dataclass(frozen=True, slots=True)
class MigGpu:
    """A GPU that can be partitioned."""

    id: str
    compute_slices: int
    memory_slices: int
    profiles: tuple[MigProfile, ...]
    source: tuple[str, ...]

    def find(self, name: str) -> MigProfile | None:
        """Return the profile called `name`, as in `1g.10gb`.

        `1g` is the profile of that size with the least memory, on any GPU.
        """
        word = name.strip().lower().removeprefix("mig-").removeprefix("mig ")
        named = (p for p in self.profiles if word in (p.name, p.size))
        return min(named, key=lambda p: p.memory, default=None)


def find_card(accelerator: str) -> MigGpu | None:
    """Return the partitions of an accelerator by its id; None if it has none."""
    row = data_files.load_table(*_CARDS).get(accelerator)
    if row is None:
        return None
    return MigGpu(
        id=accelerator,
        compute_slices=row["compute_slices"],
        memory_slices=row["memory_slices"],
        profiles=tuple(
            MigProfile(
                name=p["name"],
                memory=p["memory_gb"] * 1e9,
                reported=p["reported_gib"] * 2.0**30 if "reported_gib" in p else None,
                compute_slices=p["compute"],
                memory_slices=p["memory"],
                starts=tuple(p["starts"]),
            )
            for p in row["profiles"]
        ),
        source=tuple(row["source"]),
    )


def list_mig_gpus() -> tuple[str, ...]:
    """Return the ids of accelerators that can be partitioned."""
    return tuple(data_files.load_table(*_CARDS))


def place_instances(card: MigGpu, wanted: tuple[MigProfile, ...]) -> tuple[int, ...] | None:
    """Return a start slice for each of `wanted`; None if they do not fit together.

    Tries every start, largest profiles first; instances never share a slice.
    """
    if sum(p.compute_slices for p in wanted) > card.compute_slices:
        return None
    order = sorted(range(len(wanted)), key=lambda i: -wanted[i].memory_slices)
    starts = _place_remaining([wanted[i] for i in order], frozenset())
    if starts is None:
        return None
    placed = [0] * len(wanted)
    for index, start in zip(order, starts, strict=True):
        placed[index] = start
    return tuple(placed)


def _place_remaining(left: list[MigProfile], taken: frozenset[int]) -> list[int] | None:
    if not left:
        return []
    profile, *rest = left
    for start in profile.starts:
        slices = frozenset(range(start, start + profile.memory_slices))
        if not slices & taken:
            others = _place_remaining(rest, taken | slices)
            if others is not None:
                return [start, *others]
    return None


def max_more_instances(
    card: MigGpu, profile: MigProfile, beside: tuple[MigProfile, ...] = ()
) -> int:
    """Return how many more instances of a profile fit next to the given ones.

    >>> card = find_card("a100-sxm4-80")
    >>> max_more_instances(card, card.find("1g.10gb"))
    7
    """
    count = 0
    while place_instances(card, (*beside, *([profile] * (count + 1)))) is not None:
        count += 1
    return count
