"""Recall at review: what came back known, week by week, against what was expected."""

import dataclasses
import itertools
from collections.abc import Callable, Sequence

from app.progress.figures.axis import HEIGHT, TOP, Tick, across, down, percent, pixels
from app.progress.figures.days import Studied, Week
from app.progress.figures.share import wilson
from app.web.words import count_of, percent_of

LEAST = 10  # fewer cards in a week, and its share would mostly be luck
LATELY = 4  # the weeks that the sentence speaks of
WIDTH = 80.0  # the rest is for the numbers of the axis
_LOWEST = 0.8
_TENTH = 0.1
_LINE = 14.0  # pixels that a number needs for itself
Told = Sequence[tuple[int, Studied]]
"""Weeks with enough to tell, by their place."""


@dataclasses.dataclass(frozen=True, slots=True)
class WeekOfRecall:
    """One week: `asked` cards of which `known` were; shares empty when too few."""

    name: str
    asked: int
    known: int
    share: str
    expected: str


@dataclasses.dataclass(frozen=True, slots=True)
class Spot:
    """A week alone, or the newest one: its place and its share in words."""

    x: str
    y: str
    above: str
    words: str


@dataclasses.dataclass(frozen=True, slots=True)
class Recall:
    """The drawing, its table and what it means; `points` of lines are in per cent.

    Without `lines` and `spots` no week had enough reviews, and nothing is drawn.
    """

    weeks: tuple[WeekOfRecall, ...]
    ticks: tuple[Tick, ...]
    lines: tuple[str, ...]
    expected: tuple[str, ...]
    spots: tuple[Spot, ...]
    last: Spot | None
    target: Tick
    sentence: str
    label: str


def recall_by_week(weeks: Sequence[Week], wanted: float) -> Recall:
    """Recall of the last weeks; `wanted` is the recall that the learner set (0..1)."""
    told = [(n, w.sums) for n, w in enumerate(weeks) if w.sums.asked >= LEAST]
    shares = [s for _, sums in told for s in (_share(sums), _chance(sums))]
    low = min([_LOWEST, *(int(s / _TENTH) * _TENTH for s in (*shares, wanted))])
    place = _Place(len(weeks), low)
    last = place.spot(*told[-1]) if told else None
    return Recall(
        weeks=tuple(map(_row, weeks)),
        ticks=tuple(Tick(down(v, low, 1.0), percent_of(v)) for v in (1.0, low)),
        lines=place.lines(told, _share),
        expected=place.lines(told, _chance),
        spots=tuple(place.spot(n, s) for n, s in _alone(told)),
        last=last,
        target=_target(wanted, low),
        sentence=_sentence([w.sums for w in weeks[-LATELY:]], wanted),
        label=_label(weeks, told, wanted),
    )


def _target(wanted: float, low: float) -> Tick:
    """The line aimed at; without words where those of the axis are too near."""
    y = down(wanted, low, 1.0)
    free = _LINE <= float(y) - TOP <= HEIGHT - _LINE
    return Tick(y, percent_of(wanted) if free else "")


@dataclasses.dataclass(frozen=True, slots=True)
class _Place:
    """Turns weeks and shares into places: `count` weeks, the axis begins at `low`."""

    count: int
    low: float

    def lines(self, told: Told, value: Callable[[Studied], float]) -> tuple[str, ...]:
        """A line for each run of weeks that can be told; points in per cent."""
        return tuple(
            " ".join(self._point(n, value(sums)) for n, sums in run)
            for run in _runs(told)
            if len(run) > 1
        )

    def spot(self, number: int, sums: Studied) -> Spot:
        x = percent(across(number, self.count, WIDTH))
        share = _share(sums)
        y = down(share, self.low, 1.0)
        return Spot(x, y, pixels(float(y) - 10), percent_of(share))

    def _point(self, number: int, share: float) -> str:
        y = 100 * (1 - (share - self.low) / (1 - self.low))
        return f"{pixels(across(number, self.count))},{pixels(y)}"


def _runs(told: Told) -> list[list[tuple[int, Studied]]]:
    """Weeks that follow each other without a gap."""
    places = enumerate(told)
    groups = itertools.groupby(places, lambda pair: pair[1][0] - pair[0])
    return [[week for _, week in group] for _, group in groups]


def _alone(told: Told) -> list[tuple[int, Studied]]:
    return [run[0] for run in _runs(told) if len(run) == 1]


def _share(sums: Studied) -> float:
    return sums.recalled / sums.asked


def _chance(sums: Studied) -> float:
    return sums.expected / sums.asked


def _row(week: Week) -> WeekOfRecall:
    sums = week.sums
    told = sums.asked >= LEAST
    return WeekOfRecall(
        name=week.name,
        asked=sums.asked,
        known=sums.recalled,
        share=percent_of(_share(sums)) if told else "",
        expected=percent_of(_chance(sums)) if told else "",
    )


def _sentence(lately: Sequence[Studied], wanted: float) -> str:
    """What the last weeks say of the intervals; empty when they say nothing yet."""
    sums = sum(lately, Studied())
    if sums.asked < LEAST:
        return ""
    low, high = wilson(sums.recalled, sums.asked)
    of = f"{percent_of(_share(sums))} of {count_of(sums.asked, 'card')}"
    known = (
        f"In the last four weeks you knew {of} when they came back; the schedule "
        f"expected {percent_of(_chance(sums))}."
    )
    if low > wanted:
        return f"{known} You want {percent_of(wanted)}: intervals could be longer."
    if high < wanted:
        return f"{known} You want {percent_of(wanted)}: intervals should be shorter."
    return f"{known} That is about the {percent_of(wanted)} you want."


def _label(weeks: Sequence[Week], told: Told, wanted: float) -> str:
    if not told:
        return ""
    (first, then), (last, now) = told[0], told[-1]
    since = f"from {percent_of(_share(then))} in the week of {weeks[first].name}"
    until = "this week" if last == len(weeks) - 1 else f"in that of {weeks[last].name}"
    return (
        f"Recall at review by week: {since} to {percent_of(_share(now))} {until}; "
        f"you want {percent_of(wanted)}."
    )
