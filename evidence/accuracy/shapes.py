"""Cases that follow exactly from a model's shape."""

import re

from app.estimator.memory.kv_cache import textbook_kv_cache_bytes_per_token
from app.estimator.models.architecture import Architecture
from app.estimator.models.lookup import find_model
from app.estimator.models.weight_formats import adapter_parameters, element_bytes
from evidence.accuracy.cases import CaseInputs, UnsupportedCaseError, config_as_input
from evidence.accuracy.kinds import Translator
from evidence.accuracy.question import CalculatorQuery, FormulaValue, build_query, formula_value


def param_count(inputs: CaseInputs) -> CalculatorQuery:
    """All parameters of the model."""
    return build_query("model", "parameters", model=inputs.read_model())


def param_count_tower(inputs: CaseInputs) -> CalculatorQuery:
    """Parameters of the vision tower, including its projector."""
    return build_query("model", "tower_parameters", model=inputs.read_model())


_ACTIVE = {
    "total - routed_expert_params*(1-top_k/num_experts); embeddings, router and "
    "shared experts counted": "active_parameters",
    "as above minus the input embedding table (the gpt-oss model card convention)": (
        "active_without_table"
    ),
}


def param_count_active(inputs: CaseInputs) -> CalculatorQuery:
    """Active parameters per token, by the definition of the case."""
    figure = inputs.read_meaning("definition", _ACTIVE)
    return build_query("model", figure, model=inputs.read_model())


# Cache formats by bytes per element.
_CACHES = {0.5: "int4", 1: "fp8", 2: "bf16", 4: "fp32"}


def _read_cache_format(inputs: CaseInputs) -> str:
    width = inputs.read_number("kv_dtype_bytes", 2)
    if width not in _CACHES:
        raise UnsupportedCaseError(f"kv_dtype_bytes {width} is no format of the cache")
    return _CACHES[width]


def kv_bytes_per_token(inputs: CaseInputs) -> CalculatorQuery | FormulaValue:
    """Cache bytes of one token in all layers, without sliding windows."""
    config = inputs.read_any("config")
    tensor = inputs.read_int("tp", 1)
    per_gpu = inputs.read_meaning("per", {"gpu": True, "": False})
    described = _LAYERS.findall(str(inputs.case.inputs.get("model", "")))
    if described:
        inputs.ignore("model")
        width = inputs.read_number("kv_dtype_bytes", 2) / (tensor if per_gpu else 1)
        total = sum(
            textbook_kv_cache_bytes_per_token(int(layers), int(kv_heads), int(head_dim), width)
            for layers, kv_heads, head_dim in described
        )
        return formula_value(textbook_kv_cache_bytes_per_token, total)
    model = config_of_case_as_input(config) if config else inputs.read_model()
    inputs.ignore("model")
    figure = "token_per_gpu" if per_gpu else "per_token"
    split = tensor if per_gpu else None
    return build_query(
        "kv-cache", figure, model=model, cache=_read_cache_format(inputs), tensor_parallel=split
    )


# "10 full kv4 d512": layers, their kind, KV heads and head width.
_LAYERS = re.compile(r"(\d+) (?:sliding|full) kv(\d+) d(\d+)")


def config_of_case_as_input(config: object) -> str:
    """Return a model whose few sizes are in the case itself, as input text."""
    if not isinstance(config, dict):
        raise UnsupportedCaseError("config is not a table")
    usual = {"vocab_size": 32000, "hidden_size": 4096, "model_type": "llama"}
    return config_as_input({**usual, **config})


# Bits of an element in llama.cpp's q8_0: 34 bytes for 32 of them.
_Q8_0 = 8.5

_PARTS = {
    "": "per_sequence",
    "attention KV only": "attention",
    "SSM + conv state": "state",
    "Mamba-2 SSM state only": "recurrent",
    "DeltaNet recurrent state only": "recurrent",
}
_STATES = {2: "bf16", 4: "fp32"}


def kv_bytes_sequence(inputs: CaseInputs) -> CalculatorQuery | FormulaValue:
    """Cache or state of one sequence, with sliding windows."""
    model, context = inputs.read_model(), inputs.read_int("context", 0)
    figure = str(inputs.read_meaning("parts", _PARTS))
    latent = inputs.read_meaning(
        "kv_format",
        {"llama.cpp q8_0 (34 bytes per 32), c^KV only": True, "": False},
    )
    width = inputs.read_int("state_dtype_bytes", 2 if figure == "state" else 4)
    if latent:
        inputs.ignore("kv_dtype_bytes")
        elements = _latent_elements(find_model(model)) * context
        return formula_value(element_bytes, element_bytes(elements, _Q8_0))
    if width not in _STATES:
        raise UnsupportedCaseError(f"state_dtype_bytes {width} is no format of the state")
    return build_query(
        "kv-cache",
        figure,
        model=model,
        context=context or None,
        cache=_read_cache_format(inputs),
        state=_STATES[width],
    )


def _latent_elements(model: Architecture) -> int:
    """Return the size of a token's latent vector, without its rotary part."""
    return sum(number * layer.mixer.latent_width for layer, number in model.layer_counts)


_TARGETS = {
    frozenset({"q", "v"}): "qv",
    frozenset({"q", "k", "v", "o"}): "attention",
    frozenset({"gate", "up", "down"}): "mlp",
    frozenset({"q", "k", "v", "o", "gate", "up", "down"}): "all-linear",
}


def lora_params(inputs: CaseInputs) -> CalculatorQuery | FormulaValue:
    """Trainable parameters of low-rank adapters: r · (in + out) per target."""
    model, rank = inputs.read_model(), inputs.read_int("rank")
    names = tuple(str(target) for target in inputs.read_any("targets", []))
    targets = _TARGETS.get(frozenset(names))
    if targets:
        return build_query(
            "training-memory",
            "trained",
            model=model,
            method="lora",
            rank=rank,
            targets=targets,
        )
    try:
        count = adapter_parameters(find_model(model), rank, names)
    except LookupError as error:
        raise UnsupportedCaseError(str(error)) from error
    return formula_value(adapter_parameters, count)


KINDS: dict[str, Translator] = {
    "param_count": param_count,
    "param_count_active": param_count_active,
    "param_count_tower": param_count_tower,
    "kv_bytes_per_token": kv_bytes_per_token,
    "kv_bytes_sequence": kv_bytes_sequence,
    "lora_params": lora_params,
}
