"""The mixer of one layer from a configuration: attention of all kinds, and states."""

import dataclasses

from app.estimator.models import latent, recurrent
from app.estimator.models import layers as parts
from app.estimator.models.config import Config, UnreadableConfigError, config_int, window_of
from app.estimator.models.families import FamilyTraits
from app.estimator.models.layers import TokenMixer


def softmax_mixer(config: Config, traits: FamilyTraits, index: int, *, sliding: bool) -> TokenMixer:
    """Attention of one layer, latent where the configuration has latent ranks."""
    window = window_of(config) if sliding else None
    if config.get("kv_lora_rank"):
        return latent.latent_attention(_latent(config, traits, index), window)
    hidden, heads = config_int(config, "hidden"), config_int(config, "heads")
    if not heads:
        raise UnreadableConfigError("The configuration has no attention heads.")
    own = _layer_overrides(config, index, sliding=sliding)
    each = config.get("num_attention_heads_per_layer")
    if isinstance(each, list) and index < len(each):
        heads = each[index]
    heads = own.get("heads") or heads
    shape = parts.AttentionShape(
        hidden=hidden,
        heads=heads,
        kv_heads=own.get("kv_heads") or _kv_heads(config, heads),
        head_dim=own.get("head_dim") or _head_dim(config, hidden, heads),
        value_dim=own.get("value_dim") or config.get("v_head_dim") or 0,
        qkv_bias=traits.qkv_bias,
        out_bias=traits.out_bias,
        norm=traits.query_norm,
        norm_terms=traits.query_norm_terms,
        sinks=traits.sinks or (sliding and traits.sliding_sinks),
        gate=traits.query_gate,
        head_gate=traits.head_gate,
        keys_are_values=bool(config.get("attention_k_eq_v")) and not sliding,
    )
    mixer = parts.attention(shape, window, shares_cache=shares_cache(config, index))
    return _indexed(config, index, mixer)


def _indexed(config: Config, index: int, mixer: TokenMixer) -> TokenMixer:
    """Add the indexer that picks blocks of tokens in a layer (MiniMax-M3)."""
    listed = config.get("layer_types")
    if not isinstance(listed, list) or listed[index] != "minimax_m3_sparse":
        return mixer
    heads, dim = config.get("index_n_heads", 4), config.get("index_head_dim", 128)
    hidden, block = config_int(config, "hidden"), config.get("index_block_size", 128)
    blocks = config.get("index_topk_blocks", 16) + config.get("index_local_blocks", 1)
    queries = parts.WeightMatrix("index_q", hidden, heads * dim, "attention", "whole")
    keys = parts.WeightMatrix("index_k", hidden, dim, "attention", "whole")
    return dataclasses.replace(
        mixer,
        matrices=(*mixer.matrices, queries, keys),
        vectors=mixer.vectors + 2 * dim,
        index=dim,
        index_heads=heads,
        index_dim=dim,
        top=blocks * block,
    )


def shares_cache(config: Config, index: int) -> bool:
    """Whether a layer reads the keys and values of an earlier one."""
    shared = config.get("num_kv_shared_layers") or 0
    return index >= config_int(config, "layers", 0) - shared if shared else False


def _layer_overrides(config: Config, index: int, *, sliding: bool) -> dict[str, int]:
    """Heads of one layer where they differ from the usual ones."""
    own = config.get("per_layer_config")
    if isinstance(own, dict):
        row = own.get(f"{index:02d}") or own.get(str(index)) or {}
        return {
            "head_dim": row.get("head_dim") or 0,
            "kv_heads": row.get("num_key_value_heads") or 0,
        }
    if sliding:
        kv_heads = config.get("swa_num_key_value_heads") or 0
        if not kv_heads and config.get("model_type") == "mimo_v2_flash":
            kv_heads = 2 * config_int(config, "kv_heads")
        return {
            "head_dim": config.get("swa_head_dim") or 0,
            "kv_heads": kv_heads,
            "heads": config.get("swa_num_attention_heads") or 0,
            "value_dim": config.get("swa_v_head_dim") or 0,
        }
    return {
        "head_dim": config.get("global_head_dim") or _gemma4_head_dim(config),
        "kv_heads": config.get("num_global_key_value_heads") or 0,
    }


def _gemma4_head_dim(config: Config) -> int:
    """Full layers of Gemma 4 have heads of 512 unless the configuration says so."""
    return 512 if config.get("model_type") in {"gemma4_text", "gemma4"} else 0


def _head_dim(config: Config, hidden: int, heads: int) -> int:
    return config_int(config, "head_dim", 0) or hidden // heads


def _kv_heads(config: Config, heads: int) -> int:
    falcon = config.get("model_type") == "falcon"
    if falcon and not config.get("new_decoder_architecture"):
        return 1 if config.get("multi_query", True) else heads
    if config.get("multi_query") and "num_key_value_heads" not in config:
        return config_int(config, "kv_heads", 1)
    return config_int(config, "kv_heads", heads) or heads


def _shares_index(config: Config, index: int) -> bool:
    """Whether a layer takes the tokens that an earlier layer chose (GLM-5.2)."""
    listed = config.get("indexer_types") or config.get("index_topk_pattern")
    if listed:
        return str(listed[index]) in {"shared", "S"}
    every = max(int(config.get("index_topk_freq") or 1), 1)
    offset = int(config.get("index_skip_topk_offset", 2))
    return max(index - offset + 1, 0) % every != 0


def _latent(config: Config, traits: FamilyTraits, index: int) -> latent.LatentAttentionShape:
    return latent.LatentAttentionShape(
        hidden=config_int(config, "hidden"),
        heads=config_int(config, "heads"),
        query_rank=config.get("q_lora_rank") or 0,
        kv_rank=config["kv_lora_rank"],
        nope_dim=config.get("qk_nope_head_dim", 128),
        rope_dim=config.get("qk_rope_head_dim", 64),
        value_dim=config.get("v_head_dim", 128),
        bias=bool(config.get("attention_bias")),
        index_heads=config.get("index_n_heads") or 0,
        index_dim=config.get("index_head_dim") or 0,
        top=config.get("index_topk", 2048),
        index_shared=_shares_index(config, index),
        head_gate=traits.head_gate,
    )


def compressed_mixer(config: Config, word: str) -> TokenMixer:
    """Attention over compressed keys (DeepSeek-V4), sparse, heavy or only local."""
    rates = config.get("compress_rates") or {}
    sparse = rates.get("compressed_sparse_attention", 4)
    heavy = rates.get("heavily_compressed_attention", 128)
    return latent.compressed_attention(
        latent.CompressedAttentionShape(
            hidden=config_int(config, "hidden"),
            heads=config_int(config, "heads"),
            head_dim=config_int(config, "head_dim"),
            query_rank=config.get("q_lora_rank") or 0,
            out_groups=config.get("o_groups", 8),
            out_rank=config.get("o_lora_rank", 1024),
            window=window_of(config) or 128,
            streams=config.get("hc_mult", 4),
            rate={"compressed": sparse, "heavy": heavy}.get(word, 0),
            index_heads=config.get("index_n_heads", 64) if word == "compressed" else 0,
            index_dim=config.get("index_head_dim", 128),
            top=config.get("index_topk", 512),
        )
    )


def recurrent_mixer(config: Config) -> TokenMixer:
    """The mixer with a state of fixed size that the configuration describes."""
    family = config.get("model_type")
    if family in {"lfm2", "lfm2_moe", "lfm3"}:
        return recurrent.short_convolution(
            config_int(config, "hidden"), config.get("conv_L_cache", 3)
        )
    if family == "minimax":
        return recurrent.lightning(
            config_int(config, "hidden"),
            config_int(config, "heads"),
            config_int(config, "head_dim", 0)
            or config_int(config, "hidden") // config_int(config, "heads"),
        )
    if family in {"kimi_linear", "bailing_hybrid"}:
        return _kimi(config)
    if "linear_num_value_heads" in config:
        return _delta(config)
    return _state_space(config)


def _state_space(config: Config) -> TokenMixer:
    if "mamba_num_heads" in config or "mamba_n_heads" in config:
        return _mamba2(config)
    if config.get("model_type") == "mamba2":
        return _mamba2(config, config.get("num_heads"))
    return _mamba(config)


def _kimi(config: Config) -> TokenMixer:
    inner = config.get("linear_attn_config") or {}
    heads = inner.get("num_heads") or config.get("linear_num_heads") or 32
    dim = inner.get("head_dim") or config.get("linear_head_dim") or 128
    kernel = inner.get("short_conv_kernel_size") or config.get("linear_conv_kernel_dim")
    return recurrent.kimi_delta(
        recurrent.KimiDeltaShape(
            hidden=config_int(config, "hidden"),
            heads=heads,
            dim=dim,
            convolution=kernel or 4,
            low_rank=config.get("model_type") == "kimi_linear",
        )
    )


def _delta(config: Config) -> TokenMixer:
    return recurrent.gated_delta(
        recurrent.GatedDeltaShape(
            hidden=config_int(config, "hidden"),
            key_heads=config["linear_num_key_heads"],
            key_dim=config["linear_key_head_dim"],
            value_heads=config["linear_num_value_heads"],
            value_dim=config["linear_value_head_dim"],
            convolution=config.get("linear_conv_kernel_dim", 4),
        )
    )


def _mamba(config: Config) -> TokenMixer:
    hidden = config_int(config, "hidden")
    expand = config.get("mamba_expand") or config.get("expand") or 2
    jamba = config.get("model_type") == "jamba"
    inner = expand * hidden if jamba else config.get("intermediate_size")
    rank = config.get("mamba_dt_rank") or config.get("time_step_rank")
    return recurrent.mamba(
        recurrent.MambaShape(
            hidden=hidden,
            inner=inner or expand * hidden,
            state=config.get("mamba_d_state") or config.get("state_size") or 16,
            convolution=config.get("mamba_d_conv") or config.get("conv_kernel") or 4,
            rank=rank if isinstance(rank, int) else 0,
            conv_bias=bool(config.get("mamba_conv_bias", config.get("use_conv_bias", True))),
            projection_bias=bool(config.get("mamba_proj_bias", config.get("use_bias", False))),
            inner_norms=jamba,
        )
    )


def _mamba2(config: Config, heads: int | None = None) -> TokenMixer:
    heads = heads or config.get("mamba_num_heads") or config.get("mamba_n_heads")
    dim = config.get("mamba_head_dim") or config.get("mamba_d_head")
    state = config.get("ssm_state_size") or config.get("mamba_d_state")
    groups = config.get("n_groups") or config.get("mamba_n_groups") or 1
    kernel = config.get("conv_kernel") or config.get("mamba_d_conv") or 4
    hidden = config_int(config, "hidden")
    expand = config.get("mamba_expand") or config.get("expand") or 2
    heads = heads or expand * hidden // 64
    if dim == "auto" or not dim:
        dim = expand * hidden // heads
    norm = config.get("model_type") != "falcon_h1" or config.get("mamba_rms_norm")
    return recurrent.mamba2(
        recurrent.Mamba2Shape(
            hidden=hidden,
            heads=heads,
            head_dim=dim,
            state=state or config.get("state_size") or 128,
            groups=groups,
            convolution=kernel,
            conv_bias=_switch(config, ("use_conv_bias", "mamba_conv_bias"), default=True),
            projection_bias=_switch(config, ("use_bias", "mamba_proj_bias"), default=False),
            norm=bool(norm),
        )
    )


def _switch(config: Config, names: tuple[str, ...], *, default: bool) -> bool:
    """The first of several names of a switch that is given."""
    for name in names:
        if config.get(name) is not None:
            return bool(config[name])
    return default
