"""The plan where time is short, where it abounds, and where days differ."""

import dataclasses
import datetime as dt
import math

import pytest

from app.accounts.current_learner import StudyHabits
from app.spaced_repetition.review_pace import NEW_SECONDS
from app.study_plan.card_plan import (
    FINAL_SECONDS,
    CardDayPlan,
    CardPlanInputs,
    day_plan,
    new_card_gain,
    outline_plan,
    reconcile_outline,
    review_gain,
    time_coverage,
)
from app.study_plan.forecast import simulate_until_exam
from tests.scheduling.test_exam import CURVE, TODAY, asked, deck


def test_where_the_minutes_do_not_hold_all_cards_new_ones_come_first() -> None:
    early = day_plan(deck(80), 300, asked(14, 5), CURVE)

    assert not early.final
    assert early.looks == ()
    assert early.fresh == 5

    eve = day_plan(deck(80), 300, asked(1, 5), CURVE)
    worst = min(review_gain(c, TODAY, TODAY + 1, CURVE).rate for c in eve.looks)
    assert eve.final
    assert eve.short
    assert worst > new_card_gain(1, CURVE) / NEW_SECONDS


def test_the_supply_of_time_counts_both_looks_of_a_new_card() -> None:
    need = 10 * (NEW_SECONDS + FINAL_SECONDS) + 20 * FINAL_SECONDS

    assert time_coverage(20, 10, CardPlanInputs(TODAY, TODAY + 1, need)) == pytest.approx(1)
    assert time_coverage(0, 0, asked(5)) == math.inf


def test_who_wants_all_minutes_used_has_none_left_while_something_gains() -> None:
    cards, usual = deck(120), asked(40, 30)
    filled = dataclasses.replace(usual, habits=StudyHabits(fill=True))

    plan, more = (day_plan(cards, 60, one, CURVE) for one in (usual, filled))

    assert plan.seconds < more.seconds
    assert more.fresh >= plan.fresh
    assert more.seconds > 30 * 60 - NEW_SECONDS
    both = (simulate_until_exam(cards, 60, one, CURVE).recall for one in (usual, filled))
    assert next(both) < next(both)


def test_the_last_week_may_have_twice_the_minutes() -> None:
    twice = dataclasses.replace(asked(20, 10), habits=StudyHabits(double=True))

    assert [twice.seconds_on(TODAY + n) for n in (12, 13, 19)] == [600, 1200, 1200]
    assert twice.time == 13 * 600 + 7 * 1200
    assert twice.days_for(2 * 1200) == 2


def test_on_a_day_off_nothing_is_planned_and_the_others_take_it() -> None:
    weekday = (TODAY - 1) % 7
    assert dt.date.fromordinal(TODAY).weekday() == weekday
    off = dataclasses.replace(asked(28, 10), habits=StudyHabits(off=frozenset({weekday})))

    assert day_plan(deck(40), 40, off, CURVE) == CardDayPlan((), 0)
    assert off.time == 24 * 600
    assert off.study_days(off.exam) == 24
    days = simulate_until_exam(deck(40), 40, off, CURVE).days
    assert [d.cards for d in days[::7]] == [0, 0, 0, 0]
    assert sum(d.fresh for d in days) == 40


def test_the_outline_says_of_today_what_the_plan_does() -> None:
    for begun, unseen, left in ((60, 90, 30), (80, 300, 14), (80, 300, 1), (9, 9, 60)):
        for fill in (False, True):
            now = dataclasses.replace(asked(left, 10), habits=StudyHabits(fill))
            plan = day_plan(deck(begun), unseen, now, CURVE)
            said = reconcile_outline(outline_plan(begun, unseen, now), plan, unseen, now)

            assert (said.final <= TODAY) == plan.final
            assert plan.final or said.fresh == plan.fresh
            assert plan.final or TODAY <= said.until < said.final
