"""Operator price file and public cloud list prices."""

import dataclasses
import datetime as dt
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, get_args

from app.estimator import data_files
from app.estimator.hardware.catalog import Accelerator, accelerator_id
from app.estimator.hardware.part_values import find_part
from app.estimator.units import NBSP, format_number, format_value

Per = Literal["hour", "buy"]
_KEYS = ("part", "price", "currency", "per", "read_on")
_HEADER = re.compile(r"\s*\[\[\s*price\s*\]\]")
_AT_LINE = re.compile(r"\s*\(at (?:line (\d+), column \d+|end of document)\)")
_MOST = 1e12


class PriceFileError(ValueError):
    """A file of prices that cannot be used; says where and why."""


@dataclasses.dataclass(frozen=True, slots=True)
class Price:
    """What one part costs, as somebody wrote it down on a day."""

    part: str
    amount: float
    currency: str
    per: Per
    day: dt.date

    @property
    def words(self) -> str:
        r"""The price with its unit.

        >>> Price("h100-sxm5-80", 4.2, "USD", "hour", dt.date(2026, 11, 1)).words
        '4.2\xa0USD/h'
        """
        unit = f"{self.currency}/h" if self.per == "hour" else self.currency
        return f"{format_number(self.amount)}{NBSP}{unit}"


@dataclasses.dataclass(frozen=True, slots=True)
class PriceList:
    """The prices in force, and why the file that was named is not used."""

    prices: tuple[Price, ...] = ()
    problem: str = ""

    def of(self, part: str) -> dict[Per, Price]:
        """The prices of one part by the way it is paid."""
        return {price.per: price for price in self.prices if price.part == part}


def price_list(file: str) -> PriceList:
    """The prices of `file`, none where none is named; a bad file leaves its reason."""
    if not file:
        return PriceList()
    try:
        return PriceList(read_prices(Path(file)))
    except PriceFileError as bad:
        return PriceList(problem=f"The price file is not used: {bad}")


def read_prices(path: Path) -> tuple[Price, ...]:
    """All prices of a file; BadPrices names the file, the line and the reason."""
    try:
        text = path.read_text("utf-8-sig")
    except OSError as error:
        raise PriceFileError(f"{path}: {error.strerror}.") from None
    except UnicodeDecodeError:
        raise PriceFileError(f"{path}: it is not text in UTF-8.") from None
    try:
        return _prices(text)
    except _PriceRowError as mistake:
        line = f", line {mistake.line}" if mistake.line else ""
        raise PriceFileError(f"{path}{line}: {mistake.args[0]}") from None


class _PriceRowError(Exception):
    def __init__(self, message: str, line: int = 0) -> None:
        super().__init__(message)
        self.line = line


def _prices(text: str) -> tuple[Price, ...]:
    try:
        given = tomllib.loads(text)
    except ValueError as error:  # of TOML, or a number of thousands of digits
        at = _AT_LINE.search(str(error))
        line = int(at[1]) if at and at[1] else len(text.splitlines())
        reason = _AT_LINE.sub("", str(error))
        raise _PriceRowError(f"it is not TOML: {reason}.", line) from None
    rows = given.get("price")
    if set(given) != {"price"} or not isinstance(rows, list):
        raise _PriceRowError("write one [[price]] for each price, and nothing beside it.")
    known: dict[tuple[str, Per], Price] = {}
    for place, row in enumerate(rows):
        price = _price(row, lambda key, at=place: _line(text, at, key))
        if (price.part, price.per) in known:
            what = f"“{price.part}” has two prices for “{price.per}”."
            raise _PriceRowError(what, _line(text, place, "part"))
        known[price.part, price.per] = price
    return tuple(known.values())


def _line(text: str, place: int, key: str) -> int:
    """The line of a key in the entry at `place`, or of the head of that entry."""
    lines = text.splitlines()
    heads = [n for n, line in enumerate(lines, 1) if _HEADER.match(line)]
    if place >= len(heads):  # written in one line, as an array
        return 0
    end = heads[place + 1] - 1 if place + 1 < len(heads) else len(lines)
    wanted = re.compile(rf"\s*[\"']?{re.escape(key)}[\"']?\s*=")
    inside = range(heads[place], end)
    return next((n + 1 for n in inside if wanted.match(lines[n])), heads[place])


def _price(row: Any, line: Any) -> Price:
    """One entry; `line` says where a key of it stands."""
    if not isinstance(row, Mapping):
        raise _PriceRowError("write each price as a table of its own, under [[price]].")
    _check_keys(row, line)
    try:
        return Price(
            part=_part(row["part"]),
            amount=_amount(row["price"]),
            currency=_currency(row["currency"]),
            per=_per(row["per"]),
            day=_day(row["read_on"]),
        )
    except _PriceKeyError as wrong:
        key, allowed = wrong.args
        message = f"{key} is “{row[key]}”; {allowed}."
        raise _PriceRowError(message, line(key)) from None


def _check_keys(row: Mapping[str, Any], line: Any) -> None:
    for key in row:
        if key not in _KEYS:
            raise _PriceRowError(f"“{key}” is none of {', '.join(_KEYS)}.", line(key))
    for key in _KEYS:
        if key not in row:
            raise _PriceRowError(f"the price has no {key}.", line("part"))


class _PriceKeyError(Exception):
    """The key whose value cannot be used, and what is allowed."""


def _part(name: Any) -> str:
    if isinstance(name, str) and find_part(name):
        return name
    try:
        return accelerator_id(str(name))
    except LookupError as error:
        nearest = str(error.args[0]).rpartition("; ")[2].rstrip(".")
        raise _PriceKeyError("part", f"write the id of a part, {nearest}") from None


def _amount(amount: Any) -> float:
    number = isinstance(amount, int | float) and not isinstance(amount, bool)
    if not number or not 0 < amount < _MOST:
        raise _PriceKeyError("price", "write a number above 0, such as 4.2")
    return float(amount)


def _currency(code: Any) -> str:
    if not isinstance(code, str) or not re.fullmatch("[A-Z]{3}", code):
        raise _PriceKeyError("currency", "write three capital letters, such as USD")
    return code


def _per(per: Any) -> Per:
    if per not in get_args(Per):
        raise _PriceKeyError("per", "write hour for rent or buy for a purchase")
    found: Per = per
    return found


def _day(day: Any) -> dt.date:
    if not isinstance(day, dt.date) or isinstance(day, dt.datetime):
        raise _PriceKeyError("read_on", "write a day without quotes, such as 2026-11-01")
    return day


# The accelerator whose list price stands in forms that ask for none.
_EXAMPLE = "h100-sxm5-80"

UNKNOWN = "No list price of this GPU is kept here; write what you pay."
"""What is said beside a cost that nobody can compute."""


@dataclasses.dataclass(frozen=True, slots=True)
class RentalPrice:
    """The price of an hour of one accelerator on demand [USD/h], and who asks it.

    `source` is the provider's list, `read_on` the day on which the price stood there.
    """

    usd_per_hour: float
    provider: str
    source: str
    read_on: dt.date

    @property
    def words(self) -> str:
        """Whose price it is, of when."""
        return f"{self.provider}'s list price of {self.read_on:%B %Y}"


def listed(name: str) -> RentalPrice | None:
    """The list price of an accelerator by its id; None where none is kept.

    >>> listed("h100-sxm5-80").provider, listed("groq-lpu-v1")
    ('Lambda', None)
    """
    row = data_files.load_table("rents.toml", "rent").get(name)
    if row is None:
        return None
    source = row["source"][0]
    return RentalPrice(row["usd_per_hour"], row["provider"], source, row["read_on"])


def example() -> RentalPrice:
    """The price that stands in a form which asks for no accelerator: of an H100."""
    rent = listed(_EXAMPLE)
    if rent is None:
        raise LookupError(f"rents.toml has no {_EXAMPLE}")
    return rent


def price_of(gpu: Accelerator, typed: float | None) -> float | None:
    """What an hour costs [USD/h]: as typed, else as listed, else not known.

    >>> from app.estimator.hardware.catalog import find_accelerator
    >>> h100 = find_accelerator("H100")
    >>> price_of(h100, 2.0), price_of(h100, None)
    (2.0, 3.99)
    """
    if typed is not None:
        return typed
    rent = listed(gpu.id)
    return rent.usd_per_hour if rent else None


def price_note(gpu: Accelerator, typed: float | None) -> tuple[str, ...]:
    """Where the price is from, when nobody typed one."""
    rent = listed(gpu.id)
    if typed is not None or rent is None:
        return ()
    price = format_value(rent.usd_per_hour, "USD/h")
    return (f"{price} is {rent.words} for the {gpu.name}; write what you pay.",)
