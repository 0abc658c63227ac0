r"""Braces that came from elsewhere, written so that they begin no placeholder."""

import dataclasses
import re
from collections.abc import Iterable

from app.exchange.items import Item, Option

# Code and formulas keep their braces: nothing is put into the place of those.
_KEPT = r"(?P<kept>(?P<tick>`+)(?:.|\n)*?(?P=tick)|(?<!\\)\$[^$\n]+\$)"
_BRACE = re.compile(_KEPT + r"|(?<!\\)\{(?=[A-Za-z_])")
_TYPED = frozenset({"short", "numeric"})  # their answers are written as code


def with_plain_braces(item: Item) -> Item:
    r"""The item of a format in which braces mean nothing.

    >>> with_plain_braces(Item("n", "card", "What is {name}?", text="`{x}`")).stem
    'What is \\{name}?'
    """
    typed = item.kind in _TYPED
    return dataclasses.replace(
        item,
        stem=_plain(item.stem),
        options=tuple(_option(o, typed) for o in item.options),
        steps=tuple(_option(s) for s in item.steps),
        pairs=tuple(
            dataclasses.replace(
                p, left=_plain(p.left), right=_plain(p.right), why=_plain(p.why)
            )
            for p in item.pairs
        ),
        text=_plain(item.text),
        hints=_each(item.hints),
        explanation=_plain(item.explanation),
        mistake=_plain(item.mistake),
    )


def _option(option: Option, typed: bool = False) -> Option:
    words = option.text if typed else _plain(option.text)
    return dataclasses.replace(option, text=words, feedback=_plain(option.feedback))


def _each(texts: Iterable[str]) -> tuple[str, ...]:
    return tuple(map(_plain, texts))


def _plain(text: str) -> str:
    return _BRACE.sub(lambda m: m["kept"] or r"\{", text) if "{" in text else text
