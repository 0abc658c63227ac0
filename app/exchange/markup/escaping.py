"""Plain words written so that Markdown reads them as just these words."""

import re

_ALWAYS = re.compile(r"[\\`*\[\]<|$~]")
_UNDERSCORE = re.compile(r"(?<![^\W_])_|_(?![^\W_])")
_ENTITY = re.compile(r"&(?=#?\w+;)")
_LEAD = re.compile(r"^(?:#{1,6}(?=\s|$)|>|[+-](?=\s|$)|=+$|-[- ]*$)")
_NUMBERED = re.compile(r"^(\d{1,9})[.)](?=\s|$)")


def escaped(words: str) -> str:
    r"""Escape what would be markup anywhere in a line.

    >>> escaped("a*b < 5 & snake_case _x_ AT&amp;T")
    'a\\*b \\< 5 & snake_case \\_x\\_ AT\\&amp;T'
    """
    text = _ALWAYS.sub(lambda m: "\\" + m[0], words)
    text = _UNDERSCORE.sub(r"\\_", text)
    return _ENTITY.sub(r"\\&", text)


def line_escaped(line: str) -> str:
    r"""Escape what would be markup at the beginning of a line.

    >>> line_escaped("1. first"), line_escaped("# one"), line_escaped("-1 is less")
    ('1\\. first', '\\# one', '-1 is less')
    """
    numbered = _NUMBERED.match(line)
    if numbered:
        return f"{numbered[1]}\\{line[len(numbered[1]) :]}"
    return f"\\{line}" if _LEAD.match(line) else line


def code_span(text: str) -> str:
    """Text in code style, whatever marks it holds.

    >>> code_span("a`b")
    '``a`b``'
    """
    runs = [len(r) for r in re.findall("`+", text)]
    fence = "`" * next(n for n in range(1, len(runs) + 2) if n not in runs)
    edge = " " if text[:1] in {"`", " "} or text[-1:] in {"`", " "} else ""
    return f"{fence}{edge}{text}{edge}{fence}"


def fenced(text: str) -> str:
    """A block of code, whatever marks it holds."""
    longest = max((len(r) for r in re.findall("`{3,}", text)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}\n{text.rstrip()}\n{fence}"
