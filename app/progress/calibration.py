"""How sure a learner was, against how often they were right."""

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Literal

from markupsafe import Markup

from app.questions.question_type import CONFIDENCE_LEVELS, compute_wilson_interval
from app.web.formatting import format_count_with_noun, format_percent
from app.widgets.svg import (
    SHARE_AXIS,
    Box,
    PlotArea,
    build_svg_element,
    draw_dot,
    draw_line,
    draw_rect_in_percent,
    draw_text,
)

_CALIBRATION_PLOT_AREA = PlotArea(Box(0, 16.0, 100, 220.0), SHARE_AXIS)
_LEVEL_NAMES_Y = 254.0
MIN_ANSWERS_OF_LEVEL = 5  # with fewer answers, a confidence level has no share
_MIN_DOT_SIZE, _MAX_DOT_SIZE = 4.0, 10.0
_ANSWERS_OF_LARGEST_DOT = 150

ComparisonWithTarget = Literal["below", "within", "above"]


@dataclasses.dataclass(frozen=True, slots=True)
class CalibrationRow:
    """A confidence level: the share it should have (`min_share` to `max_share`, 0..1), and what it has."""

    label: str
    target_text: str
    min_share: float
    max_share: float
    answer_count: int
    right_count: int

    @property
    def has_enough_answers(self) -> bool:
        """Whether there are enough answers to show a share."""
        return self.answer_count >= MIN_ANSWERS_OF_LEVEL

    @property
    def right_share(self) -> float:
        """The share of right answers, 0..1."""
        return self.right_count / (self.answer_count or 1)

    @property
    def right_share_interval(self) -> tuple[float, float]:
        """The 90% interval of the share."""
        return compute_wilson_interval(self.right_count, self.answer_count)

    @property
    def right_share_text(self) -> str:
        return format_percent(self.right_share)

    @property
    def comparison_with_target(self) -> ComparisonWithTarget:
        """Whether the share is below, within or above what the level should have."""
        low, high = self.right_share_interval
        if self.has_enough_answers and high < self.min_share:
            return "below"
        return "above" if self.has_enough_answers and low > self.max_share else "within"


@dataclasses.dataclass(frozen=True, slots=True)
class CalibrationChart:
    """All confidence levels; `answer_count` counts those given with a confidence.

    `svg` is empty if no level has enough answers.
    """

    levels: tuple[CalibrationRow, ...]
    answer_count: int
    sentences: tuple[str, ...]
    svg: Markup


def build_calibration_chart(
    counts_by_level_and_right: Mapping[tuple[int, bool], int],
) -> CalibrationChart:
    """Return the calibration chart.

    `counts_by_level_and_right` are answers by level (1 to 3) and by being right.
    """
    levels = tuple(
        _build_calibration_row(
            n,
            counts_by_level_and_right.get((n, True), 0),
            counts_by_level_and_right.get((n, False), 0),
        )
        for n in (1, 2, 3)
    )
    told = [level for level in levels if level.has_enough_answers]
    return CalibrationChart(
        levels=levels,
        answer_count=sum(level.answer_count for level in levels),
        sentences=_describe_calibration(levels),
        svg=_draw_calibration(levels, told) if told else Markup(),
    )


def _build_calibration_row(level_number: int, right_count: int, wrong_count: int) -> CalibrationRow:
    said = CONFIDENCE_LEVELS[level_number - 1]
    return CalibrationRow(
        said.label,
        said.target_probability_text,
        said.min_right_share,
        said.max_right_share,
        right_count + wrong_count,
        right_count,
    )


def _draw_calibration(
    levels: Sequence[CalibrationRow], levels_with_share: Sequence[CalibrationRow]
) -> Markup:
    marks = [
        *_CALIBRATION_PLOT_AREA.draw_gridlines_with_labels(format_percent, "left"),
        *map(_draw_target_range, levels),
    ]
    marks.append(
        draw_line(
            "dash", 0, _CALIBRATION_PLOT_AREA.y_pixels(0), 100, _CALIBRATION_PLOT_AREA.y_pixels(1)
        )
    )
    for level in levels_with_share:
        marks += _draw_share_with_range(level)
    marks += [
        draw_text("guess", 46, _LEVEL_NAMES_Y, "m"),
        draw_text("think so", 72, _LEVEL_NAMES_Y, "m"),
        draw_text("sure", 100, _LEVEL_NAMES_Y, "e"),
    ]
    said = "; ".join(
        f"{level.label}: right {level.right_share_text}" for level in levels_with_share
    )
    return build_svg_element(marks, _LEVEL_NAMES_Y + 10, f"How sure you were. {said}.")


def _draw_target_range(level: CalibrationRow) -> str:
    """Return the box of the shares that a level should have."""
    top, foot = (
        _CALIBRATION_PLOT_AREA.y_pixels(level.max_share),
        _CALIBRATION_PLOT_AREA.y_pixels(level.min_share),
    )
    left, right = level.min_share * 100, level.max_share * 100
    return draw_rect_in_percent("band", left, top, right - left, foot - top)


def _draw_share_with_range(level: CalibrationRow) -> list[str]:
    """Return the share with its range; the dot is larger with more answers."""
    x, at = (
        (level.min_share + level.max_share) / 2 * 100,
        _CALIBRATION_PLOT_AREA.y_pixels(level.right_share),
    )
    low, high = level.right_share_interval
    grown = min(1.0, math.sqrt(level.answer_count / _ANSWERS_OF_LARGEST_DOT))
    return [
        draw_line(
            "edge",
            x,
            _CALIBRATION_PLOT_AREA.y_pixels(high),
            x,
            _CALIBRATION_PLOT_AREA.y_pixels(low),
        ),
        draw_dot("ink", x, at, _MIN_DOT_SIZE + (_MAX_DOT_SIZE - _MIN_DOT_SIZE) * grown),
        draw_text(level.right_share_text, x - 4, at + 4, "b e halo"),
    ]


def _describe_calibration(levels: Sequence[CalibrationRow]) -> tuple[str, ...]:
    guess, thought, sure = levels
    said = []
    if sure.has_enough_answers:
        wrong = sure.answer_count - sure.right_count
        found = f"When you were sure, you were right {sure.right_share_text} of the time"
        them = format_count_with_noun(wrong, "answer")
        said.append(
            f"{found}; {them} you were sure of {'was' if wrong == 1 else 'were'} wrong."
            if wrong
            else f"{found}, in {format_count_with_noun(sure.answer_count, 'answer')}."
        )
    said += [
        f"“{level.label}” was right {level.right_share_text} of the time."
        for level in (thought, guess)
        if level.has_enough_answers and level.comparison_with_target == "below"
    ]
    if guess.has_enough_answers and guess.comparison_with_target == "above":
        said.append(
            f"Your guesses were right {guess.right_share_text} of the time: you know more than you think."
        )
    return tuple(said)
