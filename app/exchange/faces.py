"""A question as the two faces of a card: what is asked, and what is right."""

import html
from collections.abc import Iterable

from app.content.model import (
    Answer,
    Choice,
    Choices,
    Cloze,
    Match,
    Numeric,
    Order,
    Short,
    Variant,
)
from app.exchange.cleaning import portable

_GAP = "[…]"


def question_faces(variant: Variant) -> tuple[str, str]:
    """Front and back of a question, in HTML for other programs."""
    asked, right = _faces(variant.answer)
    front = _block(variant.stem.html) + asked
    back = right + _block(variant.explanation.html)
    return portable(front), portable(back)


def _faces(answer: Answer) -> tuple[str, str]:
    """What is shown beside the stem, and the right answer."""
    match answer:
        case Choices():
            right = tuple(o for o in answer.options if o.right)
            return _list(answer.options), _list(right)
        case Order():
            steps = {c.key: c for c in (*answer.steps, *answer.distractors)}
            shown = tuple(steps[key] for key in answer.shown) or tuple(steps.values())
            return _list(shown), _list(answer.steps, "ol")
        case Match():
            return _match(answer)
        case Cloze():
            return _cloze(answer)
    return "", _block(_words(answer))


def _words(answer: Answer) -> str:
    """What may be typed; nothing for a plan, which only the app can judge."""
    words: Iterable[str] = ()
    if isinstance(answer, Short):
        words = (o.answer for o in answer.options if o.right)
    elif isinstance(answer, Numeric):
        ranges = (o.range for o in answer.options if o.right)
        words = (f"{r.centre:g} {r.unit}".strip() for r in ranges if r is not None)
    return html.escape(" / ".join(words))


def _match(answer: Match) -> tuple[str, str]:
    pairs = tuple(p for p in answer.pairs if p.left.html)
    lefts = "".join(f"<li>{p.left.html}</li>" for p in pairs)
    rights = dict.fromkeys(sorted(p.right.html for p in answer.pairs))
    offered = "".join(f"<li>{right}</li>" for right in rights)
    rows = "".join(
        f"<tr><td>{p.left.html}</td><td>{p.right.html}</td></tr>" for p in pairs
    )
    return f"<ul>{lefts}</ul><ul>{offered}</ul>", f"<table>{rows}</table>"


def _cloze(answer: Cloze) -> tuple[str, str]:
    front = back = answer.pieces[0].html
    for blank, piece in zip(answer.blanks, answer.pieces[1:], strict=True):
        filled = html.escape(blank.answers[0])
        front += f"{_GAP}{piece.html}"
        back += f"<strong>{filled}</strong>{piece.html}"
    return _block(front), _block(back)


def _list(choices: tuple[Choice, ...], tag: str = "ul") -> str:
    rows = "".join(f"<li>{choice.text.html}</li>" for choice in choices)
    return f"<{tag}>{rows}</{tag}>"


def _block(inside: str) -> str:
    """Inline HTML in a block of its own; blocks stay as they are."""
    return f"<div>{inside}</div>" if inside else ""
