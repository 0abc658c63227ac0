"""The operator's price file, and public list prices of cloud providers."""

import dataclasses
import datetime as dt
import functools
import re
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal, get_args

from app.estimator import data_files
from app.estimator.hardware.catalog import Accelerator, find_accelerator_id
from app.estimator.hardware.part_values import find_part
from app.estimator.units import NBSP, format_number, format_value

BillingPeriod = Literal["hour", "buy"]
_PRICE_KEYS = ("part", "price", "currency", "per", "read_on")
_PRICE_TABLE_HEADER = re.compile(r"\s*\[\[\s*price\s*\]\]")
_AT_LINE = re.compile(r"\s*\(at (?:line (\d+), column \d+|end of document)\)")
_MAX_PRICE = 1e12


class PriceFileError(ValueError):
    """A price file is invalid; the text says where and why."""


@dataclasses.dataclass(frozen=True, slots=True)
class PartPrice:
    """The price of one part on a date, from the operator's file."""

    part_id: str
    amount: float
    currency: str
    billing_period: BillingPeriod
    day: dt.date

    @property
    def formatted_price(self) -> str:
        r"""Return the price with its unit.

        >>> PartPrice("h100-sxm5-80", 4.2, "USD", "hour", dt.date(2026, 11, 1)).formatted_price
        '4.2\xa0USD/h'
        """
        unit = f"{self.currency}/h" if self.billing_period == "hour" else self.currency
        return f"{format_number(self.amount)}{NBSP}{unit}"


@dataclasses.dataclass(frozen=True, slots=True)
class PriceList:
    """The current prices, and why the configured file is not used."""

    prices: tuple[PartPrice, ...] = ()
    problem: str = ""

    def prices_of_part_by_period(self, part_id: str) -> dict[BillingPeriod, PartPrice]:
        return {price.billing_period: price for price in self.prices if price.part_id == part_id}


def load_price_list(path: str) -> PriceList:
    """Load the prices of a file, if any; an invalid file is reported in the result."""
    if not path:
        return PriceList()
    try:
        return PriceList(read_price_file(Path(path)))
    except PriceFileError as error:
        return PriceList(problem=f"The price file is not used: {error}")


def read_price_file(path: Path) -> tuple[PartPrice, ...]:
    """Return all prices of a file; PriceFileError has the file, the line and the reason."""
    try:
        text = path.read_text("utf-8-sig")
    except OSError as error:
        raise PriceFileError(f"{path}: {error.strerror}.") from None
    except UnicodeDecodeError:
        raise PriceFileError(f"{path}: it is not text in UTF-8.") from None
    try:
        return _parse_prices(text)
    except _PriceRowError as row_error:
        line = f", line {row_error.line}" if row_error.line else ""
        raise PriceFileError(f"{path}{line}: {row_error.args[0]}") from None


class _PriceRowError(Exception):
    def __init__(self, message: str, line: int = 0) -> None:
        super().__init__(message)
        self.line = line


def _parse_prices(text: str) -> tuple[PartPrice, ...]:
    try:
        table = tomllib.loads(text)
    except ValueError as error:  # Invalid TOML, or a number with thousands of digits.
        location = _AT_LINE.search(str(error))
        line = int(location[1]) if location and location[1] else len(text.splitlines())
        reason = _AT_LINE.sub("", str(error))
        raise _PriceRowError(f"it is not TOML: {reason}.", line) from None
    rows = table.get("price")
    if set(table) != {"price"} or not isinstance(rows, list):
        raise _PriceRowError("write one [[price]] for each price, and nothing beside it.")
    prices: dict[tuple[str, BillingPeriod], PartPrice] = {}
    for index, row in enumerate(rows):
        price = _parse_price(row, functools.partial(_line_of_key, text, index))
        if (price.part_id, price.billing_period) in prices:
            message = f"“{price.part_id}” has two prices for “{price.billing_period}”."
            raise _PriceRowError(message, _line_of_key(text, index, "part"))
        prices[price.part_id, price.billing_period] = price
    return tuple(prices.values())


def _line_of_key(text: str, entry_index: int, key: str) -> int:
    """Return the line of a key in the entry at `entry_index`, or of the start of that entry."""
    lines = text.splitlines()
    header_lines = [n for n, line in enumerate(lines, 1) if _PRICE_TABLE_HEADER.match(line)]
    if entry_index >= len(header_lines):  # The entries are an inline array.
        return 0
    end = header_lines[entry_index + 1] - 1 if entry_index + 1 < len(header_lines) else len(lines)
    key_pattern = re.compile(rf"\s*[\"']?{re.escape(key)}[\"']?\s*=")
    entry_lines = range(header_lines[entry_index], end)
    return next(
        (n + 1 for n in entry_lines if key_pattern.match(lines[n])), header_lines[entry_index]
    )


def _parse_price(row: Any, find_line: Callable[[str], int]) -> PartPrice:
    """Parse one entry; `find_line` returns the line of a key."""
    if not isinstance(row, Mapping):
        raise _PriceRowError("write each price as a table of its own, under [[price]].")
    for key in row:
        if key not in _PRICE_KEYS:
            raise _PriceRowError(f"“{key}” is none of {', '.join(_PRICE_KEYS)}.", find_line(key))
    for key in _PRICE_KEYS:
        if key not in row:
            raise _PriceRowError(f"the price has no {key}.", find_line("part"))
    part = _parse_part_id(row["part"], find_line("part"))
    for key, (is_valid, hint) in _VALUE_RULES.items():
        if not is_valid(row[key]):
            raise _PriceRowError(f"{key} is “{row[key]}”; {hint}.", find_line(key))
    return PartPrice(part, float(row["price"]), row["currency"], row["per"], row["read_on"])


def _parse_part_id(name: Any, line: int) -> str:
    if isinstance(name, str) and find_part(name):
        return name
    try:
        return find_accelerator_id(str(name))
    except LookupError as error:
        nearest = str(error.args[0]).rpartition("; ")[2].rstrip(".")
        message = f"part is “{name}”; write the id of a part, {nearest}."
        raise _PriceRowError(message, line) from None


def _is_valid_amount(amount: Any) -> bool:
    is_number = isinstance(amount, int | float) and not isinstance(amount, bool)
    return is_number and 0 < amount < _MAX_PRICE


_VALUE_RULES = {  # Whether a value of a price is valid, and what is.
    "price": (_is_valid_amount, "write a number above 0, such as 4.2"),
    "currency": (
        lambda code: isinstance(code, str) and bool(re.fullmatch("[A-Z]{3}", code)),
        "write three capital letters, such as USD",
    ),
    "per": (
        lambda period: period in get_args(BillingPeriod),
        "write hour for rent or buy for a purchase",
    ),
    "read_on": (
        lambda day: isinstance(day, dt.date) and not isinstance(day, dt.datetime),
        "write a day without quotes, such as 2026-11-01",
    ),
}


# Accelerator whose list price is the default of forms without a GPU input.
_EXAMPLE_GPU_ID = "h100-sxm5-80"

UNKNOWN = "No list price of this GPU is kept here; write what you pay."
"""Shown next to a cost without a price."""


@dataclasses.dataclass(frozen=True, slots=True)
class RentalPrice:
    """Hourly on-demand price of one accelerator [USD/h], and its provider.

    `source` is the provider's price list, `read_on` the date of the price.
    """

    usd_per_hour: float
    provider: str
    source: str
    read_on: dt.date

    @property
    def provider_and_date(self) -> str:
        return f"{self.provider}'s on-demand list price of {self.read_on:%B %Y}"


def find_rental_price(accelerator: str) -> RentalPrice | None:
    """Return the list price of an accelerator by its id; None if there is none.

    >>> find_rental_price("h100-sxm5-80").provider, find_rental_price("groq-lpu-v1")
    ('Lambda', None)
    """
    row = data_files.load_table_entries_by_id("rents.toml", "rent").get(accelerator)
    if row is None:
        return None
    source = row["source"][0]
    return RentalPrice(row["usd_per_hour"], row["provider"], source, row["read_on"])


def default_rental_price_of_h100() -> RentalPrice:
    """Return the default price for forms without a GPU input: that of an H100."""
    rental_price = find_rental_price(_EXAMPLE_GPU_ID)
    if rental_price is None:
        raise LookupError(f"rents.toml has no {_EXAMPLE_GPU_ID}")
    return rental_price


def typed_or_list_price_per_hour(gpu: Accelerator, typed_price: float | None) -> float | None:
    """Return the hourly price [USD/h]: as typed, else the list price, else None.

    >>> from app.estimator.hardware.catalog import find_accelerator
    >>> h100 = find_accelerator("H100")
    >>> typed_or_list_price_per_hour(h100, 2.0), typed_or_list_price_per_hour(h100, None)
    (2.0, 3.99)
    """
    if typed_price is not None:
        return typed_price
    rental_price = find_rental_price(gpu.id)
    return rental_price.usd_per_hour if rental_price else None


def rental_price_source_notes(gpu: Accelerator, typed_price: float | None) -> tuple[str, ...]:
    """Return the source of the price, unless the user typed one."""
    rental_price = find_rental_price(gpu.id)
    if typed_price is not None or rental_price is None:
        return ()
    price = format_value(rental_price.usd_per_hour, "USD/h")
    return (f"{price} is {rental_price.provider_and_date} for the {gpu.name}; write what you pay.",)
