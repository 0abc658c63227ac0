"""`headroom check --fix`: missing ids, stale figures, ids.lock, written in place."""

import dataclasses
import datetime as dt
import os
import re
from collections.abc import Iterable
from pathlib import Path

from app.content.identity import slug
from app.content.live.watched_files import WatchedFiles
from app.content.parsed import Fact, LockEntry, ParsedFile
from app.content.problems import Problem
from app.content.read.lock import write_lock
from app.content.rules.bank import Bank, check_identity, locked_keys
from app.content.source_file import Edit

_LONGEST = 48


def fix_folder(folder: Path, today: dt.date) -> None:
    """Write what needs no judgment; raises OSError where a file cannot be written."""
    readings, _ = WatchedFiles(folder, None).read()
    ids = _ids(readings)
    copies = [p for p in check_identity(Bank(readings, today)) if p.code == "E08"]
    for path, reading in readings.items():
        lines = _lines(folder / path)
        wanted = [p for p in reading.problems if p.code == "E01"]
        wanted += [p for p in copies if p.path == path]
        edits = [*reading.edits, *_id_edits(wanted, lines, ids)]
        if edits:
            _rewrite(folder / path, edits)
    readings, _ = WatchedFiles(folder, None).read()
    _lock(folder, readings, today)


def _ids(readings: dict[str, ParsedFile]) -> set[str]:
    """Every id in use or ever used."""
    used = {f.id for r in readings.values() for f in r.facts}
    return used | {e.id for r in readings.values() for e in r.lock}


def _lines(path: Path) -> list[str]:
    text = path.read_text(encoding="utf-8-sig", errors="replace")
    return text.replace("\r\n", "\n").replace("\r", "\n").split("\n")


def _id_edits(
    problems: Iterable[Problem], lines: list[str], ids: set[str]
) -> Iterable[Edit]:
    """New ids: below a heading without one, behind an empty `q:`, for a copy."""
    for problem in problems:
        at, line = problem.line, lines[problem.line - 1]
        if problem.code == "E08":
            at, line = _comment_of(problem.line, lines)
            old = f"q: {problem.item}"
            yield Edit(at, line.find(old) + 1, old, f"q: {_new(problem.item, ids)}")
        elif line.lstrip().startswith("#"):
            name = _new(_heading_slug(line), ids)
            yield Edit(at, 1, line, f"{line}\n<!-- q: {name} -->")
        else:
            name = _new(_heading_slug(_heading_above(at, lines)), ids)
            found = re.search(r"q[ \t]*:[ \t]*", line)
            if found:
                yield Edit(at, found.start() + 1, found[0], f"q: {name} ".rstrip())


def _comment_of(line: int, lines: list[str]) -> tuple[int, str]:
    for at in range(line, min(line + 4, len(lines) + 1)):
        if re.search(r"q\s*:", lines[at - 1]):
            return at, lines[at - 1]
    return line, lines[line - 1]


def _heading_above(line: int, lines: list[str]) -> str:
    return next((t for t in reversed(lines[:line]) if t.startswith("#")), "item")


def _heading_slug(heading: str) -> str:
    words = slug(heading)[:_LONGEST].strip("-") or "item"
    return words.rpartition("-")[0] if len(words) == _LONGEST else words


def _new(name: str, ids: set[str]) -> str:
    """A name that was never used, and is from now on."""
    found, count = name, 1
    while found in ids:
        count += 1
        found = f"{name}-{count}"
    ids.add(found)
    return found


def _rewrite(path: Path, edits: Iterable[Edit]) -> None:
    """Make the edits from the last to the first, keeping the file's line ends."""
    raw = path.read_bytes().decode("utf-8")
    ending = "\r\n" if "\r\n" in raw else "\n"
    lines = raw.replace("\r\n", "\n").split("\n")
    ordered = sorted(edits, key=lambda e: (e.line, e.column), reverse=True)
    for edit in dict.fromkeys(ordered):
        line, start = lines[edit.line - 1], edit.column - 1
        if line[start:].startswith(edit.old):
            end = start + len(edit.old)
            lines[edit.line - 1] = line[:start] + edit.new + line[end:]
    _write(path, ending.join("\n".join(lines).split("\n")))


def _write(path: Path, text: str) -> None:
    """Replace a file at once, so that a reader never sees half of it."""
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        beside.write_bytes(text.encode())
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)


def _lock(folder: Path, readings: dict[str, ParsedFile], today: dt.date) -> None:
    """Enter new ids and new wordings; what vanished stays until it is retired."""
    before = readings.get("ids.lock")
    entries = {e.id: e for e in before.lock} if before else {}
    for reading in readings.values():
        for fact in reading.facts:
            entries[fact.id] = _entered(fact, entries.get(fact.id), today)
    text = write_lock(entries.values())
    path = folder / "ids.lock"
    if not path.is_file() or path.read_text(encoding="utf-8") != text:
        _write(path, text)


def _entered(fact: Fact, known: LockEntry | None, today: dt.date) -> LockEntry:
    if known is None:
        seen = today.isoformat()
        return LockEntry(fact.id, fact.type, seen, "", fact.sketch, fact.options, 0)
    if known.retired or fact.broken:
        return known
    names = locked_keys(known, fact)
    options = tuple((names.get(key, key), digest) for key, digest in fact.options)
    return dataclasses.replace(
        known, type=fact.type, sketch=fact.sketch, options=options
    )
