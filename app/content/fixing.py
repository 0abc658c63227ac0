"""`headroom check --fix`: missing ids, stale figures, ids.lock, written in place."""

import dataclasses
import datetime as dt
import difflib
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path

from app.content.identity import LONGEST_ID, slug
from app.content.live.cache import replace_file
from app.content.live.library import problems_of
from app.content.live.shared import file_of
from app.content.live.watched_files import WatchedFiles
from app.content.parsed import ItemFingerprint, LockEntry, ParsedFile, used_ids
from app.content.problems import ContentProblem
from app.content.read import parse
from app.content.read.lock import write_lock
from app.content.rules.bank import ParsedCourse, locked_keys, owners_of
from app.content.rules.id_evidence import LOCK, Claim
from app.content.rules.id_owners import Owners
from app.content.rules.reviews import is_unreviewed, reviewed_of
from app.content.source_file import TextEdit

_LONGEST = 48
_LINE_END = re.compile(r"(\r\n|\r|\n)")
_MARK = "\ufeff"  # that a file may begin with, and that no column counts


@dataclasses.dataclass(frozen=True, slots=True)
class FileChange:
    """What `--fix` makes of a file; `before` is None where there was none."""

    path: str
    before: str | None
    after: str


def fix_folder(folder: Path, today: dt.date, accepted: Collection[str] = ()) -> list[FileChange]:
    """Write what needs no judgment; raises OSError where a file cannot be written."""
    made = changes(folder, today, accepted)
    for change in made:
        replace_file(file_of(folder, change.path), change.after.encode())
    return made


def changes(folder: Path, today: dt.date, accepted: Collection[str] = ()) -> list[FileChange]:
    """What `fix_folder` would write: missing ids, stale figures, then ids.lock.

    `accepted` are ids whose items are the same as before, whatever they say now.
    """
    readings, _ = WatchedFiles(folder, None).read()
    ids = _id_edits(owners_of(ParsedCourse(readings, today), accepted), used_ids(readings))
    made = []
    for path, reading in readings.items():
        edits = [*reading.edits, *ids.get(path, ())]
        if edits:
            made.append(_edited(folder, path, edits))
            readings[path] = parse(made[-1].after, path)
    lock = _lock(folder, readings, today, accepted)
    return [c for c in (*made, lock) if c.before != c.after]


def as_diff(made: Iterable[FileChange]) -> str:
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


def note_on(made: Iterable[FileChange], *, written: bool) -> str:
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


def _id_edits(owners: Owners, used: set[str]) -> dict[str, list[TextEdit]]:
    """New ids by file: for items that have none, and for copies."""
    edits: dict[str, list[TextEdit]] = defaultdict(list)
    for path, item in owners.unidentified:
        edits[path].append(item.edit(_new(_heading_slug(item.title), used)))
    for copy in owners.copies:
        line, column = copy.fact.id_at
        old = copy.fact.id
        edits[copy.path].append(TextEdit(line, column, old, _new(old, used)))
    return edits


def _heading_slug(heading: str) -> str:
    words = slug(heading)[:_LONGEST].strip("-") or "item"
    return words.rpartition("-")[0] if len(words) == _LONGEST else words


def _new(name: str, ids: set[str]) -> str:
    """A name that was never used, and is from now on."""
    found, count = name, 1
    while found in ids:
        count += 1
        end = f"-{count}"
        found = name[: LONGEST_ID - len(end)].rstrip("-") + end
    ids.add(found)
    return found


def _edited(folder: Path, path: str, edits: Iterable[TextEdit]) -> FileChange:
    """Make the edits from the last to the first, keeping the file's line ends."""
    raw = file_of(folder, path).read_bytes().decode("utf-8")
    parts = _LINE_END.split(raw)  # lines, and between them their ends
    ends = [*parts[1::2], parts[1] if len(parts) > 1 else "\n"]
    ordered = sorted(edits, key=lambda e: (e.line, e.column), reverse=True)
    for edit in dict.fromkeys(ordered):
        at = 2 * (edit.line - 1)
        line = parts[at]
        start = edit.column - 1 + (line[:1] == _MARK and at == 0)
        if line[start:].startswith(edit.old):
            new = edit.new.replace("\n", ends[edit.line - 1])
            parts[at] = line[:start] + new + line[start + len(edit.old) :]
    return FileChange(path, raw, "".join(parts))


def _lock(
    folder: Path,
    readings: Mapping[str, ParsedFile],
    today: dt.date,
    accepted: Collection[str],
) -> FileChange:
    """Enter new ids and new wordings; what vanished stays until it is retired.

    The line of an item that is in doubt or in error stays as it is.
    """
    before = readings.get(LOCK)
    entries = {e.id: e for e in before.lock} if before else {}
    owners = owners_of(ParsedCourse(readings, today), accepted)
    refused = {p.item for p in problems_of(readings, folder, today) if _is_error(p)}
    for name, owner in owners.items.items():
        refuses = owner.fact.broken if name in accepted else name in refused
        if refuses or name in owners.doubtful:
            continue
        read = reviewed_of(owner.path, readings)
        entry = _entered(owner, entries.get(name), today)
        entries[name] = _reviewed(entry, owner.fact, read, today)
    lock = folder / LOCK
    old = lock.read_bytes().decode("utf-8", "replace") if lock.is_file() else None
    # What cannot be read would be lost if it were written anew.
    whole = before is None or not before.problems
    return FileChange(LOCK, old, write_lock(entries.values()) if whole else old or "")


def _is_error(found: ContentProblem) -> bool:
    return found.severity == "error"


def _reviewed(
    entry: LockEntry, fact: ItemFingerprint, read: dt.date | None, today: dt.date
) -> LockEntry:
    """The key as it was reviewed; a changed one stands only once it was."""
    if read is None or fact.broken or not fact.key or entry.retired:
        return entry
    if entry.key and is_unreviewed(entry, fact, read, today):
        return entry
    return dataclasses.replace(entry, key=fact.key, read=read.isoformat())


def _entered(owner: Claim, known: LockEntry | None, today: dt.date) -> LockEntry:
    fact = owner.fact
    names = locked_keys(known, fact) if known else {}
    return LockEntry(
        fact.id,
        fact.type,
        known.first_seen if known else today.isoformat(),
        "",
        fact.sketch,
        tuple((names.get(key, key), digest) for key, digest in fact.options),
        0,
        known.key if known else "",
        known.read if known else "",
        fact.heading,
        fact.body,
        owner.path,
    )
