"""The courses of a server: a single one, or several in named folders."""

import logging
import re
from collections.abc import Callable, Mapping
from pathlib import Path

from app.content.file_watcher import SHARED_FOLDER, file_exists
from app.content.library import LiveLibrary
from app.markup.problems import replace_unprintable_characters

_log = logging.getLogger("headroom")

SINGLE_COURSE = ""
"""Name of the only course of a server. It does not appear in URLs."""
_PARTS = ("topics", "exams", "sources.toml", "glossary.md", "ids.lock")
_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,79}")


def find_course_folders(content_folder: Path) -> dict[str, Path]:
    """Return the folders of all courses by name; a single course is named `SINGLE_COURSE`.

    A folder with a syllabus is a course. Otherwise its subfolders with a syllabus are
    courses.
    """
    if file_exists(content_folder / "syllabus.toml"):
        return {SINGLE_COURSE: content_folder}
    folders = sorted(f.parent for f in content_folder.glob("*/syllabus.toml"))
    courses = {f.name: f for f in folders if _NAME.fullmatch(f.name)}
    return courses or {SINGLE_COURSE: content_folder}


def map_skipped_folders_to_reasons(content_folder: Path) -> dict[str, str]:
    """Return folders that look like courses but are not served, with the reason."""
    if file_exists(content_folder / "syllabus.toml"):
        return {}
    reasons = {}
    for folder in sorted(f for f in content_folder.glob("[!.]*/") if f.name != SHARED_FOLDER):
        if not file_exists(folder / "syllabus.toml"):
            if any((folder / name).exists() for name in _PARTS):
                reasons[folder.name] = "it has no syllabus.toml"
        elif not _NAME.fullmatch(folder.name):
            reasons[folder.name] = "its name makes no address"
    return reasons


class CourseRegistry:
    """The live libraries of a server by course name."""

    def __init__(self, library_by_course: Mapping[str, LiveLibrary]) -> None:
        self.libraries = dict(library_by_course)

    @classmethod
    def from_content_folder(
        cls, content_folder: Path, load_live_library: Callable[[Path], LiveLibrary]
    ) -> "CourseRegistry":
        """Create the registry for a content folder, with `load_live_library` creating each."""
        for name, reason in map_skipped_folders_to_reasons(content_folder).items():
            message = "content %s: this folder is not served as a course: %s"
            _log.warning(message, replace_unprintable_characters(name), reason)
        return cls(
            {
                name: load_live_library(folder)
                for name, folder in find_course_folders(content_folder).items()
            }
        )

    @property
    def has_several_courses(self) -> bool:
        """Whether URLs contain course names."""
        return SINGLE_COURSE not in self.libraries

    @property
    def default_course_name(self) -> str:
        """The name of the course to show if none was chosen."""
        return next(iter(self.libraries))

    @property
    def problem_count(self) -> int:
        return sum(len(live.get_current_library().problems) for live in self.libraries.values())
