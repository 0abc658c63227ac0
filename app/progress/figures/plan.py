"""The days until the exam as bars of minutes: due, new, and seen once more."""

import dataclasses
import datetime as dt
import math
from collections.abc import Sequence

from app.progress.figures.axis import Tick, down, percent, pixels, round_steps
from app.scheduling.exam import NEW_SECONDS
from app.scheduling.outlook import DayAhead, Outlook
from app.web.words import NBSP, count_of, minutes_of, weekday_of

WIDTH = 93.0
BOTTOM = 124.0
_GAP = 0.28
_NAME = 12.0  # per cent of the figure that the name of a day takes


@dataclasses.dataclass(frozen=True, slots=True)
class Part:
    """One filling of a bar: `look` is its class in the drawing."""

    look: str
    y: str
    height: str


@dataclasses.dataclass(frozen=True, slots=True)
class PlanDay:
    """One day: its cards and minutes, and the bar of them."""

    day: dt.date
    due: int
    fresh: int
    final: int
    minutes: float
    x: str
    width: str
    parts: tuple[Part, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class DayName:
    """A day named under the axis; `end` for the last, which ends there."""

    x: str
    words: str
    end: bool = False


@dataclasses.dataclass(frozen=True, slots=True)
class PlanFigure:
    """The drawing: bars, lines of minutes, names of days, the daily limit.

    `limit` is the place of the limit in pixels and `sentence` what the days come to.
    """

    days: tuple[PlanDay, ...]
    ticks: tuple[Tick, ...]
    names: tuple[DayName, ...]
    limit: str
    sentence: str


def plan_figure(outlook: Outlook, seconds: float) -> PlanFigure:
    """Draw the days; `seconds` of each are for cards."""
    most = max([seconds, *(day.seconds for day in outlook.days)]) / 60
    steps = round_steps(most)
    slot = WIDTH / len(outlook.days)
    return PlanFigure(
        days=tuple(
            _day(day, (slot * (n + _GAP / 2), slot * (1 - _GAP)), steps[-1], now=not n)
            for n, day in enumerate(outlook.days)
        ),
        ticks=tuple(Tick(down(n, 0, steps[-1]), f"{n:,}") for n in steps),
        names=_names([_date(day) for day in outlook.days], slot),
        limit=down(seconds / 60, 0, steps[-1]),
        sentence=_sentence(outlook),
    )


def _day(day: DayAhead, place: tuple[float, float], top: int, *, now: bool) -> PlanDay:
    fresh = day.fresh * NEW_SECONDS / 60
    looks = max(0.0, day.seconds / 60 - fresh)
    look = "mark edge" if now else "ink" if day.final else "fill"
    heights = [(look, looks), ("none edge", fresh)]
    parts, base = [], 0.0
    for kind, minutes in heights:
        if minutes > 0:
            y, foot = (float(down(n, 0, top)) for n in (base + minutes, base))
            parts.append(Part(kind, pixels(y), pixels(foot - y)))
            base += minutes
    return PlanDay(
        day=_date(day),
        due=day.due,
        fresh=day.fresh,
        final=day.final,
        minutes=day.seconds / 60,
        x=percent(place[0]),
        width=percent(place[1]),
        parts=tuple(parts),
    )


def _names(days: Sequence[dt.date], slot: float) -> tuple[DayName, ...]:
    """Today, some Mondays, and the last day, none of them on another's words."""
    first = DayName("0%", "Today")
    if len(days) == 1:
        return (first,)
    mondays = [n for n, day in enumerate(days) if day.weekday() == 0]
    free = [n for n in mondays if _NAME < n * slot < WIDTH - 2 * _NAME]
    every = math.ceil(_NAME / (7 * slot))
    middle = (DayName(percent(slot * n), _short(days[n])) for n in free[::every])
    return (first, *middle, DayName(percent(WIDTH), _short(days[-1]), end=True))


def _sentence(outlook: Outlook) -> str:
    most = max(outlook.days, key=lambda day: day.cards)
    longest = max(day.seconds for day in outlook.days) / 60
    if not most.cards:
        return "No card is left to ask."
    cards = f"At most {count_of(most.cards, 'card')} a day"
    return f"{cards}, at most about {minutes_of(longest)}."


def _date(day: DayAhead) -> dt.date:
    return dt.date.fromordinal(day.day)


def _short(day: dt.date) -> str:
    return f"{day.day}{NBSP}{day:%b}"


def course_of(outlook: Outlook) -> str:
    """How the days go on, in a sentence: new cards until when, last looks from when."""
    final = next((_date(day) for day in outlook.days if day.final), None)
    fresh = [day.fresh for day in outlook.days if day.fresh]
    said = []
    if fresh and outlook.last_fresh is not None:
        last = weekday_of(dt.date.fromordinal(outlook.last_fresh))
        mean = max(1, round(sum(fresh) / len(fresh)))
        said.append(f"About {count_of(mean, 'new card')} a day until {last}.")
    if final is not None:
        said.append(f"From {weekday_of(final)} on, every begun card once more.")
    left = outlook.cards - outlook.begun
    if left > 0:
        said.append(f"{count_of(left, 'card')} will not be begun: the minutes end.")
    return " ".join(said)
