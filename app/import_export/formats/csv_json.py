"""Questions and attempts as CSV and JSON."""

import csv
import dataclasses
import io
import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, get_args

from app.import_export.converted_text import span_between
from app.import_export.items import (
    ExportResult,
    ImportResult,
    Item,
    ItemBlank,
    ItemImage,
    ItemOption,
    ItemPair,
    ItemRemark,
    Kind,
    NumberRange,
    UnusableFileError,
)

VERSION = 1
_FIELDS = [f.name for f in dataclasses.fields(Item) if f.name not in {"line", "lost"}]
_FILE_NAMES = {"center": "centre"}  # the spelling in existing files
_WORDS = {
    "name",
    "kind",
    "stem",
    "text",
    "explanation",
    "mistake",
    "partial",
    "level",
    "use",
    "topic",
}
_LISTS = {"hints", "objectives", "sources", "tags", "titles"}
_TRUTHS = {"shuffle", "case", "reverse"}
_MOST = 100_000
_TOLD_SIGN = re.compile(r"sep=(.)\n", re.IGNORECASE)


def write_json(items: tuple[Item, ...], language: str = "") -> ExportResult:
    """Return all items as JSON; `language` is that of their text, if known."""
    rows = [_item_row(item) for item in items]
    told = {"language": language} if language else {}
    whole = {"version": VERSION, **told, "items": rows}
    text = json.dumps(whole, ensure_ascii=False, indent=1)
    return ExportResult(f"{text}\n".encode(), len(rows))


def read_json(text: str) -> ImportResult:
    """Read the items of a `write_json` file; raises UnusableFileError."""
    try:
        found = json.loads(text)
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise UnusableFileError(f"The file is no JSON: {place} is not written so.") from None
    except (ValueError, RecursionError):
        why = "it is nested too deeply, or a number in it is too long"
        raise UnusableFileError(f"The file is no JSON: {why}.") from None
    rows = found.get("items") if isinstance(found, dict) else None
    if not isinstance(rows, list):
        raise UnusableFileError("The file has no list “items”.")
    return _read_rows(enumerate(rows, 1))


def write_csv(items: tuple[Item, ...]) -> ExportResult:
    """Return one row per item; lists are JSON in their cell."""
    rows = [
        {
            name: value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
            for name, value in _item_row(item).items()
        }
        for item in items
    ]
    return ExportResult(write_table(_FIELDS, rows), len(rows))


def read_csv(text: str) -> ImportResult:
    """Read the items of a `write_csv` file; raises UnusableFileError."""
    rows: list[tuple[int, Any]] = []
    told = _TOLD_SIGN.match(text)
    text = text[told.end() :] if told else text
    head = text.partition("\n")[0]
    sign = told[1] if told else max(",;\t", key=head.count)  # a spreadsheet chooses the separator
    lines = io.StringIO(text, newline="")
    reader = csv.DictReader(lines, delimiter=sign, strict=True)
    try:
        rows.extend((reader.line_num + bool(told), _row_or_error(row)) for row in reader)
    except csv.Error:
        why = f"its line {reader.line_num} cannot be parted into cells"
        raise UnusableFileError(f"The file is no CSV: {why}.") from None
    if not {"kind", "stem"} <= set(reader.fieldnames or ()):
        raise UnusableFileError("The first line must name the columns, among them kind and stem.")
    twice = [n for n, count in Counter(reader.fieldnames or ()).items() if count > 1]
    if twice:
        raise UnusableFileError(f"The column “{twice[0]}” is there twice: take one out.")
    return _read_rows(rows)


def _row_or_error(row: Mapping[str | None, Any]) -> Any:
    """Return the fields of a row, or why it cannot be read."""
    out: dict[str, Any] = {}
    if None in row:
        return "it has more cells than the table has columns"
    for name, cell in row.items():
        if not isinstance(cell, str) or not cell or name is None:
            continue
        if name in _WORDS or name not in _FIELDS:
            out[name] = cell
            continue
        try:
            # Spreadsheets write TRUE for true.
            out[name] = json.loads(cell.lower() if name in _TRUTHS else cell)
        except (ValueError, RecursionError):
            return f"the cell “{name}” is no JSON"
    return out


def write_table(columns: list[str], rows: Iterable[Mapping[str, Any]]) -> bytes:
    """Return a CSV file with a header line, marked as UTF-8 for spreadsheets."""
    out = io.StringIO(newline="")
    writer = csv.DictWriter(out, columns, lineterminator="\r\n")
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue().encode("utf-8-sig")


def _item_row(item: Item) -> dict[str, Any]:
    whole = dataclasses.asdict(item, dict_factory=_under_file_names)
    return {name: whole[name] for name in _FIELDS}


def _under_file_names(fields: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    return {_FILE_NAMES.get(name, name): value for name, value in fields}


def _read_rows(rows: Iterable[tuple[int, Any]]) -> ImportResult:
    items: list[Item] = []
    refused: list[ItemRemark] = []
    for place, row in rows:
        if len(items) >= _MOST:
            raise UnusableFileError(f"The file has more than {_MOST:,} items.")
        try:
            items.append(_read_item(row, place))
        except (TypeError, ValueError, KeyError, AttributeError) as error:
            name = str(row.get("name", "")) if isinstance(row, dict) else ""
            reason = row if isinstance(row, str) else f"it cannot be read ({error})"
            refused.append(ItemRemark(name or "(nameless)", place, reason))
    return ImportResult(tuple(items), tuple(refused))


def _read_item(row: Any, line: int) -> Item:
    if not isinstance(row, dict):
        raise TypeError("it is no object")
    if row.get("kind") not in get_args(Kind):
        raise ValueError(f"“{row.get('kind')}” is no type of question")
    given = {name: value for name, value in row.items() if value is not None}
    fields: dict[str, Any] = {k: _read_value(k, v) for k, v in given.items() if k in _FIELDS}
    unread = [f"the field “{name}” is not read" for name in given if name not in _FIELDS]
    told: dict[str, Any] = {"line": line, "lost": tuple(unread)}
    return Item(**{"name": "", "stem": "", **fields, **told})


def _read_value(name: str, value: Any) -> Any:  # noqa: PLR0911 - one return per kind of field
    if name not in _WORDS | _TRUTHS | {"difficulty"} and not isinstance(value, list):
        raise TypeError(f"“{name}” is no list")
    if name in {"options", "steps"}:
        return tuple(map(_read_option, value))
    if name == "pairs":
        return tuple(ItemPair(**{k: str(v) for k, v in p.items()}) for p in value)
    if name == "blanks":
        return tuple(
            ItemBlank(
                tuple(map(str, b["answers"])),
                str(b.get("hint", "")),
                tuple(map(str, b.get("wrong", ()))),
            )
            for b in value
        )
    if name == "pictures":
        return tuple(ItemImage(str(p["name"]), str(p["data"])) for p in value)
    if name in _LISTS:
        return tuple(map(str, value))
    if name in _TRUTHS:
        return _read_boolean(name, value)
    return _read_whole_number(name, value) if name == "difficulty" else str(value)


def _read_whole_number(name: str, value: Any) -> int:
    if int(value) != float(value):
        raise TypeError(f"“{name}” is {value}, not a whole number")
    return int(value)


def _read_boolean(name: str, value: Any) -> bool:
    """Return a boolean; the strings “false” and “no” would be true in Python."""
    if not isinstance(value, bool):
        raise TypeError(f"“{name}” is “{value}”, not true or false")
    return value


def _read_range(given: Mapping[str, Any]) -> NumberRange:
    """Return a range as written; one whose center is not its middle is rebuilt from its ends."""
    center, low, high = (float(given[k]) for k in ("centre", "low", "high"))
    if not (math.isfinite(low) and math.isfinite(high) and low <= center <= high):
        raise ValueError(f"the number {center:g} is not within {low:g} to {high:g}")
    unit = str(given.get("unit", ""))
    even = math.isclose(center - low, high - center, rel_tol=1e-6, abs_tol=1e-12)
    return NumberRange(center, low, high, unit) if even else span_between(low, high, unit)


def _read_option(value: Any) -> ItemOption:
    given = value.get("span")
    span = None
    if given:
        span = _read_range(given)
    text, note = str(value.get("text", "")), str(value.get("feedback", ""))
    credit = float(value.get("credit", 0))
    if not 0 <= credit <= 1:
        raise ValueError(f"“credit” is {credit:g}, not 0 to 1")
    return ItemOption(text, _read_boolean("right", value["right"]), note, span, credit)
