"""The catalog as JSON: every value in base units, with source and date."""

import dataclasses
from collections.abc import Callable
from typing import Any

from app.estimator.hardware import accelerators
from app.estimator.hardware.fields import UNITS
from app.estimator.models import lookup
from app.estimator.models.architecture import Architecture
from app.estimator.models.formats import PUBLISHED, format_of

# The layers themselves are the estimator's own business; their sums are shown.
_INNER = frozenset({"stack", "encoder", "runs", "tower", "quantization"})


def catalog_json(kind: str) -> dict[str, Any]:
    """One catalog with its units; raises KeyError for a kind that is none."""
    rows = _ROWS[kind]()
    used = {name for row in rows for name in row}
    return {"units": {n: u for n, u in UNITS.items() if n in used}, kind: rows}


def _models() -> list[dict[str, Any]]:
    return [{"id": key, **_shape(lookup.find_model(key))} for key, _ in lookup.models()]


def _shape(model: Architecture) -> dict[str, Any]:
    names = [f.name for f in dataclasses.fields(model) if f.name not in _INNER]
    shape = {name: getattr(model, name) for name in names}
    published = format_of(model, PUBLISHED)
    return {
        **shape,
        "tower_parameters": model.tower_parameters,
        "published_weights": published.label,
    }


def _row(entry: Any) -> dict[str, Any]:
    return {f.name: _plain(getattr(entry, f.name)) for f in dataclasses.fields(entry)}


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return list(value)
    return dict(value) if hasattr(value, "items") else value


_ROWS: dict[str, Callable[[], list[dict[str, Any]]]] = {
    "models": _models,
    "accelerators": lambda: [_row(a) for a in accelerators.accelerators()],
    "systems": lambda: [_row(s) for s in accelerators.systems()],
    "networks": lambda: [_row(n) for n in accelerators.networks()],
}
