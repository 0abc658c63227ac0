"""GGUF files of llama.cpp: which tensor is stored in which block format."""

import functools

from app.estimator import catalogue
from app.estimator.models.architecture import Architecture
from app.estimator.models.formats import bytes_of
from app.estimator.models.layers import Layer, WeightMatrix

_WORDS = catalogue.load_toml("gguf.toml")
# Bits per weight of each block format, scales included.
BLOCK_BITS: dict[str, float] = _WORDS["bits"]
# What a format falls back to where a row is no multiple of 256 weights.
_FALLBACK: dict[str, str] = _WORDS["fallback"]
# For a role the formats of chosen layers, as (condition, format), in the order in
# which they are tried.
_Rules = dict[str, list[tuple[str, str]]]
_MIXTURES: dict[str, tuple[str, _Rules]] = {
    name: (row["usual"], row.get("rules", {})) for name, row in _WORDS["mixtures"].items()
}
MIXTURES: tuple[str, ...] = tuple(_MIXTURES)
# Mixtures whose output projection is Q5_K; all others up to Q8_0 use Q6_K.
_LOW_HEAD = frozenset({"IQ3_XXS", "IQ2_M", "IQ2_S", "IQ2_XS", "IQ2_XXS", "IQ1_M", "IQ1_S"})
_WIDE = frozenset({"F32", "F16", "BF16", "Q8_0"})
# The 8-expert models keep keys and values wide and the output projection at Q5_K.
_EIGHT_EXPERTS = 8


@functools.lru_cache(maxsize=1024)
def file_bytes(model: Architecture, mixture: str) -> float:
    """Bytes of the tensors of a GGUF file in a mixture such as `Q4_K_M`.

    Each matrix is stored in the block format that llama.cpp picks for its role and
    layer without an importance matrix; vectors and routers are FP32.
    Source: llama.cpp, quantize. Raises KeyError for an unknown mixture.
    """
    usual, rules = _MIXTURES[mixture]
    total = _tables(model, mixture, usual, rules)
    vectors = model.other + model.positions * model.hidden
    wide = BLOCK_BITS["F32"]
    for index, layer in enumerate(model.stack):
        vectors += layer.vectors
        for matrix in layer.matrices:
            if matrix.part == "router" and usual != "F32":
                total += bytes_of(matrix.parameters, wide)
            else:
                form = _format(model, layer, matrix, index, mixture)
                total += bytes_of(matrix.parameters, _bits(form, matrix.inputs))
    return total + bytes_of(vectors, wide)


def _tables(model: Architecture, mixture: str, usual: str, rules: _Rules) -> float:
    """Bytes of the embedding table and of the output projection."""
    head = usual if mixture in _WIDE else "Q5_K" if mixture in _LOW_HEAD else "Q6_K"
    if model.tied:
        return bytes_of(model.embedding_parameters, _bits(head, model.hidden))
    table = next((form for _, form in rules.get("embedding", ())), usual)
    return bytes_of(model.embedding_parameters, _bits(table, model.hidden)) + bytes_of(
        model.head_parameters, _bits(head, model.hidden)
    )


def _bits(form: str, row: int) -> float:
    """Bits of a format for rows of this length; the fallback where it is odd."""
    if form in _FALLBACK and row % 256:
        form = _FALLBACK[form] if row % 32 == 0 else "F16"
    elif form not in _WIDE and row % 32:
        form = "F16"
    return BLOCK_BITS[form]


def _format(
    model: Architecture, layer: Layer, matrix: WeightMatrix, index: int, mixture: str
) -> str:
    usual, rules = _MIXTURES[mixture]
    form = usual
    for condition, chosen in rules.get(matrix.name, ()):
        if _holds(condition, index, model, layer):
            form = chosen
            break
    if usual in _WIDE:
        return form
    return _widened(model, matrix, form)


def _widened(model: Architecture, matrix: WeightMatrix, form: str) -> str:
    """The exceptions for 70B shapes and for 8 experts."""
    seventy = model.layers == 80 and model.kv_heads < model.heads
    if matrix.name == "v" and seventy and form in {"Q3_K", "Q4_K"}:
        form = "Q5_K"
    if model.experts == _EIGHT_EXPERTS and matrix.name in {"k", "v"}:
        return "Q8_0"
    narrow = form in {"Q2_K", "Q3_K", "Q4_K", "IQ4_NL", "IQ4_XS", "IQ3_S", "IQ3_XXS"}
    if model.experts == _EIGHT_EXPERTS and matrix.name == "o" and narrow:
        return "Q5_K"
    return form


def _holds(condition: str, index: int, model: Architecture, layer: Layer) -> bool:
    count = model.layers
    eighth = count // 8
    early_or_late = index < eighth or index >= 7 * count // 8
    mixer = layer.mixer
    conditions = {
        "all": True,
        "more": early_or_late or (index - eighth) % 3 == 2,
        "8th": index < eighth,
        "16th": index < count // 16,
        "two": index < 2,
        "four": index < 4,
        "middle": not early_or_late,
        "shared": mixer.heads >= 4 * max(1, mixer.kv_heads) or model.experts >= 4,
    }
    return conditions[condition]
