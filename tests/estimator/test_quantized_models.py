"""Models that are published quantized: their weights, and what is said of them."""

import json
from pathlib import Path
from typing import Any

import pytest

from app.cli.estimator import run_estimate_command
from app.estimator import registry
from app.estimator.inputs import InvalidInputsError
from app.estimator.memory.kv_cache import HybridCacheBlocks, build_hybrid_cache_blocks
from app.estimator.models.hf_architecture import build_architecture
from app.estimator.models.lookup import (
    build_model_from_pasted_config,
    find_model,
    list_models,
    shorten_config,
)
from app.estimator.models.weight_formats import find_weight_format, weight_bytes_by_split

GIB = 2.0**30
GPT_OSS_120B = 65_248_815_744  # total_size of its index of tensors
KIMI_K2 = 1_029_173_256_720
KEPT = ["model.layers.*.self_attn", "model.layers.*.mlp.router", "lm_head"]
GPT_OSS = {
    "model_type": "gpt_oss",
    "num_hidden_layers": 36,
    "num_local_experts": 128,
    "vocab_size": 201088,
    "hidden_size": 2880,
    "intermediate_size": 2880,
    "head_dim": 64,
    "num_attention_heads": 64,
    "num_key_value_heads": 8,
    "sliding_window": 128,
    "num_experts_per_tok": 4,
    "tie_word_embeddings": False,
    "quantization_config": {"quant_method": "mxfp4", "modules_to_not_convert": KEPT},
}
SMALL = {
    "model_type": "llama",
    "hidden_size": 1024,
    "num_hidden_layers": 4,
    "num_attention_heads": 8,
    "num_key_value_heads": 8,
    "intermediate_size": 4096,
    "vocab_size": 32000,
    "tie_word_embeddings": False,
}
ATTENTION = 4 * 1024 * 1024
MLP = 3 * 1024 * 4096
TABLE = 32000 * 1024
NORMS = (2 * 4 + 1) * 1024
SERVING = ("inference-memory", "latency", "accelerator-choice", "weights")


def weigh(table: dict[str, Any] | None, **more: Any) -> float:
    """Bytes of the small model when it is published so."""
    config = {**SMALL, **more}
    if table is not None:
        config["quantization_config"] = table
    return weight_bytes_by_split(
        build_model_from_pasted_config(json.dumps(config)), "published"
    ).total_bytes


def expected(
    attention: float,
    mlp: float,
    table: float = 16,
    head: float = 16,
    narrow: tuple[int, ...] = (0, 1, 2, 3),
) -> float:
    """Bytes with so many bits in each part, in the layers of `narrow`."""
    layers = len(narrow) * (ATTENTION * attention + MLP * mlp)
    layers += (4 - len(narrow)) * (ATTENTION + MLP) * 16
    return (layers + TABLE * (table + head) + NORMS * 16) / 8


def group(bits: int, **weights: Any) -> dict[str, Any]:
    return {
        "targets": ["Linear"],
        "weights": {"num_bits": bits, "type": "int", "symmetric": True, **weights},
    }


FP8 = {"quant_method": "fp8", "weight_block_size": [128, 128]}
COMPRESSED = {"quant_method": "compressed-tensors", "ignore": ["lm_head"]}
NVFP4 = group(4, type="float", strategy="tensor_group", group_size=16)
GPTQ = {"quant_method": "gptq", "bits": 4, "group_size": 128}
BNB = {"quant_method": "bitsandbytes", "load_in_4bit": True}
BLOCK = 8 + 32 / 128**2
WITH_ZERO = 4 + 20 / 128


@pytest.mark.parametrize(
    ("table", "attention", "mlp"),
    [
        (None, 16, 16),
        ({}, 16, 16),
        ({"quant_method": "fp8"}, 8, 8),
        (FP8, BLOCK, BLOCK),
        ({**FP8, "quant_method": "FP8"}, BLOCK, BLOCK),
        ({"quant_method": "fbgemm_fp8", "modules_to_not_convert": None}, 8, 8),
        (GPTQ, WITH_ZERO, WITH_ZERO),
        ({**GPTQ, "bits": 3}, 3 + 19 / 128, 3 + 19 / 128),
        ({**GPTQ, "group_size": -1}, 4, 4),
        ({**GPTQ, "bits": 8, "group_size": 32}, 8 + 24 / 32, 8 + 24 / 32),
        ({**GPTQ, "quant_method": "awq"}, WITH_ZERO, WITH_ZERO),
        ({**GPTQ, "quant_method": "awq", "zero_point": False}, 4.125, 4.125),
        ({**BNB, "bnb_4bit_quant_type": "nf4"}, 4.5, 4.5),
        ({**BNB, "bnb_4bit_use_double_quant": True}, 4.126953125, 4.126953125),
        ({"_load_in_8bit": True, "quant_method": "bitsandbytes"}, 8, 8),
        ({"load_in_8bit": True}, 8, 8),
        ({**COMPRESSED, "config_groups": {"group_0": NVFP4}}, 4.5, 4.5),
        ({**COMPRESSED, "config_groups": {"a": group(8)}}, 8, 8),
        (
            {**COMPRESSED, "config_groups": {"a": group(4, group_size=32)}},
            4.5,
            4.5,
        ),
        (
            {
                **COMPRESSED,
                "config_groups": {"a": group(4, group_size=128, symmetric=False)},
            },
            WITH_ZERO,
            WITH_ZERO,
        ),
        ({"quant_method": "modelopt", "quant_algo": "NVFP4"}, 4.5, 4.5),
        ({"quant_algo": "FP8", "ignore": ["lm_head"]}, 8, 8),
        ({"quantization": {"quant_algo": "FP8_PB_WO"}}, BLOCK, BLOCK),
        (
            {
                "quant_method": "auto-round",
                "bits": 4,
                "group_size": 128,
                "extra_config": {"model.layers.0.mlp": {"bits": 4}},
            },
            WITH_ZERO,
            WITH_ZERO,
        ),
        (
            {
                "quant_method": "auto-round",
                "bits": 4,
                "data_type": "mx_fp",
                "extra_config": {".*mlp.*": {"bits": 8}},
            },
            4.25,
            8.25,
        ),
        (
            {
                "quant_method": "quark",
                "global_quant_config": {"weight": {"dtype": "fp4", "group_size": 32}},
                "exclude": ["lm_head"],
            },
            4.25,
            4.25,
        ),
        (
            {
                "quant_method": "hqq",
                "quant_config": {"weight_quant_params": {"nbits": 4, "group_size": 64}},
            },
            4.5,
            4.5,
        ),
        ({"quant_method": "quanto", "weights": "int8"}, 8, 8),
    ],
)
def test_the_weights_of_a_configuration_are_those_of_its_format(
    table: dict[str, Any] | None, attention: float, mlp: float
) -> None:
    assert weigh(table) == pytest.approx(expected(attention, mlp))


_LAYERS = r"model\.layers\.(?:[1-2]|3|[1-6][0-9]|7[0-7])"


@pytest.mark.parametrize(
    ("table", "bytes_of_it"),
    [
        ({**FP8, "modules_to_not_convert": ["self_attn"]}, expected(16, BLOCK)),
        ({**FP8, "ignored_layers": ["model.layers.*.mlp"]}, expected(BLOCK, 16)),
        (
            {
                **FP8,
                "modules_to_not_convert": ["model.layers.0", "model.layers.3"],
            },
            expected(BLOCK, BLOCK, narrow=(1, 2)),
        ),
        (
            {
                **COMPRESSED,
                "ignore": ["re:.*lm_head", r"re:.*\.(q|k|v|o)_proj$"],
                "config_groups": {"a": group(8)},
            },
            expected(16, 8),
        ),
        (
            {
                **COMPRESSED,
                "ignore": [r"re:model\.layers\.[0-1]\..*"],
                "config_groups": {"a": group(8)},
            },
            expected(8, 8, narrow=(2, 3)),
        ),
        (
            {
                **COMPRESSED,
                "config_groups": {
                    "a": {**group(8), "targets": [rf"re:{_LAYERS}\.self_attn\.(?:[qkv]|o)_proj$"]},
                    "b": {**NVFP4, "targets": [rf"re:{_LAYERS}\.(?:mlp\.(?:gate|up|down)_proj)$"]},
                },
                "ignore": [r"re:^model\.layers\.[0-9]\.mlp\.gate$", "re:.*norm.*"],
            },
            expected(8, 4.5, narrow=(1, 2, 3)),
        ),
        (
            {
                **COMPRESSED,
                "config_groups": {
                    "fp4": {**NVFP4, "targets": ["re:.*mlp.*"]},
                    "fp8": {**group(8, type="float"), "targets": ["re:.*self_attn.*"]},
                },
            },
            expected(8, 4.5),
        ),
        (
            {
                "quant_method": "modelopt",
                "quant_algo": "NVFP4",
                "ignore": ["lm_head", "model.layers.0.self_attn*", "model.visual*"],
            },
            expected(4.5, 4.5) + ATTENTION * (16 - 4.5) / 8,
        ),
        (
            {
                "quant_method": "modelopt",
                "quant_algo": "MIXED_PRECISION",
                "quantized_layers": {
                    f"model.layers.{i}.mlp.{name}_proj": {"quant_algo": "NVFP4"}
                    for i in range(4)
                    for name in ("gate", "up", "down")
                },
            },
            expected(16, 4.5),
        ),
        (
            {
                **GPTQ,
                "dynamic": {r"-:model\.layers\.0\..*": {}, "+:.*mlp.*": {"bits": 8}},
            },
            expected(WITH_ZERO, 8 + 24 / 128, narrow=(1, 2, 3)),
        ),
        ({**GPTQ, "lm_head": True}, expected(WITH_ZERO, WITH_ZERO, head=WITH_ZERO)),
        (
            {"bits": 4, "group_size": 64, "model.layers.0.mlp": False},
            expected(4.5, 4.5, 4.5, 4.5) + MLP * (16 - 4.5) / 8,
        ),
        (  # As in gpt-oss with MXFP4 experts; a module without a mode has integers.
            {
                "bits": 4,
                "group_size": 32,
                "mode": "mxfp4",
                "model.layers.*.self_attn": {"bits": 8, "group_size": 64},
            },
            expected(8.5, 4.25, 4.25, 4.25),
        ),
        (
            {**FP8, "modules_to_not_convert": ["visual.layers.0", "mtp", "lm_head"]},
            expected(BLOCK, BLOCK),
        ),
    ],
)
def test_modules_that_a_checkpoint_leaves_out_keep_16_bit(
    table: dict[str, Any], bytes_of_it: float
) -> None:
    assert weigh(table) == pytest.approx(bytes_of_it)


def test_the_table_is_found_at_the_top_and_in_the_part_of_the_language_model() -> None:
    inner = {"text_config": {**SMALL, "quantization_config": FP8}}
    outer = {"text_config": SMALL, "quantization_config": FP8}
    none = {"text_config": SMALL, "quantization_config": None}
    older = {**SMALL, "compression_config": {"config_groups": {"a": group(8)}}}
    sizes = [
        weight_bytes_by_split(
            build_model_from_pasted_config(json.dumps(config)), "published"
        ).total_bytes
        for config in (inner, outer, none, older)
    ]
    assert sizes[0] == sizes[1] == pytest.approx(expected(BLOCK, BLOCK))
    assert sizes[2] == pytest.approx(expected(16, 16))
    assert sizes[3] == pytest.approx(expected(8, 8))


def test_weights_of_type_float8_count_one_byte_without_a_table() -> None:
    assert weigh(None, torch_dtype="float8_e4m3fn") == pytest.approx(expected(8, 8))
    assert weigh(None, dtype="torch.bfloat16") == pytest.approx(expected(16, 16))


def test_a_pasted_checkpoint_in_mxfp4_weighs_what_its_files_do() -> None:
    words = json.dumps(GPT_OSS)
    one = {"model": words, "tensor_parallel": 1}
    answer = registry.run_estimate("inference-memory", one)
    assert answer["weights"].value == GPT_OSS_120B
    assert "Weights as published: MXFP4 experts" in answer.verdict.text


@pytest.mark.parametrize(
    ("model", "size"),
    [
        ("gpt-oss-120b", GPT_OSS_120B),
        ("kimi-k2", KIMI_K2),
        ("kimi-k2.5", 595.2e9),
        ("minimax-m2", 230.1e9),
        # Without modules for more tokens, and with the towers, what files hold:
        ("glm-5.3-flash", 328.33e9 - 7.5e9),  # 62 shards
        ("deepseek-v4.1-flash", 511e9 - 7.9e9),  # vllm-project/recipes
        ("ling-3.0-flash", 254.98e9 - 2 * 3.07e9),  # 24 shards
    ],
)
def test_models_of_the_catalog_weigh_what_their_files_do(model: str, size: float) -> None:
    answer = registry.run_estimate("weights", {"model": model})
    assert answer["total"].value == pytest.approx(size, rel=2e-3)


def test_every_quantization_of_the_catalog_is_understood() -> None:
    quantized = {
        key: how.unsupported_reason
        for key, _ in list_models()
        if (how := find_model(key).quantization)
    }
    assert len(quantized) == 20
    assert not any(quantized.values())


def test_a_format_that_is_chosen_wins_and_both_are_named() -> None:
    answer = registry.run_estimate("weights", {"model": "gpt-oss-120b", "weights": "bf16"})
    assert answer["total"].value == 2 * find_model("gpt-oss-120b").parameters
    assert answer.verdict.text.endswith(
        "Weights in BF16, as chosen; published in MXFP4 experts, the rest BF16."
    )


def test_nothing_is_said_of_formats_where_a_model_is_not_quantized() -> None:
    answer = registry.run_estimate("weights", {"model": "llama-3.1-8b"})
    assert "published" not in answer.verdict.text
    assert answer.verdict.text.startswith("Llama 3.1 8B in BF16")


@pytest.mark.parametrize("name", SERVING)
@pytest.mark.parametrize(
    ("table", "problem"),
    [
        ({"quant_method": "aqlm", "in_group_size": 8}, "“aqlm”"),
        ({"quant_method": "exl2", "bits": 4.25}, "“exl2”"),
        ({"bits": 4}, "one without a name"),
        ("int4", "“int4”"),
        ({**GPTQ, "bits": "four"}, "“gptq”, with unusable values"),
        ({**GPTQ, "bits": 40}, "one of 40 bits"),
        ({**COMPRESSED, "config_groups": {}}, "“compressed-tensors” without"),
        ({**FP8, "weight_block_size": [0, 128]}, "FP8 in blocks of 0×128"),
        (
            {**FP8, "ignored_layers": ["re:(a+)+$"]},
            "one with modules named by “re:(a+)+$”",
        ),
        ({**FP8, "ignored_layers": ["re:" + ".*a" * 30]}, "one with modules named by"),
        (
            {**FP8, "ignored_layers": ["re:" + "(a|b)" * 30]},
            f"one with modules named by “re:{'(a|b)' * 11}(a…”",
        ),
        ({**FP8, "ignored_layers": [r"re:.*mlp\S+", "lm_head"]}, "one with modules named by"),
        ({**FP8, "ignored_layers": ["re:(?!.*mlp).*"]}, "one with modules named by"),
    ],
)
def test_a_quantization_that_cannot_be_read_is_named_in_the_verdict(
    name: str, table: Any, problem: str
) -> None:
    words = json.dumps({**SMALL, "quantization_config": table})
    answer = registry.run_estimate(name, {"model": words})
    assert f"Its quantization, {problem}" in answer.verdict.text
    assert "cannot be read: counted in BF16. Choose the format" in answer.verdict.text


def test_a_checkpoint_with_attention_in_16_bit_loads_as_much_as_its_log_says() -> None:
    attention = [f"model.layers.{i}.self_attn.{name}_proj" for i in range(126) for name in "qkvo"]
    ends = [
        f"model.layers.{i}.mlp.{name}_proj" for i in (0, 125) for name in ("gate", "up", "down")
    ]
    config = {
        **SMALL,
        "hidden_size": 16384,
        "intermediate_size": 53248,
        "num_hidden_layers": 126,
        "num_attention_heads": 128,
        "vocab_size": 128256,
        "quantization_config": {
            "quant_method": "fbgemm_fp8",
            "modules_to_not_convert": [*attention, *ends],
        },
    }
    table = weight_bytes_by_split(build_model_from_pasted_config(json.dumps(config)), "published")
    # Loading took 57.752 GiB on each of 8 GPUs.
    assert table.bytes_per_gpu(8) == pytest.approx(57.752 * GIB, rel=0.02)


def test_calibrated_formats_leave_linear_attention_in_16_bit() -> None:
    # The examples of vllm-project/llm-compressor for Qwen3-Next and Qwen3.5 ignore it, with
    # the head, in NVFP4, GPTQ and AWQ; Qwen's own FP8 in blocks includes it.
    hybrid, dense = find_model("qwen3.5-27b"), find_model("llama-3-8b")
    linear = hybrid.parameters_by_part()["linear attention"]
    assert linear == 48 * (5120 * (2 * 2048 + 2 * 6144 + 2 * 48) + 6144 * 5120)
    for name in ("nvfp4", "awq-int4", "gptq-int4", "int8"):
        covered = hybrid.parameters_by_part()["attention"] + hybrid.parameters_by_part()["mlp"]
        assert weight_bytes_by_split(hybrid, name).quantized_weight_count == covered, name
        assert "linear attention" not in dense.parameters_by_part()
    assert weight_bytes_by_split(hybrid, "fp8-block").quantized_weight_count == covered + linear
    assert weight_bytes_by_split(hybrid, "nf4").quantized_weight_count == covered + linear
    named = weight_bytes_by_split(find_model("Qwen/Qwen3.5-27B-NVFP4"), "published")
    assert named.quantized_weight_count == covered


def test_multi_token_prediction_is_said_to_be_in_the_files_alone() -> None:
    # With it, the files of DeepSeek-V4-Flash are off by 0.2% (148.66 GiB, vllm-project/recipes).
    said = "Modules for multi-token prediction add about"
    with_it, without = (
        registry.run_estimate("weights", {"model": model}).notes
        for model in ("qwen3.5-27b", "llama-3-8b")
    )
    assert [note for note in with_it if said in note] == [
        f"{said} 849.4\N{NO-BREAK SPACE}MB to the files; engines load them only to speculate."
    ]
    assert not any(said in note for note in without)


def test_experts_in_another_format_than_the_rest_are_counted_in_theirs() -> None:
    config = {
        "model_type": "qwen3_moe",
        "hidden_size": 1024,
        "num_hidden_layers": 2,
        "num_attention_heads": 8,
        "num_key_value_heads": 8,
        "head_dim": 128,
        "intermediate_size": 4096,
        "moe_intermediate_size": 512,
        "num_experts": 16,
        "num_experts_per_tok": 2,
        "vocab_size": 32000,
        "tie_word_embeddings": False,
        "expert_dtype": "fp4",
        "quantization_config": FP8,
    }
    model = build_model_from_pasted_config(json.dumps(config))
    assert "expert_dtype" not in model.unread
    experts = 2 * 16 * 3 * 1024 * 512
    plain = weight_bytes_by_split(model, "fp8-block").total_bytes
    mixed = weight_bytes_by_split(model, "published")
    assert mixed.total_bytes == pytest.approx(plain - experts * (BLOCK - 4.25) / 8)
    assert find_weight_format(model, "published").label.startswith("MXFP4 and FP8")


ROUTED = {
    **SMALL,
    "model_type": "qwen3_moe",
    "moe_intermediate_size": 512,
    "num_experts": 16,
    "num_experts_per_tok": 2,
}
FP4_EXPERTS = {"expert_dtype": "fp4"}


@pytest.mark.parametrize(
    "config",
    [
        {**ROUTED, "quantization_config": {**FP8, **FP4_EXPERTS}},
        {"text_config": ROUTED, "quantization_config": {**FP8, **FP4_EXPERTS}},
        {"text_config": ROUTED, "quantization_config": FP8, **FP4_EXPERTS},
        {"text_config": {**ROUTED, **FP4_EXPERTS}, "quantization_config": FP8},
        {"text_config": {**ROUTED, "quantization_config": {**FP8, **FP4_EXPERTS}}},
    ],
)
def test_the_format_of_experts_is_read_wherever_it_is_named(config: dict[str, Any]) -> None:
    model = build_model_from_pasted_config(json.dumps(config))
    beside = {**ROUTED, **FP4_EXPERTS, "quantization_config": FP8}
    same = build_model_from_pasted_config(json.dumps(beside))
    assert not model.unread
    assert weight_bytes_by_split(model, "published") == weight_bytes_by_split(same, "published")
    assert find_weight_format(model, "published").label.startswith("MXFP4")


def test_experts_that_were_quantized_again_leave_the_rest_in_fp8() -> None:
    # As nvidia/DeepSeek-V4-Flash-NVFP4, about 168 GB with its module for more tokens.
    table = {**FP8, "moe_quant_algo": "NVFP4", "ignore": ["*.self_attn.*"], "group_size": 16}
    config = {**ROUTED, **FP4_EXPERTS, "quantization_config": table}
    model = build_model_from_pasted_config(json.dumps(config))
    plain = weight_bytes_by_split(model, "fp8-block").total_bytes
    expected_bytes = plain - model.routed_parameters * (BLOCK - 4.5) / 8
    assert weight_bytes_by_split(model, "published").total_bytes == pytest.approx(expected_bytes)


def test_fields_that_may_change_the_format_and_are_not_read_lead_the_verdict() -> None:
    table = {**FP8, "shared_expert_bits": 2, "activation_scheme": "dynamic", "fmt": "e4m3"}
    config = {"text_config": dict(SMALL), "quantization_config": table, "extra_layers": 7}
    of_towers = {"image_size": 336, "vit_hidden_size": 1280, "select_layer": -1, "patch_size": 14}
    model = build_model_from_pasted_config(json.dumps({**config, **of_towers, "version": "v2"}))
    assert model.unread == ("extra_layers", "quantization_config.shared_expert_bits")
    assert model.unread_size_fields == ("extra_layers",)
    lead = registry.run_estimate("weights", {"model": json.dumps(config)}).verdict.lead
    assert "extra_layers" in lead
    assert "shared_expert_bits of its quantization" in lead


def test_weights_without_their_zeros_are_not_taken_for_whole_ones() -> None:
    table = {"quant_method": "compressed-tensors", "format": "float-quantized"}
    table |= {"sparsity_config": {"format": "sparse-24-bitmask"}}
    model = build_model_from_pasted_config(json.dumps({**SMALL, "quantization_config": table}))
    assert model.quantization is not None
    assert "sparse-24-bitmask" in model.quantization.unsupported_reason


MINIMAX_M3 = {
    "model_type": "minimax_m2",
    "hidden_size": 6144,
    "num_hidden_layers": 60,
    "num_attention_heads": 64,
    "num_key_value_heads": 4,
    "head_dim": 128,
    "intermediate_size": 3072,
    "num_local_experts": 128,
    "num_experts_per_tok": 4,
    "vocab_size": 200064,
    "tie_word_embeddings": False,
}


def list_every_expert() -> dict[str, Any]:
    """The table of a checkpoint in which each projection of each expert is a module."""
    products = [
        (f"model.layers.{layer}.block_sparse_moe.experts.{expert}.{name}", {"quant_algo": "NVFP4"})
        for layer in range(60)
        for expert in range(128)
        for name in ("w1", "w2", "w3")
    ]
    table = {"quant_method": "modelopt", "quant_algo": "MIXED_PRECISION"}
    return {**MINIMAX_M3, "quantization_config": {**table, "quantized_layers": dict(products)}}


def test_a_table_with_every_expert_is_read_as_one_with_the_first(tmp_path: Path) -> None:
    config = list_every_expert()
    whole = build_architecture(config)
    file = tmp_path / "config.json"
    file.write_text(json.dumps(config))
    assert file.stat().st_size > 1_000_000
    short = shorten_config(file.read_text())
    assert len(short) < 20_000
    assert weight_bytes_by_split(find_model(short), "published") == weight_bytes_by_split(
        whole, "published"
    )
    assert run_estimate_command(["weights", "--model", f"@{file}"]) == 0


def test_an_expert_with_another_format_stays_listed() -> None:
    config = list_every_expert()
    layers = config["quantization_config"]["quantized_layers"]
    name = "model.layers.3.block_sparse_moe.experts.7.w1"
    layers[name] = {"quant_algo": "FP8"}
    assert name in shorten_config(json.dumps(config))


def test_a_configuration_that_is_too_long_says_what_to_take_out() -> None:
    config = list_every_expert()
    with pytest.raises(InvalidInputsError) as refused:
        registry.run_estimate("weights", {"model": json.dumps(config)})
    assert "at most 200,000" in str(refused.value)
    assert "quantization_config.quantized_layers" in str(refused.value)


def test_a_quantization_that_is_hardly_counted_leads_the_verdict() -> None:
    config = list_every_expert()
    table = config["quantization_config"]
    whole = registry.run_estimate("weights", {"model": shorten_config(json.dumps(config))})
    assert "which may change it much" not in whole.verdict.lead
    table["quantized_layers"] = dict(list(table["quantized_layers"].items())[:900])
    few = shorten_config(json.dumps(config))
    lead = registry.run_estimate("weights", {"model": few}).verdict.lead
    assert lead.startswith("Counted with 4.9% of the weights quantized")
    asked = registry.run_estimate("weights", {"model": few, "weights": "nvfp4"})
    assert "which may change it much" not in asked.verdict.lead
    del table["quantized_layers"]
    none = registry.run_estimate("weights", {"model": json.dumps(config)})
    assert none.verdict.lead.startswith("Counted in BF16 although it is quantized")


def test_a_long_list_of_modules_is_read_as_it_is() -> None:
    kept = [f"model.layers.{i}.mlp.down_proj" for i in range(5000)]
    size = weigh({**FP8, "ignored_layers": kept})
    assert size == pytest.approx(expected(BLOCK, BLOCK) + MLP * 4 / 3 * (16 - BLOCK) / 8)


def test_every_calculator_takes_a_model_as_published_unless_asked(
    subtests: pytest.Subtests,
) -> None:
    """Also on an A100, which has no FP8 math; where that takes fewer GPUs, a service says so."""
    for name in ("inference-memory", "latency", "serving-capacity", "deployment"):
        for gpu in ("h200", "a100"):
            with subtests.test(name=name, gpu=gpu):
                typed = {"model": "Qwen/Qwen3.5-27B", "gpu": gpu}
                plain = registry.run_estimate(name, typed)
                asked = registry.run_estimate(name, typed | {"weights": "bf16"})
                assert plain.figures == asked.figures
    for name, gpus in (("serving-capacity", "6"), ("deployment", "16")):
        model = {"model": "llama-3.1-70b"} | ({"concurrent": "500"} if gpus == "16" else {})
        changes = registry.run_estimate(name, model).changes
        (change,) = (change for change in changes if change.field == "weights")
        assert (
            change.verdict_after.replace("\N{NO-BREAK SPACE}", " ")
            == f"{gpus} GPUs in all keep the targets."
        )
        narrow = [
            registry.run_estimate(name, model | {"weights": weights})
            for weights in ("fp8", "published-or-fp8")
        ]
        assert narrow[0].figures == narrow[1].figures
        assert narrow[0]["gpus"].value == int(gpus)
    expert = {"model": "gpt-oss-120b", "gpu": "b200-sxm", "tensor_parallel": 1}
    chosen = {**expert, "weights": "mxfp4-experts"}
    published = registry.run_estimate("serving-capacity", expert)
    assert published.figures == registry.run_estimate("serving-capacity", chosen).figures
    assert "Weights as published: MXFP4 experts" in published.verdict.text


@pytest.mark.parametrize("name", ["inference-memory", "latency", "serving-capacity"])
def test_a_card_without_the_published_format_is_refused_with_a_way_on(
    name: str,
) -> None:
    typed = {"model": "deepseek-v3", "gpu": "mi210", "tensor_parallel": 8}
    with pytest.raises(InvalidInputsError) as refused:
        registry.run_estimate(name, typed)
    problem = refused.value.problems[0]
    assert problem.field == "weights"
    assert "DeepSeek-V3 671B-A37B is published" in problem.message
    assert "choose another format" in problem.message
    assert registry.run_estimate(name, {**typed, "weights": "bf16"})


def test_fp8_is_weight_only_on_ampere(subtests: pytest.Subtests) -> None:
    """vLLM unpacks it by Marlin: pull request 5975, and issue 17579 for experts."""
    for gpu in ("a100-sxm4-80", "rtx-3090", "rtx-a6000"):
        for name in ("inference-memory", "latency", "serving-capacity", "quantization"):
            with subtests.test(gpu=gpu, name=name):
                typed = {"model": "llama-3.1-8b", "gpu": gpu, "tensor_parallel": 1}
                answer = registry.run_estimate(name, typed | {"weights": "fp8"})
                assert any("weight-only" in note for note in answer.notes)
    one = {"model": "llama-3.1-8b", "gpu": "a100-sxm4-80", "tensor_parallel": 1}
    loaded = [
        registry.run_estimate("inference-memory", one | {"weights": "fp8", "gpu": gpu})["weights"]
        for gpu in ("a100-sxm4-80", "h100-sxm5-80")
    ]
    assert loaded[0].value == loaded[1].value
    narrow, wide = (
        registry.run_estimate("latency", one | {"weights": weights, "prompt": 8192})
        for weights in ("fp8", "bf16")
    )
    # Half the bytes of a decoding step, and a prompt at the rate of 16 bit.
    assert narrow["tpot"].value < 0.8 * wide["tpot"].value
    assert narrow["ttft"].value == pytest.approx(wide["ttft"].value, rel=0.02)
    experts = {"model": "MiniMaxAI/MiniMax-M2", "gpu": "a100-sxm4-80", "tensor_parallel": 8}
    assert registry.run_estimate("latency", experts)["fits"].value is True
    for engine in ("sglang", "trtllm"):
        with pytest.raises(InvalidInputsError, match="needs vLLM"):
            registry.run_estimate("latency", experts | {"engine": engine})


ONE_H100 = {"model": "gpt-oss-120b", "gpu": "h100-sxm5-80", "tensor_parallel": 1}
SHORT = {"context": 1024, "concurrent": 1}


def test_a_log_that_finds_no_room_for_the_cache_is_met() -> None:
    # vLLM on one H100: loading took 65.97 GiB; at 90% no room was left, and at 95%
    # with 1,024 tokens per step 1.71 GiB.
    engine = {**ONE_H100, "engine": "vllm-0.9", "step_tokens": 1024}
    usual = registry.run_estimate("inference-memory", {**engine, "memory_utilization": 0.9})
    assert usual["fits"].value is False
    assert usual["cache_room"].value == 0
    loaded = (usual["weights"].value or 0) + (usual["padding"].value or 0)
    assert loaded == pytest.approx(65.97 * GIB, rel=2e-3)
    more = registry.run_estimate("inference-memory", {**engine, "memory_utilization": 0.95})
    assert more["cache_room"].value == pytest.approx(1.71 * GIB, rel=0.25)


def test_a_load_that_only_the_general_formula_fits_is_not_said_to_fit() -> None:
    general = {**ONE_H100, **SHORT, "engine": "general", "memory_utilization": "85%"}
    answer = registry.run_estimate("inference-memory", general)
    assert answer.verdict.lead == "May not fit."
    assert "may be as high as" in answer.verdict.text
    assert answer["fewest_gpus"].high == 2


def test_what_did_not_start_in_a_real_engine_does_not_fit() -> None:
    """vLLM issue 23278: 2.14 GiB too little for the cache at 90%; 27508: 1.71 GiB at 95%."""
    older = {**ONE_H100, **SHORT, "engine": "vllm-0.9"}
    at_90, at_95 = (
        registry.run_estimate("inference-memory", {**older, "memory_utilization": f"{u}%"})
        for u in (90, 95)
    )
    assert at_90.verdict.lead == "Does not fit."
    assert at_90["free"].value == pytest.approx(-2.14 * 2**30, abs=0.3e9)
    assert at_95["cache_room"].value == pytest.approx(1.71 * 2**30, rel=0.15)


def test_fewer_sequences_leave_more_room_for_the_cache() -> None:
    def room(**typed: Any) -> float:
        return registry.run_estimate("inference-memory", {**ONE_H100, **typed})["cache_room"].value

    assert room(max_sequences=128) > room() + 2e9
    older = {"engine": "vllm-0.9"}
    assert room(max_sequences=128, memory_utilization="95%", **older) > (
        room(memory_utilization="95%", **older) + 4e9
    )


def test_llama_cpp_takes_gguf_files_and_its_own_caches() -> None:
    typed = {
        "model": "llama-3.1-70b",
        "weights": "gguf-q4-k-m",
        "cache": "q8-0",
        "engine": "llama.cpp",
        "gpu": "rtx-4090",
        "tensor_parallel": 2,
        "context": 8192,
        "concurrent": 1,
    }
    answer = registry.run_estimate("inference-memory", typed)
    figures = {f.name: f.value for f in answer.figures}
    file = registry.run_estimate("weights", {"model": "llama-3.1-70b", "weights": "gguf-q4-k-m"})
    loaded = figures["weights"] + figures["host"]
    assert loaded == next(f.value for f in file.figures if f.name == "total")
    # A block of 32 has 32 bytes and an FP16 scale; 80 layers of 8 heads of 128, twice.
    assert figures["kv_cache"] == 8192 * 80 * 2 * 8 * 128 * 34 / 32
    for field, other in (("weights", {"cache": "fp8"}), ("cache", {"weights": "bf16"})):
        with pytest.raises(InvalidInputsError) as refused:
            registry.run_estimate("inference-memory", typed | other | {"engine": "vllm-0.9"})
        assert [problem.field for problem in refused.value.problems] == [field]


def test_a_gguf_file_that_is_too_large_gets_a_smaller_one_named() -> None:
    typed = {"model": "llama-3.1-8b", "weights": "gguf-f16", "engine": "llama.cpp"}
    one = {"gpu": "rtx-5080", "tensor_parallel": 1, "context": 8192, "concurrent": 1}
    answer = registry.run_estimate("inference-memory", typed | one)
    assert [c.new_value for c in answer.changes if c.field == "weights"] == ["GGUF Q8_0"]


def test_smaller_cards_sample_for_fewer_sequences() -> None:
    # vLLM takes 256 sequences and steps of 2,048 tokens below 70 GiB and on the A100, else
    # 1,024 and 8,192 (get_batch_defaults in vllm/engine/arg_utils.py).
    def peak(gpu: str, **more: Any) -> float:
        typed = {"model": "llama-3.1-8b", "gpu": gpu, "tensor_parallel": 1, "concurrent": 1}
        answer = registry.run_estimate("inference-memory", typed | more)
        return next(f.value for f in answer.figures if f.name == "activations")

    sampler = 14 * 128256
    assert peak("h100-sxm5-80") == 1024 * sampler
    assert peak("h100-sxm5-80", engine="vllm-0.9") == 1024 * 35 * 128256
    assert peak("rtx-4090") == peak("a100-sxm4-80") == 256 * sampler
    assert peak("rtx-4090", max_sequences=1024) == 1024 * sampler
    assert peak("h100-sxm5-80", shown_memory="47 GiB") == 256 * sampler


def test_vllm_0_17_keeps_less_for_its_sampler() -> None:
    # Without a sort there are 14 bytes for each of 1,024 sequences and 262,144 words; the log of
    # vLLM 0.26 with Gemma 4 31B on one GB300 has a peak of 3.9 GiB and 182.37 GiB for the cache.
    typed = {
        "model": "gemma-4-31b",
        "gpu": "b300-sxm",
        "shown_memory": "267.69 GiB",
        "tensor_parallel": 1,
        "memory_utilization": "92%",
    }
    newer, older = (
        registry.run_estimate("inference-memory", typed | {"engine": engine})
        for engine in ("vllm-0.17", "vllm-0.9")
    )
    assert newer["activations"].value == 1024 * 14 * 262144
    assert newer["cache_room"].value == pytest.approx(182.37 * GIB, rel=0.01)
    assert newer["cache_room"].low <= 182.37 * GIB <= newer["cache_room"].high
    assert older["cache_room"].value < 0.98 * 182.37 * GIB


def test_every_vllm_with_hybrid_blocks_counts_them() -> None:
    typed = {"model": "qwen3.6-27b", "gpu": "h100-sxm5-80", "weights": "fp8", "tensor_parallel": 1}
    for engine, refuses in (("vllm-0.9", False), ("vllm-0.17", True)):
        answer = registry.run_estimate("inference-memory", typed | {"engine": engine})
        assert answer["cache_blocks"].value < 1024
        # It has refused more sequences than blocks since pull request 38270 of March 2026.
        assert ("vLLM does not start" in answer.verdict.text) is refuses


def test_two_cards_of_32_gb_have_the_room_that_their_log_says() -> None:
    # noonghunna/club-3090, issue 1087: 12.26 GiB of 28.88 on each of two RTX 5090.
    answer = registry.run_estimate(
        "inference-memory",
        {
            "model": "qwen3.5-27b",
            "weights": "fp8-block",
            "gpu": "rtx-5090",
            "shown_memory": "31.4 GiB",
            "tensor_parallel": 2,
            "memory_utilization": "92%",
            "context": 65536,
            "concurrent": 1,
        },
    )
    room = next(f for f in answer.figures if f.name == "cache_room")
    assert room.value == pytest.approx(12.26 * GIB, rel=0.1)
    assert room.low <= 12.26 * GIB <= room.high


def test_tensorrt_llm_divides_what_weights_leave() -> None:
    typed = {"model": "llama-3.1-8b", "gpu": "1x H100", "memory_utilization": "50%"}
    rooms = {
        engine: registry.run_estimate("inference-memory", {**typed, "engine": engine})
        for engine in ("trtllm", "vllm-0.9")
    }
    left = rooms["trtllm"]["cache_room"].value
    assert left > rooms["vllm-0.9"]["cache_room"].value
    assert left == pytest.approx(0.5 * (84.9e9 - 16e9), rel=0.05)


def test_experts_are_padded_where_kernels_repack_them_alone() -> None:
    def padding(**typed: Any) -> Any:
        figure = registry.run_estimate("inference-memory", {**ONE_H100, **typed})["padding"]
        return figure.value if figure.applies else 0

    marlin = pytest.approx(5.5e9, rel=0.01)
    assert padding(engine="vllm-0.9") == marlin
    assert padding() == padding(engine="vllm-0.17") == padding(engine="general") == 0
    for gpu in ("a100-sxm4-80", "rtx-pro-6000-bw-server", "gb10"):
        assert padding(gpu=gpu) == padding(gpu=gpu, engine="vllm-0.9") == marlin
    assert padding(gpu="b200-sxm") == padding(gpu="b200-sxm", engine="vllm-0.9") == 0
    assert padding(weights="bf16") == 0
    assert padding(weights="int4") == 0
    assert padding(model="kimi-k2", weights="mxfp4-experts", tensor_parallel=8) == 0
    assert padding(engine="llama.cpp") == 0


def test_experts_published_in_mxfp4_stay_so_in_every_gguf_file() -> None:
    # File sizes of unsloth/gpt-oss-120b-GGUF in GiB, and of bartowski/openai_gpt-oss-20b-GGUF.
    for model, mixture, size in (
        ("gpt-oss-20b", "mxfp4-moe", 12.1e9),
        ("gpt-oss-20b", "q6-k", 12.04e9),
        ("gpt-oss-120b", "q4-k-m", 58.46 * GIB),
        ("gpt-oss-120b", "q8-0", 59.03 * GIB),
        ("gpt-oss-120b", "f16", 60.88 * GIB),
    ):
        table = weight_bytes_by_split(find_model(model), f"gguf-{mixture}")
        assert table.total_bytes == pytest.approx(size, rel=0.003)
    mixture = weight_bytes_by_split(find_model("mixtral-8x7b"), "gguf-mxfp4-moe").total_bytes
    assert mixture == pytest.approx(46.7e9 * 4.4 / 8, rel=0.01)


def test_tokens_of_a_step_are_heard_when_an_engine_is_chosen() -> None:
    typed = {"model": "llama-3.1-8b", "engine": "vllm-0.9"}
    sizes = [
        registry.run_estimate("inference-memory", {**typed, "step_tokens": n})["activations"].value
        for n in (8192, 200_000)
    ]
    usual = registry.run_estimate("inference-memory", typed)["activations"].value
    assert usual == sizes[0] < sizes[1]


def test_a_choice_of_accelerators_counts_padding_for_those_that_repack() -> None:
    typed = {"model": "gpt-oss-20b", **SHORT}
    alone = {"model": "gpt-oss-20b", "gpu": "1x H100"}
    more = registry.run_estimate("inference-memory", alone)["padding"].value
    hopper, blackwell = (
        registry.run_estimate("accelerator-choice", {**typed, "only": gpu})["need"].value
        for gpu in ("h100-sxm5-80", "b200-sxm")
    )
    assert hopper == pytest.approx(blackwell + more, rel=0.01)


def test_the_page_of_a_model_says_what_its_published_weights_take() -> None:
    text = registry.run_estimate("model", {"model": "gpt-oss-120b"}).verdict.text
    said = "Weights as published: MXFP4 experts, the rest BF16, 65.2 GB."
    assert text.replace("\u00a0", " ").endswith(said)
    pasted = json.dumps({**SMALL, "quantization_config": {"quant_method": "aqlm"}})
    text = registry.run_estimate("model", {"config": pasted}).verdict.text
    assert "“aqlm”, cannot be read: counted in BF16" in text


@pytest.mark.parametrize("where", ["top", "inner"])
def test_a_table_that_was_read_is_not_called_unknown(where: str) -> None:
    outer = {"text_config": dict(SMALL)}
    part = outer if where == "top" else outer["text_config"]
    part["quantization_config"] = FP8  # type: ignore[assignment]
    assert "quantization_config" not in build_model_from_pasted_config(json.dumps(outer)).unread
    alone = build_model_from_pasted_config(json.dumps({**SMALL, "quantization_config": FP8}))
    assert "quantization_config" not in alone.unread


@pytest.mark.parametrize(
    "table",
    [
        {**FP8, "ignored_layers": [f"*.1*.x{i}*y" for i in range(64)]},
        {**GPTQ, "dynamic": {f"+:.*x{i}": {"group_size": i + 1} for i in range(64)}},
    ],
)
def test_more_patterns_and_formats_than_any_checkpoint_has_are_not_tried(
    table: dict[str, Any],
) -> None:
    words = json.dumps({**SMALL, "quantization_config": table})
    how = build_model_from_pasted_config(words).quantization
    assert how is not None
    assert how.unsupported_reason


def test_vllm_caches_hybrids_in_blocks_of_attention_or_state(subtests: pytest.Subtests) -> None:
    # Logs of vLLM 0.27 and later print blocks ÷ blocks of a sequence × context. Published are
    # 377,456 and 445,875 tokens with a cache in 16 bit and 920,517 with one in FP8 for
    # Qwen3.8-27B, whose shape is that of Qwen3.5-27B, on two GPUs (vllm-project/recipes), and
    # 569,878 for Qwen3.6-35B-A3B in 6.01 GiB (noonghunna/club-3090, issue 652).
    for model, width, gpus, context, count, published in (
        ("qwen3.5-27b", 2.0, 2, 262_144, 491, 377_456),
        ("qwen3.5-27b", 2.0, 2, 262_144, 580, 445_875),
        ("qwen3.5-27b", 1.0, 2, 262_144, 611, 920_517),
        ("qwen3.6-35b-a3b", 1.0, 1, 131_072, 300, 569_878),
    ):
        with subtests.test(published=published):
            blocks = build_hybrid_cache_blocks(find_model(model), width, gpus)
            assert blocks is not None
            tokens = int(count / blocks.count_startup_blocks_per_sequence(context) * context)
            assert tokens == published
    given = {"cache": "fp8", "cache_memory": "6.01 GiB", "context": 131_072, "concurrent": 1}
    one = {"model": "qwen3.6-35b-a3b", "weights": "nvfp4", "gpu": "rtx-pro-6000-bw-ws"}
    answer = registry.run_estimate("inference-memory", one | given | {"tensor_parallel": 1})
    assert answer["cache_tokens"].value == 569_878
    # SGLang has pools of its own, and a model without recurrent layers has plain blocks.
    assert build_hybrid_cache_blocks(find_model("llama-3.1-8b"), 2.0, 1) is None


def test_a_running_sequence_of_a_hybrid_keeps_one_state_and_vllm_reserves_two() -> None:
    # Prefixes that vLLM stored are freed when others need their blocks, so a running sequence
    # takes one block for each group of recurrent layers, three here.
    one = {"model": "qwen3.6-35b-a3b", "weights": "nvfp4", "gpu": "rtx-pro-6000-bw-ws"}
    given = one | {
        "tensor_parallel": 1,
        "cache": "fp8",
        "context": 131_072,
        "cache_memory": "6.01 GiB",
    }
    alone = registry.run_estimate("inference-memory", given | {"concurrent": 1})
    four = registry.run_estimate("inference-memory", given | {"concurrent": 4})
    assert alone["kv_cache"].value / four["kv_cache"].value == pytest.approx(69 / (4 * 66))
    blocks = 300
    assert four["cache_blocks"].value == blocks
    assert four["max_concurrent"].value == blocks // 66
    # A drafted token has a state of its own, and the layer of the head joins the groups.
    drafting = build_hybrid_cache_blocks(find_model("qwen3.6-35b-a3b"), 1.0, 1, draft_tokens=2)
    assert drafting is not None
    assert drafting.count_blocks_of_running_sequence(131_072) == 63 + (1 + 2) * 3
    assert drafting.block_bytes == pytest.approx(four["kv_cache"].value / (4 * 66) * 11 / 10)
    hybrid = HybridCacheBlocks(2096, 1e6, 1, 3)
    assert hybrid.max_sequences(68, 131_072) == 0  # vLLM does not start.
    assert hybrid.max_sequences(69, 131_072) == 1
    for sequences in (1, 2, 7):
        longest = hybrid.longest_context(100, sequences)
        assert hybrid.count_blocks_to_start_and_run(longest, sequences) <= 100
        assert hybrid.count_blocks_to_start_and_run(longest + 1, sequences) > 100


def test_vllm_refuses_more_sequences_of_a_hybrid_than_its_cache_has_blocks() -> None:
    # Qwen3.6-27B-FP8, of the same shape, has 856 blocks on an H100 at 95%, and vLLM refuses its
    # default of 1,024 sequences: vllm-project/recipes, pull request 551.
    one = {"model": "qwen3.5-27b", "gpu": "h100-sxm5-80", "tensor_parallel": 1, "concurrent": 4}
    fp8 = one | {"weights": "fp8-block", "memory_utilization": 0.95}
    blocks = registry.run_estimate("inference-memory", fp8)["cache_blocks"].value
    assert blocks == pytest.approx(856, rel=0.1)
    asked = one | {"context": 32_768}
    refused = registry.run_estimate("inference-memory", asked)
    assert refused.verdict.lead == "It fits, but vLLM refuses to start."
    assert "--max-num-seqs 1024, its default" in refused.verdict.text
    start = refused.changes[0]
    least = int(
        refused["cache_blocks"].low or 0
    )  # vLLM 0.26 counts more for CUDA graphs (issue 50780).
    assert start.typed_values_by_field == {"max_sequences": f"{least}"}
    started = registry.run_estimate("inference-memory", {**asked, **start.typed_values_by_field})
    assert started.verdict.status == "fits"
    # What fits with another load, cache or weights starts with what is named beside it.
    asked["concurrent"] = 8
    changes = registry.run_estimate("inference-memory", asked).changes
    assert {"cache", "concurrent", "context", "weights"} <= {change.field for change in changes}
    for change in changes:
        answer = registry.run_estimate(
            "inference-memory", {**asked, **change.typed_values_by_field}
        )
        assert answer["fits"].value, change.field
        assert "refuses" not in answer.verdict.lead, change.field


def test_a_change_that_needs_fewer_sequences_is_worked_out_with_them(
    subtests: pytest.Subtests,
) -> None:
    asked = {"model": "qwen3.5-27b", "gpu": "h100-sxm5-80", "tensor_parallel": 1}
    asked |= {"context": 32_768, "concurrent": 8}
    refused = registry.run_estimate("inference-memory", asked)
    least = int(refused["cache_blocks"].low or 0)
    limited = {**asked, "max_sequences": least}
    started = registry.run_estimate("inference-memory", limited)
    for field in ("context", "concurrent", "cache"):
        with subtests.test(field):
            change, once_started = (
                refused.find_verdict_change(field),
                started.find_verdict_change(field),
            )
            assert change
            assert once_started
            assert change.typed_values_by_field["max_sequences"] == str(least)
            assert change.new_value == once_started.new_value
            surely = "Fits." if field == "cache" else "Tight, but fits."
            assert change.verdict_after == once_started.verdict_after == surely


def test_every_calculator_of_a_service_says_that_vllm_refuses_a_hybrid(
    subtests: pytest.Subtests,
) -> None:
    one = {"model": "qwen3.5-27b", "gpu": "h100-sxm5-80", "tensor_parallel": 1}
    refused = registry.run_estimate("inference-memory", {**one, "concurrent": 4})
    blocks = int(refused["cache_blocks"].low or 0)
    for name in ("latency", "serving-capacity", "deployment"):
        with subtests.test(name):
            asked = one if name == "latency" else {**one, "concurrent": 4}
            answer = registry.run_estimate(name, asked)
            assert answer.verdict.status == "tight"
            assert "vLLM refuses to start" in f"{answer.verdict.lead} {answer.verdict.text}"
            start = answer.find_verdict_change("max_sequences")
            assert start
            assert start.typed_values_by_field == {"max_sequences": f"{blocks}"}
            sections = [section.estimate.verdict for section in answer.sections] or [answer.verdict]
            assert any(f"Set at most {blocks}." in verdict.text for verdict in sections)
            started = registry.run_estimate(name, {**asked, **start.typed_values_by_field})
            assert started.verdict.status != "no"
            assert "refuses" not in f"{started.verdict.lead} {started.verdict.text}"
            assert started.find_verdict_change("max_sequences") is None


def test_each_change_of_a_service_that_vllm_refuses_starts_and_does_what_it_says(
    subtests: pytest.Subtests,
) -> None:
    one = {"model": "qwen3.5-27b", "gpu": "h100-sxm5-80", "tensor_parallel": 1}
    long = {**one, "prompt_tokens": 30_000, "output_tokens": 1000, "replicas": 1, "spare": 0}
    for name, asked, expected in (
        ("serving-capacity", {**long, "concurrent": 8}, {"concurrent", "weights", "replicas"}),
        (
            "serving-capacity",
            {**long, "concurrent": 20},
            {"cache", "concurrent", "tensor_parallel", "weights", "replicas"},
        ),
        ("serving-capacity", {**one, "tpot_target": "5 ms"}, {"tpot_target"}),
        ("deployment", {**one, "tpot_target": "5 ms"}, {"tpot_target"}),
    ):
        changes = registry.run_estimate(name, asked).changes
        assert {change.field for change in changes} == {"max_sequences"} | expected
        for change in changes:
            with subtests.test(name, field=change.field, users=asked.get("concurrent")):
                answer = registry.run_estimate(name, {**asked, **change.typed_values_by_field})
                assert "refuses" not in f"{answer.verdict.lead} {answer.verdict.text}"
                keeps = {"Meets the targets.", "Met with this hardware."}
                if change.verdict_after in keeps or change.verdict_after.endswith("the targets."):
                    assert answer["fits"].value
    short = registry.run_estimate("serving-capacity", {**long, "concurrent": 8})
    assert short.verdict.lead == "The model fits, but vLLM refuses to start."
    # What starts by itself needs no second change.
    wider = registry.run_estimate("serving-capacity", {**long, "concurrent": 20})
    width = wider.find_verdict_change("tensor_parallel")
    assert width
    assert "max_sequences" not in width.typed_values_by_field


def test_experts_in_fp8_are_advised_whole_with_and_without_blocks(
    subtests: pytest.Subtests,
) -> None:
    asked = {"model": "qwen3-235b-a22b", "gpu": "h100-sxm5-80", "tensor_parallel": 4}
    long = {"prompt_tokens": 90_000, "concurrent": 8, "replicas": 1, "spare": 0, "tpot_target": ""}
    for weights in ("fp8", "fp8-block"):
        with subtests.test(weights):
            answer = registry.run_estimate("serving-capacity", asked | long | {"weights": weights})
            change = answer.find_verdict_change("tensor_parallel")
            assert change
            assert change.typed_values_by_field == {"tensor_parallel": "8", "expert_parallel": "8"}
            assert change.verdict_after == "8 GPUs in all are enough."
            full = {"weights": weights, "context": 32_768}
            memory = registry.run_estimate("inference-memory", asked | full)
            wider = memory.find_verdict_change("tensor_parallel")
            assert wider
            assert wider.verdict_after.startswith("Fits, ")
            assert wider.verdict_after.endswith("with expert parallelism.")
            at_eight = registry.run_estimate(
                "inference-memory", asked | full | wider.typed_values_by_field
            )
            lead = "Fits." if weights == "fp8" else wider.verdict_after
            assert at_eight.verdict.lead == lead
    # Experts of BF16 weights are divided within.
    wide = registry.run_estimate("serving-capacity", asked | long | {"weights": "bf16"})
    more = wide.find_verdict_change("tensor_parallel")
    assert more
    assert more.typed_values_by_field == {"tensor_parallel": "8"}


def test_metas_fp8_checkpoint_keeps_attention_and_two_layers_in_16_bit() -> None:
    # vLLM loaded 57.752 GiB on each of 8 GPUs (vllm-project/vllm, issue 6746).
    for name in ("meta-llama/Llama-3.1-405B-Instruct-FP8", "meta-llama/Llama-3.1-405B-FP8"):
        answer = registry.run_estimate("weights", {"model": name, "tensor_parallel": 8})
        assert answer["per_gpu"].value == pytest.approx(57.752 * 2**30, rel=0.03)
    # NVIDIA's checkpoint of the same model has all linear layers in FP8.
    other = {"model": "nvidia/Llama-3.1-405B-Instruct-FP8", "tensor_parallel": 8}
    assert registry.run_estimate("weights", other)["per_gpu"].value < 0.9 * answer["per_gpu"].value


def test_serving_holds_as_many_requests_of_a_hybrid_as_memory_says(
    subtests: pytest.Subtests,
) -> None:
    # Both calculators describe one vLLM: what fits in one may not be refused in the other.
    for name in ("qwen3.5-27b", "qwen3.6-35b-a3b"):
        with subtests.test(name):
            one = {"model": name, "weights": "fp8", "gpu": "h100-sxm5-80", "tensor_parallel": 1}
            asked = {"prompt_tokens": 2000, "output_tokens": 1, "concurrent": 4000, "replicas": 1}
            served = registry.run_estimate("serving-capacity", one | asked | {"spare": 0})
            memory = registry.run_estimate("inference-memory", one | {"context": 2000})
            assert served["max_concurrent"].value == memory["max_concurrent"].value


def test_nothing_is_kept_wider_where_all_weights_are_in_the_format() -> None:
    answer = registry.run_estimate("weights", {"model": "kimi-k2", "weights": "gguf-iq2-xxs"})
    assert answer["rest"].value == 0


def test_what_fits_once_vllm_starts_is_named_with_it() -> None:
    one = {"model": "qwen3.5-27b", "gpu": "h100-sxm5-80", "tensor_parallel": 1, "concurrent": 8}
    asked = one | {"context": 32_768}
    answer = registry.run_estimate("inference-memory", asked)
    assert answer.verdict.lead == "Does not fit."
    start = answer.changes[0]
    assert (start.field, start.verdict_after) == ("max_sequences", "May fit.")
    started = registry.run_estimate("inference-memory", {**asked, **start.typed_values_by_field})
    assert started.verdict.lead == "May not fit."

    load = one | {"prompt_tokens": 32_468, "spare": 0, "tpot_target": ""}
    answer = registry.run_estimate("serving-capacity", load)
    assert answer["gpus"].value == 2
    start = answer.changes[0]
    assert start.verdict_after == "vLLM starts, and 1 GPU in all may be enough."
    started = registry.run_estimate("serving-capacity", {**load, **start.typed_values_by_field})
    assert started["gpus"].value == 1


def test_data_parallel_attention_divides_no_blocks_of_scales() -> None:
    rack = {"model": "deepseek-v3", "gpu": "gb200-gpu", "tensor_parallel": 32, "context": 1225}
    divided = registry.run_estimate("inference-memory", rack)
    assert "refuse to load" in divided.verdict.text
    assert divided.verdict.lead.endswith("the engine refuses to load it.")
    whole = registry.run_estimate("inference-memory", rack | {"attention": "data-parallel"})
    assert "refuse to load" not in whole.verdict.text
