"""Cases of inference speed: decoding, offline throughput, latency under load."""

import re
from typing import Any

from app.estimator.hardware.collectives import expert_parallel_bytes
from app.estimator.models.lookup import find_model, normalize_model_name
from evidence.accuracy.cases import (
    CaseInputs,
    UnsupportedCaseError,
    as_config,
    card_id,
    typed_model,
)
from evidence.accuracy.kinds import Translator
from evidence.accuracy.question import CalculatorQuery, FormulaValue, formula, query_calculator

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


def decode_tpot(asked: CaseInputs) -> CalculatorQuery | FormulaValue:
    """Time per output token [s]."""
    bound = asked.word("bound", _BOUNDS)
    if bound == "exchange":
        asked.note("model")
        sent = expert_parallel_bytes(_BOUND_TOKENS, _BOUND_EXPERTS, _BOUND_WIDTH, _BOUND_BYTES)
        seconds = 2 * asked.whole("layers") * sent / asked.number("bandwidth_Bps")
        return formula(expert_parallel_bytes, seconds, alone=True)
    if bound == "weights":
        asked.note("batch", "gpu", "model")
        size = asked.number("params") * float(asked.word("weights", _BYTES))
        rate = asked.whole("tp", 1) * asked.number("bandwidth_Bps")
        return formula(reading_time, reading_time(size, rate), alone=True)
    return _decoding(asked)


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


def _decoding(asked: CaseInputs) -> CalculatorQuery:
    asked.note("definition", "layers", "params", "bandwidth_Bps")
    gpu, gpus = _decode_card(asked)
    prompt, answer = _lengths(asked)
    tensor = asked.whole("tp", gpus)
    return query_calculator(
        "latency",
        "tpot",
        model=_decode_model(asked),
        weights=asked.word("weights", _WEIGHTS),
        gpu=gpu,
        tensor_parallel=tensor,
        beyond_heads=True if gpus > 1 else None,
        prompt=prompt,
        answer=answer,
        batch=asked.whole("batch", 1),
        engine=asked.word("framework", _DECODERS),
    )


def _lengths(asked: CaseInputs) -> tuple[int, int]:
    """Return prompt and answer length; for a mean context, lengths with that mean."""
    context = asked.whole("context", 0)
    prompt, answer = asked.whole("input_tokens", 0), asked.whole("output_tokens", 0)
    if context:
        return max(1, context - 1), 2
    return max(1, prompt), max(1, answer)


def _decode_card(asked: CaseInputs) -> tuple[str, int]:
    """Return the accelerator of a case and its number; some cases give both in one name."""
    name = str(asked.any("gpu", ""))
    pods = re.fullmatch(r"(TPU v\S+) x(\d+)", name)
    plain = pods[1] if pods else name
    from_catalogue = {"A100-40GB": "A100-SXM-40GB"}.get(plain, plain)
    return card_id(from_catalogue), int(pods[2]) if pods else 1


_PALM = re.compile(r"palm-540b \((\d+) layers, hidden (\d+), MQA, (\d+) heads x (\d+)\)")


def _decode_model(asked: CaseInputs) -> str:
    name = str(asked.any("model", ""))
    palm = _PALM.fullmatch(name)
    if palm is None:
        return typed_model(asked.file, name)
    layers, hidden, heads, width = (int(word) for word in palm.groups())
    return as_config(
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
_FULL = 0.95


def offline_throughput(asked: CaseInputs) -> CalculatorQuery:
    """Output tokens per second if all requests arrive at once."""
    asked.note("model_note", "load")
    model, gpus = asked.model(), asked.whole("gpus", 1)
    tensor, groups = _split(asked, gpus, routed=find_model(model).is_routed)
    if gpus % (tensor * groups):
        raise UnsupportedCaseError(f"{gpus} GPUs are no multiple of {tensor * groups}")
    return query_calculator(
        "serving-capacity",
        "saturated_throughput",
        model=model,
        weights=asked.word("weights", _WEIGHTS),
        cache=asked.word("kv_dtype", {"fp8": "fp8", "": "fp8", "bf16": "bf16"}),
        gpu=asked.card(),
        tensor_parallel=tensor,
        **_groups(groups),
        **_alone(gpus // (tensor * groups)),
        prompt_tokens=asked.whole("input_tokens"),
        output_tokens=asked.whole("output_tokens"),
        prompt_variation=0,
        answer_variation=0,
        run_requests=asked.whole("requests", 0) or None,
        memory_utilization=_FULL,
        engine=asked.word("framework", _ENGINES),
    )


def _groups(number: int) -> dict[str, Any]:
    """Inputs for data-parallel attention, with the experts divided among all groups."""
    if number == 1:
        return {}
    return {"attention_parallel": number, "expert_parallel": number}


def _alone(replicas: int = 1) -> dict[str, Any]:
    """Inputs for this many replicas, without a spare."""
    return {"replicas": replicas, "spare": 0}


def _split(asked: CaseInputs, gpus: int, *, routed: bool) -> tuple[int, int]:
    """Return the tensor parallelism and the number of attention groups.

    `DEP8` is data-parallel attention over 8 with split experts; mixtures of experts on
    several GPUs run that way even if only `tp` is given.
    """
    word = str(asked.any("parallel", ""))
    tensor = asked.whole("tp", gpus)
    match = re.fullmatch(r"(TP|DEP)(\d+)", word)
    if word and match is None:
        raise UnsupportedCaseError(f"parallel “{word}” is not known")
    if match and match[1] == "TP":
        return int(match[2]), 1
    if match:
        return 1, int(match[2])
    return (1, tensor) if routed and tensor > 1 else (tensor, 1)


def serving_tpot(asked: CaseInputs) -> CalculatorQuery:
    """Median time per output token under a fixed number of requests [s]."""
    return query_calculator("serving-capacity", "tpot_p50", **_loaded(asked))


def serving_ttft(asked: CaseInputs) -> CalculatorQuery:
    """Median time to the first token under a fixed number of requests [s]."""
    return query_calculator("serving-capacity", "ttft_p50", **_loaded(asked))


def serving_throughput(asked: CaseInputs) -> CalculatorQuery:
    """Output tokens per second under a fixed number of requests."""
    return query_calculator("serving-capacity", "throughput", **_loaded(asked))


_CARDS = {
    "h100_sxm": "h100-sxm5-80",
    "h200_sxm": "h200-sxm5-141",
    "b200_sxm": "b200-sxm",
    "b300_sxm": "b300-sxm",
    "gb200": "gb200-gpu",
    "a100_sxm4_40gb": "a100-sxm4-40",
    "a100_sxm4_80gb": "a100-sxm4-80",
    "mi300x": "mi300x",
}


def _loaded(asked: CaseInputs) -> dict[str, Any]:
    model = _served_model(asked)
    backend = str(asked.any("backend", "")).split(" ")[0]
    if backend not in {"vllm", "trtllm", "sglang"}:
        raise UnsupportedCaseError(f"backend “{backend}” is not known")
    each = asked.whole("batch_size_per_replica", 0)
    groups = asked.whole("attention_dp", 1)
    concurrent = each * groups or asked.whole("concurrency")
    asked.note("concurrency", "load")
    prompt, answer, variation = _drawn(asked)
    return {
        "model": model,
        **_formats(asked, model),
        "gpu": asked.word("system", _CARDS),
        "tensor_parallel": asked.whole("tp", 1),
        **_experts(asked, groups, routed=find_model(model).is_routed),
        **_alone(),
        "prompt_tokens": prompt,
        "output_tokens": answer,
        "prompt_variation": variation,
        "answer_variation": variation,
        "concurrent": concurrent,
        "engine": backend,
        "polling": asked.whole("polling", 0) or None,
    }


def _drawn(asked: CaseInputs) -> tuple[int, int, float]:
    """Return mean lengths, and their squared coefficient of variation.

    Lengths may be drawn evenly from `shortest` to 1 times the longest; otherwise the given
    lengths are means, with a `length_variation` of 0 if none is stated.
    """
    shortest = asked.number("shortest", 1.0)
    mean = (1 + shortest) / 2
    variation = asked.number("length_variation", ((1 - shortest) / mean) ** 2 / 12)
    prompt, answer = asked.whole("input_tokens"), asked.whole("output_tokens")
    return round(mean * prompt), round(mean * answer), round(variation, 4)


def _experts(asked: CaseInputs, groups: int, *, routed: bool) -> dict[str, Any]:
    parts, each = asked.whole("moe_ep", 1), asked.whole("moe_tp", 1)
    found: dict[str, Any] = {"attention_parallel": groups if groups > 1 else None}
    if routed:
        found |= {"expert_parallel": parts, "expert_tensor_parallel": each}
    return found


_CACHES = {"bf16": "bf16", "fp8": "fp8"}
_PRECISIONS = {"bf16": "bf16", "fp8": "fp8-block", "fp4": "nvfp4", "int4": "int4"}


def _formats(asked: CaseInputs, model: str) -> dict[str, str]:
    """Return the formats of weights and cache, as stated or for a precision."""
    if asked.has("weights"):
        return {"weights": str(asked.any("weights")), "cache": asked.word("kv_dtype", _CACHES)}
    precision = asked.word("precision", {p: p for p in _PRECISIONS})
    weights = _PRECISIONS[precision]
    if "gpt-oss" in model:
        weights = "mxfp4-experts"
    elif precision == "fp8" and "llama" in model:
        weights = "fp8"
    narrow = precision == "fp8" or "llama" in model
    cache = asked.word("kv_dtype", _CACHES, "fp8" if narrow else "bf16")
    return {"weights": weights, "cache": cache}


def _served_model(asked: CaseInputs) -> str:
    """Return the model for a Hugging Face name, from the file or the catalog."""
    name = str(asked.any("model", ""))
    plain = re.sub(r"(-Instruct|-FP8|-NVFP4)+$", "", name.rpartition("/")[2])
    if plain.lower() in asked.file.configs:
        return typed_model(asked.file, plain.lower())
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
