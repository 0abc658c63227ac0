"""Predictions beside results, as a drawing: a range for each exam, and what came."""

import dataclasses
import datetime as dt
from collections.abc import Callable, Sequence

from markupsafe import Markup

from app.drawings.planes import SHARES, PlotArea, in_percent
from app.drawings.svg import Box, cross_line, dot, line, svg_root, text
from app.mastery.turnout import PredictionOutcome, inside_words
from app.web.words import format_short_date

MOST = 12
_PLANE = PlotArea(Box(0, 6.0, 87, 120.0), SHARES)


@dataclasses.dataclass(frozen=True, slots=True)
class PredictionRow:
    """The same as a row of a table, in words."""

    number: int
    day: str
    predicted: str
    told: str
    result: str
    verdict: str


@dataclasses.dataclass(frozen=True, slots=True)
class PredictionChart:
    """All exams as a table and as a drawing; `sentence` counts those inside."""

    lines: tuple[PredictionRow, ...]
    svg: Markup
    sentence: str


def turnouts_drawn(
    found: Sequence[PredictionOutcome], day_of: Callable[[int], dt.date]
) -> PredictionChart:
    """The last exams; `day_of` is the learner's study day of a moment in ms."""
    sentence = inside_words(found)
    told = sentence or "No result can be held against a prediction yet."
    return PredictionChart(
        lines=tuple(_line(turnout, day_of) for turnout in reversed(found)),
        svg=_draw(found[-MOST:], day_of, f"{told} The table has each."),
        sentence=sentence,
    )


def _draw(last: Sequence[PredictionOutcome], day_of: Callable[[int], dt.date], says: str) -> Markup:
    marks = _PLANE.scale(in_percent)
    for place, turnout in enumerate(last):
        x = _PLANE.box.width * (place + 0.5) / len(last)
        marks += _exam(turnout, x)
        if turnout in (last[0], last[-1]):
            day = format_short_date(day_of(turnout.result.started))
            marks.append(text(day, x, 146, "m"))
    return svg_root(marks, 150, says)


def _exam(turnout: PredictionOutcome, x: float) -> list[str]:
    """The range that was predicted with what was expected in it, and the result."""
    told, result = turnout.predicted, turnout.result
    questions = (told.questions if told else result.questions) or 1
    marks = []
    if told is not None:
        low, high = (_PLANE.down(n / questions) for n in (told.low, told.high))
        marks = [
            line("thin", x, high, x, low),
            cross_line("thin", x, high),
            cross_line("thin", x, low),
            cross_line("edge", x, _PLANE.down(told.expected / questions)),
        ]
    look = "ink" if turnout.inside else "hole"
    return [*marks, dot(look, x, _PLANE.down(turnout.score / questions), 5)]


def _line(turnout: PredictionOutcome, day_of: Callable[[int], dt.date]) -> PredictionRow:
    told, result = turnout.predicted, turnout.result
    return PredictionRow(
        number=result.number,
        day=format_short_date(day_of(result.started)),
        predicted=f"{told.expected:.0f}, {told.low} to {told.high}" if told else "",
        told=format_short_date(told.day) if told else "",
        result=f"{result.score:.3g} of {result.questions}",
        verdict=_verdict(turnout),
    )


def _verdict(turnout: PredictionOutcome) -> str:
    if turnout.predicted is None:
        return "nothing predicted before"
    if not turnout.counts:
        left = turnout.result.questions - turnout.result.answered
        return f"not counted, {left} left open"
    if turnout.inside:
        return "inside"
    return "above" if turnout.score > turnout.predicted.high else "below"
