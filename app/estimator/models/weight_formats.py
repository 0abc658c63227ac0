"""Weight formats with scales, GGUF block formats, LoRA parameter counts."""

import collections
import dataclasses
import functools
from collections.abc import Iterator, Mapping
from typing import Any, Literal, NamedTuple

from app.estimator import data_files
from app.estimator.models.architecture import Architecture
from app.estimator.models.checkpoint_quantization import (
    EMBEDDING,
    HEAD,
    MXFP4,
    MXFP8,
    Quantization,
    QuantizationScheme,
    list_checkpoint_names_of_matrix,
)
from app.estimator.models.layers import Layer, WeightMatrix


class MatrixKey(NamedTuple):
    """What equal kinds of matrices have in common across layers."""

    model_part: str
    name: str
    weight_count: int


class QuantizedPart(NamedTuple):
    """The share of a matrix's weights that is quantized [1], and their mean bits."""

    weight_share: float
    mean_bits: float


_NOT_QUANTIZED = QuantizedPart(0.0, 0.0)


@dataclasses.dataclass(frozen=True, slots=True)
class CheckpointBitWidths:
    """Bits of the weights in a checkpoint that mixes formats.

    `main_scheme` is the format of most quantized weights, `mean_bits` the mean over all of them.
    The bits of embeddings, head and n-gram tables are 0 if those are not quantized.
    """

    main_scheme: QuantizationScheme
    label: str
    mean_bits: float
    quantized_part_by_matrix: Mapping[MatrixKey, QuantizedPart]
    embedding_bits: float = 0.0
    head_bits: float = 0.0
    ngram_table_bits: float = 0.0

    def find_quantized_part(self, matrix: WeightMatrix) -> QuantizedPart:
        """Return what is quantized of a matrix, over all layers."""
        return self.quantized_part_by_matrix.get(_key_of_equal_matrices(matrix), _NOT_QUANTIZED)


def published_bit_widths(model: Architecture) -> CheckpointBitWidths | None:
    """Return the weight widths of a published checkpoint; None if it is not quantized."""
    how = model.quantization
    if how is None or how.unsupported_reason:
        return None
    weights: dict[MatrixKey, dict[QuantizationScheme | None, int]] = {}
    for layer, index, number in _indexed_layers(model, how):
        for matrix in layer.matrices:
            counts = weights.setdefault(_key_of_equal_matrices(matrix), collections.Counter())
            counts[_matrix_scheme(how, layer, matrix, index)] += matrix.parameters * number
    embedding, head = (
        _find_embedding_or_head_scheme(how, EMBEDDING),
        _find_embedding_or_head_scheme(how, HEAD),
    )
    totals: collections.Counter[QuantizationScheme] = collections.Counter()
    for counts in weights.values():
        totals.update({s: n for s, n in counts.items() if s is not None})
    for scheme, number in ((embedding, model.embedding_parameters), (head, model.head_parameters)):
        if scheme and number:
            totals[scheme] += number
    # DeepSeek-V4.1 keeps its tables so beside matrices in FP8: transformers,
    # docs/source/en/model_doc/deepseek_v41.md.
    has_tables = model.ngram_table_parameters and any(s.math_format == "fp8" for s in totals)
    tables = MXFP8 if has_tables else None
    if tables:
        totals[tables] += model.ngram_table_parameters
    return _build_checkpoint_widths(weights, totals, embedding, head, tables) if totals else None


def _build_checkpoint_widths(
    weights: Mapping[MatrixKey, Mapping[QuantizationScheme | None, int]],
    totals: collections.Counter[QuantizationScheme],
    embedding: QuantizationScheme | None,
    head: QuantizationScheme | None,
    ngram_tables: QuantizationScheme | None,
) -> CheckpointBitWidths:
    ranked = [scheme for scheme, _ in totals.most_common()]
    bits = sum(s.bits_per_weight * n for s, n in totals.items()) / totals.total()
    return CheckpointBitWidths(
        main_scheme=ranked[0],
        label=" and ".join(dict.fromkeys(scheme.label for scheme in ranked[:3])),
        mean_bits=bits,
        quantized_part_by_matrix={
            key: _quantized_share_and_bits(counts) for key, counts in weights.items()
        },
        embedding_bits=embedding.bits_per_weight if embedding else 0.0,
        head_bits=head.bits_per_weight if head else 0.0,
        ngram_table_bits=ngram_tables.bits_per_weight if ngram_tables else 0.0,
    )


def _quantized_share_and_bits(counts: Mapping[QuantizationScheme | None, int]) -> QuantizedPart:
    narrow = {scheme: number for scheme, number in counts.items() if scheme}
    covered = sum(narrow.values())
    if not covered:
        return _NOT_QUANTIZED
    bits = sum(scheme.bits_per_weight * number for scheme, number in narrow.items())
    return QuantizedPart(covered / sum(counts.values()), bits / covered)


def _key_of_equal_matrices(matrix: WeightMatrix) -> MatrixKey:
    return MatrixKey(matrix.part, matrix.name, matrix.input_width * matrix.output_width)


def _indexed_layers(
    model: Architecture, quantization: Quantization
) -> Iterator[tuple[Layer, str, int]]:
    """Yield a layer, its index or "", and the number of layers like it.

    Equal ones are yielded once if no list names single layers.
    """
    if not any(override.modules.names_single_layers for override in quantization.overrides):
        yield from ((layer, "", number) for layer, number in model.layer_counts)
        return
    yield from ((layer, str(i), 1) for i, layer in enumerate(model.decoder_layers))
    yield from ((layer, "", 1) for layer in model.encoder_layers)


def _matrix_scheme(
    quantization: Quantization, layer: Layer, matrix: WeightMatrix, index: str
) -> QuantizationScheme | None:
    if matrix.part == "router":
        return quantization.main_scheme if quantization.quantized_scope == "everything" else None
    names = list_checkpoint_names_of_matrix(layer, matrix)
    for override in quantization.overrides:
        if override.modules.matches(names, index):
            return override.scheme
    outside = quantization.quantized_scope == "experts" and matrix.part != "experts"
    return None if outside else quantization.main_scheme


def _find_embedding_or_head_scheme(
    quantization: Quantization, names: tuple[str, ...]
) -> QuantizationScheme | None:
    """Return the format of embeddings or head, which few methods quantize."""
    for override in quantization.overrides:
        if override.modules.matches(names):
            return override.scheme
    return quantization.main_scheme if quantization.quantized_scope == "everything" else None


def element_bytes(elements: float, bits: float) -> float:
    """Bytes of `elements` numbers at `bits` each, scales included.

    bytes = elements · bits / 8

    >>> element_bytes(70e9, 16)
    140000000000.0
    """
    return elements * bits / 8


def bits_per_weight_with_group_scales(
    bits_per_value: float, group_size: int, scale_bits: float, zero_bits: float
) -> float:
    """Bits per weight when every group of weights shares a scale and a zero point.

    bits + (scale + zero) / group. From the definition of the format.

    >>> bits_per_weight_with_group_scales(4, 128, 16, 4)
    4.15625
    """
    return bits_per_value + (scale_bits + zero_bits) / group_size


@dataclasses.dataclass(frozen=True, slots=True)
class WeightFormat:
    """A weight format.

    `bits_with_scales` are per covered weight; `covers` says which matrices are covered: all
    tensors, the linear layers, those but linear attention, or only routed experts. `rest` is the
    width of all other tensors. `math` is the format of the multiplication. `scale_block_width`
    outputs share a scale, in blocks of outputs and inputs (0: no such blocks). For a published
    checkpoint that mixes formats, `checkpoint_bit_widths` replaces these values.
    """

    id: str
    label: str
    bits_with_scales: float
    covers: Literal["all", "linear", "calibrated", "experts"] = "linear"
    rest: float = 16.0
    math: str = "bf16"
    scale_description: str = ""
    scale_block_width: int = 0
    checkpoint_bit_widths: CheckpointBitWidths | None = None


def _build_format(row: dict[str, Any]) -> WeightFormat:
    """Build a format from its entry; scales of groups are added to the bits per weight."""
    scales = [row.pop(key, 0) for key in ("group", "scale_bits", "zero_bits")]
    bits_with_scales = (
        bits_per_weight_with_group_scales(row.pop("bits"), *scales)
        if scales[0]
        else row.pop("bits")
    )
    return WeightFormat(bits_with_scales=bits_with_scales, **row)


_FORMAT_TABLES = data_files.load_toml("formats.toml")
FORMATS: dict[str, WeightFormat] = {
    row["id"]: _build_format({**row}) for row in _FORMAT_TABLES["format"]
}
WEIGHT_CHOICES = tuple((each.id, each.label) for each in FORMATS.values())
PUBLISHED = "published"
"""Choice of weights: the format of the published checkpoint, BF16 if not quantized."""
PUBLISHED_OR_FP8 = "published-or-fp8"
"""Choice of weights: the same, but FP8 if the checkpoint is not quantized."""
PUBLISHED_CHOICES = ((PUBLISHED, "As published"), *WEIGHT_CHOICES)
# The registry replaces `published` by what the model's checkpoint asks for, BF16 without one.
CACHE_BITS: dict[str, float] = {
    PUBLISHED: 16,
    **{row["id"]: row["bits"] for row in _FORMAT_TABLES["cache"]},
}
GGUF_CACHES = ("q8-0", "q4-0")
CACHE_CHOICES = (
    (PUBLISHED, "As published"),
    *((row["id"], row["label"]) for row in _FORMAT_TABLES["cache"]),
)


@dataclasses.dataclass(frozen=True, slots=True)
class WeightBytesBySplit:
    """Bytes of a model in one format, by how tensor parallelism divides them.

    `bytes_by_kv_heads` are split down to one head, by the number of heads; `replicated_bytes`
    are on every GPU; `expert_bytes` are a part of `divided_bytes`, which are split evenly, and
    so is `tower_bytes`, that of a vision tower. `quantized_weight_count` counts the weights that the format covers.
    """

    divided_bytes: float
    bytes_by_kv_heads: Mapping[int, float]
    replicated_bytes: float
    expert_bytes: float
    quantized_weight_count: int
    tower_bytes: float

    @property
    def total_bytes(self) -> float:
        by_heads = sum(self.bytes_by_kv_heads.values())
        return self.divided_bytes + self.replicated_bytes + by_heads

    def bytes_per_gpu(self, tensor_parallel: int) -> float:
        by_heads = sum(b / min(tensor_parallel, n) for n, b in self.bytes_by_kv_heads.items())
        return self.divided_bytes / tensor_parallel + by_heads + self.replicated_bytes


def replace_published_or_fp8_format(model: Architecture, format_name: str) -> str:
    """Return what the default of serving stands for; other formats as they are."""
    if format_name != PUBLISHED_OR_FP8:
        return format_name
    return PUBLISHED if model.quantization else "fp8"


@functools.lru_cache(maxsize=1024)
def find_weight_format(model: Architecture, format_name: str) -> WeightFormat:
    """Return the format called `format_name`; for `published` that of the model's checkpoint.

    Its name means the checkpoint too, which may leave out layers.

    BF16 if the checkpoint is not quantized, or in an unsupported way;
    `published-or-fp8` is FP8 if it is not quantized. A GGUF mixture has its mean bits.

    >>> from app.estimator.models.lookup import find_model
    >>> find_weight_format(find_model("gpt-oss-120b"), "published").label
    'MXFP4 experts, the rest BF16'
    >>> find_weight_format(find_model("llama-2-7b"), "published").label
    'BF16'
    """
    format_name = replace_published_or_fp8_format(model, format_name)
    if format_name in GGUF_FORMATS:
        mixture = GGUF_FORMATS[format_name]
        bits = 8 * gguf_file_bytes(model, mixture) / model.parameters
        return WeightFormat(format_name, f"GGUF {mixture}", bits, covers="all")
    published = _published_format(model)
    if format_name in (PUBLISHED, published.id):
        return published
    return FORMATS[format_name]


def build_published_format_clause(model: Architecture, rejected_format: str) -> str:
    """Return a clause about the rejected format of a checkpoint; empty if it was chosen itself."""
    if rejected_format in FORMATS or model.quantization is None:
        return ""
    return f", in which {model.name} is published: choose another format of weights"


@functools.lru_cache(maxsize=512)
def _published_format(model: Architecture) -> WeightFormat:
    """Return the format of a checkpoint: an equal one from the catalog if there is one."""
    widths = published_bit_widths(model)
    if widths is None:
        return FORMATS["bf16"]
    most = widths.main_scheme
    same = next((f for f in FORMATS.values() if _has_same_widths(f, widths, model)), None)
    return same or WeightFormat(
        id=most.nearest_format_id,
        label=widths.label,
        bits_with_scales=widths.mean_bits,
        math=most.math_format,
        scale_description=most.scale_description,
        scale_block_width=most.outputs_per_scale_block,
        checkpoint_bit_widths=widths,
    )


def _has_same_widths(form: WeightFormat, widths: CheckpointBitWidths, model: Architecture) -> bool:
    if form.math != widths.main_scheme.math_format or widths.embedding_bits or widths.head_bits:
        return False
    if abs(form.bits_with_scales - widths.mean_bits) > 1e-9:
        return False
    return all(
        widths.find_quantized_part(matrix).weight_share == float(is_mostly_in_format(form, matrix))
        for layer, _ in model.layer_counts
        for matrix in layer.matrices
    )


@functools.lru_cache(maxsize=1024)
def weight_bytes_by_split(model: Architecture, format_name: str) -> WeightBytesBySplit:
    """Return the bytes of `model` in the format called `format_name`.

    A vision tower has the width of unquantized tensors, as in published checkpoints, and is
    divided like matrices, which is the default of vLLM and SGLang. A GGUF file is divided
    evenly, and its vision tower is a file of its own.
    """
    if format_name in GGUF_FORMATS:
        size = gguf_file_bytes(model, GGUF_FORMATS[format_name])
        return WeightBytesBySplit(size, {}, 0.0, 0.0, model.parameters, 0.0)
    form = find_weight_format(model, format_name)
    divided, quantized = _compute_embedding_and_tower_bytes(model, form)
    copied, experts = 0.0, 0.0
    by_heads: dict[int, float] = {}
    vectors = model.other + model.learned_positions * model.hidden
    for layer, number in model.layer_counts:
        vectors += layer.vector_parameters * number
        for matrix in layer.matrices:
            count = matrix.parameters * number
            size = element_bytes(count, mean_matrix_bits(form, matrix))
            quantized += count * quantized_share(form, matrix)
            if matrix.tensor_parallel_split == "whole":
                copied += size
            elif matrix.tensor_parallel_split == "heads":
                heads = max(1, layer.mixer.kv_heads)
                by_heads[heads] = by_heads.get(heads, 0.0) + size
            else:
                divided += size
                experts += size if matrix.part == "experts" else 0.0
    copied += element_bytes(vectors, form.rest)
    return WeightBytesBySplit(
        divided_bytes=divided,
        bytes_by_kv_heads=by_heads,
        replicated_bytes=copied,
        expert_bytes=experts,
        quantized_weight_count=round(quantized),
        tower_bytes=element_bytes(model.tower_parameters, form.rest),
    )


def _compute_embedding_and_tower_bytes(
    model: Architecture, form: WeightFormat
) -> tuple[float, float]:
    """Return bytes of embeddings, head and tower, and how many of their weights are quantized."""
    rows = model.embedding_parameters + model.head_parameters
    wide = model.per_layer_embedding_parameters + model.tower_parameters
    if form.checkpoint_bit_widths is None:
        wide += model.ngram_table_parameters
        return element_bytes(rows + wide, form.rest), 0.0
    size, covered = element_bytes(wide, form.rest), 0.0
    bits_of_tables = form.checkpoint_bit_widths.ngram_table_bits
    for count, bits in (
        (model.ngram_table_parameters, bits_of_tables),
        (model.embedding_parameters, form.checkpoint_bit_widths.embedding_bits),
        (model.head_parameters, form.checkpoint_bit_widths.head_bits),
    ):
        size += element_bytes(count, bits or form.rest)
        covered += count if bits else 0.0
    return size, covered


def weight_bytes_per_gpu(
    model: Architecture, format_name: str, gpus: int, gpus_sharing_experts: int | None = None
) -> float:
    """Return the bytes of `model` in the format called `format_name` on one of `gpus` GPUs.

    `gpus_sharing_experts` GPUs have whole routed experts, if more than share the rest.
    """
    size = weight_bytes_by_split(model, format_name)
    dense = size.bytes_per_gpu(gpus) - size.expert_bytes / gpus
    if gpus_sharing_experts in (None, gpus):
        return dense + size.expert_bytes / gpus
    return dense + size.expert_bytes * share_of_whole_experts(model, gpus_sharing_experts)


def share_of_whole_experts(model: Architecture, gpus: int) -> float:
    """Return the part of a model's experts on the fullest of `gpus` GPUs, which have whole ones [1].

    >>> from app.estimator.models.lookup import find_model
    >>> share_of_whole_experts(find_model("deepseek-v3"), 48) * 256
    6.0
    """
    if not model.is_routed:
        return 1 / gpus
    return (model.experts + count_redundant_experts(model, gpus)) / gpus / model.experts


def count_redundant_experts(model: Architecture, gpus: int) -> int:
    """Return the copies with which each of `gpus` GPUs has as many whole experts of a layer.

    >>> from app.estimator.models.lookup import find_model
    >>> [count_redundant_experts(find_model("deepseek-v3"), n) for n in (32, 37, 48, 72)]
    [0, 3, 32, 32]
    """
    return -model.experts % gpus


def quantized_share(form: WeightFormat, matrix: WeightMatrix) -> float:
    """Return the covered share of a matrix's weights, over all layers [1].

    Routers are never quantized, and calibrated recipes leave out linear attention.
    """
    if form.checkpoint_bit_widths is not None:
        return form.checkpoint_bit_widths.find_quantized_part(matrix).weight_share
    if form.covers == "all":
        return 1.0
    if matrix.part == "router":
        return 0.0
    if form.covers == "experts":
        return float(matrix.part == "experts")
    return float(form.covers == "linear" or matrix.part != "linear attention")


def mean_matrix_bits(form: WeightFormat, matrix: WeightMatrix) -> float:
    """Return the mean bits of a matrix's weights, over the layers that have it."""
    share = quantized_share(form, matrix)
    bits = (
        form.bits_with_scales
        if form.checkpoint_bit_widths is None
        else form.checkpoint_bit_widths.find_quantized_part(matrix).mean_bits
    )
    return share * bits + (1 - share) * form.rest


def is_mostly_in_format(form: WeightFormat, matrix: WeightMatrix) -> bool:
    return quantized_share(form, matrix) > 0.5


_GGUF_TABLES = data_files.load_toml("gguf.toml")
# Bits per weight of each block format, including scales.
BLOCK_BITS: dict[str, float] = _GGUF_TABLES["bits"]
# Fallback formats for rows whose length is not a multiple of 256 weights.
_GGUF_FALLBACK_BY_FORMAT: dict[str, str] = _GGUF_TABLES["fallback"]


class GgufRule(NamedTuple):
    """The block format of the layers for which a condition holds."""

    condition: str
    block_format: str


class GgufMixture(NamedTuple):
    """The usual block format, and by role the rules for others in the order of their trial."""

    default_block_format: str
    rules_by_matrix_role: Mapping[str, list[GgufRule]]


MIXTURES = {
    name: GgufMixture(
        row["usual"],
        {role: [GgufRule(*r) for r in rules] for role, rules in row.get("rules", {}).items()},
    )
    for name, row in _GGUF_TABLES["mixtures"].items()
}
GGUF_FORMATS = {f"gguf-{name.lower().replace('_', '-')}": name for name in MIXTURES}
"""Ids of the choices that are GGUF mixtures, with their names."""
GGUF_CHOICES = tuple((key, f"GGUF {name}") for key, name in GGUF_FORMATS.items())
USUAL_GGUF = "gguf-q4-k-m"
MXFP4_GGUF = "gguf-mxfp4-moe"


def usual_gguf_format_id(model: Architecture) -> str:
    """Return the file of a model that llama.cpp and Ollama usually load.

    >>> from app.estimator.models.lookup import find_model
    >>> usual_gguf_format_id(find_model("gpt-oss-20b")), usual_gguf_format_id(find_model("llama-3-8b"))
    ('gguf-mxfp4-moe', 'gguf-q4-k-m')
    """
    return MXFP4_GGUF if _published_format(model).math == "mxfp4" else USUAL_GGUF


# Mixtures whose output projection is Q5_K; all others up to Q8_0 use Q6_K.
_LOW_HEAD = frozenset({"IQ3_XXS", "IQ2_M", "IQ2_S", "IQ2_XS", "IQ2_XXS", "IQ1_M", "IQ1_S"})
_WIDE_GGUF_TYPES = frozenset({"F32", "F16", "BF16", "Q8_0"})
_MXFP4_EXPERTS = "MXFP4_MOE"
# Models with 8 experts have wider keys and values, and an output projection at Q5_K.
_EIGHT_EXPERTS = 8


def gguf_file_bytes(model: Architecture, mixture_name: str) -> float:
    """Bytes of the tensors of a GGUF file in a mixture such as `Q4_K_M`.

    Each matrix is stored in the block format that llama.cpp picks for its role and
    layer without an importance matrix; vectors and routers are FP32. Experts that are
    published in MXFP4 stay in it, as its converter writes them.
    From llama.cpp, quantize. Raises KeyError for an unknown mixture.
    """
    usual = MIXTURES[mixture_name].default_block_format
    total = _gguf_embedding_and_head_bytes(model, mixture_name)
    table_bits = _gguf_bits_per_weight(usual, model.hidden)
    total += element_bytes(model.ngram_table_parameters, table_bits)
    vectors = model.other + model.learned_positions * model.hidden
    wide = BLOCK_BITS["F32"]
    for index, layer in enumerate(model.decoder_layers):
        vectors += layer.vector_parameters
        for matrix in layer.matrices:
            if matrix.part == "router" and usual != "F32":
                total += element_bytes(matrix.parameters, wide)
            else:
                form = _gguf_matrix_format(model, layer, matrix, index, mixture_name)
                total += element_bytes(
                    matrix.parameters, _gguf_bits_per_weight(form, matrix.input_width)
                )
    return total + element_bytes(vectors, wide)


def _gguf_embedding_and_head_bytes(model: Architecture, mixture: str) -> float:
    usual, rules = MIXTURES[mixture]
    head = usual if usual in _WIDE_GGUF_TYPES else "Q5_K" if mixture in _LOW_HEAD else "Q6_K"
    head_bits = _gguf_bits_per_weight(head, model.hidden)
    if model.tied:
        return element_bytes(model.embedding_parameters, head_bits)
    table = next((rule.block_format for rule in rules.get("embedding", ())), usual)
    table_bits = _gguf_bits_per_weight(table, model.hidden)
    return element_bytes(model.embedding_parameters, table_bits) + element_bytes(
        model.head_parameters, head_bits
    )


def _gguf_bits_per_weight(block_format: str, row_length: int) -> float:
    """Return the bits of a format for rows of this length, or of its fallback."""
    if block_format in _GGUF_FALLBACK_BY_FORMAT and row_length % 256:
        block_format = _GGUF_FALLBACK_BY_FORMAT[block_format] if row_length % 32 == 0 else "F16"
    elif block_format not in _WIDE_GGUF_TYPES and row_length % 32:
        block_format = "F16"
    return BLOCK_BITS[block_format]


def _gguf_matrix_format(
    model: Architecture, layer: Layer, matrix: WeightMatrix, index: int, mixture: str
) -> str:
    usual, rules = MIXTURES[mixture]
    if matrix.part == "experts":
        how = model.quantization
        scheme = (
            _matrix_scheme(how, layer, matrix, str(index))
            if how and not how.unsupported_reason
            else None
        )
        if mixture == _MXFP4_EXPERTS or scheme == MXFP4:
            return "MXFP4"
    holding = (
        rule.block_format
        for rule in rules.get(matrix.name, ())
        if _does_gguf_condition_hold(rule.condition, index, model, layer)
    )
    block_format = next(holding, usual)
    return (
        block_format
        if usual in _WIDE_GGUF_TYPES
        else _apply_gguf_exceptions(model, matrix, block_format)
    )


def _apply_gguf_exceptions(model: Architecture, matrix: WeightMatrix, block_format: str) -> str:
    """Return the format with the exceptions for 70B shapes and for 8 experts."""
    seventy = model.layers == 80 and model.kv_heads < model.heads
    if matrix.name == "v" and seventy and block_format in {"Q3_K", "Q4_K"}:
        block_format = "Q5_K"
    if model.experts == _EIGHT_EXPERTS and matrix.name in {"k", "v"}:
        return "Q8_0"
    narrow = block_format in {"Q2_K", "Q3_K", "Q4_K", "IQ4_NL", "IQ4_XS", "IQ3_S", "IQ3_XXS"}
    if model.experts == _EIGHT_EXPERTS and matrix.name == "o" and narrow:
        return "Q5_K"
    return block_format


def _does_gguf_condition_hold(
    condition: str, layer_index: int, model: Architecture, layer: Layer
) -> bool:
    count = model.layers
    eighth = count // 8
    early_or_late = layer_index < eighth or layer_index >= 7 * count // 8
    mixer = layer.mixer
    conditions = {
        "all": True,
        "more": early_or_late or (layer_index - eighth) % 3 == 2,
        "8th": layer_index < eighth,
        "16th": layer_index < count // 16,
        "two": layer_index < 2,
        "four": layer_index < 4,
        "middle": not early_or_late,
        "shared": mixer.heads >= 4 * max(1, mixer.kv_heads) or model.experts >= 4,
    }
    return conditions[condition]


_ALL_LINEAR = ("q", "k", "v", "o", "gate", "up", "down")
_ATTENTION_NAMES = ("k", "v", "q_a", "q_b", "kv_a", "kv_b", "in", "x", "dt", "out")
# Names in adapter libraries, and the matrices they refer to.
_MATRICES_BY_TARGET_NAME: dict[str, tuple[str, ...]] = {
    **{name: (name,) for name in (*_ATTENTION_NAMES, "gate", "up", "down", "router")},
    "q": ("q", "q_b"),
    "o": ("o", "out"),
    "fc1": ("up",),
    "fc2": ("down",),
}
_MATRICES_BY_FUSED_NAME: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("qkv", "query_key_value", "c_attn"), ("q", "k", "v")),
    "attention": ("q", "k", "v", "o"),
    "mlp": ("gate", "up", "down"),
    **dict.fromkeys(("all", "all-linear"), _ALL_LINEAR),
}


def parameters_of_low_rank_adapter(inputs: float, outputs: float, rank: float) -> float:
    """Parameters of one adapter: r · (in + out). From Hu (2021).

    >>> parameters_of_low_rank_adapter(4096, 4096, 8)
    65536
    """
    return rank * (inputs + outputs)


def adapter_parameters(model: Architecture, rank: int, target_matrices: tuple[str, ...]) -> float:
    """Trainable parameters of adapters on all layers of `model`.

    `target_matrices` are names such as q, v, gate or q_proj; unknown ones raise
    LookupError. Every routed expert has adapters.
    """
    names = {name for target in target_matrices for name in _list_adapted_matrix_names(target)}
    return sum(
        number
        * matrix.copies
        * parameters_of_low_rank_adapter(matrix.input_width, matrix.output_width, rank)
        for layer, number in model.layer_counts
        for matrix in layer.matrices
        if matrix.name in names
    )


def _list_adapted_matrix_names(target: str) -> tuple[str, ...]:
    word = target.strip().lower().removesuffix("_proj")
    found = [
        n
        for part in _MATRICES_BY_FUSED_NAME.get(word, (word,))
        for n in _MATRICES_BY_TARGET_NAME.get(part, ())
    ]
    if not found:
        raise LookupError(f"adapter target “{target}” is not known")
    return tuple(found)


# vLLM's Marlin kernel for experts requires outputs in multiples of 256 and inputs in
# multiples of 128; gate and up projection are one product.
_MARLIN_OUTPUT_MULTIPLE, _MARLIN_INPUT_MULTIPLE = 256, 128


def mxfp4_expert_padding_bytes(
    model: Architecture, form: WeightFormat, gpus_per_expert: int = 1
) -> float:
    """Bytes that padding adds to all MXFP4 experts of a model [B].

    Each expert is divided over `gpus_per_expert` GPUs. Both widths of its matrices are rounded
    up: h to a multiple of 256, f ÷ parts to one of 128.

    >>> from app.estimator.models.lookup import find_model
    >>> model, form = find_model("gpt-oss-120b"), FORMATS["mxfp4-experts"]
    >>> round(mxfp4_expert_padding_bytes(model, form) / 1e9, 2)
    5.5
    """
    if form.math != "mxfp4":
        return 0.0
    return sum(
        element_bytes(matrix.parameters * number, mean_matrix_bits(form, matrix))
        * (_padded_size_ratio(matrix, gpus_per_expert) - 1)
        for layer, number in model.layer_counts
        for matrix in layer.mlp.matrices
        if matrix.part == "experts" and quantized_share(form, matrix)
    )


def _padded_size_ratio(matrix: WeightMatrix, gpus: int) -> float:
    """Return the size of an expert's matrix with padding, over the size without [1]."""
    hidden, width = matrix.input_width, matrix.output_width
    if matrix.tensor_parallel_split == "rows":
        hidden, width = width, hidden
    each = -(-width // gpus)
    padded = (
        _round_up_to(hidden, _MARLIN_OUTPUT_MULTIPLE)
        * _round_up_to(each, _MARLIN_INPUT_MULTIPLE)
        * gpus
    )
    return padded / (hidden * width)


def _round_up_to(number: int, step: int) -> int:
    return -(-number // step) * step
