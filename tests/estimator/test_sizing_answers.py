"""Answers to sizing questions: what changes them, counts that add up, plain words."""

import re

import pytest

from app.calculators.comparison import compare_scenarios_if_all_computed, compute_scenarios
from app.estimator import registry
from app.estimator.estimates.accelerator_choice import find_exclusion_reason_before_sizing
from app.estimator.hardware.catalog import find_accelerator
from app.estimator.inputs import InvalidInputsError
from app.estimator.models.lookup import find_model
from app.estimator.result import Estimate, StackedBar
from app.estimator.serving.replica_memory import draft_weight_bytes
from app.estimator.serving.step_time import SpeculativeDecoding
from app.estimator.units import (
    format_number,
    format_range,
    format_value,
    round_estimate_to_three_digits,
)
from app.widgets.estimate_view import format_interval_or_exact

QWEN = {"model": "Qwen/Qwen3-235B-A22B-FP8", "gpu": "H100"}
CROWD = {
    **QWEN,
    "tensor_parallel": "4",
    "prompt_tokens": "30000",
    "output_tokens": "500",
    "concurrent": "20",
    "spare": "0",
    "ttft_target": "",
    "tpot_target": "",
}


def ask(name: str, typed: dict[str, str], **more: str) -> Estimate:
    return registry.run_estimate(name, typed | more)


def number(answer: Estimate, figure: str) -> float:
    value = answer[figure].value
    assert isinstance(value, int | float)
    return float(value)


def test_requests_that_wait_for_memory_are_offered_the_smallest_change_first() -> None:
    answer = ask("serving-capacity", CROWD, replicas="1")
    changes = {change.field: change for change in answer.changes}
    assert list(changes) == ["cache", "concurrent", "tensor_parallel", "replicas"]
    assert changes["cache"].new_value == "FP8"
    narrow = ask("serving-capacity", CROWD, replicas="1", cache="fp8")
    assert f"{number(narrow, 'max_concurrent'):.0f} of 20" in changes["cache"].verdict_after
    wide = ask(
        "serving-capacity", CROWD, replicas="1", **changes["tensor_parallel"].typed_values_by_field
    )
    assert wide["fits"].value is True
    assert number(wide, "gpus") == 8 < 4 * float(changes["replicas"].new_value)


def test_blocks_that_tensor_parallelism_cuts_are_named_with_expert_parallelism() -> None:
    # 1,536 / 8 = 192 is not whole blocks of 128: vLLM issue 17569.
    memory = ask("inference-memory", QWEN, tensor_parallel="8")
    capacity = ask("serving-capacity", QWEN, tensor_parallel="8")
    latency = ask("latency", QWEN, tensor_parallel="8")
    for answer in (memory, capacity, latency):
        assert "each has 192" in answer.verdict.text
        assert "--enable-expert-parallel" in answer.verdict.text
    assert capacity.verdict.lead == "The engine refuses this layout."
    assert capacity["fits"].value is False
    chosen = {"model": "qwen3-235b-a22b", "gpu": "H100", "weights": "fp8-block"}
    assert ask("serving-capacity", chosen, tensor_parallel="8")["fits"].value is False
    four = ask("inference-memory", QWEN, tensor_parallel="4", context="30000", concurrent="20")
    assert not any("each has" in note for note in four.notes)
    gpus = next(change for change in four.changes if change.field == "tensor_parallel")
    assert (gpus.new_value, gpus.verdict_after) == ("8", "Fits, with expert parallelism.")


def test_expert_parallel_stays_on_the_gpus_that_share_the_model() -> None:
    refused = ask("serving-capacity", QWEN, tensor_parallel="8", spare="0")
    change = next(change for change in refused.changes if change.field == "expert_parallel")
    assert change.typed_values_by_field == {"expert_parallel": "8"}
    whole = ask("serving-capacity", QWEN, tensor_parallel="8", spare="0", expert_parallel="8")
    assert whole["fits"].value is True
    assert number(whole, "gpus") == 8


def test_no_layout_is_offered_that_engines_refuse() -> None:
    for width in ("1", "2", "4"):
        answer = ask("serving-capacity", QWEN, tensor_parallel=width, concurrent="2000")
        for change in answer.changes:
            if change.field == "tensor_parallel":
                after = ask(
                    "serving-capacity", QWEN, concurrent="2000", **change.typed_values_by_field
                )
                assert after.verdict.lead != "The engine refuses this layout."


def test_the_published_format_by_its_name_is_the_published_checkpoint() -> None:
    # Meta leaves layers in BF16: 487 GB, not the 410 GB of all of them in FP8.
    typed = {"model": "meta-llama/Llama-3.1-405B-Instruct-FP8", "gpu": "H100", "context": "131072"}
    chosen = ask("inference-memory", typed, tensor_parallel="8", weights="fp8")
    published = ask("inference-memory", typed, tensor_parallel="8")
    assert number(chosen, "weights") == number(published, "weights") > 480e9
    assert "Weights as published: FP8." in chosen.verdict.text
    for answer in (chosen, published):
        assert all(change.current_value != change.new_value for change in answer.changes)


@pytest.mark.parametrize("cache", ["bf16", "fp8"])
def test_requests_in_memory_and_waiting_add_up(cache: str) -> None:
    answer = ask("serving-capacity", CROWD, replicas="1", cache=cache)
    found = re.search(r"holds (\d+) of (\d+) requests", answer.verdict.text)
    assert found
    holds, asking = map(int, found.groups())
    waiting = next(n for n in answer.notes if "wait until others leave" in n)
    assert holds + int(waiting.split()[0]) == asking == 20


def test_users_that_wait_are_the_first_that_is_said() -> None:
    crowd = ask("serving-capacity", CROWD, replicas="1")
    assert crowd.verdict.status == "no"
    assert crowd.verdict.lead == "Too little memory: most requests wait."
    few = ask("serving-capacity", CROWD, replicas="1", concurrent="12")
    assert few.verdict.status == "tight"
    assert few.verdict.lead == "Too little memory: some requests wait."
    late = ask("serving-capacity", CROWD, replicas="1", ttft_target="2 s")
    assert late.verdict.lead == "Too slow: most requests wait for memory."


def test_targets_are_not_spoken_of_where_none_are_set() -> None:
    answer = ask("serving-capacity", CROWD, replicas="1")
    assert not any("targets" in figure.label for figure in answer.figures)
    assert answer["fits"].note == "No targets are set; requests wait for memory."
    assert answer["max_rate"].note == ""
    assert ask("serving-capacity", QWEN, tensor_parallel="4")["max_rate"].note == (
        "Within the targets."
    )
    assert "on average" in answer.verdict.text


RACK = {
    "model": "deepseek-v3",
    "gpu": "GB200",
    "prefill_gpus": "8",
    "decode_gpus": "32",
    "prompt_tokens": "4000",
    "output_tokens": "1000",
    "spare": "0",
}


def test_the_most_of_prefill_apart_is_that_of_the_gpus_that_are_counted() -> None:
    answer = ask("serving-capacity", RACK, concurrent="3000")
    users = next(change for change in answer.changes if change.field == "concurrent")
    assert users.verdict_after == "Takes one more prefill replica."
    limit = int(users.new_value.replace(",", ""))
    last, more = (ask("serving-capacity", RACK, concurrent=str(n)) for n in (limit - 1, limit + 5))
    assert last["prefill_replicas"].value == answer["prefill_replicas"].value
    assert number(last, "gpus") == number(answer, "gpus") == number(more, "gpus") - 8
    assert number(last, "requests_per_second") == pytest.approx(
        number(answer, "max_rate"), rel=1e-3
    )
    assert number(answer, "saturated_throughput") <= 1000 * number(answer, "max_rate") * 1.001
    assert number(last, "utilisation") == pytest.approx(1.0, rel=1e-3)


@pytest.mark.parametrize(
    "typed",
    [
        {"prefill_gpus": "24", "decode_gpus": "48", "replicas": "1"},
        {"prefill_gpus": "8", "decode_gpus": "16"},
        {"prefill_gpus": "", "decode_gpus": ""},
        {"prefill_gpus": "", "decode_gpus": "", "tensor_parallel": "8", "spare": "1"},
        {"model": "gpt-oss-120b", "ttft_target": "", "tpot_target": ""},
    ],
)
def test_the_best_split_of_a_rack_is_named_and_gives_what_it_says(typed: dict[str, str]) -> None:
    typed = RACK | typed
    first = ask("serving-capacity", typed)
    (best,) = (change for change in first.changes if "the most of one rack" in change.verdict_after)
    page = ask("serving-capacity", typed | dict(best.typed_values_by_field))
    said = best.verdict_after.replace("\u00a0", " ")
    yields = round_estimate_to_three_digits(number(page, "throughput"), "token/s")
    assert f" {format_number(yields)} tokens/s" in said
    assert ("within the targets" in said) == ("ttft_target" not in typed)
    for figure, name in (("replicas", "decode replica"), ("prefill_replicas", "prefill replica")):
        assert f" {number(page, figure):.0f} {name}" in said
    assert f"on {number(page, 'gpus'):.0f} of its 72 GPUs" in said
    assert number(page, "gpus") <= 72
    assert page["fits"].value
    assert "may not fit" not in page.verdict.lead
    # Of the splits tried there is no better one, and the one of its page yields no more.
    assert not any("the most of one rack" in change.verdict_after for change in page.changes)
    for change in first.changes:
        if change.field == "concurrent" and "of one rack" in change.verdict_after:
            other = ask("serving-capacity", typed | dict(change.typed_values_by_field))
            assert number(other, "throughput") < number(page, "throughput")


def test_more_gpus_than_a_rack_has_are_said_to_be_more() -> None:
    below, above = (ask("serving-capacity", RACK, concurrent=n) for n in ("2000", "9000"))
    assert "of one rack" not in below.verdict.text
    assert "in all, more than the 72 of one rack." in above.verdict.text


@pytest.mark.parametrize("card", ["rtx-4090", "h100-sxm5-80", "rtx-3090", "l40s"])
def test_a_card_has_one_memory_in_every_calculator(card: str) -> None:
    gpu = find_accelerator(card)
    typed = {"gpu": card, "model": "llama-3.2-1b"}
    for name in ("training-memory", "training-time", "inference-memory"):
        answer = ask(name, typed)
        bars = [picture for picture in answer.pictures if isinstance(picture, StackedBar)]
        assert all(bar.capacity <= gpu.engine_visible_memory for bar in bars if bar.capacity)
    lora = ask("training-memory", typed, method="lora")
    texts = (lora.verdict.text, ask("inference-memory", typed).verdict.text)
    of_both = f"{format_value(gpu.engine_visible_memory, 'B')} (", format_value(gpu.capacity, "B")
    exact = format_value(gpu.engine_visible_memory, "B", 1)
    for text in texts:
        assert of_both[0] in text or exact in text
        if gpu.engine_memory:
            assert of_both[1] not in text


@pytest.mark.parametrize(
    ("value", "low", "high", "text"),
    [
        (47.6, 26.4, 126.0, "26.4 to 126 s"),
        (0.103, 0.0466, 0.31, "46.6 to 310 ms"),
        (0.9, 0.4, 2.4123, "400 to 2,410 ms"),
        (3600.0 * 30, 3600.0 * 20, 86400.0 * 3, "20 to 72 h"),
    ],
)
def test_a_range_is_in_the_unit_of_its_value(
    value: float, low: float, high: float, text: str
) -> None:
    assert format_range(low, high, "s", value).replace("\u00a0", " ") == text
    assert format_value(value, "s").partition("\u00a0")[2] == text.rsplit(maxsplit=1)[-1]


def test_every_range_of_an_answer_is_in_the_unit_of_its_value() -> None:
    for figure in ask("serving-capacity", CROWD, replicas="1").figures:
        if figure.low is not None and figure.unit == "s":
            unit = figure.formatted_value.partition("\u00a0")[2]
            assert format_interval_or_exact(figure).endswith(f"\u00a0{unit}")


def test_an_engine_of_one_calculator_is_one_of_the_others() -> None:
    # An address that is carried over holds the engine of the calculator it came from.
    same = [ask("inference-memory", {"engine": e})["per_gpu"].value for e in ("vllm", "vllm-0.17")]
    assert same[0] == same[1] == number(ask("inference-memory", {}), "per_gpu")
    for name in ("latency", "serving-capacity", "deployment"):
        assert ask(name, {"engine": "vllm-0.9"}).verdict == ask(name, {"engine": "vllm"}).verdict


def test_export_versions_are_left_out_alike_and_all_rates_of_the_mi350x_are_known() -> None:
    gpus = [find_accelerator(name) for name in ("A800", "H800", "H20", "L20")]
    job = registry.require_estimate("accelerator-choice").inputs_type()
    assert {find_exclusion_reason_before_sizing(job, gpu) for gpu in gpus} == {"An export version."}
    mi350x, mi355x = find_accelerator("mi350x"), find_accelerator("mi355x")
    for rate in ("bf16", "fp16", "fp8", "int8", "fp4"):
        ratio = getattr(mi350x, rate) / getattr(mi355x, rate)
        assert ratio == pytest.approx(2.2 / 2.4, rel=0.02)


def test_costs_of_two_scenarios_say_that_their_prices_are_of_two_providers() -> None:
    def compared(second: str) -> str:
        entry = registry.require_estimate("serving-capacity")
        typed = {"a": {"model": "8B", "gpu": "h200"}, "b": {"model": "8B", "gpu": second}}
        found = compare_scenarios_if_all_computed(entry, compute_scenarios(entry, typed))
        assert found is not None
        return found.list_prices_note

    assert "A at CoreWeave's 6.31" in compared("mi300x")
    assert "B at DigitalOcean's 2.59" in compared("mi300x")
    assert compared("h200") == ""


def test_time_without_progress_and_the_rented_hour_are_said_plainly() -> None:
    run = ask("training-run", {"model": "8B", "gpu": "H100", "tokens": "1e11", "gpus": "64"})
    share = next(note for note in run.notes if "of the time is progress" in note)
    assert "Evaluation, repeats and slower steps take 14%" in share
    hour = ask("cost", {})["rented_hour"]
    assert "3.99\u00a0USD/h of rent and 0.0285\u00a0USD/h for data moved out" in hour.note


@pytest.mark.parametrize("model", ["llama-3.3-70b", "deepseek-v3"])
def test_what_drafts_tokens_takes_memory(model: str) -> None:
    gpu = {"model": model, "gpu": "H200", "tensor_parallel": "8", "weights": "fp8"}
    plain, drafted = (ask("serving-capacity", gpu, draft_tokens=n) for n in ("0", "3"))
    layers = find_model(model).layers
    fewer = number(drafted, "max_concurrent") / number(plain, "max_concurrent")
    assert 0.9 < fewer < layers / (layers + 1)
    (note,) = (n for n in drafted.notes if "one more layer of cache" in n)
    assert not any("one more layer of cache" in n for n in plain.notes)
    assert ("needs an EAGLE head" in note) == (model == "llama-3.3-70b")


def test_the_head_of_a_70b_model_is_as_large_as_the_published_one() -> None:
    # yuhuili/EAGLE3-LLaMA3.3-Instruct-70B and that of the 8B model: about 3 and 0.85 GB.
    assert draft_weight_bytes(find_model("llama-3.3-70b"), "fp8") == pytest.approx(3e9, rel=0.2)
    assert draft_weight_bytes(find_model("llama-3.1-8b"), "fp8") == pytest.approx(0.85e9, rel=0.15)


def test_the_default_acceptance_gives_the_tokens_a_step_that_public_heads_give() -> None:
    # 2.77 and 2.88 with 7 drafts on MT-bench.
    assert 2.7 < SpeculativeDecoding(7).tokens_per_step < 2.95


def test_qlora_says_what_peft_adds_to_embeddings_and_head() -> None:
    card = {"model": "qwen3-14b", "gpu": "rtx-4090", "method": "qlora"}
    (note,) = (n for n in ask("training-memory", card).notes if "kbit" in n)
    assert "adds 3.1\u00a0GB;" in note  # 2 B × 2 tables × 151,936 × 5,120.
    large = ask("training-memory", card, model="qwen3-32b", sequence="1024", gpu="rtx-3090")
    assert any("kbit" in n for n in large.notes)
    assert not any("kbit" in n for n in ask("training-memory", card, method="lora").notes)


def test_the_verdict_of_qlora_counts_embeddings_and_head_as_they_are_asked_for() -> None:
    card = {"model": "qwen2.5-14b", "gpu": "rtx-3090", "method": "qlora"}
    card |= {"framework": "transformers", "loss": "transformers", "sequence": "3072"}
    plain, cast = (ask("training-memory", card, qlora_embeddings=t) for t in ("bf16", "fp32"))
    tables = 2 * 152_064 * 5_120
    assert number(cast, "weights") - number(plain, "weights") == pytest.approx(2 * tables, rel=0.01)
    assert plain.verdict.lead == "Fits."
    assert cast.verdict.lead == "May not fit."
    # What the note says of the other way is what a change of the input leads to.
    (change,) = (c for c in plain.changes if c.field == "qlora_embeddings")
    assert change.verdict_after == cast.verdict.lead
    asked = ask("training-memory", card, **change.typed_values_by_field)
    assert asked.verdict == cast.verdict
    (back,) = (c for c in cast.changes if c.field == "qlora_embeddings")
    assert ask("training-memory", card, **back.typed_values_by_field).verdict.lead == "Fits."
    assert "counted in FP32" in next(n for n in cast.notes if "kbit" in n)
    # Adapters of a model in 16 bit, and training all weights, do not ask for it.
    for other in ({"method": "lora"}, {"method": "full", "gpus": "4"}):
        plain, cast = (
            ask("training-memory", card | other, qlora_embeddings=t) for t in ("bf16", "fp32")
        )
        assert number(plain, "per_gpu") == number(cast, "per_gpu")
        assert not any(c.field == "qlora_embeddings" for c in (*plain.changes, *cast.changes))


def test_adapters_name_the_software_that_is_assumed() -> None:
    card = {"model": "qwen3-14b", "gpu": "rtx-3090", "method": "qlora", "sequence": "6000"}
    usual, other = (
        ask("training-memory", card),
        ask("training-memory", card, framework="transformers"),
    )
    (note,) = (n for n in usual.notes if "framework" in n)
    assert "torchtune" in note
    assert format_value(number(other, "per_gpu"), "B") in note
    assert not any("usual" in n for n in other.notes)
    # Embeddings stay as in that software, and a change names the other.
    tables = [next(n for n in answer.notes if "kbit" in n) for answer in (usual, other)]
    assert ["TRL" in n for n in tables] == [False, True]
    (change,) = (c for c in usual.changes if c.field == "framework")
    asked = ask("training-memory", card, **change.typed_values_by_field)
    assert asked.verdict.lead == change.verdict_after == "May not fit."
    dense = ask("training-memory", {"model": "8B"})
    assert "PyTorch FSDP" in next(n for n in dense.notes if "usual" in n)
    time = ask("training-time", {"model": "8B", "method": "lora", "tokens": "100M"})
    assert any("torchtune" in n and "PyTorch FSDP, compiled" in n for n in time.notes)


def test_the_logits_of_transformers_take_three_values_in_fp32() -> None:
    # A step of the Trainer of 5.23 has its peak in _log_softmax_backward_data: the log-softmax
    # and the gradients of its output and its input, 12 B for each logit.
    card = {"model": "llama-3.1-8b", "gpu": "rtx-4090", "method": "qlora", "rank": "32"}
    card |= {"framework": "transformers", "sequence": "8192", "loss": "transformers"}
    answer = ask("training-memory", card)
    assert number(answer, "logits") == 8192 * 128_256 * 12
    (change,) = (c for c in answer.changes if c.field == "loss")
    asked = ask("training-memory", card, **change.typed_values_by_field)
    assert asked.verdict.lead == "Fits."


def test_a_loss_in_chunks_holds_one_chunk_and_an_fp32_copy_of_the_head() -> None:
    # gemma-3-4b in 4 bit with LoRA, measured on 8,192 tokens: 8.6 GB, and 6.9 GB with a loss
    # that never makes the logits (unsloth, pull request 8261).
    card = {"model": "gemma-3-4b", "gpu": "rtx-4090", "gpus": "1", "method": "qlora"}
    card |= {"framework": "transformers", "sequence": "8192"}
    chunked = ask("training-memory", card, loss="chunked")
    assert number(chunked, "logits") == 262_208 * (256 * 13 + 2560 * 4)
    assert number(chunked, "allocated") == pytest.approx(8.6e9, rel=0.05)
    fused = ask("training-memory", card, loss="linear")
    assert number(fused, "allocated") == pytest.approx(6.9e9, rel=0.05)
    head = ask("training-memory", card, loss="chunked", qlora_embeddings="fp32", sequence="100")
    assert number(head, "logits") == 262_208 * 100 * 13


def test_a_chosen_trainer_says_what_its_recipes_of_today_need() -> None:
    card = {"model": "14B", "gpu": "rtx-4090", "gpus": "1", "method": "qlora"}
    card |= {"framework": "transformers"}
    answer = ask("training-memory", card)
    (note,) = (note for note in answer.notes if "fms-acceleration" in note)
    trainer = {"loss": "transformers", "qlora_embeddings": "fp32"}
    longest = [int(n.replace(",", "")) for n in re.findall(r"to ([\d,]+)\stokens", note)]
    for recipe, tokens in zip((trainer, {"loss": "chunked"}), longest, strict=True):
        assert ask("training-memory", card, **recipe)["per_gpu"].formatted_value in note
        for sequence, is_sure in ((tokens, True), (tokens + 1, False)):
            fits = ask("training-memory", card, **recipe, sequence=str(sequence))["fits"]
            assert fits.value
            assert bool(fits.note) != is_sure


@pytest.mark.parametrize(
    ("model", "sequence", "status", "said"),
    [
        ("qwen3-14b", 4096, "tight", "without them it may not fit: 24.2 GB, up to "),
        ("qwen3-14b", 1024, "fits", ""),
        ("qwen3-14b", 5000, "tight", ""),  # It may not fit with the counted recipe, either.
        ("qwen3-8b", 4096, "fits", ""),
    ],
)
def test_a_verdict_names_the_plain_trainer_where_its_own_differs(
    model: str, sequence: int, status: str, said: str
) -> None:
    card = {"model": model, "gpu": "rtx-3090", "method": "qlora", "framework": "transformers"}
    verdict = ask("training-memory", card, sequence=str(sequence)).verdict
    assert verdict.status == status
    assert ("the kernels of measured runs" in verdict.text) == bool(said)
    assert said in verdict.text.replace("\u00a0", " ")


@pytest.mark.parametrize(
    ("model", "said"),
    [
        ("qwen3-14b", "With the plain Transformers Trainer it may not fit: 24.2 GB, up to "),
        ("qwen3-8b", ""),
    ],
)
def test_adapters_with_an_open_framework_name_it_and_the_plain_trainer_in_the_verdict(
    model: str, said: str
) -> None:
    card = {"model": model, "gpu": "rtx-3090", "method": "qlora"}
    memory = ask("training-memory", card)
    verdict = memory.verdict
    assert "torchtune" in verdict.text
    assert said in verdict.text.replace("\u00a0", " ")
    assert ("Trainer" in verdict.text, verdict.status) == (bool(said), "fits")
    trainer = ask("training-memory", card, framework="transformers").verdict
    assert trainer.status == ("tight" if said else "fits")
    assert "torchtune" not in trainer.text
    torchtune = ask("training-memory", card, framework="torchtune")
    assert torchtune.verdict.status == "fits"
    assert torchtune["per_gpu"].value == memory["per_gpu"].value
    run = ask("training-run", card, tokens="10M", gpus="1")
    assert next(s for s in run.sections if s.heading == "Memory").estimate.verdict == verdict


def test_a_change_that_fits_only_without_the_plain_trainer_is_called_tight() -> None:
    typed = {"model": "llama-3.3-70b", "method": "qlora", "framework": "transformers"}
    typed |= {"gpu": "h100-sxm5-80", "sequence": "32768"}
    change = next(
        change
        for change in registry.run_estimate("training-memory", typed).changes
        if change.field == "sequence"
    )
    shorter = registry.run_estimate("training-memory", typed | change.typed_values_by_field)
    assert (change.verdict_after, shorter.verdict.lead) == ("Tight, but fits.", "Tight.")


def test_the_time_of_adapters_says_that_sequences_are_packed() -> None:
    lora = ask("training-time", {"model": "8B", "method": "lora", "tokens": "100M"})
    assert "packed into sequences of 4,096 tokens (the input “Sequence”)" in lora.verdict.text
    assert "fall by the share of padding" in lora.verdict.text
    assert "packed" not in ask("training-time", {"model": "8B"}).verdict.text


def test_llama_cpp_loads_the_usual_file_of_a_published_model() -> None:
    card = {"model": "gpt-oss-20b", "gpu": "RTX 5080", "tensor_parallel": "1"}
    # ggml-org/gpt-oss-20b-GGUF: gpt-oss-20b-mxfp4.gguf has 12.1 GB.
    answer = ask("inference-memory", card, engine="llama.cpp")
    loaded = number(answer, "weights") + number(answer, "host")
    assert loaded == pytest.approx(12.1e9, rel=0.005)
    assert "GGUF files: MXFP4_MOE, the usual one, is counted" in answer.verdict.text
    change = next(c for c in ask("inference-memory", card).changes if c.field == "engine")
    assert change.typed_values_by_field["weights"] == "GGUF MXFP4_MOE"
    dense = ask("latency", card, model="llama-3.1-8b", engine="llama.cpp")
    assert "Q4_K_M, the usual one" in dense.verdict.text


def test_capacity_and_deployment_take_files_of_llama_cpp() -> None:
    typed = {"model": "llama-3.1-8b", "gpu": "L40S", "concurrent": "2", "weights": "gguf-q8-0"}
    for name in ("serving-capacity", "deployment"):
        assert ask(name, typed, engine="llama.cpp")["gpus"].value
        with pytest.raises(InvalidInputsError, match=r"llama\.cpp and Ollama"):
            ask(name, typed)


def test_no_context_beyond_that_of_the_model_is_offered() -> None:
    card = {"model": "gpt-oss-20b", "gpu": "H100", "tensor_parallel": "1", "concurrent": "1"}
    long = ask("inference-memory", card, context="200000")
    assert long.verdict.lead == "Longer than the model takes."
    assert "configured for 131,072\u00a0tokens" in long.verdict.text
    (change,) = (c for c in long.changes if c.field == "context")
    assert change.new_value == "131,072\u00a0tokens"
    for answer in (long, ask("inference-memory", card)):
        assert number(answer, "max_context") == 131_072
    assert not any(c.field == "context" for c in ask("inference-memory", card).changes)
    small = ask("inference-memory", {**card, "model": "qwen3-0.6b"})
    assert number(small, "max_context") == 40_960
    assert small["max_context"].note.startswith("As long as the model takes. Memory holds")


LONGER = "Longer than the model takes."


def test_a_service_of_requests_longer_than_the_model_takes_says_so() -> None:
    card = {"model": "llama-2-7b", "gpu": "H100"}
    said = "It is configured for 4,096\u00a0tokens, and engines refuse longer contexts"
    for name, fields in (
        ("serving-capacity", ("prompt_tokens", "output_tokens")),
        ("latency", ("prompt", "answer")),
    ):
        prompt, answer = fields
        longer = ask(name, card, **{prompt: "4000", answer: "97"})
        assert (longer.verdict.status, longer.verdict.lead) == ("tight", LONGER)
        assert longer.verdict.text.startswith(said)
        assert ask(name, card, **{prompt: "4000", answer: "96"}).verdict.lead != LONGER
    unlimited = ask("serving-capacity", {"model": "mamba-2.8b", "gpu": "H100"})
    assert unlimited.verdict.lead != LONGER


def test_memory_that_is_too_small_matters_more_than_the_length_of_a_request() -> None:
    card = {"model": "llama-2-70b", "gpu": "L40S", "tensor_parallel": "1"}
    verdict = ask("latency", card, prompt="30000").verdict
    assert (verdict.status, verdict.lead) == ("no", "Does not fit.")
    assert "configured for 4,096\u00a0tokens" in verdict.text


def test_a_deployment_objects_to_requests_longer_than_the_model_takes() -> None:
    typed = {"model": "llama-2-7b", "gpu": "H100", "concurrent": "50", "prompt_tokens": "6000"}
    for targets in ({}, {"ttft_target": "0.01 s"}):  # The second is missed, and replaced.
        answer = ask("deployment", typed, **targets)
        assert answer.verdict.status == ("no" if targets else "tight")
        assert f"Latency: {LONGER}" in answer.verdict.text


def test_requests_of_which_some_are_longer_than_the_model_takes_get_a_note() -> None:
    card = {"model": "llama-2-7b", "gpu": "H100", "output_tokens": "300"}

    def note(name: str = "serving-capacity", **typed: str) -> str:
        return " ".join(n for n in ask(name, card, **typed).notes if "With this variation" in n)

    # Log-normal with mean 2,800 and variance (2,500² + 300²) ÷ 2: P(ln X > ln 4,096) for
    # σ² = ln(1 + 3.17e6 ÷ 7.84e6) = 0.3398 is Φ(−(0.3804 + 0.1699) ÷ 0.5829) = 17.3 %.
    said = (
        "With this variation, 17% of the requests are longer than the model's "
        "4,096\u00a0tokens; an engine refuses those."
    )
    assert note(prompt_tokens="2500") == note("deployment", prompt_tokens="2500") == said
    assert " 1% of the requests" in note(prompt_tokens="1100")
    assert not note(prompt_tokens="1000"), "0.7 %"
    assert not note(prompt_tokens="6000"), "The verdict says it of all."
    alike = {"prompt_variation": "0", "answer_variation": "0"}
    assert not note(prompt_tokens="2500", **alike)


def test_the_range_of_a_service_is_in_its_gpus_and_not_in_its_load() -> None:
    typed = {"model": "llama-3.1-70b", "gpu": "H200", "tensor_parallel": "2"}
    answer = ask("serving-capacity", typed, requests_per_second="20", spare="0")
    for name in ("requests_per_second", "throughput"):
        assert answer[name].is_exact
    for name in ("replicas", "gpus", "nodes", "cost_per_month", "cost_per_million_tokens"):
        figure = answer[name]
        assert figure.low is not None
        assert figure.high is not None
        assert figure.low <= number(answer, name) <= figure.high
    assert answer["replicas"].high > 1.3 * number(answer, "replicas")
    given = ask("serving-capacity", typed, requests_per_second="20", replicas="9")
    assert given["replicas"].is_exact
    assert given["concurrent"].low < given["concurrent"].value < given["concurrent"].high


def test_the_ranges_of_one_replica_are_said_to_be_of_one_replica() -> None:
    typed = {"model": "llama-3.1-8b", "weights": "bf16", "gpu": "l40s", "spare": "0"}
    answer = ask("serving-capacity", typed, requests_per_second="2")
    assert answer["replicas"].value == 1
    said = "The ranges of latency and of the highest rates assume 1 replica."
    assert any(note.startswith(said) for note in answer.notes)


def test_the_ends_of_gpus_throughput_and_cost_hold_together(subtests) -> None:
    # The costliest end is not the most GPUs at the rate of the fewest: 17 replicas and a spare one
    # answer 50 users within 50 ms, that is at about 1,000 tokens/s.
    card = {"model": "llama-3.3-70b", "weights": "fp8", "gpu": "mi300x", "tensor_parallel": "1"}
    answer = ask("serving-capacity", card, concurrent="50")
    price, cost, rate = 2.59, answer["cost_per_million_tokens"], answer["throughput"]
    assert answer["gpus"].high == 18
    dearest = 18 * price / 3600 / cost.high * 1e6
    assert 50 / 0.050 < dearest < 1.1 * 50 / 0.050
    assert rate.low == pytest.approx(dearest, rel=0.02)
    assert rate.low < number(answer, "throughput") < rate.high
    assert "17" in next(note for note in answer.notes if "assume as many as the targets" in note)
    for typed in (
        card | {"concurrent": "50"},
        card | {"concurrent": "400", "spare": "0"},
        {"model": "llama-3.1-8b", "gpu": "l40s", "concurrent": "110"},
        {"model": "llama-3.1-8b", "gpu": "h100", "concurrent": "200", "ttft_target": "1 s"},
        {"model": "gpt-oss-120b", "gpu": "h100", "concurrent": "300", "tpot_target": "20 ms"},
    ):
        answer = ask("serving-capacity", typed)
        month, cost, rate = (
            answer[name] for name in ("cost_per_month", "cost_per_million_tokens", "throughput")
        )
        for end in ("low", "high"):
            with subtests.test(typed=typed, end=end):
                tokens = getattr(month, end) / getattr(cost, end) * 1e6 / (730.5 * 3600)
                assert 0.999 * rate.low <= tokens <= 1.001 * rate.high
                assert cost.low <= number(answer, "cost_per_million_tokens") <= cost.high
    # Where no number of GPUs keeps the targets at one end, neither cost has a range.
    l4 = {"model": "llama-3.1-8b", "gpu": "l4", "concurrent": "20", "ttft_target": "1 s"}
    answer = ask("serving-capacity", l4)
    for name in ("cost_per_month", "cost_per_million_tokens"):
        assert answer[name].unbounded
        assert "any number of GPUs" in answer[name].note


def test_an_instance_is_offered_what_surely_fits_it_and_no_other_gpus(subtests) -> None:
    instance = {"model": "7B", "gpu": "H100", "context": "4000", "concurrent": "4"}
    instance |= {"tensor_parallel": "1", "shown_memory": "9.75 GiB"}
    answer = ask("inference-memory", instance)
    assert not any(change.field == "tensor_parallel" for change in answer.changes)
    assert not answer["fewest_gpus"].applies
    assert "on the label" not in answer.verdict.text
    loads = ({"model": "70B", "gpu": "2x H100"}, {"model": "gpt-oss-20b", "gpu": "1x RTX 5080"})
    for typed in (instance, *loads, {"model": "8B", "gpu": "l4", "engine": "transformers"}):
        changes = ask("inference-memory", typed).changes
        assert changes
        for change in changes:
            with subtests.test(typed=typed, change=change):
                lead = ask("inference-memory", typed | change.typed_values_by_field).verdict.lead
                is_sure = change.verdict_after in {"Fits.", "Tight, but fits."}
                assert is_sure is (lead in {"Fits.", "Tight."})


def test_a_deployment_counts_its_spare_and_names_what_is_answered() -> None:
    card = {"model": "llama-3.1-8b", "gpu": "l40s", "requests_per_second": "2"}
    said = ask("deployment", card).verdict.text
    assert "L40S, 1 spare replica included, answer all requests" in said
    assert (
        "L40S answers all requests"
        in ask("deployment", card, spare="0", requests_per_second="0.2").verdict.text
    )


def test_a_size_says_which_shape_is_assumed_of_it() -> None:
    (note,) = (n for n in ask("inference-memory", {"model": "7B"}).notes if "is a size" in n)
    assert note.startswith("7B is a size, not a model: a dense one like Llama 3 is counted, with ")
    assert "32 layers, 8 KV heads and a vocabulary of 128,256" in note
    assert note.endswith(
        "With 32 KV heads, one for each head as in Llama 2 7B, the KV cache is 4× as large."
    )
    for name, typed in (("training-time", {"model": "7B"}), ("weights", {"model": "llama-2-7b"})):
        assert "KV cache is" not in " ".join(ask(name, typed).notes)


def test_what_rests_on_modeled_values_is_never_called_exact(subtests) -> None:
    small = {"model": "llama-3.1-8b", "gpu": "l40s", "concurrent": "110"}
    names = ("utilisation", "concurrent", "max_concurrent", "gpus")
    for name, typed, figures in (
        ("serving-capacity", small, names),
        ("serving-capacity", {"ttft_target": "", "tpot_target": ""}, names),
        ("deployment", {}, ("nodes", "racks", "switches", "site_power", "tokens_owned")),
        ("accelerator-choice", {}, ("need", "gpus", "power")),
    ):
        answer = ask(name, typed)
        for figure in figures:
            with subtests.test(name=name, figure=figure):
                assert not answer[figure].is_exact
                assert format_interval_or_exact(answer[figure]) != "exact"
    assert "Too much if" in ask("serving-capacity", small)["utilisation"].note
    load = ask("serving-capacity", {"replicas": "30", "tensor_parallel": "4"})["utilisation"]
    assert load.low < load.value < load.high < 1


def test_rates_beyond_and_within_the_targets_are_told_apart() -> None:
    typed = {"model": "llama-3.1-8b", "gpu": "l40s", "tensor_parallel": "1", "concurrent": "400"}
    answer = ask("serving-capacity", typed, replicas="3")
    assert answer["fits"].value is False
    assert answer["max_rate"].note == "Within the targets, which this load misses."
    assert answer["saturated_throughput"].note.startswith("Whatever the targets.")
    drafts = ask("serving-capacity", typed, draft_tokens="3")
    assert "% of the drafts; it is one every" in drafts.verdict.text


def test_the_slow_end_names_the_split_that_takes_fewer_gpus_then() -> None:
    typed = {"model": "llama-3.3-70b", "gpu": "mi300x", "weights": "published-or-fp8"}
    answer = ask("serving-capacity", typed, concurrent="50")
    said = re.search(r"but \d+ replicas? of (\d+) would do, (\d+).GPUs in all", answer.verdict.text)
    assert said
    split = ask("serving-capacity", typed, concurrent="50", tensor_parallel=said[1])
    assert split["gpus"].high == int(said[2]) == answer["gpus"].high < answer["replicas"].high
    # A typed split is kept in the ranges.
    kept = ask("serving-capacity", typed, concurrent="50", tensor_parallel="1")
    assert said[0] in kept.verdict.text
    assert kept["gpus"].high == kept["replicas"].high + 1 > int(said[2])
    # Its own split is the best there.
    assert "would do, " not in split.verdict.text


def test_a_wide_range_of_replicas_is_said_in_the_verdict(subtests: pytest.Subtests) -> None:
    typed = {"model": "qwen3-32b", "gpu": "mi300x"}
    for changed, said in (
        ({"ttft_target": "500 ms"}, "it takes {} replicas"),
        ({"tpot_target": "30 ms"}, "no number of replicas keeps the targets"),
        ({"replicas": "4"}, ""),
        ({"concurrent": "2"}, ""),
    ):
        with subtests.test(**changed):
            answer = ask("serving-capacity", typed, **changed)
            assert answer["fits"].value is True
            assert ("At the slow end of the range" in answer.verdict.text) == bool(said)
            high = format_number(answer["replicas"].high or 0)
            assert said.format(high) in answer.verdict.text


def test_a_full_card_is_told_its_parts_and_settings_before_a_second_card() -> None:
    one = {"tensor_parallel": "1", "spare": "0"}
    typed = {"model": "gpt-oss-120b", "gpu": "a100-sxm4-80", "memory_utilization": "85%"} | one
    full = ask("serving-capacity", typed)
    assert "weights take 70.8\u00a0GB, 5.5\u00a0GB of it padding" in full.verdict.text
    typed = {"model": "qwen3-30b-a3b", "gpu": "H100", "memory_utilization": "76%"} | one
    full = ask("serving-capacity", typed)
    assert "weights take 61.1\u00a0GB, and its start-up and libraries" in full.verdict.text
    fields = [change.field for change in full.changes]
    assert fields == ["max_sequences", "memory_utilization", "tensor_parallel", "weights"]
    for change in full.changes:
        after = ask("serving-capacity", typed, **change.typed_values_by_field)
        assert number(after, "max_concurrent") >= 1


def test_experts_take_what_the_kernels_of_each_version_of_vllm_add(subtests) -> None:
    # gpt-oss 120B on an H100, whose file has 60.77 GiB. vLLM issues 23278 (0.10, Marlin) and 33155
    # (0.14, Triton), pull request 46549, and a log of 0.25.1 with Triton.
    gib = 2.0**30
    one = {"model": "gpt-oss-120b", "gpu": "H100", "tensor_parallel": "1", "context": "8192"}
    for engine, usual, least, most in (
        ("vllm-0.9", 65.97, 64.38, 65.97),
        ("vllm-0.17", 61.29, 61.29, 64.38),
    ):
        with subtests.test(engine):
            memory = ask("inference-memory", one, engine=engine)
            padding = memory["padding"]
            loaded = (
                number(memory, "weights") + n for n in (padding.value, padding.low, padding.high)
            )
            for found, logged in zip(loaded, (usual, least, most), strict=True):
                assert found == pytest.approx(logged * gib, rel=0.01)
    # The log has 10.52 GiB for the cache at 95%, which leaves 6.56 at 90%.
    memory = ask("inference-memory", one)
    assert number(memory, "cache_room") == pytest.approx(6.56 * gib, rel=0.05)
    assert any("keep the scales of the experts twice" in note for note in memory.notes)
    assert memory["fits"].value is True


EDGES = (
    {"model": "gpt-oss-120b", "gpu": "H100", "tensor_parallel": "1"},
    {"model": "llama-3.1-70b", "weights": "bf16", "gpu": "H100", "tensor_parallel": "2"},
    {"model": "llama-3.1-70b", "weights": "fp8", "gpu": "H100", "tensor_parallel": "1"},
    {"model": "qwen3.6-35b-a3b", "weights": "bf16", "gpu": "H100", "tensor_parallel": "1"},
    {"model": "gemma-2-27b", "weights": "int4", "gpu": "rtx-4090", "tensor_parallel": "1"},
)


@pytest.mark.parametrize("typed", EDGES, ids=lambda typed: typed["model"])
def test_calculators_agree_on_what_a_gpu_holds(typed: dict[str, str]) -> None:
    # The same memory of the same engine decides; of 531 models at the edge of a GPU all agreed.
    memory = ask("inference-memory", typed, context="8192", concurrent="1")
    most = int(number(memory, "max_concurrent"))
    words = {"prompt_tokens": "8191", "output_tokens": "1", "ttft_target": "", "tpot_target": ""}
    load = typed | words | {"concurrent": str(max(1, most))}
    capacity = ask("serving-capacity", load, replicas="1", spare="0")
    latency = ask("latency", typed, prompt="8191", answer="1", batch="1")
    deployment = ask("deployment", load)
    assert number(capacity, "max_concurrent") == most
    for answer in (memory, capacity, latency, deployment):
        assert answer["fits"].value is (most > 0)
    assert (capacity.verdict.lead == "Does not fit.") is (most == 0)
    assert ("No number of GPUs" in deployment.verdict.lead) is (most == 0)
    sure = memory["max_concurrent"].note
    assert sure == ("" if most == 0 else capacity["max_concurrent"].note)
    refused = "vLLM does not start with --max-num-seqs"
    starts = {refused in answer.verdict.text for answer in (memory, capacity, latency)}
    assert len(starts) == 1


def test_a_number_that_surely_fits_is_told_from_the_most() -> None:
    typed = {"model": "gpt-oss-120b", "gpu": "H100", "tensor_parallel": "1"}
    memory = ask("inference-memory", typed)
    fewer = memory.find_verdict_change("concurrent")
    assert fewer
    assert fewer.verdict_after == "Tight, but fits."
    assert memory["max_concurrent"].note == f"{fewer.new_value} surely fit."
    assert float(fewer.new_value) < number(memory, "max_concurrent")
    sure = ask("inference-memory", typed, concurrent=fewer.new_value)
    assert sure.verdict.lead == "Tight."
    # What vLLM calls --max-num-seqs is no number of sequences that fit.
    hybrid = {"model": "qwen3.6-35b-a3b", "weights": "bf16", "gpu": "H100", "tensor_parallel": "1"}
    both = ask("inference-memory", hybrid).find_verdict_change("concurrent")
    assert both
    assert re.fullmatch(r"\d+, --max-num-seqs \d+", both.new_values_text)


def test_the_headline_of_a_plan_names_its_zero_stage() -> None:
    plan = ask("parallelism-plan", {"model": "8B", "gpus": "8"})
    assert f"ZeRO {plan['zero'].value}" in plan.verdict.text


def test_a_gpu_of_unknown_speed_is_kept_where_memory_decides() -> None:
    answer = ask("accelerator-choice", {"model": "qwen3-32b", "weights": "fp8"})
    ranked = next(table for table in answer.tables if "RTX PRO 6000" in str(table.rows))
    assert "RTX PRO 6000" in str(ranked.rows[-1])
    assert "then NVIDIA's, then least power" in answer.notes[0]


def test_plain_fp8_says_when_the_published_checkpoint_in_blocks_is_not_loaded_so(subtests) -> None:
    qwen = {"model": "qwen3-235b-a22b", "weights": "fp8"}
    unloaded = "does not load so: the experts are 1,536 wide"
    for name in ("inference-memory", "latency"):
        with subtests.test(name):
            verdict = ask(name, qwen, tensor_parallel="8").verdict
            assert "This loads: one scale per matrix" in verdict.text
            assert unloaded in verdict.text
            assert unloaded not in ask(name, qwen, tensor_parallel="4").verdict.text
            other = ask(name, qwen, tensor_parallel="8", model="llama-3.1-70b")
            assert "published FP8" not in other.verdict.text
    shared = {"tensor_parallel": "8", "gpu": "h200"}
    whole = ask("serving-capacity", qwen, **shared, expert_parallel="8")
    assert unloaded not in whole.verdict.text
    divided = ask("serving-capacity", qwen, **shared, expert_tensor_parallel="8")
    assert unloaded in divided.verdict.text


def test_fp8_checkpoints_of_2026_load_over_the_gpus_that_their_cards_name(
    subtests: pytest.Subtests,
) -> None:
    """In blocks, the decays of linear attention stay in 16 bit; ModelOpt and GLM-4 have none."""
    for model, gpu, gpus in (
        ("Qwen/Qwen3.5-397B-A17B-FP8", "h200", 8),
        ("Qwen/Qwen3-Next-80B-A3B-Instruct-FP8", "h100", 4),
        ("Qwen/Qwen3.5-27B-FP8", "l40s", 2),
        ("zai-org/GLM-4.5-Air-FP8", "h100", 4),
        ("nvidia/NVIDIA-Nemotron-3-Super-120B-A12B-FP8", "h100", 4),
        ("XiaomiMiMo/MiMo-V2-Flash", "h200", 4),
    ):
        with subtests.test(model=model):
            typed = {"model": model, "gpu": gpu, "concurrent": 1}
            answer = registry.run_estimate("serving-capacity", typed | {"tensor_parallel": gpus})
            assert answer["fits"].value, answer.verdict
            assert registry.run_estimate("serving-capacity", typed)["fits"].value
    # vllm-project/vllm#52915: the shared expert is 64 wide on each of 8.
    refused = {"model": "Qwen/Qwen3.6-35B-A3B-FP8", "tensor_parallel": 8}
    assert "refuses" in registry.run_estimate("serving-capacity", refused).verdict.lead


def test_more_gpus_are_advised_only_where_the_engine_loads_the_model() -> None:
    """An FP8 file of Step 3.5 fits on 4 GPUs, which cut its shared expert inside a block.

    SGLang issue 26107, with --tp 4 --ep 4.
    """
    typed = {"model": "stepfun-ai/Step-3.5-Flash-FP8", "gpu": "h100"}
    narrow = registry.run_estimate("serving-capacity", typed | {"tensor_parallel": 2})
    assert narrow.verdict.lead == "Does not fit."
    assert not any(change.field == "tensor_parallel" for change in narrow.changes)
    assert "refuses" in registry.run_estimate("serving-capacity", typed).verdict.lead
    refusal = registry.run_estimate("serving-capacity", typed).verdict.text
    assert "expert-parallel" not in refusal
    assert "use fewer GPUs" in refusal


def test_a_change_of_the_load_keeps_the_split_that_it_is_said_of(subtests) -> None:
    qwen = {"model": "qwen3-32b", "gpu": "h200", "tpot_target": "30 ms"}
    for typed, field, replicas, said in (
        (qwen | {"concurrent": "50"}, "concurrent", 2, "Takes one more replica."),
        (qwen | {"requests_per_second": "3"}, "requests_per_second", 3, "Takes one more replica."),
        (
            {"model": "llama-3.1-8b", "gpu": "l40s", "concurrent": "5", "replicas": "2"},
            "concurrent",
            2,
            "Too slow.",
        ),
    ):
        with subtests.test(typed=typed):
            change = ask("serving-capacity", typed).find_verdict_change(field)
            assert change.verdict_after == said
            assert "tensor_parallel" in change.typed_values_by_field
            after = ask("serving-capacity", typed | change.typed_values_by_field)
            assert number(after, "replicas") == replicas
            assert after["fits"].value is (said != "Too slow.")
    # With a load for which the same split is chosen, there is nothing to add.
    change = ask("serving-capacity", {"model": "llama-3.1-8b"}).find_verdict_change("concurrent")
    assert "tensor_parallel" not in change.typed_values_by_field


def test_no_target_is_promised_for_users_that_the_memory_does_not_hold() -> None:
    # One replica holds 398 of the 400 users, so no target is enough for it.
    typed = {"model": "llama-3.1-8b", "weights": "published-or-fp8", "concurrent": "400"}
    answer = ask("serving-capacity", typed, gpu="h100-sxm5-80")
    assert number(answer, "replicas") == 2
    assert not answer.find_verdict_change("tpot_target")


def test_two_missed_targets_are_one_change_of_a_deployment() -> None:
    typed = {"model": "llama-3.3-70b", "gpu": "l40s", "concurrent": "50", "ttft_target": "1 s"}
    change = ask("deployment", typed).find_verdict_change("ttft_target")
    assert change.typed_values_by_field.keys() == {"ttft_target", "tpot_target"}
    after = ask("deployment", typed | change.typed_values_by_field)
    assert after["fits"].value is True


def test_a_model_that_barely_fits_a_server_is_divided_over_two() -> None:
    # "The smallest deployment unit for Kimi-K2 FP8 weights with 128k seqlen on mainstream H200 or
    # H20 platform is a cluster with 16 GPUs": docs/deploy_guidance.md of MoonshotAI/Kimi-K2.
    typed = {"model": "kimi-k2", "gpu": "h200", "concurrent": "500"}
    estimate = registry.run_estimate("serving-capacity", typed)
    assert "4 replicas of 16 " in estimate.verdict.text.replace("\u00a0", " ")
    assert "may not fit" not in estimate.verdict.lead
    server = registry.run_estimate("serving-capacity", typed | {"tensor_parallel": "8"})
    assert number(estimate, "gpus") < number(server, "gpus") / 4


@pytest.mark.parametrize("more", [{"attention_parallel": "8"}, {"prefill_gpus": "8"}])
def test_a_deployment_names_no_part_of_one_gpu_that_only_tensor_parallelism_has(
    more: dict[str, str],
) -> None:
    typed = {"model": "deepseek-v3", "gpu": "h200", "concurrent": "500"}
    if "attention_parallel" in more:
        more = more | {"tensor_parallel": "1", "expert_parallel": "8"}
    else:
        more = more | {"decode_gpus": "16"}
    for layout, is_known in ({"tensor_parallel": "8"}, True), (more, False):
        sections = registry.run_estimate("deployment", typed | layout).sections
        weights = next(s.estimate for s in sections if s.heading == "Weights")
        assert weights["per_gpu"].applies == is_known
        assert any(step.label == "On one GPU" for step in weights.steps) == is_known


def test_adapters_without_a_framework_name_the_limits_of_the_usual_recipes() -> None:
    typed = {"model": "qwen3-14b", "gpu": "rtx-4090", "method": "qlora"}
    (note,) = (n for n in ask("training-memory", typed).notes if "usual one of adapters" in n)
    limits = [int(n.replace(",", "")) for n in re.findall(r"sequences to ([\d,]+)", note)]
    recipes = (
        {"framework": "transformers"},
        {"framework": "transformers", "loss": "transformers", "qlora_embeddings": "fp32"},
        {"framework": "transformers", "loss": "chunked"},
    )
    for recipe, limit in zip(recipes, limits, strict=True):
        for sequence, is_sure in ((limit, True), (limit + 1, False)):
            fits = ask("training-memory", typed, **recipe, sequence=str(sequence))["fits"]
            assert bool(fits.value)
            assert bool(fits.note) != is_sure
