"""The plan page, the exam-date form, the iCalendar feed."""

import datetime as dt
import hashlib
import secrets
import threading
from collections.abc import Callable, Iterator
from typing import Annotated, Any, Literal

from cachetools import LRUCache, cached
from fastapi import APIRouter, Form, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from app.accounts.current_learner import EnrolledLearner, RequestContext, load_learner_by_id
from app.accounts.learner_store import change_settings
from app.accounts.settings_page import settings_as_typed, settings_page
from app.clock import Now, from_milliseconds
from app.database.engine import DbSession
from app.errors import NotFoundError
from app.progress import store as progress_store
from app.progress.charts import plan_figure
from app.spaced_repetition.review_pace import card_seconds
from app.study_plan import store
from app.study_plan.calendar import PlannedDay, StudyPlan
from app.study_plan.forecast import HORIZON, WHOLE
from app.study_plan.loader import (
    CardForecast,
    CurrentSnapshot,
    LearnerSnapshot,
    load_snapshot,
    main_exam,
    whole_plan,
)
from app.study_plan.store import StudyHistory
from app.web.dependencies import CurrentLibrary, public_base_url
from app.web.formatting import NBSP, format_count, format_minutes
from app.web.render import render_page

_WIDE = 75  # octets of a line, without its line end
_ESCAPED = {"\\": "\\\\", ";": "\\;", ",": "\\,", "\n": "\\n"}


def write_calendar(plan: StudyPlan | None, exam: str, who: str, now: dt.datetime) -> str:
    """Return the iCalendar file. `who` makes event ids stable and unique; `now` is UTC.

    A calendar must hold at least one event, so without a plan one event says what is missing.
    """
    lines = [
        "BEGIN:VCALENDAR",
        "VERSION:2.0",
        "PRODID:-//Headroom//Study plan//EN",
        "CALSCALE:GREGORIAN",
        "METHOD:PUBLISH",
        f"X-WR-CALNAME:{escape_ical(f'Study for {exam}')}",
        "REFRESH-INTERVAL;VALUE=DURATION:PT12H",
    ]
    for day in plan.days if plan else ():
        lines += _calendar_event(day.day, day_title(day), list(day_parts(day)), who, now)
    if plan is not None:
        lines += _calendar_event(plan.exam, f"Exam: {exam}", [], who, now)
    else:
        lines += _calendar_event(now.date(), "Headroom: no exam day ahead", [], who, now)
    lines.append("END:VCALENDAR")
    return "".join(f"{fold_line(line)}\r\n" for line in lines)


def day_title(day: PlannedDay) -> str:
    """Return the event title of a day."""
    time = format_minutes(day.minutes).replace(NBSP, " ")
    if day.mock is not None:
        return f"Headroom: {day.mock.title}, {time}"
    return f"Headroom: {time}" if day.minutes else "Headroom: nothing planned"


def day_parts(day: PlannedDay) -> Iterator[str]:
    """Yield the parts of a day, one per line."""
    if day.mock is not None:
        yield f"Mock exam: {day.mock.title}, {day.mock.minutes} minutes"
    for _, title, again in day.pages:
        yield f"{'Go on with' if again else 'Read'}: {title}"
    if day.questions:
        on = f" on {day.about}" if day.about else ""
        yield f"{format_count(day.questions, 'question')}{on}".replace(NBSP, " ")
    said = card_words(day)
    if said:
        yield f"Cards: {said}"


def card_words(day: PlannedDay) -> str:
    """Return the cards of a day: reviews, new ones, and final reviews.

    Today's cards in learning steps are named as on every page.
    """
    cards = day.cards
    due = max(0, cards.due - cards.learning)
    final = max(0, cards.final - cards.learning)
    counts = (
        (due, format_count(due, "review")),
        (cards.fresh, f"{cards.fresh} new"),
        (final, f"{final} once more"),
        (cards.learning, f"{cards.learning} still being learned"),
    )
    return ", ".join(words for number, words in counts if number).replace(NBSP, " ")


def escape_ical(words: str) -> str:
    """Escape backslash, semicolon, comma and line break for an iCalendar text value."""
    return "".join(_ESCAPED.get(letter, letter) for letter in words)


def fold_line(line: str) -> str:
    """Fold a line to at most 75 octets; continuation lines start with a space.

    Characters are not split.
    """
    pieces, piece, size = [], "", 0
    for letter in line:
        more = len(letter.encode())
        if size + more > _WIDE:
            pieces.append(piece)
            piece, size = "", 1  # the leading space of the next line
        piece += letter
        size += more
    return "\r\n ".join([*pieces, piece])


def _calendar_event(
    day: dt.date, title: str, parts: list[str], who: str, now: dt.datetime
) -> list[str]:
    """Return an all-day event that does not block the calendar."""
    name = hashlib.sha256(f"{who}:{day.isoformat()}".encode()).hexdigest()[:32]
    lines = [
        "BEGIN:VEVENT",
        f"UID:{name}@headroom",
        f"DTSTAMP:{now:%Y%m%dT%H%M%SZ}",
        f"DTSTART;VALUE=DATE:{day:%Y%m%d}",
        f"DTEND;VALUE=DATE:{day + dt.timedelta(days=1):%Y%m%d}",
        f"SUMMARY:{escape_ical(title)}",
    ]
    if parts:
        lines.append(f"DESCRIPTION:{escape_ical(chr(10).join(parts))}")
    return [*lines, "TRANSP:TRANSPARENT", "END:VEVENT"]


router = APIRouter()
_DAY = dt.timedelta(days=1)


@router.get("/plan")
def show_plan(request: Request, snapshot: CurrentSnapshot, db: DbSession) -> HTMLResponse:
    learner, exam, day = snapshot.learner, snapshot.learner.exam_day, snapshot.day
    seconds = card_seconds(learner.minutes_a_day)
    held = store.count_deck_cards(db, learner.id, snapshot.library, day)
    desk = RequestContext(request, snapshot.library, learner, db, snapshot.now)
    days = store.study_days(db, learner.id, day - _DAY)
    made = whole_plan(desk, snapshot, held, days)
    key = progress_store.feed_key(db, learner.id) if learner.id else ""
    return render_page(
        request,
        "progress/plan.html",
        learner=learner,
        exam=main_exam(snapshot.library),
        day=day,
        days_left=(exam - day).days if exam else None,
        horizon=HORIZON,
        whole=WHOLE,
        beyond=any(topic.level for topic in snapshot.library.topics.values()),
        held=held,
        cards=held.cards,
        study=made.study,
        card_words=card_words,
        missed=None if learner.is_off(day - _DAY) else _missed_day_yesterday(snapshot, days),
        feed=f"{public_base_url(request)}/calendar/{key}.ics" if key else "",
        **_plan_context(made.cards, seconds),
    )


def _missed_day_yesterday(snapshot: LearnerSnapshot, days: StudyHistory) -> dt.date | None:
    """Return yesterday if the learner had started before and did nothing on it.

    Reading counts as much as answers and reviews.
    """
    yesterday = snapshot.day - _DAY
    begun = days.first is not None and days.first < yesterday
    if not begun or yesterday.isoformat() in days.recent:
        return None
    moments = (at for page in snapshot.pages for at in page.sections.values())
    read = any(snapshot.learner.study_day(from_milliseconds(at)) == yesterday for at in moments)
    return None if read else yesterday


@router.post("/plan")
def set_exam_day(
    request: Request,
    learner: EnrolledLearner,
    db: DbSession,
    now: Now,
    exam_day: Annotated[str, Form()] = "",
    minutes_a_day: Annotated[str, Form()] = "",
) -> Response:
    """Save the exam day and daily minutes; all other settings stay."""
    changed = {"exam_day": exam_day, "minutes_a_day": minutes_a_day}
    typed = settings_as_typed(learner).model_copy(update=changed)
    values, problems = typed.read(learner.study_day(now), learner.exam_day)
    if problems:
        return settings_page(request, learner, db, typed, problems)
    change_settings(db, learner.id, values)
    return RedirectResponse("/plan" if exam_day else "/", 303)


def _plan_context(coming: CardForecast, seconds: float) -> dict[str, Any]:
    ahead = coming.ahead
    if ahead is None:
        return {"ahead": None, "figure": None, "over": ""}
    figure = plan_figure(ahead.outlook, seconds, coming.pace)
    return {"ahead": ahead, "figure": figure, "over": coming.over}


calendar_router = APIRouter()
_BYTES = 8 * 1024 * 1024  # of all cached calendars


@calendar_router.get("/calendar/{key}.ics")
def plan_calendar(
    request: Request, key: str, library: CurrentLibrary, db: DbSession, now: Now
) -> Response:
    """The calendar feed, for any client that knows the URL."""
    feed = progress_store.find_feed(db, key)
    learner = load_learner_by_id(db, feed.learner_id) if feed else None
    if learner and learner.course != request.state.course and learner.course:
        return RedirectResponse(f"../../{learner.course}/calendar/{key}.ics", 307)
    if feed is None or learner is None or learner.course != request.state.course:
        raise NotFoundError("There is no calendar at this address. It may have been renewed.")
    desk = RequestContext(request, library, learner, db, now)
    # Calendar programs poll. The plan changes only if one of these values does.
    known = f"{key} {feed.changes} {desk.day} {library.version}"
    tag = f'W/"{hashlib.sha256(known.encode()).hexdigest()[:32]}"'
    if tag in request.headers.get("if-none-match", ""):
        return Response(status_code=304, headers={"etag": tag})
    text = _cached_calendar(tag, lambda: _calendar_text(desk))
    return Response(text, media_type="text/calendar; charset=utf-8", headers={"etag": tag})


@cached(LRUCache(_BYTES, getsizeof=len), key=lambda tag, _make: tag, lock=threading.Lock())
def _cached_calendar(_tag: str, make: Callable[[], str]) -> str:
    """Return the cached calendar for this ETag, or build it."""
    return make()


def _calendar_text(desk: RequestContext) -> str:
    learner, library, db = desk.learner, desk.library, desk.db
    held = store.count_deck_cards(db, learner.id, library, desk.day)
    snapshot = load_snapshot(library, learner, db, desk.now)
    days = store.study_days(db, learner.id, desk.day)
    plan = whole_plan(desk, snapshot, held, days).study
    name = library.syllabus.exam or library.syllabus.title
    return write_calendar(plan, name, learner.key, desk.now)


@calendar_router.post("/plan/calendar")
def renew_calendar_url(
    learner: EnrolledLearner,
    db: DbSession,
    now: Now,
    wish: Annotated[Literal["new", "end"], Form()],
) -> Response:
    """Create a new feed URL, which ends the old one; or only end it."""
    key = secrets.token_urlsafe(32) if wish == "new" else ""
    progress_store.renew_feed(db, learner.id, key, now)
    return RedirectResponse("/plan#calendar", 303)
