"""Review: the next card of the day, its answer, grades, undo; cards for offline review."""

import dataclasses
import datetime as dt
import functools
import hashlib
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, NamedTuple
from urllib.parse import urlencode

from fastapi import APIRouter, Form, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from app.accounts.current_learner import (
    LearnerProfile,
    ReadContext,
    RequestContext,
    build_request_context,
    open_write_context,
    run_in_read_session,
    run_in_write_transaction,
)
from app.clock import from_milliseconds, to_milliseconds
from app.database.engine import open_read_only_session, run_in_thread_unless_sqlite
from app.errors import ConflictError, InvalidInputError, NotFoundError
from app.flashcards.forms import (
    CardTask,
    RatingForm,
    ReviewFilterQuery,
    ReviewScopeForm,
    SuspensionForm,
    UndoForm,
    parse_rating_form,
)
from app.markup.model import CitedSource, Flashcard
from app.quiz.next_steps import TaskView, build_task_view
from app.spaced_repetition import queue as store
from app.spaced_repetition import review_log
from app.spaced_repetition.added_card_ids_and_faces import is_added_card_id
from app.spaced_repetition.card_content import (
    CardLink,
    CardWithOrigin,
    describe_origin_and_recall,
    is_card_visible,
    load_cards_with_origin,
)
from app.spaced_repetition.queue import WaitingCards
from app.spaced_repetition.review_log import CardRecord
from app.spaced_repetition.scheduler import (
    OLDEST_REVIEW_AGE,
    CardState,
    ReviewEvent,
    clamp_review_time,
    compute_last_settable_due_day,
    format_days,
    format_interval,
    format_wait,
    is_leech_warning_due,
    is_rating_too_old,
    preview_states_by_rating,
)
from app.spaced_repetition.todays_queue import (
    CardsOnDayList,
    QueueCounter,
    TodaysQueue,
    count_cards_left_by_kind,
    count_new_cards_begun_beyond_list,
    load_cards_until_tomorrow,
    load_todays_queue,
    take_first_unseen_cards,
)
from app.study_plan.cards import (
    LATER_REVIEWS,
    compute_last_day_for_new_cards,
    compute_planned_review_day,
)
from app.study_plan.facts import CardFact
from app.study_plan.loader import DayListEnsured, load_cards_on_day_list, load_study_plan
from app.web.dependencies import require_topic
from app.web.render import is_htmx_request, render_page

# A learning step due within these minutes is shown early if nothing else is due.
_SHOWN_EARLY = dt.timedelta(minutes=20)
GRADE_NAMES = ("Again", "Hard", "Good", "Easy")
_MOST_NEW_CARDS_OFFERED = 5


@dataclasses.dataclass(frozen=True, slots=True)
class ReviewFilter:
    """Which cards to show: one topic or all, extra new cards, a task of the list, or a single card."""

    topic: str = ""
    extra_new_cards: int = 0
    task: CardTask = ""
    card_id: str = ""

    @property
    def url_without_card(self) -> str:
        """The URL of the filter, without the single card."""
        return self.url_with({})

    def url_with(self, parameters: Mapping[str, object]) -> str:
        pairs = {"topic": self.topic, "more": self.extra_new_cards, "task": self.task, **parameters}
        query = urlencode({name: value for name, value in pairs.items() if value})
        return f"/flashcards?{query}" if query else "/flashcards"


@dataclasses.dataclass(frozen=True, slots=True)
class RatingButton:
    """A rating button, with the time until the card would be asked again.

    If the plan asks for the card sooner than FSRS, `later_reviews_until_exam` must fit; else it is 0.
    """

    rating: int
    label: str
    interval_text: str
    later_reviews_until_exam: int = 0


@dataclasses.dataclass(frozen=True, slots=True)
class CardView:
    """The card to review; its due date can be set from today on."""

    card: Flashcard
    showing_token: str
    learner_key_hash: str
    shown_at_ms: int
    origin_and_recall_text: str
    links: tuple[CardLink, ...]
    question_url: str
    sources: tuple[CitedSource, ...]
    today: dt.date
    last_settable_day: dt.date
    grade_buttons: tuple[RatingButton, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True)
class NoCardsDueInfo:
    """What the page shows when no card is due.

    `wait_text` is the time until a learning step later today. `startable_new_cards` is how many
    new cards of the page `topic` could be started now, `extra_new_cards_to_request` the value
    of `more` in the address that starts them. New cards left are buried if their reverse was
    seen today. It is too late for them if they could not be reviewed twice before the exam.
    `has_list` says that these are the cards of the day's list. `next_task` is the next one on
    it with something to do now. The lists take a few of the `waiting` cards a day.
    """

    next_day: dt.date | None
    cards_on_next_day: int
    wait_text: str
    startable_new_cards: int
    extra_new_cards_to_request: int
    topic: str
    is_next_day_tomorrow: bool
    are_new_cards_buried: bool
    waiting: WaitingCards
    is_too_late_for_new_cards: bool = False
    last_day_for_new_cards: dt.date | None = None
    has_list: bool = False
    next_task: TaskView | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class ReviewPage:
    """The card to review or why there is none, and what is done of the day.

    `saved_rating_name` is the name of the rating that was saved if the same showing was rated twice.
    """

    cards_done_today: int
    cards_of_today: int
    counters: tuple[QueueCounter, ...]
    card_view: CardView | None
    no_cards_due: NoCardsDueInfo | None
    undo_log_id: int
    leech: CardWithOrigin | None
    saved_rating_name: str


def build_review_page(
    ctx: RequestContext,
    review_filter: ReviewFilter,
    *,
    show_answer_side: bool = False,
    shown_at_ms: int = 0,
    showing_token: str = "",
    undo_log_id: int = 0,
    leech: CardWithOrigin | None = None,
    earlier_rating: int = 0,
) -> ReviewPage:
    """Build the page with the most urgent card, or the reason why there is none.

    `build_showing_token` identifies the showing of the card, if it was shown before. `undo_log_id`
    is that of the review to undo, 0 for the last of this study day.
    """
    listed = load_cards_on_day_list(ctx)
    if listed is not None and review_filter.task:
        is_review = review_filter.task == "review"
        listed = (
            CardsOnDayList(listed.review_card_ids, is_single_task=True)
            if is_review
            else CardsOnDayList(new_card_ids=listed.new_card_ids, is_single_task=True)
        )
    todays_queue = load_todays_queue(
        ctx, listed, review_filter.topic, review_filter.extra_new_cards
    )
    done, record = (
        todays_queue.queue.finished_count,
        _choose_next_card(ctx, review_filter, todays_queue),
    )
    cards_left = max(todays_queue.cards_left.all_cards, 1) if record else 0
    return ReviewPage(
        cards_done_today=done,
        cards_of_today=done + cards_left,
        counters=count_cards_left_by_kind(
            todays_queue.cards_left, _find_counter_of_card(record, todays_queue) if record else ""
        ),
        card_view=(
            build_card_view(
                ctx,
                record,
                show_answer_side=show_answer_side,
                shown_at_ms=shown_at_ms,
                showing_token=showing_token,
            )
            if record
            else None
        ),
        no_cards_due=None
        if record
        else _build_no_cards_due_info(ctx, review_filter, todays_queue, listed),
        undo_log_id=undo_log_id or _find_undoable_log_id_today(ctx),
        leech=leech,
        saved_rating_name=GRADE_NAMES[earlier_rating - 1] if earlier_rating else "",
    )


def _find_counter_of_card(record: CardRecord, queue: TodaysQueue) -> str:
    """Return the counter of a card; on the list, an older unfinished step counts as due."""
    first_record = queue.queue.first_card
    if record.card_state is None:
        return "new"
    if first_record is not None and first_record.card_id == record.card_id:
        return "due" if queue.queue.first_card_kind == "review" else "learning"
    return "due" if record.card_state.state == "review" else "learning"


def require_visible_card(ctx: RequestContext, card: str) -> CardWithOrigin:
    """Return the card; raises NotFoundError, or ConflictError during a mock exam with it."""
    resolved = load_cards_with_origin(ctx, [card]).get(card)
    if resolved is None:
        raise NotFoundError(f"There is no card “{card}”.")
    if resolved.is_hidden_by_running_exam:
        raise ConflictError(
            "This question is in the mock exam that you are sitting.",
            "Finish the exam first; then it comes back.",
        )
    return resolved


def build_showing_token(card: str, log_row_count: int) -> str:
    """Return the token of one showing of a card, the same in every tab that shows it."""
    return f"{card}.{log_row_count}"


def hash_learner_key(learner: LearnerProfile) -> str:
    """Return a short hash of the learner key, so the offline outbox knows whose rating it holds."""
    return hashlib.sha256(learner.key.encode()).hexdigest()[:16]


def build_card_view(
    ctx: RequestContext,
    record: CardRecord,
    *,
    show_answer_side: bool,
    shown_at_ms: int,
    showing_token: str = "",
) -> CardView:
    """Return a card for the review page, with rating buttons once its answer is shown."""
    resolved = require_visible_card(ctx, record.card_id)
    card, sources = resolved.card, ctx.course.sources
    return CardView(
        card=card,
        showing_token=showing_token or build_showing_token(record.card_id, record.log_row_count),
        learner_key_hash=hash_learner_key(ctx.learner),
        shown_at_ms=shown_at_ms or to_milliseconds(ctx.now),
        origin_and_recall_text=describe_origin_and_recall(
            record, ctx.study_day, resolved.origin_sentence
        ),
        links=resolved.links,
        question_url=resolved.question_url,
        sources=tuple(sources[k] for k in card.sources if k in sources),
        today=ctx.study_day,
        last_settable_day=compute_last_settable_due_day(ctx.study_day, ctx.learner.exam_day),
        grade_buttons=_build_rating_buttons(ctx, record) if show_answer_side else (),
    )


def _build_rating_buttons(ctx: RequestContext, record: CardRecord) -> tuple[RatingButton, ...]:
    review_event = ReviewEvent(3, ctx.now, ctx.study_day, ctx.learner.retention)
    outcomes = preview_states_by_rating(record.card_state, review_event, record.card_id)
    calendar, exam = ctx.learner.plan_calendar_as_of(ctx.study_day), ctx.learner.exam_day
    is_exam_ahead, later_reviews = exam is not None and exam > ctx.study_day, 0
    if is_exam_ahead and record.card_state is not None:
        days = review_log.count_review_days_by_card(ctx.db, ctx.learner.id, record.card_id)
        later_reviews = days.get(record.card_id, 0) - (record.card_state.last_day == ctx.study_day)

    def make_button(rating: int, label: str, outcome: CardState) -> RatingButton:
        if outcome.state != "review" or exam is None or not is_exam_ahead:
            return RatingButton(rating, label, format_interval(outcome, review_event))
        fact = CardFact(
            card=record.card_id,
            note="",
            page="",
            stability=outcome.stability,
            first_day=outcome.first_day,
            last_day=ctx.study_day,
            due_day=outcome.due_day,
            later_reviews=later_reviews,
        )
        day = compute_planned_review_day(fact, calendar)
        interval = format_days((day - ctx.study_day).days) if day < exam else "after the exam"
        # Once two later reviews are done, a weak card is still asked once more in the last days.
        missing = max(1, LATER_REVIEWS - later_reviews) if day < outcome.due_day else 0
        return RatingButton(rating, label, interval, missing)

    return tuple(
        make_button(rating, label, outcome)
        for rating, (label, outcome) in enumerate(zip(GRADE_NAMES, outcomes, strict=True), 1)
    )


def _choose_next_card(
    ctx: RequestContext, review_filter: ReviewFilter, todays_queue: TodaysQueue
) -> CardRecord | None:
    db, learner, queue = ctx.db, ctx.learner.id, todays_queue.queue
    if review_filter.card_id:
        return review_log.load_card_record(db, learner, review_filter.card_id)
    if queue.first_card is not None and queue.first_card_kind != "waiting":
        return queue.first_card
    if todays_queue.startable_card_ids:
        return review_log.load_card_record(db, learner, todays_queue.startable_card_ids[0])
    waiting_state = queue.first_card and queue.first_card.card_state
    return (
        queue.first_card
        if waiting_state and waiting_state.due_at - ctx.now <= _SHOWN_EARLY
        else None
    )


def _build_no_cards_due_info(
    ctx: RequestContext,
    review_filter: ReviewFilter,
    todays_queue: TodaysQueue,
    listed: CardsOnDayList | None,
) -> NoCardsDueInfo:
    queue, scope = todays_queue.queue, todays_queue.scope
    next_due = store.find_next_due_day(ctx.db, ctx.learner.id, scope)
    state = queue.first_card.card_state if queue.first_card else None
    unseen = store.count_unseen_cards_by_topic(
        ctx.db, ctx.learner.id, ctx.course, scope, begun_first=listed is not None
    )
    new = take_first_unseen_cards(ctx, scope, unseen, 1)
    topic = ctx.course.topics.get(ctx.course.cards[new[0]].topic) if new else None
    offered = (
        take_first_unseen_cards(ctx, scope, [topic.slug], _MOST_NEW_CARDS_OFFERED) if topic else ()
    )
    more = len(offered)
    extra_new_count, next_task, waiting = 0, None, WaitingCards()
    if listed is not None and not review_filter.topic:
        extra_new_count, plan = (
            count_new_cards_begun_beyond_list(listed, queue),
            load_study_plan(ctx),
        )
        tasks = (
            [t for t in plan.tasks if t.done_count + t.begun_count < t.total_count] if plan else []
        )
        next_task = build_task_view(tasks[0], ctx.course) if tasks else None
        waiting = store.count_waiting_added_cards(ctx.db, ctx.learner.id, scope)
    return NoCardsDueInfo(
        next_day=next_due.day if next_due else None,
        cards_on_next_day=next_due.card_count if next_due else 0,
        wait_text=format_wait(state.due_at - ctx.now) if state else "",
        startable_new_cards=more,
        extra_new_cards_to_request=max(
            extra_new_count, review_filter.extra_new_cards if listed is None else 0
        )
        + more,
        topic=topic.title if topic else "",
        is_next_day_tomorrow=bool(next_due and (next_due.day - ctx.study_day).days == 1),
        are_new_cards_buried=bool(unseen) and not new,
        is_too_late_for_new_cards=is_too_late_for_new_cards(ctx),
        last_day_for_new_cards=find_last_day_for_new_cards(ctx),
        has_list=listed is not None,
        next_task=next_task,
        waiting=waiting,
    )


def is_too_late_for_new_cards(ctx: RequestContext) -> bool:
    """Return whether no new cards are begun any more before the exam."""
    last_day = find_last_day_for_new_cards(ctx)
    return last_day is not None and last_day < ctx.study_day


def find_last_day_for_new_cards(ctx: RequestContext) -> dt.date | None:
    return compute_last_day_for_new_cards(ctx.learner.plan_calendar_as_of(ctx.study_day))


def parse_review_filter(ctx: RequestContext, sent: ReviewScopeForm, card: str = "") -> ReviewFilter:
    """Return the filter as sent; raises NotFoundError for an unknown topic."""
    if sent.topic:
        require_topic(ctx.course, sent.topic)
    visible_card = card if card and is_card_visible(ctx, card) else ""
    return ReviewFilter(sent.topic, sent.more, sent.task, visible_card)


def respond_with_next_card(
    ctx: RequestContext,
    review_filter: ReviewFilter,
    *,
    undo_log_id: int = 0,
    leech: CardWithOrigin | None = None,
    earlier_rating: int = 0,
) -> Response:
    """Return the next card as a fragment, or a redirect to its page."""
    if not is_htmx_request(ctx.request):
        pairs = {
            "card": review_filter.card_id,
            "leech": leech.card.id if leech else "",
            "graded": earlier_rating,
        }
        return RedirectResponse(review_filter.url_with(pairs), 303)
    response = render_page(
        ctx.request,
        "flashcards/_review.html",
        status=409 if earlier_rating else 200,
        table=build_review_page(
            ctx, review_filter, undo_log_id=undo_log_id, leech=leech, earlier_rating=earlier_rating
        ),
        review_filter=review_filter,
    )
    if earlier_rating:  # for a request from any part of the page
        response.headers["HX-Retarget"] = "#desk"
    return response


def _find_undoable_log_id_today(ctx: RequestContext) -> int:
    """Return the log id of the last review of this study day; 0 if there is none."""
    if not ctx.learner.id:
        return 0
    last = review_log.find_last_row_if_undoable(ctx.db, ctx.learner.id, ctx.study_day)
    return last.id if last else 0


_LONGEST_REVIEW = 10 * 60 * 1000


def _require_same_learner(ctx: RequestContext, learner_key_hash: str) -> None:
    """Raise ConflictError if the rating was given by another learner of this browser."""
    if learner_key_hash and learner_key_hash != hash_learner_key(ctx.learner):
        raise ConflictError(
            "This grade was given before somebody else came to this browser, so it was not counted."
        )


def _save_delayed_rating(ctx: RequestContext, card_id: str, graded: RatingForm) -> Response:
    """Save a rating that waited in the browser; the response has no next card.

    Raises InvalidInputError if it is too old, and ConflictError if the same showing already has
    another rating.
    """
    card = require_visible_card(ctx, card_id).card
    _require_same_learner(ctx, graded.who)
    rated_at = from_milliseconds(graded.given)
    if is_rating_too_old(rated_at, ctx.now):
        raise InvalidInputError(
            f"Given: {rated_at:%B %-d, %Y} is more than {OLDEST_REVIEW_AGE.days} days ago, "
            "so the grade was not counted.",
            "given",
        )
    record = review_log.load_card_record(ctx.db, ctx.learner.id, card.id)
    review_time = clamp_review_time(
        rated_at, ctx.now, record.card_state.last_at if record.card_state else None
    )
    review_event = ReviewEvent(
        graded.rating, review_time, ctx.learner.study_day(review_time), ctx.learner.retention
    )
    milliseconds = _compute_review_milliseconds(graded.shown_at_ms, graded.given)
    saved = review_log.record_review(
        ctx.db, ctx.learner.id, card, review_event, graded.token, milliseconds
    )
    if saved is None:
        earlier = review_log.find_recorded_rating(ctx.db, ctx.learner.id, card.id, graded.token)
        if earlier != graded.rating:
            raise ConflictError(
                f"A card was graded {GRADE_NAMES[earlier - 1]} on another page already, so "
                "the later grade was not counted: each showing of a card counts once."
            )
    return Response(status_code=204)


def _compute_review_milliseconds(shown_at: int, rated_at: int) -> int | None:
    """Return the milliseconds from showing a card to its rating; None if not plausible."""
    duration = rated_at - shown_at
    return duration if shown_at and 0 <= duration <= _LONGEST_REVIEW else None


router = APIRouter()


@router.get("")
def show_review(
    ctx: ReadContext, query: ReviewFilterQuery, _ensured: DayListEnsured
) -> HTMLResponse:
    """The review page: the most urgent card, or the requested one."""
    if query.card:
        require_visible_card(ctx, query.card)
    earlier_rating = _find_earlier_rating(ctx, query.card, query.token)
    review_filter = parse_review_filter(ctx, query, "" if earlier_rating else query.card)
    show = query.show and not earlier_rating
    token = query.token if review_filter.card_id else ""
    page = build_review_page(
        ctx,
        review_filter,
        show_answer_side=show,
        shown_at_ms=query.shown_at_ms,
        showing_token=token,
        leech=load_cards_with_origin(ctx, [query.leech]).get(query.leech),
        earlier_rating=earlier_rating or query.saved_rating,
    )
    has_due = page.no_cards_due and page.no_cards_due.next_day
    has_cards = ctx.course.cards or page.card_view or page.cards_done_today or has_due
    return ctx.render_page(
        "flashcards/index.html", table=page, review_filter=review_filter, empty=not has_cards
    )


@router.get("/{card}/answer")
def show_answer(ctx: ReadContext, card: str, query: ReviewFilterQuery) -> Response:
    """The card with its answer and the four ratings, as a fragment."""
    name = require_visible_card(ctx, card).card.id
    if graded := _find_earlier_rating(ctx, name, query.token):
        return respond_with_next_card(ctx, parse_review_filter(ctx, query), earlier_rating=graded)
    record = review_log.load_card_record(ctx.db, ctx.learner.id, name)
    token, shown_at_ms = query.token, query.shown_at_ms
    return render_page(
        ctx.request,
        "flashcards/_card.html",
        card_view=build_card_view(
            ctx, record, show_answer_side=True, shown_at_ms=shown_at_ms, showing_token=token
        ),
        review_filter=ReviewFilter(query.topic, query.more, query.task),
    )


def _find_earlier_rating(ctx: RequestContext, card: str, token: str) -> int:
    """Return the rating already saved for a showing of a card; 0 for none."""
    if not token or not ctx.learner.id:
        return 0
    return review_log.find_recorded_rating(ctx.db, ctx.learner.id, card, token)


async def grade_review(request: Request) -> Response:
    """Save a rating once, and return the next card.

    The next card is looked up after the commit: that takes longer than the rating, and other
    writers would have to wait for it.
    """
    graded = await parse_rating_form(request)
    card: str = request.path_params["card"]
    async with open_write_context(request) as ctx:
        if graded.given:
            return await run_in_thread_unless_sqlite(
                ctx.db, lambda: _save_delayed_rating(ctx, card, graded)
            )
        respond = await run_in_thread_unless_sqlite(
            ctx.db, lambda: _save_rating_and_prepare_response(ctx, card, graded)
        )
    async with open_read_only_session(request) as db:
        # In a thread: on some days the first rating waits for the plan of the day.
        return await run_in_threadpool(
            respond, await build_request_context(request, ctx.learner, db)
        )


def _save_rating_and_prepare_response(
    ctx: RequestContext, card: str, graded: RatingForm
) -> Callable[[RequestContext], Response]:
    """Save a rating; returns the function that makes the response after the commit."""
    resolved = require_visible_card(ctx, card)
    _require_same_learner(ctx, graded.who)
    respond = functools.partial(
        respond_with_next_card, review_filter=parse_review_filter(ctx, graded)
    )
    review_event = ReviewEvent(graded.rating, ctx.now, ctx.study_day, ctx.learner.retention)
    milliseconds = _compute_review_milliseconds(graded.shown_at_ms, to_milliseconds(ctx.now))
    saved = review_log.record_review(
        ctx.db, ctx.learner.id, resolved.card, review_event, graded.token, milliseconds
    )
    if saved is None:
        earlier = _find_earlier_rating(ctx, resolved.card.id, graded.token)
        return functools.partial(respond, earlier_rating=earlier)
    leech = saved.is_lapse and is_leech_warning_due(saved.card_state.lapses)
    return functools.partial(respond, undo_log_id=saved.log_id, leech=resolved if leech else None)


@router.post("/undo")
async def undo_last_review(request: Request, undone: Annotated[UndoForm, Form()]) -> Response:
    """Undo the last review or manual edit; its card is rendered after the commit."""
    card = await run_in_write_transaction(request, lambda ctx: _undo_and_get_card(ctx, undone))
    return await run_in_read_session(
        request, lambda ctx: respond_with_next_card(ctx, parse_review_filter(ctx, undone, card))
    )


def _undo_and_get_card(ctx: RequestContext, undone: UndoForm) -> str:
    """Undo and return the card; empty if it was no longer the last one."""
    parse_review_filter(ctx, undone)  # validate before anything is written
    undone_card = review_log.undo_log_row_if_last(
        ctx.db, ctx.learner.id, undone.review, ctx.now, ctx.study_day, ctx.course.cards
    )
    return undone_card or ""


@router.post("/{card}/suspension")
async def suspend_card(
    request: Request, card: str, form: Annotated[SuspensionForm, Form()]
) -> Response:
    topic = await run_in_write_transaction(
        request, lambda ctx: _set_suspension_and_get_topic(ctx, card, form)
    )
    if form.deck:
        fragment_or_query = "#own" if is_added_card_id(card) else f"?topic={topic}"
        return RedirectResponse(f"/flashcards/deck{fragment_or_query}", 303)
    return await run_in_read_session(
        request, lambda ctx: respond_with_next_card(ctx, parse_review_filter(ctx, form))
    )


def _set_suspension_and_get_topic(ctx: RequestContext, card: str, form: SuspensionForm) -> str:
    flashcard = require_visible_card(ctx, card).card
    parse_review_filter(ctx, form)  # validate before anything is written
    review_log.set_suspended(ctx.db, ctx.learner.id, flashcard, ctx.now, suspended=form.aside)
    return flashcard.topic


_MAX_OFFLINE_CARDS = 100


class OfflineCard(NamedTuple):
    card: Flashcard
    showing_token: str


@router.get("/offline")
def show_offline_cards(ctx: ReadContext) -> HTMLResponse:
    """At most 100 cards for the browser to cache: today's in order, then those due by tomorrow."""
    today, due_by_tomorrow = load_cards_until_tomorrow(
        ctx, load_cards_on_day_list(ctx), _MAX_OFFLINE_CARDS
    )
    todays_ids = [record.card_id for record in today]
    later = [record for record in due_by_tomorrow if record.card_id not in todays_ids]
    ids = [*todays_ids, *(record.card_id for record in later)]
    resolved = load_cards_with_origin(ctx, ids[:_MAX_OFFLINE_CARDS])

    def list_offline_cards(records: Sequence[CardRecord]) -> list[OfflineCard]:
        return [
            OfflineCard(found.card, build_showing_token(record.card_id, record.log_row_count))
            for record in records
            if (found := resolved.get(record.card_id)) and not found.is_hidden_by_running_exam
        ]

    return ctx.render_page(
        "flashcards/offline.html",
        today=list_offline_cards(today),
        later=list_offline_cards(later),
        who=hash_learner_key(ctx.learner),
        max_cards=_MAX_OFFLINE_CARDS,
    )
