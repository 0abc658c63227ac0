"""`headroom check`: name everything wrong in the content."""

import argparse
import contextlib
import dataclasses
import datetime as dt
import gc
import sys
from collections.abc import Iterator
from pathlib import Path

from app.cli.course import course_folder
from app.cli.settings import read_settings
from app.cli.stop import CommandError
from app.content.check import check, write
from app.content.codes import RULES, explain
from app.content.fixing import as_diff, changes, fix_folder, note_on
from app.content.identity import did_you_mean
from app.content.live.courses import folders, passed_over
from app.content.live.shared import SHARED
from app.content.problems import LOG, ContentProblem, make_problem


def check_content(given: argparse.Namespace) -> int:
    """Print the problems, after what `--fix` mends; 1 where one is an error."""
    if given.explain:
        return _explained(given.explain.upper())
    if given.dry_run and not given.fix:
        raise CommandError("--dry-run shows what --fix would write; say --fix as well.")
    if given.accept and not given.fix:
        raise CommandError("--accept says what --fix may enter; say --fix as well.")
    with _failures(shown=given.verbose):
        return _checked(given)


@contextlib.contextmanager
def _failures(*, shown: bool) -> Iterator[None]:
    """Leave the ways to our own failures out: E00 says that one was, and where."""
    before = LOG.disabled
    LOG.disabled = not shown
    try:
        yield
    finally:
        LOG.disabled = before


def _checked(given: argparse.Namespace) -> int:
    courses = folders(folder_of(given))
    problems: list[ContentProblem] = []
    for name, folder in courses.items():
        if given.fix:
            _fix(folder, given)
        every = [_within(name, p) for p in check(folder)]
        found = [p for p in every if p not in problems]  # what is shared is told once
        if given.format == "text":
            print(_told(name, found))
        problems += found
    beside = _passed_over(folder_of(given))
    if beside and given.format == "text":
        print(write(beside))
    problems += beside
    gc.freeze()  # the command ends: nothing is left that should be looked for
    if given.format != "text":
        print(write(problems, given.format))
    return int(any(p.severity == "error" for p in problems))


def _passed_over(content: Path) -> list[ContentProblem]:
    """E00: a folder beside the courses, or in place of one, that is none."""
    hints = "Write its syllabus.toml.", "Use lower-case letters, digits and hyphens."
    return [
        make_problem(
            (f"{name}/syllabus.toml", 1, 1),
            "E00",
            f"The folder “{name}” is no course of the server: {why}.",
            hints[0] if why.endswith(".toml") else f"Rename it. {hints[1]}",
        )
        for name, why in passed_over(content).items()
    ]


def _within(course: str, found: ContentProblem) -> ContentProblem:
    """A problem with its path as seen from the folder that was named."""
    shared = found.path.startswith(f"{SHARED}/")
    if shared == bool(course):  # as it is named there already
        return found
    above = ".." if shared else course
    return dataclasses.replace(found, path=f"{above}/{found.path}")


def _told(course: str, found: list[ContentProblem]) -> str:
    """The problems of one course of several below its name."""
    words = write(found)
    gap = "\n" if found else " "
    return f"{course}:{gap}{words}" if course else words


def _fix(folder: Path, given: argparse.Namespace) -> None:
    """Write what `--fix` mends, or nothing in a dry run, and show it either way.

    Where a program reads the problems, the difference goes to people.
    """
    today = dt.datetime.now(dt.UTC).date()
    make = changes if given.dry_run else fix_folder
    made = make(folder, today, given.accept)
    out = sys.stdout if given.format == "text" else sys.stderr
    for words in (as_diff(made), note_on(made, written=not given.dry_run)):
        if words:
            print(words, file=out)


def _explained(code: str) -> int:
    if code not in RULES:
        hint = did_you_mean(code, RULES) or "They stand behind the place: E04, W87."
        raise CommandError(f"{code} is not a code of the check. {hint}")
    print(explain(code))
    return 0


def folder_of(given: argparse.Namespace) -> Path:
    """The folder that was named, or that of the settings."""
    if given.folder and given.course:
        raise CommandError("name a folder or a course, not both.")
    folder: Path = given.folder or course_folder(read_settings(), given.course)
    if not folder.is_dir():
        raise CommandError(f"{folder} is not a folder; name the folder that holds the course.")
    return folder
