"""SQL: cards, pace, history and open work of a learner."""

import dataclasses
import datetime as dt
import itertools
import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from sqlalchemy import bindparam, case, func, literal, select
from sqlmodel import Session

from app.accounts.current_learner import LearnerProfile
from app.clock import study_day_start, to_milliseconds
from app.content.library import Library
from app.database.study_day_cache import StudyDayCache
from app.database.tables import TABLES
from app.spaced_repetition.card_ids import is_added_card
from app.spaced_repetition.card_rows import MEMORY
from app.spaced_repetition.fsrs import FsrsFormulas, fsrs_formulas
from app.spaced_repetition.queue import card_pace
from app.spaced_repetition.review_log import BY_TIME, LOG, LOGGED, DayTotals, replay_card
from app.spaced_repetition.review_pace import TimeSpent
from app.spaced_repetition.scheduler import ReplayedCard
from app.study_plan.calendar import (
    USUAL,
    OpenPlacementTest,
    OpenPracticeRun,
    OpenSitting,
    StudyPace,
    estimate_pace,
    page_spent,
)
from app.study_plan.card_plan import StartedCard, never_graded
from app.study_plan.forecast import DeckCounts

_MEMORY = TABLES["memory"]
_ROWS = select(
    *(
        _MEMORY.c[name]
        for name in (
            "card",
            "note",
            "stability",
            "difficulty",
            "due_day",
            "first_day",
            "last_day",
            "suspended",
        )
    )
).where(_MEMORY.c.learner_id == bindparam("learner"))


def count_deck_cards(db: Session, learner_id: int, library: Library, day: dt.date) -> DeckCounts:
    """Count the learner's cards in their current state."""
    if not learner_id:
        return DeckCounts(unseen=len(library.cards))
    found = db.connection().execute(_ROWS, {"learner": learner_id})
    rows = [row for row in found if is_added_card(row.card) or row.card in library.cards]
    live = [row for row in rows if not row.suspended]
    today = day.isoformat()
    added = [row for row in live if not row.last_day]
    now, curve = day.toordinal(), fsrs_formulas()
    return DeckCounts(
        begun=(
            *(_started_card_from_row(row) for row in live if row.last_day and row.stability),
            *(
                never_graded(row.card, row.note, _day_ordinal(row.due_day), now, curve)
                for row in added
            ),
        ),
        added=len(added),
        unseen=len(library.cards) - sum(not is_added_card(row.card) for row in rows),
        answered=sum(row.last_day == today for row in live),
        fresh=sum(row.first_day == today and not is_added_card(row.card) for row in live),
    )


def _started_card_from_row(row: Any) -> StartedCard:
    last, due = _day_ordinal(row.last_day), _day_ordinal(row.due_day)
    return StartedCard(row.card, row.stability, row.difficulty, last, due, row.note)


def _day_ordinal(day: str) -> int:
    return dt.date.fromisoformat(day).toordinal()


_ATTEMPT = TABLES["attempt"]
_READING = TABLES["reading"]

# Longer times mean that the page was left open.
_MOST_ANSWER = 600_000
_answered = (
    _ATTEMPT.c.learner_id == bindparam("learner"),
    _ATTEMPT.c.study_day < bindparam("day"),
    _ATTEMPT.c.milliseconds.between(1, _MOST_ANSWER),
)


_spent = (
    select(
        func.sum(_ATTEMPT.c.milliseconds).label("taken"),
        func.count(_ATTEMPT.c.id).label("answers"),
    )
    .where(*_answered)
    .subquery()
)
# One query: the totals, joined to each section that was read or to no section.
_SPENT = select(_spent, _READING.c.topic, _READING.c.section, _READING.c.at).select_from(
    _spent.outerjoin(
        _READING,
        (_READING.c.learner_id == bindparam("learner")) & (_READING.c.at < bindparam("begun")),
    )
)


_PACE_CACHE: StudyDayCache[StudyPace] = StudyDayCache()


def cached_pace(db: Session, learner: LearnerProfile, library: Library, day: dt.date) -> StudyPace:
    """Return the learner's pace as of the start of the study day `day`.

    The usual pace for a learner without a row.
    """
    if not learner.id:
        return USUAL
    return _PACE_CACHE.of(db, learner.id, day, lambda: _load_pace(db, learner, library, day))


def _load_pace(db: Session, learner: LearnerProfile, library: Library, day: dt.date) -> StudyPace:
    values = {
        "learner": learner.id,
        "day": day.isoformat(),
        "begun": to_milliseconds(study_day_start(day, learner.zone)),
    }
    rows = db.connection().execute(_SPENT, values).all()
    read = ((r.topic, r.section, r.at) for r in rows if r.topic is not None)
    question = TimeSpent((rows[0].taken or 0) / 1000, rows[0].answers)
    page = page_spent(read, library.topics)
    return estimate_pace(card_pace(db, learner.id, day), question, page)


_SITTING = TABLES["sitting"]
_RUN = TABLES["practice_run"]


@dataclasses.dataclass(frozen=True, slots=True)
class DueCount:
    """The cards of one study day: all, those whose step is not over, and its next end in ms.

    Added cards that were never reviewed are not counted; they are new.
    """

    cards: int
    waiting: int
    next_at: int | None


def _sum_where(condition: Any, value: Any = 1) -> Any:
    return func.coalesce(func.sum(case((condition, value), else_=0)), 0)


# A card whose reverse was reviewed today is buried until tomorrow.
_sibling = _MEMORY.alias()
_answered_notes = select(_sibling.c.note).where(
    _sibling.c.learner_id == bindparam("learner"),
    _sibling.c.last_day == bindparam("day"),
)
_waits = _MEMORY.c.state.in_(("learning", "relearning")) & (_MEMORY.c.due_at > bindparam("now"))
_COMING = (
    select(
        _MEMORY.c.due_day,
        _sum_where(_MEMORY.c.state != "new"),
        _sum_where(_waits),
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


def load_due_counts(
    db: Session,
    learner_id: int,
    span: tuple[dt.date, dt.date, int],
    gone: Collection[str],
) -> dict[str, DueCount]:
    """Return the cards due on each day up to the end of `span`.

    `span` is the study day, the last day, and the moment in ms; `gone` are cards that left the
    course.
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


def load_later_counts(
    db: Session,
    learner_id: int,
    days: tuple[dt.date, dt.date],
    gone: Collection[str],
) -> dict[str, int]:
    """Return the cards of each day after the first of `days`, up to the last.

    Today's cards are not read again: a backlog can be most of a deck.
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


def find_running_exam(db: Session, learner_id: int, now: int) -> OpenSitting | None:
    """Return the mock exam in progress, with the slug of its blueprint, or None."""
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


def load_unfinished_runs(
    db: Session, learner_id: int, known: Collection[str]
) -> tuple[OpenPlacementTest | None, OpenPracticeRun | None]:
    """Return the placement test and the practice run that have unanswered questions.

    Each is the one started last; a practice run must be newer than the last placement test. `known`
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
    """Return when the last finished mock exam was started, in ms, or None."""
    found: int | None = db.connection().scalar(_LAST_SAT, {"learner": learner_id})
    return found


@dataclasses.dataclass(frozen=True, slots=True)
class StudyHistory:
    """The study history: recent days by ISO date, and the totals of those before.

    `first` is the first day with work, `earlier` the number of such days before the weeks that are
    shown day by day.
    """

    recent: Mapping[str, DayTotals] = dataclasses.field(default_factory=dict)
    before: DayTotals = dataclasses.field(default_factory=DayTotals)
    earlier: int = 0
    first: dt.date | None = None

    @property
    def total(self) -> DayTotals:
        """The totals of all days."""
        return sum(self.recent.values(), self.before)

    @property
    def count(self) -> int:
        """How many days had an answer or a review."""
        return self.earlier + sum(day.work > 0 for day in self.recent.values())

    @property
    def counts(self) -> dict[str, int]:
        """Answers and reviews by ISO date."""
        return {day: sums.work for day, sums in self.recent.items()}


# Statements are built once: building one costs more than running it.
_DAY = TABLES["study_day"]
_SUMS = [
    _DAY.c[name]
    for name in (
        "answers",
        "reviews",
        "asked",
        "recalled",
        "expected",
        "milliseconds",
    )
]
_mine = _DAY.c.learner_id == bindparam("learner")
_worked = _DAY.c.answers + _DAY.c.reviews > 0
# Undone reviews leave a day without work, which is not a study day.
_RECENT = select(_DAY.c.day, literal(1), *_SUMS).where(
    _mine, _worked, _DAY.c.day >= bindparam("since")
)
_BEFORE = select(func.min(_DAY.c.day), func.count(), *map(func.sum, _SUMS)).where(
    _mine, _worked, _DAY.c.day < bindparam("since")
)
_DAYS = _BEFORE.union_all(_RECENT)


def study_days(db: Session, learner_id: int, since: dt.date) -> StudyHistory:
    """Return what was done on each day from `since` on, and the totals before it."""
    if not learner_id:
        return StudyHistory()
    values = {"learner": learner_id, "since": since.isoformat()}
    (first, earlier, *sums), *rows = db.connection().execute(_DAYS, values).all()
    recent = {day: DayTotals(*rest) for day, _, *rest in rows}
    begun = min(day for day in (first or "9999-12-31", *recent))
    return StudyHistory(
        recent=recent,
        before=DayTotals(*(value or 0 for value in sums)),
        earlier=earlier,
        first=dt.date.fromisoformat(begun) if earlier or recent else None,
    )


@dataclasses.dataclass(frozen=True, slots=True)
class MorningCard:
    """The columns of a memory row that the plan needs."""

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


# In a fixed order, because ties are resolved by row order, and PostgreSQL moves updated rows.
_MORNING_ROWS = (
    select(*(MEMORY.c[field.name] for field in dataclasses.fields(MorningCard)))
    .where(MEMORY.c.learner_id == bindparam("learner"))
    .order_by(MEMORY.c.card)
)


def _load_morning_rows(db: Session, learner_id: int, library: Library) -> list[MorningCard]:
    """Load the memory rows of cards that can be reviewed or are suspended, without orphaned ones."""
    rows = db.connection().execute(_MORNING_ROWS, {"learner": learner_id})
    return [
        MorningCard(*row) for row in rows if is_added_card(row.card) or row.card in library.cards
    ]


def states_at_day_start(
    db: Session, learner_id: int, library: Library, day: dt.date
) -> list[MorningCard]:
    """Return the memory rows as of the start of the study day.

    Cards started on that day stay as they are.
    """
    rows = _load_morning_rows(db, learner_id, library)
    today = day.isoformat()
    changed = [
        row.card
        for row in rows
        if not row.suspended and row.last_day >= today and row.first_day < today
    ]
    before = _replay_todays_cards(db, learner_id, changed, today)
    return [_restore_row(row, before.get(row.card, ReplayedCard())) for row in rows]


def _restore_row(row: MorningCard, was: ReplayedCard) -> MorningCard:
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


def started_before_day(
    rows: Iterable[MorningCard], day: dt.date, curve: FsrsFormulas
) -> Iterator[StartedCard]:
    """Yield the cards that were started before the study day."""
    today = day.isoformat()
    for row in rows:
        if row.suspended:
            continue
        if row.state == "new":
            if row.due_day < today:
                due = _day_ordinal(row.due_day)
                yield never_graded(row.card, row.note, due, day.toordinal(), curve)
        elif row.last_day < today:
            days = _day_ordinal(row.last_day), _day_ordinal(row.due_day)
            yield StartedCard(row.card, row.stability, row.difficulty, *days, row.note)


_MORNING_BEFORE = (
    select(*LOGGED)
    .where(
        LOG.c.learner_id == bindparam("learner"),
        LOG.c.card.in_(bindparam("cards", expanding=True)),
        LOG.c.study_day < bindparam("day"),
    )
    .order_by(LOG.c.card, *BY_TIME)
)


def _replay_todays_cards(
    db: Session, learner_id: int, cards: list[str], day: str
) -> dict[str, ReplayedCard]:
    """Replay the log of cards reviewed today, up to the start of the study day."""
    if not cards:
        return {}
    values = {"learner": learner_id, "cards": cards, "day": day}
    rows = db.connection().execute(_MORNING_BEFORE, values)
    groups = itertools.groupby(rows, lambda row: row.card)
    return {card: replay_card(card, group) for card, group in groups}
