"""W70: text that is probably a term of its own or another name, but is read as part of a term."""

import re
from collections.abc import Sequence

from markdown_it.token import Token

from app.markup.markdown_tokens import first_line
from app.markup.problems import SourceFile

_MOST_SHOWN = 40
# A bold word and a colon or a dash, at the beginning of a paragraph or list item.
_BOLD_TERM = re.compile(
    r"(?:\*\*|__)(?P<term>[^*_\n]{1,60}?)(?::(?:\*\*|__)|(?:\*\*|__)(?::| [–—-]{1,3}) )\s*\S"
)
_OTHER_NAMES = re.compile(
    r"[*_]{0,2}(?:Aliase?s?|Synonyms?|Also(?: known as| called)?|Aka|Plurals?|Abbreviations?|Acronyms?)"
    r"[*_]{0,2}[:\uff1a]",
    re.IGNORECASE,
)
_COMMENT = re.compile(r"<!--\s*(?:(?!-->).)*?\b(?:aliases|alias|synonyms|names)\s*:", re.DOTALL)
_TERM_COLUMN = re.compile(r"(?:term|word|abbreviation|acronym|name)s?$", re.IGNORECASE)
_NUMBERED = re.compile(r"\d{1,3}[.)]\s+")
_TWO_NAMES = re.compile(r"\s+(?:/|\||=|[–—-]{1,3}|or|aka)\s+|\((?:e?s|en)\)$")
_PLACE_OF_NAMES = "Write other names in parentheses behind the term: ## Term (name, other name)."


_NAMES_WITH_COMMA = re.compile(r"^[^(),]+,[^(),]+$")


def check_term_heading(name: str, tag: str, line: int, source_file: SourceFile) -> None:
    """Report W70 for a heading that is deeper than those of terms, or that holds two names."""
    if tag != "h2":
        message = f"“{name[:_MOST_SHOWN]}” is a term of its own, though its heading is deeper."
        hint = f"Write ## {name}, or **{name}** in the text of the term above."
        source_file.report("W70", line, 1, message, hint)
    if _NAMES_WITH_COMMA.match(name):
        first, _, other_names = name.partition(",")
        message = f"“{name[:_MOST_SHOWN]}” is one name, with its comma."
        hint = f"Write ## {first} ({other_names.strip()}) for a term with other names."
        source_file.report("W70", line, 1, message, hint)


def check_term_and_meaning(
    name: str, line: int, body: Sequence[Token], source_file: SourceFile
) -> None:
    """Report W70 for the heading and the text of a term; an empty name means text of no term."""
    misreading = (
        f"is part of the meaning of “{name[:_MOST_SHOWN]}”" if name else "defines no term here"
    )
    if match := _NUMBERED.match(name):
        message = f"The number belongs to the term: “{name[:_MOST_SHOWN]}”."
        source_file.report("W70", line, 1, message, f"Write ## {name[match.end() :]}")
    elif match := _TWO_NAMES.search(name):
        message = f"“{name[:_MOST_SHOWN]}” is one name, with its “{match[0].strip()}”."
        hint = _PLACE_OF_NAMES
        if match[0][0] == "(":
            hint = "Leave it out: the plural is found as well."
        source_file.report("W70", line, 1, message, hint)
    for at, token in enumerate(body):
        if token.type == "html_block" and _COMMENT.match(token.content):
            message = "Nothing reads the names in this comment."
            source_file.report("W70", first_line(token), 1, message, _PLACE_OF_NAMES)
        if token.type != "inline":
            continue
        if body[at - 1].type == "th_open" and _TERM_COLUMN.match(token.content):
            message = f"This table {misreading}."
            hint = "Write each term as ## and its name, and its meaning below it."
            source_file.report("W70", first_line(token), 1, message, hint)
        elif match := _OTHER_NAMES.match(token.content):
            message = f"“{match[0]}” {misreading}."
            source_file.report("W70", first_line(token), 1, message, _PLACE_OF_NAMES)
        elif match := _BOLD_TERM.match(token.content):
            message = f"“{match['term']}” {misreading}."
            hint = f"For a term of its own write ## {match['term']} and its meaning below it."
            source_file.report("W70", first_line(token), 1, message, hint)
