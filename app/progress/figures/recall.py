"""Recall at review: what came back known, week by week, against what was expected."""

import dataclasses
import itertools
from collections.abc import Sequence

from markupsafe import Markup

from app.cards.store import DayTotals
from app.drawings.axes import Axis
from app.drawings.columns import HEIGHT, TOP
from app.drawings.planes import PlotArea
from app.drawings.svg import Box, dot, line, nested, polyline, svg_root, text
from app.mastery.wilson import wilson
from app.progress.figures.days import WeekTotals
from app.web.words import format_count, format_percent

LEAST = 10  # fewer cards in a week, and its share would mostly be luck
LATELY = 4  # the weeks that the sentence speaks of
_WIDTH = 80.0  # the rest is for the numbers of the axis
_BOX = Box(0, TOP, _WIDTH, HEIGHT)
_NAMES = TOP + HEIGHT + 18
_LOWEST = 0.8
_TENTH = 0.1
_LINE = 14.0  # pixels that a number needs for itself
Told = Sequence[tuple[int, DayTotals]]
"""Weeks with enough to tell, by their place."""


@dataclasses.dataclass(frozen=True, slots=True)
class WeekRetention:
    """One week: `asked` cards of which `known` were; shares empty when too few."""

    name: str
    asked: int
    known: int
    share: str
    expected: str


@dataclasses.dataclass(frozen=True, slots=True)
class RetentionChart:
    """The weeks as a table and as a drawing, and what they mean.

    `svg` is empty where no week had enough reviews.
    """

    weeks: tuple[WeekRetention, ...]
    svg: Markup
    sentence: str


def recall_by_week(weeks: Sequence[WeekTotals], wanted: float) -> RetentionChart:
    """Recall of the last weeks; `wanted` is the recall that the learner set (0..1)."""
    told = [(n, w.sums) for n, w in enumerate(weeks) if w.sums.asked >= LEAST]
    return RetentionChart(
        weeks=tuple(map(_row, weeks)),
        svg=_draw(weeks, told, wanted) if told else Markup(),
        sentence=_sentence([w.sums for w in weeks[-LATELY:]], wanted),
    )


def _draw(weeks: Sequence[WeekTotals], told: Told, wanted: float) -> Markup:
    plane = PlotArea(_BOX, recall_axis(told, wanted))
    step = 100 / max(1, len(weeks) - 1)
    runs = [run for run in _runs(told) if len(run) > 1]
    lines = [
        polyline(look, [(n * step, _up(plane, value(sums))) for n, sums in run])
        for look, value in (("ln ln2", _chance), ("ln", _share))
        for run in runs
    ]
    marks = [*plane.scale(format_percent), *_target(plane, wanted), nested(lines, _BOX)]
    slot = step * _WIDTH / 100
    for n, sums in _alone(told):
        marks.append(dot("ink", n * slot, plane.down(_share(sums)), 3))
    marks += _last(plane, told[-1][0] * slot, _share(told[-1][1]))
    marks += [
        text(weeks[0].name, 0, _NAMES),
        text(weeks[6].name, _WIDTH / 2, _NAMES, "m"),
        text("this week", _WIDTH, _NAMES, "m"),
    ]
    return svg_root(marks, _NAMES + 6, _says(weeks, told, wanted))


def recall_axis(told: Told, wanted: float) -> Axis:
    """From all down to 80%, or to the tenth below the lowest share."""
    shares = [s for _, sums in told for s in (_share(sums), _chance(sums))]
    low = min([_LOWEST, *(int(s / _TENTH) * _TENTH for s in (*shares, wanted))])
    return Axis(low, 1.0, (1.0, low), "%", 0.01)


def _up(plane: PlotArea, share: float) -> float:
    """A share in the nested drawing, where 0 is at the top."""
    return 100 - plane.axis.place(share)


def _target(plane: PlotArea, wanted: float) -> list[str]:
    """The line aimed at; without words where those of the axis are too near."""
    at = plane.down(wanted)
    marks = [line("dash", 0, at, _WIDTH, at)]
    if _LINE <= at - _BOX.y <= _BOX.height - _LINE:
        marks.append(text(format_percent(wanted), 100, at + 4, "e"))
    return marks


def _last(plane: PlotArea, x: float, share: float) -> list[str]:
    at = plane.down(share)
    words = text("", x, at - 10, "m", bold=format_percent(share))
    return [dot("ink", x, at, 4.5), words]


def _runs(told: Told) -> list[list[tuple[int, DayTotals]]]:
    """Weeks that follow each other without a gap."""
    places = enumerate(told)
    groups = itertools.groupby(places, lambda pair: pair[1][0] - pair[0])
    return [[week for _, week in group] for _, group in groups]


def _alone(told: Told) -> list[tuple[int, DayTotals]]:
    return [run[0] for run in _runs(told) if len(run) == 1]


def _share(sums: DayTotals) -> float:
    return sums.recalled / sums.asked


def _chance(sums: DayTotals) -> float:
    return sums.expected / sums.asked


def _row(week: WeekTotals) -> WeekRetention:
    sums = week.sums
    told = sums.asked >= LEAST
    return WeekRetention(
        name=week.name,
        asked=sums.asked,
        known=sums.recalled,
        share=format_percent(_share(sums)) if told else "",
        expected=format_percent(_chance(sums)) if told else "",
    )


def _sentence(lately: Sequence[DayTotals], wanted: float) -> str:
    """What the last weeks say of the intervals; empty when they say nothing yet."""
    sums = sum(lately, DayTotals())
    if sums.asked < LEAST:
        return ""
    low, high = wilson(sums.recalled, sums.asked)
    of = f"{format_percent(_share(sums))} of {format_count(sums.asked, 'card')}"
    known = (
        f"In the last four weeks you knew {of} when they came back; the schedule "
        f"expected {format_percent(_chance(sums))}."
    )
    if low > wanted:
        return (
            f"{known} You want {format_percent(wanted)}, so fewer reviews would do: lower "
            "the target recall in the settings."
        )
    if high < wanted:
        return (
            f"{known} You want {format_percent(wanted)}. Raise the target recall in the "
            "settings, and cards come back sooner, which takes more of your minutes."
        )
    return f"{known} That is about the {format_percent(wanted)} you want."


def _says(weeks: Sequence[WeekTotals], told: Told, wanted: float) -> str:
    (first, then), (last, now) = told[0], told[-1]
    since = f"from {format_percent(_share(then))} in the week of {weeks[first].name}"
    until = "this week" if last == len(weeks) - 1 else f"in that of {weeks[last].name}"
    return (
        f"Recall at review by week: {since} to {format_percent(_share(now))} {until}; "
        f"you want {format_percent(wanted)}."
    )
