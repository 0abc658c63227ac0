"""Cases of measured inference memory and of the cache a server reports."""

import re

from app.estimator.accuracy.cases import Asked, Inexpressible
from app.estimator.accuracy.kinds import Predictor
from app.estimator.accuracy.prediction import Prediction, between
from app.estimator.memory.engines import (
    ENGINES,
    GIB,
    cache_bytes,
    capacity_tokens,
    shown_memory,
)
from app.estimator.memory.generation import generation_bytes

_WEIGHTS = {
    "bf16": "bf16",
    "fp16": "fp16",
    "awq_int4_g128": "awq-int4",
    "gptq_int4_g128": "gptq-int4",
    "gptq_int8_g128": "gptq-int8",
    "fp8": "fp8",
    "fp8_block128": "fp8-block",
    "int8_w8a8": "int8",
}


def inference_memory(asked: Asked) -> Prediction:
    """Peak memory of plain generation over all GPUs."""
    asked.word("framework", {"HF transformers": True}, "HF transformers")
    asked.card()
    model = asked.model()
    value = generation_bytes(
        model,
        asked.word("weights", _WEIGHTS, "bf16"),
        asked.whole("input_tokens"),
        asked.whole("output_tokens"),
        asked.whole("batch", 1),
        asked.whole("gpus", 1),
    )
    return between(value, 0.965, 1.04)


_HYBRID_OFF = "vLLM, hybrid allocator off"
_VISIBLE = re.compile(r"\(([\d.]+) GiB visible\)")


def kv_capacity_tokens(asked: Asked) -> Prediction:
    """Tokens (or blocks) of cache at start-up."""
    asked.note("model_note", "max_model_len")
    model = asked.model()
    width = asked.number("kv_dtype_bytes", 2)
    gpus, block = asked.whole("tp", 1), asked.whole("block_tokens", 0)
    blocks = asked.word("answer", {"blocks": True, "": False, "tokens": False})
    per_block = block or 16
    if asked.has("cpu_swap_bytes"):
        given = asked.number("cpu_swap_bytes")
        asked.note("engine")
        tokens = capacity_tokens(model, given, width, gpus, per_block)
        return Prediction(tokens / per_block if blocks else tokens)
    if asked.has("available_kv_bytes"):
        given = asked.number("available_kv_bytes")
        asked.word("engine", dict.fromkeys((*ENGINES, _HYBRID_OFF, ""), True))
        tokens = capacity_tokens(model, given, width, gpus, per_block)
        return Prediction(tokens / per_block if blocks else tokens)
    engine = asked.word("engine", ENGINES)
    fraction = (
        asked.number("mem_fraction_static")
        if asked.has("mem_fraction_static")
        else asked.number("gpu_memory_utilization", 0.9)
    )
    shown = _shown(asked)
    form = str(asked.word("weights", _WEIGHTS, "bf16"))
    left = cache_bytes(model, engine, shown, fraction, form, gpus)
    tokens = capacity_tokens(model, max(left, 0.0), width, gpus, per_block)
    return between(tokens / per_block if blocks else tokens, 0.9, 1.1)


def _shown(asked: Asked) -> float:
    """Memory that the driver shows: as printed, or from the card."""
    name = str(asked.case.inputs.get("gpu", ""))
    printed = _VISIBLE.search(name)
    if printed:
        asked.note("gpu")
        return float(printed[1]) * GIB
    card = asked.card()
    if card.memory is None:
        raise Inexpressible(f"the memory of “{name}” is not known")
    return shown_memory(card.memory)


KINDS: dict[str, Predictor] = {
    "inference_memory": inference_memory,
    "kv_capacity_tokens": kv_capacity_tokens,
}
# The engines' constants were read from these start-up logs.
CALIBRATION = frozenset(
    {
        "kv_capacity_tokens/llama-3-8b/001",
        "kv_capacity_tokens/llama-2-7b/003",
        "kv_capacity_tokens/qwen2.5-14b/008",
    }
)
