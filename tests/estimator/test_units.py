"""Numbers to text and text to numbers."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.estimator import units
from app.estimator.registry import run_estimate
from app.estimator.units import (
    MINUS,
    NBSP,
    format_range,
    format_value,
    parse_quantity,
)
from app.markup.checked_figures import compare_figure_with_value
from app.markup.quantities import Quantity


def shown(value: float, unit: str) -> str:
    return format_value(value, unit).replace(NBSP, " ")


def test_values_are_written_as_on_the_pages(subtests: pytest.Subtests) -> None:
    for value, unit, text in [
        (1.12e12, "B", "1,120 GB"),
        (149.4e9, "B", "149.4 GB"),
        (80e9, "B", "80 GB"),
        (999.96e9, "B", "1,000 GB"),
        (5.29e12, "B", "5,290 GB"),
        (60e12, "B", "60 TB"),
        (131072, "B", "131.1 kB"),
        (0, "B", "0 B"),
        (-9.1e9, "B", f"{MINUS}9.1 GB"),
        (3.35e12, "B/s", "3,350 GB/s"),
        (989.4e12, "FLOP/s", "989.4 TFLOP/s"),
        (3.8e25, "FLOP", "3.8×10²⁵ FLOP"),
        (0.0427, "s", "42.7 ms"),
        (54 * 86400.0, "s", "54 days"),
        (131072, "token", "131,072 tokens"),
        (1, "GPU", "1 GPU"),
        (0.413, "%", "41.3%"),
        (34_141.3, "GPU-h", "34,100 GPU-hours"),
        (2932.9, "token/s", "2,930 tokens/s"),
        (137.48, "token/s", "137 tokens/s"),
        (0.3252, "s", "325 ms"),
        (466_800, "W", "466.8 kW"),
        (1_267_694, "USD/year", "1,267,694 USD/year"),
    ]:
        with subtests.test(value=value, unit=unit, text=text):
            assert shown(value, unit) == text


def test_both_ends_of_a_range_have_one_unit_where_both_can_be_read(
    subtests: pytest.Subtests,
) -> None:
    for low, high, unit, text in [
        (72.1e9, 86.4e9, "B", "72.1 to 86.4 GB"),
        (37.7 * 3600, 57.6 * 3600, "s", "1.6 to 2.4 days"),
        (7.8 * 3600, 51 * 3600, "s", "0.33 to 2.1 days"),
        (0.3283, 1.3, "s", "0.33 to 1.3 s"),
        (5e-6, 2, "s", "5\u00a0µs to 2 s"),
        (0, 3e9, "B", "0 to 3 GB"),
        (0, 0, "s", "0 s"),
        (9.98e12, 10.1e12, "B", "10 to 10.1 TB"),
        (9.99e12, 10.01e12, "B", "10 TB"),
        (1, 3, "GPU", "1 to 3 GPUs"),
        (0.396, 0.594, "%", "39.6% to 59.4%"),
        (3.9e20, 4.1e21, "FLOP", "390\u00a0EFLOP to 4.1×10²¹ FLOP"),
        (96210, 144314, "USD", "96,200 to 144,000 USD"),
        (21.2, 34.5, "", "21.2 to 34.5"),
        (-3e9, 2e9, "B", "\u22123 to 2 GB"),
    ]:
        with subtests.test(low=low, high=high, unit=unit):
            words = format_range(low, high, unit)
            assert words.replace(NBSP, " ") == text.replace(NBSP, " ")


def test_words_and_answers_pass_through() -> None:
    assert format_value("BF16") == "BF16"
    assert format_value(value=True) == "yes"
    assert format_value(None, "B") == "unknown"


def test_quantities_are_read_as_people_write_them(subtests: pytest.Subtests) -> None:
    for text, unit, typed, value in [
        ("80", "B", "GB", 80e9),
        ("80 GB", "B", "GB", 80e9),
        ("80GiB", "B", "GB", 80 * 2**30),
        ("400 Gb/s", "B/s", "GB/s", 50e9),
        ("70B", "parameter", "", 70e9),
        ("1.5 trillion", "token", "", 1.5e12),
        ("128k", "token", "", 128_000),
        ("128K", "token", "", 131_072),
        ("128K tokens", "token", "", 131_072),
        ("7K", "parameter", "", 7000),
        ("128Ki tokens", "token", "", 131_072),
        ("90", "", "%", 0.9),
        ("90 %", "", "%", 0.9),
        ("1,120 GB", "B", "GB", 1.12e12),
        ("2 h", "s", "s", 7200),
    ]:
        with subtests.test(text=text, unit=unit, typed=typed):
            assert parse_quantity(text, unit, typed) == pytest.approx(value)


def test_unreadable_quantities_are_refused(subtests: pytest.Subtests) -> None:
    for text in ["", "GB", "eighty", "80 s", "8 parsecs", "4 kGB"]:
        with subtests.test(text=text), pytest.raises(ValueError, match=r"."):
            parse_quantity(text, "B", "GB")


def test_gb_is_not_gib() -> None:
    assert units.convert_unit(1, "GiB", "B") - units.convert_unit(1, "GB", "B") == 73_741_824


def test_two_kinds_of_unit_cannot_be_mixed() -> None:
    with pytest.raises(ValueError, match="cannot be turned into"):
        units.convert_unit(1, "GB", "W")


@given(st.floats(min_value=0, max_value=1e18, allow_nan=False))
def test_any_amount_of_bytes_has_a_short_text(value: float) -> None:
    text = shown(value, "B")
    assert text[0].isdigit()
    assert len(text) < 24


@given(st.floats(allow_nan=True, allow_infinity=True))
def test_any_number_can_be_written(value: float) -> None:
    assert units.format_number(value)
    if not math.isfinite(value):
        assert units.format_number(value) == "unknown"


def test_a_modeled_figure_has_three_digits_and_an_exact_one_all_of_them() -> None:
    answer = run_estimate("training-time", {})
    hours, cost = answer["gpu_hours"], answer["cost"]
    assert hours.low is not None
    assert cost.low is not None
    for figure in (hours, cost):
        digits = figure.formatted_value.partition(NBSP)[0].replace(",", "").rstrip("0")
        assert len(digits) <= 3, figure.formatted_value
    model = run_estimate("model", {})
    assert model["parameters"].formatted_value == f"70,553,706,496{NBSP}parameters"


def test_prose_may_quote_the_digits_that_pages_show() -> None:
    rate = Quantity(5641.3, "token/s")
    assert compare_figure_with_value("5,640 tokens/s", rate) == ("", "")
    assert compare_figure_with_value("5,641 tokens/s", rate) == ("", "")
    assert compare_figure_with_value("5,650 tokens/s", rate) == ("E82", "5,641 tokens/s")
    assert compare_figure_with_value("5,640 tokens", Quantity(5641, "token"))[0] == "E82"


def test_a_target_that_one_request_keeps_is_rounded_up() -> None:
    tight = {"model": "llama-3.1-405b", "gpu": "h200", "tensor_parallel": 8}
    first = run_estimate(
        "serving-capacity", tight | {"ttft_target": "10 ms", "tpot_target": "3 ms"}
    )
    assert first.verdict.lead == "Targets cannot be met."
    typed = {change.field: change.new_value for change in first.changes}
    relaxed = run_estimate("serving-capacity", tight | typed | {"concurrent": 1})
    assert relaxed["fits"].value is True
