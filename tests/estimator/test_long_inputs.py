"""Values of absurd length: refused at the edge, with the field and what is allowed."""

import json
import tracemalloc
from typing import Any

import pytest

from app.estimator import registry
from app.estimator.estimates.model import ModelInputs
from app.estimator.inputs import (
    LONGEST_VALUE,
    MOST_INPUTS,
    InputProblem,
    InvalidInputsError,
    input_specs,
)
from app.estimator.models.lookup import (
    build_model_from_pasted_config,
    drop_irrelevant_config_fields,
)
from app.markup import expressions as estimates
from app.widgets.estimate_view import build_estimate_view


def problems_of(name: str, typed: dict[str, Any]) -> tuple[InputProblem, ...]:
    with pytest.raises(InvalidInputsError) as refused:
        registry.run_estimate(name, typed)
    return refused.value.problems


def test_a_very_long_value_is_refused_by_every_field(subtests: pytest.Subtests) -> None:
    for name in registry.ESTIMATE_NAMES:
        for value in [
            "9" * 5000,
            "x" * 60_000,
            int("9" * 4000),
            "1" * 400 + "T",
            ["x" * 300] * 50,
        ]:
            with subtests.test(name=name, value=value):
                entry = registry.find_estimate(name)
                assert entry is not None
                fields = input_specs(entry.inputs_type)

                problems = problems_of(name, dict.fromkeys(fields, value))

                for problem in problems:
                    assert len(problem.value) <= LONGEST_VALUE
                    assert len(problem.message) < 1000
                texts = {field for field, known in fields.items() if known.kind == "text"}
                assert {p.field for p in problems} >= fields.keys() - texts


def test_the_refusal_names_field_length_and_what_is_allowed() -> None:
    problem = problems_of("inference-memory", {"context": "9" * 5000})[0]

    assert problem.field == "context"
    assert problem.message == (
        "The value for context has 5,000 characters; at most 200 can be read."
    )


@pytest.mark.parametrize("digits", [150, 190])
def test_a_size_of_hundreds_of_digits_is_outside_of_the_range(digits: int) -> None:
    for size in ("9" * digits, "9" * digits + "T", "9" * digits + ".5B"):
        problem = problems_of("inference-memory", {"model": size})[0]
        assert problem.field == "model"
        assert "outside of 10M to 100T parameters" in problem.message


def test_a_size_is_a_lookup_error_however_long_it_is() -> None:
    with pytest.raises(estimates.FigureError):
        estimates.read_catalog_field("model", "9" * 310 + "B", "parameters")


def test_more_inputs_than_any_question_has_are_refused_as_one_mistake() -> None:
    typed = {f"unknown-{number}": "1" for number in range(MOST_INPUTS + 1)}

    problems = problems_of("kv-cache", typed)

    assert [p.message for p in problems] == ["201 inputs are too many: at most 200."]


def test_the_name_of_an_input_can_be_too_long_to_look_for_a_likeness() -> None:
    problem = problems_of("kv-cache", {"x" * 60_000: "1"})[0]

    assert "has 60,000 characters" in problem.message
    assert len(problem.field) == LONGEST_VALUE


def test_what_no_count_needs_is_not_kept_of_a_pasted_model() -> None:
    plain = '{"model_type": "llama", "hidden_size": 512, "num_hidden_layers": 2,'
    plain += '"num_attention_heads": 8, "intermediate_size": 1024, "vocab_size": 100,'

    reduced = drop_irrelevant_config_fields(
        f'{plain} "id2label": {{"0": "a"}}, "remark": "{"x" * 50_000}"}}'
    )

    assert "id2label" not in reduced
    assert len(reduced) < 500
    assert build_model_from_pasted_config(reduced).unread == ("remark",)
    weights = registry.run_estimate("weights", {"model": reduced})
    assert weights.verdict.text.startswith("Pasted model in BF16")


def test_a_model_with_hundreds_of_kinds_of_layers_is_refused() -> None:
    widths = [1024 + 8 * layer for layer in range(300)]
    config = {"model_type": "llama", "hidden_size": 512, "num_hidden_layers": 300}
    config |= {"num_attention_heads": 8, "vocab_size": 100, "intermediate_size": widths}

    problem = problems_of("inference-memory", {"model": json.dumps(config)})[0]

    assert "300 different layers; at most 256 can be read." in problem.message


def test_long_texts_do_not_stay_behind_in_addresses() -> None:
    entry = registry.find_estimate("model")
    assert entry is not None
    plain = '{"model_type": "llama", "hidden_size": 512, "num_hidden_layers": 2,'
    plain += '"num_attention_heads": 8, "intermediate_size": 1024, "vocab_size": 100,'
    tracemalloc.start()
    try:
        for number in range(100):
            asked = ModelInputs(config=f'{plain} "remark": "{number}{"x" * 100_000}"}}')
            build_estimate_view(entry, asked, entry.compute(asked))
        held = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()

    assert held < 3_000_000
