"""Catalog values of hardware parts, with unit, source, date, and reason if missing."""

import dataclasses
import datetime as dt
import functools
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

from app.estimator import data_files
from app.estimator.hardware import catalog
from app.estimator.hardware.catalog import (
    Accelerator,
    NetworkPart,
    System,
    has_no_sparsity,
    list_accelerators,
    list_network_parts,
    list_systems,
    sparse_peak_rate,
)
from app.estimator.units import NBSP, format_number, format_value

Kind = Literal["accelerator", "system", "link", "adapter", "dpu", "switch"]


@dataclasses.dataclass(frozen=True, slots=True)
class CatalogField:
    """A value that a kind of part has.

    `name` is the field in links such as `hw:part#name`. `unit` is the base unit of a
    number; `display_unit` is set if it is not the readable multiple. `convention` is also the
    direction of a rate, or a bound; `optional` is whether a part may lack it.
    """

    name: str
    label: str
    group: str
    unit: str = ""
    display_unit: str = ""
    convention: str = ""
    optional: bool = False


RATES = ("fp32", "tf32", "bf16", "fp16", "fp8", "int8", "fp4")
"""Number formats with a peak rate, widest first."""

_MEMORY, _COMPUTE, _LINKS = "Memory", "Dense compute", "Links"
_POWER, _BUILD = "Power and partitions", "Build"

_MADE = (CatalogField("vendor", "Maker", _BUILD), CatalogField("launch_year", "Launched", _BUILD))

_ACCELERATOR = (
    CatalogField("memory", "Memory as sold", _MEMORY, "B"),
    CatalogField("driver_memory", "Memory as the driver reports", _MEMORY, "B"),
    CatalogField("engine_memory", "Memory as a program is shown", _MEMORY, "B", optional=True),
    CatalogField("capacity", "Memory that calculators fill", _MEMORY, "B"),
    CatalogField("memory_type", "Kind of memory", _MEMORY),
    CatalogField("memory_bandwidth", "Memory bandwidth", _MEMORY, "B/s", "GB/s"),
    *(CatalogField(name, name.upper(), _COMPUTE, "FLOP/s", "TFLOP/s", "dense") for name in RATES),
    CatalogField("nvlink", "Link to other chips", _LINKS, "B/s", "GB/s", "one way"),
    CatalogField("interconnect", "Kind of link", _LINKS),
    CatalogField(
        "bridged_gpus", "GPUs that a bridge joins", _LINKS, convention="at most", optional=True
    ),
    CatalogField("pcie_generation", "PCIe generation", _LINKS),
    CatalogField("tdp", "Power", _POWER, "W", convention="at most"),
    CatalogField("mig_instances", "MIG instances", _POWER, convention="at most"),
    CatalogField("architecture", "Architecture", _BUILD),
    CatalogField("form_factor", "Form", _BUILD),
    CatalogField(
        "host",
        "Time to launch a kernel",
        _BUILD,
        convention="times that of an x86 server",
        optional=True,
    ),
    *_MADE,
)

_SYSTEM = (
    CatalogField("gpus", "Accelerators", "Accelerators"),
    CatalogField("accelerator", "Kind of accelerator", "Accelerators"),
    CatalogField("gpu_memory", "Memory of all as sold", _MEMORY, "B"),
    CatalogField("capacity", "Memory of all that calculators fill", _MEMORY, "B"),
    CatalogField("system_memory", "Memory of the CPUs", _MEMORY, "B"),
    CatalogField("nvlink", "Link per accelerator", _LINKS, "B/s", "GB/s", "one way"),
    CatalogField("nvswitches", "NVLink switches", _LINKS),
    CatalogField("nics", "Adapters to the compute network", _LINKS),
    CatalogField("nic", "Rate of one adapter", _LINKS, "B/s", "Gbit/s", "one way"),
    CatalogField("nic_cages", "Cages for these adapters", _LINKS, optional=True),
    CatalogField("scale_out_network", "Network", _LINKS),
    CatalogField("power", "Power", _POWER, "W", convention="highest planned"),
    CatalogField("power_supplies", "Power supplies", _POWER),
    CatalogField("power_supplies_needed", "Of these needed at full power", _POWER),
    CatalogField("cooling", "Cooling", _POWER),
    CatalogField("rack_units", "Rack units", _BUILD),
    CatalogField("cpu", "CPUs", _BUILD),
    *_MADE,
)

_BANDWIDTH = CatalogField("bandwidth", "Bandwidth", _LINKS, "B/s", "GB/s", "one way")
_PORT_RATE = CatalogField("port_rate", "Rate of a port", _LINKS, "B/s", "Gbit/s", "one way")
_PCIE = CatalogField("pcie_generation", "PCIe generation", _LINKS)
_TAIL = (
    CatalogField("power", "Power", _POWER, "W", convention="at most"),
    CatalogField("form_factor", "Form", _BUILD),
    CatalogField("vendor", "Maker", _BUILD),
)

_LINK = (
    _BANDWIDTH,
    dataclasses.replace(_PORT_RATE, optional=True),
    dataclasses.replace(_PCIE, optional=True),
)

_ADAPTER = (
    _BANDWIDTH,
    dataclasses.replace(_PORT_RATE, optional=True),
    CatalogField("ports", "Ports", _LINKS, convention="at most"),
    _PCIE,
    *_TAIL,
)

_SWITCH = (
    CatalogField("ports", "Ports", _LINKS),
    CatalogField("ports_per_cage", "Ports in a cage", _LINKS),
    _PORT_RATE,
    _BANDWIDTH,
    CatalogField("switching_capacity", "Switching capacity", _LINKS, "B/s", "Tbit/s"),
    *_TAIL,
)

FIELDS: dict[Kind, tuple[CatalogField, ...]] = {
    "accelerator": _ACCELERATOR,
    "system": _SYSTEM,
    "link": _LINK,
    "adapter": _ADAPTER,
    "dpu": _ADAPTER,
    "switch": _SWITCH,
}
"""The values of every kind of part, in display order."""

UNITS: dict[str, str] = {
    **{f.name: f.unit for fields in FIELDS.values() for f in fields if f.unit},
    "nvlink_both_ways": "B/s",
    "pcie": "B/s",
}
"""Base units of fields and derived values; other fields are plain numbers."""

_ROWS = {
    "nvlink_both_ways": "nvlink",
    "pcie": "pcie_generation",
    "shown": "capacity",
    "memory_read_on": "driver_memory",
    "switching_convention": "switching_capacity",
}


def row_anchor_of_field(field: str) -> str:
    """Return the row of a part's page that shows a field.

    >>> row_anchor_of_field("nvlink_both_ways"), row_anchor_of_field("memory")
    ('nvlink', 'memory')
    """
    return _ROWS.get(field, field)


State = Literal["known", "unknown", "absent"]
Entry = Accelerator | System | NetworkPart
_NETWORK_KINDS: Mapping[str, Kind] = {
    "link_standard": "link",
    "nic": "adapter",
    "dpu": "dpu",
    "switch": "switch",
}
_NO_LISTING = "Nobody has published what the driver lists; calculators use the label."
_NO_RATE = "None of the sources names a rate for this format."
_NOT_STATED = "No source that we trust states it."


@dataclasses.dataclass(frozen=True, slots=True)
class PartValue:
    """One value of a part.

    `number` is in the base unit of its field; `formatted_value` is the text shown, `other_convention` the
    same value in another one: sparse for dense, both ways for one way. `missing_reason` says
    why a value is unknown, or why the part has none (absent). `sources` are where it was
    read on `read_on`; `has_own_source` is whether they are for it alone. `unverified` is
    whether there is no primary source.
    """

    field: CatalogField
    number: float | str | None
    formatted_value: str
    other_convention: str = ""
    missing_reason: str = ""
    state: State = "known"
    sources: tuple[str, ...] = ()
    read_on: dt.date | None = None
    has_own_source: bool = False
    unverified: bool = False

    @property
    def name(self) -> str:
        return self.field.name


@dataclasses.dataclass(frozen=True, slots=True)
class CatalogPart:
    id: str
    name: str
    kind: Kind
    vendor: str
    year: int | None
    note: str
    values: tuple[PartValue, ...]
    catalog_entry: Entry
    aliases: tuple[str, ...] = ()

    def __getitem__(self, name: str) -> PartValue:
        value = self.get(name)
        if value is None:
            raise KeyError(name)
        return value

    def get(self, name: str) -> PartValue | None:
        """Return the value called `name`, or None if this kind has none."""
        return next((value for value in self.values if value.name == name), None)

    @property
    def values_by_group(self) -> dict[str, list[PartValue]]:
        groups: dict[str, list[PartValue]] = {}
        for value in self.values:
            groups.setdefault(value.field.group, []).append(value)
        return groups

    @property
    def sources(self) -> tuple[str, ...]:
        """Return the sources of its values; sources of single values come last."""
        values = sorted(self.values, key=lambda value: value.has_own_source)
        return tuple(dict.fromkeys(source for value in values for source in value.sources))

    @property
    def missing_values(self) -> tuple[PartValue, ...]:
        return tuple(v for v in self.values if v.state == "unknown")


@functools.cache
def list_parts() -> tuple[CatalogPart, ...]:
    """Return all parts in catalog order: accelerators, systems, network.

    >>> len({part.id for part in list_parts()}) == len(list_parts())
    True
    """
    entries: tuple[Entry, ...] = (*list_accelerators(), *list_systems(), *list_network_parts())
    return tuple(_build_part(entry) for entry in entries)


@functools.cache
def _parts_by_id() -> dict[str, CatalogPart]:
    return {part.id: part for part in list_parts()}


def find_part(part_id: str) -> CatalogPart | None:
    r"""Return the part with this id, or None.

    >>> find_part("h100-sxm5-80")["nvlink"].other_convention
    '900\xa0GB/s both ways'
    """
    return _parts_by_id().get(part_id)


def part_url(part_id: str, field: str = "") -> str:
    """Return the URL of a part's page, or of one value on it.

    >>> part_url("h100-sxm5-80", "nvlink_both_ways")
    '/hardware/h100-sxm5-80#nvlink'
    """
    return f"/hardware/{part_id}#{row_anchor_of_field(field)}" if field else f"/hardware/{part_id}"


def _build_part(entry: Entry) -> CatalogPart:
    if isinstance(entry, NetworkPart):
        kind, table = _NETWORK_KINDS[entry.kind], catalog.NETWORK_PARTS
    elif isinstance(entry, System):
        kind, table = "system", catalog.SYSTEMS
    else:
        kind, table = "accelerator", catalog.ACCELERATORS
    row = data_files.load_table_entries_by_id(*table)[entry.id]
    builder = _PartValueBuilder(entry, row)
    values = [builder.build_value(field) for field in FIELDS[kind]]
    return CatalogPart(
        id=entry.id,
        name=entry.name,
        kind=kind,
        vendor=entry.vendor,
        year=getattr(entry, "launch_year", None),
        note=entry.note,
        values=tuple(v for v in values if v is not None),
        catalog_entry=entry,
        aliases=tuple(row.get("aliases", ())),
    )


class ValueSource(NamedTuple):
    """Where and when a value was read, and whether for this value of its part alone."""

    urls: tuple[str, ...]
    read_on: dt.date
    is_for_this_value_alone: bool


class _PartValueBuilder:
    """Builds the values of one entry from its fields and from its notes about them."""

    def __init__(self, entry: Entry, row: Mapping[str, Any]) -> None:
        self._entry = entry
        self._row = row
        self._unknown: Mapping[str, str] = row.get("unknown", {})
        self._unverified = {catalog.field_of_toml_key(key) for key in entry.unverified}

    def build_value(self, field: CatalogField) -> PartValue | None:
        """Return the value of a field; None if it is optional and missing."""
        number = getattr(self._entry, field.name)
        if number in (None, "") or field.name in self._unknown:
            return None if field.optional else self._build_unknown_or_absent_value(field)
        source = self._find_source(field.name)
        return PartValue(
            field=field,
            number=number,
            formatted_value=_format_field_value(field, number),
            other_convention=self._format_other_convention(field, number),
            sources=source.urls,
            read_on=source.read_on,
            has_own_source=source.is_for_this_value_alone,
            unverified=field.name in self._unverified and not source.is_for_this_value_alone,
        )

    def _find_source(self, name: str) -> ValueSource:
        row = self._row
        for cited in row.get("cited", ()):
            if name in cited["values"]:
                return ValueSource(
                    (cited["source"],), cited["read_on"], is_for_this_value_alone=True
                )
        if name in {"driver_memory", "engine_memory"} or self._is_capacity_from_driver_reading(
            name
        ):
            addresses = tuple(row["memory_source"])
            return ValueSource(addresses, row["memory_read_on"], is_for_this_value_alone=True)
        return ValueSource(self._entry.source, row["read_on"], is_for_this_value_alone=False)

    def _is_capacity_from_driver_reading(self, name: str) -> bool:
        return name == "capacity" and "memory_source" in self._row

    def _build_unknown_or_absent_value(self, field: CatalogField) -> PartValue:
        if absent := self._build_absent_value_or_none(field):
            return absent
        reason = _NO_RATE if field.name in RATES else _NOT_STATED
        if field.name == "driver_memory":
            reason = _NO_LISTING
        reason = self._unknown.get(field.name) or reason
        return PartValue(field, None, "unknown", missing_reason=reason, state="unknown")

    def _build_absent_value_or_none(self, field: CatalogField) -> PartValue | None:
        """Return a value that the part is known to lack, with the reason; else None."""
        entry, words, reason = self._entry, "", ""
        if not isinstance(entry, Accelerator):
            return None
        if field.name in RATES and entry.lacks_format(field.name):
            words = "not supported"
            reason = f"{entry.architecture} has no units for this format."
        elif field.name == "nvlink" and entry.interconnect.startswith("none"):
            words, reason = "none", "Cards of this kind connect over PCIe only."
        elif field.name == "pcie_generation" and entry.form_factor == "cloud-only":
            words, reason = "not sold", "It is rented as part of a machine."
        return (
            PartValue(field, None, words, missing_reason=reason, state="absent") if words else None
        )

    def _format_other_convention(self, field: CatalogField, number: Any) -> str:
        if field.convention == "one way":
            return f"{_format_field_value(field, 2 * number)} both ways"
        entry = self._entry
        binary = "memory" if "memory_gib" in self._row else ""
        if field.name in {"driver_memory", "engine_memory", "capacity", binary}:
            return self._format_memory_note(field.name, number)
        if isinstance(entry, Accelerator) and field.name in RATES:
            return _sparse_rate_note(entry, field, self._row.get("sparse", {}))
        if isinstance(entry, Accelerator) and field.name == "pcie_generation":
            return _pcie_bandwidth_note(entry)
        if field.name == "switching_capacity":
            return str(getattr(entry, "switching_convention", ""))
        return ""

    def _format_memory_note(self, name: str, number: float) -> str:
        if name == "memory":
            return f"{format_number(number / 2**30)}{NBSP}GiB"
        exact = f"{format_number(number / 2**20)}{NBSP}MiB"
        if name != "capacity":
            return exact
        if isinstance(self._entry, System):
            if catalog.find_accelerator(self._entry.accelerator).driver_memory:
                return "what the drivers of its accelerators report"
            return "the labels of its accelerators, without a reading"
        is_driver_reading = self._is_capacity_from_driver_reading(name)
        return "what the driver reports" if is_driver_reading else "the label, without a reading"


def _format_field_value(field: CatalogField, number: Any) -> str:
    if field.name == "mig_instances":
        return format_value(number) if number else "none"
    if field.name == "accelerator":
        return catalog.find_accelerator(number).name
    if field.name == "launch_year":
        return str(number)
    if isinstance(number, str):
        return number
    text = format_value(number, field.display_unit or field.unit, 0)
    return text.replace("FLOP", "OP") if field.name == "int8" else text


def _sparse_rate_note(
    card: Accelerator, field: CatalogField, stated_sparse_tflops: Mapping[str, float]
) -> str:
    rate = sparse_peak_rate(card, field.name, stated_sparse_tflops)
    if rate:
        return f"{_format_field_value(field, rate)} sparse"
    return "no sparse rate" if has_no_sparsity(card) and field.name != "fp32" else ""


def _pcie_bandwidth_note(card: Accelerator) -> str:
    rate = card.pcie_bandwidth
    if rate is None:
        return ""
    one_way, both_ways = format_value(rate, "GB/s"), format_value(2 * rate, "GB/s")
    return f"{one_way} one way over 16 lanes, {both_ways} both ways"
