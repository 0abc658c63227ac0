"""Aiken in and out."""

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.exchange.formats.aiken import read_aiken, write_aiken
from app.exchange.items import Item, Option
from tests.exchange.bank import PLAIN, distinct

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
    assert [str(r) for r in reading.refused] == [
        "line 1: Which?: no line “ANSWER: X” stands below its options",
        "line 16: Last?: its answer C is not among its options",
    ]


@given(PLAIN, distinct(PLAIN, 3, 6), st.integers(0, 2))
def test_plain_choices_come_back(stem: str, texts: list[str], right: int) -> None:
    options = tuple(Option(t, n == right) for n, t in enumerate(texts))
    item = Item("", "single", stem, options)
    written = write_aiken((item,))

    if not written.refused:
        again = read_aiken(written.content.decode()).items
        assert [dataclasses.replace(i, line=0) for i in again] == [item]


@pytest.mark.parametrize("stem", ["U.S. rules say what?", "A)Which?", "7"])
def test_a_question_that_other_programs_take_for_no_question_is_refused(
    stem: str,
) -> None:
    options = (Option("One", True), Option("Two", False))

    assert write_aiken((Item("", "single", stem, options),)).carried == 0


def test_a_letter_needs_no_space_where_it_comes_next() -> None:
    items = read_aiken("Which?\nof the\nU.S. rules?\nA.One\nB)Two\nANSWER: B\n").items

    assert items[0].stem == "Which? of the U.S. rules?"
    assert [o.text for o in items[0].options] == ["One", "Two"]


def test_what_is_no_single_choice_is_refused() -> None:
    written = write_aiken((Item("x", "numeric", "How much?"),))

    assert written.carried == 0
    assert str(written.refused[0]) == "x: Aiken knows single choices only"


def test_words_apart_from_a_question_do_not_take_it_with_them() -> None:
    found = read_aiken(
        "A heading\n\nWhat is it?\nA. One\nB. Two\nC. Three\nANSWER: B\n"
    )

    assert [i.stem for i in found.items] == ["What is it?"]
    assert [(r.name, r.line) for r in found.refused] == [("A heading", 1)]
