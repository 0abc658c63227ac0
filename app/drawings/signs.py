"""The signs of verdicts, of an estimate and of an answer: color, icon, word."""

from typing import NamedTuple


class VerdictIcon(NamedTuple):
    """The class that colors a verdict, and the icon before it; both may be empty.

    `word` says what an answer was; an estimate has a sentence of its own.
    """

    look: str
    icon: str
    word: str = ""


SIGNS = {
    # of an estimate
    "fits": VerdictIcon("good", "i-check"),
    "tight": VerdictIcon("warn", "i-tight"),
    "no": VerdictIcon("bad", "i-cross"),
    "info": VerdictIcon("", ""),
    # of an answer
    "right": VerdictIcon("good", "i-check", "right"),
    "partly": VerdictIcon("warn", "i-tight", "partly right"),
    "wrong": VerdictIcon("bad", "i-cross", "not right"),
    "near": VerdictIcon("warn", "i-tight"),
    "refused": VerdictIcon("warn", "i-alert"),
}
