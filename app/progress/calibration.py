"""How sure a learner was, against how often they were right."""

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Literal

from markupsafe import Markup

from app.questions.question_type import CONFIDENCE_LEVELS, compute_wilson_interval
from app.web.formatting import format_count_with_noun, format_percent
from app.widgets.svg import (
    SHARES,
    Box,
    PlotArea,
    build_svg_element,
    draw_dot,
    draw_line,
    draw_rect_in_percent,
    draw_text,
)

_PLANE = PlotArea(Box(0, 16.0, 100, 220.0), SHARES)
_NAMES = 254.0
ENOUGH = 5  # with fewer answers, a confidence level has no share
_SMALL, _LARGE = 4.0, 10.0
_MANY = 150

Look = Literal["below", "within", "above"]


@dataclasses.dataclass(frozen=True, slots=True)
class CalibrationRow:
    """A confidence level: the share it should have (`least` to `most`, 0..1), and what it has."""

    word: str
    stands_for: str
    least: float
    most: float
    answers: int
    right: int

    @property
    def has_enough_answers(self) -> bool:
        """Whether there are enough answers to show a share."""
        return self.answers >= ENOUGH

    @property
    def share(self) -> float:
        """The share of right answers, 0..1."""
        return self.right / (self.answers or 1)

    @property
    def range(self) -> tuple[float, float]:
        """The 90% interval of the share."""
        return compute_wilson_interval(self.right, self.answers)

    @property
    def words(self) -> str:
        return format_percent(self.share)

    @property
    def look(self) -> Look:
        """Whether the share is below, within or above what the level should have."""
        low, high = self.range
        if self.has_enough_answers and high < self.least:
            return "below"
        return "above" if self.has_enough_answers and low > self.most else "within"


@dataclasses.dataclass(frozen=True, slots=True)
class CalibrationChart:
    """All confidence levels; `answers` counts those given with a confidence.

    `svg` is empty if no level has enough answers.
    """

    levels: tuple[CalibrationRow, ...]
    answers: int
    sentences: tuple[str, ...]
    svg: Markup


def build_calibration_chart(counts: Mapping[tuple[int, bool], int]) -> CalibrationChart:
    """Return the calibration chart; `counts` are answers by level (1 to 3) and by being right."""
    levels = tuple(
        _calibration_row(n, counts.get((n, True), 0), counts.get((n, False), 0)) for n in (1, 2, 3)
    )
    told = [level for level in levels if level.has_enough_answers]
    return CalibrationChart(
        levels=levels,
        answers=sum(level.answers for level in levels),
        sentences=_calibration_sentences(levels),
        svg=_draw_calibration(levels, told) if told else Markup(),
    )


def _calibration_row(number: int, right: int, wrong: int) -> CalibrationRow:
    said = CONFIDENCE_LEVELS[number - 1]
    return CalibrationRow(
        said.label,
        said.target_probability_text,
        said.min_right_share,
        said.max_right_share,
        right + wrong,
        right,
    )


def _draw_calibration(
    levels: Sequence[CalibrationRow], levels_with_share: Sequence[CalibrationRow]
) -> Markup:
    marks = [*_PLANE.draw_ticks(format_percent, "left"), *map(_draw_target_range, levels)]
    marks.append(draw_line("dash", 0, _PLANE.y_pixels(0), 100, _PLANE.y_pixels(1)))
    for level in levels_with_share:
        marks += _draw_share_with_range(level)
    marks += [
        draw_text("guess", 46, _NAMES, "m"),
        draw_text("think so", 72, _NAMES, "m"),
        draw_text("sure", 100, _NAMES, "e"),
    ]
    said = "; ".join(f"{level.word}: right {level.words}" for level in levels_with_share)
    return build_svg_element(marks, _NAMES + 10, f"How sure you were. {said}.")


def _draw_target_range(level: CalibrationRow) -> str:
    """Return the box of the shares that a level should have."""
    top, foot = _PLANE.y_pixels(level.most), _PLANE.y_pixels(level.least)
    left, right = level.least * 100, level.most * 100
    return draw_rect_in_percent("band", left, top, right - left, foot - top)


def _draw_share_with_range(level: CalibrationRow) -> list[str]:
    """Return the share with its range; the dot is larger with more answers."""
    x, at = (level.least + level.most) / 2 * 100, _PLANE.y_pixels(level.share)
    low, high = level.range
    grown = min(1.0, math.sqrt(level.answers / _MANY))
    return [
        draw_line("edge", x, _PLANE.y_pixels(high), x, _PLANE.y_pixels(low)),
        draw_dot("ink", x, at, _SMALL + (_LARGE - _SMALL) * grown),
        draw_text(level.words, x - 4, at + 4, "b e halo"),
    ]


def _calibration_sentences(levels: Sequence[CalibrationRow]) -> tuple[str, ...]:
    guess, thought, sure = levels
    said = []
    if sure.has_enough_answers:
        wrong = sure.answers - sure.right
        found = f"When you were sure, you were right {sure.words} of the time"
        them = format_count_with_noun(wrong, "answer")
        said.append(
            f"{found}; {them} you were sure of {'was' if wrong == 1 else 'were'} wrong."
            if wrong
            else f"{found}, in {format_count_with_noun(sure.answers, 'answer')}."
        )
    said += [
        f"“{level.word}” was right {level.words} of the time."
        for level in (thought, guess)
        if level.has_enough_answers and level.look == "below"
    ]
    if guess.has_enough_answers and guess.look == "above":
        said.append(
            f"Your guesses were right {guess.words} of the time: you know more than you think."
        )
    return tuple(said)
