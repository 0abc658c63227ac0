"""Pipeline parallelism: the idle share."""


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
