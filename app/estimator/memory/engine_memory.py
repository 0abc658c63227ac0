"""Memory of inference besides weights: KV cache, and what engines use.

The token mixer of a layer says what the layer stores per token (`models/layers.py`,
`models/sequence_mixers.py`). This module adds up layers, windows and GPUs.
"""

import dataclasses
import math
from typing import NamedTuple

from app.estimator.models.architecture import Architecture
from app.estimator.models.layers import TokenMixer
from app.estimator.models.weight_formats import element_bytes, weight_bytes_by_split
from app.estimator.result import Bounds
from app.estimator.units import format_number


def textbook_kv_cache_bytes_per_token(
    layers: int, kv_heads: int, head_dim: int, element_bytes: float
) -> float:
    """Cache of one token of one sequence: a key and a value in every layer.

    The textbook case, where all layers are equal: a named formula of the accuracy
    report. Calculators add up the layers of a model (`cache_elements_per_token_ignoring_windows`).
    2 · L · g · d · W. From Shazeer (2019); grouped heads: Ainslie et al. (2023).

    >>> textbook_kv_cache_bytes_per_token(80, 8, 128, 2)
    327680
    """
    return 2 * layers * kv_heads * head_dim * element_bytes


def round_up_to_blocks(tokens: float, block_tokens: int) -> int:
    """Round tokens up to whole blocks of a paged cache.

    >>> round_up_to_blocks(100, 16)
    112
    """
    return math.ceil(tokens / block_tokens) * block_tokens


def cache_elements_per_token_of_layer(
    mixer: TokenMixer, bytes_per_element: float, tensor_parallel: int = 1
) -> float:
    """Elements that a token uses in one layer on one GPU, including the indexer.

    The indexer's keys have one head and their own format: each GPU stores all of them.
    """
    gpu_share = cache_share_per_gpu(mixer.kv_heads, tensor_parallel)
    return (
        mixer.cache_elements_per_token * gpu_share
        + mixer.indexer_cache_bytes_per_token / bytes_per_element
    )


def cache_elements_per_token_ignoring_windows(
    model: Architecture, tensor_parallel: int = 1, bytes_per_element: float = 2.0
) -> float:
    """Cache elements of one token on one GPU, all layers, without windows."""
    return sum(
        number * cache_elements_per_token_of_layer(layer.mixer, bytes_per_element, tensor_parallel)
        for layer, number in model.layer_counts
        if layer.mixer.cache_elements_per_token
    )


def cache_share_per_gpu(kv_heads: int, tensor_parallel: int) -> float:
    """Share of a layer's cache that one of the GPUs stores."""
    return max(1 / tensor_parallel, 1 / max(1, kv_heads))


def kv_cache_elements_per_sequence(
    model: Architecture, context: float, tensor_parallel: int = 1, bytes_per_element: float = 2.0
) -> float:
    """Cache elements of one sequence on one GPU; sliding layers store only their window."""
    total = 0.0
    for layer, number in model.layer_counts:
        mixer = layer.mixer
        if mixer.cache_elements_per_token:
            cached_tokens = min(context, mixer.window_tokens) if mixer.window_tokens else context
            elements_per_token = cache_elements_per_token_of_layer(
                mixer, bytes_per_element, tensor_parallel
            )
            total += number * elements_per_token * cached_tokens
        total += (
            number * mixer.extra_cache_elements_per_near_token * min(context, mixer.near_tokens)
        )
    return total


def longest_context(
    model: Architecture,
    max_elements: float,
    tensor_parallel: int,
    block_tokens: int = 1,
    bytes_per_element: float = 2.0,
) -> int | None:
    """The longest context whose cache has at most `max_elements` on one GPU.

    None if no layer's cache grows with the context. 0 if not even one block fits.
    """
    window_pairs = ((a.mixer.window_tokens, a.mixer.near_tokens) for a, _ in model.layer_counts)
    window_ends = sorted({end for pair in window_pairs for end in pair if end})
    start = 0.0
    for end in (*window_ends, math.inf):
        used_elements = kv_cache_elements_per_sequence(
            model, start, tensor_parallel, bytes_per_element
        )
        elements_per_token = _elements_per_further_token(
            model, start, tensor_parallel, bytes_per_element
        )
        if elements_per_token == 0:
            return None
        longest = start + (max_elements - used_elements) / elements_per_token
        if longest < end:
            return max(0, int(longest // block_tokens) * block_tokens)
        start = float(end)
    return None


def _elements_per_further_token(
    model: Architecture, context: float, tensor_parallel: int, bytes_per_element: float
) -> float:
    """Elements per further token once `context` tokens are cached."""
    total = 0.0
    for layer, number in model.layer_counts:
        mixer = layer.mixer
        if mixer.cache_elements_per_token and (
            mixer.window_tokens is None or mixer.window_tokens > context
        ):
            total += number * cache_elements_per_token_of_layer(
                mixer, bytes_per_element, tensor_parallel
            )
        if mixer.near_tokens > context:
            total += number * mixer.extra_cache_elements_per_near_token
    return total


def recurrent_state_bytes_per_sequence(
    model: Architecture, bytes_per_element: float = 4.0
) -> float:
    """Bytes that recurrent layers store for one sequence, independent of its length [B].

    `bytes_per_element` bytes for each element of the state; convolutions are in 16 bit.
    """
    return bytes_per_element * model.state_elements + 2 * model.convolution_elements


# vLLM aligns the tokens of a block to this. Of a convolution over four tokens, as all models
# with a recurrent state have, it stores the last three (mamba_utils.py).
_BLOCK_ALIGNMENT, _CONVOLUTION_SHARE = 16, 3 / 4
# With prefix caching, vLLM reserves two states of each group for a sequence at startup (MambaSpec
# in v1/kv_cache_interface.py). A running sequence frees the earlier one in the step after it
# began a block, and keeps one (MambaManager in v1/core/single_type_kv_cache_manager.py).
_RESERVED_STATES, _RUNNING_STATES = 2, 1


@dataclasses.dataclass(frozen=True, slots=True)
class HybridCacheBlocks:
    """Blocks in which vLLM caches attention and recurrent layers of one model together.

    A block has `tokens_per_block` of the layers of one attention group, or a state of the layers of
    one recurrent group, in `block_bytes` bytes on one GPU. Each of `draft_tokens` has a state of its
    own until the engine knows which of them it keeps.
    """

    tokens_per_block: int
    block_bytes: float
    attention_groups: int
    recurrent_groups: int
    draft_tokens: int = 0

    def count_blocks_of_running_sequence(self, context: float) -> int:
        return self._count_blocks(context, _RUNNING_STATES)

    def count_startup_blocks_per_sequence(self, context: float) -> int:
        """Return the blocks that vLLM counts for one sequence at startup, and in its log."""
        return self._count_blocks(context, _RESERVED_STATES)

    def count_blocks_to_start_and_run(self, context: float, sequences: int) -> int:
        """Return the blocks with which vLLM starts and runs so many sequences at once."""
        running = sequences * self.count_blocks_of_running_sequence(context)
        return max(self.count_startup_blocks_per_sequence(context), running)

    def max_sequences(self, blocks: int, context: float) -> int:
        """Return the sequences of a context that run at once; 0 if vLLM does not start."""
        if blocks < self.count_startup_blocks_per_sequence(context):
            return 0
        return blocks // self.count_blocks_of_running_sequence(context)

    def longest_context(self, blocks: int, sequences: int) -> int:
        """Return the longest context with which so many sequences run; 0 if there is none."""
        attention_blocks = min(
            blocks - self.count_startup_blocks_per_sequence(0),
            blocks // sequences - self.count_blocks_of_running_sequence(0),
        )
        return max(0, attention_blocks // self.attention_groups * self.tokens_per_block)

    def _count_blocks(self, context: float, states: int) -> int:
        attention_blocks = self.attention_groups * math.ceil(context / self.tokens_per_block)
        return attention_blocks + (states + self.draft_tokens) * self.recurrent_groups


def build_hybrid_cache_blocks(
    model: Architecture, bytes_per_element: float, tensor_parallel: int, draft_tokens: int = 0
) -> HybridCacheBlocks | None:
    """Return the blocks of a model with one kind of attention and one of recurrent layers.

    A head that proposes `draft_tokens` has one more layer of attention.

    A block has so many tokens that they take at least as much as a state. Groups are as
    large as the rarer kind of layer, or as the other one if it is less than a quarter
    larger. None for other models. Source: vLLM, MambaSpec in v1/kv_cache_interface.py,
    v1/core/kv_cache_utils.py and HybridAttentionMambaModelConfig.

    >>> from app.estimator.models.lookup import find_model
    >>> blocks = build_hybrid_cache_blocks(find_model("qwen3.6-35b-a3b"), 1.0, 1)
    >>> blocks.attention_groups, blocks.recurrent_groups
    (1, 3)
    >>> blocks.tokens_per_block, blocks.count_startup_blocks_per_sequence(131072)
    (2096, 69)
    >>> blocks.count_blocks_of_running_sequence(131072)
    66
    """
    attention_layers = [
        counted for counted in model.layer_counts if counted.layer.mixer.cache_elements_per_token
    ]
    recurrent_layers = [counted for counted in model.layer_counts if counted.layer.state_elements]
    mixers = {layer.mixer for layer, _ in attention_layers}
    states = {
        (layer.state_elements, layer.convolution_state_elements) for layer, _ in recurrent_layers
    }
    if len(mixers) != 1 or len(states) != 1:
        return None
    mixer, (state, convolution) = mixers.pop(), states.pop()
    if (
        mixer.kind != "attention"
        or mixer.window_tokens
        or mixer.extra_cache_elements_per_near_token
        or mixer.indexer_cache_elements_per_token
    ):
        return None
    bytes_per_token = (
        cache_elements_per_token_of_layer(mixer, bytes_per_element, tensor_parallel)
        * bytes_per_element
    )
    state_bytes = (4.0 * state + 2.0 * _CONVOLUTION_SHARE * convolution) / tensor_parallel
    tokens = round_up_to_blocks(state_bytes / bytes_per_token, _BLOCK_ALIGNMENT)
    attention_layer_count = sum(n for _, n in attention_layers) + (draft_tokens > 0)
    counts = attention_layer_count, sum(n for _, n in recurrent_layers)
    group_size = max(counts) if max(counts) < 1.25 * min(counts) else min(counts)
    attention_groups, recurrent_groups = (-(-n // group_size) for n in counts)
    block_bytes = tokens * bytes_per_token * group_size
    return HybridCacheBlocks(tokens, block_bytes, attention_groups, recurrent_groups, draft_tokens)


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
