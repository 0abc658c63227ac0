"""A run and a service from memory to cost: what each calculator says, and nothing else."""

import dataclasses
import itertools
import math
import re
from html import unescape

import pytest

from app.estimator.estimates.layout_search import (
    TrainingJob,
    list_gpu_counts_that_divide_batch,
    list_model_splits,
)
from app.estimator.hardware.catalog import find_accelerator, find_system
from app.estimator.hardware.collectives import build_gpu_interconnect
from app.estimator.inputs import InvalidInputsError, non_default_inputs_to_query, parse_inputs
from app.estimator.models.lookup import find_model
from app.estimator.registry import require_estimate, run_estimate
from app.estimator.result import Estimate, SubEstimate
from app.estimator.units import format_value
from tests.amounts import each_of_sample, sample


def sections_of(run: Estimate) -> dict[str, Estimate]:
    return {section.heading: section.estimate for section in run.sections}


RUNS = (
    {"model": "llama-3.1-8b", "tokens": "2T"},
    {"model": "llama-3.1-70b", "gpu": "256x H100", "tokens": "1T", "software": "tuned"},
    {"model": "mixtral-8x7b", "gpu": "b200", "tokens": "500B"},
    {"model": "8B", "method": "lora", "tokens": "100M"},
    {"model": "14B", "method": "qlora", "gpus": "8", "tokens": "1B"},
)


DEPLOYMENTS = (
    {"model": "llama-3.1-70b", "concurrent": "500"},
    {"model": "Qwen/Qwen3-235B-A22B-FP8", "gpu": "8x h200", "ttft_target": ""},
    {"model": "8B", "gpu": "l40s", "tpot_target": "5"},
)


@each_of_sample(
    "name, typed",
    [*(("training-run", typed) for typed in RUNS), *(("deployment", d) for d in DEPLOYMENTS)],
    3,
)
def test_each_section_is_the_single_calculator_with_the_inputs_of_its_link(name, typed):
    for section in run_estimate(name, typed).sections:
        entry = require_estimate(section.estimate_name)
        again = entry.compute(
            parse_inputs(entry.inputs_type, non_default_inputs_to_query(section.inputs))
        )
        assert again == section.estimate, section.heading


@pytest.mark.parametrize("typed", RUNS)
def test_the_run_takes_the_same_hours_and_memory_in_every_section(typed):
    run = run_estimate("training-run", typed)
    parts = sections_of(run)

    assert parts["Time"]["gpu_hours"].value == run["gpu_hours"].value
    assert parts["Time"]["memory"].value == pytest.approx(parts["Memory"]["per_gpu"].value)
    if "Layout" in parts:
        for figure in ("gpu_hours", "time", "cost", "mfu"):
            assert parts["Layout"][figure].value == parts["Time"][figure].value
        assert parts["Layout"]["memory"].value == pytest.approx(parts["Memory"]["per_gpu"].value)
    if "Cost" in parts:
        rented = parts["Time"]["cost"].value
        assert parts["Cost"]["run_rented"].value == pytest.approx(rented)
        seconds, watts = parts["Time"]["time"].value, parts["Power"]["site_typical"].value
        assert parts["Time"]["energy"].value == pytest.approx(seconds * watts / 3600)


def test_a_run_without_a_number_of_gpus_gets_about_the_fewest_that_meet_the_deadline():
    month = run_estimate("training-run", {"model": "8B", "tokens": "2T", "deadline": "30"})
    week = run_estimate("training-run", {"model": "8B", "tokens": "2T", "deadline": "7"})

    for run, days in ((month, 30), (week, 7)):
        assert 0.8 * days * 86400 < run["time"].value <= days * 86400
        assert run["gpus"].value % 8 == 0
    assert 3 < week["gpus"].value / month["gpus"].value < 6


def test_a_run_that_is_just_in_time_says_so_first():
    run = run_estimate("training-run", {"model": "8B", "tokens": "2T", "deadline": "30"})
    time = sections_of(run)["Time"].verdict

    assert run.verdict.status == time.status == "tight"
    assert f"Time: {time.lead}" in run.verdict.text


def test_adapters_that_do_not_fit_name_the_gpus_that_hold_them():
    job = {"model": "llama-3.1-70b", "method": "lora", "tokens": "10M"}
    (change,) = run_estimate("training-run", job | {"gpus": "1"}).changes
    assert (change.field, change.verdict_after) == ("gpus", "Fits in memory.")
    held = run_estimate("training-run", job | change.typed_values_by_field)
    assert held["fits"].value
    assert held["gpus"].value == run_estimate("training-run", job)["gpus"].value
    assert not held.changes


def test_a_model_that_no_few_gpus_hold_gets_more_than_its_hours_ask_for():
    run = run_estimate("training-run", {"model": "llama-3.1-70b", "tokens": "1B"})

    assert run["fits"].value
    assert run["gpus"].value > 8


def test_adapters_take_one_gpu_and_no_cluster():
    run = run_estimate("training-run", {"model": "8B", "method": "lora", "tokens": "100M"})

    assert list(sections_of(run)) == ["Memory", "Time"]
    assert run["gpus"].value == 1
    assert not run["switches"].applies
    assert any("Network, Storage, Power, Cost" in note for note in run.notes)


def test_adapters_of_a_large_model_take_as_few_gpus_as_hold_it():
    tuning = {"model": "llama-3.1-70b", "tokens": "50M"}
    lora, qlora = (run_estimate("training-run", tuning | {"method": m}) for m in ("lora", "qlora"))

    assert (lora["gpus"].value, qlora["gpus"].value) == (4, 1)
    assert lora["fits"].value
    assert qlora["fits"].value
    assert not run_estimate("training-run", tuning | {"method": "lora", "gpus": "2"})["fits"].value


def test_a_batch_that_nobody_typed_can_be_divided_over_a_large_cluster(subtests):
    for gpus, batch in (("4096", 2048), ("8192", 2048), ("16384", 4096)):
        with subtests.test(gpus):
            typed = {"model": "llama-3.1-405b", "gpus": gpus, "tokens": "15T"}
            plan = run_estimate("parallelism-plan", typed)
            assert plan["fits"].value
            assert plan["global_batch"].value == batch


def test_a_run_that_fits_nowhere_says_so_and_stops_there():
    run = run_estimate("training-run", {"model": "llama-3.1-405b", "gpus": "8"})

    assert run.verdict.lead == "No layout fits."
    assert list(sections_of(run)) == ["Layout"]
    (change,) = run.changes
    fitting = run_estimate(
        "training-run", {"model": "llama-3.1-405b"} | dict(change.typed_values_by_field)
    )
    assert (change.verdict_after, fitting["fits"].value) == ("A layout fits.", True)


def test_a_wrong_input_is_named_as_the_run_asks_for_it():
    with pytest.raises(InvalidInputsError) as refusal:
        run_estimate("training-run", {"gpu": "t4", "number_format": "fp8"})

    (problem,) = refusal.value.problems
    assert problem.field == "number_format"


def test_hours_that_a_deadline_cannot_meet_are_told_with_the_objection():
    run = run_estimate("training-run", {"tokens": "2T", "gpus": "8", "deadline": "1"})

    assert run.verdict.status == "no"
    assert "Time: Too late." in run.verdict.text
    assert math.isfinite(run["gpu_hours"].value)


def test_a_deployment_takes_the_fewest_gpus_that_hold_the_model_and_keep_the_targets():
    relaxed = run_estimate("deployment", {"model": "llama-3.1-8b", "tpot_target": "100 ms"})
    strict = run_estimate("deployment", {"model": "llama-3.1-8b", "tpot_target": "5 ms"})

    widths = [sections_of(e)["Weights"] for e in (relaxed, strict)]
    assert widths[0]["total"].value == widths[1]["total"].value
    assert relaxed["fits"].value
    assert strict["fits"].value
    assert widths[1]["per_gpu"].value < widths[0]["per_gpu"].value


def test_a_deployment_counts_power_and_cost_of_all_its_systems():
    service = run_estimate("deployment", {"model": "llama-3.1-70b", "concurrent": "500"})
    parts = sections_of(service)

    assert list(parts) == ["Weights", "Memory", "Latency", "Network", "Power", "Cost"]
    assert service["gpus"].value == parts["Latency"]["gpus"].value
    assert service["nodes"].value == math.ceil(service["gpus"].value / 8)
    assert service["site_power"].value == parts["Power"]["site_power"].value


def test_a_system_of_unknown_power_has_a_network_and_names_the_power_of_its_gpus():
    service = run_estimate("deployment", {"model": "llama-3.3-70b", "gpu": "mi300x"})
    network = sections_of(service)["Network"].verdict.text
    assert "Ethernet of 400 Gbit/s" in network
    watts = format_value(750 * 8 * service["nodes"].value, "W")
    assert f"GPUs alone: at most {watts}, by their TDP." in " ".join(service.notes)


def test_a_system_with_other_gpus_is_refused_and_one_that_is_not_listed_left_out(subtests):
    typed = {"model": "llama-3.1-8b", "gpu": "l40s"}
    for name in ("deployment", "training-run"):
        with subtests.test(name):
            with pytest.raises(InvalidInputsError) as refusal:
                run_estimate(name, typed | {"system": "dgx-h100"})
            (problem,) = refusal.value.problems
            assert problem.field == "system"
            assert "has the H100 SXM5 80GB, not the L40S: choose none" in problem.message
            notes = " ".join(run_estimate(name, typed).notes)
            assert "No system of the catalog has the L40S, so its servers are not known." in notes
    service = run_estimate("deployment", typed)
    watts = format_value(350 * service["gpus"].value, "W")
    assert f"GPUs alone: at most {watts}, by their TDP." in " ".join(service.notes)
    with pytest.raises(
        InvalidInputsError, match="choose DGX H100, HGX H100/H200 8-GPU baseboard, or"
    ):
        run_estimate("deployment", {"system": "dgx-b200"})
    run_estimate("deployment", {"system": "hgx-h100-8", "gpu": "h200"})


def test_targets_that_nothing_meets_end_a_deployment_with_its_memory_and_latency():
    service = run_estimate("deployment", {"model": "70B", "gpu": "l4", "tpot_target": "49 ms"})

    assert service.verdict.status == "no"
    assert list(sections_of(service)) == ["Weights", "Memory", "Latency"]


def test_one_object_holds_every_section_with_inputs_and_figures(client):
    answer = client.get("/api/v1/estimates/training-run?tokens=2T&deadline=60").json()

    (time,) = [s for s in answer["sections"] if s["heading"] == "Time"]
    hours = {f["name"]: f["value"] for f in time["figures"]}["gpu_hours"]
    assert hours == {f["name"]: f["value"] for f in answer["figures"]}["gpu_hours"]
    single = client.post(f"/api/v1/estimates/{time['estimate']}", json=time["inputs"]).json()
    assert single == {k: v for k, v in time.items() if k != "heading"}


def test_the_page_links_each_section_to_its_calculator_without_a_script(client):
    page = client.post("/calculators/training-run", data={"tokens": "2T"}, follow_redirects=True)
    links = re.findall(r'<h3>(\w+)</h3><a class="small" href="([^"]+)"', page.text)

    assert [h for h, _ in links][:3] == ["Layout", "Memory", "Time"]
    for heading, link in links:
        assert client.get(unescape(link)).status_code == 200, heading
    hours = re.search(r'data-figure="gpu_hours">([^<]+)<', page.text)[1]
    single = client.get(unescape(dict(links)["Time"])).text
    assert f'data-figure="gpu_hours">{hours}<' in single


def test_a_target_that_no_load_meets_is_named_with_what_one_request_takes():
    long = {"model": "Qwen/Qwen3-235B-A22B-FP8", "concurrent": "20", "prompt_tokens": "30k"}
    # Of themselves, long prompts are no reason for more GPUs.
    usual = run_estimate("deployment", long)
    assert usual["fits"].value is True
    assert f"first token within {usual['ttft_p95'].formatted_value}" in usual.verdict.text
    long["ttft_target"] = "2 s"
    service = run_estimate("deployment", long)
    (change,) = service.changes

    assert (change.field, change.current_value) == ("ttft_target", "2\u00a0s")
    assert f"first token within {change.new_value}, not 2\u00a0s" in service.verdict.text
    assert service.verdict.lead.endswith("GPUs, later than the targets.")
    assert service["fits"].value is False
    assert usual["gpus"].value < service["gpus"].value
    section = _section(service, "serving-capacity")
    assert section.full_heading == f"Latency, with first token within {change.new_value}"
    decides = f"target of {change.new_value} for the first token decides"
    assert decides in section.estimate.verdict.text
    later = run_estimate("deployment", {**long, **change.typed_values_by_field})
    assert later["fits"].value is True
    assert later["gpus"].value == service["gpus"].value


def test_a_deployment_takes_a_rate_of_requests_as_its_capacity_does():
    load = {"model": "llama-3.1-70b", "gpu": "H200", "requests_per_second": 20}
    service = run_estimate("deployment", load)
    capacity = _section(service, "serving-capacity")
    assert capacity.inputs.requests_per_second == 20
    assert service["throughput"].value == pytest.approx(20 * 300)


def test_a_deployment_weighs_the_stages_of_its_pipeline() -> None:
    service = run_estimate("deployment", {"pipeline_parallel": 2, "tensor_parallel": 2})
    weights, memory = (_section(service, n).estimate for n in ("weights", "inference-memory"))
    assert weights["per_gpu"].value == pytest.approx(memory["weights"].value / 4, rel=0.01)


def test_a_deployment_and_its_capacity_doubt_the_same_fit(subtests) -> None:
    """One reserve of the engine, the requests of this load, and the range of both."""
    four = {"model": "MiniMaxAI/MiniMax-M2.5", "gpu": "h100", "tensor_parallel": 4}
    for engine, users, doubts in (
        ("vllm", 500, True),
        ("sglang", 500, False),
        ("trtllm", 2000, True),
        ("vllm", 50, False),
        ("trtllm", 50, False),
    ):
        with subtests.test(engine=engine, users=users):
            load = four | {"engine": engine, "concurrent": users}
            service = run_estimate("deployment", load)
            memory = _section(service, "inference-memory").estimate
            latency = _section(service, "serving-capacity").estimate
            assert (memory.verdict.lead == "May not fit.") == doubts
            assert ("may not fit" in latency.verdict.lead) == doubts
            assert run_estimate("serving-capacity", load).verdict == latency.verdict
            if doubts:
                lacking = memory.verdict.text.partition(" too much")[0].rpartition(", ")[2]
                assert f"each GPU lacks {lacking}." in latency.verdict.text


def test_a_target_for_tokens_does_not_hide_that_requests_wait_for_memory() -> None:
    one = {"model": "MiniMaxAI/MiniMax-M2.5", "gpu": "h100", "tensor_parallel": 4, "replicas": 1}
    leads = {
        users: run_estimate("serving-capacity", one | {"concurrent": users}).verdict.lead
        for users in (200, 500)
    }
    assert leads[200] == "Too little memory: some requests wait."
    assert leads[500] == "Too little memory: most requests wait."


def test_memory_holds_the_requests_that_a_replica_answers_at_once(subtests) -> None:
    """Both count the mean tokens of a request, and as many requests as have room."""
    long = {"prompt_tokens": 200, "output_tokens": 8000, "answer_variation": 0}
    split = {"tensor_parallel": 1, "attention_parallel": 8, "gpu": "l40s"}
    for typed in (
        {"model": "llama-3.1-8b", "gpu": "h200", "concurrent": 2000, "output_tokens": 2000},
        {"model": "qwen3-32b", "concurrent": 2000, "ttft_target": "", "tpot_target": ""} | long,
        {"model": "gemma-3-27b", "gpu": "b200", "ttft_target": "", "tpot_target": ""} | long,
        {"model": "qwen3-32b", "requests_per_second": 1} | split | long,
        {"model": "qwen3-32b", "concurrent": 20, "prompt_tokens": 32_000} | split,
    ):
        with subtests.test(typed=typed):
            answer = run_estimate("deployment", typed)
            memory = _section(answer, "inference-memory")
            held = _section(answer, "serving-capacity").estimate["max_concurrent"].value
            assert (memory.estimate.verdict.status != "no") == bool(held)
            assert memory.inputs.concurrent <= max(held, typed.get("attention_parallel", 1))


def _section(answer: Estimate, name: str) -> SubEstimate:
    return next(section for section in answer.sections if section.estimate_name == name)


def test_a_deployment_takes_engine_speculation_and_splits(subtests: pytest.Subtests) -> None:
    rack = {"model": "deepseek-v3", "gpu": "GB200 NVL72", "concurrent": 5000, "spare": 0}
    for typed in (
        {"engine": "sglang", "draft_tokens": 3, "acceptance": "0.7"},
        {
            "model": "llama-3.1-405b",
            "tensor_parallel": 8,
            "pipeline_parallel": 2,
            "tpot_target": "200 ms",
        },
        {"model": "deepseek-v3", "gpu": "h200", "attention_parallel": 8, "expert_parallel": 8},
        rack | {"prefill_gpus": 8, "decode_gpus": 48},
    ):
        with subtests.test(typed=typed):
            answer = run_estimate("deployment", typed)
            capacity = _section(answer, "serving-capacity")
            # The calculator on its own, with the inputs of the section, says the same.
            for name in ("gpus", "tpot_p95", "ttft_p95"):
                assert answer[name].value == capacity.estimate[name].value
            for name, value in typed.items():
                if name in {"engine", "draft_tokens", "pipeline_parallel", "prefill_gpus"}:
                    assert getattr(capacity.inputs, name) == value
            (step,) = answer.steps
            assert step.value == answer["gpus"].value
    memory = _section(answer, "inference-memory").inputs
    assert (memory.attention, memory.tensor_parallel) == ("data-parallel", 48)
    lone = run_estimate("deployment", {"engine": "sglang"})
    assert _section(lone, "inference-memory").inputs.engine == "sglang"


def test_what_a_run_costs_is_as_uncertain_owned_as_rented():
    run = run_estimate("training-run", {"model": "llama-3.1-8b"})
    rented, owned = run["cost"], run["run_owned"]
    assert owned.low / owned.value == pytest.approx(rented.low / rented.value)
    assert owned.high / owned.value == pytest.approx(rented.high / rented.value)


def test_a_used_hour_of_rent_says_what_is_added_to_the_rent():
    hour = run_estimate("cost", {})["rented_hour"]
    assert "3.99" in hour.note
    assert "data moved out" in hour.note
    # Where other sections pay the price alone, so does this one.
    for name, typed in (("training-run", {"model": "llama-3.1-8b"}), ("deployment", {})):
        composed = run_estimate(name, typed)
        assert sections_of(composed)["Cost"]["rented_hour"].value == pytest.approx(3.99)
    # Of a reservation, too, a run pays the used hours and no data.
    for commitment, share in (("used", 1.0), ("all", 0.5)):
        typed = {"commitment": commitment, "utilisation": "50", "run": "1000", "rent": "2"}
        rented = run_estimate("cost", typed)["run_rented"].value
        assert rented == pytest.approx(1000 * 2 / share)


@pytest.mark.drawn
def test_a_deadline_is_met_with_a_typed_batch_by_gpus_that_divide_it(subtests):
    plain = {"model": "llama-3.1-8b", "tokens": "2T", "deadline": "30"}
    for batch in sample((512, 960, 1000, 1024, 1920, 2304, 4096), 2, "divided"):
        with subtests.test(batch=batch):
            run = run_estimate("training-run", plain | {"global_batch": str(batch)})
            layout = sections_of(run)["Layout"]
            assert run["time"].value <= 30 * 86400
            # 1,000 sequences can be divided over 128 GPUs, but take 35 days there.
            assert 80 <= run["gpus"].value <= (160 if batch == 1000 else 128)
            assert run["gpus"].value % 8 == 0
            assert layout["global_batch"].value == batch
            for change in run.changes:
                changed = run_estimate(
                    "training-run",
                    plain | {"global_batch": str(batch)} | dict(change.typed_values_by_field),
                )
                assert changed["time"].value


def test_a_batch_that_no_layout_divides_is_named_with_the_gpus_that_do(subtests):
    typed = {"model": "llama-3.1-8b", "gpus": "96", "global_batch": "1024"}
    for name in ("training-run", "parallelism-plan"):
        with subtests.test(name):
            verdict = run_estimate(name, typed).verdict
            assert verdict.status == "no"
            assert verdict.lead == "The batch cannot be divided."
            assert "1,024 sequences cannot be divided over 96 H100" in verdict.text
            assert "64 or 128 GPUs" in verdict.text
    for gpus in ("64", "128"):
        assert run_estimate("parallelism-plan", typed | {"gpus": gpus})["fits"].value


def test_every_number_of_gpus_that_is_listed_for_a_batch_has_a_layout(subtests):
    model, gpu = find_model("llama-3.1-8b"), find_accelerator("h100-sxm5-80")
    fabric = build_gpu_interconnect(gpu)
    for batch, sequence in ((24, 4096), (90, 4096), (12, 65536)):
        with subtests.test(batch=batch, sequence=sequence):
            job = TrainingJob(1, sequence, batch)
            listed = list_gpu_counts_that_divide_batch(model, fabric, job, 400)
            divided = (
                gpus
                for gpus in range(1, 401)
                if any(list_model_splits(model, fabric, dataclasses.replace(job, gpus=gpus)))
            )
            assert listed == tuple(divided)


def test_the_power_of_a_run_is_counted_for_as_long_as_it_lasts():
    run = run_estimate("training-run", {"model": "llama-3.1-8b", "tokens": "2T", "gpus": "96"})
    power = next(section for section in run.sections if section.estimate_name == "power-cooling")
    assert power.inputs.duration == run["time"].value
    assert power.estimate["energy"].value == pytest.approx(run["energy"].value)


def test_a_run_starts_from_the_layout_that_surely_fits_and_names_the_faster_one():
    typed = {"model": "llama-3.1-8b", "tokens": "2T", "gpus": "96"}
    run = run_estimate("training-run", typed | {"deadline": "30"})
    parts = sections_of(run)
    assert {parts[name].verdict.lead for name in ("Layout", "Memory")} == {"Fits."}
    assert parts["Layout"]["memory"].high < 84.9e9
    assert parts["Layout"]["micro_batch"].value == 1
    assert run["time"].value <= 30 * 86400

    plan = run_estimate("parallelism-plan", typed)
    assert plan["step_time"] == parts["Layout"]["step_time"]
    change = plan.find_verdict_change("usable_memory")
    faster = run_estimate("parallelism-plan", typed | change.typed_values_by_field)
    assert faster.verdict.lead == "May not fit."
    assert faster["step_time"].value < parts["Layout"]["step_time"].value
    assert f"needs {faster['memory'].formatted_value} on each GPU and may run out of memory" in (
        run.verdict.text
    )
    assert "3.5% shorter steps" in run.verdict.text
    assert "set the usable memory of the parallelism plan to 95%." in run.verdict.text
    for name, gpu, gpus in (
        ("qwen3-32b", "h200", "1024"),
        ("llama-3.1-70b", "b200", "64"),
        ("llama-3.1-405b", "h100", "256"),
    ):
        layout = sections_of(
            run_estimate("training-run", {"model": name, "gpu": gpu, "gpus": gpus})
        )["Layout"]
        assert layout.verdict.lead in {"Fits.", "Tight."}


def test_a_run_without_number_and_deadline_takes_as_many_gpus_as_hold_the_model():
    run = run_estimate("training-run", {"model": "deepseek-v3", "gpu": "h200", "tokens": "1T"})
    assert run["gpus"].value == 128
    assert run["fits"].value
    assert run_estimate("training-run", {"model": "llama-3.1-405b"})["fits"].value


LAYOUT_INPUTS = (
    *("tensor_parallel", "pipeline_parallel", "context_parallel", "expert_parallel"),
    *("interleave", "micro_batch", "global_batch", "recompute", "zero"),
)
SAME_FIGURES = (
    *("time", "gpu_hours", "mfu", "step_time", "cost", "tokens_per_second_per_gpu", "memory"),
)


@pytest.mark.drawn
def test_for_the_same_layout_the_time_and_the_run_agree_exactly(subtests):
    models = ("llama-3.1-8b", "qwen3-32b", "llama-3.1-70b", "qwen3-30b-a3b", "gpt-oss-120b")
    every = itertools.product(models, ("h100", "b200", "mi300x"), ("64", "256"))
    for model, gpu, gpus in sample(every, 5, "layouts"):
        with subtests.test(model=model, gpu=gpu, gpus=gpus):
            typed = {"model": model, "gpu": gpu, "gpus": gpus, "tokens": "1T"}
            parts = sections_of(run_estimate("training-run", typed))
            layout = {name: str(parts["Layout"][name].value) for name in LAYOUT_INPUTS}
            alone = run_estimate("training-time", typed | layout)
            for name in SAME_FIGURES:
                assert alone[name].value == parts["Time"][name].value == parts["Layout"][name].value
            assert alone["failures"].value == parts["Time"]["failures"].value


def test_the_time_leads_to_the_search_for_a_layout_with_its_inputs():
    typed = {"model": "llama-3.1-70b", "gpus": "512", "tokens": "2T", "global_batch": "2048"}
    time = run_estimate("training-time", typed)
    (link,) = time.links
    plan = run_estimate(link.estimate_name, link.typed_inputs)
    assert plan == run_estimate("parallelism-plan", typed)
    assert plan["time"].value < time["time"].value
    assert any("for the same layout they give the same time" in note for note in time.notes)
    assert not run_estimate("training-time", typed | {"method": "lora"}).links


@pytest.mark.drawn
def test_a_deadline_names_gpus_that_divide_a_typed_batch(subtests):
    typed = {"model": "llama-3.1-70b", "tokens": "2T", "gpus": "256", "deadline": "40"}
    for batch in sample((1024, 1536, 1920, 2304), 1, "named"):
        for name in ("training-time", "training-run"):
            with subtests.test(batch=batch, name=name):
                asked = typed | {"global_batch": str(batch)}
                change = run_estimate(name, asked).changes[0]
                assert (change.field, change.verdict_after[:7]) == ("gpus", "In time")
                met = run_estimate(name, asked | dict(change.typed_values_by_field))
                assert met["time"].value <= 40 * 86400
                assert f"{batch:,} sequences with" in " ".join(
                    note for part in (met, *sections_of(met).values()) for note in part.notes
                )
    odd = run_estimate("training-time", typed | {"gpus": "1024", "global_batch": "1536"})
    assert any("the 1,536 that were typed cannot be divided over" in note for note in odd.notes)


def test_a_small_cluster_draws_at_least_what_its_switches_do():
    run = run_estimate("training-run", {"model": "8B", "tokens": "2T", "gpus": "96"})
    sections = {section.heading: section.estimate for section in run.sections}
    network, power = sections["Network"], sections["Power"]
    each = network["power"].value / network["switches"].value
    switches = network["switches"].value + network["storage_switches"].value
    systems = 12 * find_system("dgx-h100").power
    assert power["machines_power"].value >= systems + switches * each
    assert power["machines_power"].value <= 1.01 * systems + switches * each


def test_a_plan_may_not_fit_only_where_no_layout_surely_does(subtests):
    for model, gpu, gpus, surely in (
        ("qwen3-32b", "a100-sxm4-40", "16", True),
        ("llama-3.1-70b", "h100", "16", True),
        ("llama-3.1-405b", "h100", "96", False),
    ):
        with subtests.test(model=model, gpu=gpu):
            typed = {"model": model, "gpu": gpu, "gpus": gpus, "tokens": "1T"}
            plan, run = (run_estimate(name, typed) for name in ("parallelism-plan", "training-run"))
            assert (plan.verdict.lead != "May not fit.") is surely
            assert (plan["memory"].high <= find_accelerator(gpu).engine_visible_memory) is surely
            assert plan["gpu_hours"].value == pytest.approx(run["gpu_hours"].value, rel=1e-6)
            # At the named share it is the other way around.
            change = plan.find_verdict_change("usable_memory")
            assert bool(change) is surely
            if change:
                faster = run_estimate("parallelism-plan", typed | change.typed_values_by_field)
                assert faster.verdict.lead == "May not fit."
                assert faster["step_time"].value < plan["step_time"].value
                back = faster.find_verdict_change("usable_memory")
                slower = run_estimate("parallelism-plan", typed | back.typed_values_by_field)
                assert slower.verdict.lead != "May not fit."


def test_a_plan_says_where_its_layouts_end_unless_that_is_a_single_gpu() -> None:
    for model, gpu, ends in (("llama-3.1-70b", "h200", ["8"]), ("qwen3-8b", "h100", [])):
        answer = run_estimate("parallelism-plan", {"model": model, "gpu": gpu, "gpus": "96"})
        assert [c.new_value for c in answer.changes if c.field == "gpus"] == ends
