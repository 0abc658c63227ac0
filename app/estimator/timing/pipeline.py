"""Pipeline parallelism: the idle share and the work in flight."""


def bubble(stages: int, microbatches: int, virtual_stages: int = 1) -> float:
    """Idle time of a pipeline over its ideal time [1].

    (p − 1) / (v·m) for GPipe, 1F1B (v = 1) and interleaved 1F1B (v > 1).

    Where:
        stages: pipeline stages p [1].
        microbatches: micro-batches per step m [1].
        virtual_stages: pieces of the model per stage v [1].

    Source: megatron-2021, section 2.2.

    >>> bubble(8, 64)
    0.109375
    """
    if min(stages, microbatches, virtual_stages) < 1:
        raise ValueError("stages, micro-batches and pieces must be at least 1")
    return (stages - 1) / (virtual_stages * microbatches)


def idle_share(stages: int, microbatches: int, virtual_stages: int = 1) -> float:
    """Idle time of a pipeline over its whole time [1]: x / (1 + x) of the bubble.

    >>> idle_share(4, 4)
    0.42857142857142855
    """
    idle = bubble(stages, microbatches, virtual_stages)
    return idle / (1 + idle)


def zero_bubble(
    stages: int, microbatches: int, backward: float = 2.0, weights: float = 1.0
) -> float:
    """Idle over ideal time where weight gradients fill the gaps (ZB-H1) [1].

    (p − 1)(F + B − 2W) / (m(F + B)), with F = 1.

    Where:
        stages: pipeline stages p [1].
        microbatches: micro-batches per step m [1].
        backward: time of the backward pass over that of the forward pass [1].
        weights: its part that computes weight gradients [1].

    Source: zero-bubble.

    >>> zero_bubble(8, 64) < bubble(8, 64)
    True
    """
    gap = max(0.0, 1 + backward - 2 * weights)
    return (stages - 1) * gap / (microbatches * (1 + backward))


def in_flight(
    stages: int, microbatches: int, stage: int = 0, virtual_stages: int = 1
) -> float:
    """Micro-batches whose activations a stage keeps at once under 1F1B [1].

    min(m, p − i) for stage i; interleaving multiplies by 1 + (p − 1)/(p·v).

    Source: recompute, section 4.2.3.

    >>> in_flight(8, 64)
    8.0
    """
    held = float(min(microbatches, stages - stage))
    if virtual_stages == 1:
        return held
    return held * (1 + (stages - 1) / (stages * virtual_stages))
