"""Training memory: one answer in two calculators, and peaks that others measured."""

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from app.estimator.inputs import InvalidInputsError
from app.estimator.registry import run_estimate
from app.estimator.result import Estimate
from app.estimator.training.training_plan import SOFTWARE

GIB = 2.0**30

LAYOUTS = st.fixed_dictionaries(
    {
        "model": st.sampled_from(
            ["llama-3.1-8b", "70B", "llama-3.1-405b", "deepseek-v3", "mixtral-8x7b"]
        ),
        "gpu": st.sampled_from(["h100", "h200", "b200", "a100"]),
        "gpus": st.sampled_from([1, 8, 64, 512, 2048, 16384]),
        "tensor_parallel": st.sampled_from([1, 2, 8]),
        "pipeline_parallel": st.sampled_from([1, 2, 8, 16]),
        "context_parallel": st.sampled_from([1, 2]),
        "expert_parallel": st.sampled_from([1, 8]),
        "interleave": st.sampled_from([1, 2]),
        "sequence": st.sampled_from([2048, 8192, 32768]),
        "micro_batch": st.sampled_from([1, 2, 4]),
        "zero": st.sampled_from(["0", "1", "3"]),
        "recompute": st.sampled_from(["none", "selective", "operators", "full"]),
        "sequence_parallel": st.booleans(),
    }
)


@given(
    layout=LAYOUTS,
    software=st.sampled_from(sorted(SOFTWARE)),
    wide=st.booleans(),
    batches=st.none() | st.sampled_from([1, 5, 64]),
)
@settings(suppress_health_check=[HealthCheck.filter_too_much])
def test_memory_and_time_agree_to_the_byte(
    layout: dict[str, object], software: str, wide: bool, batches: int | None
) -> None:
    """The same run asked of both calculators, whatever its layout is."""
    kind = SOFTWARE[software]
    group = layout["tensor_parallel"] * layout["pipeline_parallel"]
    data = layout["gpus"] // (group * layout["context_parallel"])
    whole = {"global_batch": batches and batches * data * layout["micro_batch"]}
    habits = {
        "framework": kind.framework_id,
        "fused_loss": kind.fuses_loss,
        "precision": "bf16-mixed-fp32-grads" if wide else "bf16-mixed",
        "micro_batches": batches,
    }
    try:
        memory = run_estimate("training-memory", {**layout, **habits})
        gradients = "fp32" if wide else "bf16"
        run = {**layout, **whole, "software": software, "gradients": gradients}
        time = run_estimate("training-time", run)
    except InvalidInputsError:
        assume(condition=False)
    assert time["memory"].value == memory["per_gpu"].value
    assert time["fits"].value == memory["fits"].value


def test_deepseek_is_one_size_in_both_calculators() -> None:
    layout = {
        "model": "deepseek-v3",
        "gpu": "h800",
        "gpus": 2048,
        "pipeline_parallel": 16,
        "expert_parallel": 64,
        "recompute": "selective",
        "zero": "1",
    }
    memory = run_estimate("training-memory", {**layout, "framework": "megatron"})
    time = run_estimate("training-time", layout)
    assert memory["per_gpu"].value == time["memory"].value


# torchtune's README of release 0.3: peaks per GPU of Llama 3.1 8B, batch 2, packed to
# 2,048 tokens, compiled; its recipes train rank 8 in BF16.
@pytest.mark.parametrize(
    ("method", "recompute", "gpu", "peak"),
    [
        ("lora", "full", "rtx-4090", 16.2),
        ("lora", "none", "rtx-6000-ada", 30.3),
        ("qlora", "full", "rtx-4090", 7.4),
    ],
)
def test_adapters_on_one_card_take_what_torchtune_measured(
    method: str, recompute: str, gpu: str, peak: float
) -> None:
    found = run_estimate(
        "training-memory",
        {
            "model": "llama-3.1-8b",
            "method": method,
            "gpu": gpu,
            "gpus": 1,
            "sequence": 2048,
            "micro_batch": 2,
            "rank": 8,
            "precision": "bf16",
            "recompute": recompute,
        },
    )
    assert found["allocated"].value == pytest.approx(peak * GIB, rel=0.1)
    assert found["fits"].value is True


def test_adapters_of_8b_fit_a_24_gb_card_as_they_are_asked_first() -> None:
    """Measured: 16.2 GiB in torchtune's table, 18.5 GB in its tutorial."""
    found = run_estimate(
        "training-memory",
        {
            "model": "llama-3.1-8b",
            "method": "lora",
            "gpu": "rtx-4090",
            "gpus": 1,
            "zero": "0",
            "sequence": 2048,
        },
    )
    assert found.verdict.status == "fits"
    assert "torchtune" in found.verdict.text
    assert (found["free"].low or 0) > 0
    assert 16.2 * GIB < found["allocated"].value < 18.5e9
    assert found["overhead"].value == 1e9


META = {
    "model": "llama-3.1-405b",
    "gpu": "h100",
    "gpus": 16384,
    "tensor_parallel": 8,
    "pipeline_parallel": 16,
    "sequence": 8192,
}


def test_the_layout_of_llama_3_405b_fits_its_cards() -> None:
    """Table 4 of the Llama 3 paper: 16,384 H100s, tensor 8, pipeline 16."""
    found = run_estimate("training-time", {**META, "global_batch": 2048})
    assert found["fits"].value is True
    usual = run_estimate("training-time", META)
    assert usual["memory"].value == found["memory"].value
    assert usual["mfu"].value == found["mfu"].value


def test_a_batch_that_fills_the_pipeline_is_named_before_interleaving() -> None:
    found = run_estimate("training-time", {**META, "global_batch": 512})
    first = found.changes[0]
    assert first.field == "global_batch"
    better = run_estimate(
        "training-time", {**META, "global_batch": first.new_value.replace(",", "")}
    )
    assert better["mfu"].value > 2 * found["mfu"].value
    assert first.verdict_after == f"{better['mfu'].value:.0%} of the peak."


def test_what_helps_a_pipeline_is_ordered_by_its_gain() -> None:
    run = {"model": "70B", "gpus": 512, "tensor_parallel": 4, "pipeline_parallel": 8}
    found = run_estimate("training-time", {**run, "gpu": "b200", "global_batch": 128})
    gains = [c.verdict_after for c in found.changes if c.verdict_after.endswith("of the peak.")]
    assert len(gains) == 2
    assert gains == sorted(gains, reverse=True)


def test_a_suggestion_for_training_leads_to_the_verdict_that_it_names(
    subtests: pytest.Subtests,
) -> None:
    jobs = [
        {"model": model, "gpu": "a100-sxm4-80", "zero": zero, "gpus": gpus}
        for model in ("7B", "llama-2-7b")
        for zero in ("1", "3")
        for gpus in ("1", "2", "3", "8")
    ]
    jobs += [{"model": "70B", "gpus": gpus} for gpus in ("8", "16", "24", "64")]
    jobs += [{"model": "70B", "gpus": "16", "recompute": "none"}]
    for job in jobs:
        answer = run_estimate("training-memory", job)
        for change in answer.changes:
            with subtests.test(job=job, change=change):
                turned = run_estimate("training-memory", job | change.typed_values_by_field)
                surely = change.verdict_after.startswith(("Fits", "Tight", "The fewest"))
                assert (turned.verdict.lead in ("Fits.", "Tight.")) is surely
                if change.field != "gpus":
                    is_tight = turned.verdict.lead == "Tight."
                    assert change.verdict_after.startswith("Tight") is is_tight
        fewest = answer["fewest_gpus"]
        if fewest.value and not fewest.note.startswith("May not fit"):
            with subtests.test(job=job, fewest=fewest.value):
                turned = run_estimate("training-memory", job | {"gpus": str(fewest.value)})
                assert turned.verdict.lead in ("Fits.", "Tight.")


def test_a_job_that_may_not_fit_is_told_what_surely_does() -> None:
    job = {"model": "7B", "gpu": "a100-sxm4-80", "zero": "1"}
    two, three = (run_estimate("training-memory", {**job, "gpus": gpus}) for gpus in ("2", "3"))
    assert (two.verdict.lead, three.verdict.lead) == ("May not fit.", "Fits.")
    for answer in (two, three):
        fewest = answer["fewest_gpus"]
        assert (fewest.low, fewest.value, fewest.high) == (2, 3, 3)
        assert fewest.note.startswith("3 surely fit, 2 by the central estimate. In this layout,")
    change = two.changes[0]
    assert (change.field, change.new_value) == ("gpus", "4")  # Nobody has three.
    assert change.verdict_after == "Fits even at the high end of the range."


def test_the_fewest_gpus_are_said_to_be_those_of_one_layout_or_of_any() -> None:
    run = run_estimate("training-run", {"model": "8B", "gpus": "96", "tokens": "2T"})
    memory, plan = (
        next(s.estimate for s in run.sections if s.estimate_name == name)["fewest_gpus"]
        for name in ("training-memory", "parallelism-plan")
    )
    free = run_estimate("training-memory", {"model": "8B", "gpus": "96"})["fewest_gpus"]
    # Its layout keeps ZeRO 1 and no recomputation, where both change on the fewest that there are.
    assert memory.value > free.value == plan.value
    assert "with ZeRO 1 and no recomputation" in memory.note
    assert "ZeRO stage and recomputation that they need" in free.note
    assert "any layout" in plan.note


def test_gpus_that_make_a_job_fit_are_as_many_as_people_have(subtests: pytest.Subtests) -> None:
    for job in (
        {"model": "llama-3.1-70b", "gpu": "rtx-4090", "method": "lora", "gpus": "1"},
        {"model": "llama-3.1-70b", "gpu": "h100", "gpus": "8"},
        {"model": "llama-3.1-70b", "gpu": "h100", "gpus": "6", "tensor_parallel": "2"},
    ):
        with subtests.test(job=job):
            answer = run_estimate("training-memory", job)
            change = answer.find_verdict_change("gpus")
            gpus = int(change.new_value)
            assert gpus in (2, 4) or gpus % 8 == 0
            assert gpus >= answer["fewest_gpus"].high
            turned = run_estimate("training-memory", job | change.typed_values_by_field)
            assert turned.verdict.lead in ("Fits.", "Tight.")


def test_embeddings_in_fp32_are_gathered_in_16_bit() -> None:
    job = {"model": "qwen3-14b", "gpu": "rtx-4090", "method": "qlora", "gpus": "2"}
    job |= {"framework": "transformers"}
    plain, cast = (
        run_estimate("training-memory", job | {"qlora_embeddings": width})
        for width in ("bf16", "fp32")
    )
    tables = 2 * 151_936 * 5_120
    # Only the shards are wider: two more bytes over two GPUs.
    assert cast["weights"].value - plain["weights"].value == pytest.approx(tables, rel=0.01)
    assert cast["overhead"].value == pytest.approx(plain["overhead"].value, rel=0.05)
    step = next(step for step in cast.steps if step.output_name == "overhead")
    assert "gathered weights: embeddings, output head and two layers" in step.formula


def _run_on_eight_a100(**changes: str) -> Estimate:
    job = {"model": "7B", "gpu": "a100-sxm4-80", "gpus": "8"}
    return run_estimate("training-memory", job | changes)


def test_what_surely_fits_with_some_recomputation_is_never_said_to_be_unsure(
    subtests: pytest.Subtests,
) -> None:
    recipes = ({"zero": "3"}, {"zero": "1"}, {"zero": "1", "framework": "transformers"})
    for recipe in recipes:
        limits = set()
        for sequence in ("1", "4096", "6500", "8192", "12500", "20000"):
            with subtests.test(recipe=recipe, sequence=sequence):
                answer = _run_on_eight_a100(**recipe, sequence=sequence)
                kinds = ("none", "selective", "operators", "full")
                surely = [
                    _run_on_eight_a100(**recipe, sequence=sequence, recompute=kind).verdict.lead
                    in ("Fits.", "Tight.")
                    for kind in kinds
                    if kind != "operators" or "framework" not in recipe
                ]
                assert any(surely)
                assert answer.verdict.lead in ("Fits.", "Tight.")
                limits.add(next(c.new_value for c in answer.changes if c.field == "sequence"))
        # All of them name the same limit, and it is one.
        with subtests.test(recipe=recipe):
            (limit,) = limits
            tokens = int(limit.partition("\u00a0")[0].replace(",", ""))
            longest, longer = (
                _run_on_eight_a100(**recipe, sequence=str(n)) for n in (tokens - 1, tokens)
            )
            assert longest.verdict.lead in ("Fits.", "Tight.")
            assert longer.verdict.lead == "May not fit."
            assert "Recomputation: full, as with less it may not fit." in longer.notes


def test_the_fewest_gpus_are_those_of_the_verdict(subtests: pytest.Subtests) -> None:
    transformers = {"zero": "1", "framework": "transformers"}
    jobs = (
        ({"zero": "1"}, 2, 3),
        ({"zero": "3", "sequence": "12500"}, 2, 2),
        ({"zero": "3", "framework": "transformers", "sequence": "8192"}, 2, 2),
        (transformers | {"micro_batches": "8"}, 2, 3),
        (transformers | {"sequence": "6500"}, 2, 3),
        (transformers | {"sequence": "32000"}, 3, 44),
    )
    for job, low, fewest in jobs:
        with subtests.test(job=job):
            answer = _run_on_eight_a100(**job)
            figure = answer["fewest_gpus"]
            assert (figure.low, figure.value, figure.high) == (low, fewest, fewest)
            assert "may fit" not in figure.note
            enough, fewer = (
                _run_on_eight_a100(**job | {"gpus": str(n)}).verdict.lead
                for n in (fewest, fewest - 1)
            )
            assert enough in ("Fits.", "Tight.")
            assert fewer in ("May not fit.", "Does not fit.")
            assert (answer.verdict.lead == "May not fit.") is (fewest > 8)


def test_the_fewest_gpus_of_a_job_that_fits_are_said_to_be_the_fewest() -> None:
    change = run_estimate("training-memory", {"gpus": "32"}).changes[0]
    there, fewer = (
        run_estimate("training-memory", {"gpus": gpus}).verdict.lead in ("Fits.", "Tight.")
        for gpus in (change.new_value, str(int(change.new_value) - 1))
    )

    assert change.verdict_after == "The fewest that fit."
    assert (there, fewer) == (True, False)
