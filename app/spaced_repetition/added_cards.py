"""SQL for cards added to the course's decks: missed questions, terms, own cards.

An added card has its own row and a card state row in state new, so the queue finds it like any other
card. A declined card keeps both rows and is no longer shown.
"""

import base64
import dataclasses
import datetime as dt
import functools
import json
import re
from collections.abc import Collection, Iterator, Sequence
from html import unescape
from typing import Any

from sqlalchemy import String, and_, bindparam, case, delete, func, select, update
from sqlalchemy.dialects import postgresql, sqlite
from sqlmodel import Session, col

from app.clock import from_milliseconds, to_milliseconds
from app.database.engine import insert_if_absent
from app.database.quotas import OWN_CARDS, raise_if_row_quota_exceeded
from app.database.tables import TABLES, OwnCard, OwnPicture
from app.questions.question_type import CardFacesHtml, normalize_search_text
from app.spaced_repetition.added_card_ids_and_faces import (
    LONGEST_FACE,
    QUESTION,
    build_question_card_id,
    parse_card_id,
)
from app.spaced_repetition.card_rows import (
    CARD_STATES,
    build_card_query_parameters,
    build_columns_of_new_card,
    delete_suspension,
    update_card_state_row,
)

ADDED = TABLES["added_card"]


@dataclasses.dataclass(frozen=True, slots=True)
class CardToAdd:
    """A card to be added; `question_seed` chose the numbers of the question that was missed."""

    card_id: str
    topic: str = ""
    question_seed: int | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class AddedCardRecord:
    """An added card as it is stored.

    `added_or_missed_at` is the first miss or addition after the card's last review. `due_day` is
    the current one, None if it has no card state row. `state` and `lapses` come from its card state row.
    """

    card_id: str
    question_seed: int | None
    is_declined: bool
    added_or_missed_at: dt.datetime
    due_day: dt.date | None
    is_suspended_or_declined: bool
    state: str
    lapses: int


def compute_first_due_day(card: str, added_on: dt.date) -> dt.date:
    """Return the study day on which a card added on `added_on` is first due.

    A missed question was just explained to the learner, so it is due the next day.
    """
    return added_on + dt.timedelta(days=parse_card_id(card).source_kind == QUESTION)


def add_cards(
    db: Session,
    learner_id: int,
    cards_to_add: Collection[CardToAdd],
    day: dt.date,
    now: dt.datetime,
) -> frozenset[str]:
    """Add cards, and return those that did not exist before, declined ones included.

    Runs two statements, however many cards there are.
    """
    if not cards_to_add:
        return frozenset()
    insert_added_card, insert_card_state = _insert_statements(db.connection().dialect.name)
    rows = [
        {"learner_id": learner_id, "card": w.card_id, "seed": w.question_seed, "declined": False}
        | {"at": to_milliseconds(now)}
        for w in cards_to_add
    ]
    added = frozenset(db.connection().execute(insert_added_card, rows).scalars())
    fresh = [
        {
            "learner_id": learner_id,
            "card": w.card_id,
            "note": w.card_id,
            "topic": w.topic,
            **build_columns_of_new_card(compute_first_due_day(w.card_id, day)),
        }
        for w in cards_to_add
        if w.card_id in added
    ]
    if fresh:
        db.connection().execute(insert_card_state, fresh)
    return added


def schedule_missed_questions_for_tomorrow(
    db: Session, learner_id: int, missed: Collection[CardToAdd], day: dt.date, now: dt.datetime
) -> None:
    """Make missed questions due tomorrow, unless they were declined.

    The due day of a card that was never reviewed only says from when it is one of the new cards,
    of which the lists take a few a day. A question that is already studied and was missed again is
    really due tomorrow, with the seed of the latest miss.
    """
    added = add_cards(db, learner_id, missed, day, now)
    again = [w for w in missed if w.card_id not in added]
    if not again:
        return
    rows = [
        {"of_learner": learner_id, "of_card": w.card_id, "numbers": w.question_seed}
        | {"now": to_milliseconds(now)}
        for w in again
    ]
    db.connection().execute(_MISSED_AGAIN, rows)
    values = {
        "of_learner": learner_id,
        "cards": [w.card_id for w in again],
        "tomorrow": compute_first_due_day(again[0].card_id, day).isoformat(),
    }
    db.connection().execute(_SCHEDULE_SOONER, values)


def set_card_declined_if_added(db: Session, learner_id: int, card: str, *, declined: bool) -> bool:
    """Decline an added card, or take it back; returns False if it was never added."""
    values = {**build_card_query_parameters(learner_id, card), "declined": declined}
    if not db.connection().execute(_UPDATE_ADDED_CARD, values).rowcount:
        return False
    delete_suspension(db, learner_id, card)
    update_card_state_row(db, learner_id, card, {"suspended": declined})
    return True


def load_added_card_records(
    db: Session, learner_id: int, cards: Sequence[str]
) -> dict[str, AddedCardRecord]:
    if not (learner_id and cards):
        return {}
    values = {"of_learner": learner_id, "cards": list(cards)}
    rows = db.connection().execute(_SELECT_SOME_ADDED_CARDS, values)
    return {row.card: _added_card_from_row(row) for row in rows}


def load_newest_added_cards(
    db: Session, learner_id: int, *, limit: int, offset: int
) -> list[AddedCardRecord]:
    """Return at most `limit` added cards, newest first, after skipping `offset` of them."""
    if not learner_id:
        return []
    statement = _SELECT_ALL_ADDED_CARDS.order_by(ADDED.c.id.desc()).limit(limit).offset(offset)
    rows = db.connection().execute(statement, {"of_learner": learner_id})
    return [_added_card_from_row(row) for row in rows]


def count_added_cards(db: Session, learner_id: int) -> int:
    if not learner_id:
        return 0
    return db.connection().execute(_COUNT_ADDED_CARDS, {"of_learner": learner_id}).scalar() or 0


def list_undeclined_cards_of_kind(db: Session, learner_id: int, card_kind: str) -> frozenset[str]:
    if not learner_id:
        return frozenset()
    values = {"of_learner": learner_id, "begin": f"{card_kind}:"}
    return frozenset(db.connection().execute(_SELECT_KEPT_CARDS_WITH_PREFIX, values).scalars())


_OWN_CARD_ROW = (
    ADDED.c.learner_id == bindparam("of_learner"),
    ADDED.c.card == bindparam("of_card"),
)
_OWN_KEPT_ROWS = (ADDED.c.learner_id == bindparam("of_learner"), ADDED.c.declined.is_(False))
_waiting = (
    select(CARD_STATES.c.last_at)
    .where(CARD_STATES.c.learner_id == ADDED.c.learner_id, CARD_STATES.c.card == ADDED.c.card)
    .where(CARD_STATES.c.last_at < ADDED.c.at)
    .exists()
)
# A card that is still waiting from an earlier miss keeps its `since` and its due day.
_MISSED_AGAIN = (
    update(ADDED)
    .where(*_OWN_CARD_ROW, ADDED.c.declined.is_(False))
    .values(seed=bindparam("numbers"), at=case((_waiting, ADDED.c.at), else_=bindparam("now")))
)
_SCHEDULE_SOONER = (
    update(CARD_STATES)
    .where(
        CARD_STATES.c.learner_id == bindparam("of_learner"),
        (CARD_STATES.c.due_day > bindparam("tomorrow")) | (CARD_STATES.c.state == "new"),
        CARD_STATES.c.card.in_(
            select(ADDED.c.card).where(
                *_OWN_KEPT_ROWS, ADDED.c.card.in_(bindparam("cards", expanding=True))
            )
        ),
    )
    .values(due_day=bindparam("tomorrow"), set_day="")
)
_UPDATE_ADDED_CARD = update(ADDED).where(*_OWN_CARD_ROW)
_SELECT_ALL_ADDED_CARDS = (
    select(
        ADDED.c.card,
        ADDED.c.seed,
        ADDED.c.declined,
        ADDED.c.at,
        CARD_STATES.c.due_day,
        CARD_STATES.c.suspended,
        CARD_STATES.c.state,
        CARD_STATES.c.lapses,
    )
    .select_from(
        ADDED.outerjoin(
            CARD_STATES,
            (CARD_STATES.c.learner_id == ADDED.c.learner_id) & (CARD_STATES.c.card == ADDED.c.card),
        )
    )
    .where(ADDED.c.learner_id == bindparam("of_learner"))
)
_COUNT_ADDED_CARDS = select(func.count()).where(ADDED.c.learner_id == bindparam("of_learner"))
_SELECT_SOME_ADDED_CARDS = _SELECT_ALL_ADDED_CARDS.where(
    ADDED.c.card.in_(bindparam("cards", expanding=True))
)
_begin: Any = bindparam("begin", type_=String)
_SELECT_KEPT_CARDS_WITH_PREFIX = select(ADDED.c.card).where(
    # Not with < and >: PostgreSQL compares text by its locale.
    *_OWN_KEPT_ROWS,
    func.substr(ADDED.c.card, 1, func.length(_begin)) == _begin,
)


def _added_card_from_row(row: Any) -> AddedCardRecord:
    return AddedCardRecord(
        card_id=row.card,
        question_seed=row.seed,
        is_declined=row.declined,
        added_or_missed_at=from_milliseconds(row.at),
        due_day=dt.date.fromisoformat(row.due_day) if row.due_day else None,
        is_suspended_or_declined=row.declined or bool(row.suspended),
        state=row.state or "new",
        lapses=row.lapses or 0,
    )


@functools.cache  # building a statement costs more than running it
def _insert_statements(dialect: str) -> tuple[Any, Any]:
    insert = sqlite.insert if dialect == "sqlite" else postgresql.insert
    return (
        insert(ADDED).on_conflict_do_nothing().returning(ADDED.c.card),
        insert(CARD_STATES).on_conflict_do_nothing(),
    )


@dataclasses.dataclass(frozen=True, slots=True)
class MissedQuestionCard:
    """A missed question that became a card; both days are study days.

    `is_declined` says that the learner left it out.
    """

    card_id: str
    due_day: dt.date
    today: dt.date
    is_declined: bool
    is_suspended: bool

    @property
    def question_id(self) -> str:
        return parse_card_id(self.card_id).source_id

    @property
    def is_due_by_tomorrow(self) -> bool:
        return (self.due_day - self.today).days <= 1


def find_missed_question_card(
    db: Session, learner_id: int, item: str, day: dt.date
) -> MissedQuestionCard | None:
    """Return the card of a question, or None if the learner never missed it."""
    card = build_question_card_id(item)
    added = load_added_card_records(db, learner_id, [card]).get(card)
    if added is None:
        return None
    aside = added.is_suspended_or_declined and not added.is_declined
    return MissedQuestionCard(card, added.due_day or day, day, added.is_declined, aside)


OWN = TABLES["own_card"]
SITTING = TABLES["sitting"]


@dataclasses.dataclass(frozen=True, slots=True)
class AddedCardContent:
    """What is stored about an added card.

    `own_faces` are those of the learner's own card. It `is_in_running_exam` if its question is on
    the paper of a mock exam in progress.
    """

    card_id: str
    question_seed: int
    added_or_missed_at: dt.datetime
    own_faces: CardFacesHtml | None
    is_in_running_exam: bool


_SELECT_ADDED_CARDS = (
    select(
        ADDED.c.card,
        ADDED.c.seed,
        ADDED.c.at,
        # Sides saved before the limit existed may be longer. One extra character shows that.
        func.substr(OWN.c.front, 1, LONGEST_FACE + 1).label("front"),
        func.substr(OWN.c.back, 1, LONGEST_FACE + 1).label("back"),
        SITTING.c.paper,
    )
    .select_from(
        ADDED.outerjoin(
            OWN, and_(OWN.c.learner_id == ADDED.c.learner_id, OWN.c.card == ADDED.c.card)
        ).outerjoin(
            SITTING,
            and_(
                SITTING.c.learner_id == ADDED.c.learner_id,
                SITTING.c.closed_at.is_(None),
                SITTING.c.deadline_at > bindparam("now"),
            ),
        )
    )
    .where(
        ADDED.c.learner_id == bindparam("of_learner"),
        ADDED.c.card.in_(bindparam("cards", expanding=True)),
    )
)


def load_added_card_contents(
    db: Session, learner_id: int, cards: Collection[str], now: dt.datetime
) -> dict[str, AddedCardContent]:
    """Return the details of those of `cards` that the learner ever added, declined or not.

    Runs one query.
    """
    if not (learner_id and cards):
        return {}
    values = {"of_learner": learner_id, "cards": [*cards], "now": to_milliseconds(now)}
    details: dict[str, AddedCardContent] = {}
    for row in db.connection().execute(_SELECT_ADDED_CARDS, values):
        own = CardFacesHtml(row.front, row.back) if row.front is not None else None
        is_in_running_exam = row.paper is not None and any(
            build_question_card_id(slot[1]) == row.card for slot in json.loads(row.paper)
        )
        is_in_running_exam |= row.card in details and details[row.card].is_in_running_exam
        details[row.card] = AddedCardContent(
            row.card, row.seed or 0, from_milliseconds(row.at), own, is_in_running_exam
        )
    return details


OWN_CARDS_DECK_NAME = "My cards"


@dataclasses.dataclass(frozen=True, slots=True)
class OwnCardContent:
    """The content of a learner's own card; what was typed is empty for an imported card."""

    faces: CardFacesHtml
    typed_source_json: str


def load_own_card(db: Session, learner_id: int, card: str) -> OwnCardContent | None:
    """Return the content of the learner's own card, or None if this learner has no such card."""
    row = db.execute(
        select(col(OwnCard.front), col(OwnCard.back), col(OwnCard.source)).where(
            col(OwnCard.learner_id) == learner_id, col(OwnCard.card) == card
        )
    ).first()
    return OwnCardContent(CardFacesHtml(row[0], row[1]), row[2]) if row else None


def insert_own_card(
    db: Session,
    learner_id: int,
    card: str,
    content: OwnCardContent,
    now: dt.datetime,
    deck: str = OWN_CARDS_DECK_NAME,
) -> bool:
    """Save a new own card, or the learner's text of a course card, which has no `deck`.

    Saving the same card again changes nothing and returns False. Raises ConflictError if the
    learner has reached the maximum number of own cards.
    """
    values = {"learner_id": learner_id, "card": card, "deck": deck}
    values |= {"front": content.faces.front, "back": content.faces.back}
    values |= {"source": content.typed_source_json, "at": to_milliseconds(now)}
    if insert_if_absent(db, OwnCard, values) is None:
        return False
    raise_if_row_quota_exceeded(db, OWN_CARDS, col(OwnCard.learner_id) == learner_id)
    return True


def load_own_texts_of_course_cards(
    db: Session, learner_id: int, cards: Collection[str]
) -> dict[str, CardFacesHtml]:
    """Return the learner's texts of those course cards that they edited."""
    if not (learner_id and cards):
        return {}
    rows = db.connection().execute(
        select(OWN.c.card, OWN.c.front, OWN.c.back).where(
            OWN.c.learner_id == learner_id, OWN.c.card.in_(cards)
        )
    )
    return {row.card: CardFacesHtml(row.front, row.back) for row in rows}


def delete_own_text_of_course_card(db: Session, learner_id: int, card: str) -> None:
    db.execute(
        delete(OwnCard).where(col(OwnCard.learner_id) == learner_id, col(OwnCard.card) == card)
    )


def update_own_card_text(db: Session, learner_id: int, card: str, content: OwnCardContent) -> None:
    """Change the text of an own or edited card; its memory stays."""
    db.execute(
        update(OwnCard)
        .where(col(OwnCard.learner_id) == learner_id, col(OwnCard.card) == card)
        .values(
            front=content.faces.front, back=content.faces.back, source=content.typed_source_json
        )
    )


_HTML_TAG = re.compile(r"<[^<>]*>")
# These can occur inside a word: a soft hyphen, zero-width characters, a byte order mark.
_INVISIBLE_CHARACTERS = "\u00ad\u200b\u200c\u200d\u2060\ufeff"


def search_own_card_ids(db: Session, learner_id: int, words: Sequence[str]) -> Iterator[str]:
    """Yield the own cards that contain all `words`, newest first.

    The words are those of `split_search_query`.
    """
    wanted = (
        select(col(OwnCard.card), col(OwnCard.front), col(OwnCard.back), col(OwnCard.tags))
        .where(col(OwnCard.learner_id) == learner_id)
        .order_by(col(OwnCard.id).desc())
    )
    whole = func.lower(col(OwnCard.front) + col(OwnCard.back) + col(OwnCard.tags))
    for sign in _INVISIBLE_CHARACTERS:
        whole = func.replace(whole, sign, "")
    for word in words:
        # SQLite lowercases only ASCII, and & < > are stored escaped.
        if word.isascii() and word.isalnum():
            wanted = wanted.where(whole.contains(word, autoescape=True))
    for card, front, back, tags in db.execute(wanted).yield_per(100):
        text = unescape(_HTML_TAG.sub(" ", f"{front} {back}")) + f" {tags}"
        folded = normalize_search_text(text)
        if all(word in folded for word in words):
            yield card


def load_own_card_picture(db: Session, learner_id: int, name: str) -> bytes | None:
    """Return a picture of this learner's own cards, or None if this learner has none by that name."""
    content = db.scalar(
        select(col(OwnPicture.content)).where(
            col(OwnPicture.learner_id) == learner_id, col(OwnPicture.name) == name
        )
    )
    return base64.b64decode(content) if content else None
