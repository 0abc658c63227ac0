"""Cases of measured inference memory, and of the KV cache size that a server reports."""

import json
import re
from typing import Any

from app.estimator.memory.engine_memory import GIB
from evidence.accuracy.cases import CaseInputs
from evidence.accuracy.kinds import Translator
from evidence.accuracy.question import CalculatorQuery, build_query

_WEIGHTS = {
    "bf16": "bf16",
    "fp16": "fp16",
    "awq_int4_g128": "awq-int4",
    "gptq_int4_g128": "gptq-int4",
    "gptq_int8_g128": "gptq-int8",
    "fp8": "fp8",
    "fp8_block128": "fp8-block",
    "int8_w8a8": "int8",
    "mxfp4": "mxfp4-experts",
}


def inference_memory(inputs: CaseInputs) -> CalculatorQuery:
    """Peak memory of plain generation over all GPUs."""
    engine = inputs.read_meaning(
        "framework", {"HF transformers": "transformers"}, "HF transformers"
    )
    prompt, answer = inputs.read_int("input_tokens"), inputs.read_int("output_tokens")
    return build_query(
        "inference-memory",
        "total",
        engine=engine,
        model=inputs.read_model(),
        weights=inputs.read_meaning("weights", _WEIGHTS, "bf16"),
        context=prompt + answer,
        prompt=prompt,
        concurrent=inputs.read_int("batch", 1),
        gpu=inputs.read_gpu_id(),
        tensor_parallel=inputs.read_int("gpus", 1),
    )


_ENGINES = {
    "": "general",
    "vLLM, hybrid allocator off": "general",
    "vLLM 0.2.x": "vllm-0.2",
    "vLLM 0.6.5": "vllm-0.6",
    "vLLM 0.7": "vllm-0.7",
    "vLLM 0.9": "vllm-0.9",
    "vLLM 0.17": "vllm-0.17",
    "SGLang": "sglang",
}
_CACHES = {1: "fp8", 2: "bf16"}
_WINDOWS = frozenset({"sliding_window", "layer_pattern", "layer_types"})
_VISIBLE = re.compile(r"\(([\d.]+) GiB visible\)")


def kv_capacity_tokens(inputs: CaseInputs) -> CalculatorQuery:
    """Tokens (or blocks) of KV cache at startup."""
    inputs.ignore("model_note", "max_model_len")
    blocks = inputs.read_meaning("answer", {"blocks": True, "": False, "tokens": False})
    room = inputs.read_any("available_kv_bytes") or inputs.read_any("cpu_swap_bytes")
    whole = "hybrid allocator off" in str(inputs.case.inputs.get("engine", ""))
    engine = inputs.read_meaning("engine", _ENGINES)
    memory = {"cache_memory": room} if room else _read_usable_memory(inputs, engine)
    model = inputs.read_model()
    if whole:  # The engine keeps all tokens of every layer, as if there were no windows.
        config = json.loads(model)
        model = json.dumps({k: v for k, v in config.items() if k not in _WINDOWS})
    return build_query(
        "inference-memory",
        "cache_blocks" if blocks else "cache_tokens",
        engine=None if room else engine,
        model=model,
        weights=inputs.read_meaning("weights", _WEIGHTS, "bf16"),
        cache=_CACHES[inputs.read_int("kv_dtype_bytes", 2)],
        tensor_parallel=inputs.read_int("tp", 1),
        block=inputs.read_int("block_tokens", 0) or 16,
        max_sequences=inputs.read_int("max_num_seqs", 0) or None,
        **memory,
    )


def _read_usable_memory(inputs: CaseInputs, engine: str) -> dict[str, Any]:
    """Return the memory that the engine may take: GPU, driver-reported size, and share."""
    share = "mem_fraction_static" if engine == "sglang" else "gpu_memory_utilization"
    given: dict[str, Any] = {"memory_utilization": inputs.read_number(share, 0.9)}
    printed = _VISIBLE.search(str(inputs.case.inputs.get("gpu", "")))
    if not printed:
        return given | {"gpu": inputs.read_gpu_id()}
    inputs.ignore("gpu")
    return given | {"shown_memory": float(printed[1]) * GIB}


KINDS: dict[str, Translator] = {
    "inference_memory": inference_memory,
    "kv_capacity_tokens": kv_capacity_tokens,
}
# The engines' constants were read from these startup logs.
CALIBRATION = frozenset(
    {
        "kv_capacity_tokens/llama-3-8b/001",
        "kv_capacity_tokens/llama-2-7b/003",
        "kv_capacity_tokens/qwen2.5-14b/008",
    }
)
