"""Answers beside a question: what names a choice, and what is a number."""

import pytest

from app.import_export.formats.text_lists import (
    find_labels_named_by_answer,
    read_answer_without_choices,
)
from app.import_export.items import ItemSkippedError
from app.import_export.text_conversion import has_unambiguous_decimal_comma

PORTS = {"A": "80", "B": "443", "C": "22"}
BLOOD = {"A": "AB", "B": "O", "C": "B", "D": "A"}
PARTS = {"1": "NVLink", "2": "A fan belt", "3": "InfiniBand"}
POWERS = {"1": "4", "2": "2", "3": "8"}
BOTH = {"A": "1 only", "B": "2 only", "C": "A and B"}


def test_a_choice_is_named_by_its_label_its_words_or_both(
    subtests: pytest.Subtests,
) -> None:
    for answer, choices, named in [
        ("b)", PORTS, "B"),
        ("(B)", PORTS, "B"),
        ("Option B", PORTS, "B"),
        ("443", PORTS, "B"),
        ("B) 443", PORTS, "B"),
        ("B. 443.", PORTS, "B"),
        ("B: 443", PORTS, "B"),
        ("Option B - 443", PORTS, "B"),
        ("A and C", PORTS, "AC"),
        ("AC", PORTS, "AC"),
        ("80; 22", PORTS, "AC"),
        ("A) 80, C) 22", PORTS, "AC"),
        ("(B)", BLOOD, "B"),
        ("B) O", BLOOD, "B"),
        ("O", BLOOD, "B"),
        ("2", PARTS, "2"),
        ("Option 2", PARTS, "2"),
        ("1,3", PARTS, "13"),
        ("B", PARTS, "2"),
        ("nvlink, InfiniBand", PARTS, "13"),
        ("2", POWERS, "2"),
        ("(3)", POWERS, "3"),
        ("2", {"A": "x", "B": "y"}, "B"),
        ("C) A and B", BOTH, "C"),
        ("Gb", {"A": "GB", "B": "Gb"}, "B"),
        ("/", {"A": "*", "B": "/"}, "B"),
    ]:
        with subtests.test(answer=answer, choices=choices):
            assert "".join(sorted(find_labels_named_by_answer(answer, choices))) == named


def test_an_answer_that_names_two_choices_or_none_is_refused(
    subtests: pytest.Subtests,
) -> None:
    for answer, choices, reason in [
        ("B", BLOOD, "write (B) for the label, or (C) for the words"),
        ("AB", BLOOD, "write (A), (B) for the label, or (A) for the words"),
        ("A and B", BOTH, "write (A), (B) for the label, or (C) for the words"),
        ("1", {"1": "2", "2": "1"}, "write (1) for the label, or (2) for the words"),
        ("B) 80", PORTS, "names B, but that says “443”"),
        ("B) B", BLOOD, "names B, but that says “O”"),
        ("2", PORTS, "names none of its choices"),  # where choices are numbers
        ("D", PORTS, "names none of its choices"),
        ("1.3", PARTS, "names 1, but that says “NVLink”"),
        ("x", {"A": "x", "B": "x"}, "its choices A and B are the same"),
    ]:
        with subtests.test(answer=answer, choices=choices):
            with pytest.raises(ItemSkippedError) as refused:
                find_labels_named_by_answer(answer, choices)

            assert reason in str(refused.value)


def test_letters_come_before_words_where_a_file_says_letters() -> None:
    assert find_labels_named_by_answer("B", BLOOD, prefer_labels=True) == {"B"}
    with pytest.raises(ItemSkippedError):  # two letters, or the words of one choice
        find_labels_named_by_answer("AB", BLOOD, prefer_labels=True)


def test_a_number_is_read_as_learners_type_it(subtests: pytest.Subtests) -> None:
    for answer, center, unit in [
        ("1,024", 1024, ""),
        ("12,500,000", 12_500_000, ""),
        ("1,024.5", 1024.5, ""),
        ("1.024,5", 1024.5, ""),
        ("1'024", 1024, ""),
        ("12 288", 12_288, ""),
        ("1,5", 1.5, ""),
        ("0,125", 0.125, ""),
        ("1.024", 1.024, ""),
        ("\N{MINUS SIGN}5", -5, ""),
        ("50%", 50, "%"),
        ("1,024 GB", 1024, "GB"),
    ]:
        with subtests.test(answer=answer):
            kind, (option,) = read_answer_without_choices(answer)

            assert kind == "numeric"
            assert option.span is not None
            assert (option.span.center, option.span.unit) == (center, unit)


def test_a_tolerance_is_read_with_its_number() -> None:
    spans = [
        read_answer_without_choices(answer)[1][0].span for answer in ("140 GB ± 4", "200 +/- 5%")
    ]

    assert [span and span.tolerance for span in spans] == [4, 10]


@pytest.mark.parametrize(
    ("answer", "comma"),
    [
        ("1,024", True),
        ("1.024", True),
        ("1,024 GB", True),
        ("12,34,567", False),
        ("1,2,3", False),
        ("~5", False),
    ],
)
def test_a_number_that_can_be_two_or_none_is_refused(answer: str, comma: bool) -> None:
    with pytest.raises(ItemSkippedError) as refused:
        read_answer_without_choices(answer, may_use_decimal_comma=comma)

    assert f"“{answer}”" in str(refused.value)
    assert "write" in str(refused.value)


def test_words_with_digits_stay_words() -> None:
    for answer in ("192.168.0.1", "2024-06-02", "3-4", "5 apples"):
        assert read_answer_without_choices(answer)[0] == "short"


def test_a_comma_before_three_digits_tells_nothing_of_its_author() -> None:
    said = ["1,5", "0,125", "1.024,5", "1,024", "1,024,000", "1.5", "words, too"]

    assert list(map(has_unambiguous_decimal_comma, said)) == [True] * 3 + [False] * 4
