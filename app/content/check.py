"""`headroom check` and --fix."""

import dataclasses
import datetime as dt
import difflib
import json
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from app.content.course_rules import (
    ParsedCourse,
    is_unreviewed,
    locked_keys,
    owners_of,
    reviewed_of,
)
from app.content.file_reader import parse
from app.content.file_watcher import WatchedFiles, file_of, without_collection
from app.content.id_ownership import LOCK, Claim, Owners
from app.content.library import problems_of
from app.content.parse_cache import replace_file
from app.content.parsed_file import ItemFingerprint, LockEntry, ParsedFile, used_ids
from app.content.toml_reader import write_lock
from app.markup.ids import LONGEST_ID, slug
from app.markup.problems import ContentProblem, TextEdit, make_problem

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


_NAME = 0xFFF  # the low bits of the flags hold the length of the name, up to this


def is_tracked(file: Path) -> bool:
    """Whether the repository around a file knows it, there or not.

    An entry of the index is read by its flags, its name and the zero behind it, which
    is how versions 2 and 3 write it. Where there is no such index the answer is no.
    """
    for root in file.absolute().parents:
        index = _index_of(root)
        if index is not None:
            name = file.absolute().relative_to(root).as_posix().encode()
            flags = min(len(name), _NAME).to_bytes(2)
            return flags + name + b"\0" in index
    return False


def _index_of(root: Path) -> bytes | None:
    """The index of the repository whose files lie in `root`; None where none does."""
    git = root / ".git"
    try:
        if git.is_file():  # a further work tree names its folder in a file
            word = git.read_text(encoding="utf-8").partition("gitdir:")[2].strip()
            git = root / word
        return (git / "index").read_bytes() if git.is_dir() else None
    except (OSError, ValueError):
        return None


_FIELDS = ("path", "line", "column", "code", "severity", "message", "hint")


def check(
    folder: Path,
    fix: bool = False,
    cache: Path | None = None,
    today: dt.date | None = None,
) -> list[ContentProblem]:
    """Every problem of the course under `folder`, sorted by place.

    With `fix`, missing ids, stale figures and ids.lock are written first; what is
    left is answered.
    """
    day = today or dt.datetime.now(dt.UTC).date()
    if fix:
        fix_folder(folder, day)
    with without_collection():
        readings, _ = WatchedFiles(folder, cache).read()
        found = [*problems_of(readings, folder, day), *_lost(folder / LOCK)]
        return sorted(found)


def _lost(lock: Path) -> Iterator[ContentProblem]:
    """E79: the list of ids is gone, and the repository says that there was one."""
    if not lock.is_file() and is_tracked(lock):
        message = "ids.lock is gone, which guards the ids of the course."
        hint = "Bring it back: git checkout -- ids.lock. With --fix it would begin anew."
        yield make_problem((LOCK, 1, 1), "E79", message, hint)


def write(problems: Sequence[ContentProblem], form: str = "text") -> str:
    """The problems as `text`, as `json` or as commands of `github`."""
    if form == "json":
        rows = [{name: getattr(p, name) for name in _FIELDS} for p in problems]
        return json.dumps(rows, ensure_ascii=False, indent=1)
    if form == "github":
        return "\n".join(map(_annotation, problems))
    return "\n".join([*map(_sentence, problems), _summary(problems)])


def _sentence(problem: ContentProblem) -> str:
    place = f"{problem.path}:{problem.line}:{problem.column}"
    line = f"{place} {problem.code} {problem.message}"
    return f"{line}\n    {problem.hint}" if problem.hint else line


def _summary(problems: Sequence[ContentProblem]) -> str:
    if not problems:
        return "No problems."
    errors = sum(p.severity == "error" for p in problems)
    return f"{_count(errors, 'error')}, {_count(len(problems) - errors, 'warning')}."


def _count(number: int, word: str) -> str:
    return f"{number} {word}{'' if number == 1 else 's'}"


def _annotation(problem: ContentProblem) -> str:
    """A line that a code host shows beside the change."""
    fields = f"file={_property(problem.path)},line={problem.line},col={problem.column}"
    text = f"{problem.message} {problem.hint}".strip()
    return f"::{problem.severity} {fields},title={problem.code}::{_data(text)}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
