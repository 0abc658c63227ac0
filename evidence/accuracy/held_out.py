"""Errors on models, accelerators and sources that were left out of a fit.

The constants of inference engines are fitted to cases (`evidence.fit_serving`), and
fitted again without each group of cases; that module saves the errors. The constants
of training and of links were fitted to data that is not among the cases. For those, only
one correction factor per kind is cross-validated: it is fitted to all groups but one,
and tested on that one.
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
    """A case with its prediction, and the groups that it belongs to."""

    @property
    def expected(self) -> float:
        """The published value."""

    @property
    def predicted(self) -> float | None:
        """Return the prediction, or None."""

    @property
    def calibration(self) -> bool:
        """Return whether some constant was fitted to it."""

    @property
    def groups(self) -> tuple[str, str, str]:
        """Return its model, its accelerator and its source."""


@dataclasses.dataclass(frozen=True, slots=True)
class HeldOutErrors:
    """Median errors of one kind, with its groups left out one at a time.

    `fitted` is the error with the factor of all cases, `held_out` that with the factor of
    the other groups, `p90` the 90th percentile, `worst` the median error of the worst
    group. 90% of measurements are between `low` and `high` times the prediction.
    `refitted`: all constants were fitted again, not one factor.
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
    """Return the saved errors of the engine fit on groups that were left out."""
    text = (DATA / "held-out-serving.json").read_text(encoding="utf-8")
    return tuple(HeldOutErrors(**row) for row in json.loads(text))


def summed(
    kind: str,
    group: Group,
    names: Sequence[str],
    fitted: Sequence[float],
    left: Sequence[float],
) -> HeldOutErrors:
    """Summarize errors of one kind, from logarithms of measured over predicted.

    `names` are the groups of the cases, `left` the predictions with constants that were
    fitted without the group of a case.
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
    """Divide ratios by the factor that centers the ratios in `seen`."""
    middle = statistics.median(seen)
    return [ratio - middle for ratio in ratios]


def _error(ratios: Sequence[float]) -> float:
    """Return the median relative error."""
    return statistics.median(map(_off, ratios))


def _off(ratio: float) -> float:
    """Return the relative error of a logarithm of measured over predicted."""
    return abs(math.exp(-ratio) - 1)


def _rank(ordered: Sequence[float], share: float, towards: Callable[[float], int]) -> int:
    """Return the index of a quantile in an ordered list, rounded outward."""
    return towards(share * (len(ordered) - 1))
