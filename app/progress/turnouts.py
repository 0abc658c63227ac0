"""Predictions beside results, as a drawing: a range for each exam, and what came."""

import dataclasses
import datetime as dt
from collections.abc import Callable, Sequence

from app.mastery.turnout import Turnout, inside_words

MOST = 12
HEIGHT = 120.0
TOP = 6.0


@dataclasses.dataclass(frozen=True, slots=True)
class Column:
    """One exam; x in per cent, the rest in pixels from the top.

    `low`, `high` and `expected` are empty where nothing was predicted.
    """

    number: int
    x: str
    day: str
    low: str
    high: str
    expected: str
    result: str
    inside: bool


@dataclasses.dataclass(frozen=True, slots=True)
class Line:
    """The same as a row of a table, in words."""

    number: int
    day: str
    predicted: str
    told: str
    result: str
    verdict: str


@dataclasses.dataclass(frozen=True, slots=True)
class Drawing:
    """All exams in order of time; `sentence` counts those inside their range."""

    columns: tuple[Column, ...]
    lines: tuple[Line, ...]
    sentence: str


def drawing(found: Sequence[Turnout], day_of: Callable[[int], dt.date]) -> Drawing:
    """The last exams; `day_of` is the learner's study day of a moment in ms."""
    last = found[-MOST:]
    return Drawing(
        columns=tuple(
            _column(turnout, (place + 0.5) / len(last), day_of)
            for place, turnout in enumerate(last)
        ),
        lines=tuple(_line(turnout, day_of) for turnout in reversed(found)),
        sentence=inside_words(found),
    )


def _column(turnout: Turnout, x: float, day_of: Callable[[int], dt.date]) -> Column:
    told, result = turnout.predicted, turnout.result
    questions = (told.questions if told else result.questions) or 1
    return Column(
        number=result.number,
        x=f"{x * 100:.4g}%",
        day=_short(day_of(result.started)),
        low=_down(told.low, questions) if told else "",
        high=_down(told.high, questions) if told else "",
        expected=_down(told.expected, questions) if told else "",
        result=_down(turnout.score, questions),
        inside=turnout.inside,
    )


def _line(turnout: Turnout, day_of: Callable[[int], dt.date]) -> Line:
    told, result = turnout.predicted, turnout.result
    return Line(
        number=result.number,
        day=_short(day_of(result.started)),
        predicted=f"{told.expected:.0f}, {told.low} to {told.high}" if told else "",
        told=_short(told.day) if told else "",
        result=f"{result.score:.3g} of {result.questions}",
        verdict=_verdict(turnout),
    )


def _verdict(turnout: Turnout) -> str:
    if turnout.predicted is None:
        return "nothing predicted before"
    if not turnout.counts:
        left = turnout.result.questions - turnout.result.answered
        return f"not counted, {left} left open"
    if turnout.inside:
        return "inside"
    return "above" if turnout.score > turnout.predicted.high else "below"


def _short(day: dt.date) -> str:
    return f"{day.day}\u00a0{day:%b}"


def _down(score: float, questions: int) -> str:
    return f"{TOP + HEIGHT * (1 - min(1.0, score / questions)):.4g}"
