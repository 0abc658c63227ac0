"""Bank statistics, computed in the background.

Each process has its own. They are computed when an author looks at them and something changed. New
answers are added to those already read; all are read again if any was erased. Authors see the last
computed statistics, with their age.
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
from app.authoring.item_statistics import ItemStatistics, Standings, learner_standings
from app.authoring.regrading import is_mended, preview_regrade
from app.authoring.statistics_tables import (
    ExamStatisticsRow,
    QuestionStatisticsRow,
    Stands,
    build_question_rows,
    canonical_revisions,
    compute_item_statistics,
    digest_stored_wording,
    exam_statistics,
    item_responses,
)
from app.authoring.store import AttemptLogExtent, CardLapses, FirstAttempt
from app.content.courses import SINGLE_COURSE
from app.content.library import Library, LiveLibrary
from app.questions.model import Question

_log = logging.getLogger("headroom")
_BATCH_SIZE = 2000  # answers read at a time
_PATIENCE = 0.5  # seconds that a request waits for a running computation
_QUICK = 0.5  # seconds; a faster computation runs at every request
_CACHE_SECONDS = 60.0  # seconds between two runs of a slower one
_ALONE = 0.2  # seconds of work before other threads may run
_REST = 4  # the pause after it, as a multiple of the work


@dataclasses.dataclass(frozen=True, slots=True)
class BankStatistics:
    """The statistics as of the moment `at`.

    `answers` are the first answers by question, `earned` what each learner earned. `extent`,
    `sittings` and `version` tell whether anything changed since. Revisions that ask the same count
    as one, as mapped by `stands`. `mended` is how many answers to a question the current key would
    score differently.
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
    """The rows of the table, and what they were computed from."""

    library: Library
    found: Mapping[tuple[str, str], ItemStatistics]
    rows: Sequence[QuestionStatisticsRow]


_NO_STATISTICS: Mapping[tuple[str, str], ItemStatistics] = {}


class StatisticsCache:
    """The newest bank statistics of a course in one process."""

    def __init__(
        self,
        engine: Engine,
        library: LiveLibrary,
        clock: Callable[[], dt.datetime],
        course: str = SINGLE_COURSE,
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
        """Return the newest statistics; None while the first ones are being computed."""
        if self._work is None and self._is_due:
            self._work = asyncio.ensure_future(self._renew_statistics())
        if self._work is not None:
            await asyncio.wait({self._work}, timeout=_PATIENCE)
        if self._failure is not None and self._survey is None:
            raise RuntimeError("no statistics could be computed") from self._failure
        return self._survey

    def rows(self, library: Library) -> Sequence[QuestionStatisticsRow]:
        """Return every question of a course with the newest statistics, if any.

        Cached per course version and statistics, because building a row costs more than rendering
        it.
        """
        found = self._survey.found if self._survey else _NO_STATISTICS
        known = self._rows
        if known is None or known.library is not library or known.found is not found:
            made = build_question_rows(library, found, self._survey.mended if self._survey else {})
            self._rows = known = _CachedRows(library, found, made)
        return known.rows

    async def close(self) -> None:
        """Cancel a running computation, and wait for its end."""
        self._ending.set()
        if self._work is not None:
            await asyncio.wait({self._work})

    @property
    def _is_due(self) -> bool:
        if self._survey is None or self._took < _QUICK:
            return True
        return time.monotonic() - self._ended > _CACHE_SECONDS

    async def _renew_statistics(self) -> None:
        begun = time.monotonic()
        try:
            self._survey = await to_thread.run_sync(
                self._compute_statistics, abandon_on_cancel=True, limiter=self._thread
            )
            self._failure = None
        except _ComputationCanceledError:
            pass  # the cache is closed
        except Exception as error:  # noqa: BLE001 - reported to the next request
            _log.exception("the statistics could not be computed")
            self._failure = error
        finally:
            self._ended = time.monotonic()
            self._took = self._ended - begun
            self._work = None

    def _compute_statistics(self) -> BankStatistics:
        last, now = self._survey, self._clock()
        with Session(self._engine) as db:
            extent = store.attempt_log_extent(db, self._course)
            sittings = store.count_finished_sittings(db, self._course)
            forgotten = store.list_lapsed_cards(db, self._course)
        library = self._library.current()
        same = last and (extent, sittings) == (last.extent, last.sittings)
        if last and same and library.version == last.version:
            return dataclasses.replace(last, at=now, forgotten=forgotten)
        pause = _Throttle(self._ending)
        known = self._matters.read(pause)
        merged = canonical_revisions(library.as_authored().questions, known)
        answers = [_merge_first_attempt(a, merged) for a in self._log.read(pause)]
        with Session(self._engine) as db:
            papers = store.first_exam_sittings(db, self._course)
        found = compute_item_statistics(answers, pause)
        return BankStatistics(
            at=now,
            extent=extent,
            sittings=sittings,
            found=found,
            answers=_answers_by_item(answers),
            earned=learner_standings(item_responses(answers)),
            exams=exam_statistics(library, papers, pause),
            forgotten=forgotten,
            version=library.version,
            stands=merged,
            mended=self._mended.find(library, found, pause),
        )


def _merge_first_attempt(answer: FirstAttempt, merged: Stands) -> FirstAttempt:
    """Return an answer with the revision that it counts for."""
    other = merged.get((answer.item, answer.revision), answer.revision)
    if other == answer.revision:
        return answer
    return dataclasses.replace(answer, revision=other)


class _WordingIndex:
    """The content digest of each stored revision; none is parsed twice."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._known: list[tuple[str, str, str]] = []
        self._last = 0

    def read(self, pause: Callable[[], object]) -> Sequence[tuple[str, str, str]]:
        """Return (question, revision, digest) of every stored revision, oldest first."""
        with Session(self._engine) as db:
            rows = store.load_revision_bodies(db, self._last)
        for number, item, revision, body in rows:
            self._known.append((item, revision, digest_stored_wording(body, revision)))
            self._last = number
            pause()
        return self._known


class _ChangedKeys:
    """Finds questions whose key was corrected and whose answers were not regraded."""

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
        """Return how many answers would score differently, by question.

        `answered` are the questions with their answered revisions.
        """
        found = {}
        for item, revision in answered:
            question = library.questions.get(item)
            if question is None or revision == question.revision or item in found:
                continue
            with Session(self._engine) as db:
                if self._is_changed(db, question, revision):
                    regrading = preview_regrade(db, self._course, question, pause=pause)
                    found[item] = regrading.reach.answers
            pause()
        return {item: answers for item, answers in found.items() if answers}

    def _is_changed(self, db: Session, question: Question, revision: str) -> bool:
        names = (question.id, revision, question.revision)
        if names not in self._known:
            self._known[names] = is_mended(db, question, revision)
        return self._known[names]


class _FirstAttemptLog:
    """All first answers. Only new ones are read from the database."""

    def __init__(self, engine: Engine, course: str) -> None:
        self._engine = engine
        self._course = course
        self._forget_attempts()

    def read(self, pause: Callable[[], object]) -> Sequence[FirstAttempt]:
        """Return all first answers."""
        if not self._last:
            with Session(self._engine) as db:
                self._forget_attempts(store.count_regraded(db, self._course))
        self._read_on(pause)
        with Session(self._engine) as db:
            found = store.attempt_log_extent(db, self._course, self._last)
        if found != self._extent:  # some were erased, committed late, or regraded
            self._forget_attempts(found.regrades)
            self._read_on(pause)
        return self._answers

    def _forget_attempts(self, regrades: tuple[int, int] = (0, 0)) -> None:
        self._answers: list[FirstAttempt] = []
        self._last = 0
        self._extent = AttemptLogExtent(regrades=regrades)

    def _read_on(self, pause: Callable[[], object]) -> None:
        """Read the rows after the last one, in small batches."""
        more = True
        while more:
            with Session(self._engine) as db:
                found = store.load_first_answers(db, self._course, self._last, _BATCH_SIZE)
            self._answers += found.answers
            self._last = found.last
            self._extent = dataclasses.replace(
                self._extent,
                answers=len(self._answers),
                moments=self._extent.moments + found.moments,
            )
            more = len(found.answers) == _BATCH_SIZE
            pause()


def _answers_by_item(answers: Iterable[FirstAttempt]) -> dict[str, list[FirstAttempt]]:
    found: dict[str, list[FirstAttempt]] = collections.defaultdict(list)
    for answer in answers:
        found[answer.item].append(answer)
    return dict(found)


class _ComputationCanceledError(Exception):
    """The computation was canceled."""


class _Throttle:
    """Lets requests run between the parts of a long computation.

    A computing thread keeps the interpreter for five milliseconds each time a request wants it
    back, and rendering a page needs it dozens of times.
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
