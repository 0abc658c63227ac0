"""A document with marked parts that are made from the code."""

import re
from collections.abc import Iterable, Mapping
from pathlib import Path

DOCS = Path(__file__).resolve().parents[1]
_PART = re.compile(
    r"^<!-- generated: (?P<name>[\w-]+) -->\n.*?^<!-- /generated -->$",
    re.DOTALL | re.MULTILINE,
)


def filled(text: str, parts: Mapping[str, str]) -> str:
    """The document with each marked part as it has to be.

    Raises KeyError for a mark without a part, ValueError for a part without a mark.
    """
    unused = set(parts) - {match["name"] for match in _PART.finditer(text)}
    if unused:
        raise ValueError(f"no mark for {', '.join(sorted(unused))}")
    return _PART.sub(lambda match: _marked(match["name"], parts), text)


def _marked(name: str, parts: Mapping[str, str]) -> str:
    return f"<!-- generated: {name} -->\n\n{parts[name].strip()}\n\n<!-- /generated -->"


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """A Markdown table."""
    names = list(head)
    lines = [names, ["---"] * len(names), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def code(words: str) -> str:
    """Words in code style, empty for none."""
    return f"`{words}`" if words else ""


def codes(words: Iterable[str]) -> str:
    """A list of words in code style."""
    return ", ".join(map(code, words))
