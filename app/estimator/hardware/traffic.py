"""Bytes that each kind of parallelism sends per rank."""

from typing import Literal

Collective = Literal["all_reduce", "all_gather", "reduce_scatter", "alltoall", "broadcast"]

# Passes of the message over the ring; see nccl-tests, PERFORMANCE.md.
_PASSES: dict[Collective, int] = {
    "all_reduce": 2,
    "all_gather": 1,
    "reduce_scatter": 1,
    "alltoall": 1,
}


def bytes_sent(operation: Collective, ranks: int, message: float) -> float:
    """Bytes one rank sends in a ring, in one direction.

    2(n−1)/n·S for all-reduce, (n−1)/n·S for all-gather, reduce-scatter and
    all-to-all, S for broadcast. S is the whole buffer: what is reduced, what is
    gathered in the end, what one rank exchanges.

    Where:
        operation: the collective.
        ranks: ranks n that take part [1]; one rank sends nothing.
        message: size S of the buffer [B].

    Source: nccl-tests.

    >>> bytes_sent("all_reduce", 8, 1e9)
    1750000000.0
    """
    if ranks < 1:
        raise ValueError(f"a collective needs at least one rank, not {ranks}")
    if ranks == 1:
        return 0.0
    if operation == "broadcast":
        return message
    return _PASSES[operation] * (ranks - 1) * message / ranks


def data_parallel(parameters: float, bytes_per_value: float, stage: int = 0) -> float:
    """Bytes sent per rank and step for gradients and weights, many ranks.

    2Ψ·W for plain data parallelism and ZeRO 1 and 2 (reduce-scatter and
    all-gather, or an all-reduce); 3Ψ·W for ZeRO 3, which gathers weights twice.

    Source: zero, section 7.

    >>> data_parallel(7.5e9, 2)
    30000000000.0
    """
    return (3 if stage == 3 else 2) * parameters * bytes_per_value


def tensor_parallel(layers: int, message: float, ranks: int) -> float:
    """Bytes sent per rank for one micro-batch, forward and backward.

    Four all-reduces per layer (two forward, two backward) of the activations
    b·s·h·W; sequence parallelism sends the same as gathers and scatters.

    Source: megatron-2019.

    >>> tensor_parallel(1, 1e6, 2)
    4000000.0
    """
    return layers * 4 * bytes_sent("all_reduce", ranks, message)


def pipeline_hop(message: float, scatter_gather: int = 1) -> float:
    """Bytes per micro-batch over one stage boundary in one direction.

    b·s·h·W, divided by the tensor-parallel ranks that each send their part.

    Source: megatron-2021, section 4.1.

    >>> pipeline_hop(1e6, 8)
    125000.0
    """
    return message / scatter_gather


def expert_parallel(
    tokens: float, experts_per_token: float, hidden: int, bytes_per_value: float
) -> float:
    """Bytes sent per rank and layer to experts elsewhere and back, one pass.

    T·k·h·(W_dispatch + W_combine) when no expert is local.

    Where:
        tokens: tokens on the rank T [1].
        experts_per_token: experts each token goes to k [1].
        hidden: width h [1].
        bytes_per_value: dispatch and combine together [B].

    Source: deepseek-insights, section 2.3.2.

    >>> expert_parallel(32, 9, 7000, 3)
    6048000
    """
    return tokens * experts_per_token * hidden * bytes_per_value
