"""A transformer as layers: parameter, KV-cache and state counts."""

import collections
import dataclasses
from collections.abc import Iterable

from app.estimator.models.checkpoint_quantization import Quantization
from app.estimator.models.layers import Layer, LayerCount, Mlp, TokenMixer
from app.estimator.models.vision_tower import VisionTower


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Architecture:
    """One model. Models compare by identity, so that cache lookups are fast.

    The counts are exact for the architecture; `heads`, `kv_heads`, `head_dim` and
    `mlp_width` describe the first layer that has them. `other` counts parameters
    outside of layers and tables: final norms, head bias, embedding norm.
    """

    name: str
    hidden: int
    vocabulary: int
    tied: bool
    decoder_layers: tuple[Layer, ...]
    encoder_layers: tuple[Layer, ...] = ()
    learned_positions: int = 0
    other: int = 0
    per_layer_embedding_parameters: int = 0
    # Tables that are looked up by the last few tokens, so that hardly any of it is active.
    ngram_table_parameters: int = 0
    embedding_width: int = 0
    max_context: int | None = None
    family: str = ""
    norm_terms: int = 1
    # Layers of the modules for multi-token prediction, and the number of modules. They are
    # not part of the model's counts, as in model cards.
    prediction_module_layers: tuple[Layer, ...] = ()
    prediction_module_count: int = 0
    # The vision tower: not part of the model's counts, but loaded with it.
    tower: VisionTower | None = None
    # Quantization of the published checkpoint; None if it is not quantized.
    quantization: Quantization | None = None
    # Configuration fields that are not understood, and defaults of fields not given.
    unread: tuple[str, ...] = ()
    # Those of them that are named like a size, so that the counts may be far off.
    unread_size_fields: tuple[str, ...] = ()
    defaulted_fields: tuple[str, ...] = ()
    # Derived values; `fill_in_counts` sets them.
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
    layer_counts: tuple[LayerCount, ...] = ()
    parameters: int = 0
    active_parameters: float = 0
    routed_parameters: int = 0
    cache_elements: int = 0
    sliding_window: int | None = None

    @property
    def embedding_parameters(self) -> int:
        """Return the weights of the input table: V·h (V·`embedding_width` if it is narrower)."""
        return self.vocabulary * (self.embedding_width or self.hidden)

    @property
    def head_parameters(self) -> int:
        """Return the weights of the output projection; 0 if it is tied to the input table."""
        return 0 if self.tied else self.embedding_parameters

    @property
    def tower_parameters(self) -> int:
        """Return the weights of the vision tower and its projector; 0 without one."""
        return self.tower.parameters if self.tower else 0

    @property
    def loaded_parameters(self) -> int:
        """Return all weights that an engine loads: the language model and its tower."""
        return self.parameters + self.tower_parameters

    @property
    def is_routed(self) -> bool:
        return self.experts > 0

    def parameters_by_part(self) -> dict[str, int]:
        """Return the parameters by part; they sum to `parameters`.

        >>> from app.estimator.models.lookup import find_model
        >>> sum(find_model("llama-2-7b").parameters_by_part().values())
        6738415616
        """
        counts: collections.Counter[str] = collections.Counter()
        counts["embedding"] = self.embedding_parameters
        if self.head_parameters:
            counts["output head"] = self.head_parameters
        if self.learned_positions:
            counts["positions"] = self.learned_positions * self.hidden
        for layer, number in self.layer_counts:
            for matrix in layer.matrices:
                counts[matrix.part] += matrix.parameters * number
            counts["norms and biases"] += layer.vector_parameters * number
        counts["norms and biases"] += self.other
        if self.per_layer_embedding_parameters:
            counts["per-layer embeddings"] = self.per_layer_embedding_parameters
        if self.ngram_table_parameters:
            counts["n-gram tables"] = self.ngram_table_parameters
        return dict(counts)

    def cache_elements_of_sequence(self, context: int) -> int:
        """Return the keys and values of a sequence of `context` tokens, with windows.

        >>> from app.estimator.models.lookup import find_model
        >>> find_model("mistral-7b-v0.1").cache_elements_of_sequence(32768) * 2
        536870912
        """
        total = 0
        for layer, number in self.layer_counts:
            mixer = layer.mixer
            cached = min(context, mixer.window_tokens) if mixer.window_tokens else context
            total += number * mixer.cache_elements_per_token * cached
            total += (
                number * mixer.extra_cache_elements_per_near_token * min(context, mixer.near_tokens)
            )
        return total

    @property
    def state_elements(self) -> int:
        """Return the elements of recurrent state per sequence, without convolutions."""
        return sum(layer.state_elements * number for layer, number in self.layer_counts)

    @property
    def prediction_module_parameters(self) -> int:
        """Return the weights of the modules for multi-token prediction, without shared tables.

        Each has a layer, a projection of the two inputs into one, and three norms.
        """
        projection_parameters = 2 * self.hidden**2 + 3 * self.norm_terms * self.hidden
        return (
            sum(a.parameters for a in self.prediction_module_layers)
            + self.prediction_module_count * projection_parameters
        )

    @property
    def convolution_elements(self) -> int:
        return sum(layer.convolution_state_elements * number for layer, number in self.layer_counts)


def fill_in_counts(model: Architecture) -> Architecture:
    """Compute once the counts that every estimate uses."""
    decoder = group_equal_layers(model.decoder_layers)
    all_layers = decoder + group_equal_layers(model.encoder_layers)
    mixer = next((a.mixer for a, _ in decoder if a.mixer.heads), TokenMixer(kind="none"))
    dense = next((a.mlp for a, _ in decoder if a.mlp.width and not a.mlp.is_routed), None)
    routed = next((a.mlp for a, _ in decoder if a.mlp.is_routed), Mlp())
    tables = model.embedding_parameters + model.head_parameters
    parameters_outside_layers = tables + model.learned_positions * model.hidden + model.other
    parameters_outside_layers += model.per_layer_embedding_parameters
    active = parameters_outside_layers + sum(a.active_parameters * n for a, n in all_layers)
    return dataclasses.replace(
        model,
        layers=len(model.decoder_layers),
        heads=mixer.heads,
        kv_heads=mixer.kv_heads,
        head_dim=mixer.head_dim,
        mlp_width=(dense or routed).width,
        gated=(dense or routed).gated,
        experts=routed.experts,
        experts_per_token=routed.experts_per_token,
        expert_width=routed.width,
        shared_width=routed.shared_width,
        dense_layers=sum(n for a, n in decoder if a.mlp.width and not a.mlp.is_routed),
        layer_counts=all_layers,
        parameters=parameters_outside_layers
        + model.ngram_table_parameters
        + sum(a.parameters * n for a, n in all_layers),
        active_parameters=int(active) if active == int(active) else active,
        routed_parameters=sum(a.routed_parameters * n for a, n in all_layers),
        cache_elements=sum(a.mixer.cache_elements_per_token * n for a, n in decoder),
        sliding_window=next(
            (a.mixer.window_tokens for a, _ in decoder if a.mixer.window_tokens), None
        ),
    )


def group_equal_layers(layers: Iterable[Layer]) -> tuple[LayerCount, ...]:
    """Return each kind of layer once, in order of its first, with its number."""
    return tuple(LayerCount(*item) for item in collections.Counter(layers).items())
