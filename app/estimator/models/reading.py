"""Reading of a whole architecture from a configuration."""

import dataclasses
from collections.abc import Mapping
from typing import Any

from app.estimator.models.architecture import Architecture, count_architecture
from app.estimator.models.config import (
    UnreadableConfigError,
    check_family,
    config_int,
    text_part,
)
from app.estimator.models.decoders import decoder_layers
from app.estimator.models.families import FamilyTraits, traits_of
from app.estimator.models.fields import TrackedConfig, with_defaults
from app.estimator.models.layers import Layer
from app.estimator.models.quantized.reading import read_quantization
from app.estimator.models.seq2seq import is_seq2seq, read_shape
from app.estimator.models.towers.reading import BESIDE, read_beside


def from_config(config: Mapping[str, Any], name: str = "") -> Architecture:
    """Read the architecture from a Hugging Face `config.json`.

    Raises UnreadableConfig with a sentence when a size is missing or wrong.

    >>> from_config({"model_type": "llama", "hidden_size": 4096,
    ...     "num_hidden_layers": 32, "num_attention_heads": 32,
    ...     "intermediate_size": 11008, "vocab_size": 32000}).parameters
    6738415616
    """
    alone = {k: v for k, v in text_part(config).items() if k not in BESIDE}
    given, assumed = with_defaults(alone)
    text = TrackedConfig(given)
    check_family(text)
    read = _from_seq2seq if is_seq2seq(text) else _from_decoder
    model = validate_architecture(read(text, name))
    quantization = read_quantization(config, text)
    beside = read_beside(config, model.hidden)
    return dataclasses.replace(
        model,
        tower=beside.tower,
        quantization=quantization,
        unread=(*text.unread(), *beside.unread),
        assumed=(*assumed, *beside.assumed),
    )


def validate_architecture(model: Architecture) -> Architecture:
    """Return `model` if all of its sizes are whole and none is negative."""
    for layer, _ in model.runs:
        for matrix in layer.matrices:
            if not all(map(_is_size, (matrix.inputs, matrix.outputs, matrix.copies))):
                message = f"A matrix of {matrix.inputs} × {matrix.outputs} cannot be."
                raise UnreadableConfigError(message)
        counts = (layer.vectors, layer.mixer.cache, layer.state, layer.convolution)
        if not all(count == 0 or _is_size(count) for count in counts):
            raise UnreadableConfigError("A size of a layer is negative or not whole.")
    if not _is_size(model.parameters) or min(model.parts().values()) < 0:
        raise UnreadableConfigError("A size of the model is negative or not whole.")
    return model


def _is_size(value: object) -> bool:
    """Whether a value read from outside is a whole number above zero."""
    return isinstance(value, int) and value > 0


def _from_decoder(text: Mapping[str, Any], name: str) -> Architecture:
    traits = traits_of(text)
    hidden = config_int(text, "hidden")
    stack = decoder_layers(text, traits)
    predictors = _predictors(text)
    vocabulary = config_int(text, "vocabulary")
    positions = 0
    if traits.learned_positions:
        positions = config_int(text, "positions", 0) + traits.extra_positions
    return count_architecture(
        Architecture(
            name=name or str(text.get("_name_or_path") or "this model"),
            hidden=hidden,
            vocabulary=vocabulary,
            tied=traits.tied,
            stack=stack,
            positions=positions,
            other=_outside(text, traits, hidden, vocabulary),
            side_tables=_side_tables(text, hidden),
            table_width=text.get("word_embed_proj_dim") or 0,
            max_context=config_int(text, "positions", 0) or None,
            family=str(text.get("model_type", "llama")),
            norm_terms=traits.norm_terms,
            predicting=_predicting(stack) * predictors,
            predictors=predictors,
        )
    )


def _predictors(text: Mapping[str, Any]) -> int:
    """How many modules for multi-token prediction come with a model."""
    names = ("num_nextn_predict_layers", "mtp_num_hidden_layers", "num_mtp_modules")
    given = [text.get(name) or 0 for name in (*names, "num_mtp_layers")]
    most = max(given)
    if not isinstance(most, int) or not 0 <= most <= _MOST_PREDICTORS:
        message = f"{most} modules of multi-token prediction cannot be."
        raise UnreadableConfigError(message)
    return most


_MOST_PREDICTORS = 64


def _predicting(stack: tuple[Layer, ...]) -> tuple[Layer, ...]:
    """The layers of such a module: attention and MLP as the last of the model."""
    attention = next((a for a in reversed(stack) if a.mixer.heads), None)
    if attention is None:
        return ()
    if attention.mlp.width:
        return (attention,)
    return (attention, *(a for a in reversed(stack) if a.mlp.width))[:2]


def _from_seq2seq(config: Mapping[str, Any], name: str) -> Architecture:
    """An encoder-decoder model; `stack` holds its decoder."""
    shape = read_shape(config)
    return count_architecture(
        Architecture(
            name=name or "this model",
            hidden=config_int(config, "hidden"),
            vocabulary=config_int(config, "vocabulary"),
            tied=bool(config.get("tie_word_embeddings", True)),
            stack=shape.decoder,
            encoder=shape.encoder,
            other=shape.outside,
            max_context=config_int(config, "positions", 0) or None,
            family=str(config["model_type"]),
            norm_terms=shape.norm_terms,
        )
    )


def _outside(config: Mapping[str, Any], traits: FamilyTraits, hidden: int, vocabulary: int) -> int:
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
    width = side * config_int(config, "layers")
    rows = config.get("vocab_size_per_layer_input") or config_int(config, "vocabulary")
    streams = config.get("altup_num_inputs") or 1
    joining = 2 * (streams - 1) * hidden * hidden
    return rows * width + width * hidden + side + joining
