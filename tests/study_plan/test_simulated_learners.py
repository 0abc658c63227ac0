"""A few simulated learners follow the planner; `tests/drills/test_planner.py` has many."""

import pytest

from app.content.course_facts import CourseFacts
from tests.study_plan.learners import Course, Way
from tests.study_plan.measures import Measures, measure, study_many

WAY = Way(days=24, minutes=30)
COUNT = 12


@pytest.fixture(scope="module")
def courses(course: CourseFacts) -> list[Course]:
    return study_many(course, COUNT, WAY)


@pytest.fixture(scope="module")
def result(courses: list[Course]) -> Measures:
    return measure(courses, WAY)


def test_the_same_learner_studies_the_same_way(course: CourseFacts, courses: list[Course]) -> None:
    (again,) = study_many(course, 1, WAY)

    assert again.days == courses[0].days


def test_new_cards_are_spread_over_the_domains_by_weight(
    course: CourseFacts, result: Measures
) -> None:
    for domain in course.domains:
        assert result.domains[domain.number] == pytest.approx(domain.exam_share, abs=0.03)


def test_cards_that_were_started_are_reviewed_twice(result: Measures) -> None:
    assert result.reviewed_twice >= 0.95
    assert result.cards >= 50


def test_lists_are_short_and_can_be_finished(result: Measures) -> None:
    assert result.most_tasks <= 4
    assert result.finished >= 0.97
    assert result.planned_in_range >= 0.9
    assert 0.9 <= result.used_of_planned <= 1.05


def test_questions_and_mock_exams_are_reached(result: Measures) -> None:
    assert result.practice >= 6.5
    assert result.mocks >= 2.3


@pytest.mark.parametrize(("days", "minutes"), [(16, 45), (24, 36), (24, 60)])
def test_who_does_every_list_and_has_time_for_all_pages_keeps_having_it(
    course: CourseFacts, days: int, minutes: int
) -> None:
    for one in study_many(course, 2, Way(days=days, minutes=minutes, skips=False)):
        verdicts = [day.pages_fit for day in one.days if day.unread_pages]

        assert sorted(verdicts) == verdicts
        assert any(verdicts)
        assert not one.days[-1].unread_pages


def test_the_shown_score_is_near_the_true_one(result: Measures) -> None:
    assert max(map(abs, result.biases)) <= 2.5  # of twelve learners; 1.5 of forty in the drill
    assert result.inside >= 0.85
    assert result.day_falls <= 0.04
