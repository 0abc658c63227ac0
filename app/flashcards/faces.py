"""The two faces of an added card: of a question, of a term, of one's own."""

from collections.abc import Callable, Iterable
from html import escape, unescape
from typing import Any, NamedTuple

import nh3

from app.content.added import OWN, question_card, term_card
from app.content.markdown.math import in_html
from app.content.model import (
    Answer,
    Card,
    Choice,
    Choices,
    Cloze,
    Design,
    Match,
    Numeric,
    Order,
    Place,
    Question,
    Range,
    Short,
    Term,
    Text,
    Variant,
)
from app.content.variants import draw
from app.estimator.units import NBSP, UNITS, format_number

_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_NO_HINT = '<span class="sr">gap</span>'
_TAGS = {"a", "b", "strong", "i", "em", "s", "del", "u", "sub", "sup", "kbd", "code"}
_TAGS |= {"p", "div", "span", "br", "hr", "pre", "blockquote", "q", "ul", "ol", "li"}
_TAGS |= {"table", "thead", "tbody", "tr", "th", "td", "dl", "dt", "dd"}


class Faces(NamedTuple):
    """What is asked, and what stands behind it, as HTML that is safe on a page."""

    front: str
    back: str


def card_of_question(question: Question, seed: int) -> Card:
    """A question as a card: the stem with its options, then what is right and why.

    The numbers and the order are those of `seed`; the wording is that of now.
    """
    variant = draw(question, seed)
    asked, told = _faces(variant.answer)
    return Card(
        id=question_card(question.id),
        topic=question.topic,
        front=Text(_block(variant.stem) + _below(asked), variant.stem.plain),
        back=Text(told + _explained(variant), variant.explanation.plain),
        objectives=question.objectives,
        place=question.place,
        revision=question.revision,
        sources=question.sources,
        tags=question.tags,
    )


def card_of_term(term: Term, topic: str) -> Card:
    """A term of the glossary as a card: its name, then its meaning."""
    return Card(
        id=term_card(term.anchor),
        topic=topic,
        front=Text(escape(term.name), term.name),
        back=term.meaning,
        objectives=(),
        place=term.place,
        revision="",
    )


def card_of_own(card: str, faces: Faces) -> Card:
    """A card that a learner brought along; its HTML is cleaned once more here."""
    front, back = cleaned(faces.front), cleaned(faces.back)
    return Card(
        id=card,
        topic="",
        front=Text(in_html(front), _plain(front)),
        back=Text(in_html(back), _plain(back)),
        objectives=(),
        place=Place(OWN, 0),
        revision="",
    )


def cleaned(html: str) -> str:
    """HTML of anybody's, reduced to text with its structure and its links."""
    return nh3.clean(
        html,
        tags=_TAGS,
        attributes={"a": {"href"}},
        url_schemes={"http", "https", "mailto"},
        link_rel="noopener noreferrer",
    )


def _plain(html: str) -> str:
    # Neighbouring blocks must not run into one word.
    words = nh3.clean(html.replace("<", " <"), tags=set())
    return " ".join(unescape(words).split())


def _faces(answer: Answer) -> Faces:
    """What a question shows below its stem, and its right answer."""
    return _RULES[type(answer)](answer)


def _choices(answer: Choices) -> Faces:
    named = [
        (_LETTERS[place % len(_LETTERS)], option)
        for place, option in enumerate(answer.options)
    ]
    several = answer.kind == "multiple"
    asked = f'<ol class="letters">{_items(o.text.html for _, o in named)}</ol>'
    right = [f"<b>{n}.</b> {_with_why(o)}" for n, o in named if o.right]
    others = [
        f"<b>{n}.</b> {o.feedback.html}"
        for n, o in named
        if not o.right and o.feedback.html
    ]
    return Faces(
        asked + ("<p>More than one may be right.</p>" if several else ""),
        _told(right) + _aside("Why not the others", others),
    )


def _order(answer: Order) -> Faces:
    items = {item.key: item for item in (*answer.steps, *answer.distractors)}
    shown = [items[key] for key in answer.shown] or list(items.values())
    note = "Put these in order."
    if answer.distractors:
        note = "Put these in order. Some belong nowhere."
    return Faces(
        f"<p>{note}</p><ul>{_items(item.text.html for item in shown)}</ul>",
        f"<ol>{_items(_with_why(step) for step in answer.steps)}</ol>"
        + _aside("No step", [_with_why(item) for item in answer.distractors]),
    )


def _match(answer: Match) -> Faces:
    rows = {pair.key: pair for pair in answer.pairs if pair.left.html}
    lefts = [rows[key] for key in answer.shown_left] or list(rows.values())
    cells = {pair.answer: pair.right for pair in answer.pairs if pair.right.html}
    rights = [cells[key] for key in answer.shown_right] or list(cells.values())
    heads = (escape(answer.left_title), escape(answer.right_title))
    asked = _list(heads[0], [p.left for p in lefts]) + _list(heads[1], rights)
    told = "".join(
        f'<tr><th scope="row">{pair.left.html}</th>'
        f"<td>{pair.right.html}{_why(pair.why)}</td></tr>"
        for pair in lefts
    )
    head = "".join(f'<th scope="col">{words}</th>' for words in heads)
    return Faces(
        asked,
        f'<table class="t"><thead><tr>{head}</tr></thead><tbody>{told}</tbody></table>',
    )


def _cloze(answer: Cloze) -> Faces:
    gaps = [
        f'<span class="blank">{escape(blank.hint) or _NO_HINT}</span>'
        for blank in answer.blanks
    ]
    words = [f"<b>{escape(' or '.join(blank.answers))}</b>" for blank in answer.blanks]
    return Faces(_filled(answer, gaps), _filled(answer, words))


def _numeric(answer: Numeric) -> Faces:
    right = [o.range for o in answer.options if o.right and o.range]
    unit = right[0].unit if right else ""
    foreseen = [
        f"<b>{_shown(o.range)}</b> {o.feedback.html}"
        for o in answer.options
        if not o.right and o.range and o.feedback.html
    ]
    return Faces(
        f"<p>A number in {escape(unit)}.</p>" if unit else "<p>A number.</p>",
        _told([f"<b>{_shown(found)}</b>" for found in right[:1]])
        + _aside("Not right", foreseen),
    )


def _short(answer: Short) -> Faces:
    right = [escape(o.answer) for o in answer.options if o.right]
    others = [
        f"<b>{escape(o.answer)}</b> {o.feedback.html}"
        for o in answer.options
        if not o.right and o.feedback.html
    ]
    told = _told([f"<b>{' or '.join(right)}</b>"])
    return Faces("<p>A word or a short phrase.</p>", told + _aside("Not right", others))


def _explained(variant: Variant) -> str:
    words = _block(variant.explanation)
    if variant.mistake.html:
        words += f"<div><b>Common mistake.</b> {variant.mistake.html}</div>"
    return words


def _shown(found: Range) -> str:
    number = format_number(found.centre / UNITS.get(found.unit, ("", 1.0))[1], 6)
    return escape(f"{number}{NBSP}{found.unit}" if found.unit else number)


def _filled(answer: Cloze, gaps: list[str]) -> str:
    pieces = [piece.html for piece in answer.pieces]
    words = [a + b for a, b in zip(pieces, [*gaps, ""], strict=True)]
    return f'<div class="cloze">{"".join(words)}</div>'


def _list(title: str, texts: Iterable[Text]) -> str:
    head = f"<p><b>{title}</b></p>" if title else ""
    return f"{head}<ul>{_items(text.html for text in texts)}</ul>"


def _aside(title: str, parts: list[str]) -> str:
    if not parts:
        return ""
    return f'<div class="others"><p><b>{title}</b></p><ul>{_items(parts)}</ul></div>'


def _items(parts: Iterable[str]) -> str:
    return "".join(f"<li>{part}</li>" for part in parts)


def _told(parts: Iterable[str]) -> str:
    return "".join(f"<div>{part}</div>" for part in parts)


def _with_why(choice: Choice) -> str:
    return f"{choice.text.html}{_why(choice.feedback)}"


def _why(feedback: Text) -> str:
    return f'<div class="why">{feedback.html}</div>' if feedback.html else ""


def _below(asked: str) -> str:
    return f'<div class="given">{asked}</div>' if asked else ""


def _block(text: Text) -> str:
    return f"<div>{text.html}</div>" if text.html else ""


_RULES: dict[type, Callable[[Any], Faces]] = {
    Choices: _choices,
    Numeric: _numeric,
    Short: _short,
    Order: _order,
    Match: _match,
    Cloze: _cloze,
    Design: lambda _: Faces("", ""),
}
