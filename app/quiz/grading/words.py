"""Grading of typed words: short answers and gaps in a text."""

import re
import unicodedata

from app.content.model import Text
from app.questions.model import Blank, Cloze, Short, ShortOption
from app.questions.verdict import (
    LONGEST,
    Mark,
    Raw,
    Unreadable,
    Verdict,
    only,
    share,
    written,
)

# Curly quotes and every kind of dash are written as the plain one.
_QUOTES = str.maketrans(
    "\u2018\u2019\u201c\u201d\u2010\u2011\u2013\u2014\u2212", "''\"\"-----"
)


def grade_short(answer: Short, raw: Raw, _partial: str) -> Verdict | Unreadable:
    """Judge one typed word or phrase; `answer` in the response holds it."""
    typed = only(raw, "answer")
    if not typed:
        return Unreadable("Nothing is typed.", "Type a word or a short phrase.")
    if len(typed) > LONGEST:
        return Unreadable(f"The answer is longer than {LONGEST} characters.")
    option = _found(answer, typed)
    right = [o.answer for o in answer.options if o.right]
    return Verdict(
        score=float(option is not None and option.right),
        parsed={"text": typed, "option": option.key if option else ""},
        said=f"“{typed}”",
        wanted=" or ".join(f"“{r}”" for r in right),
        feedback=option.feedback if option else Text("", ""),
    )


def grade_cloze(answer: Cloze, raw: Raw, partial: str) -> Verdict | Unreadable:
    """Judge the gaps; `blank.KEY` in the response holds what stands in each.

    Each gap counts the same unless the item wants all or nothing.
    """
    typed = {b.key: only(raw, f"blank.{b.key}") for b in answer.blanks}
    if not any(typed.values()):
        return Unreadable("No gap is filled.", "Type what is missing.")
    if any(len(words) > LONGEST for words in typed.values()):
        return Unreadable(f"An answer is longer than {LONGEST} characters.")
    marks = tuple(
        _gap(number, blank, typed[blank.key])
        for number, blank in enumerate(answer.blanks, 1)
    )
    good = sum(mark.good for mark in marks)
    return Verdict(
        score=float(good == len(marks))
        if partial == "off"
        else share(good, len(marks)),
        parsed={"blanks": typed},
        marks=marks,
        said=", ".join(
            f"“{words}”" if words else "nothing" for words in typed.values()
        ),
        wanted=", ".join(f"“{b.answers[0]}”" for b in answer.blanks),
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


def _found(answer: Short, typed: str) -> ShortOption | None:
    ordered = sorted(answer.options, key=lambda option: not option.right)
    for option in ordered:
        if same_words(option.answer, typed, case_sensitive=answer.case_sensitive):
            return option
    return None


def _gap(number: int, blank: Blank, typed: str) -> Mark:
    good = any(same_words(right, typed) for right in blank.answers)
    return Mark(
        key=blank.key,
        label=f"Gap {number}",
        text=written(blank.hint),
        chosen=bool(typed),
        wanted_chosen=True,
        good=good,
        given=written(typed),
        wanted=written(blank.answers[0]),
    )
