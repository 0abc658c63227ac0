"""Cases that follow from the shape of a model alone: exact counts."""

import re

from app.estimator.accuracy.cases import Asked, Inexpressible
from app.estimator.accuracy.kinds import Predictor
from app.estimator.memory import cache
from app.estimator.models.adapters import adapter_parameters
from app.estimator.models.architecture import (
    Architecture,
    UnreadableConfig,
    from_config,
)


def param_count(asked: Asked) -> float:
    """All parameters of the model."""
    return asked.model().parameters


_ACTIVE = {
    "total - routed_expert_params*(1-top_k/num_experts); embeddings, router and "
    "shared experts counted": True,
    "as above minus the input embedding table (the gpt-oss model card convention)": (
        False
    ),
}


def param_count_active(asked: Asked) -> float:
    """Parameters that work on one token, by the definition of the case."""
    model = asked.model()
    with_table = asked.word("definition", _ACTIVE)
    return model.active_parameters - (0 if with_table else model.embedding_parameters)


def kv_bytes_per_token(asked: Asked) -> float:
    """Cache of one token in all layers, windows not applied."""
    config = asked.any("config")
    width = asked.number("kv_dtype_bytes", 2)
    tensor = asked.whole("tp", 1)
    per_gpu = asked.word("per", {"gpu": True, "": False})
    described = _described(str(asked.case.inputs.get("model", "")))
    if described:
        asked.note("model")
        return described * width / (tensor if per_gpu else 1)
    model = inline_model(config) if config else asked.model()
    asked.note("model")
    return cache.elements_per_token(model, tensor if per_gpu else 1) * width


# "10 full kv4 d512": layers, their kind, KV heads and head width.
_LAYERS = re.compile(r"(\d+) (?:sliding|full) kv(\d+) d(\d+)")


def _described(name: str) -> int:
    """Cache elements of a model whose name spells out its layers; 0 otherwise."""
    return sum(2 * int(n) * int(g) * int(d) for n, g, d in _LAYERS.findall(name))


def inline_model(config: object) -> Architecture:
    """A model whose few sizes stand in the case itself."""
    if not isinstance(config, dict):
        raise Inexpressible("config is not a table")
    sizes = {
        "vocab_size": 32000,
        "hidden_size": 4096,
        "model_type": "llama",
        **config,
    }
    try:
        return from_config(sizes)
    except UnreadableConfig as error:
        raise Inexpressible(str(error)) from error


_Q8_0 = 34 / 32

_PARTS = {
    "": "all",
    "attention KV only": "cache",
    "SSM + conv state": "state+conv",
    "Mamba-2 SSM state only": "state",
    "DeltaNet recurrent state only": "state",
}


def kv_bytes_sequence(asked: Asked) -> float:
    """Cache or state of one sequence, window-aware."""
    model = asked.model()
    context = asked.whole("context", 0)
    parts = asked.word("parts", _PARTS)
    form = asked.word(
        "kv_format",
        {"llama.cpp q8_0 (34 bytes per 32), c^KV only": "latent-q8", "": ""},
    )
    width = asked.number("kv_dtype_bytes", 2)
    state_width = asked.number("state_dtype_bytes", 2 if parts == "state+conv" else 4)
    if form == "latent-q8":
        return _latent_elements(model) * context * _Q8_0
    total = 0.0
    if parts in {"all", "cache"}:
        total += cache.elements_per_sequence(model, context) * width
    if parts in {"all", "state", "state+conv"}:
        total += model.state_elements * state_width
    if parts in {"all", "state+conv"}:
        conv = state_width if parts == "state+conv" else 2
        total += model.convolution_elements * conv
    return total


def _latent_elements(model: Architecture) -> int:
    """Elements of the latent vector of a token, without its rotary part."""
    return sum(number * layer.mixer.latent for layer, number in model.runs)


def lora_params(asked: Asked) -> float:
    """Trainable parameters of low-rank adapters: r · (in + out) per target."""
    model = asked.model()
    rank, targets = asked.whole("rank"), asked.any("targets", [])
    try:
        return adapter_parameters(model, rank, tuple(str(t) for t in targets))
    except LookupError as error:
        raise Inexpressible(str(error)) from error


KINDS: dict[str, Predictor] = {
    "param_count": param_count,
    "param_count_active": param_count_active,
    "kv_bytes_per_token": kv_bytes_per_token,
    "kv_bytes_sequence": kv_bytes_sequence,
    "lora_params": lora_params,
}
