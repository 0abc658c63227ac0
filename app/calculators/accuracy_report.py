"""Accuracy report page.

`make evidence` computes the cases and writes accuracy.json.
"""

import dataclasses
import functools
import json
import shlex
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from markupsafe import Markup

from app.estimator import registry
from app.estimator.result import Chart, ChartLine
from app.estimator.units import format_number
from app.widgets.bar_charts import ErrorStrip, PredictionErrorPoint, draw_error_strips
from app.widgets.estimate_view import LONGEST_LINK, TextLink, calculator_url
from app.widgets.line_charts import draw_line_chart
from app.widgets.svg import SvgChart

_ACCURACY_FILE = Path(__file__).with_name("accuracy.json")

# Units of the cases that have another name in the units table.
_UNIT_NAMES = {"bytes": "B", "parameters": "parameter", "tokens": "token"}


@dataclasses.dataclass(frozen=True, slots=True)
class AccuracyRow:
    """One kind of case as formatted text; errors exclude the cases that were used for constants."""

    kind: str
    label: str
    case_count: int
    fitted_count: int
    within_tolerance_count: int
    median_error: str
    p90_error: str
    largest_error: str
    share_inside_interval: str


@dataclasses.dataclass(frozen=True, slots=True)
class CaseRow:
    """One case as text, with the calculator or the formula that computed it."""

    id: str
    expected: str
    predicted: str
    error: str
    source: str
    remark: str
    calculator: str
    command: str
    calculator_url: str
    formula: str


@dataclasses.dataclass(frozen=True, slots=True)
class AccuracySummary:
    """All kinds; `computed_by_calculator_count` cases were computed by a calculator, the others by a formula."""

    case_count: int
    computed_count: int
    computed_by_calculator_count: int
    within_tolerance_count: int
    fitted_count: int
    error_strips: Markup
    rows: tuple[AccuracyRow, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class KindAccuracy:
    """One kind: its row, the chart of predicted against measured, and every case."""

    row: AccuracyRow
    drawing: SvgChart
    cases: tuple[CaseRow, ...]


@functools.cache
def build_accuracy_summary() -> AccuracySummary:
    kinds = _load_results_by_kind().values()
    strips = tuple(_error_strip(kind) for kind in kinds if kind["expressible"])
    return AccuracySummary(
        case_count=sum(kind["cases"] for kind in kinds),
        computed_count=sum(kind["expressible"] for kind in kinds),
        computed_by_calculator_count=sum(kind["by_calculator"] for kind in kinds),
        within_tolerance_count=sum(kind["within_tolerance"] for kind in kinds),
        fitted_count=sum(kind["calibration"] for kind in kinds),
        error_strips=draw_error_strips(strips),
        rows=tuple(map(_accuracy_row, kinds)),
    )


@functools.lru_cache(maxsize=128)  # requests for unknown kinds must not grow the cache
def build_kind_accuracy(kind_name: str) -> KindAccuracy | None:
    """Return one kind with all its cases; None for an unknown kind."""
    kind = _load_results_by_kind().get(kind_name)
    if kind is None:
        return None
    return KindAccuracy(
        row=_accuracy_row(kind),
        drawing=draw_line_chart(_predicted_measured_chart(kind)),
        cases=tuple(map(_case_row, kind["results"])),
    )


@functools.cache
def _load_results_by_kind() -> dict[str, dict[str, Any]]:
    rows = json.loads(_ACCURACY_FILE.read_text(encoding="utf-8"))["kinds"]
    return {row["kind"]: row for row in rows}


def _error_strip(kind_results: dict[str, Any]) -> ErrorStrip:
    errors = tuple(
        PredictionErrorPoint(case["predicted"] / case["expected"] - 1, "calibration" in case)
        for case in kind_results["results"]
        if "predicted" in case and case["expected"]
    )
    return ErrorStrip(kind_results["label"], errors)


def _accuracy_row(kind_results: dict[str, Any]) -> AccuracyRow:
    return AccuracyRow(
        kind=kind_results["kind"],
        label=kind_results["label"],
        case_count=kind_results["cases"],
        fitted_count=kind_results["calibration"],
        within_tolerance_count=kind_results["within_tolerance"],
        median_error=_format_percent_or_empty(kind_results["median"]),
        p90_error=_format_percent_or_empty(kind_results["p90"]),
        largest_error=_format_percent_or_empty(kind_results["largest"]),
        share_inside_interval=_format_percent_or_empty(kind_results["inside_interval"], 0),
    )


def _format_percent_or_empty(share: float | None, decimals: int = 1) -> str:
    return "" if share is None else f"{share * 100:.{decimals}f}%"


def _predicted_measured_chart(kind_results: dict[str, Any]) -> Chart:
    """Return predicted against measured on two log axes, with the line of zero error."""
    points = [
        (case["expected"], case["predicted"])
        for case in kind_results["results"]
        if case.get("predicted", 0) > 0 < case["expected"]
    ]
    values = [value for pair in points for value in pair]
    diagonal = ((min(values), min(values)), (max(values), max(values))) if values else ()
    stated_unit = kind_results["results"][0]["unit"]
    unit = _UNIT_NAMES.get(stated_unit, stated_unit)
    return Chart(
        label=kind_results["label"],
        x_label="Measured or exact",
        y_label="Predicted",
        x_unit=unit,
        y_unit=unit,
        lines=(ChartLine("no error", diagonal, "dash"), ChartLine("", tuple(points), "dots")),
        x_log=True,
        y_log=True,
    )


def _case_row(case: dict[str, Any]) -> CaseRow:
    expected, predicted = case["expected"], case.get("predicted")
    command, figure = case.get("command", ""), case.get("figure", "")
    formula = case.get("formula", "")
    error = None if predicted is None else abs(predicted - expected) / (abs(expected) or 1.0)
    calculator = _calculator_link(command, figure) if command else TextLink("", "")
    return CaseRow(
        id=case["id"],
        expected=f"{format_number(expected, 4)}\u00a0{case['unit']}",
        predicted="" if predicted is None else format_number(predicted, 4),
        error=_format_percent_or_empty(error),
        source=case["source"],
        remark=case.get("why_not") or ("fitted on" if "calibration" in case else ""),
        calculator=calculator.text,
        command=command,
        calculator_url=calculator.url,
        formula=f"{formula}, here alone" if "report_alone" in case else formula,
    )


def _calculator_link(command: str, figure: str) -> TextLink:
    """Return a link to the calculation of a command; without a URL if its inputs are too long."""
    _, _, name, *options = shlex.split(command)
    typed = [option.removeprefix("--").partition("=") for option in options]
    query = urlencode([(field.replace("-", "_"), value) for field, _, value in typed])
    entry = registry.find_estimate(name)
    link = calculator_url(name, query, anchor=figure) if len(query) <= LONGEST_LINK else ""
    return TextLink(link, entry.title if entry else "")
