"""Cases of inference speed: decoding, offline throughput, latency under load."""

import re
from typing import Any, NamedTuple

from app.estimator.hardware.collectives import expert_parallel_layer_bytes_per_rank
from app.estimator.models.lookup import find_model, normalize_model_name
from evidence.accuracy.cases import (
    CaseInputs,
    UnsupportedCaseError,
    config_as_input,
    find_gpu_id,
    model_as_input,
)
from evidence.accuracy.kinds import Translator
from evidence.accuracy.question import CalculatorQuery, FormulaValue, build_query, formula_value

_WEIGHTS = {
    "": "bf16",
    "bf16": "bf16",
    "fp16": "fp16",
    "int8": "int8",
    "fp8": "fp8",
    "fp8_block128": "fp8-block",
    "nvfp4": "nvfp4",
    "mxfp4": "mxfp4-experts",
    "awq_int4_g128": "awq-int4",
    "gptq_int4_g128": "gptq-int4",
    "gptq_int8_g128": "gptq-int8",
    "int4_g32_weight_only": "gptq-int4-g32",
    "int8_weight_only": "gptq-int8",
}
_EXCHANGE = "EP all-to-all only, two micro-batches overlapped, 2 x comm per layer"
_WEIGHTS_ONLY = "weights only, no overhead"
_BOUNDS = {_EXCHANGE: "exchange", _WEIGHTS_ONLY: "weights", "": ""}
_BYTES = {"bf16": 2.0, "fp16": 2.0, "int8": 1.0, "fp8": 1.0, "": 2.0}
# DeepSeek-V3 in its published bound: 32 tokens to 9 experts, FP8 dispatch and BF16
# combine, with a width printed as 7K.
_BOUND_TOKENS, _BOUND_EXPERTS, _BOUND_WIDTH, _BOUND_BYTES = 32, 9, 7000, 3


def decode_tpot(inputs: CaseInputs) -> CalculatorQuery | FormulaValue:
    """Time per output token [s]."""
    bound = inputs.read_meaning("bound", _BOUNDS)
    if bound == "exchange":
        inputs.ignore("model")
        sent = expert_parallel_layer_bytes_per_rank(
            _BOUND_TOKENS, _BOUND_EXPERTS, _BOUND_WIDTH, _BOUND_BYTES
        )
        seconds = 2 * inputs.read_int("layers") * sent / inputs.read_number("bandwidth_Bps")
        return formula_value(expert_parallel_layer_bytes_per_rank, seconds, report_alone=True)
    if bound == "weights":
        inputs.ignore("batch", "gpu", "model")
        size = inputs.read_number("params") * float(inputs.read_meaning("weights", _BYTES))
        rate = inputs.read_int("tp", 1) * inputs.read_number("bandwidth_Bps")
        return formula_value(reading_time, reading_time(size, rate), report_alone=True)
    return _decoding_query(inputs)


def reading_time(size: float, bandwidth: float) -> float:
    """Return the time to read the weights once: the lower bound per token of one sequence [s].

    >>> reading_time(104e9, 6e12)
    0.017333333333333333
    """
    return size / bandwidth


_DECODERS = {
    "gpt-fast": "compiled",
    "vLLM 0.6.3": "vllm-2024",
    "llama.cpp": "llama.cpp",
    "": "compiled",
}


def _decoding_query(inputs: CaseInputs) -> CalculatorQuery:
    inputs.ignore("definition", "layers", "params", "bandwidth_Bps")
    gpus = _read_decoding_gpus(inputs)
    return build_query(
        "latency",
        "tpot",
        model=_read_decoding_model(inputs),
        weights=inputs.read_meaning("weights", _WEIGHTS),
        gpu=gpus.id,
        tensor_parallel=inputs.read_int("tp", gpus.number),
        beyond_heads=True if gpus.number > 1 else None,
        **_read_decoding_lengths(inputs),
        batch=inputs.read_int("batch", 1),
        engine=inputs.read_meaning("framework", _DECODERS),
    )


def _read_decoding_lengths(inputs: CaseInputs) -> dict[str, int]:
    """Return prompt and answer length; for a mean context, lengths with that mean."""
    context = inputs.read_int("context", 0)
    prompt, answer = inputs.read_int("input_tokens", 0), inputs.read_int("output_tokens", 0)
    if context:
        return {"prompt": max(1, context - 1), "answer": 2}
    return {"prompt": max(1, prompt), "answer": max(1, answer)}


class Gpus(NamedTuple):
    """The catalog id of an accelerator, and how many of it there are."""

    id: str
    number: int


def _read_decoding_gpus(inputs: CaseInputs) -> Gpus:
    """Return the accelerators of a case; some cases give type and number in one name."""
    name = str(inputs.read_any("gpu", ""))
    pod = re.fullmatch(r"(TPU v\S+) x(\d+)", name)
    if pod:
        return Gpus(find_gpu_id(pod[1]), int(pod[2]))
    return Gpus(find_gpu_id("A100-SXM-40GB" if name == "A100-40GB" else name), 1)


_PALM = re.compile(r"palm-540b \((\d+) layers, hidden (\d+), MQA, (\d+) heads x (\d+)\)")


def _read_decoding_model(inputs: CaseInputs) -> str:
    name = str(inputs.read_any("model", ""))
    palm = _PALM.fullmatch(name)
    if palm is None:
        return model_as_input(inputs.file, name)
    layers, hidden, heads, width = (int(word) for word in palm.groups())
    return config_as_input(
        {
            "model_type": "llama",
            "num_hidden_layers": layers,
            "hidden_size": hidden,
            "num_attention_heads": heads,
            "num_key_value_heads": 1,
            "head_dim": width,
            "intermediate_size": 4 * hidden,
            "vocab_size": 256000,
            "tie_word_embeddings": True,
        }
    )


_ENGINES = {
    "TensorRT-LLM 1.0 PyTorch backend": "trtllm",
    "TensorRT-LLM 1.2 PyTorch backend": "trtllm",
}
# Share of memory that the published offline runs gave to the engine.
_MEMORY_SHARE = 0.95


def offline_throughput(inputs: CaseInputs) -> CalculatorQuery:
    """Output tokens per second if all requests arrive at once."""
    inputs.ignore("model_note", "load")
    model, gpus = inputs.read_model(), inputs.read_int("gpus", 1)
    tensor, groups = _read_offline_split(inputs, gpus, routed=find_model(model).is_routed)
    if gpus % (tensor * groups):
        raise UnsupportedCaseError(f"{gpus} GPUs are no multiple of {tensor * groups}")
    # Data-parallel attention, with the experts divided among all groups.
    divided = {"attention_parallel": groups, "expert_parallel": groups} if groups > 1 else {}
    return build_query(
        "serving-capacity",
        "saturated_throughput",
        model=model,
        weights=inputs.read_meaning("weights", _WEIGHTS),
        cache=inputs.read_meaning("kv_dtype", {"fp8": "fp8", "": "fp8", "bf16": "bf16"}),
        gpu=inputs.read_gpu_id(),
        tensor_parallel=tensor,
        **divided,
        replicas=gpus // (tensor * groups),
        spare=0,
        prompt_tokens=inputs.read_int("input_tokens"),
        output_tokens=inputs.read_int("output_tokens"),
        prompt_variation=0,
        answer_variation=0,
        run_requests=inputs.read_int("requests", 0) or None,
        memory_utilization=_MEMORY_SHARE,
        engine=inputs.read_meaning("framework", _ENGINES),
    )


class OfflineSplit(NamedTuple):
    """The tensor parallelism, and the number of groups that run attention."""

    tensor: int
    groups: int


def _read_offline_split(inputs: CaseInputs, gpus: int, *, routed: bool) -> OfflineSplit:
    """Return how the GPUs of an offline run share the model.

    `DEP8` is data-parallel attention over 8 with split experts; mixtures of experts on
    several GPUs run that way even if only `tp` is given.
    """
    word = str(inputs.read_any("parallel", ""))
    tensor = inputs.read_int("tp", gpus)
    match = re.fullmatch(r"(TP|DEP)(\d+)", word)
    if word and match is None:
        raise UnsupportedCaseError(f"parallel “{word}” is not known")
    is_divided = routed and tensor > 1
    if match:
        tensor, is_divided = int(match[2]), match[1] == "DEP"
    return OfflineSplit(1, tensor) if is_divided else OfflineSplit(tensor, 1)


def serving_tpot(inputs: CaseInputs) -> CalculatorQuery:
    """Median time per output token under a fixed number of requests [s]."""
    return build_query("serving-capacity", "tpot_p50", **_read_server_inputs(inputs))


def serving_ttft(inputs: CaseInputs) -> CalculatorQuery:
    """Median time to the first token under a fixed number of requests [s]."""
    return build_query("serving-capacity", "ttft_p50", **_read_server_inputs(inputs))


def serving_throughput(inputs: CaseInputs) -> CalculatorQuery:
    """Output tokens per second under a fixed number of requests."""
    return build_query("serving-capacity", "throughput", **_read_server_inputs(inputs))


_GPU_OF_SYSTEM = {
    "h100_sxm": "h100-sxm5-80",
    "h200_sxm": "h200-sxm5-141",
    "b200_sxm": "b200-sxm",
    "b300_sxm": "b300-sxm",
    "gb200": "gb200-gpu",
    "a100_sxm4_40gb": "a100-sxm4-40",
    "a100_sxm4_80gb": "a100-sxm4-80",
    "mi300x": "mi300x",
}


def _read_server_inputs(inputs: CaseInputs) -> dict[str, Any]:
    model = _read_served_model(inputs)
    backend = str(inputs.read_any("backend", "")).split(" ")[0]
    if backend not in {"vllm", "trtllm", "sglang"}:
        raise UnsupportedCaseError(f"backend “{backend}” is not known")
    each = inputs.read_int("batch_size_per_replica", 0)
    groups = inputs.read_int("attention_dp", 1)
    concurrent = each * groups or inputs.read_int("concurrency")
    inputs.ignore("concurrency", "load")
    return {
        "model": model,
        **_read_formats(inputs, model),
        "gpu": inputs.read_meaning("system", _GPU_OF_SYSTEM),
        "tensor_parallel": inputs.read_int("tp", 1),
        **_read_expert_split(inputs, groups, routed=find_model(model).is_routed),
        "replicas": 1,
        "spare": 0,
        **_read_length_distribution(inputs),
        "concurrent": concurrent,
        "engine": backend,
        "polling": inputs.read_int("polling", 0) or None,
    }


def _read_length_distribution(inputs: CaseInputs) -> dict[str, float]:
    """Return mean lengths, and their squared coefficient of variation.

    Lengths may be drawn evenly from `shortest` to 1 times the longest; otherwise the given
    lengths are means, with a `length_variation` of 0 if none is stated.
    """
    shortest = inputs.read_number("shortest", 1.0)
    mean = (1 + shortest) / 2
    variation = inputs.read_number("length_variation", ((1 - shortest) / mean) ** 2 / 12)
    return {
        "prompt_tokens": round(mean * inputs.read_int("input_tokens")),
        "output_tokens": round(mean * inputs.read_int("output_tokens")),
        "prompt_variation": round(variation, 4),
        "answer_variation": round(variation, 4),
    }


def _read_expert_split(inputs: CaseInputs, groups: int, *, routed: bool) -> dict[str, Any]:
    parts, each = inputs.read_int("moe_ep", 1), inputs.read_int("moe_tp", 1)
    found: dict[str, Any] = {"attention_parallel": groups if groups > 1 else None}
    if routed:
        found |= {"expert_parallel": parts, "expert_tensor_parallel": each}
    return found


_CACHES = {"bf16": "bf16", "fp8": "fp8"}
_PRECISIONS = {"bf16": "bf16", "fp8": "fp8-block", "fp4": "nvfp4", "int4": "int4"}


def _read_formats(inputs: CaseInputs, model: str) -> dict[str, str]:
    """Return the formats of weights and cache, as stated or for a precision."""
    if inputs.has("weights"):
        return {
            "weights": str(inputs.read_any("weights")),
            "cache": inputs.read_meaning("kv_dtype", _CACHES),
        }
    precision = inputs.read_meaning("precision", {p: p for p in _PRECISIONS})
    weights = _PRECISIONS[precision]
    if "gpt-oss" in model:
        weights = "mxfp4-experts"
    elif precision == "fp8" and "llama" in model:
        weights = "fp8"
    narrow = precision == "fp8" or "llama" in model
    cache = inputs.read_meaning("kv_dtype", _CACHES, "fp8" if narrow else "bf16")
    return {"weights": weights, "cache": cache}


def _read_served_model(inputs: CaseInputs) -> str:
    """Return the model for a Hugging Face name, from the file or the catalog."""
    name = str(inputs.read_any("model", ""))
    plain = re.sub(r"(-Instruct|-FP8|-NVFP4)+$", "", name.rpartition("/")[2])
    if plain.lower() in inputs.file.configs:
        return model_as_input(inputs.file, plain.lower())
    try:
        return normalize_model_name(plain)
    except LookupError as error:
        raise UnsupportedCaseError(str(error)) from error


KINDS: dict[str, Translator] = {
    "decode_tpot": decode_tpot,
    "offline_throughput": offline_throughput,
    "serving_tpot": serving_tpot,
    "serving_ttft": serving_ttft,
    "serving_throughput": serving_throughput,
}
