"""The words of a search: taken apart, varied, and mended when nothing has them."""

import difflib
import re
from collections.abc import Collection, Iterable, Mapping, Sequence

from app.questions.phrases import remove_invisible

# British and American, as parts of words; a form that nothing has costs nothing.
_SPELLINGS = (
    ("centre", "center"),
    ("isation", "ization"),
    ("ising", "izing"),
    ("ised", "ized"),
    ("ise", "ize"),
    ("yse", "yze"),
    ("colour", "color"),
    ("behaviour", "behavior"),
    ("elling", "eling"),
    ("programme", "program"),
)
_SHORTEST = 5  # letters of a word that may be a slip: shorter ones are often acronyms
_SHORTEST_PART = 3  # of two words that are written as one
_WORD = re.compile(r"\w+(?:[-./+'\u2019:]\w+)*")
# Words of a question that say nothing of what is looked for.
_FILLERS = frozenset(
    [
        "a",
        "an",
        "the",
        "is",
        "are",
        "do",
        "does",
        "what",
        "which",
        "who",
        "why",
        "how",
        "when",
        "of",
        "for",
        "to",
        "in",
        "on",
        "with",
        "and",
        "or",
        "vs",
        "versus",
        "between",
        "difference",
    ]
)
_MOST = 8
_LONGEST = 100


def words_of(typed: str) -> tuple[str, ...]:
    """The words of what was typed, in small letters, at most eight.

    Fillers of a question are left out where other words are left.

    >>> words_of("What is the difference between GPU and CPU?"), words_of("What is")
    (('gpu', 'cpu'), ('what', 'is'))
    """
    seen = remove_invisible(typed[:_LONGEST])
    found = [w.casefold() for w in _WORD.findall(seen)]
    telling = [word for word in found if word not in _FILLERS]
    return tuple(telling or found)[:_MOST]


def vocabulary(texts: Iterable[str]) -> dict[str, int]:
    """Every word of the texts with the number of times it stands there."""
    known: dict[str, int] = {}
    for text in texts:
        for word in re.findall(r"\w+", text.casefold()):
            known[word] = known.get(word, 0) + 1
    return known


def forms(word: str) -> tuple[str, ...]:
    """A word and what else it may be the beginning of.

    Plurals find the singular, and either spelling of English finds the other.

    >>> forms("centres")
    ('centres', 'centre', 'centers', 'center')
    """
    found = [word]
    if len(word) > 4 and word.endswith("ies"):
        found.append(word[:-3] + "y")
    elif len(word) > 3 and word.endswith("s") and not word.endswith("ss"):
        found.append(word[:-1])
    for one, other in (*_SPELLINGS, *((b, a) for a, b in _SPELLINGS)):
        found += [form.replace(one, other) for form in tuple(found) if one in form]
    return tuple(dict.fromkeys(found))


def expression(words: Sequence[str], joint: str = "AND") -> str:
    """A full-text expression: every word, or the beginning of one, in any order."""
    return f" {joint} ".join(
        "(" + " OR ".join(f'"{form}"*' for form in forms(word)) + ")" for word in words
    )


def is_known(word: str, known: Collection[str]) -> bool:
    """Whether a known word is, or begins with, this word or its singular."""
    starts = [re.split(r"\W", form)[0] for form in forms(word)]
    return any(k.startswith(start) for start in starts for k in known)


def correct_spelling(words: Sequence[str], known: Mapping[str, int]) -> tuple[str, ...]:
    """The words with each unknown one replaced by the likeliest known one.

    A word that begins a known one, or is like none, stays as it is; so does one of
    less than five letters, which may be an acronym. Two words written as one are
    parted.

    >>> correct_spelling(["datacenter", "colling"], {"data": 9, "center": 4, "cooling": 7})
    ('data', 'center', 'cooling')
    """
    return tuple(part for word in words for part in _mended(word, known).split())


def _mended(word: str, known: Mapping[str, int]) -> str:
    if len(word) < _SHORTEST or is_known(word, known):
        return word
    parted = _parted(word, known)
    if parted:
        return parted
    close = difflib.get_close_matches(word, _alike(word, known), n=5, cutoff=0.7)
    if not close:
        return word
    best = _likeness(word, close[0])
    rivals = [c for c in close if best - _likeness(word, c) < 0.02]
    return max(rivals, key=lambda rival: known[rival])


def _parted(word: str, known: Mapping[str, int]) -> str:
    """The two known words that stand in one, the commonest; empty where none do."""
    places = range(_SHORTEST_PART, len(word) - _SHORTEST_PART + 1)
    pairs = [(word[:place], word[place:]) for place in places]
    found = [pair for pair in pairs if all(set(forms(part)) & known.keys() for part in pair)]

    if not found:
        return ""
    return " ".join(max(found, key=lambda pair: min(_times(p, known) for p in pair)))


def _times(word: str, known: Mapping[str, int]) -> int:
    return max(known.get(form, 0) for form in forms(word))


def _alike(word: str, known: Collection[str]) -> list[str]:
    """Known words near enough in length to be worth comparing."""
    return [k for k in known if abs(len(k) - len(word)) <= 2 and not k.isdigit()]


def _likeness(word: str, other: str) -> float:
    return difflib.SequenceMatcher(None, other, word).ratio()
