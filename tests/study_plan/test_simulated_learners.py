"""A few simulated learners follow the planner; `tests/drills/test_planner.py` has many."""

import pytest

from app.content.course_facts import CourseFacts
from tests.study_plan.learners import StudyRun, Way
from tests.study_plan.measures import Measures, measure, study_many

WAY, SHORT_WAY = Way(days=24, minutes=30), Way(days=6, minutes=30)
COUNT = 12


# Twelve learners for 24 days take seconds; one for six shows that they study.
of_many = pytest.mark.drill


@pytest.fixture(scope="module")
def runs(course_facts: CourseFacts) -> list[StudyRun]:
    return study_many(course_facts, COUNT, WAY)


@pytest.fixture(scope="module")
def result(runs: list[StudyRun]) -> Measures:
    return measure(runs, WAY)


def test_the_same_learner_studies_the_same_way(course_facts: CourseFacts) -> None:
    (once,), (again,) = (study_many(course_facts, 1, SHORT_WAY) for _ in range(2))

    assert again.days == once.days


@of_many
def test_new_cards_are_spread_over_the_domains_by_weight(
    course_facts: CourseFacts, result: Measures
) -> None:
    for domain in course_facts.domains:
        assert result.domains[domain.number] == pytest.approx(domain.exam_share, abs=0.03)


@of_many
def test_cards_that_were_started_are_reviewed_twice(result: Measures) -> None:
    assert result.reviewed_twice >= 0.95
    assert result.cards >= 50


@of_many
def test_lists_are_short_and_can_be_finished(result: Measures) -> None:
    assert result.most_tasks <= 4
    assert result.finished >= 0.97
    assert result.planned_in_range >= 0.9
    assert 0.9 <= result.used_of_planned <= 1.05


@of_many
def test_questions_and_mock_exams_are_reached(result: Measures) -> None:
    assert result.practice >= 6.5
    assert result.mocks >= 2.3


@of_many
@pytest.mark.parametrize(("days", "minutes"), [(16, 45), (24, 36), (24, 60)])
def test_who_does_every_list_and_has_time_for_all_pages_keeps_having_it(
    course_facts: CourseFacts, days: int, minutes: int
) -> None:
    for learner in study_many(course_facts, 2, Way(days=days, minutes=minutes, skips=False)):
        verdicts = [day.pages_fit for day in learner.days if day.unread_pages]

        assert sorted(verdicts) == verdicts
        assert any(verdicts)
        assert not learner.days[-1].unread_pages


@of_many
def test_the_shown_score_is_near_the_true_one(result: Measures) -> None:
    assert max(map(abs, result.biases)) <= 2.5  # of twelve learners; 1.5 of forty in the drill
    assert result.inside >= 0.85
    assert result.day_falls <= 0.04
