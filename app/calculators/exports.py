"""Results of calculators as JSON, CSV and Markdown."""

import csv
import io
from collections.abc import Sequence
from typing import Any

from app.calculators.comparison import Comparison, Scenario
from app.estimator import inputs as given_inputs
from app.estimator.registry import EstimateSpec
from app.estimator.result import Estimate, Figure, FormulaStep, ResultTable
from app.estimator.units import NBSP, format_value
from app.widgets.estimate_view import interval_text


def estimate_json(entry: EstimateSpec, inputs: Any, estimate: Estimate) -> dict[str, Any]:
    """Return the whole result in base units, as the API and the CLI give it."""
    verdict = estimate.verdict
    return {
        "estimate": entry.name,
        "title": entry.title,
        "inputs": inputs_in_force(entry, inputs),
        "verdict": {
            "status": verdict.status,
            "lead": verdict.lead,
            "text": with_plain_spaces(verdict.text),
        },
        "figures": [_figure_json(f) for f in estimate.figures],
        "steps": [_step_json(s) for s in estimate.steps],
        "tables": [_table_json(t) for t in estimate.tables],
        "notes": list(estimate.notes),
        "changes": [
            {
                "field": c.field,
                "label": c.label,
                "now": c.now,
                "flips_at": c.flips_at,
                "becomes": c.becomes,
                "also": {field: value for field, _, value in c.also},
            }
            for c in estimate.changes
        ],
    }


def inputs_in_force(entry: EstimateSpec, inputs: Any) -> dict[str, Any]:
    """Return every input with the value used, in base units, defaults included."""
    return {name: getattr(inputs, name) for name in given_inputs.input_specs(entry.inputs)}


def format_csv(estimate: Estimate) -> str:
    """Return the figures as rows: name, label, value, unit, low, high, text."""
    rows = [
        (
            f.name,
            f.label,
            "" if f.value is None else f.value,
            f.unit,
            *("" if bound is None else bound for bound in (f.low, f.high)),
            with_plain_spaces(f.words),
        )
        for f in estimate.figures
    ]
    return write_csv(("name", "label", "value", "unit", "low", "high", "text"), rows)


def write_csv(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """Return rows under their columns; text that a spreadsheet would run is escaped.

    Starts with a byte order mark; without it Excel does not read the file as UTF-8.
    """
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows([_escape_formula_cell(cell) for cell in row] for row in rows)
    return "\ufeff" + out.getvalue()


def format_markdown(entry: EstimateSpec, inputs: Any, estimate: Estimate, link: str = "") -> str:
    """Return verdict, inputs, figures, steps and assumptions as Markdown."""
    verdict = estimate.verdict
    parts = [
        f"## {entry.title}",
        f"**{_escape_markdown(verdict.lead)}** {_escape_markdown(verdict.text)}",
        _inputs_line(entry, inputs),
        md_table(("Figure", "Value", "Likely range"), _figure_rows(estimate)),
        *(_md_estimate_table(t) for t in estimate.tables),
        _working_markdown(estimate),
        "\n".join(f"- {_escape_markdown(note)}" for note in estimate.notes),
        f"Calculated with Headroom: {link}" if link else "Calculated with Headroom.",
    ]
    return "\n\n".join(p for p in parts if p) + "\n"


def md_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table; empty without rows."""
    if not rows:
        return ""
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join("| " + " | ".join(map(_escape_markdown, line)) + " |" for line in lines)


def with_plain_spaces(text: str) -> str:
    """Replace no-break spaces by ordinary ones, for files and terminals."""
    return text.replace(NBSP, " ")


def _figure_json(figure: Figure) -> dict[str, Any]:
    return {
        "name": figure.name,
        "label": figure.label,
        "value": figure.value,
        "unit": figure.unit,
        "low": figure.low,
        "high": figure.high,
        "exact": figure.exact,
        "primary": figure.primary,
        "text": with_plain_spaces(figure.words),
        "note": figure.note,
    }


def _step_json(step: FormulaStep) -> dict[str, Any]:
    return {
        "label": step.label,
        "formula": step.formula,
        "substituted": step.substituted,
        "value": step.value,
        "unit": step.unit,
        "source": step.source,
        "figure": step.figure,
    }


def _table_json(table: ResultTable) -> dict[str, Any]:
    rows = [[_cell_json(cell) for cell in row] for row in table.rows]
    return {"label": table.label, "columns": list(table.columns), "rows": rows}


def _cell_json(cell: str | tuple[float, str]) -> Any:
    if isinstance(cell, str):
        return cell
    return {"value": cell[0], "unit": cell[1]}


def _inputs_line(entry: EstimateSpec, inputs: Any) -> str:
    words = {
        declared.label: given_inputs.format_input(declared, getattr(inputs, name))
        + (f" {declared.typed_unit}" if declared.typed_unit else "")
        for name, declared in given_inputs.input_specs(entry.inputs).items()
        if getattr(inputs, name) is not None and declared.kind != "text"
    }
    return (
        "Inputs: "
        + "; ".join(f"{_escape_markdown(k)} {_escape_markdown(v)}" for k, v in words.items())
        + "."
    )


def _figure_rows(estimate: Estimate) -> list[tuple[str, ...]]:
    return [(f.label, f.words, with_plain_spaces(interval_text(f))) for f in estimate.figures]


def _working_markdown(estimate: Estimate) -> str:
    rows = [
        (
            s.label,
            f"`{s.formula}`",
            f"`{s.substituted}`" if s.substituted else "",
            format_value(s.value, s.unit),
        )
        for s in estimate.steps
    ]
    return md_table(("Step", "Formula", "With numbers", "Result"), rows)


def _md_estimate_table(table: ResultTable) -> str:
    rows = [tuple(c if isinstance(c, str) else format_value(*c) for c in row) for row in table.rows]
    return f"### {_escape_markdown(table.label)}\n\n{md_table(table.columns, rows)}"


def _escape_markdown(text: str) -> str:
    return with_plain_spaces(text).replace("|", "\\|").replace("\n", " ")


def _escape_formula_cell(cell: Any) -> Any:
    """Prefix text that a spreadsheet would read as a formula."""
    return f"'{cell}" if isinstance(cell, str) and cell[:1] in set("=+-@\t\r") else cell


Scenarios = dict[str, Scenario]


def sides_as_json(entry: EstimateSpec, scenarios: Scenarios) -> dict[str, Any]:
    """Return every scenario's whole result in base units, by letter."""
    return {
        letter: estimate_json(entry, s.inputs, s.estimate)
        for letter, s in scenarios.items()
        if s.estimate is not None
    }


def sides_as_csv(scenarios: Scenarios) -> str:
    """Return one row per figure: name, label, unit, and its value in each scenario."""
    estimates = [s.estimate for s in scenarios.values() if s.estimate is not None]
    rows = [
        (f.name, f.label, f.unit, *(_figure_value(e.figures, f.name) for e in estimates))
        for f in estimates[0].figures
    ]
    return write_csv(("name", "label", "unit", *scenarios), rows)


def sides_as_markdown(entry: EstimateSpec, compared: Comparison, link: str) -> str:
    """Return the comparison as Markdown: the sentence, what differs, the figures."""
    letters = [side.letter for side in compared.sides]
    against = [f"{letter} against A" for letter in letters[1:]]
    rows = [
        (
            row.label,
            *(f"**{v.words}**" if v.best else v.words for v in row.values),
            *(v.against for v in row.values[1:]),
        )
        for row in compared.figures
    ]
    parts = [
        f"## {entry.title}, side by side",
        f"**{with_plain_spaces(compared.lead)}**",
        f"What differs: {', '.join(compared.differs) or 'nothing'}.",
        "\n".join(
            f"- {s.letter}: {with_plain_spaces(f'{s.lead} {s.text}')}" for s in compared.sides
        ),
        md_table(("Figure", *letters, *against), rows),
        f"Calculated with Headroom: {link}",
    ]
    return "\n\n".join(parts) + "\n"


def _figure_value(figures: Any, name: str) -> Any:
    value = next((f.value for f in figures if f.name == name), None)
    return "" if value is None else value
