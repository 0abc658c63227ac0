"""Bank statistics of a course, computed when an author looks at them and something changed."""

import dataclasses
import datetime as dt
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated

from fastapi import Depends, Request
from sqlalchemy import Engine
from sqlmodel import Session

from app.authoring import store
from app.authoring.item_statistics import ItemStatistics
from app.authoring.regrading import has_only_key_changed, preview_regrade
from app.authoring.statistics_tables import (
    CanonicalRevisions,
    ExamStatisticsRow,
    QuestionStatisticsRow,
    build_question_rows,
    canonical_revisions,
    digest_stored_wording,
    exam_statistics,
    item_statistics_by_revision,
)
from app.authoring.store import AnswerLogVersion, CardLapses
from app.content.courses import SINGLE_COURSE
from app.content.library import Library, LiveLibrary
from app.database.engine import snapshot_session

# Where a computation takes seconds, results stay valid for minutes.
_REUSE = 30  # times as long as they took to compute


@dataclasses.dataclass(frozen=True, slots=True)
class BankStatistics:
    """The statistics as of the moment `at`.

    `items` is by (question, revision), after revisions with the same content were merged as mapped
    by `canonical`. `rows` has every question of the course. `unregraded` is how many answers to a
    question the current key would score differently.
    """

    at: dt.datetime
    items: Mapping[tuple[str, str], ItemStatistics]
    rows: Sequence[QuestionStatisticsRow]
    exams: Sequence[ExamStatisticsRow]
    lapsed_cards: Sequence[CardLapses]
    canonical: CanonicalRevisions
    unregraded: Mapping[str, int]


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
        self._library = library
        self._clock = clock
        self._course = course
        self._lock = threading.Lock()
        self._statistics: BankStatistics | None = None
        self._library_version = ""
        self._log_version: AnswerLogVersion | None = None
        self._valid_until = 0.0  # by the monotonic clock

    def newest(self) -> BankStatistics:
        """Return the statistics of now, or of a moment ago if computing them takes long."""
        with self._lock:
            library = self._library.current()
            newest = self._statistics if library.version == self._library_version else None
            if newest is not None and time.monotonic() < self._valid_until:
                return newest
            start = time.monotonic()
            with snapshot_session(self._engine) as db:
                log_version = store.answer_log_version(db, self._course)
                if newest is None or log_version != self._log_version:
                    newest = _compute_statistics(db, self._course, library, self._clock())
                else:
                    lapsed = store.list_lapsed_cards(db, self._course)
                    newest = dataclasses.replace(newest, at=self._clock(), lapsed_cards=lapsed)
            self._statistics, self._log_version = newest, log_version
            self._library_version = library.version
            end = time.monotonic()
            self._valid_until = end + _REUSE * (end - start)
            return newest


def _compute_statistics(
    db: Session, course: str, library: Library, now: dt.datetime
) -> BankStatistics:
    canonical = canonical_revisions(
        library.as_authored().questions,
        (
            (item, revision, digest_stored_wording(body, revision))
            for item, revision, body in store.load_revision_bodies(db)
        ),
    )
    answers = store.load_first_answers(db, course)
    items = item_statistics_by_revision(answers, canonical)
    unregraded: dict[str, int] = {}
    for item, revision in items:
        question = library.questions.get(item)
        if question is None or revision == question.revision or item in unregraded:
            continue
        if has_only_key_changed(db, question, revision):
            unregraded[item] = preview_regrade(db, course, question).reach.answers
    return BankStatistics(
        at=now,
        items=items,
        rows=build_question_rows(library, items, unregraded),
        exams=exam_statistics(library, store.first_exam_sittings(db, course)),
        lapsed_cards=store.list_lapsed_cards(db, course),
        canonical=canonical,
        unregraded=unregraded,
    )


def _statistics_of_request(request: Request) -> BankStatistics:
    cache: StatisticsCache = request.app.state.statistics[request.state.course]
    return cache.newest()


CurrentStatistics = Annotated[BankStatistics, Depends(_statistics_of_request)]
