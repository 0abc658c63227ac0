"""Aiken in and out."""

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.import_export.formats.text_lists import read_aiken, write_aiken
from app.import_export.items import Item, ItemOption
from tests.import_export.bank import PLAIN, distinct

FILE = """\
What does a KV cache trade?
A. Accuracy for speed
B) Memory for compute
C. Nothing
ANSWER: B

The sky is green.
A) True
B) False
ANSWER: B
"""


def test_letters_may_end_in_a_point_or_a_bracket() -> None:
    items = read_aiken(FILE).items

    assert [i.kind for i in items] == ["single", "true-false"]
    assert [o.right for o in items[0].options] == [False, True, False]


def test_a_question_without_its_answer_is_named_and_its_neighbors_stay() -> None:
    reading = read_aiken("Which?\nA. a\nB. b\n\n" + FILE + "\nLast?\nA. a\nANSWER: C")

    assert len(reading.items) == 2
    assert [str(r) for r in reading.refused_items] == [
        "line 1: Which?: there is no line “ANSWER: X” below its options",
        "line 16: Last?: its answer C is not among its options",
    ]


@given(PLAIN, distinct(PLAIN, 3, 6), st.integers(0, 2))
def test_plain_choices_come_back(stem: str, texts: list[str], right: int) -> None:
    options = tuple(ItemOption(t, n == right) for n, t in enumerate(texts))
    item = Item("", "single", stem, options)
    written = write_aiken((item,))

    if not written.refused_items:
        again = read_aiken(written.file_content.decode()).items
        assert [dataclasses.replace(i, line=0) for i in again] == [item]


@pytest.mark.parametrize("stem", ["U.S. rules say what?", "A)Which?", "7"])
def test_a_question_that_other_programs_take_for_no_question_is_refused(
    stem: str,
) -> None:
    options = (ItemOption("One", True), ItemOption("Two", False))

    assert write_aiken((Item("", "single", stem, options),)).written_item_count == 0


def test_a_letter_needs_no_space_where_it_comes_next() -> None:
    items = read_aiken("Which?\nof the\nU.S. rules?\nA.One\nB)Two\nANSWER: B\n").items

    assert items[0].stem == "Which? of the U.S. rules?"
    assert [o.text for o in items[0].options] == ["One", "Two"]


def test_what_is_no_single_choice_is_refused() -> None:
    written = write_aiken((Item("x", "numeric", "How much?"),))

    assert written.written_item_count == 0
    assert str(written.refused_items[0]) == "x: Aiken knows single choices only"


def test_words_apart_from_a_question_do_not_take_it_with_them() -> None:
    found = read_aiken("A heading\n\nWhat is it?\nA. One\nB. Two\nC. Three\nANSWER: B\n")

    assert [i.stem for i in found.items] == ["What is it?"]
    assert [(r.item_name, r.line_number) for r in found.refused_items] == [("A heading", 1)]


def test_an_answer_is_a_letter_before_it_is_words(subtests: pytest.Subtests) -> None:
    for answer, right in [
        ("ANSWER: B", "O"),
        ("Answer: b", "O"),
        ("ANSWER: B.", "O"),
        ("ANSWER: B) O", "O"),
        ("Correct answer: (C)", "B"),
    ]:
        with subtests.test(answer=answer):
            text = f"Which can give to all?\nA) AB\nB) O\nC) B\nD) A\n{answer}\n"
            (item,) = read_aiken(text).items

            assert [o.text for o in item.options if o.right] == [right]


def test_an_answer_that_says_two_things_is_refused(subtests: pytest.Subtests) -> None:
    for lines, reason in [
        ("A. 80\nB. 443\nANSWER: B) 80", "names B, but that says “443”"),
        ("A. 80\nB. 443\nANSWER: A, B", "names several, but Aiken has one"),
        ("A. 80\nB. 443\nB. 22\nANSWER: B", "its options are A, B, B"),
        ("B. 80\nC. 443\nANSWER: B", "its options are B, C"),
        ("A. 80\nB. 443\nNext?\nA. 1\nB. 2\nANSWER: B", "its options are A, B, A, B"),
    ]:
        with subtests.test(lines=lines):
            reading = read_aiken(f"Which?\n{lines}\n\nAnd?\nA. x\nB. y\nANSWER: A\n")

            assert [item.stem for item in reading.items] == ["And?"]
            assert reason in reading.refused_items[0].sentence


def test_a_line_below_an_option_goes_on_with_it() -> None:
    (item,) = read_aiken("Which?\nA. long\n   words\nB. x\nANSWER: A\n").items

    assert [o.text for o in item.options] == ["long\\\nwords", "x"]


def test_a_reason_below_the_answer_is_no_part_of_the_next_question() -> None:
    first, second = read_aiken(
        "Which?\nA. x\nB. y\nANSWER: A\nFeedback: So.\nNext?\nA. x\nB. y\nANSWER: B\n"
    ).items

    assert (first.explanation, second.stem) == ("So.", "Next?")


def test_code_in_a_question_keeps_its_lines() -> None:
    text = "What is shown?\nif x:\n    y()\nA. __init__\nB. *\nANSWER: B\n"
    (item,) = read_aiken(text).items

    assert item.stem == "What is shown?\n\n```\nif x:\n    y()\n```"
    assert [o.text for o in item.options] == ["\\_\\_init\\_\\_", "\\*"]
