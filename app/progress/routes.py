"""GET today, and GET what is known."""

import dataclasses
import datetime as dt
from collections.abc import Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request
from fastapi.responses import HTMLResponse

from app.content.library import Library
from app.db.engine import DbSession
from app.learners.current import CurrentLearner, CurrentLearnerValue
from app.progress import store
from app.progress.blueprint import HEIGHT, plots
from app.progress.mastery.forecast import Forecast, chance_words, forecast
from app.progress.mastery.plan import Deck, plan
from app.progress.mastery.standing import DomainStanding, Record, standings
from app.progress.study_log import first_day, study_log
from app.progress.week import week
from app.web.clock import Now, moment
from app.web.keeping import keep
from app.web.render import page
from app.web.shelf import CurrentLibrary

router = APIRouter(include_in_schema=False)
_EMPTY = Record({}, frozenset(), {})


@dataclasses.dataclass(frozen=True, slots=True)
class Picture:
    """Everything that is known about a learner at one moment."""

    library: Library
    learner: CurrentLearnerValue
    now: dt.datetime
    begun: list[store.CardRow]
    pages: list[store.PageRow]
    record: Record
    domains: tuple[DomainStanding, ...]

    @property
    def day(self) -> dt.date:
        """The study day."""
        return self.learner.study_day(self.now)

    @property
    def deck(self) -> Deck:
        """The cards of the study day."""
        return store.deck_of(
            self.begun, frozenset(self.library.cards), self.day, self.now
        )

    @property
    def is_new(self) -> bool:
        """Whether nothing was done yet."""
        return not (
            self.record.firsts or self.pages or any(c.begun for c in self.begun)
        )


def read_picture(
    library: CurrentLibrary, learner: CurrentLearner, db: DbSession, now: Now
) -> Picture:
    """Three questions to the database, none for one who has no row yet."""
    begun: list[store.CardRow] = []
    read: list[store.PageRow] = []
    record = _EMPTY
    if learner.id:
        begun, read = store.cards(db, learner.id), store.pages(db, learner.id)
        record = store.record_of(store.first_scores(db, learner.id), begun, read)
    domains = standings(library, record)
    return Picture(library, learner, now, begun, read, record, domains)


CurrentPicture = Annotated[Picture, Depends(read_picture)]


@router.get("/", name="today")
def today(request: Request, picture: CurrentPicture, db: DbSession) -> HTMLResponse:
    keep(request, _until(picture), strangers=True)
    if picture.is_new:
        return page(request, "progress/first.html", **_today(picture))
    day = picture.day
    work = store.work_by_day(db, picture.learner.id, first_day(day))
    log = study_log(work, day)
    return page(request, "progress/today.html", log=log, **_today(picture))


@router.get("/progress")
def progress(request: Request, picture: CurrentPicture) -> HTMLResponse:
    keep(request, _until(picture), strangers=True)
    return page(
        request,
        "progress/index.html",
        learner=picture.learner,
        domains=picture.domains,
        ahead=_forecast(picture),
        chance=_chance(picture),
        firsts=sum(d.evidence.answers for d in picture.domains),
        known=len(picture.record.known),
        cards=len(picture.library.cards),
        week=week(picture.begun, frozenset(picture.library.cards), picture.day),
    )


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
        "ahead": _forecast(picture),
        "chance": _chance(picture),
        "plots": plots(picture.domains, topic.objectives if topic else ()),
        "height": HEIGHT,
        "week": week(picture.begun, frozenset(library.cards), picture.day),
        "recent": _recent(picture),
    }


def _forecast(picture: Picture) -> Forecast | None:
    exams = list(picture.library.exams.values())
    return forecast(picture.domains, exams[0].questions if exams else 100)


def _chance(picture: Picture) -> str:
    """The chance of the learner's own target in words; empty without one."""
    ahead, target = _forecast(picture), picture.learner.target
    if ahead is None or target is None:
        return ""
    return chance_words(ahead.chance(target / 100))


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


def _until(picture: Picture) -> dt.datetime:
    """When this page grows old by itself: a card falls due, or the day turns."""
    ends = [picture.learner.next_study_day(picture.now)]
    ends += [m for m in (moment(c.due_at) for c in picture.begun) if m > picture.now]
    return min(ends)
