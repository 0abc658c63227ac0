"""Layers that keep a state of fixed size instead of a cache that grows."""

import dataclasses

from app.estimator.models.layers import TokenMixer, WeightMatrix

# Operations per token for each element of the state, forward. Megatron counts seven
# for a selective scan, and four products of two for the delta rule: what the key
# recalls, the correction, the update, what the query reads. Without correction and
# recall (lightning attention) two products are left.
# Source: megatron-lm, training.py, num_floating_point_operations.
SCAN, DELTA, OUTER = 7.0, 8.0, 4.0


@dataclasses.dataclass(frozen=True, slots=True)
class MambaShape:
    """The shape of a Mamba-1 mixer (Gu and Dao, 2023)."""

    hidden: int
    inner: int
    state: int = 16
    convolution: int = 4
    rank: int = 0
    conv_bias: bool = True
    projection_bias: bool = False
    inner_norms: bool = False


def mamba(shape: MambaShape) -> TokenMixer:
    """Selective state space: state d_i·S and d_i·k of the convolution.

    Parameters: 2h·d_i + d_i·k + d_i(r+2S) + r·d_i + d_i (dt bias) + d_i·S + d_i +
    d_i·h, with d_i more for the bias of the convolution.
    """
    inner, state = shape.inner, shape.state
    rank = shape.rank or -(-shape.hidden // 16)
    matrices = (
        WeightMatrix("in", shape.hidden, 2 * inner, "attention"),
        WeightMatrix("x", inner, rank + 2 * state, "attention", "rows"),
        WeightMatrix("dt", rank, inner, "attention"),
        WeightMatrix("out", inner, shape.hidden, "attention", "rows"),
    )
    vectors = inner * shape.convolution + (inner if shape.conv_bias else 0)
    vectors += inner + inner * state + inner
    if shape.projection_bias:
        vectors += 2 * inner + shape.hidden
    if shape.inner_norms:
        vectors += rank + 2 * state
    return TokenMixer(
        kind="mamba",
        matrices=matrices,
        vectors=vectors,
        state=inner * state,
        scan=SCAN,
        convolution=inner * shape.convolution,
    )


@dataclasses.dataclass(frozen=True, slots=True)
class Mamba2Shape:
    """The shape of a Mamba-2 mixer (Dao and Gu, 2024)."""

    hidden: int
    heads: int
    head_dim: int
    state: int
    groups: int = 1
    convolution: int = 4
    conv_bias: bool = True
    projection_bias: bool = False
    norm: bool = True


def mamba2(shape: Mamba2Shape) -> TokenMixer:
    """State space with scalar decay per head: state H·d_h·S per sequence.

    Parameters: h(2d_i+2GS+H) + (d_i+2GS)(k+1) + 3H + d_i + d_i·h.
    """
    inner = shape.heads * shape.head_dim
    mixed = inner + 2 * shape.groups * shape.state
    matrices = (
        WeightMatrix("in", shape.hidden, inner + mixed + shape.heads, "attention"),
        WeightMatrix("out", inner, shape.hidden, "attention", "rows"),
    )
    vectors = mixed * shape.convolution + (mixed if shape.conv_bias else 0)
    vectors += 3 * shape.heads + (inner if shape.norm else 0)
    if shape.projection_bias:
        vectors += inner + mixed + shape.heads + shape.hidden
    return TokenMixer(
        kind="mamba2",
        matrices=matrices,
        vectors=vectors,
        state=inner * shape.state,
        scan=SCAN,
        convolution=mixed * shape.convolution,
    )


@dataclasses.dataclass(frozen=True, slots=True)
class GatedDeltaShape:
    """The shape of a gated DeltaNet mixer (Yang et al., 2024)."""

    hidden: int
    key_heads: int
    key_dim: int
    value_heads: int
    value_dim: int
    convolution: int = 4


def gated_delta(shape: GatedDeltaShape) -> TokenMixer:
    """Gated delta rule: one d_k × d_v matrix of state per value head.

    Parameters: h(2H_k·d_k + 2H_v·d_v) + 2h·H_v + k(2H_k·d_k + H_v·d_v) + 2H_v +
    d_v + H_v·d_v·h.
    """
    keys = shape.key_heads * shape.key_dim
    values = shape.value_heads * shape.value_dim
    matrices = (
        WeightMatrix("qkv", shape.hidden, 2 * keys + values, "attention"),
        WeightMatrix("gate", shape.hidden, values, "attention"),
        WeightMatrix("decay", shape.hidden, 2 * shape.value_heads, "attention"),
        WeightMatrix("out", values, shape.hidden, "attention", "rows"),
    )
    mixed = 2 * keys + values
    return TokenMixer(
        kind="delta",
        matrices=matrices,
        vectors=shape.convolution * mixed + 2 * shape.value_heads + shape.value_dim,
        state=shape.value_heads * shape.key_dim * shape.value_dim,
        scan=DELTA,
        convolution=mixed * shape.convolution,
    )


@dataclasses.dataclass(frozen=True, slots=True)
class KimiDeltaShape:
    """The shape of delta attention with a decay for each channel (Kimi Linear).

    `low_rank` gates are products of two matrices of rank d, others are whole.
    """

    hidden: int
    heads: int
    dim: int
    convolution: int = 4
    low_rank: bool = True


def _gates(shape: KimiDeltaShape, inner: int) -> tuple[WeightMatrix, ...]:
    """What says how much is forgotten and how much is let out."""
    made: list[WeightMatrix] = []
    for name in ("forget", "gate"):
        if not shape.low_rank:
            made.append(WeightMatrix(name, shape.hidden, inner, "attention"))
            continue
        down = WeightMatrix(f"{name}_a", shape.hidden, shape.dim, "attention", "whole")
        made += (down, WeightMatrix(f"{name}_b", shape.dim, inner, "attention"))
    return tuple(made)


def kimi_delta(shape: KimiDeltaShape) -> TokenMixer:
    """Delta attention with a decay for each channel (Kimi Linear, 2025).

    Queries, keys and values of a·d each, two gates, one strength per head; the
    state is d × d per head.
    """
    hidden, heads, dim = shape.hidden, shape.heads, shape.dim
    convolution, inner = shape.convolution, heads * dim
    matrices = (
        *(WeightMatrix(name, hidden, inner, "attention") for name in ("q", "k", "v")),
        *_gates(shape, inner),
        WeightMatrix("strength", hidden, heads, "attention"),
        WeightMatrix("out", inner, hidden, "attention", "rows"),
    )
    return TokenMixer(
        kind="delta",
        matrices=matrices,
        vectors=3 * inner * convolution + inner + heads + dim,
        state=heads * dim * dim,
        scan=DELTA,
        convolution=3 * inner * convolution,
    )


def lightning(hidden: int, heads: int, dim: int) -> TokenMixer:
    """Lightning attention (MiniMax-01, 2025): a d × d state per head, gated output."""
    inner = heads * dim
    matrices = (
        WeightMatrix("qkv", hidden, 3 * inner, "attention"),
        WeightMatrix("gate", hidden, inner, "attention"),
        WeightMatrix("out", inner, hidden, "attention", "rows"),
    )
    return TokenMixer(
        kind="lightning",
        matrices=matrices,
        vectors=inner,
        state=heads * dim * dim,
        scan=OUTER,
    )


def short_convolution(hidden: int, length: int) -> TokenMixer:
    """A gated convolution over the last few tokens (LFM2, 2025)."""
    matrices = (
        WeightMatrix("in", hidden, 3 * hidden, "attention"),
        WeightMatrix("out", hidden, hidden, "attention", "rows"),
    )
    return TokenMixer(
        kind="convolution",
        matrices=matrices,
        vectors=hidden * length,
        convolution=hidden * length,
    )
