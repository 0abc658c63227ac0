"""GET what to do today."""

import dataclasses
import datetime as dt
from collections.abc import Collection, Sequence
from typing import Any

from fastapi import APIRouter, Depends, Request
from fastapi.responses import HTMLResponse
from sqlmodel import Session

from app.content.model import Topic
from app.db.engine import DbSession
from app.flashcards.left_words import over_words
from app.flashcards.review_table import todays_queue
from app.learners.desk import RequestContext
from app.mastery.bank import missed
from app.mastery.course import anchors
from app.progress import store
from app.progress.blueprint import plots
from app.progress.planning import (
    TodaySoFar,
    left_runs_of,
    may_sit_today,
    read_today,
    running_of,
    today_plan,
)
from app.progress.prediction_log import log_prediction
from app.progress.snapshot import CurrentSnapshot, LearnerSnapshot, main_exam
from app.progress.study_log import first_day, study_log
from app.progress.until_exam import until_exam
from app.progress.week import week
from app.progress.welcome import welcome_of
from app.questions.asking import new_token
from app.scheduling import CardsLeft
from app.web.clock import from_milliseconds
from app.web.page_cache import allow_caching
from app.web.render import render_page
from app.web.words import format_duration

_MINUTE = dt.timedelta(minutes=1)

router = APIRouter()


@dataclasses.dataclass(frozen=True, slots=True)
class TodayCards:
    """The cards of today, and a sentence on the plan while an exam lies ahead."""

    left: CardsLeft = dataclasses.field(default_factory=CardsLeft)
    sentence: str = ""


@router.get("/", name="today", dependencies=[Depends(log_prediction)])
def today(request: Request, snapshot: CurrentSnapshot, db: DbSession) -> HTMLResponse:
    allow_caching(request, snapshot.until, strangers=True)
    if not snapshot.learner.id:
        return _first(request, snapshot, _today(snapshot, TodaySoFar(), TodayCards()))
    day = snapshot.day
    days = store.study_days(db, snapshot.learner.id, first_day(day))
    done = days.recent.get(day.isoformat())
    pace = store.pace(db, snapshot.learner, snapshot.library, day)
    placing, left_run = left_runs_of(snapshot, db)
    so_far = TodaySoFar(
        answered=done.milliseconds / 60_000 if done else 0.0,
        read=read_today(snapshot, pace),
        sat=_sat(snapshot, db),
        pace=pace,
        running=running_of(snapshot, db),
        placing=placing,
        left_run=left_run,
    )
    if so_far.running is not None:  # the minutes on its clock are named
        allow_caching(request, min(snapshot.until, snapshot.now + _MINUTE), strangers=True)
    desk = RequestContext(request, snapshot.library, snapshot.learner, db, snapshot.now)
    stack = todays_queue(desk)
    cards = TodayCards(stack.left, until_exam(desk, stack))
    shown = _today(snapshot, so_far, cards)
    if snapshot.is_new and so_far.running is None:
        return _first(request, snapshot, shown)
    begun = days.first or day
    log = study_log(days.counts, day, begun) if snapshot.learner.calendar else None
    return render_page(request, "progress/today.html", log=log, **shown)


def _first(request: Request, snapshot: LearnerSnapshot, shown: dict[str, Any]) -> HTMLResponse:
    """The page of a first visit."""
    minutes, exam = snapshot.learner.minutes_a_day, main_exam(snapshot.library)
    welcome = welcome_of(snapshot.library, exam, minutes, snapshot.learner.key)
    return render_page(request, "progress/first.html", welcome=welcome, token=new_token(), **shown)


def _sat(snapshot: LearnerSnapshot, db: Session) -> dt.date | None:
    """The study day of the last mock exam, if the plan may have one today."""
    sat = store.last_sat(db, snapshot.learner.id) if may_sit_today(snapshot) else None
    return snapshot.learner.study_day(from_milliseconds(sat)) if sat else None


def _today(snapshot: LearnerSnapshot, so_far: TodaySoFar, cards: TodayCards) -> dict[str, Any]:
    library, learner = snapshot.library, snapshot.learner
    last = snapshot.pages[0].topic if snapshot.pages else ""
    topic = library.topics.get(last)
    made = today_plan(snapshot, cards.left, so_far)
    exam = learner.exam_day
    return {
        "learner": learner,
        "syllabus": library.syllabus,
        "day": snapshot.day,
        "days_left": (exam - snapshot.day).days if exam else None,
        "plan": made,
        "placing": so_far.placing,
        "spent": so_far.shown,
        "minutes": learner.minutes_on(snapshot.day),
        "off": learner.is_off(snapshot.day),
        "answered": format_duration(so_far.answered) if so_far.answered else "",
        "read": format_duration(so_far.read) if so_far.read else "",
        "left": cards.left,
        "over": over_words(cards.left.over, cards.left.passed),
        "missed": missed(library, snapshot.record.firsts),
        "question_minutes": so_far.pace.question_minutes,
        "ahead": snapshot.ahead,
        "ahead_drawn": snapshot.ahead_drawn,
        "lacking": snapshot.lacking,
        "chance": snapshot.chance,
        "plots": plots(
            snapshot.domains,
            topic.objectives if topic else (),
            snapshot.ahead,
            learner.target,
        ),
        "week": week(snapshot.coming, snapshot.day, cards.left.returning),
        "recent": _recent(snapshot),
        "until_exam": cards.sentence,
    }


def _read_of(topic: Topic, sections: Collection[str]) -> str:
    """How much of a page was read, as Course says it."""
    named = anchors(topic)
    done = sum(anchor in sections for anchor in named)
    if done == len(named):
        return "read"
    return f"{done} of {len(named)} sections read, the last" if done else "opened"


def _recent(snapshot: LearnerSnapshot) -> Sequence[dict[str, Any]]:
    """The pages read last, with the study day of it."""
    return [
        {
            "topic": snapshot.library.topics[row.topic],
            "what": _read_of(snapshot.library.topics[row.topic], row.sections),
            "ago": (snapshot.day - snapshot.learner.study_day(from_milliseconds(row.at))).days,
            "day": snapshot.learner.study_day(from_milliseconds(row.at)),
        }
        for row in snapshot.pages[:4]
        if row.topic in snapshot.library.topics
    ]
