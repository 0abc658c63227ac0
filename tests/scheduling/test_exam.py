"""Toward an exam: the closed formulas, what a look gains, the plan of a day."""

import dataclasses
import datetime as dt
import random
import statistics
from typing import Any

import fsrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.spaced_repetition.fsrs import fsrs_formulas
from app.spaced_repetition.review_pace import NEW_SECONDS, CardPace
from app.spaced_repetition.scheduler import (
    CardState,
    ReviewEvent,
    SchedulerPolicy,
    apply_review,
    replay_log,
    retrievability,
)
from app.study_plan.card_plan import (
    FINAL_SECONDS,
    FIRST_GRADES,
    CardDayPlan,
    CardPlanInputs,
    StartedCard,
    before_exam,
    day_plan,
    never_graded,
    new_card_gain,
    new_cards_per_day,
    outline_plan,
    plain_day,
    review_gain,
)
from app.study_plan.forecast import HORIZON, DaySimulation, simulate_until_exam

CURVE = fsrs_formulas()
START = dt.date(2026, 6, 9)
TODAY = START.toordinal()
CLOSE = 1e-9


def grade(rating: int, days: int = 0) -> ReviewEvent:
    day = START + dt.timedelta(days=days)
    return ReviewEvent(rating, dt.datetime.combine(day, dt.time(12), dt.UTC), day)


def standing(*answers: tuple[int, int]) -> CardState:
    """The standing after (rating, days since the start) pairs."""
    found = replay_log(grade(*answer) for answer in answers).standing
    assert found is not None
    return found


def deck(count: int, seed: int = 1) -> list[StartedCard]:
    """Cards of all kinds: fresh and old, due and not, every tenth with a reverse."""
    dice = random.Random(seed)  # noqa: S311 - a deck, not a secret
    return [
        StartedCard(
            card=f"c{number}",
            stability=dice.lognormvariate(2, 1),
            difficulty=dice.uniform(1, 10),
            last=TODAY - dice.randint(1, 40),
            due=TODAY + dice.randint(-30, 20),
            note=f"n{number - number % 10 // 9}",
        )
        for number in range(count)
    ]


def asked(days: int, minutes: float = 10.0) -> CardPlanInputs:
    return CardPlanInputs(TODAY, TODAY + days, minutes * 60)


# --- formulas -----------------------------------------------------------------------


def test_the_formulas_agree_with_the_reference(subtests: pytest.Subtests) -> None:
    for seed in range(200):
        with subtests.test(seed=seed):
            dice = random.Random(seed)  # noqa: S311 - an example, not a secret
            card = fsrs.Card(
                card_id=1,
                state=fsrs.State.Review,
                stability=10 ** dice.uniform(-2.5, 3),
                difficulty=dice.uniform(1, 10),
                last_review=dt.datetime(2026, 1, 1, tzinfo=dt.UTC),
            )
            assert card.last_review
            assert card.stability
            assert card.difficulty
            days = dice.choice([1, 2, 5, 30, 400])
            day = card.last_review + dt.timedelta(days=days)
            scheduler = fsrs.Scheduler(enable_fuzzing=False)
            trace = card.stability, card.difficulty

            chance = CURVE.recall(days, card.stability)

            assert chance == pytest.approx(scheduler.get_card_retrievability(card, day), rel=CLOSE)
            for rating in (2, 3, 4):
                moved, _ = scheduler.review_card(card, fsrs.Rating(rating), day)
                known = CURVE.known(trace, chance, rating)
                assert known == pytest.approx((moved.stability, moved.difficulty), rel=CLOSE)
                assert CURVE.interval(known[0]) == (moved.due - day).days
            again, _ = scheduler.review_card(card, fsrs.Rating.Again, day)
            passed, _ = scheduler.review_card(again, fsrs.Rating.Good, day)
            assert CURVE.forgotten(trace, chance) == pytest.approx(
                (again.stability, again.difficulty), rel=CLOSE
            )
            assert CURVE.lapsed(trace, chance) == pytest.approx(
                (passed.stability, passed.difficulty), rel=CLOSE
            )


def test_a_first_day_agrees_with_the_cards_own_rules(subtests: pytest.Subtests) -> None:
    for steps in [0, 1, 2, 3]:
        for rating in [1, 2, 3, 4]:
            with subtests.test(steps=steps, rating=rating):
                waits = tuple(dt.timedelta(minutes=10) for _ in range(steps))
                policy = SchedulerPolicy(learning_steps=waits)
                stands = apply_review(None, grade(rating), policy=policy)
                while stands.state != "review":
                    stands = apply_review(stands, grade(3), policy=policy)

                assert fsrs_formulas(policy).begun(rating) == pytest.approx(
                    (stands.stability, stands.difficulty), rel=CLOSE
                )


@pytest.mark.parametrize("rating", [1, 2, 3, 4])
def test_a_second_answer_on_a_day_agrees_with_the_reference(rating: int) -> None:
    stands = standing((3, 0), (3, 0), (3, 2))
    moved = apply_review(stands, grade(rating, 2))

    assert CURVE.same_day((stands.stability, stands.difficulty), rating) == (
        pytest.approx((moved.stability, moved.difficulty), rel=CLOSE)
    )


def test_the_shares_of_first_grades_are_a_whole() -> None:
    assert sum(FIRST_GRADES) == pytest.approx(1)
    assert new_card_gain(0, CURVE) == pytest.approx(1)
    assert new_card_gain(30, CURVE) < new_card_gain(1, CURVE) < 1


# --- gain ---------------------------------------------------------------------------


def test_the_gain_is_what_the_cards_own_rules_say() -> None:
    stands = standing((3, 0), (3, 0), (3, 2))
    day, exam = START + dt.timedelta(days=12), START + dt.timedelta(days=30)
    chance = retrievability(stands, day)
    right = apply_review(stands, ReviewEvent(3, dt.datetime.now(dt.UTC), day))
    wrong = apply_review(stands, ReviewEvent(1, dt.datetime.now(dt.UTC), day))
    wrong = apply_review(wrong, ReviewEvent(3, dt.datetime.now(dt.UTC), day))

    expected = chance * retrievability(right, exam) + (1 - chance) * retrievability(wrong, exam)

    begun = StartedCard(
        card="",
        stability=stands.stability,
        difficulty=stands.difficulty,
        last=stands.last_day.toordinal(),
        due=stands.due_day.toordinal(),
    )
    found = review_gain(begun, day.toordinal(), exam.toordinal(), CURVE)
    assert found.gain == pytest.approx(expected - retrievability(stands, exam), rel=CLOSE)


@given(
    st.floats(0.001, 3000),
    st.floats(1, 10),
    st.integers(0, 400),
    st.integers(0, 120),
)
def test_a_look_never_costs_recall(
    stability: float, difficulty: float, since: int, left: int
) -> None:
    card = StartedCard("c", stability, difficulty, TODAY - since, TODAY)

    found = review_gain(card, TODAY, TODAY + left, CURVE)

    assert found.gain >= -CLOSE
    assert 0 <= found.recall <= 1
    assert found.after <= 1 + CLOSE
    if since:
        assert found.gain > 0


def test_the_most_is_gained_by_what_is_neither_known_nor_fresh() -> None:
    fresh, fading = (StartedCard("c", stability, 5, TODAY - 20, TODAY) for stability in (400, 8))

    gains = [review_gain(card, TODAY, TODAY + 5, CURVE).gain for card in (fresh, fading)]

    assert gains[0] < 0.05 < gains[1]


# --- the plan of a day --------------------------------------------------------------


@given(
    st.integers(0, 120),
    st.integers(0, 120),
    st.integers(0, 60),
    st.floats(1, 40),
    st.integers(0, 5),
)
def test_a_plan_stays_within_the_minutes(
    begun: int, unseen: int, days: int, minutes: float, seed: int
) -> None:
    cards = deck(begun, seed)

    plan = day_plan(cards, unseen, asked(days, minutes), CURVE)

    spent = sum(review_gain(c, TODAY, TODAY + days, CURVE).seconds for c in plan.looks)
    assert spent + plan.fresh * NEW_SECONDS == pytest.approx(plan.seconds)
    assert plan.seconds <= minutes * 60 + CLOSE
    assert len({c.card for c in plan.looks}) == len(plan.looks)
    assert 0 <= plan.fresh <= unseen
    if not plan.final:
        assert all(c.due <= TODAY for c in plan.looks)


@given(st.integers(0, 60), st.integers(0, 40), st.randoms(use_true_random=False))
def test_the_same_cards_give_the_same_plan_in_any_order(
    begun: int, days: int, dice: random.Random
) -> None:
    cards = deck(begun)
    shuffled = dice.sample(cards, len(cards))

    assert day_plan(cards, 9, asked(days), CURVE) == day_plan(shuffled, 9, asked(days), CURVE)


def test_before_the_last_days_what_gains_most_per_second_comes_first() -> None:
    plan = day_plan(deck(200), 0, asked(40), CURVE)

    rates = [review_gain(c, TODAY, TODAY + 40, CURVE).rate for c in plan.looks]
    left = [
        review_gain(c, TODAY, TODAY + 40, CURVE).rate
        for c in deck(200)
        if c.due <= TODAY and c not in plan.looks
    ]
    assert rates == sorted(rates, reverse=True)
    assert not plan.final
    assert len(rates) > 30
    assert left
    assert sum(rates) / len(rates) > sum(left) / len(left)


def test_the_last_days_are_as_many_as_the_minutes_make_them() -> None:
    assert final_days(100, 100 * FINAL_SECONDS) == 1
    assert final_days(101, 100 * FINAL_SECONDS) == 2
    assert final_days(356, 900) == 5
    assert final_days(356, 300) == 14


def test_every_begun_card_is_seen_once_more_in_the_last_days() -> None:
    cards, minutes, exam = deck(150), 10.0, TODAY + 30
    run = DaySimulation(cards, 0, CURVE, AsBelieved())
    for day in range(TODAY, exam):
        run.day(CardPlanInputs(day, exam, minutes * 60), day_plan)

    first = exam - final_days(150, minutes * 60)
    assert min(card.last for card in run.cards) >= first


def final_days(cards: int, seconds: float) -> int:
    """How many days a last look at so many cards takes, `seconds` on each."""
    return CardPlanInputs(TODAY, TODAY, seconds).days_for(cards * FINAL_SECONDS)


class AsBelieved:
    """Outcomes that cost the seconds expected: one in eight is a lapse."""

    def __init__(self) -> None:
        self.looks = 0

    def begin(self, card: int, day: int) -> int:  # noqa: ARG002
        return 3

    def look(self, card: int, day: int, recall: float) -> int:  # noqa: ARG002
        self.looks += 1
        return 1 if self.looks % 8 == 0 else 3


def test_in_the_last_days_those_that_fade_fastest_come_last() -> None:
    slow, fast = (
        StartedCard(name, stability, 5, TODAY - 9, TODAY - 5)
        for name, stability in (("slow", 60.0), ("fast", 3.0))
    )

    days = [day_plan([slow, fast], 0, asked(2, 0.2), CURVE)]
    plan = days[0]

    assert plan.final
    assert [c.card for c in plan.looks] == ["slow"]
    assert not plan.short


def test_a_card_and_its_reverse_stay_apart_until_the_last_day() -> None:
    pair = [
        StartedCard(name, 5.0, 5.0, TODAY - 9, TODAY - 4, note="pair")
        for name in ("pair", "pair~r")
    ]

    for days in (30, 2):
        assert len(day_plan(pair, 0, asked(days, 0.4), CURVE).looks) == 1
    assert len(day_plan(pair, 0, asked(1, 5), CURVE).looks) == 2


def test_a_pile_that_cannot_be_worked_off_goes_by_gain() -> None:
    cards = deck(500)
    plan = day_plan(cards, 0, asked(5, 5), CURVE)

    assert plan.short
    worst = min(review_gain(c, TODAY, TODAY + 5, CURVE).rate for c in plan.looks)
    notes = {c.note for c in plan.looks}
    rest = (c for c in cards if c.note not in notes)
    assert all(review_gain(c, TODAY, TODAY + 5, CURVE).rate <= worst for c in rest)


def test_new_cards_are_begun_at_an_even_pace() -> None:
    assert new_cards_per_day(0, 300, asked(64, 15)) == 5
    assert new_cards_per_day(0, 300, asked(64, 4)) == 4, "no more than the minutes hold"
    assert new_cards_per_day(300, 0, asked(64, 15)) == 0
    assert new_cards_per_day(0, 300, asked(400, 15)) == 5, "a far exam is no reason to wait"


def test_new_cards_stop_when_the_minutes_are_for_those_begun() -> None:
    plan = day_plan(deck(150), 50, asked(2), CURVE)

    assert plan.final
    assert plan.stopped
    assert plan.fresh == 0

    early = day_plan(deck(150), 50, asked(30), CURVE)
    assert not early.stopped
    assert early.fresh > 0


def test_no_card_is_begun_on_the_day_of_the_exam() -> None:
    plan = day_plan(deck(10), 50, asked(0), CURVE)

    assert plan.fresh == 0
    assert plan.looks


def test_without_an_exam_what_is_due_comes_before_what_is_new() -> None:
    plan = plain_day(deck(300), 50, asked(30), CURVE)

    assert plan.fresh == 0
    assert all(c.due <= TODAY for c in plan.looks)


# --- no interval beyond the exam ----------------------------------------------------


def test_no_card_comes_back_after_the_exam() -> None:
    stands = standing((4, 0))
    exam = START + dt.timedelta(days=5)

    assert stands.due_day > exam
    assert before_exam(stands, exam).due_day == exam - dt.timedelta(days=1)
    assert before_exam(stands, START + dt.timedelta(days=1)).due_day == (
        START + dt.timedelta(days=1)
    )
    assert before_exam(stands, START + dt.timedelta(days=90)) == stands
    assert before_exam(stands, None) == stands
    assert before_exam(stands, START - dt.timedelta(days=1)) == stands


def test_steps_of_minutes_are_left_alone() -> None:
    learning = standing((3, 0))

    assert before_exam(learning, START + dt.timedelta(days=1)) == learning


# --- the days ahead -----------------------------------------------------------------


def test_the_days_ahead_are_the_plan_run_forward() -> None:
    cards = deck(60)
    ahead = simulate_until_exam(cards, 60, asked(20), CURVE)

    today = day_plan(cards, 60, asked(20), CURVE)
    assert [d.day for d in ahead.days] == list(range(TODAY, TODAY + 20))
    assert ahead.days[0].due == len(today.looks)
    assert ahead.days[0].fresh == today.fresh
    assert ahead == simulate_until_exam(cards[::-1], 60, asked(20), CURVE)
    assert ahead.begun == ahead.cards == 120
    assert ahead.days[-1].final > 0


def test_the_plan_brings_more_than_plain_intervals_in_the_same_minutes() -> None:
    for begun, unseen, days in ((0, 200, 30), (150, 0, 14), (80, 80, 45)):
        plan = simulate_until_exam(deck(begun), unseen, asked(days), CURVE)
        plain = simulate_until_exam(deck(begun), unseen, asked(days), CURVE, plain_day)

        assert plan.recall > plain.recall


def test_days_that_are_skipped_cost_recall_or_minutes() -> None:
    whole = simulate_until_exam(deck(50), 150, asked(20), CURVE)
    less = simulate_until_exam(deck(50), 150, asked(20), CURVE, skipping=3)

    assert next(d.day for d in less.days) == TODAY + 3
    assert less.recall < whole.recall


def test_a_big_deck_is_run_as_a_sample() -> None:
    ahead = simulate_until_exam(deck(900), 600, asked(30, 20), CURVE)

    assert ahead.cards == 1500
    assert 0 < ahead.recall < 1
    spent = sum(d.seconds for d in ahead.days)
    assert spent == pytest.approx(30 * 20 * 60, rel=0.1)


@pytest.mark.parametrize("unseen", [1, 7, 250, 600, 913])
@pytest.mark.parametrize("today", [None, 0, 1, 8])
def test_the_days_of_a_sample_add_up_to_all_cards(unseen: int, today: int | None) -> None:
    few, many = (dataclasses.replace(asked(*when), begins=today) for when in ((10, 5), (60, 60)))
    ample = simulate_until_exam(deck(500), unseen, many, CURVE)

    for ahead in (simulate_until_exam(deck(500), unseen, few, CURVE), ample):
        assert ahead.begun == 500 + sum(day.fresh for day in ahead.days)
        assert all(day.fresh >= 0 for day in ahead.days)
        if today is not None and today <= unseen:
            assert ahead.days[0].fresh == today
            assert ahead.begun <= ahead.cards
    if today is None or today <= unseen:
        assert ample.begun == ample.cards


@pytest.mark.parametrize(("unseen", "first"), [(190, 60.0), (190, 35.0), (20, 60.0)])
def test_the_cards_passed_over_are_those_that_no_day_asks(unseen: int, first: float) -> None:
    inputs = dataclasses.replace(asked(16, 5), pace=CardPace(first, 11.0))
    cards, seen = deck(200), set[str]()

    def told(*given: Any) -> CardDayPlan:
        plan = day_plan(*given)
        seen.update(card.card for card in plan.looks)
        return plan

    ahead = simulate_until_exam(cards, unseen, inputs, CURVE, told)

    never = {card.card for card in cards} - seen
    assert ahead.passed == len(never)
    assert ahead.passed_due == sum(c.due <= TODAY for c in cards if c.card in never)
    assert (ahead.passed > 0) == (unseen > 20)

    today = frozenset(sorted(never)[:7])
    known = dataclasses.replace(inputs, looks=today)
    again = simulate_until_exam(cards, unseen, known, CURVE)
    waits = never - today
    assert again.passed == len(waits)
    assert again.passed_due == sum(c.due <= TODAY for c in cards if c.card in waits)


@pytest.mark.parametrize("unseen", [40, 900])
@pytest.mark.parametrize("adds", [None, 6])
def test_an_added_card_that_was_never_graded_is_begun_like_a_new_one(
    unseen: int, adds: int | None
) -> None:
    added = [never_graded(f"q:{n}", "", TODAY - 1, TODAY, CURVE) for n in range(6)]
    inputs = dataclasses.replace(asked(60, 60), begins=3, adds=adds)

    ahead = simulate_until_exam([*deck(100), *added], unseen, inputs, CURVE)

    assert ahead.before == 100
    assert ahead.days[0].fresh == 9
    assert sum(day.added for day in ahead.days) == 6
    assert ahead.begun == ahead.cards == 106 + unseen


def test_too_far_ahead_is_not_run() -> None:
    with pytest.raises(ValueError, match="181 days ahead"):
        simulate_until_exam([], 5, asked(HORIZON + 1), CURVE)


def test_nothing_to_learn_is_nothing_ahead() -> None:
    ahead = simulate_until_exam([], 0, asked(5), CURVE)

    assert ahead.recall == 0
    assert {d.cards for d in ahead.days} == {0}
    assert dataclasses.replace(ahead, days=()).most is None


def test_what_is_spent_of_a_day_is_not_planned_again() -> None:
    whole = day_plan(deck(200), 50, asked(40), CURVE)
    spent = dataclasses.replace(asked(40), spent=500.0)
    rest = day_plan(deck(200), 50, spent, CURVE)

    assert rest.seconds <= 100
    assert not rest.final
    assert len(rest.looks) < len(whole.looks)


def test_the_outline_says_what_the_days_ahead_will_hold() -> None:
    cards = deck(60)
    short = outline_plan(60, 90, asked(30, 15))
    ahead = simulate_until_exam(cards, 90, asked(30, 15), CURVE)

    assert ahead.days[0].fresh == short.fresh
    last_fresh = max(d.day for d in ahead.days if d.fresh)
    assert abs(last_fresh + 1 - short.final) <= 1
    assert next(d.day for d in ahead.days if d.final) == short.final
    assert ahead.begun == short.begun


def test_in_the_last_days_the_outline_begins_no_card() -> None:
    assert outline_plan(100, 50, asked(1, 10)).fresh == 0


def test_the_last_days_begin_when_they_began_however_few_are_left() -> None:
    for days in range(1, 5):
        left = dataclasses.replace(asked(4, 5), day=TODAY + 4 - days)

        assert outline_plan(100, 0, left).final == TODAY + 4 - final_days(100, 300)


class Luck:
    """Outcomes drawn by the chances that the scheduler believes in."""

    def __init__(self, seed: int) -> None:
        self.dice = random.Random(seed)  # noqa: S311 - luck, not a secret

    def begin(self, card: int, day: int) -> int:  # noqa: ARG002
        return self.dice.choices((1, 2, 3, 4), FIRST_GRADES)[0]

    def look(self, card: int, day: int, recall: float) -> int:  # noqa: ARG002
        return 3 if self.dice.random() < recall else 1


@pytest.mark.parametrize(
    ("begun", "unseen", "days", "minutes"),
    [(0, 120, 20, 6), (150, 0, 14, 8), (60, 60, 40, 5)],
)
def test_what_is_expected_is_the_mean_of_what_luck_brings(
    begun: int, unseen: int, days: int, minutes: float
) -> None:
    ahead = simulate_until_exam(deck(begun), unseen, asked(days, minutes), CURVE)
    ends, seconds = [], []
    for seed in range(30):
        run = DaySimulation(deck(begun), unseen, CURVE, Luck(seed))
        exam = TODAY + days
        spent = [
            run.day(CardPlanInputs(day, exam, minutes * 60), day_plan).seconds
            for day in range(TODAY, exam)
        ]
        ends.append(run.recall(exam))
        seconds.append(sum(spent))

    assert ahead.recall == pytest.approx(statistics.fmean(ends), abs=0.015)
    assert sum(d.seconds for d in ahead.days) == pytest.approx(statistics.fmean(seconds), rel=0.05)


def test_who_is_quick_begins_more_cards_and_who_is_slow_fewer() -> None:
    curve = fsrs_formulas()
    usual, quick, slow = (
        day_plan((), 500, CardPlanInputs(TODAY, TODAY + 30, 900, pace=taken), curve)
        for taken in (CardPace(), CardPace(first=30), CardPace(first=120))
    )

    assert slow.fresh < usual.fresh < quick.fresh
    assert all(plan.seconds <= 900 for plan in (usual, quick, slow))


def test_twice_the_time_for_twice_the_pace_is_the_same_plan() -> None:
    curve = fsrs_formulas()
    begun = [StartedCard(f"c{n}", 5.0 + n, 5.0, TODAY - 9, TODAY - 1) for n in range(40)]
    twice = CardPace(first=2 * NEW_SECONDS, look=20)
    for days in (2, 9, 40):
        usual = day_plan(begun, 60, CardPlanInputs(TODAY, TODAY + days, 300), curve)
        slow = day_plan(begun, 60, CardPlanInputs(TODAY, TODAY + days, 600, pace=twice), curve)
        assert (usual.looks, usual.fresh) == (slow.looks, slow.fresh)
        assert slow.seconds == pytest.approx(2 * usual.seconds)
