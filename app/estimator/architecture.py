"""A model as its layers: exact counts of parameters, cache and state."""

import collections
import dataclasses
import functools
from collections.abc import Mapping
from typing import Any

from app.estimator import catalogue
from app.estimator.decoders import decoder_layers
from app.estimator.families import Traits, is_known, traits_of
from app.estimator.layers import Layer, Mixer, Mlp
from app.estimator.model_config import (
    UnreadableConfig,
    check_family,
    text_part,
    whole,
)
from app.estimator.model_sizes import is_size, parse_size, shape_for, size_name
from app.estimator.seq2seq import is_seq2seq, read_shape

__all__ = [
    "Architecture",
    "UnreadableConfig",
    "find_model",
    "from_config",
    "model_id",
    "models",
]

_MODELS = ("models.toml", "model")


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
    def is_routed(self) -> bool:
        """Whether it is a mixture of experts."""
        return self.experts > 0

    @property
    def is_known_family(self) -> bool:
        """Whether the family of the configuration has rules of its own here."""
        return is_known(self.family)

    def parts(self) -> dict[str, int]:
        """Parameters by part; they sum to `parameters`.

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
        """Cache elements of one sequence of `context` tokens, windows honoured.

        >>> find_model("mistral-7b-v0.1").sequence_elements(32768) * 2
        536870912
        """
        total = 0
        for layer, number in self.runs:
            mixer = layer.mixer
            kept = min(context, mixer.window) if mixer.window else context
            total += number * mixer.cache * kept
        return total

    @property
    def state_elements(self) -> int:
        """Elements of recurrent state per sequence, without convolutions."""
        return sum(layer.state * number for layer, number in self.runs)

    @property
    def convolution_elements(self) -> int:
        """Elements of convolution state per sequence."""
        return sum(layer.convolution * number for layer, number in self.runs)


def from_config(config: Mapping[str, Any], name: str = "") -> Architecture:
    """Read the architecture from a Hugging Face `config.json`.

    Raises UnreadableConfig with a sentence when a size is missing or wrong.

    >>> from_config({"model_type": "llama", "hidden_size": 4096,
    ...     "num_hidden_layers": 32, "num_attention_heads": 32,
    ...     "intermediate_size": 11008, "vocab_size": 32000}).parameters
    6738415616
    """
    text = text_part(config)
    check_family(text)
    if is_seq2seq(text):
        return sound(_from_seq2seq(text, name))
    return sound(_from_decoder(text, name))


def sound(model: Architecture) -> Architecture:
    """Return `model` if all of its sizes are whole and none is negative."""
    for layer, _ in model.runs:
        for matrix in layer.matrices:
            if not all(map(_is_size, (matrix.inputs, matrix.outputs, matrix.copies))):
                message = f"A matrix of {matrix.inputs} × {matrix.outputs} cannot be."
                raise UnreadableConfig(message)
        counts = (layer.vectors, layer.mixer.cache, layer.state, layer.convolution)
        if not all(count == 0 or _is_size(count) for count in counts):
            raise UnreadableConfig("A size of a layer is negative or not whole.")
    if not _is_size(model.parameters) or min(model.parts().values()) < 0:
        raise UnreadableConfig("A size of the model is negative or not whole.")
    return model


def _is_size(value: object) -> bool:
    """Whether a value read from outside is a whole number above zero."""
    return isinstance(value, int) and value > 0


def _from_decoder(text: Mapping[str, Any], name: str) -> Architecture:
    traits = traits_of(text)
    hidden = whole(text, "hidden")
    vocabulary = whole(text, "vocabulary")
    positions = 0
    if traits.learned_positions:
        positions = whole(text, "positions", 0) + traits.extra_positions
    return assemble(
        Architecture(
            name=name or str(text.get("_name_or_path") or "this model"),
            hidden=hidden,
            vocabulary=vocabulary,
            tied=traits.tied,
            stack=decoder_layers(text, traits),
            positions=positions,
            other=_outside(text, traits, hidden, vocabulary),
            side_tables=_side_tables(text, hidden),
            table_width=text.get("word_embed_proj_dim") or 0,
            max_context=whole(text, "positions", 0) or None,
            family=str(text.get("model_type", "llama")),
            norm_terms=traits.norm_terms,
        )
    )


def _from_seq2seq(config: Mapping[str, Any], name: str) -> Architecture:
    """An encoder-decoder model; `stack` holds its decoder."""
    shape = read_shape(config)
    return assemble(
        Architecture(
            name=name or "this model",
            hidden=whole(config, "hidden"),
            vocabulary=whole(config, "vocabulary"),
            tied=bool(config.get("tie_word_embeddings", True)),
            stack=shape.decoder,
            encoder=shape.encoder,
            other=shape.outside,
            max_context=whole(config, "positions", 0) or None,
            family=str(config["model_type"]),
            norm_terms=shape.norm_terms,
        )
    )


def _outside(
    config: Mapping[str, Any], traits: Traits, hidden: int, vocabulary: int
) -> int:
    """Parameters that belong to no layer and to no table."""
    norms = int(traits.final_norm) + int(traits.embedding_norm)
    streams = config.get("hc_mult") or 0
    mixing = streams * (streams * hidden + 1) + 1 if streams else 0
    bias = vocabulary if traits.head_bias else 0
    narrow = config.get("word_embed_proj_dim") or hidden
    if narrow != hidden:  # a projection in and one out
        mixing += 2 * narrow * hidden
    return norms * traits.norm_terms * hidden + bias + mixing


def _side_tables(config: Mapping[str, Any], hidden: int) -> int:
    """Tables of embeddings for each layer, with their projection and norm."""
    side = config.get("hidden_size_per_layer_input") or 0
    if not side:
        return 0
    width = side * whole(config, "layers")
    rows = config.get("vocab_size_per_layer_input") or whole(config, "vocabulary")
    streams = config.get("altup_num_inputs") or 1
    joining = 2 * (streams - 1) * hidden * hidden
    return rows * width + width * hidden + side + joining


def assemble(model: Architecture) -> Architecture:
    """Count once what every estimate asks for."""
    runs = tuple(collections.Counter(model.stack).items())
    every = (*runs, *collections.Counter(model.encoder).items())
    mixer = next((a.mixer for a, _ in runs if a.mixer.heads), Mixer(kind="none"))
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
        active_parameters=_tidy(
            outside + sum(a.active_parameters * n for a, n in every)
        ),
        routed_parameters=sum(a.routed_parameters * n for a, n in every),
        cache_elements=sum(a.mixer.cache * n for a, n in runs),
        window=next((a.mixer.window for a, _ in runs if a.mixer.window), None),
    )


def _tidy(number: float) -> float:
    return int(number) if number == int(number) else number


def model_id(name: str) -> str:
    """The catalogue id for a model name, or the tidy form of a size such as `70B`.

    Raises LookupError naming the nearest models.
    """
    if is_size(name):
        return size_name(parse_size(name))
    return catalogue.find_id(*_MODELS, name, "a model")


@functools.lru_cache(maxsize=2048)
def find_model(name: str) -> Architecture:
    """The architecture for a catalogue name or for a size such as `70B`.

    A size gives a dense, Llama-shaped model with exactly that many parameters.

    >>> find_model("70B").parameters
    70000000000
    """
    if is_size(name):
        return generic(parse_size(name))
    key = model_id(name)
    row = catalogue.load(*_MODELS)[key]
    return from_config(row["config"], name=row["name"])


def models() -> tuple[tuple[str, str], ...]:
    """Ids and names of the catalogue's models, in its order."""
    return tuple((key, row["name"]) for key, row in catalogue.load(*_MODELS).items())


def generic(parameters: int) -> Architecture:
    """A dense, Llama-shaped model with exactly `parameters` parameters."""
    config = shape_for(parameters)
    model = from_config(config, name=f"{size_name(parameters)} dense")
    return assemble(
        dataclasses.replace(model, other=model.other + parameters - model.parameters)
    )
