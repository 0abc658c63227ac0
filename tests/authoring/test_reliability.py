"""The interval of Cronbach's alpha: tables, another program, and a simulation."""

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.authoring.item_statistics import (
    ItemResponse,
    alpha_interval,
    beta_share,
    describe_test,
    f_quantile,
)


# Upper 2.5 % points of F as printed in statistical tables, rounded as there.
def test_the_printed_table_of_f_is_reproduced(subtests: pytest.Subtests) -> None:
    for above, below, value in [
        (1, 1, 647.8),
        (4, 10, 4.47),
        (9, 9, 4.03),
        (10, 20, 2.77),
        (24, 120, 1.76),
        (60, 60, 1.67),
    ]:
        with subtests.test(above=above, below=below, value=value):
            digits = 1 if value > 100 else 2

            assert round(f_quantile(0.975, above, below), digits) == value


# alpha, learners, items, low, high: scipy.stats.f.ppf in Feldt's formula.
def test_another_program_comes_to_the_same_interval(subtests: pytest.Subtests) -> None:
    for alpha, learners, items, low, high in [
        (80, 30, 10, 67.33594417109585, 89.15582692574424),
        (80, 10, 50, 57.14773039416949, 94.02814307726408),
        (62, 25, 40, 37.094969498145645, 80.46452204811885),
        (-20, 12, 5, -176.18287474983242, 60.60048854428555),
        (91.2, 100, 8, 88.3303134420162, 93.58522030791819),
    ]:
        with subtests.test(alpha=alpha, learners=learners, items=items):
            assert alpha_interval(alpha, learners, items) == pytest.approx((low, high))


def test_the_interval_covers_the_true_alpha_as_often_as_it_says() -> None:
    """Eight items that share a normal ability: the true alpha is 8 ÷ (8 + 4)."""
    chance = random.Random(7)  # noqa: S311 - repeatable, not secret
    truth, covered, rounds = 100 * 8 / 12, 0, 600
    for _ in range(rounds):
        found = describe_test(marks_of(20, 8, 2.0, chance))
        assert found.interval is not None
        covered += found.interval[0] <= truth <= found.interval[1]

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


@pytest.mark.parametrize(("learners", "shown"), [(9, False), (10, True), (60, True)])
def test_there_is_no_interval_under_ten_learners(learners: int, shown: bool) -> None:
    chance = random.Random(1)  # noqa: S311 - repeatable, not secret
    found = describe_test(marks_of(learners, 5, 1.0, chance))

    assert (found.interval is not None) == shown
    assert found.enough == shown
    if found.interval and found.consistency is not None:
        assert found.interval[0] < found.consistency < found.interval[1]


def test_one_item_alone_has_no_interval() -> None:
    assert alpha_interval(50, 30, 1) is None
    assert alpha_interval(50, 1, 30) is None


@given(alpha=st.floats(-500, 100), learners=st.integers(2, 5000), items=st.integers(2, 200))
def test_any_alpha_lies_in_an_interval_that_ends_at_a_hundred(
    alpha: float, learners: int, items: int
) -> None:
    interval = alpha_interval(alpha, learners, items)

    assert interval is not None
    assert interval[0] <= alpha + 1e-9
    assert alpha - 1e-9 <= interval[1] <= 100


@given(x=st.floats(0, 1), a=st.floats(0.5, 500), b=st.floats(0.5, 500))
def test_the_beta_function_has_its_symmetry(x: float, a: float, b: float) -> None:
    share = beta_share(x, a, b)

    assert -1e-12 <= share <= 1 + 1e-12
    assert math.isclose(share, 1 - beta_share(1 - x, b, a), abs_tol=1e-9)
