"""Cards for offline use."""

import dataclasses
import datetime as dt

from fastapi import APIRouter
from fastapi.responses import HTMLResponse

from app.accounts.current_learner import Reader, RequestContext
from app.flashcards.review_page import learner_marker, showing_token
from app.markup.model import Flashcard
from app.spaced_repetition import queue, review_log
from app.spaced_repetition.queue import QueueQuery
from app.study_plan import todays_cards
from app.study_plan.todays_cards import (
    find_cards_once,
    load_queue,
    new_today,
    queue_query,
    todays_plan,
)

router = APIRouter()
_MAX_OFFLINE_CARDS = 100


@dataclasses.dataclass(frozen=True, slots=True)
class OfflineCard:
    """One card of the page; the token identifies the showing.

    `later` says that it is not one of today's cards.
    """

    card: Flashcard
    token: str
    later: bool


@router.get("/offline")
def show_offline_cards(desk: Reader) -> HTMLResponse:
    """Today's cards and those due by tomorrow, for the browser to cache."""
    found = build_offline_cards(desk)
    return desk.page(
        "flashcards/offline.html",
        today=[leaf for leaf in found if not leaf.later],
        later=[leaf for leaf in found if leaf.later],
        who=learner_marker(desk.learner),
        most=_MAX_OFFLINE_CARDS,
    )


def build_offline_cards(desk: RequestContext) -> list[OfflineCard]:
    """Return at most 100 cards: today's in queue order, then those due by tomorrow.

    The plan leaves some due cards for another day; these come after its own.
    """
    limits = queue_query(desk)
    tomorrow = dataclasses.replace(limits, day=limits.day + dt.timedelta(days=1))
    due = _due_cards(desk, limits)
    ripe = [one for one in due if not _is_waiting(desk, one)]
    steps = [one for one in due if _is_waiting(desk, one)]
    today = [*ripe, *_new_cards_for_day(desk, limits), *steps]
    held = {one.card: one.turns for one in (*today, *_due_cards(desk, tomorrow))}
    names = {one.card for one in today}
    found = find_cards_once(desk, list(held)[:_MAX_OFFLINE_CARDS])
    return [
        OfflineCard(one.card, showing_token(card, held[card]), later=card not in names)
        for card, one in found.items()
        if not one.sat
    ]


def _is_waiting(desk: RequestContext, held: review_log.CardRecord) -> bool:
    """Return whether a card is in a learning step that is not over."""
    standing = held.standing
    if standing is None or standing.state == "review":
        return False
    return standing.due_day <= desk.day and standing.due_at > desk.now


def _due_cards(desk: RequestContext, limits: QueueQuery) -> list[review_log.CardRecord]:
    db, learner = desk.db, desk.learner.id
    plan = todays_plan(desk)
    if plan is not None and limits.day == desk.day:
        return todays_cards.upcoming_planned(db, learner, limits, plan, _MAX_OFFLINE_CARDS)
    return queue.load_upcoming(db, learner, limits, _MAX_OFFLINE_CARDS)


def _new_cards_for_day(desk: RequestContext, limits: QueueQuery) -> list[review_log.CardRecord]:
    """Return the new cards that fit into the day, without a card and its reverse."""
    db, learner, library = desk.db, desk.learner.id, desk.library
    room = new_today(desk, load_queue(desk, limits)[0])
    topics = queue.unseen_by_topic(db, learner, library, limits)
    found: dict[str, str] = {}
    for card in queue.new_cards(db, learner, library, limits, topics):
        if len(found) >= room:
            break
        found.setdefault(queue.card_note(library, card), card)
    return [review_log.unseen_card(db, learner, card) for card in found.values()]
