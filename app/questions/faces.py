"""A question as the two faces of a card: what is asked, and what is right and why.

The desk shows them, and a package for another program carries them along.
"""

from collections.abc import Callable, Iterable
from html import escape
from typing import Any, NamedTuple

from app.content.model import Text
from app.estimator.units import NBSP, UNITS, format_number
from app.questions.model import (
    Answer,
    Choice,
    Choices,
    Cloze,
    Design,
    Match,
    Numeric,
    Order,
    Range,
    Short,
    Variant,
)

Gap = Callable[[str], str]
"""How a gap is drawn; it gets the hint as HTML, which may be empty."""
_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


class Faces(NamedTuple):
    """What is asked, and what stands behind it, as HTML that is safe on a page."""

    front: str
    back: str


def question_faces(variant: Variant, gap: Gap) -> Faces:
    """The stem with its options, then the right answer and the explanation."""
    asked, told = _faces(variant.answer, gap)
    return Faces(_block(variant.stem) + _below(asked), told + _explained(variant))


def _faces(answer: Answer, gap: Gap) -> Faces:
    """What a question shows below its stem, and its right answer."""
    if isinstance(answer, Cloze):
        return _cloze(answer, gap)
    return _RULES[type(answer)](answer)


def _choices(answer: Choices) -> Faces:
    named = [
        (_LETTERS[place % len(_LETTERS)], option)
        for place, option in enumerate(answer.options)
    ]
    several = answer.kind == "multiple"
    asked = f'<ol class="letters" type="A">{_items(o.text.html for _, o in named)}</ol>'
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


def _cloze(answer: Cloze, gap: Gap) -> Faces:
    gaps = [gap(escape(blank.hint)) for blank in answer.blanks]
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
    Design: lambda _: Faces("", ""),
}
