"""What learners did and said, read for the author in a few narrow questions."""

import dataclasses
import datetime as dt
import json
from collections.abc import Sequence
from typing import Any

from sqlalchemy import ColumnElement, case, func, select, update
from sqlmodel import Session, col

from app.db.tables import Attempt, ItemReport, ItemRevision, Memory, Sitting
from app.errors import NotFound
from app.web.clock import milliseconds, moment

LEECH = 8  # lapses of one learner at one card from which on it is put aside


@dataclasses.dataclass(frozen=True, slots=True)
class FirstAnswer:
    """A learner's first answer to a question; `score` is 0..1.

    `chosen` are the keys of the options ticked, empty for other types.
    """

    learner: int
    item: str
    revision: str
    score: float
    chosen: tuple[str, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class Said:
    """A report of a learner, without the learner; `settled` once it was dealt with."""

    id: int
    item: str
    revision: str
    seed: int | None
    words: str
    at: dt.datetime
    settled: bool


@dataclasses.dataclass(frozen=True, slots=True)
class Forgotten:
    """How often a card was forgotten, over all who learn it.

    `leeches` counts the learners who forgot it `LEECH` times or more.
    """

    card: str
    learners: int
    reviews: int
    lapses: int
    leeches: int


@dataclasses.dataclass(frozen=True, slots=True)
class Wording:
    """A revision of a question that somebody was shown, and when first."""

    revision: str
    since: dt.datetime


@dataclasses.dataclass(frozen=True, slots=True)
class Paper:
    """A learner's first finished sitting of an exam: points by place on the paper."""

    learner: int
    exam: str
    points: tuple[float, ...]


def first_answers(db: Session) -> list[FirstAnswer]:
    """The first answer of every learner to every question, in whatever room."""
    rows = db.execute(
        select(
            col(Attempt.learner_id),
            col(Attempt.item),
            col(Attempt.revision),
            col(Attempt.score),
            col(Attempt.parsed),
        )
        .where(col(Attempt.first))
        .order_by(col(Attempt.id))
    )
    return [
        FirstAnswer(learner, item, revision, score, _chosen(parsed))
        for learner, item, revision, score, parsed in rows
    ]


def reports(db: Session, *, settled: bool = False, item: str = "") -> list[Said]:
    """Reports, the newest first: open ones, or also those `settled`; of one item."""
    wanted: list[ColumnElement[bool]] = []
    if not settled:
        wanted.append(col(ItemReport.settled_at).is_(None))
    if item:
        wanted.append(col(ItemReport.item) == item)
    rows = db.execute(
        select(
            col(ItemReport.id),
            col(ItemReport.item),
            col(ItemReport.revision),
            col(ItemReport.seed),
            col(ItemReport.words),
            col(ItemReport.at),
            col(ItemReport.settled_at).is_not(None),
        )
        .where(*wanted)
        .order_by(col(ItemReport.at).desc(), col(ItemReport.id).desc())
        .limit(200)
    )
    return [
        Said(number, name, revision, seed, words, moment(at), bool(done))
        for number, name, revision, seed, words, at, done in rows
    ]


def settle(db: Session, report: int, now: dt.datetime) -> None:
    """Note that a report was dealt with; raises NotFound."""
    done = db.execute(
        update(ItemReport)
        .where(col(ItemReport.id) == report)
        .values(settled_at=func.coalesce(ItemReport.settled_at, milliseconds(now)))
    )
    if not done.rowcount:  # type: ignore[attr-defined] # a cursor result
        raise NotFound(f"There is no report {report}.")


def forgotten(db: Session) -> list[Forgotten]:
    """Cards that somebody forgot, with all of their reviews."""
    leech = case((col(Memory.lapses) >= LEECH, 1), else_=0)
    rows = db.execute(
        select(
            col(Memory.card),
            func.count(),
            func.sum(col(Memory.reviews)),
            func.sum(col(Memory.lapses)),
            func.sum(leech),
        )
        .where(col(Memory.reviews) > 0)
        .group_by(col(Memory.card))
        .having(func.sum(col(Memory.lapses)) > 0)
    )
    return [Forgotten(card, *map(int, counts)) for card, *counts in rows]


def wordings(db: Session, item: str) -> list[Wording]:
    """The revisions of a question that were answered, the oldest first."""
    rows = db.execute(
        select(col(ItemRevision.revision), col(ItemRevision.first_seen))
        .where(col(ItemRevision.item) == item)
        .order_by(col(ItemRevision.first_seen), col(ItemRevision.id))
    )
    return [Wording(revision, moment(at)) for revision, at in rows]


def papers(db: Session) -> list[Paper]:
    """The first finished sitting of every learner at every exam."""
    rows = db.execute(
        select(
            col(Sitting.id),
            col(Sitting.learner_id),
            col(Sitting.exam),
            col(Sitting.paper),
        )
        .where(col(Sitting.closed_at).is_not(None))
        .order_by(col(Sitting.started_at), col(Sitting.id))
    )
    first: dict[tuple[int, str], tuple[int, str]] = {}
    for sitting, learner, exam, paper in rows:
        first.setdefault((learner, exam), (sitting, paper))
    points = _points(db)
    return [
        Paper(learner, exam, _by_place(paper, points.get(sitting, {})))
        for (learner, exam), (sitting, paper) in first.items()
    ]


def _points(db: Session) -> dict[int, dict[str, float]]:
    rows = db.execute(
        select(col(Attempt.sitting_id), col(Attempt.item), col(Attempt.score)).where(
            col(Attempt.sitting_id).is_not(None)
        )
    )
    found: dict[int, dict[str, float]] = {}
    for sitting, item, score in rows:
        found.setdefault(sitting, {})[item] = score
    return found


def _by_place(paper: str, points: dict[str, float]) -> tuple[float, ...]:
    """What was left open has no attempt and earns nothing."""
    slots: Sequence[Sequence[Any]] = json.loads(paper)
    return tuple(points.get(slot[1], 0.0) for slot in slots)


def _chosen(parsed: str) -> tuple[str, ...]:
    if '"chosen"' not in parsed:  # most types have none: reading them costs more
        return ()
    found = json.loads(parsed)
    return tuple(found["chosen"]) if isinstance(found, dict) else ()
