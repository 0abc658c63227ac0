"""The review queue of a study day: the cards on the day's list, or those of one deck.

A learner with a list reviews what is on it. A deck, or more cards after the list is done, come from
the queue of all due cards.
"""

import dataclasses
from collections.abc import Iterable, Sequence
from typing import Any

from sqlalchemy import bindparam, or_, select

from app.accounts.current_learner import RequestContext
from app.clock import to_milliseconds
from app.spaced_repetition import queue, review_log
from app.spaced_repetition.added_card_ids_and_faces import is_added_card_id
from app.spaced_repetition.card_content import is_card_visible
from app.spaced_repetition.card_rows import CARD_STATE_COLUMNS, CARD_STATES
from app.spaced_repetition.queue import (
    LOOK_SECONDS,
    USUAL_SECONDS_PER_CARD,
    QueueScope,
    ReviewQueue,
    SecondsPerCard,
    StudyDayCardCounts,
    count_new_cards_still_allowed,
    find_note_id_of_card,
    load_seconds_per_card,
)
from app.spaced_repetition.review_log import CardRecord

_SHOWINGS_PER_REVIEW = 1.125
REVIEW_SECONDS = LOOK_SECONDS * _SHOWINGS_PER_REVIEW
"""Seconds of a review, of which one in eight is a lapse."""


@dataclasses.dataclass(frozen=True, slots=True)
class CardsOnDayList:
    """The cards on the list of a study day, in order: first those to review, then new ones.

    With `is_single_task` they are those of one task, and learning steps of other cards are left out.
    """

    review_card_ids: tuple[str, ...] = ()
    new_card_ids: tuple[str, ...] = ()
    is_single_task: bool = False


@dataclasses.dataclass(frozen=True, slots=True)
class CardsLeft:
    """The cards left in the review queue for a study day.

    `due_now` are due now, of which `due_in_steps` are in their steps; `waiting_for_step` are in steps too and
    due later in the day. `new_cards` will be started, of which `new_added_cards` are added cards.
    """

    due_now: int = 0
    waiting_for_step: int = 0
    new_cards: int = 0
    due_in_steps: int = 0
    new_added_cards: int = 0
    seconds_per_card: SecondsPerCard = USUAL_SECONDS_PER_CARD

    @property
    def due_reviews(self) -> int:
        """Due cards past their learning steps."""
        return self.due_now - self.due_in_steps

    @property
    def cards_in_steps(self) -> int:
        """Cards in their learning steps, due or waiting."""
        return self.due_in_steps + self.waiting_for_step

    @property
    def seen_cards(self) -> int:
        """All cards left except the new ones."""
        return self.due_now + self.waiting_for_step

    @property
    def all_cards(self) -> int:
        """All cards left, as every page counts them."""
        return self.seen_cards + self.new_cards

    @property
    def expected_seconds(self) -> float:
        """Expected time: 11.25 s for a review and 60 s for a new card at the usual pace.

        >>> CardsLeft(due_now=16, waiting_for_step=0, new_cards=2).expected_seconds
        300.0
        """
        return (
            self.seen_cards * REVIEW_SECONDS * self.seconds_per_card.review_ratio_to_usual
            + self.new_cards * self.seconds_per_card.new_card_seconds
        )


@dataclasses.dataclass(frozen=True, slots=True)
class TodaysQueue:
    """The review queue, and the scope it was loaded for.

    `startable_card_ids` are in order: those on the list, or the next one.
    """

    queue: ReviewQueue
    scope: QueueScope
    startable_card_ids: tuple[str, ...]
    cards_left: CardsLeft


def load_todays_queue(
    ctx: RequestContext, listed: CardsOnDayList | None, topic: str = "", extra_new_cards: int = 0
) -> TodaysQueue:
    """Return the review queue of the study day, of all topics or of one.

    Without a list, or if the learner chose a topic, it has all due cards. New cards are then those
    that the minutes allow, half of which are for cards; none after the exam. `extra_new_cards` are added to those of the
    list or of the minutes.
    """
    scope = _load_scope(ctx, topic)
    followed = None if topic else listed
    counted = None
    while True:
        loaded = (
            _load_queue_of_list(ctx, scope, followed)
            if followed is not None
            else queue.load_review_queue(ctx.db, ctx.learner.id, scope)
        )
        # Cards that a running mock exam hides wait, and count as on the list of the day.
        counted = counted if counted and loaded.first_card else loaded
        if loaded.first_card is None or is_card_visible(ctx, loaded.first_card.card_id):
            break
        gone = scope.gone_and_moved_cards.gone_card_ids | {loaded.first_card.card_id}
        scope = dataclasses.replace(
            scope,
            gone_and_moved_cards=dataclasses.replace(
                scope.gone_and_moved_cards, gone_card_ids=gone
            ),
        )
    pace = load_seconds_per_card(ctx.db, ctx.learner.id, ctx.study_day)
    new = () if followed is None else _list_unstarted_cards_of_list(ctx, followed)
    fresh = len(new)
    if followed is None or (extra_new_cards and not new):
        if followed is not None:
            allowed = max(0, extra_new_cards - count_new_cards_begun_beyond_list(followed, loaded))
        else:
            over = ctx.learner.is_exam_over(ctx.study_day)
            minutes = 0 if over else ctx.learner.minutes_a_day
            allowed = count_new_cards_still_allowed(
                minutes, loaded.day_counts, extra_new_cards, pace
            )
        unseen = {}
        if allowed:
            unseen = queue.count_unseen_cards_by_topic(
                ctx.db, ctx.learner.id, ctx.course, scope, begun_first=listed is not None
            )
        new = take_first_unseen_cards(ctx, scope, unseen, 1)
        fresh = min(allowed, sum(unseen.values()))
    left = CardsLeft(
        due_now=counted.learning_count + counted.review_count,
        waiting_for_step=counted.waiting_count,
        new_cards=fresh + counted.due_never_reviewed_count,
        new_added_cards=counted.due_never_reviewed_count,
        due_in_steps=counted.learning_count,
        seconds_per_card=pace,
    )
    return TodaysQueue(loaded, scope, new, left)


def count_new_cards_begun_beyond_list(listed: CardsOnDayList, queue: ReviewQueue) -> int:
    """Return how many more new cards were begun on the study day than its list has."""
    planned = sum(not is_added_card_id(card) for card in listed.new_card_ids)
    return max(0, queue.day_counts.new_cards_begun - planned)


def _load_scope(ctx: RequestContext, topic: str) -> QueueScope:
    changed = queue.find_gone_and_moved_cards(ctx.db, ctx.learner.id, ctx.course)
    return QueueScope(ctx.study_day, to_milliseconds(ctx.now), topic, changed)


def take_first_unseen_cards(
    ctx: RequestContext, scope: QueueScope, topics: Iterable[str], count: int
) -> tuple[str, ...]:
    """Return the first `count` cards of these topics never seen, but no card with its reverse."""
    cards = queue.yield_unseen_cards(ctx.db, ctx.learner.id, ctx.course, scope, topics)
    chosen: dict[str, str] = {}
    for card in cards if count else ():
        chosen.setdefault(find_note_id_of_card(ctx.course, card), card)
        if len(chosen) == count:
            break
    return tuple(chosen.values())


def _list_unstarted_cards_of_list(ctx: RequestContext, listed: CardsOnDayList) -> tuple[str, ...]:
    """Return the course cards on the list that were not started yet."""
    course_card_ids = [card for card in listed.new_card_ids if card in ctx.course.cards]
    known = (
        queue.load_statuses_by_card(ctx.db, ctx.learner.id, course_card_ids)
        if course_card_ids
        else {}
    )
    return tuple(card for card in course_card_ids if card not in known)


_ON_LIST = select(
    *CARD_STATE_COLUMNS, CARD_STATES.c.card, CARD_STATES.c.turns, CARD_STATES.c.suspended
).where(
    CARD_STATES.c.learner_id == bindparam("learner"),
    or_(
        CARD_STATES.c.card.in_(bindparam("cards", expanding=True)),
        CARD_STATES.c.last_day == bindparam("day"),
    ),
)


def _load_queue_of_list(
    ctx: RequestContext, scope: QueueScope, listed: CardsOnDayList
) -> ReviewQueue:
    """Return the queue of the day's list: learning steps of today, then reviews, then added cards."""
    added = [card for card in listed.new_card_ids if is_added_card_id(card)]
    today = scope.day.isoformat()
    values = {"learner": ctx.learner.id, "day": today, "cards": [*listed.review_card_ids, *added]}
    names = {*listed.review_card_ids, *listed.new_card_ids}
    rows = [
        row
        for row in ctx.db.connection().execute(_ON_LIST, values)
        if row.card in names or not listed.is_single_task
    ]
    answered = [row for row in rows if row.last_day == today]
    live = {
        r.card: r
        for r in rows
        if not r.suspended and r.card not in scope.gone_and_moved_cards.gone_card_ids
    }
    steps = [
        row
        for row in live.values()
        if row.last_day == today and row.state not in ("review", "new") and row.due_day <= today
    ]
    steps.sort(key=lambda row: (row.due_at, row.card))
    due_steps = [row for row in steps if row.due_at <= scope.now_ms]
    unreviewed = [
        live[c]
        for c in (*listed.review_card_ids, *added)
        if c in live and live[c].last_day != today
    ]
    urgent = next((rows for rows in (due_steps, unreviewed, steps) if rows), None)
    new = sum(row.state == "new" for row in unreviewed)
    in_steps = sum(row.state not in ("review", "new") for row in unreviewed)
    begun = sum(row.first_day == today and not is_added_card_id(row.card) for row in answered)
    return ReviewQueue(
        first_card=queue.card_record_from_row(urgent[0]) if urgent else None,
        first_card_kind=_find_kind_of_first_card(due_steps, unreviewed, steps),
        learning_count=len(due_steps) + in_steps,
        review_count=len(unreviewed) - new - in_steps,
        waiting_count=len(steps) - len(due_steps),
        finished_count=sum(row.state != "new" and row.due_day > today for row in answered),
        day_counts=StudyDayCardCounts(
            cards_still_due=len(listed.review_card_ids),
            cards_reviewed=len(answered),
            new_cards_begun=begun,
        ),
        due_never_reviewed_count=new,
    )


def _find_kind_of_first_card(
    due_steps: Sequence[Any], unreviewed: Sequence[Any], steps: Sequence[Any]
) -> str:
    if due_steps or (unreviewed and unreviewed[0].state not in ("review", "new")):
        return "learning"
    return "review" if unreviewed else "waiting" if steps else ""


def load_cards_until_tomorrow(
    ctx: RequestContext, listed: CardsOnDayList | None, limit: int
) -> tuple[list[CardRecord], list[CardRecord]]:
    """Return the cards left today in the order to show them, and those due by tomorrow."""
    scope = _load_scope(ctx, "")
    stack = load_todays_queue(ctx, listed)
    tomorrow = dataclasses.replace(scope, day=scope.day + queue.ONE_DAY)
    due = queue.load_cards_due_on_day(ctx.db, ctx.learner.id, tomorrow, limit)
    if listed is None:
        today = queue.load_cards_due_on_day(ctx.db, ctx.learner.id, scope, limit)
    else:
        names = {*listed.review_card_ids, *listed.new_card_ids}
        today = [c for c in due if c.card_id in names or _is_in_steps_seen_today(c, ctx)]
        order = {card: place for place, card in enumerate(listed.review_card_ids)}
        today.sort(key=lambda c: order.get(c.card_id, len(order)))
    waiting = [card for card in today if _is_waiting_for_step(card, ctx)]
    ready = [card for card in today if card not in waiting]
    cards = stack.startable_card_ids
    if listed is None:
        count = stack.cards_left.new_cards - stack.cards_left.new_added_cards
        unseen = {}
        if count:
            unseen = queue.count_unseen_cards_by_topic(
                ctx.db, ctx.learner.id, ctx.course, stack.scope
            )
        cards = take_first_unseen_cards(ctx, stack.scope, unseen, count)
    new = [review_log.load_card_record(ctx.db, ctx.learner.id, card) for card in cards]
    return [*ready, *new, *waiting][:limit], due


def _is_in_steps_seen_today(card: CardRecord, ctx: RequestContext) -> bool:
    state = card.card_state
    return state is not None and state.state != "review" and state.last_day == ctx.study_day


def _is_waiting_for_step(card: CardRecord, ctx: RequestContext) -> bool:
    """Return whether a card is in a learning step that is not over."""
    state = card.card_state
    if state is None or state.state == "review":
        return False
    return state.due_day <= ctx.study_day and state.due_at > ctx.now


@dataclasses.dataclass(frozen=True, slots=True)
class QueueCounter:
    """How many cards of a kind are left, and whether the current card is of it."""

    name: str
    card_count: int
    has_current_card: bool = False


def count_cards_left_by_kind(
    cards_left: CardsLeft, current_card_kind: str = ""
) -> tuple[QueueCounter, ...]:
    """Return new, learning and due cards left; `current_card_kind` is that of the current card.

    The counts match those of `describe_cards_left`, and together they are all cards left.

    >>> left = CardsLeft(due_now=7, waiting_for_step=2, new_cards=15, due_in_steps=1)
    >>> [counter.card_count for counter in count_cards_left_by_kind(left)]
    [15, 3, 6]
    """
    return (
        QueueCounter("New", cards_left.new_cards, current_card_kind == "new"),
        QueueCounter("Learning", cards_left.cards_in_steps, current_card_kind == "learning"),
        QueueCounter("Due", cards_left.due_reviews, current_card_kind == "due"),
    )
