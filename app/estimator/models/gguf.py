"""GGUF files of llama.cpp: which tensor is stored in which block format."""

import functools

from app.estimator.models.architecture import Architecture
from app.estimator.models.formats import bytes_of
from app.estimator.models.layers import Layer, Matrix

# Bits per weight of each block format, scales included: bytes of a block · 8 / its
# weights. Source: the block definitions in ggml.
BLOCK_BITS: dict[str, float] = {
    "F32": 32,
    "F16": 16,
    "BF16": 16,
    "Q8_0": 8.5,
    "Q6_K": 6.5625,
    "Q5_K": 5.5,
    "Q5_1": 6.0,
    "Q5_0": 5.5,
    "Q4_K": 4.5,
    "Q4_1": 5.0,
    "Q4_0": 4.5,
    "IQ4_NL": 4.5,
    "IQ4_XS": 4.25,
    "Q3_K": 3.4375,
    "IQ3_S": 3.4375,
    "IQ3_XXS": 3.0625,
    "Q2_K": 2.625,
    "IQ2_S": 2.5625,
    "IQ2_XS": 2.3125,
    "IQ2_XXS": 2.0625,
    "IQ1_M": 1.75,
    "IQ1_S": 1.5625,
    "MXFP4": 4.25,
}
# What a format falls back to where a row is no multiple of 256 weights.
_FALLBACK: dict[str, str] = {
    "Q6_K": "Q8_0",
    "Q5_K": "Q5_1",
    "Q4_K": "Q5_0",
    "Q3_K": "Q4_0",
    "Q2_K": "Q4_0",
    **dict.fromkeys(
        ("IQ4_XS", "IQ3_S", "IQ3_XXS", "IQ2_S", "IQ2_XS", "IQ2_XXS", "IQ1_M", "IQ1_S"),
        "IQ4_NL",
    ),
}

# A mixture: its usual format, then for a role the formats of chosen layers in the
# order in which they are tried: (condition, format). Conditions: `all`, `more` (first
# and last eighth and every third between), `8th`, `16th`, `two`, `four` (first
# layers), `shared` (four or more queries share a KV head).
_Rules = dict[str, tuple[tuple[str, str], ...]]
_MIXTURES: dict[str, tuple[str, _Rules]] = {
    "F16": ("F16", {}),
    "BF16": ("BF16", {}),
    "F32": ("F32", {}),
    "Q8_0": ("Q8_0", {}),
    "Q6_K": ("Q6_K", {}),
    "Q5_K_M": ("Q5_K", {"v": (("more", "Q6_K"),), "down": (("more", "Q6_K"),)}),
    "Q5_K_S": ("Q5_K", {}),
    "Q5_0": ("Q5_0", {}),
    "Q5_1": ("Q5_1", {}),
    "Q4_K_M": ("Q4_K", {"v": (("more", "Q6_K"),), "down": (("more", "Q6_K"),)}),
    "Q4_K_S": ("Q4_K", {"v": (("four", "Q5_K"),), "down": (("8th", "Q5_K"),)}),
    "Q4_0": ("Q4_0", {}),
    "Q4_1": ("Q4_1", {}),
    "IQ4_NL": ("IQ4_NL", {"v": (("shared", "Q5_K"),), "down": (("8th", "Q5_K"),)}),
    "IQ4_XS": ("IQ4_XS", {"v": (("shared", "Q5_K"),), "down": (("8th", "Q5_K"),)}),
    "Q3_K_L": (
        "Q3_K",
        {
            "v": (("all", "Q5_K"),),
            "down": (("all", "Q5_K"),),
            "o": (("all", "Q5_K"),),
        },
    ),
    "Q3_K_M": (
        "Q3_K",
        {
            "v": (("two", "Q5_K"), ("all", "Q4_K")),
            "down": (("16th", "Q5_K"), ("all", "Q4_K")),
            "o": (("all", "Q4_K"),),
        },
    ),
    "Q3_K_S": ("Q3_K", {}),
    "IQ3_M": (
        "IQ3_S",
        {
            "v": (("all", "Q4_K"),),
            "down": (("8th", "Q4_K"),),
            "o": (("all", "Q4_K"),),
        },
    ),
    "IQ3_S": ("IQ3_S", {"v": (("shared", "Q4_K"),)}),
    "IQ3_XS": (
        "IQ3_S",
        {
            "v": (("shared", "Q4_K"),),
            "q": (("all", "IQ3_XXS"),),
            "k": (("all", "IQ3_XXS"),),
            "gate": (("middle", "IQ3_XXS"),),
            "up": (("middle", "IQ3_XXS"),),
        },
    ),
    "IQ3_XXS": (
        "IQ3_XXS",
        {
            "v": (("shared", "Q4_K"),),
            "q": (("all", "IQ2_S"),),
            "k": (("all", "IQ2_S"),),
            "o": (("all", "IQ3_S"),),
            "embedding": (("all", "IQ3_S"),),
        },
    ),
    "Q2_K": (
        "Q2_K",
        {
            "v": (("shared", "Q4_K"), ("all", "Q3_K")),
            "down": (("all", "Q3_K"),),
            "o": (("all", "Q3_K"),),
        },
    ),
    "Q2_K_S": ("Q2_K", {"v": (("shared", "Q4_K"),), "down": (("8th", "Q4_K"),)}),
    "IQ2_M": (
        "IQ2_S",
        {
            "v": (("shared", "Q4_K"), ("all", "IQ3_S")),
            "down": (("8th", "IQ3_S"),),
            "o": (("all", "IQ3_S"),),
            "embedding": (("all", "IQ3_S"),),
        },
    ),
    "IQ2_S": (
        "IQ2_XS",
        {
            "v": (("shared", "Q4_K"), ("all", "IQ3_S")),
            "down": (("8th", "IQ3_S"),),
            "o": (("all", "IQ3_S"),),
            "embedding": (("all", "IQ3_S"),),
        },
    ),
    "IQ2_XS": (
        "IQ2_XS",
        {
            "v": (("shared", "Q4_K"), ("all", "Q2_K")),
            "down": (("8th", "Q2_K"),),
            "embedding": (("all", "Q2_K"),),
        },
    ),
    "IQ2_XXS": (
        "IQ2_XXS",
        {
            "v": (("shared", "Q4_K"), ("all", "Q2_K")),
            "down": (("8th", "Q2_K"),),
            "embedding": (("all", "Q2_K"),),
        },
    ),
    "IQ1_M": (
        "IQ1_M",
        {
            "v": (("shared", "Q4_K"), ("all", "Q2_K")),
            "down": (("8th", "Q2_K"),),
            "o": (("all", "IQ2_XXS"),),
            "embedding": (("all", "Q2_K"),),
        },
    ),
    "IQ1_S": (
        "IQ1_S",
        {
            "v": (("shared", "Q4_K"), ("all", "Q2_K")),
            "down": (("8th", "Q2_K"),),
            "o": (("all", "IQ2_XXS"),),
            "embedding": (("all", "Q2_K"),),
        },
    ),
}
MIXTURES: tuple[str, ...] = tuple(_MIXTURES)
# Mixtures whose output projection is Q5_K; all others up to Q8_0 use Q6_K.
_LOW_HEAD = frozenset(
    {"IQ3_XXS", "IQ2_M", "IQ2_S", "IQ2_XS", "IQ2_XXS", "IQ1_M", "IQ1_S"}
)
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
    model: Architecture, layer: Layer, matrix: Matrix, index: int, mixture: str
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


def _widened(model: Architecture, matrix: Matrix, form: str) -> str:
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
