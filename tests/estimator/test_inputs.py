"""Typed words to inputs and back, with every problem said at once."""

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.estimator.inputs import (
    InvalidInputsError,
    input_field,
    input_specs,
    non_default_inputs_to_query,
    parse_inputs,
)


@dataclasses.dataclass(frozen=True, slots=True)
class Order:
    model: str = input_field("70B", "Model", kind="model")
    gpu: str = input_field("h100-sxm5-80", "GPU", kind="gpu", count_field="gpus")
    gpus: int = input_field(8, "GPUs", kind="count", unit="GPU", minimum=1, maximum=1000)
    memory: float = input_field(
        80e9, "Memory", unit="B", typed_unit="GB", minimum=1e9, maximum=1e12
    )
    context: int = input_field(8192, "Context", kind="count", unit="token", minimum=1)
    share: float = input_field(0.9, "Share", typed_unit="%", minimum=0, maximum=1)
    weights: str = input_field(
        "bf16", "Weights", kind="choice", choices=(("bf16", "BF16"), ("fp8", "FP8"))
    )
    exact: bool = input_field(default=False, label="Exact", kind="flag")
    wait: float | None = input_field(None, "Wait", unit="s", typed_unit="s", minimum=0)


def problems(**typed: object) -> list[str]:
    with pytest.raises(InvalidInputsError) as caught:
        parse_inputs(Order, typed)
    return [p.message for p in caught.value.problems]


def test_words_people_use_are_read() -> None:
    order = parse_inputs(
        Order,
        {
            "model": "Llama 3.1 8B",
            "gpu": "4x A100",
            "memory": "40",
            "context": "128k",
            "share": "85",
            "weights": "FP8",
            "exact": "on",
            "wait": "2 min",
        },
    )
    assert order == Order(
        "llama-3.1-8b", "a100-sxm4-80", 4, 40e9, 128_000, 0.85, "fp8", True, 120.0
    )


def test_missing_and_empty_fields_take_their_defaults() -> None:
    assert parse_inputs(Order, {}) == Order()
    assert parse_inputs(Order, {"gpus": "", "wait": "", "model": None}) == Order()


def test_numbers_that_are_numbers_are_base_units() -> None:
    assert parse_inputs(Order, {"memory": 40e9}).memory == 40e9


def test_a_count_before_the_card_gives_way_to_the_field_itself() -> None:
    assert parse_inputs(Order, {"gpu": "4x H100", "gpus": "6"}).gpus == 6


def test_all_problems_are_said_at_once() -> None:
    assert len(problems(gpus="0", memory="2000", weights="fp7", nodes="3")) == 4


def test_a_refusal_names_the_value_and_what_is_allowed(
    subtests: pytest.Subtests,
) -> None:
    for field, value, words in [
        ("gpus", "0", "1 to 1,000 GPUs"),
        ("gpus", "2.5", "not a whole number"),
        ("gpus", "many", "cannot be read"),
        ("memory", "2000", "1 GB to 1,000 GB"),
        ("memory", "4 s", "write 1 GB to 1,000 GB"),
        ("weights", "fp7", "bf16 or fp8"),
        ("gpu", "H1000", "h100-sxm5-80"),
        ("model", "lama-2-7b", "llama-2-7b"),
        ("model", "3", "10M to 100T"),
        ("exact", "maybe", "neither yes nor no"),
        ("gpuss", "3", "Did you mean “gpus”?"),
        ("context", "1e999", "not a finite number"),
        ("share", float("nan"), "not a finite number"),
        ("gpus", True, "is not a number"),
        ("gpus", [1], "is not a number"),
    ]:
        with subtests.test(field=field, value=value, words=words):
            (message,) = problems(**{field: value})
            assert words in message
            if isinstance(value, str):
                assert value in message or field in message


def test_fields_at_their_default_are_left_out_of_a_link() -> None:
    assert non_default_inputs_to_query(Order()) == {}
    assert non_default_inputs_to_query(Order(gpus=4)) == {"gpus": "4"}


@given(
    st.builds(
        Order,
        model=st.sampled_from(["70B", "llama-3.1-8b", "1.5T", "494.032768M"]),
        gpu=st.sampled_from(["h100-sxm5-80", "l4"]),
        gpus=st.integers(1, 1000),
        memory=st.floats(1e9, 1e12),
        context=st.integers(1, 10**9),
        share=st.integers(0, 1000).map(lambda thousandths: thousandths / 1000),
        weights=st.sampled_from(["bf16", "fp8"]),
        exact=st.booleans(),
        wait=st.none() | st.floats(0, 1e9),
    )
)
def test_what_is_written_is_read_back(order: Order) -> None:
    assert parse_inputs(Order, non_default_inputs_to_query(order)) == order


def test_fields_are_declared_in_the_order_of_the_form() -> None:
    assert next(iter(input_specs(Order))) == "model"
    assert input_specs(Order)["wait"].optional
