"""The cards of a study day before an exam: planned once from the morning's memory.

The plan is a function of what was known when the study day began, so it is the same
after a restart and in another process, and it is not made again at each grade. What
has happened since is read narrowly beside it.
"""

import dataclasses
import datetime as dt
import weakref
from collections.abc import Iterable, Sequence
from typing import Any

from cachetools import LRUCache
from sqlalchemy import Engine, bindparam, select, union_all
from sqlmodel import Session

from app.cards.names import is_added_card
from app.cards.store import MEMORY, STANDING, card_state_from_row
from app.cards.store.log import ASIDE, CardRecord, load_card
from app.content.live.library import Library
from app.flashcards.store.added_cards import ADDED
from app.flashcards.store.morning import MorningCard, begun_of, states_at_day_start
from app.flashcards.store.queue import GRADED, QueueQuery, ReviewQueue
from app.scheduling import DayCounts
from app.scheduling.card_pace import USUAL as CARD_PACE
from app.scheduling.card_pace import CardPace
from app.scheduling.curve import fsrs_formulas
from app.scheduling.exam import StartedCard
from app.scheduling.exam_plan import (
    CardPlanInputs,
    PlanOutline,
    day_plan,
    outline_plan,
    reconcile_outline,
)
from app.scheduling.habits import USUAL, StudyHabits
from app.scheduling.outlook import HORIZON, simulate_until_exam

_LEARNERS = 2000


@dataclasses.dataclass(frozen=True, slots=True)
class ExamGoal:
    """The exam day, the seconds of a usual day for cards, and the learner's ways.

    `acts` is the number of the last act: what is set by hand makes the plan anew.
    """

    exam: dt.date
    seconds: float
    habits: StudyHabits = USUAL
    acts: int = 0
    pace: CardPace = CARD_PACE


@dataclasses.dataclass(frozen=True, slots=True)
class PlannedCard:
    """A card in the plan, as far as the desk has to know it.

    `fresh` says that it was added and never graded.
    """

    card: str
    note: str
    topic: str
    fresh: bool = False


@dataclasses.dataclass(frozen=True, slots=True)
class TodaysCardPlan:
    """The plan of a study day: `looks` in order, then `fresh` new cards.

    `final`, `short` and `stopped` are those of the DayPlan; `unbegun` cards were never
    begun, `over` are due today and not in the plan, which asks about `passed` of them
    on no day before the exam. `apart` keeps a card from its reverse, `outline` says how
    the days go on.
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
    """The plan of a learner's study day, made once in a process."""
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
    """Plan the study day from the memory as it stood when the day began.

    A day that was set by hand is kept: the card comes first on it, and not before.
    """
    held = states_at_day_start(db, learner_id, library, day)
    rows = [row for row in held if not _later(row, day, aim)]
    known = {row.card: row for row in rows}
    curve = fsrs_formulas()
    begun = list(begun_of(rows, day, curve))
    today = day.toordinal()
    old = sum(not is_added_card(row.card) and row.first_day != day.isoformat() for row in held)
    unseen = max(0, len(library.cards) - old)
    times = today, aim.exam.toordinal(), aim.seconds
    asked = CardPlanInputs(*times, habits=aim.habits, pace=aim.pace)
    plan = day_plan(begun, unseen, asked, curve)
    # Steps that an earlier day left unfinished come first, whatever they gain.
    steps = [row.card for row in rows if _unfinished(row, day)]
    steps += [row.card for row in rows if _is_set(row, day)]
    names = dict.fromkeys([*steps, *(c.card for c in plan.looks)])
    said = outline_plan(len(begun), unseen, asked)
    over = sum(c.due <= today and c.card not in names for c in begun if not c.fresh)
    return TodaysCardPlan(
        looks=tuple(_slot(known[card]) for card in names),
        fresh=plan.fresh,
        final=plan.final,
        short=plan.short,
        stopped=plan.stopped,
        unbegun=unseen,
        over=over,
        passed=_passed(begun, unseen, asked, names) if over and said.short else 0,
        apart=asked.left > 1,
        outline=reconcile_outline(said, plan, unseen, asked),
    )


def _passed(
    begun: Sequence[StartedCard], unseen: int, asked: CardPlanInputs, today: Iterable[str]
) -> int:
    """How many cards that are due the plan never asks before the exam.

    Those of `today` it does ask. Where the minutes hold every card, none: each is seen
    once more.
    """
    if asked.exam - asked.day > HORIZON:
        return 0
    known = dataclasses.replace(asked, looks=frozenset(today))
    return simulate_until_exam(begun, unseen, known, fsrs_formulas()).passed_due


def _slot(row: MorningCard) -> PlannedCard:
    return PlannedCard(row.card, row.note, row.topic, fresh=row.state == "new")


def _later(row: MorningCard, day: dt.date, aim: ExamGoal) -> bool:
    """Whether a card is not to be asked before a later day, which is in time."""
    return bool(day.isoformat() < row.set_day < aim.exam.isoformat())


def _is_set(row: MorningCard, day: dt.date) -> bool:
    """Whether the day has come that was set by hand for a card that was begun."""
    came = row.set_day and row.set_day <= day.isoformat()
    return bool(came and row.state != "new" and not row.suspended)


def _unfinished(row: MorningCard, day: dt.date) -> bool:
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
# Put aside since the plan was made, or before: a few, found by name.
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
    """What is left of the day: steps by their time, cards added today, looks.

    Of the looks `fresh` are at cards that were added before and never graded;
    `finished` of the cards `answered` do not come back today; `graded` counts grades.
    """

    answered: Sequence[Any]
    steps: Sequence[Any]
    added: Sequence[str]
    looks: Sequence[str]
    fresh: int
    finished: int
    graded: int


def look_planned(
    db: Session, learner_id: int, limits: QueueQuery, plan: TodaysCardPlan
) -> ReviewQueue:
    """What lies before the learner under a plan: steps, what was added today, looks.

    Two narrow questions, whatever the number of cards.
    """
    now = _since(db, learner_id, limits, plan)
    ripe = [row for row in now.steps if row.due_at <= limits.now]
    looks = (*now.added, *now.looks)
    first, kind = _first(db, learner_id, looks, ripe or now.steps, bool(ripe))
    return ReviewQueue(
        first=first,
        kind=kind,
        learning=len(ripe),
        review=len(now.looks) - now.fresh,
        waiting=len(now.steps) - len(ripe),
        finished=now.finished,
        whole=_day(now.answered, plan, limits.day.isoformat()),
        graded=now.graded,
        added=len(now.added) + now.fresh,
    )


_THESE = select(*_TOUCHED, MEMORY.c.suspended).where(
    _mine, MEMORY.c.card.in_(bindparam("cards", expanding=True))
)


def upcoming_planned(
    db: Session, learner_id: int, limits: QueueQuery, plan: TodaysCardPlan, most: int
) -> list[CardRecord]:
    """The first `most` cards that the plan still holds for the day, in its order."""
    now = _since(db, learner_id, limits, plan)
    names = [*(row.card for row in now.steps), *now.added, *now.looks][:most]
    values = {"learner": learner_id, "cards": names}
    rows = db.connection().execute(_THESE, values).all() if names else []
    held = {row.card: _held(row) for row in rows if not row.suspended}
    return [held[card] for card in names if card in held]


def _since(db: Session, learner_id: int, limits: QueueQuery, plan: TodaysCardPlan) -> _DoneToday:
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
    looks = _left(plan, limits, answered, {r.card for r in rows if r.suspended})
    return _DoneToday(
        answered=answered,
        steps=sorted(steps, key=lambda row: (row.due_at, row.card)),
        added=sorted(row.card for row in mine if row.state == "new"),
        looks=[slot.card for slot in looks],
        fresh=sum(slot.fresh for slot in looks),
        finished=sum(row.state != "new" and row.due_day > today for row in mine),
        graded=rows[0].graded if rows else 0,
    )


def _left(
    plan: TodaysCardPlan, limits: QueueQuery, answered: Iterable[Any], aside: Iterable[str]
) -> list[PlannedCard]:
    """The looks of the plan that were not taken yet."""
    seen = {row.card for row in answered}.union(limits.strays.gone, aside)
    notes = {row.note for row in answered} if plan.apart else set()
    return [
        slot
        for slot in plan.looks
        if slot.card not in seen and slot.note not in notes and limits.topic in ("", slot.topic)
    ]


def _first(
    db: Session,
    learner_id: int,
    looks: Iterable[str],
    steps: Sequence[Any],
    ripe: bool,
) -> tuple[CardRecord | None, str]:
    if ripe:
        return _held(steps[0]), "learning"
    for card in looks:
        held = load_card(db, learner_id, card)
        # Put aside, or undone to nothing, since the plan was made.
        if held.known and not held.suspended:
            return held, "review"
    return (_held(steps[0]), "waiting") if steps else (None, "")


def _held(row: Any) -> CardRecord:
    return CardRecord(row.card, card_state_from_row(row), row.turns, known=True)


def _day(answered: Sequence[Any], plan: TodaysCardPlan, day: str) -> DayCounts:
    begun = sum(row.first_day == day and not is_added_card(row.card) for row in answered)
    return DayCounts(due=len(plan.looks), answered=len(answered), begun=begun)
