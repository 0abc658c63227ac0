"""What authors may write as arithmetic, and what they may not."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.markup.expressions import (
    ExpressionError,
    Value,
    compile_expression,
    evaluate_expression,
    fill_placeholders,
)
from app.markup.quantities import Quantity, format_with_spec


def value(text: str, **names: Value) -> Value:
    return evaluate_expression(compile_expression(text), names)


def test_plain_arithmetic_has_its_value(subtests: pytest.Subtests) -> None:
    for text, expected in [
        ("1 + 2 * 3", Quantity(7)),
        ("-(4 - 6) / 4", Quantity(0.5)),
        ("round(2.345, 1)", Quantity(2.3)),
        ("ceil(2.1) + floor(2.9)", Quantity(5)),
        ("max(1, min(5, 3))", Quantity(3)),
        ("3.35 TB/s * 2 s in GB", Quantity(6700.0, "GB")),
        ("80 GB / 2", Quantity(40.0, "GB")),
        ("80 GB / 3.35 TB/s in ms", Quantity(pytest.approx(23.88, rel=1e-3), "ms")),
        ("1 TB + 24 GB", Quantity(pytest.approx(1.024), "TB")),
    ]:
        with subtests.test(text=text, expected=expected):
            assert value(text) == expected


def test_an_estimate_is_asked_by_name_and_output() -> None:
    found = value('kv_cache(model=m, cache="fp16").per_token in kB', m="llama-3.1-8b")

    assert found == Quantity(pytest.approx(131.072), "kB")


def test_a_converted_value_counts_in_its_unit_from_there_on() -> None:
    assert value("right / 2", right=Quantity(85.9, "GB")) == Quantity(42.95, "GB")


def test_a_size_among_the_parameters_counts_parameters() -> None:
    assert value("size * 2", size="70B") == Quantity(140e9)


def test_everything_else_is_refused_with_its_rule(subtests: pytest.Subtests) -> None:
    for text, code in [
        ("2 ** 9", "E45"),
        ("x.__class__", "E45"),
        ("().__class__.__mro__", "E45"),
        ("__import__('os')", "E44"),
        ("open('/etc/passwd')", "E44"),
        ("[x for x in (1, 2)]", "E45"),
        ("(lambda: 1)()", "E45"),
        ("'a' * 9", "E45"),
        ("f'{1}'", "E45"),
        ("1 if 2 else 3", "E45"),
        ("x := 3", "E45"),
        ("1 GB + 1 s", "E42"),
        ("1 GB in s", "E42"),
        ("1 in furlongs", "E42"),
        ("1 / 0", "E47"),
        ("1e308 * 10", "E47"),
        ("kv_cache(model='llama-3.1-8b')", "E45"),
        ("kv_cache('llama-3.1-8b').total", "E45"),
        ("kv_cache(model='llama-3.1-8b').nothing", "E44"),
        ("nothing(model='llama-3.1-8b').total", "E44"),
        ("unknown + 1", "E44"),
        ("1 +", "E45"),
        ("", "E45"),
        ("(" * 400 + "1" + ")" * 400, "E45"),
        ("1+" * 300 + "1", "E45"),
    ]:
        with subtests.test(text=text, code=code):
            with pytest.raises(ExpressionError) as refused:
                value(text)

            assert refused.value.code == code


@given(st.text(max_size=80))
def test_any_text_has_a_value_or_a_refusal(text: str) -> None:
    with contextlib.suppress(ExpressionError):
        value(text)


_WORDS = "1 2.5 x GB in + - * / ** ( ) , . round max kv_cache model= 'a' [ ] { } : %"
_PIECES = st.sampled_from([*_WORDS.split(), "9" * 60])


@given(st.lists(_PIECES, max_size=14).map(" ".join))
def test_any_mix_of_words_has_a_value_or_a_refusal(text: str) -> None:
    with contextlib.suppress(ExpressionError):
        value(text, x=Quantity(3, None))


def test_a_placeholder_is_written_as_people_write_numbers(
    subtests: pytest.Subtests,
) -> None:
    for number, form, written in [
        (1119.6, ".3g", "1,120"),
        (85.899, ".3g", "85.9"),
        (80.0, ".3g", "80"),
        (2048, "", "2048"),
        (2048, ",", "2,048"),
        (0.000123456, ".3g", "0.000123"),
        (999.9, ".3g", "1,000"),
        (1.5, ".2f", "1.50"),
        (-2, ".1f", "−2.0"),
        (1e12, ",", "1,000,000,000,000"),
    ]:
        with subtests.test(number=number, form=form, written=written):
            assert format_with_spec(number, form) == written


@given(st.text(max_size=40))
def test_filling_a_template_never_raises(template: str) -> None:
    fill_placeholders(template, {"x": Quantity(1.5), "w": "word"})


def test_a_format_cannot_be_used_to_fill_the_memory() -> None:
    template = "{x:>999999999}"

    assert fill_placeholders(template, {"x": Quantity(1)}) == template
