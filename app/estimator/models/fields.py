"""A configuration that remembers which of its fields were asked for."""

from collections.abc import Iterator, Mapping
from typing import Any

from app.estimator import catalogue
from app.estimator.models.families import is_known

Config = Mapping[str, Any]


class Fields(Mapping[str, Any]):
    """The fields of a `config.json`, and which of them anybody read.

    >>> fields = Fields({"hidden_size": 64, "odd_blocks": 3})
    >>> fields["hidden_size"], fields.unread()
    (64, ('odd_blocks',))
    """

    def __init__(self, given: Config) -> None:
        """Take the fields of `given`; none of them is read yet."""
        self._given = dict(given)
        self._read: set[str] = set()

    def __getitem__(self, key: str) -> Any:
        """Read one field."""
        self._read.add(key)
        return self._given[key]

    def get(self, key: str, default: Any = None) -> Any:
        """Read one field, which may be missing: far quicker than by an exception."""
        self._read.add(key)
        return self._given.get(key, default)

    def __iter__(self) -> Iterator[str]:
        """Name the fields."""
        return iter(self._given)

    def __len__(self) -> int:
        """Count the fields."""
        return len(self._given)

    def unread(self) -> tuple[str, ...]:
        """Fields that nobody read and that may change what is counted."""
        known = is_known(str(self._given.get("model_type", "llama")))
        return tuple(
            key
            for key, value in self._given.items()
            if value is not None
            and value != _NEUTRAL.get(key)
            and key not in self._read
            and not _is_harmless(key, known=known)
        )


def with_defaults(text: Config) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Add what a nested configuration leaves to the defaults of its class.

    The second value names the fields that were added, less what is switched off.
    """
    defaults = catalogue.load("defaults.toml", "family")
    row = defaults.get(str(text.get("model_type")), {}).get("config", {})
    added = {key: value for key, value in row.items() if key not in text}
    return {**added, **text}, tuple(key for key, value in added.items() if value)


def _is_harmless(key: str, *, known: bool) -> bool:
    if key.startswith("_") or key.endswith(_ENDINGS) or key in _EVERYWHERE:
        return True
    return known and key in _OF_FAMILIES


# What these say by default changes nothing; anything else would.
_NEUTRAL: dict[str, Any] = {
    "conv_bias": False,
    "do_layer_norm_before": True,
    "enable_bias": True,
    "expansion_ratio": 4,
    "layer_norm_elementwise_affine": True,
    "lora_rank": 0,
    "projectors_bias": False,
    "pruned_heads": {},
    "qk_layernorm": True,
}

# Ids of tokens, rates of dropout and terms that keep a division from zero.
_ENDINGS = ("_token_id", "_token_index", "_dropout", "_pdrop", "_eps", "_token_ids")

# Fields of any model that change neither weights, cache nor operations: how it is
# started, trained, scaled, positioned, sampled and stored.
_EVERYWHERE = frozenset(
    """
    architectures attn_implementation auto_map bad_words_ids begin_suppress_tokens
    chunk_size_feed_forward diversity_penalty do_sample dropout dtype early_stopping
    ep_size ep_plan finetuning_task forced_bos_token_id gradient_checkpointing
    hidden_act hidden_activation activation_function id2label initializer_factor
    initializer_range is_decoder is_encoder_decoder label2id layer_norm_epsilon
    layerdrop length_penalty max_length max_new_tokens mlp_hidden_act model_type
    norm_topk_prob num_beams num_labels num_return_sequences output_attentions
    output_hidden_states output_router_logits original_max_position_embeddings
    partial_rotary_factor prefix pretraining_tp problem_type quantization_config
    remove_invalid_values repetition_penalty return_dict rope_interleave
    rope_local_base_freq rope_parameters rope_scaling rope_theta rotary_dim
    rotary_emb_base rotary_pct routed_scaling_factor router_aux_loss_coef
    router_jitter_noise scoring_func seq_aux sep_token_id suppress_tokens
    task_specific_params temperature tokenizer_class top_k top_p topk_method
    torch_dtype torchscript transformers_version typical_p unsloth_fixed
    unsloth_version use_bfloat16 use_cache use_flash_attention
    """.split()  # noqa: SIM905 - a list of words, easier to read and to add to
)

# The same for families whose implementation is known: doubling or flipping any of
# these leaves every weight of Transformers 5.23 as it is.
_OF_FAMILIES = frozenset(
    """
    activation activation_sparsity_pattern add_cross_attention alibi altup_active_idx
    altup_coef_clip altup_correct_scale apply_residual_connection_post_layernorm
    attention_in_multiplier attention_layers attention_multiplier
    attention_out_multiplier attention_softmax_in_fp32 attention_types
    attention_value_scale attn_logit_softcapping attn_scale attn_temperature_tuning
    aux_loss_alpha block_size cache_implementation chunk_size clip_qkv
    dense_attention_every_n_layers dim_model_base embedding_fraction
    embedding_multiplier enable_moe_fp32_combine final_logit_softcapping floor_scale
    for_llm_compressor full_attn_alpha_factor full_attn_beta_factor hc_sinkhorn_iters
    head_dim init_device init_std key_multiplier linear_attn_alpha_factor
    linear_attn_beta_factor lm_head_multiplier logit_scale logits_scaling
    mamba_chunk_size mamba_d_ssm mamba_hidden_act mamba_norm_before_gate
    mamba_ssm_cache_dtype mamba_ssm_dtype max_window_layers mlp_alpha_factor
    mlp_beta_factor mlp_multipliers
    model_max_length moe_renormalize moe_router_activation_func moe_router_use_sigmoid
    moe_shared_expert_overlap mtp_layers_block_type n_ctx n_group n_positions
    no_rope_layer_interval no_rope_layers norm_type num_attention_heads
    num_expert_group num_hidden_layers num_key_value_heads num_kv_heads
    num_logits_to_keep query_pre_attn_scalar reorder_and_upcast_attn
    rescale_prenorm_residual residual_dropout residual_in_fp32 residual_multiplier
    rope_local_base_freq rope_parameters rope_theta router_scaling_factor
    scale_attention_softmax_in_fp32 scale_attn_by_inverse_layer_idx
    scale_attn_weights scale_depth scale_emb scale_embedding slow_but_exact
    ssm_in_multiplier ssm_multipliers ssm_out_multiplier summary_first_dropout
    summary_proj_to_labels summary_type summary_use_proj swiglu_alpha swiglu_limit
    time_step_floor time_step_init_scheme time_step_limit time_step_max time_step_min
    time_step_scale topk_group use_associative_scan use_bidirectional_attention
    use_mamba_kernels use_mambapy use_parallel_residual use_qk_norm window_size
    z_loss_coefficient attn_output_gate layer_types
    first_k_dense_replace interleave_moe_layer_step intermediate_size
    full_attn_idxs sliding_window_pattern n_shared_experts sliding_window
    use_sliding_window qk_head_dim intermediate_size_mlp use_routing_bias
    global_attn_every_n_layers mup_enabled route_scale kda_lower_bound kda_safe_gate
    layer_group_size mtp_loss_scaling_factor short_conv_kernel_size
    expert_selection_fn shared_expert_combination_strategy compress_rope_theta
    qk_rope_head_dim moe_norm_min layer_rope_theta moe_apply_router_weight_on_input
    moe_routed_scaling_factor moe_router_logit_softcapping conv_L_cache
    input_jitter_noise norm_epsilon embedding_initializer_range linear_a_log_max
    linear_a_log_min linear_allow_neg_eigval linear_dt_init_floor linear_dt_max
    linear_dt_min time_step_rank mamba_proj_bias dense_intermediate_size
    index_block_size index_head_dim index_local_blocks index_n_heads
    index_topk_blocks prefix_dense_sliding_window_pattern num_experts_per_tok
    attention_method zero_expert_type mla_use_nope sliding_window_size
    relative_attention_max_distance dense_act_fn is_gated_act scale_decoder_outputs
    share_encoder_decoder_embeddings use_weighted_layer_sum classifier_proj_size
    apply_spec_augment mask_time_length mask_time_min_masks mask_feature_length
    mask_feature_min_masks median_filter_width vocab_size_per_layer_input
    use_double_wide_mlp
    """.split()  # noqa: SIM905 - a list of words, easier to read and to add to
)
