"""A comparison to take along: JSON, CSV and Markdown."""

from typing import Any

from app.calculators.comparison import Comparison, Scenario
from app.calculators.exports import answer, csv_of, md_table, plain
from app.estimator.registry import EstimateSpec

Scenarios = dict[str, Scenario]


def sides_as_json(entry: EstimateSpec, scenarios: Scenarios) -> dict[str, Any]:
    """Every scenario as a whole answer in base units, by its letter."""
    return {
        letter: answer(entry, s.inputs, s.estimate)
        for letter, s in scenarios.items()
        if s.estimate is not None
    }


def sides_as_csv(scenarios: Scenarios) -> str:
    """One row for each figure: name, label, unit, and its value in each scenario."""
    estimates = [s.estimate for s in scenarios.values() if s.estimate is not None]
    rows = [
        (f.name, f.label, f.unit, *(_value(e.figures, f.name) for e in estimates))
        for f in estimates[0].figures
    ]
    return csv_of(("name", "label", "unit", *scenarios), rows)


def sides_as_markdown(entry: EstimateSpec, compared: Comparison, link: str) -> str:
    """The comparison as Markdown: the sentence, what differs, the figures."""
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
        f"**{plain(compared.lead)}**",
        f"What differs: {', '.join(compared.differs) or 'nothing'}.",
        "\n".join(f"- {s.letter}: {plain(f'{s.lead} {s.text}')}" for s in compared.sides),
        md_table(("Figure", *letters, *against), rows),
        f"Calculated with Headroom: {link}",
    ]
    return "\n\n".join(parts) + "\n"


def _value(figures: Any, name: str) -> Any:
    value = next((f.value for f in figures if f.name == name), None)
    return "" if value is None else value
