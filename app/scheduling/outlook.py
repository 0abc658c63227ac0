"""The days until the exam, run forward: cards and minutes a day, recall at the end."""

import dataclasses
import itertools
import math
from collections.abc import Callable, Collection, Sequence
from typing import Protocol

from app.scheduling.card_pace import NEW_SECONDS
from app.scheduling.curve import FsrsFormulas, Trace
from app.scheduling.exam import FIRST_GRADES, StartedCard
from app.scheduling.exam_plan import CardDayPlan, CardPlanInputs, day_plan

HORIZON = 180
"""Further ahead than this nothing is run: too much will change before."""
WHOLE = 400
"""So many cards are all run; of more than these an even sample, as a rule of thumb
to within a card or two in a hundred, in minutes scaled alike."""
SAMPLE = 250
"""How many cards a sample has."""

_CRUMB = 1e-6
_PRIMES = (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53)
_STEPS = tuple(math.sqrt(prime) for prime in _PRIMES)

Rule = Callable[[Sequence[StartedCard], int, CardPlanInputs, FsrsFormulas], CardDayPlan]


@dataclasses.dataclass(frozen=True, slots=True)
class ForecastDay:
    """One study day to come: cards due, new ones, last looks, and the time.

    Of the new ones `added` are none of the course. `short` says that the last looks
    are not for every card. Of the time a new card takes `first` seconds.
    """

    day: int
    due: int
    fresh: int
    final: int
    seconds: float
    short: bool = False
    first: float = NEW_SECONDS
    added: int = 0

    @property
    def cards(self) -> int:
        """All cards of the day."""
        return self.due + self.fresh + self.final


@dataclasses.dataclass(frozen=True, slots=True)
class PlanForecast:
    """What comes of a rule: its days, and on the exam day the expected recall.

    `recall` is the mean (0..1) over all `cards`, those never begun counted as 0;
    `before` were begun before the first of the days. Of these `passed` are asked on
    none of them, and `passed_due` of the ones that are due on the first and wait.
    """

    days: tuple[ForecastDay, ...]
    recall: float
    before: int
    cards: int
    passed: int = 0
    passed_due: int = 0

    @property
    def begun(self) -> int:
        """How many cards are begun by the exam: what the days add up to."""
        return self.before + sum(day.fresh for day in self.days)

    @property
    def most(self) -> ForecastDay | None:
        """The longest day."""
        return max(self.days, key=lambda d: d.seconds, default=None)


class OutcomeModel(Protocol):
    """Who says how a look goes: 1 again, 2 hard, 3 good, 4 easy."""

    def begin(self, card: int, day: int) -> int:
        """The grade of a first look at the card of that place."""

    def look(self, card: int, day: int, recall: float) -> int:
        """The grade of a later look; `recall` is the chance that is believed in."""


class ExpectedOutcomes:
    """Outcomes as they are expected, without chance.

    The cards' first looks lie evenly over the chances, their second ones evenly and
    apart from the first, and so on (multiples of the square roots of primes): of
    looks with a chance of 0.9 nine in ten are known, whatever came before.
    """

    def __init__(self) -> None:
        self._looks: dict[int, int] = {}

    def begin(self, card: int, day: int) -> int:  # noqa: ARG002 - a day like any other
        """The grades of FIRST_GRADES in their shares."""
        place, share = self._place(card), 0.0
        for rating, part in enumerate(FIRST_GRADES, 1):
            share += part
            if place < share:
                return rating
        return len(FIRST_GRADES)

    def look(self, card: int, day: int, recall: float) -> int:  # noqa: ARG002
        """Good as often as the chance says, otherwise again."""
        return 3 if self._place(card) < recall else 1

    def _place(self, card: int) -> float:
        turn = self._looks.get(card, 0)
        self._looks[card] = turn + 1
        return (0.5 + (card + 1) * _STEPS[turn % len(_STEPS)]) % 1.0


class DaySimulation:
    """Cards carried forward day by day under a rule."""

    def __init__(
        self, begun: Sequence[StartedCard], unseen: int, curve: FsrsFormulas, fate: OutcomeModel
    ) -> None:
        self.cards = list(begun)
        self.unseen = unseen
        self.asked: set[str] = set()
        self._curve = curve
        self._fate = fate
        self._place = {card.card: place for place, card in enumerate(begun)}

    def day(self, asked: CardPlanInputs, rule: Rule, fresh: int | None = None) -> ForecastDay:
        """Study one day as the rule says; with so many `fresh` cards, where given."""
        plan = rule(self.cards, self.unseen, asked, self._curve)
        if fresh is not None:
            plan = dataclasses.replace(plan, fresh=min(fresh, self.unseen))
        seconds = sum(self._look(card, asked) for card in plan.looks)
        added = sum(card.fresh for card in plan.looks)
        looks = len(plan.looks) - added
        for _ in range(plan.fresh):
            self._begin(asked)
        return ForecastDay(
            day=asked.day,
            due=0 if plan.final else looks,
            fresh=plan.fresh + added,
            final=looks if plan.final else 0,
            seconds=seconds + plan.fresh * asked.pace.first,
            first=asked.pace.first,
            short=plan.short,
            added=added,
        )

    def recall(self, exam: int) -> float:
        """The recall (0..1) on the exam day, a mean over all cards."""
        whole = len(self.cards) + self.unseen
        known = (self._curve.recall(exam - c.last, c.stability) for c in self.cards)
        return sum(known) / whole if whole else 0.0

    def _look(self, card: StartedCard, asked: CardPlanInputs) -> float:
        curve, place = self._curve, self._place[card.card]
        chance = curve.recall(asked.day - card.last, card.stability)
        rating = self._fate.look(place, asked.day, chance)
        trace = card.stability, card.difficulty
        trace = curve.lapsed(trace, chance) if rating == 1 else curve.known(trace, chance, rating)
        self.cards[place] = self._card(card.card, trace, asked)
        self.asked.add(card.card)
        if card.fresh:
            return asked.pace.first
        return asked.pace.look * (2 if rating == 1 else 1)

    def _begin(self, asked: CardPlanInputs) -> None:
        place = len(self.cards)
        name = f"+{place}"
        trace = self._curve.begun(self._fate.begin(place, asked.day))
        self._place[name] = place
        self.cards.append(self._card(name, trace, asked))
        self.unseen -= 1

    def _card(self, name: str, trace: Trace, asked: CardPlanInputs) -> StartedCard:
        # In a run a card's reverse may come on the same day.
        due = asked.day + self._curve.interval(trace[0], asked.retention)
        return StartedCard(name, *trace, asked.day, due)


def simulate_until_exam(
    begun: Sequence[StartedCard],
    unseen: int,
    asked: CardPlanInputs,
    curve: FsrsFormulas,
    rule: Rule = day_plan,
    *,
    skipping: int = 0,
) -> PlanForecast:
    """Run a rule from today to the day before the exam, outcomes as expected.

    The first `skipping` days are left out. Raises ValueError beyond the HORIZON.
    """
    days = asked.exam - asked.day
    if days > HORIZON:
        raise ValueError(f"{days} days ahead; at most {HORIZON} are run")
    whole = len(begun) + unseen
    part = SAMPLE / whole if whole > WHOLE else 1.0
    cards = sorted(begun, key=lambda c: c.card)
    old = [card for card in cards if not card.fresh]
    new = [card for card in cards if card.fresh]
    of_old = _sample(old, round(len(old) * part))
    of_new = _sample(new, math.ceil(len(new) * part - _CRUMB))
    unseen_of_sample = math.ceil(unseen * part - _CRUMB)
    run = DaySimulation([*of_old, *of_new], unseen_of_sample, curve, ExpectedOutcomes())
    ahead = _ahead(run, asked, rule, part, skipping)
    fresh = (unseen, unseen_of_sample), (len(new), len(of_new))
    due = {c.card: c for c in old if c.due <= asked.day and c.card not in asked.looks}
    return PlanForecast(
        days=_scaled(ahead, fresh, asked, part),
        recall=run.recall(asked.exam),
        before=len(old),
        cards=whole,
        passed=_passed(old, of_old, run.asked | asked.looks),
        passed_due=_passed(due, [c for c in of_old if c.card in due], run.asked),
    )


def _ahead(
    run: DaySimulation, asked: CardPlanInputs, rule: Rule, part: float, skipping: int
) -> list[ForecastDay]:
    """The days of a run, of all cards or of a `part` of them."""
    first = _part_of(asked.begins, part)
    ahead: list[ForecastDay] = []
    saved = 0.0
    for day in range(asked.day + skipping, asked.exam):
        time = asked.seconds * part + saved
        over = asked.spent * part if day == asked.day else 0.0
        now = dataclasses.replace(asked, day=day, seconds=time, spent=over)
        done = run.day(now, rule, None if ahead else first)
        # What is too short for one card of a sample is there on the next day.
        over = max(0.0, now.room - done.seconds)
        saved = min(over, asked.pace.first) if part < 1 else 0.0
        ahead.append(done)
    return ahead


def _part_of(count: int | None, part: float) -> int | None:
    return None if count is None else math.floor(count * part)


def _passed(
    cards: Collection[object], sample: Sequence[StartedCard], asked: Collection[str]
) -> int:
    """How many of the cards are not `asked`, from what is done with those sampled."""
    never = sum(card.card not in asked for card in sample)
    return round(never * len(cards) / len(sample)) if sample else 0


def _begins(
    fresh: Sequence[int],
    unseen: tuple[int, int],
    today: tuple[int | None, int | None],
) -> list[int]:
    """The new cards of each day, from those of a sample: sums stay right to the card.

    `unseen` are those of all cards and of the sample, and so with `today`, which is
    as it was given.
    """
    whole, part = unseen
    given: list[int] = []
    if today[0] is not None and today[1] is not None:
        given, fresh = [today[0]], fresh[1:]
        whole, part = max(0, whole - today[0]), part - today[1]
    sums = [round(n * whole / part) if part else 0 for n in itertools.accumulate(fresh)]
    return given + [sum_ - before for before, sum_ in itertools.pairwise([0, *sums])]


def _sample(begun: Sequence[StartedCard], count: int) -> list[StartedCard]:
    return [begun[math.floor(n * len(begun) / count)] for n in range(count)]


def _scaled(
    ahead: Sequence[ForecastDay],
    fresh: tuple[tuple[int, int], tuple[int, int]],
    asked: CardPlanInputs,
    part: float,
) -> tuple[ForecastDay, ...]:
    """The days of a sample as those of all cards.

    `fresh` are the new cards of the course, all and of the sample, and those added.
    """
    begins = [day.fresh - day.added for day in ahead]
    if part < 1:
        today = asked.begins, _part_of(asked.begins, part)
        begins = _begins(begins, fresh[0], today)
    adds = [day.added for day in ahead]
    adds = _begins(adds, fresh[1], (asked.adds, sum(adds[:1])))
    return tuple(map(_of_all, ahead, begins, adds, itertools.repeat(part)))


def _of_all(day: ForecastDay, begun: int, added: int, part: float) -> ForecastDay:
    """A day of a sample as one of all cards: so many `begun` of the course, `added`."""
    fresh = begun + added
    looks = day.seconds - day.fresh * day.first
    return dataclasses.replace(
        day,
        due=round(day.due / part),
        fresh=fresh,
        added=added,
        final=round(day.final / part),
        seconds=looks / part + fresh * day.first,
    )
