"""Memory that inference engines use in addition to weights and cache."""

import dataclasses

from app.estimator.models.architecture import Architecture
from app.estimator.models.number_formats import element_bytes, weight_table

GIB = 2.0**30


@dataclasses.dataclass(frozen=True, slots=True)
class EngineMemory:
    """Memory that an engine uses in addition to weights and cache.

    `outside` and `outside_each` are bytes outside of the framework, on the first
    GPU and for each further one; `sampler` bytes per logit of the `sequences` that
    are sampled when the peak is measured, on the whole vocabulary.
    `outside` counts against the fraction of the GPU that may be used; with
    `static` the fraction limits weights and cache together instead, and with `free` it is
    that of what weights and temporary tensors leave.
    """

    id: str
    label: str
    outside: float
    outside_each: float
    sampler: float
    sequences: int
    step_tokens: int
    static: bool = False
    free: bool = False

    def outside_of(self, gpus: int) -> float:
        """Bytes outside of the framework on one of `gpus` GPUs [B]."""
        return self.outside + self.outside_each * (gpus - 1)


# Constants from start-up logs: vLLM pull request 10511 (0.6.5), 2031 (0.2.x), issue
# 13061 (0.7) and 21348 (0.9 and SGLang). Logs of 0.10 and 0.11 agree with those of 0.9:
# issues 23278 and 27508 within 2%. TensorRT-LLM: the meaning of free_gpu_memory_fraction
# is documented; its other constants are assumed. llama.cpp: its compute buffer has the
# logits of a batch of 512 in FP32.
ENGINES: dict[str, EngineMemory] = {
    engine.id: engine
    for engine in (
        EngineMemory("vllm-0.9", "vLLM 0.9 and later", 0.6 * GIB, 0.83 * GIB, 35.0, 1024, 8192),
        EngineMemory("sglang", "SGLang", 0.9 * GIB, 0.4 * GIB, 0.0, 0, 0, static=True),
        EngineMemory("trtllm", "TensorRT-LLM", 0.9 * GIB, 0.83 * GIB, 6.0, 256, 8192, free=True),
        EngineMemory("llama.cpp", "llama.cpp, Ollama", 0.5 * GIB, 0.5 * GIB, 4.0, 512, 512),
        EngineMemory("vllm-0.2", "vLLM 0.2", 0.88 * GIB, 4.1 * GIB, 12.0, 256, 4096),
        EngineMemory("vllm-0.6", "vLLM 0.6", 1.79 * GIB, 1.79 * GIB, 41.0, 256, 8192),
        EngineMemory("vllm-0.7", "vLLM 0.7", 0.25 * GIB, 0.0, 26.5, 256, 2048),
    )
}


def engine_usable_bytes(
    engine: EngineMemory, shown: float, fraction: float, gpus: int, fixed: float = 0.0
) -> float:
    """Bytes that an engine may use on a GPU that reports `shown` bytes [B].

    fraction · shown; SGLang applies its fraction to the free memory before loading weights,
    TensorRT-LLM to what is free beside the `fixed` bytes of weights and temporary tensors.

    >>> engine_usable_bytes(ENGINES["vllm-0.6"], 100e9, 0.9, 1)
    90000000000.0
    >>> engine_usable_bytes(ENGINES["trtllm"], 100e9, 0.9, 1, 60e9)
    96000000000.0
    """
    if engine.free:
        return shown - (1 - fraction) * max(0.0, shown - fixed)
    if engine.static:
        outside = engine.outside_of(gpus)
        return fraction * (shown - outside) + outside
    return fraction * shown


def profiled_mlp_width(model: Architecture) -> int:
    """Width of the MLP that the engine uses in its own measurement."""
    if not model.is_routed:
        return model.mlp_width
    return int(model.experts_per_token * model.expert_width)


def peak_bytes(
    model: Architecture,
    engine: EngineMemory,
    gpus: int,
    step_tokens: int | None = None,
    sequences: int | None = None,
) -> float:
    """Peak of temporary memory in the engine's own measurement on one GPU [B].

    Either a step of T tokens through one layer, T · 2 B · (3f/t + 4h), or sampling
    over the whole vocabulary. `step_tokens` replaces the engine's own T, `sequences` its
    most sequences at once.
    """
    tokens = engine.step_tokens if step_tokens is None else step_tokens
    width = profiled_mlp_width(model)
    layer = tokens * 2 * (3 * width / gpus + 4 * model.hidden)
    sampled = engine.sequences if sequences is None else sequences
    return max(layer, sampled * model.vocabulary * engine.sampler)


# Library workspaces on each GPU, in addition to tensors.
WORKSPACE = 24e6


def prefill_bytes(tokens: float, hidden: float, width: float) -> float:
    """Temporary tensors during the prefill of one unfused layer, 16 bit [B].

    T · (6f + 8h): gate, up and their product, plus residual, norm and its FP32
    copy. Checked against the memory columns of the Qwen2.5 speed benchmark.

    >>> prefill_bytes(30720, 896, 4864)
    1116733440
    """
    return tokens * (6 * width + 8 * hidden)


def prompt_bytes(model: Architecture, tokens: float) -> float:
    """Temporary tensors of `tokens` prompt tokens in the widest layer of a model [B]."""
    width = model.mlp_width
    if model.is_routed:
        width = int(model.experts_per_token * model.expert_width) + model.shared_width
    return prefill_bytes(tokens, model.hidden, width)


def loading_bytes(model: Architecture, weights: str) -> float:
    """Bytes of the whole model while it is loaded, before the first request [B].

    AWQ files of tied models contain a copy of the embedding table.
    """
    stored = weight_table(model, weights).total
    if weights.startswith("awq") and model.tied:
        return stored + element_bytes(model.embedding_parameters, 16)
    return stored
