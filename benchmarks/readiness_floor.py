"""Where the error of the expected score comes from: how small it could be at all.

Run: python -m benchmarks.readiness_floor [LEARNERS] [--quick] [--seed=N ...]. The
learners, predictions and exams are those of `benchmarks.readiness`. Beside what is
said, each exam is predicted by somebody who knows more than the app can:

- the learner's true ability and the difficulty of that exam: what is left is the luck
  of its fifty questions;
- the true ability alone, since nobody knows the exam before;
- the app's own rules, had all questions been answered today: nothing was forgotten or
  learned since, and what is added is the luck of the answers that there are.
"""

import dataclasses
import math
import random
import statistics
import sys
from collections.abc import Callable, Iterator, Sequence

from app.content.library import Library, load_library
from app.mastery.evidence import AnswerHistory, guess_rate
from app.mastery.objectives import LearnerEvidence, build_standings, course_by_objective
from app.mastery.readiness import ScoreForecast, forecast_score
from benchmarks.readiness import (
    CONTENT,
    LEARNERS,
    QUICK,
    SEEDS,
    Bank,
    Learner,
    clustered,
    studied,
    the_day,
)

_STEPS = 8
_HARD = statistics.NormalDist(-0.4, 0.8)
ITEMS = tuple(
    (0.7 + 0.9 * (n + 0.5) / _STEPS, _HARD.inv_cdf((m + 0.5) / _STEPS))
    for n in range(_STEPS)
    for m in range(_STEPS)
)
"""Questions that stand for all that `readiness.item_of` may draw."""


@dataclasses.dataclass(frozen=True, slots=True)
class Told:
    """One exam: its score, and what was expected by whom; `answers` it rests on."""

    learner: int
    answers: int
    with_cards: bool
    with_mocks: bool
    score: int
    said: float
    today: float
    ability: float
    exam: float


KNOWERS: tuple[tuple[str, Callable[[Told], float]], ...] = (
    ("who knows ability and exam", lambda one: one.exam),
    ("who knows the ability", lambda one: one.ability),
    ("the app, all answers of today", lambda one: one.today),
    ("the app", lambda one: one.said),
)
KINDS: tuple[tuple[str, Callable[[Told], bool]], ...] = (
    ("fewer than 100 first answers", lambda one: one.answers < 100),
    ("100 to 199", lambda one: 100 <= one.answers < 200),
    ("200 and more", lambda one: one.answers >= 200),
    ("with cards", lambda one: one.with_cards),
    ("without cards", lambda one: not one.with_cards),
    ("with mock exams", lambda one: one.with_mocks),
    ("without mock exams", lambda one: not one.with_mocks),
)


def told(learner: Learner) -> Iterator[Told]:
    """The exams of a learner for which a score was expected."""
    library = learner.library
    exam = next(iter(library.exams.values()))
    for day in studied(learner):
        record = learner.record(day)
        made = forecast_score(build_standings(library, record, the_day(day)), exam)
        if not isinstance(made, ScoreForecast):
            continue
        anew = build_standings(library, answered_anew(learner, record, day), the_day(day))
        today = forecast_score(anew, exam, made.answers)
        if not isinstance(today, ScoreForecast):
            continue
        yield Told(
            learner=learner.number,
            answers=made.answers,
            with_cards=learner.with_cards,
            with_mocks=learner.with_mocks,
            score=learner.sit(day),
            said=made.mean,
            today=today.mean,
            ability=expected(learner, day, 0.0),
            exam=expected(learner, day, learner.gap),
        )


def answered_anew(learner: Learner, record: LearnerEvidence, day: int) -> LearnerEvidence:
    """The same questions answered on `day`, with what the learner knows then."""
    lot, firsts = learner.lot, {}
    learner.lot = random.Random(f"{learner.bank.seed} {learner.number} {day} anew")
    for item in record.firsts:
        question = learner.library.questions[item]
        asked = (question.objectives, guess_rate(question), learner.bank.items[item])
        firsts[item] = AnswerHistory(float(learner.answers(*asked, day)), the_day(day))
    learner.lot = lot
    return dataclasses.replace(record, firsts=firsts)


def expected(learner: Learner, day: int, gap: float) -> float:
    """The score that the true ability brings on average, in an exam so much harder."""
    exam = next(iter(learner.library.exams.values()))
    course = course_by_objective(learner.library)
    score = 0.0
    for domain in learner.library.syllabus.domains:
        each = exam.domains.get(domain.number, 0) / len(domain.objectives)
        for objective in domain.objectives:
            theta = learner.abilities[objective.number].on(day) - gap
            known = [1 / (1 + math.exp(-a * (theta - b))) for a, b in ITEMS]
            guess = course.asked[objective.number].guess
            score += each * (guess + (1 - guess) * statistics.fmean(known))
    return score


def report(all_: Sequence[Told]) -> Iterator[str]:
    """The result as lines of text, in questions of fifty."""
    yield f"{len(all_)} predictions"
    yield "expected by                            mean error            bias   spread"
    for name, by in KNOWERS:
        yield line(name, all_, by)
    yield ""
    yield "what the app said                      mean error            bias   spread"
    for name, belongs in KINDS:
        some = [one for one in all_ if belongs(one)]
        if some:
            yield line(name, some, KNOWERS[-1][1])


def line(name: str, told_: Sequence[Told], by: Callable[[Told], float]) -> str:
    """Mean error, bias and spread of what somebody expects, with errors by learner."""
    errors = [by(one) - one.score for one in told_]
    whose = [one.learner for one in told_]
    size, bias = clustered(whose, [abs(e) for e in errors]), clustered(whose, errors)
    said = f"{size[0]:6.2f} ± {size[1]:.2f}  {bias[0]:+6.2f} ± {bias[1]:.2f}"
    return f"{name:30} {len(told_):6}  {said}  {statistics.pstdev(errors):6.2f}"


def simulate(library: Library, learners: int, seed: int) -> list[Told]:
    """Every prediction of every learner, with what others would have said."""
    bank = Bank(library, seed)
    each = (told(Learner(library, bank, number)) for number in range(learners))
    return [one for some in each for one in some]


def main() -> int:
    quick = "--quick" in sys.argv
    counts = [int(word) for word in sys.argv[1:] if word.isdigit()]
    learners = QUICK if quick else (counts or [LEARNERS])[0]
    asked = [word.partition("=")[2] for word in sys.argv if word.startswith("--seed=")]
    seeds = [int(word) for word in asked] or SEEDS[: 1 if quick else None]
    library = load_library(CONTENT)
    for seed in seeds:
        print(f"Seed {seed}: ", end="")
        print("\n".join(report(simulate(library, learners, seed))), end="\n\n", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
