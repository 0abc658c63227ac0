"""The Markdown of a page without its items: what may be passed on without a key."""

import re
from collections.abc import Iterator

from markdown_it.token import Token

from app.content.markdown.syntax import first_line
from app.content.read.lost_answers import answers_in
from app.content.read.metadata import front_matter
from app.content.read.regions import split_into_items
from app.content.source_file import SourceFile
from app.questions.written import ItemDraft

_OPENING = "<!--"


def page_without_items(text: str) -> str:
    """A page as its author wrote it, without front matter, questions and cards.

    Answers whose question lost its comment are left out, as they are on the page.
    Comments go as well, as they do from the page: authors write them to each other.
    """
    sheet = SourceFile("", text)
    body = front_matter(sheet)[1]
    lines = body.split("\n")
    gone: set[int] = set()
    for region in split_into_items(body, sheet):
        if isinstance(region, ItemDraft):
            gone |= set(range(region.line, region.line + region.text.count("\n") + 1))
            continue
        for block in answers_in(region.tokens):
            gone |= {n for at in block for n in _numbers(region.tokens[at])}
        for token in region.tokens:
            if token.type == "html_block" and _OPENING in token.content:
                gone |= set(_numbers(token))
            elif token.type == "inline":
                _take_out(lines, token)
    kept = [line for number, line in enumerate(lines, 1) if number not in gone]
    return "\n".join(kept).strip("\n") + "\n"


def _numbers(token: Token) -> range:
    """The lines of a block, counted from 1."""
    start, end = token.map or (0, 0)
    first = first_line(token)
    return range(first, first + end - start)


def _take_out(lines: list[str], inline: Token) -> None:
    """Empty the comments within the lines of a paragraph or heading."""
    for comment in _comments(inline):
        block = _numbers(inline)
        whole = "\n".join(lines[block.start - 1 : block.stop - 1])
        # Each line of a quotation begins with its marks, which the comment lacks.
        parts = (re.escape(part.strip()) for part in comment.split("\n"))
        pattern = r"[ \t]*\n[ \t>]*".join(parts)
        left = re.sub(pattern, lambda m: "\n" * m[0].count("\n"), whole)
        lines[block.start - 1 : block.stop - 1] = left.split("\n")


def _comments(inline: Token) -> Iterator[str]:
    for child in inline.children or []:
        if child.type == "html_inline" and child.content.startswith(_OPENING):
            yield child.content
