"""Questions and attempts as JSON and CSV."""

import codecs
import csv
import io
import json
import math
from pathlib import Path

import pytest
from fastapi.testclient import TestClient
from hypothesis import given

from app.cli.import_export import export_attempts
from app.import_export import UnusableFileError
from app.import_export.formats.csv_json import read_csv, read_json, write_csv, write_json
from app.import_export.items import Item, ItemOption, NumberRange
from app.settings import Settings
from tests.import_export.bank import FIELDS, bare, items


@given(items(*FIELDS))
def test_json_keeps_everything(item: Item) -> None:
    again = read_json(write_json((item,)).file_content.decode())

    assert [bare(i) for i in again.items] == [bare(item)]


@given(items(*FIELDS))
def test_csv_keeps_everything(item: Item) -> None:
    again = read_csv(write_csv((item,)).file_content.decode("utf-8-sig"))

    assert [bare(i) for i in again.items] == [bare(item)]


def test_a_range_keeps_the_names_that_files_have_always_had() -> None:
    right = ItemOption("2 GB", right=True, span=NumberRange(2.0, 1.9, 2.1, "GB"))
    written = json.loads(write_json((Item("x", "numeric", "?", options=(right,)),)).file_content)

    span = {"centre": 2.0, "low": 1.9, "high": 2.1, "unit": "GB"}
    assert written["items"][0]["options"][0]["span"] == span


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("[", "The file is not JSON: "),
        ("[]", "The file has no list “items”."),
        ("[" * 100_000, "The file is not JSON: "),
    ],
)
def test_a_broken_file_is_refused(text: str, sentence: str) -> None:
    with pytest.raises(UnusableFileError, match=sentence):
        read_json(text)


def test_a_broken_row_is_named_and_its_neighbors_stay() -> None:
    rows = [
        {"name": "x", "kind": "riddle", "stem": "?"},
        3,
        {"name": "y", "kind": "short", "stem": "?", "options": [{"text": "a"}]},
        {"name": "z", "kind": "short", "stem": "Which?", "options": []},
    ]
    reading = read_json(json.dumps({"items": rows}))

    assert [i.name for i in reading.items] == ["z"]
    assert str(reading.refused_items[0]) == (
        "line 1: x: its “kind” cannot be \"riddle\": Input should be 'single', 'multiple', "
        "'true-false', 'numeric', 'short', 'order', 'match', 'cloze' or 'card'"
    )
    assert len(reading.refused_items) == 3


def test_attempts_leave_as_rows(rosa: TestClient, settings: Settings, tmp_path: Path) -> None:
    page = rosa.get("/quiz/weights")
    assert page.status_code == 200
    target = tmp_path / "attempts.json"

    report = export_attempts("attempts-json", target, settings.database_url_or_default, None)

    assert report == "0 attempts written."
    assert json.loads(target.read_text()) == []


def test_a_word_is_never_taken_for_true(subtests: pytest.Subtests) -> None:
    whole = {"kind": "single", "stem": "Which?"}
    wrong = {"text": "a", "right": "false"}
    for row, reason in [
        (
            {**whole, "options": [wrong]},
            'its “options.0.right” cannot be "false": Input should be a valid boolean',
        ),
        (
            {**whole, "shuffle": "no"},
            'its “shuffle” cannot be "no": Input should be a valid boolean',
        ),
        ({**whole, "hints": "one"}, 'its “hints” cannot be "one": Input should be a valid array'),
        (
            {**whole, "options": [{**wrong, "right": True, "credit": 50}]},
            "its “options.0.credit” cannot be 50: Input should be less than",
        ),
    ]:
        with subtests.test(row=row):
            reading = read_json(json.dumps({"items": [row]}))

            assert reading.items == ()
            assert reason in reading.refused_items[0].sentence


def test_a_field_that_is_not_known_is_told_and_null_is_nothing() -> None:
    row = {"kind": "card", "stem": "?", "explanation": None, "rank": 3}
    reading = read_json(json.dumps({"items": [row]}))

    assert reading.items[0].explanation == ""
    assert [r.sentence for r in reading.losses] == ["the field “rank” is not read"]


def test_a_table_that_a_spreadsheet_saved_again_is_read() -> None:
    item = Item("x", "card", "What; so?", text="Yes, “so”.")
    written = write_csv((item,)).file_content
    assert written.startswith(codecs.BOM_UTF8)  # or Excel shows “ as three signs

    rows = list(csv.reader(io.StringIO(written.decode("utf-8-sig"))))
    saved = io.StringIO()
    csv.writer(saved, delimiter=";").writerows(
        [cell.upper() if cell in {"true", "false"} else cell for cell in row] for row in rows
    )
    for text in (saved.getvalue(), f"sep=;\n{saved.getvalue()}"):
        assert [bare(i) for i in read_csv(text.replace("\r\n", "\n")).items] == [item]


def test_a_row_with_more_cells_than_columns_is_refused() -> None:
    reading = read_csv("name,kind,stem\nx,card,What, then?\ny,card,So?\n")

    assert [i.name for i in reading.items] == ["y"]
    assert reading.refused_items[0].sentence == "it has more cells than the table has columns"


def numeric(center: object, low: object, high: object) -> str:
    span = {"centre": center, "low": low, "high": high, "unit": ""}
    option = {"text": "", "right": True, "span": span}
    row = {"name": "n", "kind": "numeric", "stem": "How many?", "options": [option]}
    return json.dumps({"version": 1, "items": [row]})


@pytest.mark.parametrize(
    "ends", [(math.nan, 1, 2), (1, math.nan, 2), (1, 0, math.inf), (5, 7, 9), (5, 6, 4)]
)
def test_a_range_around_no_number_is_refused(ends: tuple[float, float, float]) -> None:
    reading = read_json(numeric(*ends))

    assert not reading.items
    assert "is not within" in reading.refused_items[0].sentence


def test_a_range_that_is_not_even_keeps_its_ends() -> None:
    span = read_json(numeric(1024, 1000, 1100)).items[0].options[0].span

    assert span == NumberRange(1050, 1000, 1100)


def test_a_column_that_is_there_twice_is_refused() -> None:
    with pytest.raises(UnusableFileError, match="The column “stem” is there twice"):
        read_csv("name,kind,stem,stem\nn,card,a,b\n")


def test_a_difficulty_that_is_no_whole_number_is_refused() -> None:
    row = {"name": "n", "kind": "card", "stem": "a", "text": "b", "difficulty": 2.9}
    reading = read_json(json.dumps({"version": 1, "items": [row]}))

    assert "its “difficulty” cannot be 2.9" in reading.refused_items[0].sentence
