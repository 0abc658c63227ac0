"""Attention whose keys and values are kept small: latent and compressed."""

import dataclasses

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
    bias: bool = False
    index_heads: int = 0
    index_dim: int = 0
    top: int | None = None
    index_shared: bool = False
    head_gate: bool = False


def latent_attention(shape: LatentAttentionShape, window: int | None) -> TokenMixer:
    """Latent attention: keys and values are unpacked from one small vector.

    Cache: r_kv + d_r elements per token, whatever the number of heads; it is not
    divided by tensor parallelism. Source: DeepSeek-V2 (2024), section 2.1.
    """
    wide = shape.nope_dim + shape.rope_dim
    down = shape.kv_rank + shape.rope_dim
    query = _latent_query(shape, wide)
    up = shape.heads * (shape.nope_dim + shape.value_dim)
    matrices = (
        *query,
        WeightMatrix("kv_a", shape.hidden, down, "attention", "whole"),
        WeightMatrix("kv_b", shape.kv_rank, up, "attention"),
        WeightMatrix("o", shape.heads * shape.value_dim, shape.hidden, "attention", "rows"),
        *_indexer(shape),
    )
    if shape.head_gate:
        gate = WeightMatrix("gate", shape.hidden, shape.heads, "attention")
        matrices = (*matrices, gate)
    biases = (shape.query_rank + down + shape.hidden) if shape.bias else 0
    owns = bool(shape.index_heads) and not shape.index_shared
    index_norm = 2 * shape.index_dim if owns else 0
    return TokenMixer(
        kind="latent",
        matrices=matrices,
        vectors=shape.query_rank + shape.kv_rank + biases + index_norm,
        heads=shape.heads,
        kv_heads=1,
        head_dim=wide,
        value_dim=shape.value_dim,
        window=window,
        cache=down,
        index=shape.index_dim if owns else 0,
        index_heads=shape.index_heads if owns else 0,
        index_dim=shape.index_dim if owns else 0,
        top=shape.top if shape.index_heads else None,
        latent=shape.kv_rank,
        query_rank=shape.query_rank,
        rope_dim=shape.rope_dim,
    )


def _latent_query(shape: LatentAttentionShape, wide: int) -> tuple[WeightMatrix, ...]:
    if not shape.query_rank:
        return (WeightMatrix("q", shape.hidden, shape.heads * wide, "attention"),)
    return (
        WeightMatrix("q_a", shape.hidden, shape.query_rank, "attention", "whole"),
        WeightMatrix("q_b", shape.query_rank, shape.heads * wide, "attention"),
    )


def _indexer(shape: LatentAttentionShape) -> tuple[WeightMatrix, ...]:
    """The small heads that choose which tokens sparse attention reads."""
    if not shape.index_heads or shape.index_shared:
        return ()
    source = shape.query_rank or shape.hidden
    width = shape.index_heads * shape.index_dim
    return (
        WeightMatrix("index_q", source, width, "attention", "whole"),
        WeightMatrix("index_k", shape.hidden, shape.index_dim, "attention", "whole"),
        WeightMatrix("index_weight", shape.hidden, shape.index_heads, "attention", "whole"),
    )


@dataclasses.dataclass(frozen=True, slots=True)
class CompressedAttentionShape:
    """The shape of attention over compressed keys (DeepSeek-V4).

    `rate` tokens become one entry (0: only the window is seen); `streams` residual
    streams are mixed before and after.
    """

    hidden: int
    heads: int
    head_dim: int
    query_rank: int
    out_groups: int
    out_rank: int
    window: int
    streams: int
    rate: int
    index_heads: int
    index_dim: int
    top: int | None = None


def compressed_attention(shape: CompressedAttentionShape) -> TokenMixer:
    """One shared key-value head per token, its past compressed by `rate`.

    The cache holds a window of whole entries and one entry of d per `rate` tokens,
    beside a smaller one for the indexer.
    """
    twice = 2 if shape.index_heads else 1
    packed = twice * shape.head_dim if shape.rate else 0
    return TokenMixer(
        kind="compressed",
        matrices=tuple(_compressed_matrices(shape, packed)),
        vectors=_compressed_vectors(shape, packed),
        heads=shape.heads,
        kv_heads=1,
        head_dim=shape.head_dim,
        value_dim=shape.head_dim,
        cache=shape.head_dim // shape.rate if shape.rate else 0,
        near=shape.head_dim,
        near_tokens=shape.window,
        rate=shape.rate or 1,
        index=shape.index_dim // shape.rate if shape.index_heads else 0,
        index_heads=shape.index_heads,
        index_dim=shape.index_dim if shape.index_heads else 0,
        top=shape.top if shape.index_heads else None,
        query_rank=shape.query_rank,
    )


def _compressed_matrices(shape: CompressedAttentionShape, packed: int) -> list[WeightMatrix]:
    """Queries, one key-value head, a grouped output, and the compressor."""
    wide = shape.heads * shape.head_dim
    out = shape.out_groups * shape.out_rank
    matrices = [
        WeightMatrix("q_a", shape.hidden, shape.query_rank, "attention", "whole"),
        WeightMatrix("q_b", shape.query_rank, wide, "attention"),
        WeightMatrix("kv", shape.hidden, shape.head_dim, "attention", "whole"),
        WeightMatrix("o_a", wide // shape.out_groups, out, "attention"),
        WeightMatrix("o_b", out, shape.hidden, "attention", "rows"),
    ]
    if packed:
        matrices += [
            WeightMatrix(name, shape.hidden, packed, "attention", "whole")
            for name in ("compress_kv", "compress_gate")
        ]
    if shape.index_heads:
        matrices += _compressed_indexer(shape)
    return matrices


def _compressed_vectors(shape: CompressedAttentionShape, packed: int) -> int:
    """Sinks, norms, position biases and the mixing of residual streams."""
    vectors = shape.heads + shape.query_rank + shape.head_dim
    if packed:
        vectors += shape.rate * packed + shape.head_dim
    if shape.index_heads:
        vectors += shape.rate * 2 * shape.index_dim + shape.index_dim
    mixes = shape.streams * (shape.streams + 2)
    return vectors + 2 * (mixes * shape.streams * shape.hidden + mixes + 3)


def _compressed_indexer(shape: CompressedAttentionShape) -> list[WeightMatrix]:
    width = shape.index_heads * shape.index_dim
    return [
        WeightMatrix("index_kv", shape.hidden, 2 * shape.index_dim, "attention", "whole"),
        WeightMatrix("index_gate", shape.hidden, 2 * shape.index_dim, "attention", "whole"),
        WeightMatrix("index_q", shape.query_rank, width, "attention", "whole"),
        WeightMatrix("index_weight", shape.hidden, shape.index_heads, "attention", "whole"),
    ]
