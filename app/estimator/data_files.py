"""Load data/*.toml (each entry needs source and date), bibliography, error margins."""

import dataclasses
import datetime as dt
import difflib
import functools
import math
import pathlib
import re
import tomllib
from collections.abc import Mapping
from typing import Any, NamedTuple

from app.estimator.result import Bounds, OutputValue

DATA = pathlib.Path(__file__).parent / "data"


class UnsourcedEntryError(ValueError):
    """A catalog entry lacks its source or the date when it was read."""


@functools.cache
def load_toml(file: str) -> dict[str, Any]:
    """Load data/`file`, including the text at its top level."""
    with (DATA / file).open("rb") as stream:
        return tomllib.load(stream)


class CatalogTable(NamedTuple):
    """A file of data/, and the array of tables in it."""

    file: str
    table: str


@functools.cache
def load_table_entries_by_id(file: str, table: str) -> dict[str, dict[str, Any]]:
    """Return the entries of `[[table]]` in data/`file`, by id.

    Raises UnsourcedEntryError when one has no `source` or no `read_on`.
    """
    return {row["id"]: require_sourced_row(row, file) for row in load_toml(file).get(table, [])}


def pick_dataclass_fields(row: Mapping[str, Any], dataclass: type) -> dict[str, Any]:
    return {f.name: row[f.name] for f in dataclasses.fields(dataclass) if f.name in row}


def require_sourced_row(row: dict[str, Any], file: str) -> dict[str, Any]:
    """Return `row` if it has sources and a date; else raise UnsourcedEntryError."""
    sources = row.get("source") or []
    if not sources or not all(isinstance(s, str) and s for s in sources):
        raise UnsourcedEntryError(f"{file}: “{row.get('id')}” has no source")
    if not isinstance(row.get("read_on"), dt.date):
        raise UnsourcedEntryError(f"{file}: “{row.get('id')}” has no read_on date")
    if _DRIVER_READING_FIELDS & row.keys() and not (
        row.get("memory_source") and isinstance(row.get("memory_read_on"), dt.date)
    ):
        raise UnsourcedEntryError(f"{file}: “{row.get('id')}” has a reading of no source")
    for cited in row.get("cited", ()):
        if not (cited.get("source") and isinstance(cited.get("read_on"), dt.date)):
            raise UnsourcedEntryError(f"{file}: “{row.get('id')}” cites without a source")
    return row


# Memory readings come from other sources than the data sheet of their entry.
_DRIVER_READING_FIELDS = {"driver_memory_mib", "engine_memory_mib"}


def normalize_catalog_name(name: str) -> str:
    """Normalize a name for lookup: lower case, hyphens, no vendor.

    >>> normalize_catalog_name("NVIDIA H100_SXM 80GB")
    'h100-sxm-80gb'
    """
    text = re.sub(r"[\s_/()]+", "-", name.strip().lower()).strip("-")
    return text.removeprefix("nvidia-").removeprefix("amd-")


@functools.cache
def load_ids_by_alias(file: str, table: str) -> dict[str, str]:
    """Map every alias of an entry to its id."""
    names: dict[str, str] = {}
    for key, row in load_table_entries_by_id(file, table).items():
        for name in (*row.get("aliases", ()), row.get("name", key), key):
            names.setdefault(normalize_catalog_name(name), key)
        names[normalize_catalog_name(key)] = key
    return names


def find_id_by_alias(file: str, table: str, name: str, noun_in_error: str) -> str:
    """Return the id for `name`; raises LookupError with the closest name."""
    names = load_ids_by_alias(file, table)
    key = names.get(normalize_catalog_name(name))
    if key is not None:
        return key
    close_names = difflib.get_close_matches(normalize_catalog_name(name), names, n=3, cutoff=0.5)
    ids = tuple(dict.fromkeys(names[n] for n in close_names))
    hint = f"nearest: {', '.join(ids)}" if ids else f"for example {next(iter(names))}"
    raise LookupError(f"“{name}” is not {noun_in_error} of the catalog; {hint}.")


@dataclasses.dataclass(frozen=True, slots=True)
class Publication:
    title: str
    publisher: str
    year: int
    url: str


SOURCES: dict[str, Publication] = {
    key: Publication(**row) for key, row in load_toml("sources.toml").items()
}

# Factors around a modeled value that contain 90% of published measurements: those that
# no constant was fitted to, and those of any model, accelerator or source left out of
# the fit (log-normal residuals, so factors; `make evidence`). For tpot, ttft and
# saturated, the constants are fitted again without the group. What is “unmeasured” has
# the spread of the first measurements of a source, engines and GPUs that were new to the
# model: 49 runs of SGLang at its default launch on five GPUs, before they were fitted to.
_ERROR_RANGE_BY_NAME = {
    "collective": (0.82, 1.27),
    "training": (0.84, 1.32),
    "training-routed": (0.73, 1.32),
    "training-unmeasured": (0.54, 1.85),
    "run": (0.75, 1.46),  # A whole run with a given layout.
    # Wider than one step by as much as “run” is than “training”: squares of logarithms add up.
    "run-unmeasured": (0.52, 1.95),
    "gpu-hours": (0.70, 1.80),  # A whole run in a usual layout, which no calculator assumes.
    "decode": (0.79, 1.18),
    "prefill": (0.50, 3.3),  # Not measured without a server.
    "tpot": (0.75, 1.49),
    "tpot-few": (0.74, 1.25),  # Of fewer than 8 requests in a replica.
    "ttft": (0.55, 2.61),
    "throughput": (0.66, 1.88),
    "saturated": (0.80, 1.39),
    "decode-unmeasured": (0.65, 1.85),
    "tpot-unmeasured": (0.62, 1.95),
    "ttft-unmeasured": (0.45, 3.0),
    "throughput-unmeasured": (0.60, 2.3),
    "saturated-unmeasured": (0.62, 1.95),
}


def error_bounds_around(interval_name: str, value: float) -> Bounds:
    """Return the bounds around a modeled value.

    >>> error_bounds_around("training", 100.0)
    Bounds(low=84.0, high=132.0)
    """
    low, high = _ERROR_RANGE_BY_NAME[interval_name]
    return Bounds(value * low, value * high)


def time_with_error_range(interval_name: str, value: float, floor: float = 0.0) -> OutputValue:
    """Return a modeled time, or a value that grows with it, with its error range.

    The hardware takes `floor` at least, so that the range begins there if not above.

    >>> time_with_error_range("decode-unmeasured", 40.0, floor=27.0).low
    27.0
    """
    low, high = error_bounds_around(interval_name, value)
    return OutputValue(value, max(low, min(floor, value)), high)


def rate_with_error_range(
    interval_name: str, value: float, ceiling: float = math.inf
) -> OutputValue:
    """Return a modeled rate; `interval_name` is the interval of the time behind it.

    The hardware reaches `ceiling` at most, so that the range ends there if not below.

    >>> rate_with_error_range("collective", 0.94, ceiling=1.0).high
    1.0
    """
    low, high = _ERROR_RANGE_BY_NAME[interval_name]
    return OutputValue(value, value / high, min(value / low, max(ceiling, value)))
