"""Who is asking: a value from the signed cookie; the row comes with the first write."""

import contextlib
import dataclasses
import datetime as dt
from collections.abc import AsyncIterator
from typing import Annotated

from fastapi import Depends, Request
from sqlmodel import Session

from app.db.engine import DbSession, aside
from app.db.writer import Turn
from app.learners.store import Enrolment, count_change, enrol, find_learner
from app.learners.study_day import begin_of, study_day_of
from app.web.clock import Now, read_clock
from app.web.visitor import Visitor


@dataclasses.dataclass(frozen=True, slots=True)
class CurrentLearnerValue:
    """The asker: `id` is 0 until something of theirs is kept.

    `calendar` shows the study log, `missed` lets missed questions come back as cards.
    """

    key: str
    id: int = 0
    name: str = ""
    zone: str = "UTC"
    exam_day: dt.date | None = None
    minutes_a_day: int = 30
    retention: float = 0.9
    target: int | None = None
    calendar: bool = True
    missed: bool = True

    def study_day(self, now: dt.datetime) -> dt.date:
        """The day `now` belongs to for this learner: it turns at 04:00 local time."""
        return study_day_of(now, self.zone)

    def next_study_day(self, now: dt.datetime) -> dt.datetime:
        """The moment at which the study day after `now` begins."""
        return begin_of(self.study_day(now) + dt.timedelta(days=1), self.zone)


async def read_learner(request: Request, db: DbSession) -> CurrentLearnerValue:
    """The learner of the cookie; the front has read it and made one if need be."""
    visitor: Visitor = request.state.visitor
    return await aside(db, lambda: load_learner(db, visitor.key, visitor.zone))


def load_learner(db: Session, key: str, zone: str = "") -> CurrentLearnerValue:
    """The learner of `key` as a value, with defaults before the first write."""
    row = find_learner(db, key)
    if row is None:
        return CurrentLearnerValue(key=key, zone=zone or "UTC")
    return CurrentLearnerValue(
        key=key,
        id=row.id,
        name=row.name,
        zone=row.zone,
        exam_day=dt.date.fromisoformat(row.exam_day) if row.exam_day else None,
        minutes_a_day=row.minutes_a_day,
        retention=row.retention,
        target=row.target,
        calendar=row.calendar,
        missed=row.missed,
    )


async def enrolled(
    learner: Annotated[CurrentLearnerValue, Depends(read_learner)],
    db: DbSession,
    now: Now,
) -> CurrentLearnerValue:
    """The learner with a row to write for: what every POST route asks for.

    Counts the change, so whoever writes for a learner must ask for this.
    """
    return await aside(db, lambda: _enrolled(db, learner, now))


@contextlib.asynccontextmanager
async def writing(
    request: Request,
) -> AsyncIterator[tuple[Session, CurrentLearnerValue]]:
    """What `DbSession` and `EnrolledLearner` give a route that declares them.

    For routes that are asked so often that resolving dependencies shows; what was
    written is on disk once the block was left without an exception.
    """
    turn: Turn = request.app.state.turn
    async with turn() as db:
        learner = await read_learner(request, db)
        yield db, await enrolled(learner, db, await read_clock(request))


def _enrolled(
    db: Session, learner: CurrentLearnerValue, now: dt.datetime
) -> CurrentLearnerValue:
    if learner.id and count_change(db, learner.id):
        return learner
    # The first write; or another request has erased everything since they were read.
    number = enrol(db, Enrolment(learner.key, learner.zone, now))
    count_change(db, number)
    return CurrentLearnerValue(key=learner.key, id=number, zone=learner.zone)


CurrentLearner = Annotated[CurrentLearnerValue, Depends(read_learner)]
EnrolledLearner = Annotated[CurrentLearnerValue, Depends(enrolled)]
"""A route that keeps something asks for `EnrolledLearner`, all others for the first."""
