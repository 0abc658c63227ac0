"""Choose the cards of a study day before an exam.

Three rules share the minutes, in this order:

1. In the last days every started card gets a final review. The length of this phase depends on the
minutes of a day.

2. Before it, new cards are started at an even pace that ends with the phase.

3. Due cards take the rest, the most gain per minute first.

If the minutes left do not hold every card, new cards take all of them until the final reviews that
gain more than a new card would fill the days left. A started card still has its final review ahead,
so a review in between gains less per minute. A learner who wants to use all minutes starts new
cards as fast as they fit once there is ample time, and spends the rest of a day where it gains
most.
"""

import dataclasses
import datetime as dt
import functools
import math
from collections.abc import Iterable, Sequence

from app.accounts.current_learner import DEFAULT_HABITS, StudyHabits
from app.clock import RETENTION
from app.spaced_repetition.fsrs import FsrsFormulas
from app.spaced_repetition.review_pace import LOOK_SECONDS, CardPace
from app.spaced_repetition.review_pace import USUAL as CARD_PACE
from app.spaced_repetition.scheduler import CardState

FIRST_GRADES = (0.24, 0.10, 0.50, 0.16)
"""Assumed ratings of a first review: shares of again, hard, good, easy."""


@dataclasses.dataclass(frozen=True, slots=True)
class StartedCard:
    """A started card, as the planner sees it.

    `stability` is in days, `difficulty` 1..10; `last` and `due` are study days as ordinals
    (date.toordinal). A card and its reverse share the `note`. `fresh` says that the card was added
    and never reviewed: to the learner it is a new card.
    """

    card: str
    stability: float
    difficulty: float
    last: int
    due: int
    note: str = ""
    fresh: bool = False


def never_graded(card: str, note: str, due: int, day: int, curve: FsrsFormulas) -> StartedCard:
    """Return an added card that was never reviewed, as seen on `day` (all days as ordinals).

    It counts as no better known than a card after a first “again”.
    """
    return StartedCard(card, *curve.begun(1), min(due - 1, day), due, note, fresh=True)


@dataclasses.dataclass(frozen=True, slots=True)
class ReviewGain:
    """The effect of reviewing a card today.

    `recall` is the retrievability (0..1) today, `after` the one expected on the exam day with the
    review, and `gain` the part of `after` that is due to the review.
    """

    recall: float
    after: float
    gain: float

    @property
    def seconds(self) -> float:
        """How long the review usually takes, with the time for a lapse included."""
        return LOOK_SECONDS * (2 - self.recall)

    @property
    def rate(self) -> float:
        """Gain per second: the order in which scarce minutes are spent."""
        return self.gain / self.seconds


def review_gain(begun: StartedCard, day: int, exam: int, curve: FsrsFormulas) -> ReviewGain:
    """Return what a review on `day` does for the retrievability on the day `exam`.

    The gain is R(day)·R(exam after a right answer) + (1 − R(day))·R(exam after a lapse and its
    relearning) − R(exam without the review). Right answers count as good.
    """
    since, left = max(0, day - begun.last), max(0, exam - day)
    trace = begun.stability, begun.difficulty
    recall = curve.recall(since, begun.stability)
    right = curve.recall(left, curve.stability_after_success(trace, recall))
    wrong = curve.recall(left, curve.stability_after_relearning(trace, recall))
    after = recall * right + (1 - recall) * wrong
    return ReviewGain(recall, after, after - curve.recall(since + left, begun.stability))


def loss_if_final_review(
    begun: StartedCard, today: ReviewGain, exam: int, curve: FsrsFormulas
) -> float:
    """Return what a card loses on the exam day if its final review is `today`.

    Compared with the last possible day, the one before the exam. Cards with the least to lose are
    reviewed first, so those that fade fastest come last.
    """
    return review_gain(begun, exam - 1, exam, curve).after - today.after


@functools.lru_cache(maxsize=1024)
def new_card_gain(left: int, curve: FsrsFormulas) -> float:
    """Return the retrievability expected of a new card, `left` days after its first day."""
    chances = (curve.recall(left, curve.begun(rating)[0]) for rating in range(1, 5))
    return sum(s * r for s, r in zip(FIRST_GRADES, chances, strict=True))


def before_exam(standing: CardState, exam_day: dt.date | None) -> CardState:
    """Return the card state with its due day moved to before the exam, if it is later.

    Whatever its interval, the card is due at the latest on the day before the exam, or tomorrow if
    that is later. Without a future exam day nothing changes.
    """
    if exam_day is None or standing.state != "review":
        return standing
    eve = exam_day - dt.timedelta(days=1)
    if eve < standing.last_day or standing.due_day <= eve:
        return standing
    tomorrow = standing.last_day + dt.timedelta(days=1)
    return dataclasses.replace(standing, due_day=max(eve, tomorrow))


_LAPSES = 1.125
FINAL_SECONDS = LOOK_SECONDS * _LAPSES
"""Seconds of a final review, of which one in eight is a lapse."""
SPREAD_DAYS = 60
"""New cards are spread over at most this many days, so that a far exam does not delay them."""
LEAST_GAIN = 0.01
"""A second final review that gains less than this is left out."""
AMPLE = 1.35
"""With this many times the minutes that all cards need, new cards need no even pace."""
_NEGLIGIBLE = 1e-6
_LONGEST = 2000  # days to search backward; no exam is that far ahead


@dataclasses.dataclass(frozen=True, slots=True)
class CardPlanInputs:
    """Inputs of a card plan: the study day and the exam as ordinals, and the time.

    `seconds` of each study day are for cards, of which `spent` are used today. `retention` is the
    desired retention (0..1). `habits` say which days have more minutes than others, and whether all
    minutes are to be used; `pace` is the learner's times. A simulation can fix its first day:
    `begins` is how many new course cards it starts, `adds` how many added ones, and `looks` which
    started cards it reviews.
    """

    day: int
    exam: int
    seconds: float
    retention: float = RETENTION
    spent: float = 0.0
    habits: StudyHabits = DEFAULT_HABITS
    pace: CardPace = CARD_PACE
    begins: int | None = None
    adds: int | None = None
    looks: frozenset[str] = frozenset()

    @property
    def final(self) -> float:
        """Seconds for one final review, with the time for lapses included."""
        return self.pace.look * _LAPSES

    def seconds_on(self, day: int) -> float:
        return self.seconds * self.habits.share_on(day, self.exam)

    @property
    def time(self) -> float:
        """Seconds left until the exam, today included."""
        return math.fsum(self.seconds_on(self.day + n) for n in range(self.left))

    def days_for(self, seconds: float) -> int:
        """Return how many of the last days are needed for these seconds; at least 1.

        >>> CardPlanInputs(0, 60, 900).days_for(356 * FINAL_SECONDS)
        5
        """
        days, held = 1, self.seconds_on(self.exam - 1)
        while held < seconds - _NEGLIGIBLE and days < _LONGEST:
            days += 1
            held += self.seconds_on(self.exam - days)
        return days

    def study_days(self, until: int) -> int:
        """Return how many days with minutes come before `until`, today included."""
        days = range(self.day, until)
        return sum(self.seconds_on(day) > 0 for day in days) if self.habits.off else len(days)

    @property
    def left(self) -> int:
        """Days left, with today and without the exam day; at least 1."""
        return max(1, self.exam - self.day)

    @property
    def room(self) -> float:
        """Seconds left of the study day."""
        return max(0.0, self.seconds_on(self.day) - self.spent)


@dataclasses.dataclass(frozen=True, slots=True)
class CardDayPlan:
    """The cards of one study day.

    `looks` are reviews of started cards in order, `fresh` is how many new cards follow them.
    `final` says that the final-review phase has begun, `short` that it has no time for every card,
    and `stopped` that no new card will be started although some are left. `seconds` is the expected
    time.
    """

    looks: tuple[StartedCard, ...]
    fresh: int
    final: bool = False
    short: bool = False
    stopped: bool = False
    seconds: float = 0.0


def learnable_cards(begun: int, unseen: int, asked: CardPlanInputs) -> int:
    """Return how many cards can be started by the exam and still get a final review."""
    time = asked.time + begun * asked.pace.first
    most = int(time / (asked.pace.first + asked.final))
    return min(begun + unseen, max(begun, most))


def new_cards_per_day(begun: int, unseen: int, asked: CardPlanInputs) -> int:
    """Return how many new cards to start today, so that the rest fits before the exam.

    Evenly over the days before the final-review phase; never more than the time holds.
    """
    window = asked.days_for(learnable_cards(begun, unseen, asked) * asked.final)
    days = max(1, min(asked.study_days(asked.exam - window), SPREAD_DAYS))
    return min(math.ceil(unseen / days), int(asked.room // asked.pace.first))


@dataclasses.dataclass(frozen=True, slots=True)
class PlanOutline:
    """The plan in short, computed from counts alone.

    `fresh` new cards a day until the day before `final`, the ordinal (maybe past) from which every
    started card gets its final review; `begun` cards are started by then. `until` is the last day
    with a new card. `short` says that the minutes do not hold every card, so only those with the
    most gain get a final review.
    """

    fresh: int
    final: int
    begun: int
    until: int = 0
    short: bool = False


def outline_plan(begun: int, unseen: int, asked: CardPlanInputs) -> PlanOutline:
    """Return the outline of the plan if no day is missed."""
    own = asked.days_for(begun * asked.final)
    ahead = asked.exam - asked.day
    short = time_coverage(begun, unseen, asked) < 1
    if ahead <= own:
        return PlanOutline(0, asked.exam - own, begun, short=short)
    most = learnable_cards(begun, unseen, asked)
    final = asked.exam - min(asked.days_for(most * asked.final), ahead - 1)
    return PlanOutline(new_cards_per_day(begun, unseen, asked), final, most, final - 1, short)


def reconcile_outline(
    said: PlanOutline, plan: CardDayPlan, unseen: int, asked: CardPlanInputs
) -> PlanOutline:
    """Return the outline adjusted to what today's plan does."""
    if plan.final:
        return dataclasses.replace(said, fresh=0, final=min(said.final, asked.day))
    fresh, final = plan.fresh or said.fresh, max(said.final, asked.day + 1)
    until = final - 1
    if asked.habits.fill and fresh:
        until = min(until, asked.day + math.ceil(unseen / fresh) - 1)
    return dataclasses.replace(said, fresh=fresh, final=final, until=until)


def again_words(*, short: bool) -> str:
    """Return which cards get a final review, in words: not all if time is short."""
    if short:
        return "the cards you started that gain most from another review"
    return "every card you started once more"


def time_coverage(begun: int, unseen: int, asked: CardPlanInputs) -> float:
    """Return the time left divided by the time needed to start and review all cards.

    Below 1 the minutes do not hold every card.
    """
    need = unseen * (asked.pace.first + asked.final) + begun * asked.final
    return asked.time / need if need else math.inf


def day_plan(
    begun: Sequence[StartedCard], unseen: int, asked: CardPlanInputs, curve: FsrsFormulas
) -> CardDayPlan:
    """Return the plan of a study day, from the cards started before it.

    Cards first seen on the day itself do not count as started. The order of `begun` does not
    matter.
    """
    if not asked.seconds_on(asked.day):
        return CardDayPlan((), 0)
    ranked = [(c, review_gain(c, asked.day, asked.exam, curve)) for c in begun]
    start = asked.exam - asked.days_for(len(begun) * asked.final)
    enough = time_coverage(sum(c.last < start for c in begun), unseen, asked)
    if enough < 1:
        return _plan_scarce_day(ranked, unseen, (asked, start), curve)
    if start <= asked.day:
        return _plan_final_day(ranked, unseen, (asked, start), curve)
    return _plan_usual_day(ranked, unseen, (asked, asked.habits.fill and enough >= AMPLE))


def _plan_usual_day(
    ranked: list[tuple[StartedCard, ReviewGain]], unseen: int, when: tuple[CardPlanInputs, bool]
) -> CardDayPlan:
    """Plan a day before the final-review phase; `when` is the inputs and whether time is ample."""
    asked, ample = when
    notes: set[str] = set()
    due = _sort_by_rate([(c, w) for c, w in ranked if c.due <= asked.day])
    owed = 0 if ample else new_cards_per_day(len(ranked), unseen, asked)
    looks, spent = _fit_into_time(due, asked.room - owed * asked.pace.first, notes, asked)
    most = int((asked.room - spent) // asked.pace.first)
    fresh = min(unseen, most) if ample else owed
    spent += fresh * asked.pace.first
    more: tuple[StartedCard, ...] = ()
    if asked.habits.fill:
        taken = {card.card for card in looks}
        rest = [(c, w) for c, w in ranked if c.card not in taken and w.gain > 0]
        more, time = _fit_into_time(_sort_by_rate(rest), asked.room - spent, notes, asked)
        spent += time
    stopped = bool(unseen) and not fresh
    return CardDayPlan((*looks, *more), fresh, stopped=stopped, seconds=spent)


def _plan_scarce_day(
    ranked: list[tuple[StartedCard, ReviewGain]],
    unseen: int,
    when: tuple[CardPlanInputs, int],
    curve: FsrsFormulas,
) -> CardDayPlan:
    """Plan a day when the minutes left do not hold every card.

    New cards come first until the final reviews that gain more per second than a new card would
    fill the days left; then those with the most gain per second. `when` is the inputs, and the day
    on which the final-review phase begins if no more cards are started.
    """
    asked, start = when
    least = _new_rate(1, asked, curve)
    late = ((c, review_gain(c, asked.exam - 1, asked.exam, curve)) for c, _ in ranked)
    closing = math.fsum(_look_seconds(c, w, asked) for c, w in late if w.rate > least)
    final = asked.exam - asked.day <= asked.days_for(closing)
    final = final or (not unseen and start <= asked.day)
    rate = _new_rate(asked.exam - asked.day, asked, curve)
    pool = _sort_by_rate(ranked)
    better = sum(w.rate > rate for _, w in pool) if final else 0
    may_wait = final or asked.habits.fill
    parts = (
        pool[:better],
        [(c, w) for c, w in pool[better:] if may_wait or c.due <= asked.day],
    )
    made = _split_around_new(parts, unseen, asked, set() if asked.left > 1 else None)
    return dataclasses.replace(made, final=final, short=final)


def plain_day(
    begun: Sequence[StartedCard], unseen: int, asked: CardPlanInputs, curve: FsrsFormulas
) -> CardDayPlan:
    """Return the study day as it would be without an exam: due cards, then new ones.

    The lowest retrievability first, in the same time.
    """
    due = [c for c in begun if c.due <= asked.day]
    due.sort(key=lambda c: (-(asked.day - c.last) / c.stability, c.card))
    ranked = ((c, review_gain(c, asked.day, asked.day, curve)) for c in due)
    looks, spent = _fit_into_time(ranked, asked.room, set(), asked)
    time = max(0.0, asked.room - spent)
    fresh = min(unseen, int(time // asked.pace.first))
    return CardDayPlan(looks, fresh, seconds=spent + fresh * asked.pace.first)


def _plan_final_day(
    ranked: list[tuple[StartedCard, ReviewGain]],
    unseen: int,
    when: tuple[CardPlanInputs, int],
    curve: FsrsFormulas,
) -> CardDayPlan:
    """Plan a day of the final-review phase: final reviews, and what still pays after them.

    `when` is the inputs, and the day on which the phase began.
    """
    asked, start = when
    last = [(c, w) for c, w in ranked if c.last < start]
    least = 0.0 if asked.habits.fill else LEAST_GAIN
    pool = _sort_by_rate((c, w) for c, w in ranked if start <= c.last and w.gain > least)
    # On the very last day a card and its reverse cannot be separated.
    notes: set[str] | None = set() if asked.left > 1 else None
    rate = _new_rate(asked.exam - asked.day, asked, curve)
    better = sum(w.rate > rate for _, w in pool)
    looks, spent = _fit_into_time(_sort_by_loss(last, asked, curve), asked.room, notes, asked)
    now = dataclasses.replace(asked, spent=asked.spent + spent)
    more = _split_around_new((pool[:better], pool[better:]), unseen, now, notes)
    return dataclasses.replace(
        more, looks=(*looks, *more.looks), final=True, seconds=spent + more.seconds
    )


_Ranked = Sequence[tuple[StartedCard, ReviewGain]]


def _split_around_new(
    pool: tuple[_Ranked, _Ranked],
    unseen: int,
    asked: CardPlanInputs,
    notes: set[str] | None,
) -> CardDayPlan:
    """Plan reviews that gain more than a new card, then new cards, then the other reviews."""
    looks, spent = _fit_into_time(pool[0], asked.room, notes, asked)
    room = int((asked.room - spent) // asked.pace.first)
    fresh = min(unseen, room) if asked.exam > asked.day else 0
    spent += fresh * asked.pace.first
    rest, time = _fit_into_time(pool[1], asked.room - spent, notes, asked)
    stopped = bool(unseen) and not fresh
    return CardDayPlan((*looks, *rest), fresh, stopped=stopped, seconds=spent + time)


def _new_rate(left: int, asked: CardPlanInputs, curve: FsrsFormulas) -> float:
    """Return the gain of a new card per usual second, comparable with `ReviewGain.rate`."""
    return new_card_gain(left, curve) / asked.pace.first * asked.pace.scale


def _sort_by_loss(
    last: list[tuple[StartedCard, ReviewGain]], asked: CardPlanInputs, curve: FsrsFormulas
) -> list[tuple[StartedCard, ReviewGain]]:
    lost = {c.card: loss_if_final_review(c, w, asked.exam, curve) for c, w in last}
    return sorted(last, key=lambda item: (lost[item[0].card], item[0].card))


def _sort_by_rate(
    ranked: Iterable[tuple[StartedCard, ReviewGain]],
) -> list[tuple[StartedCard, ReviewGain]]:
    return sorted(ranked, key=lambda item: (-item[1].rate, item[0].card))


def _fit_into_time(
    ranked: Iterable[tuple[StartedCard, ReviewGain]],
    seconds: float,
    notes: set[str] | None,
    asked: CardPlanInputs,
) -> tuple[tuple[StartedCard, ...], float]:
    """Return the first cards that fit into the time, without those whose note is already taken."""
    taken: list[StartedCard] = []
    spent = 0.0
    for card, value in ranked:
        if notes is not None and card.note in notes:
            continue
        time = _look_seconds(card, value, asked)
        if spent + time > seconds:
            break
        taken.append(card)
        spent += time
        if notes is not None and card.note:
            notes.add(card.note)
    return tuple(taken), spent


def _look_seconds(card: StartedCard, value: ReviewGain, asked: CardPlanInputs) -> float:
    """Return how long this learner takes for a review; the first one of a card takes longer."""
    return asked.pace.first if card.fresh else value.seconds * asked.pace.scale


@dataclasses.dataclass(frozen=True, slots=True)
class CardsLeft:
    """The cards left in the review queue for a study day.

    `due` are due now, of which `learning` are in their steps; `waiting` are in steps too and due
    later in the day. `fresh` are new and will be started, of which `added` are added cards. `over`
    is the backlog: due, but the plan has better use for the minutes; they are in no other count.
    The plan reviews `passed` of them on no day before the exam. `final` says that the due cards get
    their final review before an exam, whether they are due by interval or not.
    """

    due: int = 0
    waiting: int = 0
    fresh: int = 0
    over: int = 0
    passed: int = 0
    final: bool = False
    learning: int = 0
    added: int = 0
    pace: CardPace = CARD_PACE

    @property
    def reviews(self) -> int:
        """Due cards past their learning steps, or in final review."""
        return self.due - self.learning

    @property
    def steps(self) -> int:
        """Cards in their learning steps, due or waiting."""
        return self.learning + self.waiting

    @property
    def returning(self) -> int:
        """All cards left except the new ones."""
        return self.due + self.waiting

    @property
    def cards(self) -> int:
        """All cards left, as every page counts them."""
        return self.returning + self.fresh

    @property
    def seconds(self) -> float:
        """Expected time: 11.25 s for a review and 60 s for a new card at the usual pace.

        >>> CardsLeft(due=16, waiting=0, fresh=2).seconds
        300.0
        """
        return self.returning * FINAL_SECONDS * self.pace.scale + self.fresh * self.pace.first
