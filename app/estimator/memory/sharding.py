"""Which splits of a model over GPUs are possible, and why others are not."""

import functools

from app.estimator.models.architecture import Architecture


@functools.lru_cache(maxsize=8192)
def tensor_parallel_problem(model: Architecture, gpus: int) -> str | None:
    """Why `gpus` cannot share each layer of `model`; None when they can.

    Query heads must divide evenly; KV heads must divide evenly or be copied evenly.
    """
    if gpus == 1:
        return None
    for layer, _ in model.runs:
        mixer = layer.mixer
        if mixer.heads and mixer.heads % gpus:
            return (
                f"{mixer.heads} attention heads cannot be divided over {gpus} GPUs; "
                f"possible: {_listed(model)}."
            )
        kv = mixer.kv_heads
        if mixer.kind == "attention" and kv % gpus and gpus % kv:
            return f"{kv} KV heads cannot be divided over {gpus} GPUs; possible: {_listed(model)}."
    return None


@functools.lru_cache(maxsize=2048)
def tensor_parallel_choices(model: Architecture, most: int = 64) -> tuple[int, ...]:
    """The numbers of GPUs up to `most` that can share each layer."""
    return tuple(n for n in range(1, most + 1) if tensor_parallel_problem(model, n) is None)


def _listed(model: Architecture) -> str:
    counts = [n for n in range(2, 129) if all(_divides(layer.mixer, n) for layer, _ in model.runs)]
    words = [str(n) for n in (1, *counts)]
    return " or ".join((", ".join(words[:-1]), words[-1])) if counts else "1"


def _divides(mixer: object, gpus: int) -> bool:
    heads: int = getattr(mixer, "heads", 0)
    kv: int = getattr(mixer, "kv_heads", 0)
    latent = getattr(mixer, "kind", "") != "attention"
    even = latent or not kv or kv % gpus == 0 or gpus % kv == 0
    return heads % gpus == 0 and even
