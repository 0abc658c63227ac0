"""Note types and decks of a collection, in the older and in the newer way."""

import dataclasses
import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from app.exchange.formats.apkg.packing import fields_of

_CLOZE = 1
_LEVELS = "\x1f"  # between the levels of a deck's name in newer collections
_LONGEST_NAME = 120


@dataclasses.dataclass(frozen=True, slots=True)
class NoteType:
    """The fields of a note, and the templates (front, back) of its cards by ordinal.

    A cloze type has one template for all of its cards.
    """

    name: str
    fields: tuple[str, ...]
    templates: Mapping[int, tuple[str, str]]
    cloze: bool = False
    size: int = 0  # characters of the longest template


def note_types(db: sqlite3.Connection) -> dict[int, NoteType]:
    """Every note type by its number; those that cannot be read are left out."""
    ((models,),) = db.execute("SELECT models FROM col LIMIT 1").fetchall() or ((None,),)
    if models:
        return dict(_older_types(_objects(models)))
    return _newer_types(db)


def deck_names(db: sqlite3.Connection) -> dict[int, str]:
    """The name of every deck by its number."""
    ((decks,),) = db.execute("SELECT decks FROM col LIMIT 1").fetchall() or ((None,),)
    found: Iterable[tuple[Any, Any]]
    if decks:
        found = [(d.get("id"), d.get("name")) for d in _objects(decks)]
    else:
        found = db.execute("SELECT id, name FROM decks").fetchmany(10_000)
    return {_whole(number): _deck(name) for number, name in found}


def _deck(name: Any) -> str:
    words = " ".join(str(name).replace(_LEVELS, "::").split())
    return "".join(c for c in words if c.isprintable())[:_LONGEST_NAME]


def _older_types(models: Iterable[dict[str, Any]]) -> Iterator[tuple[int, NoteType]]:
    for model in models:
        fields = sorted(_dicts(model.get("flds")), key=lambda f: _whole(f.get("ord")))
        templates = {
            _whole(t.get("ord")): (str(t.get("qfmt", "")), str(t.get("afmt", "")))
            for t in _dicts(model.get("tmpls"))
        }
        yield (
            _whole(model.get("id")),
            NoteType(
                str(model.get("name", "")),
                tuple(str(f.get("name", "")) for f in fields),
                templates,
                model.get("type") == _CLOZE,
                _longest(templates),
            ),
        )


def _newer_types(db: sqlite3.Connection) -> dict[int, NoteType]:
    """Note types in tables of their own, their settings as protocol buffers."""
    fields: dict[int, list[tuple[int, str]]] = {}
    for number, place, name in db.execute("SELECT ntid, ord, name FROM fields"):
        fields.setdefault(_whole(number), []).append((_whole(place), str(name)))
    templates: dict[int, dict[int, tuple[str, str]]] = {}
    for number, place, config in db.execute("SELECT ntid, ord, config FROM templates"):
        parts = _message(config)
        both = _words(parts.get(1)), _words(parts.get(2))
        templates.setdefault(_whole(number), {})[_whole(place)] = both
    types = {}
    for number, name, config in db.execute("SELECT id, name, config FROM notetypes"):
        key = _whole(number)
        names = tuple(name for _, name in sorted(fields.get(key, [])))
        cloze = _message(config).get(1) == _CLOZE
        faces = templates.get(key, {})
        types[key] = NoteType(str(name), names, faces, cloze, _longest(faces))
    return types


def _longest(templates: Mapping[int, tuple[str, str]]) -> int:
    return max((len(q) + len(a) for q, a in templates.values()), default=0)


def _message(raw: Any) -> dict[int, int | bytes]:
    return dict(fields_of(raw)) if isinstance(raw, bytes) else {}


def _words(value: int | bytes | None) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else ""


def _objects(text: Any) -> list[dict[str, Any]]:
    """The values of a JSON object that are objects themselves."""
    try:
        found = json.loads(text)
    except (ValueError, TypeError, RecursionError):
        return []
    return _dicts(list(found.values()) if isinstance(found, dict) else None)


def _dicts(value: Any) -> list[dict[str, Any]]:
    return [v for v in value if isinstance(v, dict)] if isinstance(value, list) else []


def _whole(value: Any) -> int:
    """A whole number, −1 for anything else."""
    if isinstance(value, str) and value.isdigit() and len(value) < 20:
        return int(value)
    return value if isinstance(value, int) else -1
