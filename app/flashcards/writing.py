"""A card of one's own as it is typed: Markdown, with gaps in double braces."""

import dataclasses
import json
import re
from html import escape
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.rules_block import StateBlock, table

from app.cards.added_cards import LONGEST_FACE, cleaned
from app.questions.faces import CardFaces

LONGEST = 4_000
"""So many letters a side may have."""
MOST_CELLS = 500
"""Table cells that a side may have, with those that a short row leaves out."""
_GAP = re.compile(r"\{\{(?:c\d+::)?(?P<word>[^{}]+?)(?:::(?P<hint>[^{}:]+))?\}\}")
_MARKED = re.compile("\ue000(\\d+)\ue001")
Problems = list[dict[str, str]]


def _count_cells(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """The table rule of markdown-it, with the cells counted in `state.env`.

    The rule fills short rows: 4,000 characters can make 65,536 cells, which take
    seconds. So it is given no more rows than the limit needs to be passed by one.
    """
    if not table(state, start, end, True):
        return False
    if silent:
        return True
    begin = state.bMarks[start + 1] + state.tShift[start + 1]
    rule = state.src[begin : state.eMarks[start + 1]]
    columns = sum(bool(mark.strip()) for mark in rule.split("|"))
    left = max(0, MOST_CELLS - state.env["cells"])
    table(state, start, min(end, start + 2 + left // columns), False)
    if (state.line - start - 1) * columns > left:
        while state.line < end and not state.isEmpty(state.line):
            state.line += 1  # counted for the message, and not made
    state.env["cells"] += (state.line - start - 1) * columns
    return True


_markdown = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])
_markdown.block.ruler.at("table", _count_cells, {"alt": ["paragraph", "reference"]})


@dataclasses.dataclass(frozen=True, slots=True)
class OwnCardDraft:
    """The two sides as typed. A front with gaps may do without a back."""

    front: str
    back: str = ""

    @property
    def problems(self) -> Problems:
        """What is wrong, by field, as far as it shows before it is rendered."""
        found = []
        for field, text in (("front", self.front), ("back", self.back)):
            if len(text) > LONGEST:
                said = f"At most {LONGEST:,} characters; this has {len(text):,}."
                found.append({"field": field, "message": said})
        if not self.front.strip():
            found.append({"field": "front", "message": "Write what the card asks."})
        elif not self.back.strip() and not _GAP.search(self.front):
            said = "Write the answer, or hide a word of the front in {{double braces}}."
            found.append({"field": "back", "message": said})
        return found

    @property
    def kept(self) -> str:
        """Both sides as one text, from which `typed_of` makes them again."""
        return json.dumps([self.front, self.back], ensure_ascii=False)


@dataclasses.dataclass(frozen=True, slots=True)
class RenderedCard:
    """A card as typed, its two sides as clean HTML, and what is wrong, by field."""

    typed: OwnCardDraft
    faces: CardFaces
    problems: Problems

    @property
    def size(self) -> int:
        """Bytes of the words that are kept."""
        words = (self.faces.front, self.faces.back, self.typed.kept)
        return sum(len(text.encode()) for text in words)


def render_card(typed: OwnCardDraft) -> RenderedCard:
    """Render both sides: gaps are open in front and filled behind.

    Takes up to a tenth of a second, so it belongs before a transaction that writes.
    """
    if typed.problems:
        return RenderedCard(typed, CardFaces("", ""), typed.problems)
    words: list[str] = []
    hints: list[str] = []

    def marked(gap: re.Match[str]) -> str:
        words.append(gap["word"])
        hints.append(gap["hint"] or "…")
        return f"\ue000{len(words) - 1}\ue001"

    bare = typed.front.replace("\ue000", "").replace("\ue001", "")
    asked, cells = _render(_GAP.sub(marked, bare))
    back, back_cells = _render(typed.back)
    problems = [*_refuse_cells("front", cells), *_refuse_cells("back", back_cells)]
    if problems:
        return RenderedCard(typed, CardFaces("", ""), problems)
    front = _filled(asked, [f"[{hint}]" for hint in hints])
    if words:
        back = _filled(asked, words) + back
    # Anki cuts the ends of a field: with them the card would come back as changed.
    faces = CardFaces(cleaned(front).strip(), cleaned(back).strip())
    return RenderedCard(typed, faces, _refuse_length(faces))


def _render(text: str) -> tuple[str, int]:
    """A text as HTML, and how many table cells it has."""
    env: dict[str, Any] = {"cells": 0}
    return _markdown.render(text, env), env["cells"]


def _refuse_cells(field: str, cells: int) -> Problems:
    if cells <= MOST_CELLS:
        return []
    said = (
        f"The {field} has {cells:,} table cells, empty ones included, and at most "
        f"{MOST_CELLS} are taken. Write fewer rows or columns."
    )
    return [{"field": field, "message": said}]


def _refuse_length(faces: CardFaces) -> Problems:
    return [
        {
            "field": field,
            "message": f"The {field} has {len(face):,} characters once it is made "
            f"into HTML, and at most {LONGEST_FACE:,} are taken. Write less, or split "
            "the card.",
        }
        for field, face in faces._asdict().items()
        if len(face) > LONGEST_FACE
    ]


def typed_of(source: str, faces: CardFaces) -> OwnCardDraft | None:
    """What was typed for a card; None where its sides were made otherwise since.

    One that was kept before there was a limit to its size is given back as it is.
    """
    if not source:
        return None
    typed = OwnCardDraft(*json.loads(source))
    rendered = render_card(typed)
    # Those that were kept before the ends were cut have a line end behind them.
    bare = CardFaces(faces.front.strip(), faces.back.strip())
    return typed if rendered.problems or rendered.faces == bare else None


def _filled(html: str, words: list[str]) -> str:
    return _MARKED.sub(lambda gap: f"<b>{escape(words[int(gap[1])])}</b>", html)
