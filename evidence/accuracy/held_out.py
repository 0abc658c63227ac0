"""Errors on models, accelerators and sources that a fit has not seen.

The constants of inference engines are fitted to cases (`evidence.fit_serving`), and
fitted again without each group of them; the errors are read from what that wrote.
Those of training and of links were fitted on rows that are no cases here. What can be
left out there is the one factor that would center the answers of a kind: fitted on
all groups but one, it is tried on that one.
"""

import dataclasses
import functools
import json
import math
import statistics
from collections.abc import Callable, Iterable, Sequence
from typing import Literal, Protocol

from evidence import DATA

Group = Literal["model", "accelerator", "source"]
GROUPS: tuple[Group, ...] = ("model", "accelerator", "source")
_FEWEST = 2


class AnsweredCase(Protocol):
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
class HeldOutErrors:
    """Median errors of one kind, its groups left out one after the other.

    `fitted` is the error with the factor of all cases, `held_out` that with the
    factor of the other groups, `p90` that of nine in ten, `worst` the median error of
    the worst group. Nine of ten measurements lie between `low` and `high` times such
    an answer. `refitted`: all constants, in place of one factor.
    """

    kind: str
    group: Group
    groups: int
    fitted: float
    held_out: float
    p90: float
    worst: float
    low: float
    high: float
    refitted: bool = False


@functools.cache
def recorded() -> tuple[HeldOutErrors, ...]:
    """What the fit of the engines found on groups that it had not seen."""
    text = (DATA / "held-out-serving.json").read_text(encoding="utf-8")
    return tuple(HeldOutErrors(**row) for row in json.loads(text))


def summed(
    kind: str,
    group: Group,
    names: Sequence[str],
    fitted: Sequence[float],
    left: Sequence[float],
) -> HeldOutErrors:
    """Errors of one kind, from logarithms of measured over predicted.

    `names` are the groups of the cases, `left` what constants say that were fitted
    without the group of a case.
    """
    by_group: dict[str, list[float]] = {}
    for name, ratio in zip(names, left, strict=True):
        by_group.setdefault(name, []).append(ratio)
    return _summed(kind, group, by_group, fitted, refitted=True)


def held_out(kind: str, results: Iterable[AnsweredCase]) -> tuple[HeldOutErrors, ...]:
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
) -> HeldOutErrors | None:
    by_group: dict[str, list[float]] = {}
    for ratio, groups in known:
        by_group.setdefault(groups[index], []).append(ratio)
    if len(by_group) < _FEWEST or "" in by_group:
        return None
    left = {name: _centered(ratios, _others(by_group, name)) for name, ratios in by_group.items()}
    whole = [ratio for ratio, _ in known]
    return _summed(kind, GROUPS[index], left, _centered(whole, whole))


def _summed(
    kind: str,
    group: Group,
    left: dict[str, list[float]],
    fitted: Sequence[float],
    *,
    refitted: bool = False,
) -> HeldOutErrors:
    every = sorted(ratio for ratios in left.values() for ratio in ratios)
    errors = sorted(map(_off, every))
    return HeldOutErrors(
        kind=kind,
        group=group,
        groups=len(left),
        fitted=_error(fitted),
        held_out=_error(every),
        p90=errors[_rank(errors, 0.9, math.ceil)],
        worst=max(_error(ratios) for ratios in left.values()),
        low=math.exp(every[_rank(every, 0.05, math.floor)]),
        high=math.exp(every[_rank(every, 0.95, math.ceil)]),
        refitted=refitted,
    )


def _others(by_group: dict[str, list[float]], name: str) -> list[float]:
    return [r for other, ratios in by_group.items() if other != name for r in ratios]


def _centered(ratios: list[float], seen: list[float]) -> list[float]:
    """What is left of ratios after the factor that centers those that were seen."""
    middle = statistics.median(seen)
    return [ratio - middle for ratio in ratios]


def _error(ratios: Sequence[float]) -> float:
    """The median of relative errors."""
    return statistics.median(map(_off, ratios))


def _off(ratio: float) -> float:
    """The relative error of a logarithm of measured over predicted."""
    return abs(math.exp(-ratio) - 1)


def _rank(ordered: Sequence[float], share: float, towards: Callable[[float], int]) -> int:
    """The place of a share of an ordered list, rounded outwards."""
    return towards(share * (len(ordered) - 1))
