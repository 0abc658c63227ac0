"""The plan page: dates of the mock exams, today's list, totals; the iCalendar feed."""

import bisect
import dataclasses
import datetime as dt
import hashlib
import secrets
from collections.abc import Iterator, Sequence
from typing import Annotated, Literal, NamedTuple

from fastapi import APIRouter, Form, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from app.accounts.current_learner import (
    EnrolledLearner,
    ReadContext,
    RequestContext,
    WriteContext,
    load_learner_by_id,
)
from app.accounts.learner import PlanCalendar, move_mock_exam_day
from app.accounts.learner_store import load_sitting_days, update_learner_columns
from app.accounts.settings_page import Problems, SettingsPageForm, build_settings_form
from app.clock import Now
from app.content.course import Course
from app.content.course_facts import cached_course_facts, find_main_exam
from app.content.reading_routes import ReadingRoute
from app.database.engine import DbSession
from app.errors import InvalidInputError, NotFoundError
from app.progress import store as progress_store
from app.progress.study_record import DayState, StudyRecord, find_day_state, load_study_record
from app.quiz.next_steps import build_task_views
from app.study_plan.cards import compute_last_day_for_new_cards
from app.study_plan.day_list import (
    MOST_NEEDED_IF_FINISHED,
    TaskProgress,
    compute_reading_minutes_after_today,
    list_unread_pages,
)
from app.study_plan.facts import LearnerFacts
from app.study_plan.loader import (
    DayListEnsured,
    StudyPlan,
    build_next_day_list,
    find_planned_route,
    load_calendar,
    load_study_plan,
)
from app.study_plan.store import load_learner_facts, load_newest_list
from app.web.dependencies import CurrentCourse, public_base_url
from app.web.formatting import NBSP, format_count_with_noun, format_minutes_at_least_one

_MAX_LINE_OCTETS = 75  # octets of a line, without its line end
_ESCAPE_BY_CHARACTER = {"\\": "\\\\", ";": "\\;", ",": "\\,", "\n": "\\n"}


def describe_task(task: TaskProgress, course: Course) -> str:
    """Return what a task asks for, in a few words."""
    count = task.total_count
    if task.kind == "review":
        return format_count_with_noun(count, "card") + " to review"
    if task.kind == "new":
        return format_count_with_noun(count, "new card")
    if task.kind == "practice":
        return format_count_with_noun(count, "question")
    if task.kind == "mock":
        exam = course.exams.get(task.task.exam)
        return exam.title if exam else "Mock exam"
    topics = (course.topics.get(page.slug) for page in task.task.pages)
    return "Read: " + "; ".join(topic.title for topic in topics if topic)


class CalendarEvent(NamedTuple):
    """An all-day event of the feed; its description has a line for each task."""

    day: dt.date
    title: str
    task_lines: Sequence[str] = ()


def format_icalendar(
    ctx: RequestContext, plan: StudyPlan | None, exam_title: str, event_id_seed: str
) -> str:
    """Return the iCalendar file: today's list, the mock exams, the exam.

    `event_id_seed` makes event ids stable and unique. A calendar must have at least one event: if
    there is none, a single event says what is missing.
    """
    now = ctx.now
    lines = [
        "BEGIN:VCALENDAR",
        "VERSION:2.0",
        "PRODID:-//Headroom//Study plan//EN",
        "CALSCALE:GREGORIAN",
        "METHOD:PUBLISH",
        f"X-WR-CALNAME:{escape_ical(f'Study for {exam_title}')}",
        "REFRESH-INTERVAL;VALUE=DURATION:PT12H",
    ]
    calendar = load_calendar(ctx, ctx.study_day)
    events = list(_yield_calendar_events(ctx, calendar, plan, exam_title))
    for day, title, parts in events or [CalendarEvent(now.date(), "Headroom: no exam day ahead")]:
        hour = ctx.learner.reminder_hour if parts or day in calendar.mock_exam_days else None
        lines += _format_all_day_event(day, title, parts, event_id_seed, now, hour)
    lines.append("END:VCALENDAR")
    return "".join(f"{fold_ical_line(line)}\r\n" for line in lines)


def _yield_calendar_events(
    ctx: RequestContext, calendar: PlanCalendar, plan: StudyPlan | None, exam_title: str
) -> Iterator[CalendarEvent]:
    if plan is not None and plan.tasks:
        parts = [describe_task(task, ctx.course).replace(NBSP, " ") for task in plan.tasks]
        title = f"Headroom: {format_minutes_at_least_one(plan.minutes_today)}".replace(NBSP, " ")
        yield CalendarEvent(ctx.study_day, title, parts)
    days_with_tasks = {ctx.study_day} if plan is not None and plan.tasks else set()
    for mock in calendar.mock_exam_days:
        if mock >= ctx.study_day and mock not in days_with_tasks and calendar.exam_day:
            yield CalendarEvent(mock, "Headroom: Mock exam")
    if calendar.exam_day:
        yield CalendarEvent(calendar.exam_day, f"Exam: {exam_title}")


def escape_ical(text: str) -> str:
    """Escape backslash, semicolon, comma and line break for an iCalendar text value."""
    return "".join(_ESCAPE_BY_CHARACTER.get(letter, letter) for letter in text)


def fold_ical_line(line: str) -> str:
    """Fold a line to at most 75 octets; continuation lines start with a space.

    Characters are not split.
    """
    pieces, piece, size = [], "", 0
    for letter in line:
        byte_count = len(letter.encode())
        if size + byte_count > _MAX_LINE_OCTETS:
            pieces.append(piece)
            piece, size = "", 1  # the leading space of the next line
        piece += letter
        size += byte_count
    return "\r\n ".join([*pieces, piece])


def _format_all_day_event(
    day: dt.date,
    title: str,
    description_lines: Sequence[str],
    event_id_seed: str,
    now: dt.datetime,
    alarm_hour: int | None,
) -> list[str]:
    """Return an all-day event that does not block the calendar, with an alarm at an hour of it."""
    event_id = hashlib.sha256(f"{event_id_seed}:{day.isoformat()}".encode()).hexdigest()[:32]
    lines = [
        "BEGIN:VEVENT",
        f"UID:{event_id}@headroom",
        f"DTSTAMP:{now:%Y%m%dT%H%M%SZ}",
        f"DTSTART;VALUE=DATE:{day:%Y%m%d}",
        f"DTEND;VALUE=DATE:{day + dt.timedelta(days=1):%Y%m%d}",
        f"SUMMARY:{escape_ical(title)}",
    ]
    if description_lines:
        lines.append(f"DESCRIPTION:{escape_ical(chr(10).join(description_lines))}")
    lines.append("TRANSP:TRANSPARENT")
    if alarm_hour is not None:
        lines += ["BEGIN:VALARM", "ACTION:DISPLAY", f"DESCRIPTION:{escape_ical(title)}"]
        lines += [f"TRIGGER:PT{alarm_hour}H", "END:VALARM"]
    return [*lines, "END:VEVENT"]


_ONE_DAY = dt.timedelta(days=1)
_MOST_WEEKS = 6


@dataclasses.dataclass(frozen=True, slots=True)
class PlanDay:
    """A day of the calendar; `minutes` are those that are planned, 0 on a day off.

    `tasks_done` says what was done of a list that was left unfinished, such as “2 of 4”.
    """

    day: dt.date
    state: DayState
    minutes: int
    tasks_done: str


@dataclasses.dataclass(frozen=True, slots=True)
class PlanWeeks:
    """The weeks from this one on, and the one of the exam; `skipped_week_count` lie between them."""

    weeks: Sequence[Sequence[PlanDay]]
    skipped_week_count: int = 0
    exam_week: Sequence[PlanDay] = ()


def build_plan_weeks(ctx: RequestContext, calendar: PlanCalendar, record: StudyRecord) -> PlanWeeks:
    """Return the weeks to the exam, from Monday to Sunday; of many weeks, the first ones and the last."""
    monday = ctx.study_day - ctx.study_day.weekday() * _ONE_DAY
    end = calendar.exam_day or ctx.study_day + 7 * _ONE_DAY
    week_count = (end - monday).days // 7 + 1
    shown_count = week_count if week_count <= _MOST_WEEKS else _MOST_WEEKS - 1

    def week(number: int) -> Sequence[PlanDay]:
        days = (monday + (7 * number + n) * _ONE_DAY for n in range(7))
        return [_build_plan_day(ctx, d, calendar, record) for d in days]

    return PlanWeeks(
        [week(n) for n in range(shown_count)],
        max(0, week_count - shown_count - 1),
        week(week_count - 1) if week_count > shown_count else (),
    )


def _build_plan_day(
    ctx: RequestContext, day: dt.date, calendar: PlanCalendar, record: StudyRecord
) -> PlanDay:
    state = find_day_state(day, calendar, record, ctx.study_day)
    minutes = 0 if state in {"off", "exam"} else ctx.learner.minutes_ignoring_days_off(day)
    return PlanDay(day, state, minutes, record.describe_unfinished_list(day))


_MOST_SUGGESTED_MINUTES = 240  # a day


@dataclasses.dataclass(frozen=True, slots=True)
class ReadingTimeVerdict:
    """Whether what is unread fits: how many pages, the minutes for it, the minutes for reading.

    Of the `available_minutes`, `minutes_left_on_todays_list` are those of today's list that are left.
    It takes `needed_minutes` on a route, with the rest of the begun pages, which are read but for
    what is not essential. Where pages are read in full as long as they fit, and may not, the route
    is that of the essentials, and whole unread pages take `minutes_for_whole_pages`. Where not all fit, they
    would with `enough_minutes_a_day`; None if with no setting.
    """

    unread_page_count: int
    begun_page_count: int
    route: ReadingRoute
    needed_minutes: int
    available_minutes: float
    minutes_left_on_todays_list: float = 0.0
    minutes_for_whole_pages: int = 0
    enough_minutes_a_day: int | None = None

    @property
    def does_reading_fit(self) -> bool:
        return self.needed_minutes <= self.available_minutes

    @property
    def does_reading_fit_if_lists_finished(self) -> bool:
        """Whether it fits for a learner who finishes each list, or lacks less than a page's time."""
        missing = self.needed_minutes - self.available_minutes_if_lists_finished
        page_count = max(1, self.unread_page_count + self.begun_page_count)
        return missing <= 0 or missing < self.needed_minutes / page_count

    @property
    def are_minutes_as_judged(self) -> bool:
        """Whether the pages fit or not by the minutes alone, without the leeway of a page."""
        return (
            not self.does_reading_fit_if_lists_finished
            or self.needed_minutes <= self.available_minutes_if_lists_finished
        )

    @property
    def available_minutes_if_lists_finished(self) -> float:
        """The minutes for pages of a learner who finishes each list."""
        later = self.available_minutes - self.minutes_left_on_todays_list
        return self.minutes_left_on_todays_list + MOST_NEEDED_IF_FINISHED * later

    @property
    def fitting_page_count(self) -> int:
        """About how many of the unread pages fit for a learner who finishes each list."""
        share = self.available_minutes_if_lists_finished / max(1, self.needed_minutes)
        return int(min(1.0, share) * self.unread_page_count)


def compare_unread_pages_with_time(
    ctx: RequestContext, calendar: PlanCalendar, plan: StudyPlan | None
) -> ReadingTimeVerdict | None:
    """Return the verdict on the minutes a day; None without an exam day ahead."""
    if calendar.exam_day is None or calendar.exam_day <= ctx.study_day:
        return None
    verdict = _judge_minutes_a_day(ctx, calendar, plan)
    if verdict.does_reading_fit_if_lists_finished:
        return verdict
    enough = _find_minutes_a_day_that_fit(ctx, calendar)
    return dataclasses.replace(verdict, enough_minutes_a_day=enough)


def does_unread_reading_fit(
    ctx: RequestContext, calendar: PlanCalendar, plan: StudyPlan | None
) -> bool:
    """Return whether a learner who finishes each list reads every page; True without an exam ahead."""
    if calendar.exam_day is None or calendar.exam_day <= ctx.study_day:
        return True
    verdict = _judge_minutes_a_day(ctx, calendar, plan)
    return not verdict.unread_page_count or verdict.does_reading_fit_if_lists_finished


def _judge_minutes_a_day(
    ctx: RequestContext, calendar: PlanCalendar, plan: StudyPlan | None
) -> ReadingTimeVerdict:
    learner, facts = ctx.learner, LearnerFacts(ctx.study_day)
    reading_route = find_planned_route(ctx)
    todays = {page.slug for task in plan.tasks for page in task.unread_pages} if plan else set()
    if plan and not todays and (coming := build_next_day_list(ctx)) and coming.route:
        reading_route = coming.route
    if learner.id:
        facts = load_learner_facts(ctx.db, learner, ctx.course, ctx.study_day)
    minutes = learner.minutes_ignoring_days_off(ctx.study_day)
    later = compute_reading_minutes_after_today(facts, calendar, minutes, learner.card_amount)
    course_facts, by_route = (
        cached_course_facts(ctx.course),
        dict[ReadingRoute, ReadingTimeVerdict](),
    )
    for counted in (reading_route, "short"):
        unread = list_unread_pages(course_facts, facts, counted)
        begun_count, needed = sum(p.is_rest for p in unread), round(sum(p.minutes for p in unread))
        unread_count = len(unread) - begun_count
        today = sum(p.minutes for p in unread if p.slug in todays)
        by_route[counted] = ReadingTimeVerdict(
            unread_count, begun_count, counted, needed, today + later, today
        )
    whole = round(
        sum(p.minutes for p in list_unread_pages(course_facts, facts, "full") if not p.is_rest)
    )
    verdict, essentials = by_route[reading_route], by_route["short"]
    if whole and reading_route == "full" and not verdict.does_reading_fit_if_lists_finished:
        unread_only = dataclasses.replace(verdict, needed_minutes=whole, begun_page_count=0)
        if unread_only.does_reading_fit_if_lists_finished:
            return unread_only  # the rest of begun pages comes last
    may_shorten = learner.page_route == "auto" and essentials.unread_page_count
    is_short = reading_route == "short"
    full_fits = (
        whole <= verdict.available_minutes_if_lists_finished
        if is_short
        else verdict.does_reading_fit_if_lists_finished
    )
    if may_shorten and essentials.does_reading_fit_if_lists_finished and not full_fits:
        return dataclasses.replace(essentials, minutes_for_whole_pages=whole)
    return verdict


def _find_minutes_a_day_that_fit(ctx: RequestContext, calendar: PlanCalendar) -> int | None:
    """Return the fewest minutes a day, in fives, with which the pages fit; None if there are none.

    The lists are those that saving these minutes would make, today's among them.
    """

    def does_reading_fit(minutes_a_day: int) -> bool:
        learner = dataclasses.replace(ctx.learner, minutes_a_day=minutes_a_day)
        saved = dataclasses.replace(ctx, learner=learner, lookup_cache={})
        verdict = _judge_minutes_a_day(saved, calendar, load_study_plan(saved))
        return verdict.does_reading_fit_if_lists_finished

    choices = range(5, _MOST_SUGGESTED_MINUTES + 1, 5)
    fewest = bisect.bisect_left(choices, x=True, key=does_reading_fit)
    more = (m for m in choices[fewest:] if m > ctx.learner.minutes_a_day and does_reading_fit(m))
    return next(more, None)


router = APIRouter()


@router.get("/plan")
def show_plan(ctx: ReadContext, _ensured: DayListEnsured, kept: str = "") -> HTMLResponse:
    return _render_plan_page(
        ctx,
        build_settings_form(ctx.learner),
        saved=kept in {"yes", "dates"},
        has_new_mock_days=kept == "dates",
    )


def _render_plan_page(
    ctx: RequestContext,
    form: SettingsPageForm,
    problems: Problems | None = None,
    *,
    saved: bool = False,
    has_new_mock_days: bool = False,
) -> HTMLResponse:
    """Render the plan, with the typed values and status 422 if there are problems."""
    learner, day = ctx.learner, ctx.study_day
    plan, planned = load_study_plan(ctx), learner.plan_calendar_as_of(day)
    sitting_days = load_sitting_days(ctx.db, learner, ctx.course) if learner.mock_days else []
    sat_on_by_mock = planned.map_mock_exams_to_sitting_days(sitting_days)
    calendar = planned.without_mock_exams_taken_early(sitting_days)
    due_mock = planned.find_due_mock_exam_day(day, max(sitting_days, default=None))
    record = load_study_record(ctx)
    key = progress_store.load_feed_key(ctx.db, learner.id) if learner.id else ""
    return ctx.render_page(
        "progress/plan.html",
        status=422 if problems else 200,
        form=form,
        problems=problems or [],
        saved=saved,
        has_new_mock_days=has_new_mock_days,
        exam=find_main_exam(ctx.course),
        day=day,
        days_left=(learner.exam_day - day).days if learner.exam_day else None,
        calendar=calendar,
        planned_mocks=[
            mock
            for mock in planned.mock_exam_days
            if mock >= (planned.first_day if mock in sat_on_by_mock else due_mock or day)
        ],
        mock_sittings=sat_on_by_mock,
        weeks=build_plan_weeks(ctx, calendar, record),
        verdict=compare_unread_pages_with_time(ctx, calendar, plan),
        plan=plan,
        tasks=build_task_views(plan, ctx.course),
        latest=calendar.exam_day - _ONE_DAY if calendar.exam_day else None,
        last_new=compute_last_day_for_new_cards(calendar),
        feed=f"{public_base_url(ctx.request)}/calendar/{key}.ics" if key else "",
    )


@router.post("/plan")
def save_plan_settings(
    ctx: WriteContext,
    exam_day: Annotated[str, Form()] = "",
    minutes_a_day: Annotated[str, Form()] = "",
    card_amount: Annotated[str, Form()] = "",
    page_route: Annotated[str, Form()] = "",
    page: Annotated[str, Form()] = "",
) -> Response:
    """Save the exam day, daily minutes, amount of new cards and pages; other settings stay.

    The first page and Today have this form, too: `page` is `plan` if the plan sent it.
    """
    changed = {"exam_day": exam_day, "minutes_a_day": minutes_a_day}
    choices = {"card_amount": card_amount, "page_route": page_route}
    changed |= {name: choice for name, choice in choices.items() if choice}
    typed = build_settings_form(ctx.learner).model_copy(update=changed)
    sitting_days = load_sitting_days(ctx.db, ctx.learner, ctx.course)
    parsed = typed.parse_values_and_plan_mock_exams(ctx.study_day, ctx.learner, sitting_days)
    if parsed.problems:
        return _render_plan_page(ctx, typed, parsed.problems)
    update_learner_columns(ctx.db, ctx.learner.id, parsed.values_by_column)
    has_list = load_newest_list(ctx.db, ctx.learner.id, ctx.study_day) is not None
    shows_plan = page == "plan" or (has_list and exam_day)
    before = {day for day in ctx.learner.mock_days if day > ctx.study_day}
    mock_days = map(dt.date.fromisoformat, parsed.values_by_column.get("mock_days", "").split())
    has_moved = bool(before) and not {day for day in mock_days if day > ctx.study_day} <= before
    return RedirectResponse(
        f"/plan?kept={'dates' if has_moved else 'yes'}" if shows_plan else "/?kept=yes#when", 303
    )


@router.post("/plan/mock")
def move_mock_exam(
    ctx: WriteContext, old: Annotated[dt.date, Form()], new: Annotated[dt.date, Form()]
) -> Response:
    """Move a planned mock exam to another day before the exam."""
    try:
        mocks = move_mock_exam_day(
            ctx.learner.plan_calendar_as_of(ctx.study_day), old, new, ctx.study_day
        )
    except ValueError as error:
        raise InvalidInputError(str(error), "new") from None
    changed = {"mock_days": " ".join(day.isoformat() for day in mocks)}
    update_learner_columns(ctx.db, ctx.learner.id, changed)
    return RedirectResponse("/plan?kept=yes", 303)


calendar_router = APIRouter()


@calendar_router.get("/calendar/{key}.ics")
def serve_calendar_feed(
    request: Request, key: str, course: CurrentCourse, db: DbSession, now: Now
) -> Response:
    """The calendar feed, for any client that knows the URL."""
    feed = progress_store.find_feed_owner(db, key)
    learner = load_learner_by_id(db, feed.learner_id) if feed else None
    if learner and learner.course_name != request.state.course_name and learner.course_name:
        return RedirectResponse(f"../../{learner.course_name}/calendar/{key}.ics", 307)
    if feed is None or learner is None or learner.course_name != request.state.course_name:
        raise NotFoundError("There is no calendar at this address. It may have been renewed.")
    ctx = RequestContext(request, course, learner, db, now)
    # Calendar programs poll. The plan changes only if one of these values does.
    cache_key = f"{key} {feed.change_count} {ctx.study_day} {course.version}"
    etag = f'W/"{hashlib.sha256(cache_key.encode()).hexdigest()[:32]}"'
    if etag in request.headers.get("if-none-match", ""):
        return Response(status_code=304, headers={"etag": etag})
    exam_name = course.syllabus.exam or course.syllabus.title
    plan = None if learner.is_exam_over(ctx.study_day) else load_study_plan(ctx)
    text = format_icalendar(ctx, plan, exam_name, learner.key)
    return Response(text, media_type="text/calendar; charset=utf-8", headers={"etag": etag})


@calendar_router.post("/plan/calendar")
def renew_or_end_calendar_feed(
    learner: EnrolledLearner,
    db: DbSession,
    now: Now,
    wish: Annotated[Literal["new", "end"], Form()],
) -> Response:
    """Create a new feed URL, which ends the old one; or only end it."""
    key = secrets.token_urlsafe(32) if wish == "new" else ""
    progress_store.replace_feed_key(db, learner.id, key, now)
    return RedirectResponse("/plan#calendar", 303)
