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
from typing import Literal, NamedTuple

from evidence import DATA

Group = Literal["model", "accelerator", "source"]
GROUPS: tuple[Group, ...] = ("model", "accelerator", "source")
_FEWEST = 2


class CaseGroups(NamedTuple):
    """The model, the accelerator and the source of a case; empty if not named."""

    model: str = ""
    accelerator: str = ""
    source: str = ""


class ErrorOfCase(NamedTuple):
    """The logarithm of measured over predicted, and the groups of the case."""

    log_ratio: float
    groups: CaseGroups


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
def load_refit_errors() -> tuple[HeldOutErrors, ...]:
    """Return the saved errors of the engine fit on groups that were left out."""
    text = (DATA / "held-out-serving.json").read_text(encoding="utf-8")
    return tuple(HeldOutErrors(**row) for row in json.loads(text))


def summarize_refit_errors(
    kind: str, group: Group, fitted: Sequence[float], unseen: Iterable[ErrorOfCase]
) -> HeldOutErrors:
    """Summarize errors of one kind, from logarithms of measured over predicted.

    `unseen` are the errors with constants that were fitted without the group of a case.
    """
    return _summarize(kind, group, _log_ratios_by_group(group, unseen), fitted, refitted=True)


def cross_validate(kind: str, errors: Sequence[ErrorOfCase]) -> tuple[HeldOutErrors, ...]:
    """Leave out each model, each accelerator and each source of a kind in turn.

    A group is skipped if it has fewer than two members, or if a case names none.
    """
    fitted = _centered([error.log_ratio for error in errors])
    found = []
    for group in GROUPS:
        by_name = _log_ratios_by_group(group, errors)
        if len(by_name) < _FEWEST or "" in by_name:
            continue
        left_out = {
            name: _centered(
                ratios, [r for other, rest in by_name.items() if other != name for r in rest]
            )
            for name, ratios in by_name.items()
        }
        found.append(_summarize(kind, group, left_out, fitted))
    return tuple(found)


def _log_ratios_by_group(group: Group, errors: Iterable[ErrorOfCase]) -> dict[str, list[float]]:
    by_name: dict[str, list[float]] = {}
    for error in errors:
        by_name.setdefault(getattr(error.groups, group), []).append(error.log_ratio)
    return by_name


def _summarize(
    kind: str,
    group: Group,
    left_out: dict[str, list[float]],
    fitted: Sequence[float],
    *,
    refitted: bool = False,
) -> HeldOutErrors:
    log_ratios = sorted(ratio for ratios in left_out.values() for ratio in ratios)
    errors = sorted(map(_relative_error, log_ratios))
    return HeldOutErrors(
        kind=kind,
        group=group,
        groups=len(left_out),
        fitted=_median_error(fitted),
        held_out=_median_error(log_ratios),
        p90=errors[_quantile_index(errors, 0.9, math.ceil)],
        worst=max(map(_median_error, left_out.values())),
        low=math.exp(log_ratios[_quantile_index(log_ratios, 0.05, math.floor)]),
        high=math.exp(log_ratios[_quantile_index(log_ratios, 0.95, math.ceil)]),
        refitted=refitted,
    )


def _centered(log_ratios: list[float], center_of: list[float] | None = None) -> list[float]:
    """Divide ratios by the factor that centers them, or those in `center_of`."""
    if not log_ratios:
        return []
    middle = statistics.median(center_of or log_ratios)
    return [ratio - middle for ratio in log_ratios]


def _median_error(log_ratios: Iterable[float]) -> float:
    return statistics.median(map(_relative_error, log_ratios))


def _relative_error(log_ratio: float) -> float:
    return abs(math.exp(-log_ratio) - 1)


def _quantile_index(
    ordered: Sequence[float], share: float, rounding: Callable[[float], int]
) -> int:
    return rounding(share * (len(ordered) - 1))
