"""Parameters, cache and state of models, counted exactly from their shape."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.estimator.models.hf_architecture import build_architecture
from app.estimator.models.hf_config import UnreadableConfigError
from app.estimator.models.lookup import find_model, normalize_model_name

# Parameters of published models: trainable, tied heads once, as their implementation
# in Transformers 5.23 builds them.
PUBLISHED = {
    "llama-2-7b": 6_738_415_616,
    "llama-3.1-70b": 70_553_706_496,
    "llama-3.1-405b": 405_853_388_800,
    "mistral-7b-v0.1": 7_241_732_096,
    "mixtral-8x7b": 46_702_792_704,
    "qwen2.5-7b": 7_615_616_512,
    "qwen3-32b": 32_762_123_264,
    "gemma-2-27b": 27_227_128_320,
    "gpt-oss-120b": 116_829_156_672,
    "deepseek-v3": 671_026_404_352,
    "bloom-176b": 176_247_271_424,
    "falcon-7b": 6_921_720_704,
    "gpt2": 124_439_808,
    "olmoe-1b-7b": 6_919_161_856,
    "qwen3-next-80b-a3b": 79_674_391_296,
    "llama-4-scout": 107_769_861_120,
    "minimax-m2": 228_689_748_992,
    "jamba-v0.1": 51_570_323_328,
    "flan-t5-xxl": 11_135_332_352,
    "whisper-large-v3": 1_543_490_560,
}
# Parameters for each token, of model cards.
ACTIVE = {
    "mixtral-8x7b": 12.9e9,
    "deepseek-v3": 37e9,
    "qwen3-235b-a22b": 22e9,
    "kimi-k2": 32.6e9,
    "llama-4-maverick": 17e9,
}


def test_parameters_are_exact(subtests: pytest.Subtests) -> None:
    for name, count in PUBLISHED.items():
        with subtests.test(name=name, count=count):
            assert find_model(name).parameters == count


def test_active_parameters_agree_with_the_model_card(subtests: pytest.Subtests) -> None:
    for name, count in ACTIVE.items():
        with subtests.test(name=name, count=count):
            assert find_model(name).active_parameters == pytest.approx(count, rel=0.02)


@given(st.integers(10**7, 10**14))
def test_a_size_has_exactly_that_many_parameters(parameters: int) -> None:
    model = find_model(str(parameters))
    assert model.parameters == parameters
    assert sum(model.parameters_by_part().values()) == parameters
    assert model.heads % model.kv_heads == 0
    assert not model.is_routed


def test_a_size_may_be_written_in_several_ways(subtests: pytest.Subtests) -> None:
    for name in ["70B", "70 B", "70 billion", "70000M", "70b params"]:
        with subtests.test(name=name):
            assert normalize_model_name(name) == "70B"


def test_an_unknown_model_names_its_nearest() -> None:
    with pytest.raises(LookupError, match=r"llama-3\.1-70b"):
        normalize_model_name("llama-3.1-71b")


def test_windows_bound_the_cache() -> None:
    mistral = find_model("mistral-7b-v0.1")
    assert mistral.cache_elements_of_sequence(32_768) == mistral.cache_elements_of_sequence(4096)
    gemma = find_model("gemma-3-1b")
    assert 2 * gemma.cache_elements_of_sequence(32_768) == 145_752_064


def test_state_does_not_grow_with_the_context() -> None:
    mamba = find_model("mamba-2.8b")
    assert mamba.cache_elements_of_sequence(100_000) == 0
    assert 2 * (mamba.state_elements + mamba.convolution_elements) == 13_107_200


def test_latent_attention_caches_one_vector() -> None:
    assert find_model("deepseek-v3").cache_elements == 61 * (512 + 64)


SHAPES = Path(__file__).parent / "shapes.json"


def test_today_s_families_count_as_their_implementation(
    subtests: pytest.Subtests,
) -> None:
    for shape in json.loads(SHAPES.read_text()):
        with subtests.test(shape["name"]):
            assert build_architecture(shape["config"]).parameters == shape["parameters"]


def test_a_configuration_that_cannot_be_read_says_why(
    subtests: pytest.Subtests,
) -> None:
    for config, words in [
        ({}, "no hidden_size"),
        ({"hidden_size": "wide"}, "not a whole number"),
        ({"hidden_size": -1, "vocab_size": 1}, "0 to 1,000,000,000"),
        ({"hidden_size": 64, "vocab_size": 10}, "no num_hidden_layers"),
        ({"model_type": "bert"}, "encoder without a decoder"),
        ({"model_type": "rwkv"}, "cannot be read yet"),
        (
            {
                "hidden_size": 64,
                "vocab_size": 9,
                "num_hidden_layers": 5000,
                "num_attention_heads": 4,
            },
            "1 to 2,000",
        ),
    ]:
        refused = pytest.raises(UnreadableConfigError, match=words)
        with subtests.test(config=config, words=words), refused:
            build_architecture(config)


def test_the_language_part_of_a_multimodal_configuration_is_read() -> None:
    text = {
        "model_type": "qwen2",
        "hidden_size": 64,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "intermediate_size": 128,
        "vocab_size": 100,
    }
    outer = {"model_type": "qwen2_vl", "text_config": text}
    assert build_architecture(outer).parameters == build_architecture(text).parameters
