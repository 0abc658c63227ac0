"""Memory that inference engines use besides weights and cache, and their limits."""

import dataclasses
from typing import NamedTuple

from app.estimator.memory.kv_cache import HybridCacheBlocks
from app.estimator.models.architecture import Architecture
from app.estimator.models.weight_formats import element_bytes, weight_bytes_by_split
from app.estimator.result import Bounds
from app.estimator.units import format_number


@dataclasses.dataclass(frozen=True, slots=True)
class MaxNumSeqsRefusal:
    """The sequences with which vLLM does not start, and the most with which it does.

    `surely_accepted_sequences` are those that start by the upper end of the memory's range, too.
    `refuses_default_number`: nobody set them.
    """

    refused_sequences: int
    max_accepted_sequences: int
    surely_accepted_sequences: int
    refuses_default_number: bool

    @property
    def advised_sequences(self) -> int:
        """Return the most sequences that surely start, or may start if none surely do."""
        return self.surely_accepted_sequences or self.max_accepted_sequences

    @property
    def reason(self) -> str:
        """Return why vLLM does not start, and with how many sequences it does."""
        default = ", its default on this GPU" if self.refuses_default_number else ""
        most, advised = format_number(self.max_accepted_sequences), self.advised_sequences
        least = "" if advised == self.max_accepted_sequences else f", at least {advised}"
        return (
            f"vLLM does not start with --max-num-seqs {self.refused_sequences}{default}: each "
            f"of these sequences needs a block for its state, and the cache has {most}{least}. "
            f"Set at most {format_number(advised)}."
        )


def find_max_num_seqs_refusal(
    blocks: HybridCacheBlocks | None,
    cache_bytes: Bounds,
    typed_sequences: int | None,
    default_sequences: int,
) -> MaxNumSeqsRefusal | None:
    """Return with how many sequences vLLM does not start; None if it does with these.

    Since version 0.17 it refuses more sequences than its cache has blocks for their states (pull
    request 38270). `cache_bytes` are the least and the usual bytes of the cache. Without
    `typed_sequences`, the engine has its own number.

    >>> blocks = HybridCacheBlocks(16, 1e6, 1, 3)
    >>> find_max_num_seqs_refusal(blocks, Bounds(250e6, 300e6), None, 256)
    >>> refusal = find_max_num_seqs_refusal(blocks, Bounds(150e6, 200e6), None, 256)
    >>> refusal.max_accepted_sequences, refusal.advised_sequences
    (200, 150)
    """
    if blocks is None:
        return None
    sure, most = (int(max(0.0, size) // blocks.block_bytes) for size in cache_bytes)
    asked = typed_sequences or default_sequences
    return MaxNumSeqsRefusal(asked, most, sure, not typed_sequences) if asked > most else None


GIB = 2.0**30
_LARGE_GPU_BYTES = 70 * GIB


class ProfiledBatch(NamedTuple):
    """The sequences and tokens with which an engine measures its peak."""

    sequences: int
    tokens: int


@dataclasses.dataclass(frozen=True, slots=True)
class EngineMemory:
    """Memory that an engine uses in addition to weights and cache.

    `outside_framework_bytes_on_first_gpu` are bytes on the first GPU; those per further one count up to
    `max_gpus_in_startup_logs`, the most GPUs in the start-up logs. `profiled_sequences` are sampled when the
    engine measures its peak, over the whole vocabulary. What is outside counts against the
    fraction of the GPU that may be used. A static fraction limits weights and cache together
    instead; one of free memory is of what weights and temporary tensors leave; with
    `has_no_fraction` there is none. `profiled_batch_on_small_gpus` counts on GPUs of less than 70 GiB and on
    the A100. `caches_hybrids_in_blocks`: as in `HybridCacheBlocks`. `hybrid_graph_bytes_per_token` is
    what a version may count for CUDA graphs for each token of a step, beyond what they take.
    """

    id: str
    label: str
    outside_framework_bytes_on_first_gpu: float
    outside_framework_bytes_per_further_gpu: float
    sampler_bytes_per_logit: float
    profiled_sequences: int
    step_tokens: int
    has_static_fraction: bool = False
    has_free_memory_fraction: bool = False
    has_no_fraction: bool = False
    profiled_batch_on_small_gpus: ProfiledBatch | None = None
    max_gpus_in_startup_logs: int = 4
    caches_hybrids_in_blocks: bool = False
    refuses_sequences_beyond_blocks: bool = False
    hybrid_graph_bytes_per_token: float = 0.0

    def with_defaults_for_gpu(self, gpu_name: str, gpu_memory: float) -> "EngineMemory":
        """Return the engine with its defaults on a GPU that reports `gpu_memory` bytes."""
        is_small = gpu_memory < _LARGE_GPU_BYTES or "a100" in gpu_name.lower()
        if self.profiled_batch_on_small_gpus is None or not is_small:
            return self
        sequences, tokens = self.profiled_batch_on_small_gpus
        return dataclasses.replace(self, profiled_sequences=sequences, step_tokens=tokens)

    def bytes_outside_framework(self, gpus: int) -> float:
        """Bytes outside of the framework on one of `gpus` GPUs [B].

        They do not grow further: a worker of eight reports less than one of four.

        >>> engine = ENGINES[DEFAULT_ENGINE]
        >>> engine.bytes_outside_framework(8) == engine.bytes_outside_framework(4)
        True
        """
        further_gpus = min(gpus, self.max_gpus_in_startup_logs) - 1
        return (
            self.outside_framework_bytes_on_first_gpu
            + self.outside_framework_bytes_per_further_gpu * further_gpus
        )


DEFAULT_ENGINE = "vllm-0.17"
"""The engine whose memory counts unless another is chosen, in every calculator."""

# Constants from start-up logs: vLLM pull request 10511 (0.6.5), 2031 (0.2.x), issue
# 13061 (0.7) and 21348 (0.9 and SGLang). Logs of 0.10 and 0.11 agree with those of 0.9:
# issues 23278 and 27508 within 2%. Its defaults on smaller GPUs are those of its server
# (get_batch_defaults in vllm/engine/arg_utils.py), and agree with logs of RTX 5090: issue
# 52872, and noonghunna/club-3090, issue 1087. A worker of eight A100 has 2.1 GiB outside of
# PyTorch and one of sixteen RTX 3090 0.2 GiB (vLLM 0.7 and 0.8; pull request 14447), so that
# the logs of two and four GPUs are not extended to more. Since vLLM 0.17 the sampler does not sort
# (pull request 33538), nor does FlashInfer's, which newer versions take on NVIDIA GPUs of compute
# capability 8.0 to 12.1 (40376): of each logit there are 2 bytes in 16 bit, and 4 each in FP32,
# masked, and as a probability. A log of 0.26 with Gemma 4 31B and 1,024 sequences has a peak of
# 15.6 bytes per logit. Outside of PyTorch are 0.3 GiB; the rest of its constant is the estimate
# for CUDA graphs, 0.4 to 1 GiB, counted since 0.20 (30515): logs of 0.20 (Llama 3.3 70B), 0.24
# (Qwen2.5 7B), 0.26 and 0.31 (Llama 3.1 8B), and of 0.27 with four GPUs (Qwen3 235B).
# Of a hybrid, 0.26 and later count the tensors of a measured step for CUDA graphs: 128 KiB for
# each of its tokens (issue 50780). TensorRT-LLM: the meaning of free_gpu_memory_fraction
# is documented; its other constants are assumed. llama.cpp: its compute buffer has the
# logits of a batch of 512 in FP32.
ENGINES: dict[str, EngineMemory] = {
    engine.id: engine
    for engine in (
        EngineMemory(
            "vllm-0.17",
            "vLLM 0.17 and later",
            outside_framework_bytes_on_first_gpu=1.4 * GIB,
            outside_framework_bytes_per_further_gpu=0.25 * GIB,
            sampler_bytes_per_logit=14.0,
            profiled_sequences=1024,
            step_tokens=8192,
            profiled_batch_on_small_gpus=ProfiledBatch(256, 2048),
            caches_hybrids_in_blocks=True,
            refuses_sequences_beyond_blocks=True,
            hybrid_graph_bytes_per_token=2.0**17,
        ),
        EngineMemory(
            "vllm-0.9",
            "vLLM 0.9 to 0.16",
            outside_framework_bytes_on_first_gpu=0.6 * GIB,
            outside_framework_bytes_per_further_gpu=0.83 * GIB,
            sampler_bytes_per_logit=35.0,
            profiled_sequences=1024,
            step_tokens=8192,
            profiled_batch_on_small_gpus=ProfiledBatch(256, 2048),
            caches_hybrids_in_blocks=True,
        ),
        EngineMemory("sglang", "SGLang", 0.9 * GIB, 0.4 * GIB, 0.0, 0, 0, has_static_fraction=True),
        EngineMemory(
            "trtllm",
            "TensorRT-LLM",
            0.9 * GIB,
            0.83 * GIB,
            6.0,
            256,
            8192,
            has_free_memory_fraction=True,
        ),
        EngineMemory(
            "llama.cpp", "llama.cpp, Ollama", 0.5 * GIB, 0.0, 4.0, 512, 512, has_no_fraction=True
        ),
        EngineMemory("vllm-0.2", "vLLM 0.2", 0.88 * GIB, 4.1 * GIB, 12.0, 256, 4096),
        EngineMemory(
            "vllm-0.6",
            "vLLM 0.6",
            1.79 * GIB,
            1.79 * GIB,
            41.0,
            256,
            8192,
            max_gpus_in_startup_logs=2,
        ),
        EngineMemory("vllm-0.7", "vLLM 0.7", 0.25 * GIB, 0.0, 26.5, 256, 2048),
    )
}

# In startup logs, memory outside of the model is between these shares of the default,
# and the engine's own measurement of a step between these shares of the formula. With
# constants from an engine's own logs, both ranges are narrower.
OVERHEAD, ACTIVE = Bounds(0.4, 2.0), Bounds(0.6, 1.6)
LOGGED_OVERHEAD, LOGGED_ACTIVE = Bounds(0.5, 1.6), Bounds(0.85, 1.2)
LOGGED_ENGINES = ("vllm-0.2", "vllm-0.6", "vllm-0.7", "vllm-0.9", "vllm-0.17", "sglang")


def compute_engine_memory_limit(
    engine: EngineMemory,
    visible_bytes: float,
    memory_fraction: float,
    gpus: int,
    bytes_without_cache: float = 0.0,
) -> float:
    """Limit on all memory of an engine, its overhead too, on a GPU of `visible_bytes` bytes [B].

    memory_fraction · visible_bytes; SGLang applies its fraction to the free memory before loading
    weights, TensorRT-LLM to what `bytes_without_cache`, the weights and temporary tensors,
    leave free; llama.cpp has no fraction.

    >>> compute_engine_memory_limit(ENGINES["vllm-0.6"], 100e9, 0.9, 1)
    90000000000.0
    >>> compute_engine_memory_limit(ENGINES["trtllm"], 100e9, 0.9, 1, 60e9)
    96000000000.0
    >>> compute_engine_memory_limit(ENGINES["llama.cpp"], 100e9, 0.9, 2)
    100000000000.0
    """
    if engine.has_no_fraction:
        return visible_bytes
    if engine.has_free_memory_fraction:
        return visible_bytes - (1 - memory_fraction) * max(0.0, visible_bytes - bytes_without_cache)
    if engine.has_static_fraction:
        outside_bytes = engine.bytes_outside_framework(gpus)
        return memory_fraction * (visible_bytes - outside_bytes) + outside_bytes
    return memory_fraction * visible_bytes


def profiled_mlp_width(model: Architecture) -> int:
    """Width of the MLP that the engine uses in its own measurement."""
    if not model.is_routed:
        return model.mlp_width
    return int(model.experts_per_token * model.expert_width)


def profiled_temporary_peak_bytes(
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
    layer_bytes = tokens * 2 * (3 * width / gpus + 4 * model.hidden)
    sampled_sequences = engine.profiled_sequences if sequences is None else sequences
    return max(layer_bytes, sampled_sequences * model.vocabulary * engine.sampler_bytes_per_logit)


# Library workspaces on each GPU, in addition to tensors.
WORKSPACE_BYTES = 24e6


def unfused_layer_prefill_bytes(tokens: float, hidden: float, mlp_width: float) -> float:
    """Temporary tensors during the prefill of one unfused layer, 16 bit [B].

    T · (6f + 8h): gate, up and their product, plus residual, norm and its FP32
    copy. Checked against the memory columns of the Qwen2.5 speed benchmark.

    >>> unfused_layer_prefill_bytes(30720, 896, 4864)
    1116733440
    """
    return tokens * (6 * mlp_width + 8 * hidden)


def widest_layer_prefill_bytes(model: Architecture, tokens: float) -> float:
    """Temporary tensors of `tokens` prompt tokens in the widest layer of a model [B]."""
    shared_width = model.shared_width if model.is_routed else 0
    width = profiled_mlp_width(model) + shared_width
    return unfused_layer_prefill_bytes(tokens, model.hidden, width)


def compute_weight_bytes_while_loading(model: Architecture, weight_format: str) -> float:
    """Bytes of the whole model while it is loaded, before the first request [B].

    AWQ files of tied models contain a copy of the embedding table.
    """
    file_bytes = weight_bytes_by_split(model, weight_format).total_bytes
    if weight_format.startswith("awq") and model.tied:
        return file_bytes + element_bytes(model.embedding_parameters, 16)
    return file_bytes
