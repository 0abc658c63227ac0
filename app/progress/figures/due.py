"""Cards due, day by day until the exam."""

import dataclasses
import datetime as dt
import math
from collections.abc import Mapping, Sequence

from app.progress.figures.axis import Tick, down, percent, pixels, round_steps
from app.web.words import NBSP, count_of, weekday_of

DAYS = 30
FARTHEST = 60  # an exam beyond this would make the bars too thin to read
WIDTH = 93.0
BOTTOM = 124.0
_GAP = 0.28
_NAME = 18.0  # per cent of a narrow figure that the name of a day takes


@dataclasses.dataclass(frozen=True, slots=True)
class Bar:
    """One day: its cards and where its bar stands."""

    day: dt.date
    cards: int
    x: str
    y: str
    width: str
    height: str


@dataclasses.dataclass(frozen=True, slots=True)
class Mark:
    """A day named under the axis; `end` for the last, which ends there."""

    x: str
    words: str
    end: bool = False


@dataclasses.dataclass(frozen=True, slots=True)
class DueDays:
    """The days ahead; `overdue` of today's cards should have come earlier."""

    bars: tuple[Bar, ...]
    ticks: tuple[Tick, ...]
    marks: tuple[Mark, ...]
    overdue: int
    exam: bool
    sentence: str
    label: str

    @property
    def total(self) -> int:
        """Cards on all of these days."""
        return sum(bar.cards for bar in self.bars)


def last_day(today: dt.date, exam: dt.date | None) -> dt.date:
    """The last day of the forecast: that of the exam, or thirty days on.

    The exam's day itself counts when it lies within the next sixty days.
    """
    if exam is not None and today < exam <= today + dt.timedelta(days=FARTHEST):
        return exam
    return today + dt.timedelta(days=DAYS - 1)


def upcoming(
    due: Mapping[str, int], today: dt.date, exam: dt.date | None = None
) -> DueDays:
    """The forecast; `due` counts cards by ISO date, those before today included.

    Each card counts once, on the day it comes back next. What is reviewed until then
    comes back again and is not in here.
    """
    last = last_day(today, exam)
    days = [today + dt.timedelta(days=n) for n in range((last - today).days + 1)]
    overdue = sum(count for day, count in due.items() if day < today.isoformat())
    counts = [due.get(day.isoformat(), 0) for day in days]
    counts[0] += overdue
    steps = round_steps(max(counts))
    bars = tuple(_bar(n, days, counts, steps[-1]) for n in range(len(days)))
    by_exam = last == exam
    return DueDays(
        bars=bars,
        ticks=tuple(Tick(down(n, 0, steps[-1]), f"{n:,}") for n in steps),
        marks=_marks(days),
        overdue=overdue,
        exam=by_exam,
        sentence=_sentence(bars, overdue),
        label=_label(bars, overdue, by_exam=by_exam),
    )


def _bar(number: int, days: Sequence[dt.date], counts: Sequence[int], top: int) -> Bar:
    slot = WIDTH / len(days)
    y = float(down(counts[number], 0, top))
    return Bar(
        day=days[number],
        cards=counts[number],
        x=percent(slot * (number + _GAP / 2)),
        y=pixels(y),
        width=percent(slot * (1 - _GAP)),
        height=pixels(BOTTOM - y),
    )


def _marks(days: Sequence[dt.date]) -> tuple[Mark, ...]:
    """Today, some Mondays, and the last day, none of them on another's words."""
    slot = WIDTH / len(days)
    mondays = [n for n, day in enumerate(days) if day.weekday() == 0]
    every = math.ceil(_NAME / (7 * slot))
    free = [n for n in mondays if _NAME < n * slot < WIDTH - 1.6 * _NAME]
    middle = [Mark(percent(slot * (n + 0.5)), _short(days[n])) for n in free[::every]]
    if len(days) == 1:
        return (Mark("0%", "Today"),)
    return (
        Mark("0%", "Today"),
        *middle,
        Mark(percent(WIDTH), _short(days[-1]), end=True),
    )


def _short(day: dt.date) -> str:
    return f"{day.day}{NBSP}{day:%b}"


def _sentence(bars: Sequence[Bar], overdue: int) -> str:
    most = max(bars, key=lambda bar: bar.cards)
    if not most.cards:
        return ""
    today = f"{count_of(bars[0].cards, 'card')} today"
    if overdue:
        today += f", {overdue:,} of them overdue"
    if most is bars[0]:
        return f"{today}; no later day has more."
    return f"{today}; at most {most.cards:,}, on {weekday_of(most.day)}."


def _label(bars: Sequence[Bar], overdue: int, *, by_exam: bool) -> str:
    until = "until the exam" if by_exam else f"in the next {len(bars)} days"
    said = _sentence(bars, overdue) or "none."
    return f"Cards due per day {until}: {said}"
