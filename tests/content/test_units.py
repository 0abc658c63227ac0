"""Units of other subjects: in questions as written, and in answers as typed."""

import math

import pytest

from app.markup.quantities import (
    TYPED,
    UNITS,
    Quantity,
    convert_quantity,
    known_unit,
    parse_quantity,
)
from app.questions.types.number_parsing import (
    AnswerRangeError,
    NumericAnswer,
    NumericOption,
    read_answer_range,
    read_unit,
)
from app.questions.types.numeric import grade_numeric


def score(asked: str, typed: str) -> float | str:
    answer = NumericAnswer((NumericOption("a", asked, read_answer_range(asked), right=True),))
    found = grade_numeric(answer, {"answer": [typed]}, "")
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
    answer = NumericAnswer(
        (NumericOption("a", "50 km/h", read_answer_range("50 km/h"), right=True),)
    )

    assert "wrong unit" in grade_numeric(answer, {"answer": ["50 m/s"]}, "").near


def test_every_unit_is_read_in_a_key_and_in_an_answer(
    subtests: pytest.Subtests,
) -> None:
    for unit in [u for u in UNITS if u]:
        with subtests.test(unit=unit):
            found = read_answer_range(f"8 {unit}")
            typed = read_unit(unit, unit)

            assert found.unit == unit
            assert typed is not None
            assert typed.fits
            assert math.isclose(8 * typed.factor, found.center)


def test_what_is_typed_for_a_unit_is_one() -> None:
    assert {known_unit(word) for word in TYPED} == set(TYPED.values())
    assert set(TYPED.values()) <= set(UNITS)


def test_numbers_with_these_units_can_be_computed_with() -> None:
    assert convert_quantity(Quantity(72, "km/h"), "m/s").value == pytest.approx(20)
    assert parse_quantity("1.5 mmol/l") == Quantity(1.5, "mmol/L")


def test_a_unit_that_nobody_knows_has_a_way_around() -> None:
    with pytest.raises(AnswerRangeError) as refused:
        read_answer_range("3 Schritte")

    assert "write “Schritte” into the question" in refused.value.hint


def test_a_fraction_is_written_as_learners_type_it():
    found = read_answer_range("1/250 s ± 3%")

    assert found.center == 0.004
    assert found.unit == "s"
    assert read_answer_range("-3 / 4 ± 1%").center == -0.75
    assert read_answer_range("1/2 .. 3/4 km").high == 750


@pytest.mark.parametrize(
    ("text", "code"),
    [("1/250 s", "E41"), ("1/0 s ± 3%", "E40"), ("140 GB/150 GB", "E42")],
)
def test_a_fraction_needs_a_tolerance_and_two_whole_numbers(text, code):
    with pytest.raises(AnswerRangeError) as refused:
        read_answer_range(text)

    assert refused.value.code == code
