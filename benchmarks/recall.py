"""What the plan toward an exam is worth: simulated learners, six ways to study.

Run: python -m benchmarks.recall [--quick]. Every learner forgets by FSRS-6 with
parameters of their own, which the scheduler does not know: each of the 21 is off by a
random factor (standard deviation a quarter; an eighth for the two exponents w5 and
w20), and each card is easier or harder by another. Decks are random too: 100 to 400
cards, up to half of them begun some time ago. The seeds are fixed; the same learner
meets the same luck, card by card and look by look, under each way of studying.

Ways: plain intervals as without an exam day, in the daily minutes; the same, with the
minutes left spent on the most faded cards; everything in the last three days, with
the minutes of all days; the plan; the plan told to use all minutes; and the plan given
only as many minutes as plain intervals used.
"""

import concurrent.futures
import dataclasses
import math
import os
import random
import statistics
import sys
from collections.abc import Iterable, Iterator, Sequence

from app.accounts.current_learner import StudyHabits
from app.spaced_repetition.fsrs import FsrsFormulas, Trace, fsrs_formulas
from app.spaced_repetition.review_pace import NEW_SECONDS, card_seconds
from app.spaced_repetition.scheduler import SchedulerPolicy
from app.study_plan.card_plan import (
    FIRST_GRADES,
    CardDayPlan,
    CardPlanInputs,
    StartedCard,
    day_plan,
    plain_day,
    review_gain,
)
from app.study_plan.forecast import DaySimulation, Rule

LEARNERS, QUICK = 80, 4
DAYS, MINUTES = (14, 30, 60), (10, 20, 40)
WAYS = (
    "plain",
    "plain, all minutes",
    "last three days",
    "plan",
    "plan, all minutes",
    "plan, minutes of plain",
)
CRAMMED = 3
START = 740_000
PROCESSES = max(1, (os.cpu_count() or 1) // 2)
_EXPONENTS = {5, 20}
PASSED = ((2, 0.15), (3, 0.70), (4, 0.15))
"""How a look goes at a card that is known: shares of hard, good and easy."""


@dataclasses.dataclass(frozen=True, slots=True)
class Deck:
    """What a learner begins with: cards begun as the scheduler sees them, and new."""

    begun: tuple[StartedCard, ...]
    unseen: int


class Truth:
    """How a learner really forgets; grades are drawn from it."""

    def __init__(self, seed: str, deck: Deck) -> None:
        dice = random.Random(seed)
        self._seed = seed
        self.curve = FsrsFormulas(SchedulerPolicy(parameters=own_parameters(dice)))
        self._ease = [dice.lognormvariate(0, 0.3) for _ in range(len(deck.begun) + deck.unseen)]
        self._cards: dict[int, tuple[Trace, int]] = {
            place: ((card.stability * self._ease[place], card.difficulty), card.last)
            for place, card in enumerate(deck.begun)
        }
        self._turns: dict[int, int] = {}

    def begin(self, card: int, day: int) -> int:
        rating = _drawn(self._luck(card), enumerate(FIRST_GRADES, 1))
        stability, difficulty = self.curve.begun(rating)
        self._cards[card] = (stability * self._ease[card], difficulty), day
        return rating

    def look(self, card: int, day: int, recall: float) -> int:  # noqa: ARG002
        trace, last = self._cards[card]
        chance = self.curve.recall(day - last, trace[0])
        if self._luck(card) >= chance:
            self._cards[card] = self.curve.lapsed(trace, chance), day
            return 1
        rating = _drawn(self._luck(card), PASSED)
        self._cards[card] = self.curve.known(trace, chance, rating), day
        return rating

    @property
    def memories(self) -> Iterator[tuple[Trace, int]]:
        """The trace of every card that was begun with its last day, in their order."""
        return (self._cards[place] for place in sorted(self._cards))

    def cards_at(self, day: int) -> Iterator[tuple[float, tuple[Trace, int] | tuple[()]]]:
        """The ease of every card, and of those begun trace and days since then."""
        for place, ease in enumerate(self._ease):
            known = self._cards.get(place)
            yield ease, (known[0], day - known[1]) if known else ()

    def recall(self, exam: int) -> float:
        """The true recall on the exam day, cards never begun counted as 0."""
        known = (self.curve.recall(exam - last, trace[0]) for trace, last in self._cards.values())
        return sum(known) / len(self._ease)

    def _luck(self, card: int) -> float:
        turn = self._turns[card] = self._turns.get(card, 0) + 1
        return random.Random(f"{self._seed}:{card}:{turn}").random()


def _drawn(luck: float, grades: Iterable[tuple[int, float]]) -> int:
    """The grade that a number from 0 to 1 stands for, by the shares of grades."""
    rating, share = 0, 0.0
    for rating, part in grades:  # noqa: B007 - the last one where nothing is left
        share += part
        if luck < share:
            break
    return rating


def own_parameters(dice: random.Random) -> tuple[float, ...]:
    return tuple(
        value * dice.lognormvariate(0, 0.125 if place in _EXPONENTS else 0.25)
        for place, value in enumerate(SchedulerPolicy().parameters)
    )


def deck_of(seed: str) -> Deck:
    dice = random.Random(f"deck {seed}")
    count = dice.randint(100, 400)
    old = round(count * dice.uniform(0, 0.5))
    begun = []
    for number in range(old):
        stability = dice.lognormvariate(2, 1)
        last = START - dice.randint(1, 40)
        due = last + fsrs_formulas().interval(stability)
        difficulty = dice.uniform(1, 9)
        begun.append(StartedCard(f"c{number:03}", stability, difficulty, last, due))
    return Deck(tuple(begun), count - old)


def filled_day(
    begun: Sequence[StartedCard], unseen: int, asked: CardPlanInputs, curve: FsrsFormulas
) -> CardDayPlan:
    """Plain intervals; what is left of the minutes goes to the most faded."""
    plan = plain_day(begun, unseen, asked, curve)
    taken = {card.card for card in plan.looks}
    rest = [c for c in begun if c.card not in taken and c.last < asked.day]
    rest.sort(key=lambda c: (-(asked.day - c.last) / c.stability, c.card))
    more = _while_time(rest, asked, curve, asked.seconds - plan.seconds)
    return dataclasses.replace(plan, looks=(*plan.looks, *more))


def all_minutes(
    begun: Sequence[StartedCard], unseen: int, asked: CardPlanInputs, curve: FsrsFormulas
) -> CardDayPlan:
    """The plan for a learner who wants no minute unused."""
    return day_plan(begun, unseen, dataclasses.replace(asked, habits=StudyHabits(fill=True)), curve)


def crammed_day(
    begun: Sequence[StartedCard], unseen: int, asked: CardPlanInputs, curve: FsrsFormulas
) -> CardDayPlan:
    """New cards first, then every card, the most faded first."""
    fresh = min(unseen, int(asked.seconds // NEW_SECONDS))
    rest = sorted(begun, key=lambda c: (-(asked.day - c.last) / c.stability, c.card))
    time = asked.seconds - fresh * NEW_SECONDS
    return CardDayPlan(_while_time(rest, asked, curve, time), fresh)


def _while_time(
    cards: Sequence[StartedCard], asked: CardPlanInputs, curve: FsrsFormulas, seconds: float
) -> tuple[StartedCard, ...]:
    taken = []
    for card in cards:
        seconds -= review_gain(card, asked.day, asked.day, curve).seconds
        if seconds < 0:
            break
        taken.append(card)
    return tuple(taken)


@dataclasses.dataclass(frozen=True, slots=True)
class Outcome:
    """What came of it: recall on the day (0..1), seconds a day over all days."""

    recall: float
    seconds: float


def study(seed: str, deck: Deck, days: int, seconds: float, rule: Rule, skip: int = 0) -> Outcome:
    """One learner under one rule, `seconds` on each day but the first `skip`."""
    _, truth, spent = followed(seed, deck, days, seconds, rule, skip)
    return Outcome(truth.recall(START + days), spent / days)


def followed(
    seed: str, deck: Deck, days: int, seconds: float, rule: Rule, skip: int = 0
) -> tuple[DaySimulation, Truth, float]:
    """What the scheduler believes in the end, what is true, and the seconds spent."""
    truth = Truth(seed, deck)
    run = DaySimulation(deck.begun, deck.unseen, fsrs_formulas(), truth)
    exam = START + days
    spent = sum(
        run.day(CardPlanInputs(day, exam, seconds), rule).seconds
        for day in range(START + skip, exam)
    )
    return run, truth, spent


def learner_of(days: int, minutes: int, number: int) -> tuple[str, Deck]:
    """The seed of a learner of a scenario, and what they begin with."""
    seed = f"{days} days, {minutes} minutes, learner {number}"
    return seed, deck_of(seed)


def learner(days: int, minutes: int, number: int) -> list[Outcome]:
    """One learner in one scenario, all ways of studying."""
    seed, deck = learner_of(days, minutes, number)
    seconds = card_seconds(minutes)
    plain = study(seed, deck, days, seconds, plain_day)
    packed = seconds * days / CRAMMED
    return [
        plain,
        study(seed, deck, days, seconds, filled_day),
        study(seed, deck, days, packed, crammed_day, skip=days - CRAMMED),
        study(seed, deck, days, seconds, day_plan),
        study(seed, deck, days, seconds, all_minutes),
        study(seed, deck, days, plain.seconds, day_plan),
    ]


def cell(outcomes: list[Outcome]) -> str:
    mean, error = mean_of([o.recall * 100 for o in outcomes])
    minutes = statistics.fmean(o.seconds for o in outcomes) / 60
    return f"{mean:.1f} ± {error:.1f} ({minutes:.1f})"


def mean_of(values: list[float]) -> tuple[float, float]:
    """Mean and standard error."""
    error = statistics.stdev(values) / math.sqrt(len(values))
    return statistics.fmean(values), error


def row(days: int, minutes: int, count: int, pool: concurrent.futures.Executor) -> str:
    jobs = [pool.submit(learner, days, minutes, n) for n in range(count)]
    ways = list(zip(*(job.result() for job in jobs), strict=True))
    gained = [
        (plan.recall - plain.recall) * 100 for plan, plain in zip(ways[-1], ways[0], strict=True)
    ]
    mean, error = mean_of(gained)
    cells = " | ".join(cell(list(way)) for way in ways)
    return f"| {days} | {minutes} | {cells} | {mean:+.1f} ± {error:.1f} |"


def main() -> int:
    quick = "--quick" in sys.argv
    count = QUICK if quick else LEARNERS
    print(f"| days | minutes | {' | '.join(WAYS)} | the last less plain |")
    print("|---" * (len(WAYS) + 3) + "|")
    with concurrent.futures.ProcessPoolExecutor(PROCESSES) as pool:
        for days in DAYS[:1] if quick else DAYS:
            for minutes in MINUTES[:1] if quick else MINUTES:
                print(row(days, minutes, count, pool), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
