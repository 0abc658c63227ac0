"""The days of the current week, and the totals of the last seven days."""

import collections
import dataclasses
import datetime as dt
from collections.abc import Collection, Mapping, Sequence
from typing import Literal

from app.accounts.current_learner import RequestContext
from app.accounts.learner import PlanCalendar
from app.clock import from_milliseconds
from app.content.course_facts import cached_course_facts
from app.content.library import Library
from app.content.reading_routes import has_essentials_read
from app.progress import history_store as history
from app.progress.history_store import OpenedPage
from app.progress.study_heatmap import first_heatmap_day
from app.study_plan.loader import StudyPlan
from app.study_plan.store import load_newest_list

DayState = Literal["studied", "mock", "exam", "off", "open"]
_DAY = dt.timedelta(days=1)
_LAST_DAYS = 7


@dataclasses.dataclass(frozen=True, slots=True)
class StudyRecord:
    """What was done on which study day.

    `first` is the first of all days, `counts` the answers, reviews and sections read by ISO date
    since the first day of the heat map, `questions` the answers alone. `opened` pages have a read
    section, `read` pages have no unread one; their last sections were read on the days given.
    """

    first: dt.date | None
    counts: Mapping[str, int]
    questions: Mapping[str, int]
    opened_topics: Collection[str]
    read: Mapping[str, dt.date]


def load_study_record(ctx: RequestContext) -> StudyRecord:
    """Return what the learner did."""
    learner = ctx.learner
    pages = history.load_opened_pages(ctx.db, learner.id) if learner.id else ()
    first_day = first_heatmap_day(ctx.day)
    days = history.load_daily_study_history(ctx.db, learner.id, first_day)
    sections = collections.Counter(
        learner.study_day(from_milliseconds(read_at))
        for page in pages
        for read_at in page.sections.values()
    )
    counts = collections.Counter(days.counts)
    counts.update({day.isoformat(): n for day, n in sections.items() if day >= first_day})
    return StudyRecord(
        first=min((day for day in (days.first, *sections) if day), default=None),
        counts=counts,
        questions={day: totals.answers for day, totals in days.totals_by_day.items()},
        opened_topics={page.topic for page in pages},
        read={
            page.topic: learner.study_day(from_milliseconds(page.at))
            for page in pages
            if has_page_essentials_read(ctx.library, page)
        },
    )


def has_page_essentials_read(library: Library, page: OpenedPage) -> bool:
    """Return whether every essential section of a page is read."""
    topic = library.topics.get(page.topic)
    return topic is not None and has_essentials_read(topic, page.sections)


@dataclasses.dataclass(frozen=True, slots=True)
class WeekDay:
    """A day from Monday to Sunday."""

    day: dt.date
    state: DayState
    is_today: bool


def plan_state_of_day(day: dt.date, calendar: PlanCalendar, record: StudyRecord) -> DayState:
    """Return what a day is or was in the plan."""
    if day == calendar.exam_day:
        return "exam"
    if record.counts.get(day.isoformat()):
        return "studied"
    if day in calendar.mock_exam_days:
        return "mock"
    return "off" if calendar.is_off(day) else "open"


def build_week_days(
    day: dt.date, calendar: PlanCalendar, record: StudyRecord, *, is_list_done: bool
) -> Sequence[WeekDay]:
    """Return the seven days of the week of `day`, whose list `is_done` or not.

    Until it is done, `day` does not count as studied.
    """
    if not is_list_done:
        counts = {name: n for name, n in record.counts.items() if name != day.isoformat()}
        record = dataclasses.replace(record, counts=counts)
    monday = day - day.weekday() * _DAY
    days = (monday + n * _DAY for n in range(_LAST_DAYS))
    return [WeekDay(d, plan_state_of_day(d, calendar, record), d == day) for d in days]


@dataclasses.dataclass(frozen=True, slots=True)
class LastSevenDaysSummary:
    """Totals of the last seven days: days studied, pages read, answers, cards newly known.

    A card is known once it was recalled on a later day.
    """

    days: int
    pages: int
    questions: int
    cards: int


def load_last_seven_days_summary(
    ctx: RequestContext, plan: StudyPlan, record: StudyRecord
) -> LastSevenDaysSummary:
    """Return the sums of the last seven study days."""
    days = [(ctx.day - n * _DAY) for n in range(_LAST_DAYS)]
    iso_days = [day.isoformat() for day in days]
    earlier_list = load_newest_list(ctx.db, ctx.learner.id, ctx.day - _LAST_DAYS * _DAY)
    course = cached_course_facts(ctx.library)
    return LastSevenDaysSummary(
        days=sum(record.counts.get(day, 0) > 0 for day in iso_days),
        pages=sum(slug in course.pages and day in days for slug, day in record.read.items()),
        questions=sum(record.questions.get(day, 0) for day in iso_days),
        cards=plan.cards_known - (earlier_list.day_list.known_cards if earlier_list else 0),
    )
