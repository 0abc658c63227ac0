"""Number formats of weights and caches, with the bytes of their scales."""

import dataclasses
import functools
from typing import Any, Literal

from app.estimator import catalogue
from app.estimator.models.architecture import Architecture
from app.estimator.models.layers import WeightMatrix
from app.estimator.models.quantized.published import Widths, published_widths


def bytes_of(elements: float, bits: float) -> float:
    """Bytes of `elements` numbers at `bits` each, scales included.

    bytes = elements · bits / 8

    >>> bytes_of(70e9, 16)
    140000000000.0
    """
    return elements * bits / 8


def grouped_bits(bits: float, group: int, scale_bits: float, zero_bits: float) -> float:
    """Bits per weight when every group of weights shares a scale and a zero point.

    bits + (scale + zero) / group. Source: the definition of the format.

    >>> grouped_bits(4, 128, 16, 4)
    4.15625
    """
    return bits + (scale_bits + zero_bits) / group


@dataclasses.dataclass(frozen=True, slots=True)
class WeightFormat:
    """A format of weights.

    `bits` per weight that is covered, with scales; `covers` says which matrices
    are: all tensors, the linear layers, or only routed experts. `rest` is the
    width of all other tensors. `math` is the format of the multiplication.
    `widths` hold instead where a published checkpoint mixes formats.
    """

    id: str
    label: str
    bits: float
    covers: Literal["all", "linear", "experts"] = "linear"
    rest: float = 16.0
    math: str = "bf16"
    scale: str = ""
    widths: Widths | None = None


def _format(row: dict[str, Any]) -> WeightFormat:
    """A format of the file; its groups add their scales to the bits of a weight."""
    scales = [row.pop(key, 0) for key in ("group", "scale_bits", "zero_bits")]
    bits = grouped_bits(row.pop("bits"), *scales) if scales[0] else row.pop("bits")
    return WeightFormat(bits=bits, **row)


_WORDS = catalogue.load_toml("formats.toml")
FORMATS: dict[str, WeightFormat] = {row["id"]: _format({**row}) for row in _WORDS["format"]}
WEIGHT_CHOICES = tuple((each.id, each.label) for each in FORMATS.values())
PUBLISHED = "published"
"""The choice of weights as the model is published: BF16 where it is not quantized."""
PUBLISHED_OR_FP8 = "published-or-fp8"
"""The same, but FP8 where it is not quantized."""
PUBLISHED_CHOICES = ((PUBLISHED, "As published"), *WEIGHT_CHOICES)
CACHE_BITS: dict[str, float] = {row["id"]: row["bits"] for row in _WORDS["cache"]}
CACHE_CHOICES = tuple((row["id"], row["label"]) for row in _WORDS["cache"])


@dataclasses.dataclass(frozen=True, slots=True)
class WeightTable:
    """Bytes of a model in one format, by what tensor parallelism does to them.

    `divided` is split evenly; `by_heads` holds (bytes, KV heads) pairs that split
    down to one head; `copied` lies whole on every GPU; `experts` is the routed
    part of `divided`, `tower` that of a vision tower. `quantized` counts the weights
    that the format covers.
    """

    divided: float
    by_heads: tuple[tuple[float, int], ...]
    copied: float
    experts: float
    quantized: int
    tower: float

    @property
    def total(self) -> float:
        """All of them."""
        return self.divided + self.copied + sum(size for size, _ in self.by_heads)

    def per_gpu(self, tensor_parallel: int) -> float:
        """Bytes on one of `tensor_parallel` GPUs."""
        heads = sum(b / min(tensor_parallel, n) for b, n in self.by_heads)
        return self.divided / tensor_parallel + heads + self.copied


def format_of(model: Architecture, name: str) -> WeightFormat:
    """The format called `name`; for `published` that of the model's checkpoint.

    BF16 where the checkpoint is not quantized, or in a way that cannot be read;
    `published-or-fp8` is FP8 where it is not quantized.

    >>> from app.estimator.models.lookup import find_model
    >>> format_of(find_model("gpt-oss-120b"), "published").label
    'MXFP4 experts, the rest BF16'
    >>> format_of(find_model("llama-2-7b"), "published").label
    'BF16'
    """
    if name == PUBLISHED_OR_FP8:
        name = PUBLISHED if model.quantization else "fp8"
    return _published(model) if name == PUBLISHED else FORMATS[name]


def published_hint(model: Architecture, name: str) -> str:
    """Add to a refused format where it comes from, if nobody chose it."""
    if name in FORMATS or model.quantization is None:
        return ""
    return f", in which {model.name} is published: choose another format of weights"


@functools.lru_cache(maxsize=256)
def _published(model: Architecture) -> WeightFormat:
    """The format of a checkpoint: one of the catalog where it is exactly that."""
    widths = published_widths(model)
    if widths is None:
        return FORMATS["bf16"]
    most = widths.scheme
    same = next((f for f in FORMATS.values() if _is_same(f, widths, model)), None)
    return same or WeightFormat(
        id=most.id,
        label=widths.label,
        bits=widths.bits,
        math=most.math,
        scale=most.scale,
        widths=widths,
    )


def _is_same(form: WeightFormat, widths: Widths, model: Architecture) -> bool:
    """Whether a format of the catalog has just these widths."""
    if form.math != widths.scheme.math or widths.embedding or widths.head:
        return False
    if abs(form.bits - widths.bits) > 1e-9:
        return False
    return all(
        widths.share(matrix) == float(covers(form, matrix))
        for layer, _ in model.runs
        for matrix in layer.matrices
    )


@functools.lru_cache(maxsize=4096)
def weight_table(model: Architecture, name: str) -> WeightTable:
    """The bytes of `model` in the format called `name`.

    A vision tower keeps the width of what is not quantized, as published checkpoints
    do, and is divided as matrices are, which is the default of vLLM and SGLang.
    """
    form = format_of(model, name)
    divided, quantized = _tables(model, form)
    copied, experts = 0.0, 0.0
    by_heads: dict[int, float] = {}
    vectors = model.other + model.positions * model.hidden
    for layer, number in model.runs:
        vectors += layer.vectors * number
        for matrix in layer.matrices:
            count = matrix.parameters * number
            size = bytes_of(count, matrix_bits(form, matrix))
            quantized += count * share_of(form, matrix)
            if matrix.split == "whole":
                copied += size
            elif matrix.split == "heads":
                heads = max(1, layer.mixer.kv_heads)
                by_heads[heads] = by_heads.get(heads, 0.0) + size
            else:
                divided += size
                experts += size if matrix.part == "experts" else 0.0
    copied += bytes_of(vectors, form.rest)
    return WeightTable(
        divided=divided,
        by_heads=tuple((size, heads) for heads, size in by_heads.items()),
        copied=copied,
        experts=experts,
        quantized=round(quantized),
        tower=bytes_of(model.tower_parameters, form.rest),
    )


def _tables(model: Architecture, form: WeightFormat) -> tuple[float, float]:
    """Bytes of embeddings, head and tower, and the weights of them in the format."""
    rows = model.embedding_parameters + model.head_parameters
    wide = model.side_tables + model.tower_parameters
    if form.widths is None:
        return bytes_of(rows + wide, form.rest), 0.0
    size, covered = bytes_of(wide, form.rest), 0.0
    for count, bits in (
        (model.embedding_parameters, form.widths.embedding),
        (model.head_parameters, form.widths.head),
    ):
        size += bytes_of(count, bits or form.rest)
        covered += count if bits else 0.0
    return size, covered


@functools.lru_cache(maxsize=8192)
def gpu_weights(model: Architecture, name: str, gpus: int, over: int | None = None) -> float:
    """Bytes of `model` in the format called `name` on one of `gpus` GPUs.

    `over` GPUs share the routed experts, where they are more than share the rest.
    """
    table = weight_table(model, name)
    return table.per_gpu(gpus) - table.experts / gpus + table.experts / (over or gpus)


def share_of(form: WeightFormat, matrix: WeightMatrix) -> float:
    """The share of the weights of a matrix, over all layers, in the format [1].

    Routers keep their precision.
    """
    if form.widths is not None:
        return form.widths.share(matrix)
    if form.covers == "all":
        return 1.0
    if matrix.part == "router":
        return 0.0
    return float(form.covers == "linear" or matrix.part == "experts")


def matrix_bits(form: WeightFormat, matrix: WeightMatrix) -> float:
    """Bits of a weight of a matrix, on average over the layers that have it."""
    share = share_of(form, matrix)
    bits = form.bits if form.widths is None else form.widths.bits_of(matrix)
    return share * bits + (1 - share) * form.rest


def covers(form: WeightFormat, matrix: WeightMatrix) -> bool:
    """Whether the format applies to most of a matrix."""
    return share_of(form, matrix) > 0.5
