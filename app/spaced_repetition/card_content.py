"""Cards with their texts, pages and questions, as a page shows them."""

import dataclasses
import datetime as dt
from collections.abc import Collection
from typing import NamedTuple

from app.accounts.current_learner import RequestContext
from app.content.course import Course
from app.markup.expressions import ExpressionError
from app.markup.model import Flashcard, GlossaryTerm
from app.questions.model import Question
from app.questions.question_type import CardFacesHtml
from app.spaced_repetition.added_card_ids_and_faces import (
    OWN,
    QUESTION,
    TERM,
    build_own_card,
    build_question_card,
    build_term_card,
    find_topic_of_added_card,
    is_added_card_id,
    parse_card_id,
)
from app.spaced_repetition.added_cards import (
    AddedCardContent,
    load_added_card_contents,
    load_own_texts_of_course_cards,
)
from app.spaced_repetition.review_log import CardRecord
from app.spaced_repetition.scheduler import compute_retrievability_on_day
from app.web.formatting import format_date_without_year


class CardLink(NamedTuple):
    text: str
    url: str


@dataclasses.dataclass(frozen=True, slots=True)
class CardWithOrigin:
    """A card with its related data.

    `links` lead to where it is explained; they may name the answer. `question_url` is the URL of the
    question it was made from, and `origin_sentence` a sentence about where an added card came from.
    It `is_hidden_by_running_exam` if its question is in a mock exam in progress.
    """

    card: Flashcard
    links: tuple[CardLink, ...] = ()
    question_url: str = ""
    origin_sentence: str = ""
    is_hidden_by_running_exam: bool = False


def _list_page_links(course: Course, slug: str, anchor: str = "") -> tuple[CardLink, ...]:
    """Return the link to a page, none if the course has no such page."""
    topic = course.topics.get(slug)
    if topic is None:
        return ()
    address = f"/concepts/{slug}#{anchor}" if anchor else f"/concepts/{slug}"
    return (CardLink(f"Read: {topic.title}", address),)


def _find_course_card_with_origin(
    course: Course, card: str, own_text: CardFacesHtml | None
) -> CardWithOrigin | None:
    """Return a course card, with the learner's text if they edited it; None if it left the course."""
    known = course.cards.get(card)
    if known is None:
        return None
    links = _list_page_links(course, known.topic)
    if own_text is None:
        return CardWithOrigin(known, links)
    own = build_own_card(card, own_text)
    # The sources are those of the author's text.
    edited = dataclasses.replace(known, front=own.front, back=own.back, sources=())
    return CardWithOrigin(edited, links, origin_sentence="You edited this card.")


def _find_added_card_with_origin(
    ctx: RequestContext, details: AddedCardContent
) -> CardWithOrigin | None:
    """Return the added card with its current text; None if its source left the course."""
    kind, name = parse_card_id(details.card_id)
    if kind == QUESTION:
        return _find_question_card_with_origin(ctx, details, ctx.course.questions.get(name))
    if kind == TERM:
        return _find_term_card_with_origin(
            ctx.course, details.card_id, ctx.course.glossary.get(name)
        )
    if kind == OWN and details.own_faces is not None:
        card = build_own_card(details.card_id, details.own_faces)
        return CardWithOrigin(card, origin_sentence="A card of your own.")
    return None


def _find_question_card_with_origin(
    ctx: RequestContext, details: AddedCardContent, question: Question | None
) -> CardWithOrigin | None:
    if question is None:
        return None
    try:
        card = build_question_card(question, details.question_seed)
    except ExpressionError:  # after an edit, these numbers have no answer
        return None
    missed_on = _format_day_in_sentence(
        ctx.learner.study_day(details.added_or_missed_at), ctx.study_day
    )
    return CardWithOrigin(
        card,
        _list_page_links(ctx.course, question.topic, question.section),
        question_url=f"/quiz/{question.topic}/{question.id}",
        origin_sentence=f"A question you missed {missed_on}.",
        is_hidden_by_running_exam=details.is_in_running_exam,
    )


def _find_term_card_with_origin(
    course: Course, card: str, term: GlossaryTerm | None
) -> CardWithOrigin | None:
    if term is None:
        return None
    slug = find_topic_of_added_card(course, card)
    links = (*_list_page_links(course, slug), CardLink("Glossary", f"/glossary#{term.anchor}"))
    return CardWithOrigin(
        build_term_card(term, slug), links, origin_sentence="A term of the glossary."
    )


def _format_day_in_sentence(day: dt.date, today: dt.date) -> str:
    if day == today:
        return "today"
    words = f"on {format_date_without_year(day)}"
    return words if day.year == today.year else f"{words}, {day.year}"


def describe_origin_and_recall(record: CardRecord, day: dt.date, origin: str) -> str:
    """Return where the card comes from, when it was last seen, and its retrievability."""
    card_state = record.card_state
    if card_state is None:
        return f"{origin or 'A new card.'} Say the answer aloud or write it down first."
    if card_state.state != "review":
        now = card_state.last_day >= day
        seen = "You are still learning this card."
        origin = origin or (seen if now else "You have seen this card before.")
        return f"{origin} Say the answer aloud first."
    days = max(0, (day - card_state.last_day).days)
    note = f"{origin} Say the answer aloud or write it down first. Last seen ".lstrip()
    if not days:
        return f"{note}today."
    ago = "yesterday" if days == 1 else f"{days} days ago"
    chance = round(compute_retrievability_on_day(card_state, day) * 100)
    return f"{note}{ago}. Chance that you still know it: about {chance}%."


def is_card_visible(ctx: RequestContext, card: str) -> bool:
    """Return whether a card exists and is not part of a mock exam in progress."""
    resolved = load_cards_with_origin(ctx, [card]).get(card)
    return resolved is not None and not resolved.is_hidden_by_running_exam


def load_cards_with_origin(
    ctx: RequestContext, cards: Collection[str]
) -> dict[str, CardWithOrigin]:
    """Return those of `cards` that exist, each queried once per request.

    Added ones take one query, and course cards one more if the learner edited any.
    """
    new = [card for card in cards if card not in ctx.lookup_cache]
    added_cards = [card for card in new if is_added_card_id(card)]
    details = load_added_card_contents(ctx.db, ctx.learner.id, added_cards, ctx.now)
    course_cards = [c for c in new if c in ctx.course.cards and ctx.learner.has_edited_cards]
    own_texts = load_own_texts_of_course_cards(ctx.db, ctx.learner.id, course_cards)
    for card in new:
        if not is_added_card_id(card):
            resolved = _find_course_card_with_origin(ctx.course, card, own_texts.get(card))
        else:
            resolved = _find_added_card_with_origin(ctx, details[card]) if card in details else None
        if resolved is not None:
            ctx.lookup_cache[card] = resolved
    return {card: ctx.lookup_cache[card] for card in cards if card in ctx.lookup_cache}
