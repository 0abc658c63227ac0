"""Cards beside the course's decks: how they are named, and what they rest on.

`q:ID` is a question that was missed, `term:ANCHOR` a term of the glossary, `own:HASH`
a card of a learner's own. Ids of the course hold no colon.
"""

import re

from app.content.live.library import Library
from app.questions import kinds
from app.questions.model import Question

QUESTION = "q"
TERM = "term"
OWN = "own"
PICTURES = "/flashcards/pictures/"
"""Where the pictures on cards of a learner's own are; their names follow."""
_PICTURE = re.compile(rf"{PICTURES}[0-9a-f]{{32}}\.(?:png|jpg|gif|webp|avif)\Z")


def question_card_id(item: str) -> str:
    """The card of a question."""
    return f"{QUESTION}:{item}"


def term_card(anchor: str) -> str:
    """The card of a term."""
    return f"{TERM}:{anchor}"


def is_picture(address: str) -> bool:
    """Whether an address is that of a picture on a card."""
    return _PICTURE.match(address) is not None


def is_added_card(card: str) -> bool:
    """Whether a card is no part of the course's decks."""
    return ":" in card


def parse_card_id(card: str) -> tuple[str, str]:
    """What an added card is of, and its id there; empty kind for the course's own.

    >>> parse_card_id("term:kv-cache")
    ('term', 'kv-cache')
    """
    kind, colon, name = card.partition(":")
    return (kind, name) if colon else ("", card)


def exists_in_course(library: Library, card: str) -> bool:
    """Whether the course still holds what a card rests on; own cards need nothing."""
    kind, name = parse_card_id(card)
    if kind == QUESTION:
        return name in library.questions
    if kind == TERM:
        return name in library.glossary
    return kind == OWN or name in library.cards


def topic_of(library: Library, card: str) -> str:
    """The topic under which an added card is asked, empty for none.

    That of the question; for a term the first page in reading order that uses it.
    """
    kind, name = parse_card_id(card)
    if kind == QUESTION:
        question = library.questions.get(name)
        return question.topic if question else ""
    if kind == TERM:
        ordered = (*library.syllabus.topics, *library.topics)
        found = (s for s in ordered if s in library.topics)
        return next((s for s in found if name in library.topics[s].terms), "")
    return ""


def can_be_card(question: Question) -> bool:
    """Whether a question can be asked as a card."""
    return kinds.type_of(question).as_card
