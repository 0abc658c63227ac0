"""How near the estimates come: every case, counted by kind, and drawn."""

import dataclasses
import functools
from pathlib import Path

from markupsafe import Markup

from app.calculators.kept_report import kept_report
from app.drawings import Drawing, draw_chart
from app.drawings.strips import Strip, draw_strips
from app.estimator import catalogue, registry
from app.estimator.accuracy.report import (
    Report,
    Result,
    Summary,
)
from app.estimator.estimate import Chart, Line
from app.estimator.units import format_number

# Units of the cases that have another name in the catalog of units.
_BASE = {"bytes": "B", "parameters": "parameter", "tokens": "token"}


@dataclasses.dataclass(frozen=True, slots=True)
class Counted:
    """One kind as a row of the table; figures are in words, empty where none.

    Errors are counted without the cases that a constant was `fitted` on.
    """

    kind: str
    label: str
    cases: int
    fitted: int
    within: int
    median: str
    p90: str
    largest: str
    inside: str


@dataclasses.dataclass(frozen=True, slots=True)
class ShownCase:
    """One case in words, with the question that it was.

    Either `command` and `address` of a calculator, or the function of a `formula`.
    """

    id: str
    expected: str
    predicted: str
    error: str
    source: str
    remark: str
    calculator: str
    command: str
    address: str
    formula: str


@dataclasses.dataclass(frozen=True, slots=True)
class Standing:
    """All kinds: the sum in numbers, the picture, the table.

    `by_calculator` cases were asked of one; the others are bare formulas.
    """

    cases: int
    answered: int
    by_calculator: int
    within: int
    fitted: int
    picture: Markup
    kinds: tuple[Counted, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class KindStanding:
    """One kind: its row, predicted against measured, and every case."""

    row: Counted
    drawing: Drawing
    cases: tuple[ShownCase, ...]


@functools.cache
def standing(folder: Path) -> Standing:
    """Every kind of the project's own cases, kept in `folder`."""
    found = kept_report(folder)
    strips = tuple(_strip(s.kind, found) for s in found.summaries if s.expressible)
    return Standing(
        cases=len(found.results),
        answered=sum(s.expressible for s in found.summaries),
        by_calculator=sum(bool(r.estimate) for r in found.results),
        within=sum(s.within_tolerance for s in found.summaries),
        fitted=sum(s.calibration for s in found.summaries),
        picture=draw_strips(strips),
        kinds=tuple(_counted(s) for s in found.summaries),
    )


@functools.lru_cache(maxsize=128)  # strangers ask for kinds that are none
def standing_of(kind: str, folder: Path) -> KindStanding | None:
    """One kind with all of its cases; None for a kind that is none."""
    found = kept_report(folder)
    summary = next((s for s in found.summaries if s.kind == kind), None)
    if summary is None:
        return None
    results = [r for r in found.results if r.kind == kind]
    return KindStanding(
        row=_counted(summary),
        drawing=draw_chart(_chart(label_of(kind), results)),
        cases=tuple(_case(r) for r in results),
    )


def label_of(kind: str) -> str:
    """A kind of case in words.

    >>> label_of("kv_bytes_per_token"), label_of("other_kind")
    ('KV cache of one token', 'Other kind')
    """
    label: str | None = catalogue.words("case_kinds.toml").get(kind)
    return label or kind.replace("_", " ").capitalize()


def _strip(kind: str, found: Report) -> Strip:
    errors = tuple(
        (r.predicted / r.expected - 1, r.calibration)
        for r in found.results
        if r.kind == kind and r.predicted is not None and r.expected
    )
    return Strip(label_of(kind), errors)


def _counted(summary: Summary) -> Counted:
    return Counted(
        kind=summary.kind,
        label=label_of(summary.kind),
        cases=summary.cases,
        fitted=summary.calibration,
        within=summary.within_tolerance,
        median=_percent(summary.median),
        p90=_percent(summary.p90),
        largest=_percent(summary.largest),
        inside=_percent(summary.inside_interval, 0),
    )


def _percent(share: float | None, places: int = 1) -> str:
    return "" if share is None else f"{share * 100:.{places}f}%"


def _chart(label: str, results: list[Result]) -> Chart:
    """Predicted against measured on two log axes, with the line of no error."""
    answered = [r for r in results if r.predicted and r.predicted > 0 < r.expected]
    ends = [v for r in answered for v in (r.expected, r.predicted or r.expected)]
    level = ((min(ends), min(ends)), (max(ends), max(ends))) if ends else ()
    evidence = tuple((r.expected, r.predicted or 0.0) for r in answered)
    unit = _BASE.get(results[0].unit, results[0].unit)
    return Chart(
        label=label,
        x_label="Measured or exact",
        y_label="Predicted",
        x_unit=unit,
        y_unit=unit,
        lines=(Line("no error", level, "dash"), Line("", evidence, "dots")),
        x_log=True,
        y_log=True,
    )


def _case(result: Result) -> ShownCase:
    unknown = result.predicted is None
    return ShownCase(
        id=result.id,
        expected=f"{format_number(result.expected, 4)}\u00a0{result.unit}",
        predicted="" if unknown else format_number(result.predicted or 0.0, 4),
        error=_percent(result.relative_error),
        source=result.source,
        remark=result.why_not or ("fitted on" if result.calibration else ""),
        calculator=_title(result.estimate),
        command=result.command,
        address=result.address,
        formula=_formula(result),
    )


def _title(name: str) -> str:
    entry = registry.find(name) if name else None
    return entry.title if entry else ""


def _formula(result: Result) -> str:
    """The function of a formula, and whether it serves nothing but this report."""
    function = result.formula.removeprefix("app.estimator.")
    return f"{function}, here alone" if result.report_alone else function
