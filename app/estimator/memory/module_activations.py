"""Activations that unfused modules keep: Hugging Face Transformers in PyTorch.

Every operation saves its own inputs, in FP32 where it computes in FP32. The terms
were read off the tensors that autograd saves for one layer (Transformers 5.23,
PyTorch 2.13, 16-bit weights) and are exact for the families named below.
"""

from app.estimator.models.architecture import Architecture
from app.estimator.models.layers import Layer, Mlp, TokenMixer

# Families whose norm keeps a second FP32 copy and adds norms after each half.
_GEMMA = frozenset({"gemma", "gemma2", "gemma3", "gemma3_text"})
# Families whose GELU is written out in single operations.
_WRITTEN_GELU = frozenset({"gpt2", "gptj", "codegen", "gpt_neo", "gpt_bigcode"})
_RELU = frozenset({"opt"})


def layer_bytes(
    model: Architecture,
    layer: Layer,
    sequence: float,
    *,
    eager: bool = False,
    dropout: bool = False,
) -> float:
    """Bytes per token that one layer keeps for its backward pass.

    `eager` materializes the attention scores, `dropout` adds its masks.
    """
    kept = _norms(model) + _attention(model, layer.mixer, sequence, eager, dropout)
    kept += _mlp(model, layer.mlp)
    masks = 2 if dropout and model.norm_terms == 2 else 0
    return kept + masks * 2 * model.hidden


def _norms(model: Architecture) -> float:
    """Inputs, statistics and outputs of the norms of a layer.

    RMSNorm keeps an FP32 copy, the normalized 16-bit value and its output, 8h; the
    built-in LayerNorm keeps input and output, 4h.
    """
    hidden = model.hidden
    if model.family in _GEMMA:
        after = 0 if model.family == "gemma" else 2
        return 2 * (10 * hidden + 4) + after * (8 * hidden + 4)
    if model.norm_terms == 2:
        return 2 * (4 * hidden + 4)
    return 2 * (8 * hidden + 4)


def _attention(
    model: Architecture, mixer: TokenMixer, sequence: float, eager: bool, dropout: bool
) -> float:
    queries = mixer.heads * mixer.head_dim
    out = 2.0 * mixer.heads * mixer.value_dim
    if not eager:
        kept = 2 * queries + 2 * mixer.cache + out + 4 * mixer.heads
        return kept + _query_norm(model, mixer)
    plain = model.norm_terms == 2
    scores = mixer.heads * sequence
    # Scores in FP32 and their 16-bit copy; older families stay in 16 bit.
    kept = 2 * scores if plain else 6 * scores
    kept += 4 * scores if dropout else 0
    if plain:
        return kept + 2 * queries + 2 * mixer.cache + out
    # Keys and values are repeated for every query head.
    return kept + 6 * queries + out + _query_norm(model, mixer)


def _query_norm(model: Architecture, mixer: TokenMixer) -> float:
    """Norms of queries and keys: an FP32 copy and the normalized value."""
    if model.family not in {"qwen3", "qwen3_moe", "gemma3", "gemma3_text"}:
        return 0.0
    width = (mixer.heads + mixer.kv_heads) * mixer.head_dim
    each = 8 if model.family in _GEMMA else 6
    return each * width + 4 * (mixer.heads + mixer.kv_heads)


def _mlp(model: Architecture, mlp: Mlp) -> float:
    """Products, activation and its gate: 8f gated; 4f, 10f or 2f without a gate."""
    if mlp.is_routed:
        each = 4 * model.hidden + 6 * mlp.width
        return mlp.experts_per_token * each + 8 * mlp.shared_width + 4 * mlp.experts
    if mlp.gated:
        return 8.0 * mlp.width
    if model.family in _WRITTEN_GELU:
        return 10.0 * mlp.width
    return (2.0 if model.family in _RELU else 4.0) * mlp.width
