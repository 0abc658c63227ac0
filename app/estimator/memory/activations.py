"""Activations saved for the backward pass.

Every operation saves its own inputs, in FP32 where it computes in FP32. The terms
were read off the tensors that autograd saves for one layer (Transformers 5.23,
PyTorch 2.13, 16-bit weights) and are exact for the families named below.
"""

import dataclasses
import functools
from typing import NamedTuple

from app.estimator.memory.model_states import BytesPerTokenByParallelism
from app.estimator.memory.parallel_layout import ParallelLayout
from app.estimator.models.architecture import Architecture
from app.estimator.models.layers import Layer, Mlp, TokenMixer


def gpt_layer_bytes(
    sequence: float, micro_batch: float, hidden: float, heads: float, tensor: int, technique: str
) -> float:
    """Activations of one GPT layer without flash attention, 16 bit, with dropout.

    s·b·h·(34 + 5·a·s/h) and its divided and recomputed forms.
    From Korthikanti (2022), table 2.

    >>> gpt_layer_bytes(2048, 1, 12288, 96, 1, "none")
    2868903936.0
    """
    whole, divided, scores = 10.0, 24.0, 5 * heads * sequence / hidden
    techniques = technique.split("+")
    if "full" in techniques:
        factor = 2.0 / (tensor if "sp" in techniques else 1)
    else:
        scores = 0.0 if "selective" in techniques else scores
        whole = whole / tensor if "sp" in techniques else whole
        factor = whole + (divided + scores) / tensor
    return sequence * micro_batch * hidden * factor


@dataclasses.dataclass(frozen=True, slots=True)
class LayerSavedBytesPerToken:
    """Bytes per token that one layer saves.

    `sequence_parallel_part` is divided only by sequence parallelism, all but `layer_input` by tensor
    parallelism. `layer_input` is all that full recomputation saves; `saved_if_products_recomputed`
    is saved if every second product is recomputed.
    """

    sequence_parallel_part: float
    tensor_parallel_part: float
    scores_per_key: float
    softmax_statistics: float
    layer_input: float
    saved_if_products_recomputed: float = 0.0
    mlp_backward_bytes: float = 0.0

    def bytes_per_token(self, layout: ParallelLayout, sequence: int, recompute: str) -> float:
        """Return the bytes per token of this GPU's share of the sequence."""
        split = layout.tensor if layout.sequence_parallel else 1
        if recompute == "full":
            return self.layer_input / split
        if recompute == "operators":
            return 2 * self.layer_input / split + self.saved_if_products_recomputed / layout.tensor
        scores = 0.0 if recompute == "selective" else self.scores_per_key * sequence
        statistics = 0.0 if recompute == "selective" else self.softmax_statistics
        saved = self.sequence_parallel_part / split
        return saved + (self.tensor_parallel_part + scores + statistics) / layout.tensor


@functools.lru_cache(maxsize=8192)
def compute_fused_saved_bytes_per_token(
    layer: Layer, hidden: int, *, flash_attention: bool
) -> LayerSavedBytesPerToken:
    """Return what a layer saves per token in 16 bit, without dropout.

    Inputs of both norms and of both first products (8h), queries, keys, values and
    the output of attention, the MLP's three (gated) or two widths. Flash attention
    keeps one FP32 statistic per head instead of the scores. Derived as in
    Korthikanti (2022), section 4, for today's blocks.
    """
    mixers = [
        _mixer_saved_bytes_per_token(mixer, flash_attention=flash_attention)
        for mixer in layer.mixers
    ]
    mlp = _mlp_saved_bytes_per_token(layer.mlp, hidden)
    halves = (layer.mixer.kind != "none") + bool(layer.mlp.width)
    return LayerSavedBytesPerToken(
        sequence_parallel_part=4.0 * hidden * halves + mlp.sequence_parallel_part,
        tensor_parallel_part=sum(m.tensor_parallel_part for m in mixers) + mlp.tensor_parallel_part,
        scores_per_key=sum(mixer.scores_per_key for mixer in mixers),
        softmax_statistics=sum(mixer.softmax_statistics for mixer in mixers),
        layer_input=2.0 * hidden,
        saved_if_products_recomputed=_saved_bytes_with_recomputed_products(layer),
        mlp_backward_bytes=4.0 * _active_mlp_width(layer.mlp),
    )


def _saved_bytes_with_recomputed_products(layer: Layer) -> float:
    """Queries, values, the attention output and the MLP's first product."""
    saved = 2.0 * _active_mlp_width(layer.mlp)
    for mixer in layer.mixers:
        width = mixer.heads * mixer.head_dim + (mixer.kv_heads + mixer.heads) * mixer.value_dim
        saved += 2.0 * width + 4.0 * mixer.heads
    return saved


def _active_mlp_width(mlp: Mlp) -> float:
    """Width of the MLP that a token passes through, all chosen experts together."""
    if not mlp.is_routed:
        return mlp.width
    return mlp.experts_per_token * mlp.width + mlp.shared_width


def mlp_backward_bytes_per_token(mlp: Mlp) -> float:
    """Gradients in the backward pass of the MLP; modules work on one expert at a time."""
    if not mlp.is_routed:
        return 4.0 * mlp.width
    return 4.0 * (mlp.width * mlp.experts_per_token / mlp.experts + mlp.shared_width)


class MixerSavedBytesPerToken(NamedTuple):
    tensor_parallel_part: float
    scores_per_key: float = 0.0
    softmax_statistics: float = 0.0


def _mixer_saved_bytes_per_token(
    mixer: TokenMixer, *, flash_attention: bool
) -> MixerSavedBytesPerToken:
    if mixer.kind == "none":
        return MixerSavedBytesPerToken(0.0)
    if not mixer.heads:
        # Projections before and after the convolution, and the gated output.
        projected_width = sum(
            m.output_width for m in mixer.matrices if m.name in {"in", "qkv", "gate"}
        )
        output_width = sum(m.input_width for m in mixer.matrices if m.name == "out")
        return MixerSavedBytesPerToken(2.0 * (2 * projected_width + 2 * output_width))
    value_width = mixer.heads * mixer.value_dim
    query_width = mixer.heads * mixer.head_dim
    if mixer.kind == "latent":
        latents = 2.0 * (mixer.query_rank + mixer.cache_elements_per_token) * 2
        expanded = mixer.heads * (mixer.head_dim + mixer.value_dim)
        saved = 2.0 * (query_width + expanded + value_width) + latents
    else:
        saved = 2.0 * (query_width + mixer.cache_elements_per_token + value_width)
    if flash_attention:
        return MixerSavedBytesPerToken(saved, softmax_statistics=4.0 * mixer.heads)
    return MixerSavedBytesPerToken(saved, scores_per_key=4.0 * mixer.heads)


def _mlp_saved_bytes_per_token(mlp: Mlp, hidden: int) -> BytesPerTokenByParallelism:
    """Return what the MLP saves.

    A routed layer saves, for every chosen expert, the copy of the token that was
    sent there and the result that comes back.
    """
    matrix_count = 3 if mlp.gated else 2
    if not mlp.is_routed:
        return BytesPerTokenByParallelism(
            sequence_parallel_part=0.0, tensor_parallel_part=2.0 * matrix_count * mlp.width
        )
    per_token = mlp.experts_per_token
    copies = per_token * 2 * hidden * 2
    router = 4.0 * mlp.experts
    routed = 2.0 * matrix_count * mlp.width * per_token
    divided = routed + 2.0 * matrix_count * mlp.shared_width
    return BytesPerTokenByParallelism(
        sequence_parallel_part=router + copies, tensor_parallel_part=divided
    )


def saved_logits_bytes(
    tokens: float, vocabulary: float, tensor: int, bytes_per_logit: float
) -> float:
    """Logits and what the loss saves of them: s·b·V·B / t.

    4 bytes is what HF models save (FP32 log-softmax), 10 at the peak of an unfused
    loss (16-bit logits, FP32 copy, FP32 log-softmax).

    >>> saved_logits_bytes(512, 128256, 1, 4)
    262668288.0
    """
    return tokens * vocabulary * bytes_per_logit / tensor


# Families whose norm saves a second FP32 copy, and that add norms after each half.
_GEMMA_FAMILIES = frozenset({"gemma", "gemma2", "gemma3", "gemma3_text"})
# Families whose GELU is built from single operations.
_WRITTEN_GELU = frozenset({"gpt2", "gptj", "codegen", "gpt_neo", "gpt_bigcode"})
_RELU_FAMILIES = frozenset({"opt"})


def unfused_layer_saved_bytes_per_token(
    model: Architecture,
    layer: Layer,
    sequence: float,
    *,
    saves_attention_scores: bool = False,
    dropout: bool = False,
) -> float:
    """Bytes per token that one layer saves for its backward pass.

    `saves_attention_scores` materializes the attention scores, `dropout` adds its masks.
    """
    saved = _unfused_norm_saved_bytes_per_token(model)
    saved += _unfused_attention_saved_bytes_per_token(
        model, layer.mixer, sequence, saves_attention_scores, dropout
    )
    saved += _unfused_mlp_saved_bytes_per_token(model, layer.mlp)
    masks = 2 if dropout and model.norm_terms == 2 else 0
    return saved + masks * 2 * model.hidden


def _unfused_norm_saved_bytes_per_token(model: Architecture) -> float:
    """Inputs, statistics and outputs of the norms of a layer.

    RMSNorm saves an FP32 copy, the normalized 16-bit value and its output, 8h; the
    built-in LayerNorm saves input and output, 4h.
    """
    hidden = model.hidden
    if model.family in _GEMMA_FAMILIES:
        post_norms = 0 if model.family == "gemma" else 2
        return 2 * (10 * hidden + 4) + post_norms * (8 * hidden + 4)
    if model.norm_terms == 2:
        return 2 * (4 * hidden + 4)
    return 2 * (8 * hidden + 4)


def _unfused_attention_saved_bytes_per_token(
    model: Architecture,
    mixer: TokenMixer,
    sequence: float,
    saves_attention_scores: bool,
    dropout: bool,
) -> float:
    query_width = mixer.heads * mixer.head_dim
    output_bytes = 2.0 * mixer.heads * mixer.value_dim
    if not saves_attention_scores:
        saved = (
            2 * query_width + 2 * mixer.cache_elements_per_token + output_bytes + 4 * mixer.heads
        )
        return saved + _qk_norm_saved_bytes_per_token(model, mixer)
    scores = mixer.heads * sequence
    dropout_bytes = 4 * scores if dropout else 0
    if model.norm_terms == 2:  # Older families stay in 16 bit.
        return (
            2 * scores
            + dropout_bytes
            + 2 * query_width
            + 2 * mixer.cache_elements_per_token
            + output_bytes
        )
    # Scores in FP32 and a 16-bit copy; keys and values are repeated for every query head.
    saved = 6 * scores + dropout_bytes + 6 * query_width + output_bytes
    return saved + _qk_norm_saved_bytes_per_token(model, mixer)


def _qk_norm_saved_bytes_per_token(model: Architecture, mixer: TokenMixer) -> float:
    """Norms of queries and keys: an FP32 copy and the normalized value."""
    if model.family not in {"qwen3", "qwen3_moe", "gemma3", "gemma3_text"}:
        return 0.0
    width = (mixer.heads + mixer.kv_heads) * mixer.head_dim
    bytes_per_element = 8 if model.family in _GEMMA_FAMILIES else 6
    return bytes_per_element * width + 4 * (mixer.heads + mixer.kv_heads)


def _unfused_mlp_saved_bytes_per_token(model: Architecture, mlp: Mlp) -> float:
    """Products, activation and its gate: 8f gated; 4f, 10f or 2f without a gate."""
    if mlp.is_routed:
        bytes_per_expert = 4 * model.hidden + 6 * mlp.width
        return mlp.experts_per_token * bytes_per_expert + 8 * mlp.shared_width + 4 * mlp.experts
    if mlp.gated:
        return 8.0 * mlp.width
    if model.family in _WRITTEN_GELU:
        return 10.0 * mlp.width
    return (2.0 if model.family in _RELU_FAMILIES else 4.0) * mlp.width
