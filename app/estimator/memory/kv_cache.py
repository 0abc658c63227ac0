"""The key-value cache: bytes per token and sequence, blocks, and what fits.

What one layer keeps of a token is said by its mixer (`estimator/models/layers.py`,
`latent.py`); here layers, windows and GPUs are added up.
"""

import functools
import math

from app.estimator.models.architecture import Architecture


def bytes_per_token(
    layers: int, kv_heads: int, head_dim: int, element_bytes: float
) -> float:
    """Cache of one token of one sequence: a key and a value in every layer.

    The textbook case, where all layers are alike: a named formula of the accuracy
    report. Calculators add up the layers of a model (`elements_per_token`).
    2 · L · g · d · W. Source: Shazeer (2019); grouped heads: Ainslie et al. (2023).

    >>> bytes_per_token(80, 8, 128, 2)
    327680
    """
    return 2 * layers * kv_heads * head_dim * element_bytes


def whole_blocks(tokens: float, block: int) -> int:
    """Round tokens up to whole blocks of a paged cache.

    >>> whole_blocks(100, 16)
    112
    """
    return math.ceil(tokens / block) * block


@functools.lru_cache(maxsize=8192)
def elements_per_token(model: Architecture, tensor_parallel: int = 1) -> float:
    """Cache elements of one token on one GPU, all layers, no window."""
    return sum(
        number * layer.mixer.cache * share(layer.mixer.kv_heads, tensor_parallel)
        for layer, number in model.runs
        if layer.mixer.cache
    )


def share(kv_heads: int, tensor_parallel: int) -> float:
    """The part of a layer's cache that one of the GPUs keeps."""
    return max(1 / tensor_parallel, 1 / max(1, kv_heads))


@functools.lru_cache(maxsize=8192)
def elements_per_sequence(
    model: Architecture, context: float, tensor_parallel: int = 1
) -> float:
    """Cache elements of one sequence on one GPU; sliding layers keep their window."""
    total = 0.0
    for layer, number in model.runs:
        mixer = layer.mixer
        if mixer.cache:
            kept = min(context, mixer.window) if mixer.window else context
            total += (
                number * mixer.cache * kept * share(mixer.kv_heads, tensor_parallel)
            )
    return total


def longest_context(
    model: Architecture, elements: float, tensor_parallel: int, block: int = 1
) -> int | None:
    """The longest context whose cache has at most `elements` on one GPU.

    None when no layer's cache grows with the context. 0 when not one block fits.
    """
    steps = sorted({a.mixer.window for a, _ in model.runs if a.mixer.window})
    start = 0.0
    for end in (*steps, math.inf):
        used = elements_per_sequence(model, start, tensor_parallel)
        rate = _growth(model, start, tensor_parallel)
        if rate == 0:
            return None
        reach = start + (elements - used) / rate
        if reach < end:
            return max(0, int(reach // block) * block)
        start = float(end)
    return None


def _growth(model: Architecture, context: float, tensor_parallel: int) -> float:
    """Elements per further token once `context` tokens are kept."""
    return sum(
        number * layer.mixer.cache * share(layer.mixer.kv_heads, tensor_parallel)
        for layer, number in model.runs
        if layer.mixer.cache
        and (layer.mixer.window is None or layer.mixer.window > context)
    )


@functools.lru_cache(maxsize=2048)
def recurrent_bytes(model: Architecture, state: float = 4.0) -> float:
    """What recurrent layers keep of one sequence, whatever its length [B].

    `state` bytes for each element of the state; convolutions are in 16 bit.
    """
    return state * model.state_elements + 2 * model.convolution_elements
