r"""Braces that came from elsewhere, written so that they begin no placeholder."""

import re

from app.exchange.items import Item
from app.exchange.markup.pictures import with_texts

# Code and formulas keep their braces: nothing is put into the place of those.
_KEPT = r"(?P<kept>(?P<tick>`+)(?:.|\n)*?(?P=tick)|(?<!\\)\$[^$\n]+\$)"
_BRACE = re.compile(_KEPT + r"|(?<!\\)\{(?=[A-Za-z_])")


def with_plain_braces(item: Item) -> Item:
    r"""The item of a format in which braces mean nothing.

    >>> with_plain_braces(Item("n", "card", "What is {name}?", text="`{x}`")).stem
    'What is \\{name}?'
    """
    return with_texts(item, _plain)


def _plain(text: str) -> str:
    return _BRACE.sub(lambda m: m["kept"] or r"\{", text) if "{" in text else text
