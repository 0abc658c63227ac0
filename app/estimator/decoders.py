"""Turning a configuration into the layers of a decoder."""

import functools
from collections.abc import Callable

from app.estimator import layers as parts
from app.estimator import recurrent
from app.estimator.families import Traits
from app.estimator.layers import Layer, Mixer, Mlp
from app.estimator.model_config import (
    Config,
    Routing,
    UnreadableConfig,
    layer_kinds,
    routing_of,
    whole,
    window_of,
)

_NO_MLP = Mlp()
_NO_MIXER = Mixer(kind="none")


def decoder_layers(config: Config, traits: Traits) -> tuple[Layer, ...]:
    """The layers of the decoder in order; equal layers are one shared object."""
    count = whole(config, "layers")
    if not 1 <= count <= 2000:
        raise UnreadableConfig(f"{count} layers; 1 to 2,000 can be read.")
    mixers = _mixers(config, traits, count)
    mlps = _mlps(config, traits, count)
    made: dict[tuple[Mixer, Mlp], Layer] = {}
    for pair in zip(mixers, mlps, strict=True):
        if pair not in made:
            made[pair] = Layer(*pair, norms=norm_parameters(config, traits, pair))
    return tuple(made[pair] for pair in zip(mixers, mlps, strict=True))


def norm_parameters(config: Config, traits: Traits, pair: tuple[Mixer, Mlp]) -> int:
    """Weights of the norms around the two halves of a layer."""
    halves = sum(half not in (_NO_MLP, _NO_MIXER) for half in pair)
    norms = traits.norms if halves == 2 else halves * max(1, traits.norms // 2)
    return norms * traits.norm_terms * whole(config, "hidden")


def _mixers(config: Config, traits: Traits, count: int) -> list[Mixer]:
    kinds = mixer_kinds(config, traits, count)
    makers: dict[str, Callable[[], Mixer]] = {
        "full": functools.cache(lambda: softmax_mixer(config, traits, None)),
        "sliding": functools.cache(
            lambda: softmax_mixer(config, traits, window_of(config))
        ),
        "linear": functools.cache(lambda: recurrent_mixer(config)),
        "none": lambda: _NO_MIXER,
    }
    return [makers[kind]() for kind in kinds]


def mixer_kinds(config: Config, traits: Traits, count: int) -> list[str]:
    """What mixes tokens in each layer: full, sliding, linear or none."""
    if config.get("model_type") in _ATTENTION_FREE:
        return ["linear"] * count
    pattern = config.get("hybrid_override_pattern")
    if isinstance(pattern, str):
        words = {"M": "linear", "*": "full"}
        return [words.get(letter, "none") for letter in pattern[:count]]
    full = _full_layers(config, count)
    if full is not None:
        return ["full" if i in full else "linear" for i in range(count)]
    return layer_kinds(config, count, traits.full_every)


_ATTENTION_FREE = frozenset({"mamba", "mamba2", "falcon_mamba"})


def _full_layers(config: Config, count: int) -> set[int] | None:
    """The layers with attention in a hybrid that says which; None otherwise."""
    if "attn_layer_period" in config:
        period, offset = config["attn_layer_period"], config["attn_layer_offset"]
        return {i for i in range(count) if i % period == offset}
    if isinstance(config.get("attn_layer_indices"), list):
        return set(config["attn_layer_indices"])
    interval = config.get("full_attention_interval")
    if interval and not isinstance(config.get("layer_types"), list):
        return {i for i in range(count) if (i + 1) % interval == 0}
    return None


def softmax_mixer(config: Config, traits: Traits, window: int | None) -> Mixer:
    """Attention of one layer, latent where the configuration has latent ranks."""
    if config.get("kv_lora_rank"):
        return parts.latent_attention(_latent(config), window)
    hidden, heads = whole(config, "hidden"), whole(config, "heads")
    if not heads:
        raise UnreadableConfig("The configuration has no attention heads.")
    shape = parts.Heads(
        hidden=hidden,
        heads=heads,
        kv_heads=_kv_heads(config, heads),
        head_dim=_head_dim(config, hidden, heads),
        value_dim=config.get("v_head_dim") or 0,
        qkv_bias=traits.qkv_bias,
        out_bias=traits.out_bias,
        norm=traits.query_norm,
        norm_terms=traits.query_norm_terms,
        sinks=traits.sinks,
        gate=traits.query_gate,
    )
    return parts.attention(shape, window)


def _head_dim(config: Config, hidden: int, heads: int) -> int:
    return whole(config, "head_dim", 0) or hidden // heads


def _kv_heads(config: Config, heads: int) -> int:
    family = config.get("model_type")
    if family == "falcon" and not config.get("new_decoder_architecture"):
        return 1 if config.get("multi_query", True) else heads
    if config.get("multi_query") and "num_key_value_heads" not in config:
        return whole(config, "kv_heads", 1) if family != "falcon" else 1
    return whole(config, "kv_heads", heads) or heads


def _latent(config: Config) -> parts.Latent:
    return parts.Latent(
        hidden=whole(config, "hidden"),
        heads=whole(config, "heads"),
        query_rank=config.get("q_lora_rank") or 0,
        kv_rank=config["kv_lora_rank"],
        nope_dim=config.get("qk_nope_head_dim", 128),
        rope_dim=config.get("qk_rope_head_dim", 64),
        value_dim=config.get("v_head_dim", 128),
        index_heads=config.get("index_n_heads") or 0,
        index_dim=config.get("index_head_dim") or 0,
    )


def recurrent_mixer(config: Config) -> Mixer:
    """The mixer with a state of fixed size that the configuration describes."""
    if "linear_num_value_heads" in config:
        return _delta(config)
    if "mamba_num_heads" in config or "mamba_n_heads" in config:
        return _mamba2(config)
    if config.get("model_type") == "mamba2":
        return _mamba2({"mamba_num_heads": config.get("num_heads"), **config})
    return _mamba(config)


def _delta(config: Config) -> Mixer:
    return recurrent.gated_delta(
        recurrent.Delta(
            hidden=whole(config, "hidden"),
            key_heads=config["linear_num_key_heads"],
            key_dim=config["linear_key_head_dim"],
            value_heads=config["linear_num_value_heads"],
            value_dim=config["linear_value_head_dim"],
            convolution=config.get("linear_conv_kernel_dim", 4),
        )
    )


def _mamba(config: Config) -> Mixer:
    hidden = whole(config, "hidden")
    expand = config.get("mamba_expand") or config.get("expand") or 2
    jamba = config.get("model_type") == "jamba"
    inner = expand * hidden if jamba else config.get("intermediate_size")
    rank = config.get("mamba_dt_rank") or config.get("time_step_rank")
    return recurrent.mamba(
        recurrent.Mamba(
            hidden=hidden,
            inner=inner or expand * hidden,
            state=config.get("mamba_d_state") or config.get("state_size") or 16,
            convolution=config.get("mamba_d_conv") or config.get("conv_kernel") or 4,
            rank=rank if isinstance(rank, int) else 0,
            conv_bias=bool(config.get("mamba_conv_bias", True)),
            projection_bias=bool(config.get("mamba_proj_bias", False)),
            inner_norms=jamba,
        )
    )


def _mamba2(config: Config) -> Mixer:
    heads = config.get("mamba_num_heads") or config.get("mamba_n_heads")
    dim = config.get("mamba_head_dim") or config.get("mamba_d_head")
    state = config.get("ssm_state_size") or config.get("mamba_d_state")
    groups = config.get("n_groups") or config.get("mamba_n_groups") or 1
    kernel = config.get("conv_kernel") or config.get("mamba_d_conv") or 4
    hidden = whole(config, "hidden")
    heads = heads or 2 * hidden // 64
    if dim == "auto" or not dim:
        expand = config.get("mamba_expand") or config.get("expand") or 2
        dim = expand * hidden // heads
    return recurrent.mamba2(
        recurrent.Mamba2(
            hidden=hidden,
            heads=heads,
            head_dim=dim,
            state=state or config.get("state_size") or 128,
            groups=groups,
            convolution=kernel,
            conv_bias=bool(config.get("use_conv_bias", True)),
        )
    )


def _mlps(config: Config, traits: Traits, count: int) -> list[Mlp]:
    if config.get("model_type") in _ATTENTION_FREE:
        return [_NO_MLP] * count
    routing = routing_of(config, count)
    routed = routed_mlp(config, traits, routing) if routing else _NO_MLP
    in_pattern = config.get("hybrid_override_pattern")
    if isinstance(in_pattern, str):
        dense = _dense(config, traits, None)
        kinds = {"-": dense, "E": routed}
        return [kinds.get(letter, _NO_MLP) for letter in in_pattern[:count]]
    with_experts = routing.layers if routing else frozenset[int]()
    dense = _dense(config, traits, routing)
    return [routed if i in with_experts else dense for i in range(count)]


def _dense(config: Config, traits: Traits, routing: Routing | None) -> Mlp:
    hidden = whole(config, "hidden")
    width = config.get("intermediate_size_mlp") if routing else None
    width = width or whole(config, "width", 0) or 4 * hidden
    if not isinstance(width, int) or width > 10**9:
        raise UnreadableConfig(f"An MLP width of {width} cannot be read.")
    return parts.dense_mlp(hidden, width, gated=traits.gated, bias=traits.mlp_bias)


def routed_mlp(config: Config, traits: Traits, routing: Routing) -> Mlp:
    """The experts of one layer."""
    return parts.routed_mlp(
        parts.Experts(
            hidden=whole(config, "hidden"),
            experts=routing.experts,
            per_token=routing.per_token,
            width=routing.width,
            shared_width=routing.shared_width,
            gated=traits.gated,
            shared_gate=traits.shared_gate,
            bias=traits.expert_bias,
            router_bias=traits.router_bias,
            latent=config.get("moe_latent_size") or 0,
        )
    )
