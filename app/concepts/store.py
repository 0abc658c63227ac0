"""What of a page was read, in the database."""

import dataclasses
import datetime as dt
from collections.abc import Iterable, Sequence

from sqlalchemy import func, select
from sqlmodel import Session, col

from app.db.tables import Attempt, Note, QuestionFlag, SectionRead
from app.web.clock import to_milliseconds


def sections_read(db: Session, learner_id: int, topic: str) -> frozenset[str]:
    """The anchors of the sections of one page that this learner has read."""
    rows = db.execute(
        select(col(SectionRead.section)).where(
            col(SectionRead.learner_id) == learner_id, col(SectionRead.topic) == topic
        )
    )
    return frozenset(section for (section,) in rows)


def read_by_topic(db: Session, learner_id: int) -> dict[str, int]:
    """How many sections of each page this learner has read."""
    rows = db.execute(
        select(col(SectionRead.topic), func.count())
        .where(col(SectionRead.learner_id) == learner_id)
        .group_by(col(SectionRead.topic))
    )
    return {row[0]: row[1] for row in rows}


def seeds(db: Session, learner_id: int, items: Sequence[str]) -> dict[str, tuple[int, ...]]:
    """The seeds of a learner's attempts at some questions, the newest first."""
    if not (items and learner_id):
        return {}
    rows = db.execute(
        select(col(Attempt.item), col(Attempt.seed))
        .where(col(Attempt.learner_id) == learner_id, col(Attempt.item).in_(items))
        .order_by(col(Attempt.at).desc(), col(Attempt.id).desc())
    )
    found: dict[str, tuple[int, ...]] = {}
    for item, seed in rows:
        found[item] = (*found.get(item, ()), seed)
    return found


def flagged(db: Session, learner_id: int, items: Sequence[str]) -> frozenset[str]:
    """Those of some questions that carry a flag."""
    if not (items and learner_id):
        return frozenset()
    mine = col(QuestionFlag.learner_id) == learner_id
    which = select(col(QuestionFlag.item)).where(mine, col(QuestionFlag.item).in_(items))
    return frozenset(db.scalars(which))


@dataclasses.dataclass(frozen=True, slots=True)
class SectionNote:
    """What a learner wrote beside a section, and whether they marked it."""

    words: str
    marked: bool


def notes_beside(db: Session, learner_id: int, topic: str) -> dict[str, SectionNote]:
    """The notes of a page by the anchors of its sections."""
    if not learner_id:
        return {}
    rows = db.execute(
        select(col(Note.section), col(Note.words), col(Note.marked)).where(
            col(Note.learner_id) == learner_id, col(Note.topic) == topic
        )
    )
    return {section: SectionNote(words, marked) for section, words, marked in rows}


def own_lines(db: Session, learner_id: int, topics: Sequence[str]) -> list[str]:
    """What a learner wrote on some pages, what they marked first."""
    if not (learner_id and topics):
        return []
    rows = db.execute(
        select(col(Note.words))
        .where(col(Note.learner_id) == learner_id, col(Note.topic).in_(topics))
        .order_by(col(Note.marked).desc(), col(Note.id))
    )
    return [words for (words,) in rows if words]


def record_reading(
    db: Session, learner_id: int, topic: str, sections: Iterable[str], now: dt.datetime
) -> None:
    """Note sections as read; a section that was read before keeps its time."""
    known = sections_read(db, learner_id, topic)
    db.add_all(
        SectionRead(learner_id=learner_id, topic=topic, section=section, at=to_milliseconds(now))
        for section in sections
        if section not in known
    )
