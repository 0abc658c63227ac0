"""Notes in the database: at most one for each section of a page."""

import datetime as dt

from sqlalchemy import select
from sqlmodel import Session, col, delete

from app.db.tables import Note
from app.notes.listing import SavedNote
from app.web.clock import to_milliseconds


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
