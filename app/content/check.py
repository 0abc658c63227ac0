"""Checks a course: the problem list of `headroom check`, its output formats, and `--fix`."""

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
    find_id_owners,
    is_key_changed_since_review,
    map_new_to_counted_keys,
    review_date_of_item_page,
)
from app.content.file_reader import parse_file
from app.content.file_watcher import WatchedFiles, locate_course_file, pause_garbage_collection
from app.content.id_ownership import LOCK, IdClaim, IdOwners
from app.content.library import find_problems
from app.content.lock_file import format_lock_file
from app.content.parse_cache import replace_file_atomically
from app.content.parsed_file import ItemFingerprint, LockEntry, ParsedFile, list_used_ids
from app.markup.problems import ContentProblem, TextEdit, make_problem
from app.markup.text import LONGEST_ID, slugify

_MAX_SLUG_LENGTH = 48
_LINE_END = re.compile(r"(\r\n|\r|\n)")
_MARK = "\ufeff"  # byte order mark, which column numbers do not count


@dataclasses.dataclass(frozen=True, slots=True)
class FileChange:
    """A change that `--fix` makes to a file. `before` is None for a new file."""

    path: str
    before: str | None
    after: str


def fix_course_files(
    folder: Path, today: dt.date, accepted: Collection[str] = ()
) -> list[FileChange]:
    """Apply all automatic fixes. Raises OSError if a file cannot be written."""
    made = plan_file_changes(folder, today, accepted)
    for change in made:
        replace_file_atomically(locate_course_file(folder, change.path), change.after.encode())
    return made


def plan_file_changes(
    folder: Path, today: dt.date, accepted: Collection[str] = ()
) -> list[FileChange]:
    """Return what `fix_course_files` would write: missing ids, stale figures, then ids.lock.

    `accepted` are ids whose items count as unchanged, even if their text differs.
    """
    readings, _ = WatchedFiles(folder, None).parse_current_files()
    ids = _missing_id_edits(
        find_id_owners(ParsedCourse(readings, today), accepted), list_used_ids(readings)
    )
    made = []
    for path, reading in readings.items():
        edits = [*reading.edits, *ids.get(path, ())]
        if edits:
            made.append(_apply_text_edits(folder, path, edits))
            readings[path] = parse_file(made[-1].after, path)
    lock = _update_lock_file(folder, readings, today, accepted)
    return [c for c in (*made, lock) if c.before != c.after]


def format_diff(changes: Iterable[FileChange]) -> str:
    lines: list[str] = []
    for change in changes:
        old = "/dev/null" if change.before is None else f"a/{change.path}"
        lines += difflib.unified_diff(
            (change.before or "").splitlines(),
            change.after.splitlines(),
            old,
            f"b/{change.path}",
            lineterm="",
        )
    return "\n".join(lines)


def describe_new_lock(changes: Iterable[FileChange], *, written: bool) -> str:
    """Return a note about a newly created ids.lock, which has lost all history.

    `written` is False in a dry run.
    """
    new = next((c for c in changes if c.path == LOCK and c.before is None), None)
    if new is None:
        return ""
    told = "ids.lock is new: it keeps the ids of the course from now on. Commit it. "
    if not written:
        told = "ids.lock does not exist yet: --fix without --dry-run would write it. "
    return (
        f"{told}Nothing else is to do in a new course. In an older one that had an ids.lock, bring "
        "that one back from your backup: only it knows retired ids, first days and old wordings."
    )


def _missing_id_edits(owners: IdOwners, used: set[str]) -> dict[str, list[TextEdit]]:
    """Return edits with new ids by file, for items without an id and for copies."""
    edits: dict[str, list[TextEdit]] = defaultdict(list)
    for path, item in owners.unidentified:
        edits[path].append(item.build_id_edit(_unique_id(_id_from_heading(item.title), used)))
    for copy in owners.copies:
        line, column = copy.fact.id_at
        old = copy.fact.id
        edits[copy.path].append(TextEdit(line, column, old, _unique_id(old, used)))
    return edits


def _id_from_heading(heading: str) -> str:
    words = slugify(heading)[:_MAX_SLUG_LENGTH].strip("-") or "item"
    return words.rpartition("-")[0] if len(words) == _MAX_SLUG_LENGTH else words


def _unique_id(name: str, ids: set[str]) -> str:
    """Return an unused id based on `name`, and add it to `ids`."""
    new, count = name, 1
    while new in ids:
        count += 1
        end = f"-{count}"
        new = name[: LONGEST_ID - len(end)].rstrip("-") + end
    ids.add(new)
    return new


def _apply_text_edits(
    folder: Path, path: str, edits: Iterable[TextEdit], *, reuse_blank_lines: bool = False
) -> FileChange:
    """Apply the edits from last to first, keeping the file's line endings.

    With `reuse_blank_lines`, a new line takes the place of an empty one below it, so that lines keep their
    numbers.
    """
    raw = locate_course_file(folder, path).read_bytes().decode("utf-8")
    parts = _LINE_END.split(raw)  # the lines, with their line endings in between
    ends = [*parts[1::2], parts[1] if len(parts) > 1 else "\n"]
    ordered = sorted(edits, key=lambda e: (e.line, e.column), reverse=True)
    for edit in dict.fromkeys(ordered):
        at = 2 * (edit.line - 1)
        line = parts[at]
        start = edit.column - 1 + (line[:1] == _MARK and at == 0)
        if line[start:].startswith(edit.old):
            new = edit.new.replace("\n", ends[edit.line - 1])
            parts[at] = line[:start] + new + line[start + len(edit.old) :]
            if reuse_blank_lines and "\n" in edit.new and parts[at + 2 : at + 3] == [""]:
                parts[at + 1] = ""
    return FileChange(path, raw, "".join(parts))


def _update_lock_file(
    folder: Path, readings: Mapping[str, ParsedFile], today: dt.date, accepted: Collection[str]
) -> FileChange:
    """Update ids.lock with new ids and new wordings. Missing ids stay until they are retired.

    The line of an item with errors or doubtful ownership is not changed.
    """
    before = readings.get(LOCK)
    entries = {e.id: e for e in before.lock} if before else {}
    owners = find_id_owners(ParsedCourse(readings, today), accepted)
    refused = {p.item for p in find_problems(readings, folder, today) if p.severity == "error"}
    for name, owner in owners.items.items():
        refuses = owner.fact.broken if name in accepted else name in refused
        if refuses or name in owners.doubtful:
            continue
        read = review_date_of_item_page(owner.path, readings)
        entry = _new_lock_entry(owner, entries.get(name), today)
        entries[name] = _with_review_date(entry, owner.fact, read, today)
    lock = folder / LOCK
    old = lock.read_bytes().decode("utf-8", "replace") if lock.is_file() else None
    # Do not rewrite a file that cannot be parsed: its content would be lost.
    whole = before is None or not before.problems
    return FileChange(
        LOCK, old, format_lock_file(entries.values(), old or "") if whole else old or ""
    )


def _with_review_date(
    entry: LockEntry, fact: ItemFingerprint, reviewed: dt.date | None, today: dt.date
) -> LockEntry:
    """Return the entry with the reviewed key. A changed key is entered only after a review."""
    if reviewed is None or fact.broken or not fact.key or entry.retired:
        return entry
    if entry.key and is_key_changed_since_review(entry, fact, reviewed, today):
        return entry
    return dataclasses.replace(entry, key=fact.key, read=reviewed.isoformat())


def _new_lock_entry(owner: IdClaim, known: LockEntry | None, today: dt.date) -> LockEntry:
    fact = owner.fact
    names = map_new_to_counted_keys(known, fact) if known else {}
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


_NAME = 0xFFF  # the low bits of an index entry's flags hold the length of the name, up to this


def is_tracked_by_git(file: Path) -> bool:
    """Return whether Git tracks a file, even if it is deleted.

    Searches the index for the entry's flags, its name and a NUL, as versions 2 and 3
    write it. Returns False if there is no such index.
    """
    for root in file.absolute().parents:
        index = _read_git_index(root)
        if index is not None:
            name = file.absolute().relative_to(root).as_posix().encode()
            flags = min(len(name), _NAME).to_bytes(2)
            return flags + name + b"\0" in index
    return False


def _read_git_index(root: Path) -> bytes | None:
    """Return the Git index of the work tree `root`; None if it is not one."""
    git = root / ".git"
    try:
        if git.is_file():  # a linked work tree has a file that names its Git folder
            word = git.read_text(encoding="utf-8").partition("gitdir:")[2].strip()
            git = root / word
        return (git / "index").read_bytes() if git.is_dir() else None
    except (OSError, ValueError):
        return None


_FIELDS = ("path", "line", "column", "code", "severity", "message", "hint")


def check_course(
    folder: Path, fix: bool = False, cache: Path | None = None, today: dt.date | None = None
) -> list[ContentProblem]:
    """Return every problem of the course in `folder`, sorted by path and line.

    With `fix`, fixes are applied first and the remaining problems returned.
    """
    day = today or dt.datetime.now(dt.UTC).date()
    if fix:
        fix_course_files(folder, day)
    with pause_garbage_collection():
        readings, _ = WatchedFiles(folder, cache).parse_current_files()
        content_problems: Sequence[ContentProblem] = find_problems(readings, folder, day)
        if any(reading.unidentified for reading in readings.values()):
            content_problems = _with_problems_of_unidentified_items(
                content_problems, readings, folder, day
            )
        return sorted([*content_problems, *_check_deleted_lock_file(folder / LOCK)])


def _with_problems_of_unidentified_items(
    found: Sequence[ContentProblem],
    readings: Mapping[str, ParsedFile],
    folder: Path,
    today: dt.date,
) -> list[ContentProblem]:
    """Return the problems with those of items without an id, as if `--fix` had written it."""
    ahead, added = read_with_missing_ids(readings, folder, today)
    known = {(p.path, p.line, p.code) for p in found}
    more = []
    for problem in find_problems(ahead, folder, today):
        line = problem.line - sum(at < problem.line for at in added.get(problem.path, ()))
        if problem.code != "W97" and (problem.path, line, problem.code) not in known:
            more.append(dataclasses.replace(problem, line=line))
    return [*found, *more]


def read_with_missing_ids(
    readings: Mapping[str, ParsedFile], folder: Path, today: dt.date
) -> tuple[dict[str, ParsedFile], dict[str, list[int]]]:
    """Return the files as if `--fix` had written missing ids, and where it would add lines."""
    owners = find_id_owners(ParsedCourse(readings, today), ())
    edits = _missing_id_edits(dataclasses.replace(owners, copies=[]), list_used_ids(readings))
    ahead = dict(readings)
    added: dict[str, list[int]] = {}
    for path, written in edits.items():
        change = _apply_text_edits(folder, path, written, reuse_blank_lines=True)
        ahead[path] = parse_file(change.after, path)
        added[path] = _lines_followed_by_insertion(change.before or "", written)
    return ahead, added


def _lines_followed_by_insertion(text: str, edits: Sequence[TextEdit]) -> list[int]:
    """Return the numbers of the lines behind which `in_place` edits add one."""
    lines = _LINE_END.split(text)[::2]
    grown = sorted(e.line for e in edits if "\n" in e.new and lines[e.line : e.line + 1] != [""])
    return [line + shift for shift, line in enumerate(grown)]


def _check_deleted_lock_file(lock: Path) -> Iterator[ContentProblem]:
    """Report E79 if ids.lock is missing but tracked by Git."""
    if not lock.is_file() and is_tracked_by_git(lock):
        message = "ids.lock is gone, which guards the ids of the course."
        hint = "Bring it back: git checkout -- ids.lock. With --fix it would begin anew."
        yield make_problem((LOCK, 1, 1), "E79", message, hint)


def format_problems(problems: Sequence[ContentProblem], output_format: str = "text") -> str:
    """Format the problems as `text`, `json` or `github` workflow commands."""
    if output_format == "json":
        rows = [{name: getattr(p, name) for name in _FIELDS} for p in problems]
        return json.dumps(rows, ensure_ascii=False, indent=1)
    if output_format == "github":
        return "\n".join(map(_github_annotation, problems))
    return "\n".join([*map(_problem_sentence, problems), _problem_summary(problems)])


def _problem_sentence(problem: ContentProblem) -> str:
    place = f"{problem.path}:{problem.line}:{problem.column}"
    line = f"{place} {problem.code} {problem.message}"
    return f"{line}\n    {problem.hint}" if problem.hint else line


def _problem_summary(problems: Sequence[ContentProblem]) -> str:
    if not problems:
        return "No problems."
    errors = sum(p.severity == "error" for p in problems)
    return f"{format_count_noun(errors, 'error')}, {format_count_noun(len(problems) - errors, 'warning')}."


def format_count_noun(count: int, singular: str) -> str:
    return f"{count} {singular}{'' if count == 1 else 's'}"


def _github_annotation(problem: ContentProblem) -> str:
    fields = (
        f"file={_escape_annotation_property(problem.path)},line={problem.line},col={problem.column}"
    )
    text = f"{problem.message} {problem.hint}".strip()
    return f"::{problem.severity} {fields},title={problem.code}::{_escape_annotation_text(text)}"


def _escape_annotation_text(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _escape_annotation_property(text: str) -> str:
    return _escape_annotation_text(text).replace(":", "%3A").replace(",", "%2C")
