"""Grade results: score, result per part, feedback, confidence levels."""

import dataclasses
import re
import unicodedata
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any, Literal

from app.markup.model import NO_TEXT, RichText

Raw = Mapping[str, Sequence[str]]
Result = Literal["right", "partly", "wrong"]

_WHOLE = 1 - 1e-9
MAX_RESPONSE_LENGTH = 200


@dataclasses.dataclass(frozen=True, slots=True)
class PartResult:
    """The result of one part: an option, a step, a row, a gap.

    `label` names it (“A”, “2.”, the left cell); `given` is what the learner entered and
    `wanted` the right answer; for options these are `chosen` and `wanted_chosen`.
    `good` is whether the learner got this part right.
    """

    key: str
    label: str
    text: RichText
    chosen: bool
    wanted_chosen: bool
    good: bool
    given: RichText = NO_TEXT
    wanted: RichText = NO_TEXT
    feedback: RichText = NO_TEXT


@dataclasses.dataclass(frozen=True, slots=True)
class GradeResult:
    """The result of one response.

    `score` is 0..1; `parsed` is the parsed response, ready for JSON; `said` and
    `wanted` are the learner's and the right answer as text; `feedback` belongs to the
    whole response (a foreseen wrong number). `near` is a message for a response that may
    be corrected, with the same numbers, before the solution is shown. `unreadable` says
    why a response given in an exam could not be graded.
    """

    score: float
    parsed: Mapping[str, Any]
    marks: tuple[PartResult, ...] = ()
    said: str = ""
    wanted: str = ""
    feedback: RichText = NO_TEXT
    near: str = ""
    unreadable: str = ""

    @property
    def result(self) -> Result:
        """Return the score as one of three words."""
        if self.score >= _WHOLE:
            return "right"
        return "partly" if self.score > 0 else "wrong"

    @property
    def without_response(self) -> "GradeResult":
        """Return the solution as the result of an unanswered question: no points."""
        marks = tuple(
            dataclasses.replace(mark, chosen=False, given=NO_TEXT, good=False)
            for mark in self.marks
        )
        return dataclasses.replace(self, score=0.0, marks=marks, said="", near="")


@dataclasses.dataclass(frozen=True, slots=True)
class UnreadableResponse:
    """A response that cannot be parsed; it is rejected and does not count as an attempt."""

    message: str
    hint: str = ""


def single_value(raw: Raw, name: str) -> str:
    """Return the single value of a field, stripped; empty if there is not exactly one."""
    values = raw.get(name) or [""]
    return values[0].strip()


def fraction(part: float, whole: float) -> float:
    """Return `part` of `whole`, clamped to 0..1."""
    return min(1.0, max(0.0, part / whole)) if whole else 0.0


def typed_text(words: str) -> RichText:
    """Escape what a learner typed."""
    return RichText(escape(words), words)


@dataclasses.dataclass(frozen=True, slots=True)
class ConfidenceLevel:
    """A confidence level: such answers are right in `least` to `most` (0..1) of cases."""

    word: str
    means: str
    least: float
    most: float


# If answers are scored by confidence, “think so” pays from 67% right and “sure” from
# 80%. Below that is a guess, down to one choice in four.
LEVELS = (
    ConfidenceLevel("Guess", "under 67%", 0.25, 0.67),
    ConfidenceLevel("Think so", "67 to 79%", 0.67, 0.80),
    ConfidenceLevel("Sure", "80% or more", 0.80, 1.0),
)
"""From the least to the most confident. An attempt stores the position, from 1."""

# Invisible characters: what Unicode names
# Default_Ignorable_Code_Point (zero-width spaces and joiners, soft hyphens, byte order
# marks, marks of the writing direction, variation selectors, fillers of Hangul).
_INVISIBLE = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e"
    "\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb"
    "\U000e0000-\U000e0fff]"
)
# After letters of scripts that join or shape letters, a joiner is part of the word.
_JOINERS = re.compile("(?<=[\u0600-\U0010ffff])[\u200c\u200d]")
# Compatibility forms of a letter: full width, half width, or ligature.
_WIDE = re.compile("[\u3000\ufb00-\ufb06\uff01-\uffef]+")
_SINGLE = (
    "\u2018\u2019\u201a\u201b\u2039\u203a\u02bb\u02bc\u00b4\u275b\u275c\u275f"
    "\u2032\u2035\u05f3\u276e\u276f\u27e8\u27e9\u2329\u232a"
)
_DOUBLE = (
    "\u201c\u201d\u201e\u201f\u00ab\u00bb\u275d\u275e\u2e42\u3008\u3009\u300a\u300b"
    "\u300c\u300d\u300e\u300f\u301d\u301e\u301f\u2033\u2036\u05f4\u2760\u27ea\u27eb"
    "\U0001f676\U0001f677\U0001f678"
)
QUOTES = f"'\"{_SINGLE}{_DOUBLE}"
"""Quotation marks of every language."""
_QUOTES = str.maketrans(_SINGLE + _DOUBLE, "'" * len(_SINGLE) + '"' * len(_DOUBLE))
# Punctuation that ends a sentence or clause in any script: Unicode's
# Terminal_Punctuation, and the marks that begin a sentence in Spanish.
_ENDS = (
    ".,;:!?\u2026\u203c\u203d\u2047-\u2049\u2e2e\u2e3c\u2e41\u00a1\u00bf\u00b7\u0589"
    "\u055c\u055e\u05c3\u060c\u061b\u061d-\u061f\u06d4\u0700-\u070c\u07f8\u07f9"
    "\u0830-\u083e\u085e\u0964\u0965\u0e5a\u0e5b\u0f08\u0f0d-\u0f12\u104a\u104b"
    "\u1361-\u1368\u166e\u16eb-\u16ed\u1735\u1736\u17d4-\u17d6\u17da\u1801-\u1805"
    "\u1808\u1809\u1944\u1945\u1aa8-\u1aab\u1b5a-\u1b5f\u1c3b-\u1c3f\u1c7e\u1c7f"
    "\u3001\u3002\ua4fe\ua4ff\ua60d-\ua60f\ua6f3-\ua6f7\ua876\ua877\ua8ce\ua8cf"
    "\ua92f\ua9c7-\ua9c9\uaa5d-\uaa5f\uaaf0\uaaf1\uabeb"
)
_AROUND = f"[\\s{_ENDS}\"'`]+"
_BESIDE_SIGN = re.compile(r"\s*([,:;()])\s*")  # full-width signs bring their own space
_EDGES = re.compile(f"^{_AROUND}|{_AROUND}$")


def same_words(one: str, other: str, *, case_sensitive: bool = False) -> bool:
    """Compare two phrases, ignoring spacing, hyphens, quotes, and end punctuation.

    >>> same_words("All-Reduce", "all reduce")
    True
    >>> same_words("„prefill“", "prefill。")
    True
    >>> same_words("KV caches", "KV cache")
    False
    """
    return _comparable_words(one, case_sensitive) == _comparable_words(other, case_sensitive)


def remove_invisible(text: str) -> str:
    """Remove invisible characters and normalize compatibility forms of letters.

    The text looks the same afterward.
    """
    shown = _WIDE.sub(lambda m: unicodedata.normalize("NFKC", m[0]), text)
    parts = _JOINERS.split(shown)
    joiners = _JOINERS.findall(shown)
    bare = [unicodedata.normalize("NFC", _INVISIBLE.sub("", part)) for part in parts]
    return "".join(a + b for a, b in zip(bare, [*joiners, ""], strict=True))


def fold_text(text: str) -> str:
    """Normalize text for search: visible characters only, in lower case.

    >>> fold_text("«Pre\u00adFILL»")
    '"prefill"'
    """
    return remove_invisible(text).translate(_QUOTES).casefold()


def split_query(query: str) -> list[str]:
    """Split a search query into normalized words, without the quotes around them.

    >>> split_query("„KV cache“")
    ['kv', 'cache']
    """
    words = (word.strip("\"'") for word in fold_text(query).split())
    return [word for word in words if word]


def _comparable_words(words: str, case_sensitive: bool) -> str:
    # A standalone acute accent is a quote; NFKC would turn it into a space.
    plain = unicodedata.normalize("NFKC", words.translate(_QUOTES))
    visible = unicodedata.normalize("NFKC", _INVISIBLE.sub("", plain))
    quoted = "".join(
        "-" if unicodedata.category(c) == "Pd" or c in "\u2043\u2212" else c
        for c in visible.translate(_QUOTES)
    )
    joined = re.sub(r"[\s_-]+", _join_within_word, _EDGES.sub("", quoted))
    spaced = _BESIDE_SIGN.sub(r"\1", " ".join(joined.split()))
    return spaced if case_sensitive else spaced.casefold()


def _join_within_word(gap: re.Match[str]) -> str:
    """Return "" for a gap between two letters or digits; else the gap itself."""
    beside = gap.string[max(gap.start() - 1, 0)] + gap.string[gap.end() : gap.end() + 1]
    inside = all(c.isalnum() or unicodedata.category(c)[0] == "M" for c in beside)
    return "" if inside and len(beside) > 1 else gap[0]
