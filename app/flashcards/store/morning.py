"""What a learner remembered as a study day began, whatever was graded since."""

import dataclasses
import datetime as dt
import itertools
from collections.abc import Iterable, Iterator

from sqlalchemy import bindparam, select
from sqlmodel import Session

from app.cards.names import is_added_card
from app.cards.store import MEMORY, replay_card
from app.cards.store.log import IN_TIME, LOG, LOGGED
from app.content.live.library import Library
from app.scheduling import ReplayedCard
from app.scheduling.curve import FsrsFormulas
from app.scheduling.exam import StartedCard, never_graded


@dataclasses.dataclass(frozen=True, slots=True)
class MorningCard:
    """A row of the memory, as far as the plan has to know it."""

    card: str
    note: str
    topic: str
    state: str
    stability: float
    difficulty: float
    due_day: str
    first_day: str
    last_day: str
    suspended: bool
    set_day: str


# In a fixed order, for ties fall as rows lie, and PostgreSQL moves one that is changed.
_ROWS = (
    select(*(MEMORY.c[field.name] for field in dataclasses.fields(MorningCard)))
    .where(MEMORY.c.learner_id == bindparam("learner"))
    .order_by(MEMORY.c.card)
)


def _rows(db: Session, learner_id: int, library: Library) -> list[MorningCard]:
    """The memory of what can be asked or was put aside; what left is left out."""
    rows = db.connection().execute(_ROWS, {"learner": learner_id})
    return [
        MorningCard(*row) for row in rows if is_added_card(row.card) or row.card in library.cards
    ]


def states_at_day_start(
    db: Session, learner_id: int, library: Library, day: dt.date
) -> list[MorningCard]:
    """The memory as it was when the study day began, but for cards begun on it."""
    rows = _rows(db, learner_id, library)
    today = day.isoformat()
    changed = [
        row.card
        for row in rows
        if not row.suspended and row.last_day >= today and row.first_day < today
    ]
    before = _before(db, learner_id, changed, today)
    return [_restored(row, before.get(row.card, ReplayedCard())) for row in rows]


def _restored(row: MorningCard, was: ReplayedCard) -> MorningCard:
    if was.standing is None:
        return row
    return dataclasses.replace(
        row,
        state=was.standing.state,
        stability=was.standing.stability,
        difficulty=was.standing.difficulty,
        due_day=was.standing.due_day.isoformat(),
        last_day=was.standing.last_day.isoformat(),
        set_day=was.until.isoformat() if was.until else "",
    )


def begun_of(
    rows: Iterable[MorningCard], day: dt.date, curve: FsrsFormulas
) -> Iterator[StartedCard]:
    """The cards that were begun before the study day."""
    today = day.isoformat()
    for row in rows:
        if row.suspended:
            continue
        if row.state == "new":
            if row.due_day < today:
                due = _ordinal(row.due_day)
                yield never_graded(row.card, row.note, due, day.toordinal(), curve)
        elif row.last_day < today:
            days = _ordinal(row.last_day), _ordinal(row.due_day)
            yield StartedCard(row.card, row.stability, row.difficulty, *days, row.note)


_BEFORE = (
    select(*LOGGED)
    .where(
        LOG.c.learner_id == bindparam("learner"),
        LOG.c.card.in_(bindparam("cards", expanding=True)),
        LOG.c.study_day < bindparam("day"),
    )
    .order_by(LOG.c.card, *IN_TIME)
)


def _before(db: Session, learner_id: int, cards: list[str], day: str) -> dict[str, ReplayedCard]:
    """How cards stood that were answered on the study day itself, from the log."""
    if not cards:
        return {}
    values = {"learner": learner_id, "cards": cards, "day": day}
    rows = db.connection().execute(_BEFORE, values)
    groups = itertools.groupby(rows, lambda row: row.card)
    return {card: replay_card(card, group) for card, group in groups}


def _ordinal(day: str) -> int:
    return dt.date.fromisoformat(day).toordinal()
