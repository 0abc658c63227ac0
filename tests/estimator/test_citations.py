"""Lines of the working cite the paper in which their formula stands."""

import pytest

from app.estimator.registry import run_estimate


def sources(name, **typed):
    """The source of each line by its figure."""
    return {step.output_name: step.source for step in run_estimate(name, typed).steps}


@pytest.mark.parametrize(
    ("model", "paper"),
    [
        ("deepseek-v3", "deepseek-v2"),  # latent attention, section 2.1
        ("mistral-7b-v0.1", "mistral-7b"),  # a sliding window, section 2
        ("llama-3.1-8b", "shazeer-2019"),  # the size of a cache, section 2.4
        ("mamba-2.8b", "mamba"),
    ],
)
def test_a_cache_cites_the_paper_on_its_kind_of_attention(model, paper) -> None:
    assert sources("kv-cache", model=model)["per_sequence"] == paper
    serving = sources("inference-memory", model=model, tensor_parallel=1)
    assert serving["kv_cache"] == paper


def test_the_price_of_a_run_cites_a_report_that_multiplies_hours_by_it() -> None:
    # DeepSeek-V3 (2024), table 1: GPU hours times a rent that is assumed.
    assert sources("training-time")["cost"] == "deepseek-v3"


@pytest.mark.parametrize(
    ("method", "weights", "optimizer"),
    [("full", "zero", "zero"), ("lora", "lora", "lora"), ("qlora", "qlora", "lora")],
)
def test_states_cite_the_paper_on_the_way_of_tuning(method, weights, optimizer) -> None:
    found = sources("training-memory", model="llama-3.1-8b", method=method)
    assert (found["weights"], found["optimizer"]) == (weights, optimizer)


# ZeRO, section 3.1: 2 bytes of weights, 2 of gradients, 12 of Adam; Muon keeps one
# moment. MLPerf Storage prints sizes of checkpoints, but not what they are made of.
@pytest.mark.parametrize(
    ("content", "paper", "parts"),
    [
        ("adamw", "zero", "(2 B + 4 B + 4 B + 4 B)"),
        ("adamw-12", "zero", "(4 B + 4 B + 4 B)"),
        ("muon", "muon", "(2 B + 4 B + 4 B)"),
        ("weights", "zero", "2 B"),
    ],
)
def test_a_checkpoint_cites_the_paper_on_its_states(content, paper, parts) -> None:
    answer = run_estimate("storage", {"content": content})
    line = next(step for step in answer.steps if step.output_name == "checkpoint")
    assert line.source == paper
    assert line.substituted.replace("\u00a0", " ").endswith(f"× {parts}")
