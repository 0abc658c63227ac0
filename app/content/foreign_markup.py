"""Problem W74: markup of other editors, which would be shown to learners as it stands."""

import re

from markdown_it.token import Token

from app.markup.markdown_tokens import first_line
from app.markup.problems import SourceFile

_MOST_SHOWN = 40
# What is read as written, or is no text: code, formulas, comments, addresses, tags.
_LITERAL = re.compile(
    r"(?P<ticks>`+)(?!`).+?(?<!`)(?P=ticks)(?!`)|(?<!\\)\$[^$\n]+\$|<!--.*?-->"
    r"|(?<=\])\([^()\s]*(?:\s+\"[^\"]*\")?\)|<[^<>]+>",
    re.DOTALL,
)
_HIGHLIGHT = "There is no highlighter here: write **words**."
_FORMULA = "Write a formula between dollar signs: $x$; one of its own between two lines of $$."
_NO_CLASS = "Delete it: text has no classes or attributes here."
_DRAWN = "Put it into the text yourself: nothing is filled in here."
_PLAIN_LINK = "Write a link with plain brackets: [words](address)."
_BOX = "Write > [!NOTE], TIP, WARNING or IMPORTANT, and > before each line of its text."
# A pattern and its remedy. What may be meant as it stands is left out, such as #tag,
# -- and 100%: each pattern is of signs that nobody writes in prose.
_FOREIGN = tuple(
    (re.compile(pattern, re.MULTILINE), remedy)
    for pattern, remedy in (
        (r"^(?:\?\?\?\+?|!!!\+?)[ \t]+\w.*$|^\.\. [\w-]+::.*$|^:::+[ \t]*\S.*$", _BOX),
        (r"\\\((?!\s).*?\\\)", _FORMULA),
        (r"\\\[(?:(?!\\\]).)*?(?!\\\])[\\^_={}+](?:(?!\\\]).)*\\\]", _FORMULA),
        (r"\\begin\{\w+\*?\}|(?<![\w:\\/])\\[A-Za-z]{2,}(?:\{[^{}]*\})*", _FORMULA),
        (r"(?<![\w(<\[/.])(?:https?://|www\.(?=[\w-]+\.))[^\s)>]+", "Write [words](https://…)."),
        (r"(?<![=\w])==(?=[^\s=])[^=\n]*?(?<=[^\s=])==(?![=\w])", _HIGHLIGHT),
        (r"(?<![|\w])\|\|(?=[^\s|])[^|\n]+?(?<=[^\s|])\|\|(?![|\w])", "Nothing hides text here."),
        (r"(?<![+\w])\+\+(?=\w)[^+\n]+?(?<=\w)\+\+(?![+\w])", _HIGHLIGHT),
        (r"%%(?:[^%]|%(?!%))+%%|^%%$", "Write a comment as <!-- words -->."),
        (r"(?<=[\w)])~[^\s~]{1,10}~(?!~)", "Write <sub>2</sub>."),
        (r"(?<=[\w)])\^[^\s^]{1,10}\^", "Write <sup>2</sup>."),
        (r"(?<![\w:]):[a-z][a-z0-9_+-]{2,30}:(?![\w:`])", "Write the sign itself."),
        (r"(?<![\w:]):[a-z][a-z0-9_+-]*:(?=\0)", "Write the words or the link itself."),
        (r"\{:?[ \t]*[.#][\w-][^{}\n]*\}|(?<=\])\{[^{}\n]*\}", _NO_CLASS),
        (r"\{\{[<%][^{}\n]*[>%]\}\}|\{%[^{}\n]*%\}|\{\{[^{}\n:]*\}\}", _DRAWN),
        (r"\{\{c\d+::[^{}\n]*\}\}", "In a question of the type cloze write [[answer]]."),
        (r"\[/(?:b|i|u|s|url|img|code|quote|color|size)\]", "Write **bold**, *italic* or `code`."),
        (r"\^\[[^\]\n]*\s[^\]\n]*\]", "Write the words into the text, or cite a source: [^key]."),
        (r"\[?-?(?<![\w.])@[a-z][\w:-]*\d{4}[a-z]?\b\]?", "Cite a source: [^key]."),
        (r"(?:^|[ \t])\^[\w-]+[ \t]*$", "Delete it: links lead to headings."),
        (r"^\[(?:TOC|\[_?TOC_?\])\]$|^\[toc\]$", "Delete it: a page lists its sections itself."),
        (r"^===[+!]?[ \t]+[\"“].*$", "Write a heading: there are no tabs."),
        (r"^={2,6}[ \t][^=\n]+[ \t]={2,6}$", "Write a heading: ## words."),
        (r"^\+[-=]{3,}\+?(?:[-=]*\+)*$", "Write the table with | and a line |---|---|."),
        (r"^:[ \t]{1,3}\S.*$", "Write - **Term**: meaning, or put the term into glossary.md."),
        (r"^\*\[[^\]\n]+\]:[ \t].*$", "Put the term into glossary.md."),
        (r"^[a-z][\w-]*::[ \t]\S.*$", "Delete it: a page has its properties at the top."),
        (r"\uff3b\uff3b[^\n]*?\uff3d\uff3d", "Write the blank with plain brackets: [[answer]]."),
        (r"^(?:\uff3b[!\uff01]|\[\uff01)\w+[\]\uff3d].*$", _BOX),
        (
            r"\[[^\]\n]+\]\uff08[^\uff09\n]*\uff09|\uff3b[^\uff3d\n]+\uff3d[(\uff08][^)\uff09\n]*[)\uff09]",
            _PLAIN_LINK,
        ),
        (r"^\uff40{3}.*$", "Write three plain backticks: ```."),
        (r"^\uff03{1,6}.*$", "Write a heading with plain signs: ## words."),
        (r"^\uff5c[^\n]*\uff5c$", "Write the table with | and a line |---|---|."),
        (r"\uff0a\uff0a[^\uff0a\n]+\uff0a\uff0a", "Write **words** with plain stars."),
        (r"^\|[ \t][^|\n]+$", "End the line above with two spaces, which breaks it."),
    )
)

# A state of a task, which in an item is an option that cannot be read.
_TASK = (re.compile(r"^\[[-/<>!?~]\][ \t]", re.MULTILINE), "Write [ ] or [x] in the box.")
_STARS = re.compile(r"(?<=\S)(?:\*\*|~~)|(?:\*\*|~~)(?=\S)")
# What only Markdown shows as something else.
_MARKED = re.compile(r"\*\*[^*]+\*\*|`[^`]+`|\$[^$\s][^$]*\$|\[[^\]]+\]\([^)]+\)|\[\^[^\]]+\]")


def check_plain_text(key: str, text: str, place: tuple[int, int], source_file: SourceFile) -> None:
    """Report markup in a value of front matter that is shown as plain text."""
    if found := _MARKED.search(text):
        message = f"“{found[0][:_MOST_SHOWN]}” is shown as it stands: “{key}” is plain text."
        source_file.report("W74", *place, message, "Write the words alone.")


def _check_stars(inline: Token, source_file: SourceFile) -> None:
    """Report marks of bold or struck words that begin or end nothing."""
    for child in inline.children or ():
        found = _STARS.search(child.content) if child.type == "text" else None
        if found and found[0] in inline.content and f"\\{found[0][0]}" not in inline.content:
            first = first_line(inline)
            place = source_file.find(found[0], first, first + inline.content.count("\n"))
            message = f"“{found[0]}” is shown as it stands: it begins or ends nothing."
            hint = f"Write it right beside the words, on both sides: {found[0]}words{found[0]}"
            source_file.report("W74", *place, message, hint)
            return


def check_foreign_markup(inline: Token, source_file: SourceFile) -> None:
    """Report markup of other editors in a paragraph, a heading or a cell, each sign once."""
    _check_stars(inline, source_file)
    text = _LITERAL.sub(_blank, inline.content)
    boxes = {p.line for p in source_file.problems if p.code == "E74"}
    told: set[int] = set()
    for pattern, remedy in _FOREIGN if source_file.item else (*_FOREIGN, _TASK):
        for found in pattern.finditer(text):
            line = first_line(inline) + text.count("\n", 0, found.start())
            if line in boxes or not told.isdisjoint(range(*found.span())):
                continue
            told.update(range(*found.span()))
            shown = inline.content[found.start() : found.end()].strip().split("\n")[0]
            place = source_file.find(shown, line, line)
            message = f"“{shown[:_MOST_SHOWN]}” is shown as it stands: it means nothing here."
            source_file.report("W74", *place, message, remedy)


def _blank(literal: re.Match[str]) -> str:
    """Return as many signs that no pattern matches, in as many lines."""
    return "".join(c if c == "\n" else "\0" for c in literal[0])
