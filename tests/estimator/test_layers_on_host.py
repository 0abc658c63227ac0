"""Layers that llama.cpp keeps in the memory of the host (-ngl)."""

from typing import Any

import pytest

from app.estimator.estimates.latency import (
    LatencyInputs,
    fill_in_formats_and_gpus,
    place_requested_model,
)
from app.estimator.inputs import InvalidInputsError, parse_inputs
from app.estimator.registry import find_estimate, run_estimate
from app.estimator.result import Estimate
from app.estimator.serving.replica_memory import weight_bytes_per_gpu

_CODER = {  # inventivehq.com/blog/vram-offload-cliff-gpu-layers-benchmark: RTX 5060 Ti, i7-8700.
    "model": "qwen2.5-14b",
    "gpu": "16 GB, 448 GB/s, 48 TFLOPS",
    "host_bandwidth": "42.7 GB/s",
}
_TURING = {  # github.com/AlexsJones/llmfit/pull/774: RTX 2080, i9-10900X with four channels.
    "gpu": "8 GB, 448 GB/s, 80 TFLOPS",
    "host_bandwidth": "93.9 GB/s",
}


def _compute(name: str, **typed: Any) -> Estimate:
    entry = find_estimate(name)
    typed = {"engine": "llama.cpp", "tensor_parallel": 1, **typed}
    texts = {field: str(value) for field, value in typed.items()}
    return entry.compute(parse_inputs(entry.inputs_type, texts))


def _surely_fits(estimate: Estimate) -> bool:
    said = f"{estimate.verdict.lead} {estimate.verdict.text}"
    is_unsure = "May not fit" in said or "each GPU lacks" in said
    return bool(estimate.find_figure("fits").value) and not is_unsure


@pytest.mark.parametrize(
    ("typed", "gpu_layers", "published"),
    [
        *((_CODER, *row) for row in ((8, 3.58), (16, 4.24), (24, 5.61), (32, 7.26), (40, 12.5))),
        ({**_TURING, "model": "gemma-3-12b"}, 44, 26.1),
        ({**_TURING, "model": "qwen3-14b"}, 32, 16.9),
        ({**_TURING, "model": "phi-4"}, 32, 16.7),
    ],
)
def test_published_rates_are_in_the_range_and_within_a_fifth(
    typed: dict[str, str], gpu_layers: int, published: float
) -> None:
    rate = _compute("latency", **typed, gpu_layers=gpu_layers, prompt=100).find_figure(
        "tokens_per_second"
    )
    assert rate.low < published < rate.high
    assert rate.value == pytest.approx(published, rel=0.2)


def test_fewer_layers_on_the_gpu_take_less_of_its_memory_and_more_of_the_host() -> None:
    typed = {"model": "llama-3.3-70b", "gpu": "rtx-4090", "concurrent": 1}
    whole = _compute("inference-memory", **typed)
    assert whole.verdict.status == "no"
    on_gpu, on_host = [], []
    for layers in (20, 40, 60, 80):
        estimate = _compute("inference-memory", **typed, gpu_layers=layers)
        on_gpu.append(estimate.find_figure("per_gpu").value)
        on_host.append(estimate.find_figure("host").value)
        parts = [whole.find_figure(name).value for name in ("weights", "kv_cache", "host")]
        held = [estimate.find_figure(name).value for name in ("weights", "kv_cache", "host")]
        assert sum(held) == pytest.approx(sum(parts))
    assert on_gpu == sorted(on_gpu)
    assert on_host == sorted(on_host, reverse=True)


@pytest.mark.parametrize(
    ("model", "host_mib", "is_copied"),
    [
        # "CPU_Mapped model buffer size = 563.62 MiB" with 81 of 81 layers on GPUs.
        ("llama-3.3-70b", 563.62, False),
        # github.com/ggml-org/llama.cpp/pull/6122: "CPU buffer size = 1640.62 MiB" with 41 of 41
        # layers on GPUs, which have a copy of the table as their output layer.
        ("command-r", 1640.62, True),
    ],
)
def test_the_input_table_is_in_host_memory_with_all_layers_on_gpus(
    model: str, host_mib: float, is_copied: bool
) -> None:
    answer = _compute("inference-memory", model=model, gpu="a100-sxm4-80", concurrent=1)
    host, on_gpus = (answer.find_figure(name).value for name in ("host", "weights"))
    assert host / 2**20 == pytest.approx(host_mib, abs=0.05)
    whole = run_estimate("weights", {"model": model, "weights": "gguf-q4-k-m"})
    in_file = whole.find_figure("total").value
    assert on_gpus == pytest.approx(in_file if is_copied else in_file - host)
    inputs = parse_inputs(LatencyInputs, {"model": model, "engine": "llama.cpp"})
    placed = place_requested_model(fill_in_formats_and_gpus(inputs))
    assert placed.setup.tensor_parallel * weight_bytes_per_gpu(placed) == pytest.approx(on_gpus)
    assert not _compute("inference-memory", model=model, engine="vllm").find_figure("host").applies


@pytest.mark.parametrize("name", ["inference-memory", "latency"])
def test_a_model_that_does_not_fit_is_offered_the_most_layers_that_surely_do(name: str) -> None:
    typed = {"model": "llama-3.3-70b", "gpu": "rtx-4090"}
    if name == "inference-memory":
        typed["concurrent"] = "1"
    change = next(f for f in _compute(name, **typed).changes if f.field == "gpu_layers")
    most = int(change.typed_values_by_field["gpu_layers"])
    assert _surely_fits(_compute(name, **typed, gpu_layers=most))
    assert not _surely_fits(_compute(name, **typed, gpu_layers=most + 1))


@pytest.mark.parametrize(
    ("name", "typed", "field"),
    [
        ("inference-memory", {"engine": "vllm"}, "gpu_layers"),
        ("latency", {"engine": "vllm"}, "gpu_layers"),
        ("latency", {"batch": 2}, "batch"),
        ("latency", {"draft_tokens": 2}, "draft_tokens"),
    ],
)
def test_what_is_not_estimated_with_layers_on_the_host_is_refused(
    name: str, typed: dict[str, Any], field: str
) -> None:
    with pytest.raises(InvalidInputsError) as error:
        _compute(name, model="llama-3.1-8b", gpu="rtx-4090", gpu_layers=20, **typed)
    assert [problem.field for problem in error.value.problems] == [field]


def test_a_prompt_sends_the_layers_on_the_host_for_each_batch_of_tokens() -> None:
    typed = {"model": "llama-3.3-70b", "gpu": "rtx-4090", "gpu_layers": 40}
    short, long = (_compute("latency", **typed, prompt=n).find_figure("ttft") for n in (512, 1024))
    assert short.value < long.value < 2.1 * short.value
    assert short.high > 3 * short.value
