"""Bank statistics computed beside requests.

Each process has its own. They are computed when somebody looks and something changed;
new answers are added to those that were read before, and all are read again where any
was erased. Who looks sees the last ones, with their age.
"""

import asyncio
import collections
import dataclasses
import datetime as dt
import logging
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence

import anyio
from anyio import to_thread
from sqlalchemy import Engine
from sqlmodel import Session

from app.authoring import store
from app.authoring.item_statistics import ItemStatistics, Standings, standings
from app.authoring.regrading import is_mended, regrading_of
from app.authoring.statistics_tables import (
    ExamStatisticsRow,
    QuestionStatisticsRow,
    Stands,
    canonical_revisions,
    exams_of,
    matter_of_body,
    responses_of,
    rows_of,
    statistics_of,
)
from app.authoring.store import AttemptLogExtent, CardLapses, FirstAttempt
from app.content.courses import ALONE
from app.content.library import Library, LiveLibrary
from app.questions.model import Question

_log = logging.getLogger("headroom")
_AT_ONCE = 2000  # answers that are read in one go
_PATIENCE = 0.5  # seconds that a request waits for what is being computed
_QUICK = 0.5  # seconds: what took less is computed whenever somebody looks
_LASTS = 60.0  # seconds: what took longer, once in this time
_ALONE = 0.2  # seconds of work before others are let in between
_REST = 4  # times as long as it worked it then rests


@dataclasses.dataclass(frozen=True, slots=True)
class BankStatistics:
    """The statistics as they stood `at` a moment.

    `answers` are the first answers by question, `earned` what each learner earned;
    `extent`, `sittings` and `version` tell whether anything has changed since. Answers
    to wordings that ask the same count for one of them, as `stands` says. `mended` is
    how many answers to a question the key of now would score otherwise.
    """

    at: dt.datetime
    extent: AttemptLogExtent
    sittings: int
    found: Mapping[tuple[str, str], ItemStatistics]
    answers: Mapping[str, Sequence[FirstAttempt]]
    earned: Standings
    exams: Sequence[ExamStatisticsRow]
    forgotten: Sequence[CardLapses]
    version: str
    stands: Stands
    mended: Mapping[str, int]


@dataclasses.dataclass(frozen=True, slots=True)
class _CachedRows:
    """The rows of the table, and what they were made of."""

    library: Library
    found: Mapping[tuple[str, str], ItemStatistics]
    rows: Sequence[QuestionStatisticsRow]


_NOTHING: Mapping[tuple[str, str], ItemStatistics] = {}


class StatisticsCache:
    """Keeps the newest survey of a course in one process."""

    def __init__(
        self,
        engine: Engine,
        library: LiveLibrary,
        clock: Callable[[], dt.datetime],
        course: str = ALONE,
    ) -> None:
        self._engine = engine
        self._course = course
        self._library = library
        self._clock = clock
        self._log = _FirstAttemptLog(engine, course)
        self._matters = _WordingIndex(engine)
        self._mended = _ChangedKeys(engine, course)
        self._survey: BankStatistics | None = None
        self._failure: Exception | None = None
        self._work: asyncio.Task[None] | None = None
        self._ending = threading.Event()
        self._thread = anyio.CapacityLimiter(1)
        self._took = 0.0
        self._ended = 0.0
        self._rows: _CachedRows | None = None

    async def newest(self) -> BankStatistics | None:
        """The newest survey; None while the first is still being computed."""
        if self._work is None and self._is_due:
            self._work = asyncio.ensure_future(self._renew())
        if self._work is not None:
            await asyncio.wait({self._work}, timeout=_PATIENCE)
        if self._failure is not None and self._survey is None:
            raise RuntimeError("no statistics could be computed") from self._failure
        return self._survey

    def rows(self, library: Library) -> Sequence[QuestionStatisticsRow]:
        """Every question of a course beside the newest statistics, if there are any.

        Made once for both: what is said of each question costs more than showing it.
        """
        found = self._survey.found if self._survey else _NOTHING
        known = self._rows
        if known is None or known.library is not library or known.found is not found:
            made = rows_of(library, found, self._survey.mended if self._survey else {})
            self._rows = known = _CachedRows(library, found, made)
        return known.rows

    async def close(self) -> None:
        """End what is being computed, and wait for its end."""
        self._ending.set()
        if self._work is not None:
            await asyncio.wait({self._work})

    @property
    def _is_due(self) -> bool:
        if self._survey is None or self._took < _QUICK:
            return True
        return time.monotonic() - self._ended > _LASTS

    async def _renew(self) -> None:
        begun = time.monotonic()
        try:
            self._survey = await to_thread.run_sync(
                self._compute, abandon_on_cancel=True, limiter=self._thread
            )
            self._failure = None
        except _ComputationCanceledError:
            pass  # nobody will look any more
        except Exception as error:  # noqa: BLE001 - told to whoever looks
            _log.exception("the statistics could not be computed")
            self._failure = error
        finally:
            self._ended = time.monotonic()
            self._took = self._ended - begun
            self._work = None

    def _compute(self) -> BankStatistics:
        last, now = self._survey, self._clock()
        with Session(self._engine) as db:
            extent = store.extent(db, self._course)
            sittings = store.sittings(db, self._course)
            forgotten = store.forgotten(db, self._course)
        library = self._library.current()
        same = last and (extent, sittings) == (last.extent, last.sittings)
        if last and same and library.version == last.version:
            return dataclasses.replace(last, at=now, forgotten=forgotten)
        pause = _Throttle(self._ending)
        known = self._matters.read(pause)
        merged = canonical_revisions(library.as_authored().questions, known)
        answers = [_standing(a, merged) for a in self._log.read(pause)]
        with Session(self._engine) as db:
            papers = store.papers(db, self._course)
        found = statistics_of(answers, pause)
        return BankStatistics(
            at=now,
            extent=extent,
            sittings=sittings,
            found=found,
            answers=_by_item(answers),
            earned=standings(responses_of(answers)),
            exams=exams_of(library, papers, pause),
            forgotten=forgotten,
            version=library.version,
            stands=merged,
            mended=self._mended.find(library, found, pause),
        )


def _standing(answer: FirstAttempt, merged: Stands) -> FirstAttempt:
    """An answer under the wording that it counts for."""
    other = merged.get((answer.item, answer.revision), answer.revision)
    if other == answer.revision:
        return answer
    return dataclasses.replace(answer, revision=other)


class _WordingIndex:
    """What each kept wording asks; none is read twice."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._known: list[tuple[str, str, str]] = []
        self._last = 0

    def read(self, pause: Callable[[], object]) -> Sequence[tuple[str, str, str]]:
        """(item, revision, matter) of every kept wording, the oldest first."""
        with Session(self._engine) as db:
            rows = store.bodies(db, self._last)
        for number, item, revision, body in rows:
            self._known.append((item, revision, matter_of_body(body, revision)))
            self._last = number
            pause()
        return self._known


class _ChangedKeys:
    """Which keys were mended and do not count yet for the answers given before."""

    def __init__(self, engine: Engine, course: str) -> None:
        self._engine = engine
        self._course = course
        self._known: dict[tuple[str, str, str], bool] = {}

    def find(
        self,
        library: Library,
        answered: Iterable[tuple[str, str]],
        pause: Callable[[], object],
    ) -> dict[str, int]:
        """How many answers would score otherwise; `answered` are items by wording."""
        found = {}
        for item, revision in answered:
            question = library.questions.get(item)
            if question is None or revision == question.revision or item in found:
                continue
            with Session(self._engine) as db:
                if self._is(db, question, revision):
                    regrading = regrading_of(db, self._course, question, pause=pause)
                    found[item] = regrading.reach.answers
            pause()
        return {item: answers for item, answers in found.items() if answers}

    def _is(self, db: Session, question: Question, revision: str) -> bool:
        names = (question.id, revision, question.revision)
        if names not in self._known:
            self._known[names] = is_mended(db, question, revision)
        return self._known[names]


class _FirstAttemptLog:
    """All first answers, of which those that were read before are not read again."""

    def __init__(self, engine: Engine, course: str) -> None:
        self._engine = engine
        self._course = course
        self._forget()

    def read(self, pause: Callable[[], object]) -> Sequence[FirstAttempt]:
        """Every first answer there is."""
        if not self._last:
            with Session(self._engine) as db:
                self._forget(store.regraded(db, self._course))
        self._read_on(pause)
        with Session(self._engine) as db:
            found = store.extent(db, self._course, self._last)
        if found != self._extent:  # some were erased, came late, or are graded again
            self._forget(found.regrades)
            self._read_on(pause)
        return self._answers

    def _forget(self, regrades: tuple[int, int] = (0, 0)) -> None:
        self._answers: list[FirstAttempt] = []
        self._last = 0
        self._extent = AttemptLogExtent(regrades=regrades)

    def _read_on(self, pause: Callable[[], object]) -> None:
        """Read what came behind the last row, a little at a time."""
        more = True
        while more:
            with Session(self._engine) as db:
                found = store.first_answers(db, self._course, self._last, _AT_ONCE)
            self._answers += found.answers
            self._last = found.last
            self._extent = dataclasses.replace(
                self._extent,
                answers=len(self._answers),
                moments=self._extent.moments + found.moments,
            )
            more = len(found.answers) == _AT_ONCE
            pause()


def _by_item(answers: Iterable[FirstAttempt]) -> dict[str, list[FirstAttempt]]:
    found: dict[str, list[FirstAttempt]] = collections.defaultdict(list)
    for answer in answers:
        found[answer.item].append(answer)
    return dict(found)


class _ComputationCanceledError(Exception):
    """The computation is given up."""


class _Throttle:
    """Lets requests work between the parts of a long computation.

    A thread that computes keeps the interpreter for itself, five milliseconds for
    each time a request wants it back, and a page wants it dozens of times.
    """

    def __init__(self, ending: threading.Event) -> None:
        self._ending = ending
        self._begun = self._since = time.monotonic()

    def __call__(self) -> None:
        now = time.monotonic()
        if now - self._begun > _ALONE:
            self._ending.wait(_REST * min(now - self._since, _ALONE))
        if self._ending.is_set():
            raise _ComputationCanceledError
        self._since = time.monotonic()
