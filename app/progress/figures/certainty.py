"""Calibration: how often a learner is right, against how sure they said they were."""

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Literal

from markupsafe import Markup

from app.drawings.planes import SHARES, PlotArea, in_percent
from app.drawings.svg import Box, dot, line, rect, svg_root, text
from app.mastery.wilson import wilson
from app.questions.certainty import LEVELS
from app.web.words import format_count, format_percent

_PLANE = PlotArea(Box(0, 16.0, 100, 220.0), SHARES)
_NAMES = 254.0
ENOUGH = 5  # fewer answers at a level say next to nothing about it
_SMALL, _LARGE = 4.0, 10.0
_MANY = 150

Look = Literal["below", "within", "above"]


@dataclasses.dataclass(frozen=True, slots=True)
class CalibrationRow:
    """A level of certainty: what it stands for, and how often it was right.

    It stands for `least` to `most` (0..1).
    """

    word: str
    stands_for: str
    least: float
    most: float
    answers: int
    right: int

    @property
    def told(self) -> bool:
        """Whether there are enough answers to say anything."""
        return self.answers >= ENOUGH

    @property
    def share(self) -> float:
        """The share that was right."""
        return self.right / (self.answers or 1)

    @property
    def range(self) -> tuple[float, float]:
        """Where the share lies in nine cases of ten."""
        return wilson(self.right, self.answers)

    @property
    def words(self) -> str:
        """The share in words."""
        return format_percent(self.share)

    @property
    def look(self) -> Look:
        """Whether the word holds what it stands for, as far as can be told."""
        low, high = self.range
        if self.told and high < self.least:
            return "below"
        return "above" if self.told and low > self.most else "within"


@dataclasses.dataclass(frozen=True, slots=True)
class CalibrationChart:
    """All levels of certainty; `answers` are all that came with one.

    `svg` is empty where no level has answers enough.
    """

    levels: tuple[CalibrationRow, ...]
    answers: int
    sentences: tuple[str, ...]
    svg: Markup


def certainty(counts: Mapping[tuple[int, bool], int]) -> CalibrationChart:
    """The diagram; `counts` are answers by level (1 to 3) and by being right."""
    levels = tuple(
        _level(n, counts.get((n, True), 0), counts.get((n, False), 0)) for n in (1, 2, 3)
    )
    told = [level for level in levels if level.told]
    return CalibrationChart(
        levels=levels,
        answers=sum(level.answers for level in levels),
        sentences=_sentences(levels),
        svg=_draw(levels, told) if told else Markup(),
    )


def _level(number: int, right: int, wrong: int) -> CalibrationRow:
    said = LEVELS[number - 1]
    return CalibrationRow(said.word, said.means, said.least, said.most, right + wrong, right)


def _draw(levels: Sequence[CalibrationRow], told: Sequence[CalibrationRow]) -> Markup:
    marks = [*_PLANE.scale(in_percent, "left"), *map(_box, levels)]
    marks.append(line("dash", 0, _PLANE.down(0), 100, _PLANE.down(1)))
    for level in told:
        marks += _point(level)
    marks += [
        text("guess", 46, _NAMES, "m"),
        text("think so", 72, _NAMES, "m"),
        text("sure", 100, _NAMES, "e"),
    ]
    said = "; ".join(f"{level.word}: right {level.words}" for level in told)
    return svg_root(marks, _NAMES + 10, f"How sure you were. {said}.")


def _box(level: CalibrationRow) -> str:
    """Where the share lies if the word holds what it stands for."""
    top, foot = _PLANE.down(level.most), _PLANE.down(level.least)
    left, right = level.least * 100, level.most * 100
    return rect("band", left, top, right - left, foot - top)


def _point(level: CalibrationRow) -> list[str]:
    """The share with its range, larger the more answers there are."""
    x, at = (level.least + level.most) / 2 * 100, _PLANE.down(level.share)
    low, high = level.range
    grown = min(1.0, math.sqrt(level.answers / _MANY))
    return [
        line("edge", x, _PLANE.down(high), x, _PLANE.down(low)),
        dot("ink", x, at, _SMALL + (_LARGE - _SMALL) * grown),
        text(level.words, x - 4, at + 4, "b e halo"),
    ]


def _sentences(levels: Sequence[CalibrationRow]) -> tuple[str, ...]:
    guess, thought, sure = levels
    said = []
    if sure.told:
        wrong = sure.answers - sure.right
        found = f"When you were sure, you were right {sure.words} of the time"
        them = format_count(wrong, "answer")
        said.append(
            f"{found}. In {them} you were sure and not right."
            if wrong
            else f"{found}, in {format_count(sure.answers, 'answer')}."
        )
    said += [
        f"“{level.word}” was right {level.words} of the time."
        for level in (thought, guess)
        if level.told and level.look == "below"
    ]
    if guess.told and guess.look == "above":
        said.append(
            f"Your guesses were right {guess.words} of the time: you know more than you think."
        )
    return tuple(said)
