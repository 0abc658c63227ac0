"""Failures, pipelines, traffic, energy and money against published numbers."""

import doctest
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.estimator.hardware import collectives as traffic
from app.estimator.serving import step_time as speculative
from app.estimator.training import run_costs
from app.estimator.training import step_time as pipeline

MODULES = [run_costs, pipeline, speculative, traffic]
seconds = st.floats(1, 1e5)


def test_examples_in_the_docstrings_hold(subtests: pytest.Subtests) -> None:
    for module in MODULES:
        with subtests.test(module.__name__):
            assert doctest.testmod(module).failed == 0  # type: ignore[arg-type]


def test_llama_3_stopped_every_three_hours() -> None:
    # Llama 3 paper, section 3.3.4: 419 unexpected stops in 54 days, 16,384 GPUs.
    job = run_costs.observed_mtbf(54 * 86400.0, 419)
    assert job == pytest.approx(3.09 * 3600, rel=0.002)
    assert run_costs.job_mtbf(job * 16384, 16384) == pytest.approx(job)


@given(seconds, seconds)
def test_youngs_interval_loses_least(checkpoint: float, mtbf: float) -> None:
    best = run_costs.young_checkpoint_interval(checkpoint, mtbf)
    most = run_costs.first_order_goodput(best, checkpoint, 0.0, mtbf)
    for other in (best * 0.8, best * 1.25):
        assert run_costs.first_order_goodput(other, checkpoint, 0.0, mtbf) <= most + 1e-12


@given(seconds, st.floats(1e3, 1e7))
def test_goodput_is_a_share(checkpoint: float, mtbf: float) -> None:
    interval = run_costs.daly_checkpoint_interval(checkpoint, mtbf)
    for share in (run_costs.first_order_goodput, run_costs.daly_goodput):
        assert 0 <= share(interval, checkpoint, 60.0, mtbf) <= 1


def test_dalys_interval_nears_youngs_for_short_checkpoints() -> None:
    young = run_costs.young_checkpoint_interval(1.0, 1e8)
    assert run_costs.daly_checkpoint_interval(1.0, 1e8) == pytest.approx(young, rel=1e-3)


def test_the_pipeline_of_megatron_idles_an_eighth() -> None:
    # Narayanan et al. 2021, section 2.2.1: 64 stages and 512 micro-batches.
    assert pipeline.pipeline_bubble(64, 512) == pytest.approx(0.123, rel=1e-3)


@given(st.integers(1, 64), st.integers(1, 512), st.integers(1, 8))
def test_more_microbatches_and_pieces_never_idle_more(
    stages: int, batches: int, chunks: int
) -> None:
    idle = pipeline.pipeline_bubble(stages, batches, chunks)
    assert pipeline.pipeline_bubble(stages, batches + 1, chunks) <= idle
    assert pipeline.pipeline_bubble(stages, batches, chunks + 1) <= idle


@given(st.integers(1, 4096), st.floats(1, 1e12))
def test_a_ring_never_sends_more_than_twice_the_message(ranks: int, message: float) -> None:
    sent = traffic.bytes_sent_per_rank("all_reduce", ranks, message)
    assert 0 <= sent <= 2 * message
    halves = traffic.bytes_sent_per_rank("reduce_scatter", ranks, message)
    halves += traffic.bytes_sent_per_rank("all_gather", ranks, message)
    assert sent == pytest.approx(halves)


def test_deepseek_sends_its_tokens_in_121_microseconds() -> None:
    # Insights into DeepSeek-V3, section 2.3.2, with 7K taken as 7,000.
    sent = traffic.expert_parallel_layer_bytes_per_rank(32, 9, 7000, 1 + 2)
    assert sent / 50e9 == pytest.approx(120.96e-6)


@given(st.floats(0, 1), st.integers(0, 16))
def test_speculation_yields_between_one_and_all_tokens(acceptance: float, draft: int) -> None:
    tokens = speculative.tokens_per_step(acceptance, draft)
    assert 1 <= tokens <= draft + 1 + 1e-9


def test_llama_2_carbon_is_table_2_of_its_paper() -> None:
    drawn = run_costs.site_energy_watt_seconds(1720320 * 3600.0, 400.0, 1.1)
    assert run_costs.carbon_emitted_kg(drawn, 0.385) / 1e3 == pytest.approx(291.42, rel=1e-3)


def test_llama_1_energy_is_table_15_of_its_paper() -> None:
    drawn = run_costs.site_energy_watt_seconds(530432 * 3600.0, 400.0, 1.1)
    assert drawn / 3.6e9 == pytest.approx(233, rel=0.005)


def test_deepseek_v3_cost_is_table_1_of_its_report() -> None:
    assert run_costs.rental_cost(2.788e6, 2.0) == 5.576e6


@given(st.floats(1e-6, 0.3), st.floats(1, 30))
def test_an_annuity_repays_the_price_with_interest(rate: float, years: float) -> None:
    assert run_costs.annuity_factor(rate, years) * years >= 1 - 1e-9


def test_mlperf_storage_checkpoints_hold_14_bytes_a_parameter() -> None:
    # MLPerf Storage v2.0, table 2: 912 GB, in binary units, for 70 B parameters.
    size = run_costs.checkpoint_bytes(70.6e9)
    assert size == pytest.approx(912 * 2**30, rel=0.03)


def test_values_out_of_range_are_refused(subtests: pytest.Subtests) -> None:
    for call in [
        lambda: pipeline.pipeline_bubble(0, 1),
        lambda: traffic.bytes_sent_per_rank("all_reduce", 0, 1.0),
        lambda: run_costs.site_energy_watt_seconds(1.0, 1.0, 0.9),
        lambda: speculative.tokens_per_step(1.1, 3),
        lambda: run_costs.young_checkpoint_interval(0.0, 10.0),
        lambda: run_costs.usd_per_million_tokens(0.0, 1, 1.0),
        lambda: run_costs.annuity_factor(0.1, 0),
        lambda: run_costs.bandwidth_to_write_in_time(1.0, 0.0),
    ]:
        with subtests.test(call=call), pytest.raises(ValueError, match=r".+"):
            call()  # type: ignore[operator]


def test_infinities_do_not_leak_from_long_recoveries() -> None:
    assert math.isfinite(run_costs.daly_goodput(1e9, 1.0, 1e9, 1.0))
