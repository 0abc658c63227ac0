"""The days of a plan: mock exams are dated once, days off move them, learners may as well."""

import datetime as dt
import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.accounts.learner import (
    PlanCalendar,
    move_mock_exam_day,
    plan_mock_exam_days,
)

BEGIN = dt.date(2026, 3, 1)
DAY = dt.timedelta(days=1)


def calendar(days: int, off: frozenset[int] = frozenset()) -> PlanCalendar:
    exam = BEGIN + days * DAY
    return PlanCalendar(BEGIN, exam, plan_mock_exam_days(BEGIN, exam, off), off)


@given(days=st.integers(4, 400))
def test_the_last_mock_exam_is_two_days_before_the_exam_and_no_two_are_near(days: int) -> None:
    mocks = calendar(days).mock_exam_days

    assert mocks[-1] == BEGIN + (days - 2) * DAY
    assert all((b - a).days >= 4 for a, b in itertools.pairwise(mocks))
    assert (mocks[0] - BEGIN).days >= 2


@pytest.mark.parametrize("days", [0, 1, 2, 3])
def test_without_time_there_is_no_mock_exam(days: int) -> None:
    assert calendar(days).mock_exam_days == ()


@given(days=st.integers(4, 100), off=st.frozensets(st.integers(0, 6), max_size=6))
def test_no_mock_exam_is_on_a_day_off_unless_only_those_are_left(
    days: int, off: frozenset[int]
) -> None:
    planned = calendar(days, off)
    assert planned.exam_day

    for mock in planned.mock_exam_days:
        left = [mock + n * DAY for n in range((planned.exam_day - mock).days)]
        assert not planned.is_day_off(mock) or all(planned.is_day_off(day) for day in left)


def test_a_missed_mock_exam_stays_for_two_days_and_the_last_until_the_eve() -> None:
    planned = calendar(24)
    first, last = planned.mock_exam_days[0], planned.mock_exam_days[-1]
    assert planned.exam_day

    due = [planned.find_due_mock_exam_day(first + n * DAY, None) for n in range(-1, 4)]
    assert due == [None, first, first, first, None]
    assert planned.find_due_mock_exam_day(planned.exam_day - DAY, None) == last
    assert planned.find_due_mock_exam_day(planned.exam_day, None) is None


def test_one_of_an_earlier_try_is_not_due_in_the_next() -> None:
    earlier, own = BEGIN - DAY, BEGIN + 12 * DAY
    planned = PlanCalendar(BEGIN, BEGIN + 30 * DAY, (earlier, own))

    assert planned.find_due_mock_exam_day(BEGIN, None) is None
    for day, mock in ((earlier, earlier), (earlier - 3 * DAY, earlier), (BEGIN, own)):
        assert planned.map_mock_exams_to_sitting_days([day]) == {mock: day}
    sat_early = planned.without_mock_exams_taken_early([earlier - 3 * DAY])
    assert sat_early.mock_exam_days == (own,)


def test_one_that_was_sat_is_not_due_again() -> None:
    planned = calendar(24)
    first, second = planned.mock_exam_days[:2]

    assert planned.find_due_mock_exam_day(first + DAY, first) is None
    assert planned.find_due_mock_exam_day(second, first) == second


def test_one_that_was_sat_early_counts_as_the_next_and_moves_no_date() -> None:
    planned = calendar(24)
    first, second, last = planned.mock_exam_days
    for sat, taken in (
        ([first], {first: first}),
        ([first + DAY], {first: first + DAY}),  # late
        ([BEGIN, BEGIN + DAY], {first: BEGIN}),  # two before the first date count once
        ([BEGIN, first], {first: BEGIN, second: first}),
        ([first, first + DAY], {first: first, second: first + DAY}),
        ([first + 3 * DAY], {second: first + 3 * DAY}),  # the first one was missed
        ([last - DAY], {last: last - DAY}),
        ([BEGIN - DAY, last + DAY], {last: last + DAY}),
    ):
        assert planned.map_mock_exams_to_sitting_days(reversed(sat)) == taken
        early = {mock for mock, day in taken.items() if day < mock}
        left = planned.without_mock_exams_taken_early(sat)
        assert {*planned.mock_exam_days} - {*left.mock_exam_days} == early
        assert all(left.find_due_mock_exam_day(mock, sat[-1]) is None for mock in early)


def test_a_mock_exam_can_be_moved_to_another_day_before_the_exam() -> None:
    planned = calendar(24)
    old = planned.mock_exam_days[0]

    moved = move_mock_exam_day(planned, old, old + 2 * DAY, BEGIN)

    assert moved == (old + 2 * DAY, *planned.mock_exam_days[1:])


def test_a_move_that_is_impossible_says_why(subtests: pytest.Subtests) -> None:
    planned = calendar(24)
    old, other = planned.mock_exam_days[:2]
    assert planned.exam_day
    for moved, wrong, message in (
        (old + DAY, old, "No mock exam is planned"),
        (old, BEGIN - DAY, "Choose a day from today"),
        (old, planned.exam_day, "Choose a day from today"),
        (old, other, "already planned"),
    ):
        with subtests.test(message), pytest.raises(ValueError, match=message):
            move_mock_exam_day(planned, moved, wrong, BEGIN)


def test_the_next_day_with_pages_is_no_day_off_no_mock_exam_and_not_the_eve() -> None:
    day, exam = dt.date(2026, 3, 1), dt.date(2026, 3, 7)  # Sunday to Saturday
    calendar = PlanCalendar(day, exam, (dt.date(2026, 3, 3),), frozenset({0}))

    assert calendar.list_reading_days_after(day) == (dt.date(2026, 3, 4), dt.date(2026, 3, 5))
    assert calendar.list_reading_days_after(dt.date(2026, 3, 4)) == (dt.date(2026, 3, 5),)
    assert calendar.list_reading_days_after(dt.date(2026, 3, 5)) == ()
    assert PlanCalendar(day).list_reading_days_after(day)[0] == dt.date(2026, 3, 2)
