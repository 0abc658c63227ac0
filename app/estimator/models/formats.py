"""Number formats of weights and caches, with the bytes of their scales."""

import dataclasses
import functools
from typing import Literal

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


_LISTED = (
    Format("bf16", "BF16", 16, "all"),
    Format("fp16", "FP16", 16, "all", math="fp16"),
    Format("fp32", "FP32", 32, "all", rest=32, math="fp32"),
    Format("fp8", "FP8", 8, math="fp8", scale="one FP32 scale per tensor"),
    Format(
        "fp8-block",
        "FP8 in blocks of 128×128",
        8 + 32 / 128**2,
        math="fp8",
        scale="FP32 scale per block of 128×128",
    ),
    Format("mxfp8", "MXFP8", 8.25, math="fp8", scale="8-bit scale per 32"),
    Format("int8", "INT8 (W8A8)", 8, math="int8", scale="one scale per channel"),
    Format(
        "gptq-int8",
        "GPTQ INT8, groups of 128",
        grouped_bits(8, 128, 16, 8),
        scale="16-bit scale and 8-bit zero per 128",
    ),
    Format(
        "int4",
        "INT4, groups of 128",
        grouped_bits(4, 128, 16, 0),
        scale="16-bit scale per 128",
    ),
    Format(
        "awq-int4",
        "AWQ INT4, groups of 128",
        grouped_bits(4, 128, 16, 4),
        math="fp16",
        scale="16-bit scale and 4-bit zero per 128",
    ),
    Format(
        "gptq-int4",
        "GPTQ INT4, groups of 128",
        grouped_bits(4, 128, 16, 4),
        math="fp16",
        scale="16-bit scale and 4-bit zero per 128",
    ),
    Format(
        "gptq-int4-g32",
        "GPTQ INT4, groups of 32",
        grouped_bits(4, 32, 16, 4),
        math="fp16",
        scale="16-bit scale and 4-bit zero per 32",
    ),
    Format("nf4", "NF4", 4.5, scale="FP32 scale per 64"),
    Format(
        "nf4-double",
        "NF4, double quantized",
        4 + 8 / 64 + 32 / (64 * 256),
        scale="8-bit scale per 64, FP32 per 256 scales",
    ),
    Format("mxfp4", "MXFP4", 4.25, math="mxfp4", scale="8-bit scale per 32"),
    Format(
        "mxfp4-experts",
        "MXFP4 experts, the rest BF16",
        4.25,
        "experts",
        math="mxfp4",
        scale="8-bit scale per 32",
    ),
    Format("nvfp4", "NVFP4", 4.5, math="nvfp4", scale="8-bit scale per 16"),
)
FORMATS: dict[str, Format] = {f.id: f for f in _LISTED}
WEIGHT_CHOICES: tuple[tuple[str, str], ...] = tuple((f.id, f.label) for f in _LISTED)

CACHE_BITS: dict[str, float] = {
    "fp16": 16,
    "bf16": 16,
    "fp32": 32,
    "fp8": 8,
    "int8": 8,
    "int4": 4,
}
CACHE_CHOICES: tuple[tuple[str, str], ...] = (
    ("bf16", "BF16"),
    ("fp16", "FP16"),
    ("fp8", "FP8"),
    ("int8", "INT8"),
    ("int4", "INT4"),
    ("fp32", "FP32"),
)


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
