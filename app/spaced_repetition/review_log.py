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
from app.database.engine import IMPORTED_REVIEW_PREFIX, insert_if_absent
from app.database.quotas import CARD_LOG
from app.database.tables import TABLES, Review, Suspension
from app.markup.model import Flashcard
from app.spaced_repetition.added_card_ids_and_faces import QUESTION, is_added_card_id, parse_card_id
from app.spaced_repetition.added_cards import (
    ADDED,
    compute_first_due_day,
    set_card_declined_if_added,
)
from app.spaced_repetition.card_rows import (
    CARD_STATE_COLUMNS,
    CARD_STATES,
    OWN_CARD_ROW,
    SUSPENSIONS,
    build_card_query_parameters,
    build_columns_of_new_card,
    build_state_columns,
    card_state_from_row,
    delete_card_state_row,
    delete_suspension,
    save_card_state_row,
    update_card_state_row,
)
from app.spaced_repetition.scheduler import (
    CardState,
    ManualEdit,
    ReplayedCard,
    ReviewEvent,
    apply_review,
    compute_retrievability_on_day,
    replay_log,
)

LEARNER = TABLES["learner"]
_SELECT_ADDED_CARDS = (
    select(ADDED.c.card, ADDED.c.at, ADDED.c.declined, LEARNER.c.zone)
    .join_from(ADDED, LEARNER, LEARNER.c.id == ADDED.c.learner_id)
    .where(ADDED.c.learner_id == bindparam("of_learner"))
)


@dataclasses.dataclass(frozen=True, slots=True)
class AddedCardInitialState:
    """How an added card starts.

    `added_or_missed_at` is the first miss or addition after the card's last review. `may_be_missed_again` says that
    this can happen more than once, as a question can be missed again.
    """

    first_due_day: dt.date
    added_or_missed_at: dt.datetime
    is_declined: bool
    may_be_missed_again: bool


def load_added_card_initial_states(
    db: Session, learner_id: int, cards: Collection[str] | None = None
) -> dict[str, AddedCardInitialState]:
    """Return the starts of all cards that a learner ever added, or of some of them."""
    wanted = (
        _SELECT_ADDED_CARDS if cards is None else _SELECT_ADDED_CARDS.where(ADDED.c.card.in_(cards))
    )
    rows = db.connection().execute(wanted, {"of_learner": learner_id})
    return {row.card: _initial_state_from_row(row) for row in rows}


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
        rated_at=from_milliseconds(row.at),
        day=dt.date.fromisoformat(row.study_day),
        desired_retention=row.retention,
    )


def manual_edit_from_row(row: Any) -> ManualEdit:
    until = dt.date.fromisoformat(row.until_day) if row.until_day else None
    return ManualEdit(row.act, until)


def replay_card(
    card: str, log: Iterable[Any], start: AddedCardInitialState | None = None
) -> ReplayedCard:
    """Replay the log rows of a card, oldest first, and return its state.

    A question that was missed again after its last row is due sooner.
    """
    rows = drop_undone_rows(log)
    now = replay_log(
        (review_from_row(r) if r.rating else manual_edit_from_row(r) for r in rows), card
    )
    if start is None or not start.may_be_missed_again or not rows:
        return now
    if start.added_or_missed_at <= from_milliseconds(rows[-1].at):
        return now
    if now.card_state is None:
        return ReplayedCard()
    due = min(now.card_state.due_day, start.first_due_day)
    return ReplayedCard(dataclasses.replace(now.card_state, due_day=due))


def build_columns_of_replayed_card(
    replayed: ReplayedCard,
    log_row_count: int,
    start: AddedCardInitialState | None,
    *,
    suspended: bool,
) -> dict[str, Any] | None:
    """Return the columns of a rebuilt card state row, or None if there is nothing to store.

    `suspended` says that the card was suspended; a declined card is treated as suspended.
    """
    suspended = suspended or (start is not None and start.is_declined)
    held: dict[str, Any] = {"turns": log_row_count, "suspended": suspended}
    if replayed.manual_due_day is not None:
        held["set_day"] = replayed.manual_due_day.isoformat()
    if replayed.card_state is not None:
        return {**build_state_columns(replayed.card_state), **held}
    due = replayed.manual_due_day or (start.first_due_day if start else None)
    if due is None and not suspended:
        return None
    return {**build_columns_of_new_card(due), **held}


def _initial_state_from_row(row: Any) -> AddedCardInitialState:
    since = from_milliseconds(row.at)
    day = study_day_at(since, row.zone)
    missed = parse_card_id(row.card).source_kind == QUESTION
    return AddedCardInitialState(compute_first_due_day(row.card, day), since, row.declined, missed)


DAYS = TABLES["study_day"]
ANSWERS = TABLES["attempt"]
LOG = TABLES["review"]
# Reviews are replayed by time, because an import may add older ones.
BY_TIME = (LOG.c.at, LOG.c.id)
_undo = LOG.alias()
_is_undone = select(_undo.c.id).where(_undo.c.voids == LOG.c.id).exists()


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
    def count_of_answers_and_reviews(self) -> int:
        return self.answers + self.reviews

    @property
    def minutes(self) -> float:
        return self.milliseconds / 60_000

    def columns(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__slots__}


def compute_totals_of_review(
    rating: int,
    recall: float | None,
    milliseconds: int | None,
    *,
    was_reviewed_earlier_that_day: bool,
) -> DayTotals:
    """Return what a review adds to its day.

    `recall` is the retrievability before it, None for a card in its steps. After an earlier review
    that day, it proves no memory.
    """
    took = milliseconds or 0
    if recall is None or was_reviewed_earlier_that_day:
        return DayTotals(reviews=1, milliseconds=took)
    return DayTotals(
        reviews=1, asked=1, recalled=int(rating > 1), expected=recall, milliseconds=took
    )


def add_to_day_totals(db: Session, learner_id: int, day: str, totals: DayTotals) -> None:
    """Add to the totals of a study day (ISO date); inserts the row if it is the first."""
    values = {"learner_id": learner_id, "day": day, **totals.columns()}
    db.connection().execute(_build_day_totals_upsert(db.connection().dialect.name), values)


def replace_in_day_totals(
    db: Session, learner_id: int, old_logs: Iterable[Row[Any]], new_logs: Iterable[Row[Any]]
) -> None:
    """Replace what the old logs of some cards added to the totals by what the new logs add.

    Both are complete logs of the same cards, each oldest first.
    """
    days = collections.defaultdict[str, DayTotals](DayTotals)
    for old in yield_day_contributions(list(old_logs)):
        days[old.day] += -old.totals
    for new in yield_day_contributions(list(new_logs)):
        days[new.day] += new.totals
    for day, totals in sorted(days.items()):
        if totals != DayTotals():
            add_to_day_totals(db, learner_id, day, totals)


def delete_empty_day_totals(db: Session, learner_id: int) -> None:
    """Delete the days that have no rows left in either log."""
    connection = db.connection()
    held: set[str] = set()
    for log in (ANSWERS, LOG):
        mine = log.c.learner_id == learner_id
        held |= set(connection.scalars(select(log.c.study_day).where(mine).distinct()))
    mine = DAYS.c.learner_id == learner_id
    days = set(connection.scalars(select(DAYS.c.day).where(mine)))
    for day in sorted(days - held):
        connection.execute(delete(DAYS).where(mine, DAYS.c.day == day))


class DayContribution(NamedTuple):
    """What one review adds to the totals of its study day (ISO date)."""

    day: str
    totals: DayTotals


def yield_day_contributions(log: Sequence[Row[Any]]) -> Iterable[DayContribution]:
    """Yield what each review of a log, oldest first, adds; an undone one adds nothing."""
    undone = {row.voids for row in log if row.voids}
    last: dict[str, str] = {}
    for row in log:
        if not row.rating:
            continue
        if row.id in undone:
            yield DayContribution(row.study_day, DayTotals())
            continue
        again = last.get(row.card) == row.study_day
        last[row.card] = row.study_day
        totals = compute_totals_of_review(
            row.rating, row.recall, row.milliseconds, was_reviewed_earlier_that_day=again
        )
        yield DayContribution(row.study_day, totals)


@functools.cache
def _build_day_totals_upsert(dialect: str) -> Any:
    make = sqlite.insert if dialect == "sqlite" else postgresql.insert
    statement = make(DAYS)
    new = statement.excluded
    sums = {name: DAYS.c[name] + new[name] for name in DayTotals.__slots__}
    return statement.on_conflict_do_update(
        index_elements=[DAYS.c.learner_id, DAYS.c.day], set_=sums
    )


def compute_retrievability_if_past_steps(before: CardState | None, day: dt.date) -> float | None:
    """Return the probability of recall before a review; None while the card is in its steps."""
    if before is None or before.state != "review":
        return None
    return compute_retrievability_on_day(before, day)


def _was_last_reviewed_on(before: CardState | None, day: dt.date) -> bool:
    return before is not None and before.last_day == day


@dataclasses.dataclass(frozen=True, slots=True)
class CardRecord:
    """A card of a learner; `card_state` is None before the first review.

    A card has a card state row from its first review on, or once it is suspended or added.
    """

    card_id: str
    card_state: CardState | None = None
    log_row_count: int = 0
    has_card_state_row: bool = False
    is_suspended: bool = False


@dataclasses.dataclass(frozen=True, slots=True)
class RecordedReview:
    log_id: int
    card_state: CardState
    is_lapse: bool


_COUNT_LOG_ENTRIES = select(func.count()).where(
    LOG.c.learner_id == bindparam("of_learner"), LOG.c.card == bindparam("of_card")
)
# One query for both. The log is counted only if there is no card state row.
_one = select(literal(1).label("one")).subquery()
_FIND_CARD_STATE = select(
    *CARD_STATE_COLUMNS,
    func.coalesce(CARD_STATES.c.turns, _COUNT_LOG_ENTRIES.scalar_subquery()).label("turns"),
    CARD_STATES.c.suspended,
).select_from(_one.outerjoin(CARD_STATES, and_(*OWN_CARD_ROW)))


def load_card_record(db: Session, learner_id: int, card: str) -> CardRecord:
    if not learner_id:
        return CardRecord(card)
    row = (
        db.connection()
        .execute(_FIND_CARD_STATE, build_card_query_parameters(learner_id, card))
        .one()
    )
    if row.state is None:
        return CardRecord(card, log_row_count=row.turns)
    return CardRecord(card, card_state_from_row(row), row.turns, True, row.suspended)


_FIND_RATING_BY_TOKEN = select(LOG.c.rating).where(LOG.c.token == bindparam("of_token"))


def find_recorded_rating(db: Session, learner_id: int, card: str, showing_token: str) -> int:
    """Return the rating already saved for this showing of a card, 0 if there is none."""
    kept = hash_submission_token(learner_id, card, showing_token)
    return db.connection().execute(_FIND_RATING_BY_TOKEN, {"of_token": kept}).scalar() or 0


def _insert_log_row(
    db: Session,
    learner_id: int,
    card: str,
    moment: dt.datetime,
    day: dt.date,
    **columns: Any,
) -> int | None:
    """Insert a row into the review log; returns its id, None if its token is there already."""
    row = {"learner_id": learner_id, "card": card, "study_day": day.isoformat()}
    return insert_if_absent(db, Review, {**row, "at": to_milliseconds(moment), **columns})


def record_review(
    db: Session,
    learner_id: int,
    card: Flashcard,
    review: ReviewEvent,
    showing_token: str,
    milliseconds: int | None = None,
) -> RecordedReview | None:
    """Save a review and the time it took; returns None if its showing was rated before.

    Raises ConflictError if the card's log is full.
    """
    held = load_card_record(db, learner_id, card.id)
    recall = compute_retrievability_if_past_steps(held.card_state, review.day)
    log_id = _insert_log_row(
        db,
        learner_id,
        card.id,
        review.rated_at,
        review.day,
        token=hash_submission_token(learner_id, card.id, showing_token),
        rating=review.rating,
        retention=review.desired_retention,
        recall=recall,
        milliseconds=milliseconds,
    )
    if log_id is None:
        return None
    CARD_LOG.raise_if_exceeded(held.log_row_count + 1)
    card_state = apply_review(held.card_state, review, card.id)
    if held.card_state is not None and review.rated_at < held.card_state.last_at:
        # The clock was set back, so the review is replayed at its place in time.
        card_state = rebuild_card_state_row(db, learner_id, card) or card_state
    values = {**build_state_columns(card_state), "turns": held.log_row_count + 1}
    save_card_state_row(db, learner_id, card, values, has_row=held.has_card_state_row)
    again = _was_last_reviewed_on(held.card_state, review.day)
    totals = compute_totals_of_review(
        review.rating, recall, milliseconds, was_reviewed_earlier_that_day=again
    )
    add_to_day_totals(db, learner_id, review.day.isoformat(), totals)
    lapsed = card_state.lapses > (held.card_state.lapses if held.card_state else 0)
    return RecordedReview(log_id, card_state, is_lapse=lapsed)


_SELECT_NEWEST_REVIEWS = (
    select(
        *(LOG.c.id, LOG.c.card, LOG.c.study_day),
        *(LOG.c.rating, LOG.c.recall, LOG.c.milliseconds),
    )
    .where(LOG.c.learner_id == bindparam("of_learner"), LOG.c.voids.is_(None))
    .where((LOG.c.rating > 0) | (LOG.c.act != ""))
    .where(LOG.c.token.not_like(f"{IMPORTED_REVIEW_PREFIX}%"))
    .where(~_is_undone)
    .order_by(LOG.c.id.desc())
    .limit(1)
)


class UndoableRow(NamedTuple):
    """A review, or a manual edit, whose rating is 0."""

    id: int
    card_id: str
    study_day: str
    rating: int
    recall: float | None
    milliseconds: int | None


def find_last_row_if_undoable(
    db: Session, learner_id: int, day: dt.date | None = None
) -> UndoableRow | None:
    """Return the last review or manual edit that was not undone; None if it is of another `day`.

    Imported rows are left out.
    """
    row = db.connection().execute(_SELECT_NEWEST_REVIEWS, {"of_learner": learner_id}).first()
    if row is None or (day is not None and row.study_day != day.isoformat()):
        return None
    return UndoableRow(*row)


def undo_log_row_if_last(
    db: Session,
    learner_id: int,
    log_id: int,
    now: dt.datetime,
    day: dt.date,
    cards: Mapping[str, Flashcard] = MappingProxyType({}),
) -> str | None:
    """Undo the last review or manual edit, if it still is `log_id`; returns its card.

    It stays in the log, and a new row that voids it points to it. Undoing it a second time changes
    nothing. `cards` are the course cards whose card state row may have to be restored.
    """
    last = find_last_row_if_undoable(db, learner_id)
    if last is None or last.id != log_id:
        return None
    card = last.card_id
    graded = last.rating > 0
    done = _insert_log_row(
        db,
        learner_id,
        card,
        now,
        day,
        token=hash_submission_token(learner_id, "undo", str(log_id)),
        rating=0,
        voids=log_id,
        act="" if graded else "undo",
    )
    card_state = rebuild_card_state_row(db, learner_id, cards.get(card, card))
    if done is not None and graded:
        again = _was_last_reviewed_on(card_state, dt.date.fromisoformat(last.study_day))
        totals = compute_totals_of_review(
            last.rating, last.recall, last.milliseconds, was_reviewed_earlier_that_day=again
        )
        add_to_day_totals(db, learner_id, last.study_day, -totals)
    elif done is not None:
        increment_manual_edit_counter(db, learner_id)
    return card


_INCREMENT_ACTS = (
    update(LEARNER).where(LEARNER.c.id == bindparam("of_learner")).values(acts=LEARNER.c.acts + 1)
)


def increment_manual_edit_counter(db: Session, learner_id: int) -> None:
    """Count a manual edit, so that the plan of the day is computed again."""
    db.connection().execute(_INCREMENT_ACTS, {"of_learner": learner_id})


def set_suspended(
    db: Session, learner_id: int, card: Flashcard, now: dt.datetime, *, suspended: bool
) -> None:
    """Suspend a card, or unsuspend it in the state it had."""
    if is_added_card_id(card.id) and not suspended:
        set_card_declined_if_added(db, learner_id, card.id, declined=False)
        return
    held = load_card_record(db, learner_id, card.id)
    delete_suspension(db, learner_id, card.id)
    if suspended:
        row = {"learner_id": learner_id, "card": card.id, "at": to_milliseconds(now)}
        insert_if_absent(db, Suspension, row)
    if held.has_card_state_row and (held.card_state is not None or suspended):
        update_card_state_row(db, learner_id, card.id, {"suspended": suspended})
    elif held.has_card_state_row:
        rebuild_card_state_row(db, learner_id, card, suspended=False)
    elif suspended:
        values = {**build_columns_of_new_card(None), "turns": held.log_row_count, "suspended": True}
        save_card_state_row(db, learner_id, card, values, has_row=False)


def list_suspended_cards(db: Session, learner_id: int) -> tuple[str, ...]:
    mine = SUSPENSIONS.c.learner_id == learner_id
    cards = select(SUSPENSIONS.c.card).where(mine).order_by(SUSPENSIONS.c.id.desc())
    return tuple(db.connection().execute(cards).scalars())


def hash_submission_token(learner_id: int, *parts: str) -> str:
    """Return the token of a form as it is stored, distinct for each learner and what they did.

    Pages cached for all visitors contain the same tokens, and a changed answer from the same form
    is another answer.
    """
    words = "\0".join((str(learner_id), *parts))
    return hashlib.sha256(words.encode()).hexdigest()


LOGGED = (
    *(LOG.c.id, LOG.c.card, LOG.c.rating, LOG.c.voids, LOG.c.at),
    *(LOG.c.study_day, LOG.c.retention, LOG.c.act, LOG.c.until_day),
)
_LOG_ALL = (
    select(*LOGGED)
    .where(LOG.c.learner_id == bindparam("of_learner"), LOG.c.card == bindparam("of_card"))
    .order_by(*BY_TIME)
)


def rebuild_card_state_row(
    db: Session, learner_id: int, card: Flashcard | str, *, suspended: bool | None = None
) -> CardState | None:
    """Rebuild the card state row of one card after its log has changed.

    `suspended` says whether the card is suspended, if that has changed too.
    """
    name = card if isinstance(card, str) else card.id
    rows = db.connection().execute(_LOG_ALL, build_card_query_parameters(learner_id, name)).all()
    begin = (
        load_added_card_initial_states(db, learner_id, [name]).get(name)
        if is_added_card_id(name)
        else None
    )
    now = replay_card(name, rows, begin)
    held = load_card_record(db, learner_id, name)
    away = held.is_suspended if suspended is None else suspended
    values = build_columns_of_replayed_card(now, len(rows), begin, suspended=away)
    if values is None:
        delete_card_state_row(db, learner_id, name)
    else:
        save_card_state_row(db, learner_id, card, values, has_row=held.has_card_state_row)
    return now.card_state


def record_manual_edit(
    db: Session,
    learner_id: int,
    card: Flashcard,
    edit: ManualEdit,
    now: dt.datetime,
    day: dt.date,
    showing_token: str,
) -> int | None:
    """Save a manual edit; returns its log id, None if it was saved before.

    Raises ConflictError if the card's log is full.
    """
    log_id = _insert_log_row(
        db,
        learner_id,
        card.id,
        now,
        day,
        token=hash_submission_token(learner_id, card.id, edit.kind, showing_token),
        rating=0,
        act=edit.kind,
        until_day=edit.until_day.isoformat() if edit.until_day else None,
    )
    if log_id is not None:
        CARD_LOG.raise_if_exceeded(load_card_record(db, learner_id, card.id).log_row_count + 1)
        rebuild_card_state_row(db, learner_id, card)
        increment_manual_edit_counter(db, learner_id)
    return log_id


class ReviewHistoryRow(NamedTuple):
    """A review or manual edit: its moment in ms, what was done, and whether it was undone."""

    at_ms: int
    rating: int
    manual_edit_kind: str
    until_day: str | None
    was_undone: bool


_SELECT_CARD_HISTORY = (
    select(LOG.c.at, LOG.c.rating, LOG.c.act, LOG.c.until_day, _is_undone.label("undone"))
    .where(
        LOG.c.learner_id == bindparam("of_learner"),
        LOG.c.card == bindparam("of_card"),
        LOG.c.voids.is_(None),
        (LOG.c.rating > 0) | (LOG.c.act != ""),
    )
    .order_by(*(column.desc() for column in BY_TIME))
    .limit(100)
)


def load_newest_log_rows(db: Session, learner_id: int, card: str) -> list[ReviewHistoryRow]:
    """Return the newest hundred reviews and manual edits of a card."""
    rows = db.connection().execute(
        _SELECT_CARD_HISTORY, build_card_query_parameters(learner_id, card)
    )
    return [ReviewHistoryRow(*row) for row in rows]


_rated = (LOG.c.learner_id == bindparam("learner"), LOG.c.rating > 0, ~_is_undone)
_REVIEW_DAYS = (
    select(LOG.c.card, func.count(LOG.c.study_day.distinct())).where(*_rated).group_by(LOG.c.card)
)
_COUNT_STARTED_CARDS = select(func.count(LOG.c.card.distinct())).where(*_rated)
_card_and_day = LOG.c.card, LOG.c.study_day
_RATED = (
    select(
        *_card_and_day,
        LOG.c.rating,
        func.row_number().over(partition_by=_card_and_day, order_by=LOG.c.id).label("nth_of_day"),
        func.min(LOG.c.study_day).over(partition_by=LOG.c.card).label("first_day"),
    )
    .where(*_rated)
    .subquery()
)
_COUNT_RECALLED_CARDS = select(func.count(_RATED.c.card.distinct())).where(
    _RATED.c.rating > 1, _RATED.c.nth_of_day == 1, _RATED.c.study_day > _RATED.c.first_day
)


def count_review_days_by_card(db: Session, learner_id: int, card: str = "") -> dict[str, int]:
    """Return on how many study days each card was rated, or one card. Else reads the whole log."""
    days = _REVIEW_DAYS.where(LOG.c.card == card) if card else _REVIEW_DAYS
    return {row[0]: row[1] for row in db.connection().execute(days, {"learner": learner_id})}


def count_started_cards(db: Session, learner_id: int) -> int:
    """Return how many cards were ever rated. Reads the whole log."""
    return db.connection().scalar(_COUNT_STARTED_CARDS, {"learner": learner_id}) or 0


def count_recalled_cards(db: Session, learner_id: int) -> int:
    """Return how many cards were ever recalled at first sight on a day after their first one.

    Reads the whole log.
    """
    return db.connection().scalar(_COUNT_RECALLED_CARDS, {"learner": learner_id}) or 0
