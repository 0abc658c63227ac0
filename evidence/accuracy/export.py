"""Write the accuracy report as accuracy.json, which the app and the docs show."""

import dataclasses
import functools
import json
import re
import tomllib
from collections import defaultdict
from pathlib import Path
from typing import Any

from evidence import DATA
from evidence.accuracy.held_out import HeldOutErrors
from evidence.accuracy.report import AccuracyReport, CaseResult, KindSummary

_ROOT = Path(__file__).resolve().parents[2]
PATH = _ROOT / "app" / "calculators" / "accuracy.json"


def export_report(found: AccuracyReport) -> str:
    """Return the report as the text of accuracy.json, with each case on its own line."""
    by_kind: dict[str, list[str]] = defaultdict(list)
    for result in found.results:
        by_kind[result.kind].append(_dump(_case(result)))
    kinds = [
        f'{_dump(_kind(s))[:-1]},"results":{_lines(by_kind[s.kind])}}}' for s in found.summaries
    ]
    held_out = [_dump(_rounded_fields(row)) for row in found.held_out]
    return f'{{"kinds":{_lines(kinds)},"held_out":{_lines(held_out)}}}\n'


def label_of(kind: str) -> str:
    """Return the display name of a kind of case.

    >>> label_of("kv_bytes_per_token"), label_of("other_kind")
    ('KV cache of one token', 'Other kind')
    """
    return _labels().get(kind) or kind.replace("_", " ").capitalize()


@functools.cache
def _labels() -> dict[str, str]:
    return tomllib.loads((DATA / "case_kinds.toml").read_text(encoding="utf-8"))


def _kind(summary: KindSummary) -> dict[str, Any]:
    return {"label": label_of(summary.kind), **_rounded_fields(summary)}


def _case(result: CaseResult) -> dict[str, Any]:
    """Return one case as JSON data, without empty values."""
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
        "formula": re.sub(r"^(app\.estimator|evidence)\.", "", result.formula),
        "report_alone": result.report_alone,
    }
    return {k: v for k, v in row.items() if v is not False and v not in ("", None)}


def _rounded_fields(row: KindSummary | HeldOutErrors) -> dict[str, Any]:
    return {name: _rounded(value) for name, value in dataclasses.asdict(row).items()}


def _rounded(value: Any) -> Any:
    """Round to the digits that all machines agree on; pages show one decimal of large numbers."""
    if not isinstance(value, float):
        return value
    if value.is_integer():
        return int(value)
    return round(value, 3) if abs(value) > 1e6 else float(f"{value:.9g}")


def _lines(rows: list[str]) -> str:
    return "[\n" + ",\n".join(rows) + "\n]"


def _dump(row: dict[str, Any]) -> str:
    return json.dumps(row, ensure_ascii=False, separators=(",", ":"))
