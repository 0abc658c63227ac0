"""docs/authoring.md as a page of the bench, written by the course's own Markdown."""

import dataclasses
import functools
import itertools
from pathlib import Path

from markdown_it.token import Token

from app.content.identity import slug
from app.content.markdown.syntax import closing_index, plain_text, tokens
from app.content.markdown.writer import RenderContext, render_tokens
from app.content.problems import ContentProblem
from app.content.source_file import SourceFile

PATH = Path(__file__).resolve().parents[2] / "docs" / "authoring.md"


@dataclasses.dataclass(frozen=True, slots=True)
class GuideSection:
    """What stands below one heading of the second level."""

    anchor: str
    title: str
    html: str


@dataclasses.dataclass(frozen=True, slots=True)
class AuthoringGuide:
    """The document in parts; the first is what stands before all headings."""

    title: str
    parts: tuple[GuideSection, ...]
    problems: tuple[ContentProblem, ...]


@functools.lru_cache(maxsize=1)
def manual(path: Path = PATH) -> AuthoringGuide:
    """Read the document; raises OSError where it is not installed."""
    sheet = SourceFile(path.name, path.read_text(encoding="utf-8"))
    title, *chapters = _chapters(tokens(sheet.text))
    scope = RenderContext(sheet, page=True)
    parts = tuple(_part(chapter, scope) for chapter in chapters)
    return AuthoringGuide(plain_text(title), parts, tuple(sheet.problems))


def _chapters(found: list[Token]) -> list[list[Token]]:
    """The title, what follows it, and each chapter from its heading on."""
    starts = [i for i, t in enumerate(found) if t.type == "heading_open"]
    starts = [i for i in starts if found[i].tag == "h2" and not found[i].level]
    after = closing_index(found, 0) + 1
    cuts = [0, after, *starts, len(found)]
    return [found[a:b] for a, b in itertools.pairwise(cuts)]


def _part(chapter: list[Token], scope: RenderContext) -> GuideSection:
    if chapter[0].type != "heading_open":
        return GuideSection("", "", render_tokens(chapter, scope).html)
    title = plain_text(chapter[1:2])
    return GuideSection(slug(title), title, render_tokens(chapter, scope).html)
