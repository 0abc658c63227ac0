"""The library: everything under the content folder, read, cross-checked, kept live."""

import dataclasses
import datetime as dt
import logging
import math
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from app.content.identity import closest_word
from app.content.live.assembly import AssembledCourse, assemble, version_of
from app.content.live.drafts import NOTHING, CourseWithDrafts
from app.content.live.lastgood import LastGoodFiles
from app.content.live.pictures import image_problem, with_sizes
from app.content.live.shared import SHARED
from app.content.live.watched_files import (
    TOPIC_FILES,
    FileStamps,
    WatchedFiles,
    empty_topic_folders,
    unnamed,
    unread_files,
    without_collection,
)
from app.content.model import CitedSource, ExamBlueprint, Flashcard, GlossaryTerm, Syllabus, Topic
from app.content.parsed import ParsedFile
from app.content.problems import ContentProblem, internal_error_problem, make_problem, on_one_line
from app.content.rules.bank import NO_SYLLABUS, ParsedCourse
from app.content.rules.causes import drop_consequences
from app.questions.model import Question

_log = logging.getLogger("headroom")
_RETRY = 5.0  # seconds after which a course that could not be read is tried again
_NOTHING: Mapping[str, ParsedFile] = {}


@dataclasses.dataclass(frozen=True, slots=True)
class Library:
    """One consistent state of the course. `version` changes when any content does.

    `outdated` are the files that are shown as they last were without errors.
    """

    version: str
    syllabus: Syllabus
    topics: Mapping[str, Topic]
    questions: Mapping[str, Question]
    cards: Mapping[str, Flashcard]
    glossary: Mapping[str, GlossaryTerm]
    sources: Mapping[str, CitedSource]
    exams: Mapping[str, ExamBlueprint]
    problems: tuple[ContentProblem, ...]
    outdated: tuple[str, ...] = ()
    authored: CourseWithDrafts = NOTHING

    def as_authored(self) -> "Library":
        """The course with what is not live, for authors alone."""
        own = self.authored
        if own is NOTHING:
            return self
        return dataclasses.replace(
            self, topics=own.topics, questions=own.questions, cards=own.cards
        )


_EMPTY = Library("", NO_SYLLABUS, {}, {}, {}, {}, {}, {}, ())


@dataclasses.dataclass(frozen=True, slots=True)
class CourseStatus:
    """Whether there is a course to serve, and what of it is not as its files say.

    `outdated` are the files of which the last good version is served; `errors` counts
    the problems that keep a file or an item out of the course.
    """

    loaded: bool
    outdated: tuple[str, ...]
    errors: int


def load(folder: Path, cache: Path | None = None) -> Library:
    """Read the whole course under `folder`; `cache` is a folder for parsed files."""
    with without_collection():
        return assemble_library(WatchedFiles(folder, cache).read()[0], folder)


def assemble_library(
    readings: Mapping[str, ParsedFile],
    folder: Path,
    today: dt.date | None = None,
    earlier: Mapping[str, ParsedFile] = _NOTHING,
) -> Library:
    """Put readings together into a library, checked as of `today`.

    `earlier` are the readings of the state before: one of them stands in for a file at
    which putting the course together fails.
    """
    bank, made = _assembled(readings, folder, today, earlier)
    readings = bank.readings
    return Library(
        version_of(readings),
        bank.syllabus,
        {slug: with_sizes(topic, folder) for slug, topic in made.topics.items()},
        made.questions,
        made.cards,
        {t.anchor: t for r in readings.values() for t in r.terms},
        {s.key: s for r in readings.values() for s in r.sources},
        {r.exam.slug: r.exam for r in readings.values() if r.exam},
        tuple(drop_consequences([*_absent(readings, folder), *made.problems])),
        tuple(path for path, reading in readings.items() if reading.outdated),
        made.authored,
    )


def problems_of(
    readings: Mapping[str, ParsedFile], folder: Path, today: dt.date | None = None
) -> tuple[ContentProblem, ...]:
    """What `build` would find wrong, without the library."""
    _, made = _assembled(readings, folder, today)
    return tuple(drop_consequences([*_absent(readings, folder), *made.problems]))


def _assembled(
    readings: Mapping[str, ParsedFile],
    folder: Path,
    today: dt.date | None,
    earlier: Mapping[str, ParsedFile] = _NOTHING,
) -> tuple[ParsedCourse, AssembledCourse]:
    day = today or dt.datetime.now(dt.UTC).date()
    bank = ParsedCourse(readings, day, _pictures(readings, folder))
    try:
        return bank, assemble(bank)
    except Exception as error:  # noqa: BLE001 - no file may stop the server
        return _spared(bank, error, earlier)


def _spared(
    bank: ParsedCourse, error: Exception, earlier: Mapping[str, ParsedFile]
) -> tuple[ParsedCourse, AssembledCourse]:
    """The course without the newest version of the one file at which it fails.

    Where more than one is at fault, it is the whole course as it was before.
    """
    for path, others in _candidates(bank.readings, earlier):
        spared = dataclasses.replace(bank, readings=others)
        try:
            made = assemble(spared)
        except Exception:  # noqa: BLE001, S112 - another file is at fault
            continue
        own = bank.readings[path].problems if path in bank.readings else ()
        what = "This file" if path in bank.readings else "The course"
        found = internal_error_problem((path or "syllabus.toml", 1, 1), what, error)
        problems = {*made.problems, *own, found}
        return spared, dataclasses.replace(made, problems=tuple(sorted(problems)))
    found = internal_error_problem(("syllabus.toml", 1, 1), "The course", error)
    empty = dataclasses.replace(bank, readings={})
    return empty, AssembledCourse({}, {}, {}, (found,))


def _candidates(
    readings: Mapping[str, ParsedFile], earlier: Mapping[str, ParsedFile]
) -> Iterator[tuple[str, Mapping[str, ParsedFile]]]:
    """What may be put together instead, and which file it spares; "" for all."""
    for path, reading in readings.items():
        others = dict(readings)
        del others[path]
        if path in earlier:
            others[path] = dataclasses.replace(
                earlier[path], problems=reading.problems, outdated=True
            )
        yield path, others
    if earlier:
        changed = {p for p, r in earlier.items() if readings.get(p) != r}
        yield (
            "",
            {p: dataclasses.replace(r, outdated=p in changed) for p, r in earlier.items()},
        )


def _absent(readings: Mapping[str, ParsedFile], folder: Path) -> list[ContentProblem]:
    return [
        *_missing(readings),
        *map(_stray, unread_files(folder)),
        *map(_hollow, empty_topic_folders(folder)),
        *map(_unnamed, unnamed(folder)),
    ]


def _pictures(readings: Mapping[str, ParsedFile], folder: Path) -> dict[str, str]:
    """The files that pages show, each with what is wrong with it as a picture."""
    wanted = (
        f"{path.rpartition('/')[0]}/{mention.value}"
        for path, reading in readings.items()
        for mention in reading.mentions
        if mention.kind == "file"
    )
    return {name: image_problem(folder, name) for name in wanted}


def _missing(readings: Mapping[str, ParsedFile]) -> list[ContentProblem]:
    return [
        make_problem((name, 1, 1), "E00", f"The course has no {name}.", hint)
        for name, hint in (
            ("syllabus.toml", "Name the exam, its domains and the order of topics."),
            ("sources.toml", "List what the pages rest on."),
        )
        if name not in readings and f"{SHARED}/{name}" not in readings
    ]


def _hollow(path: str) -> ContentProblem:
    hint = "Write its concept.md, or delete the folder."
    return make_problem((path, 1, 1), "E00", "The folder of this topic is empty.", hint)


def _stray(path: str) -> ContentProblem:
    hint = "Name it concept.md, quiz.md or cards.md, or move it out of the topic."
    near = closest_word(path.rpartition("/")[2].lower(), TOPIC_FILES)
    if near:
        hint = f"Is it to be {near}? {hint}"
    if path.startswith("exams/"):
        hint = "A mock exam is a file with .toml at its end."
    return make_problem((path, 1, 1), "E00", "Nothing reads a file of this name.", hint)


def _unnamed(path: str) -> ContentProblem:
    hint = "Rename it in lower-case letters, digits and hyphens."
    return make_problem((path, 1, 1), "E00", "This name is not UTF-8 text.", hint)


class LiveLibrary:
    """The library of a running server: `current()` is hardly older than the files.

    A file that breaks keeps its last good version on show, also over a restart where
    `kept` names a folder for copies; its problems are in `current().problems`. `glance`
    is for how many seconds a look at the files holds: looking at the times of all of
    them costs as much as a whole kept page.
    """

    def __init__(
        self,
        folder: Path,
        cache: Path | None = None,
        glance: float = 0.0,
        kept: Path | None = None,
    ) -> None:
        self.folder = folder
        self.cache = cache
        self._glance = glance
        self._glanced = -math.inf
        self._files = WatchedFiles(folder, cache, LastGoodFiles(kept, folder) if kept else None)
        self._lock = threading.Lock()
        self._state: tuple[Library, FileStamps | _RetryStamps] | None = None
        self._readings = _NOTHING
        self._failed = ""
        self._told: dict[str, ContentProblem] = {}

    def recent(self) -> Library | None:
        """The state of the last look at the files; None where a look is due."""
        state = self._state
        if state is None or time.monotonic() - self._glanced >= self._glance:
            return None
        return state[0]

    def current(self) -> Library:
        """The newest good state; looks at file times, cheap when nothing changed.

        Never raises: what goes wrong is among the problems of the state before.
        """
        if (recent := self.recent()) is not None:
            return recent
        state, now = self._state, time.monotonic()
        if state is not None and not state[1].changed():
            self._glanced = now
            return state[0]
        with self._lock:
            state = self._state
            if state is not None and not state[1].changed():
                return state[0]
            self._state = self._renewed()
            self._glanced = now
            return self._state[0]

    @property
    def state(self) -> CourseStatus:
        """Whether the course can be served, and what needs its last good version."""
        library = self.current()
        errors = sum(p.severity == "error" for p in library.problems)
        return CourseStatus(bool(library.topics), library.outdated, errors)

    def _renewed(self) -> "tuple[Library, FileStamps | _RetryStamps]":
        """The state of now; where there is none, the one before and the reason."""
        try:
            readings, watch = self._files.read()
            if self._state and self._failed == version_of(readings):
                return self._state[0], watch  # it would fail again, and be logged again
            library = assemble_library(readings, self.folder, earlier=self._readings)
            failed = {p.path for p in library.problems if p.code == "E00"}
            self._files.keep(without=failed)
        except Exception as error:  # noqa: BLE001 - nothing may stop the server
            shown = self._state[0] if self._state else _EMPTY
            found = internal_error_problem(("syllabus.toml", 1, 1), "The course", error)
            problems = tuple(p for p in shown.problems if p != found)
            shown = dataclasses.replace(shown, problems=(*problems, found))
            return shown, _RetryStamps(time.monotonic() + _RETRY)
        self._failed = version_of(readings) if failed else ""
        sound = {p: r for p, r in readings.items() if p not in failed}
        before = {p: r for p, r in self._readings.items() if p in failed & {*readings}}
        self._readings = {**before, **sound}
        self._tell(library)
        return library, watch

    def _tell(self, library: Library) -> None:
        """Log the first error of each file, once for as long as it stays the same."""
        first: dict[str, ContentProblem] = {}
        for found in library.problems:
            if found.severity == "error":
                first.setdefault(found.path, found)
        for path, found in first.items():
            if self._told.get(path) != found:
                words = "what is sound in it is served"
                if path in library.outdated:
                    words = "its last good version is served"
                place = on_one_line(f"{path}:{found.line}")
                said = on_one_line(f"{found.code} {found.message}")
                _log.warning("content %s: %s: %s", place, words, said)
        self._told = first


@dataclasses.dataclass(frozen=True, slots=True)
class _RetryStamps:
    """The stamps of a course that could not be read: it changes as time passes."""

    at: float

    def changed(self) -> bool:
        """Whether to try again."""
        return time.monotonic() >= self.at
