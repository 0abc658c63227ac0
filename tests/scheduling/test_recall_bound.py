"""The bound of the recall benchmark is one."""

import pytest

from app.scheduling.card_pace import NEW_SECONDS
from app.scheduling.exam import FIRST_GRADES
from benchmarks.recall import Deck, Truth, all_minutes, study
from benchmarks.recall_bound import Bound


@pytest.mark.parametrize(("cards", "share"), [(4, 1.0), (40, 0.1)])
def test_with_one_day_it_is_the_cards_that_fit(cards: int, share: float) -> None:
    deck = Deck((), cards)
    truth = Truth("one day", deck)
    bound = Bound(deck, truth, 1, 4 * NEW_SECONDS).least(300)

    firsts = [truth.curve.begun(rating)[0] for rating in (1, 2, 3, 4)]
    known = sorted(
        sum(
            part * truth.curve.recall(1, stability * ease)
            for part, stability in zip(FIRST_GRADES, firsts, strict=True)
        )
        for ease in truth.ease
    )[-4:]
    assert bound == pytest.approx(sum(known) / 4 * share, rel=0.02)


def test_no_plan_exceeds_it() -> None:
    deck = Deck((), 30)
    for seconds in (60.0, 200.0):
        bound = Bound(deck, Truth("ten days", deck), 10, seconds).least(60)
        reached = study("ten days", deck, 10, seconds, all_minutes).recall

        assert reached <= bound <= 1
