"""The two faces of a card: what is asked, what stands behind it, and their parts."""

from collections.abc import Iterable
from typing import NamedTuple

from app.content.model import RichText
from app.questions.options import Choice


class CardFaces(NamedTuple):
    """What is asked, and what stands behind it, as HTML that is safe on a page."""

    front: str
    back: str


def items(parts: Iterable[str]) -> str:
    """The parts as items of a list."""
    return "".join(f"<li>{part}</li>" for part in parts)


def paragraphs(parts: Iterable[str]) -> str:
    """The parts below each other."""
    return "".join(f"<div>{part}</div>" for part in parts)


def titled_block(title: str, parts: list[str]) -> str:
    """The parts under a title; nothing without parts."""
    if not parts:
        return ""
    return f'<div class="others"><p><b>{title}</b></p><ul>{items(parts)}</ul></div>'


def with_why(choice: Choice) -> str:
    """An option with what is said to who takes it."""
    return f"{choice.text.html}{why(choice.feedback)}"


def why(feedback: RichText) -> str:
    """A reason, where there is one."""
    return f'<div class="why">{feedback.html}</div>' if feedback.html else ""


def block(text: RichText) -> str:
    """A text below others, where there is one."""
    return f"<div>{text.html}</div>" if text.html else ""
