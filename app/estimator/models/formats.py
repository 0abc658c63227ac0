"""Number formats of weights and caches, with the bytes of their scales."""

import dataclasses
import functools
from typing import Any, Literal

from app.estimator import catalogue
from app.estimator.models.architecture import Architecture
from app.estimator.models.layers import Matrix


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
class Format:
    """A format of weights.

    `bits` per weight that is covered, with scales; `covers` says which matrices
    are: all tensors, the linear layers, or only routed experts. `rest` is the
    width of all other tensors. `math` is the format of the multiplication.
    """

    id: str
    label: str
    bits: float
    covers: Literal["all", "linear", "experts"] = "linear"
    rest: float = 16.0
    math: str = "bf16"
    scale: str = ""


def _format(row: dict[str, Any]) -> Format:
    """A format of the file; its groups add their scales to the bits of a weight."""
    scales = [row.pop(key, 0) for key in ("group", "scale_bits", "zero_bits")]
    bits = grouped_bits(row.pop("bits"), *scales) if scales[0] else row.pop("bits")
    return Format(bits=bits, **row)


_WORDS = catalogue.words("formats.toml")
FORMATS: dict[str, Format] = {row["id"]: _format({**row}) for row in _WORDS["format"]}
WEIGHT_CHOICES = tuple((each.id, each.label) for each in FORMATS.values())
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


@functools.lru_cache(maxsize=4096)
def weight_table(model: Architecture, name: str) -> WeightTable:
    """The bytes of `model` in the format called `name`.

    A vision tower keeps the width of what is not quantized, as published checkpoints
    do, and is divided as matrices are, which is the default of vLLM and SGLang.
    """
    form = FORMATS[name]
    rows = model.embedding_parameters + model.head_parameters + model.side_tables
    wide = bytes_of(rows + model.tower_parameters, form.rest)
    divided, copied, experts, quantized = wide, 0.0, 0.0, 0
    by_heads: dict[int, float] = {}
    vectors = model.other + model.positions * model.hidden
    for layer, number in model.runs:
        vectors += layer.vectors * number
        for matrix in layer.matrices:
            covered = covers(form, matrix)
            count = matrix.parameters * number
            size = bytes_of(count, form.bits if covered else form.rest)
            quantized += count if covered else 0
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
        quantized=quantized,
        tower=bytes_of(model.tower_parameters, form.rest),
    )


@functools.lru_cache(maxsize=8192)
def gpu_weights(
    model: Architecture, name: str, gpus: int, over: int | None = None
) -> float:
    """Bytes of `model` in the format called `name` on one of `gpus` GPUs.

    `over` GPUs share the routed experts, where they are more than share the rest.
    """
    table = weight_table(model, name)
    return table.per_gpu(gpus) - table.experts / gpus + table.experts / (over or gpus)


def covers(form: Format, matrix: Matrix) -> bool:
    """Whether the format applies to a matrix; routers keep their precision."""
    if form.covers == "all":
        return True
    if matrix.part == "router":
        return False
    return form.covers == "linear" or matrix.part == "experts"
