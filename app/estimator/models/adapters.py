"""Low-rank adapters: how many parameters are trained beside a frozen model."""

from app.estimator.models.architecture import Architecture

# Names that adapter libraries use, and the matrices they mean here.
TARGETS: dict[str, tuple[str, ...]] = {
    "q": ("q", "q_b"),
    "k": ("k",),
    "v": ("v",),
    "o": ("o", "out"),
    "gate": ("gate",),
    "up": ("up",),
    "down": ("down",),
    "q_a": ("q_a",),
    "q_b": ("q_b",),
    "kv_a": ("kv_a",),
    "kv_b": ("kv_b",),
    "router": ("router",),
    "in": ("in",),
    "x": ("x",),
    "dt": ("dt",),
    "out": ("out",),
    "fc1": ("up",),
    "fc2": ("down",),
}
_GROUPS: dict[str, tuple[str, ...]] = {
    "qkv": ("q", "k", "v"),
    "query_key_value": ("q", "k", "v"),
    "c_attn": ("q", "k", "v"),
    "attention": ("q", "k", "v", "o"),
    "mlp": ("gate", "up", "down"),
    "all": ("q", "k", "v", "o", "gate", "up", "down"),
    "all-linear": ("q", "k", "v", "o", "gate", "up", "down"),
}


def low_rank_parameters(inputs: float, outputs: float, rank: float) -> float:
    """Parameters of one adapter: r · (in + out). Source: Hu (2021).

    >>> low_rank_parameters(4096, 4096, 8)
    65536
    """
    return rank * (inputs + outputs)


def adapter_parameters(model: Architecture, rank: int, targets: tuple[str, ...]) -> float:
    """Trainable parameters of adapters on all layers of `model`.

    `targets` are names such as q, v, gate or q_proj; unknown ones raise
    LookupError. Routed experts are adapted in every copy.
    """
    names = {name for target in targets for name in _meant(target)}
    return sum(
        number * matrix.copies * low_rank_parameters(matrix.inputs, matrix.outputs, rank)
        for layer, number in model.runs
        for matrix in layer.matrices
        if matrix.name in names
    )


def _meant(target: str) -> tuple[str, ...]:
    word = target.strip().lower().removesuffix("_proj")
    found = [n for part in _GROUPS.get(word, (word,)) for n in TARGETS.get(part, ())]
    if not found:
        raise LookupError(f"adapter target “{target}” is not known")
    return tuple(found)
