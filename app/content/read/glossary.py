"""The glossary: a heading is a term, what follows is its meaning."""

import re

from markdown_it.token import Token

from app.content.identity import slug
from app.content.limits import MOST_TERMS
from app.content.markdown.syntax import closing_index, first_line, plain_text, take_pin, tokens
from app.content.markdown.writer import RenderContext, render_tokens
from app.content.model import NO_TEXT, GlossaryTerm, SourceLocation
from app.content.read.metadata import front_matter
from app.content.read.regions import glued, report_glued
from app.content.source_file import SourceFile

_LONGEST = 200  # characters of a term
_SEE = re.compile(r"^See:\s*(.+)$", re.DOTALL)


def read_glossary(sheet: SourceFile) -> tuple[GlossaryTerm, ...]:
    """The terms in the order of the file; a term without meaning is left out."""
    _, text = front_matter(sheet)
    found = tokens(text)
    scope = RenderContext(sheet, folder="..")
    terms: list[GlossaryTerm] = []
    at = 0
    while at < len(found):
        end = _next_heading(found, at + 1)
        if found[at].type == "heading_open" and found[at].tag != "h1":
            if len(terms) == MOST_TERMS:
                message = f"The glossary has more than {MOST_TERMS:,} terms."
                sheet.report("E88", first_line(found[at]), 1, message, "Keep fewer.")
                break
            terms.append(_term(found[at:end], scope))
        elif found[at].type == "heading_open" and at and found[at].tag == "h1":
            words = plain_text(found[at + 1 : at + 2])[:60]
            message = f"“{words}” is a title, and no term."
            sheet.report("W64", first_line(found[at]), 1, message, f"Write ## {words}")
        at = end
    return _without_doubles([t for t in terms if t.meaning.html], sheet)


def _next_heading(found: list[Token], start: int) -> int:
    for at in range(start, len(found)):
        if found[at].type == "heading_open" and not found[at].level:
            return at
    return len(found)


def _term(block: list[Token], scope: RenderContext) -> GlossaryTerm:
    pinned = take_pin(block[1])
    name = plain_text(block[1:2])[:_LONGEST]
    line = first_line(block[0])
    body, related = _part_see(block[3:])
    for other in related:
        near = scope.sheet.find("See:", line, line + _LONGEST)[0]
        at = scope.sheet.find(other, near, near + _LONGEST)
        scope.sheet.mention("term", other, *at)
    if not name:
        hint = "Write the term behind the ##."
        scope.sheet.report("E10", line, 1, "A term has no name.", hint)
    for token in body:
        if token.type == "inline" and (no_heading := glued(token)):
            report_glued("E10", first_line(token), no_heading, scope.sheet)
    meaning = render_tokens(body, scope) if body else NO_TEXT
    if not meaning.html:
        hint = "Write one paragraph below the heading."
        scope.sheet.report("E10", line, 1, f"“{name}” has no meaning.", hint)
    see = [slug(other) for other in related]
    see += re.findall(r'href="(/[^"]+)"', meaning.html)
    place = SourceLocation(scope.sheet.path, line)
    return GlossaryTerm(pinned or slug(name), name, meaning, tuple(dict.fromkeys(see)), place)


def _part_see(body: list[Token]) -> tuple[list[Token], list[str]]:
    """Part a last paragraph `See: KV cache, Weights` from the meaning."""
    at = 0
    while at < len(body):
        end = closing_index(body, at) + 1
        match = _SEE.match(body[at + 1].content) if end - at == 3 else None
        if match:
            names = [" ".join(n.split()) for n in match[1].split(",")]
            return body[:at] + body[end:], [n for n in names if slug(n)]
        at = end
    return body, []


def _without_doubles(terms: list[GlossaryTerm], sheet: SourceFile) -> tuple[GlossaryTerm, ...]:
    kept: dict[str, GlossaryTerm] = {}
    for term in terms:
        first = kept.get(term.anchor)
        if first is None:
            kept[term.anchor] = term
        else:
            message = f"“{term.name}” is defined in line {first.place.line} already."
            sheet.report("W66", term.place.line, 1, message, "Keep one meaning.")
    return tuple(kept.values())
