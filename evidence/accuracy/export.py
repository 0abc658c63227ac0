"""Write the accuracy report as accuracy.json, which the app and the docs show."""

import dataclasses
import json
import re
import tomllib
from collections import defaultdict
from pathlib import Path
from typing import Any

from evidence import DATA
from evidence.accuracy.held_out import HeldOutErrors
from evidence.accuracy.report import AccuracyReport, CaseResult, KindSummary

PATH = Path(__file__).resolve().parents[2] / "app" / "calculators" / "accuracy.json"
_LABELS = tomllib.loads((DATA / "case_kinds.toml").read_text(encoding="utf-8"))


def format_accuracy_json(found: AccuracyReport) -> str:
    """Return the report as the text of accuracy.json, with each case on its own line."""
    by_kind: dict[str, list[str]] = defaultdict(list)
    for result in found.results:
        by_kind[result.kind].append(_compact_json(_case_fields(result)))
    kinds = []
    for summary in found.summaries:
        fields = {"label": label_of_kind(summary.kind), **_rounded_fields(summary)}
        results = _json_array(by_kind[summary.kind])
        kinds.append(f'{_compact_json(fields)[:-1]},"results":{results}}}')
    held_out = [_compact_json(_rounded_fields(row)) for row in found.held_out]
    return f'{{"kinds":{_json_array(kinds)},"held_out":{_json_array(held_out)}}}\n'


def label_of_kind(kind: str) -> str:
    """Return the display name of a kind of case.

    >>> label_of_kind("kv_bytes_per_token"), label_of_kind("other_kind")
    ('KV cache of one token', 'Other kind')
    """
    return _LABELS.get(kind) or kind.replace("_", " ").capitalize()


def _case_fields(result: CaseResult) -> dict[str, Any]:
    """Return one case as JSON data, without empty values."""
    row = {
        "id": result.id,
        "expected": _round(result.expected),
        "predicted": _round(result.predicted),
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
    return {name: _round(value) for name, value in dataclasses.asdict(row).items()}


def _round(value: Any) -> Any:
    """Round to the digits that all machines agree on; pages show one decimal of large numbers."""
    if not isinstance(value, float):
        return value
    if value.is_integer():
        return int(value)
    return round(value, 3) if abs(value) > 1e6 else float(f"{value:.9g}")


def _json_array(rows: list[str]) -> str:
    return "[\n" + ",\n".join(rows) + "\n]"


def _compact_json(row: dict[str, Any]) -> str:
    return json.dumps(row, ensure_ascii=False, separators=(",", ":"))
