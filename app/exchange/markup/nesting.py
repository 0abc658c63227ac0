"""How deep the tags of a stranger's HTML stand in each other, told before it is parsed.

A parser of HTML does work for every tag that is open, so tags in tags cost the square
of their number. What is counted here is never less than what the parser will find.
"""

import re

DEEPEST = 60

# A tag as everybody reads it, and anything else that a parser may take for one.
_PLAIN = re.compile(
    r"<(?P<slash>/?)(?P<name>[a-zA-Z][a-zA-Z0-9]*)"
    r"(?:\s+[^\s<>\"'=/]+(?:=(?:\"[^\"<>]*\"|'[^'<>]*'|[^\s<>\"'=]+))?)*\s*/?>"
    r"|<!--[^<>]*-->"
)
_ODD = re.compile(r"<(?=[a-zA-Z/!?])")
# Within these, tags are words, or follow rules of their own.
_OTHER_RULES = (
    "iframe math noembed noframes noscript plaintext script select style svg template"
    " textarea title xmp"
)
_EMPTY = (
    "area base basefont bgsound br col embed frame hr img input keygen link meta param"
    " source track wbr"
)
_CELLS = frozenset({"p", "td", "th"})
# Which elements end by themselves where another begins, or where their parent ends.
_ENDED_BY = {
    "li": frozenset({"p", "li"}),
    "dt": frozenset({"p", "dt", "dd"}),
    "dd": frozenset({"p", "dt", "dd"}),
    "td": _CELLS,
    "th": _CELLS,
    "tr": _CELLS | {"tr"},
    "tbody": _CELLS | {"tr", "thead", "tbody"},
}
_LOOSE = _CELLS | {"li", "dt", "dd", "tr", "thead", "tbody", "tfoot"}
_INLINE = (
    "a abbr b big cite code del em font i ins kbd mark nobr q s samp small span strike"
    " strong sub sup tt u var"
)
_WITH_OTHER_RULES = frozenset(_OTHER_RULES.split())
_WITHOUT_END = frozenset(_EMPTY.split())
_AMONG_WORDS = frozenset(_INLINE.split())


def is_deep(html: str) -> bool:
    """Whether more tags than `DEEPEST` may be open at once.

    >>> is_deep("<b>" * 61), is_deep("<ul>" + "<li>one" * 100 + "</ul>")
    (True, False)
    """
    if html.count("<") <= DEEPEST:
        return False
    opened: list[str] = []
    closes, at = True, 0
    while odd := _ODD.search(html, at):
        plain = _PLAIN.match(html, odd.start())
        at = plain.end() if plain else odd.end()
        name = plain["name"].lower() if plain and plain["name"] else ""
        if plain is None or name in _WITH_OTHER_RULES:
            closes = False  # what follows may be read otherwise: nothing is ended
        if plain is None or (name and not plain["slash"] and name not in _WITHOUT_END):
            _open(opened, name)
        elif name and closes:
            _close(opened, name)
        if len(opened) > DEEPEST:
            return True
    return False


def _open(opened: list[str], name: str) -> None:
    ended = _ENDED_BY.get(name, frozenset() if name in _AMONG_WORDS else {"p"})
    while opened and opened[-1] in ended:
        opened.pop()
    opened.append(name)


def _close(opened: list[str], name: str) -> None:
    """End an element with those in it that end by themselves; others stay open."""
    depth = len(opened)
    while depth and opened[depth - 1] != name and opened[depth - 1] in _LOOSE:
        depth -= 1
    if depth and opened[depth - 1] == name:
        del opened[depth - 1 :]
