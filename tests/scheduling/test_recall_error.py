"""What `benchmarks.recall_error` says of learners is counted as it says."""

import math

import pytest

from benchmarks.recall_error import COLUMNS, Told, cells, ends, told


def learner(error: float, ratio: float, cards: int = 50) -> Told:
    """One whose cards all err alike, but for their stabilities."""
    ratios = tuple(math.log(ratio * (2 if n % 2 else 0.5)) for n in range(cards))
    return Told(0.9, 0.9 - error, (error,) * cards, ratios)


def test_errors_that_cards_share_are_counted_by_learner() -> None:
    made = dict(
        zip(
            range(len(COLUMNS)),
            cells([learner(0.02, 1), learner(-0.02, 1)]),
            strict=True,
        )
    )

    assert made[2] == "+0.0 ± 2.0"
    assert made[3] == "± 0.20"  # a tenth of it, as if there were a hundred learners
    assert made[5] == "2.0"
    assert made[6] == "1.00"
    assert made[8] == "÷ or × 2.00"


def test_nine_of_ten_lie_between_the_ends() -> None:
    assert ends(list(range(101))) == (5.0, 95.0)


def test_what_is_shown_and_what_is_true_are_of_the_same_cards() -> None:
    one = told(14, 10, 0)

    assert one.bias == pytest.approx(one.shown - one.true)
    assert len(one.errors) == len(one.ratios) > 50
    assert all(-1 < error < 1 for error in one.errors)
