"""SQL: sections read, and notes."""

import dataclasses
import datetime as dt
from collections.abc import Iterable, Sequence

from sqlalchemy import select
from sqlmodel import Session, col, delete

from app.clock import to_milliseconds
from app.database.engine import ATTEMPT, GRADED_ATTEMPTS, SCORE
from app.database.tables import Attempt, QuestionFlag, SectionNoteRow, SectionRead


def load_anchors_read(db: Session, learner_id: int, topic: str) -> frozenset[str]:
    """Return the anchors of the sections of one page that this learner has read."""
    rows = db.execute(
        select(col(SectionRead.section)).where(
            col(SectionRead.learner_id) == learner_id, col(SectionRead.topic) == topic
        )
    )
    return frozenset(section for (section,) in rows)


def load_anchors_read_by_topic(db: Session, learner_id: int) -> dict[str, set[str]]:
    """Return the anchors of the sections of each page that this learner has read."""
    anchors: dict[str, set[str]] = {}
    of_learner = col(SectionRead.learner_id) == learner_id
    for topic, section in db.execute(
        select(col(SectionRead.topic), col(SectionRead.section)).where(of_learner)
    ):
        anchors.setdefault(topic, set()).add(section)
    return anchors


def load_attempt_seeds_by_question(
    db: Session, learner_id: int, question_ids: Sequence[str]
) -> dict[str, tuple[int, ...]]:
    """Return the seeds of a learner's attempts at the given questions, newest first."""
    if not (question_ids and learner_id):
        return {}
    rows = db.execute(
        select(col(Attempt.item), col(Attempt.seed))
        .where(col(Attempt.learner_id) == learner_id, col(Attempt.item).in_(question_ids))
        .order_by(col(Attempt.at).desc(), col(Attempt.id).desc())
    )
    seeds: dict[str, tuple[int, ...]] = {}
    for item, seed in rows:
        seeds[item] = (*seeds.get(item, ()), seed)
    return seeds


def load_answered_questions(db: Session, learner_id: int) -> frozenset[str]:
    of_learner = col(Attempt.learner_id) == learner_id
    return frozenset(db.scalars(select(col(Attempt.item)).distinct().where(of_learner)))


def list_questions_missed_last_time(
    db: Session, learner_id: int, question_ids: Sequence[str]
) -> frozenset[str]:
    """Return which of the given questions were not fully right when last answered."""
    if not (question_ids and learner_id):
        return frozenset()
    rows = db.execute(
        select(ATTEMPT.c["item"], SCORE)
        .select_from(GRADED_ATTEMPTS)
        .where(ATTEMPT.c.learner_id == learner_id, ATTEMPT.c["item"].in_(question_ids))
        .order_by(ATTEMPT.c.id)
    )
    last: dict[str, float] = {row[0]: row[1] for row in rows}
    return frozenset(item for item, score in last.items() if score < 1)


def filter_flagged_questions(
    db: Session, learner_id: int, question_ids: Sequence[str]
) -> frozenset[str]:
    if not (question_ids and learner_id):
        return frozenset()
    of_learner = col(QuestionFlag.learner_id) == learner_id
    query = select(col(QuestionFlag.item)).where(
        of_learner, col(QuestionFlag.item).in_(question_ids)
    )
    return frozenset(db.scalars(query))


@dataclasses.dataclass(frozen=True, slots=True)
class SectionNote:
    """A learner's note on a section, and whether they bookmarked it."""

    text: str
    is_bookmarked: bool


def load_notes_by_section(db: Session, learner_id: int, topic: str) -> dict[str, SectionNote]:
    if not learner_id:
        return {}
    rows = db.execute(
        select(
            col(SectionNoteRow.section), col(SectionNoteRow.words), col(SectionNoteRow.marked)
        ).where(col(SectionNoteRow.learner_id) == learner_id, col(SectionNoteRow.topic) == topic)
    )
    return {section: SectionNote(words, marked) for section, words, marked in rows}


def list_note_texts(db: Session, learner_id: int, topics: Sequence[str]) -> list[str]:
    """Return a learner's notes on the given pages, bookmarked ones first."""
    if not (learner_id and topics):
        return []
    rows = db.execute(
        select(col(SectionNoteRow.words))
        .where(col(SectionNoteRow.learner_id) == learner_id, col(SectionNoteRow.topic).in_(topics))
        .order_by(col(SectionNoteRow.marked).desc(), col(SectionNoteRow.id))
    )
    return [text for (text,) in rows if text]


def mark_sections_read(
    db: Session, learner_id: int, topic: str, sections: Iterable[str], now: dt.datetime
) -> None:
    """Mark sections as read; a section that was read before keeps its time."""
    sections_read = load_anchors_read(db, learner_id, topic)
    db.add_all(
        SectionRead(learner_id=learner_id, topic=topic, section=section, at=to_milliseconds(now))
        for section in sections
        if section not in sections_read
    )


@dataclasses.dataclass(frozen=True, slots=True)
class SavedNote:
    topic: str
    section_anchor: str
    text: str = ""
    is_bookmarked: bool = False


def load_saved_notes(db: Session, learner_id: int, topic: str = "") -> list[SavedNote]:
    """Return everything a learner wrote or bookmarked, on one page or on all."""
    query = select(
        col(SectionNoteRow.topic),
        col(SectionNoteRow.section),
        col(SectionNoteRow.words),
        col(SectionNoteRow.marked),
    ).where(col(SectionNoteRow.learner_id) == learner_id)
    if topic:
        query = query.where(col(SectionNoteRow.topic) == topic)
    return [SavedNote(*row) for row in db.execute(query.order_by(col(SectionNoteRow.id)))]


def replace_or_delete_note(db: Session, learner_id: int, note: SavedNote, now: dt.datetime) -> None:
    """Replace the note of a section; an empty one deletes it."""
    db.execute(
        delete(SectionNoteRow).where(
            col(SectionNoteRow.learner_id) == learner_id,
            col(SectionNoteRow.topic) == note.topic,
            col(SectionNoteRow.section) == note.section_anchor,
        )
    )
    if note.text or note.is_bookmarked:
        db.add(
            SectionNoteRow(
                learner_id=learner_id,
                topic=note.topic,
                section=note.section_anchor,
                words=note.text,
                marked=note.is_bookmarked,
                at=to_milliseconds(now),
            )
        )
