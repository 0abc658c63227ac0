"""How far the recall that a learner is shown lies from the truth, learner by learner.

Run: python -m benchmarks.recall_error [--quick]. The learners of `benchmarks.recall`
study by the plan. On the exam day the scheduler believes in a chance of recall of each
card, which is compared with the true one. The cards of one learner err together, for
they share the learner's way of forgetting; so errors are told by learner, and the
standard error that cards would have if each were drawn by itself is beside it.
"""

import concurrent.futures
import dataclasses
import math
import statistics
import sys
from collections.abc import Sequence

from app.spaced_repetition.fsrs import fsrs_formulas
from app.spaced_repetition.review_pace import card_seconds
from app.study_plan.card_plan import day_plan
from benchmarks.recall import (
    DAYS,
    LEARNERS,
    MINUTES,
    PROCESSES,
    QUICK,
    START,
    followed,
    learner_of,
    mean_of,
)

COLUMNS = (
    "shown",
    "true",
    "shown less true",
    "error as of single cards",
    "nine learners in ten",
    "mean error of a card",
    "stability, true by believed",
    "nine learners in ten",
    "cards of one learner",
)


@dataclasses.dataclass(frozen=True, slots=True)
class Told:
    """The begun cards of a learner: recall shown and true (0..1), and stabilities.

    `errors` are shown less true, card by card; `ratios` the logarithms of the true
    stability by the believed one.
    """

    shown: float
    true: float
    errors: tuple[float, ...]
    ratios: tuple[float, ...]

    @property
    def bias(self) -> float:
        """By how much the recall shown is too high."""
        return statistics.fmean(self.errors)


def told(days: int, minutes: int, number: int) -> Told:
    """One learner on the exam day, after studying by the plan."""
    seed, deck = learner_of(days, minutes, number)
    run, truth, _ = followed(seed, deck, days, card_seconds(minutes), day_plan)
    exam = START + days
    shown, true, ratios = [], [], []
    for card, (trace, last) in zip(run.cards, truth.memories, strict=True):
        shown.append(fsrs_formulas().recall(exam - card.last, card.stability))
        true.append(truth.curve.recall(exam - last, trace[0]))
        ratios.append(math.log(trace[0] / card.stability))
    errors = tuple(s - t for s, t in zip(shown, true, strict=True))
    means = statistics.fmean(shown), statistics.fmean(true)
    return Told(*means, errors, tuple(ratios))


def cells(all_: Sequence[Told]) -> list[str]:
    """What is printed of the learners of a row, recall in percent."""
    bias, error = mean_of([one.bias * 100 for one in all_])
    single = [e * 100 for one in all_ for e in one.errors]
    ratios = [statistics.fmean(one.ratios) for one in all_]
    within = math.sqrt(statistics.fmean(statistics.pvariance(o.ratios) for o in all_))
    return [
        f"{statistics.fmean(o.shown for o in all_) * 100:.1f}",
        f"{statistics.fmean(o.true for o in all_) * 100:.1f}",
        f"{bias:+.1f} ± {error:.1f}",
        f"± {mean_of(single)[1]:.2f}",
        "{:+.1f} to {:+.1f}".format(*ends([o.bias * 100 for o in all_])),
        f"{statistics.fmean(map(abs, single)):.1f}",
        f"{math.exp(statistics.median(ratios)):.2f}",
        "{:.2f} to {:.2f}".format(*map(math.exp, ends(ratios))),
        f"÷ or × {math.exp(within):.2f}",
    ]


def ends(values: Sequence[float]) -> tuple[float, float]:
    """Between which nine of ten values lie."""
    twentieths = statistics.quantiles(values, n=20, method="inclusive")
    return twentieths[0], twentieths[-1]


def main() -> int:
    quick = "--quick" in sys.argv
    count = QUICK if quick else LEARNERS
    print(f"| days | minutes | {' | '.join(COLUMNS)} |")
    print("|---" * (len(COLUMNS) + 2) + "|")
    with concurrent.futures.ProcessPoolExecutor(PROCESSES) as pool:
        for days in DAYS[:1] if quick else DAYS:
            for minutes in MINUTES[:1] if quick else MINUTES:
                jobs = [pool.submit(told, days, minutes, n) for n in range(count)]
                made = cells([job.result() for job in jobs])
                print(f"| {days} | {minutes} | {' | '.join(made)} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
