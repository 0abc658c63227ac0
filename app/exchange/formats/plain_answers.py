"""Answers as people write them beside a question: letters, words, a number."""

import re
from collections.abc import Iterable, Mapping

from app.exchange.items import Kind, NotCarried, Option
from app.exchange.markup.texts import read_number, span_around

_PARTS = re.compile(r"\s*(?:[,;&+/]|\band\b)\s*")


def named_in(answer: str, choices: Mapping[str, str]) -> frozenset[str]:
    """The letters that an answer names, by letter or by the words of a choice.

    `choices` are the words by capital letter. Raises NotCarried where it names none.

    >>> sorted(named_in("A and c", {"A": "one", "B": "two", "C": "three"}))
    ['A', 'C']
    """
    for letter, words in choices.items():
        if words.casefold() == answer.casefold():
            return frozenset({letter})
    named = [part.strip(" .()").upper() for part in _PARTS.split(answer) if part]
    if len(named) == 1 and len(named[0]) > 1 and set(named[0]) <= set(choices):
        named = list(named[0])  # “AC”
    strange = [name for name in named if name not in choices]
    if strange or not named:
        raise NotCarried(f"its answer “{answer[:40]}” names none of its choices")
    return frozenset(named)


def kind_of(options: Iterable[Option]) -> Kind:
    """What a question with these choices is."""
    chosen = list(options)
    if sum(option.right for option in chosen) > 1:
        return "multiple"
    said = {option.text.strip(" .").lower() for option in chosen}
    return "true-false" if said == {"true", "false"} else "single"


def bare(answer: str) -> tuple[Kind, tuple[Option, ...]]:
    """An answer without choices: a number, or words that count alike between “|”."""
    try:
        span = span_around(read_number(answer), 0.0)
    except NotCarried:
        words = [part.strip() for part in answer.split("|") if part.strip()]
        return "short", tuple(Option(word, True) for word in words)
    return "numeric", (Option("", True, span=span),)
