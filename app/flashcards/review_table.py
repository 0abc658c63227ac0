"""What lies on the desk: one card, how far the day has come, what comes next."""

import dataclasses
import datetime as dt
import hashlib
from collections.abc import Collection, Mapping
from urllib.parse import urlencode

from app.cards.store import card_pace
from app.content.model import CitedSource, Flashcard
from app.errors import ConflictError, NotFoundError
from app.flashcards import store
from app.flashcards.card_words import note_of
from app.flashcards.finding import ResolvedCard, find_cards
from app.flashcards.left_words import QueueCounter, counters_of, over_words
from app.flashcards.store import CardRecord, QueueQuery, ReviewQueue, TodaysCardPlan
from app.flashcards.toward_exam import ExamPlanNotice, aim_of, new_under, toward_of
from app.learners.current import LearnerProfile
from app.learners.desk import RequestContext
from app.scheduling import (
    CardPace,
    CardsLeft,
    ReviewEvent,
    before_exam,
    interval_label,
    last_day,
    minutes_words,
    new_cards_allowed,
    preview_ratings,
)
from app.web.clock import to_milliseconds

# A learning step of some minutes is not waited for when nothing else is due.
_AHEAD = dt.timedelta(minutes=20)
GRADES = ("Again", "Hard", "Good", "Easy")
_OFFER = 5


@dataclasses.dataclass(frozen=True, slots=True)
class ReviewFilter:
    """Which cards the learner wants to see: one topic or all, more new ones, one."""

    topic: str = ""
    more: int = 0
    card: str = ""

    @property
    def query(self) -> str:
        """The wish as the end of an address, without the one card."""
        pairs = {"topic": self.topic, "more": self.more}
        words = urlencode({name: value for name, value in pairs.items() if value})
        return f"?{words}" if words else ""

    @property
    def address(self) -> str:
        """The page of the wish."""
        return f"/flashcards{self.query}"


@dataclasses.dataclass(frozen=True, slots=True)
class GradeButton:
    """A grade and when the card would come back."""

    rating: int
    words: str
    interval: str


@dataclasses.dataclass(frozen=True, slots=True)
class CardView:
    """One card before the learner: `note` says what is known of it.

    It can be set to be due from the study day `day` to `last`.
    """

    card: Flashcard
    held: CardRecord
    token: str
    who: str
    since: int
    note: str
    title: str
    links: tuple[tuple[str, str], ...]
    question: str
    sources: tuple[CitedSource, ...]
    day: dt.date
    last: dt.date
    buttons: tuple[GradeButton, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True)
class CongratsInfo:
    """What is said when no card is due.

    `on` and `count` are the next study day with cards; `wait` the time until a
    learning step later today; `more` how many new cards could be begun now, and
    `reverses` says that those left wait because their reverse was asked today.
    `toward` is what there is to say with an exam ahead, `over` of cards that wait.
    """

    on: dt.date | None
    count: int
    wait: str
    more: int
    topic: str
    tomorrow: bool
    reverses: bool
    toward: ExamPlanNotice | None = None
    over: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class ReviewPage:
    """The whole desk: `turn` or `rest`, and what of the day is done and left.

    `graded` counts the grades of the day: it grows with each, whatever comes back.
    `already` names the grade of a showing that was to be graded once more.
    """

    done: int
    total: int
    left: int
    graded: int
    counters: tuple[QueueCounter, ...]
    turn: CardView | None
    rest: CongratsInfo | None
    undo: int = 0
    leech: ResolvedCard | None = None
    already: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class TodaysQueue:
    """The cards before the learner: the queue, and what it was asked for in the end.

    `unseen` counts the new cards of each topic while any may be begun; `left` is what
    there is to do.
    """

    queue: ReviewQueue
    limits: QueueQuery
    unseen: Mapping[str, int]
    left: CardsLeft


def build_review_page(
    desk: RequestContext, wish: ReviewFilter, *, show: bool = False, since: int = 0, token: str = ""
) -> ReviewPage:
    """Lay out the desk: the most urgent card, or why there is none.

    `token` says which showing of the card it is, where that was shown before.
    """
    stack = todays_queue(desk, wish.topic, wish.more)
    done, held = stack.queue.finished, _chosen(desk, wish, stack)
    left = max(stack.left.cards, 1) if held else 0
    return ReviewPage(
        done=done,
        total=done + left,
        left=left,
        graded=stack.queue.graded,
        counters=counters_of(stack.left, _kind(held, stack) if held else ""),
        turn=(build_card_view(desk, held, show=show, since=since, token=token) if held else None),
        rest=None if held else _rest(desk, stack.queue, stack.limits),
    )


def _kind(held: CardRecord, stack: TodaysQueue) -> str:
    """Under which counter a card is.

    The plan counts as due what was left in its steps on an earlier day.
    """
    first = stack.queue.first
    if held.standing is None:
        return "new"
    if first is not None and first.card == held.card:
        return "due" if stack.queue.kind == "review" else "learning"
    return "due" if held.standing.state == "review" else "learning"


def todays_queue(desk: RequestContext, topic: str = "", more: int = 0) -> TodaysQueue:
    """What the desk holds for the study day, of one topic or all.

    Today and the plan say the same number, so they ask here too.
    """
    queue, limits = load_queue(desk, limits_of(desk, topic))
    allowed, plan = new_today(desk, queue, more), todays_plan(desk)
    unseen = _unseen(desk, limits) if allowed else {}
    left = CardsLeft(
        due=queue.learning + queue.review,
        waiting=queue.waiting,
        fresh=min(allowed, sum(unseen.values())) + queue.added,
        added=queue.added,
        over=plan.over if plan is not None and not topic else 0,
        passed=plan.passed if plan is not None and not topic else 0,
        final=plan is not None and plan.final,
        learning=queue.learning,
        pace=pace_of(desk),
    )
    return TodaysQueue(queue, limits, unseen, left)


def limits_of(desk: RequestContext, topic: str = "") -> QueueQuery:
    """What the queue is asked for now."""
    strays = store.orphaned_cards(desk.db, desk.learner.id, desk.library)
    return QueueQuery(desk.day, to_milliseconds(desk.now), topic, strays)


def load_queue(desk: RequestContext, limits: QueueQuery) -> tuple[ReviewQueue, QueueQuery]:
    """The queue without cards that cannot be shown now, and what it was asked for."""
    queue = _look(desk, limits)
    while queue.first is not None and not can_be_shown(desk, queue.first.card):
        gone = limits.strays.gone | {queue.first.card}
        strays = dataclasses.replace(limits.strays, gone=gone)
        limits = dataclasses.replace(limits, strays=strays)
        queue = _look(desk, limits)
    return queue, limits


def _look(desk: RequestContext, limits: QueueQuery) -> ReviewQueue:
    plan = todays_plan(desk)
    if plan is None:
        return store.load_queue(desk.db, desk.learner.id, limits)
    return store.look_planned(desk.db, desk.learner.id, limits, plan)


def todays_plan(desk: RequestContext) -> TodaysCardPlan | None:
    """The plan of the study day; None without an exam ahead."""
    aim = aim_of(desk.learner, desk.day)
    if aim is None:
        return None
    learner = desk.learner.id
    aim = dataclasses.replace(aim, pace=pace_of(desk))
    return store.cached_day_plan(desk.db, learner, desk.library, desk.day, aim)


def pace_of(desk: RequestContext) -> CardPace:
    """How long this learner takes for cards, as the study day began."""
    return card_pace(desk.db, desk.learner.id, desk.day)


def new_today(desk: RequestContext, queue: ReviewQueue, more: int = 0) -> int:
    """How many new cards may still be begun; `more` are asked for on top."""
    plan = todays_plan(desk)
    if plan is None:
        minutes = desk.learner.minutes_a_day
        return new_cards_allowed(minutes, queue.whole, more, pace_of(desk))
    return new_under(plan, queue.whole.begun, more)


def can_be_shown(desk: RequestContext, card: str) -> bool:
    """Whether a card is there, and nobody is being examined in it."""
    found = find_cards_once(desk, [card]).get(card)
    return found is not None and not found.sat


def find_cards_once(desk: RequestContext, cards: Collection[str]) -> dict[str, ResolvedCard]:
    """Those of `cards` that there are, looked for once in a request."""
    new = [card for card in cards if card not in desk.found]
    if new:
        found = find_cards(desk.library, desk.db, desk.learner, new, desk.now)
        desk.found.update(found)
    return {card: desk.found[card] for card in cards if card in desk.found}


def find_card(desk: RequestContext, card: str) -> ResolvedCard:
    """The card `card`; raises NotFound, or Conflict during an exam that asks it."""
    found = find_cards_once(desk, [card]).get(card)
    if found is None:
        raise NotFoundError(f"There is no card “{card}”.")
    if found.sat:
        raise ConflictError(
            "This question is in the mock exam that you are sitting.",
            "Finish the exam first; then it comes back.",
        )
    return found


def showing_token(card: str, turns: int) -> str:
    """The token of one showing of a card: the same in every tab that shows it."""
    return f"{card}.{turns}"


def learner_marker(learner: LearnerProfile) -> str:
    """A word that tells learners of one browser apart and gives nothing away."""
    return hashlib.sha256(learner.key.encode()).hexdigest()[:16]


def build_card_view(
    desk: RequestContext, held: CardRecord, *, show: bool, since: int, token: str = ""
) -> CardView:
    """A card as the desk shows it; with the grades once its answer is shown."""
    found = find_card(desk, held.card)
    card, sources = found.card, desk.library.sources
    return CardView(
        card=card,
        held=held,
        token=token or showing_token(held.card, held.turns),
        who=learner_marker(desk.learner),
        since=since or to_milliseconds(desk.now),
        note=note_of(held, desk.day, found.origin),
        title=found.title,
        links=found.links,
        question=found.question,
        sources=tuple(sources[k] for k in card.sources if k in sources),
        day=desk.day,
        last=last_day(desk.day, desk.learner.exam_day),
        buttons=_buttons(desk, held) if show else (),
    )


def _buttons(desk: RequestContext, held: CardRecord) -> tuple[GradeButton, ...]:
    asked = ReviewEvent(3, desk.now, desk.day, desk.learner.retention)
    outcomes = preview_ratings(held.standing, asked, held.card)
    exam = desk.learner.exam_day
    return tuple(
        GradeButton(rating, words, interval_label(before_exam(outcome, exam), asked))
        for rating, (words, outcome) in enumerate(zip(GRADES, outcomes, strict=True), 1)
    )


def _chosen(desk: RequestContext, wish: ReviewFilter, stack: TodaysQueue) -> CardRecord | None:
    db, learner, queue = desk.db, desk.learner.id, stack.queue
    if wish.card:
        return store.load_card(db, learner, wish.card)
    if queue.first is not None and queue.kind != "waiting":
        return queue.first
    if stack.unseen:
        card = store.next_new(db, learner, desk.library, stack.limits, stack.unseen)
        if card is not None:
            return store.unseen(db, learner, card)
    soon = queue.first and queue.first.standing
    return queue.first if soon and soon.due_at - desk.now <= _AHEAD else None


def _unseen(desk: RequestContext, limits: QueueQuery) -> dict[str, int]:
    return store.unseen_by_topic(desk.db, desk.learner.id, desk.library, limits)


def _rest(desk: RequestContext, queue: ReviewQueue, limits: QueueQuery) -> CongratsInfo:
    learner, library = desk.learner.id, desk.library
    later = store.next_due(desk.db, learner, limits)
    standing = queue.first.standing if queue.first else None
    unseen = _unseen(desk, limits)
    new = store.next_new(desk.db, learner, library, limits, unseen)
    topic = library.topics.get(library.cards[new].topic) if new else None
    toward = _toward(desk, queue, later[0] if later else None)
    stopped, plan = toward is not None and toward.stopped, todays_plan(desk)
    return CongratsInfo(
        on=later[0] if later else None,
        count=later[1] if later else 0,
        wait=minutes_words(standing.due_at - desk.now) if standing else "",
        more=min(_OFFER, sum(unseen.values())) if new and not stopped else 0,
        topic=topic.title if topic else "",
        tomorrow=bool(later and (later[0] - desk.day).days == 1),
        reverses=bool(unseen) and new is None,
        toward=toward,
        over=over_words(plan.over, plan.passed) if plan else "",
    )


def _toward(
    desk: RequestContext, queue: ReviewQueue, later: dt.date | None
) -> ExamPlanNotice | None:
    aim, plan = aim_of(desk.learner, desk.day), todays_plan(desk)
    if aim is None or plan is None:
        return None
    return toward_of(aim, plan, desk.day, later, queue.whole.begun)
