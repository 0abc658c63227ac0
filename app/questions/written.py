"""A question as its author wrote it: its comment, and its blocks by their meaning."""

import dataclasses

from markdown_it.token import Token

from app.content import strict_yaml
from app.content.markdown.writer import RenderContext
from app.content.source_file import SourceFile
from app.content.strict_yaml import YamlMapping
from app.questions.options import ParsedOption


@dataclasses.dataclass(frozen=True, slots=True)
class ItemComment:
    """The comment of an item: its fields and where they stand."""

    id: str
    fields: YamlMapping
    line: int
    column: int

    def word(self, name: str) -> str:
        """The text of one key, empty when it is absent."""
        return strict_yaml.single_text(self.fields.values.get(name))

    def says_yes(self, name: str) -> bool:
        """Whether a key that is no by itself is set to yes."""
        return self.word(name).lower() in {"yes", "true"}

    def place(self, name: str) -> tuple[int, int]:
        """Where the value of a key stands, else where the comment begins."""
        node = self.fields.values.get(name)
        return (node.line, node.column) if node else (self.line, self.column)


@dataclasses.dataclass(slots=True)
class ItemDraft:
    """An item as written: its heading, its comment and what follows them.

    `text` is all of it, `below` what stands below its comment.
    """

    heading: Token
    comment: ItemComment
    body: list[Token]
    line: int
    level: int
    text: str
    broken: bool = False
    below: str = ""


@dataclasses.dataclass(slots=True)
class ItemParts:
    """The blocks of an item by what they mean.

    `block` is the list or table that some kinds take as their answer.
    """

    stem: list[Token]
    options: list[ParsedOption]
    block: list[Token]
    hints: list[list[Token]]
    explanation: list[Token]
    mistake: list[Token]
    list_line: int = 0


@dataclasses.dataclass(frozen=True, slots=True)
class AuthoredItem:
    """What a kind reads its answer from; `computed`: its numbers are drawn later."""

    draft: ItemDraft
    parts: ItemParts
    scope: RenderContext
    computed: bool = False

    @property
    def comment(self) -> ItemComment:
        """The comment of the item."""
        return self.draft.comment

    @property
    def sheet(self) -> SourceFile:
        """The file, where problems are reported."""
        return self.scope.sheet

    def drawn_from(self, file: bool) -> str:
        """How mock exams draw it: “only” they do, “maybe”, or empty for never.

        `file` is whether they draw from its file at all.
        """
        if self.comment.word("use").lower() == "exam":
            return "only"
        deeper = self.comment.word("level").lower() == "deeper"
        return "maybe" if file and not deeper else ""

    @property
    def line(self) -> int:
        """Where the options begin, else the heading."""
        return self.parts.list_line or self.draft.line
