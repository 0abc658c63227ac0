"""A GIFT file cut into questions: title, format, text before and behind, answers."""

import dataclasses
import itertools
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

_COMMENT = re.compile(r"^\s*//")
_TAG = re.compile(r"\[tag:((?:\\\]|[^\]<>`]){1,200})\]")
_TITLE = re.compile(r"^\s*::((?:\\.|[^\\])*?)::", re.DOTALL)
_FORMAT = re.compile(r"^\s*\[(html|moodle|plain|markdown)\]", re.IGNORECASE)
_BRACE = re.compile(r"\\.|[{}]")
_SENTENCE = re.compile("(?:^|[.!?:…]['\")”»]?)\\s*$")
_MOST_LINES = 400
_NOT_CLOSED = "its answers are not closed: write a } behind them, and \\{ for a {"
_NOT_PARTED = "several answers stand in it: put an empty line between questions"


@dataclasses.dataclass(frozen=True, slots=True)
class GiftBlock:
    """One question as written; `inside` is None when it has no answer part.

    `fault` says why it cannot be told where its answers end.
    """

    line: int
    title: str
    form: str
    before: str
    inside: str | None
    after: str
    tags: tuple[str, ...]
    fault: str = ""


class _Line(NamedTuple):
    number: int
    text: str
    tags: tuple[str, ...]  # of the comments above it


def blocks_of(text: str) -> list[GiftBlock]:
    """The questions of a file; empty lines part them, comments carry their tags.

    Where the empty line is missing, a question begins on the line below the answers
    of another if it has a title, or if more answers follow.
    """
    found: list[GiftBlock] = []
    lines: list[_Line] = []
    tags: tuple[str, ...] = ()
    opened = False
    for number, line in enumerate(text.split("\n"), 1):
        if _COMMENT.match(line):
            tags += tuple(t.replace("\\]", "]") for t in _TAG.findall(line))
            continue
        braces = _braces_of(line)
        if opened and braces.startswith("{"):
            # What was opened before is never closed: it ends where it was parted.
            empty = [n for n, above in enumerate(lines) if not above.text]
            cut = empty[-1] if empty else len(lines)
            found.append(_block(lines[:cut], _NOT_CLOSED))
            lines, opened = lines[cut + 1 :], False
        ends = not line.strip() or line.lstrip().startswith("$CATEGORY:")
        if ends and (not opened or len(lines) > _MOST_LINES):
            found += _blocks(lines, tags)
            lines, tags, opened = [], (), False
            continue
        lines.append(_Line(number, "" if ends else line, tags))
        tags = ()
        opened = braces[-1] == "{" if braces else opened
    return found + _blocks(lines, tags)


def _braces_of(line: str) -> str:
    """The braces of a line that no backslash stands before."""
    return "".join(b for b in _BRACE.findall(line) if len(b) == 1)


def _blocks(lines: Sequence[_Line], tags: tuple[str, ...]) -> list[GiftBlock]:
    """The questions of lines without an empty one; `tags` belong to the last."""
    more = ["{" in _braces_of(line.text) for line in lines]
    rest = list(itertools.accumulate(reversed(more), max))[::-1]
    cuts, last, behind = [0], "", ""
    for n, line in enumerate(lines):
        titled = n > 0 and last != "{" and _TITLE.match(line.text)
        if titled or (last == "}" and rest[n] and _SENTENCE.search(behind)):
            cuts.append(n)
            last, behind = "", ""
        if braces := _braces_of(line.text):
            last, behind = braces[-1], ""
        behind += line.text[line.text.rfind("}") + 1 :] + " "
    groups = [lines[a:b] for a, b in itertools.pairwise([*cuts, len(lines)]) if a < b]
    found = [_block(group) for group in groups]
    if found and tags:
        found[-1] = dataclasses.replace(found[-1], tags=found[-1].tags + tags)
    return found


def _block(lines: Sequence[_Line], fault: str = "") -> GiftBlock:
    """The block of some lines."""
    text, title, form = "\n".join(line.text for line in lines), "", "moodle"
    tags = tuple(tag for line in lines for tag in line.tags)
    found = _TITLE.match(text)
    if found:
        title, text = unescaped(found[1]).strip(), text[found.end() :]
    marked = _FORMAT.match(text)
    if marked:
        form, text = marked[1].lower(), text[marked.end() :]
    first = _find(text, "{")
    last = _find(text, "}", first + 1) if first >= 0 else -1
    place = lines[0].number
    if first < 0 or last < 0:
        fault = fault or _NOT_CLOSED * (first >= 0)
        return GiftBlock(place, title, form, text, None, "", tags, fault)
    before, inside, after = text[:first], text[first + 1 : last], text[last + 1 :]
    if _find(inside, "{") >= 0:
        fault = fault or _NOT_CLOSED
    if _find(after, "{") >= 0:
        fault = fault or _NOT_PARTED
    return GiftBlock(place, title, form, before, inside, after, tags, fault)


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
