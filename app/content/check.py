"""Checks a course: the problem list of `headroom check`, its output formats, and `--fix`."""

import dataclasses
import datetime as dt
import difflib
import json
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from app.content.course import find_problems
from app.content.course_rules import (
    ParsedCourse,
    find_id_owners,
    find_review_date_of_item_page,
    is_answer_key_changed_since_review,
    map_new_option_keys_to_former_keys,
)
from app.content.file_reader import parse_file
from app.content.file_watcher import (
    CachingCourseFileParser,
    locate_course_file,
    pause_garbage_collection,
)
from app.content.id_ownership import LOCK_FILE_NAME, IdOwners, ItemIdClaim
from app.content.lock_file import format_lock_file
from app.content.parse_cache import replace_file_atomically
from app.content.parsed_file import (
    ItemIdentityFingerprint,
    LockEntry,
    ParsedFile,
    list_used_ids,
    map_lock_entries_by_id,
)
from app.markup.problems import ContentProblem, ProblemLocation, TextEdit, make_problem
from app.markup.text import LONGEST_ID, slugify

_MAX_SLUG_LENGTH = 48
_LINE_END = re.compile(r"(\r\n|\r|\n)")
_BYTE_ORDER_MARK = "\ufeff"  # byte order mark, which column numbers do not count


@dataclasses.dataclass(frozen=True, slots=True)
class FileChange:
    """A change that `--fix` makes to a file. `old_text` is None for a new file."""

    path: str
    old_text: str | None
    new_text: str


def fix_course_files(
    course_folder: Path, today: dt.date, ids_accepted_as_unchanged: Collection[str] = ()
) -> list[FileChange]:
    """Apply all automatic fixes. Raises OSError if a file cannot be written."""
    changes = plan_course_file_fixes(course_folder, today, ids_accepted_as_unchanged)
    for change in changes:
        replace_file_atomically(
            locate_course_file(course_folder, change.path), change.new_text.encode()
        )
    return changes


def plan_course_file_fixes(
    course_folder: Path, today: dt.date, ids_accepted_as_unchanged: Collection[str] = ()
) -> list[FileChange]:
    """Return what `fix_course_files` would write: missing ids, stale figures, then ids.lock.

    `ids_accepted_as_unchanged` are ids whose items count as unchanged, even if their text differs.
    """
    parsed_files = CachingCourseFileParser(course_folder, None).parse_current_files().parsed_files
    ids = _build_edits_that_write_new_ids(
        find_id_owners(ParsedCourse(parsed_files, today), ids_accepted_as_unchanged),
        list_used_ids(parsed_files),
    )
    changes = []
    for path, parsed_file in parsed_files.items():
        edits = [*parsed_file.text_edits, *ids.get(path, ())]
        if edits:
            changes.append(_build_file_change_from_edits(course_folder, path, edits))
            parsed_files[path] = parse_file(changes[-1].new_text, path)
    lock = _build_lock_file_change(course_folder, parsed_files, today, ids_accepted_as_unchanged)
    return [change for change in (*changes, lock) if change.old_text != change.new_text]


def format_diff(changes: Iterable[FileChange]) -> str:
    lines: list[str] = []
    for change in changes:
        old_path = "/dev/null" if change.old_text is None else f"a/{change.path}"
        lines += difflib.unified_diff(
            (change.old_text or "").splitlines(),
            change.new_text.splitlines(),
            old_path,
            f"b/{change.path}",
            lineterm="",
        )
    return "\n".join(lines)


def describe_new_lock_file(changes: Iterable[FileChange], *, is_written: bool) -> str:
    """Return a note about a newly created ids.lock, which has lost all history.

    `is_written` is False in a dry run.
    """
    new_lock = next((c for c in changes if c.path == LOCK_FILE_NAME and c.old_text is None), None)
    if new_lock is None:
        return ""
    note = "ids.lock is new: it keeps the ids of the course from now on. Commit it. "
    if not is_written:
        note = "ids.lock does not exist yet: --fix without --dry-run would write it. "
    return (
        f"{note}Nothing else is to do in a new course. In an older one that had an ids.lock, bring "
        "that one back from your backup: only it knows retired ids, first days and old wordings."
    )


def _build_edits_that_write_new_ids(
    owners: IdOwners, used_ids: set[str]
) -> dict[str, list[TextEdit]]:
    """Return edits with new ids by file, for items without an id and for copies."""
    edits: dict[str, list[TextEdit]] = defaultdict(list)
    for path, item in owners.unidentified_items:
        new_id = _reserve_unique_id(_make_id_from_heading(item.title), used_ids)
        edits[path].append(item.insertion.build_edit(new_id))
    for copy in owners.copied_claims:
        copied_id, position = copy.fingerprint.id, copy.fingerprint.id_position
        edits[copy.path].append(
            TextEdit(*position, copied_id, _reserve_unique_id(copied_id, used_ids))
        )
    return edits


def _make_id_from_heading(heading: str) -> str:
    slug = slugify(heading)[:_MAX_SLUG_LENGTH].strip("-") or "item"
    return slug.rpartition("-")[0] if len(slug) == _MAX_SLUG_LENGTH else slug


def _reserve_unique_id(name: str, used_ids: set[str]) -> str:
    """Return an unused id based on `name`, and add it to `used_ids`."""
    unused_id, count = name, 1
    while unused_id in used_ids:
        count += 1
        suffix = f"-{count}"
        unused_id = name[: LONGEST_ID - len(suffix)].rstrip("-") + suffix
    used_ids.add(unused_id)
    return unused_id


def _build_file_change_from_edits(
    folder: Path, path: str, edits: Iterable[TextEdit], *, reuse_blank_lines: bool = False
) -> FileChange:
    """Apply the edits from last to first, keeping the file's line endings.

    With `reuse_blank_lines`, a new line takes the place of an empty one below it, so that lines keep their
    numbers.
    """
    old_text = locate_course_file(folder, path).read_bytes().decode("utf-8")
    lines_and_endings = _LINE_END.split(old_text)  # the lines, with their line endings in between
    line_endings = [*lines_and_endings[1::2], *(lines_and_endings[1:2] or ["\n"])]
    ordered = sorted(edits, key=lambda e: (e.line, e.column), reverse=True)
    for edit in dict.fromkeys(ordered):
        index = 2 * (edit.line - 1)
        line = lines_and_endings[index]
        start = edit.column - 1 + (line[:1] == _BYTE_ORDER_MARK and index == 0)
        if line[start:].startswith(edit.old_text):
            new_text = edit.new_text.replace("\n", line_endings[edit.line - 1])
            lines_and_endings[index] = line[:start] + new_text + line[start + len(edit.old_text) :]
            is_above_blank_line = lines_and_endings[index + 2 : index + 3] == [""]
            if reuse_blank_lines and "\n" in edit.new_text and is_above_blank_line:
                lines_and_endings[index + 1] = ""
    return FileChange(path, old_text, "".join(lines_and_endings))


def _build_lock_file_change(
    course_folder: Path,
    parsed_files: Mapping[str, ParsedFile],
    today: dt.date,
    ids_accepted_as_unchanged: Collection[str],
) -> FileChange:
    """Update ids.lock with new ids and new wordings. Missing ids stay until they are retired.

    The line of an item with errors or doubtful ownership is not changed.
    """
    parsed_lock = parsed_files.get(LOCK_FILE_NAME)
    entries = map_lock_entries_by_id(parsed_files)
    owners = find_id_owners(ParsedCourse(parsed_files, today), ids_accepted_as_unchanged)
    ids_with_errors = {
        p.item for p in find_problems(parsed_files, course_folder, today) if p.severity == "error"
    }
    for name, owner in owners.owner_claim_by_id.items():
        has_errors = (
            owner.fingerprint.is_broken
            if name in ids_accepted_as_unchanged
            else name in ids_with_errors
        )
        if has_errors or name in owners.doubtful_ids:
            continue
        reviewed = find_review_date_of_item_page(owner.path, parsed_files)
        entry = _build_lock_entry(owner, entries.get(name), today)
        entries[name] = _enter_answer_key_if_reviewed(entry, owner.fingerprint, reviewed, today)
    lock = course_folder / LOCK_FILE_NAME
    old_text = lock.read_bytes().decode("utf-8", "replace") if lock.is_file() else None
    # Do not rewrite a file that cannot be parsed: its content would be lost.
    is_parseable = parsed_lock is None or not parsed_lock.problems
    new_text = format_lock_file(entries.values(), old_text or "") if is_parseable else old_text
    return FileChange(LOCK_FILE_NAME, old_text, new_text or "")


def _enter_answer_key_if_reviewed(
    lock_entry: LockEntry,
    fingerprint: ItemIdentityFingerprint,
    page_reviewed_on: dt.date | None,
    today: dt.date,
) -> LockEntry:
    """Return the entry with the reviewed key. A changed key is entered only after a review."""
    if (
        page_reviewed_on is None
        or fingerprint.is_broken
        or not fingerprint.answer_key_hash
        or lock_entry.retired_on
    ):
        return lock_entry
    if lock_entry.reviewed_key_hash and is_answer_key_changed_since_review(
        lock_entry, fingerprint, page_reviewed_on, today
    ):
        return lock_entry
    return dataclasses.replace(
        lock_entry,
        reviewed_key_hash=fingerprint.answer_key_hash,
        reviewed_on=page_reviewed_on.isoformat(),
    )


def _build_lock_entry(owner: ItemIdClaim, old_entry: LockEntry | None, today: dt.date) -> LockEntry:
    fingerprint = owner.fingerprint
    counted_keys = map_new_option_keys_to_former_keys(old_entry, fingerprint) if old_entry else {}
    options = (o._replace(key=counted_keys.get(o.key, o.key)) for o in fingerprint.options)
    return LockEntry(
        fingerprint.id,
        fingerprint.type,
        old_entry.first_seen if old_entry else today.isoformat(),
        "",
        fingerprint.sketch,
        tuple(options),
        0,
        old_entry.reviewed_key_hash if old_entry else "",
        old_entry.reviewed_on if old_entry else "",
        fingerprint.heading_hash,
        fingerprint.body_hash,
        owner.path,
    )


# the low bits of an index entry's flags hold the length of the name, up to this
_MAX_INDEX_NAME_LENGTH = 0xFFF


def is_tracked_by_git(file: Path) -> bool:
    """Return whether Git tracks a file, even if it is deleted.

    Searches the index for the entry's flags, its name and a NUL, as versions 2 and 3
    write it. Returns False if there is no such index.
    """
    for root in file.absolute().parents:
        index = _read_git_index(root)
        if index is not None:
            name = file.absolute().relative_to(root).as_posix().encode()
            flags = min(len(name), _MAX_INDEX_NAME_LENGTH).to_bytes(2)
            return flags + name + b"\0" in index
    return False


def _read_git_index(work_tree: Path) -> bytes | None:
    """Return the Git index of the work tree `work_tree`; None if it is not one."""
    git = work_tree / ".git"
    try:
        if git.is_file():  # a linked work tree has a file that names its Git folder
            git_folder = git.read_text(encoding="utf-8").partition("gitdir:")[2].strip()
            git = work_tree / git_folder
        return (git / "index").read_bytes() if git.is_dir() else None
    except (OSError, ValueError):
        return None


_PROBLEM_FIELDS = ("path", "line", "column", "code", "severity", "message", "hint")


def check_course(
    course_folder: Path,
    apply_fixes: bool = False,
    cache_folder: Path | None = None,
    today: dt.date | None = None,
) -> list[ContentProblem]:
    """Return every problem of the course in `course_folder`, sorted by path and line.

    With `apply_fixes`, fixes are applied first and the remaining problems returned.
    """
    day = today or dt.datetime.now(dt.UTC).date()
    if apply_fixes:
        fix_course_files(course_folder, day)
    with pause_garbage_collection():
        parsed_files = (
            CachingCourseFileParser(course_folder, cache_folder).parse_current_files().parsed_files
        )
        content_problems: Sequence[ContentProblem] = find_problems(parsed_files, course_folder, day)
        if any(parsed_file.unidentified_items for parsed_file in parsed_files.values()):
            content_problems = _add_problems_of_unidentified_items(
                content_problems, parsed_files, course_folder, day
            )
        return sorted(
            [*content_problems, *_check_deleted_lock_file(course_folder / LOCK_FILE_NAME)]
        )


def _add_problems_of_unidentified_items(
    found_problems: Sequence[ContentProblem],
    parsed_files: Mapping[str, ParsedFile],
    folder: Path,
    today: dt.date,
) -> list[ContentProblem]:
    """Return the problems with those of items without an id, as if `--fix` had written one."""
    files_with_ids, insertion_lines_by_path = parse_as_if_ids_were_added(
        parsed_files, folder, today
    )
    known_keys = {(p.path, p.line, p.code) for p in found_problems}
    additional = []
    for problem in find_problems(files_with_ids, folder, today):
        inserted_after = insertion_lines_by_path.get(problem.path, ())
        line = problem.line - sum(insertion < problem.line for insertion in inserted_after)
        if problem.code != "W97" and (problem.path, line, problem.code) not in known_keys:
            additional.append(dataclasses.replace(problem, line=line))
    return [*found_problems, *additional]


def parse_as_if_ids_were_added(
    parsed_files: Mapping[str, ParsedFile], folder: Path, today: dt.date
) -> tuple[dict[str, ParsedFile], dict[str, list[int]]]:
    """Return files as if `--fix` had written missing ids, and by path where it would add lines."""
    owners = find_id_owners(ParsedCourse(parsed_files, today), ())
    edits = _build_edits_that_write_new_ids(
        dataclasses.replace(owners, copied_claims=[]), list_used_ids(parsed_files)
    )
    files_with_ids = dict(parsed_files)
    insertion_lines: dict[str, list[int]] = {}
    for path, file_edits in edits.items():
        change = _build_file_change_from_edits(folder, path, file_edits, reuse_blank_lines=True)
        files_with_ids[path] = parse_file(change.new_text, path)
        insertion_lines[path] = _list_lines_followed_by_insertion(change.old_text or "", file_edits)
    return files_with_ids, insertion_lines


def _list_lines_followed_by_insertion(text: str, edits: Sequence[TextEdit]) -> list[int]:
    """Return the numbers of the lines after which the edits add one, if blank lines are reused."""
    lines = _LINE_END.split(text)[::2]
    insertion_lines = sorted(
        e.line for e in edits if "\n" in e.new_text and lines[e.line : e.line + 1] != [""]
    )
    return [line + shift for shift, line in enumerate(insertion_lines)]


def _check_deleted_lock_file(lock_file: Path) -> Iterator[ContentProblem]:
    """Report E79 if ids.lock is missing but tracked by Git."""
    if not lock_file.is_file() and is_tracked_by_git(lock_file):
        message = "ids.lock is gone, which guards the ids of the course."
        hint = "Bring it back: git checkout -- ids.lock. With --fix it would begin anew."
        yield make_problem(ProblemLocation(LOCK_FILE_NAME), "E79", message, hint)


def format_problems(problems: Sequence[ContentProblem], output_format: str = "text") -> str:
    """Format the problems as `text`, `json` or `github` workflow commands."""
    if output_format == "json":
        rows = [{name: getattr(p, name) for name in _PROBLEM_FIELDS} for p in problems]
        return json.dumps(rows, ensure_ascii=False, indent=1)
    if output_format == "github":
        return "\n".join(map(_github_annotation, problems))
    errors = sum(p.severity == "error" for p in problems)
    counts = (errors, "error"), (len(problems) - errors, "warning")
    summary = (
        ", ".join(format_count_noun(*count) for count in counts) if problems else "No problems"
    )
    return "\n".join([*map(_format_problem_as_text, problems), f"{summary}."])


def _format_problem_as_text(problem: ContentProblem) -> str:
    location = f"{problem.path}:{problem.line}:{problem.column}"
    line = f"{location} {problem.code} {problem.message}"
    return f"{line}\n    {problem.hint}" if problem.hint else line


def format_count_noun(count: int, singular: str) -> str:
    return f"{count:,} {singular}{'' if count == 1 else 's'}"


def _github_annotation(problem: ContentProblem) -> str:
    path = _escape_annotation_text(problem.path).replace(":", "%3A").replace(",", "%2C")
    fields = f"file={path},line={problem.line},col={problem.column},title={problem.code}"
    text = f"{problem.message} {problem.hint}".strip()
    return f"::{problem.severity} {fields}::{_escape_annotation_text(text)}"


def _escape_annotation_text(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
