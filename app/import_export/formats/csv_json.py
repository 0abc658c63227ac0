"""Questions and attempts as CSV and JSON."""

import csv
import dataclasses
import functools
import io
import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pydantic import TypeAdapter, ValidationError

from app.import_export import UnusableFileError
from app.import_export.items import (
    ExportResult,
    ImportResult,
    Item,
    ItemOption,
    ItemSkippedError,
    Kind,
)
from app.import_export.text_conversion import (
    PicturesAndLosses,
    UnreadItem,
    make_range_between,
    read_items_or_refuse,
)

JSON_FORMAT_VERSION = 1
_ITEM_ADAPTER = TypeAdapter(Item)
_NOT_WRITTEN = {"line", "lost", "path", "params", "lets"}
_TYPE_BY_FIELD = {f.name: f.type for f in dataclasses.fields(Item) if f.name not in _NOT_WRITTEN}
_FIELD_NAMES = list(_TYPE_BY_FIELD)
_MOST_ITEMS = 100_000
_SEPARATOR_LINE = re.compile(r"sep=(.)\n", re.IGNORECASE)  # a line that Excel reads and writes


def write_json(items: tuple[Item, ...], language: str = "") -> ExportResult:
    """Return all items as JSON; `language` is that of their text, if known."""
    header = {"version": JSON_FORMAT_VERSION} | ({"language": language} if language else {})
    rows = [_build_item_row(item) for item in items]
    text = json.dumps({**header, "items": rows}, ensure_ascii=False, indent=1)
    return ExportResult(f"{text}\n".encode(), len(rows))


def read_json(text: str) -> ImportResult:
    """Read the items of a `write_json` file; raises UnusableFileError."""
    try:
        document = json.loads(text)
    except json.JSONDecodeError as error:
        location = f"line {error.lineno}, column {error.colno}"
        raise UnusableFileError(f"The file is not JSON: there is an error in {location}.") from None
    except (ValueError, RecursionError):
        reason = "it is nested too deeply, or a number in it is too long"
        raise UnusableFileError(f"The file is not JSON: {reason}.") from None
    rows = document.get("items") if isinstance(document, dict) else None
    if not isinstance(rows, list):
        raise UnusableFileError("The file has no list “items”.")
    return _read_items_of_rows([(number, row) for number, row in enumerate(rows, 1)])


def write_csv(items: tuple[Item, ...]) -> ExportResult:
    """Return one row per item; lists are JSON in their cell."""
    rows = [
        {
            name: value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
            for name, value in _build_item_row(item).items()
        }
        for item in items
    ]
    return ExportResult(write_csv_table(_FIELD_NAMES, rows), len(rows))


def read_csv(text: str) -> ImportResult:
    """Read the items of a `write_csv` file; raises UnusableFileError."""
    separator_line = _SEPARATOR_LINE.match(text)
    text = text[separator_line.end() :] if separator_line else text
    header = text.partition("\n")[0]
    separator = separator_line[1] if separator_line else max(",;\t", key=header.count)
    reader = csv.DictReader(io.StringIO(text, newline=""), delimiter=separator, strict=True)
    try:
        rows = [
            (reader.line_num + bool(separator_line), _decode_csv_row_or_reason(row))
            for row in reader
        ]
    except csv.Error:
        reason = f"line {reader.line_num} cannot be split into cells"
        raise UnusableFileError(f"The file is not CSV: {reason}.") from None
    if not {"kind", "stem"} <= set(reader.fieldnames or ()):
        raise UnusableFileError("The first line must name the columns, among them kind and stem.")
    repeated = [n for n, count in Counter(reader.fieldnames or ()).items() if count > 1]
    if repeated:
        raise UnusableFileError(f"The column “{repeated[0]}” is there twice: take one out.")
    return _read_items_of_rows(rows)


def _decode_csv_row_or_reason(row: Mapping[str | None, Any]) -> Any:
    """Return the fields of a row, or why it cannot be read."""
    fields: dict[str, Any] = {}
    if None in row:
        return "it has more cells than the table has columns"
    for name, cell in row.items():
        if not isinstance(cell, str) or not cell or name is None:
            continue
        if _TYPE_BY_FIELD.get(name, str) in {str, Kind}:
            fields[name] = cell
            continue
        try:
            # Spreadsheets write TRUE for true.
            fields[name] = json.loads(cell.lower() if _TYPE_BY_FIELD[name] is bool else cell)
        except (ValueError, RecursionError):
            return f"the cell “{name}” is not JSON"
    return fields


def write_csv_table(columns: list[str], rows: Iterable[Mapping[str, Any]]) -> bytes:
    """Return a CSV file with a header line, marked as UTF-8 for spreadsheets."""
    buffer = io.StringIO(newline="")
    writer = csv.DictWriter(buffer, columns, lineterminator="\r\n")
    writer.writeheader()
    writer.writerows(rows)
    return buffer.getvalue().encode("utf-8-sig")


def _build_item_row(item: Item) -> dict[str, Any]:
    row: dict[str, Any] = _ITEM_ADAPTER.dump_python(
        item, mode="json", by_alias=True, exclude=_NOT_WRITTEN
    )
    return row


def _read_items_of_rows(rows: Sequence[tuple[int, Any]]) -> ImportResult:
    """Read rows of a line or number with the fields of an item, or the reason to refuse it."""
    if len(rows) > _MOST_ITEMS:
        raise UnusableFileError(f"The file has more than {_MOST_ITEMS:,} items.")
    return read_items_or_refuse(
        UnreadItem(
            str(row.get("name", "")) if isinstance(row, dict) else "",
            line,
            functools.partial(_read_item, row),
        )
        for line, row in rows
    )


def _read_item(fields_or_reason: Any, _losses: PicturesAndLosses) -> Item:
    if not isinstance(fields_or_reason, dict):
        raise ItemSkippedError(
            fields_or_reason if isinstance(fields_or_reason, str) else "it is not an object"
        )
    values = {name: value for name, value in fields_or_reason.items() if value is not None}
    fields = {name: value for name, value in values.items() if name in _FIELD_NAMES}
    unread = tuple(f"the field “{name}” is not read" for name in values if name not in _FIELD_NAMES)
    try:
        item = _ITEM_ADAPTER.validate_json(
            json.dumps({"name": "", "stem": "", **fields}), strict=True
        )
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        name, value = ".".join(map(str, first["loc"])), json.dumps(first["input"])[:60]
        raise ItemSkippedError(f"its “{name}” cannot be {value}: {first['msg']}") from None
    options = tuple(map(_center_range_of_option, item.options))
    return dataclasses.replace(item, options=options, lost=unread)


def _center_range_of_option(option: ItemOption) -> ItemOption:
    """Return an option whose range has its center in the middle."""
    if option.span is None:
        return option
    center, low, high = option.span.center, option.span.low, option.span.high
    if not (math.isfinite(low) and math.isfinite(high) and low <= center <= high):
        raise ItemSkippedError(f"its number {center:g} is not within {low:g} to {high:g}")
    if math.isclose(center - low, high - center, rel_tol=1e-6, abs_tol=1e-12):
        return option
    return dataclasses.replace(option, span=make_range_between(low, high, option.span.unit))
