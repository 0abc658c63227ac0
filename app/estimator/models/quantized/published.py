"""Which weights of a model its published checkpoint quantizes, and to what width."""

import collections
import dataclasses
from collections.abc import Iterator, Mapping

from app.estimator.models.architecture import Architecture
from app.estimator.models.layers import Layer, WeightMatrix
from app.estimator.models.quantized.methods import Quantization, Scheme
from app.estimator.models.quantized.module_names import EMBEDDING, HEAD, names_of_matrix

Key = tuple[str, str, int]


@dataclasses.dataclass(frozen=True, slots=True)
class Widths:
    """Widths of the weights of a checkpoint that mixes formats.

    `scheme` is the format of most quantized weights, `bits` the mean over all of
    them. `parts` holds for each kind of matrix the share of its weights that is
    quantized, and their mean bits. `embedding` and `head` are 0 where those tables
    are not quantized.
    """

    scheme: Scheme
    label: str
    bits: float
    parts: Mapping[Key, tuple[float, float]]
    embedding: float = 0.0
    head: float = 0.0

    def share(self, matrix: WeightMatrix) -> float:
        """The share of a matrix, over all layers, that is quantized [1]."""
        return self.parts.get(_key(matrix), (0.0, 0.0))[0]

    def bits_of(self, matrix: WeightMatrix) -> float:
        """Mean bits of its quantized weights."""
        return self.parts.get(_key(matrix), (0.0, 0.0))[1]


def published_widths(model: Architecture) -> Widths | None:
    """The widths of the weights of a checkpoint; None where none is quantized."""
    how = model.quantization
    if how is None or how.problem:
        return None
    weights: dict[Key, dict[Scheme | None, int]] = {}
    for layer, index, number in _indexed(model, how):
        for matrix in layer.matrices:
            counts = weights.setdefault(_key(matrix), collections.Counter())
            counts[_scheme_of(how, layer, matrix, index)] += matrix.parameters * number
    embedding, head = _table(how, EMBEDDING), _table(how, HEAD)
    totals: collections.Counter[Scheme] = collections.Counter()
    for counts in weights.values():
        totals.update({s: n for s, n in counts.items() if s is not None})
    for scheme, number in (
        (embedding, model.embedding_parameters),
        (head, model.head_parameters),
    ):
        if scheme and number:
            totals[scheme] += number
    return _widths(weights, totals, embedding, head) if totals else None


def _widths(
    weights: Mapping[Key, Mapping[Scheme | None, int]],
    totals: collections.Counter[Scheme],
    embedding: Scheme | None,
    head: Scheme | None,
) -> Widths:
    ranked = [scheme for scheme, _ in totals.most_common()]
    bits = sum(s.bits * n for s, n in totals.items()) / totals.total()
    return Widths(
        scheme=ranked[0],
        label=" and ".join(dict.fromkeys(scheme.label for scheme in ranked[:3])),
        bits=bits,
        parts={key: _mean(counts) for key, counts in weights.items()},
        embedding=embedding.bits if embedding else 0.0,
        head=head.bits if head else 0.0,
    )


def _mean(counts: Mapping[Scheme | None, int]) -> tuple[float, float]:
    """The share that is quantized, and its mean bits."""
    narrow = {scheme: number for scheme, number in counts.items() if scheme}
    covered = sum(narrow.values())
    if not covered:
        return 0.0, 0.0
    bits = sum(scheme.bits * number for scheme, number in narrow.items())
    return covered / sum(counts.values()), bits / covered


def _key(matrix: WeightMatrix) -> Key:
    """What matrices of one kind have in common across layers."""
    return matrix.part, matrix.name, matrix.inputs * matrix.outputs


def _indexed(model: Architecture, how: Quantization) -> Iterator[tuple[Layer, str, int]]:
    """Layers with their index; equal ones at once where lists name no layer."""
    if not any(override.modules.names_layers for override in how.overrides):
        yield from ((layer, "", number) for layer, number in model.runs)
        return
    yield from ((layer, str(i), 1) for i, layer in enumerate(model.stack))
    yield from ((layer, "", 1) for layer in model.encoder)


def _scheme_of(how: Quantization, layer: Layer, matrix: WeightMatrix, index: str) -> Scheme | None:
    if matrix.part == "router":
        return how.scheme if how.scope == "everything" else None
    names = names_of_matrix(layer, matrix)
    for override in how.overrides:
        if override.modules.match(names, index):
            return override.scheme
    outside = how.scope == "experts" and matrix.part != "experts"
    return None if outside else how.scheme


def _table(how: Quantization, names: tuple[str, ...]) -> Scheme | None:
    """The format of embeddings or the head, which few methods quantize."""
    for override in how.overrides:
        if override.modules.match(names):
            return override.scheme
    return how.scheme if how.scope == "everything" else None
