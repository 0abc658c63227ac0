"""Score, marks per part, feedback, confidence levels."""

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
LONGEST = 200


@dataclasses.dataclass(frozen=True, slots=True)
class PartResult:
    """One part of the question after the answer: an option, a step, a row, a gap.

    `label` names it (“A”, “2.”, the left cell); `given` is what the learner put
    there and `wanted` what belongs there; for options `chosen` and `wanted_chosen`
    say it. `good` is whether the learner decided rightly about this part.
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
    """The judgment of one response.

    `score` is 0..1; `parsed` what was understood, ready for JSON; `said` and
    `wanted` put the answer given and the right one in words; `feedback` belongs to
    the whole answer (a foreseen wrong number). `near` is a sentence for an answer
    that deserves another try with the same numbers before the solution is shown.
    `unreadable` says why an answer that was given in an exam could not be judged.
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
        """The score as one of three words."""
        if self.score >= _WHOLE:
            return "right"
        return "partly" if self.score > 0 else "wrong"

    @property
    def withheld(self) -> "GradeResult":
        """The same where nobody answered: what belongs to each part, and no points."""
        marks = tuple(
            dataclasses.replace(mark, chosen=False, given=NO_TEXT, good=False)
            for mark in self.marks
        )
        return dataclasses.replace(self, score=0.0, marks=marks, said="", near="")


@dataclasses.dataclass(frozen=True, slots=True)
class UnreadableResponse:
    """A response that cannot be judged; it is refused and costs no attempt."""

    message: str
    hint: str = ""


def single_value(raw: Raw, name: str) -> str:
    """The single value sent under `name`, without surrounding space; else empty."""
    values = raw.get(name) or [""]
    return values[0].strip()


def fraction(part: float, whole: float) -> float:
    """`part` of `whole`, kept within 0..1."""
    return min(1.0, max(0.0, part / whole)) if whole else 0.0


def written(words: str) -> RichText:
    """What a learner typed as text that is safe on a page."""
    return RichText(escape(words), words)


@dataclasses.dataclass(frozen=True, slots=True)
class ConfidenceLevel:
    """A level of certainty: right in `least` to `most` (0..1) of such answers."""

    word: str
    means: str
    least: float
    most: float


# Where certainty is marked, “think so” begins to pay at 67% right and “sure” at 80%;
# below lies a guess, down to one choice in four.
LEVELS = (
    ConfidenceLevel("Guess", "under 67%", 0.25, 0.67),
    ConfidenceLevel("Think so", "67 to 79%", 0.67, 0.80),
    ConfidenceLevel("Sure", "80% or more", 0.80, 1.0),
)
"""From the least sure to the surest; an answer keeps the place, counted from 1."""

# Characters that nobody sees or types on purpose: what Unicode names
# Default_Ignorable_Code_Point (zero-width spaces and joiners, soft hyphens, byte order
# marks, marks of the writing direction, variation selectors, fillers of Hangul).
_INVISIBLE = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e"
    "\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb"
    "\U000e0000-\U000e0fff]"
)
# Behind letters of scripts that join or shape theirs, a joiner is part of the word.
_JOINERS = re.compile("(?<=[\u0600-\U0010ffff])[\u200c\u200d]")
# Forms of a letter that look like it and mean it: wide, half as wide, or as a ligature.
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
# What ends a sentence or a part of one in any script: what Unicode names
# Terminal_Punctuation, with what begins a sentence in Spanish.
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
_EDGES = re.compile(f"^{_AROUND}|{_AROUND}$")


def same_words(one: str, other: str, *, case_sensitive: bool = False) -> bool:
    """Whether two phrases are the same but for spacing, hyphens, quotes, end marks.

    >>> same_words("All-Reduce", "all reduce")
    True
    >>> same_words("„prefill“", "prefill。")
    True
    >>> same_words("KV caches", "KV cache")
    False
    """
    return _plain(one, case_sensitive) == _plain(other, case_sensitive)


def remove_invisible(text: str) -> str:
    """The text without characters that nobody sees, its letters in their usual form.

    It looks the same afterward.
    """
    shown = _WIDE.sub(lambda m: unicodedata.normalize("NFKC", m[0]), text)
    parts = _JOINERS.split(shown)
    joiners = _JOINERS.findall(shown)
    bare = [unicodedata.normalize("NFC", _INVISIBLE.sub("", part)) for part in parts]
    return "".join(a + b for a, b in zip(bare, [*joiners, ""], strict=True))


def fold_text(text: str) -> str:
    """A text as searches compare it: what is seen of it, in small letters.

    >>> fold_text("«Pre\u00adFILL»")
    '"prefill"'
    """
    return remove_invisible(text).translate(_QUOTES).casefold()


def split_query(query: str) -> list[str]:
    """The words of a search as `fold_text` has them, without quotes around them.

    >>> split_query("„KV cache“")
    ['kv', 'cache']
    """
    words = (word.strip("\"'") for word in fold_text(query).split())
    return [word for word in words if word]


def _plain(words: str, case_sensitive: bool) -> str:
    # The acute accent that stands alone is a quote; NFKC would make a space of it.
    plain = unicodedata.normalize("NFKC", words.translate(_QUOTES))
    visible = unicodedata.normalize("NFKC", _INVISIBLE.sub("", plain))
    quoted = "".join(
        "-" if unicodedata.category(c) == "Pd" or c in "\u2043\u2212" else c
        for c in visible.translate(_QUOTES)
    )
    joined = re.sub(r"[\s_-]+", _in_word, _EDGES.sub("", quoted))
    spaced = " ".join(joined.split())
    return spaced if case_sensitive else spaced.casefold()


def _in_word(gap: re.Match[str]) -> str:
    """Nothing between two letters or digits, with their marks; else the gap itself."""
    beside = gap.string[max(gap.start() - 1, 0)] + gap.string[gap.end() : gap.end() + 1]
    inside = all(c.isalnum() or unicodedata.category(c)[0] == "M" for c in beside)
    return "" if inside and len(beside) > 1 else gap[0]
