"""Time spent, week by week."""

import dataclasses
from collections.abc import Sequence

from app.progress.figures.axis import Tick, down, percent, pixels, round_steps
from app.progress.figures.days import Studied, Week
from app.web.words import count_of, time_of

WIDTH = 86.0
BOTTOM = 124.0
_GAP = 0.28
_HOUR = 60


@dataclasses.dataclass(frozen=True, slots=True)
class WeekOfWork:
    """One week: its minutes, answers and reviews, and where its bar stands."""

    name: str
    minutes: float
    sums: Studied
    x: str
    middle: str
    y: str
    width: str
    height: str
    now: bool


@dataclasses.dataclass(frozen=True, slots=True)
class Hours:
    """The last weeks; `total` are the minutes of all of them."""

    weeks: tuple[WeekOfWork, ...]
    ticks: tuple[Tick, ...]
    total: float
    sentence: str
    label: str


def hours(weeks: Sequence[Week]) -> Hours:
    """Minutes from showing to answering, by week, beside what was done in them."""
    minutes = [week.sums.minutes for week in weeks]
    in_hours = max(minutes) >= 2 * _HOUR
    unit = _HOUR if in_hours else 1
    steps = round_steps(max(minutes) / unit)
    top = steps[-1] * unit
    total = sum(minutes)
    done = sum((week.sums for week in weeks), Studied())
    time = time_of(total)
    words = (
        f"{time[:1].upper()}{time[1:]} in twelve weeks, for "
        f"{count_of(done.answers, 'answer')} and {count_of(done.reviews, 'review')}."
    )
    now = time_of(minutes[-1]) if weeks[-1].sums.work else "none"
    return Hours(
        weeks=tuple(_bar(n, weeks, minutes[n], top) for n in range(len(weeks))),
        ticks=tuple(
            Tick(down(n * unit, 0, top), f"{n} {'h' if in_hours else 'min'}")
            for n in steps
        ),
        total=total,
        sentence=words if done.work else "",
        label=f"Time by week: {words} This week {now}.",
    )


def _bar(number: int, weeks: Sequence[Week], minutes: float, top: int) -> WeekOfWork:
    slot = WIDTH / len(weeks)
    y = float(down(minutes, 0, top))
    return WeekOfWork(
        name=weeks[number].name,
        minutes=minutes,
        sums=weeks[number].sums,
        x=percent(slot * (number + _GAP / 2)),
        middle=percent(slot * (number + 0.5)),
        y=pixels(y),
        width=percent(slot * (1 - _GAP)),
        height=pixels(BOTTOM - y),
        now=number == len(weeks) - 1,
    )
