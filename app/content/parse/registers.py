"""The TOML files: syllabus, bibliography, mock exams."""

import datetime as dt
import re
import tomllib
from collections.abc import Mapping
from typing import Any

from app.content.identity import SLUG, did_you_mean
from app.content.manuscript import Manuscript
from app.content.model import (
    Domain,
    ExamBlueprint,
    Objective,
    Place,
    Source,
    Syllabus,
)

_SOURCE_KEYS = ("title", "publisher", "address", "read", "year", "note")
_SYLLABUS_KEYS = ("exam", "title", "order", "notes", "domains")
_EXAM_KEYS = ("title", "questions", "minutes", "notes", "domains")


def read_toml(sheet: Manuscript) -> dict[str, Any]:
    """The tables of a TOML file; what cannot be read is reported (E10)."""
    try:
        return tomllib.loads(sheet.text)
    except (tomllib.TOMLDecodeError, RecursionError, ValueError) as error:
        message = str(error)
        at = re.search(r"at line (\d+), column (\d+)", message)
        line, column = (int(at[1]), int(at[2])) if at else (len(sheet.lines), 1)
        what = message.partition(" (at ")[0]
        code = "E11" if "overwrite" in what.lower() else "E10"
        hint = 'Write key = "text", one to a line, below a [heading].'
        sheet.report(code, line, column, f"The file cannot be read: {what}.", hint)
        return {}


_ENTRY = re.compile(r"^\s*(?:number\s*=\s*\"([^\"]+)\"|\[([\w-]+)\])\s*$")


def entries(sheet: Manuscript) -> tuple[tuple[str, int], ...]:
    """Where the numbers and keys of a register stand: (name, line)."""
    return tuple(
        (match[1] or match[2], line)
        for line, text in enumerate(sheet.lines, 1)
        if (match := _ENTRY.match(text))
    )


def _refuse_unknown(
    table: Mapping[str, Any], known: tuple[str, ...], sheet: Manuscript
) -> None:
    for name in table:
        if name not in known:
            hint = did_you_mean(name, known)
            place = sheet.find(name, 1, len(sheet.lines))
            sheet.report("E12", *place, f"“{name}” is not a key here.", hint)


def _texts(value: Any) -> tuple[str, ...]:
    return tuple(str(v) for v in value) if isinstance(value, list) else ()


def read_sources(sheet: Manuscript) -> tuple[Source, ...]:
    """The bibliography; an entry without a title is reported and left out."""
    found = []
    for key, table in read_toml(sheet).items():
        place = sheet.find(f"[{key}]", 1, len(sheet.lines))
        if not isinstance(table, dict):
            message = f"“{key}” stands outside of an entry."
            sheet.report("E10", *sheet.find(key, 1, len(sheet.lines)), message)
            continue
        if not SLUG.match(key):
            hint = "Use lower-case letters, digits and hyphens."
            sheet.report("E03", *place, f"“{key}” is not a key of a source.", hint)
            continue
        _refuse_unknown(table, _SOURCE_KEYS, sheet)
        if not table.get("title"):
            sheet.report("E10", *place, f"The source “{key}” has no title.", "")
            continue
        found.append(_source(key, table, sheet))
    return tuple(found)


def _source(key: str, table: Mapping[str, Any], sheet: Manuscript) -> Source:
    address = str(table.get("address", ""))
    place = sheet.find(f"[{key}]", 1, len(sheet.lines))
    if not address.startswith("https://"):
        message = f"The source “{key}” has no https address."
        sheet.report("W17", *place, message, 'Write address = "https://…".')
    read = table.get("read")
    return Source(
        key,
        str(table["title"]),
        str(table.get("publisher", "")),
        address if address.startswith(("https://", "http://")) else "",
        read if isinstance(read, dt.date) else None,
        str(table.get("year", "")),
        str(table.get("note", "")),
    )


def read_syllabus(sheet: Manuscript) -> Syllabus:
    """The exam, its domains and objectives, and the order of the topics."""
    tables = read_toml(sheet)
    _refuse_unknown(tables, _SYLLABUS_KEYS, sheet)
    rows = tables.get("domains", [])
    domains = tuple(_domain(r) for r in rows if isinstance(r, dict))
    total = sum(d.weight for d in domains)
    if tables and abs(total - 1) > 0.005:
        place = sheet.find("weight", 1, len(sheet.lines))
        message = f"The weights of the domains add up to {total:.0%}, not to 100 %."
        sheet.report("E70", *place, message, "Correct the weights.")
    order = _texts(tables.get("order"))
    for name in order:
        sheet.mention("topic", name, *sheet.find(f'"{name}"', 1, len(sheet.lines)))
    return Syllabus(
        str(tables.get("exam", "")),
        str(tables.get("title", "")),
        domains,
        order,
        _texts(tables.get("notes")),
    )


def _domain(table: Mapping[str, Any]) -> Domain:
    number = str(table.get("number", ""))
    weight = table.get("weight", 0)
    rows = table.get("objectives", [])
    objectives = tuple(
        Objective(str(r.get("number", "")), str(r.get("title", "")), number)
        for r in rows
        if isinstance(r, dict)
    )
    share = float(weight) if isinstance(weight, int | float) else 0.0
    share = share / 100 if share > 1 else share
    return Domain(number, str(table.get("title", "")), share, objectives)


def read_exam(sheet: Manuscript, slug: str) -> ExamBlueprint | None:
    """A mock exam; None when it does not say how many questions it has."""
    tables = read_toml(sheet)
    _refuse_unknown(tables, _EXAM_KEYS, sheet)
    domains = tables.get("domains")
    counts = {
        str(k): v
        for k, v in (domains.items() if isinstance(domains, dict) else ())
        if isinstance(v, int) and v > 0
    }
    questions, minutes = tables.get("questions"), tables.get("minutes")
    if not isinstance(questions, int) or not isinstance(minutes, int) or not counts:
        if tables:
            hint = "Write questions = 50, minutes = 60 and [domains] with a count each."
            sheet.report("E10", 1, 1, "The mock exam is incomplete.", hint)
        return None
    if sum(counts.values()) != questions:
        place = sheet.find("questions", 1, len(sheet.lines))
        total = sum(counts.values())
        message = f"The domains hold {total} questions, the exam says {questions}."
        sheet.report("E70", *place, message, "Make them equal.")
    title = str(tables.get("title", slug))
    notes = _texts(tables.get("notes"))
    place_ = Place(sheet.path, 1)
    return ExamBlueprint(slug, title, questions, minutes, counts, place_, notes)
