"""SQL: write imported cards with their pictures, and remove them again."""

import base64
import bisect
import collections
import dataclasses
import datetime as dt
import hashlib
import itertools
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from sqlalchemy import (
    ColumnElement,
    Row,
    String,
    Table,
    and_,
    cast,
    delete,
    func,
    insert,
    literal,
    select,
    update,
)
from sqlmodel import Session

from app.accounts.current_learner import LearnerProfile
from app.accounts.learner_store import select_learner_ids_of_same_person
from app.clock import from_milliseconds, to_milliseconds
from app.database.engine import IMPORTED_REVIEW_PREFIX, insert_if_absent
from app.database.quotas import CARD_LOG, OWN_CARDS, raise_if_row_quota_exceeded
from app.database.tables import OwnPicture
from app.import_export import UnusableFileError
from app.import_export.anki.package_format import find_stored_picture_names
from app.import_export.card_import_job_store import ImportCounts
from app.import_export.export_store import (
    ADDED,
    LOG,
    LOGGED,
    OWN,
    OWN_TEXT,
    PICTURE,
    SUSPENSION,
    OwnCardText,
)
from app.spaced_repetition.added_card_ids_and_faces import QUESTION, is_added_card_id, parse_card_id
from app.spaced_repetition.card_rows import CARD_STATES
from app.spaced_repetition.queue import StudyDayCardCounts, count_new_cards_still_allowed
from app.spaced_repetition.review_log import (
    build_columns_of_replayed_card,
    increment_manual_edit_counter,
    load_added_card_initial_states,
    replace_in_day_totals,
    replay_card,
)

LogRowsByCard = Mapping[str, Sequence[Row[Any]]]
T = TypeVar("T")


class NoteAndTopic(NamedTuple):
    note: str
    topic: str


def _build_condition_on_cards(
    table: Table, learner_id: int, card_ids: Collection[str]
) -> ColumnElement[bool]:
    return (table.c.learner_id == learner_id) & table.c.card.in_(list(card_ids))


def _load_suspended_card_ids(db: Session, learner_id: int, card_ids: Collection[str]) -> set[str]:
    of_cards = _build_condition_on_cards(SUSPENSION, learner_id, card_ids)
    return set(db.connection().scalars(select(SUSPENSION.c.card).where(of_cards)))


def rebuild_card_states(
    db: Session,
    learner_id: int,
    placement_by_card: Mapping[str, NoteAndTopic],
    log_rows_by_card: LogRowsByCard,
) -> None:
    """Rebuild the card state rows of these cards from their logs and starts.

    Cards without a log in `log_rows_by_card` get a row if they have none.
    """
    connection = db.connection()
    of_placed = _build_condition_on_cards(CARD_STATES, learner_id, placement_by_card)
    cards_with_row = set(connection.scalars(select(CARD_STATES.c.card).where(of_placed)))
    rebuilt = [
        card
        for card in sorted(placement_by_card)
        if card in log_rows_by_card or card not in cards_with_row
    ]
    suspended = _load_suspended_card_ids(db, learner_id, rebuilt)
    added = load_added_card_initial_states(db, learner_id, rebuilt)
    rows = []
    for card in rebuilt:
        log, start, placement = (
            log_rows_by_card.get(card, ()),
            added.get(card),
            placement_by_card[card],
        )
        replayed = replay_card(card, log, start)
        values = build_columns_of_replayed_card(
            replayed, len(log), start, suspended=card in suspended
        )
        if values is not None:
            rows.append({"learner_id": learner_id, "card": card, **placement._asdict(), **values})
    connection.execute(
        delete(CARD_STATES).where(_build_condition_on_cards(CARD_STATES, learner_id, rebuilt))
    )
    if rows:
        connection.execute(insert(CARD_STATES), rows)


def load_log_rows_by_card(
    db: Session, learner_id: int, card_ids: Collection[str]
) -> dict[str, list[Row[Any]]]:
    """Return the log rows of each card that has any, oldest first."""
    rows = db.connection().execute(
        select(*LOGGED)
        .where(_build_condition_on_cards(LOG, learner_id, card_ids))
        .order_by(LOG.c.card, LOG.c.at, LOG.c.id)
    )
    return {card: list(log) for card, log in itertools.groupby(rows, lambda row: str(row.card))}


def flatten_logs(log_rows_by_card: LogRowsByCard) -> list[Row[Any]]:
    return [row for log in log_rows_by_card.values() for row in log]


def _batch_by_cost(
    values: Iterable[T], compute_cost: Callable[[T], int], max_cost: int
) -> Iterator[tuple[T, ...]]:
    """Yield values in batches that cost at most `max_cost`, or of a single costlier one."""
    batch: list[T] = []
    batch_cost = 0
    for value in values:
        cost = compute_cost(value)
        if batch and batch_cost + cost > max_cost:
            yield tuple(batch)
            batch, batch_cost = [], 0
        batch.append(value)
        batch_cost += cost
    if batch:
        yield tuple(batch)


# A batch holds the write lock for about 30 ms. A card costs as much as some of its reviews, and a
# review as much as some bytes of a picture.
_MOST_ROWS_OF_BATCH, _ROWS_OF_CARD, _PICTURE_BYTES_AS_COSTLY_AS_ROW = 300, 3, 10_000
_BYTES_OF_STORED_ROW = 150  # bytes of a row with its share of the indexes
_ANKI_BEGAN = 1_136_073_600_000  # 2006; a review cannot be older
_SAME_WITHIN = 1000  # ms within which two reviews of a card count as the same
_LONGEST_LOOK = 10 * 60 * 1000
_ALREADY_LOGGED_REASON = "in your log already"
_FULL_LOG = f"beyond {CARD_LOG.max_rows:,} entries in the log of one card"
_NO_MOMENT = "in the future, or before there was Anki"
_DAY_MS = 24 * 60 * 60 * 1000
_LATEST_START = 10 * 366 * _DAY_MS


@dataclasses.dataclass(frozen=True, slots=True)
class ImportedLogEntry:
    """One entry of a card's log in a file: a review with rating 1 to 4, or an edit with rating 0.

    The edit is "due" with its study day in `until_day`, "bury" or "forget".
    """

    at_ms: int
    rating: int
    duration_ms: int
    edit_kind: str = ""
    until_day: str | None = None

    @property
    def rating_or_edit(self) -> int | str:
        return self.rating or self.edit_kind


@dataclasses.dataclass(frozen=True, slots=True)
class ImportedCard:
    """A card from a file, by our id.

    `origin_key` identifies it in the file permanently. An own card has `own_text`, which shows
    `picture_by_name`. `desired_retention`, `seed` and `due_since_ms` are None if not in the file.
    """

    card_id: str
    note_name: str
    topic_slug: str
    origin_key: str
    log_entries: tuple[ImportedLogEntry, ...] = ()
    own_text: OwnCardText | None = None
    picture_by_name: Mapping[str, bytes] = dataclasses.field(default_factory=dict)
    is_suspended: bool = False
    desired_retention: float | None = None
    seed: int | None = None
    due_since_ms: int | None = None


@dataclasses.dataclass(slots=True)
class _ExistingCards:
    """What a learner already had of some cards; the times are in order.

    The key of an entry is its card, and its rating or edit.
    """

    log_rows_by_card: LogRowsByCard
    sorted_times_ms_by_entry_key: dict[tuple[str, int | str], list[int]]
    begun_card_ids: set[str]
    added_card_ids: set[str]
    own_text_by_card: dict[str, OwnCardText]


def raise_if_too_many_own_cards(
    db: Session, learner_id: int, cards: Iterable[ImportedCard]
) -> None:
    """Raise UnusableFileError if a learner would have too many own cards."""
    query = select(OWN.c.card).where(OWN.c.learner_id == learner_id)
    own_cards = set(db.connection().scalars(query))
    if len(own_cards | {card.card_id for card in cards if card.own_text}) > OWN_CARDS.max_rows:
        raise UnusableFileError(
            f"You would have more than {OWN_CARDS.max_rows:,} cards of your own."
        )


def estimate_stored_bytes(cards: Iterable[ImportedCard]) -> int:
    """Estimate how many bytes some cards take in the database, as if all were new."""
    total = 0
    for card in cards:
        total += sum(map(len, card.picture_by_name.values())) * 4 // 3  # stored as Base64
        total += len((card.own_text.front + card.own_text.back).encode()) if card.own_text else 0
        total += (_ROWS_OF_CARD + len(card.log_entries)) * _BYTES_OF_STORED_ROW
    return total


def batch_cards_by_write_cost(cards: Iterable[ImportedCard]) -> Iterator[tuple[ImportedCard, ...]]:
    """Yield cards in batches, each of which holds the write lock only briefly."""
    return _batch_by_cost(cards, _estimate_write_cost_in_rows, _MOST_ROWS_OF_BATCH)


def _estimate_write_cost_in_rows(card: ImportedCard) -> int:
    pictures = sum(map(len, card.picture_by_name.values()))
    return _ROWS_OF_CARD + len(card.log_entries) + pictures // _PICTURE_BYTES_AS_COSTLY_AS_ROW


def import_cards(
    db: Session,
    learner: LearnerProfile,
    cards: Sequence[ImportedCard],
    now: dt.datetime,
    earlier_staggered_card_count: int = 0,
) -> ImportCounts:
    """Write everything that is new, and rebuild card state rows and day totals.

    Importing the same cards again changes nothing. `earlier_staggered_card_count` counts the cards without a
    review that came before them from the same file.
    """
    at = to_milliseconds(now)
    existing = _load_existing_cards(db, learner.id, [card.card_id for card in cards])
    skipped: collections.Counter[str] = collections.Counter()
    rows = [
        row for card in cards for row in _build_new_log_rows(card, learner, existing, at, skipped)
    ]
    if rows:
        db.connection().execute(insert(LOG), rows)
    if any(row["act"] for row in rows):
        increment_manual_edit_counter(db, learner.id)
    first_reviews = {row["card"]: int(row["at"]) for row in reversed(rows)}
    new_cards = _select_cards_new_to_learner(cards, existing, first_reviews)
    waiting_cards = _save_and_stagger_added_cards(
        db, learner, new_cards, at, first_reviews, earlier_staggered_card_count
    )
    insert_missing_pictures(db, learner.id, cards, at)
    changed_texts = _store_changed_own_texts(db, learner.id, cards, existing, at)
    _suspend_cards_suspended_in_file(db, learner.id, new_cards, at)
    _rebuild_card_states_and_day_totals(db, learner.id, cards, existing, first_reviews)
    new = {card.card_id for card in new_cards}
    changed = ({*first_reviews} | changed_texts) - new
    unchanged_count = len({card.card_id for card in cards} - new - changed)
    reviews = sum(row["rating"] > 0 for row in rows)
    return ImportCounts(len(new), len(changed), unchanged_count, reviews, skipped, waiting_cards)


def _rebuild_card_states_and_day_totals(
    db: Session,
    learner_id: int,
    cards: Sequence[ImportedCard],
    existing: _ExistingCards,
    first_new_review_ms_by_card: Mapping[str, int],
) -> None:
    """Rebuild card state rows and day totals of cards whose logs have grown."""
    after = load_log_rows_by_card(db, learner_id, first_new_review_ms_by_card)
    before = {
        card: existing.log_rows_by_card[card]
        for card in first_new_review_ms_by_card
        if card in existing.log_rows_by_card
    }
    logs_without_memory = {
        c: log for c, log in existing.log_rows_by_card.items() if c not in existing.begun_card_ids
    }
    placements = {c.card_id: NoteAndTopic(c.note_name, c.topic_slug) for c in cards}
    rebuild_card_states(db, learner_id, placements, {**logs_without_memory, **after})
    replace_in_day_totals(db, learner_id, flatten_logs(before), flatten_logs(after))


def _load_existing_cards(db: Session, learner_id: int, card_ids: Sequence[str]) -> _ExistingCards:
    times = collections.defaultdict[tuple[str, int | str], list[int]](list)
    logs = load_log_rows_by_card(db, learner_id, card_ids)
    for row in flatten_logs(logs):
        if row.rating > 0 or row.act:
            times[(row.card, row.rating or row.act)].append(row.at)
    connection = db.connection()

    def load_ids(table: Table) -> set[str]:
        of_cards = _build_condition_on_cards(table, learner_id, card_ids)
        return set(connection.scalars(select(table.c.card).where(of_cards)))

    own_texts = select(OWN.c.card, *OWN_TEXT).where(
        _build_condition_on_cards(OWN, learner_id, card_ids)
    )
    own = {card: OwnCardText(*columns) for card, *columns in connection.execute(own_texts)}
    return _ExistingCards(logs, times, load_ids(CARD_STATES), load_ids(ADDED), own)


def _build_new_log_rows(
    card: ImportedCard,
    learner: LearnerProfile,
    existing: _ExistingCards,
    now_ms: int,
    skipped_count_by_reason: collections.Counter[str],
) -> list[dict[str, Any]]:
    """Return the new log rows of a card; the others are counted in `skipped_count_by_reason`."""
    rows: dict[int, dict[str, Any]] = {}
    today = learner.study_day(from_milliseconds(now_ms))
    free_entries = CARD_LOG.max_rows - len(existing.log_rows_by_card.get(card.card_id, ()))
    for entry in card.log_entries:
        times = existing.sorted_times_ms_by_entry_key.get((card.card_id, entry.rating_or_edit), [])
        is_earlier_burial = entry.edit_kind == "bury" and entry.at_ms < now_ms
        if is_earlier_burial and learner.study_day(from_milliseconds(entry.at_ms)) < today:
            continue  # a burial ends with its study day, in Anki too
        if not _ANKI_BEGAN < entry.at_ms <= now_ms:
            skipped_count_by_reason[_NO_MOMENT] += 1
        elif entry.at_ms in rows or _contains_nearby_time(times, entry.at_ms):
            skipped_count_by_reason[_ALREADY_LOGGED_REASON] += 1
        elif len(rows) >= free_entries:
            skipped_count_by_reason[_FULL_LOG] += 1
        else:
            rows[entry.at_ms] = _build_log_row(card, learner, entry)
    return list(rows.values())


def _contains_nearby_time(sorted_times_ms: list[int], time_ms: int) -> bool:
    index = bisect.bisect_left(sorted_times_ms, time_ms - _SAME_WITHIN)
    return index < len(sorted_times_ms) and sorted_times_ms[index] <= time_ms + _SAME_WITHIN


def _build_log_row(
    card: ImportedCard, learner: LearnerProfile, entry: ImportedLogEntry
) -> dict[str, Any]:
    identity = f"{learner.id}\0{card.origin_key}\0{entry.at_ms}\0{entry.rating_or_edit}"
    day = learner.study_day(from_milliseconds(entry.at_ms))
    tomorrow = (day + dt.timedelta(days=1)).isoformat()
    return {
        "learner_id": learner.id,
        "token": IMPORTED_REVIEW_PREFIX + hashlib.sha256(identity.encode()).hexdigest()[:48],
        "card": card.card_id,
        "rating": entry.rating,
        "retention": card.desired_retention or learner.retention,
        "milliseconds": entry.duration_ms if 0 < entry.duration_ms <= _LONGEST_LOOK else None,
        "study_day": day.isoformat(),
        "at": entry.at_ms,
        "act": entry.edit_kind,
        "until_day": tomorrow if entry.edit_kind == "bury" else entry.until_day,
    }


def _select_cards_new_to_learner(
    cards: Sequence[ImportedCard], existing: _ExistingCards, reviewed_card_ids: Collection[str]
) -> list[ImportedCard]:
    """Return the cards that are new for the learner: reviewed course cards, all added ones."""
    return [
        card
        for card in cards
        if card.card_id not in existing.begun_card_ids | existing.added_card_ids
        and (
            card.card_id in reviewed_card_ids or is_added_card_id(card.card_id) or card.is_suspended
        )
    ]


def _save_and_stagger_added_cards(
    db: Session,
    learner: LearnerProfile,
    cards: Sequence[ImportedCard],
    now_ms: int,
    first_review_ms_by_card: Mapping[str, int],
    earlier_staggered_card_count: int,
) -> int:
    """Save added cards; those without a review start a few on each day.

    Otherwise all cards of a new deck of a thousand would be due today. `earlier_staggered_card_count` counts
    such cards in earlier batches. Returns how many this batch adds.
    """
    cards_per_day = max(
        1, count_new_cards_still_allowed(learner.minutes_a_day, StudyDayCardCounts(0, 0, 0))
    )
    waiting_before = earlier_staggered_card_count
    rows = []
    for card in cards:
        if not is_added_card_id(card.card_id):
            continue
        if card.due_since_ms is not None:
            starts_at = min(card.due_since_ms, now_ms + _LATEST_START)
        elif card.card_id in first_review_ms_by_card:
            starts_at = first_review_ms_by_card[card.card_id]
        else:
            starts_at = now_ms + earlier_staggered_card_count // cards_per_day * _DAY_MS
            earlier_staggered_card_count += 1
        is_question = parse_card_id(card.card_id).source_kind == QUESTION
        seed = 0 if card.seed is None and is_question else card.seed
        row = {"learner_id": learner.id, "card": card.card_id, "seed": seed}
        rows.append({**row, "declined": False, "at": starts_at})
    if rows:
        db.connection().execute(insert(ADDED), rows)
    return earlier_staggered_card_count - waiting_before


def _store_changed_own_texts(
    db: Session,
    learner_id: int,
    cards: Sequence[ImportedCard],
    existing: _ExistingCards,
    now_ms: int,
) -> set[str]:
    """Save the text of own cards as in the file; returns those that changed."""
    new_rows, changed = [], set()
    for card in cards:
        stored = existing.own_text_by_card.get(card.card_id)
        if card.own_text is None or card.own_text == stored:
            continue
        columns = dataclasses.asdict(card.own_text)
        if stored is None:
            new_rows.append(
                {"learner_id": learner_id, "card": card.card_id, "at": now_ms, **columns}
            )
            continue
        changed.add(card.card_id)
        this_card = (OWN.c.learner_id == learner_id) & (OWN.c.card == card.card_id)
        db.connection().execute(update(OWN).where(this_card).values(**columns))
    if new_rows:
        db.connection().execute(insert(OWN), new_rows)
        raise_if_row_quota_exceeded(db, OWN_CARDS, OWN.c.learner_id == learner_id)
    return changed


def _suspend_cards_suspended_in_file(
    db: Session, learner_id: int, cards: Sequence[ImportedCard], now_ms: int
) -> None:
    names = {card.card_id for card in cards if card.is_suspended}
    new_names = sorted(names - _load_suspended_card_ids(db, learner_id, names))
    rows = [{"learner_id": learner_id, "card": name, "at": now_ms} for name in new_names]
    if rows:
        db.connection().execute(insert(SUSPENSION), rows)


# A batch holds the write lock for about 30 ms.
_MOST_REMOVED_ROWS_OF_BATCH, _REMOVAL_ROWS_OF_CARD = 500, 3


@dataclasses.dataclass(frozen=True, slots=True)
class OwnDeck:
    name: str
    card_count: int
    review_count: int


@dataclasses.dataclass(frozen=True, slots=True)
class OwnDecksAndImportedReviews:
    """A learner's own decks, and the number of imported reviews of course cards."""

    own_decks: tuple[OwnDeck, ...]
    imported_course_review_count: int


_is_own = OWN.c.card.like("own:%")  # else it is the learner's text of a course card


def summarize_own_decks_and_imported_reviews(
    db: Session, learner_id: int
) -> OwnDecksAndImportedReviews:
    if not learner_id:
        return OwnDecksAndImportedReviews((), 0)
    of_card = (LOG.c.learner_id == OWN.c.learner_id) & (LOG.c.card == OWN.c.card)
    decks = db.connection().execute(
        select(OWN.c.deck, func.count(OWN.c.card.distinct()), func.count(LOG.c.id))
        .select_from(OWN.outerjoin(LOG, of_card & (LOG.c.rating > 0)))
        .where(OWN.c.learner_id == learner_id, _is_own)
        .group_by(OWN.c.deck)
        .order_by(OWN.c.deck)
    )
    reviews = db.scalar(select(func.count()).where(*_imported_course_review_conditions(learner_id)))
    return OwnDecksAndImportedReviews(tuple(OwnDeck(*row) for row in decks), reviews or 0)


def list_undeclined_card_ids_with_state(db: Session, learner_id: int) -> list[str]:
    if not learner_id:
        return []
    declined = select(ADDED.c.card).where(
        ADDED.c.learner_id == learner_id, ADDED.c.declined.is_(True)
    )
    rows = db.connection().execute(
        select(CARD_STATES.c.card).where(
            CARD_STATES.c.learner_id == learner_id, CARD_STATES.c.card.not_in(declined)
        )
    )
    return list(rows.scalars())


def batch_cards_of_own_deck(db: Session, learner_id: int, deck: str) -> list[tuple[str, ...]]:
    of_card = (LOG.c.learner_id == OWN.c.learner_id) & (LOG.c.card == OWN.c.card)
    cards = db.connection().execute(
        select(OWN.c.card, func.count(LOG.c.id))
        .select_from(OWN.outerjoin(LOG, of_card))
        .where(OWN.c.learner_id == learner_id, OWN.c.deck == deck, _is_own)
        .group_by(OWN.c.card)
    )
    return _batch_by_removal_cost(cards)


def batch_course_cards_with_imported_reviews(db: Session, learner_id: int) -> list[tuple[str, ...]]:
    query = select(LOG.c.card, func.count()).where(*_imported_course_review_conditions(learner_id))
    return _batch_by_removal_cost(db.connection().execute(query.group_by(LOG.c.card)))


def _batch_by_removal_cost(cards: Iterable[Row[str, int]]) -> list[tuple[str, ...]]:
    """Return the cards, given with their numbers of reviews, in batches."""
    costs = {card: _REMOVAL_ROWS_OF_CARD + reviews for card, reviews in cards}
    return list(_batch_by_cost(costs, costs.__getitem__, _MOST_REMOVED_ROWS_OF_BATCH))


def delete_own_cards(db: Session, learner_id: int, card_ids: Sequence[str]) -> None:
    before = load_log_rows_by_card(db, learner_id, card_ids)
    for table in (LOG, CARD_STATES, SUSPENSION, ADDED, OWN):
        db.connection().execute(
            delete(table).where(_build_condition_on_cards(table, learner_id, card_ids))
        )
    replace_in_day_totals(db, learner_id, flatten_logs(before), ())


def delete_imported_reviews_of_course_cards(
    db: Session,
    learner_id: int,
    card_ids: Sequence[str],
    find_placement: Callable[[str], NoteAndTopic],
) -> None:
    """Delete the imported reviews of course cards.

    A card that was also reviewed here keeps the rows without a rating: open forms count the rows of
    a card, and no number may be used twice.
    """
    connection = db.connection()
    before = load_log_rows_by_card(db, learner_id, card_ids)
    graded_here = select(LOG.c.card).where(
        _build_condition_on_cards(LOG, learner_id, card_ids),
        LOG.c.token.not_like(f"{IMPORTED_REVIEW_PREFIX}%"),
    )
    reviewed_here = list(connection.scalars(graded_here.distinct()))
    imported_rows = and_(*_imported_course_review_conditions(learner_id), LOG.c.card.in_(card_ids))
    is_reviewed_here = LOG.c.card.in_(reviewed_here)
    unique_token = literal("gone:") + cast(LOG.c.id, String)
    blank_row = {"rating": 0, "act": "", "token": unique_token}
    connection.execute(update(LOG).where(imported_rows, is_reviewed_here).values(blank_row))
    connection.execute(delete(LOG).where(imported_rows, ~is_reviewed_here))
    after = {**{card: [] for card in card_ids}, **load_log_rows_by_card(db, learner_id, card_ids)}
    rebuild_card_states(db, learner_id, {c: find_placement(c) for c in card_ids}, after)
    replace_in_day_totals(db, learner_id, flatten_logs(before), flatten_logs(after))


def _imported_course_review_conditions(learner_id: int) -> tuple[ColumnElement[bool], ...]:
    return (
        LOG.c.learner_id == learner_id,
        LOG.c.token.like(f"{IMPORTED_REVIEW_PREFIX}%"),
        LOG.c.card.not_like("own:%"),
    )


MAX_PICTURE_BYTES = 100_000_000
"""Limit for all pictures of one learner in all courses, in bytes."""
MAX_PICTURES = 20_000
TOO_MANY_PICTURES_REASON = (
    f"your pictures would take more than {MAX_PICTURE_BYTES // 1_000_000} MB, or "
    f"more than {MAX_PICTURES:,}"
)


SizeByPicture = Mapping[tuple[int, str], int]
"""Sizes of pictures in bytes, by the learner and the name."""


def load_picture_sizes_in_all_courses(db: Session, learner_id: int) -> SizeByPicture:
    """Return the size of every picture of a person, in all courses.

    The database reads all of them, so call this before a write transaction.
    """
    return _select_picture_sizes(db, _same_person_picture_condition(learner_id))


def _same_person_picture_condition(any_learner_id: int) -> ColumnElement[bool]:
    return PICTURE.c.learner_id.in_(select_learner_ids_of_same_person(any_learner_id))


def _select_picture_sizes(db: Session, condition: ColumnElement[bool]) -> SizeByPicture:
    columns = PICTURE.c.learner_id, PICTURE.c.name, func.length(PICTURE.c.content)
    rows = db.connection().execute(select(*columns).where(condition))
    return {(owner, name): count * 3 // 4 for owner, name, count in rows}


def drop_cards_beyond_picture_quota(
    db: Session,
    learner_id: int,
    cards: Sequence[ImportedCard],
    size_by_earlier_picture: SizeByPicture,
) -> tuple[ImportedCard, ...]:
    """Return the cards without those whose new pictures exceed the limit.

    They are reported as `TOO_MANY_PICTURES_REASON`. Of the pictures in `size_by_earlier_picture`, measured before this
    transaction, only the names are read again.
    """
    if not any(card.picture_by_name for card in cards):
        return tuple(cards)
    sizes = _refresh_picture_sizes(db, learner_id, size_by_earlier_picture)
    stored_names = {name for owner, name in sizes if owner == learner_id}
    free_bytes = MAX_PICTURE_BYTES - sum(sizes.values())
    free_pictures = MAX_PICTURES - len(sizes)
    fitting_cards = []
    for card in cards:
        new_sizes = {n: len(c) for n, c in card.picture_by_name.items() if n not in stored_names}
        if new_sizes and (sum(new_sizes.values()) > free_bytes or len(new_sizes) > free_pictures):
            continue
        free_bytes -= sum(new_sizes.values())
        free_pictures -= len(new_sizes)
        stored_names |= new_sizes.keys()
        fitting_cards.append(card)
    return tuple(fitting_cards)


def _refresh_picture_sizes(
    db: Session, learner_id: int, size_by_earlier_picture: SizeByPicture
) -> SizeByPicture:
    """Return the current sizes; reads only the pictures not yet measured."""
    names = select(PICTURE.c.learner_id, PICTURE.c.name).where(
        _same_person_picture_condition(learner_id)
    )
    present = {(owner, name) for owner, name in db.connection().execute(names)}
    sizes = {
        picture: size_by_earlier_picture[picture]
        for picture in present & size_by_earlier_picture.keys()
    }
    for owner, name in present - size_by_earlier_picture.keys():
        is_it = (PICTURE.c.learner_id == owner) & (PICTURE.c.name == name)
        sizes |= _select_picture_sizes(db, is_it)
    return sizes


def insert_missing_pictures(
    db: Session, learner_id: int, cards: Iterable[ImportedCard], now_ms: int
) -> None:
    """Save the pictures of some cards, each once."""
    pictures = {name: content for card in cards for name, content in card.picture_by_name.items()}
    for name, content in pictures.items():
        encoded = base64.b64encode(content).decode()
        row = {"learner_id": learner_id, "name": name, "content": encoded, "at": now_ms}
        insert_if_absent(db, OwnPicture, row)


def delete_unused_pictures(db: Session, learner_id: int) -> None:
    """Delete the pictures that no card of the learner shows any more."""
    connection, mine = db.connection(), PICTURE.c.learner_id == learner_id
    stored = set(connection.scalars(select(PICTURE.c.name).where(mine)))
    if not stored:
        return
    card_sides = select(OWN.c.front, OWN.c.back).where(
        OWN.c.learner_id == learner_id, OWN.c.front.contains("<img") | OWN.c.back.contains("<img")
    )
    used_names: set[str] = set()
    for front, back in connection.execute(card_sides):
        used_names.update(find_stored_picture_names(front), find_stored_picture_names(back))
    for name in sorted(stored - used_names):
        connection.execute(delete(PICTURE).where(mine, PICTURE.c.name == name))
