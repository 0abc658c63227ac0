"""Build an Architecture from a Hugging Face config.json."""

import dataclasses
from typing import Any, Literal

from app.estimator.models import layers, sequence_mixers
from app.estimator.models.architecture import Architecture, fill_in_counts
from app.estimator.models.checkpoint_quantization import read_quantization
from app.estimator.models.hf_config import (
    Config,
    FamilyTraits,
    MoeRouting,
    TrackedConfig,
    UnreadableConfigError,
    add_config_defaults,
    count_prediction_modules,
    extract_language_model_config,
    has_windowed_dense_prediction_modules,
    list_kinds_of_each_layer,
    read_config_int,
    read_family_traits,
    read_layer_count,
    read_moe_routing,
    read_sliding_window_tokens,
    reject_unsupported_family,
)
from app.estimator.models.layers import Layer, Mlp, TokenMixer, WeightMatrix
from app.estimator.models.vision_tower import SIDE_CONFIGS, read_vision_tower

# What a configuration without a name is called, at the start of a sentence and within one.
_DEFAULT_MODEL_NAME = "Pasted model"


def _read_softmax_mixer(
    config: Config, traits: FamilyTraits, index: int, *, sliding: bool
) -> TokenMixer:
    """Return the attention of one layer; latent if the configuration has latent ranks."""
    window = read_sliding_window_tokens(config) if sliding else None
    if config.get("kv_lora_rank"):
        return sequence_mixers.build_latent_attention(
            _read_latent_shape(config, traits, index), window
        )
    hidden = read_config_int(config, "hidden")
    overrides = _read_head_shape_overrides(config, index, sliding=sliding)
    heads = overrides.get("heads") or read_config_int(config, "heads", layer=index)
    if not heads:
        raise UnreadableConfigError("The configuration has no attention heads.")
    shape = layers.AttentionShape(
        hidden=hidden,
        heads=heads,
        kv_heads=overrides.get("kv_heads") or _read_kv_heads(config, heads, index),
        head_dim=overrides.get("head_dim")
        or read_config_int(config, "head_dim", 0, layer=index)
        or hidden // heads,
        value_dim=overrides.get("value_dim") or config.get("v_head_dim") or 0,
        qkv_bias=traits.qkv_bias,
        out_bias=traits.out_bias,
        query_key_norm=traits.query_norm,
        parameters_per_norm_weight=traits.query_norm_terms,
        has_sinks=traits.sinks or (sliding and traits.sliding_sinks),
        has_output_gate=traits.query_gate,
        has_head_gate=traits.head_gate,
        keys_are_values=bool(config.get("attention_k_eq_v")) and not sliding,
    )
    mixer = layers.build_attention_mixer(
        shape, window, reuses_earlier_cache=_reuses_earlier_cache(config, index)
    )
    return _add_block_sparse_indexer(config, index, mixer)


# Engines keep the keys of this indexer in BF16 unless FP8 is asked for: vLLM,
# models/minimax_m3/common/indexer.py (MiniMaxM3IndexerCache); SGLang pull request 36549.
_BLOCK_SPARSE_INDEXER_BYTES = 2.0


def _add_block_sparse_indexer(config: Config, index: int, mixer: TokenMixer) -> TokenMixer:
    """Add the indexer that selects blocks of tokens in a layer (MiniMax-M3)."""
    listed = config.get("layer_types")
    if not isinstance(listed, list) or listed[index] != "minimax_m3_sparse":
        return mixer
    heads, dim = config.get("index_n_heads", 4), config.get("index_head_dim", 128)
    hidden, block = read_config_int(config, "hidden"), config.get("index_block_size", 128)
    blocks = config.get("index_topk_blocks", 16) + config.get("index_local_blocks", 1)
    queries = layers.WeightMatrix("index_q", hidden, heads * dim, "attention", "whole")
    keys = layers.WeightMatrix("index_k", hidden, dim, "attention", "whole")
    return dataclasses.replace(
        mixer,
        matrices=(*mixer.matrices, queries, keys),
        vector_parameters=mixer.vector_parameters + 2 * dim,
        indexer_cache_elements_per_token=dim,
        indexer_bytes_per_cache_element=_BLOCK_SPARSE_INDEXER_BYTES,
        indexer_heads=heads,
        indexer_head_dim=dim,
        indexer_selected_tokens=blocks * block,
    )


def _reuses_earlier_cache(config: Config, index: int) -> bool:
    """Return whether a layer reuses the keys and values of an earlier one."""
    shared = config.get("num_kv_shared_layers") or 0
    return index >= read_config_int(config, "layers", 0) - shared if shared else False


def _read_head_shape_overrides(config: Config, index: int, *, sliding: bool) -> dict[str, int]:
    """Return the head counts of one layer if they differ from the usual ones."""
    per_layer_config = config.get("per_layer_config")
    if isinstance(per_layer_config, dict):
        row = per_layer_config.get(f"{index:02d}") or per_layer_config.get(str(index)) or {}
        return {
            "head_dim": row.get("head_dim") or 0,
            "kv_heads": row.get("num_key_value_heads") or 0,
        }
    if sliding:
        kv_heads = config.get("swa_num_key_value_heads") or 0
        if not kv_heads and config.get("model_type") == "mimo_v2_flash":
            kv_heads = 2 * read_config_int(config, "kv_heads")
        return {
            "head_dim": config.get("swa_head_dim") or 0,
            "kv_heads": kv_heads,
            "heads": config.get("swa_num_attention_heads") or 0,
            "value_dim": config.get("swa_v_head_dim") or 0,
        }
    usual_dim = 512 if config.get("model_type") in {"gemma4_text", "gemma4"} else 0
    return {
        "head_dim": config.get("global_head_dim") or usual_dim,
        "kv_heads": config.get("num_global_key_value_heads") or 0,
    }


def _read_kv_heads(config: Config, heads: int, index: int) -> int:
    falcon = config.get("model_type") == "falcon"
    if falcon and not config.get("new_decoder_architecture"):
        return 1 if config.get("multi_query", True) else heads
    if config.get("multi_query") and "num_key_value_heads" not in config:
        return read_config_int(config, "kv_heads", 1, layer=index)
    return read_config_int(config, "kv_heads", heads, layer=index) or heads


def _reuses_selected_tokens(config: Config, index: int) -> bool:
    """Return whether a layer reuses the tokens that an earlier layer selected (GLM-5.2)."""
    listed = config.get("indexer_types") or config.get("index_topk_pattern")
    if listed:
        return str(listed[index]) in {"shared", "S"}
    period = max(int(config.get("index_topk_freq") or 1), 1)
    offset = int(config.get("index_skip_topk_offset", 2))
    return max(index - offset + 1, 0) % period != 0


def _read_indexer_tokens_per_key(config: Config) -> int:
    """Return how many tokens share a key of the indexer (GLM-5.3-Flash); 1 for others."""
    pool = config.get("index_kpool") or 1
    return pool if config.get("index_kpool_compress") else 1


def _has_latent_output_gate(config: Config) -> bool:
    """Return whether every output of latent attention has a gate (Kimi K3, Hy4)."""
    is_gated = bool(config.get("gated_mla")) and config.get("gating_type") == "elementwise"
    return is_gated or bool(config.get("mla_use_output_gate"))


def _read_latent_shape(
    config: Config, traits: FamilyTraits, index: int
) -> sequence_mixers.LatentAttentionShape:
    return sequence_mixers.LatentAttentionShape(
        hidden=read_config_int(config, "hidden"),
        heads=read_config_int(config, "heads"),
        query_rank=config.get("q_lora_rank") or 0,
        kv_rank=config["kv_lora_rank"],
        nope_dim=config.get("qk_nope_head_dim", 128),
        rope_dim=config.get("qk_rope_head_dim", 64),
        value_dim=config.get("v_head_dim", 128),
        has_bias=bool(config.get("attention_bias")),
        indexer_heads=config.get("index_n_heads") or 0,
        indexer_head_dim=config.get("index_head_dim") or 0,
        indexer_selected_tokens=config.get("index_topk", 2048),
        indexer_tokens_per_key=_read_indexer_tokens_per_key(config),
        reuses_selected_tokens=_reuses_selected_tokens(config, index),
        has_head_gate=traits.head_gate,
        has_output_gate=_has_latent_output_gate(config),
    )


def _read_compressed_mixer(config: Config, attention_kind: str) -> TokenMixer:
    """Return attention over compressed keys (DeepSeek-V4): sparse, heavy or local."""
    rates = config.get("compress_rates") or {}
    sparse = rates.get("compressed_sparse_attention", 4)
    heavy = rates.get("heavily_compressed_attention", 128)
    return sequence_mixers.build_compressed_attention(
        sequence_mixers.CompressedAttentionShape(
            hidden=read_config_int(config, "hidden"),
            heads=read_config_int(config, "heads"),
            head_dim=read_config_int(config, "head_dim"),
            query_rank=config.get("q_lora_rank") or 0,
            output_groups=config.get("o_groups", 8),
            output_rank=config.get("o_lora_rank", 1024),
            window_tokens=read_sliding_window_tokens(config) or 128,
            residual_streams=config.get("hc_mult", 4),
            tokens_per_entry={"compressed": sparse, "heavy": heavy}.get(attention_kind, 0),
            indexer_heads=config.get("index_n_heads", 64) if attention_kind == "compressed" else 0,
            indexer_head_dim=config.get("index_head_dim", 128),
            indexer_selected_tokens=config.get("index_topk", 512),
        )
    )


def _read_shared_compressed_mixer(config: Config, index: int) -> TokenMixer:
    """Return attention to a window and to a compressed past that layers share (DeepSeek-V4.1)."""
    ngrams = config["engram_max_ngram_size"] - 1
    columns = ngrams * config["engram_n_heads"] * config["engram_head_dim"]
    return sequence_mixers.build_shared_compressed_attention(
        sequence_mixers.CompressedAttentionShape(
            hidden=read_config_int(config, "hidden"),
            heads=read_config_int(config, "heads"),
            head_dim=read_config_int(config, "head_dim"),
            query_rank=config["q_lora_rank"],
            output_groups=config["o_groups"],
            output_rank=config["o_lora_rank"],
            window_tokens=config["sliding_window"],
            residual_streams=config["hc_mult"],
            tokens_per_entry=config["compress_ratios"][index],
            indexer_heads=config["index_n_heads"],
            indexer_head_dim=config["index_head_dim"],
            indexer_selected_tokens=config["index_topk"],
        ),
        sequence_mixers.SharedCompressionRole(
            compresses=index in config["kv_source_layer_ids"],
            indexes=index in config["index_source_layer_ids"],
            ngram_columns=columns if index in config["engram_layer_ids"] else 0,
        ),
    )


def _read_recurrent_or_convolution_mixer(config: Config) -> TokenMixer:
    family = config.get("model_type")
    if family in {"lfm2", "lfm2_moe", "lfm3"}:
        return sequence_mixers.build_short_convolution_mixer(
            read_config_int(config, "hidden"), config.get("conv_L_cache", 3)
        )
    if family == "minimax":
        return sequence_mixers.build_lightning_mixer(
            read_config_int(config, "hidden"),
            read_config_int(config, "heads"),
            read_config_int(config, "head_dim", 0)
            or read_config_int(config, "hidden") // read_config_int(config, "heads"),
        )
    if family in {"kimi_linear", "bailing_hybrid"} or config.get("linear_attn_config"):
        return _read_kimi_delta_mixer(config)
    if "linear_num_value_heads" in config:
        return _read_gated_delta_mixer(config)
    return _read_state_space_mixer(config)


def _read_state_space_mixer(config: Config) -> TokenMixer:
    if "mamba_num_heads" in config or "mamba_n_heads" in config:
        return _read_mamba2_mixer(config)
    if config.get("model_type") == "mamba2":
        return _read_mamba2_mixer(config, config.get("num_heads"))
    return _read_mamba_mixer(config)


def _read_kimi_delta_mixer(config: Config) -> TokenMixer:
    inner = config.get("linear_attn_config") or {}
    heads = inner.get("num_heads") or config.get("linear_num_heads") or 32
    dim = inner.get("head_dim") or config.get("linear_head_dim") or 128
    kernel = inner.get("short_conv_kernel_size") or config.get("linear_conv_kernel_dim")
    is_low_rank = config.get("model_type") != "bailing_hybrid"
    return sequence_mixers.build_kimi_delta_mixer(
        read_config_int(config, "hidden"),
        heads,
        dim,
        convolution_kernel=kernel or 4,
        low_rank_decay=is_low_rank,
        low_rank_gate=is_low_rank and not inner.get("use_full_rank_gate"),
    )


def _read_gated_delta_mixer(config: Config) -> TokenMixer:
    return sequence_mixers.build_gated_delta_mixer(
        hidden=read_config_int(config, "hidden"),
        key_heads=config["linear_num_key_heads"],
        key_dim=config["linear_key_head_dim"],
        value_heads=config["linear_num_value_heads"],
        value_dim=config["linear_value_head_dim"],
        convolution_kernel=config.get("linear_conv_kernel_dim", 4),
    )


def _read_mamba_mixer(config: Config) -> TokenMixer:
    hidden = read_config_int(config, "hidden")
    expand = config.get("mamba_expand") or config.get("expand") or 2
    jamba = config.get("model_type") == "jamba"
    inner = expand * hidden if jamba else config.get("intermediate_size")
    rank = config.get("mamba_dt_rank") or config.get("time_step_rank")
    return sequence_mixers.build_mamba_mixer(
        hidden=hidden,
        inner_width=inner or expand * hidden,
        state_width=config.get("mamba_d_state") or config.get("state_size") or 16,
        convolution_kernel=config.get("mamba_d_conv") or config.get("conv_kernel") or 4,
        dt_rank=rank if isinstance(rank, int) else 0,
        conv_bias=bool(config.get("mamba_conv_bias", config.get("use_conv_bias", True))),
        projection_bias=bool(config.get("mamba_proj_bias", config.get("use_bias", False))),
        inner_norms=jamba,
    )


def _read_mamba2_mixer(config: Config, heads: int | None = None) -> TokenMixer:
    heads = heads or config.get("mamba_num_heads") or config.get("mamba_n_heads")
    dim = config.get("mamba_head_dim") or config.get("mamba_d_head")
    state = config.get("ssm_state_size") or config.get("mamba_d_state")
    groups = config.get("n_groups") or config.get("mamba_n_groups") or 1
    kernel = config.get("conv_kernel") or config.get("mamba_d_conv") or 4
    hidden = read_config_int(config, "hidden")
    expand = config.get("mamba_expand") or config.get("expand") or 2
    heads = heads or expand * hidden // 64
    if dim == "auto" or not dim:
        dim = expand * hidden // heads
    norm = config.get("model_type") != "falcon_h1" or config.get("mamba_rms_norm")
    return sequence_mixers.build_mamba2_mixer(
        sequence_mixers.Mamba2Shape(
            hidden=hidden,
            heads=heads,
            head_dim=dim,
            state_width=state or config.get("state_size") or 128,
            key_groups=groups,
            convolution_kernel=kernel,
            conv_bias=_read_first_given_flag(
                config, ("use_conv_bias", "mamba_conv_bias"), default=True
            ),
            projection_bias=_read_first_given_flag(
                config, ("use_bias", "mamba_proj_bias"), default=False
            ),
            has_norm=bool(norm),
        )
    )


def _read_first_given_flag(config: Config, names: tuple[str, ...], *, default: bool) -> bool:
    for name in names:
        if config.get(name) is not None:
            return bool(config[name])
    return default


_NO_MLP = Mlp()
_NO_MIXER = TokenMixer(kind="none")


def _build_decoder_layers(config: Config, traits: FamilyTraits) -> tuple[Layer, ...]:
    """Return the layers of the decoder in order; equal layers are one shared object."""
    routing = read_moe_routing(config, read_layer_count(config))
    kinds = list_kinds_of_each_layer(config, traits, routing)
    layer_by_parts: dict[tuple[TokenMixer, TokenMixer | None, Mlp], Layer] = {}
    stack = []
    for index, kind in enumerate(kinds):
        mixer = _read_mixer(config, traits, index, kind.mixer_kind)
        second_mixer = (
            _read_recurrent_or_convolution_mixer(config) if kind.mixer_kind == "both" else None
        )
        mlp = _build_mlp(config, traits, routing, index, kind.mlp_kind)
        key = (mixer, second_mixer, mlp)
        if key not in layer_by_parts:
            layer_by_parts[key] = Layer(
                mixer, mlp, _count_norm_weights(config, traits, mixer, mlp), second_mixer
            )
        stack.append(layer_by_parts[key])
    if len(layer_by_parts) > _MOST_KINDS:
        message = f"{len(layer_by_parts)} different layers; at most {_MOST_KINDS} can be read."
        raise UnreadableConfigError(message)
    return tuple(stack)


# Estimates store results for each kind of layer.
_MOST_KINDS = 256


def _count_norm_weights(config: Config, traits: FamilyTraits, mixer: TokenMixer, mlp: Mlp) -> int:
    """Return the weights of the norms around the two halves of a layer."""
    halves = (mixer != _NO_MIXER) + (mlp != _NO_MLP)
    norms = traits.norms if halves == 2 else halves * max(1, traits.norms // 2)
    norms += traits.routed_norms if mlp.is_routed else 0
    if config.get("enable_moe_block"):
        norms += 3
    if config.get("hidden_size_per_layer_input"):
        norms += 1
    if config.get("attn_res_block_size"):  # A norm and a vector for each half (Kimi K3).
        norms += 4
    return norms * traits.norm_terms * read_config_int(config, "hidden") + traits.layer_scalars


def _read_mixer(config: Config, traits: FamilyTraits, index: int, mixer_kind: str) -> TokenMixer:
    """Return the mixer of a layer; of `both` the attention, which a recurrent one runs beside."""
    if mixer_kind == "none":
        return _NO_MIXER
    if config.get("model_type") == "deepseek_v41_text":
        return _read_shared_compressed_mixer(config, index)
    if mixer_kind in {"compressed", "heavy"} or config.get("model_type") == "deepseek_v4":
        return _read_compressed_mixer(config, mixer_kind)
    if mixer_kind == "linear":
        mixer = _read_recurrent_or_convolution_mixer(config)
    else:
        mixer = _read_softmax_mixer(config, traits, index, sliding=mixer_kind == "sliding")
    if streams := config.get("hc_mult"):
        hidden = read_config_int(config, "hidden")
        return sequence_mixers.add_residual_streams(mixer, hidden, streams)
    return mixer


def _build_mlp(
    config: Config, traits: FamilyTraits, routing: MoeRouting | None, index: int, mlp_kind: str
) -> Mlp:
    if mlp_kind == "none":
        return _NO_MLP
    if mlp_kind == "routed":
        if routing is None:
            raise UnreadableConfigError("A layer has experts, but their number is missing.")
        return _add_per_layer_embeddings(config, _read_routed_mlp(config, traits, routing))
    return _add_per_layer_embeddings(config, _build_dense_mlp(config, traits, routing, index))


def _build_dense_mlp(
    config: Config, traits: FamilyTraits, routing: MoeRouting | None, index: int
) -> Mlp:
    hidden = read_config_int(config, "hidden")
    width: Any = 0
    if routing:
        width = config.get("intermediate_size_mlp") or config.get("dense_intermediate_size") or 0
    if routing is None and config.get("model_type") == "granitemoehybrid":
        width = config.get("shared_intermediate_size") or 0
    width = width or read_config_int(config, "width", 0, layer=index) or 4 * hidden
    if config.get("block_auto_adjust_ff_dim"):
        width = _lfm2_mlp_width(config, width)
    if config.get("use_double_wide_mlp") and _reuses_earlier_cache(config, index):
        width *= 2
    if not isinstance(width, int) or width > 10**9:
        raise UnreadableConfigError(f"An MLP width of {width} cannot be read.")
    return layers.build_dense_mlp(hidden, width, gated=traits.gated, bias=traits.mlp_bias)


def _lfm2_mlp_width(config: Config, width: int) -> int:
    """Return two thirds of the width, scaled and rounded up, as in LFM2."""
    scaled = int(config.get("block_ffn_dim_multiplier", 1.0) * int(2 * width / 3))
    step = config.get("block_multiple_of", 256)
    return int(-(-scaled // step) * step)


def _add_per_layer_embeddings(config: Config, mlp: Mlp) -> Mlp:
    side_width = config.get("hidden_size_per_layer_input")
    if not side_width:
        return mlp
    hidden = read_config_int(config, "hidden")
    rank, streams = config.get("laurel_rank"), config.get("altup_num_inputs")
    side_matrices: tuple[WeightMatrix, ...] = (
        WeightMatrix("side_in", hidden, side_width, "mlp", "whole"),
        WeightMatrix("side_out", side_width, hidden, "mlp", "whole"),
    )
    vectors = 0
    if rank:
        side_matrices += (
            WeightMatrix("laurel_in", hidden, rank, "mlp", "whole"),
            WeightMatrix("laurel_out", rank, hidden, "mlp", "whole"),
        )
        vectors += hidden
    if streams:
        vectors += streams**2 + streams**3 + streams * hidden + 2 * hidden
    return dataclasses.replace(
        mlp,
        matrices=mlp.matrices + side_matrices,
        vector_parameters=mlp.vector_parameters + vectors,
    )


def _read_routed_mlp(config: Config, traits: FamilyTraits, routing: MoeRouting) -> Mlp:
    scales = 0
    shared = routing.shared_width
    if config.get("enable_moe_block"):
        shared = read_config_int(config, "width")
        scales = read_config_int(config, "hidden") + routing.experts
    return layers.build_routed_mlp(
        layers.MoeShape(
            hidden=read_config_int(config, "hidden"),
            experts=routing.experts,
            experts_per_token=routing.experts_per_token,
            expert_width=routing.expert_width,
            shared_width=shared,
            is_gated=traits.gated,
            has_shared_gate=traits.shared_gate,
            has_expert_bias=traits.expert_bias,
            has_router_bias=traits.router_bias,
            latent_width=config.get("moe_latent_size")
            or config.get("routed_expert_hidden_size")
            or 0,
            has_latent_norm=bool(config.get("latent_moe_use_norm")),
            scale_parameters=scales,
            zero_expert_count=routing.zero_expert_count,
        )
    )


@dataclasses.dataclass(frozen=True, slots=True)
class Seq2SeqTraits:
    """Parameters of an encoder-decoder family outside of its layers."""

    norm_terms: int = 2
    bias: bool = True
    key_bias: bool = True
    embedding_norm: bool = False
    final_norm: bool = False
    extra_positions: int = 0
    learned_positions: bool = True
    relative_position_bias: bool = False
    relative_bias_per_layer: bool = False


_T5 = Seq2SeqTraits(norm_terms=1, bias=False, final_norm=True, relative_position_bias=True)
_SEQ2SEQ_TRAITS: dict[str, Seq2SeqTraits] = {
    "t5": _T5,
    "mt5": _T5,
    "umt5": dataclasses.replace(_T5, relative_bias_per_layer=True),
    "bart": Seq2SeqTraits(embedding_norm=True, extra_positions=2),
    "mbart": Seq2SeqTraits(embedding_norm=True, final_norm=True, extra_positions=2),
    "pegasus": Seq2SeqTraits(final_norm=True),
    "marian": Seq2SeqTraits(),
    "m2m_100": Seq2SeqTraits(final_norm=True, learned_positions=False),
    "whisper": Seq2SeqTraits(key_bias=False, final_norm=True),
}


def _build_encoder_decoder(config: Config, name: str) -> Architecture:
    traits = _SEQ2SEQ_TRAITS[str(config["model_type"])]
    hidden = read_config_int(config, "hidden")
    encoder_count = config.get("encoder_layers") or config.get("num_layers") or 0
    decoder_count = config.get("decoder_layers") or config.get("num_decoder_layers")
    decoder_count = decoder_count or encoder_count
    if not 1 <= max(encoder_count, decoder_count) <= 2000:
        message = f"{max(encoder_count, decoder_count)} layers; 1 to 2,000 can be read."
        raise UnreadableConfigError(message)
    layer_count = encoder_count + decoder_count
    return fill_in_counts(
        Architecture(
            name=name or _DEFAULT_MODEL_NAME,
            hidden=hidden,
            vocabulary=read_config_int(config, "vocabulary"),
            tied=bool(config.get("tie_word_embeddings", True)),
            decoder_layers=(_build_seq2seq_layer(config, traits, "decoder"),) * decoder_count,
            encoder_layers=(_build_seq2seq_layer(config, traits, "encoder"),) * encoder_count,
            other=_count_seq2seq_parameters_outside_layers_and_vocabulary(
                config, traits, hidden, layer_count
            ),
            max_context=_read_max_context(config),
            family=str(config["model_type"]),
            norm_terms=traits.norm_terms,
        )
    )


def _build_seq2seq_layer(
    config: Config, traits: Seq2SeqTraits, half: Literal["encoder", "decoder"]
) -> Layer:
    is_decoder, hidden = half == "decoder", read_config_int(config, "hidden")
    heads = config.get(f"{half}_attention_heads") or read_config_int(config, "heads")
    width = config.get(f"{half}_ffn_dim") or read_config_int(config, "width")
    gated = "gated" in str(config.get("feed_forward_proj", ""))
    attention = _build_seq2seq_attention(config, traits, hidden, heads)
    return Layer(
        mixer=attention
        if is_decoder
        else dataclasses.replace(attention, cache_elements_per_token=0),
        mlp=layers.build_dense_mlp(hidden, width, gated=gated, bias=traits.bias),
        norm_parameters=(3 if is_decoder else 2) * traits.norm_terms * hidden,
        # The cached keys and values of the encoder do not grow with the answer.
        second_mixer=dataclasses.replace(attention, cache_elements_per_token=0)
        if is_decoder
        else None,
    )


def _build_seq2seq_attention(
    config: Config, traits: Seq2SeqTraits, hidden: int, heads: int
) -> TokenMixer:
    head_dim = config.get("d_kv") or hidden // heads
    shape = layers.AttentionShape(
        hidden=hidden,
        heads=heads,
        kv_heads=heads,
        head_dim=head_dim,
        qkv_bias=traits.bias,
        out_bias=traits.bias,
    )
    attention_mixer = layers.build_attention_mixer(shape)
    if traits.bias and not traits.key_bias:
        return dataclasses.replace(
            attention_mixer, vector_parameters=attention_mixer.vector_parameters - heads * head_dim
        )
    return attention_mixer


def _count_seq2seq_parameters_outside_layers_and_vocabulary(
    config: Config, traits: Seq2SeqTraits, hidden: int, layers: int
) -> int:
    """Return the norms of both halves, positions, relative biases and the audio front end."""
    count = 2 * (int(traits.embedding_norm) + int(traits.final_norm))
    total = count * traits.norm_terms * hidden
    if traits.relative_position_bias:
        buckets = config.get("relative_attention_num_buckets", 32)
        stacks = layers if traits.relative_bias_per_layer else 2
        total += buckets * read_config_int(config, "heads") * stacks
    elif traits.learned_positions:
        source = config.get("max_source_positions") or read_config_int(config, "positions", 1024)
        target = config.get("max_target_positions") or read_config_int(config, "positions", 1024)
        total += (int(source + target) + 2 * traits.extra_positions) * hidden
    if config.get("model_type") == "whisper":
        mels = config.get("num_mel_bins", 80)
        total += 3 * mels * hidden + hidden + 3 * hidden * hidden + hidden
    return total


def build_architecture(config: Config, name: str = "") -> Architecture:
    """Build the architecture from a Hugging Face `config.json`.

    Raises UnreadableConfigError with a sentence if a size is missing or wrong.

    >>> build_architecture({"model_type": "llama", "hidden_size": 4096,
    ...     "num_hidden_layers": 32, "num_attention_heads": 32,
    ...     "intermediate_size": 11008, "vocab_size": 32000}).parameters
    6738415616
    """
    whole = TrackedConfig(config)
    text_config = {
        k: v for k, v in extract_language_model_config(whole).items() if k not in SIDE_CONFIGS
    }
    completed, defaulted_keys = add_config_defaults(text_config)
    text = TrackedConfig(completed)
    reject_unsupported_family(text)
    is_seq2seq = text.get("model_type") in _SEQ2SEQ_TRAITS
    build = _build_encoder_decoder if is_seq2seq else _build_decoder_only
    model = _validate_architecture(build(text, name))
    quantization = read_quantization(whole, text)
    vision_tower = read_vision_tower(whole, model.hidden)
    beside = whole.list_unread_fields_beside(text_config)
    formats = quantization.unread_fields if quantization else ()
    return dataclasses.replace(
        model,
        tower=vision_tower.tower,
        quantization=quantization,
        unread=(
            *text.list_unread_relevant_fields(),
            *beside,
            *vision_tower.unread_fields,
            *(f"quantization_config.{key}" for key in formats),
        ),
        unread_size_fields=(
            *text.list_unread_size_fields(),
            *(key for key in whole.list_unread_size_fields() if key in beside),
        ),
        defaulted_fields=(*defaulted_keys, *vision_tower.defaulted_fields),
    )


def _validate_architecture(model: Architecture) -> Architecture:
    """Return `model` if all of its sizes are valid; raises UnreadableConfigError."""
    for layer, _ in model.layer_counts:
        for matrix in layer.matrices:
            if not all(
                map(_is_positive_integer, (matrix.input_width, matrix.output_width, matrix.copies))
            ):
                message = f"A matrix of {matrix.input_width} × {matrix.output_width} cannot be."
                raise UnreadableConfigError(message)
        counts = (
            layer.vector_parameters,
            layer.mixer.cache_elements_per_token,
            layer.state_elements,
            layer.convolution_state_elements,
        )
        if not all(count == 0 or _is_positive_integer(count) for count in counts):
            raise UnreadableConfigError("A size of a layer is negative or not whole.")
    if not _is_positive_integer(model.parameters) or min(model.parameters_by_part().values()) < 0:
        raise UnreadableConfigError("A size of the model is negative or not whole.")
    return model


def _read_max_context(config: Config) -> int | None:
    """Return the tokens that a model is configured for; None if it has no such limit.

    Engines let a stated limit replace the positions: Cohere has 131,072 beside 8,192.
    """
    positions = read_config_int(config, "positions", 0)
    return read_config_int(config, "context_limit", positions) or None


def _is_positive_integer(value: object) -> bool:
    return isinstance(value, int) and value > 0


def _build_decoder_only(config: Config, name: str) -> Architecture:
    traits = read_family_traits(config)
    hidden = read_config_int(config, "hidden")
    stack = _build_decoder_layers(config, traits)
    predictors = count_prediction_modules(config)
    vocabulary = read_config_int(config, "vocabulary")
    positions = 0
    if traits.learned_positions:
        positions = read_config_int(config, "positions", 0) + traits.extra_positions
    return fill_in_counts(
        Architecture(
            name=name or str(config.get("_name_or_path") or _DEFAULT_MODEL_NAME),
            hidden=hidden,
            vocabulary=vocabulary,
            tied=traits.tied,
            decoder_layers=stack,
            learned_positions=positions,
            other=_count_decoder_parameters_outside_layers_and_tables(
                config, traits, hidden, vocabulary
            ),
            per_layer_embedding_parameters=_count_per_layer_embedding_parameters(config, hidden),
            ngram_table_parameters=_count_ngram_table_parameters(config),
            embedding_width=config.get("word_embed_proj_dim") or 0,
            max_context=_read_max_context(config),
            family=str(config.get("model_type", "llama")),
            norm_terms=traits.norm_terms,
            prediction_module_layers=_build_layers_of_one_prediction_module(config, stack)
            * predictors,
            prediction_module_count=predictors,
        )
    )


def _build_layers_of_one_prediction_module(
    config: Config, decoder_layers: tuple[Layer, ...]
) -> tuple[Layer, ...]:
    """Return the layers of such a module: attention and MLP as in the model's last layer.

    A few families have a sliding window and a dense MLP instead.
    """
    attention = next((a for a in reversed(decoder_layers) if a.mixer.heads), None)
    if attention is None:
        return ()
    if config.get("dspark_n_routed_experts"):
        return (_build_draft_layer(config, attention),)
    if has_windowed_dense_prediction_modules(config):
        sliding = next((a for a in decoder_layers if a.mixer.window_tokens), attention)
        dense = next((a.mlp for a in decoder_layers if not a.mlp.is_routed), attention.mlp)
        return (dataclasses.replace(sliding, mlp=dense),)
    if attention.mlp.width:
        return (attention,)
    return (attention, *(a for a in reversed(decoder_layers) if a.mlp.width))[:2]


def _build_draft_layer(config: Config, layer: Layer) -> Layer:
    """Return a layer of DSpark: fewer experts than in the model, and a window alone."""
    traits = read_family_traits(config)
    drafting = {
        **config,
        "n_routed_experts": config["dspark_n_routed_experts"],
        "num_experts_per_tok": config["dspark_num_experts_per_tok"],
    }
    routing = read_moe_routing(drafting, 1)
    if routing is None:
        return layer
    return dataclasses.replace(layer, mlp=_read_routed_mlp(config, traits, routing))


def _count_decoder_parameters_outside_layers_and_tables(
    config: Config, traits: FamilyTraits, hidden: int, vocabulary: int
) -> int:
    """Return norms, head bias, and the parameters of stream mixing and embedding projections."""
    norms = int(traits.final_norm) + int(traits.embedding_norm)
    # Other families take the mean of their streams at the end.
    streams = config.get("hc_mult") or 0 if config.get("model_type") == "deepseek_v4" else 0
    mixing_parameters = streams * (streams * hidden + 1) + 1 if streams else 0
    bias = vocabulary if traits.head_bias else 0
    if config.get("attn_res_block_size"):
        norms += 2
    embedding_width = config.get("word_embed_proj_dim") or hidden
    if embedding_width != hidden:  # One projection in and one out.
        mixing_parameters += 2 * embedding_width * hidden
    return norms * traits.norm_terms * hidden + bias + mixing_parameters


def _count_ngram_table_parameters(config: Config) -> int:
    """Return the weights of tables that are looked up by the last few tokens (Engram)."""
    rows: list[int] = config.get("engram_num_embeddings") or []
    return sum(rows) * config["engram_head_dim"] if rows else 0


def _count_per_layer_embedding_parameters(config: Config, hidden: int) -> int:
    side_width = config.get("hidden_size_per_layer_input") or 0
    if not side_width:
        return 0
    width = side_width * read_config_int(config, "layers")
    rows = config.get("vocab_size_per_layer_input") or read_config_int(config, "vocabulary")
    streams = config.get("altup_num_inputs") or 1
    projection_parameters = 2 * (streams - 1) * hidden * hidden
    return rows * width + width * hidden + side_width + projection_parameters
