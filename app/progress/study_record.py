"""What a learner did by day: the current week, the last seven days, and the heat map."""

import collections
import dataclasses
import datetime as dt
from collections.abc import Collection, Mapping, Sequence
from typing import Literal

from markupsafe import Markup

from app.accounts.current_learner import RequestContext
from app.accounts.learner import PlanCalendar
from app.clock import from_milliseconds
from app.content.course import Course
from app.content.course_facts import cached_course_facts
from app.content.reading_routes import are_essential_sections_read
from app.progress import store as progress_store
from app.progress.store import OpenedPage, PastList
from app.study_plan.loader import StudyPlan
from app.web.formatting import format_date_with_weekday, format_date_without_year, format_short_date
from app.widgets.svg import build_svg_element, draw_rect_in_pixels, draw_text_in_pixels

DayState = Literal["studied", "mock", "exam", "off", "open", "before", "missed", "unstudied"]
_ONE_DAY = dt.timedelta(days=1)
_LAST_DAYS = 7


@dataclasses.dataclass(frozen=True, slots=True)
class StudyRecord:
    """What was done on which study day.

    `first_study_day` is the first of all days, `activity_by_day` the answers, reviews and sections
    read by ISO date since the first day of the heat map, `answers_by_day` the answers alone.
    `opened` pages have a read section, `essentials_read_day_by_topic` pages have no unread one; their last
    sections were read on the days given. `lists` are those of the last seven days.
    """

    first_study_day: dt.date | None
    activity_by_day: Mapping[str, int]
    answers_by_day: Mapping[str, int]
    opened_topics: Collection[str]
    essentials_read_day_by_topic: Mapping[str, dt.date]
    past_exam_days: Collection[dt.date] = ()
    lists: Sequence[PastList] = ()

    def describe_unfinished_list(self, day: dt.date) -> str:
        """Return how many tasks of an earlier list were done, if not all: “2 of 4”; else empty."""
        past = next((past for past in self.lists if past.day == day), None)
        if past is None or past.done_count is None or past.done_count == past.task_count:
            return ""
        return f"{past.done_count} of {past.task_count}"


def load_study_record(ctx: RequestContext) -> StudyRecord:
    """Return what the learner did."""
    learner = ctx.learner
    pages = progress_store.load_opened_pages(ctx.db, learner.id) if learner.id else ()
    first_day = compute_first_heatmap_day(ctx.study_day)
    days = progress_store.load_daily_study_totals(ctx.db, learner.id, first_day)
    sections = collections.Counter(
        learner.study_day(from_milliseconds(read_at))
        for page in pages
        for read_at in page.read_ms_by_section.values()
    )
    counts = collections.Counter(days.answers_and_reviews_by_day)
    counts.update({day.isoformat(): n for day, n in sections.items() if day >= first_day})
    return StudyRecord(
        first_study_day=min(
            (day for day in (days.first_study_day, *sections) if day), default=None
        ),
        activity_by_day=counts,
        answers_by_day={day: totals.answers for day, totals in days.totals_by_day.items()},
        opened_topics={page.topic for page in pages},
        essentials_read_day_by_topic={
            page.topic: learner.study_day(from_milliseconds(page.last_read_ms))
            for page in pages
            if has_page_essentials_read(ctx.course, page)
        },
        past_exam_days={exam.day for exam in learner.past_exams},
        lists=progress_store.load_lists_since(
            ctx.db, learner.id, ctx.study_day - (_LAST_DAYS - 1) * _ONE_DAY
        ),
    )


def has_page_essentials_read(course: Course, page: OpenedPage) -> bool:
    """Return whether every essential section of a page is read."""
    topic = course.topics.get(page.topic)
    return topic is not None and are_essential_sections_read(topic, page.read_ms_by_section)


@dataclasses.dataclass(frozen=True, slots=True)
class WeekDay:
    """A day from Monday to Sunday; `tasks_done` if its list was left unfinished, such as “2 of 4”."""

    day: dt.date
    state: DayState
    is_today: bool
    tasks_done: str = ""


def find_day_state(
    day: dt.date, calendar: PlanCalendar, record: StudyRecord, today: dt.date
) -> DayState:
    """Return what a day is or was in the plan.

    A past day without study is before the first study day, off, a missed mock exam, or unstudied.
    """
    if day == calendar.exam_day or day in record.past_exam_days:
        return "exam"
    if record.activity_by_day.get(day.isoformat()):
        return "studied"
    is_past = day < today
    if is_past and day < (record.first_study_day or today):
        return "before"
    if day in calendar.mock_exam_days:
        return "missed" if is_past else "mock"
    if calendar.is_day_off(day):
        return "off"
    return "unstudied" if is_past else "open"


def list_days_missed_before(
    today: dt.date, calendar: PlanCalendar, record: StudyRecord
) -> Sequence[dt.date]:
    """Return the days without study since the last one with study; without an exam day none.

    Days off, and those before the plan or the heat map begins, are not missed.
    """
    if calendar.exam_day is None or record.first_study_day is None:
        return []
    first = max(calendar.first_day, record.first_study_day, compute_first_heatmap_day(today))
    days, day = [], today - _ONE_DAY
    while day >= first and (state := find_day_state(day, calendar, record, today)) != "studied":
        days += [day] if state in {"missed", "unstudied"} else []
        day -= _ONE_DAY
    return days


def build_week_days(
    day: dt.date, calendar: PlanCalendar, record: StudyRecord, *, is_list_done: bool
) -> Sequence[WeekDay]:
    """Return the seven days of the week of `day`, whose list `is_done` or not.

    Until it is done, `day` does not count as studied.
    """
    if not is_list_done:
        counts = {name: n for name, n in record.activity_by_day.items() if name != day.isoformat()}
        record = dataclasses.replace(record, activity_by_day=counts)
    monday = day - day.weekday() * _ONE_DAY
    days = (monday + n * _ONE_DAY for n in range(_LAST_DAYS))
    return [
        WeekDay(
            d,
            find_day_state(d, calendar, record, day),
            d == day,
            record.describe_unfinished_list(d),
        )
        for d in days
    ]


@dataclasses.dataclass(frozen=True, slots=True)
class LastSevenDaysSummary:
    """Totals of the last seven days: days studied, pages read, answers, cards newly known.

    A card is known once it was recalled on a later day. Those of today count from tomorrow.
    """

    days_studied: int
    pages_read: int
    questions_answered: int
    cards_newly_known: int


def summarize_last_seven_days(
    ctx: RequestContext, plan: StudyPlan, record: StudyRecord
) -> LastSevenDaysSummary:
    days = [(ctx.study_day - n * _ONE_DAY) for n in range(_LAST_DAYS)]
    iso_days = [day.isoformat() for day in days]
    # No card is reviewed before the list of its day is made.
    known_before = record.lists[0].known_card_count if record.lists else plan.known_card_count
    course_facts = cached_course_facts(ctx.course)
    return LastSevenDaysSummary(
        days_studied=sum(record.activity_by_day.get(day, 0) > 0 for day in iso_days),
        pages_read=sum(
            slug in course_facts.pages and day in days
            for slug, day in record.essentials_read_day_by_topic.items()
        ),
        questions_answered=sum(record.answers_by_day.get(day, 0) for day in iso_days),
        cards_newly_known=max(0, plan.known_card_count - known_before),
    )


# The heat map, with its sizes in pixels.
_HEATMAP_WEEKS = 13
_HEATMAP_STEP = 19
_HEATMAP_SIDE = 17
_HEATMAP_LEFT = 32
_HEATMAP_TOP = 20
_LEVEL_MINIMUMS = (1, 10, 30, 60)  # answers and reviews in a day, by level
_LEVEL_CLASSES = ("h0", "h1", "h2", "h3", "h4")
_WEEKDAY_LABELS = ((0, "Mon"), (2, "Wed"), (4, "Fri"), (6, "Sun"))
_FEW_WEEKS_OF_MONTH = 2


@dataclasses.dataclass(frozen=True, slots=True)
class HeatmapWeek:
    """The counts of a week from Monday on; the current week ends today."""

    monday: dt.date
    counts_by_weekday: tuple[int, ...]

    @property
    def monday_text(self) -> str:
        """The week's Monday, e.g. “Mar 16”."""
        return format_short_date(self.monday)


@dataclasses.dataclass(frozen=True, slots=True)
class StudyHeatmap:
    """The last weeks; on `days_studied` of the `days_counted` from `since_text` on the learner studied.

    `since_text` is the learner's first study day as text, empty if it is before the heat map. `legend_svg` is
    the legend of the colors in `svg`.
    """

    svg: Markup
    legend_svg: Markup
    weeks: tuple[HeatmapWeek, ...]
    days_studied: int
    days_counted: int
    since_text: str


def compute_first_heatmap_day(today: dt.date) -> dt.date:
    """Return the Monday with which the heat map starts."""
    return today - dt.timedelta(days=today.weekday(), weeks=_HEATMAP_WEEKS - 1)


def build_study_heatmap(
    activity_by_day: Mapping[str, int], today: dt.date, first_study_day: dt.date | None = None
) -> StudyHeatmap:
    """Return the heat map up to `today`; `activity_by_day` are answers and reviews by ISO date.

    Days before `first_study_day`, the first study day, are drawn but not counted.
    """
    first = compute_first_heatmap_day(today)
    start = max(first, min(first_study_day or first, today))
    skipped = (start - first).days // 7 * 7
    days = [first + dt.timedelta(days=n) for n in range((today - first).days + 1)]
    daily_counts = [activity_by_day.get(day.isoformat(), 0) for day in days]
    studied = sum(count > 0 for count in daily_counts)
    counted_days = (today - start).days + 1
    caption = f"Days with answers or reviews since {format_date_with_weekday(start)}"
    return StudyHeatmap(
        svg=_draw_heatmap(first, daily_counts, f"{caption}: {studied} of {counted_days}."),
        legend_svg=_heatmap_legend(),
        weeks=tuple(
            HeatmapWeek(days[n], tuple(daily_counts[n : n + 7]))
            for n in range(skipped, len(days), 7)
        ),
        days_studied=studied,
        days_counted=counted_days,
        since_text=format_date_without_year(start) if start > first else "",
    )


def _draw_heatmap(first_monday: dt.date, daily_counts: Sequence[int], alt_text: str) -> Markup:
    """Draw one column per week; the last square is today."""
    marks = [draw_text_in_pixels(label, x, 12) for x, label in _place_month_labels(first_monday)]
    marks += [
        draw_text_in_pixels(name, 0, _HEATMAP_TOP + n * _HEATMAP_STEP + 13)
        for n, name in _WEEKDAY_LABELS
    ]
    for index, count in enumerate(daily_counts):
        week, weekday = divmod(index, 7)
        level = sum(count >= minimum for minimum in _LEVEL_MINIMUMS)
        edge = " edge" if index == len(daily_counts) - 1 else ""
        css_class = f"{_LEVEL_CLASSES[level]}{edge}"
        marks.append(
            draw_rect_in_pixels(
                css_class,
                _HEATMAP_LEFT + week * _HEATMAP_STEP,
                _HEATMAP_TOP + weekday * _HEATMAP_STEP,
                _HEATMAP_SIDE,
                _HEATMAP_SIDE,
            )
        )
    width, height = _HEATMAP_LEFT + _HEATMAP_WEEKS * _HEATMAP_STEP, _HEATMAP_TOP + 7 * _HEATMAP_STEP
    return build_svg_element(marks, height, alt_text, "heat g", width)


def _heatmap_legend() -> Markup:
    marks = [
        draw_rect_in_pixels(css_class, 17 * n, 0, 15, 13)
        for n, css_class in enumerate(_LEVEL_CLASSES)
    ]
    return build_svg_element(marks, 13, "", "g heat", 17 * len(_LEVEL_CLASSES))


def _place_month_labels(first_monday: dt.date) -> list[tuple[int, str]]:
    """Return each month with the x position of its first week in pixels."""
    mondays = [first_monday + dt.timedelta(weeks=n) for n in range(_HEATMAP_WEEKS)]
    starts = [n for n, day in enumerate(mondays) if n == 0 or day.month != mondays[n - 1].month]
    # A first month of few weeks has no label, which would overlap the next one.
    if len(starts) > 1 and starts[1] - starts[0] < _FEW_WEEKS_OF_MONTH:
        starts = starts[1:]
    return [(_HEATMAP_LEFT + n * _HEATMAP_STEP, f"{mondays[n]:%b}") for n in starts]
