"""What was done: by day as it was added up, by week, and all in all."""

import dataclasses
import datetime as dt
from collections.abc import Iterable, Mapping

from app.cards.store import DayTotals
from app.web.words import format_count, format_date, format_date_with_year, format_short_date

WEEKS = 12


@dataclasses.dataclass(frozen=True, slots=True)
class StudyHistory:
    """All of it: the days of the last weeks by ISO date, and what was before them.

    `first` is the first day with work, `earlier` the number of such days before the
    weeks that are shown day by day.
    """

    recent: Mapping[str, DayTotals] = dataclasses.field(default_factory=dict)
    before: DayTotals = dataclasses.field(default_factory=DayTotals)
    earlier: int = 0
    first: dt.date | None = None

    @property
    def total(self) -> DayTotals:
        """The sums of all days."""
        return sum(self.recent.values(), self.before)

    @property
    def count(self) -> int:
        """On how many days anything was answered or reviewed."""
        return self.earlier + sum(day.work > 0 for day in self.recent.values())

    @property
    def counts(self) -> dict[str, int]:
        """Answers and reviews by ISO date."""
        return {day: sums.work for day, sums in self.recent.items()}


@dataclasses.dataclass(frozen=True, slots=True)
class WeekTotals:
    """The sums of a week that begins on `monday`."""

    monday: dt.date
    sums: DayTotals

    @property
    def name(self) -> str:
        """The week by its Monday, e.g. “Mar 16”."""
        return format_short_date(self.monday)


def weeks(recent: Mapping[str, DayTotals], today: dt.date) -> tuple[WeekTotals, ...]:
    """The last twelve weeks, this one included, from Monday to Sunday."""
    last = today - dt.timedelta(days=today.weekday())
    mondays = [last - dt.timedelta(weeks=n) for n in reversed(range(WEEKS))]
    return tuple(WeekTotals(monday, _sum(recent, monday)) for monday in mondays)


def summary(days: StudyHistory, firsts: int, today: dt.date) -> str:
    """Since when, on how many days, and how much, in one sentence.

    `firsts` are the first answers to different questions among all answers.
    """
    if days.first is None:
        return "You have not answered or reviewed anything yet."
    since = (
        format_date(days.first)
        if days.first.year == today.year
        else format_date_with_year(days.first)
    )
    total = days.total
    new = f" ({firsts:,} to new questions)" if total.answers else ""
    parts = (
        f"{format_count(days.count, 'day')} of study",
        format_count(total.answers, "answer") + new,
        format_count(total.reviews, "review"),
    )
    return f"Since {since}: {', '.join(parts)}."


def _sum(recent: Mapping[str, DayTotals], monday: dt.date) -> DayTotals:
    days: Iterable[dt.date] = (monday + dt.timedelta(days=n) for n in range(7))
    found = (recent.get(day.isoformat(), DayTotals()) for day in days)
    return sum(found, DayTotals())
