"""KV cache and recurrent states: what a sequence stores, and the blocks of hybrids.

The token mixer of a layer says what the layer stores per token (`models/layers.py`,
`models/sequence_mixers.py`). This module adds up layers, windows and GPUs.
"""

import dataclasses
import math

from app.estimator.models.architecture import Architecture
from app.estimator.models.layers import TokenMixer


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
