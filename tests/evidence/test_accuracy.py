"""The accuracy report: what is answered, how near, and what is said of the rest."""

import ast
import dataclasses
import functools
import importlib
import json
import random
import shlex
from pathlib import Path

import pytest

from app.cli.estimator import run_estimate_command
from app.estimator.registry import run_estimate
from evidence.accuracy.__main__ import main
from evidence.accuracy.export import PATH, format_accuracy_json, label_of_kind
from evidence.accuracy.report import (
    compute_project_report,
    compute_report,
    format_report,
    report_as_json,
)

EXACT = [
    "param_count",
    "param_count_active",
    "param_count_tower",
    "quant_bits_per_weight",
    "weights_bytes",
    "kv_bytes_per_token",
    "kv_bytes_sequence",
    "zero_model_states",
    "activation_pct",
    "activation_bytes_layer",
    "logits_saved_bytes",
    "lora_params",
    "checkpoint_bytes",
    "critical_batch",
]
# Kind: (median, largest) relative error that the estimator promises.
MODELED = {
    "train_mem_per_gpu": (0.02, 0.10),
    "train_mem_full": (0.01, 0.20),
    "train_mem_lora": (0.05, 0.20),
    "train_mem_qlora": (0.05, 0.20),
    "inference_memory": (0.05, 0.06),
    "kv_capacity_tokens": (0.05, 0.20),
}


@pytest.fixture(scope="module")
def own() -> dict:
    return report_as_json(compute_project_report())


def case_file(path: Path, **case: object) -> Path:
    row = {
        "id": "kv/1",
        "kind": "kv_bytes_per_token",
        "inputs": {"model": "tiny"},
        "expected": {"value": 256, "unit": "bytes/token"},
        "tolerance": {"rel": 0.0},
    }
    tiny = {
        "config": {
            "model_type": "llama",
            "hidden_size": 64,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "num_key_value_heads": 2,
            "intermediate_size": 128,
            "vocab_size": 100,
        }
    }
    path = path / "cases.json"
    path.write_text(json.dumps({"models": {"tiny": tiny}, "cases": [row | case]}))
    return path


def test_exact_kinds_are_within_tolerance_in_every_case(
    own: dict, subtests: pytest.Subtests
) -> None:
    for kind in EXACT:
        with subtests.test(kind=kind):
            summary = own["kinds"][kind]
            assert summary["expressible"] == summary["cases"]
            assert summary["within_tolerance"] == summary["cases"]


@pytest.mark.parametrize(("kind", "aims"), MODELED.items())
def test_modeled_kinds_reach_their_aims(own: dict, kind: str, aims: tuple) -> None:
    summary = own["kinds"][kind]
    assert summary["expressible"] == summary["cases"]
    assert summary["median"] <= aims[0]
    assert summary["largest"] <= aims[1]


def test_megatron_memory_is_within_two_percent(own: dict) -> None:
    rows = [
        case
        for case in own["cases"]
        if case["kind"] == "train_mem_per_gpu" and case["tolerance"] == 0.02
    ]
    assert len(rows) >= 8
    assert max(case["relative_error"] for case in rows) < 0.02


def test_intervals_hold_what_was_measured(own: dict) -> None:
    for kind in ("train_mem_per_gpu", "inference_memory"):
        assert own["kinds"][kind]["inside_interval"] >= 0.9


def test_a_case_has_every_promised_field(own: dict) -> None:
    fields = {
        "id",
        "kind",
        "expected",
        "predicted",
        "unit",
        "relative_error",
        "within_tolerance",
        "low",
        "high",
        "why_not",
    }
    assert fields <= set(own["cases"][0])


def test_a_file_brings_its_own_models(tmp_path: Path) -> None:
    (case,) = report_as_json(compute_report([case_file(tmp_path)]))["cases"]
    assert case["predicted"] == 256
    assert case["within_tolerance"] is True
    assert case["why_not"] is None


def test_a_key_that_is_not_read_makes_a_case_inexpressible(tmp_path: Path) -> None:
    path = case_file(tmp_path, inputs={"model": "tiny", "color": "red"})
    (case,) = report_as_json(compute_report([path]))["cases"]
    assert case["predicted"] is None
    assert case["why_not"] == "color is not read for kv_bytes_per_token"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"kind": "mood"}, "kind “mood” is not known"),
        ({"inputs": {"model": "huge"}}, "model “huge” is not among the models"),
        ({"inputs": {"model": "tiny", "per": "rack"}}, "per “rack” is not known"),
        ({"inputs": {"model": "tiny", "tp": "two"}}, "tp is “two”"),
    ],
)
def test_what_cannot_be_expressed_is_named(tmp_path: Path, change: dict, words: str) -> None:
    (case,) = report_as_json(compute_report([case_file(tmp_path, **change)]))["cases"]
    assert case["predicted"] is None
    assert words in case["why_not"]


def test_cases_used_for_fitting_are_no_evidence(tmp_path: Path) -> None:
    found = compute_report([case_file(tmp_path, calibration=True)])
    (summary,) = found.summaries
    assert summary.calibration == 1
    assert summary.median is None


def test_the_text_has_a_line_for_every_kind_and_case(tmp_path: Path) -> None:
    found = compute_report([case_file(tmp_path)])
    text = format_report(found, verbose=True)
    assert "kv_bytes_per_token" in text
    assert "kv/1: expected 256, predicted 256 bytes/token, off by 0.00%" in text


def test_what_the_pages_show_is_what_the_estimator_answers_today() -> None:
    stored = PATH.read_text(encoding="utf-8")

    assert format_accuracy_json(compute_project_report()) == stored, "run: make evidence"


def test_what_the_pages_show_differs_where_an_answer_does() -> None:
    found = compute_project_report()
    first, *others = found.results
    changed = dataclasses.replace(first, predicted=(first.predicted or 0.0) * 1.0001)
    other = dataclasses.replace(found, results=(changed, *others))

    assert format_accuracy_json(other) != format_accuracy_json(found)


def test_kinds_are_told_in_words() -> None:
    assert label_of_kind("train_mem_per_gpu") == "Training memory per GPU"
    assert label_of_kind("some_new_kind") == "Some new kind"


def test_the_command_answers_a_file_of_cases(capsys, tmp_path) -> None:
    file = tmp_path / "cases.json"
    config = {
        "model_type": "llama",
        "hidden_size": 8,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "intermediate_size": 16,
        "vocab_size": 32,
    }
    case = {
        "id": "one",
        "kind": "kv_bytes_per_token",
        "inputs": {"model": "m", "kv_dtype_bytes": 2},
        "expected": {"value": 32, "unit": "bytes/token"},
        "tolerance": {"rel": 0.0},
        "source": "arithmetic",
    }
    unknown = {**case, "id": "two", "inputs": {**case["inputs"], "moon": 1}}
    models = {"m": {"config": config}}
    file.write_text(json.dumps({"hardware": {}, "models": models, "cases": [case, unknown]}))

    assert main([str(file), "--json"]) == 0
    first, second = json.loads(capsys.readouterr().out)["cases"]

    assert first["predicted"] == 32
    assert first["within_tolerance"]
    assert second["predicted"] is None
    assert "moon" in second["why_not"]


def test_the_command_says_what_it_cannot_read(capsys, tmp_path) -> None:
    assert main([str(tmp_path / "nothing.json")]) == 2
    assert "the reference cases cannot be read" in capsys.readouterr().err


# Who answers -------------------------------------------------------------------

ESTIMATOR = Path(__file__).parents[2] / "app" / "estimator"


def test_every_case_is_answered_by_a_calculator_or_by_a_named_formula(
    own: dict,
) -> None:
    for case in own["cases"]:
        assert bool(case["estimate"]) != bool(case["formula"]), case["id"]
        assert bool(case["command"]) == bool(case["estimate"]), case["id"]


def test_the_commands_of_fifty_cases_give_the_numbers_of_the_report(
    own: dict, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = [case for case in own["cases"] if case["estimate"]]
    for case in random.Random(50).sample(asked, 50):  # noqa: S311 - a fixed choice
        headroom, estimate, *words = shlex.split(case["command"])
        assert (headroom, estimate) == ("headroom", "estimate")
        assert run_estimate_command([*words, "--json"]) == 0
        figures = json.loads(capsys.readouterr().out)["figures"]
        found = next(f for f in figures if f["name"] == case["figure"])
        factor = case["predicted"] / found["value"]
        assert factor == pytest.approx(round(factor) or factor, rel=1e-12)
        if case["low"] is not None:
            assert found["low"] * factor == pytest.approx(case["low"])


def test_an_address_is_that_of_the_page_with_the_same_words(own: dict) -> None:
    for case in own["cases"]:
        if case["estimate"]:
            start = f"/calculators/{case['estimate']}?"
            assert case["address"].startswith(start)
            assert case["address"].endswith(f"#{case['figure']}")


@functools.cache
def used() -> frozenset[str]:
    """What the estimator calls or looks up."""
    names: set[str] = set()
    for path in ESTIMATOR.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            found = getattr(node, "func", None) or getattr(node, "value", None)
            if isinstance(node, ast.Call | ast.Subscript):
                names.add(getattr(found, "id", "") or getattr(found, "attr", ""))
    return frozenset(names)


def test_a_formula_names_a_function_and_says_who_else_calls_it(own: dict) -> None:
    formulas = {c["formula"]: c["report_alone"] for c in own["cases"] if c["formula"]}
    assert formulas
    for name, alone in formulas.items():
        module, _, function = name.rpartition(".")
        assert hasattr(importlib.import_module(module), function)
        assert (function in used()) != alone, name


def test_nine_in_ten_counts_of_replicas_hold_what_was_measured() -> None:
    """Ten measured replicas are a load that takes ten of them, at the time that was measured."""
    measured = [
        r
        for r in compute_project_report().results
        if r.kind == "serving_tpot" and r.command and not r.calibration
    ]
    asked = random.Random(1).sample(measured, 60)  # noqa: S311 - not cryptographic
    inside = ranges = 0
    for case in asked:
        typed = dict(word[2:].split("=", 1) for word in shlex.split(case.command)[3:])
        typed = {name.replace("-", "_"): value for name, value in typed.items()}
        load = 10 * int(typed["concurrent"]) // int(typed.pop("replicas", 1))
        target = {"tpot_target": f"{case.expected} s", "ttft_target": "", "percentile": "p50"}
        found = run_estimate("serving-capacity", typed | target | {"concurrent": load, "spare": 0})
        replicas = found["replicas"]
        if replicas.low is not None and replicas.high is not None:
            ranges, inside = ranges + 1, inside + (replicas.low <= 10 <= replicas.high)
    assert inside >= 0.85 * ranges
    assert ranges >= 0.6 * len(asked)
