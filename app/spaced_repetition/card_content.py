"""Cards with their texts, pages and questions, as a page shows them."""

import dataclasses
import datetime as dt
from collections.abc import Collection

from sqlmodel import Session

from app.accounts.current_learner import LearnerProfile, RequestContext
from app.content.library import Library
from app.markup.expressions import ExpressionError
from app.markup.model import Flashcard
from app.questions.question_type import CardFaces
from app.spaced_repetition import added_cards
from app.spaced_repetition.added_cards import AddedCardDetails
from app.spaced_repetition.card_ids import (
    OWN,
    QUESTION,
    TERM,
    build_own_card,
    build_question_card,
    build_term_card,
    find_topic_of_added_card,
    is_added_card,
    parse_card_id,
)
from app.spaced_repetition.review_log import CardRecord
from app.spaced_repetition.scheduler import retrievability
from app.web.formatting import format_date


@dataclasses.dataclass(frozen=True, slots=True)
class ResolvedCard:
    """A card with its related data.

    `links` are texts and URLs that lead to where it is explained; they may name the answer.
    `question` is the URL of the question it was made from, and `origin` a sentence about where an
    added card came from. `sat` hides it: its question is in a mock exam in progress.
    """

    card: Flashcard
    links: tuple[tuple[str, str], ...] = ()
    question: str = ""
    origin: str = ""
    sat: bool = False


def resolve_cards(
    library: Library, db: Session, learner: LearnerProfile, cards: Collection[str], now: dt.datetime
) -> dict[str, ResolvedCard]:
    """Return those of `cards` that exist for this learner; added ones in one query."""
    added = [card for card in cards if is_added_card(card)]
    added_details = added_cards.load_added_card_details(db, learner.id, added, now)
    today = learner.study_day(now)
    resolved: dict[str, ResolvedCard | None] = {}
    for card in cards:
        if is_added_card(card):
            mine = added_details.get(card)
            resolved[card] = (
                _added_card_content(library, mine, (learner.study_day(mine.since), today))
                if mine
                else None
            )
        else:
            known = library.cards.get(card)
            resolved[card] = (
                ResolvedCard(known, _page_link(library, known.topic)) if known else None
            )
    return {card: one for card, one in resolved.items() if one is not None}


def _page_link(library: Library, slug: str, anchor: str = "") -> tuple[tuple[str, str], ...]:
    topic = library.topics.get(slug)
    if topic is None:
        return ()
    address = f"/concepts/{slug}#{anchor}" if anchor else f"/concepts/{slug}"
    return ((f"Read: {topic.title}", address),)


def _added_card_content(
    library: Library, details: AddedCardDetails, added_day_and_today: tuple[dt.date, dt.date]
) -> ResolvedCard | None:
    """Return the added card with its current text; None if its source left the course."""
    kind = parse_card_id(details.card)[0]
    if kind == QUESTION:
        return _question_card_content(library, details, added_day_and_today)
    if kind == TERM:
        return _term_card_content(library, details.card)
    if kind == OWN and details.own is not None:
        _, front, back = details.own
        card = build_own_card(details.card, CardFaces(front, back))
        return ResolvedCard(card, origin="A card of your own.")
    return None


def _question_card_content(
    library: Library, details: AddedCardDetails, added_day_and_today: tuple[dt.date, dt.date]
) -> ResolvedCard | None:
    question = library.questions.get(parse_card_id(details.card)[1])
    if question is None:
        return None
    try:
        card = build_question_card(question, details.seed)
    except ExpressionError:  # after an edit, these numbers have no answer
        return None
    return ResolvedCard(
        card,
        _page_link(library, question.topic, question.section),
        question=f"/quiz/{question.topic}/{question.id}",
        origin=f"A question you missed {_day_in_sentence(*added_day_and_today)}.",
        sat=details.sat,
    )


def _term_card_content(library: Library, card: str) -> ResolvedCard | None:
    term = library.glossary.get(parse_card_id(card)[1])
    if term is None:
        return None
    slug = find_topic_of_added_card(library, card)
    links = (*_page_link(library, slug), ("Glossary", f"/glossary#{term.anchor}"))
    return ResolvedCard(build_term_card(term, slug), links, origin="A term of the glossary.")


def _day_in_sentence(day: dt.date, today: dt.date) -> str:
    if day == today:
        return "today"
    words = f"on {format_date(day)}"
    return words if day.year == today.year else f"{words}, {day.year}"


def describe_origin_and_recall(record: CardRecord, day: dt.date, origin: str) -> str:
    """Return where the card comes from, when it was last seen, and its retrievability."""
    standing = record.standing
    if standing is None:
        return f"{origin or 'A new card.'} Say the answer aloud or write it down first."
    if standing.state != "review":
        now = standing.last_day >= day
        seen = "You are still learning this card."
        origin = origin or (seen if now else "You have seen this card before.")
        return f"{origin} Say the answer aloud first."
    days = max(0, (day - standing.last_day).days)
    note = f"{origin} Say it aloud or write it down first. Last seen ".lstrip()
    if not days:
        return f"{note}today."
    ago = "yesterday" if days == 1 else f"{days} days ago"
    chance = round(retrievability(standing, day) * 100)
    return f"{note}{ago}. Chance that you still know it: about {chance}%."


def is_card_visible(ctx: RequestContext, card: str) -> bool:
    """Return whether a card exists and is not part of a mock exam in progress."""
    resolved = resolve_cards_once_per_request(ctx, [card]).get(card)
    return resolved is not None and not resolved.sat


def resolve_cards_once_per_request(
    ctx: RequestContext, cards: Collection[str]
) -> dict[str, ResolvedCard]:
    """Return those of `cards` that exist, looked up once per request."""
    new = [card for card in cards if card not in ctx.found]
    if new:
        resolved = resolve_cards(ctx.library, ctx.db, ctx.learner, new, ctx.now)
        ctx.found.update(resolved)
    return {card: ctx.found[card] for card in cards if card in ctx.found}
