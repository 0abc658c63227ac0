"""What no plan within the daily minutes can exceed, beside what the plan reaches.

Run: python -m benchmarks.recall_bound [--quick]. The learners are those of
`benchmarks.recall`. The bound is that of a scheduler that knows how a learner really
forgets and how hard each card is. It has to keep the minutes of each day on average
only. With a price on each second of each day the cards no longer compete, and the
best way through the days is found for each card alone, backward from the exam. For
any prices the value of all cards plus the price of all seconds is an upper bound
(Lagrangian relaxation); the prices are moved until it hardly falls any more.

A state is the day of the last look, the stability and the difficulty, on a grid with
linear interpolation between its points.
"""

import bisect
import concurrent.futures
import dataclasses
import itertools
import math
import sys
from collections.abc import Iterator, Sequence

from app.scheduling import card_seconds
from app.scheduling.card_pace import LOOK_SECONDS, NEW_SECONDS
from app.scheduling.curve import Curve, Trace
from app.scheduling.exam import FIRST_GRADES
from benchmarks.recall import (
    DAYS,
    MINUTES,
    PASSED,
    PROCESSES,
    START,
    Deck,
    Truth,
    all_minutes,
    deck_of,
    mean_of,
    study,
)

LEARNERS, QUICK = 10, 1
_WORK = 4000  # days times moves of the prices
_BLUR = 0.005  # of recall
_PULL, _SLOWER = 0.05, 100
_LOW, _HIGH, _POINTS = 0.05, 1500.0, 24
_STABILITIES = [
    _LOW * math.pow(_HIGH / _LOW, i / (_POINTS - 1)) for i in range(_POINTS)
]
_LOGARITHMS = [math.log(stability) for stability in _STABILITIES]
_DIFFICULTIES = (1.0, 4.0, 7.0, 10.0)
_GRID = tuple(itertools.product(_STABILITIES, _DIFFICULTIES))

Mix = tuple[tuple[int, float], ...]
"""Points of the grid, each with its weight; the weights sum to 1."""


@dataclasses.dataclass(frozen=True, slots=True)
class Move:
    """A look or a beginning: its seconds as expected, and where it leads."""

    seconds: float
    to: Mix


@dataclasses.dataclass(frozen=True, slots=True)
class Start:
    """A card at the outset: known on the exam day if left alone, and its first looks.

    `moves` holds one for each day.
    """

    alone: float
    moves: tuple[Move, ...]


class Bound:
    """The cards of one learner, from which prices make an upper bound."""

    def __init__(self, deck: Deck, truth: Truth, days: int, seconds: float) -> None:
        self._days, self._seconds, self._curve = days, seconds, truth.curve
        self._starts = tuple(_starts(deck, truth, days))
        self._moves = [
            [_look(truth.curve, trace, gap) for trace in _GRID] for gap in range(days)
        ]

    def least(self, rounds: int) -> float:
        """The lowest bound (0..1 of all cards) that so many moves of the prices find.

        The best price that is the same on all days comes first, then each day has its
        own: where it would take more seconds than there are it becomes dearer. The
        prices swing, so their moving mean is tried as well.
        """
        flat = (2.0**-step / NEW_SECONDS for step in range(-1, 9))
        prices = min(([price] * self._days for price in flat), key=self._value)
        lowest, mean = math.inf, prices
        for number in range(rounds):
            used = self._at(prices)[1]
            pull = _PULL / (1 + number / _SLOWER)
            prices = [
                price * math.exp(pull * max(-1.0, min(1.0, use / self._seconds - 1)))
                for price, use in zip(prices, used, strict=True)
            ]
            mean = [0.9 * m + 0.1 * p for m, p in zip(mean, prices, strict=True)]
            if number % 5 == 4:
                lowest = min(lowest, self._value(mean), self._value(prices))
        return lowest

    def _value(self, prices: Sequence[float]) -> float:
        return self._at(prices)[0]

    def _at(self, prices: Sequence[float]) -> tuple[float, list[float]]:
        """The bound at these prices, and the seconds that each day would take."""
        values, choices = self._backward(prices)
        weights = [[0.0] * len(_GRID) for _ in range(self._days)]
        used, total = [0.0] * self._days, 0.0
        for start in self._starts:
            worths = [
                _worth(move, values[day]) - prices[day] * move.seconds
                for day, move in enumerate(start.moves)
            ]
            best = max(start.alone, *worths)
            total += best
            for day, share in _shared(worths, start.alone, best):
                move = start.moves[day]
                used[day] += share * move.seconds
                for point, part in move.to:
                    weights[day][point] += share * part
        self._forward(weights, choices, used)
        total += self._seconds * sum(prices)
        return total / len(self._starts), used

    def _backward(
        self, prices: Sequence[float]
    ) -> tuple[list[list[float]], list[list[int]]]:
        """For each day of a last look and each point: its value, the gap to the next.

        A gap of 0 is no further look.
        """
        values: list[list[float]] = [[]] * self._days
        choices: list[list[int]] = [[]] * self._days
        for last in reversed(range(self._days)):
            best = [self._curve.recall(self._days - last, s) for s, _ in _GRID]
            gaps = [0] * len(_GRID)
            for gap in range(1, self._days - last):
                price, ahead = prices[last + gap], values[last + gap]
                for point, move in enumerate(self._moves[gap]):
                    value = _worth(move, ahead) - price * move.seconds
                    if value > best[point]:
                        best[point], gaps[point] = value, gap
            values[last], choices[last] = best, gaps
        return values, choices

    def _forward(
        self,
        weights: list[list[float]],
        choices: Sequence[Sequence[int]],
        used: list[float],
    ) -> None:
        """Add up the seconds of all later looks, day by day."""
        for day, points in enumerate(weights):
            for point, weight in enumerate(points):
                gap = choices[day][point]
                if not weight or not gap:
                    continue
                move = self._moves[gap][point]
                used[day + gap] += weight * move.seconds
                for to, share in move.to:
                    weights[day + gap][to] += weight * share


def _shared(
    worths: Sequence[float], alone: float, best: float
) -> Iterator[tuple[int, float]]:
    """The days of a first look that are about as good as the best, with their shares.

    Else all like cards would want the same day, and prices would swing.
    """
    ways = [math.exp((worth - best) / _BLUR) for worth in worths]
    whole = sum(ways) + math.exp((alone - best) / _BLUR)
    return ((day, way / whole) for day, way in enumerate(ways) if way > _BLUR * whole)


def _worth(move: Move, values: Sequence[float]) -> float:
    return sum([share * values[point] for point, share in move.to])


def _starts(deck: Deck, truth: Truth, days: int) -> Iterator[Start]:
    """Every card of a deck: those begun, then the new ones."""
    curve = truth.curve
    for card, ease in zip(deck.begun, truth.ease, strict=False):
        trace, since = (card.stability * ease, card.difficulty), START - card.last
        moves = tuple(_look(curve, trace, since + day) for day in range(days))
        yield Start(curve.recall(since + days, trace[0]), moves)
    firsts = [curve.begun(rating) for rating in range(1, len(FIRST_GRADES) + 1)]
    for ease in truth.ease[len(deck.begun) :]:
        ways = [
            (share, (stability * ease, difficulty))
            for share, (stability, difficulty) in zip(FIRST_GRADES, firsts, strict=True)
        ]
        yield Start(0.0, (Move(NEW_SECONDS, _mixed(ways)),) * days)


def _look(curve: Curve, trace: Trace, gap: int) -> Move:
    """A look at a card after `gap` days."""
    chance = curve.recall(gap, trace[0])
    ways = [(1 - chance, curve.lapsed(trace, chance))]
    before = 0.0
    for until, rating in PASSED:
        ways.append((chance * (until - before), curve.known(trace, chance, rating)))
        before = until
    return Move(LOOK_SECONDS * (2 - chance), _mixed(ways))


def _mixed(ways: Sequence[tuple[float, Trace]]) -> Mix:
    """The points around the traces that are reached, each with its share."""
    shares: dict[int, float] = {}
    for share, (stability, difficulty) in ways:
        row, part = _between(_LOGARITHMS, math.log(stability))
        column, rest = _between(_DIFFICULTIES, difficulty)
        for i, j in itertools.product((0, 1), (0, 1)):
            weight = share * (part if i else 1 - part) * (rest if j else 1 - rest)
            point = (row + i) * len(_DIFFICULTIES) + column + j
            if weight:
                shares[point] = shares.get(point, 0.0) + weight
    return tuple(shares.items())


def _between(points: Sequence[float], value: float) -> tuple[int, float]:
    """The point below a value, and how far it is to the next one (0..1)."""
    value = min(max(value, points[0]), points[-1])
    below = min(bisect.bisect_right(points, value), len(points) - 1) - 1
    return below, (value - points[below]) / (points[below + 1] - points[below])


def learner(days: int, minutes: int, number: int) -> tuple[float, float]:
    """What the plan reaches with all minutes, and the bound, in percent."""
    seed = f"{days} days, {minutes} minutes, learner {number}"
    deck, seconds = deck_of(seed), card_seconds(minutes)
    reached = study(seed, deck, days, seconds, all_minutes).recall
    bound = Bound(deck, Truth(seed, deck), days, seconds)
    return reached * 100, bound.least(_WORK // days) * 100


def main() -> int:
    quick = "--quick" in sys.argv
    print("| days | minutes | the plan, all minutes used | bound | bound less plan |")
    print("|---" * 5 + "|")
    with concurrent.futures.ProcessPoolExecutor(PROCESSES) as pool:
        for days, minutes in itertools.product(DAYS, MINUTES):
            count = QUICK if quick else LEARNERS
            jobs = [pool.submit(learner, days, minutes, n) for n in range(count)]
            found = [job.result() for job in jobs]
            reached, bound = (
                sum(values) / count for values in zip(*found, strict=True)
            )
            short = mean_of([b - r for r, b in found]) if count > 1 else (0.0, 0.0)
            print(
                f"| {days} | {minutes} | {reached:.1f} | {bound:.1f} | "
                f"{short[0]:.1f} ± {short[1]:.1f} |",
                flush=True,
            )
            if quick:
                break
    return 0


if __name__ == "__main__":
    sys.exit(main())
