"""Card ids and faces of added cards.

`q:ID` is a missed question, `term:ANCHOR` a glossary term, `own:HASH` a learner's own card. Ids of
course cards contain no colon.
"""

import re
from html import escape, unescape
from typing import NamedTuple

import nh3

from app.content.course import Course
from app.markup.mathml import convert_html_formulas_to_mathml
from app.markup.model import Flashcard, GlossaryTerm, RichText, SourceLocation
from app.questions import types
from app.questions.grading import render_question_card_faces
from app.questions.model import Question, draw_variant
from app.questions.question_type import CardFacesHtml

QUESTION = "q"
TERM = "term"
OWN = "own"
PICTURES = "/flashcards/pictures/"
"""URL prefix of the pictures on own cards; the picture's name follows."""
_PICTURE_PATH = re.compile(rf"{PICTURES}[0-9a-f]{{32}}\.(?:png|jpg|gif|webp|avif)\Z")


def build_question_card_id(item: str) -> str:
    return f"{QUESTION}:{item}"


def build_term_card_id(anchor: str) -> str:
    return f"{TERM}:{anchor}"


def is_own_picture_url(address: str) -> bool:
    return _PICTURE_PATH.match(address) is not None


def is_added_card_id(card: str) -> bool:
    """Return whether a card is an added card, not part of the course's decks."""
    return ":" in card


def is_own_card_id(card: str) -> bool:
    return card.startswith(f"{OWN}:")


class CardId(NamedTuple):
    """The kind of an added card and its name there; the kind is empty for a course card."""

    source_kind: str
    source_id: str


def parse_card_id(card: str) -> CardId:
    """Return the parts of a card id.

    >>> parse_card_id("term:kv-cache")
    CardId(source_kind='term', source_id='kv-cache')
    """
    kind, colon, name = card.partition(":")
    return CardId(kind, name) if colon else CardId("", card)


def is_source_in_course(course: Course, card: str) -> bool:
    """Return whether the course still has the source of a card; own cards need none."""
    kind, name = parse_card_id(card)
    if kind == QUESTION:
        return name in course.questions
    if kind == TERM:
        return name in course.glossary
    return kind == OWN or name in course.cards


def find_topic_of_added_card(course: Course, card: str) -> str:
    """Return the topic of an added card, empty if it has none.

    For a question it is the question's topic, for a term the first page in reading order that uses
    it.
    """
    kind, name = parse_card_id(card)
    if kind == QUESTION:
        question = course.questions.get(name)
        return question.topic if question else ""
    if kind == TERM:
        ordered = (*course.syllabus.topics, *course.topics)
        slugs = (s for s in ordered if s in course.topics)
        return next((s for s in slugs if name in course.topics[s].terms), "")
    return ""


def is_usable_as_card(question: Question) -> bool:
    return types.question_type_of(question).is_allowed_as_card


LONGEST_FACE = 20_000
"""Maximum length in characters of one side of an own card, as HTML."""
_CUT_FACE_NOTE = (
    f"<p><em>This side has more than {LONGEST_FACE:,} characters. The rest is not "
    "shown here; “Download my data” in Settings has it.</em></p>"
)
_NO_HINT = '<span class="sr">gap</span>'
_ALLOWED_TAGS = {"a", "b", "strong", "i", "em", "s", "del", "u", "sub", "sup", "kbd", "code"}
_ALLOWED_TAGS |= {"p", "div", "span", "br", "hr", "pre", "blockquote", "q", "ul", "ol", "li"}
_ALLOWED_TAGS |= {"table", "thead", "tbody", "tr", "th", "td", "dl", "dt", "dd", "img"}
_ALLOWED_TAGS |= {"math", "mrow", "mi", "mn", "mo", "mtext", "mspace", "msup", "msub", "mfrac"}
_ALLOWED_TAGS |= {"msubsup", "msqrt", "mroot", "mover", "munder", "munderover", "mtable"}
_ALLOWED_TAGS |= {"mtr", "mtd", "mstyle", "mpadded", "mphantom", "menclose"}


def build_question_card(question: Question, seed: int) -> Flashcard:
    """Return a question as a card: stem and options in front, key and explanation on the back.

    `seed` sets the numbers and the order. The text is that of the current revision.
    """
    variant = draw_variant(question, seed)
    faces = render_question_card_faces(
        variant, lambda hint: f'<span class="blank">{hint or _NO_HINT}</span>'
    )
    return Flashcard(
        id=build_question_card_id(question.id),
        topic=question.topic,
        front=RichText(faces.front, variant.stem.plain),
        back=RichText(faces.back, variant.explanation.plain),
        objectives=question.objectives,
        place=question.place,
        revision=question.revision,
        sources=question.sources,
        tags=question.tags,
    )


def build_term_card(term: GlossaryTerm, topic: str) -> Flashcard:
    return Flashcard(
        id=build_term_card_id(term.anchor),
        topic=topic,
        front=RichText(escape(term.name), term.name),
        back=term.meaning,
        objectives=(),
        place=term.place,
        revision="",
    )


def build_own_card(card: str, faces: CardFacesHtml) -> Flashcard:
    """Return a learner's own card. Its HTML is sanitized again here.

    A side saved before the length limit existed is cut.
    """
    front, back = (
        sanitize_card_html(
            face if len(face) <= LONGEST_FACE else face[:LONGEST_FACE] + _CUT_FACE_NOTE
        )
        for face in faces
    )
    return Flashcard(
        id=card,
        topic="",
        front=RichText(convert_html_formulas_to_mathml(front), _plain_text_or_picture_label(front)),
        back=RichText(convert_html_formulas_to_mathml(back), _plain_text_or_picture_label(back)),
        objectives=(),
        place=SourceLocation(OWN, 0),
        revision="",
    )


def sanitize_card_html(html: str) -> str:
    """Sanitize untrusted HTML to text with its structure, links and pictures."""
    return nh3.clean(
        html,
        tags=_ALLOWED_TAGS,
        attributes={"a": {"href"}, "img": {"src", "alt"}, "math": {"display"}},
        attribute_filter=_drop_foreign_picture_url,
        url_schemes={"http", "https", "mailto"},
        link_rel="noopener noreferrer",
    )


def _drop_foreign_picture_url(tag: str, name: str, value: str) -> str | None:
    """Return the value of an attribute, or None for a picture URL that is not ours."""
    return None if (tag, name) == ("img", "src") and not is_own_picture_url(value) else value


def _plain_text_or_picture_label(html: str) -> str:
    # Add a space before each tag, so that text of neighboring blocks does not run together.
    words = nh3.clean(html.replace("<", " <"), tags=set())
    plain = " ".join(unescape(words).split())
    return plain or ("Picture" if "<img" in html else "")
