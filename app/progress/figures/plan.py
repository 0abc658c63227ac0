"""The days until the exam as bars of minutes: due, new, and seen once more."""

import dataclasses
import datetime as dt

from markupsafe import Markup

from app.drawings.axes import count_axis
from app.drawings.columns import ColumnChart, draw_columns
from app.progress.figures.day_names import WIDTH, day_names
from app.scheduling.exam_plan import again_words
from app.scheduling.outlook import ForecastDay, PlanForecast
from app.web.words import format_count, format_minutes, format_weekday


@dataclasses.dataclass(frozen=True, slots=True)
class PlanDay:
    """One day: its cards and minutes."""

    day: dt.date
    due: int
    fresh: int
    final: int
    minutes: float


@dataclasses.dataclass(frozen=True, slots=True)
class PlanChart:
    """The days, what they come to in a sentence, and the drawing of them."""

    days: tuple[PlanDay, ...]
    sentence: str
    course: str
    svg: Markup


def plan_figure(outlook: PlanForecast, seconds: float, pace: str) -> PlanChart:
    """Draw the days; `seconds` of each are for cards, `pace` says how many are new."""
    sentence, course = _sentence(outlook), course_of(outlook, pace)
    says = f"Minutes of cards per day until the exam: {sentence} {course}".rstrip()
    return PlanChart(
        days=tuple(map(_day, outlook.days)),
        sentence=sentence,
        course=course,
        svg=draw_columns(columns_of(outlook, seconds), says),
    )


def columns_of(outlook: PlanForecast, seconds: float) -> ColumnChart:
    """The days as columns: looks at cards that were begun, new cards upon them."""
    most = max([seconds, *(day.seconds for day in outlook.days)]) / 60
    return ColumnChart(
        columns=[_parts(day, now=not n) for n, day in enumerate(outlook.days)],
        axis=count_axis(most, "min"),
        names=day_names([_date(day) for day in outlook.days]),
        width=WIDTH,
        limit=seconds / 60,
    )


def _parts(day: ForecastDay, *, now: bool) -> list[tuple[str, float]]:
    fresh = day.fresh * day.first / 60
    looks = max(0.0, day.seconds / 60 - fresh)
    look = "mark edge" if now else "ink" if day.final else "fill"
    return [(look, looks), ("none edge", fresh)]


def _day(day: ForecastDay) -> PlanDay:
    return PlanDay(_date(day), day.due, day.fresh, day.final, day.seconds / 60)


def _sentence(outlook: PlanForecast) -> str:
    most = max(outlook.days, key=lambda day: day.cards)
    longest = max(day.seconds for day in outlook.days) / 60
    if not most.cards:
        return "No card is left to ask."
    cards = f"At most {format_count(most.cards, 'card')} a day"
    return f"{cards}, at most about {format_minutes(longest)}."


def _date(day: ForecastDay) -> dt.date:
    return dt.date.fromordinal(day.day)


def course_of(outlook: PlanForecast, pace: str) -> str:
    """How the days go on, in a sentence: new cards until when, last looks from when."""
    final = next((day for day in outlook.days if day.final), None)
    fresh = [day for day in outlook.days if day.fresh]
    said = []
    if pace and fresh:
        last = format_weekday(_date(fresh[-1]))
        said.append(f"{pace[:1].upper()}{pace[1:]} until {last}.")
    if final is not None:
        beside = "also " if fresh and fresh[-1].day >= final.day else ""
        again = again_words(short=final.short)
        day = format_weekday(_date(final))
        when = f"On {day}" if final is outlook.days[-1] else f"From {day} on"
        said.append(f"{when}, {beside}{again}.")
    left = outlook.cards - outlook.begun
    if left > 0:
        said.append(f"{format_count(left, 'card')} will not be started: there is no time for them.")
    if outlook.passed:
        of = f"{outlook.passed:,} of the {format_count(outlook.before, 'started card')}"
        why = "new ones gain more in the same minutes" if fresh else "there is no time"
        said.append(f"For about {of} no review is planned: {why}.")
    return " ".join(said)
