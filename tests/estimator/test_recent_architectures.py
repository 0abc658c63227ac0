"""Models of 2025 and 2026: what is printed of them, and what is not understood."""

import json
from pathlib import Path
from typing import Any

import pytest

from app.estimator.hardware.catalog import find_accelerator
from app.estimator.hardware.collectives import build_gpu_interconnect
from app.estimator.memory.kv_cache import (
    cache_elements_per_token_ignoring_windows,
    kv_cache_elements_per_sequence,
    longest_context,
)
from app.estimator.models.architecture import Architecture
from app.estimator.models.hf_architecture import build_architecture
from app.estimator.models.lookup import find_model, list_model_caveats, list_models
from app.estimator.registry import run_estimate
from app.estimator.result import Estimate
from app.estimator.serving.step_time import (
    ServingSetup,
    cache_and_state_bytes_moved_per_gpu,
    place_model,
)
from app.estimator.training.flops import (
    adapter_training_flops_per_token,
    mixer_forward_flops_outside_matrices,
    prediction_module_training_flops_per_token,
    recomputed_flops_per_token,
    training_flops_per_token,
)

_SHAPES = json.loads((Path(__file__).parent / "shapes.json").read_text())

# Sizes of config.json files on the Hugging Face Hub, compared on 2026-11-23 with
# copies of them in public repositories: all of Granite 4 and Kimi Linear, layers,
# widths, heads and experts of the others.
_NANO: dict[str, Any] = {  # nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B
    "model_type": "nemotron_h",
    "hidden_size": 2688,
    "hybrid_override_pattern": "MEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEMEM*EMEMEMEME",
    "num_hidden_layers": 52,
    "num_attention_heads": 32,
    "num_key_value_heads": 2,
    "head_dim": 128,
    "vocab_size": 131072,
    "n_routed_experts": 128,
    "num_experts_per_tok": 6,
    "moe_intermediate_size": 1856,
    "moe_shared_expert_intermediate_size": 3712,
    "n_shared_experts": 1,
    "mamba_num_heads": 64,
    "mamba_head_dim": 64,
    "ssm_state_size": 128,
    "n_groups": 8,
    "conv_kernel": 4,
    "intermediate_size": 1856,
    "expand": 2,
    "tie_word_embeddings": False,
}
_MINIMAX: dict[str, Any] = {  # MiniMaxAI/MiniMax-Text-01
    "model_type": "minimax_text_01",
    "hidden_size": 6144,
    "intermediate_size": 9216,
    "num_hidden_layers": 80,
    "num_attention_heads": 64,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "vocab_size": 200064,
    "num_local_experts": 32,
    "num_experts_per_tok": 2,
    "attn_type_list": ([0] * 7 + [1]) * 10,
    "tie_word_embeddings": False,
}
_KIMI: dict[str, Any] = {  # moonshotai/Kimi-Linear-48B-A3B-Instruct
    "model_type": "kimi_linear",
    "hidden_size": 2304,
    "intermediate_size": 9216,
    "num_hidden_layers": 27,
    "num_attention_heads": 32,
    "num_key_value_heads": 32,
    "head_dim": 72,
    "vocab_size": 163840,
    "kv_lora_rank": 512,
    "q_lora_rank": None,
    "qk_nope_head_dim": 128,
    "qk_rope_head_dim": 64,
    "v_head_dim": 128,
    "moe_intermediate_size": 1024,
    "num_experts": 256,
    "num_experts_per_token": 8,
    "num_shared_experts": 1,
    "first_k_dense_replace": 1,
    "linear_attn_config": {
        "full_attn_layers": [4, 8, 12, 16, 20, 24, 27],
        "head_dim": 128,
        "num_heads": 32,
        "short_conv_kernel_size": 4,
    },
    "tie_word_embeddings": False,
}
_LONGCAT: dict[str, Any] = {  # meituan-longcat/LongCat-Flash-Chat
    "model_type": "longcat_flash",
    "hidden_size": 6144,
    "ffn_hidden_size": 12288,
    "expert_ffn_hidden_size": 2048,
    "num_layers": 28,
    "num_attention_heads": 64,
    "n_routed_experts": 512,
    "zero_expert_num": 256,
    "moe_topk": 12,
    "kv_lora_rank": 512,
    "q_lora_rank": 1536,
    "qk_nope_head_dim": 128,
    "qk_rope_head_dim": 64,
    "v_head_dim": 128,
    "vocab_size": 131072,
}
_GRANITE: dict[str, Any] = {  # ibm-granite/granite-4.0-h-small
    "model_type": "granitemoehybrid",
    "hidden_size": 4096,
    "intermediate_size": 768,
    "num_hidden_layers": 40,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "vocab_size": 100352,
    "num_local_experts": 72,
    "num_experts_per_tok": 10,
    "shared_intermediate_size": 1536,
    "mamba_n_heads": 128,
    "mamba_d_head": 64,
    "mamba_d_state": 128,
    "mamba_n_groups": 1,
    "mamba_d_conv": 4,
    "tie_word_embeddings": True,
    "layer_types": ["attention" if i in {5, 15, 25, 35} else "mamba" for i in range(40)],
}
_GLM: dict[str, Any] = {  # zai-org/GLM-5
    "model_type": "glm_moe_dsa",
    "hidden_size": 6144,
    "intermediate_size": 12288,
    "num_hidden_layers": 78,
    "num_attention_heads": 64,
    "q_lora_rank": 2048,
    "kv_lora_rank": 512,
    "qk_nope_head_dim": 192,
    "qk_rope_head_dim": 64,
    "v_head_dim": 256,
    "n_routed_experts": 256,
    "num_experts_per_tok": 8,
    "n_shared_experts": 1,
    "moe_intermediate_size": 2048,
    "first_k_dense_replace": 3,
    "vocab_size": 154880,
    "index_n_heads": 32,
    "index_head_dim": 128,
    "index_topk": 2048,
}


def _rest(model: Architecture) -> float:
    """Active parameters without the tables at both ends."""
    tables = model.embedding_parameters + model.head_parameters
    return model.active_parameters - tables


# What model cards and reports print, in billions, with the reading of "active".
def test_counts_are_those_of_the_card(subtests: pytest.Subtests) -> None:
    for name, (config, total, active, tables) in zip(
        ["nemotron-3", "minimax-01", "kimi-linear", "longcat", "granite-4", "glm-5"],
        [
            # 31.6 billion, 3.2 active, 3.6 with embeddings: report of NVIDIA (2025)
            (_NANO, 31.6, 3.58, "both"),
            # 456 billion, 45.9 active: report of MiniMax-01 (2025)
            (_MINIMAX, 456, 45.9, "none"),
            # 48 billion (49.12 on the Hub), 3 active: card of Kimi Linear (2025)
            (_KIMI, 49.12, 3.1, "one"),
            # 560 billion, 27 on average: report of LongCat-Flash (2025). Transformers
            # holds 741 billion, because it stores rows for experts that do nothing.
            (_LONGCAT, 560, 27, "one"),
            # 32 billion, 9 active: card of IBM Granite 4.0 (2025)
            (_GRANITE, 32.2, 8.8, "both"),
            # 744 billion parameters and 40 billion active, by the card of GLM-5 (2026)
            (_GLM, 744, 40, "none"),
        ],
        strict=True,
    ):
        with subtests.test(name):
            model = build_architecture(config)
            working = {
                "both": model.active_parameters,
                "one": model.active_parameters - model.embedding_parameters,
                "none": _rest(model),
            }[tables]
            assert model.parameters / 1e9 == pytest.approx(total, rel=0.002)
            assert working / 1e9 == pytest.approx(active, rel=0.011)
            assert not list_model_caveats(model)


@pytest.mark.parametrize(
    ("name", "loaded", "active"),
    [
        # With modules for more tokens and towers where the source counts them.
        ("glm-5.3", 743, 41),  # vllm-project/recipes: 743B
        ("glm-5.3-flash", 321 - 7.4, 18),  # vllm-project/recipes: 321B
        ("deepseek-v4.1-flash", 552 + 196.6 + 0.5, 16.8),  # vllm-project/recipes: 552B and 196B
        ("hy4-preview", 770, 49),  # vllm-project/recipes: 770B
        ("ling-3.0-flash", 127.486 - 3.07, 5.5),  # metadata of its files
        ("qwen3.8-2.4t-a95b", 2420, 95),
    ],
)
def test_models_of_late_2026_have_the_parameters_that_are_published(
    name: str, loaded: float, active: float
) -> None:
    model = find_model(name)
    assert model.loaded_parameters / 1e9 == pytest.approx(loaded, rel=0.002)
    assert model.active_parameters / 1e9 == pytest.approx(active, rel=0.04)


def test_sizes_of_linear_attention_are_read_from_their_own_table() -> None:
    model = find_model("glm-5.3-flash")
    assert model.state_elements == 34 * 64 * 128 * 128
    assert model.convolution_elements == 34 * 3 * 64 * 128 * 4
    # The keys of its indexer stand for 4 tokens each.
    keys = {a.mixer.indexer_cache_elements_per_token for a, _ in model.layer_counts}
    assert keys == {0, 128 // 4}
    assert not model.unread_size_fields


def test_fields_of_other_kinds_of_attention_are_not_missed() -> None:
    latent = {"kv_lora_rank": 64, "q_lora_rank": 96, "qk_nope_head_dim": 32}
    latent |= {"qk_rope_head_dim": 0, "v_head_dim": 32, "qk_head_dim": 32}
    unused = {"head_dim": 0, "num_key_value_heads": 4}
    assert not build_architecture(_ODD | latent | unused).unread_size_fields
    # Without latent attention its size of heads is not understood.
    assert build_architecture(_ODD | {"qk_head_dim": 32}).unread_size_fields == ("qk_head_dim",)


def test_layers_that_read_the_cache_of_another_keep_none() -> None:
    model = find_model("deepseek-v4.1-flash")
    # Three layers keep an entry of 512 for two tokens, one for each token.
    assert model.cache_elements == 3 * 256 + 512
    four_bit = cache_elements_per_token_ignoring_windows(model, bytes_per_element=0.5 + 1 / 16)
    # 890 bytes of each token: vllm-project/recipes.
    assert four_bit * (0.5 + 1 / 16) == pytest.approx(890)


def test_tables_of_n_grams_are_loaded_and_hardly_used() -> None:
    model = find_model("deepseek-v4.1-flash")
    tables = (384_006_168 + 384_016_682) * 256
    assert model.ngram_table_parameters == tables
    assert model.parameters_by_part()["n-gram tables"] == tables
    assert model.active_parameters < model.parameters - tables


def test_only_attention_layers_of_a_hybrid_keep_a_growing_cache() -> None:
    # 10 of 80, 7 of 27 and 6 of 52 layers; 2·g·d or r_kv + d_r each.
    assert build_architecture(_MINIMAX).cache_elements == 10 * 2 * 8 * 128
    assert build_architecture(_KIMI).cache_elements == 7 * (512 + 64)
    assert build_architecture(_NANO).cache_elements == 6 * 2 * 2 * 128


def test_states_are_those_of_the_engine() -> None:
    # Shapes of vLLM's MambaStateShapeCalculator: (heads, head_dim, state) for
    # Mamba-2, (heads, d, d) for lightning attention and delta rules.
    assert build_architecture(_NANO).state_elements == 23 * 64 * 64 * 128
    assert build_architecture(_MINIMAX).state_elements == 70 * 64 * 128 * 128
    assert build_architecture(_KIMI).state_elements == 20 * 32 * 128 * 128
    assert find_model("qwen3-next-80b-a3b").state_elements == 36 * 32 * 128 * 128


def test_the_keys_of_an_indexer_are_cached_in_eight_bit() -> None:
    # vLLM: DeepseekV32IndexerCache holds 128 FP8 and one FP32 scale per token, beside
    # 512 + 64 latent elements, in each of 61 layers; whatever the tensor parallelism.
    model = find_model("deepseek-v3.2")
    assert 2 * cache_elements_per_token_ignoring_windows(model) == 61 * (2 * (512 + 64) + 132)
    assert cache_elements_per_token_ignoring_windows(model, 8, 1.0) == 61 * (512 + 64 + 132)
    assert kv_cache_elements_per_sequence(
        model, 1000
    ) == 1000 * cache_elements_per_token_ignoring_windows(model)


def test_each_gpu_keeps_all_keys_of_an_indexer_beside_grouped_heads() -> None:
    # vLLM: MiniMaxM3IndexerCache holds one head of 128 in BF16 in 57 of 60 layers, whatever the
    # format of the cache; of the 4 KV heads, each of 8 GPUs has one.
    model, index_bytes = find_model("minimax-m3"), 57 * 128 * 2
    for gpus, width, heads in ((1, 2, 4), (8, 2, 1), (4, 1, 1)):
        expected_bytes = 60 * heads * 2 * 128 * width + index_bytes
        elements = cache_elements_per_token_ignoring_windows(model, gpus, width)
        assert width * elements == expected_bytes
        assert width * kv_cache_elements_per_sequence(model, 10, gpus, width) == 10 * expected_bytes
        assert longest_context(model, 100 * elements, gpus, 1, width) == 100
    report = run_estimate("kv-cache", {"model": "minimax-m3", "tensor_parallel": "8"})
    line = report.steps[-1].substituted.replace("\u00a0", " ")
    assert line == "(122.88 kB × 8,192 ÷ 4 + 14.592 kB × 8,192 ÷ 1) × 1"


def test_a_decode_step_reads_the_same_keys_of_an_indexer_on_each_gpu() -> None:
    model, gpu, context = find_model("minimax-m3"), find_accelerator("b200-sxm"), 100_000
    placed = place_model(
        model,
        gpu,
        build_gpu_interconnect(gpu),
        ServingSetup(engine_id="vllm", tensor_parallel=8),
    )
    # One of 4 KV heads: of all tokens in 3 layers, of the 17 selected blocks in the others.
    cache_bytes = 2 * 128 * 2 * (3 * context + 57 * 17 * 128)
    index_bytes = 57 * 128 * 2 * context
    assert cache_and_state_bytes_moved_per_gpu(placed, 1, context) == cache_bytes + index_bytes


def test_a_layer_that_shares_an_index_keeps_none() -> None:
    sharing = {**_GLM, "index_topk_freq": 4, "index_skip_topk_offset": 2}
    whole, shared = build_architecture(_GLM), build_architecture(sharing)
    kept = sum(n for a, n in shared.layer_counts if a.mixer.indexer_cache_elements_per_token)
    assert kept == 21  # layers 0 and 1, and every fourth from 5 on
    assert all(a.mixer.indexer_selected_tokens == 2048 for a, _ in shared.layer_counts)
    assert shared.parameters < whole.parameters


def test_sparse_attention_costs_what_it_chooses() -> None:
    sparse = find_model("deepseek-v3.2")
    whole = find_model("deepseek-v3")
    near, far = training_flops_per_token(sparse, 2048), training_flops_per_token(sparse, 131_072)
    assert near > training_flops_per_token(whole, 2048)  # the indexer comes on top
    assert far < 0.6 * training_flops_per_token(whole, 131_072)


def _delta_flops(hidden: int) -> float:
    """One gated delta layer, forward: gdn_layer_flops of Megatron-LM (d98e8a64)."""
    keys, values, kernel = 16 * 128, 32 * 128, 4
    inner = hidden * (2 * keys + 2 * values + 2 * 32)
    return 2.0 * (inner + kernel * (2 * keys + values) + 32 * 128**2 * 4 + hidden * values)


def test_delta_layers_take_the_operations_that_megatron_counts() -> None:
    model = find_model("qwen3-next-80b-a3b")
    h, s, attention, delta = 2048, 8192, 12, 36
    heads, groups, d, vocabulary = 16, 2, 256, 151_936
    # attention with an output gate: queries twice, keys, values, output; causal half
    mixing = 2 * h * d * (3 * heads + 2 * groups) + 2 * heads * d * s
    experts = 2 * (10 * 3 * h * 512 + 3 * h * 512 + h * 512)  # routed, shared, router
    forward = attention * mixing + delta * _delta_flops(h) + 48 * experts
    forward += 2 * h * vocabulary
    assert training_flops_per_token(model, s) == pytest.approx(3 * forward, rel=1e-6)


def test_state_space_layers_take_the_operations_that_megatron_counts() -> None:
    model = build_architecture(_NANO)
    h, s, inner, state = 2688, 8192, 64 * 64, 128
    # mamba_layer_flops of Megatron-LM: projections and seven per element of state
    mamba = 2 * h * (2 * inner + 2 * 8 * state + 64) + 7 * inner * state + 2 * inner * h
    attention = 2 * h * 128 * (32 + 2 * 2 + 32) + 2 * 32 * 128 * s
    experts = 4 * h * (6 * 1856 + 3712) + 2 * h * 128
    forward = 23 * mamba + 6 * attention + 23 * experts + 2 * h * 131_072
    # Megatron leaves out the convolution, which is 2 for each of its weights.
    assert training_flops_per_token(model, s) == pytest.approx(3 * forward, rel=5e-4)


def test_attention_beside_a_state_space_counts_both() -> None:
    shape = next(s for s in _SHAPES if s["name"] == "falcon_h1")
    model = build_architecture(shape["config"])
    layer = model.decoder_layers[0]
    assert layer.second_mixer is not None
    alone = 2 * sum(m.active_parameters for m in layer.matrices)
    assert layer.second_mixer.scan_flops_per_state_element * layer.second_mixer.state_elements > 0
    counted = training_flops_per_token(model, 1) / 3 - 2 * model.embedding_parameters
    assert counted > model.layers * (
        alone + layer.second_mixer.scan_flops_per_state_element * layer.second_mixer.state_elements
    )


def test_adapters_and_recomputation_count_both_mixers_of_a_hybrid() -> None:
    model = build_architecture(next(s for s in _SHAPES if s["name"] == "falcon_h1")["config"])
    layers = [layer for layer, number in model.layer_counts for _ in range(number)]
    scores = sum(
        mixer_forward_flops_outside_matrices(mixer, 4096)
        for layer in layers
        for mixer in (layer.mixer, layer.second_mixer)
    )
    weights = training_flops_per_token(model, 4096) / 3 - scores
    # Frozen weights pass gradients on; scores of both mixers are computed as in full training.
    adapters = adapter_training_flops_per_token(model, 4096, 1000.0)
    assert adapters == pytest.approx(2 * weights + 3 * scores + 6000)
    assert recomputed_flops_per_token(model, 4096, "selective") == pytest.approx(scores)
    forward = weights + scores - 2 * model.embedding_parameters
    assert recomputed_flops_per_token(model, 4096, "full") == pytest.approx(forward)


def test_multi_token_prediction_is_counted_beside_the_model() -> None:
    config = {"num_nextn_predict_layers": 1}
    shape = next(s for s in _SHAPES if s["name"] == "deepseek_v3")["config"]
    plain = {k: v for k, v in shape.items() if "nextn" not in k and "mtp" not in k}
    assert build_architecture(plain | config).parameters == build_architecture(plain).parameters
    assert build_architecture(plain).prediction_module_parameters == 0


def test_the_module_of_deepseek_v3_has_its_printed_size() -> None:
    # README_WEIGHTS of DeepSeek-V3: 11.5B unique parameters; NVIDIA's recipes train
    # at 2.600e11 FLOP per token with the module, 2.504e11 without it.
    config = {
        "model_type": "deepseek_v3",
        "hidden_size": 7168,
        "intermediate_size": 18432,
        "num_hidden_layers": 61,
        "num_attention_heads": 128,
        "q_lora_rank": 1536,
        "kv_lora_rank": 512,
        "qk_nope_head_dim": 128,
        "qk_rope_head_dim": 64,
        "v_head_dim": 128,
        "n_routed_experts": 256,
        "num_experts_per_tok": 8,
        "n_shared_experts": 1,
        "moe_intermediate_size": 2048,
        "first_k_dense_replace": 3,
        "vocab_size": 129280,
        "num_nextn_predict_layers": 1,
    }
    model = build_architecture(config)
    assert model.parameters == find_model("deepseek-v3").parameters
    assert model.prediction_module_parameters == pytest.approx(11.5e9, rel=0.01)
    training = training_flops_per_token(model, 4096)
    assert training == pytest.approx(2.504e11, rel=0.001)
    with_module = training + prediction_module_training_flops_per_token(model, 4096)
    assert with_module == pytest.approx(2.600e11, rel=0.003)


@pytest.mark.parametrize(
    ("name", "modules", "parameters"),
    [
        ("glm-5", 1, 9.95e9),  # As GLM-5.1 and 5.2.
        ("qwen3.5-397b-a17b", 1, 6.60e9),
        ("qwen3-next-80b-a3b", 1, 1.65e9),
        ("mimo-v2-flash", 3, 3 * 0.33e9),  # Its model card: 0.33B each.
        ("step-3.5-flash", 3, 0.81e9),  # Its model card.
        ("minimax-m3", 1, 7.49e9),
        ("minimax-m2", 0, 0),
        ("minimax-m2.5", 0, 0),
        ("minimax-m2.7", 0, 0),
        ("kimi-k2.6", 0, 0),
        ("glm-5.3-flash", 1, 7.43e9),
        ("deepseek-v4.1-flash", 3, 14e9),  # vllm-project/recipes: about 14B.
        ("hy4-preview", 1, 10e9),  # vllm-project/recipes.
    ],
)
def test_the_catalog_has_the_prediction_modules_that_are_published(
    name: str, modules: int, parameters: float
) -> None:
    model = find_model(name)
    assert model.prediction_module_count == modules
    assert model.prediction_module_parameters == pytest.approx(parameters, rel=0.05)


def test_prediction_modules_that_a_configuration_only_names_are_not_counted() -> None:
    shape = {"hidden_size": 512, "num_hidden_layers": 2, "num_attention_heads": 8}
    text = shape | {"intermediate_size": 1024, "vocab_size": 1000, "num_mtp_modules": 7}
    text |= {"model_type": "minimax_m2"}
    assert build_architecture(text).prediction_module_count == 0
    # The text of a MiniMax-M3 is named like MiniMax-M2, in some copies not at all.
    whole = {"model_type": "minimax_m3_vl", "text_config": text}
    assert build_architecture(whole).prediction_module_count == 1
    unnamed = {k: v for k, v in text.items() if k != "model_type"}
    other = build_architecture({**whole, "text_config": unnamed})
    assert other.parameters == build_architecture(whole).parameters


def test_windows_beside_compressed_keys_are_cache_not_state() -> None:
    shape = next(s for s in _SHAPES if s["name"] == "deepseek_v4")
    model = build_architecture(shape["config"])
    assert model.state_elements == 0
    heavy, sparse = 64 // 128, 64 // 4 + 1.03125 * (32 // 4) / 2
    grown = 4 * heavy + 2 * sparse
    added = kv_cache_elements_per_sequence(model, 2001) - kv_cache_elements_per_sequence(
        model, 2000
    )
    assert added == pytest.approx(grown)
    window = kv_cache_elements_per_sequence(model, 128) - 128 * grown
    assert window == pytest.approx(6 * 64 * 128)


def test_a_nested_configuration_has_the_defaults_of_its_class() -> None:
    # google/gemma-3-4b-it names six fields of its text model; vocabulary, heads and
    # their width are those of Gemma3TextConfig.
    text = {
        "hidden_size": 2560,
        "intermediate_size": 10240,
        "model_type": "gemma3_text",
        "num_hidden_layers": 34,
        "sliding_window": 1024,
    }
    model = build_architecture({"model_type": "gemma3", "text_config": text})
    assert model.parameters == 3_880_263_168  # Gemma3ForCausalLM, Transformers 5.23
    (said,) = list_model_caveats(model)
    assert "num_attention_heads" in said
    assert "num_key_value_heads" in said


def test_every_field_of_a_known_family_is_understood() -> None:
    for shape in _SHAPES:
        unread = set(build_architecture(shape["config"]).unread)
        assert unread <= {"decoder_vocab_size"}, shape["name"]
    for name, _ in list_models():
        assert not find_model(name).unread, name


_ODD = {
    "model_type": "unheard_of",
    "hidden_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 128,
    "vocab_size": 100,
    "hidden_dropout": 0.1,
    "bos_token_id": 1,
    "rms_norm_eps": 1e-6,
    "hyper_streams": 4,
    "memory_slots": 512,
    "use_qk_norm": True,
}


def test_an_unknown_family_says_so_and_names_what_it_did_not_understand() -> None:
    first, second = list_model_caveats(build_architecture(_ODD))
    assert "“unheard_of” is not known" in first
    assert second.endswith("not counted: hyper_streams, memory_slots, use_qk_norm.")


# Without these a configuration of no known family is refused.
_GIVEN = {"num_hidden_layers", "num_attention_heads"}


def _asked(name: str, **typed: Any) -> Estimate:
    return run_estimate(name, {key: str(value) for key, value in typed.items()})


@pytest.mark.parametrize("name", ["kv-cache", "weights", "inference-memory", "latency"])
def test_every_calculator_says_what_was_not_understood(name: str) -> None:
    found = _asked(name, model=json.dumps(_ODD))
    assert any("hyper_streams" in note for note in found.notes)
    assert not any("hyper_streams" in note for note in _asked(name).notes)


def test_every_number_of_an_unknown_family_is_read_or_named(
    subtests: pytest.Subtests,
) -> None:
    """A field that changes nothing when it is doubled has to be named or harmless."""
    for shape in [s for s in _SHAPES if s["config"].keys() >= _GIVEN]:
        with subtests.test(shape["name"]):
            config = {**shape["config"], "model_type": "unheard_of", "odd_width": 7}
            model = build_architecture(config)
            assert "odd_width" in model.unread
            for key in model.unread:
                value = config[key]
                if isinstance(value, int) and not isinstance(value, bool):
                    doubled = build_architecture({**config, key: 2 * value + 1})
                    assert doubled.parameters == model.parameters, key


def test_towers_that_are_not_counted_are_named() -> None:
    config = {"text_config": dict(_ODD), "vision_config": {"hidden_size": 32}}
    assert "vision_config" in build_architecture(config).unread
