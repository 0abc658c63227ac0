"""A card of one's own as it is typed: Markdown, with gaps in double braces."""

import dataclasses
import json
import re
from html import escape

from markdown_it import MarkdownIt

from app.cards.added_cards import cleaned
from app.questions.faces import Faces

LONGEST = 4_000
"""So many letters a side may have."""
_GAP = re.compile(r"\{\{(?:c\d+::)?(?P<word>[^{}]+?)(?:::(?P<hint>[^{}:]+))?\}\}")
_MARKED = re.compile("\ue000(\\d+)\ue001")
_markdown = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])


@dataclasses.dataclass(frozen=True, slots=True)
class Typed:
    """The two sides as typed. A front with gaps may do without a back."""

    front: str
    back: str = ""

    @property
    def problems(self) -> list[dict[str, str]]:
        """What is wrong, by field."""
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


def typed_of(source: str, faces: Faces) -> Typed | None:
    """What was typed for a card; None where its sides were made otherwise since."""
    if not source:
        return None
    typed = Typed(*json.loads(source))
    # Those that were kept before the ends were cut have a line end behind them.
    bare = Faces(faces.front.strip(), faces.back.strip())
    return typed if faces_of(typed) == bare else None


def faces_of(typed: Typed) -> Faces:
    """The two sides as clean HTML: gaps are open in front and filled behind."""
    words: list[str] = []
    hints: list[str] = []

    def marked(gap: re.Match[str]) -> str:
        words.append(gap["word"])
        hints.append(gap["hint"] or "…")
        return f"\ue000{len(words) - 1}\ue001"

    bare = typed.front.replace("\ue000", "").replace("\ue001", "")
    asked = _markdown.render(_GAP.sub(marked, bare))
    front = _filled(asked, [f"[{hint}]" for hint in hints])
    back = _markdown.render(typed.back)
    if words:
        back = _filled(asked, words) + back
    # Anki cuts the ends of a field: with them the card would come back as changed.
    return Faces(cleaned(front).strip(), cleaned(back).strip())


def _filled(html: str, words: list[str]) -> str:
    return _MARKED.sub(lambda gap: f"<b>{escape(words[int(gap[1])])}</b>", html)
