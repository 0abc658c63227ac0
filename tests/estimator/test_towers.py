"""Vision towers: counted beside the language model, or named and not counted."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.estimator.models.hf_architecture import build_architecture
from app.estimator.models.hf_config import UnreadableConfigError
from app.estimator.models.lookup import find_model, list_model_caveats
from app.estimator.models.vision_tower import KINDS, SIDE_CONFIGS
from app.estimator.models.weight_formats import weight_bytes_by_split, weight_bytes_per_gpu
from app.estimator.registry import run_estimate
from app.estimator.result import Estimate
from evidence.accuracy.report import list_project_case_files

(_CASES,) = (
    json.loads(path.read_text()) for path in list_project_case_files() if "towers" in path.name
)
SEEING = {name: row["config"] for name, row in _CASES["models"].items()}
QWEN = SEEING["qwen3-vl-8b"]


# The language model of Gemma 3 27B.
BLIND = {
    "model_type": "gemma3_text",
    "vocab_size": 262208,
    "tie_word_embeddings": True,
    "sliding_window": 1024,
    "hidden_size": 5376,
    "intermediate_size": 21504,
    "num_hidden_layers": 62,
    "num_attention_heads": 32,
    "num_key_value_heads": 16,
    "head_dim": 128,
}


def _asked(name: str, **typed: Any) -> Estimate:
    return run_estimate(name, {key: str(value) for key, value in typed.items()})


def _figure(found: Estimate, name: str) -> Any:
    return next(f.value for f in found.figures if f.output.name == name)


def test_the_language_model_is_counted_as_if_it_stood_alone() -> None:
    for name, config in SEEING.items():
        alone = {key: value for key, value in config.items() if key not in SIDE_CONFIGS}
        seeing, blind = build_architecture(config), build_architecture(alone)
        assert seeing.tower is not None, name
        assert blind.tower is None, name
        assert seeing.parameters == blind.parameters, name
        assert seeing.cache_elements == blind.cache_elements, name
        assert not seeing.unread, name


def test_a_model_card_counts_the_tower() -> None:
    model = find_model("gemma-3-4b")
    assert model.tower is not None
    assert model.tower.encoder_parameters == 416_866_032
    assert model.loaded_parameters == 4_300_079_472  # google/gemma-3-4b-it


def test_the_catalog_counts_the_tower_of_minimax_m3() -> None:
    # 32 layers, patches of 2 frames, and two pairs of matrices to the text's 6144.
    tower = find_model("minimax-m3").tower
    assert tower is not None
    layer = 12 * 1280**2 + (4 + 5) * 1280 + 4 * 1280
    assert tower.encoder_parameters == 32 * layer + 3 * 2 * 14**2 * 1280 + 2 * 1280
    assert tower.projector_parameters == (1280 + 6144 * 6) * 6144 + 4 * 6144


def test_the_catalog_counts_the_tower_of_step_3_7() -> None:
    model = find_model("step-3.7-flash")
    tower = model.tower
    assert tower is not None
    layer = 4 * 1536**2 + 2 * 1536 * 8960 + (4 + 1) * 1536 + 8960 + 4 * 1536 + 2 * 1536
    convolutions = 9 * 1536 * 3072 + 3072 + 9 * 3072 * 6144 + 6144
    patches = 3 * 14**2 * 1536 + 52**2 * 1536 + 2 * 1536
    assert tower.encoder_parameters == 47 * layer + convolutions + patches
    assert tower.projector_parameters == 4 * 1536 * 4096
    assert round(model.loaded_parameters / 1e9) == 198  # its card


def test_the_catalog_counts_the_tower_of_kimi_k3() -> None:
    tower = find_model("kimi-k3").tower
    assert tower is not None
    layer = 4 * 1024 * 1536 + 2 * 1024 * 4096 + 2 * 1024
    assert tower.encoder_parameters == 27 * layer + (3 * 14**2 + 64**2 + 1) * 1024
    assert tower.projector_parameters == (4096 + 7168) * 4096 + 7168


def test_the_catalog_counts_the_tower_of_glm_5_3_flash() -> None:
    tower = find_model("glm-5.3-flash").tower
    assert tower is not None
    layer = 4 * 1024**2 + 3 * 1024 * 4096 + (4 + 1) * 1024 + 2 * 4096 + 2 * 1024 + 2 * 64
    assert tower.encoder_parameters == 24 * layer + 3 * 2 * 14**2 * 1024 + 2 * 1024
    merger = 4096**2 + 2 * 4096 + 3 * 4096 * 10240
    assert tower.projector_parameters == 4 * 1024 * 4096 + 4096 + merger


def test_the_catalog_counts_the_tower_of_deepseek_v4_1() -> None:
    tower = find_model("deepseek-v4.1-flash").tower
    assert tower is not None
    layer = 4 * 1024**2 + 3 * 1024 * 2816 + 4 * 1024 + 2 * 1024
    assert tower.encoder_parameters == 32 * layer + 3 * 14**2 * 1024 + 2 * 1024
    assert tower.projector_parameters == 9 * 1024 * 5120 + 5120**2 + (2 + 3) * 5120


def test_every_known_kind_has_a_case() -> None:
    answered = {config["model_type"] for config in SEEING.values()}
    catalogued = {"gemma3", "llama4", "qwen3_5_moe", "kimi_k25", "minimax_m3_vl"}
    catalogued |= {"kimi_k3", "step3p7", "glm5_next", "deepseek_v41"}
    alike = {"qwen3_vl_moe", "qwen3_5", "kimi_vl"}  # counted by the same function
    assert answered | catalogued | alike == set(KINDS)


def test_what_is_not_known_is_named_and_not_counted(subtests: pytest.Subtests) -> None:
    for change, named in [
        ({"model_type": "unheard_of"}, "vision_config"),
        ({"vision_config": {"model_type": "clip_vision_model"}}, "vision_config"),
        (
            {"vision_config": {**QWEN["vision_config"], "depth": "many"}},
            "vision_config",
        ),
        ({"vision_config": ["a", "list"]}, "vision_config"),
        ({"audio_config": {"hidden_size": 8}}, "audio_config"),
        (
            {"vision_config": {**QWEN["vision_config"], "odd_blocks": 3}},
            "vision_config.odd_blocks",
        ),
    ]:
        with subtests.test(change=change, named=named):
            model = build_architecture({**QWEN, **change})
            assert named in model.unread
            if named == "vision_config":
                assert model.tower is None
            assert any(named in said for said in list_model_caveats(model))


def test_what_a_tower_leaves_out_is_that_of_its_class_and_named() -> None:
    model = build_architecture(SEEING["pixtral-12b"])
    assert "vision_config.num_hidden_layers" in model.defaulted_fields
    assert model.tower_parameters == 434_957_312


def test_a_tower_is_in_memory_and_keeps_its_width() -> None:
    model = find_model("gemma-3-27b")
    for form in ("bf16", "fp8", "awq-int4"):
        table = weight_bytes_by_split(model, form)
        assert table.tower_bytes == 2 * model.tower_parameters
        alone = weight_bytes_by_split(build_architecture(BLIND), form)
        assert table.total_bytes == alone.total_bytes + table.tower_bytes
        assert weight_bytes_per_gpu(model, form, 4) == pytest.approx(
            alone.bytes_per_gpu(4) + table.tower_bytes / 4
        )


def test_a_token_does_not_read_the_tower() -> None:
    seeing, blind = (
        _asked("quantization", model=name) for name in ("gemma-3-27b", json.dumps(BLIND))
    )
    assert _figure(seeing, "decode_floor") == _figure(blind, "decode_floor")
    assert _figure(seeing, "total") > _figure(blind, "total")


def test_the_working_has_a_line_for_the_tower() -> None:
    found = _asked("weights", model="gemma-3-4b", weights="fp8")
    lines = {step.label: step.value for step in found.steps}
    assert lines["Vision tower"] == 839_632_608
    assert sum(segment.value for segment in found.pictures[0].segments) == (lines["All weights"])
    assert "Vision tower" not in {s.label for s in _asked("weights").steps}
    (weights,) = (
        step
        for step in _asked("inference-memory", model="gemma-3-4b").steps
        if step.label == "Weights"
    )
    assert "419,816,304 × 2 B" in weights.substituted


def test_llama_cpp_keeps_the_tower_in_a_file_of_its_own() -> None:
    seeing = _asked("weights", model="gemma-3-27b", weights="gguf-q4-k-m")
    alone = _asked("weights", model=json.dumps(BLIND), weights="gguf-q4-k-m")
    assert _figure(seeing, "total") == _figure(alone, "total")
    assert any("GGUF" in note for note in seeing.notes)


_FIELDS = sorted({key for c in SEEING.values() for key in c["vision_config"]})
_VALUES = (
    st.none()
    | st.booleans()
    | st.integers(-10, 10**12)
    | st.floats(allow_nan=True)
    | st.sampled_from(["", "pixtral", "7"])
    | st.lists(st.integers(-1, 9), max_size=3)
    | st.dictionaries(st.sampled_from(["0", "depth"]), st.integers(0, 9))
)


@given(
    st.sampled_from(sorted(SEEING)),
    st.dictionaries(st.sampled_from(_FIELDS), _VALUES, max_size=4),
    st.dictionaries(
        st.sampled_from(["spatial_merge_size", "downsample_ratio", "vision_feature_layer"]),
        _VALUES,
        max_size=2,
    ),
)
def test_any_values_are_counted_or_named(name: str, inner: dict, outer: dict) -> None:
    config = SEEING[name]
    vision = {**config["vision_config"], **inner}
    try:
        model = build_architecture({**config, **outer, "vision_config": vision})
    except UnreadableConfigError:  # a flat configuration shares its fields
        return
    assert model.tower_parameters >= 0
    assert model.tower is not None or "vision_config" in model.unread
