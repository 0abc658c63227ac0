"""Cards due, day by day until the exam."""

import dataclasses
import datetime as dt
from collections.abc import Mapping, Sequence

from markupsafe import Markup

from app.drawings.axes import count_axis
from app.drawings.columns import ColumnChart, draw_columns
from app.progress.figures.day_names import WIDTH, day_names
from app.web.words import format_count, format_weekday

DAYS = 30
FARTHEST = 60  # an exam beyond this would make the bars too thin to read


@dataclasses.dataclass(frozen=True, slots=True)
class DueDay:
    """One day and its cards."""

    day: dt.date
    cards: int


@dataclasses.dataclass(frozen=True, slots=True)
class DueChart:
    """The days ahead; `overdue` of today's cards should have come earlier."""

    bars: tuple[DueDay, ...]
    svg: Markup
    overdue: int
    exam: bool
    sentence: str

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


def upcoming(due: Mapping[str, int], today: dt.date, exam: dt.date | None = None) -> DueChart:
    """The forecast; `due` counts cards by ISO date, those before today included.

    Each card counts once, on the day it comes back next. What is reviewed until then
    comes back again and is not in here.
    """
    last = last_day(today, exam)
    days = [today + dt.timedelta(days=n) for n in range((last - today).days + 1)]
    overdue = sum(count for day, count in due.items() if day < today.isoformat())
    counts = [due.get(day.isoformat(), 0) for day in days]
    counts[0] += overdue
    bars = tuple(DueDay(*pair) for pair in zip(days, counts, strict=True))
    by_exam = last == exam
    return DueChart(
        bars=bars,
        svg=draw_columns(columns_of(bars), _says(bars, overdue, by_exam=by_exam)),
        overdue=overdue,
        exam=by_exam,
        sentence=_sentence(bars, overdue),
    )


def columns_of(bars: Sequence[DueDay]) -> ColumnChart:
    """The days as columns: today marked, the others alike."""
    looks = ["mark edge", *["fill"] * (len(bars) - 1)]
    return ColumnChart(
        columns=[[(look, bar.cards)] for look, bar in zip(looks, bars, strict=True)],
        axis=count_axis(max(bar.cards for bar in bars)),
        names=day_names([bar.day for bar in bars]),
        width=WIDTH,
    )


def _sentence(bars: Sequence[DueDay], overdue: int) -> str:
    most = max(bars, key=lambda bar: bar.cards)
    if not most.cards:
        return ""
    today = f"{format_count(bars[0].cards, 'card')} today"
    if overdue:
        today += f", {overdue:,} of them overdue"
    if most is bars[0]:
        return f"{today}; no later day has more."
    return f"{today}; at most {most.cards:,}, on {format_weekday(most.day)}."


def _says(bars: Sequence[DueDay], overdue: int, *, by_exam: bool) -> str:
    until = "until the exam" if by_exam else f"in the next {len(bars)} days"
    said = _sentence(bars, overdue) or "none."
    return f"Cards due per day {until}: {said}"
