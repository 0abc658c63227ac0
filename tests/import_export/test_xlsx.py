"""A spreadsheet with one row per question goes out, is edited, and comes back."""

import dataclasses

import pytest
from hypothesis import given, settings

from app.import_export.formats.spreadsheet_reader import read_spreadsheet
from app.import_export.formats.xlsx_table import QUESTION, read_item_of_exported_row, write_xlsx
from app.import_export.items import Item, ItemOption, ItemSkippedError
from app.import_export.workbook_reader import read_workbook
from tests.amounts import FACTOR
from tests.import_export.bank import bare, told

KINDS = ("single", "multiple", "true-false", "numeric", "short", "order", "match", "cloze")
CHOICE = Item(
    "kv-what",
    "single",
    "What does **it** hold?",
    (ItemOption("Keys", True, "Yes."), ItemOption("Half", False, "No.", credit=0.5)),
    topic="kv-cache",
    use="exam",
    level="deeper",
    explanation="Because.\n\nOf this.",
)


def rows_of(content: bytes) -> list[list[str]]:
    (sheet,) = read_workbook(content, "It cannot be read").sheets
    return sheet[1]


def row_of(item: Item) -> dict[str, str]:
    """A row as a spreadsheet program shows it."""
    head, row = rows_of(write_xlsx((item,)).file_content)
    return dict(zip(head, row, strict=True))


@given(told(*KINDS))
@settings(max_examples=15 if FACTOR > 1 else 8, deadline=None)
def test_what_is_written_is_read_again(item: Item) -> None:
    named = dataclasses.replace(item, topic="weights")

    written = write_xlsx((named,))
    result = read_spreadsheet(written.file_content)

    assert (written.refused_items, result.refused_items) == ((), ())
    assert [bare(i) for i in result.items] == [bare(named)]


@pytest.mark.parametrize("credit", [1 / 3, 0.1428571, 0.05])
def test_a_part_of_the_credit_is_read_as_it_was(credit: float) -> None:
    worth = round(credit, 7)
    half = dataclasses.replace(CHOICE.options[1], credit=worth)

    item = read_item_of_exported_row(
        row_of(dataclasses.replace(CHOICE, options=(CHOICE.options[0], half)))
    )

    assert item.options[1].credit == worth


def test_a_question_is_a_row_that_people_can_read() -> None:
    row = row_of(CHOICE)

    assert row[QUESTION] == "What does **it** hold?"
    assert (row["A"], row["A feedback"], row["B"]) == ("Keys", "Yes.", "Half")
    assert (row["answer"], row["topic"], row["use"]) == ("A, B 50%", "kv-cache", "exam")


def test_an_edited_row_is_another_question() -> None:
    row = row_of(CHOICE) | {"answer": "B", "C": "A third", "difficulty": "5"}

    item = read_item_of_exported_row(row)

    assert [(o.text, o.right) for o in item.options] == [
        ("Keys", False),
        ("Half", True),
        ("A third", False),
    ]
    assert item.difficulty == 5


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"answer": "D"}, "names none of its choices"),
        ({"answer": ""}, "it has no answer"),
        ({"type": "essay"}, "its type “essay” is none of"),
        ({"type": "numeric"}, "is no number"),
        ({"type": "match"}, "has no arrow"),
        ({"type": "cloze"}, "has no blank"),
        ({"difficulty": "9"}, "is not one of 1 to 5"),
        ({QUESTION: ""}, "it has no question"),
    ],
)
def test_a_row_that_is_no_question_says_why(change: dict[str, str], reason: str) -> None:
    with pytest.raises(ItemSkippedError, match=reason):
        read_item_of_exported_row(row_of(CHOICE) | change)


def test_the_same_questions_give_the_same_file() -> None:
    assert write_xlsx((CHOICE,)).file_content == write_xlsx((CHOICE,)).file_content
    assert write_xlsx(()).written_item_count == 0
