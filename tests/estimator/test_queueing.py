"""Waiting lines against Erlang's formulas and what must always hold."""

import doctest
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.estimator.serving import replica

servers = st.integers(1, 200)
busy = st.floats(0.01, 0.99)


def test_examples_in_the_docstrings_hold() -> None:
    assert doctest.testmod(replica).failed == 0


@pytest.mark.parametrize(
    ("count", "load", "waiting"),
    # Erlang C as tabulated for M/M/c; one server waits with probability ρ.
    [(1, 0.5, 0.5), (2, 1.0, 1 / 3), (4, 3.0, 0.50943), (10, 8.0, 0.40918)],
)
def test_erlang_c_agrees_with_the_tables(count: int, load: float, waiting: float) -> None:
    assert replica.erlang_c(count, load) == pytest.approx(waiting, rel=1e-4)


@given(servers, busy)
def test_the_chance_of_waiting_is_between_that_of_loss_and_one(count: int, share: float) -> None:
    load = count * share
    assert replica.erlang_b(count, load) <= replica.erlang_c(count, load) + 1e-12
    assert 0 <= replica.erlang_c(count, load) <= 1


@given(servers, busy)
def test_one_more_server_never_lengthens_the_wait(count: int, share: float) -> None:
    rate = count * share
    now = replica.mean_wait(count, rate, 1.0)
    assert replica.mean_wait(count + 1, rate, 1.0) <= now + 1e-12


def test_a_queue_without_room_grows_forever() -> None:
    assert replica.mean_wait(4, 4.0, 1.0) == math.inf
    assert replica.wait_quantile(4, 5.0, 1.0)(0.99) == math.inf
    assert replica.erlang_c(4, 4.0) == 1.0


@given(servers, busy)
def test_the_mean_wait_is_the_integral_of_the_quantiles(count: int, share: float) -> None:
    rate = count * share
    steps = 2000
    quantile = replica.wait_quantile(count, rate, 1.0)
    waits = [quantile((i + 0.5) / steps) for i in range(steps)]
    mean = replica.mean_wait(count, rate, 1.0)
    assert sum(waits) / steps == pytest.approx(mean, rel=0.02, abs=1e-3)


@pytest.mark.parametrize(("count", "load"), [(0, 1.0), (3, -1.0)])
def test_impossible_queues_are_refused(count: int, load: float) -> None:
    with pytest.raises(ValueError, match=r"server|load"):
        replica.erlang_b(count, load)
