"""Read XLSX and ODS workbooks in a process with limits.

The library allocates a table as large as the farthest cell, and its process dies if memory runs
out: a thousand bytes can describe a billion cells. It returns cell values only; the number formats
are read from the files of the workbook.
"""

import json
import re
import resource
import subprocess
import sys
import zipfile
from collections.abc import Iterator, Mapping
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

from app.import_export.formats.spreadsheet_numbers import BUILTIN_FORMATS, format_number
from app.import_export.items import UnusableFileError
from app.import_export.xml_files import read_xml

UNREADABLE = "\ue0f6"
"""Prefix of the reason why a cell has no text."""
_ROOT = Path(__file__).resolve().parents[3]
_MEMORY = 1 << 30
_SECONDS = 60
_MOST_CELLS = 2_000_000
_TYPED = frozenset({"float", "percentage", "currency", "date", "time"})
_POWER = re.compile(r"[\d.]+E[+-]?\d+")
Shown = Mapping[tuple[int, int], str]
Rows = list[list[str]]


class WorkbookSheets(NamedTuple):
    """The visible sheets that are not empty, and the names of the hidden ones."""

    sheets: list[tuple[str, Rows]]
    hidden: list[str]


def read_workbook(data: bytes, refusal: str) -> WorkbookSheets:
    """Return the cells of a workbook as shown; raises UnusableFileError with `refusal`."""
    try:
        done = subprocess.run(  # noqa: S603 - runs this module; the file is its input
            [sys.executable, "-m", __name__],
            cwd=_ROOT,
            input=data,
            capture_output=True,
            check=False,
            timeout=_SECONDS,
        )
        told = json.loads(done.stdout)
    except (subprocess.TimeoutExpired, ValueError):
        why = "its table needs more memory or time than it may have"
        raise UnusableFileError(f"{refusal}: {why}.") from None
    if "fault" in told:
        raise UnusableFileError(f"{refusal}: {told['fault']}.")
    return WorkbookSheets([(name, rows) for name, rows in told["sheets"]], told["hidden"])


def _convert_standard_input() -> None:
    """Read a workbook from standard input; write its sheets, or the error."""
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    data = sys.stdin.buffer.read()
    try:
        json.dump(_read_sheets(data)._asdict(), sys.stdout)
    except (CalamineError, UnusableFileError) as error:
        json.dump({"fault": str(error).rstrip(".")[:120]}, sys.stdout)
    except (KeyError, ValueError, zipfile.BadZipFile):
        json.dump({"fault": "a part of it is missing or damaged"}, sys.stdout)


def _read_sheets(data: bytes) -> WorkbookSheets:
    book = CalamineWorkbook.from_filelike(BytesIO(data))
    found = WorkbookSheets([], [])
    with zipfile.ZipFile(BytesIO(data)) as archive:
        files = set(archive.namelist())
        shown_in = _shown_in_ods(archive) if "content.xml" in files else _shown_in_xlsx(archive)
        for about in book.sheets_metadata:
            sheet = book.get_sheet_by_name(about.name)
            if about.visible != SheetVisibleEnum.Visible:
                found.hidden.append(about.name)
            elif sheet.height and about.typ == SheetTypeEnum.WorkSheet:
                rows = _sheet_rows(sheet, shown_in.get(about.name, {}))
                found.sheets.append((about.name, rows))
    return found


def _sheet_rows(sheet: CalamineSheet, shown: Shown) -> Rows:
    last_row, last_column = sheet.end or (0, 0)
    if (last_row + 1) * (last_column + 1) > _MOST_CELLS:
        raise UnusableFileError(f"its table has more than {_MOST_CELLS:,} cells")
    rows = [[_cell_words(cell) for cell in row] for row in sheet.to_python(skip_empty_area=False)]
    for (row, column), words in shown.items():
        if row < len(rows) and column < len(rows[row]):
            rows[row][column] = words
        elif row < len(rows) and words:  # an error cell may be outside of the used range
            rows[row] += [""] * (column - len(rows[row])) + [words]
    return rows


def _cell_words(cell: object) -> str:
    if isinstance(cell, float) and cell.is_integer():
        return str(int(cell))
    return str(cell).strip()


# --- the files of Excel ---


def _shown_in_xlsx(archive: zipfile.ZipFile) -> dict[str, Shown]:
    """Return what the non-text cells of each sheet show."""
    book = _read_xml_root(archive, "xl/workbook.xml")
    paths = {
        _find_attribute(link, "Id"): normpath(join("/xl", _find_attribute(link, "Target"))).lstrip(
            "/"
        )
        for link in _read_xml_root(archive, "xl/_rels/workbook.xml.rels")
    }
    since_1904 = any(
        _find_attribute(node, "date1904") in {"1", "true"}
        for node in _elements_named(book, "workbookPr")
    )
    codes = _style_formats(archive)
    found: dict[str, Shown] = {}
    for sheet in _elements_named(book, "sheet"):
        cells = _sheet_cells(_read_xml_root(archive, paths[_find_attribute(sheet, "id")]))
        shown = ((place, _shown_value(cell, codes, since_1904)) for place, cell in cells)
        found[_find_attribute(sheet, "name")] = {p: w for p, w in shown if w is not None}
    return found


def _style_formats(archive: zipfile.ZipFile) -> list[str | None]:
    """Return the number format of each cell style; None for one that differs by country."""
    if "xl/styles.xml" not in archive.namelist():
        return []
    root = _read_xml_root(archive, "xl/styles.xml")
    own = {
        int(node.get("numFmtId", "0")): node.get("formatCode", "")
        for node in _elements_named(root, "numFmt")
    }
    known: dict[int, str] = {**BUILTIN_FORMATS, **own}
    styles = next(_elements_named(root, "cellXfs"), None)
    if styles is None:
        return []
    return [known.get(int(style.get("numFmtId", "0"))) for style in styles]


def _sheet_cells(root: ET.Element) -> Iterator[tuple[tuple[int, int], ET.Element]]:
    """Yield the cells of a sheet with their positions; one without a name follows the last."""
    row = -1
    for line in _elements_named(root, "row"):
        row = int(line.get("r", row + 2)) - 1
        column = -1
        for cell in line:
            column = _column_number(cell.get("r", ""), column + 1)
            yield (row, column), cell


def _column_number(name: str, following: int) -> int:
    letters = name.rstrip("0123456789")
    number = 0
    for letter in letters[:3]:
        number = number * 26 + ord(letter.upper()) - ord("A") + 1
    return number - 1 if letters else following


def _shown_value(cell: ET.Element, codes: list[str | None], since_1904: bool) -> str | None:
    """Return what a non-text cell shows; None for text and empty cells."""
    kind = cell.get("t", "n")
    value = next(iter(_elements_named(cell, "v")), None)
    text = "" if value is None else (value.text or "").strip()
    if kind == "e":
        return f"{UNREADABLE}shows the error {text[:20]}"
    if not text and kind == "n" and next(_elements_named(cell, "f"), None) is not None:
        return f"{UNREADABLE}holds a formula whose value is not in the file"
    if kind != "n" or not text:
        return None
    style = int(cell.get("s", "0"))
    code = codes[style] if style < len(codes) else "General"
    return _format_shown(code, float(text), since_1904)


def _format_shown(code: str | None, value: float, since_1904: bool) -> str:
    """Return a formatted number, or why its format is not supported."""
    shown = None if code is None else format_number(value, code, since_1904=since_1904)
    if shown is None:
        named = f" “{code[:30]}”" if code else ""
        return f"{UNREADABLE}is shown by a format{named} that is not read"
    power = _POWER.search(shown)
    if power and float(power[0]) != abs(value):
        return f"{UNREADABLE}shows {shown[:20]}, which is not all of {value:.15g}"
    return shown


# --- the files of LibreOffice ---


def _shown_in_ods(archive: zipfile.ZipFile) -> dict[str, Shown]:
    """Return what the non-text cells of each sheet show: ODS stores the shown text."""
    return {
        _find_attribute(table, "name"): dict(_row_texts(table))
        for table in _elements_named(_read_xml_root(archive, "content.xml"), "table")
    }


def _row_texts(table: ET.Element) -> Iterator[tuple[tuple[int, int], str]]:
    row = 0
    for line in _elements_named(table, "table-row"):
        repeated = int(_find_attribute(line, "number-rows-repeated") or 1)
        column = 0
        for cell in line:
            times = int(_find_attribute(cell, "number-columns-repeated") or 1)
            words = _shown_text(cell)
            if words is not None and times * repeated > _MOST_CELLS:
                raise UnusableFileError(f"its table has more than {_MOST_CELLS:,} cells")
            if words is not None:
                for place in range(times * repeated):
                    yield (row + place // times, column + place % times), words
            column += times
        row += repeated


def _shown_text(cell: ET.Element) -> str | None:
    """Return the shown text of a number or date; None for text and empty cells."""
    said = "\n".join("".join(p.itertext()) for p in cell if _local_name(p) == "p").strip()
    kinds = [v for k, v in cell.items() if k.endswith("}value-type")]
    if "error" in kinds:
        return f"{UNREADABLE}shows the error {said[:20]}"
    if not kinds and _find_attribute(cell, "formula") and not said:
        return f"{UNREADABLE}holds a formula whose value is not in the file"
    return said if _TYPED.intersection(kinds) else None


# --- XML ---


def _read_xml_root(archive: zipfile.ZipFile, path: str) -> ET.Element:
    return read_xml(archive.read(path)).root


def _local_name(node: ET.Element) -> str:
    return str(node.tag).rpartition("}")[2]


def _elements_named(node: ET.Element, name: str) -> Iterator[ET.Element]:
    return (n for n in node.iter() if _local_name(n) == name)


def _find_attribute(node: ET.Element, name: str) -> str:
    """Return an attribute in any namespace."""
    return next((v for k, v in node.items() if k.rpartition("}")[2] == name), "")


if __name__ == "__main__":
    _convert_standard_input()
