"""docs/authoring.md: units, estimates, problems and limits from their declarations."""

from collections import defaultdict

from app.estimator import registry
from app.estimator.inputs import input_specs
from app.markup import problems as limits
from app.markup.expressions import read_catalog_field
from app.markup.quantities import UNITS
from docs.reference.parts import DOCS, code, codes, filled, table

PATH = DOCS / "authoring.md"
_KINDS = {
    "": "plain numbers",
    "B": "data",
    "B/s": "data for each second",
    "FLOP": "arithmetic",
    "FLOP/s": "arithmetic for each second",
    "W": "power",
    "Wh": "energy",
    "s": "time",
    "USD": "money",
    "USD/h": "money for each hour",
    "kg": "mass",
    "kg/kWh": "emissions for each unit of energy",
    "VA": "apparent power",
    "token": "tokens",
    "token/s": "tokens for each second",
    "sequence": "sequences",
    "GPU": "GPUs",
    "m": "length",
    "m*m": "area",
    "L": "volume",
    "L/s": "flow",
    "mol": "amount of substance",
    "mol/L": "concentration of a substance",
    "kg/L": "concentration by mass",
    "m/s": "speed",
    "m/s*s": "acceleration",
    "N": "force",
    "Pa": "pressure",
    "1/s": "frequency",
    "A": "current",
    "V": "voltage",
    "Ω": "resistance",
    "Ah": "charge",
    "EUR": "euros",
    "GBP": "pounds",
    "JPY": "yen",
    "INR": "rupees",
}
_CATALOGUE = (
    ("hw", "an accelerator", "h100-sxm5-80"),
    ("hw", "a server", "dgx-h100"),
    ("hw", "a link, adapter or switch", "connectx-7"),
    ("model", "a model", "llama-3.1-70b"),
)
_HIDDEN = frozenset({"id", "note", "read_on", "tower"})
_LIMITS = {
    "MOST_BYTES": "bytes of a file",
    "MOST_LINES": "lines of a file",
    "MOST_ITEMS": "questions or cards in a file",
    "MOST_OPTIONS": "options, steps, pairs or blanks of a question",
    "MOST_HINTS": "hints of a question",
    "MOST_PARAMETERS": "names in `params`, and as many in `let`",
    "MOST_LETTERS": "letters of a paragraph, a heading or a cell",
    "MOST_COLUMNS": "columns of a table",
    "MOST_CELLS": "cells of a table",
    "MOST_TERMS": "terms of the glossary",
    "MOST_ENTRIES": "topics, sources, domains, or questions of a mock exam",
    "MOST_MINUTES": "minutes of a mock exam",
}


def document() -> str:
    """The document as it has to be."""
    parts = {
        "units": _units(),
        "catalogue": _catalogue(),
        "estimates": _estimates(),
        "limits": _limits(),
    }
    return filled(PATH.read_text(encoding="utf-8"), parts)


def _units() -> str:
    kinds: dict[str, list[str]] = defaultdict(list)
    for unit, (base, _) in UNITS.items():
        if unit:
            kinds[base].append(unit)
    several = [
        (_KINDS.get(base, code(base)), codes(units))
        for base, units in kinds.items()
        if len(units) > 1 or base in _KINDS
    ]
    alone = [units[0] for base, units in kinds.items() if len(units) == 1 and base not in _KINDS]
    return table(
        ("what", "units"),
        [
            *several,
            ("each by itself, currencies by their code of ISO 4217", codes(alone)),
        ],
    )


def _catalogue() -> str:
    rows = (
        (f"`{scheme}:`, {what} such as {code(name)}", codes(_fields(scheme, name)))
        for scheme, what, name in _CATALOGUE
    )
    return table(("entry", "fields"), rows)


def _fields(scheme: str, name: str) -> list[str]:
    """What a target can ask of an entry: numbers, words, and yes or no."""
    _, entry = read_catalog_field(scheme, name, "name")
    named = [word for word in dir(entry) if word[0] != "_" and word not in _HIDDEN]
    kinds = int | float | str | None
    return [word for word in named if isinstance(getattr(entry, word), kinds)]


def _estimates() -> str:
    return "\n\n".join(
        f"**{code(entry.name)}**: {entry.summary}\n\n"
        f"- inputs: {codes(input_specs(entry.inputs_type))}\n"
        f"- outputs: {codes(output.name for output in entry.outputs)}"
        for entry in registry.list_estimates()
    )


def _limits() -> str:
    rows = ((words, f"{getattr(limits, name):,}") for name, words in _LIMITS.items())
    return table(("what", "at most"), rows)
