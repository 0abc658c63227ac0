"""Time spent, week by week."""

import dataclasses
import datetime as dt
from collections.abc import Sequence

from markupsafe import Markup

from app.cards.store import DayTotals
from app.drawings.axes import count_axis
from app.drawings.columns import ColumnChart, ColumnLabel, draw_columns
from app.progress.figures.days import WeekTotals
from app.web.words import format_count, format_date, format_duration

_WIDTH = 86.0
_HOUR = 60


@dataclasses.dataclass(frozen=True, slots=True)
class WeekMinutes:
    """One week: its minutes, and what was done in them."""

    name: str
    minutes: float
    sums: DayTotals


@dataclasses.dataclass(frozen=True, slots=True)
class TimeChart:
    """The last weeks; `total` are their minutes, as their table adds up."""

    weeks: tuple[WeekMinutes, ...]
    svg: Markup
    total: float
    sentence: str


def hours(weeks: Sequence[WeekTotals], begun: dt.date | None = None) -> TimeChart:
    """Minutes from showing to answering, by week, beside what was done in them.

    Where `begun`, the first day with work, lies in these weeks, it is named.
    """
    minutes = [week.sums.minutes for week in weeks]
    # Whole minutes, as the table has them: a sum of parts would differ from its own.
    total = sum(round(m) if m >= 1 else m for m in minutes)
    young = begun if begun and begun > weeks[0].monday else None
    span = f"since {format_date(young)}" if young else "in twelve weeks"
    done = sum((week.sums for week in weeks), DayTotals())
    time = format_duration(total)
    words = (
        f"{time[:1].upper()}{time[1:]} {span}, for "
        f"{format_count(done.answers, 'answer')} and {format_count(done.reviews, 'review')}."
    )
    now = format_duration(minutes[-1]) if weeks[-1].sums.work else "none"
    says = f"Time by week: {words} This week {now}."
    return TimeChart(
        weeks=tuple(WeekMinutes(w.name, w.sums.minutes, w.sums) for w in weeks),
        svg=draw_columns(_columns(weeks, minutes), says),
        total=total,
        sentence=words if done.work else "",
    )


def _columns(weeks: Sequence[WeekTotals], minutes: Sequence[float]) -> ColumnChart:
    in_hours = max(minutes) >= 2 * _HOUR
    unit = _HOUR if in_hours else 1
    looks = [*["fill"] * (len(weeks) - 1), "mark edge"]
    slot = _WIDTH / len(weeks)
    return ColumnChart(
        columns=[[(look, m / unit)] for look, m in zip(looks, minutes, strict=True)],
        axis=count_axis(max(minutes) / unit, "h" if in_hours else "min"),
        names=(
            ColumnLabel(0, weeks[0].name),
            ColumnLabel(slot * 6.5, weeks[6].name, "m"),
            ColumnLabel(_WIDTH, "this week", "e"),
        ),
        width=_WIDTH,
    )
