"""Time spent, week by week."""

import dataclasses
from collections.abc import Sequence

from app.progress.figures.axis import Tick, down, percent, pixels, round_steps
from app.progress.figures.days import Studied, Week
from app.web.words import count_of

WIDTH = 86.0
BOTTOM = 124.0
_GAP = 0.28
_HOUR = 60


@dataclasses.dataclass(frozen=True, slots=True)
class WeekOfWork:
    """One week: its minutes, answers and reviews, and where its bar stands."""

    name: str
    minutes: int
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
    total: int
    sentence: str
    label: str


def hours(weeks: Sequence[Week]) -> Hours:
    """Minutes from showing to answering, by week, beside what was done in them."""
    minutes = [round(week.sums.minutes) for week in weeks]
    in_hours = max(minutes) >= 2 * _HOUR
    unit = _HOUR if in_hours else 1
    steps = round_steps(max(minutes) / unit)
    top = steps[-1] * unit
    total = sum(minutes)
    done = sum((week.sums for week in weeks), Studied())
    words = (
        f"{time_of(total)} in twelve weeks, for {count_of(done.answers, 'answer')} "
        f"and {count_of(done.reviews, 'review')}."
    )
    return Hours(
        weeks=tuple(_bar(n, weeks, minutes[n], top) for n in range(len(weeks))),
        ticks=tuple(
            Tick(down(n * unit, 0, top), f"{n} {'h' if in_hours else 'min'}")
            for n in steps
        ),
        total=total,
        sentence=words if done.work else "",
        label=f"Time by week: {words} This week {time_of(minutes[-1])}.",
    )


def time_of(minutes: int) -> str:
    """A length of time in hours and minutes.

    >>> [time_of(n).replace(chr(160), " ") for n in (0, 40, 120, 160)]
    ['0 min', '40 min', '2 h', '2 h 40 min']
    """
    whole, rest = divmod(minutes, _HOUR)
    parts = [f"{whole:,}\u00a0h"] if whole else []
    if rest or not whole:
        parts.append(f"{rest}\u00a0min")
    return " ".join(parts)


def _bar(number: int, weeks: Sequence[Week], minutes: int, top: int) -> WeekOfWork:
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
