"""What a learner has done, read from the logs in few narrow questions."""

import dataclasses
import datetime as dt

from sqlalchemy import select
from sqlmodel import Session, col

from app.db.tables import Attempt, Memory, Reading
from app.progress.mastery.plan import Deck
from app.progress.mastery.standing import Record
from app.web.clock import milliseconds


@dataclasses.dataclass(frozen=True, slots=True)
class CardRow:
    """The memory of one card as far as plans need it."""

    card: str
    state: str
    due_day: str
    due_at: int
    suspended: bool

    @property
    def begun(self) -> bool:
        """Whether a review of it stands; none does when all were undone."""
        return self.state != "new"


@dataclasses.dataclass(frozen=True, slots=True)
class PageRow:
    """A page that was opened: its sections read, and when last."""

    topic: str
    sections: frozenset[str]
    at: int


def first_scores(db: Session, learner_id: int) -> dict[str, float]:
    """Scores (0..1) of first answers by question."""
    rows = db.execute(
        select(col(Attempt.item), col(Attempt.score)).where(
            col(Attempt.learner_id) == learner_id, col(Attempt.first)
        )
    )
    return {row[0]: row[1] for row in rows}


def cards(db: Session, learner_id: int) -> list[CardRow]:
    """Every card that this learner has begun."""
    rows = db.execute(
        select(
            col(Memory.card),
            col(Memory.state),
            col(Memory.due_day),
            col(Memory.due_at),
            col(Memory.suspended),
        ).where(col(Memory.learner_id) == learner_id)
    )
    return [CardRow(*row) for row in rows]


def pages(db: Session, learner_id: int) -> list[PageRow]:
    """The pages that this learner has read in, the last one first."""
    rows = db.execute(
        select(col(Reading.topic), col(Reading.section), col(Reading.at)).where(
            col(Reading.learner_id) == learner_id
        )
    )
    found: dict[str, tuple[set[str], int]] = {}
    for topic, section, at in rows:
        sections, last = found.get(topic, (set(), 0))
        found[topic] = (sections | {section}, max(last, at))
    read = [PageRow(topic, frozenset(s), at) for topic, (s, at) in found.items()]
    return sorted(read, key=lambda row: row.at, reverse=True)


def record_of(
    firsts: dict[str, float], begun: list[CardRow], read: list[PageRow]
) -> Record:
    """The rows as the rules of mastery read them."""
    return Record(
        firsts=firsts,
        known=frozenset(c.card for c in begun if c.state == "review"),
        read={row.topic: row.sections for row in read},
    )


def deck_of(
    begun: list[CardRow], course: frozenset[str], day: dt.date, now: dt.datetime
) -> Deck:
    """The cards of a study day; what the course no longer holds is left out."""
    today, moment = day.isoformat(), milliseconds(now)
    mine = [c for c in begun if c.card in course]
    live = [c for c in mine if c.begun and not c.suspended and c.due_day <= today]
    due = sum(c.state == "review" or c.due_at <= moment for c in live)
    return Deck(
        due=due,
        later=len(live) - due,
        new=len(course) - sum(c.begun or c.suspended for c in mine),
    )
