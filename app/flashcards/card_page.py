"""Page of one card: state, history, manual edits."""

import dataclasses
import datetime as dt
from collections.abc import Sequence
from typing import Annotated

from fastapi import APIRouter, Query, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from app.accounts.current_learner import Reader, RequestContext, run_reading, run_writing
from app.clock import from_milliseconds
from app.errors import InvalidInputError
from app.flashcards.deck_page import describe_standing, state_words
from app.flashcards.forms import Acted, ManualEditForm
from app.flashcards.review_page import (
    find_card,
    next_card_response,
    parse_review_filter,
    showing_token,
)
from app.markup.model import Flashcard
from app.spaced_repetition import review_log
from app.spaced_repetition.added_cards import added_cards
from app.spaced_repetition.card_ids import OWN, is_added_card, parse_card_id
from app.spaced_repetition.review_log import (
    ReviewHistoryRow,
    last_undoable,
    load_history,
    record_manual_edit,
)
from app.spaced_repetition.scheduler import (
    ManualEdit,
    days_label,
    due_date_error,
    last_day,
    retrievability,
)
from app.web.formatting import format_date_with_year

_GRADES = ("", "Again", "Hard", "Good", "Easy")


@dataclasses.dataclass(frozen=True, slots=True)
class HistoryLine:
    """A log row in words: the study day, and what was done."""

    day: str
    words: str
    undone: bool


@dataclasses.dataclass(frozen=True, slots=True)
class CardDetails:
    """A card on its own page; its due date can be set from `day` to `last`.

    `facts` are names and values; `undo` is the log id of the last review or edit, if it was of this
    card.
    """

    card: Flashcard
    title: str
    links: tuple[tuple[str, str], ...]
    facts: tuple[tuple[str, str], ...]
    log: tuple[HistoryLine, ...]
    token: str
    aside: bool
    own: bool
    undo: int
    day: dt.date
    last: dt.date


def load_card_details(ctx: RequestContext, name: str) -> CardDetails:
    """Return the details of a card; raises NotFoundError, or ConflictError during an exam with it."""
    found = find_card(ctx, name)
    db, learner = ctx.db, ctx.learner.id
    held = review_log.load_card(db, learner, name)
    done = last_undoable(db, learner, ctx.day) if learner else None
    history = load_history(db, learner, name)
    return CardDetails(
        card=found.card,
        title=found.title,
        links=found.links,
        facts=tuple(_card_facts(ctx, held, history)),
        log=tuple(_history_line(ctx, row) for row in history),
        token=showing_token(name, held.turns),
        aside=held.suspended,
        own=parse_card_id(name)[0] == OWN,
        undo=done[0] if done and done[1] == name else 0,
        day=ctx.day,
        last=last_day(ctx.day, ctx.learner.exam_day),
    )


def _card_facts(
    ctx: RequestContext, record: review_log.CardRecord, history: Sequence[ReviewHistoryRow]
) -> list[tuple[str, str]]:
    standing = record.standing
    facts = [("State", "put aside" if record.suspended else _describe_state(ctx, record))]
    acts = [row.until_day or "" for row in history if row.act == "bury" and not row.undone]
    if standing is None and acts and max(acts) > ctx.day.isoformat():
        facts.append(("Skipped until", format_date_with_year(dt.date.fromisoformat(max(acts)))))
    if standing is not None:
        stability = days_label(max(1, round(standing.stability)))
        known = f"{round(retrievability(standing, ctx.day) * 100)}%"
        # FSRS knows too little about a card that is still in its steps.
        settled = standing.state == "review"
        facts += [("Likely to be known today", known)] if settled else []
        facts += [
            ("Falls to 90% after", stability),
            ("Last review", format_date_with_year(standing.last_day)),
            ("Reviews", f"{standing.reviews:,}"),
            ("Forgotten after learning", f"{standing.lapses:,}"),
        ]
    return facts


def _describe_state(ctx: RequestContext, record: review_log.CardRecord) -> str:
    if record.standing is None and is_added_card(record.card):
        added = added_cards(ctx.db, ctx.learner.id, [record.card]).get(record.card)
        return state_words("new", added.due if added else None, ctx.day)
    return describe_standing(record.standing, ctx)


def _history_line(ctx: RequestContext, row: ReviewHistoryRow) -> HistoryLine:
    day = format_date_with_year(ctx.learner.study_day(from_milliseconds(row.at)))
    until = format_date_with_year(dt.date.fromisoformat(row.until_day)) if row.until_day else ""
    said = {
        "bury": f"Skipped until {until}",
        "due": f"Due date set to {until}",
        "forget": "Reset to new",
    }
    return HistoryLine(day, said.get(row.act) or _GRADES[row.rating], bool(row.undone))


router = APIRouter()


@router.get("/{card}/more")
def show_card(
    ctx: Reader, card: str, done: Annotated[str, Query(max_length=8)] = ""
) -> HTMLResponse:
    """The state of a card, its history, and the possible actions."""
    return ctx.page(
        "flashcards/about.html",
        about=load_card_details(ctx, card),
        done=done,
    )


@router.post("/{card}/acts")
async def edit_card_state(request: Request, card: str, form: Acted) -> Response:
    """Save a manual edit; it can be undone like a review.

    The next card is looked up after the commit. The plan of the day is computed again, which takes
    long, and other writers would have to wait for it.
    """
    number = await run_writing(request, lambda ctx: _write_edit(ctx, card, form))
    if form.page:
        return RedirectResponse(f"/flashcards/{card}/more?done={form.act}", 303)

    def answer(ctx: RequestContext) -> Response:
        return next_card_response(ctx, parse_review_filter(ctx, form), undo=number)

    return await run_reading(request, answer)


def _write_edit(ctx: RequestContext, card: str, form: ManualEditForm) -> int:
    """Save the manual edit; returns its log id, 0 if it was already saved."""
    found = find_card(ctx, card).card
    parse_review_filter(ctx, form)  # validate before anything is written
    when = (ctx.now, ctx.day, form.token)
    return record_manual_edit(ctx.db, ctx.learner.id, found, _parse_edit(ctx, form), when) or 0


def _parse_edit(ctx: RequestContext, form: ManualEditForm) -> ManualEdit:
    """Return the manual edit as sent; raises InvalidInputError for a day that cannot be set."""
    if form.act == "forget":
        return ManualEdit("forget")
    if form.act == "bury":
        return ManualEdit("bury", ctx.day + dt.timedelta(days=1))
    try:
        day = dt.date.fromisoformat(form.day)
    except ValueError:
        said = "Choose the day on which the card is due, as YYYY-MM-DD."
        raise InvalidInputError(said, "day") from None
    why = due_date_error(day, ctx.day, ctx.learner.exam_day)
    if why:
        raise InvalidInputError(why, "day")
    return ManualEdit("due", day)
