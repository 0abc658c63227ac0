"""Pages of the decks: the cards of a topic, search, one card with its history and edits."""

import dataclasses
import datetime as dt
import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Literal, NamedTuple

from fastapi import APIRouter, Form, Query, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from app.accounts.current_learner import (
    ReadContext,
    RequestContext,
    WriteContext,
    run_in_read_session,
    run_in_write_transaction,
)
from app.clock import from_milliseconds
from app.content.course import Course
from app.errors import InvalidInputError, NotFoundError
from app.flashcards.forms import CardWantedForm, ManualEditForm, ReviewFilterQuery
from app.flashcards.review_page import (
    build_showing_token,
    is_too_late_for_new_cards,
    parse_review_filter,
    require_visible_card,
    respond_with_next_card,
)
from app.markup.model import Flashcard
from app.questions.question_form import excerpt_for_title
from app.questions.question_type import normalize_search_text, split_search_query
from app.spaced_repetition import added_cards, queue, review_log
from app.spaced_repetition.added_card_ids_and_faces import (
    OWN,
    QUESTION,
    TERM,
    find_topic_of_added_card,
    is_added_card_id,
    is_source_in_course,
    parse_card_id,
)
from app.spaced_repetition.added_cards import (
    AddedCardRecord,
    CardToAdd,
    add_cards,
    count_added_cards,
    find_missed_question_card,
    list_undeclined_cards_of_kind,
    load_newest_added_cards,
    set_card_declined_if_added,
)
from app.spaced_repetition.card_content import (
    CardWithOrigin,
    load_cards_with_origin,
)
from app.spaced_repetition.queue import CardStatus
from app.spaced_repetition.review_log import (
    ReviewHistoryRow,
    find_last_row_if_undoable,
    load_newest_log_rows,
    record_manual_edit,
)
from app.spaced_repetition.scheduler import (
    LEECH_LAPSES,
    ManualEdit,
    compute_last_settable_due_day,
    compute_retrievability_on_day,
    explain_invalid_due_date,
    format_days,
)
from app.study_plan.cards import compute_planned_review_day
from app.study_plan.loader import load_cards_on_day_list
from app.study_plan.store import load_card_facts
from app.web.dependencies import require_topic
from app.web.formatting import format_date_with_year
from app.web.render import is_htmx_request, render_page

_ROWS_PER_PAGE = 30
_SOURCE_KIND_BY_ID_PREFIX = {QUESTION: "question", TERM: "term"}


@dataclasses.dataclass(frozen=True, slots=True)
class ListedCard:
    """A card in a list: an excerpt of its front, and its state in words.

    `source_kind` is the source of an added card. `is_declined` says that the learner left it out.
    """

    card_id: str
    excerpt: str
    state_text: str
    is_suspended: bool
    is_leech: bool
    source_kind: str = ""
    is_declined: bool = False
    is_orphaned: bool = False


@dataclasses.dataclass(frozen=True, slots=True)
class AddedCardsPage:
    """One page of the added cards, newest first; `card_count` counts those of all pages."""

    rows: tuple[ListedCard, ...]
    page_number: int
    page_count: int
    card_count: int


def build_added_cards_page(ctx: RequestContext, page_number: int) -> AddedCardsPage:
    """Return page `page_number` of the added cards, or the last page if there are fewer."""
    db, learner = ctx.db, ctx.learner.id
    count = count_added_cards(db, learner)
    pages = max(1, -(-count // _ROWS_PER_PAGE))
    number = min(max(page_number, 1), pages)
    added = load_newest_added_cards(
        db, learner, limit=_ROWS_PER_PAGE, offset=(number - 1) * _ROWS_PER_PAGE
    )
    cards = load_cards_with_origin(ctx, [record.card_id for record in added])
    rows = tuple(
        build_listed_added_card(ctx, record, cards.get(record.card_id)) for record in added
    )
    return AddedCardsPage(rows, number, pages, count)


def build_listed_added_card(
    ctx: RequestContext, added: AddedCardRecord, card_found: CardWithOrigin | None
) -> ListedCard:
    kind, name = parse_card_id(added.card_id)
    return ListedCard(
        card_id=added.card_id,
        excerpt=excerpt_for_title(card_found.card.front) if card_found else name,
        state_text=describe_card_state(ctx, added.card_id, added.state, added.due_day),
        is_suspended=added.is_suspended_or_declined and not added.is_declined,
        is_leech=added.lapses >= LEECH_LAPSES,
        source_kind=_SOURCE_KIND_BY_ID_PREFIX.get(kind, "own card"),
        is_declined=added.is_declined,
        is_orphaned=card_found is None,
    )


def _build_listed_course_card(
    ctx: RequestContext, card: str, status: CardStatus | None, kind: str = ""
) -> ListedCard:
    state = status.state if status else None
    return ListedCard(
        card_id=card,
        excerpt=excerpt_for_title(load_cards_with_origin(ctx, [card])[card].card.front),
        state_text=describe_card_state(ctx, card, state.state, state.due_day) if state else "new",
        is_suspended=status is not None and status.is_suspended,
        is_leech=state is not None and state.lapses >= LEECH_LAPSES,
        source_kind=kind,
    )


def _load_planned_review_days(ctx: RequestContext) -> Mapping[str, dt.date]:
    """Return the day on which the plan asks for each started card, read once per request."""
    if "planned review days" not in ctx.lookup_cache:
        calendar = ctx.learner.plan_calendar_as_of(ctx.study_day)
        started, *_ = load_card_facts(ctx.db, ctx.learner.id, ctx.course, ctx.study_day)
        days = {card.card: compute_planned_review_day(card, calendar) for card in started}
        ctx.lookup_cache["planned review days"] = days
    found: Mapping[str, dt.date] = ctx.lookup_cache["planned review days"]
    return found


def describe_card_state(ctx: RequestContext, card: str, state: str, due_day: dt.date | None) -> str:
    """Return the state of a card: being learned, or the study day on which the plan asks for it.

    A step left unfinished on an earlier day is due. An added card that was never reviewed has no
    due day that holds: from then on it is one of those from which the list takes its new cards.
    """
    if due_day is None:
        return "new"
    days = (due_day - ctx.study_day).days
    if state == "new" and days > 1:  # skipped, or set by hand
        return f"new, from {format_date_with_year(due_day)}"
    if state == "new":
        no_list = is_too_late_for_new_cards(ctx) or ctx.learner.is_exam_over(ctx.study_day)
        return "new" if no_list else "new (a few a day)"
    if state != "review" and days >= 0:
        return "being learned"
    planned_day = _load_planned_review_days(ctx).get(card, due_day)
    days = (planned_day - ctx.study_day).days
    if days <= 0:
        listed = load_cards_on_day_list(ctx)
        is_listed = listed is None or card in listed.review_card_ids
        return "due" if is_listed else "due, on a later list"
    return "due tomorrow" if days == 1 else f"due {format_date_with_year(planned_day)}"


CARDS_PER_PAGE = 50
"""The most cards shown in a search."""
_MOST_WORDS = 8


@dataclasses.dataclass(frozen=True, slots=True)
class CardSearchResult:
    """The cards with all the words of `query`."""

    query: str
    rows: tuple[ListedCard, ...]
    is_truncated: bool


def search_cards(ctx: RequestContext, query: str) -> CardSearchResult:
    """Return the first cards with every word: own ones, then those where each word begins a word."""
    words = split_search_query(query)[:_MOST_WORDS]
    if not words:
        return CardSearchResult("", (), is_truncated=False)
    # An edited card can match by both texts, so it may be there twice.
    found = dict.fromkeys(
        itertools.islice(_yield_matching_card_ids(ctx, words), 2 * CARDS_PER_PAGE + 2)
    )
    names = list(found)[: CARDS_PER_PAGE + 1]
    rows = tuple(_yield_listed_cards(ctx, names[:CARDS_PER_PAGE]))
    return CardSearchResult(" ".join(query.split()), rows, is_truncated=len(names) > CARDS_PER_PAGE)


def _yield_matching_card_ids(ctx: RequestContext, words: list[str]) -> Iterator[str]:
    db, learner, course = ctx.db, ctx.learner.id, ctx.course
    if learner:
        for card in added_cards.search_own_card_ids(db, learner, words):
            if is_source_in_course(course, card):  # an edited course card may have left it
                yield card
    ids = [
        card
        for kind in (QUESTION, TERM)
        for card in sorted(list_undeclined_cards_of_kind(db, learner, kind) if learner else ())
    ]
    matches = [(_rank_match(course, card, words), card) for card in (*ids, *course.cards)]
    for wanted in ("begins a word", "inside a word"):
        yield from (card for rank, card in matches if rank == wanted)


def _rank_match(
    course: Course, card: str, words: list[str]
) -> Literal["begins a word", "inside a word", ""]:
    """Return how a course card, or the source of an added card, has every word; empty if not."""
    kind, name = parse_card_id(card)
    if kind == QUESTION:
        question = course.questions.get(name)
        parts = [question.stem.plain, question.explanation.plain] if question else []
    elif kind == TERM:
        term = course.glossary.get(name)
        parts = [term.name, term.meaning.plain] if term else []
    else:
        card_content = course.cards[card]
        title = course.topics[card_content.topic].title
        parts = [card_content.front.plain, card_content.back.plain, title, *card_content.tags]
    text = normalize_search_text(" ".join(parts))
    if not all(word in text for word in words):
        return ""
    starts = (re.search(rf"(?<!\w){re.escape(word)}", text) for word in words)
    return "begins a word" if all(starts) else "inside a word"


def _yield_listed_cards(ctx: RequestContext, card_ids: list[str]) -> Iterator[ListedCard]:
    added_names = [name for name in card_ids if is_added_card_id(name)]
    added = added_cards.load_added_card_records(ctx.db, ctx.learner.id, added_names)
    course_names = [name for name in card_ids if not is_added_card_id(name)]
    statuses = queue.load_statuses_by_card(ctx.db, ctx.learner.id, course_names)
    cards = load_cards_with_origin(ctx, card_ids)
    for name in card_ids:
        if name in added:
            yield build_listed_added_card(ctx, added[name], cards.get(name))
        elif parse_card_id(name)[0] != OWN:
            topic = ctx.course.topics[ctx.course.cards[name].topic]
            yield _build_listed_course_card(ctx, name, statuses.get(name), topic.title)


router = APIRouter()


@router.get("/deck")
def show_deck(ctx: ReadContext, query: ReviewFilterQuery) -> HTMLResponse:
    """How many cards there are, and those of a topic; with a search query those that match it."""
    topics = [t for t in ctx.course.topics.values() if t.cards]
    topic = require_topic(ctx.course, query.topic) if query.topic else None
    suspended = review_log.list_suspended_cards(ctx.db, ctx.learner.id) if ctx.learner.id else ()
    resolved = load_cards_with_origin(ctx, [*(topic.cards if topic else ()), *suspended])
    statuses = (
        queue.load_statuses_of_topic_by_card(ctx.db, ctx.learner.id, topic.slug) if topic else {}
    )
    return ctx.render_page(
        "flashcards/deck.html",
        topics=topics,
        topic=topic,
        day=ctx.study_day,
        card_count=len(ctx.course.cards),
        started_count=review_log.count_started_cards(ctx.db, ctx.learner.id),
        rows=[_build_listed_course_card(ctx, c, statuses.get(c)) for c in topic.cards]
        if topic
        else [],
        own=build_added_cards_page(ctx, query.added_cards_page),
        matches=search_cards(ctx, query.q),
        suspended_cards=[resolved[c].card for c in suspended if c in ctx.course.cards],
    )


@router.post("/{card}/addition")
def add_or_decline_card(
    ctx: WriteContext, card: str, chosen: Annotated[CardWantedForm, Form()]
) -> Response:
    """Add a glossary term to the learner's cards, or add again or decline a card of theirs."""
    kind, name = parse_card_id(card)
    if kind == TERM and chosen.wanted:
        if name not in ctx.course.glossary:
            raise NotFoundError(f"There is no term “{name}”.")
        new_card = CardToAdd(card, find_topic_of_added_card(ctx.course, card))
        add_cards(ctx.db, ctx.learner.id, [new_card], ctx.study_day, ctx.now)
    was_added = set_card_declined_if_added(ctx.db, ctx.learner.id, card, declined=not chosen.wanted)
    if not was_added and kind != TERM:
        raise NotFoundError(f"There is no card “{card}” of yours.")
    return _respond_after_adding_or_declining(ctx, card, wanted=chosen.wanted, back=chosen.back)


def _respond_after_adding_or_declining(
    ctx: RequestContext, card: str, *, wanted: bool, back: str
) -> Response:
    kind, name = parse_card_id(card)
    if not is_htmx_request(ctx.request):
        default_url = f"/glossary?cards=1#{name}" if kind == TERM else "/flashcards/deck#own"
        return RedirectResponse(back or default_url, 303)
    if kind == QUESTION:
        missed_card = find_missed_question_card(ctx.db, ctx.learner.id, name, ctx.study_day)
        return render_page(
            ctx.request, "flashcards/_comeback.html", comeback=missed_card, back=back
        )
    term = ctx.course.glossary.get(name)
    if term is None:
        return Response(status_code=204)
    return render_page(
        ctx.request, "flashcards/_term.html", term=term, studied=wanted, pressed=True
    )


_RATING_NAMES = ("", "Again", "Hard", "Good", "Easy")


@dataclasses.dataclass(frozen=True, slots=True)
class HistoryLine:
    """A log row in words: the study day, and what was done."""

    day_text: str
    text: str
    is_undone: bool


class CardStatistic(NamedTuple):
    """What is known of a card: a name, and a value in words."""

    name: str
    value_text: str


@dataclasses.dataclass(frozen=True, slots=True)
class CardDetails:
    """A card on its own page; its last review can be undone if it was the last of all."""

    card: Flashcard
    links: tuple[tuple[str, str], ...]
    figures: tuple[CardStatistic, ...]
    history: tuple[HistoryLine, ...]
    showing_token: str
    is_suspended: bool
    is_editable: bool
    undo_log_id: int
    today: dt.date
    last_settable_day: dt.date


def load_card_details(ctx: RequestContext, card_id: str) -> CardDetails:
    """Return the details of a card; raises NotFoundError, or ConflictError during an exam with it."""
    resolved = require_visible_card(ctx, card_id)
    db, learner = ctx.db, ctx.learner.id
    record = review_log.load_card_record(db, learner, card_id)
    last_undoable = find_last_row_if_undoable(db, learner, ctx.study_day) if learner else None
    history = load_newest_log_rows(db, learner, card_id)
    return CardDetails(
        card=resolved.card,
        links=resolved.links,
        figures=tuple(_yield_card_statistics(ctx, record, history)),
        history=tuple(_describe_log_row(ctx, row) for row in history),
        showing_token=build_showing_token(card_id, record.log_row_count),
        is_suspended=record.is_suspended,
        is_editable=parse_card_id(card_id).source_kind in ("", OWN),
        undo_log_id=last_undoable.id if last_undoable and last_undoable.card_id == card_id else 0,
        today=ctx.study_day,
        last_settable_day=compute_last_settable_due_day(ctx.study_day, ctx.learner.exam_day),
    )


def _yield_card_statistics(
    ctx: RequestContext, record: review_log.CardRecord, history: Sequence[ReviewHistoryRow]
) -> Iterator[CardStatistic]:
    state = record.card_state
    yield CardStatistic(
        "State", "put aside" if record.is_suspended else _describe_state(ctx, record)
    )
    bury_days = [
        row.until_day or ""
        for row in history
        if row.manual_edit_kind == "bury" and not row.was_undone
    ]
    if state is None and bury_days and max(bury_days) > ctx.study_day.isoformat():
        day = dt.date.fromisoformat(max(bury_days))
        yield CardStatistic("Skipped until", format_date_with_year(day))
    if state is None:
        return
    if state.state == "review":  # FSRS knows too little about a card that is still in its steps
        recall_percent = f"{round(compute_retrievability_on_day(state, ctx.study_day) * 100)}%"
        yield CardStatistic("Chance of recall today", recall_percent)
    yield CardStatistic("Recall falls to 90% after", format_days(max(1, round(state.stability))))
    yield CardStatistic("Last review", format_date_with_year(state.last_day))
    yield CardStatistic("Reviews", f"{state.reviews:,}")
    yield CardStatistic("Times forgotten", f"{state.lapses:,}")


def _describe_state(ctx: RequestContext, record: review_log.CardRecord) -> str:
    if record.card_state is None and is_added_card_id(record.card_id):
        added = added_cards.load_added_card_records(ctx.db, ctx.learner.id, [record.card_id]).get(
            record.card_id
        )
        return describe_card_state(ctx, record.card_id, "new", added.due_day if added else None)
    state = record.card_state
    if state is None:
        return "new"
    return describe_card_state(ctx, record.card_id, state.state, state.due_day)


def _describe_log_row(ctx: RequestContext, row: ReviewHistoryRow) -> HistoryLine:
    day = format_date_with_year(ctx.learner.study_day(from_milliseconds(row.at_ms)))
    until = format_date_with_year(dt.date.fromisoformat(row.until_day)) if row.until_day else ""
    text_by_act = {
        "bury": f"Skipped until {until}",
        "due": f"Due date set to {until}",
        "forget": "Reset to new",
    }
    return HistoryLine(
        day,
        text_by_act.get(row.manual_edit_kind) or _RATING_NAMES[row.rating],
        bool(row.was_undone),
    )


@router.get("/{card}/more")
def show_card_details(
    ctx: ReadContext, card: str, done: Annotated[str, Query(max_length=8)] = ""
) -> HTMLResponse:
    return ctx.render_page(
        "flashcards/card_details.html", about=load_card_details(ctx, card), done=done
    )


@router.post("/{card}/acts")
async def edit_card_state(
    request: Request, card: str, form: Annotated[ManualEditForm, Form()]
) -> Response:
    """Save a manual edit; it can be undone like a review.

    The next card is looked up after the commit. The plan of the day is computed again, which takes
    long, and other writers would have to wait for it.
    """
    log_id = await run_in_write_transaction(request, lambda ctx: _save_manual_edit(ctx, card, form))
    if form.page:
        return RedirectResponse(f"/flashcards/{card}/more?done={form.act}", 303)
    return await run_in_read_session(
        request,
        lambda ctx: respond_with_next_card(ctx, parse_review_filter(ctx, form), undo_log_id=log_id),
    )


def _save_manual_edit(ctx: RequestContext, card: str, form: ManualEditForm) -> int:
    """Save the manual edit; returns its log id, 0 if it was already saved."""
    flashcard = require_visible_card(ctx, card).card
    parse_review_filter(ctx, form)  # validate before anything is written
    edit = _parse_manual_edit(ctx, form)
    log_id = record_manual_edit(
        ctx.db, ctx.learner.id, flashcard, edit, ctx.now, ctx.study_day, form.token
    )
    return log_id or 0


def _parse_manual_edit(ctx: RequestContext, form: ManualEditForm) -> ManualEdit:
    """Return the manual edit as sent; raises InvalidInputError for a day that cannot be set."""
    if form.act == "forget":
        return ManualEdit("forget")
    if form.act == "bury":
        return ManualEdit("bury", ctx.study_day + dt.timedelta(days=1))
    try:
        day = dt.date.fromisoformat(form.day)
    except ValueError:
        message = "Choose the day on which the card is due, as YYYY-MM-DD."
        raise InvalidInputError(message, "day") from None
    problem = explain_invalid_due_date(day, ctx.study_day, ctx.learner.exam_day)
    if problem:
        raise InvalidInputError(problem, "day")
    return ManualEdit("due", day)
