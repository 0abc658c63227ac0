"""MLA, compressed attention, Mamba, DeltaNet, Lightning attention, short convolution."""

import dataclasses
from collections.abc import Iterator

from app.estimator.models.layers import TokenMixer, WeightMatrix


@dataclasses.dataclass(frozen=True, slots=True)
class LatentAttentionShape:
    """The shape of multi-head latent attention (DeepSeek-V2 and later)."""

    hidden: int
    heads: int
    query_rank: int
    kv_rank: int
    nope_dim: int
    rope_dim: int
    value_dim: int
    has_bias: bool = False
    indexer_heads: int = 0
    indexer_head_dim: int = 0
    indexer_selected_tokens: int | None = None
    indexer_tokens_per_key: int = 1
    reuses_selected_tokens: bool = False
    has_head_gate: bool = False
    has_output_gate: bool = False


def build_latent_attention(shape: LatentAttentionShape, window_tokens: int | None) -> TokenMixer:
    """Build latent attention: keys and values are unpacked from one small vector.

    Cache: r_kv + d_r elements per token, whatever the number of heads; it is not
    divided by tensor parallelism. From DeepSeek-V2 (2024), section 2.1.
    """
    head_width = shape.nope_dim + shape.rope_dim
    latent_width = shape.kv_rank + shape.rope_dim
    query = [WeightMatrix("q", shape.hidden, shape.heads * head_width, "attention")]
    if rank := shape.query_rank:
        query = [
            WeightMatrix("q_a", shape.hidden, rank, "attention", "whole"),
            WeightMatrix("q_b", rank, shape.heads * head_width, "attention"),
        ]
    unpacked_width = shape.heads * (shape.nope_dim + shape.value_dim)
    matrices = (
        *query,
        WeightMatrix("kv_a", shape.hidden, latent_width, "attention", "whole"),
        WeightMatrix("kv_b", shape.kv_rank, unpacked_width, "attention"),
        WeightMatrix("o", shape.heads * shape.value_dim, shape.hidden, "attention", "rows"),
        *_indexer_matrices(shape),
    )
    if shape.has_head_gate or shape.has_output_gate:
        gates = shape.heads * (shape.value_dim if shape.has_output_gate else 1)
        matrices = (*matrices, WeightMatrix("gate", shape.hidden, gates, "attention"))
    biases = (shape.query_rank + latent_width + shape.hidden) if shape.has_bias else 0
    has_own_indexer = bool(shape.indexer_heads) and not shape.reuses_selected_tokens
    pooled_keys = shape.indexer_tokens_per_key
    index_vectors = 2 if pooled_keys == 1 else 2 + pooled_keys  # A norm, and positions in a pool.
    index_width = shape.indexer_head_dim if has_own_indexer else 0
    return TokenMixer(
        kind="latent",
        matrices=matrices,
        vector_parameters=shape.query_rank + shape.kv_rank + biases + index_vectors * index_width,
        heads=shape.heads,
        kv_heads=1,
        head_dim=head_width,
        value_dim=shape.value_dim,
        window_tokens=window_tokens,
        cache_elements_per_token=latent_width,
        indexer_cache_elements_per_token=index_width // pooled_keys,
        indexer_heads=shape.indexer_heads if has_own_indexer else 0,
        indexer_head_dim=index_width,
        indexer_selected_tokens=shape.indexer_selected_tokens if shape.indexer_heads else None,
        latent_width=shape.kv_rank,
        query_rank=shape.query_rank,
        rope_dim=shape.rope_dim,
    )


def _indexer_matrices(shape: LatentAttentionShape) -> tuple[WeightMatrix, ...]:
    """Return the small heads that select the tokens for sparse attention."""
    if not shape.indexer_heads or shape.reuses_selected_tokens:
        return ()
    source = shape.query_rank or shape.hidden
    width = shape.indexer_heads * shape.indexer_head_dim
    matrices = (
        WeightMatrix("index_q", source, width, "attention", "whole"),
        WeightMatrix("index_k", shape.hidden, shape.indexer_head_dim, "attention", "whole"),
        WeightMatrix("index_weight", shape.hidden, shape.indexer_heads, "attention", "whole"),
    )
    if shape.indexer_tokens_per_key == 1:
        return matrices
    gate = WeightMatrix("index_gate", shape.hidden, shape.indexer_head_dim, "attention", "whole")
    return (*matrices, gate)


@dataclasses.dataclass(frozen=True, slots=True)
class CompressedAttentionShape:
    """The shape of attention over compressed keys (DeepSeek-V4).

    `tokens_per_entry` become one entry (0: only the window is cached); `residual_streams` are
    mixed before and after.
    """

    hidden: int
    heads: int
    head_dim: int
    query_rank: int
    output_groups: int
    output_rank: int
    window_tokens: int
    residual_streams: int
    tokens_per_entry: int
    indexer_heads: int
    indexer_head_dim: int
    indexer_selected_tokens: int | None = None


def build_compressed_attention(shape: CompressedAttentionShape) -> TokenMixer:
    """Build attention with one shared KV head per token, its past compressed.

    The cache has a window of whole entries and one entry of d per `tokens_per_entry`, plus a
    smaller one for the indexer.
    """
    compressor_copies = 2 if shape.indexer_heads else 1
    compressor_width = compressor_copies * shape.head_dim if shape.tokens_per_entry else 0
    return TokenMixer(
        kind="compressed",
        matrices=tuple(_compressed_matrices(shape, compressor_width)),
        vector_parameters=_compressed_vector_parameters(shape, compressor_width),
        heads=shape.heads,
        kv_heads=1,
        head_dim=shape.head_dim,
        value_dim=shape.head_dim,
        cache_elements_per_token=shape.head_dim // shape.tokens_per_entry
        if shape.tokens_per_entry
        else 0,
        extra_cache_elements_per_near_token=shape.head_dim,
        near_tokens=shape.window_tokens,
        compression_rate=shape.tokens_per_entry or 1,
        indexer_cache_elements_per_token=shape.indexer_head_dim // shape.tokens_per_entry
        if shape.indexer_heads
        else 0,
        indexer_heads=shape.indexer_heads,
        indexer_head_dim=shape.indexer_head_dim if shape.indexer_heads else 0,
        indexer_selected_tokens=shape.indexer_selected_tokens if shape.indexer_heads else None,
        query_rank=shape.query_rank,
        residual_streams=shape.residual_streams,
    )


def _compressed_matrices(
    shape: CompressedAttentionShape, compressor_width: int
) -> Iterator[WeightMatrix]:
    """Yield queries, one KV head, a grouped output, the compressor and the indexer."""
    hidden, query_width = shape.hidden, shape.heads * shape.head_dim
    output_width = shape.output_groups * shape.output_rank
    yield WeightMatrix("q_a", hidden, shape.query_rank, "attention", "whole")
    yield WeightMatrix("q_b", shape.query_rank, query_width, "attention")
    yield WeightMatrix("kv", hidden, shape.head_dim, "attention", "whole")
    yield WeightMatrix("o_a", query_width // shape.output_groups, output_width, "attention")
    yield WeightMatrix("o_b", output_width, hidden, "attention", "rows")
    if compressor_width:
        for name in ("compress_kv", "compress_gate"):
            yield WeightMatrix(name, hidden, compressor_width, "attention", "whole")
    if shape.indexer_heads:
        index_width = shape.indexer_heads * shape.indexer_head_dim
        yield WeightMatrix("index_kv", hidden, 2 * shape.indexer_head_dim, "attention", "whole")
        yield WeightMatrix("index_gate", hidden, 2 * shape.indexer_head_dim, "attention", "whole")
        yield WeightMatrix("index_q", shape.query_rank, index_width, "attention", "whole")
        yield WeightMatrix("index_weight", hidden, shape.indexer_heads, "attention", "whole")


def _compressed_vector_parameters(shape: CompressedAttentionShape, compressor_width: int) -> int:
    """Return sinks, norms, position biases and the mixing of residual streams."""
    vectors = shape.heads + shape.query_rank + shape.head_dim
    if compressor_width:
        vectors += shape.tokens_per_entry * compressor_width + shape.head_dim
    if shape.indexer_heads:
        vectors += shape.tokens_per_entry * 2 * shape.indexer_head_dim + shape.indexer_head_dim
    return vectors + _count_stream_mixing_parameters(shape.hidden, shape.residual_streams)


@dataclasses.dataclass(frozen=True, slots=True)
class SharedCompressionRole:
    """What a layer of DeepSeek-V4.1 has of its own, of the past that layers share.

    Layers that compress the past keep it for those after them; layers that index it select
    entries of it for those after them. `ngram_columns` are read from a table of n-grams.
    """

    compresses: bool
    indexes: bool
    ngram_columns: int = 0


# Four bits with an 8-bit scale per 32 (indexer keys and queries): transformers,
# docs/source/en/model_doc/deepseek_v41.md.
_FP4_INDEXER_BYTES = 0.5 + 1 / 32


def build_shared_compressed_attention(
    shape: CompressedAttentionShape, role: SharedCompressionRole
) -> TokenMixer:
    """Build attention to a window and to a past that an earlier layer compressed (CSA2)."""
    rate = shape.tokens_per_entry
    keeps = role.compresses and bool(rate)
    return TokenMixer(
        kind="compressed",
        matrices=tuple(_shared_compression_matrices(shape, role)),
        vector_parameters=_shared_compression_vector_parameters(shape, role),
        heads=shape.heads,
        kv_heads=1,
        head_dim=shape.head_dim,
        value_dim=shape.head_dim,
        cache_elements_per_token=shape.head_dim // rate if keeps else 0,
        extra_cache_elements_per_near_token=shape.head_dim,
        near_tokens=shape.window_tokens,
        compression_rate=rate or 1,
        indexer_cache_elements_per_token=shape.indexer_head_dim // rate if keeps else 0,
        indexer_bytes_per_cache_element=_FP4_INDEXER_BYTES,
        indexer_heads=shape.indexer_heads if role.indexes else 0,
        indexer_head_dim=shape.indexer_head_dim if role.indexes else 0,
        indexer_selected_tokens=shape.indexer_selected_tokens if rate else None,
        query_rank=shape.query_rank,
        residual_streams=shape.residual_streams,
    )


def _shared_compression_matrices(
    shape: CompressedAttentionShape, role: SharedCompressionRole
) -> Iterator[WeightMatrix]:
    alone = dataclasses.replace(shape, indexer_heads=0)
    yield from _compressed_matrices(alone, compressor_width=0)
    if role.compresses:
        names = ("compress_kv", "compress_gate") if shape.tokens_per_entry > 1 else ("compress_kv",)
        for name in names:
            yield WeightMatrix(name, shape.hidden, shape.head_dim, "attention", "whole")
    if role.indexes:
        width = shape.indexer_heads * shape.indexer_head_dim
        yield WeightMatrix("index_q", shape.query_rank, width, "attention", "whole")
        yield WeightMatrix("index_weight", shape.hidden, shape.indexer_heads, "attention", "whole")
    if role.compresses and role.indexes:
        yield WeightMatrix("index_k", shape.head_dim, shape.indexer_head_dim, "attention", "whole")
    if role.ngram_columns:
        width = (shape.residual_streams + 1) * shape.hidden
        yield WeightMatrix("ngram_kv", role.ngram_columns, width, "attention", "whole")


def _shared_compression_vector_parameters(
    shape: CompressedAttentionShape, role: SharedCompressionRole
) -> int:
    """Return sinks, norms, and what gates n-grams and mixes the residual streams."""
    vectors = shape.heads + shape.query_rank + shape.head_dim
    vectors += shape.head_dim if role.compresses else 0
    vectors += shape.indexer_head_dim if role.compresses and role.indexes else 0
    vectors += 2 * shape.residual_streams * shape.hidden if role.ngram_columns else 0
    return vectors + _count_stream_mixing_parameters(shape.hidden, shape.residual_streams)


def _count_stream_mixing_parameters(hidden: int, streams: int) -> int:
    """Return what mixes the residual streams around the two halves of a layer."""
    mixes = streams * (streams + 2)
    return 2 * (mixes * streams * hidden + mixes + 3)


def add_residual_streams(mixer: TokenMixer, hidden: int, streams: int) -> TokenMixer:
    """Return a mixer with residual streams that are mixed around it (Xie et al., 2026)."""
    vectors = mixer.vector_parameters + _count_stream_mixing_parameters(hidden, streams)
    return dataclasses.replace(mixer, vector_parameters=vectors, residual_streams=streams)


# Operations per token for each element of the state, forward. Megatron counts seven
# for a selective scan, and four products of two for the delta rule: what the key
# recalls, the correction, the update, the query's read. Without correction and
# recall (lightning attention) two products are left.
# Source: megatron-lm, training.py, num_floating_point_operations.
SCAN, DELTA, OUTER = 7.0, 8.0, 4.0


def build_mamba_mixer(
    hidden: int,
    inner_width: int,
    state_width: int,
    convolution_kernel: int,
    dt_rank: int,
    *,
    conv_bias: bool,
    projection_bias: bool,
    inner_norms: bool,
) -> TokenMixer:
    """Build a selective state space (Gu and Dao, 2023): state d_i·S, convolution d_i·k.

    Parameters: 2h·d_i + d_i·k + d_i(r+2S) + r·d_i + d_i (dt bias) + d_i·S + d_i +
    d_i·h, with d_i more for the bias of the convolution.
    """
    rank = dt_rank or -(-hidden // 16)
    matrices = (
        WeightMatrix("in", hidden, 2 * inner_width, "attention"),
        WeightMatrix("x", inner_width, rank + 2 * state_width, "attention", "rows"),
        WeightMatrix("dt", rank, inner_width, "attention"),
        WeightMatrix("out", inner_width, hidden, "attention", "rows"),
    )
    vectors = inner_width * convolution_kernel + (inner_width if conv_bias else 0)
    vectors += inner_width + inner_width * state_width + inner_width
    vectors += 2 * inner_width + hidden if projection_bias else 0
    vectors += rank + 2 * state_width if inner_norms else 0
    return TokenMixer(
        kind="mamba",
        matrices=matrices,
        vector_parameters=vectors,
        state_elements=inner_width * state_width,
        scan_flops_per_state_element=SCAN,
        convolution_state_elements=inner_width * convolution_kernel,
    )


@dataclasses.dataclass(frozen=True, slots=True)
class Mamba2Shape:
    """The shape of a Mamba-2 mixer (Dao and Gu, 2024)."""

    hidden: int
    heads: int
    head_dim: int
    state_width: int
    key_groups: int = 1
    convolution_kernel: int = 4
    conv_bias: bool = True
    projection_bias: bool = False
    has_norm: bool = True


def build_mamba2_mixer(shape: Mamba2Shape) -> TokenMixer:
    """Build a state space with scalar decay per head: state H·d_h·S per sequence.

    Parameters: h(2d_i+2GS+H) + (d_i+2GS)(k+1) + 3H + d_i + d_i·h.
    """
    inner = shape.heads * shape.head_dim
    convolved_width = inner + 2 * shape.key_groups * shape.state_width
    matrices = (
        WeightMatrix("in", shape.hidden, inner + convolved_width + shape.heads, "attention"),
        WeightMatrix("out", inner, shape.hidden, "attention", "rows"),
    )
    vectors = convolved_width * shape.convolution_kernel + (
        convolved_width if shape.conv_bias else 0
    )
    vectors += 3 * shape.heads + (inner if shape.has_norm else 0)
    if shape.projection_bias:
        vectors += inner + convolved_width + shape.heads + shape.hidden
    return TokenMixer(
        kind="mamba2",
        matrices=matrices,
        vector_parameters=vectors,
        state_elements=inner * shape.state_width,
        scan_flops_per_state_element=SCAN,
        convolution_state_elements=convolved_width * shape.convolution_kernel,
    )


def build_gated_delta_mixer(
    hidden: int,
    key_heads: int,
    key_dim: int,
    value_heads: int,
    value_dim: int,
    convolution_kernel: int,
) -> TokenMixer:
    """Build a gated delta rule (Yang et al., 2024): one d_k × d_v state matrix per value head.

    Parameters: h(2H_k·d_k + 2H_v·d_v) + 2h·H_v + k(2H_k·d_k + H_v·d_v) + 2H_v +
    d_v + H_v·d_v·h.
    """
    key_width, value_width = key_heads * key_dim, value_heads * value_dim
    matrices = (
        WeightMatrix("qkv", hidden, 2 * key_width + value_width, "linear attention"),
        WeightMatrix("gate", hidden, value_width, "linear attention"),
        WeightMatrix("decay", hidden, 2 * value_heads, "linear attention"),
        WeightMatrix("out", value_width, hidden, "linear attention", "rows"),
    )
    convolution_state = convolution_kernel * (2 * key_width + value_width)
    return TokenMixer(
        kind="delta",
        matrices=matrices,
        vector_parameters=convolution_state + 2 * value_heads + value_dim,
        state_elements=value_heads * key_dim * value_dim,
        scan_flops_per_state_element=DELTA,
        convolution_state_elements=convolution_state,
    )


def build_kimi_delta_mixer(
    hidden: int,
    heads: int,
    head_dim: int,
    convolution_kernel: int,
    *,
    low_rank_decay: bool,
    low_rank_gate: bool,
) -> TokenMixer:
    """Build delta attention with a decay for each channel (Kimi Linear, 2025).

    Queries, keys and values of a·d each, two gates, one strength per head; the state is d × d
    per head. A low-rank gate (of the decay, of the output) is the product of two matrices of
    rank d.
    """
    inner = heads * head_dim
    matrices = [WeightMatrix(name, hidden, inner, "linear attention") for name in ("q", "k", "v")]
    for name, low_rank in (("forget", low_rank_decay), ("gate", low_rank_gate)):
        if low_rank:
            matrices += (
                WeightMatrix(f"{name}_a", hidden, head_dim, "linear attention", "whole"),
                WeightMatrix(f"{name}_b", head_dim, inner, "linear attention"),
            )
        else:
            matrices.append(WeightMatrix(name, hidden, inner, "linear attention"))
    matrices.append(WeightMatrix("strength", hidden, heads, "linear attention"))
    matrices.append(WeightMatrix("out", inner, hidden, "linear attention", "rows"))
    return TokenMixer(
        kind="delta",
        matrices=tuple(matrices),
        vector_parameters=3 * inner * convolution_kernel + inner + heads + head_dim,
        state_elements=heads * head_dim * head_dim,
        scan_flops_per_state_element=DELTA,
        convolution_state_elements=3 * inner * convolution_kernel,
    )


def build_lightning_mixer(hidden: int, heads: int, head_dim: int) -> TokenMixer:
    """Build lightning attention (MiniMax-01, 2025): d × d state per head, gated output."""
    inner = heads * head_dim
    matrices = (
        WeightMatrix("qkv", hidden, 3 * inner, "attention"),
        WeightMatrix("gate", hidden, inner, "attention"),
        WeightMatrix("out", inner, hidden, "attention", "rows"),
    )
    return TokenMixer(
        kind="lightning",
        matrices=matrices,
        vector_parameters=inner,
        state_elements=heads * head_dim * head_dim,
        scan_flops_per_state_element=OUTER,
    )


def build_short_convolution_mixer(hidden: int, kernel_size: int) -> TokenMixer:
    """Build a gated convolution over the last few tokens (LFM2, 2025)."""
    matrices = (
        WeightMatrix("in", hidden, 3 * hidden, "attention"),
        WeightMatrix("out", hidden, hidden, "attention", "rows"),
    )
    return TokenMixer(
        kind="convolution",
        matrices=matrices,
        vector_parameters=hidden * kernel_size,
        convolution_state_elements=hidden * kernel_size,
    )
