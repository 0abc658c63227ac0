"""The bound of `benchmarks.bound`: no schedule is better, and it is not far off."""

import pytest

from app.spaced_repetition.fsrs import FsrsFormulas, Trace, fsrs_formulas
from app.spaced_repetition.review_pace import LOOK_SECONDS, NEW_SECONDS, card_seconds
from app.study_plan.card_plan import FIRST_GRADES, day_plan, plain_day
from benchmarks.bound import Card, Learner, bound
from benchmarks.recall import PASSED, START, Truth, learner_of, study

DAYS = 4


def best(curve: FsrsFormulas, trace: Trace, last: int, price: float) -> float:
    """What a card gains at most by looks after day `last`, tried out one by one."""
    found = curve.recall(DAYS - last, trace[0])
    for day in range(max(0, last + 1), DAYS):
        recall = curve.recall(day - last, trace[0])
        gain = -price * LOOK_SECONDS * (2 - recall)
        for rating, share in PASSED:
            known = curve.known(trace, recall, rating)
            gain += recall * share * best(curve, known, day, price)
        lapsed = curve.lapsed(trace, recall)
        gain += (1 - recall) * best(curve, lapsed, day, price)
        found = max(found, gain)
    return found


def test_a_begun_card_gains_what_trying_out_all_days_says(
    subtests: pytest.Subtests,
) -> None:
    for trace in [(2.0, 3.0), (9.0, 8.5)]:
        for price in [0.0, 0.0005, 0.004]:
            with subtests.test(trace=trace, price=price):
                curve = fsrs_formulas()

                value, _ = Learner(curve, [Card(1.0, trace, 5)], DAYS).value([price] * DAYS)

                assert value == pytest.approx(best(curve, trace, -5, price), abs=0.004)


@pytest.mark.parametrize("price", [0.0, 0.003, 0.009])
def test_a_new_card_gains_what_trying_out_all_days_says(price: float) -> None:
    curve = fsrs_formulas()
    begun = [curve.begun(rating) for rating in range(1, 5)]
    wanted = max(
        sum(
            share * best(curve, (0.8 * s, d), day, price)
            for share, (s, d) in zip(FIRST_GRADES, begun, strict=True)
        )
        - price * NEW_SECONDS
        for day in range(DAYS)
    )

    value, _ = Learner(curve, [Card(0.8)], DAYS).value([price] * DAYS)

    assert value == pytest.approx(max(0.0, wanted), abs=0.004)


def test_too_high_a_price_buys_nothing() -> None:
    cards = [Card(), Card(1.0, (5.0, 5.0), 3)]

    value, used = Learner(fsrs_formulas(), cards, DAYS).value([1.0] * DAYS)

    assert used == [0.0] * DAYS
    assert value == pytest.approx(fsrs_formulas().recall(3 + DAYS, 5.0))


def test_no_schedule_comes_above_the_bound_and_more_time_raises_it() -> None:
    seed, deck = learner_of(14, 10, 3)
    truth = Truth(seed, deck)
    cards = [Card(ease, *known) for ease, known in truth.cards_at(START)]
    learner = Learner(truth.curve, cards, 14)
    most = [bound(learner, card_seconds(n), rounds=8) for n in (10, 20, 400)]

    luck = 0.02  # of a few hundred cards; the bound is that of the mean
    for seconds, least in ((card_seconds(10), most[0]), (card_seconds(20), most[1])):
        for rule in (day_plan, plain_day):
            assert study(seed, deck, 14, seconds, rule).recall < least + luck
    assert most == sorted(most)
    assert most[2] < 1
