"""`headroom check`: every problem of a course, for people, programs and code hosts."""

import datetime as dt
import json
from collections.abc import Iterator, Sequence
from pathlib import Path

from app.content.fixing import fix_folder
from app.content.git_index import is_tracked
from app.content.live.library import problems_of
from app.content.live.watched_files import WatchedFiles, without_collection
from app.content.problems import ContentProblem, make_problem
from app.content.rules.id_evidence import LOCK

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
