"""Alerts of a page: what the exam tests, memory hook, common error, aside."""

import re
from collections.abc import Sequence

from markdown_it.token import Token

from app.drawings.components import LETTERS

HOOK_LABEL = '<p class="small quiet">Memory hook</p>'
"""What stands below a memory hook: words of ours, in our language."""
KINDS = ("IMPORTANT", "TIP", "WARNING", "NOTE", "CAUTION")
_LETTER = f"[{''.join(LETTERS)}]"
_LETTERS = re.compile(f"{_LETTER}(?: {_LETTER})+")


def render_alert_opening(kind: str, inside: Sequence[Token]) -> str:
    """The tags that open an alert; a quote without a kind stays a quote.

    Its first paragraph is given the name of the box, and a hook its colors.
    """
    if kind == "IMPORTANT":
        _lead("What the exam tests.", inside)
        return _message("exam-box", "i-flag")
    if kind in {"WARNING", "CAUTION"}:
        _lead("Common error.", inside)
        return _message("warn", "i-alert")
    if kind == "TIP":
        _color_letters(inside)
        return '<div class="hook">\n'
    if kind == "NOTE":
        return '<aside class="side" aria-label="Aside">\n'
    return "<blockquote>\n"


def closing(kind: str) -> str:
    """The tags that close what `opening` opened."""
    if kind in {"IMPORTANT", "WARNING", "CAUTION"}:
        return "</div></div>\n"
    if kind == "TIP":
        return f"{HOOK_LABEL}</div>\n"
    return "</aside>\n" if kind == "NOTE" else "</blockquote>\n"


def _message(look: str, icon: str) -> str:
    drawing = f'<svg class="i" aria-hidden="true"><use href="#{icon}"/></svg>'
    return f'<div class="msg {look}" role="note">{drawing}<div>\n'


def _lead(words: str, inside: Sequence[Token]) -> None:
    """Name the box in its first paragraph, unless its author begins with bold words."""
    for token in inside:
        if token.type == "inline":
            if not token.content.startswith("**"):
                lead = Token("lead", "", 0, content=f"{words} ")
                token.children = [lead, *(token.children or [])]
            return


def _color_letters(inside: Sequence[Token]) -> None:
    """Mark the component letters of a hook (**W K**), to be written in color."""
    for token in inside:
        children = token.children or []
        for before, word, after in zip(children, children[1:], children[2:], strict=False):
            bold = before.type == "strong_open" and after.type == "strong_close"
            if bold and _LETTERS.fullmatch(word.content):
                before.type = after.type = "nothing"
                word.type = "letters"


def letters(content: str) -> str:
    """The letters of memory components, each in its color."""
    return "".join(f'<b class="{LETTERS[letter].key}">{letter}</b>' for letter in content.split())
