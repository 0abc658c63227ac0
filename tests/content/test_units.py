"""Units of other subjects: in questions as written, and in answers as typed."""

import math

import pytest

from app.markup.quantities import (
    UNIT_SPELLINGS,
    UNITS,
    Quantity,
    convert_quantity,
    parse_quantity,
    recognize_unit,
)
from app.questions.types.number_parsing import (
    AnswerRangeError,
    NumericOption,
    NumericSpec,
    parse_answer_range,
    parse_typed_number,
    parse_unit,
)
from app.questions.types.numeric import NumericType


def score(asked: str, typed: str) -> float | str:
    answer = NumericSpec((NumericOption("a", asked, parse_answer_range(asked), right=True),))
    found = NumericType().grade(answer, {"answer": [typed]}, "")
    return getattr(found, "score", str(found))


def test_an_answer_counts_in_any_unit_of_its_kind(subtests: pytest.Subtests) -> None:
    for asked, typed in [
        ("5.5 mmol/L ± 2%", "5.5 mmol/l"),
        ("5.5 mmol/L ± 2%", "5500 µmol/L"),
        ("50 km/h ± 1%", "13.89 m/s"),
        ("50 km/h ± 1%", "50 kmh"),
        ("1,200 EUR", "1200 €"),
        ("1,200 EUR", "1200 euros"),
        ("120 mmHg ± 1%", "16 kPa"),
        ("2 m² ± 1%", "20000 cm2"),
        ("9.81 m/s² ± 1%", "9.81 m/s^2"),
        ("500 mL ± 1%", "0.5 liters"),
        ("90 mg/dL ± 1%", "0.9 g/L"),
        ("1 kWh ± 1%", "3.6 MJ"),
        ("3 GHz ± 1%", "3000 mhz"),
        ("250 g ± 1%", "0.25 kg"),
        ("37 °C ± 1%", "37"),
        ("300 K ± 1%", "300 K"),
    ]:
        with subtests.test(asked=asked, typed=typed):
            assert score(asked, typed) == 1.0


@pytest.mark.parametrize(
    ("asked", "typed"),
    [("1,200 EUR", "1200 USD"), ("5 mmol/L", "5 mg/dL"), ("20 °C", "20 K")],
)
def test_an_answer_of_another_kind_is_told(asked: str, typed: str) -> None:
    assert "measures something else" in str(score(asked, typed))


def test_a_right_number_in_the_wrong_unit_is_told() -> None:
    answer = NumericSpec(
        (NumericOption("a", "50 km/h", parse_answer_range("50 km/h"), right=True),)
    )

    assert "wrong unit" in NumericType().grade(answer, {"answer": ["50 m/s"]}, "").near_miss_message


def test_every_unit_is_read_in_a_key_and_in_an_answer(
    subtests: pytest.Subtests,
) -> None:
    for unit in [u for u in UNITS if u]:
        with subtests.test(unit=unit):
            found = parse_answer_range(f"8 {unit}")
            typed = parse_unit(unit, unit)

            assert found.unit == unit
            assert typed is not None
            assert typed.fits_expected_unit
            assert math.isclose(8 * typed.factor_to_base_unit, found.center)


def test_what_is_typed_for_a_unit_is_one() -> None:
    assert {recognize_unit(word) for word in UNIT_SPELLINGS} == set(UNIT_SPELLINGS.values())
    assert set(UNIT_SPELLINGS.values()) <= set(UNITS)


def test_numbers_with_these_units_can_be_computed_with() -> None:
    assert convert_quantity(Quantity(72, "km/h"), "m/s").value == pytest.approx(20)
    assert parse_quantity("1.5 mmol/l") == Quantity(1.5, "mmol/L")


def test_a_unit_that_nobody_knows_has_a_way_around() -> None:
    with pytest.raises(AnswerRangeError) as refused:
        parse_answer_range("3 Schritte")

    assert "write “Schritte” into the question" in refused.value.hint


def test_a_fraction_is_written_as_learners_type_it():
    found = parse_answer_range("1/250 s ± 3%")

    assert found.center == 0.004
    assert found.unit == "s"
    assert parse_answer_range("-3 / 4 ± 1%").center == -0.75
    assert parse_answer_range("1/2 .. 3/4 km").high == 750


@pytest.mark.parametrize(
    ("text", "code"),
    [("1/250 s", "E41"), ("1/0 s ± 3%", "E40"), ("140 GB/150 GB", "E42")],
)
def test_a_fraction_needs_a_tolerance_and_two_whole_numbers(text, code):
    with pytest.raises(AnswerRangeError) as refused:
        parse_answer_range(text)

    assert refused.value.code == code


@pytest.mark.parametrize(
    ("typed", "unit"),
    [
        ("900 GBps", "GB/s"),
        ("900 MBps", "MB/s"),
        ("3.35 TBps", "TB/s"),
        ("64 kBps", "kB/s"),
        ("900 Gbytes/s", "GB/s"),
        ("900 GByte/s", "GB/s"),
        ("900 gigabytes/sec", "GB/s"),
        ("400 Gbps", "Gbit/s"),
        ("400 gbps", "Gbit/s"),
        ("400 Gbits/s", "Gbit/s"),
        ("9600 bps", "bit/s"),
    ],
)
def test_a_rate_of_bytes_is_not_taken_for_one_of_bits(typed: str, unit: str) -> None:
    number = parse_typed_number(typed)
    assert number is not None
    read = parse_unit(number.unit_word, "GB/s")
    assert read is not None
    assert (read.name, read.fits_expected_unit) == (unit, True)

    with pytest.raises(AnswerRangeError) as raised:
        parse_answer_range(typed)
    assert (raised.value.code, raised.value.hint) == ("E42", f"Write {unit}.")


@pytest.mark.parametrize("capitals", ["GBPS", "KBps"])
def test_a_rate_in_capitals_may_be_either(capitals: str) -> None:
    assert parse_unit(capitals, "GB/s") is None

    with pytest.raises(AnswerRangeError) as raised:
        parse_answer_range(f"900 {capitals}")
    prefix = capitals[0].replace("K", "k")
    assert raised.value.hint == f"Write {prefix}B/s for bytes, or {prefix}bit/s for bits."


def test_transfers_are_no_misspelled_bytes() -> None:
    with pytest.raises(AnswerRangeError) as raised:
        parse_answer_range("32 GT/s")
    assert "ask for the number alone, 32, and write “GT/s” into the question" in raised.value.hint
