"""SQL: the learner's cards today, by the plan or from the queue.

The plan is a function of the state at the start of the study day, so it is the same after a restart
and in another process, and is not computed again after each review. Reviews since then are read in
addition, with narrow queries.
"""

import dataclasses
import datetime as dt
import weakref
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from cachetools import LRUCache
from sqlalchemy import Engine, bindparam, select, union_all
from sqlmodel import Session

from app.accounts.current_learner import DEFAULT_HABITS, LearnerProfile, RequestContext, StudyHabits
from app.clock import to_milliseconds
from app.content.library import Library
from app.markup.expressions import ExpressionError
from app.markup.model import Flashcard
from app.questions.question_type import CardFaces
from app.spaced_repetition import added_cards, queue
from app.spaced_repetition.added_cards import ADDED, AddedCardDetails
from app.spaced_repetition.card_ids import (
    OWN,
    QUESTION,
    TERM,
    card_of_own,
    card_of_question,
    card_of_term,
    card_topic,
    is_added_card,
    parse_card_id,
)
from app.spaced_repetition.card_rows import MEMORY, STANDING, card_state_from_row
from app.spaced_repetition.fsrs import fsrs_formulas
from app.spaced_repetition.queue import GRADED, QueueQuery, ReviewQueue, card_pace
from app.spaced_repetition.review_log import ASIDE, CardRecord, load_card
from app.spaced_repetition.review_pace import USUAL as CARD_PACE
from app.spaced_repetition.review_pace import CardPace, DayCounts, card_seconds, new_cards_allowed
from app.spaced_repetition.scheduler import retrievability
from app.study_plan.card_plan import (
    CardPlanInputs,
    CardsLeft,
    PlanOutline,
    StartedCard,
    day_plan,
    outline_plan,
    reconcile_outline,
)
from app.study_plan.forecast import HORIZON, simulate_until_exam
from app.study_plan.store import MorningCard, started_before_day, states_at_day_start
from app.web.formatting import format_date

_LEARNERS = 2000


@dataclasses.dataclass(frozen=True, slots=True)
class ExamGoal:
    """The exam day, the seconds of a usual day for cards, and the learner's habits and pace.

    `acts` counts manual edits; each one makes the plan be computed again.
    """

    exam: dt.date
    seconds: float
    habits: StudyHabits = DEFAULT_HABITS
    acts: int = 0
    pace: CardPace = CARD_PACE


@dataclasses.dataclass(frozen=True, slots=True)
class PlannedCard:
    """A card in the plan, with what the review queue needs to know of it.

    `fresh` says that it was added and never reviewed.
    """

    card: str
    note: str
    topic: str
    fresh: bool = False


@dataclasses.dataclass(frozen=True, slots=True)
class TodaysCardPlan:
    """The plan of a study day: `looks` in order, then `fresh` new cards.

    `final`, `short` and `stopped` are those of the CardDayPlan. `unbegun` cards were never started.
    `over` are due today and not in the plan, which reviews `passed` of them on no day before the
    exam. `apart` separates a card from its reverse; `outline` summarizes the coming days.
    """

    looks: tuple[PlannedCard, ...]
    fresh: int
    final: bool
    short: bool
    stopped: bool
    unbegun: int
    over: int
    passed: int
    apart: bool
    outline: PlanOutline


_Key = tuple[dt.date, ExamGoal, str]
_kept: weakref.WeakKeyDictionary[Engine, LRUCache[int, tuple[_Key, TodaysCardPlan]]] = (
    weakref.WeakKeyDictionary()
)


def cached_day_plan(
    db: Session, learner_id: int, library: Library, day: dt.date, aim: ExamGoal
) -> TodaysCardPlan:
    """Return the plan of a learner's study day, computed once per process."""
    engine = db.get_bind().engine
    kept = _kept.setdefault(engine, LRUCache(_LEARNERS))
    key = (day, aim, library.version)
    known = kept.get(learner_id)
    if known is not None and known[0] == key:
        return known[1]
    found = find_planned(db, learner_id, library, day, aim)
    kept[learner_id] = (key, found)
    return found


def find_planned(
    db: Session, learner_id: int, library: Library, day: dt.date, aim: ExamGoal
) -> TodaysCardPlan:
    """Compute the plan of the study day from the memory rows at its start.

    A manually set due day is respected: the card comes first on it, and not before.
    """
    held = states_at_day_start(db, learner_id, library, day)
    rows = [row for row in held if not _is_after(row, day, aim)]
    known = {row.card: row for row in rows}
    curve = fsrs_formulas()
    begun = list(started_before_day(rows, day, curve))
    today = day.toordinal()
    old = sum(not is_added_card(row.card) and row.first_day != day.isoformat() for row in held)
    unseen = max(0, len(library.cards) - old)
    times = today, aim.exam.toordinal(), aim.seconds
    asked = CardPlanInputs(*times, habits=aim.habits, pace=aim.pace)
    plan = day_plan(begun, unseen, asked, curve)
    # Steps left unfinished on an earlier day come first, whatever their gain.
    steps = [row.card for row in rows if _is_unfinished(row, day)]
    steps += [row.card for row in rows if _is_set(row, day)]
    names = dict.fromkeys([*steps, *(c.card for c in plan.looks)])
    said = outline_plan(len(begun), unseen, asked)
    over = sum(c.due <= today and c.card not in names for c in begun if not c.fresh)
    return TodaysCardPlan(
        looks=tuple(_planned_from_row(known[card]) for card in names),
        fresh=plan.fresh,
        final=plan.final,
        short=plan.short,
        stopped=plan.stopped,
        unbegun=unseen,
        over=over,
        passed=_count_never_asked(begun, unseen, asked, names) if over and said.short else 0,
        apart=asked.left > 1,
        outline=reconcile_outline(said, plan, unseen, asked),
    )


def _count_never_asked(
    begun: Sequence[StartedCard], unseen: int, asked: CardPlanInputs, today: Iterable[str]
) -> int:
    """Return how many due cards the plan never reviews before the exam.

    Those of `today` are reviewed. If the minutes hold every card the result is 0, because each gets
    its final review.
    """
    if asked.exam - asked.day > HORIZON:
        return 0
    known = dataclasses.replace(asked, looks=frozenset(today))
    return simulate_until_exam(begun, unseen, known, fsrs_formulas()).passed_due


def _planned_from_row(row: MorningCard) -> PlannedCard:
    return PlannedCard(row.card, row.note, row.topic, fresh=row.state == "new")


def _is_after(row: MorningCard, day: dt.date, aim: ExamGoal) -> bool:
    """Return whether a card was manually set to a later day before the exam."""
    return bool(day.isoformat() < row.set_day < aim.exam.isoformat())


def _is_set(row: MorningCard, day: dt.date) -> bool:
    """Return whether the manually set day of a started card has come."""
    came = row.set_day and row.set_day <= day.isoformat()
    return bool(came and row.state != "new" and not row.suspended)


def _is_unfinished(row: MorningCard, day: dt.date) -> bool:
    steps = row.state in ("learning", "relearning") and not row.suspended
    return steps and row.last_day < day.isoformat()


_TOUCHED = (
    *STANDING,
    MEMORY.c.card,
    MEMORY.c.turns,
    MEMORY.c.note,
    MEMORY.c.topic,
)
_mine = MEMORY.c.learner_id == bindparam("learner")
# Suspended or declined cards. There are few, and they are found by name.
_set_aside = union_all(
    select(ASIDE.c.card).where(ASIDE.c.learner_id == bindparam("learner")),
    select(ADDED.c.card).where(
        ADDED.c.learner_id == bindparam("learner"), ADDED.c.declined.is_(True)
    ),
)
_SINCE = union_all(
    select(*_TOUCHED, MEMORY.c.suspended, GRADED).where(
        _mine, MEMORY.c.last_day == bindparam("day")
    ),
    select(*_TOUCHED, MEMORY.c.suspended, GRADED).where(
        _mine, MEMORY.c.due_day == bindparam("day"), MEMORY.c.state == "new"
    ),
    select(*_TOUCHED, MEMORY.c.suspended, GRADED).where(
        _mine,
        MEMORY.c.card.in_(_set_aside),
        MEMORY.c.last_day != bindparam("day"),
        MEMORY.c.suspended.is_(True),
    ),
)


@dataclasses.dataclass(frozen=True, slots=True)
class _DoneToday:
    """What is left of the day: steps by time, cards added today, reviews.

    `fresh` of the reviews are of cards added earlier and never reviewed. `finished` of the cards
    `answered` are not due again today; `graded` counts reviews.
    """

    answered: Sequence[Any]
    steps: Sequence[Any]
    added: Sequence[str]
    looks: Sequence[str]
    fresh: int
    finished: int
    graded: int


def load_planned_queue(
    db: Session, learner_id: int, limits: QueueQuery, plan: TodaysCardPlan
) -> ReviewQueue:
    """Return the review queue under a plan: steps, cards added today, planned reviews.

    Runs two narrow queries, however many cards there are.
    """
    now = _load_done_today(db, learner_id, limits, plan)
    ripe = [row for row in now.steps if row.due_at <= limits.now]
    looks = (*now.added, *now.looks)
    first, kind = _first_planned(db, learner_id, looks, ripe or now.steps, bool(ripe))
    return ReviewQueue(
        first=first,
        kind=kind,
        learning=len(ripe),
        review=len(now.looks) - now.fresh,
        waiting=len(now.steps) - len(ripe),
        finished=now.finished,
        whole=_day_counts(now.answered, plan, limits.day.isoformat()),
        graded=now.graded,
        added=len(now.added) + now.fresh,
    )


_THESE = select(*_TOUCHED, MEMORY.c.suspended).where(
    _mine, MEMORY.c.card.in_(bindparam("cards", expanding=True))
)


def upcoming_planned(
    db: Session, learner_id: int, limits: QueueQuery, plan: TodaysCardPlan, most: int
) -> list[CardRecord]:
    """Return the first `most` cards that the plan still has for the day, in its order."""
    now = _load_done_today(db, learner_id, limits, plan)
    names = [*(row.card for row in now.steps), *now.added, *now.looks][:most]
    values = {"learner": learner_id, "cards": names}
    rows = db.connection().execute(_THESE, values).all() if names else []
    held = {row.card: _card_from_row(row) for row in rows if not row.suspended}
    return [held[card] for card in names if card in held]


def _load_done_today(
    db: Session, learner_id: int, limits: QueueQuery, plan: TodaysCardPlan
) -> _DoneToday:
    today = limits.day.isoformat()
    values = {"learner": learner_id, "day": today}
    rows = db.connection().execute(_SINCE, values).all()
    answered = [row for row in rows if row.last_day == today]
    mine = [
        row
        for row in rows
        if limits.topic in ("", row.topic)
        and not row.suspended
        and row.card not in limits.strays.gone
    ]
    steps = [row for row in mine if row.state not in ("review", "new") and row.due_day <= today]
    looks = _planned_left(plan, limits, answered, {r.card for r in rows if r.suspended})
    return _DoneToday(
        answered=answered,
        steps=sorted(steps, key=lambda row: (row.due_at, row.card)),
        added=sorted(row.card for row in mine if row.state == "new"),
        looks=[slot.card for slot in looks],
        fresh=sum(slot.fresh for slot in looks),
        finished=sum(row.state != "new" and row.due_day > today for row in mine),
        graded=rows[0].graded if rows else 0,
    )


def _planned_left(
    plan: TodaysCardPlan, limits: QueueQuery, answered: Iterable[Any], aside: Iterable[str]
) -> list[PlannedCard]:
    """Return the reviews of the plan that are not done yet."""
    seen = {row.card for row in answered}.union(limits.strays.gone, aside)
    notes = {row.note for row in answered} if plan.apart else set()
    return [
        slot
        for slot in plan.looks
        if slot.card not in seen and slot.note not in notes and limits.topic in ("", slot.topic)
    ]


def _first_planned(
    db: Session,
    learner_id: int,
    looks: Iterable[str],
    steps: Sequence[Any],
    ripe: bool,
) -> tuple[CardRecord | None, str]:
    if ripe:
        return _card_from_row(steps[0]), "learning"
    for card in looks:
        held = load_card(db, learner_id, card)
        # It may have been suspended, or undone to no memory row, since the plan was computed.
        if held.known and not held.suspended:
            return held, "review"
    return (_card_from_row(steps[0]), "waiting") if steps else (None, "")


def _card_from_row(row: Any) -> CardRecord:
    return CardRecord(row.card, card_state_from_row(row), row.turns, known=True)


def _day_counts(answered: Sequence[Any], plan: TodaysCardPlan, day: str) -> DayCounts:
    begun = sum(row.first_day == day and not is_added_card(row.card) for row in answered)
    return DayCounts(due=len(plan.looks), answered=len(answered), begun=begun)


@dataclasses.dataclass(frozen=True, slots=True)
class ExamPlanNotice:
    """The notice about the plan when today's cards are done.

    `exam` is the exam day. `final` says that the final-review phase has begun, `short` that it has
    no time for every card, and `stopped` that no more new cards are started, with `unbegun` left.
    `on` is the next day with cards; `tomorrow` says that it is the next study day.
    """

    exam: dt.date
    final: bool
    short: bool
    stopped: bool
    unbegun: int
    on: dt.date | None
    tomorrow: bool


def exam_goal(learner: LearnerProfile, day: dt.date) -> ExamGoal | None:
    """Return the exam goal of a study day; None without an exam ahead."""
    if not learner.id or learner.exam_day is None or learner.exam_day < day:
        return None
    seconds = card_seconds(learner.minutes_a_day)
    return ExamGoal(learner.exam_day, seconds, learner.habits, learner.acts)


def exam_plan_notice(
    aim: ExamGoal, plan: TodaysCardPlan, day: dt.date, later: dt.date | None, begun: int
) -> ExamPlanNotice:
    """Return the notice; `later` is when a card is next due, `begun` counts today's new cards."""
    tomorrow = day + dt.timedelta(days=1)
    following = _next_study_day(aim, tomorrow)
    more = plan.over or plan.final or (plan.unbegun > plan.fresh and not plan.stopped)
    eve = aim.exam - dt.timedelta(days=1)
    on = following if more else max(following, min(later or eve, eve))
    return ExamPlanNotice(
        exam=aim.exam,
        final=plan.final,
        short=plan.short,
        stopped=plan.stopped,
        unbegun=plan.unbegun - begun,
        on=on if on < aim.exam else None,
        tomorrow=on == tomorrow,
    )


def _next_study_day(aim: ExamGoal, day: dt.date) -> dt.date:
    """Return `day`, or the first day after it that is not a day off."""
    while day < aim.exam and aim.habits.is_off(day.toordinal()):
        day += dt.timedelta(days=1)
    return day


def new_under(plan: TodaysCardPlan, begun: int, more: int) -> int:
    """Return how many more new cards may be started today; `more` are added on top."""
    return max(0, plan.fresh + more - begun)


@dataclasses.dataclass(frozen=True, slots=True)
class ResolvedCard:
    """A card with its related data.

    `title` is that of its page or deck. `links` are URLs and texts that lead to where it is
    explained. `question` is the URL of the question it was made from, and `origin` a sentence about
    where an added card came from. `sat` hides it: its question is in a mock exam in progress.
    """

    card: Flashcard
    title: str = ""
    links: tuple[tuple[str, str], ...] = ()
    question: str = ""
    origin: str = ""
    sat: bool = False


def find_cards(
    library: Library,
    db: Session,
    learner: LearnerProfile,
    cards: Collection[str],
    now: dt.datetime,
) -> dict[str, ResolvedCard]:
    """Return those of `cards` that exist for this learner; added ones in one query."""
    added = [card for card in cards if is_added_card(card)]
    kept = added_cards.find_added(db, learner.id, added, now)
    today = learner.study_day(now)
    found: dict[str, ResolvedCard | None] = {}
    for card in cards:
        if is_added_card(card):
            mine = kept.get(card)
            found[card] = (
                _added_card_content(library, mine, (learner.study_day(mine.since), today))
                if mine
                else None
            )
        else:
            known = library.cards.get(card)
            found[card] = _course_card_content(library, known) if known else None
    return {card: one for card, one in found.items() if one is not None}


def _course_card_content(library: Library, card: Flashcard) -> ResolvedCard:
    return ResolvedCard(card, *_page_link(library, card.topic))


def _page_link(
    library: Library, slug: str, anchor: str = ""
) -> tuple[str, tuple[tuple[str, str], ...]]:
    """Return the title of a topic, and the link to its page."""
    topic = library.topics.get(slug)
    if topic is None:
        return "", ()
    address = f"/concepts/{slug}#{anchor}" if anchor else f"/concepts/{slug}"
    return topic.title, ((f"Read: {topic.title}", address),)


def _added_card_content(
    library: Library, kept: AddedCardDetails, days: tuple[dt.date, dt.date]
) -> ResolvedCard | None:
    """Return the added card with its current text; None if its source left the course."""
    kind = parse_card_id(kept.card)[0]
    if kind == QUESTION:
        return _question_card_content(library, kept, days)
    if kind == TERM:
        return _term_card_content(library, kept.card)
    if kind == OWN and kept.own is not None:
        deck, front, back = kept.own
        card = card_of_own(kept.card, CardFaces(front, back))
        return ResolvedCard(card, deck, origin="A card of your own.")
    return None


def _question_card_content(
    library: Library, kept: AddedCardDetails, days: tuple[dt.date, dt.date]
) -> ResolvedCard | None:
    question = library.questions.get(parse_card_id(kept.card)[1])
    if question is None:
        return None
    try:
        card = card_of_question(question, kept.seed)
    except ExpressionError:  # after an edit, these numbers have no answer
        return None
    return ResolvedCard(
        card,
        *_page_link(library, question.topic, question.section),
        question=f"/quiz/{question.topic}/{question.id}?back=/flashcards",
        origin=f"A question you missed {_day_phrase(*days)}.",
        sat=kept.sat,
    )


def _term_card_content(library: Library, card: str) -> ResolvedCard | None:
    term = library.glossary.get(parse_card_id(card)[1])
    if term is None:
        return None
    slug = card_topic(library, card)
    title, links = _page_link(library, slug)
    links = (*links, ("Glossary", f"/glossary#{term.anchor}"))
    made = card_of_term(term, slug)
    return ResolvedCard(made, title or "Glossary", links, origin="A term of the glossary.")


def _day_phrase(day: dt.date, today: dt.date) -> str:
    if day == today:
        return "today"
    words = f"on {format_date(day)}"
    return words if day.year == today.year else f"{words}, {day.year}"


def card_origin_note(held: CardRecord, day: dt.date, origin: str) -> str:
    """Return where the card comes from, when it was last seen, and its retrievability."""
    standing = held.standing
    if standing is None:
        return f"{origin or 'A new card.'} Say the answer aloud or write it down first."
    if standing.state != "review":
        now = standing.last_day >= day
        seen = "You are still learning this card."
        origin = origin or (seen if now else "You have seen this card before.")
        return f"{origin} Say the answer aloud first."
    days = max(0, (day - standing.last_day).days)
    ago = "today" if not days else "yesterday" if days == 1 else f"{days} days ago"
    chance = round(retrievability(standing, day) * 100)
    return (
        f"{origin} Say it aloud or write it down first. "
        f"Last seen {ago}; about {chance}% likely you still know it."
    ).lstrip()


@dataclasses.dataclass(frozen=True, slots=True)
class TodaysQueue:
    """The review queue, and the query it was loaded with.

    `unseen` counts the new cards of each topic while any may be started; `left` is what is left to
    do.
    """

    queue: ReviewQueue
    limits: QueueQuery
    unseen: Mapping[str, int]
    left: CardsLeft


def todays_queue(desk: RequestContext, topic: str = "", more: int = 0) -> TodaysQueue:
    """Return the review queue of the study day, for one topic or all.

    The Today page and the plan use it too, so that all show the same numbers.
    """
    queue, limits = load_queue(desk, queue_query(desk, topic))
    allowed, plan = new_today(desk, queue, more), todays_plan(desk)
    unseen = _unseen_by_topic(desk, limits) if allowed else {}
    left = CardsLeft(
        due=queue.learning + queue.review,
        waiting=queue.waiting,
        fresh=min(allowed, sum(unseen.values())) + queue.added,
        added=queue.added,
        over=plan.over if plan is not None and not topic else 0,
        passed=plan.passed if plan is not None and not topic else 0,
        final=plan is not None and plan.final,
        learning=queue.learning,
        pace=card_pace_today(desk),
    )
    return TodaysQueue(queue, limits, unseen, left)


def queue_query(desk: RequestContext, topic: str = "") -> QueueQuery:
    """Return the queue query for this moment."""
    strays = queue.orphaned_cards(desk.db, desk.learner.id, desk.library)
    return QueueQuery(desk.day, to_milliseconds(desk.now), topic, strays)


def load_queue(desk: RequestContext, limits: QueueQuery) -> tuple[ReviewQueue, QueueQuery]:
    """Return the queue without cards that cannot be shown now, and the query used."""
    queue = _load_queue_once(desk, limits)
    while queue.first is not None and not can_be_shown(desk, queue.first.card):
        gone = limits.strays.gone | {queue.first.card}
        strays = dataclasses.replace(limits.strays, gone=gone)
        limits = dataclasses.replace(limits, strays=strays)
        queue = _load_queue_once(desk, limits)
    return queue, limits


def _load_queue_once(desk: RequestContext, limits: QueueQuery) -> ReviewQueue:
    plan = todays_plan(desk)
    if plan is None:
        return queue.load_queue(desk.db, desk.learner.id, limits)
    return load_planned_queue(desk.db, desk.learner.id, limits, plan)


def todays_plan(desk: RequestContext) -> TodaysCardPlan | None:
    """Return the plan of the study day; None without an exam ahead."""
    aim = exam_goal(desk.learner, desk.day)
    if aim is None:
        return None
    learner = desk.learner.id
    aim = dataclasses.replace(aim, pace=card_pace_today(desk))
    return cached_day_plan(desk.db, learner, desk.library, desk.day, aim)


def card_pace_today(desk: RequestContext) -> CardPace:
    """Return how long this learner takes for cards, as of the start of the study day."""
    return card_pace(desk.db, desk.learner.id, desk.day)


def new_today(desk: RequestContext, queue: ReviewQueue, more: int = 0) -> int:
    """Return how many more new cards may be started; `more` are added on top."""
    plan = todays_plan(desk)
    if plan is None:
        minutes = desk.learner.minutes_a_day
        return new_cards_allowed(minutes, queue.whole, more, card_pace_today(desk))
    return new_under(plan, queue.whole.begun, more)


def can_be_shown(desk: RequestContext, card: str) -> bool:
    """Return whether a card exists and is not part of a mock exam in progress."""
    found = find_cards_once(desk, [card]).get(card)
    return found is not None and not found.sat


def find_cards_once(desk: RequestContext, cards: Collection[str]) -> dict[str, ResolvedCard]:
    """Return those of `cards` that exist, looked up once per request."""
    new = [card for card in cards if card not in desk.found]
    if new:
        found = find_cards(desk.library, desk.db, desk.learner, new, desk.now)
        desk.found.update(found)
    return {card: desk.found[card] for card in cards if card in desk.found}


def _unseen_by_topic(desk: RequestContext, limits: QueueQuery) -> dict[str, int]:
    return queue.unseen_by_topic(desk.db, desk.learner.id, desk.library, limits)
