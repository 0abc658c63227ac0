"""The list of parts as it was asked for: which, in which order, with which values."""

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from urllib.parse import urlencode

from app.estimator.hardware.fields import Kind
from app.estimator.hardware.parts import CatalogPart, PartValue, parts
from app.estimator.units import NBSP

Column = tuple[str, str, str]  # field, words in the head, unit

_CARD: tuple[tuple[str, tuple[Column, ...]], ...] = (
    (
        "Memory",
        (
            ("memory", "As sold", "GB"),
            ("driver_memory", "As the driver reports", "GB"),
            ("memory_bandwidth", "Bandwidth", "GB/s"),
        ),
    ),
    (
        "Dense compute",
        (
            ("bf16", "BF16", "TFLOP/s"),
            ("fp8", "FP8", "TFLOP/s"),
            ("fp4", "FP4", "TFLOP/s"),
        ),
    ),
    ("Link and power", (("nvlink", "Link, one way", "GB/s"), ("tdp", "Power", "W"))),
)
_SYSTEM: tuple[tuple[str, tuple[Column, ...]], ...] = (
    ("Accelerators", (("gpus", "Number", ""), ("accelerator", "Kind", ""))),
    (
        "Memory of all accelerators",
        (("gpu_memory", "As sold", "GB"), ("capacity", "That can be filled", "GB")),
    ),
    (
        "Links",
        (("nvlink", "Link, one way", "GB/s"), ("nic", "Adapter, one way", "Gbit/s")),
    ),
    ("Power", (("power", "Highest planned", "kW"), ("rack_units", "Rack units", ""))),
)
_NETWORK: tuple[tuple[str, tuple[Column, ...]], ...] = (
    (
        "Rates",
        (
            ("ports", "Ports", ""),
            ("port_rate", "Port, one way", "Gbit/s"),
            ("bandwidth", "Bandwidth, one way", "GB/s"),
            ("switching_capacity", "Switching capacity", "Tbit/s"),
        ),
    ),
    ("Build", (("pcie_generation", "PCIe generation", ""), ("power", "Power", "W"))),
)


@dataclasses.dataclass(frozen=True, slots=True)
class PartCategory:
    """Parts that have the same values: what they are called, and their columns."""

    name: str
    title: str
    one: str
    kinds: tuple[Kind, ...]
    groups: tuple[tuple[str, tuple[Column, ...]], ...]
    sort: str


SHELVES: Mapping[str, PartCategory] = {
    shelf.name: shelf
    for shelf in (
        PartCategory(
            "accelerators",
            "Accelerators",
            "Accelerator",
            ("accelerator",),
            _CARD,
            "memory",
        ),
        PartCategory(
            "systems",
            "Servers and racks",
            "System",
            ("system",),
            _SYSTEM,
            "gpu_memory",
        ),
        PartCategory(
            "network",
            "Links, adapters and switches",
            "Part",
            ("link", "adapter", "dpu", "switch"),
            _NETWORK,
            "bandwidth",
        ),
    )
}
KIND_WORDS: Mapping[Kind, str] = {
    "accelerator": "accelerator",
    "system": "system",
    "link": "link",
    "adapter": "adapter",
    "dpu": "DPU",
    "switch": "switch",
}
LEAST = (("", "Any"), ("48", "48 GB"), ("80", "80 GB"), ("141", "141 GB"))
"""Memory that can be asked for, in GB as it is sold."""


@dataclasses.dataclass(frozen=True, slots=True)
class PartQuery:
    """What the list was asked for; every field has a value that can be used."""

    shelf: PartCategory
    vendor: str = ""
    least: str = ""
    columns: str = ""
    sort: str = ""
    rising: bool = False

    def address(self, **changes: str) -> str:
        """The address of the list with some of it asked differently."""
        words = {
            "kind": self.shelf.name,
            "vendor": self.vendor,
            "memory": self.least,
            "columns": self.columns,
            "sort": self.sort,
            "order": "rising" if self.rising else "",
        } | changes
        first = next(iter(SHELVES))
        said = {k: v for k, v in words.items() if v and (k, v) != ("kind", first)}
        return f"/hardware?{urlencode(said)}" if said else "/hardware"


@dataclasses.dataclass(frozen=True, slots=True)
class ColumnHead:
    """A column head: its words, where a click leads, and how it is sorted now."""

    name: str
    words: str
    unit: str
    address: str
    sorted: str


@dataclasses.dataclass(frozen=True, slots=True)
class PartCell:
    """A value in the list; `why` is the letter of the reason when there is none."""

    words: str
    beside: str
    why: str
    unverified: bool


@dataclasses.dataclass(frozen=True, slots=True)
class PartRow:
    """A part in the list."""

    id: str
    name: str
    about: str
    cells: tuple[PartCell, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class PartTable:
    """Everything that the list shows; `reasons` explains the letters in it."""

    heads: tuple[ColumnHead, ...]
    groups: tuple[tuple[str, int], ...]
    rows: tuple[PartRow, ...]
    reasons: tuple[tuple[str, str], ...]
    total: int
    sorted_by: str


def parse_part_query(query: Mapping[str, str]) -> PartQuery:
    """Read a query; what is not offered counts as not asked."""
    shelf = SHELVES.get(query.get("kind", ""), next(iter(SHELVES.values())))
    names = {name for _, columns in shelf.groups for name, _, _ in columns} | {"name"}
    sort = query.get("sort", "")
    return PartQuery(
        shelf=shelf,
        vendor=_one_of(query.get("vendor", ""), vendors(shelf)),
        least=_one_of(query.get("memory", ""), [words for words, _ in LEAST]),
        columns=_one_of(query.get("columns", ""), [title for title, _ in shelf.groups]),
        sort=sort if sort in names else "",
        rising=query.get("order") == "rising",
    )


def _one_of(word: str, offered: Iterable[str]) -> str:
    return word if word in offered else ""


def vendors(shelf: PartCategory) -> tuple[str, ...]:
    """The makers of the parts of a shelf."""
    return tuple(dict.fromkeys(part.vendor for part in on_shelf(shelf)))


def on_shelf(shelf: PartCategory) -> tuple[CatalogPart, ...]:
    """The parts of a shelf in the order of the catalog."""
    return tuple(part for part in parts() if part.kind in shelf.kinds)


def shelf_of(part: CatalogPart) -> PartCategory:
    """The shelf on which a part stands."""
    return next(shelf for shelf in SHELVES.values() if part.kind in shelf.kinds)


def listing(asked: PartQuery) -> PartTable:
    """The list that was asked for."""
    everything = on_shelf(asked.shelf)
    chosen = _sorted([part for part in everything if _matches(part, asked)], asked)
    groups = [g for g in asked.shelf.groups if asked.columns in ("", g[0])]
    columns = [column for _, inside in groups for column in inside]
    letters = _letters(chosen, [name for name, _, _ in columns])
    heads = tuple(_head(column, asked) for column in columns)
    return PartTable(
        heads=(_head(("name", asked.shelf.one, ""), asked), *heads),
        groups=tuple((title, len(inside)) for title, inside in groups),
        rows=tuple(_row(part, columns, letters) for part in chosen),
        reasons=tuple((letter, reason) for reason, letter in letters.items()),
        total=len(everything),
        sorted_by=_sorted_by(asked),
    )


def _matches(part: CatalogPart, asked: PartQuery) -> bool:
    if asked.vendor and part.vendor != asked.vendor:
        return False
    if not asked.least:
        return True
    memory = part.get("memory") or part.get("gpu_memory")
    number = memory.number if memory else None
    return isinstance(number, int | float) and number >= float(asked.least) * 1e9


def _sorted(chosen: Sequence[CatalogPart], asked: PartQuery) -> list[CatalogPart]:
    """By a value, the largest first unless asked otherwise; without one last."""
    name = asked.sort or asked.shelf.sort
    if name == "name":
        ordered = sorted(chosen, key=lambda part: part.name.casefold())
        return ordered[::-1] if asked.rising else ordered
    have = [part for part in chosen if _order(part, name) is not None]
    lack = [part for part in chosen if _order(part, name) is None]
    return [*sorted(have, key=_key(name), reverse=not asked.rising), *lack]


def _key(name: str) -> Callable[[CatalogPart], tuple[bool, str | float]]:
    def key(part: CatalogPart) -> tuple[bool, str | float]:
        number = _order(part, name)
        return (isinstance(number, str), number if number is not None else "")

    return key


def _order(part: CatalogPart, name: str) -> str | float | None:
    value = part.get(name)
    return value.number if value else None


def _sorted_by(asked: PartQuery) -> str:
    name = asked.sort or asked.shelf.sort
    if name == "name":
        return "name, backward" if asked.rising else "name"
    words = next((w for _, inside in asked.shelf.groups for n, w, _ in inside if n == name), name)
    return f"“{words}”, {'smallest' if asked.rising else 'largest'} first"


def _head(column: Column, asked: PartQuery) -> ColumnHead:
    name, words, unit = column
    now = (asked.sort or asked.shelf.sort) == name
    falling = now and not asked.rising
    rises = name != "name"  # the first click sorts names from A, numbers from the top
    state = "" if not now else ("descending" if falling == rises else "ascending")
    order = "rising" if falling else ""
    return ColumnHead(name, words, unit, asked.address(sort=name, order=order), state)


def _letters(chosen: Iterable[CatalogPart], names: Sequence[str]) -> dict[str, str]:
    """A letter for each reason why a value is not there."""
    values = (part.get(name) for part in chosen for name in names)
    reasons = dict.fromkeys(v.reason for v in values if v is not None and v.reason)
    return {reason: _letter(place) for place, reason in enumerate(reasons)}


def _letter(place: int) -> str:
    tens, ones = divmod(place, 26)
    return f"{chr(96 + tens) if tens else ''}{chr(97 + ones)}"


def _row(part: CatalogPart, columns: Iterable[Column], letters: Mapping[str, str]) -> PartRow:
    made = f"{part.vendor}, {part.year}" if part.year else part.vendor
    kind = "" if part.kind in ("accelerator", "system") else KIND_WORDS[part.kind]
    cells = tuple(_cell(part.get(name), unit, letters) for name, _, unit in columns)
    return PartRow(part.id, part.name, f"{made}, {kind}" if kind else made, cells)


def _cell(value: PartValue | None, unit: str, letters: Mapping[str, str]) -> PartCell:
    """A value without the unit that stands in the head of its column."""
    if value is None:
        return PartCell("–", "", "", unverified=False)
    words, beside = (
        text.replace(f"{NBSP}{unit}", "") if unit else text for text in (value.words, value.beside)
    )
    letter = letters.get(value.reason, "")
    return PartCell(words, beside, letter, unverified=value.unverified)
