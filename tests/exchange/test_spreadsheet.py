"""Plain tables of choices, as text and as spreadsheets."""

import io
import shutil
import zipfile
from html import escape
from pathlib import Path

import pytest

from app.exchange.commands import import_file
from app.exchange.formats.spreadsheet import read_spreadsheet
from app.exchange.items import Unusable
from tests.conftest import TINY

TABLE = [
    ["Question", "A", "B", "C", "D", "Answer", "Feedback", "Feedback B", "Topic"],
    ["What forwards packets?", "A switch", "A pump", "A rack", "", "A", "So.", "No."],
    ["Which two hold data?", "A disk", "A fan", "A tape", "A belt", "a and c", ""],
    ["A GPU has memory.", "True", "False", "", "", "True", ""],
    ["How many bits has a byte?", "", "", "", "", "8", ""],
    ["What cools by air?", "", "", "", "", "fan | a fan", ""],
    [],
    ["Which is it?", "This", "That", "", "", "E", ""],
    ["And this?", "This", "That", "", "", "", ""],
]


def workbook(rows: list[list[str | float]]) -> bytes:
    """A spreadsheet with nothing but cells."""

    def cell(value: str | float) -> str:
        if isinstance(value, str):
            return f'<c t="inlineStr"><is><t>{escape(value)}</t></is></c>'
        return f"<c><v>{value}</v></c>"

    lines = "".join(f"<row>{''.join(map(cell, row))}</row>" for row in rows)
    main = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    office = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    package = "http://schemas.openxmlformats.org/package/2006"
    files = {
        "[Content_Types].xml": f'<Types xmlns="{package}/content-types">'
        '<Default Extension="rels" ContentType="application/'
        'vnd.openxmlformats-package.relationships+xml"/>'
        '<Default Extension="xml" ContentType="application/xml"/></Types>',
        "_rels/.rels": f'<Relationships xmlns="{package}/relationships">'
        f'<Relationship Id="r1" Type="{office}/officeDocument" '
        'Target="xl/workbook.xml"/></Relationships>',
        "xl/workbook.xml": f'<workbook xmlns="{main}" xmlns:r="{office}"><sheets>'
        '<sheet name="Bank" sheetId="1" r:id="r1"/></sheets></workbook>',
        "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{package}/relationships">'
        f'<Relationship Id="r1" Type="{office}/worksheet" '
        'Target="worksheets/sheet1.xml"/></Relationships>',
        "xl/worksheets/sheet1.xml": f'<worksheet xmlns="{main}"><sheetData>{lines}'
        "</sheetData></worksheet>",
    }
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in files.items():
            archive.writestr(name, f'<?xml version="1.0"?>{text}')
    return packed.getvalue()


def written(sign: str) -> bytes:
    return "\n".join(sign.join(row) for row in TABLE).encode()


@pytest.mark.parametrize(
    "data",
    [
        written(";"),
        written("\t"),
        written(",").replace(b"a and c", b"a & c"),
        workbook(TABLE),
    ],
    ids=["semicolons", "tabs", "commas", "workbook"],
)
def test_each_row_is_a_question(data: bytes) -> None:
    found = read_spreadsheet(data)

    kinds = [(item.kind, [o.right for o in item.options]) for item in found.items]
    assert kinds == [
        ("single", [True, False, False]),
        ("multiple", [True, False, True, False]),
        ("true-false", [True, False]),
        ("numeric", [True]),
        ("short", [True, True]),
    ]
    first = found.items[0]
    assert (first.explanation, first.options[1].feedback) == ("So.", "No.")
    assert found.items[3].options[0].span.center == 8
    assert [(r.line, r.reason) for r in found.refused] == [
        (8, "its answer “E” names none of its choices"),
        (9, "it has no answer"),
    ]
    assert [r.reason for r in found.lost] == ["the column “Topic” is not read"]


def test_numbers_of_a_workbook_are_read_as_they_are_shown() -> None:
    data = workbook([["question", "answer"], ["How many?", 8.0], ["How much?", 0.5]])

    centers = [i.options[0].span.center for i in read_spreadsheet(data).items]

    assert centers == [8, 0.5]


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "empty"),
        (b"question,A,B\nx,y,z\n", "no “answer”"),
        (b"PK\x03\x04 broken", "cannot be read"),
        (b"\xd0\xcf\x11\xe0 broken", "cannot be read"),
    ],
)
def test_what_is_no_table_is_refused_with_a_sentence(data: bytes, said: str) -> None:
    with pytest.raises(Unusable, match=said):
        read_spreadsheet(data)


def test_a_dry_run_reports_and_writes_nothing(tmp_path: Path) -> None:
    course = Path(shutil.copytree(TINY, tmp_path / "course"))
    table = tmp_path / "bank.xlsx"
    table.write_bytes(workbook(TABLE))
    before = {p: p.read_bytes() for p in course.rglob("*") if p.is_file()}

    said = import_file("spreadsheet", table, course, "kv-cache", dry=True)

    assert said.startswith("5 items would be carried into topics/kv-cache/quiz.md.")
    assert {p: p.read_bytes() for p in course.rglob("*") if p.is_file()} == before
    said = import_file("spreadsheet", table, course, "kv-cache")
    assert said.startswith("5 items carried into topics/kv-cache/quiz.md.")


def test_a_table_that_takes_all_memory_is_refused() -> None:
    far = '<row r="1048576"><c r="XFD1048576"><v>1</v></c></row></sheetData>'

    with pytest.raises(Unusable, match="needs more memory or time than it may have"):
        read_spreadsheet(replaced(workbook(TABLE), "</sheetData>", far))


def test_a_table_with_cells_without_number_is_refused() -> None:
    far = '<row r="20000"><c r="ZZ20000"><v>1</v></c></row></sheetData>'

    with pytest.raises(Unusable, match="has more than 2,000,000 cells"):
        read_spreadsheet(replaced(workbook(TABLE), "</sheetData>", far))


def replaced(book: bytes, old: str, new: str) -> bytes:
    """A workbook whose files hold other words."""
    packed = io.BytesIO()
    with (
        zipfile.ZipFile(io.BytesIO(book)) as before,
        zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as after,
    ):
        for name in before.namelist():
            after.writestr(name, before.read(name).replace(old.encode(), new.encode()))
    return packed.getvalue()
