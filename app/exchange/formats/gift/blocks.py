"""A GIFT file cut into questions: title, format, text before and behind, answers."""

import dataclasses
import itertools
import re
from collections.abc import Iterator

_COMMENT = re.compile(r"^\s*//")
_TAG = re.compile(r"\[tag:((?:\\\]|[^\]<>`]){1,200})\]")
_TITLE = re.compile(r"^\s*::((?:\\.|[^\\])*?)::", re.DOTALL)
_FORMAT = re.compile(r"^\s*\[(html|moodle|plain|markdown)\]", re.IGNORECASE)
_MOST_LINES = 400


@dataclasses.dataclass(frozen=True, slots=True)
class Block:
    """One question as written; `inside` is None when it has no answer part."""

    line: int
    title: str
    form: str
    before: str
    inside: str | None
    after: str
    tags: tuple[str, ...]


def blocks_of(text: str) -> list[Block]:
    """The questions of a file; empty lines part them, comments carry their tags."""
    found: list[Block] = []
    lines: list[str] = []
    tags: list[str] = []
    start = 1
    for number, line in enumerate(text.split("\n"), 1):
        if _COMMENT.match(line):
            tags += [t.replace("\\]", "]") for t in _TAG.findall(line)]
        elif line.strip() and not line.lstrip().startswith("$CATEGORY:"):
            start = start if lines else number
            lines.append(line)
        elif _open(lines):
            lines.append("")
        else:
            found += _block(lines, start, tags)
            lines, tags = [], []
    return found + _block(lines, start, tags)


def _open(lines: list[str]) -> bool:
    """Whether an answer part is still open at an empty line."""
    if not lines or len(lines) > _MOST_LINES:
        return False
    bare = re.sub(r"\\.", "", "\n".join(lines), flags=re.DOTALL)
    return bare.count("{") > bare.count("}")


def _block(lines: list[str], line: int, tags: list[str]) -> list[Block]:
    """The block of some lines; none of none."""
    text, title, form = "\n".join(lines), "", "moodle"
    if not lines:
        return []
    found = _TITLE.match(text)
    if found:
        title, text = unescaped(found[1]).strip(), text[found.end() :]
    marked = _FORMAT.match(text)
    if marked:
        form, text = marked[1].lower(), text[marked.end() :]
    first = _find(text, "{")
    last = _find(text, "}", first + 1) if first >= 0 else -1
    if first < 0 or last < 0:
        return [Block(line, title, form, text, None, "", tuple(tags))]
    before, inside, after = text[:first], text[first + 1 : last], text[last + 1 :]
    return [Block(line, title, form, before, inside, after, tuple(tags))]


def _find(text: str, mark: str, start: int = 0) -> int:
    """The place of the first unescaped `mark`, or -1."""
    at = start
    while at < len(text):
        if text[at] == "\\":
            at += 2
        elif text[at] == mark:
            return at
        else:
            at += 1
    return -1


def parts_of(text: str, marks: str) -> list[tuple[str, str]]:
    """Cut at every unescaped mark: (mark, what follows it); the first mark is empty.

    >>> parts_of("a=b~c", "=~")
    [('', 'a'), ('=', 'b'), ('~', 'c')]
    """
    cuts = [at for at in _plain_places(text) if text[at] in marks]
    bounds = itertools.pairwise([*cuts, len(text)])
    parts = [(text[at], text[at + 1 : end]) for at, end in bounds]
    return [("", text[: cuts[0]] if cuts else text), *parts]


def _plain_places(text: str) -> Iterator[int]:
    """The places of all characters that no backslash stands before."""
    at = 0
    while at < len(text):
        if text[at] == "\\":
            at += 2
            continue
        yield at
        at += 1


def unescaped(text: str) -> str:
    r"""The words meant: `\n` is a new line, `\=` an equals sign.

    >>> unescaped(r"a \= b \\ c \x")
    'a = b \\ c \\x'
    """
    return re.sub(
        r"\\(.)",
        lambda m: "\n" if m[1] == "n" else m[1] if m[1] in "\\~=#{}:" else m[0],
        text,
    )
