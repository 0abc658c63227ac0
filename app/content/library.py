"""The library: everything under the content folder, read, cross-checked, kept live."""

import dataclasses
import datetime as dt
import math
import threading
import time
from collections.abc import Mapping
from pathlib import Path

from app.content.assembly import Assembled, assemble, version_of
from app.content.model import (
    Card,
    ExamBlueprint,
    Question,
    Source,
    Syllabus,
    Term,
    Topic,
)
from app.content.parsed import ParsedFile
from app.content.problems import Problem, problem
from app.content.rules.bank import Bank
from app.content.shelf import Shelf, Watch, strays, without_collection


@dataclasses.dataclass(frozen=True, slots=True)
class Library:
    """One consistent state of the course. `version` changes when any content does."""

    version: str
    syllabus: Syllabus
    topics: Mapping[str, Topic]
    questions: Mapping[str, Question]
    cards: Mapping[str, Card]
    glossary: Mapping[str, Term]
    sources: Mapping[str, Source]
    exams: Mapping[str, ExamBlueprint]
    problems: tuple[Problem, ...]


def load(folder: Path, cache: Path | None = None) -> Library:
    """Read the whole course under `folder`; `cache` is a folder for parsed files."""
    with without_collection():
        return build(Shelf(folder, cache).read()[0], folder)


def build(
    readings: Mapping[str, ParsedFile], folder: Path, today: dt.date | None = None
) -> Library:
    """Put readings together into a library, checked as of `today`."""
    bank, made = _assembled(readings, folder, today)
    return Library(
        version_of(readings),
        bank.syllabus,
        made.topics,
        made.questions,
        made.cards,
        {t.anchor: t for r in readings.values() for t in r.terms},
        {s.key: s for r in readings.values() for s in r.sources},
        {r.exam.slug: r.exam for r in readings.values() if r.exam},
        (*_absent(readings, folder), *made.problems),
    )


def problems_of(
    readings: Mapping[str, ParsedFile], folder: Path, today: dt.date | None = None
) -> tuple[Problem, ...]:
    """What `build` would find wrong, without the library."""
    _, made = _assembled(readings, folder, today)
    return (*_absent(readings, folder), *made.problems)


def _assembled(
    readings: Mapping[str, ParsedFile], folder: Path, today: dt.date | None
) -> tuple[Bank, Assembled]:
    day = today or dt.datetime.now(dt.UTC).date()
    bank = Bank(readings, day, _pictures(readings, folder))
    return bank, assemble(bank)


def _absent(readings: Mapping[str, ParsedFile], folder: Path) -> list[Problem]:
    return [*_missing(readings), *map(_stray, strays(folder))]


def _pictures(readings: Mapping[str, ParsedFile], folder: Path) -> frozenset[str]:
    """Which of the files that pages show do exist."""
    wanted = (
        f"{path.rpartition('/')[0]}/{mention.value}"
        for path, reading in readings.items()
        for mention in reading.mentions
        if mention.kind == "file"
    )
    return frozenset(name for name in wanted if (folder / name).is_file())


def _missing(readings: Mapping[str, ParsedFile]) -> list[Problem]:
    return [
        problem((name, 1, 1), "E00", f"The course has no {name}.", hint)
        for name, hint in (
            ("syllabus.toml", "Name the exam, its domains and the order of topics."),
            ("sources.toml", "List what the pages rest on."),
        )
        if name not in readings
    ]


def _stray(path: str) -> Problem:
    hint = "Name it concept.md, quiz.md or cards.md, or move it out of the topic."
    return problem((path, 1, 1), "E00", "Nothing reads a file of this name.", hint)


class LiveLibrary:
    """The library of a running server: `current()` is hardly older than the files.

    A file that breaks keeps its last good version on show; its problems are in
    `current().problems`. `glance` is for how many seconds a look at the files holds:
    looking at the times of all of them costs as much as a whole kept page.
    """

    def __init__(
        self, folder: Path, cache: Path | None = None, glance: float = 0.0
    ) -> None:
        self.folder = folder
        self.cache = cache
        self._glance = glance
        self._glanced = -math.inf
        self._shelf = Shelf(folder, cache)
        self._lock = threading.Lock()
        self._state: tuple[Library, Watch] | None = None

    def current(self) -> Library:
        """The newest good state; looks at file times, cheap when nothing changed."""
        state, now = self._state, time.monotonic()
        if state is not None and now - self._glanced < self._glance:
            return state[0]
        if state is not None and not state[1].changed():
            self._glanced = now
            return state[0]
        with self._lock:
            state = self._state
            if state is not None and not state[1].changed():
                return state[0]
            readings, watch = self._shelf.read()
            library = build(readings, self.folder)
            self._state = (library, watch)
            self._glanced = now
            return library
