"""Typed phrases: when two are the same."""

import re
import unicodedata

# Curly quotes and every kind of dash are written as the plain one.
_QUOTES = str.maketrans(
    "\u2018\u2019\u201c\u201d\u2010\u2011\u2013\u2014\u2212", "''\"\"-----"
)


def same_words(one: str, other: str, *, case_sensitive: bool = False) -> bool:
    """Whether two phrases are the same but for spacing, hyphens and end marks.

    >>> same_words("All-Reduce", "all reduce")
    True
    >>> same_words("KV caches", "KV cache")
    False
    """
    return _plain(one, case_sensitive) == _plain(other, case_sensitive)


def _plain(words: str, case_sensitive: bool) -> str:
    plain = unicodedata.normalize("NFKC", words).translate(_QUOTES).strip(" .,;:!?\"'")
    joined = re.sub(r"(?<=\w)[\s_-]+(?=\w)", "", plain)
    spaced = " ".join(joined.split())
    return spaced if case_sensitive else spaced.casefold()
