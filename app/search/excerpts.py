"""An excerpt of a text that was found: from where a sentence or a row begins."""

import re
from collections.abc import Sequence

from app.search.findings import HighlightPiece

OPEN, CLOSE = "\x02", "\x03"
"""What stands before and behind a word that was looked for."""
_MOST = 26  # words of an excerpt
_FEW = 12  # words after which it may end with its sentence
_FAR = 18  # words between the beginning of a sentence and what was looked for
_BEFORE = 8  # words before it, where its sentence begins farther off
_HIT = re.compile(f"{OPEN}([^{CLOSE}]*)")
_END = re.compile(rf"[.!?;][\"\u201d\u2019)\]{CLOSE}]*$")


def excerpt(marked: str) -> str:
    r"""The part of a marked text that holds most of the words looked for.

    It begins with a sentence, or a row of a table, and ends with one if it can; `…`
    says that there is more before it, or of the last sentence. Where nothing is marked,
    it is the beginning.

    >>> excerpt("Kind, Use; CPU, for all. A \x02GPU\x03 computes; it is fast.")
    '…A \x02GPU\x03 computes; it is fast.'
    """
    words = marked.split()
    begin = _begin(words)
    end = _end(words, begin)
    shown = " ".join(words[begin:end])
    before = "…" if begin else ""
    if end == len(words) or (_END.search(shown) and not shown.endswith(";")):
        return before + shown
    return f"{before}{shown.rstrip(';')}…"


def split_highlights(marked: str) -> tuple[HighlightPiece, ...]:
    """Text with marks as pieces."""
    found = []
    for part in marked.split(OPEN):
        hit, closed, rest = part.partition(CLOSE)
        found += (
            [HighlightPiece(hit, hit=True), HighlightPiece(rest)]
            if closed
            else [HighlightPiece(part)]
        )
    return tuple(piece for piece in found if piece.text)


def _begin(words: Sequence[str]) -> int:
    """Where the excerpt begins: the first place that shows most of the hits."""
    hits = [place for place, word in enumerate(words) if OPEN in word]
    starts = dict.fromkeys(_start(words, hit) for hit in hits)
    return max(starts, key=lambda start: _shown(words, start), default=0)


def _start(words: Sequence[str], hit: int) -> int:
    """The place nearest before a hit where a sentence or a row begins."""
    for place in range(hit, max(-1, hit - _FAR), -1):
        if not place or _END.search(words[place - 1]):
            return place
    return hit - _BEFORE


def _shown(words: Sequence[str], start: int) -> int:
    """How many different words that were looked for an excerpt from here has."""
    text = " ".join(words[start : start + _MOST])
    return len({found.casefold() for found in _HIT.findall(text)})


def _end(words: Sequence[str], begin: int) -> int:
    """The end of the first sentence that holds all that the excerpt can show."""
    most = min(begin + _MOST, len(words))
    last = max((p for p in range(begin, most) if OPEN in words[p]), default=begin)
    for place in range(max(last, begin + _FEW), most):
        if _END.search(words[place]):
            return place + 1
    return most
