"""The choice of an accelerator: its order, its reasons, and what must always hold."""

import dataclasses
import doctest

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from app.estimator.estimates import accelerator_choice as terms
from app.estimator.estimates import accelerator_choice_report as entry
from app.estimator.estimates.accelerator_choice import RANKS as RANKS_OFFERED
from app.estimator.estimates.accelerator_choice import AcceleratorChoiceInputs, rank_gpus
from app.estimator.hardware.catalog import list_accelerators
from app.estimator.inputs import InvalidInputsError, parse_inputs
from app.estimator.registry import run_estimate
from tests.amounts import sample

RANKS = st.sampled_from([rank for rank, _ in RANKS_OFFERED if rank != "cost"])
MODELS = st.sampled_from(["llama-3.1-8b", "llama-3.1-70b", "mixtral-8x7b", "7B"])


def estimate(**changed):
    return entry.estimate(dataclasses.replace(AcceleratorChoiceInputs(), **changed))


def found(**changed):
    """What was searched, with candidates and reasons against."""
    return rank_gpus(dataclasses.replace(AcceleratorChoiceInputs(), **changed))


def reason(name, **changed):
    """Why a GPU is left out; None where it is a candidate."""
    reasons = {gpu.id: why for gpu, why in found(**changed).excluded}
    return reasons.get(name)


def test_examples_in_the_docstrings_hold():
    assert doctest.testmod(terms).failed == 0


def test_every_accelerator_of_the_catalogue_is_ranked_left_out_or_shown_beside():
    result = found()
    named = {c.gpu.id for c in result.candidates_best_first} | {g.id for g, _ in result.excluded}
    named |= {a.id for a in terms.list_non_gpu_accelerators()}
    assert named == {a.id for a in list_accelerators()}


def test_a_70b_model_in_16_bit_fits_on_none_of_80_gb_alone():
    long = {"context": 8192, "concurrent": 16}
    counts = {c.gpu.id: c.gpu_count for c in found(**long).candidates_best_first}
    assert counts["h100-sxm5-80"] == 4
    assert counts["h200-sxm5-141"] == 2
    assert counts["mi325x"] == 1


def test_a_7b_model_in_4_bit_runs_on_a_small_card():
    # 4 GB of weights: a card of 24 GB holds them with their cache.
    one = {"model": "7B", "weights": "int4", "concurrent": 1}
    counts = {c.gpu.id: c.gpu_count for c in found(**one).candidates_best_first}
    assert counts["l4"] == 1


def test_a_card_that_cannot_even_unpack_fp8_is_left_out_for_it():
    assert "compute capability 8.0" in reason("t4", weights="fp8")
    assert reason("a100-sxm4-80", weights="fp8") is None
    assert reason("h100-sxm5-80", weights="fp8") is None
    only = estimate(only="a100-sxm4-80", weights="fp8")
    assert any("weight-only" in note for note in only.notes)


def test_reasons_name_the_limit_that_was_set():
    assert reason("mi300x", vendor="NVIDIA") == "Made by AMD."
    assert reason("h100-sxm5-80", form="card") == "A module."
    assert reason("gb200-gpu", cooling="air") == "Cooled by liquid."
    assert reason("mi355x", cooling="air") == "Its cooling is not known here."
    assert reason("b200-sxm", most_power=700.0) == "Draws 1,000\u00a0W."
    assert reason("l40s", least_memory=80e9) == "Has 48.3\u00a0GB."
    assert reason("b200-sxm", total_power=1500.0) == "2\u00a0GPUs draw 2,000\u00a0W."
    assert "for a token" in reason("a40")
    assert "domain" in reason("l4")


def test_an_unknown_rate_is_said_and_not_guessed():
    candidates = found().candidates_best_first
    assert [c.gpu.id for c in candidates if c.seconds_per_token is None] == [
        "rtx-pro-6000-bw-server"
    ]
    assert candidates[-1].gpu.id == "rtx-pro-6000-bw-server"
    beside = next(t for t in estimate().tables if t.label == "Beside the ranking")
    wafer = next(row for row in beside.rows if row[0].startswith("Cerebras"))
    assert wafer[-1] == "16-bit rate, 8-bit rate"


def test_an_lpu_needs_hundreds_of_chips_for_70b():
    beside = next(t for t in estimate().tables if t.label == "Beside the ranking")
    row = next(row for row in beside.rows if row[0].startswith("Groq LPU"))
    assert row[1][0] == pytest.approx(141.1 / 0.23, rel=0.01)


def test_rare_cards_are_ranked_only_when_asked_for():
    assert reason("rtx-4090", model="7B") is not None
    assert reason("rtx-4090", model="7B", rare=True) is None


# NVIDIA sells the B300 on boards of eight and the GB200 in racks of 72, the H200 on
# boards of four and eight.
@pytest.mark.parametrize(
    ("only", "job", "whole", "says"),
    [
        ("b300-sxm", "serving", 8, ", sold on boards of 8."),
        ("gb200-gpu", "serving", 72, ", sold in racks of 72."),
        ("h200-sxm5-141", "serving", 4, ", sold on boards of 4."),
        ("h100-sxm5-80", "serving", 4, "4x H100 SXM5 80GB."),
    ],
)
def test_what_is_bought_can_be_ordered(only, job, whole, says):
    answer = estimate(only=only, job=job)
    assert answer["bought"].value == whole
    assert answer.verdict.lead.endswith(says)


@pytest.mark.parametrize(("only", "unit"), [("gb200-gpu", 72), ("b300-sxm", 8), ("gh200-96", 1)])
def test_training_takes_whole_boards_and_racks(only, unit):
    answer = estimate(job="training", only=only, model="llama-3.1-70b")
    assert answer["gpus"].value == answer["bought"].value
    assert answer["gpus"].value % unit == 0


def test_prices_rank_and_budgets_exclude():
    priced = {"prices": "h100 4, h200 = 5.2; b200 9", "rank": "cost"}
    best = found(**priced).candidates_best_first[0]
    assert (best.gpu.id, best.hourly_cost) == ("h200-sxm5-141", 10.4)
    over = {**priced, "budget": 11.0}
    assert reason("b200-sxm", **over) == "2\u00a0GPUs cost 18.00\u00a0USD/h."
    assert reason("l40s", **over) is not None


def test_the_verdict_says_what_the_first_is_best_by(subtests: pytest.Subtests):
    for changed, criterion in [
        ({"rank": "gpus"}, "fewest GPUs, then NVIDIA's, then least power"),
        ({"rank": "power"}, "least power"),
        ({"rank": "speed"}, "shortest time per token"),
        ({"rank": "speed", "job": "training"}, "fewest GPU-hours"),
        ({"rank": "cost", "prices": "h100 4"}, "lowest cost of an hour"),
        (
            {"rank": "cost", "prices": "h100 4", "job": "training"},
            "lowest cost of the training",
        ),
    ]:
        with subtests.test(changed=changed, criterion=criterion):
            assert f"it comes first by {criterion}; next" in estimate(**changed).verdict.text


def test_one_gpu_alone_is_first_of_nothing():
    text = estimate(only="h200-sxm5-141").verdict.text
    assert text.startswith("It can serve Llama 3.1 70B. That is one copy")


def test_a_cheap_hour_that_takes_long_makes_no_cheap_training():
    job = {"job": "training", "rank": "cost", "model": "llama-3.1-8b", "tokens": 1e9}
    answer = found(**job, prices="h100 4, a100-sxm4-80 2.2")
    best, other = answer.candidates_best_first[:2]
    assert (best.gpu.id, other.gpu.id) == ("h100-sxm5-80", "a100-sxm4-80")
    assert best.hourly_cost > other.hourly_cost
    assert best.gpu_hours * best.hourly_price_per_gpu < other.gpu_hours * other.hourly_price_per_gpu
    shown = estimate(**job, prices="h100 4, a100-sxm4-80 2.2")
    assert shown["run_cost"].value == best.gpu_hours * best.hourly_price_per_gpu


def test_a_cost_without_prices_does_not_apply_and_is_not_unknown():
    assert estimate()["cost"].formatted_value == "does not apply"
    assert estimate(prices="h100 4")["cost"].note == "No price was given for it."


def test_costs_without_typed_prices_are_by_list_price_and_rank_nothing():
    job = {"job": "training", "model": "8B", "tokens": 2e12}
    answer = estimate(**job, only="h100-sxm5-80")
    run = run_estimate("training-run", {"model": "8B", "tokens": "2T", "deadline": "30 days"})
    for name, same in (("gpu_hours", "gpu_hours"), ("run_cost", "cost")):
        ours, theirs = answer[name], run[same]
        assert (ours.low, ours.value, ours.high) == (theirs.low, theirs.value, theirs.high)
    assert "list price" in answer["run_cost"].note
    assert any("on-demand list price of" in note for note in answer.notes)
    typed = estimate(**job, only="h100-sxm5-80", prices="h100 4")
    assert not any("list price" in text for text in (typed["run_cost"].note, *typed.notes))
    listed, priced = found(**job), found(**job, prices="h100 4")
    ranked, same = ([c.gpu.id for c in r.candidates_best_first] for r in (listed, priced))
    assert ranked == same
    assert {c.gpu.id for c in priced.candidates_best_first if c.hourly_cost} == {"h100-sxm5-80"}


def test_no_fewer_gpus_are_tried_for_a_training_than_whole_systems(subtests: pytest.Subtests):
    # 8 billion × 16 B ÷ (85.5 GB × 60%) = 2.5 H100, which come in systems of eight.
    for model, fewest in (("8B", 8), ("70B", 24)):
        with subtests.test(model=model):
            answer = estimate(job="training", model=model, only="h100-sxm5-80")
            step = next(s for s in answer.steps if s.label == "Fewest GPUs tried")
            assert step.value == fewest <= answer["gpus"].value


def test_a_value_without_a_primary_source_has_its_name_where_it_matters():
    notes = " ".join(estimate(only="gh200-144").notes)
    assert "_" not in " ".join(n for n in estimate().notes)
    assert "no primary source" not in " ".join(estimate().notes)
    assert "144GB (GPU part): Memory bandwidth." in notes


def test_prices_that_cannot_be_used_are_refused(subtests: pytest.Subtests):
    for changed, says in [
        ({"rank": "cost"}, "Ranking by cost needs prices"),
        ({"budget": 5.0}, "A budget needs prices"),
        ({"prices": "warp-drive 4"}, "not an accelerator"),
        ({"prices": "h100 cheap"}, "not an accelerator and its price"),
        ({"prices": "h100 0"}, "above 0"),
    ]:
        with subtests.test(changed=changed, says=says):
            with pytest.raises(InvalidInputsError, match=says) as refused:
                found(**changed)
            assert refused.value.problems[0].field == "prices"


def test_training_needs_gpus_for_states_and_for_time():
    answer = estimate(job="training", model="llama-3.1-8b", days=365 * 86400.0)
    assert answer["gpu_hours"].low < answer["gpu_hours"].value
    patient, hasty = (
        found(job="training", model="llama-3.1-8b", tokens=1e13, days=d * 86400.0) for d in (300, 5)
    )
    many = {c.gpu.id: c.gpu_count for c in hasty.candidates_best_first}
    few = {c.gpu.id: c.gpu_count for c in patient.candidates_best_first}
    # In 5 days so many of the slowest would work that failures take the time.
    assert 0 < len(many) < len(few)
    assert all(many[key] >= few[key] for key in many)
    assert reason("l4", job="training", tokens=1e13, days=30 * 86400.0) is not None


def test_training_in_eight_bits_takes_fewer_hours_where_the_card_has_them():
    training = {"job": "training", "model": "deepseek-v3", "only": "h800-sxm-80"}
    (wide,), (narrow,) = (
        found(**training, number_format=name).candidates_best_first for name in ("bf16", "fp8")
    )
    assert 0.5 * wide.gpu_hours < narrow.gpu_hours < 0.8 * wide.gpu_hours
    older = {**training, "only": "a100-sxm4-80", "number_format": "fp8"}
    assert reason("a100-sxm4-80", **older) == "It does not compute in FP8."


def test_hours_follow_from_the_share_of_time_that_is_lost():
    training = {"job": "training", "model": "llama-1-65b", "only": "a100-sxm4-80"}
    # With twice the time it takes as many GPUs.
    (lost,), (none,) = (
        found(**training, lost=share, days=days * 86400.0).candidates_best_first
        for share, days in ((0.5, 60), (0.0, 30))
    )
    assert lost.gpu_count == none.gpu_count
    assert lost.gpu_hours == pytest.approx(2 * none.gpu_hours)


def test_training_takes_the_fewest_whole_systems_that_are_in_time(
    subtests: pytest.Subtests,
) -> None:
    run = {"model": "8B", "tokens": "2T"}
    for days in ("10", "12", "18"):
        with subtests.test(days=days):
            choice = run_estimate(
                "accelerator-choice",
                {**run, "job": "training", "days": days, "only": "h100-sxm5-80"},
            )
            fewest = int(choice["gpus"].value)
            assert run_estimate("training-run", run | {"deadline": days})["gpus"].value == fewest
            for gpus in (fewest, fewest - 8, fewest - 16):
                alone = run_estimate("training-run", run | {"gpus": str(gpus)})
                assert (alone["time"].value <= int(days) * 86400) == (gpus == fewest)


@pytest.mark.drawn
def test_choice_plan_and_run_say_the_same_of_one_training(subtests: pytest.Subtests) -> None:
    cases = [
        ("llama-3.1-8b", "h100-sxm5-80", "2T", "usual"),
        ("llama-3.1-8b", "h100-sxm5-80", "2T", "tuned"),
        ("llama-3.1-70b", "h100-sxm5-80", "2T", "usual"),
        ("llama-3.1-70b", "mi300x", "1T", "usual"),
        ("mixtral-8x7b", "b200-sxm", "2T", "usual"),
        ("llama-3.1-8b", "a100-sxm4-40", "1T", "eager"),
        ("qwen3-32b", "h200-sxm5-141", "3T", "usual"),
    ]
    for model, gpu, tokens, software in sample(cases, 2, "three say"):
        with subtests.test(model=model, gpu=gpu, software=software):
            run = {"model": model, "tokens": tokens, "software": software}
            choice = run_estimate(
                "accelerator-choice", {**run, "job": "training", "days": "30", "only": gpu}
            )
            whole = run_estimate("training-run", {**run, "gpu": gpu, "deadline": "30"})
            for figure, same in (
                ("gpus", "gpus"),
                ("gpu_hours", "gpu_hours"),
                ("duration", "time"),
            ):
                assert choice[figure].value == pytest.approx(whole[same].value, rel=1e-9), figure
            for figure, same in (("gpu_hours", "gpu_hours"), ("duration", "time")):
                bounds = (choice[figure].low, choice[figure].high)
                expected = (whole[same].low, whole[same].high)
                assert bounds == pytest.approx(expected, rel=1e-9), figure
            plan = next(
                section for section in whole.sections if section.estimate_name == "parallelism-plan"
            )
            assert choice["need"].value == plan.estimate["memory"].value
            alone = run_estimate(
                "parallelism-plan", {**run, "gpu": gpu, "gpus": str(whole["gpus"].value)}
            )
            assert alone["step_time"] == plan.estimate["step_time"]


def test_of_many_gpus_each_has_the_hours_of_its_own_run() -> None:
    training = {"job": "training", "model": "llama-3.1-8b", "tokens": 2e12}
    for candidate in found(**training, lost=0.2).candidates_best_first[::7]:
        typed = {"model": "llama-3.1-8b", "tokens": "2T", "gpu": candidate.gpu.id}
        typed["gpus"] = str(candidate.gpu_count)
        run = run_estimate("parallelism-plan", typed)
        rate = run["tokens_per_second_per_gpu"].value * 0.8
        assert candidate.gpu_hours == pytest.approx(2e12 / rate / 3600, rel=1e-9)


def test_the_hours_are_of_the_software_that_is_named():
    # LLaMA (2023) was made before PyTorch compiled.
    training = {"job": "training", "model": "llama-1-65b", "only": "a100-sxm4-80"}
    usual, compiled, eager = (
        found(**training, software=name).candidates_best_first[0].gpu_hours
        for name in ("usual", "compiled", "eager")
    )
    assert usual == compiled
    assert 1.02 < eager / compiled < 1.2


def test_nothing_that_does_it_is_a_no_and_not_an_error():
    answer = estimate(model="llama-3.1-405b", weights="fp32", slowest=0.005)
    assert answer.verdict.lead == "No GPU of the catalog does it."
    assert answer["choice"].value is None
    assert answer["candidates"].value == 0


def test_a_gpu_that_does_not_do_it_is_not_taken_for_the_whole_catalog():
    load = {"model": "qwen3-235b-a22b", "weights": "fp8", "context": 32768, "concurrent": 28}
    alone = estimate(**load, only="h100-sxm5-80")
    assert alone.verdict.lead == "No number of H100 SXM5 80GB that is tried does it."
    assert estimate(**load)["candidates"].value > 0


@given(RANKS, MODELS)
def test_the_order_is_that_of_the_ranking(rank, model):
    result = found(rank=rank, model=model).candidates_best_first
    key = {
        "gpus": lambda c: c.gpu_count,
        "power": lambda c: c.power_of_all_gpus,
        "speed": lambda c: c.seconds_per_token,
    }[rank]
    unknown = [c.seconds_per_token is None for c in result]
    assert unknown == sorted(unknown), "those of unknown speed come last"
    values = [key(c) for c in result if c.seconds_per_token is not None]
    assert values == sorted(values)


@given(MODELS, st.integers(1, 500))
def test_more_sequences_never_need_fewer_gpus(model, concurrent):
    results = [found(model=model, concurrent=n) for n in (concurrent, 2 * concurrent)]
    # Where no GPU keeps the preset time for a token, none is left out for it.
    assume(results[0].all_miss_preset_token_time == results[1].all_miss_preset_token_time)
    few, more = ({c.gpu.id: c.gpu_count for c in r.candidates_best_first} for r in results)
    assert set(more) <= set(few)
    assert all(more[name] >= few[name] for name in more)


@given(MODELS, st.integers(1, 200))
def test_the_changes_turn_the_verdict(model, concurrent):
    words = {"model": model, "concurrent": str(concurrent)}
    answer = entry.estimate(parse_inputs(AcceleratorChoiceInputs, words))
    for change in answer.changes:
        typed = {**words, change.field: change.new_value}
        turned = entry.estimate(parse_inputs(AcceleratorChoiceInputs, typed))
        assert turned.verdict.lead != answer.verdict.lead, change
        assert turned.verdict.lead == change.verdict_after
