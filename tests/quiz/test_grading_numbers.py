"""Numbers as people write them, and wrong units told apart from wrong numbers."""

# ruff: noqa: RUF001 - characters that are mistaken for others are what is tested

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.estimator.units import NBSP
from app.markup.quantities import UNITS
from app.questions.grading import grade_response
from app.questions.question_type import GradeResult, UnreadableResponse
from app.questions.types.number_parsing import parse_typed_number
from tests.quiz.bank import COUNT, GIBIBYTES, GIGABYTES, drawn, number, numeric


def answered(typed: str, unit: str = "", question=GIGABYTES) -> GradeResult | UnreadableResponse:
    return grade_response(drawn(question), {"answer": [typed], "unit": [unit]})


def test_it_is_read_as_people_write_it(subtests: pytest.Subtests) -> None:
    for typed in [
        "1120 GB",
        "1.12 TB",
        "1 120",
        "1,120",
        "1,120 GB",
        "1.12e12 B",
        "1.12E+12 bytes",
        "1.12 × 10^12 B",
        "1.12·10¹² B",
        "1,12 TB",
        "1'120",
        "1’120",
        "1\u202f120 GB",
        "1_120GB",
        "~1120",
        "≈ 1.1 TB",
        "1120 gb",
        "1120 gigabytes",
        "1.12 terabyte",
        "1120.",
        "+1120",
        "1,120,000 MB",
        "1.120.000 MB",
        "1.120,0 GB",
        "1043 GiB",
        "8960 Gbit",
        "8960 Gb",
        "2240/2",
        "56/50 TB",
    ]:
        with subtests.test(typed=typed):
            verdict = answered(typed)

            assert isinstance(verdict, GradeResult), verdict
            assert verdict.score == 1


PRICE = numeric(number(5.80, "USD"))
MINUS_FIVE = numeric(number(-5))


@pytest.mark.parametrize(
    "typed",
    [
        *("$5.80", "$ 5.80", "US$5.80", "US $5.80", "USD 5.80", "usd 5.80", "USD5.80"),
        *("5.80 $", "5,80$", "5.80 US$", "5.80 USD", "5.80 usd.", "5.80 dollars"),
        *("$5.80 USD", "USD $5.80", "＄５．８０", "$5.80。", "“$5.80”", "\u200e$5.80"),
        *("$5,80", "$29/5"),
    ],
)
def test_a_currency_may_stand_on_either_side(typed: str) -> None:
    assert answered(typed, question=PRICE).score == 1


@pytest.mark.parametrize(
    ("asked", "typed"),
    [
        *(("EUR", "€5"), ("EUR", "5 €"), ("EUR", "5,- €"), ("EUR", "EUR 5")),
        *(("GBP", "£5"), ("INR", "Rs. 5"), ("CHF", "CHF 5.–"), ("CHF", "Fr. 5.-")),
        *(("SEK", "5 kr"), ("DKK", "kr. 5"), ("BRL", "R$ 5"), ("PLN", "5 zł")),
        *(("CAD", "$5"), ("CAD", "C$5"), ("CNY", "¥5"), ("CNY", "5元"), ("JPY", "¥5")),
        *(("USD/h", "$5/h"), ("USD/h", "$5 per hour"), ("USD/kWh", "5 USD / kWh")),
        *(("USD/year", "$5/year"), ("°C", "5 ºC"), ("°C", "5 ˚C"), ("%", "%5")),
    ],
)
def test_a_sign_of_several_currencies_is_the_one_that_is_asked_for(asked: str, typed: str) -> None:
    question = numeric(number(5, asked, factor=UNITS[asked][1]))

    assert answered(typed, question=question).score == 1


@pytest.mark.parametrize("typed", ["€5.80", "A$5.80", "5.80 CAD", "¥5.80"])
def test_another_currency_is_told(typed: str) -> None:
    refused = answered(typed, question=PRICE)

    assert isinstance(refused, UnreadableResponse)
    assert "measures something else" in refused.message


@pytest.mark.parametrize("sign", [*"-−‐‑‒–—―－﹣⁻➖ー", "\u2043", "\u2212\u200b", "\u202a-", "- "])
def test_every_hyphen_and_dash_is_a_minus(sign: str) -> None:
    assert answered(f"{sign}5", question=MINUS_FIVE).score == 1


@pytest.mark.parametrize("typed", ["-$5", "$-5", "−5 $", "US$ –5"])
def test_a_minus_may_stand_on_either_side_of_a_currency(typed: str) -> None:
    question = numeric(number(-5, "USD"))

    assert answered(typed, question=question).score == 1


@pytest.mark.parametrize(
    "typed",
    [
        *(
            "1120 GB。",
            "1120 GB．",
            "1120。",
            "1120 GB।",
            "1120 GB،",
            "1120,",
            "1120 GB;",
        ),
        *(
            "１１２０",
            "１，１２０ ＧＢ",
            "1\u2009120 GB",
            "1\u2007120",
            "1\u00a0120",
            "1´120",
        ),
        *("\ufeff1120\u200b", "11\u00ad20", "1120\u2060 GB", "„1120 GB“", "1٬120"),
        *("١١٢٠", "1٬120٫0 GB"),
    ],
)
def test_stops_spaces_and_digits_of_other_scripts_are_read(typed: str) -> None:
    assert answered(typed).score == 1


@pytest.mark.parametrize(
    "typed",
    ["1100-1200", "1100–1200 GB", "1100 or 1200", "11:20", "1120-", "-1120-", "5'"],
)
def test_what_may_mean_several_numbers_is_refused_with_a_sentence(typed: str) -> None:
    refused = answered(typed)

    assert isinstance(refused, UnreadableResponse)
    assert refused.message.endswith((" is not one number.", "known here."))
    assert refused.hint


@pytest.mark.parametrize("typed", ["$5 EUR", "$", "-$-5", "5!", "$5 $5"])
def test_a_price_that_says_two_things_is_refused(typed: str) -> None:
    assert isinstance(answered(typed, question=PRICE), UnreadableResponse)


def test_the_unit_chosen_beside_the_field_counts_where_none_is_typed() -> None:
    assert answered("1.12", "TB").score == 1
    assert answered("1120 GB", "TB").score == 1


def test_what_is_no_number_is_refused_with_an_example(
    subtests: pytest.Subtests,
) -> None:
    for typed in [
        *("", "  ", "lots", "GB", "1.2.3", "1,12,3", "80 4", "--5", "1e999", "9" * 500),
        *("∞", "1½", "1 1/2", "1120/0", "1.12/2", "1,120e3", "1,120 × 10^3"),
    ]:
        with subtests.test(typed=typed):
            refused = answered(typed)

            assert isinstance(refused, UnreadableResponse)
            assert refused.message


def test_an_unknown_unit_is_refused_and_says_which_one_is_wanted() -> None:
    refused = answered("1120 bananas")

    assert refused == UnreadableResponse(
        "“bananas” is not a unit that is known here.",
        "Write the number in GB, or in a unit of the same kind.",
    )


@pytest.mark.parametrize("typed", ["1120 ms", "1120 W", "1120 tokens", "50 %"])
def test_a_unit_of_another_kind_is_refused(typed: str) -> None:
    refused = answered(typed)

    assert isinstance(refused, UnreadableResponse)
    assert "measures something else" in refused.message


def test_a_foreseen_wrong_number_has_its_own_feedback() -> None:
    verdict = answered("560")

    assert isinstance(verdict, GradeResult)
    assert (verdict.score, verdict.feedback.plain) == (0, "You forgot V.")
    assert verdict.near_miss_message == ""


def test_any_other_number_is_wrong_and_the_right_one_is_named() -> None:
    verdict = answered("999 GB")

    assert isinstance(verdict, GradeResult)
    assert (verdict.score, verdict.near_miss_message) == (0, "")
    assert verdict.given_answer == f"999{NBSP}GB"
    assert verdict.right_answer == f"1,120{NBSP}GB"


def test_the_right_amount_in_the_wrong_unit_is_told_apart() -> None:
    verdict = answered("80 GB", question=GIBIBYTES)

    assert isinstance(verdict, GradeResult)
    assert verdict.score == 0
    assert verdict.near_miss_message == (
        "Right amount, wrong unit. 80 is the answer in GiB, and you gave it in GB."
    )


def test_a_point_that_parts_thousands_is_told() -> None:
    verdicts = [answered(typed) for typed in ("1.120 GB", "1.120", "9.120 GB", "1.12 GB")]

    messages = [v.near_miss_message for v in verdicts if isinstance(v, GradeResult)]
    told = "A point stands before decimals. For thousands, write 1,120."
    assert messages[0] == messages[1] == told
    assert told not in messages[2:]


def test_gigabits_are_not_gigabytes() -> None:
    verdict = answered("1120 Gb")

    assert isinstance(verdict, GradeResult)
    assert "Right amount, wrong unit" in verdict.near_miss_message


def test_the_edge_of_the_tolerance_is_inside() -> None:
    assert answered("1142.4 GB").score == 1
    assert answered("1143 GB").score == 0


def test_a_bare_count_may_carry_its_noun_or_a_letter() -> None:
    for typed in ("131072", "131,072", "131072 tokens", "131.072k", "128Ki"):
        assert answered(typed, question=COUNT).score == 1, typed
    assert answered("128k", question=COUNT).score == 0


def test_significant_digits_decide_where_the_author_asks_for_them() -> None:
    question = numeric(number(3.35, "TB/s", factor=1e12, significant=2))

    assert answered("3.3 TB/s", question=question).score == 0
    assert answered("3.4 TB/s", question=question).score == 1
    assert answered("3350 GB/s", question=question).score == 1


def test_a_share_may_be_typed_as_percent() -> None:
    question = numeric(number(12.5, "%", within=0.01, factor=0.01))

    assert answered("12.5 %", question=question).score == 1
    assert answered("12,5", question=question).score == 1
    assert answered("12.5 percent", question=question).score == 1


@given(st.floats(allow_nan=False, allow_infinity=False, min_value=-1e15, max_value=1e15))
def test_every_float_is_read_back_from_its_shortest_form(value: float) -> None:
    read = parse_typed_number(repr(value))

    assert read is not None
    assert read.value == value


@given(st.integers(0, 10**15), st.sampled_from([",", " ", "'", "_", "\u00a0"]))
def test_grouped_integers_are_read_whatever_groups_them(whole: int, sign: str) -> None:
    read = parse_typed_number(f"{whole:,}".replace(",", sign))

    assert read is not None
    assert read.value == whole
