"""How much any schedule of cards could reach: a bound for `benchmarks.recall`.

Cards are independent of each other but for the minutes of each day. So a price for
the seconds of each day takes them apart: whoever pays for each look what its seconds
cost on that day, and gets the recall on the exam day, is best served card by card, by
a dynamic program over the days. What all cards so gain, with the price of all seconds
that there are, is never less than what any schedule within the minutes can reach,
whatever the prices (a Lagrangian relaxation). Prices are searched that make it small.

The bound knows what no scheduler can: how the learner really forgets, and how hard
each card is. Only the luck of each look stays open. Stability and difficulty lie on a
grid, and between its points values are interpolated; for three learners, a grid of
more than twice as many points said 0.0 to 0.2 points less.

Run: python -m benchmarks.bound [--quick]. It studies the first learners of each row of
`benchmarks.recall` by the plan, and bounds what they could reach. Beside it stand the
last three days with the minutes of all: they keep to no daily minutes, so the bound
does not hold for them.
"""

import bisect
import concurrent.futures
import dataclasses
import math
import sys
from collections.abc import Iterable, Sequence
from operator import itemgetter, mul
from typing import Any

from app.spaced_repetition.fsrs import FsrsFormulas, Trace
from app.spaced_repetition.review_pace import LOOK_SECONDS, NEW_SECONDS, card_seconds
from app.study_plan.card_plan import FIRST_GRADES, day_plan
from benchmarks.recall import (
    CRAMMED,
    DAYS,
    MINUTES,
    PASSED,
    PROCESSES,
    START,
    Truth,
    crammed_day,
    learner_of,
    mean_of,
    study,
)

STABILITIES = tuple(0.05 * 1.5**n for n in range(25))
DIFFICULTIES = (1.0, 4.0, 7.0, 10.0)
LEARNERS, QUICK = {14: 20, 30: 20, 60: 5}, 2
"""How many learners of a row: what they take grows with the square of the days."""
COLUMNS = (
    "the plan",
    "no schedule more than",
    "the one less the other",
    "last three days only",
)
ROUNDS = 25
PRICES = tuple(1e-4 * 1.5**n for n in range(14))
"""Recall of cards per second: from plenty of time to very little."""
_FIRST_AIM, _SHORTER = 0.02, 0.9  # how far below the best a step aims, and the next


@dataclasses.dataclass(frozen=True, slots=True)
class Card:
    """A card: begun `ago` days before the first day with a trace, or new with None.

    `ease` is how much longer than usual it is kept when it is new.
    """

    ease: float = 1.0
    trace: Trace | None = None
    ago: int = 0


@dataclasses.dataclass(frozen=True, slots=True)
class _First:
    """What the first look at a card costs on each day and where it leads on the grid.

    `without` is the recall on the exam day if there is none.
    """

    without: float
    on: tuple[tuple[float, tuple[tuple[int, float], ...]], ...]


class _Look:
    """A look at every point of the grid so many days after the last one."""

    __slots__ = ("points", "seconds", "weights")

    def __init__(self, curve: FsrsFormulas, days: int) -> None:
        self.seconds: list[float] = []
        self.points: list[Any] = []
        self.weights: list[tuple[float, ...]] = []
        for trace in GRID:
            seconds, mixed = looked(curve, trace, days)
            self.seconds.append(seconds)
            self.points.append(itemgetter(*mixed))
            self.weights.append(tuple(mixed.values()))


GRID: tuple[Trace, ...] = tuple((s, d) for s in STABILITIES for d in DIFFICULTIES)
_LOGS = tuple(math.log(s) for s in STABILITIES)


def looked(curve: FsrsFormulas, trace: Trace, days: int) -> tuple[float, dict[int, float]]:
    """What a look costs in seconds, and where on the grid it leads."""
    recall = curve.recall(days, trace[0])
    ways = [(recall * part, curve.known(trace, recall, r)) for r, part in PASSED]
    ways.append((1 - recall, curve.lapsed(trace, recall)))
    return LOOK_SECONDS * (2 - recall), mixed(ways)


def mixed(ways: Iterable[tuple[float, Trace]]) -> dict[int, float]:
    """Traces with their chances as points of the grid with their weights."""
    found: dict[int, float] = {}
    for chance, (stability, difficulty) in ways:
        low, share = _between(_LOGS, math.log(stability))
        easy, part = _between(DIFFICULTIES, difficulty)
        for step, by in ((0, 1 - share), (1, share)):
            for more, times in ((0, 1 - part), (1, part)):
                point = (low + step) * len(DIFFICULTIES) + easy + more
                found[point] = found.get(point, 0.0) + chance * by * times
    return found


def _between(values: Sequence[float], value: float) -> tuple[int, float]:
    """The place below a value, and its share of the way to the next."""
    place = min(max(bisect.bisect_right(values, value) - 1, 0), len(values) - 2)
    share = (value - values[place]) / (values[place + 1] - values[place])
    return place, min(max(share, 0.0), 1.0)


class Learner:
    """The cards of a learner who really forgets by `curve`, `days` before the exam."""

    def __init__(self, curve: FsrsFormulas, cards: Sequence[Card], days: int) -> None:
        self.cards, self.days = len(cards), days
        self._looks = [_Look(curve, n) for n in range(1, days)]
        # The recall on the exam day, so many days after the last answer.
        self._known = [[curve.recall(n, s) for s, _ in GRID] for n in range(days + 1)]
        self._first = [_first(curve, card, days) for card in cards]

    def value(self, prices: Sequence[float]) -> tuple[float, list[float]]:
        """What all cards gain less what they pay, and the seconds of each day."""
        values, choices = self._values(prices)
        flow = [[0.0] * len(GRID) for _ in prices]
        used = [0.0] * self.days
        total = 0.0
        for first in self._first:
            best, chosen = first.without, -1
            for day, (seconds, ways) in enumerate(first.on):
                after = values[day]
                gain = sum(after[point] * w for point, w in ways) - prices[day] * seconds
                if gain > best:
                    best, chosen = gain, day
            total += best
            if chosen >= 0:
                seconds, ways = first.on[chosen]
                used[chosen] += seconds
                for point, weight in ways:
                    flow[chosen][point] += weight
        self._spend(flow, choices, used)
        return total, used

    def _values(self, prices: Sequence[float]) -> tuple[list[list[float]], list[list[int]]]:
        """What a card is worth after an answer on each day, and its best next day."""
        values: list[list[float]] = [[] for _ in prices]
        choices: list[list[int]] = [[] for _ in prices]
        for last in reversed(range(self.days)):
            best, choice = list(self._known[self.days - last]), [-1] * len(GRID)
            for day in range(last + 1, self.days):
                look, after, price = (
                    self._looks[day - last - 1],
                    values[day],
                    prices[day],
                )
                for point, take in enumerate(look.points):
                    gain = sum(map(mul, take(after), look.weights[point]))
                    gain -= price * look.seconds[point]
                    if gain > best[point]:
                        best[point], choice[point] = gain, day
            values[last], choices[last] = best, choice
        return values, choices

    def _spend(self, flow: list[list[float]], choices: list[list[int]], used: list[float]) -> None:
        """Follow the cards day by day, and add up the seconds that they take."""
        for last, here in enumerate(flow):
            for point, amount in enumerate(here):
                day = choices[last][point]
                if not amount or day < 0:
                    continue
                look = self._looks[day - last - 1]
                used[day] += amount * look.seconds[point]
                targets = look.points[point](range(len(GRID)))
                for target, weight in zip(targets, look.weights[point], strict=True):
                    flow[day][target] += amount * weight


def _first(curve: FsrsFormulas, card: Card, days: int) -> _First:
    if card.trace is None:
        traces = [curve.begun(rating) for rating in range(1, len(FIRST_GRADES) + 1)]
        ways = zip(FIRST_GRADES, traces, strict=True)
        begun = mixed((share, (s * card.ease, d)) for share, (s, d) in ways)
        return _First(0.0, ((NEW_SECONDS, tuple(begun.items())),) * days)
    on = (looked(curve, card.trace, card.ago + day) for day in range(days))
    made = tuple((seconds, tuple(ways.items())) for seconds, ways in on)
    return _First(curve.recall(card.ago + days, card.trace[0]), made)


def bound(learner: Learner, seconds: float, rounds: int = ROUNDS) -> float:
    """The recall (0..1) that no schedule surpasses in `seconds` a day.

    First the best price that is the same on all days, then a walk downhill from it:
    a day on which too much would be done gets dearer, the others cheaper.
    """
    found = [_at(learner, seconds, [price] * learner.days) for price in PRICES]
    best, _, now = min(found)
    below = _FIRST_AIM
    for _ in range(rounds):
        here, slope, _ = _at(learner, seconds, now)
        below *= 1 if here < best - below / 2 else _SHORTER
        best = min(best, here)
        step = (here - best + below) / (math.fsum(d * d for d in slope) or 1.0)
        now = [max(0.0, p - step * d) for p, d in zip(now, slope, strict=True)]
    return best


def _at(
    learner: Learner, seconds: float, prices: list[float]
) -> tuple[float, list[float], list[float]]:
    """The bound at these prices, how it rises with each of them, and the prices."""
    total, used = learner.value(prices)
    recall = (total + seconds * math.fsum(prices)) / learner.cards
    return recall, [(seconds - spent) / learner.cards for spent in used], prices


def one(days: int, minutes: int, number: int) -> tuple[float, ...]:
    """A learner of the table: by the plan, at most, and in the last three days."""
    seed, deck = learner_of(days, minutes, number)
    seconds = card_seconds(minutes)
    truth = Truth(seed, deck)
    cards = [Card(ease, *known) for ease, known in truth.cards_at(START)]
    packed = seconds * days / CRAMMED
    return (
        study(seed, deck, days, seconds, day_plan).recall,
        bound(Learner(truth.curve, cards, days), seconds),
        study(seed, deck, days, packed, crammed_day, skip=days - CRAMMED).recall,
    )


def row(days: int, minutes: int, count: int, pool: concurrent.futures.Executor) -> str:
    """A row of the table, in percent of all cards."""
    jobs = [pool.submit(one, days, minutes, n) for n in range(count)]
    told = [[value * 100 for value in job.result()] for job in jobs]
    plan, best, crammed = zip(*told, strict=True)
    missing = [b - p for b, p in zip(best, plan, strict=True)]
    cells = [plan, best, missing, crammed]
    said = [f"{mean:.1f} ± {error:.1f}" for mean, error in map(mean_of, map(list, cells))]
    return f"| {days} | {minutes} | {' | '.join(said)} |"


def main() -> int:
    quick = "--quick" in sys.argv
    print(f"| days | minutes | {' | '.join(COLUMNS)} |")
    print("|---" * (len(COLUMNS) + 2) + "|")
    with concurrent.futures.ProcessPoolExecutor(PROCESSES) as pool:
        for days in DAYS[:1] if quick else DAYS:
            for minutes in MINUTES[:1] if quick else MINUTES:
                count = QUICK if quick else LEARNERS[days]
                print(row(days, minutes, count, pool), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
