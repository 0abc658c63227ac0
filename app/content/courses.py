"""One or several courses of a server."""

import argparse
import logging
import re
from collections.abc import Callable, Mapping
from pathlib import Path

from app.content.file_watcher import SHARED, exists
from app.content.library import LiveLibrary
from app.markup.problems import on_one_line

_log = logging.getLogger("headroom")

ALONE = ""
"""The name of the one course of a server; it stands in no address."""
_PARTS = ("topics", "exams", "sources.toml", "glossary.md", "ids.lock")
_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,79}")


def name_course(parser: argparse.ArgumentParser) -> None:
    """Name `--course` for `--help`; it is taken out before the words are read."""
    parser.add_argument("--course", metavar="NAME", help="which course, where there are several")


def folders(content: Path) -> dict[str, Path]:
    """The folder of each course, by name; a course alone has none.

    A folder with a syllabus is a course. One without may hold courses, whose names are
    those of their folders.
    """
    if exists(content / "syllabus.toml"):
        return {ALONE: content}
    found = sorted(f.parent for f in content.glob("*/syllabus.toml"))
    courses = {f.name: f for f in found if _NAME.fullmatch(f.name)}
    return courses or {ALONE: content}


def passed_over(content: Path) -> dict[str, str]:
    """Folders that look like courses and are none, each with the reason."""
    if exists(content / "syllabus.toml"):
        return {}
    found = {}
    for folder in sorted(f for f in content.glob("[!.]*/") if f.name != SHARED):
        if not exists(folder / "syllabus.toml"):
            if any((folder / name).exists() for name in _PARTS):
                found[folder.name] = "it has no syllabus.toml"
        elif not _NAME.fullmatch(folder.name):
            found[folder.name] = "its name makes no address"
    return found


class CourseRegistry:
    """The libraries of a server by the names of their courses."""

    def __init__(self, libraries: Mapping[str, LiveLibrary]) -> None:
        self.libraries = dict(libraries)

    @classmethod
    def under(cls, content: Path, make: Callable[[Path], LiveLibrary]) -> "CourseRegistry":
        """The courses of a content folder, each with the library made for it."""
        for name, why in passed_over(content).items():
            words = "content %s: this folder is not served as a course: %s"
            _log.warning(words, on_one_line(name), why)
        return cls({name: make(folder) for name, folder in folders(content).items()})

    @property
    def named(self) -> bool:
        """Whether courses have names in addresses."""
        return ALONE not in self.libraries

    @property
    def first(self) -> str:
        """The name that stands in for another where nobody chose."""
        return next(iter(self.libraries))

    @property
    def errors(self) -> int:
        """How many problems the files of all courses have."""
        return sum(len(one.current().problems) for one in self.libraries.values())
