"""Errors on models, accelerators and sources that a correction has not seen.

The constants of engines and links were fitted on rows that are no cases here, so
they cannot be fitted again. What can be left out is the one factor that would
center the answers of a kind: fitted on all groups but one, it is tried on that one.
"""

import dataclasses
import math
import statistics
from collections.abc import Callable, Iterable
from typing import Literal, Protocol

Group = Literal["model", "accelerator", "source"]
GROUPS: tuple[Group, ...] = ("model", "accelerator", "source")
_FEWEST = 2


class Compared(Protocol):
    """A case with its answer, and the groups that it belongs to."""

    @property
    def expected(self) -> float:
        """The published value."""

    @property
    def predicted(self) -> float | None:
        """The answer, or None."""

    @property
    def calibration(self) -> bool:
        """Whether some constant was fitted on it."""

    @property
    def groups(self) -> tuple[str, str, str]:
        """Its model, its accelerator and its source."""


@dataclasses.dataclass(frozen=True, slots=True)
class HeldOut:
    """Median errors of one kind, its groups left out one after the other.

    `fitted` is the error with the factor of all cases, `held_out` that with the
    factor of the other groups, `worst` the median error of the worst group. Nine of
    ten measurements lie between `low` and `high` times such an answer.
    """

    kind: str
    group: Group
    groups: int
    fitted: float
    held_out: float
    worst: float
    low: float
    high: float


def held_out(kind: str, results: Iterable[Compared]) -> tuple[HeldOut, ...]:
    """Leave out each model, each accelerator and each source of a kind in turn."""
    known = [
        (math.log(r.expected / r.predicted), r.groups)
        for r in results
        if r.predicted and r.predicted > 0 and r.expected > 0 and not r.calibration
    ]
    found = (_by(kind, i, known) for i in range(len(GROUPS)))
    return tuple(f for f in found if f is not None)


def _by(
    kind: str, index: int, known: list[tuple[float, tuple[str, str, str]]]
) -> HeldOut | None:
    by_group: dict[str, list[float]] = {}
    for ratio, groups in known:
        by_group.setdefault(groups[index], []).append(ratio)
    if len(by_group) < _FEWEST or "" in by_group:
        return None
    left = {
        name: _centered(ratios, _others(by_group, name))
        for name, ratios in by_group.items()
    }
    every = sorted(ratio for ratios in left.values() for ratio in ratios)
    whole = [ratio for ratio, _ in known]
    return HeldOut(
        kind=kind,
        group=GROUPS[index],
        groups=len(by_group),
        fitted=_error(_centered(whole, whole)),
        held_out=_error(every),
        worst=max(_error(ratios) for ratios in left.values()),
        low=math.exp(every[_rank(every, 0.05, math.floor)]),
        high=math.exp(every[_rank(every, 0.95, math.ceil)]),
    )


def _others(by_group: dict[str, list[float]], name: str) -> list[float]:
    return [r for other, ratios in by_group.items() if other != name for r in ratios]


def _centered(ratios: list[float], seen: list[float]) -> list[float]:
    """What is left of ratios after the factor that centers those that were seen."""
    middle = statistics.median(seen)
    return [ratio - middle for ratio in ratios]


def _error(ratios: list[float]) -> float:
    """The median of relative errors."""
    return statistics.median(abs(math.exp(-ratio) - 1) for ratio in ratios)


def _rank(ordered: list[float], share: float, towards: Callable[[float], int]) -> int:
    """The place of a share of an ordered list, rounded outwards."""
    return towards(share * (len(ordered) - 1))
