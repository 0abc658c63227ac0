"""Cards for offline use."""

import dataclasses

from fastapi import APIRouter
from fastapi.responses import HTMLResponse

from app.accounts.current_learner import Reader, RequestContext
from app.flashcards.review_page import learner_marker, showing_token
from app.markup.model import Flashcard
from app.spaced_repetition.card_content import find_cards_once
from app.spaced_repetition.todays_queue import upcoming_cards
from app.study_plan.loader import listed_cards

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
def show_offline_cards(ctx: Reader) -> HTMLResponse:
    """Today's cards and those due by tomorrow, for the browser to cache."""
    found = build_offline_cards(ctx)
    return ctx.page(
        "flashcards/offline.html",
        today=[leaf for leaf in found if not leaf.later],
        later=[leaf for leaf in found if leaf.later],
        who=learner_marker(ctx.learner),
        most=_MAX_OFFLINE_CARDS,
    )


def build_offline_cards(ctx: RequestContext) -> list[OfflineCard]:
    """Return at most 100 cards: today's in queue order, then those due by tomorrow."""
    today, later = upcoming_cards(ctx, listed_cards(ctx), _MAX_OFFLINE_CARDS)
    held = {one.card: one.turns for one in (*today, *later)}
    names = {one.card for one in today}
    found = find_cards_once(ctx, list(held)[:_MAX_OFFLINE_CARDS])
    return [
        OfflineCard(one.card, showing_token(card, held[card]), later=card not in names)
        for card, one in found.items()
        if not one.sat
    ]
