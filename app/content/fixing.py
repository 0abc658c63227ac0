"""`headroom check --fix`: missing ids, stale figures, ids.lock, written in place."""

import dataclasses
import datetime as dt
import difflib
import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from app.content.identity import slug
from app.content.live.shared import file_of
from app.content.live.watched_files import WatchedFiles
from app.content.parsed import Fact, LockEntry, ParsedFile
from app.content.problems import Problem
from app.content.read import parse
from app.content.read.lock import write_lock
from app.content.rules.bank import Bank, check_identity, locked_keys
from app.content.rules.reviews import is_unreviewed, reviewed_of
from app.content.source_file import Edit

LOCK = "ids.lock"
_LONGEST = 48


@dataclasses.dataclass(frozen=True, slots=True)
class Change:
    """What `--fix` makes of a file; `before` is None where there was none."""

    path: str
    before: str | None
    after: str


def fix_folder(folder: Path, today: dt.date) -> list[Change]:
    """Write what needs no judgment; raises OSError where a file cannot be written."""
    made = changes(folder, today)
    for change in made:
        _write(file_of(folder, change.path), change.after)
    return made


def changes(folder: Path, today: dt.date) -> list[Change]:
    """What `fix_folder` would write: missing ids, stale figures, then ids.lock."""
    readings, _ = WatchedFiles(folder, None).read()
    ids = _ids(readings)
    copies = [p for p in check_identity(Bank(readings, today)) if p.code == "E08"]
    made = []
    for path, reading in readings.items():
        lines = _lines(file_of(folder, path))
        wanted = [p for p in reading.problems if p.code == "E01"]
        wanted += [p for p in copies if p.path == path]
        edits = [*reading.edits, *_id_edits(wanted, lines, ids)]
        if edits:
            made.append(_edited(folder, path, edits))
            readings[path] = parse(made[-1].after, path)
    return [c for c in (*made, _lock(folder, readings, today)) if c.before != c.after]


def as_diff(made: Iterable[Change]) -> str:
    """The changes as a unified diff, which `patch` and every editor read."""
    found: list[str] = []
    for change in made:
        old = "/dev/null" if change.before is None else f"a/{change.path}"
        found += difflib.unified_diff(
            (change.before or "").splitlines(),
            change.after.splitlines(),
            old,
            f"b/{change.path}",
            lineterm="",
        )
    return "\n".join(found)


def note_on(made: Iterable[Change], *, written: bool) -> str:
    """What follows from a new ids.lock, which knows nothing of an earlier one.

    `written` is whether it is there now, and not only would be.
    """
    new = next((c for c in made if c.path == LOCK and c.before is None), None)
    if new is None:
        return ""
    guards = "from today on it guards the ids that stand in the course"
    told = f"ids.lock is new: {guards}. "
    if not written:
        told = "ids.lock does not exist yet: --fix without --dry-run would write it. "
    return (
        f"{told}If there was one before, bring it back from your backup or repository "
        "instead: only it knows retired ids, first days and earlier wordings."
    )


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


def _edited(folder: Path, path: str, edits: Iterable[Edit]) -> Change:
    """Make the edits from the last to the first, keeping the file's line ends."""
    raw = file_of(folder, path).read_bytes().decode("utf-8")
    ending = "\r\n" if "\r\n" in raw else "\n"
    lines = raw.replace("\r\n", "\n").split("\n")
    ordered = sorted(edits, key=lambda e: (e.line, e.column), reverse=True)
    for edit in dict.fromkeys(ordered):
        line, start = lines[edit.line - 1], edit.column - 1
        if line[start:].startswith(edit.old):
            end = start + len(edit.old)
            lines[edit.line - 1] = line[:start] + edit.new + line[end:]
    return Change(path, raw, ending.join("\n".join(lines).split("\n")))


def _write(path: Path, text: str) -> None:
    """Replace a file at once, so that a reader never sees half of it."""
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        beside.write_bytes(text.encode())
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)


def _lock(folder: Path, readings: Mapping[str, ParsedFile], today: dt.date) -> Change:
    """Enter new ids and new wordings; what vanished stays until it is retired."""
    before = readings.get(LOCK)
    entries = {e.id: e for e in before.lock} if before else {}
    for path, reading in readings.items():
        read = reviewed_of(path, readings)
        for fact in reading.facts:
            entry = _entered(fact, entries.get(fact.id), today)
            entries[fact.id] = _reviewed(entry, fact, read, today)
    lock = folder / LOCK
    old = lock.read_bytes().decode("utf-8", "replace") if lock.is_file() else None
    # What cannot be read would be lost if it were written anew.
    whole = before is None or not before.problems
    return Change(LOCK, old, write_lock(entries.values()) if whole else old or "")


def _reviewed(
    entry: LockEntry, fact: Fact, read: dt.date | None, today: dt.date
) -> LockEntry:
    """The key as it was reviewed; a changed one stands only once it was."""
    if read is None or fact.broken or not fact.key or entry.retired:
        return entry
    if entry.key and is_unreviewed(entry, fact, read, today):
        return entry
    return dataclasses.replace(entry, key=fact.key, read=read.isoformat())


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
