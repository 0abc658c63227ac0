"""Read XLSX and ODS workbooks in a process with limits.

The library allocates a table as large as the farthest cell, and its process dies if memory runs
out: a thousand bytes can describe a billion cells. It returns the values of cells only, so how a
number is shown is read from the files of the workbook.

Not in `formats`, whose package imports most of the app, which would take the process a second.
"""

import json
import re
import resource
import subprocess
import sys
import zipfile
from collections.abc import Iterable, Iterator
from decimal import ROUND_HALF_UP, Decimal
from io import BytesIO
from pathlib import Path
from posixpath import join, normpath
from typing import NamedTuple
from xml.etree import ElementTree as ET

from python_calamine import (
    CalamineError,
    CalamineSheet,
    CalamineWorkbook,
    SheetTypeEnum,
    SheetVisibleEnum,
)

from app.import_export import UnusableFileError
from app.import_export.xml_files import parse_xml_and_locate_elements

UNREADABLE_CELL_MARK = "\ue0f6"
"""Prefix of the reason why a cell has no text."""
_PROJECT_FOLDER = Path(__file__).resolve().parents[2]
_MAX_MEMORY_BYTES = 1 << 30
_TIMEOUT_SECONDS = 60
_MOST_CELLS = 2_000_000
_NUMBER_TYPES = frozenset({"float", "percentage", "currency", "date", "time"})  # of ODS
TableRows = list[list[str]]


class DisplayedCell(NamedTuple):
    """What a cell that is not text shows, and its row and column, from 0."""

    position: tuple[int, int]
    text: str


class Sheet(NamedTuple):
    """A sheet of a spreadsheet file: its name, and the text of its cells."""

    name: str
    rows: TableRows


class WorkbookSheets(NamedTuple):
    """The visible sheets that are not empty, and the names of the hidden ones."""

    sheets: list[Sheet]
    hidden_names: list[str]


def read_workbook(data: bytes, error_prefix: str) -> WorkbookSheets:
    """Return the cells of a workbook as shown; raises UnusableFileError with `error_prefix`."""
    try:
        process = subprocess.run(  # noqa: S603 - runs this module; the file is its input
            [sys.executable, "-m", __name__],
            cwd=_PROJECT_FOLDER,
            input=data,
            capture_output=True,
            check=False,
            timeout=_TIMEOUT_SECONDS,
        )
        result = json.loads(process.stdout)
    except (subprocess.TimeoutExpired, ValueError):
        reason = "its table needs more memory or time than it may have"
        raise UnusableFileError(f"{error_prefix}: {reason}.") from None
    if "error" in result:
        raise UnusableFileError(f"{error_prefix}: {result['error']}.")
    return WorkbookSheets([Sheet(*sheet) for sheet in result["sheets"]], result["hidden_names"])


def _convert_stdin_workbook_to_json() -> None:
    """Read a workbook from standard input; write its sheets, or the error."""
    resource.setrlimit(resource.RLIMIT_AS, (_MAX_MEMORY_BYTES, _MAX_MEMORY_BYTES))
    data = sys.stdin.buffer.read()
    try:
        result = _read_sheets(data)._asdict()
    except (CalamineError, UnusableFileError) as error:
        result = {"error": str(error).rstrip(".")[:120]}
    except (KeyError, ValueError, zipfile.BadZipFile):
        result = {"error": "a part of it is missing or damaged"}
    json.dump(result, sys.stdout)


def _read_sheets(data: bytes) -> WorkbookSheets:
    book = CalamineWorkbook.from_filelike(BytesIO(data))
    result = WorkbookSheets([], [])
    with zipfile.ZipFile(BytesIO(data)) as archive:
        is_ods = "content.xml" in archive.namelist()
        read_cells = _read_ods_non_text_cells if is_ods else _read_xlsx_non_text_cells
        non_text_cells = read_cells(archive)
    for metadata in book.sheets_metadata:
        sheet = book.get_sheet_by_name(metadata.name)
        if metadata.visible != SheetVisibleEnum.Visible:
            result.hidden_names.append(metadata.name)
        elif sheet.height and metadata.typ == SheetTypeEnum.WorkSheet:
            rows = _read_sheet_rows(sheet, non_text_cells.get(metadata.name, ()))
            result.sheets.append(Sheet(metadata.name, rows))
    return result


def _read_sheet_rows(sheet: CalamineSheet, non_text_cells: Iterable[DisplayedCell]) -> TableRows:
    last_row, last_column = sheet.end or (0, 0)
    if (last_row + 1) * (last_column + 1) > _MOST_CELLS:
        raise UnusableFileError(f"its table has more than {_MOST_CELLS:,} cells")
    rows = [[str(cell).strip() for cell in row] for row in sheet.to_python(skip_empty_area=False)]
    for (row, column), text in non_text_cells:
        if row < len(rows):  # an error cell may be outside of the used range
            rows[row] += [""] * (column + 1 - len(rows[row]))
            rows[row][column] = text
    return rows


# --- the files of Excel ---


def _read_xlsx_non_text_cells(archive: zipfile.ZipFile) -> dict[str, list[DisplayedCell]]:
    """Return what the cells of each sheet show that are not text."""
    targets = {
        _find_attribute_in_any_namespace(link, "Id"): normpath(
            join("/xl", _find_attribute_in_any_namespace(link, "Target"))
        ).lstrip("/")
        for link in parse_xml_and_locate_elements(archive.read("xl/_rels/workbook.xml.rels")).root
    }
    formats = _read_number_formats_of_styles(archive)
    result: dict[str, list[DisplayedCell]] = {}
    for sheet in _find_elements_below(
        parse_xml_and_locate_elements(archive.read("xl/workbook.xml")).root, "sheet"
    ):
        root = parse_xml_and_locate_elements(
            archive.read(targets[_find_attribute_in_any_namespace(sheet, "id")])
        ).root
        cells = _list_xlsx_non_text_cells(root, formats)
        result[_find_attribute_in_any_namespace(sheet, "name")] = list(cells)
    return result


def _read_number_formats_of_styles(archive: zipfile.ZipFile) -> list[str | None]:
    """Return the number format of each cell style; None for one that differs by country."""
    if "xl/styles.xml" not in archive.namelist():
        return []
    root = parse_xml_and_locate_elements(archive.read("xl/styles.xml")).root
    custom = {
        int(node.get("numFmtId", "0")): node.get("formatCode", "")
        for node in _find_elements_below(root, "numFmt")
    }
    formats: dict[int, str] = {**BUILTIN_FORMATS, **custom}
    styles = next(_find_elements_below(root, "cellXfs"), ())
    return [formats.get(int(style.get("numFmtId", "0"))) for style in styles]


def _list_xlsx_non_text_cells(
    root: ET.Element, formats: list[str | None]
) -> Iterator[DisplayedCell]:
    row = -1
    for line in _find_elements_below(root, "row"):
        row = int(line.get("r", row + 2)) - 1
        column = -1
        for cell in line:
            # A cell without a name follows the last one.
            letters = cell.get("r", "").rstrip("0123456789").upper()[:3]
            column = column + 1 if not letters else -1
            for letter in letters:
                column = (column + 1) * 26 + ord(letter) - ord("A")
            text = _format_xlsx_non_text_cell(cell, formats)
            if text is not None:
                yield DisplayedCell((row, column), text)


def _format_xlsx_non_text_cell(cell: ET.Element, formats: list[str | None]) -> str | None:
    """Return what a cell shows that is not text; None for text and empty cells."""
    kind = cell.get("t", "n")
    value = next(_find_elements_below(cell, "v"), None)
    text = "" if value is None else (value.text or "").strip()
    if kind == "e":
        return f"{UNREADABLE_CELL_MARK}shows the error {text[:20]}"
    if kind != "n":
        return None
    if not text:
        return _NO_RESULT if next(_find_elements_below(cell, "f"), None) is not None else None
    style = int(cell.get("s", "0"))
    code = formats[style] if style < len(formats) else "General"
    displayed = None if code is None else format_number_like_cell(float(text), code)
    if displayed is None:
        name = f" “{code[:30]}”" if code else ""
        return f"{UNREADABLE_CELL_MARK}is shown by a format{name} that is not read"
    return displayed


_NO_RESULT = f"{UNREADABLE_CELL_MARK}holds a formula whose value is not in the file"

# --- the files of LibreOffice ---


def _read_ods_non_text_cells(archive: zipfile.ZipFile) -> dict[str, list[DisplayedCell]]:
    """Return what the cells of each sheet show that are not text: ODS stores it as text."""
    root = parse_xml_and_locate_elements(archive.read("content.xml")).root
    return {
        _find_attribute_in_any_namespace(t, "name"): list(_list_ods_non_text_cells(t))
        for t in _find_elements_below(root, "table")
    }


def _list_ods_non_text_cells(table: ET.Element) -> Iterator[DisplayedCell]:
    row = 0
    for line in _find_elements_below(table, "table-row"):
        repeated_rows = int(_find_attribute_in_any_namespace(line, "number-rows-repeated") or 1)
        column = 0
        for cell in line:
            repeated_columns = int(
                _find_attribute_in_any_namespace(cell, "number-columns-repeated") or 1
            )
            text = _format_ods_non_text_cell(cell)
            if text is not None:
                if repeated_columns * repeated_rows > _MOST_CELLS:
                    raise UnusableFileError(f"its table has more than {_MOST_CELLS:,} cells")
                for offset in range(repeated_columns * repeated_rows):
                    rows_below, columns_right = divmod(offset, repeated_columns)
                    position = (row + rows_below, column + columns_right)
                    yield DisplayedCell(position, text)
            column += repeated_columns
        row += repeated_rows


def _format_ods_non_text_cell(cell: ET.Element) -> str | None:
    """Return what a cell shows that is not text; None for text and empty cells."""
    paragraphs = ("".join(p.itertext()) for p in cell if _local_name(p) == "p")
    text = "\n".join(paragraphs).strip()
    kinds = {v for k, v in cell.items() if k.endswith("}value-type")}
    if "error" in kinds:
        return f"{UNREADABLE_CELL_MARK}shows the error {text[:20]}"
    if not kinds and _find_attribute_in_any_namespace(cell, "formula") and not text:
        return _NO_RESULT
    return text if _NUMBER_TYPES & kinds else None


# --- XML ---


def _local_name(node: ET.Element) -> str:
    return str(node.tag).rpartition("}")[2]


def _find_elements_below(node: ET.Element, name: str) -> Iterator[ET.Element]:
    return (n for n in node.iter() if _local_name(n) == name)


def _find_attribute_in_any_namespace(node: ET.Element, name: str) -> str:
    """Return an attribute in any namespace; empty if it is missing."""
    return next((v for k, v in node.items() if k.rpartition("}")[2] == name), "")


# The built-in formats that show a number in the same way in every country.
BUILTIN_FORMATS = {
    0: "General",
    1: "0",
    2: "0.00",
    3: "#,##0",
    4: "#,##0.00",
    9: "0%",
    10: "0.00%",
    37: "#,##0",
    38: "#,##0",
    39: "#,##0.00",
    40: "#,##0.00",
    49: "@",
}
_FORMAT_SECTION = re.compile(r'((?:"[^"]*"|\\.|\[[^\]]*\]|[^";\\\[])*);')
# Text of a format: in quotes, escaped, a currency with its country, a sign, or a colored part.
_LITERAL_TEXT_PATTERN = (
    r'(?:"[^"]*"|\\.|\[\$[^\]-]*(?:-[^\]]*)?\]|\[[A-Za-z]+\]|[_*].|[-+$€£¥%() ])*'
)
_NUMBER_FORMAT = re.compile(
    rf"(?P<before>{_LITERAL_TEXT_PATTERN})(?P<whole>[#0?][#0?,]*(?<!,))?(?:\.(?P<decimals>[0#?]+))?(?P<after>{_LITERAL_TEXT_PATTERN})"
)
_FORMAT_LITERAL = re.compile(r'"([^"]*)"|\\(.)|\[\$([^\]-]*)[^\]]*\]|\[[A-Za-z]+\]|[_*].|(.)')
_MAX_WHOLE_NUMBER = 1e21


def format_number_like_cell(value: float, format_code: str) -> str | None:
    """Return a number as a cell of this format shows it; None for an unsupported format.

    >>> format_number_like_cell(0.5, "0%"), format_number_like_cell(0.5, "# ?/?"), format_number_like_cell(1024, "#,##0")
    ('50%', None, '1,024')
    """
    if format_code in {"", "@", "General"}:
        is_whole = value == int(value) and abs(value) < _MAX_WHOLE_NUMBER
        return str(int(value)) if is_whole else f"{value:.15g}".upper()
    sections = _FORMAT_SECTION.findall(f"{format_code};")
    section_index = (
        1 if value < 0 and len(sections) > 1 else 2 if value == 0 and len(sections) > 2 else 0
    )
    format_match = _NUMBER_FORMAT.fullmatch(sections[section_index]) if sections else None
    if (
        format_match is None
        or abs(value) >= _MAX_WHOLE_NUMBER
        or not any(format_match.group("before", "whole", "after"))
    ):
        return None
    before, after = (
        "".join(map("".join, _FORMAT_LITERAL.findall(format_match[side])))
        for side in ("before", "after")
    )
    sign = "-" if value < 0 and section_index == 0 else ""
    percent_signs = (format_match["before"] + format_match["after"]).count("%")
    exact = Decimal(repr(abs(value))) * 100**percent_signs
    digits = ""
    if format_match["whole"]:
        digits = _format_digits(exact, format_match["whole"], format_match["decimals"] or "")
    return f"{sign}{before}{digits}{after}".strip()


def _format_digits(value: Decimal, whole_pattern: str, decimals_pattern: str) -> str:
    rounded = value.quantize(Decimal(1).scaleb(-len(decimals_pattern)), ROUND_HALF_UP)
    has_separators = "," in whole_pattern
    text = f"{rounded:,f}" if has_separators else f"{rounded:f}"
    integer_digits, _, decimal_digits = text.partition(".")
    if not has_separators:
        integer_digits = integer_digits.zfill(whole_pattern.count("0"))
    fixed_count = len(decimals_pattern.rstrip("#?"))
    decimal_digits = decimal_digits[:fixed_count] + decimal_digits[fixed_count:].rstrip("0")
    if integer_digits == "0" and "0" not in whole_pattern:
        integer_digits = ""
    return f"{integer_digits}.{decimal_digits}" if decimal_digits else integer_digits


if __name__ == "__main__":
    _convert_stdin_workbook_to_json()
