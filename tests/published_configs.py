"""Small models in whole config.json files, with every kind of entry that published ones have."""

from typing import Any

_GENERATION: dict[str, Any] = {
    "attention_dropout": 0.0,
    "bos_token_id": 1,
    "eos_token_id": [2, 3],
    "initializer_range": 0.02,
    "max_position_embeddings": 131072,
    "rms_norm_eps": 1e-05,
    "tie_word_embeddings": False,
    "torch_dtype": "bfloat16",
    "transformers_version": "4.57.0",
    "use_cache": True,
    "vocab_size": 4096,
}
_LAYERS = 8

CONFIGS: dict[str, dict[str, Any]] = {
    # As gpt-oss: windows in every second layer, MXFP4 experts.
    "windows": {
        **_GENERATION,
        "architectures": ["GptOssForCausalLM"],
        "model_type": "gpt_oss",
        "hidden_size": 512,
        "intermediate_size": 512,
        "head_dim": 64,
        "layer_types": ["sliding_attention", "full_attention"] * (_LAYERS // 2),
        "num_attention_heads": 8,
        "num_key_value_heads": 8,
        "num_hidden_layers": _LAYERS,
        "num_local_experts": 8,
        "num_experts_per_tok": 2,
        "sliding_window": 128,
        "quantization_config": {
            "quant_method": "mxfp4",
            "modules_to_not_convert": ["model.layers.*.self_attn", "lm_head"],
        },
    },
    # As Kimi K2.5: a tower beside a text model with a latent cache and INT4 experts.
    "latent": {
        "architectures": ["KimiK25ForConditionalGeneration"],
        "model_type": "kimi_k25",
        "text_config": {
            **_GENERATION,
            "model_type": "deepseek_v3",
            "hidden_size": 512,
            "intermediate_size": 1024,
            "moe_intermediate_size": 256,
            "first_k_dense_replace": 1,
            "n_routed_experts": 8,
            "n_shared_experts": 1,
            "num_experts_per_tok": 2,
            "num_attention_heads": 8,
            "num_key_value_heads": 8,
            "num_hidden_layers": _LAYERS,
            "num_nextn_predict_layers": 0,
            "kv_lora_rank": 64,
            "q_lora_rank": 128,
            "qk_nope_head_dim": 64,
            "qk_rope_head_dim": 32,
            "v_head_dim": 64,
            "quantization_config": {
                "quant_method": "fp8",
                "fmt": "e4m3",
                "activation_scheme": "dynamic",
                "weight_block_size": [128, 128],
            },
        },
        "id2label": {str(n): f"LABEL_{n}" for n in range(40)},
    },
    # As Qwen3.5 in NVFP4: linear attention, and one entry for every module left out.
    "hybrid": {
        **_GENERATION,
        "architectures": ["Qwen3NextForCausalLM"],
        "model_type": "qwen3_next",
        "hidden_size": 512,
        "intermediate_size": 1024,
        "moe_intermediate_size": 256,
        "shared_expert_intermediate_size": 256,
        "decoder_sparse_step": 1,
        "full_attention_interval": 4,
        "head_dim": 64,
        "linear_conv_kernel_dim": 4,
        "linear_key_head_dim": 64,
        "linear_num_key_heads": 8,
        "linear_num_value_heads": 8,
        "linear_value_head_dim": 64,
        "mlp_only_layers": [],
        "num_attention_heads": 8,
        "num_key_value_heads": 8,
        "num_experts": 8,
        "num_experts_per_tok": 2,
        "num_hidden_layers": _LAYERS,
        "quantization_config": {
            "quant_method": "modelopt",
            "quant_algo": "NVFP4",
            "kv_cache_scheme": {"num_bits": 8, "type": "float"},
            "ignore": [
                "lm_head",
                *(
                    f"model.layers.{n}.linear_attn.{part}"
                    for n in range(_LAYERS)
                    for part in ("conv1d", "in_proj_qkvz", "in_proj_ba", "out_proj")
                ),
                *(f"vision.blocks.{n}.attn.qkv" for n in range(300)),
            ],
        },
    },
}
