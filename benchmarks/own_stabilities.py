"""What it would be worth to know how firmly a learner keeps what is new.

Run: python -m benchmarks.own_stabilities [--quick]. FSRS-6 begins each card with one of
four stabilities, one for each first grade: those of the average learner. The learners
here are those of `benchmarks.recall`, and each begins cards with stabilities that are
longer or shorter by a common factor besides. They study by the plan three times: with
the average stabilities; told their own, exactly, from so many looks on, which no fit
could do better; and told them before the first card.
"""

import concurrent.futures
import dataclasses
import math
import random
import statistics
import sys
from collections.abc import Sequence

from app.spaced_repetition.fsrs import FsrsFormulas, fsrs_formulas
from app.spaced_repetition.review_pace import card_seconds
from app.spaced_repetition.scheduler import SchedulerPolicy
from app.study_plan.card_plan import CardPlanInputs, day_plan
from app.study_plan.forecast import DaySimulation
from benchmarks.recall import (
    LEARNERS,
    PROCESSES,
    QUICK,
    START,
    Deck,
    Truth,
    learner_of,
    mean_of,
    own_parameters,
)

SPREADS = (0.6, 1.0)
"""Standard deviations of the factor's logarithm: 1 is nine in ten within ÷ or × 5."""
CASES = (
    *((14, 20, 0), (30, 10, 0), (30, 20, 0), (60, 10, 0), (60, 20, 0)),
    *((30, 40, 900), (60, 40, 900)),
)
"""Days, minutes, and new cards; with 0 of these the deck is drawn, 100 to 400 cards."""
FITTED_FROM = 500  # looks: with fewer a fit makes predictions worse
_FIRST = 4


@dataclasses.dataclass(frozen=True, slots=True)
class Known:
    """Recall on the exam day (0..1): never told, told after many looks, or at once."""

    never: float
    later: float
    at_once: float


def learner(days: int, minutes: int, new: int, number: int, spread: float) -> Known:
    """One learner, three times with the same luck."""
    seed, _ = learner_of(days, minutes, number)
    factor = random.Random(f"first {seed}").lognormvariate(0, spread)
    usual, true = SchedulerPolicy().parameters, own_parameters(random.Random(seed))
    first = tuple(stability * factor for stability in true[:_FIRST])

    def recall(told_from: float) -> float:
        deck = Deck((), new) if new else learner_of(days, minutes, number)[1]
        truth = Truth(seed, deck)
        truth.curve = FsrsFormulas(SchedulerPolicy(parameters=first + true[_FIRST:]))
        told = FsrsFormulas(SchedulerPolicy(parameters=first + usual[_FIRST:]))
        cards, unseen, exam, looks = list(deck.begun), deck.unseen, START + days, 0
        for day in range(START, exam):
            run = DaySimulation(
                cards, unseen, told if looks >= told_from else fsrs_formulas(), truth
            )
            done = run.day(CardPlanInputs(day, exam, card_seconds(minutes)), day_plan)
            looks += done.due + done.fresh + done.final
            cards, unseen = run.cards, run.unseen
        return truth.recall(exam)

    return Known(recall(math.inf), recall(FITTED_FROM), recall(0))


def row(
    days: int,
    minutes: int,
    new: int,
    spread: float,
    count: int,
    pool: concurrent.futures.Executor,
) -> str:
    jobs = [pool.submit(learner, days, minutes, new, n, spread) for n in range(count)]
    known = [job.result() for job in jobs]
    never = statistics.fmean(k.never for k in known) * 100
    return (
        f"| {days} | {minutes} | {new or '100 to 400'} | {spread} | {never:.1f} "
        f"| {_gain([k.later - k.never for k in known])} "
        f"| {_gain([k.at_once - k.never for k in known])} |"
    )


def _gain(shares: Sequence[float]) -> str:
    mean, error = mean_of([share * 100 for share in shares])
    return f"{mean:+.2f} ± {error:.2f}"


def main() -> int:
    quick = "--quick" in sys.argv
    count = QUICK if quick else LEARNERS
    print(
        "| days | minutes | cards | spread | known with average stabilities "
        f"| own ones from {FITTED_FROM} looks on | own ones from the first card |"
    )
    print("|---" * 7 + "|")
    with concurrent.futures.ProcessPoolExecutor(PROCESSES) as pool:
        for spread in SPREADS:
            for days, minutes, new in CASES[:1] if quick else CASES:
                print(row(days, minutes, new, spread, count, pool), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
