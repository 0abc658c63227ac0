"""What a learner has done, read from the logs in few narrow questions."""

import dataclasses
import datetime as dt
import json
from collections.abc import Collection
from typing import Any

from sqlalchemy import bindparam, case, func, select
from sqlmodel import Session

from app.db.tables import TABLES
from app.progress.situation import OpenPlacementTest, OpenPracticeRun, OpenSitting

# Statements are built once: making one costs more than running it.
_MEMORY = TABLES["memory"]
_SITTING = TABLES["sitting"]
_RUN = TABLES["practice_run"]
_ATTEMPT = TABLES["attempt"]


@dataclasses.dataclass(frozen=True, slots=True)
class DueCount:
    """The cards of one study day: all, those whose step is not over, its next end.

    Those that were added and never graded are none of them: they are new.
    """

    cards: int
    waiting: int
    next_at: int | None


def _sum(condition: Any, value: Any = 1) -> Any:
    return func.coalesce(func.sum(case((condition, value), else_=0)), 0)


# A card whose reverse was answered today stays away until tomorrow.
_sibling = _MEMORY.alias()
_answered_notes = select(_sibling.c.note).where(
    _sibling.c.learner_id == bindparam("learner"),
    _sibling.c.last_day == bindparam("day"),
)
_waits = _MEMORY.c.state.in_(("learning", "relearning")) & (_MEMORY.c.due_at > bindparam("now"))
_COMING = (
    select(
        _MEMORY.c.due_day,
        _sum(_MEMORY.c.state != "new"),
        _sum(_waits),
        func.min(case((_waits, _MEMORY.c.due_at))),
    )
    .where(
        _MEMORY.c.learner_id == bindparam("learner"),
        _MEMORY.c.due_day <= bindparam("last"),
        _MEMORY.c.suspended.is_(False),
        (_MEMORY.c.due_day > bindparam("day"))
        | (_MEMORY.c.state != "review")
        | _MEMORY.c.note.not_in(_answered_notes),
    )
    .group_by(_MEMORY.c.due_day)
)
_COMING_OF_COURSE = _COMING.where(_MEMORY.c.card.not_in(bindparam("gone", expanding=True)))


def coming(
    db: Session,
    learner_id: int,
    span: tuple[dt.date, dt.date, int],
    gone: Collection[str],
) -> dict[str, DueCount]:
    """The cards that come back on each day up to the end of `span`.

    `span` is the study day, the last day asked for, and the moment in ms; `gone` are
    cards that the course no longer holds.
    """
    day, last, now = span
    values: dict[str, Any] = {
        "learner": learner_id,
        "day": day.isoformat(),
        "last": last.isoformat(),
        "now": now,
    }
    statement = _COMING
    if gone:
        statement, values["gone"] = _COMING_OF_COURSE, list(gone)
    rows = db.connection().execute(statement, values)
    return {row[0]: DueCount(row[1], row[2], row[3]) for row in rows}


_LATER = (
    select(_MEMORY.c.due_day, func.count())
    .where(
        _MEMORY.c.learner_id == bindparam("learner"),
        _MEMORY.c.due_day > bindparam("day"),
        _MEMORY.c.due_day <= bindparam("last"),
        _MEMORY.c.suspended.is_(False),
        _MEMORY.c.state != "new",
    )
    .group_by(_MEMORY.c.due_day)
)
_LATER_OF_COURSE = _LATER.where(_MEMORY.c.card.not_in(bindparam("gone", expanding=True)))


def coming_later(
    db: Session,
    learner_id: int,
    days: tuple[dt.date, dt.date],
    gone: Collection[str],
) -> dict[str, int]:
    """The cards of each day after the first of `days`, which lies ahead, to the last.

    What waits today is not looked at again: a backlog may be most of a deck.
    """
    after, last = days
    values: dict[str, Any] = {
        "learner": learner_id,
        "day": after.isoformat(),
        "last": last.isoformat(),
    }
    statement = _LATER
    if gone:
        statement, values["gone"] = _LATER_OF_COURSE, list(gone)
    rows = db.connection().execute(statement, values)
    return {row[0]: row[1] for row in rows}


_RUNNING = (
    select(_SITTING.c.id, _SITTING.c.exam, _SITTING.c.deadline_at)
    .where(
        _SITTING.c.learner_id == bindparam("learner"),
        _SITTING.c.closed_at.is_(None),
        _SITTING.c.deadline_at > bindparam("now"),
    )
    .order_by(_SITTING.c.started_at.desc())
    .limit(1)
)


def running(db: Session, learner_id: int, now: int) -> OpenSitting | None:
    """The mock exam whose clock runs, under the slug of its blueprint."""
    values = {"learner": learner_id, "now": now}
    row = db.connection().execute(_RUNNING, values).first()
    if row is None:
        return None
    return OpenSitting(row[0], row[1], (row[2] - now) / 60_000)


_OF_PLACING = _RUN.c.mode == "placement"
_NEWEST = select(_RUN.c.id, _RUN.c.mode, _RUN.c["items"].label("asked")).where(
    _RUN.c.id.in_(
        select(func.max(_RUN.c.id))
        .where(_RUN.c.learner_id == bindparam("learner"))
        .group_by(_OF_PLACING)
    )
)
_DONE = select(_ATTEMPT.c.run_id, _ATTEMPT.c.item).where(
    _ATTEMPT.c.run_id.in_(bindparam("runs", expanding=True))
)


def left_runs(
    db: Session, learner_id: int, known: Collection[str]
) -> tuple[OpenPlacementTest | None, OpenPracticeRun | None]:
    """The placement test and the practice run that were left with open questions.

    Each is the one begun last; a practice run before a placement test is over. `known`
    are the questions that the course still has.
    """
    rows = db.connection().execute(_NEWEST, {"learner": learner_id}).all()
    if not rows:
        return None, None
    asked = db.connection().execute(_DONE, {"runs": [row.id for row in rows]})
    done = {(row.run_id, row.item) for row in asked}
    placing, left_run = None, None
    for row in rows:
        items = [item for item in json.loads(row.asked) if item in known]
        left = sum((row.id, item) not in done for item in items)
        if left and row.mode == "placement":
            placing = OpenPlacementTest(row.id, left)
        elif left and row.id == max(one.id for one in rows):
            left_run = OpenPracticeRun(row.id, left, len(items))
    return placing, left_run


_LAST_SAT = select(func.max(_SITTING.c.started_at)).where(
    _SITTING.c.learner_id == bindparam("learner"), _SITTING.c.closed_at.is_not(None)
)


def last_sat(db: Session, learner_id: int) -> int | None:
    """When the last finished mock exam was begun, in milliseconds."""
    found: int | None = db.connection().scalar(_LAST_SAT, {"learner": learner_id})
    return found
