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
from app.flashcards.desk import stack_of
from app.flashcards.left_words import over_words
from app.learners.desk import Desk
from app.mastery.bank import missed
from app.mastery.course import anchors
from app.progress import store
from app.progress.blueprint import plots
from app.progress.picture import CurrentPicture, Picture, main_exam
from app.progress.planning import (
    SoFar,
    left_runs_of,
    may_sit_today,
    read_today,
    running_of,
    today_plan,
)
from app.progress.shown import keep_shown
from app.progress.study_log import first_day, study_log
from app.progress.until_exam import until_exam
from app.progress.week import week
from app.progress.welcome import welcome_of
from app.questions.asking import new_token
from app.scheduling import Left
from app.web.clock import moment
from app.web.page_cache import keep
from app.web.render import page
from app.web.words import time_of

_MINUTE = dt.timedelta(minutes=1)

router = APIRouter()


@dataclasses.dataclass(frozen=True, slots=True)
class Cards:
    """The cards of today, and a sentence on the plan while an exam lies ahead."""

    left: Left = dataclasses.field(default_factory=Left)
    sentence: str = ""


@router.get("/", name="today", dependencies=[Depends(keep_shown)])
def today(request: Request, picture: CurrentPicture, db: DbSession) -> HTMLResponse:
    keep(request, picture.until, strangers=True)
    if not picture.learner.id:
        return _first(request, picture, _today(picture, SoFar(), Cards()))
    day = picture.day
    days = store.study_days(db, picture.learner.id, first_day(day))
    done = days.recent.get(day.isoformat())
    pace = store.pace(db, picture.learner, picture.library, day)
    placing, left_run = left_runs_of(picture, db)
    so_far = SoFar(
        answered=done.milliseconds / 60_000 if done else 0.0,
        read=read_today(picture, pace),
        sat=_sat(picture, db),
        pace=pace,
        running=running_of(picture, db),
        placing=placing,
        left_run=left_run,
    )
    if so_far.running is not None:  # the minutes on its clock are named
        keep(request, min(picture.until, picture.now + _MINUTE), strangers=True)
    desk = Desk(request, picture.library, picture.learner, db, picture.now)
    stack = stack_of(desk)
    cards = Cards(stack.left, until_exam(desk, stack))
    shown = _today(picture, so_far, cards)
    if picture.is_new and so_far.running is None:
        return _first(request, picture, shown)
    begun = days.first or day
    log = study_log(days.counts, day, begun) if picture.learner.calendar else None
    return page(request, "progress/today.html", log=log, **shown)


def _first(request: Request, picture: Picture, shown: dict[str, Any]) -> HTMLResponse:
    """The page of a first visit."""
    minutes, exam = picture.learner.minutes_a_day, main_exam(picture.library)
    welcome = welcome_of(picture.library, exam, minutes, picture.learner.key)
    return page(
        request, "progress/first.html", welcome=welcome, token=new_token(), **shown
    )


def _sat(picture: Picture, db: Session) -> dt.date | None:
    """The study day of the last mock exam, if the plan may have one today."""
    sat = store.last_sat(db, picture.learner.id) if may_sit_today(picture) else None
    return picture.learner.study_day(moment(sat)) if sat else None


def _today(picture: Picture, so_far: SoFar, cards: Cards) -> dict[str, Any]:
    library, learner = picture.library, picture.learner
    last = picture.pages[0].topic if picture.pages else ""
    topic = library.topics.get(last)
    made = today_plan(picture, cards.left, so_far)
    exam = learner.exam_day
    return {
        "learner": learner,
        "syllabus": library.syllabus,
        "day": picture.day,
        "days_left": (exam - picture.day).days if exam else None,
        "plan": made,
        "placing": so_far.placing,
        "spent": so_far.shown,
        "minutes": learner.minutes_on(picture.day),
        "off": learner.is_off(picture.day),
        "answered": time_of(so_far.answered) if so_far.answered else "",
        "read": time_of(so_far.read) if so_far.read else "",
        "left": cards.left,
        "over": over_words(cards.left.over, cards.left.passed),
        "missed": missed(library, picture.record.firsts),
        "question_minutes": so_far.pace.question_minutes,
        "ahead": picture.ahead,
        "ahead_drawn": picture.ahead_drawn,
        "lacking": picture.lacking,
        "chance": picture.chance,
        "plots": plots(
            picture.domains,
            topic.objectives if topic else (),
            picture.ahead,
            learner.target,
        ),
        "week": week(picture.coming, picture.day, cards.left.returning),
        "recent": _recent(picture),
        "until_exam": cards.sentence,
    }


def _read_of(topic: Topic, sections: Collection[str]) -> str:
    """How much of a page was read, as Course says it."""
    named = anchors(topic)
    done = sum(anchor in sections for anchor in named)
    if done == len(named):
        return "read"
    return f"{done} of {len(named)} sections read, the last" if done else "opened"


def _recent(picture: Picture) -> Sequence[dict[str, Any]]:
    """The pages read last, with the study day of it."""
    return [
        {
            "topic": picture.library.topics[row.topic],
            "what": _read_of(picture.library.topics[row.topic], row.sections),
            "ago": (picture.day - picture.learner.study_day(moment(row.at))).days,
            "day": picture.learner.study_day(moment(row.at)),
        }
        for row in picture.pages[:4]
        if row.topic in picture.library.topics
    ]
