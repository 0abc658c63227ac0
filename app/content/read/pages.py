"""A concept page: sections of finished HTML, calculators and embedded questions."""

import dataclasses
import re
from collections.abc import Mapping, Sequence
from typing import Protocol

from markdown_it.token import Token

from app.content import strict_yaml
from app.content.identity import lies_within
from app.content.limits import price_of
from app.content.markdown.syntax import closing_index, first_line, last_line, plain_text
from app.content.markdown.writer import RenderContext, anchor, render_tokens
from app.content.model import (
    CalculatorBlock,
    Flashcard,
    HtmlBlock,
    ImageBlock,
    Piece,
    QuestionBlock,
    RichText,
    Section,
)
from app.content.numbers.estimates import FigureError, compute
from app.content.read.lost_answers import answers_in
from app.content.read.regions import Region
from app.content.strict_yaml import YamlText
from app.questions.model import Question
from app.questions.written import ItemDraft

_BLOCK = re.compile(r"<(?:p|ul|ol|div|figure|h[1-6]|aside|pre|blockquote)\b")
_WORDS_PER_MINUTE = 200
_QUESTION_MINUTES = 1.0
_CALCULATOR_MINUTES = 1.5


class GlossaryLinker(Protocol):
    """Links the first mention of each glossary term in some HTML."""

    def link(self, html: str) -> str:
        """The HTML with its first mentions linked."""


@dataclasses.dataclass(slots=True)
class _OpenSection:
    """A section while its pieces are collected."""

    anchor: str
    title: str
    number: int
    pieces: list[Piece] = dataclasses.field(default_factory=list)
    words: list[str] = dataclasses.field(default_factory=list)
    minutes: float = 0.0


@dataclasses.dataclass(slots=True)
class PageLayout:
    """The sections of a page, the notes of its footnotes and its alerts."""

    sections: tuple[Section, ...]
    notes: dict[str, RichText]
    alerts: tuple[tuple[str, int], ...]


def lay_out_page(
    regions: Sequence[Region],
    items: Mapping[tuple[str, int], Question | Flashcard],
    scope: RenderContext,
    linker: GlossaryLinker,
) -> PageLayout:
    """Lay out a page; broken items are left out, blocks that fail are reported."""
    scope.sheet.item = ""
    desk = _PageBuilder(scope, linker)
    for region in regions:
        if isinstance(region, ItemDraft):
            desk.embed(items.get((region.comment.id, region.line)))
        else:
            desk.lay(_shown(region.tokens))
    desk.close()
    return PageLayout(tuple(desk.sections), desk.notes, tuple(desk.alerts))


def _shown(prose: list[Token]) -> list[Token]:
    """The prose without answers whose question cannot be told."""
    hidden = {index for block in answers_in(prose) for index in block}
    return [token for index, token in enumerate(prose) if index not in hidden]


class _PageBuilder:
    """Where sections are put together, in the order of the file."""

    def __init__(self, scope: RenderContext, linker: GlossaryLinker) -> None:
        self.scope = scope
        self.linker = linker
        self.sections: list[Section] = []
        self.notes: dict[str, RichText] = {}
        self.alerts: list[tuple[str, int]] = []
        self.level = 1
        self.numbered = 0
        self.open = _OpenSection("", "", 0)

    def close(self) -> None:
        """Finish the section at hand, unless it is empty."""
        now = self.open
        if now.pieces or now.anchor:
            words = "\n".join(now.words)
            minutes = now.minutes + len(words.split()) / _WORDS_PER_MINUTE
            minutes = round(minutes, 2)
            self.sections.append(
                Section(
                    now.anchor,
                    now.title,
                    tuple(now.pieces),
                    words,
                    minutes,
                    now.number,
                )
            )

    def embed(self, item: Question | Flashcard | None) -> None:
        """Put a question, or a card to be turned over, where it stands."""
        if isinstance(item, Question):
            self.open.pieces.append(QuestionBlock(item.id))
            self.open.minutes += _QUESTION_MINUTES
        elif isinstance(item, Flashcard):
            html = f"<details><summary>{item.front.html}</summary>{_as_block(item.back)}</details>"
            self.open.pieces.append(HtmlBlock(html))
            self.open.words.append(f"{item.front.plain} {item.back.plain}")

    def lay(self, tokens: list[Token]) -> None:
        """Lay prose: headings open sections, calculators stand by themselves."""
        at = 0
        start = 0
        while at < len(tokens):
            end = closing_index(tokens, at) + 1
            block = tokens[at:end]
            if self._interrupts(tokens[at]) or picture_in(block):
                self._prose(tokens[start:at])
                self._special(block)
                start = end
            at = end
        self._prose(tokens[start:])

    def _interrupts(self, token: Token) -> bool:
        if token.type == "heading_open":
            self._check_level(token)
            return token.tag in {"h1", "h2"}
        if token.type == "note_open":
            return True
        return token.type == "fence" and token.info.split(" ")[0] == "calculator"

    def _check_level(self, token: Token) -> None:
        level = int(token.tag[1])
        line = first_line(token)
        if level == 1:
            hint = "The title comes from the front matter; begin with ##."
            message = "A page has no heading of the first level."
            self.scope.sheet.report("W64", line, 1, message, hint)
        elif level > self.level + 1:
            hint = f"Write {'#' * (self.level + 1)} here."
            message = f"The heading skips from level {self.level} to {level}."
            self.scope.sheet.report("W64", line, 1, message, hint)
        self.level = level

    def _special(self, block: list[Token]) -> None:
        if block[0].type == "heading_open":
            self.close()
            self.numbered += 1
            address = anchor(block[1], self.scope)
            title = plain_text(block[1:2])
            if not title:
                message, hint = (
                    "The heading has no words.",
                    "Write its title behind it.",
                )
                self.scope.sheet.report("W64", first_line(block[0]), 1, message, hint)
            self.open = _OpenSection(address, title, self.numbered)
            self.scope.section = title
            self.scope.worked = False
        elif block[0].type == "note_open":
            self._note(block)
        elif image := picture_in(block):
            self._picture(image, block)
        else:
            self._calculator(block[0])

    def _note(self, block: list[Token]) -> None:
        key = block[0].content
        if key in self.notes:
            message = f"“[^{key}]:” stands on this page a second time."
            hint = "Keep one of the two; the text may cite it more than once."
            self.scope.sheet.report("E11", first_line(block[0]), 1, message, hint)
        self.notes[key] = render_tokens(block[1:2], self.scope)

    def _picture(self, image: Token, block: list[Token]) -> None:
        """Note an SVG file: what it turns out to be decides how it is shown."""
        text = render_tokens(_as_page(block), self.scope)
        file = str(image.attrs.get("src", ""))
        caption = str(image.attrs.get("title", ""))
        self.open.pieces.append(ImageBlock(file, caption, text.html))
        self.open.words.append(f"{text.plain}\n{caption}".strip())
        sheet = self.scope.sheet
        place = sheet.find(file, first_line(block[0]), last_line(block[0]))
        sheet.mention("picture", file, *place)

    def _prose(self, tokens: list[Token]) -> None:
        if not tokens:
            return
        boxes = [t for t in tokens if t.meta.get("alert")]
        self.alerts += [(str(t.meta["alert"]), first_line(t)) for t in boxes]
        text = render_tokens(_as_page(tokens), self.scope)
        if text.html:
            self.open.pieces.append(HtmlBlock(self.linker.link(text.html)))
            self.open.words.append(text.plain)

    def _calculator(self, token: Token) -> None:
        sheet = self.scope.sheet
        name = token.info.strip().partition(" ")[2].strip()
        line = first_line(token)
        fields = strict_yaml.read(token.content, sheet.report, line + 1)
        inputs = {n: v.text for n, v in fields.values.items() if isinstance(v, YamlText)}
        sheet.spend(price_of(name), token.info + token.content)
        try:
            compute(name, inputs)
        except FigureError as error:
            place = _place_of(error.message, fields, line)
            sheet.report(error.code, *place, error.message, error.hint)
            return
        sheet.mention("calculator", name.replace("_", "-"), line, 1)
        self.open.pieces.append(CalculatorBlock(name.replace("_", "-"), inputs))
        self.open.minutes += _CALCULATOR_MINUTES


def _place_of(message: str, fields: strict_yaml.YamlMapping, line: int) -> tuple[int, int]:
    """The input that a message quotes, else the first line of the block."""
    for name, key in fields.keys.items():
        value = fields.values[name]
        text = value.text if isinstance(value, YamlText) else ""
        if f"“{name}”" in message or (text and f"“{text}”" in message):
            return key.line, key.column
    return line, 1


def picture_in(block: Sequence[Token]) -> Token | None:
    """The image of a paragraph that is nothing but one SVG file of the topic."""
    if len(block) != 3 or block[0].type != "paragraph_open" or block[0].level:
        return None
    children = block[1].children or []
    if len(children) != 1 or children[0].type != "image":
        return None
    file = str(children[0].attrs.get("src", ""))
    local = file.endswith(".svg") and lies_within(file)
    return children[0] if local else None


def _as_page(tokens: list[Token]) -> list[Token]:
    """Keep the `<p>` of a paragraph that stands alone on a page."""
    return tokens if len(tokens) != 3 else [*tokens, Token("nothing", "", 0)]


def _as_block(text: RichText) -> str:
    """A short text as a paragraph; longer ones are blocks already."""
    return text.html if _BLOCK.match(text.html) else f"<p>{text.html}</p>"
