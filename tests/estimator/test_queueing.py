"""Waiting lines against Erlang's formulas, simulations and what must always hold."""

import doctest
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.estimator.estimates.serving_capacity import (
    ServingCapacityInputs,
    build_replica_profile,
)
from app.estimator.serving import queueing
from app.estimator.serving.replica import (
    find_max_rate_batch,
    operating_point_at_batch,
    operating_point_at_rate,
)
from app.estimator.serving.simulation import quantile, simulate_replica
from tests.amounts import each_of_sample

servers = st.integers(1, 200)
busy = st.floats(0.01, 0.99)


def test_examples_in_the_docstrings_hold() -> None:
    assert doctest.testmod(queueing).failed == 0


@pytest.mark.parametrize(
    ("count", "load", "waiting"),
    # Erlang C as tabulated for M/M/c; one server waits with probability ρ.
    [(1, 0.5, 0.5), (2, 1.0, 1 / 3), (4, 3.0, 0.50943), (10, 8.0, 0.40918)],
)
def test_erlang_c_agrees_with_the_tables(count: int, load: float, waiting: float) -> None:
    assert queueing.erlang_c_waiting_probability(count, load) == pytest.approx(waiting, rel=1e-4)


@given(servers, busy)
def test_the_chance_of_waiting_is_between_that_of_loss_and_one(count: int, share: float) -> None:
    load = count * share
    assert (
        queueing.erlang_b_blocking_probability(count, load)
        <= queueing.erlang_c_waiting_probability(count, load) + 1e-12
    )
    assert 0 <= queueing.erlang_c_waiting_probability(count, load) <= 1


@given(servers, busy)
def test_one_more_server_never_lengthens_the_wait(count: int, share: float) -> None:
    rate = count * share
    now = queueing.mean_queue_wait(count, rate, 1.0)
    assert queueing.mean_queue_wait(count + 1, rate, 1.0) <= now + 1e-12


def test_a_queue_without_room_grows_forever() -> None:
    assert queueing.mean_queue_wait(4, 4.0, 1.0) == math.inf
    assert queueing.build_wait_quantile(4, 5.0, 1.0)(0.99) == math.inf
    assert queueing.erlang_c_waiting_probability(4, 4.0) == 1.0


@given(servers, busy)
def test_the_mean_wait_is_the_integral_of_the_quantiles(count: int, share: float) -> None:
    rate = count * share
    steps = 2000
    quantile = queueing.build_wait_quantile(count, rate, 1.0)
    waits = [quantile((i + 0.5) / steps) for i in range(steps)]
    mean = queueing.mean_queue_wait(count, rate, 1.0)
    assert sum(waits) / steps == pytest.approx(mean, rel=0.02, abs=1e-3)


@pytest.mark.parametrize(("count", "load"), [(0, 1.0), (3, -1.0)])
def test_impossible_queues_are_refused(count: int, load: float) -> None:
    with pytest.raises(ValueError, match=r"server|load"):
        queueing.erlang_b_blocking_probability(count, load)


@each_of_sample(
    "model, gpu, tensor, prompt, answer",
    [
        ("llama-3.1-70b", "H200", 2, 4000, 300),
        ("llama-3.1-70b", "H200", 4, 4000, 300),
        ("llama-3.1-70b", "H100", 4, 500, 1000),
        ("llama-3.1-8b", "H100", 1, 1000, 200),
        ("llama-3.1-8b", "H100", 1, 200, 200),
        ("gpt-oss-120b", "H100", 2, 2000, 500),
    ],
    2,
)
def test_random_arrivals_see_what_a_simulation_sees(
    model: str, gpu: str, tensor: int, prompt: int, answer: int, subtests: pytest.Subtests
) -> None:
    inputs = ServingCapacityInputs(
        model=model,
        gpu=gpu,
        tensor_parallel=tensor,
        prompt_tokens=prompt,
        output_tokens=answer,
        requests_per_second=1.0,
    )
    profile = build_replica_profile(inputs)
    most = profile.request_rate_at_batch(find_max_rate_batch(profile))
    for load in (0.05, 0.2, 0.4, 0.6, 0.8):
        point = operating_point_at_rate(profile, load * most)
        assert point is not None
        drawn = [
            simulate_replica(profile, point.requests_per_second, 2000, seed) for seed in (1, 2)
        ]
        for share in (0.5, 0.95):
            for name in ("ttft", "tpot"):
                with subtests.test(load=load, share=share, name=name):
                    seen = [quantile(getattr(result, name), share) or 0.0 for result in drawn]
                    formula = getattr(point, f"{name}_by_share")[share]
                    assert 0.8 < formula / (sum(seen) / len(seen)) < 1.25


def test_prompts_that_are_cached_share_a_step_in_the_simulation_too() -> None:
    """Of 20,000 tokens 200 are read: forty such prompts fit in a step of 8,192, not one."""
    inputs = ServingCapacityInputs(
        model="llama-3.1-8b",
        tensor_parallel=1,
        prompt_tokens=20_000,
        output_tokens=5,
        cached_share=0.99,
        requests_per_second=1.0,
    )
    profile = build_replica_profile(inputs)
    point = operating_point_at_rate(
        profile, 0.8 * profile.request_rate_at_batch(find_max_rate_batch(profile))
    )
    assert point is not None
    drawn = simulate_replica(profile, point.requests_per_second, 2000)
    assert quantile(drawn.ttft, 0.95) == pytest.approx(point.ttft_by_share[0.95], rel=0.25)


@pytest.mark.parametrize("users", [4, 16, 64])
def test_a_fixed_number_of_users_sees_the_spread_of_a_simulation(users: int) -> None:
    profile = build_replica_profile(ServingCapacityInputs(tensor_parallel=4))
    point = operating_point_at_batch(profile, users)
    drawn = simulate_replica(profile, point.requests_per_second, 2000, fixed_users=users)
    for share in (0.5, 0.95, 0.99):
        assert point.tpot_by_share[share] == pytest.approx(quantile(drawn.tpot, share), rel=0.1)
