"""Calibration: how often a learner is right, against how sure they said they were."""

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Literal

from app.progress.figures.axis import percent, pixels
from app.progress.figures.share import wilson
from app.web.words import count_of, percent_of

TOP, BOTTOM = 6.0, 226.0
# What a word stands for. Where certainty is marked, “think so” begins to pay at 67%
# right and “sure” at 80%; below lies a guess, down to one choice in four.
_WORDS = (
    ("Guess", 0.25, 0.67, "under 67%"),
    ("Think so", 0.67, 0.80, "67 to 80%"),
    ("Sure", 0.80, 1.0, "80% or more"),
)
ENOUGH = 5  # fewer answers at a level say next to nothing about it
_SMALL, _LARGE = 4.0, 10.0
_MANY = 150

Look = Literal["below", "within", "above"]


@dataclasses.dataclass(frozen=True, slots=True)
class Box:
    """Where the share lies if the word holds what it stands for."""

    x: str
    y: str
    width: str
    height: str


@dataclasses.dataclass(frozen=True, slots=True)
class Point:
    """The share that was right, the ends of its range, and its number in words."""

    x: str
    y: str
    r: str
    top: str
    foot: str
    beside: str
    words: str


@dataclasses.dataclass(frozen=True, slots=True)
class Certain:
    """A level of certainty: what it stands for, and how often it was right.

    `low` and `high` are the range of the share in words; `point` and they are empty
    where too few answers were given to tell.
    """

    word: str
    stands_for: str
    answers: int
    right: int
    box: Box
    look: Look = "within"
    point: Point | None = None
    low: str = ""
    high: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class Certainty:
    """All levels of certainty; `answers` are all that came with one."""

    levels: tuple[Certain, ...]
    answers: int
    sentences: tuple[str, ...]
    label: str

    @property
    def told(self) -> tuple[Certain, ...]:
        """The levels with enough answers to be drawn."""
        return tuple(level for level in self.levels if level.point)


def certainty(counts: Mapping[tuple[int, bool], int]) -> Certainty:
    """The diagram; `counts` are answers by level (1 to 3) and by being right."""
    levels = tuple(
        _level(n, counts.get((n, True), 0), counts.get((n, False), 0))
        for n in (1, 2, 3)
    )
    told = [level for level in levels if level.point]
    said = [f"{level.word}: right {level.point.words}" for level in told if level.point]
    return Certainty(
        levels=levels,
        answers=sum(level.answers for level in levels),
        sentences=_sentences(levels),
        label=f"Calibration. {'; '.join(said)}." if said else "",
    )


def _level(number: int, right: int, wrong: int) -> Certain:
    answers = right + wrong
    word, least, most, stands_for = _WORDS[number - 1]
    box = Box(
        x=percent(least * 100),
        y=_down(most),
        width=percent((most - least) * 100),
        height=pixels((most - least) * (BOTTOM - TOP)),
    )
    level = Certain(word, stands_for, answers, right, box)
    if answers < ENOUGH:
        return level
    low, high = wilson(right, answers)
    return dataclasses.replace(
        level,
        point=_point((least + most) / 2, right, answers),
        low=percent_of(low),
        high=percent_of(high),
        look="below" if high < least else "above" if low > most else "within",
    )


def _point(middle: float, right: int, answers: int) -> Point:
    low, high = wilson(right, answers)
    grown = min(1.0, math.sqrt(answers / _MANY))
    return Point(
        x=percent(middle * 100),
        y=_down(right / answers),
        r=pixels(_SMALL + (_LARGE - _SMALL) * grown),
        top=_down(high),
        foot=_down(low),
        beside=percent(middle * 100 - 4),
        words=percent_of(right / answers),
    )


def _down(share: float) -> str:
    return pixels(BOTTOM - share * (BOTTOM - TOP))


def _sentences(levels: Sequence[Certain]) -> tuple[str, ...]:
    guess, thought, sure = levels
    said = []
    if sure.point:
        wrong = sure.answers - sure.right
        found = f"When sure you were right {sure.point.words} of the time"
        them = count_of(wrong, "answer")
        said.append(
            f"{found}: {them} you would not have checked."
            if wrong
            else f"{found}, in {count_of(sure.answers, 'answer')}."
        )
    said += [
        f"“{level.word}” was right {level.point.words} of the time."
        for level in (thought, guess)
        if level.point and level.look == "below"
    ]
    if guess.point and guess.look == "above":
        said.append(
            f"Your guesses were right {guess.point.words} of the time: you know more "
            "than you trust."
        )
    return tuple(said)
