"""Models as they are published: whole config.json files, Hub ids, formats in names."""

import json
import re
from typing import Any

import pytest

from app.estimator import registry
from app.estimator.inputs import (
    InvalidInputsError,
    input_specs,
    non_default_inputs_to_query,
    parse_inputs,
)
from app.estimator.models.hf_architecture import build_architecture
from app.estimator.models.hf_config import UnreadableConfigError
from app.estimator.models.lookup import (
    compress_config_to_key,
    drop_irrelevant_config_fields,
    expand_config_key,
    find_model,
    normalize_model_name,
)
from app.widgets.estimate_view import LONGEST_LINK

SMALL: dict[str, Any] = {
    "model_type": "llama",
    "hidden_size": 512,
    "num_hidden_layers": 4,
    "num_attention_heads": 8,
    "intermediate_size": 1024,
    "vocab_size": 1000,
}
# As long as real files: generation settings, and one entry for every module.
LONG = {
    **SMALL,
    "id2label": {str(i): f"LABEL_{i}" for i in range(50)},
    "rope_scaling": {"factor": 8.0, "rope_type": "llama3"},
    "layer_types": ["full_attention"] * 4,
    "quantization_config": {
        "quant_method": "modelopt",
        "quant_algo": "NVFP4",
        "kv_cache_scheme": {"num_bits": 8, "type": "float"},
        "ignore": ["lm_head", *(f"vision.blocks.{i}.attn.qkv" for i in range(500))],
    },
}
WITH_MODEL = [
    name
    for name in registry.ESTIMATE_NAMES
    if "model" in input_specs(registry.find_estimate(name).inputs_type)
]


@pytest.mark.parametrize("name", WITH_MODEL)
def test_every_calculator_takes_a_whole_file_and_has_it_in_its_link(name: str) -> None:
    entry = registry.find_estimate(name)
    text = json.dumps(LONG, indent=2)
    assert entry is not None
    assert len(text) > 10_000

    inputs = parse_inputs(entry.inputs_type, {"model": text})
    query = non_default_inputs_to_query(inputs)

    assert len(query["model"]) < LONGEST_LINK
    assert parse_inputs(entry.inputs_type, query) == inputs


def test_a_reduced_configuration_has_the_same_counts() -> None:
    whole, reduced = (
        build_architecture(LONG),
        find_model(drop_irrelevant_config_fields(json.dumps(LONG))),
    )

    assert (whole.parameters, whole.unread) == (reduced.parameters, reduced.unread)
    assert whole.quantization == reduced.quantization or reduced.quantization is not None


def test_a_key_is_the_configuration_and_a_damaged_one_is_named() -> None:
    key = compress_config_to_key(json.dumps(SMALL))

    assert json.loads(expand_config_key(key)) == SMALL
    for damaged in (key[:-9], "config:", "config:x", compress_config_to_key("x" * 300_000)):
        with pytest.raises(LookupError, match=r"damaged; paste config.json again"):
            normalize_model_name(damaged)


def test_a_list_has_a_value_for_each_layer() -> None:
    model = build_architecture(
        {**SMALL, "num_key_value_heads": [8, 8, 4, 4], "intermediate_size": [1024, 1024, 512, 512]}
    )

    assert [layer.mixer.cache_elements_per_token for layer in model.decoder_layers] == [
        1024,
        1024,
        512,
        512,
    ]
    assert [layer.mlp.width for layer in model.decoder_layers] == [1024, 1024, 512, 512]


def test_a_list_that_is_too_short_or_in_the_wrong_place_is_refused() -> None:
    with pytest.raises(UnreadableConfigError, match="has 2 values and no one for layer 3"):
        build_architecture({**SMALL, "num_key_value_heads": [8, 8]})
    with pytest.raises(UnreadableConfigError, match="hidden_size differs between layers"):
        build_architecture({**SMALL, "hidden_size": [512, 256]})


def test_the_old_name_of_the_width_is_read() -> None:
    model = build_architecture(
        {"model_type": "bloom", "n_embed": 1024, "n_layer": 24, "num_attention_heads": 16}
        | {"n_inner": None, "vocab_size": 250880, "seq_length": 2048}
    )

    assert model.parameters == 559_214_592


@pytest.mark.parametrize(
    ("name", "known"),
    [
        ("meta-llama/Llama-3.1-8B-Instruct", "llama-3.1-8b"),
        ("meta-llama/Meta-Llama-3-8B-Instruct", "llama-3-8b"),
        ("Qwen/Qwen3-8B", "qwen3-8b"),
        ("openai/gpt-oss-120b", "gpt-oss-120b"),
        ("google/gemma-3-27b-it", "gemma-3-27b"),
        ("mistralai/Mixtral-8x7B-Instruct-v0.1", "mixtral-8x7b"),
        ("mistralai/Mistral-7B-Instruct-v0.3", "mistral-7b-v0.3"),
        ("microsoft/Phi-3-mini-4k-instruct", "phi-3-mini"),
        ("Qwen3-235B-A22B-FP8", "qwen3-235b-a22b-fp8"),
        ("nvidia/Qwen3-235B-A22B-FP8", "qwen3-235b-a22b-fp8-dynamic"),
        ("zai-org/GLM-4.5-Air-FP8", "glm-4.5-air-fp8-dynamic"),
        ("nvidia/DeepSeek-R1-0528-FP4", "deepseek-r1-fp4"),
        ("Qwen/Qwen3-30B-A3B-Instruct-2507-FP8", "qwen3-30b-a3b-fp8"),
        ("Qwen/Qwen2.5-72B-Instruct-AWQ", "qwen2.5-72b-awq"),
    ],
)
def test_names_of_the_hub_are_known(name: str, known: str) -> None:
    assert normalize_model_name(name) == known
    assert normalize_model_name(known) == known


def test_a_format_in_a_name_is_that_of_the_weights() -> None:
    estimate = registry.run_estimate("weights", {"model": "Qwen/Qwen3-8B-FP8"})

    assert estimate["bits_per_parameter"].value == pytest.approx(9.2, abs=0.1)
    assert "FP8" in estimate.verdict.text


def test_a_model_of_another_shape_is_not_taken_for_a_known_one() -> None:
    for name in ("deepseek-ai/DeepSeek-R1-Distill-Qwen-9B", "Qwen/Qwen3-VL-900B", "foo/bar"):
        with pytest.raises(LookupError, match="is not a model of the catalog"):
            normalize_model_name(name)


def test_the_cache_is_kept_as_the_checkpoint_asks_for() -> None:
    text = json.dumps(LONG)

    published = registry.run_estimate("kv-cache", {"model": text})
    chosen = registry.run_estimate("kv-cache", {"model": text, "cache": "bf16"})

    assert chosen["per_token"].value == 2 * published["per_token"].value
    assert "KV cache as published: FP8." in published.verdict.text


def test_a_size_that_is_not_understood_leads_the_verdict() -> None:
    odd = json.dumps({**SMALL, "expert_latent_width": 256, "smooth_factor": 3.0})

    for name in WITH_MODEL:
        estimate = registry.run_estimate(name, {"model": odd})
        assert re.match("Counted without expert_latent_width, which may", estimate.verdict.lead)


def test_layers_that_cannot_be_counted_are_refused() -> None:
    with pytest.raises(InvalidInputsError, match="cannot be read yet"):
        registry.run_estimate(
            "kv-cache", {"model": json.dumps({**SMALL, "model_type": "nemotron-nas"})}
        )


def test_experts_on_a_narrower_vector_are_counted_there() -> None:
    routed = {**SMALL, "num_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": 256}
    whole, narrow = (
        build_architecture(routed),
        build_architecture({**routed, "routed_expert_hidden_size": 256}),
    )

    assert narrow.routed_parameters * 2 == whole.routed_parameters
    assert not narrow.unread
