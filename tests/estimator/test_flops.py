"""Training operations against published figures in their conventions."""

import doctest

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.estimator.models.lookup import find_model
from app.estimator.training import flops


def test_examples_in_the_docstrings_hold() -> None:
    assert doctest.testmod(flops).failed == 0


@pytest.mark.parametrize(
    ("model", "context", "published", "within"),
    [
        # Megatron-Bridge performance tables: model TFLOP/s over tokens/s.
        ("llama-3.1-405b", 8192, 2.5243e12, 0.002),
        ("qwen3-235b-a22b", 4096, 1.4798e11, 0.004),
        # Insights into DeepSeek-V3 (2025), table 2.
        ("deepseek-v3", 4096, 2.50e11, 0.004),
        ("deepseek-v2", 4096, 1.55e11, 0.004),
    ],
)
def test_operations_per_token_are_the_published_ones(
    model: str, context: int, published: float, within: float
) -> None:
    ours = flops.training_flops_per_token(find_model(model), context)
    assert ours == pytest.approx(published, rel=within)


def test_gpt_3_took_three_hundred_yottaflops() -> None:
    # Brown et al. 2020, table D.1.
    assert flops.training_flops_without_attention(174.6e9, 300e9) == pytest.approx(
        3.14e23, rel=0.002
    )


def test_the_530_billion_model_ran_at_56_percent() -> None:
    # Korthikanti et al. 2022, table 5: 37.83 s for 280 sequences on 280 A100.
    per_token = flops.narayanan_training_flops_per_token(105, 20480, 51200, 2048)
    rate = 280 * 2048 / 37.83 / 280
    reached = flops.flops_utilization(per_token, rate, 312e12)
    assert reached == pytest.approx(0.56, rel=0.008)


@given(st.integers(1, 10**6), st.one_of(st.none(), st.integers(1, 10**6)))
def test_a_window_only_ever_hides_tokens(context: int, window: int | None) -> None:
    assert 0 < flops.mean_visible_tokens(context, window) <= context / 2


@given(st.integers(128, 10**6))
def test_longer_sequences_cost_more_per_token(context: int) -> None:
    model = find_model("llama-3.1-8b")
    now = flops.training_flops_per_token(model, context)
    assert now < flops.training_flops_per_token(model, 2 * context)
    assert now < flops.training_flops_per_token(model, context, causal=False)
