"""docs/evidence.md: how near the estimates of servers come, from accuracy.json."""

import json
from collections.abc import Mapping
from typing import Any

from docs.reference.parts import DOCS, filled, table

PATH = DOCS / "evidence.md"
_REPORT = DOCS.parent / "app" / "calculators" / "accuracy.json"
_HEAD = (
    "under load",
    "fitted",
    "model left out: median, 90th percentile, worst model",
    "accelerator left out: median, 90th percentile",
)


def document() -> str:
    """The document as it has to be."""
    report = json.loads(_REPORT.read_text(encoding="utf-8"))
    labels = {kind["kind"]: kind["label"] for kind in report["kinds"]}
    refitted = {(row["kind"], row["group"]): row for row in report["held_out"] if row["refitted"]}
    rows = [
        (
            labels[name],
            _percents(refitted[name, "model"], "fitted"),
            _percents(refitted[name, "model"], "held_out", "p90", "worst"),
            _percents(refitted[name, "accelerator"], "held_out", "p90"),
        )
        for name in ("serving_tpot", "serving_ttft", "offline_throughput")
    ]
    return filled(PATH.read_text(encoding="utf-8"), {"under-load": table(_HEAD, rows)})


def _percents(row: Mapping[str, Any], *fields: str) -> str:
    return ", ".join(f"{row[field]:.0%}" for field in fields)
