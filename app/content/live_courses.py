"""The courses of a server: a single one, or several in named folders, reloaded on changes."""

import dataclasses
import logging
import math
import re
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

from app.content.course import Course, assemble_course, compute_course_version
from app.content.course_rules import EMPTY_SYLLABUS
from app.content.file_watcher import SHARED_FOLDER, CachingCourseFileParser, FileStamps, file_exists
from app.content.parse_cache import LastGoodFiles
from app.content.parsed_file import ParsedFile
from app.markup.problems import (
    ContentProblem,
    ProblemLocation,
    log_error_and_make_problem,
    replace_unprintable_characters,
)

_log = logging.getLogger("headroom")
_RETRY_SECONDS = 5.0  # seconds until an unreadable course is tried again
_EMPTY_COURSE = Course("", EMPTY_SYLLABUS, {}, {}, {}, {}, {}, {}, ())

SINGLE_COURSE = ""
"""Name of the only course of a server. It does not appear in URLs."""
_COURSE_FILES = ("topics", "exams", "sources.toml", "glossary.md", "ids.lock")
_COURSE_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,79}")


def find_course_folders(content_folder: Path) -> dict[str, Path]:
    """Return the folders of all courses by name; a single course is named `SINGLE_COURSE`.

    A folder with a syllabus is a course. Otherwise its subfolders with a syllabus are
    courses.
    """
    if file_exists(content_folder / "syllabus.toml"):
        return {SINGLE_COURSE: content_folder}
    folders = sorted(f.parent for f in content_folder.glob("*/syllabus.toml"))
    courses = {f.name: f for f in folders if _COURSE_NAME.fullmatch(f.name)}
    return courses or {SINGLE_COURSE: content_folder}


def map_skipped_folders_to_reasons(content_folder: Path) -> dict[str, str]:
    """Return folders that look like courses but are not served, with the reason."""
    if file_exists(content_folder / "syllabus.toml"):
        return {}
    reasons = {}
    for folder in sorted(f for f in content_folder.glob("[!.]*/") if f.name != SHARED_FOLDER):
        if not file_exists(folder / "syllabus.toml"):
            if any((folder / name).exists() for name in _COURSE_FILES):
                reasons[folder.name] = "it has no syllabus.toml"
        elif not _COURSE_NAME.fullmatch(folder.name):
            reasons[folder.name] = "its name makes no address"
    return reasons


@dataclasses.dataclass(frozen=True, slots=True)
class CourseStatus:
    """Whether a course is served, and which files are not shown in their current version.

    `outdated_paths` are the files shown in their last good version. `error_count` counts problems
    that leave out a file or an item.
    """

    is_loaded: bool
    outdated_paths: tuple[str, ...]
    error_count: int


class _CourseState(NamedTuple):
    course: Course
    stamps_or_deadline: "FileStamps | _RetryDeadline"


class LiveCourse:
    """A course of a running server. `get_current_course()` follows changes of the files.

    A broken file is shown in its last good version, also after a restart if there is a
    `last_good_folder`. Its problems are in `get_current_course().problems`. Files are checked at
    most once in `check_interval_seconds`, because that takes as long as a cached page.
    """

    def __init__(
        self,
        course_folder: Path,
        cache_folder: Path | None = None,
        check_interval_seconds: float = 0.0,
        last_good_folder: Path | None = None,
    ) -> None:
        self.folder = course_folder
        self.cache = cache_folder
        self._check_interval = check_interval_seconds
        self._checked_at = -math.inf
        self._files = CachingCourseFileParser(
            course_folder,
            cache_folder,
            LastGoodFiles(last_good_folder, course_folder) if last_good_folder else None,
        )
        self._lock = threading.Lock()
        self._state: _CourseState | None = None
        self._readings: Mapping[str, ParsedFile] = {}
        self._failed = ""
        self._logged_errors: dict[str, ContentProblem] = {}

    def get_recently_checked_course(self) -> Course | None:
        """Return the current state; None if the files must be checked first."""
        state = self._state
        if state is None or time.monotonic() - self._checked_at >= self._check_interval:
            return None
        return state.course

    def get_current_course(self) -> Course:
        """Return the newest good state. Checks file timestamps, which is cheap without changes.

        Never raises: errors are added to the problems of the previous state.
        """
        if (recent := self.get_recently_checked_course()) is not None:
            return recent
        state, now = self._state, time.monotonic()
        if state is not None and not state.stamps_or_deadline.is_reload_due():
            self._checked_at = now
            return state.course
        with self._lock:
            state = self._state
            if state is not None and not state.stamps_or_deadline.is_reload_due():
                return state.course
            self._state = self._reload_course_or_keep_previous()
            self._checked_at = now
            return self._state.course

    @property
    def status(self) -> CourseStatus:
        """Whether the course can be served, and which files are outdated."""
        course = self.get_current_course()
        errors = sum(p.severity == "error" for p in course.problems)
        return CourseStatus(bool(course.topics), course.outdated_paths, errors)

    def _reload_course_or_keep_previous(self) -> _CourseState:
        """Reload the course. On failure, return the previous state with the error."""
        try:
            parsed_files, stamps = self._files.parse_current_files()
            if self._state and self._failed == compute_course_version(parsed_files):
                # It would fail and be logged again.
                return _CourseState(self._state.course, stamps)
            course = assemble_course(parsed_files, self.folder, previous_files=self._readings)
            failed_paths = {p.path for p in course.problems if p.code == "E00"}
            self._files.save_last_good_files(skipped_paths=failed_paths)
        except Exception as error:  # noqa: BLE001 - nothing may stop the server
            course = self._state.course if self._state else _EMPTY_COURSE
            problem = log_error_and_make_problem(
                ProblemLocation("syllabus.toml"), "The course", error
            )
            problems = (*(p for p in course.problems if p != problem), problem)
            course = dataclasses.replace(course, problems=problems)
            return _CourseState(course, _RetryDeadline(time.monotonic() + _RETRY_SECONDS))
        self._failed = compute_course_version(parsed_files) if failed_paths else ""
        good_files = {p: r for p, r in parsed_files.items() if p not in failed_paths}
        still_there = failed_paths & {*parsed_files}
        previous_files = {p: r for p, r in self._readings.items() if p in still_there}
        self._readings = {**previous_files, **good_files}
        self._log_errors(course)
        return _CourseState(course, stamps)

    def _log_errors(self, course: Course) -> None:
        """Log the first error of each file, once as long as it stays the same."""
        first_errors: dict[str, ContentProblem] = {}
        for problem in course.problems:
            if problem.severity == "error":
                first_errors.setdefault(problem.path, problem)
        for path, problem in first_errors.items():
            if self._logged_errors.get(path) != problem:
                consequence = "what is sound in it is served"
                if path in course.outdated_paths:
                    consequence = "its last good version is served"
                location = replace_unprintable_characters(f"{path}:{problem.line}")
                message = replace_unprintable_characters(f"{problem.code} {problem.message}")
                _log.warning("content %s: %s: %s", location, consequence, message)
        self._logged_errors = first_errors


@dataclasses.dataclass(frozen=True, slots=True)
class _RetryDeadline:
    """What an unreadable course has instead of timestamps."""

    retry_at: float

    def is_reload_due(self) -> bool:
        return time.monotonic() >= self.retry_at


class CourseRegistry:
    """The live courses of a server by name."""

    def __init__(self, live_course_by_name: Mapping[str, LiveCourse]) -> None:
        self.live_courses = dict(live_course_by_name)

    @classmethod
    def from_content_folder(
        cls, content_folder: Path, load_live_course: Callable[[Path], LiveCourse]
    ) -> "CourseRegistry":
        """Create the registry for a content folder, with `load_live_course` creating each."""
        for name, reason in map_skipped_folders_to_reasons(content_folder).items():
            message = "content %s: this folder is not served as a course: %s"
            _log.warning(message, replace_unprintable_characters(name), reason)
        return cls(
            {
                name: load_live_course(folder)
                for name, folder in find_course_folders(content_folder).items()
            }
        )

    @property
    def has_several_courses(self) -> bool:
        """Whether URLs contain course names."""
        return SINGLE_COURSE not in self.live_courses

    @property
    def default_course_name(self) -> str:
        """The name of the course to show if none was chosen."""
        return next(iter(self.live_courses))

    @property
    def problem_count(self) -> int:
        return sum(len(live.get_current_course().problems) for live in self.live_courses.values())
