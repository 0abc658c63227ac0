"""One learner plays a week through HTTP; `make bench` plays whole plans and prints a table."""

import pytest

from app.content.live_courses import LiveCourse
from benchmarks.played import Result, Way, play

pytestmark = pytest.mark.drill


@pytest.fixture(scope="module")
def week(live_shipped: LiveCourse) -> Result:
    return play(Way(8, 40), 1, live_shipped)


def test_each_day_has_one_list_that_can_be_finished(week: Result) -> None:
    assert week.lists == 8
    assert week.most_tasks <= 4
    assert week.tasks_done == 1


def test_cards_of_all_domains_begin_and_come_back_twice(week: Result) -> None:
    assert week.cards >= 8
    assert min(week.domains) > 0
    assert week.reviewed_twice >= 0.9


def test_pages_questions_and_mock_exams_are_reached(week: Result) -> None:
    assert week.pages >= 12
    assert week.practice >= 6
    assert week.mocks == week.planned_mocks == 1
    assert 10 <= week.score <= 50
