"""A transformer as layers: parameter, KV-cache and state counts."""

import collections
import dataclasses

from app.estimator.models.layers import Layer, Mlp, TokenMixer
from app.estimator.models.quantized_formats import Quantization
from app.estimator.models.vision_tower import VisionTower


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Architecture:
    """One model, told apart by identity so that a cache can be asked quickly.

    `stack` holds its decoder layers in order, `encoder` the others.

    The counts are exact for the shape; `heads`, `kv_heads`, `head_dim` and
    `mlp_width` describe the first layer that has them. `other` counts parameters
    outside of layers and tables: final norms, head bias, embedding norm.
    """

    name: str
    hidden: int
    vocabulary: int
    tied: bool
    stack: tuple[Layer, ...]
    encoder: tuple[Layer, ...] = ()
    positions: int = 0
    other: int = 0
    side_tables: int = 0
    table_width: int = 0
    max_context: int | None = None
    family: str = ""
    norm_terms: int = 1
    # Layers that predict tokens further ahead, in so many modules: beside the model
    # and its counts, as model cards have it.
    predicting: tuple[Layer, ...] = ()
    predictors: int = 0
    # What it sees with: beside the model and its counts, but in memory with it.
    tower: VisionTower | None = None
    # How its published checkpoint is quantized; None where it is not.
    quantization: Quantization | None = None
    # Fields of its configuration that nobody understood, and those that it left out.
    unread: tuple[str, ...] = ()
    assumed: tuple[str, ...] = ()
    # Everything below follows from the above; `assemble` fills it in.
    layers: int = 0
    heads: int = 0
    kv_heads: int = 0
    head_dim: int = 0
    mlp_width: int = 0
    gated: bool = True
    experts: int = 0
    experts_per_token: float = 0.0
    expert_width: int = 0
    shared_width: int = 0
    dense_layers: int = 0
    runs: tuple[tuple[Layer, int], ...] = ()
    parameters: int = 0
    active_parameters: float = 0
    routed_parameters: int = 0
    cache_elements: int = 0
    window: int | None = None

    @property
    def embedding_parameters(self) -> int:
        """Weights of the input table: V·h (V·`table_width` where it is narrower)."""
        return self.vocabulary * (self.table_width or self.hidden)

    @property
    def head_parameters(self) -> int:
        """Weights of the output projection; 0 where it is the input table."""
        return 0 if self.tied else self.embedding_parameters

    @property
    def tower_parameters(self) -> int:
        """Weights of the vision tower and its projector; 0 without one."""
        return self.tower.parameters if self.tower else 0

    @property
    def loaded_parameters(self) -> int:
        """All weights that an engine loads: the language model and its tower."""
        return self.parameters + self.tower_parameters

    @property
    def is_routed(self) -> bool:
        """Whether it is a mixture of experts."""
        return self.experts > 0

    def parts(self) -> dict[str, int]:
        """Parameters by part; they sum to `parameters`.

        >>> from app.estimator.models.lookup import find_model
        >>> sum(find_model("llama-2-7b").parts().values())
        6738415616
        """
        counts: collections.Counter[str] = collections.Counter()
        counts["embedding"] = self.embedding_parameters
        if self.head_parameters:
            counts["output head"] = self.head_parameters
        if self.positions:
            counts["positions"] = self.positions * self.hidden
        for layer, number in self.runs:
            for matrix in layer.matrices:
                counts[matrix.part] += matrix.parameters * number
            counts["norms and biases"] += layer.vectors * number
        counts["norms and biases"] += self.other
        if self.side_tables:
            counts["per-layer embeddings"] = self.side_tables
        return dict(counts)

    def sequence_elements(self, context: int) -> int:
        """Keys and values of one sequence of `context` tokens, windows honored.

        >>> from app.estimator.models.lookup import find_model
        >>> find_model("mistral-7b-v0.1").sequence_elements(32768) * 2
        536870912
        """
        total = 0
        for layer, number in self.runs:
            mixer = layer.mixer
            kept = min(context, mixer.window) if mixer.window else context
            total += number * mixer.cache * kept
            total += number * mixer.near * min(context, mixer.near_tokens)
        return total

    @property
    def state_elements(self) -> int:
        """Elements of recurrent state per sequence, without convolutions."""
        return sum(layer.state * number for layer, number in self.runs)

    @property
    def predicting_parameters(self) -> int:
        """Weights of the modules for multi-token prediction, without shared tables.

        A layer, a projection of the two inputs into one, and three norms each.
        """
        joining = 2 * self.hidden**2 + 3 * self.norm_terms * self.hidden
        return sum(a.parameters for a in self.predicting) + self.predictors * joining

    @property
    def convolution_elements(self) -> int:
        """Elements of convolution state per sequence."""
        return sum(layer.convolution * number for layer, number in self.runs)


def count_architecture(model: Architecture) -> Architecture:
    """Count once what every estimate asks for."""
    runs = tuple(collections.Counter(model.stack).items())
    every = (*runs, *collections.Counter(model.encoder).items())
    mixer = next((a.mixer for a, _ in runs if a.mixer.heads), TokenMixer(kind="none"))
    dense = next((a.mlp for a, _ in runs if a.mlp.width and not a.mlp.is_routed), None)
    routed = next((a.mlp for a, _ in runs if a.mlp.is_routed), Mlp())
    tables = model.embedding_parameters + model.head_parameters
    outside = tables + model.positions * model.hidden + model.other
    outside += model.side_tables
    return dataclasses.replace(
        model,
        layers=len(model.stack),
        heads=mixer.heads,
        kv_heads=mixer.kv_heads,
        head_dim=mixer.head_dim,
        mlp_width=(dense or routed).width,
        gated=(dense or routed).gated,
        experts=routed.experts,
        experts_per_token=routed.experts_per_token,
        expert_width=routed.width,
        shared_width=routed.shared_width,
        dense_layers=sum(n for a, n in runs if a.mlp.width and not a.mlp.is_routed),
        runs=every,
        parameters=outside + sum(a.parameters * n for a, n in every),
        active_parameters=_tidy(outside + sum(a.active_parameters * n for a, n in every)),
        routed_parameters=sum(a.routed_parameters * n for a, n in every),
        cache_elements=sum(a.mixer.cache * n for a, n in runs),
        window=next((a.mixer.window for a, _ in runs if a.mixer.window), None),
    )


def _tidy(number: float) -> float:
    return int(number) if number == int(number) else number
