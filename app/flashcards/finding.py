"""A card by its name: one of the course, or one that the learner added."""

import dataclasses
import datetime as dt
from collections.abc import Collection

from sqlmodel import Session

from app.cards.added_cards import card_of_own, card_of_question, card_of_term
from app.cards.names import OWN, QUESTION, TERM, is_added_card, parse_card_id, topic_of
from app.content.live.library import Library
from app.content.model import Flashcard
from app.content.numbers.expressions import ExpressionError
from app.flashcards import store
from app.flashcards.store import AddedCardDetails
from app.learners.current import LearnerProfile
from app.questions.faces import CardFaces
from app.web.words import format_date


@dataclasses.dataclass(frozen=True, slots=True)
class ResolvedCard:
    """A card with what belongs to it.

    `title` is what it belongs to; `links` lead, with their words, to where it is
    explained; `question` is the address of the question it was made of and `origin`
    a sentence on where an added card came from. `sat` keeps it away: its question is
    in a mock exam that is being sat.
    """

    card: Flashcard
    title: str = ""
    links: tuple[tuple[str, str], ...] = ()
    question: str = ""
    origin: str = ""
    sat: bool = False


def find_cards(
    library: Library,
    db: Session,
    learner: LearnerProfile,
    cards: Collection[str],
    now: dt.datetime,
) -> dict[str, ResolvedCard]:
    """Those of `cards` that there are for this learner; added ones in one question."""
    added = [card for card in cards if is_added_card(card)]
    kept = store.kept(db, learner.id, added, now)
    today = learner.study_day(now)
    found: dict[str, ResolvedCard | None] = {}
    for card in cards:
        if is_added_card(card):
            mine = kept.get(card)
            found[card] = (
                _added(library, mine, (learner.study_day(mine.since), today)) if mine else None
            )
        else:
            known = library.cards.get(card)
            found[card] = _of_course(library, known) if known else None
    return {card: one for card, one in found.items() if one is not None}


def _of_course(library: Library, card: Flashcard) -> ResolvedCard:
    return ResolvedCard(card, *_page(library, card.topic))


def _page(library: Library, slug: str, anchor: str = "") -> tuple[str, tuple[tuple[str, str], ...]]:
    """The title of a topic, and the link to its page."""
    topic = library.topics.get(slug)
    if topic is None:
        return "", ()
    address = f"/concepts/{slug}#{anchor}" if anchor else f"/concepts/{slug}"
    return topic.title, ((f"Read: {topic.title}", address),)


def _added(
    library: Library, kept: AddedCardDetails, days: tuple[dt.date, dt.date]
) -> ResolvedCard | None:
    """The added card in the wording of now; None where the course lost it."""
    kind = parse_card_id(kept.card)[0]
    if kind == QUESTION:
        return _question(library, kept, days)
    if kind == TERM:
        return _term(library, kept.card)
    if kind == OWN and kept.own is not None:
        deck, front, back = kept.own
        card = card_of_own(kept.card, CardFaces(front, back))
        return ResolvedCard(card, deck, origin="A card of your own.")
    return None


def _question(
    library: Library, kept: AddedCardDetails, days: tuple[dt.date, dt.date]
) -> ResolvedCard | None:
    question = library.questions.get(parse_card_id(kept.card)[1])
    if question is None:
        return None
    try:
        card = card_of_question(question, kept.seed)
    except ExpressionError:  # an edit left these numbers without an answer
        return None
    return ResolvedCard(
        card,
        *_page(library, question.topic, question.section),
        question=f"/quiz/{question.topic}/{question.id}?back=/flashcards",
        origin=f"A question you missed {_on(*days)}.",
        sat=kept.sat,
    )


def _term(library: Library, card: str) -> ResolvedCard | None:
    term = library.glossary.get(parse_card_id(card)[1])
    if term is None:
        return None
    slug = topic_of(library, card)
    title, links = _page(library, slug)
    links = (*links, ("Glossary", f"/glossary#{term.anchor}"))
    made = card_of_term(term, slug)
    return ResolvedCard(made, title or "Glossary", links, origin="A term of the glossary.")


def _on(day: dt.date, today: dt.date) -> str:
    if day == today:
        return "today"
    words = f"on {format_date(day)}"
    return words if day.year == today.year else f"{words}, {day.year}"
