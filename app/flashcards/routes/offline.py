"""Cards without a network: the page that is kept for it, and grades that come late."""

import dataclasses
import datetime as dt

from fastapi import APIRouter
from fastapi.responses import HTMLResponse, Response

from app.content.model import Card
from app.errors import Conflict, Problem
from app.flashcards import store
from app.flashcards.desk import (
    Desk,
    Reader,
    known,
    limits_of,
    look,
    mark_of,
    new_today,
    plan_of,
    token_of,
)
from app.flashcards.forms import GradeForm
from app.flashcards.store import Limits
from app.scheduling import OLDEST, Grade, is_too_old, settled
from app.web.clock import moment
from app.web.keeping import keep
from app.web.render import page

router = APIRouter()
_MOST = 100
_LONGEST_LOOK = 10 * 60 * 1000


@dataclasses.dataclass(frozen=True, slots=True)
class Leaf:
    """One card of the page; the token says which showing of it this is."""

    card: Card
    token: str


@router.get("/offline")
def offline(desk: Reader) -> HTMLResponse:
    """The cards due until tomorrow with their answers, to be kept by the browser."""
    keep(desk.request, desk.learner.next_study_day(desk.now))
    return page(
        desk.request,
        "flashcards/offline.html",
        learner=desk.learner,
        leaves=leaves(desk),
        who=mark_of(desk.learner),
    )


def leaves(desk: Desk) -> list[Leaf]:
    """At most 100: due today as on the desk, then new ones, then due tomorrow."""
    today = limits_of(desk)
    tomorrow = dataclasses.replace(today, day=today.day + dt.timedelta(days=1))
    held = {
        one.card: one.turns
        for one in (*_due(desk, today), *_fresh(desk, today), *_due(desk, tomorrow))
    }
    found = known(desk, list(held)[:_MOST])
    return [
        Leaf(one.card, token_of(card, held[card]))
        for card, one in found.items()
        if not one.sat
    ]


def _due(desk: Desk, limits: Limits) -> list[store.Held]:
    db, learner = desk.db, desk.learner.id
    plan = plan_of(desk)
    if plan is not None and limits.day == desk.day:
        return store.upcoming_planned(db, learner, limits, plan, _MOST)
    return store.upcoming(db, learner, limits, _MOST)


def _fresh(desk: Desk, limits: Limits) -> list[store.Held]:
    """The new cards that the day has room for, none beside its reverse."""
    db, learner, library = desk.db, desk.learner.id, desk.library
    room = new_today(desk, look(desk, limits)[0])
    topics = store.unseen_by_topic(db, learner, library, limits)
    found: dict[str, str] = {}
    for card in store.new_cards(db, learner, library, limits, topics):
        if len(found) >= room:
            break
        found.setdefault(store.note_of(library, card), card)
    return [store.unseen(db, learner, card) for card in found.values()]


def refuse_others(desk: Desk, who: str) -> None:
    """Raises Conflict where a grade was given by another learner of the browser."""
    if who and who != mark_of(desk.learner):
        raise Conflict(
            "This grade was given before somebody else came to this browser, "
            "so it was not counted."
        )


def late(desk: Desk, card: Card, graded: GradeForm) -> Response:
    """Write down a grade that waited in the browser; nobody waits for the next card.

    Raises Problem for one that is too old.
    """
    given = moment(graded.given)
    if is_too_old(given, desk.now):
        raise Problem(
            f"Given: {given:%-d %B %Y} is more than {OLDEST.days} days ago, "
            "so the grade was not counted.",
            "given",
        )
    held = store.find(desk.db, desk.learner.id, card.id)
    at = settled(given, desk.now, held.standing.last_at if held.standing else None)
    grade = Grade(graded.rating, at, desk.learner.study_day(at), desk.learner.retention)
    sent = store.Sent(graded.token, _looked(graded))
    store.record(desk.db, desk.learner.id, card, grade, sent)
    return Response(status_code=204)


def _looked(graded: GradeForm) -> int | None:
    """Milliseconds from showing the card to its grade, both by the browser's clock."""
    passed = graded.given - graded.since
    return passed if graded.since and 0 <= passed <= _LONGEST_LOOK else None
