"""Workbooks of Excel and LibreOffice: cells as shown, sheets that are seen."""

import io
import subprocess
import sys
import zipfile
from html import escape

import pytest

from app.import_export import UnusableFileError
from app.import_export.formats.spreadsheet_reader import read_spreadsheet
from app.import_export.items import Item
from tests.import_export.test_spreadsheet import workbook

MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
PACKAGE = "http://schemas.openxmlformats.org/package/2006"
OPEN = "urn:oasis:names:tc:opendocument:xmlns"
CODES = ["General", "0%", '"$"#,##0.00', "[h]:mm", "#,##0", "# ?/?", "0.0E+00"]
Cell = str | tuple[float, int]
"""Words, a number with the place of its format, or a cell as XML."""


def book(*sheets: tuple[str, str, list[list[Cell]]]) -> bytes:
    """A workbook of sheets, each with its name, its state and its rows."""
    styles = "".join(
        f'<numFmt numFmtId="{n}" formatCode="{escape(code)}"/>' for n, code in enumerate(CODES, 170)
    )
    used = "".join(f'<xf numFmtId="{n + 170}"/>' for n in range(len(CODES)))
    names = "".join(
        f'<sheet name="{name}" sheetId="{n}" state="{state}" r:id="r{n}"/>'
        for n, (name, state, _) in enumerate(sheets, 1)
    )
    links = "".join(
        f'<Relationship Id="r{n}" Type="{OFFICE}/worksheet" Target="/xl/s{n}.xml"/>'
        for n in range(1, len(sheets) + 1)
    )
    files = {
        "[Content_Types].xml": f'<Types xmlns="{PACKAGE}/content-types"/>',
        "_rels/.rels": f'<Relationships xmlns="{PACKAGE}/relationships">'
        f'<Relationship Id="r1" Type="{OFFICE}/officeDocument" '
        'Target="xl/workbook.xml"/></Relationships>',
        "xl/workbook.xml": f'<workbook xmlns="{MAIN}" xmlns:r="{OFFICE}"><sheets>'
        f"{names}</sheets></workbook>",
        "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{PACKAGE}/relationships">'
        f'{links}<Relationship Id="s" Type="{OFFICE}/styles" Target="styles.xml"/>'
        "</Relationships>",
        "xl/styles.xml": f'<styleSheet xmlns="{MAIN}"><numFmts>{styles}</numFmts>'
        f"<cellXfs>{used}</cellXfs></styleSheet>",
    }
    for n, (_, _, rows) in enumerate(sheets, 1):
        lines = "".join(f"<row>{''.join(map(cell, row))}</row>" for row in rows)
        files[f"xl/s{n}.xml"] = (
            f'<worksheet xmlns="{MAIN}"><sheetData>{lines}</sheetData></worksheet>'
        )
    return packed(files)


def cell(value: Cell) -> str:
    if isinstance(value, tuple):
        return f'<c s="{value[1]}"><v>{value[0]}</v></c>'
    if value.startswith("<c"):
        return value
    return f'<c t="inlineStr"><is><t>{escape(value)}</t></is></c>'


def packed(files: dict[str, str]) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in files.items():
            how = zipfile.ZIP_STORED if name == "mimetype" else zipfile.ZIP_DEFLATED
            archive.writestr(name, text, how)
    return made.getvalue()


def words(item: Item) -> list[str]:
    return [option.text for option in item.options]


LIBREOFFICE = """<office:document-content xmlns:office="URN:office:1.0"
 xmlns:table="URN:table:1.0" xmlns:text="URN:text:1.0"><office:body><office:spreadsheet>
<table:table table:name="S"><table:table-row>
<table:table-cell office:value-type="string"><text:p>Question</text:p>
</table:table-cell>
<table:table-cell office:value-type="string"><text:p>A</text:p></table:table-cell>
<table:table-cell office:value-type="string"><text:p>B</text:p></table:table-cell>
<table:table-cell office:value-type="string"><text:p>Answer</text:p></table:table-cell>
</table:table-row><table:table-row>
<table:table-cell office:value-type="string"><text:p>Share?</text:p></table:table-cell>
<table:table-cell office:value-type="percentage" office:value="0.5"><text:p>50%</text:p>
</table:table-cell>
<table:table-cell office:value-type="string"><text:p>none</text:p></table:table-cell>
<table:table-cell office:value-type="string"><text:p>A</text:p></table:table-cell>
</table:table-row><table:table-row>
<table:table-cell office:value-type="string"><text:p>Bytes?</text:p></table:table-cell>
<table:table-cell table:number-columns-repeated="2"/>
<table:table-cell office:value-type="float" office:value="1024"><text:p>1,024</text:p>
</table:table-cell></table:table-row></table:table>
</office:spreadsheet></office:body></office:document-content>"""


HEADS: list[Cell] = ["Question", "A", "B", "Answer"]


def test_cells_are_read_as_they_are_shown() -> None:
    found = read_spreadsheet(
        book(
            (
                "Quiz",
                "visible",
                [
                    HEADS,
                    ["Share?", (0.5, 1), (0.25, 1), "A"],
                    ["Price?", (5, 2), (12.5, 2), "B"],
                    ["How many?", "", "", (1024, 4)],
                    ["Which part?", "", "", (0.5, 1)],
                ],
            )
        )
    )

    assert [words(item) for item in found.items[:2]] == [
        ["50%", "25%"],
        ["\\$5.00", "\\$12.50"],
    ]
    spans = [item.options[0].span for item in found.items[2:]]
    assert [(s.center, s.unit) for s in spans if s] == [(1024, ""), (50, "%")]


@pytest.mark.parametrize(
    ("given", "fault"),
    [
        ('<c t="e"><v>#N/A</v></c>', "shows the error #N/A"),
        ("<c><f>1+1</f><v/></c>", "holds a formula whose value is not in the file"),
        ((0.5, 5), "is shown by a format “# ?/?” that is not read"),
        ((13 / 12, 3), "is shown by a format “[h]:mm” that is not read"),
        ((12345, 6), "is shown by a format “0.0E+00” that is not read"),
    ],
)
def test_a_cell_without_words_is_no_choice_that_is_missing(given: Cell, fault: str) -> None:
    rows = [HEADS, ["Which?", "x", given, "A"], ["SectionNote?", "x", "y", "B"]]
    found = read_spreadsheet(book(("Quiz", "visible", rows)))

    assert [item.stem for item in found.items] == ["SectionNote?"]
    assert [r.sentence for r in found.refused_items] == [
        f"its cell under “B” {fault}: write its words instead"
    ]


def test_hidden_sheets_are_passed_over_and_every_other_is_read() -> None:
    found = read_spreadsheet(
        book(
            ("Lists", "hidden", [["easy"], ["hard"]]),
            ("Notes", "visible", [["Read this first."]]),
            ("One", "visible", [["Week 3"], HEADS, ["Q?", "x", "y", "A"]]),
            ("Two", "visible", [HEADS, ["R?", "x", "y", "B"], ["S?", "x", "y", "D"]]),
        )
    )

    assert [item.stem for item in found.items] == ["Q?", "R?"]
    assert [str(remark) for remark in found.refused_items] == [
        "line 3: Two: S?: its answer “D” names none of its choices"
    ]
    assert found.remarks_on_file[0] == "The hidden sheet “Lists” is not read."
    assert found.remarks_on_file[1].startswith("The sheet “Notes” is not read.")


def test_a_workbook_of_libreoffice_is_read_as_shown() -> None:
    found = read_spreadsheet(
        packed(
            {
                "mimetype": "application/vnd.oasis.opendocument.spreadsheet",
                "META-INF/manifest.xml": f'<m xmlns="{OPEN}:manifest:1.0"/>',
                "content.xml": LIBREOFFICE.replace("URN", OPEN).replace("\n", ""),
            }
        )
    )

    assert words(found.items[0]) == ["50%", "none"]
    assert found.items[1].options[0].span is not None
    assert found.items[1].options[0].span.center == 1024


def test_a_workbook_with_a_part_missing_is_refused() -> None:
    made = io.BytesIO()
    with (
        zipfile.ZipFile(io.BytesIO(workbook([["question", "answer"]]))) as before,
        zipfile.ZipFile(made, "w") as after,
    ):
        for name in before.namelist():
            if "sheet1" not in name:
                after.writestr(name, before.read(name))

    with pytest.raises(UnusableFileError, match="cannot be read"):
        read_spreadsheet(made.getvalue())


def test_older_workbooks_are_refused_since_they_hide_how_numbers_are_shown() -> None:
    with pytest.raises(UnusableFileError, match=r"Save it as \.xlsx"):
        read_spreadsheet(b"\xd0\xcf\x11\xe0 and more")


def test_the_process_that_reads_a_workbook_imports_a_part_of_the_app() -> None:
    look = (
        "import app.import_export.workbook_reader, sys;"
        "print({'fastapi', 'alembic', 'pydantic'} & {*sys.modules})"
    )
    done = subprocess.run([sys.executable, "-c", look], check=True, capture_output=True, text=True)

    assert done.stdout == "set()\n"
