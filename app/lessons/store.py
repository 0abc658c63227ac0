"""What was read; notes."""

import dataclasses
import datetime as dt
from collections.abc import Iterable, Sequence

from sqlalchemy import func, select
from sqlmodel import Session, col, delete

from app.clock import to_milliseconds
from app.database.tables import Attempt, Note, QuestionFlag, SectionRead


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


@dataclasses.dataclass(frozen=True, slots=True)
class SavedNote:
    """A note: the page and section it stands beside, its words, its bookmark."""

    topic: str
    section: str
    words: str = ""
    marked: bool = False


def notes(db: Session, learner_id: int, topic: str = "") -> list[SavedNote]:
    """Everything a learner wrote or marked, of one page or of all."""
    wanted = select(col(Note.topic), col(Note.section), col(Note.words), col(Note.marked)).where(
        col(Note.learner_id) == learner_id
    )
    if topic:
        wanted = wanted.where(col(Note.topic) == topic)
    return [SavedNote(*row) for row in db.execute(wanted.order_by(col(Note.id)))]


def write(db: Session, learner_id: int, note: SavedNote, now: dt.datetime) -> None:
    """Put a note in place of the one that is there; an empty one takes it away."""
    db.execute(
        delete(Note).where(
            col(Note.learner_id) == learner_id,
            col(Note.topic) == note.topic,
            col(Note.section) == note.section,
        )
    )
    if note.words or note.marked:
        db.add(
            Note(
                learner_id=learner_id,
                topic=note.topic,
                section=note.section,
                words=note.words,
                marked=note.marked,
                at=to_milliseconds(now),
            )
        )
