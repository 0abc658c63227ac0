"""Turning a configuration into the layers of a decoder."""

from collections.abc import Callable

from app.estimator.models import layers as parts
from app.estimator.models import mixers
from app.estimator.models.config import (
    Config,
    MoeRouting,
    UnreadableConfigError,
    config_int,
    routing_of,
)
from app.estimator.models.families import FamilyTraits
from app.estimator.models.layer_kinds import layer_count, layer_words
from app.estimator.models.layers import Layer, Mlp, TokenMixer, WeightMatrix

_NO_MLP = Mlp()
_NO_MIXER = TokenMixer(kind="none")


def decoder_layers(config: Config, traits: FamilyTraits) -> tuple[Layer, ...]:
    """The layers of the decoder in order; equal layers are one shared object."""
    routing = routing_of(config, layer_count(config))
    words = layer_words(config, traits, routing)
    made: dict[tuple[TokenMixer, TokenMixer | None, Mlp], Layer] = {}
    stack = []
    for index, (mixer_word, mlp_word) in enumerate(words):
        mixer, beside = _mixers(config, traits, index, mixer_word)
        mlp = _mlp(config, traits, routing, index, mlp_word)
        key = (mixer, beside, mlp)
        if key not in made:
            made[key] = Layer(mixer, mlp, _norms(config, traits, mixer, mlp), beside)
        stack.append(made[key])
    return tuple(stack)


def _norms(config: Config, traits: FamilyTraits, mixer: TokenMixer, mlp: Mlp) -> int:
    """Weights of the norms around the two halves of a layer."""
    halves = (mixer != _NO_MIXER) + (mlp != _NO_MLP)
    norms = traits.norms if halves == 2 else halves * max(1, traits.norms // 2)
    norms += traits.routed_norms if mlp.is_routed else 0
    if config.get("enable_moe_block"):
        norms += 3
    if config.get("hidden_size_per_layer_input"):
        norms += 1
    return norms * traits.norm_terms * config_int(config, "hidden") + traits.layer_scalars


def _mixers(
    config: Config, traits: FamilyTraits, index: int, word: str
) -> tuple[TokenMixer, TokenMixer | None]:
    """The mixer of a layer, and a second one that runs beside it."""
    if word == "both":
        attention = mixers.softmax_mixer(config, traits, index, sliding=False)
        return attention, mixers.recurrent_mixer(config)
    makers: dict[str, Callable[[], TokenMixer]] = {
        "full": lambda: mixers.softmax_mixer(config, traits, index, sliding=False),
        "sliding": lambda: mixers.softmax_mixer(config, traits, index, sliding=True),
        "linear": lambda: mixers.recurrent_mixer(config),
        "compressed": lambda: mixers.compressed_mixer(config, word),
        "heavy": lambda: mixers.compressed_mixer(config, word),
        "none": lambda: _NO_MIXER,
    }
    if word == "sliding" and config.get("model_type") == "deepseek_v4":
        return mixers.compressed_mixer(config, word), None
    return makers[word](), None


def _mlp(
    config: Config, traits: FamilyTraits, routing: MoeRouting | None, index: int, word: str
) -> Mlp:
    if word == "none":
        return _NO_MLP
    if word == "routed":
        if routing is None:
            raise UnreadableConfigError("A layer has experts, but their number is missing.")
        return _with_side_inputs(config, routed_mlp(config, traits, routing))
    return _with_side_inputs(config, _dense(config, traits, routing, index))


def _dense(config: Config, traits: FamilyTraits, routing: MoeRouting | None, index: int) -> Mlp:
    hidden = config_int(config, "hidden")
    listed = config.get("intermediate_size")
    width = listed[index] if isinstance(listed, list) and index < len(listed) else 0
    if routing:
        width = width or config.get("intermediate_size_mlp") or 0
        width = width or config.get("dense_intermediate_size") or 0
    if routing is None and config.get("model_type") == "granitemoehybrid":
        width = config.get("shared_intermediate_size") or 0
    width = width or config_int(config, "width", 0) or 4 * hidden
    if config.get("block_auto_adjust_ff_dim"):
        width = _adjusted(config, width)
    if config.get("use_double_wide_mlp") and mixers.shares_cache(config, index):
        width *= 2
    if not isinstance(width, int) or width > 10**9:
        raise UnreadableConfigError(f"An MLP width of {width} cannot be read.")
    return parts.dense_mlp(hidden, width, gated=traits.gated, bias=traits.mlp_bias)


def _adjusted(config: Config, width: int) -> int:
    """Two thirds of the width, scaled and rounded up, as LFM2 does."""
    scaled = int(config.get("block_ffn_dim_multiplier", 1.0) * int(2 * width / 3))
    step = config.get("block_multiple_of", 256)
    return int(-(-scaled // step) * step)


def _with_side_inputs(config: Config, mlp: Mlp) -> Mlp:
    """Add the projections of per-layer embeddings where the model has them."""
    side = config.get("hidden_size_per_layer_input")
    if not side:
        return mlp
    hidden = config_int(config, "hidden")
    rank, streams = config.get("laurel_rank"), config.get("altup_num_inputs")
    extra: tuple[WeightMatrix, ...] = (
        WeightMatrix("side_in", hidden, side, "mlp", "whole"),
        WeightMatrix("side_out", side, hidden, "mlp", "whole"),
    )
    vectors = 0
    if rank:
        extra += (
            WeightMatrix("laurel_in", hidden, rank, "mlp", "whole"),
            WeightMatrix("laurel_out", rank, hidden, "mlp", "whole"),
        )
        vectors += hidden
    if streams:
        vectors += streams**2 + streams**3 + streams * hidden + 2 * hidden
    return Mlp(
        matrices=mlp.matrices + extra,
        vectors=mlp.vectors + vectors,
        routed_vectors=mlp.routed_vectors,
        width=mlp.width,
        gated=mlp.gated,
        experts=mlp.experts,
        experts_per_token=mlp.experts_per_token,
        shared_width=mlp.shared_width,
    )


def routed_mlp(config: Config, traits: FamilyTraits, routing: MoeRouting) -> Mlp:
    """The experts of one layer."""
    scales = 0
    shared = routing.shared_width
    if config.get("enable_moe_block"):
        shared = config_int(config, "width")
        scales = config_int(config, "hidden") + routing.experts
    return parts.routed_mlp(
        parts.MoeShape(
            hidden=config_int(config, "hidden"),
            experts=routing.experts,
            per_token=routing.per_token,
            width=routing.width,
            shared_width=shared,
            gated=traits.gated,
            shared_gate=traits.shared_gate,
            bias=traits.expert_bias,
            router_bias=traits.router_bias,
            latent=config.get("moe_latent_size") or 0,
            scales=scales,
            idle=routing.idle,
        )
    )
