"""The interval of Cronbach's alpha: by hand, and by a simulation."""

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.authoring.item_statistics import (
    ItemResponse,
    compute_alpha_interval,
    compute_test_statistics_of_complete_learners,
)


def test_the_interval_is_that_of_the_published_formula() -> None:
    """ln(1 − 0.8) ± 1.96 · √(2 · 10 ÷ (9 · 28)), from Bonett (2002)."""
    margin = 1.959964 * math.sqrt(20 / 252)
    expected = tuple(100 * (1 - math.exp(math.log(0.2) + sign * margin)) for sign in (1, -1))

    assert compute_alpha_interval(80, 30, 10) == pytest.approx(expected, abs=1e-4)


def test_the_interval_covers_the_true_alpha_as_often_as_it_says() -> None:
    """Eight items that share a normal ability: the true alpha is 8 ÷ (8 + 4)."""
    chance = random.Random(7)  # noqa: S311 - repeatable, not secret
    truth, covered, rounds = 100 * 8 / 12, 0, 600
    for _ in range(rounds):
        interval = compute_test_statistics_of_complete_learners(
            marks_of(20, 8, 2.0, chance)
        ).cronbach_alpha_interval
        assert interval is not None
        covered += interval[0] <= truth <= interval[1]

    assert 0.93 < covered / rounds < 0.97


def marks_of(learners: int, items: int, noise: float, chance: random.Random) -> list[ItemResponse]:
    """Marks of ability plus noise, whose variance is `noise` squared."""
    rows = []
    for learner in range(learners):
        ability = chance.gauss(0, 1)
        rows += [
            ItemResponse(learner, f"i{n}", ability + chance.gauss(0, noise)) for n in range(items)
        ]
    return rows


def test_an_interval_needs_three_learners_and_two_items() -> None:
    assert compute_alpha_interval(50, 30, 1) is None
    assert compute_alpha_interval(50, 2, 30) is None
    assert compute_alpha_interval(100, 30, 30) is None


@given(alpha=st.floats(-500, 99), learners=st.integers(3, 5000), items=st.integers(2, 200))
def test_any_alpha_lies_in_its_interval(alpha: float, learners: int, items: int) -> None:
    interval = compute_alpha_interval(alpha, learners, items)

    assert interval is not None
    assert interval[0] < alpha < interval[1] <= 100
