"""KV-cache bytes per token and sequence, in paged blocks.

The token mixer of a layer says what the layer stores per token (`models/layers.py`,
`models/sequence_mixers.py`). This module adds up layers, windows and GPUs.
"""

import functools
import math

from app.estimator.models.architecture import Architecture
from app.estimator.models.layers import TokenMixer


def textbook_bytes_per_token(
    layers: int, kv_heads: int, head_dim: int, element_bytes: float
) -> float:
    """Cache of one token of one sequence: a key and a value in every layer.

    The textbook case, where all layers are equal: a named formula of the accuracy
    report. Calculators add up the layers of a model (`elements_per_token`).
    2 · L · g · d · W. From Shazeer (2019); grouped heads: Ainslie et al. (2023).

    >>> textbook_bytes_per_token(80, 8, 128, 2)
    327680
    """
    return 2 * layers * kv_heads * head_dim * element_bytes


def round_up_to_blocks(tokens: float, block: int) -> int:
    """Round tokens up to whole blocks of a paged cache.

    >>> round_up_to_blocks(100, 16)
    112
    """
    return math.ceil(tokens / block) * block


# Engines store the keys of an indexer in FP8 with one FP32 scale per 128, whatever the
# format of the cache. Source: vLLM, deepseek_v2.py (DeepseekV32IndexerCache).
_INDEX_BYTES = 1 + 4 / 128


def cached_elements(mixer: TokenMixer, width: float) -> float:
    """Elements of `width` bytes that a token uses in one layer, including the indexer."""
    return mixer.cache + mixer.index * _INDEX_BYTES / width


def elements_per_token(model: Architecture, tensor_parallel: int = 1, width: float = 2.0) -> float:
    """Cache elements of one token on one GPU, all layers, without windows."""
    return sum(
        number
        * cached_elements(layer.mixer, width)
        * cache_share(layer.mixer.kv_heads, tensor_parallel)
        for layer, number in model.runs
        if layer.mixer.cache
    )


def cache_share(kv_heads: int, tensor_parallel: int) -> float:
    """Share of a layer's cache that one of the GPUs stores."""
    return max(1 / tensor_parallel, 1 / max(1, kv_heads))


@functools.lru_cache(maxsize=8192)
def elements_per_sequence(
    model: Architecture, context: float, tensor_parallel: int = 1, width: float = 2.0
) -> float:
    """Cache elements of one sequence on one GPU; sliding layers store only their window."""
    total = 0.0
    for layer, number in model.runs:
        mixer = layer.mixer
        if mixer.cache:
            cached = min(context, mixer.window) if mixer.window else context
            each = cached_elements(mixer, width) * cache_share(mixer.kv_heads, tensor_parallel)
            total += number * each * cached
        total += number * mixer.near * min(context, mixer.near_tokens)
    return total


def longest_context(
    model: Architecture, elements: float, tensor_parallel: int, block: int = 1, width: float = 2.0
) -> int | None:
    """The longest context whose cache has at most `elements` on one GPU.

    None if no layer's cache grows with the context. 0 if not even one block fits.
    """
    ends = ((a.mixer.window, a.mixer.near_tokens) for a, _ in model.runs)
    steps = sorted({end for pair in ends for end in pair if end})
    start = 0.0
    for end in (*steps, math.inf):
        used = elements_per_sequence(model, start, tensor_parallel, width)
        rate = _elements_per_further_token(model, start, tensor_parallel, width)
        if rate == 0:
            return None
        reach = start + (elements - used) / rate
        if reach < end:
            return max(0, int(reach // block) * block)
        start = float(end)
    return None


def _elements_per_further_token(
    model: Architecture, context: float, tensor_parallel: int, width: float
) -> float:
    """Elements per further token once `context` tokens are cached."""
    total = 0.0
    for layer, number in model.runs:
        mixer = layer.mixer
        if mixer.cache and (mixer.window is None or mixer.window > context):
            part = cache_share(mixer.kv_heads, tensor_parallel)
            total += number * cached_elements(mixer, width) * part
        if mixer.near_tokens > context:
            total += number * mixer.near
    return total


def recurrent_bytes(model: Architecture, state: float = 4.0) -> float:
    """Bytes that recurrent layers store for one sequence, independent of its length [B].

    `state` bytes for each element of the state; convolutions are in 16 bit.
    """
    return state * model.state_elements + 2 * model.convolution_elements
