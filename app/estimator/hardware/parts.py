"""Every part of the catalog as values with unit, convention, source and date."""

import dataclasses
import datetime as dt
import functools
from collections.abc import Mapping
from typing import Any, Literal

from app.estimator import catalogue
from app.estimator.hardware import accelerators as known
from app.estimator.hardware.accelerators import Accelerator, NetworkPart, System
from app.estimator.hardware.fields import FIELDS, RATES, CatalogField, Kind, row_of
from app.estimator.hardware.sparsity import has_no_sparsity, sparse_rate
from app.estimator.units import NBSP, format_number, format_value

State = Literal["known", "unknown", "absent"]
Entry = Accelerator | System | NetworkPart
_NETWORK_KINDS: Mapping[str, Kind] = {
    "link_standard": "link",
    "nic": "adapter",
    "dpu": "dpu",
    "switch": "switch",
}
_FILES: Mapping[str, tuple[str, str]] = {
    "accelerator": ("accelerators.toml", "accelerator"),
    "system": ("systems.toml", "system"),
}
_NETWORKS = ("networks.toml", "network")
_NO_LISTING = "Nobody has published what the driver lists; calculators use the label."
_NO_RATE = "None of the sources names a rate for this format."
_NOT_STATED = "No source that we trust states it."


@dataclasses.dataclass(frozen=True, slots=True)
class PartValue:
    """One value of a part.

    `number` is in the base unit of its field; `words` are what is shown, `beside` the
    same in the other convention: sparse beside dense, both ways beside one way.
    `reason` says why an unknown value is unknown, or why the part has none (absent).
    `sources` are where it was read on `read_on`; `own` that they were given for this
    value in particular. `unverified` says that no primary source was found.
    """

    field: CatalogField
    number: float | str | None
    words: str
    beside: str = ""
    reason: str = ""
    state: State = "known"
    sources: tuple[str, ...] = ()
    read_on: dt.date | None = None
    own: bool = False
    unverified: bool = False

    @property
    def name(self) -> str:
        """The name of its field."""
        return self.field.name


@dataclasses.dataclass(frozen=True, slots=True)
class CatalogPart:
    """A part with all values that a part of its kind has."""

    id: str
    name: str
    kind: Kind
    vendor: str
    year: int | None
    note: str
    values: tuple[PartValue, ...]
    entry: Entry
    aliases: tuple[str, ...] = ()

    def __getitem__(self, name: str) -> PartValue:
        """The value called `name`; raises KeyError."""
        for value in self.values:
            if value.name == name:
                return value
        raise KeyError(name)

    def get(self, name: str) -> PartValue | None:
        """The value called `name`, or None where this kind has none."""
        return next((value for value in self.values if value.name == name), None)

    @property
    def groups(self) -> dict[str, list[PartValue]]:
        """Its values by group, in the order of their declaration."""
        found: dict[str, list[PartValue]] = {}
        for value in self.values:
            found.setdefault(value.field.group, []).append(value)
        return found

    @property
    def sources(self) -> tuple[str, ...]:
        """Where its values were read, those of single values last."""
        return tuple(dict.fromkeys(s for v in self._cited_last for s in v.sources))

    @property
    def _cited_last(self) -> list[PartValue]:
        return sorted(self.values, key=lambda value: value.own)

    @property
    def missing(self) -> tuple[PartValue, ...]:
        """The values that are not known."""
        return tuple(v for v in self.values if v.state == "unknown")


@functools.cache
def parts() -> tuple[CatalogPart, ...]:
    """All parts in the order of the catalog: accelerators, systems, network.

    >>> len({part.id for part in parts()}) == len(parts())
    True
    """
    entries: tuple[Entry, ...] = (
        *known.accelerators(),
        *known.systems(),
        *known.networks(),
    )
    return tuple(_part(entry) for entry in entries)


@functools.cache
def _by_id() -> dict[str, CatalogPart]:
    return {part.id: part for part in parts()}


def find_part(name: str) -> CatalogPart | None:
    r"""The part with this id.

    >>> find_part("h100-sxm5-80")["nvlink"].beside
    '900\xa0GB/s both ways'
    """
    return _by_id().get(name)


def address_of(part: str, field: str = "") -> str:
    """Where a part is shown, or one of its values.

    >>> address_of("h100-sxm5-80", "nvlink_both_ways")
    '/hardware/h100-sxm5-80#nvlink'
    """
    return f"/hardware/{part}#{row_of(field)}" if field else f"/hardware/{part}"


def _part(entry: Entry) -> CatalogPart:
    kind = _kind(entry)
    row = catalogue.load_table(*_FILES.get(kind, _NETWORKS))[entry.id]
    made = _PartBuilder(entry, row)
    values = [made.value(field) for field in FIELDS[kind]]
    return CatalogPart(
        id=entry.id,
        name=entry.name,
        kind=kind,
        vendor=entry.vendor,
        year=getattr(entry, "launch_year", None),
        note=entry.note,
        values=tuple(v for v in values if v is not None),
        entry=entry,
        aliases=tuple(row.get("aliases", ())),
    )


def _kind(entry: Entry) -> Kind:
    if isinstance(entry, System):
        return "system"
    return "accelerator" if isinstance(entry, Accelerator) else _NETWORK_KINDS[entry.kind]


class _PartBuilder:
    """The values of one entry, made from its fields and what its row says of them."""

    def __init__(self, entry: Entry, row: Mapping[str, Any]) -> None:
        self._entry = entry
        self._row = row
        self._unknown: Mapping[str, str] = row.get("unknown", {})
        self._unverified = {known.field_of(key) for key in entry.unverified}

    def value(self, field: CatalogField) -> PartValue | None:
        """The value of a field; None where it is optional and not there."""
        number = getattr(self._entry, field.name)
        if number in (None, "") or field.name in self._unknown:
            return None if field.optional else self._without(field)
        sources, read_on, own = self._cited(field.name)
        return PartValue(
            field=field,
            number=number,
            words=_words(field, number),
            beside=self._beside(field, number),
            sources=sources,
            read_on=read_on,
            own=own,
            unverified=field.name in self._unverified and not own,
        )

    def _cited(self, name: str) -> tuple[tuple[str, ...], dt.date, bool]:
        """Where a value was read, when, and whether that was said of it alone."""
        for cited in self._row.get("cited", ()):
            if name in cited["values"]:
                return (cited["source"],), cited["read_on"], True
        if name in {"driver_memory", "engine_memory"} or self._reads_driver(name):
            read = self._row["memory_source"], self._row["memory_read_on"]
            return tuple(read[0]), read[1], True
        return self._entry.source, self._row["read_on"], False

    def _reads_driver(self, name: str) -> bool:
        return name == "capacity" and "memory_source" in self._row

    def _without(self, field: CatalogField) -> PartValue:
        absent = self._absent(field)
        if absent[0]:
            return PartValue(field, None, absent[0], reason=absent[1], state="absent")
        reason = self._unknown.get(field.name) or _reason(field)
        return PartValue(field, None, "unknown", reason=reason, state="unknown")

    def _absent(self, field: CatalogField) -> tuple[str, str]:
        """How to say that the part has none, and why; empty where that is open."""
        entry = self._entry
        if not isinstance(entry, Accelerator):
            return ("", "")
        if field.name in RATES and entry.lacks(field.name):
            why = f"{entry.architecture} has no units for this format."
            return ("not supported", why)
        if field.name == "nvlink" and entry.interconnect.startswith("none"):
            return ("none", "Cards of this kind connect over PCIe only.")
        if field.name == "pcie_generation" and entry.form_factor == "cloud-only":
            return ("not sold", "It is rented as part of a machine.")
        return ("", "")

    def _beside(self, field: CatalogField, number: Any) -> str:
        """The same value in the other convention."""
        if field.says == "one way":
            return f"{_words(field, 2 * number)} both ways"
        entry = self._entry
        binary = "memory" if "memory_gib" in self._row else ""
        if field.name in {"driver_memory", "engine_memory", "capacity", binary}:
            return self._counted(field.name, number)
        if isinstance(entry, Accelerator):
            return _of_card(entry, field, self._row.get("sparse", {}))
        if field.name == "switching_capacity":
            return str(getattr(entry, "switching_convention", ""))
        return ""

    def _counted(self, name: str, number: float) -> str:
        if name == "memory":
            return f"{format_number(number / 2**30)}{NBSP}GiB"
        exact = f"{format_number(number / 2**20)}{NBSP}MiB"
        if name != "capacity":
            return exact
        if isinstance(self._entry, System):
            if known.find_accelerator(self._entry.accelerator).driver_memory:
                return "what the drivers of its accelerators report"
            return "the labels of its accelerators, without a reading"
        read = self._reads_driver(name)
        return "what the driver reports" if read else "the label, without a reading"


def _words(field: CatalogField, number: Any) -> str:
    if field.name == "mig_instances":
        return format_value(number) if number else "none"
    if field.name == "accelerator":
        return known.find_accelerator(number).name
    if field.name == "launch_year":
        return str(number)
    if isinstance(number, str):
        return number
    written = format_value(number, field.shown or field.unit)
    return written.replace("FLOP", "OP") if field.name == "int8" else written


def _of_card(card: Accelerator, field: CatalogField, stated: Mapping[str, float]) -> str:
    if field.name in RATES:
        return _sparse(card, field, stated)
    return _pcie(card) if field.name == "pcie_generation" else ""


def _sparse(card: Accelerator, field: CatalogField, stated: Mapping[str, float]) -> str:
    rate = sparse_rate(card, field.name, stated)
    if rate:
        return f"{_words(field, rate)} sparse"
    return "no sparse rate" if has_no_sparsity(card) and field.name != "fp32" else ""


def _pcie(card: Accelerator) -> str:
    rate = card.pcie
    if rate is None:
        return ""
    one, both = format_value(rate, "GB/s"), format_value(2 * rate, "GB/s")
    return f"{one} one way over 16 lanes, {both} both ways"


def _reason(field: CatalogField) -> str:
    if field.name in RATES:
        return _NO_RATE
    return _NO_LISTING if field.name == "driver_memory" else _NOT_STATED
