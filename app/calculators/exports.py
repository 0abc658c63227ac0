"""Results of calculators as JSON, CSV and Markdown."""

import csv
import io
import json
from collections.abc import Mapping, Sequence
from typing import Any

from app.calculators.comparison import Comparison, Scenario
from app.estimator.inputs import format_value_as_typed, input_specs
from app.estimator.registry import EstimateSpec, require_estimate
from app.estimator.result import Estimate, ResultTable
from app.estimator.units import NBSP, format_value
from app.widgets.estimate_view import format_interval_or_exact


def build_estimate_json(entry: EstimateSpec, inputs: Any, estimate: Estimate) -> dict[str, Any]:
    """Return the whole result in base units, as the API and the CLI give it."""
    verdict = _pick_attributes(estimate.verdict, "status", "lead", "text")
    result = {
        "estimate": entry.name,
        "title": entry.title,
        "inputs": {name: getattr(inputs, name) for name in input_specs(entry.inputs_type)},
        "verdict": verdict | {"text": replace_no_break_spaces(verdict["text"])},
        "figures": [
            _pick_attributes(f, "name", "label", "value", "unit", "low", "high", "primary")
            | {
                "exact": f.is_exact,
                "text": replace_no_break_spaces(f.formatted_value),
                "note": f.note,
            }
            for f in estimate.figures
        ],
        "steps": [
            _pick_attributes(s, "label", "formula", "substituted", "value", "unit", "source")
            | {"figure": s.output_name}
            for s in estimate.steps
        ],
        "tables": [_build_table_json(t) for t in estimate.tables],
        "notes": list(estimate.notes),
        "changes": [
            {
                "field": c.field,
                "label": c.label,
                "now": c.current_value,
                "flips_at": c.new_value,
                "becomes": c.verdict_after,
                "also": {other.field: other.value for other in c.other_changes},
            }
            for c in estimate.changes
        ],
    }
    sections = [
        {
            "heading": s.heading,
            **build_estimate_json(require_estimate(s.estimate_name), s.inputs, s.estimate),
        }
        for s in estimate.sections
    ]
    return result | {"sections": sections} if sections else result


def dump_json(value: Any, indent: int | None = None) -> str:
    """Return a value as JSON; raises ValueError for a number that JSON does not have."""
    return json.dumps(value, indent=indent, ensure_ascii=False, allow_nan=False)


def _pick_attributes(instance: Any, *names: str) -> dict[str, Any]:
    return {name: getattr(instance, name) for name in names}


def format_estimate_csv(estimate: Estimate) -> str:
    """Return the figures as rows: name, label, value, unit, low, high, text."""
    rows = [
        (
            f.name,
            f.label,
            f.value,
            f.unit,
            f.low,
            f.high,
            replace_no_break_spaces(f.formatted_value),
        )
        for f in estimate.figures
    ]
    return format_csv_for_spreadsheet(
        ("name", "label", "value", "unit", "low", "high", "text"), rows
    )


def format_csv_for_spreadsheet(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """Return rows for a spreadsheet, with a byte order mark and without cells that it would run."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows([_escape_formula_cell(cell) for cell in row] for row in rows)
    return "\ufeff" + buffer.getvalue()


def format_estimate_markdown(
    entry: EstimateSpec, inputs: Any, estimate: Estimate, link: str = ""
) -> str:
    """Return verdict, inputs, figures, steps and assumptions as Markdown."""
    verdict = estimate.verdict
    figures = [(f.label, f.formatted_value, format_interval_or_exact(f)) for f in estimate.figures]
    steps = []
    for step in estimate.steps:
        substituted = f"`{step.substituted}`" if step.substituted else ""
        value = format_value(step.value, step.unit)
        steps.append((step.label, f"`{step.formula}`", substituted, value))
    tables = [
        f"### {_escape_markdown_cell(table.label)}\n\n"
        + format_markdown_table(
            table.columns,
            [[c if isinstance(c, str) else format_value(*c) for c in row] for row in table.rows],
        )
        for table in estimate.tables
    ]
    parts = [
        f"## {entry.title}",
        f"**{_escape_markdown_cell(verdict.lead)}** {_escape_markdown_cell(verdict.text)}",
        _inputs_line(entry, inputs),
        format_markdown_table(("Figure", "Value", "Likely range"), figures),
        format_markdown_table(
            ("Section", "Calculator", "Verdict"),
            [
                (
                    s.full_heading,
                    s.estimate_name,
                    f"{s.estimate.verdict.lead} {s.estimate.verdict.text}",
                )
                for s in estimate.sections
            ],
        ),
        *tables,
        format_markdown_table(("Step", "Formula", "With numbers", "Result"), steps),
        "\n".join(f"- {_escape_markdown_cell(note)}" for note in estimate.notes),
        f"Calculated with Headroom: {link}" if link else "Calculated with Headroom.",
    ]
    return "\n\n".join(p for p in parts if p) + "\n"


def format_markdown_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table; empty without rows."""
    if not rows:
        return ""
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join("| " + " | ".join(map(_escape_markdown_cell, line)) + " |" for line in lines)


def replace_no_break_spaces(text: str) -> str:
    """Replace no-break spaces by ordinary ones, for files and terminals."""
    return text.replace(NBSP, " ")


def _build_table_json(table: ResultTable) -> dict[str, Any]:
    rows = [
        [cell if isinstance(cell, str) else {"value": cell[0], "unit": cell[1]} for cell in row]
        for row in table.rows
    ]
    return {"label": table.label, "columns": list(table.columns), "rows": rows}


def _inputs_line(entry: EstimateSpec, inputs: Any) -> str:
    values = []
    for name, spec in input_specs(entry.inputs_type).items():
        value = getattr(inputs, name)
        if value is not None and spec.kind != "text":
            text = f"{spec.label} {format_value_as_typed(spec, value)} {spec.typed_unit}"
            values.append(_escape_markdown_cell(text.rstrip()))
    return f"Inputs: {'; '.join(values)}."


def _escape_markdown_cell(text: str) -> str:
    return replace_no_break_spaces(text).replace("|", "\\|").replace("\n", " ")


def _escape_formula_cell(cell: Any) -> Any:
    """Prefix text that a spreadsheet would read as a formula; None is an empty cell."""
    return f"'{cell}" if isinstance(cell, str) and cell[:1] in set("=+-@\t\r") else cell


def build_comparison_json(entry: EstimateSpec, scenarios: Mapping[str, Scenario]) -> dict[str, Any]:
    """Return every scenario's whole result in base units, by letter."""
    return {
        letter: build_estimate_json(entry, s.inputs, s.estimate)
        for letter, s in scenarios.items()
        if s.estimate is not None
    }


def format_comparison_csv(scenarios: Mapping[str, Scenario]) -> str:
    """Return one row per figure: name, label, unit, and its value in each scenario."""
    estimates = [s.estimate for s in scenarios.values() if s.estimate is not None]
    rows = []
    for figure in estimates[0].figures:
        figures = [e.find_figure(figure.name) for e in estimates]
        values = [f.value if f else None for f in figures]
        rows.append((figure.name, figure.label, figure.unit, *values))
    return format_csv_for_spreadsheet(("name", "label", "unit", *scenarios), rows)


def format_comparison_markdown(entry: EstimateSpec, comparison: Comparison, link: str) -> str:
    letters = [side.letter for side in comparison.columns]
    difference_titles = [f"{letter} against A" for letter in letters[1:]]
    rows = [
        (
            row.label,
            *(f"**{v.formatted_value}**" if v.is_best else v.formatted_value for v in row.values),
            *(v.difference_from_first for v in row.values[1:]),
        )
        for row in comparison.figure_rows
    ]
    verdicts = (
        f"- {side.letter}: {side.verdict_lead} {side.verdict_text}" for side in comparison.columns
    )
    parts = [
        f"## {entry.title}, side by side",
        f"**{replace_no_break_spaces(comparison.lead)}**",
        f"What differs: {', '.join(comparison.differing_inputs) or 'nothing'}.",
        replace_no_break_spaces("\n".join(verdicts)),
        format_markdown_table(("Figure", *letters, *difference_titles), rows),
        f"Calculated with Headroom: {link}",
    ]
    return "\n\n".join(parts) + "\n"
