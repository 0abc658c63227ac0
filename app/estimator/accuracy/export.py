"""What the pages and documents show of the accuracy report: one committed file."""

import dataclasses
import json
from collections import defaultdict
from pathlib import Path
from typing import Any

from app.estimator import catalogue
from app.estimator.accuracy.held_out import HeldOut
from app.estimator.accuracy.report import Report, Result, Summary, own_report

PATH = Path(__file__).resolve().parents[2] / "calculators" / "accuracy.json"


def export_report(found: Report) -> str:
    """The report as the text of accuracy.json, each case on a line of its own."""
    by_kind: dict[str, list[str]] = defaultdict(list)
    for result in found.results:
        by_kind[result.kind].append(_dump(_case(result)))
    kinds = [
        f'{_dump(_kind(s))[:-1]},"results":{_lines(by_kind[s.kind])}}}'
        for s in found.summaries
    ]
    held_out = [_dump(_rounded_fields(row)) for row in found.held_out]
    return f'{{"kinds":{_lines(kinds)},"held_out":{_lines(held_out)}}}\n'


def label_of(kind: str) -> str:
    """A kind of case in words.

    >>> label_of("kv_bytes_per_token"), label_of("other_kind")
    ('KV cache of one token', 'Other kind')
    """
    label: str | None = catalogue.words("case_kinds.toml").get(kind)
    return label or kind.replace("_", " ").capitalize()


def _kind(summary: Summary) -> dict[str, Any]:
    return {"label": label_of(summary.kind), **_rounded_fields(summary)}


def _case(result: Result) -> dict[str, Any]:
    """One case, without what it does not have."""
    row = {
        "id": result.id,
        "expected": _rounded(result.expected),
        "predicted": _rounded(result.predicted),
        "unit": result.unit,
        "source": result.source,
        "calibration": result.calibration,
        "why_not": result.why_not,
        "command": result.command,
        "figure": result.figure,
        "formula": result.formula.removeprefix("app.estimator."),
        "report_alone": result.report_alone,
    }
    return {
        name: value for name, value in row.items() if value not in ("", False, None)
    }


def _rounded_fields(row: Summary | HeldOut) -> dict[str, Any]:
    return {name: _rounded(value) for name, value in dataclasses.asdict(row).items()}


def _rounded(value: Any) -> Any:
    """Digits in which machines agree; pages show one decimal of large numbers."""
    if not isinstance(value, float):
        return value
    if value.is_integer():
        return int(value)
    return round(value, 3) if abs(value) > 1e6 else float(f"{value:.9g}")


def _lines(rows: list[str]) -> str:
    return "[\n" + ",\n".join(rows) + "\n]"


def _dump(row: dict[str, Any]) -> str:
    return json.dumps(row, ensure_ascii=False, separators=(",", ":"))


if __name__ == "__main__":
    PATH.write_text(export_report(own_report()), encoding="utf-8")
