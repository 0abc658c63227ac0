"""What is measured of simulated learners on their way to the exam."""

import collections
import dataclasses
import itertools
import statistics
from collections.abc import Iterable, Iterator, Sequence

from app.content.course_facts import CourseFacts
from tests.study_plan.learners import Day, StudyRun, Way, study


def study_many(course_facts: CourseFacts, count: int, way: Way, seed: int = 1) -> list[StudyRun]:
    """Let so many learners study in one way; always the same ones."""
    return [study(course_facts, seed, number, way) for number in range(count)]


def studied(runs: Iterable[StudyRun]) -> Iterator[Day]:
    """Yield the days on which a learner studied."""
    return (day for run in runs for day in run.days if not day.skipped)


@dataclasses.dataclass(frozen=True)
class Measures:
    """Means over learners; shares are 0 to 1, biases are shown less true score, in points."""

    score: float
    cards: float
    reviewed_twice: float
    domains: dict[str, float]
    practice: float
    practice_with_mocks: float
    mocks: float
    finished: float
    most_tasks: int
    planned_in_range: float
    used_of_planned: float
    biases: tuple[float, ...]
    inside: float
    day_falls: float
    week_falls: float
    done: dict[str, float]


def measure(runs: Sequence[StudyRun], way: Way) -> Measures:
    days = list(studied(runs))
    plain = [day for day in days if not day.mock]
    cards = [card for run in runs for card in run.learner.cards.values()]
    shares = [run.share_of_cards() for run in runs]
    done: collections.Counter[str] = collections.Counter()
    for day in days:
        done.update(day.done)
    ends = [*range(6, way.days - 1, 7), way.days - 1]
    return Measures(
        score=statistics.fmean(run.score for run in runs),
        cards=len(cards) / len(runs),
        reviewed_twice=statistics.fmean(card.later >= 2 for card in cards),
        domains={d: statistics.fmean(share.get(d, 0.0) for share in shares) for d in shares[0]},
        practice=statistics.fmean(day.done.get("practice", 0) for day in plain),
        practice_with_mocks=statistics.fmean(
            day.done.get("practice", 0) + 50 * day.done.get("mock", 0) for day in days
        ),
        mocks=done["mock"] / len(runs),
        finished=sum(day.finished for day in days) / sum(day.tasks for day in days),
        most_tasks=max(day.tasks for day in days),
        planned_in_range=statistics.fmean(
            0.9 <= (day.planned + day.placement) / way.minutes <= 1.1
            for run in runs
            for day in run.days[:-1]  # the last one has no pages, so it is short
            if not day.skipped and not day.mock
        ),
        used_of_planned=statistics.fmean(d.used / d.planned for d in plain if d.planned),
        biases=tuple(
            statistics.fmean(c.days[n].shown - c.days[n].true for c in runs) for n in ends
        ),
        inside=statistics.fmean(
            c.days[n].inside
            for c in runs
            for n in range(1, way.days)
            if n % 7 == 0 or n == way.days - 1
        ),
        day_falls=statistics.fmean(
            b.shown < a.shown - 1
            for c in runs
            for a, b in itertools.pairwise(c.days)
            if b.true >= a.true - 0.05
        ),
        week_falls=statistics.fmean(
            b.shown < a.shown - 1
            for c in runs
            for a, b in zip(c.days, c.days[7:], strict=False)
            if b.true > a.true
        )
        if way.days > 7
        else 0.0,
        done={kind: count / len(runs) for kind, count in done.items()},
    )
