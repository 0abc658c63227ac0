"""Reviewing: the card, its answer, its grade, and taking a grade back."""

import dataclasses

from fastapi import APIRouter, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from app.cards.names import is_added_card
from app.db.engine import read_only_session, run_query
from app.flashcards import store
from app.flashcards.finding import ResolvedCard
from app.flashcards.form_body import parse_form
from app.flashcards.forms import (
    GradeForm,
    Suspended,
    SuspensionForm,
    UndoForm,
    Undone,
    Wished,
)
from app.flashcards.late_grades import record_late_grade, require_same_learner
from app.flashcards.onward import grade_words, next_card_response, undoable, wish_of
from app.flashcards.review_table import (
    ReviewFilter,
    ReviewPage,
    build_card_view,
    build_review_page,
    find_card,
    find_cards_once,
)
from app.learners.current import write_dependencies
from app.learners.desk import Reader, RequestContext, desk_of, run_reading, run_writing
from app.scheduling import ReviewEvent, is_leech
from app.web.clock import to_milliseconds
from app.web.render import render_page

router = APIRouter()
_LONGEST_LOOK = 10 * 60 * 1000


@router.get("")
def index(desk: Reader, wished: Wished) -> HTMLResponse:
    """The desk: the card that is most urgent now, or the one asked for."""
    if wished.card:
        find_card(desk, wished.card)
    graded = _rating_of(desk, wished.card, wished.token)
    wish = wish_of(desk, wished.topic, wished.more, "" if graded else wished.card)
    show = wished.show and not graded
    token = wished.token if wish.card else ""
    table = build_review_page(desk, wish, show=show, since=wished.since, token=token)
    leech = find_cards_once(desk, [wished.leech]).get(wished.leech)
    already = grade_words(graded or wished.graded)
    return desk.page(
        "flashcards/index.html",
        table=dataclasses.replace(table, undo=undoable(desk), leech=leech, already=already),
        wish=wish,
        empty=not desk.library.cards and _is_bare(table),
    )


@router.get("/{card}/answer")
def answer(desk: Reader, card: str, wished: Wished) -> Response:
    """The card with its answer and the four grades, as a fragment."""
    name = find_card(desk, card).card.id
    if graded := _rating_of(desk, name, wished.token):
        return next_card_response(desk, wish_of(desk, wished.topic, wished.more), graded=graded)
    held = store.load_card(desk.db, desk.learner.id, name)
    token, since = wished.token, wished.since
    return render_page(
        desk.request,
        "flashcards/_turn.html",
        turn=build_card_view(desk, held, show=True, since=since, token=token),
        wish=ReviewFilter(wished.topic, wished.more),
    )


def _rating_of(desk: RequestContext, card: str, token: str) -> int:
    """The grade that a showing of a card has already; 0 for none."""
    if not token or not desk.learner.id:
        return 0
    return store.find_rating(desk.db, desk.learner.id, card, token)


@dataclasses.dataclass(frozen=True, slots=True)
class _AfterGrade:
    """What the desk says after a grade: the number to undo, a card that fails often.

    `graded` is the grade that this showing had already.
    """

    wish: ReviewFilter
    undo: int = 0
    leech: ResolvedCard | None = None
    graded: int = 0


async def review(request: Request) -> Response:
    """Grade a card, once, and lay out the next.

    The next card is looked for when the grade is on disk: that takes longer than the
    grade, and others who write would wait for it.
    """
    graded = await parse_form(request, GradeForm)
    card: str = request.path_params["card"]
    async with write_dependencies(request) as (db, learner):
        desk = await desk_of(request, learner, db)
        if graded.given:
            return await run_query(db, lambda: _late(desk, card, graded))
        done = await run_query(db, lambda: _grade(desk, card, graded))
    async with read_only_session(request) as db:
        after = await desk_of(request, learner, db)
        # In a thread: on some days the first grade waits for the plan of the day.
        return await run_in_threadpool(
            next_card_response,
            after,
            done.wish,
            undo=done.undo,
            leech=done.leech,
            graded=done.graded,
        )


def _late(desk: RequestContext, card: str, graded: GradeForm) -> Response:
    found = find_card(desk, card)
    require_same_learner(desk, graded.who)
    return record_late_grade(desk, found.card, graded)


def _grade(desk: RequestContext, card: str, graded: GradeForm) -> _AfterGrade:
    found = find_card(desk, card)
    require_same_learner(desk, graded.who)
    wish = wish_of(desk, graded.topic, graded.more)
    grade = ReviewEvent(graded.rating, desk.now, desk.day, desk.learner.retention)
    submission = store.GradeSubmission(graded.token, _looked(desk, graded.since))
    done = store.record_review(desk.db, desk.learner.id, found.card, grade, submission)
    if done is None:
        return _AfterGrade(wish, graded=_rating_of(desk, found.card.id, graded.token))
    leech = done.lapsed and is_leech(done.standing.lapses)
    return _AfterGrade(wish, done.number, found if leech else None)


@router.post("/undo")
async def undo(request: Request, undone: Undone) -> Response:
    """Take the last grade, or what was set by hand, back and show its card again.

    The card is laid out when that is on disk, as after a grade.
    """
    card = await run_writing(request, lambda desk: _undo(desk, undone))

    def answer(desk: RequestContext) -> Response:
        return next_card_response(desk, wish_of(desk, undone.topic, undone.more, card))

    return await run_reading(request, answer)


def _undo(desk: RequestContext, undone: UndoForm) -> str:
    """Take it back; returns its card, empty where it was not the last any more."""
    wish_of(desk, undone.topic, undone.more)  # refused before anything is kept
    when = (desk.now, desk.day)
    cards = desk.library.cards
    return store.undo_review(desk.db, desk.learner.id, undone.review, when, cards) or ""


@router.post("/{card}/suspension")
async def suspend(request: Request, card: str, wanted: Suspended) -> Response:
    """Put a card aside, or take it up again."""
    topic = await run_writing(request, lambda desk: _suspend(desk, card, wanted))
    if wanted.deck:
        where = "#own" if is_added_card(card) else f"?topic={topic}"
        return RedirectResponse(f"/flashcards/deck{where}", 303)

    def answer(desk: RequestContext) -> Response:
        return next_card_response(desk, wish_of(desk, wanted.topic, wanted.more))

    return await run_reading(request, answer)


def _suspend(desk: RequestContext, card: str, wanted: SuspensionForm) -> str:
    """Write it down; returns the topic of the card."""
    found = find_card(desk, card).card
    wish_of(desk, wanted.topic, wanted.more)  # refused before anything is kept
    store.set_suspended(desk.db, desk.learner.id, found, desk.now, aside=wanted.aside)
    return found.topic


def _is_bare(table: ReviewPage) -> bool:
    """Whether there is no card at all, now or later."""
    return not (table.turn or table.done or (table.rest and table.rest.on))


def _looked(desk: RequestContext, since: int) -> int | None:
    """Milliseconds from showing the card to its grade, where they say anything."""
    passed = to_milliseconds(desk.now) - since
    return passed if since and 0 <= passed <= _LONGEST_LOOK else None
