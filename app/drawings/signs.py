"""The signs of verdicts, of an estimate and of an answer: color, icon, word."""

from typing import NamedTuple


class Sign(NamedTuple):
    """The class that colors a verdict, and the icon before it; both may be empty.

    `word` says what an answer was; an estimate has a sentence of its own.
    """

    look: str
    icon: str
    word: str = ""


SIGNS = {
    # of an estimate
    "fits": Sign("good", "i-check"),
    "tight": Sign("warn", "i-tight"),
    "no": Sign("bad", "i-cross"),
    "info": Sign("", ""),
    # of an answer
    "right": Sign("good", "i-check", "right"),
    "partly": Sign("warn", "i-tight", "partly right"),
    "wrong": Sign("bad", "i-cross", "not right"),
    "near": Sign("warn", "i-tight"),
    "refused": Sign("warn", "i-alert"),
}
