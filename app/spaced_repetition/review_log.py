"""SQL: append-only review log, undo, replay, totals per study day.

Code that writes to the answer log or the review log adds to the day's totals in the same
transaction. The totals are a cache and can be rebuilt from the logs.
"""

import collections
import dataclasses
import datetime as dt
import functools
import hashlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from sqlalchemy import Row, and_, bindparam, delete, func, literal, select, update
from sqlalchemy.dialects import postgresql, sqlite
from sqlmodel import Session

from app.clock import from_milliseconds, study_day_at, to_milliseconds
from app.database.engine import BROUGHT, insert_if_absent
from app.database.quotas import CARD_LOG
from app.database.tables import TABLES, Review, Suspension
from app.markup.model import Flashcard
from app.spaced_repetition.added_cards import (
    ADDED,
    choose_first_due_day_by_kind,
    set_declined_if_added,
)
from app.spaced_repetition.card_ids import QUESTION, is_added_card, parse_card_id
from app.spaced_repetition.card_rows import (
    MEMORY,
    OWN_CARD_ROW,
    STANDING,
    card_query_parameters,
    card_state_from_row,
    columns_of_new_card,
    delete_memory_row,
    insert_memory_row,
    state_columns,
    update_memory_row,
)
from app.spaced_repetition.scheduler import (
    CardState,
    ManualEdit,
    ReplayedCard,
    ReviewEvent,
    apply_review,
    replay_log,
    retrievability,
)

LEARNER = TABLES["learner"]
_ALL = (
    select(ADDED.c.card, ADDED.c.at, ADDED.c.declined, LEARNER.c.zone)
    .join_from(ADDED, LEARNER, LEARNER.c.id == ADDED.c.learner_id)
    .where(ADDED.c.learner_id == bindparam("of_learner"))
)
_ONE = _ALL.where(ADDED.c.card == bindparam("of_card"))


@dataclasses.dataclass(frozen=True, slots=True)
class AddedCardStart:
    """How an added card starts: `due` is the study day it is first due.

    `since` is the first miss or addition after the card's last review. `again` says that this can
    happen more than once, as a question can be missed again.
    """

    due: dt.date
    since: dt.datetime
    declined: bool
    again: bool


def load_added_card_starts(
    db: Session, learner_id: int, cards: Collection[str] | None = None
) -> dict[str, AddedCardStart]:
    """Return the starts of all cards that a learner ever added, or of some of them."""
    wanted = _ALL if cards is None else _ALL.where(ADDED.c.card.in_(cards))
    rows = db.connection().execute(wanted, {"of_learner": learner_id})
    return {row.card: _start_from_row(row) for row in rows}


def load_added_card_start(db: Session, learner_id: int, card: str) -> AddedCardStart | None:
    """Return the start of one card, or None if it was never added."""
    values = {"of_learner": learner_id, "of_card": card}
    row = db.connection().execute(_ONE, values).first()
    return _start_from_row(row) if row else None


def drop_undone_rows(log: Iterable[Any]) -> list[Any]:
    """Return the log rows of one card whose rating or manual edit was not undone."""
    rows = list(log)
    undone = {row.voids for row in rows if row.voids}
    return [
        row for row in rows if (row.rating or (row.act and not row.voids)) and row.id not in undone
    ]


def review_from_row(row: Any) -> ReviewEvent:
    return ReviewEvent(
        rating=row.rating,
        at=from_milliseconds(row.at),
        day=dt.date.fromisoformat(row.study_day),
        retention=row.retention,
    )


def manual_edit_from_row(row: Any) -> ManualEdit:
    until = dt.date.fromisoformat(row.until_day) if row.until_day else None
    return ManualEdit(row.act, until)


def replay_card(card: str, log: Iterable[Any], start: AddedCardStart | None = None) -> ReplayedCard:
    """Replay the log rows of a card, oldest first, and return its state.

    A question that was missed again after its last row is due sooner.
    """
    rows = drop_undone_rows(log)
    now = replay_log(
        (review_from_row(r) if r.rating else manual_edit_from_row(r) for r in rows), card
    )
    if start is None or not start.again or not rows:
        return now
    if start.since <= from_milliseconds(rows[-1].at):
        return now
    if now.standing is None:
        return ReplayedCard()
    due = min(now.standing.due_day, start.due)
    return ReplayedCard(dataclasses.replace(now.standing, due_day=due))


def columns_of_replayed_card(
    replayed: ReplayedCard, log_row_count: int, start: AddedCardStart | None, *, suspended: bool
) -> dict[str, Any] | None:
    """Return the columns of a rebuilt memory row, or None if there is nothing to store.

    `log_row_count` counts the log rows. `suspended` says that the card was suspended; a declined card is
    treated as suspended.
    """
    suspended = suspended or (start is not None and start.declined)
    held: dict[str, Any] = {"turns": log_row_count, "suspended": suspended}
    if replayed.until is not None:
        held["set_day"] = replayed.until.isoformat()
    if replayed.standing is not None:
        return {**state_columns(replayed.standing), **held}
    due = replayed.until or (start.due if start else None)
    if due is None and not suspended:
        return None
    return {**columns_of_new_card(due), **held}


def _start_from_row(row: Any) -> AddedCardStart:
    since = from_milliseconds(row.at)
    day = study_day_at(since, row.zone)
    missed = parse_card_id(row.card)[0] == QUESTION
    return AddedCardStart(choose_first_due_day_by_kind(row.card, day), since, row.declined, missed)


DAYS = TABLES["study_day"]
ANSWERS = TABLES["attempt"]
GRADES = TABLES["review"]


@dataclasses.dataclass(frozen=True, slots=True)
class DayTotals:
    """The totals of one or more days, and what one answer or review adds to them.

    `asked` counts the `reviews` of cards past their learning steps, first review of the day only.
    `recalled` of those were rated above “again”; the retrievabilities computed before them add up
    to `expected`. `milliseconds` is the time taken.
    """

    answers: int = 0
    reviews: int = 0
    asked: int = 0
    recalled: int = 0
    expected: float = 0.0
    milliseconds: int = 0

    def __add__(self, other: "DayTotals") -> "DayTotals":
        mine, others = self.columns(), other.columns()
        return DayTotals(**{name: mine[name] + others[name] for name in mine})

    def __neg__(self) -> "DayTotals":
        return DayTotals(**{name: -value for name, value in self.columns().items()})

    @property
    def answers_and_reviews(self) -> int:
        return self.answers + self.reviews

    @property
    def minutes(self) -> float:
        return self.milliseconds / 60_000

    def columns(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__slots__}


def totals_of_review(
    rating: int, recall: float | None, milliseconds: int | None, *, seen_that_day: bool
) -> DayTotals:
    """Return what a review adds to its day.

    `recall` is the retrievability before it, None for a card in its steps. `seen_that_day` says that the
    card was already reviewed that day, which proves no memory.
    """
    took = milliseconds or 0
    if recall is None or seen_that_day:
        return DayTotals(reviews=1, milliseconds=took)
    return DayTotals(
        reviews=1, asked=1, recalled=int(rating > 1), expected=recall, milliseconds=took
    )


def add_to_day_totals(db: Session, learner_id: int, day: str, totals: DayTotals) -> None:
    """Add to the totals of a study day (ISO date); inserts the row if it is the first."""
    values = {"learner_id": learner_id, "day": day, **totals.columns()}
    db.connection().execute(_add_statement(db.connection().dialect.name), values)


def replace_in_day_totals(
    db: Session, learner_id: int, before: Iterable[Row[Any]], after: Iterable[Row[Any]]
) -> None:
    """Replace what the old logs of some cards added to the totals by what the new logs add.

    Both are complete logs of the same cards, each oldest first.
    """
    days = collections.defaultdict[str, DayTotals](DayTotals)
    for day, work in yield_day_contributions(list(before)):
        days[day] += -work
    for day, work in yield_day_contributions(list(after)):
        days[day] += work
    for day, work in sorted(days.items()):
        if work != DayTotals():
            add_to_day_totals(db, learner_id, day, work)


def delete_empty_days(db: Session, learner_id: int) -> None:
    """Delete the days that have no rows left in either log."""
    connection = db.connection()
    held: set[str] = set()
    for log in (ANSWERS, GRADES):
        mine = log.c.learner_id == learner_id
        held |= set(connection.scalars(select(log.c.study_day).where(mine).distinct()))
    mine = DAYS.c.learner_id == learner_id
    days = set(connection.scalars(select(DAYS.c.day).where(mine)))
    for day in sorted(days - held):
        connection.execute(delete(DAYS).where(mine, DAYS.c.day == day))


def yield_day_contributions(log: Sequence[Row[Any]]) -> Iterable[tuple[str, DayTotals]]:
    """Yield what each review added to which day; undone reviews add nothing."""
    undone = {row.voids for row in log if row.voids}
    last: dict[str, str] = {}
    for row in log:
        if not row.rating:
            continue
        if row.id in undone:
            yield row.study_day, DayTotals()
            continue
        again = last.get(row.card) == row.study_day
        last[row.card] = row.study_day
        work = totals_of_review(row.rating, row.recall, row.milliseconds, seen_that_day=again)
        yield row.study_day, work


@functools.cache
def _add_statement(dialect: str) -> Any:
    make = sqlite.insert if dialect == "sqlite" else postgresql.insert
    statement = make(DAYS)
    new = statement.excluded
    sums = {name: DAYS.c[name] + new[name] for name in DayTotals.__slots__}
    return statement.on_conflict_do_update(
        index_elements=[DAYS.c.learner_id, DAYS.c.day], set_=sums
    )


LOG = TABLES["review"]
_UNDONE = select(LOG.c.rating, LOG.c.recall, LOG.c.milliseconds, LOG.c.study_day).where(
    LOG.c.id == bindparam("number")
)


def compute_review_state_retrievability(before: CardState | None, day: dt.date) -> float | None:
    """Return the probability of recall before a review; None while the card is in its steps."""
    if before is None or before.state != "review":
        return None
    return retrievability(before, day)


def add_review_to_day(
    db: Session,
    learner_id: int,
    before: CardState | None,
    review: ReviewEvent,
    milliseconds: int | None,
) -> None:
    """Add a review to its day; `before` is the card's state before it."""
    again = _was_last_reviewed_on(before, review.day)
    chance = compute_review_state_retrievability(before, review.day)
    work = totals_of_review(review.rating, chance, milliseconds, seen_that_day=again)
    add_to_day_totals(db, learner_id, review.day.isoformat(), work)


def subtract_review_from_day(
    db: Session, learner_id: int, log_id: int, before: CardState | None
) -> None:
    """Subtract an undone review from its day; `before` is the state the card returns to."""
    row = db.connection().execute(_UNDONE, {"number": log_id}).one()
    rating, chance, took, day = row
    again = _was_last_reviewed_on(before, dt.date.fromisoformat(day))
    work = totals_of_review(rating, chance, took, seen_that_day=again)
    add_to_day_totals(db, learner_id, day, -work)


def _was_last_reviewed_on(before: CardState | None, day: dt.date) -> bool:
    return before is not None and before.last_day == day


ASIDE = TABLES["suspension"]
# Reviews are replayed by time, because an import may add older ones.
BY_TIME = (LOG.c.at, LOG.c.id)


@dataclasses.dataclass(frozen=True, slots=True)
class CardRecord:
    """A card of a learner; `standing` is None before the first review.

    `turns` counts its log rows, `known` says that it has a memory row, and `suspended` that it is
    suspended.
    """

    card: str
    standing: CardState | None = None
    turns: int = 0
    known: bool = False
    suspended: bool = False


@dataclasses.dataclass(frozen=True, slots=True)
class ReviewSubmission:
    """What was sent with a rating: the token of its form, and the time taken."""

    token: str
    milliseconds: int | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class RecordedReview:
    """A review that was saved: its log id and the resulting state."""

    number: int
    standing: CardState
    lapsed: bool


_TURNS = select(func.count()).where(
    LOG.c.learner_id == bindparam("of_learner"), LOG.c.card == bindparam("of_card")
)
# One query for both. The log is counted only if there is no memory row.
_one = select(literal(1).label("one")).subquery()
_FIND = select(
    *STANDING,
    func.coalesce(MEMORY.c.turns, _TURNS.scalar_subquery()).label("turns"),
    MEMORY.c.suspended,
).select_from(_one.outerjoin(MEMORY, and_(*OWN_CARD_ROW)))
_COUNT_TURNS = _TURNS


def load_card_record(db: Session, learner_id: int, card: str) -> CardRecord:
    row = db.connection().execute(_FIND, card_query_parameters(learner_id, card)).one()
    if row.state is None:
        return CardRecord(card, turns=row.turns)
    return CardRecord(card, card_state_from_row(row), row.turns, True, row.suspended)


def load_unseen_card(db: Session, learner_id: int, card: str) -> CardRecord:
    """Return a card that has no memory row; its log may hold reviews that were all undone."""
    if not learner_id:
        return CardRecord(card)
    turns = db.connection().execute(_COUNT_TURNS, card_query_parameters(learner_id, card)).one()[0]
    return CardRecord(card, turns=turns)


_RATING = select(LOG.c.rating).where(LOG.c.token == bindparam("of_token"))


def find_rating(db: Session, learner_id: int, card: str, token: str) -> int:
    """Return the rating already saved for this showing of a card, 0 if there is none."""
    kept = hash_form_token(learner_id, card, token)
    return db.connection().execute(_RATING, {"of_token": kept}).scalar() or 0


def record_review(
    db: Session, learner_id: int, card: Flashcard, review: ReviewEvent, submission: ReviewSubmission
) -> RecordedReview | None:
    """Save a review once; returns None if this token was used before.

    Raises ConflictError if the card's log is full.
    """
    held = load_card_record(db, learner_id, card.id)
    number = insert_if_absent(
        db,
        Review,
        {
            "learner_id": learner_id,
            "token": hash_form_token(learner_id, card.id, submission.token),
            "card": card.id,
            "rating": review.rating,
            "retention": review.retention,
            "recall": compute_review_state_retrievability(held.standing, review.day),
            "milliseconds": submission.milliseconds,
            "study_day": review.day.isoformat(),
            "at": to_milliseconds(review.at),
        },
    )
    if number is None:
        return None
    CARD_LOG.raise_if_exceeded(held.turns + 1)
    standing = apply_review(held.standing, review, card.id)
    if held.standing is not None and review.at < held.standing.last_at:
        # The clock was set back, so the review is replayed at its place in time.
        standing = rebuild_card_state(db, learner_id, card) or standing
    values = {**state_columns(standing), "turns": held.turns + 1}
    _write_card_row(db, learner_id, card, values, known=held.known)
    add_review_to_day(db, learner_id, held.standing, review, submission.milliseconds)
    lapsed = standing.lapses > (held.standing.lapses if held.standing else 0)
    return RecordedReview(number, standing, lapsed=lapsed)


def _write_card_row(
    db: Session, learner_id: int, card: Flashcard, values: Mapping[str, Any], *, known: bool
) -> None:
    if known:
        update_memory_row(db, learner_id, card.id, values)
    else:
        insert_memory_row(db, learner_id, card, values)


_other = LOG.alias()
_NEWEST = (
    select(LOG.c.id, LOG.c.card, LOG.c.study_day, LOG.c.rating)
    .where(LOG.c.learner_id == bindparam("of_learner"), LOG.c.voids.is_(None))
    .where((LOG.c.rating > 0) | (LOG.c.act != ""))
    .where(LOG.c.token.not_like(f"{BROUGHT}%"))
    .where(~select(_other.c.id).where(_other.c.voids == LOG.c.id).exists())
    .order_by(LOG.c.id.desc())
    .limit(1)
)


def find_last_undoable_row(
    db: Session, learner_id: int, day: dt.date | None = None
) -> tuple[int, str] | None:
    """Return the last review or manual edit that was not undone: (log id, card).

    If `day` is given, only that study day counts. Imported rows are left out.
    """
    row = _newest_log_row(db, learner_id)
    if row is None or (day is not None and row.study_day != day.isoformat()):
        return None
    return row.id, row.card


def _newest_log_row(db: Session, learner_id: int) -> Row[Any, Any, Any, Any] | None:
    return db.connection().execute(_NEWEST, {"of_learner": learner_id}).first()


def undo_review(
    db: Session,
    learner_id: int,
    log_id: int,
    moment_and_day: tuple[dt.datetime, dt.date],
    cards: Mapping[str, Flashcard] = MappingProxyType({}),
) -> str | None:
    """Undo the last review or manual edit, if it still is `log_id`; returns its card.

    It stays in the log, and a new row that voids it points to it. Undoing it a second time changes
    nothing. `cards` are the course cards whose memory row may have to be restored.
    """
    last = _newest_log_row(db, learner_id)
    if last is None or last.id != log_id:
        return None
    now, day = moment_and_day
    graded = last.rating > 0
    done = insert_if_absent(
        db,
        Review,
        {
            "learner_id": learner_id,
            "token": hash_form_token(learner_id, "undo", str(log_id)),
            "card": last.card,
            "rating": 0,
            "voids": log_id,
            "study_day": day.isoformat(),
            "at": to_milliseconds(now),
            "act": "" if graded else "undo",
        },
    )
    card: str = last.card
    standing = rebuild_card_state(db, learner_id, cards.get(card, card))
    if done is not None and graded:
        subtract_review_from_day(db, learner_id, log_id, standing)
    elif done is not None:
        bump_manual_edit_counter(db, learner_id)
    return card


_ACTED = (
    update(LEARNER).where(LEARNER.c.id == bindparam("of_learner")).values(acts=LEARNER.c.acts + 1)
)


def bump_manual_edit_counter(db: Session, learner_id: int) -> None:
    """Count a manual edit, so that the plan of the day is computed again."""
    db.connection().execute(_ACTED, {"of_learner": learner_id})


_TAKE_UP = delete(ASIDE).where(
    ASIDE.c.learner_id == bindparam("of_learner"), ASIDE.c.card == bindparam("of_card")
)


def set_suspended(
    db: Session, learner_id: int, card: Flashcard, now: dt.datetime, *, suspended: bool
) -> None:
    """Suspend a card, or unsuspend it in the state it had."""
    if is_added_card(card.id) and not suspended:
        set_declined_if_added(db, learner_id, card.id, declined=False)
        return
    held = load_card_record(db, learner_id, card.id)
    db.connection().execute(_TAKE_UP, card_query_parameters(learner_id, card.id))
    if suspended:
        row = {"learner_id": learner_id, "card": card.id, "at": to_milliseconds(now)}
        insert_if_absent(db, Suspension, row)
    if held.known and (held.standing is not None or suspended):
        update_memory_row(db, learner_id, card.id, {"suspended": suspended})
    elif held.known:
        rebuild_card_state(db, learner_id, card, suspended=False)
    elif suspended:
        insert_memory_row(
            db,
            learner_id,
            card,
            {**columns_of_new_card(None), "turns": held.turns, "suspended": True},
        )


def list_suspended(db: Session, learner_id: int) -> tuple[str, ...]:
    rows = db.connection().execute(
        select(ASIDE.c.card).where(ASIDE.c.learner_id == learner_id).order_by(ASIDE.c.id.desc())
    )
    return tuple(rows.scalars())


def hash_form_token(learner_id: int, *parts: str) -> str:
    """Return a form's token as it is stored, distinct for each learner and what they did.

    Pages cached for all visitors contain the same tokens, and a changed answer from the same form
    is another answer.
    """
    words = "\0".join((str(learner_id), *parts))
    return hashlib.sha256(words.encode()).hexdigest()


LOGGED = tuple(
    LOG.c[name]
    for name in (
        "id",
        "card",
        "rating",
        "voids",
        "at",
        "study_day",
        "retention",
        "act",
        "until_day",
    )
)
_LOG_ALL = (
    select(*LOGGED)
    .where(LOG.c.learner_id == bindparam("of_learner"), LOG.c.card == bindparam("of_card"))
    .order_by(*BY_TIME)
)


def rebuild_card_state(
    db: Session, learner_id: int, card: Flashcard | str, *, suspended: bool | None = None
) -> CardState | None:
    """Rebuild the memory row of one card after its log has changed.

    `suspended` says whether the card is suspended, if that has changed too.
    """
    name = card if isinstance(card, str) else card.id
    rows = db.connection().execute(_LOG_ALL, card_query_parameters(learner_id, name)).all()
    begin = load_added_card_start(db, learner_id, name) if is_added_card(name) else None
    now = replay_card(name, rows, begin)
    held = load_card_record(db, learner_id, name)
    away = held.suspended if suspended is None else suspended
    values = columns_of_replayed_card(now, len(rows), begin, suspended=away)
    if values is None:
        delete_memory_row(db, learner_id, name)
    elif held.known:
        update_memory_row(db, learner_id, name, values)
    else:
        insert_memory_row(db, learner_id, card, values)
    return now.standing


def record_manual_edit(
    db: Session,
    learner_id: int,
    card: Flashcard,
    act: ManualEdit,
    moment_day_token: tuple[dt.datetime, dt.date, str],
) -> int | None:
    """Save a manual edit once; returns None if this form was sent before.

    `moment_day_token` is the moment, the study day and the token of the form. Raises ConflictError if the card's log
    is full.
    """
    now, day, token = moment_day_token
    number = insert_if_absent(
        db,
        Review,
        {
            "learner_id": learner_id,
            "token": hash_form_token(learner_id, card.id, act.kind, token),
            "card": card.id,
            "rating": 0,
            "study_day": day.isoformat(),
            "at": to_milliseconds(now),
            "act": act.kind,
            "until_day": act.until.isoformat() if act.until else None,
        },
    )
    if number is not None:
        CARD_LOG.raise_if_exceeded(load_card_record(db, learner_id, card.id).turns + 1)
        rebuild_card_state(db, learner_id, card)
        bump_manual_edit_counter(db, learner_id)
    return number


class ReviewHistoryRow(NamedTuple):
    """A review or manual edit: its moment in ms, what was done, and whether it was undone."""

    at: int
    rating: int
    act: str
    until_day: str | None
    undone: bool


def load_recent_history(db: Session, learner_id: int, card: str) -> list[ReviewHistoryRow]:
    """Return the newest hundred reviews and manual edits of a card."""
    values = {"of_learner": learner_id, "of_card": card}
    return [ReviewHistoryRow(*row) for row in db.connection().execute(_history_query(), values)]


@functools.cache
def _history_query() -> Any:
    undoing = LOG.alias()
    undone = select(undoing.c.id).where(undoing.c.voids == LOG.c.id).exists()
    return (
        select(LOG.c.at, LOG.c.rating, LOG.c.act, LOG.c.until_day, undone.label("undone"))
        .where(
            LOG.c.learner_id == bindparam("of_learner"),
            LOG.c.card == bindparam("of_card"),
            LOG.c.voids.is_(None),
            (LOG.c.rating > 0) | (LOG.c.act != ""),
        )
        .order_by(*(column.desc() for column in BY_TIME))
        .limit(100)
    )


_voiding = LOG.alias()
_rated = (
    LOG.c.learner_id == bindparam("learner"),
    LOG.c.rating > 0,
    ~select(_voiding.c.id).where(_voiding.c.voids == LOG.c.id).exists(),
)
_REVIEW_DAYS = (
    select(LOG.c.card, func.count(LOG.c.study_day.distinct())).where(*_rated).group_by(LOG.c.card)
)
_RECALLED = select(func.count(LOG.c.card.distinct())).where(
    *_rated, LOG.c.rating > 1, LOG.c.recall.is_not(None)
)


def count_review_days_by_card(db: Session, learner_id: int, card: str = "") -> dict[str, int]:
    """Return on how many study days each card was rated, or one card. Else reads the whole log."""
    days = _REVIEW_DAYS.where(LOG.c.card == card) if card else _REVIEW_DAYS
    return {row[0]: row[1] for row in db.connection().execute(days, {"learner": learner_id})}


def count_recalled_cards(db: Session, learner_id: int) -> int:
    """Return how many cards were ever recalled after their first steps. Reads the whole log."""
    return db.connection().scalar(_RECALLED, {"learner": learner_id}) or 0
