"""GET what to do today."""

from collections.abc import Sequence
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse

from app.db.engine import DbSession
from app.progress import store
from app.progress.blueprint import HEIGHT, plots
from app.progress.mastery.plan import plan
from app.progress.routes.picture import CurrentPicture, Picture
from app.progress.study_log import first_day, study_log
from app.progress.week import week
from app.web.clock import moment
from app.web.keeping import keep
from app.web.render import page

router = APIRouter()


@router.get("/", name="today")
def today(request: Request, picture: CurrentPicture, db: DbSession) -> HTMLResponse:
    keep(request, picture.until, strangers=True)
    if picture.is_new:
        return page(request, "progress/first.html", **_today(picture))
    log = None
    if picture.learner.calendar:
        days = store.study_days(db, picture.learner.id, first_day(picture.day))
        log = study_log(days.counts, picture.day)
    return page(request, "progress/today.html", log=log, **_today(picture))


def _today(picture: Picture) -> dict[str, Any]:
    library, last = picture.library, picture.pages[:1]
    topic = library.topics.get(last[0].topic) if last else None
    steps = plan(
        library,
        picture.record,
        picture.domains,
        picture.deck,
        last[0].topic if last else "",
    )
    exam = picture.learner.exam_day
    return {
        "learner": picture.learner,
        "day": picture.day,
        "days_left": (exam - picture.day).days if exam else None,
        "steps": steps,
        "minutes": sum(step.minutes for step in steps),
        "deck": picture.deck,
        "ahead": picture.ahead,
        "chance": picture.chance,
        "plots": plots(picture.domains, topic.objectives if topic else ()),
        "height": HEIGHT,
        "week": week(picture.begun, frozenset(library.cards), picture.day),
        "recent": _recent(picture),
    }


def _recent(picture: Picture) -> Sequence[dict[str, Any]]:
    """The pages read last, with the study day of it."""
    return [
        {
            "topic": picture.library.topics[row.topic],
            "ago": (picture.day - picture.learner.study_day(moment(row.at))).days,
            "day": picture.learner.study_day(moment(row.at)),
        }
        for row in picture.pages[:4]
        if row.topic in picture.library.topics
    ]
