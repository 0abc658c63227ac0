"""Models with an encoder and a decoder: T5, BART, Whisper and their kin."""

import dataclasses

from app.estimator.models import layers as parts
from app.estimator.models.config import Config, UnreadableConfigError, config_int
from app.estimator.models.layers import Layer, TokenMixer


@dataclasses.dataclass(frozen=True, slots=True)
class Seq2SeqTraits:
    """What a family of encoder-decoders has beside its layers."""

    norm_terms: int = 2
    bias: bool = True
    key_bias: bool = True
    embedding_norm: bool = False
    final_norm: bool = False
    positions: int = 0
    learned_positions: bool = True
    relative: bool = False
    relative_each: bool = False


_T5 = Seq2SeqTraits(norm_terms=1, bias=False, final_norm=True, relative=True)
_HABITS: dict[str, Seq2SeqTraits] = {
    "t5": _T5,
    "mt5": _T5,
    "umt5": dataclasses.replace(_T5, relative_each=True),
    "bart": Seq2SeqTraits(embedding_norm=True, positions=2),
    "mbart": Seq2SeqTraits(embedding_norm=True, final_norm=True, positions=2),
    "pegasus": Seq2SeqTraits(final_norm=True),
    "marian": Seq2SeqTraits(),
    "m2m_100": Seq2SeqTraits(final_norm=True, learned_positions=False),
    "whisper": Seq2SeqTraits(key_bias=False, final_norm=True),
}


def is_seq2seq(config: Config) -> bool:
    """Whether a configuration describes an encoder and a decoder."""
    return config.get("model_type") in _HABITS


@dataclasses.dataclass(frozen=True, slots=True)
class EncoderDecoderShape:
    """The layers of both halves and all parameters outside of them."""

    encoder: tuple[Layer, ...]
    decoder: tuple[Layer, ...]
    outside: int
    norm_terms: int


def read_shape(config: Config) -> EncoderDecoderShape:
    """Read both halves of an encoder-decoder model."""
    habits = _HABITS[str(config["model_type"])]
    hidden = config_int(config, "hidden")
    encoders = config.get("encoder_layers") or config.get("num_layers") or 0
    decoders = config.get("decoder_layers") or config.get("num_decoder_layers")
    decoders = decoders or encoders
    if not 1 <= max(encoders, decoders) <= 2000:
        message = f"{max(encoders, decoders)} layers; 1 to 2,000 can be read."
        raise UnreadableConfigError(message)
    encoder = _layer(config, habits, "encoder", cross=False)
    decoder = _layer(config, habits, "decoder", cross=True)
    return EncoderDecoderShape(
        encoder=(encoder,) * encoders,
        decoder=(decoder,) * decoders,
        outside=_outside(config, habits, hidden, encoders + decoders),
        norm_terms=habits.norm_terms,
    )


def _layer(config: Config, habits: Seq2SeqTraits, half: str, *, cross: bool) -> Layer:
    hidden = config_int(config, "hidden")
    heads = config.get(f"{half}_attention_heads") or config_int(config, "heads")
    width = config.get(f"{half}_ffn_dim") or config_int(config, "width")
    gated = "gated" in str(config.get("feed_forward_proj", ""))
    attention = _attention(config, habits, hidden, heads)
    return Layer(
        mixer=attention if cross else dataclasses.replace(attention, cache=0),
        mlp=parts.dense_mlp(hidden, width, gated=gated, bias=habits.bias),
        norms=(3 if cross else 2) * habits.norm_terms * hidden,
        # What is kept of the encoder does not grow with the answer.
        beside=dataclasses.replace(attention, cache=0) if cross else None,
    )


def _attention(config: Config, habits: Seq2SeqTraits, hidden: int, heads: int) -> TokenMixer:
    head_dim = config.get("d_kv") or hidden // heads
    shape = parts.AttentionShape(
        hidden=hidden,
        heads=heads,
        kv_heads=heads,
        head_dim=head_dim,
        qkv_bias=habits.bias,
        out_bias=habits.bias,
    )
    made = parts.attention(shape)
    if habits.bias and not habits.key_bias:
        return dataclasses.replace(made, vectors=made.vectors - heads * head_dim)
    return made


def _outside(config: Config, habits: Seq2SeqTraits, hidden: int, layers: int) -> int:
    """Norms of both halves, positions, relative biases and the audio front end."""
    count = 2 * (int(habits.embedding_norm) + int(habits.final_norm))
    total = count * habits.norm_terms * hidden
    if habits.relative:
        buckets = config.get("relative_attention_num_buckets", 32)
        stacks = layers if habits.relative_each else 2
        total += buckets * config_int(config, "heads") * stacks
    elif habits.learned_positions:
        total += _positions(config, habits) * hidden
    if config.get("model_type") == "whisper":
        mels = config.get("num_mel_bins", 80)
        total += 3 * mels * hidden + hidden + 3 * hidden * hidden + hidden
    return total


def _positions(config: Config, habits: Seq2SeqTraits) -> int:
    source = config.get("max_source_positions") or config_int(config, "positions", 1024)
    target = config.get("max_target_positions") or config_int(config, "positions", 1024)
    return int(source + target) + 2 * habits.positions
