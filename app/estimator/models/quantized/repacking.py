"""What kernels add to 4-bit experts when they repack them for 16-bit products."""

from app.estimator.models.architecture import Architecture
from app.estimator.models.formats import WeightFormat, bytes_of, matrix_bits, share_of
from app.estimator.models.layers import WeightMatrix

# Marlin's product of experts in vLLM takes outputs in multiples of 256 and inputs in
# multiples of 128; a gate and an up projection are one product.
_OUTPUTS, _INPUTS = 256, 128


def padding_bytes(model: Architecture, form: WeightFormat, parts: int = 1) -> float:
    """Bytes that padding adds to all MXFP4 experts of a model [B].

    Each expert is divided over `parts` GPUs. Both widths of its matrices are rounded
    up: h to a multiple of 256, f ÷ parts to one of 128.

    >>> from app.estimator.models.formats import FORMATS
    >>> from app.estimator.models.lookup import find_model
    >>> model, form = find_model("gpt-oss-120b"), FORMATS["mxfp4-experts"]
    >>> round(padding_bytes(model, form) / 1e9, 2)
    5.5
    """
    if form.math != "mxfp4":
        return 0.0
    return sum(
        bytes_of(matrix.parameters * number, matrix_bits(form, matrix))
        * (_growth(matrix, parts) - 1)
        for layer, number in model.runs
        for matrix in layer.mlp.matrices
        if matrix.part == "experts" and share_of(form, matrix)
    )


def _growth(matrix: WeightMatrix, parts: int) -> float:
    """A matrix of an expert with padding, over the matrix without [1]."""
    hidden, width = matrix.inputs, matrix.outputs
    if matrix.split == "rows":
        hidden, width = width, hidden
    each = -(-width // parts)
    padded = _rounded_up(hidden, _OUTPUTS) * _rounded_up(each, _INPUTS) * parts
    return padded / (hidden * width)


def _rounded_up(number: int, step: int) -> int:
    return -(-number // step) * step
