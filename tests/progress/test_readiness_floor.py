"""Who knows more than the app is played as the benchmark of the floor says."""

import statistics
import sys

import pytest

from app.content.library import Library
from benchmarks import readiness, readiness_floor
from benchmarks.readiness import Bank, Learner, studied
from benchmarks.readiness_floor import answered_anew, expected

WEEKS = 3


@pytest.fixture
def learner(shipped: Library) -> Learner:
    """One who has studied for three weeks."""
    made = Learner(shipped, Bank(shipped, 7), 1)
    days = studied(made)
    for _ in range(WEEKS):
        next(days)
    return made


def test_who_knows_the_ability_expects_the_mean_of_many_exams(learner: Learner) -> None:
    scores = [learner.sit(WEEKS * 7) for _ in range(300)]

    mean = statistics.fmean(scores)
    error = statistics.stdev(scores) / len(scores) ** 0.5
    assert abs(expected(learner, WEEKS * 7, learner.gap) - mean) < 4 * error


def test_a_harder_exam_brings_less(learner: Learner) -> None:
    levels = [expected(learner, WEEKS * 7, gap) for gap in (-0.4, 0.0, 0.4)]

    assert levels == sorted(levels, reverse=True)


def test_answers_given_anew_are_the_same_questions_and_leave_chance_alone(
    learner: Learner,
) -> None:
    record = learner.record(WEEKS * 7)
    before = learner.lot.getstate()

    anew = answered_anew(learner, record, WEEKS * 7)

    assert anew.firsts.keys() == record.firsts.keys()
    assert {first.day for first in anew.firsts.values()} == {readiness.the_day(WEEKS * 7)}
    assert learner.lot.getstate() == before
    assert answered_anew(learner, record, WEEKS * 7) == anew


def test_a_quick_run_tells_everybody(
    shipped: Library,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(readiness_floor, "load_library", lambda _: shipped)
    monkeypatch.setattr(sys, "argv", ["readiness_floor", "2", "--seed=4"])

    assert readiness_floor.main() == 0

    page = capsys.readouterr().out
    for name, _ in readiness_floor.KNOWERS:
        assert name in page
