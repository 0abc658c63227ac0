"""The values that a part of the catalog has: names, groups, units, conventions."""

import dataclasses
from typing import Literal

Kind = Literal["accelerator", "system", "link", "adapter", "dpu", "switch"]


@dataclasses.dataclass(frozen=True, slots=True)
class CatalogField:
    """A value that a kind of part has, declared once.

    `name` is the field that an author links as `hw:part#name`. `unit` is the base
    unit of a number, `shown` the unit in which it is written where the readable
    multiple is not the custom. `says` is the direction or the convention of the
    value, `optional` that a part without it is not missing anything.
    """

    name: str
    label: str
    group: str
    unit: str = ""
    shown: str = ""
    says: str = ""
    optional: bool = False


RATES = ("fp32", "tf32", "bf16", "fp16", "fp8", "int8", "fp4")
"""Number formats with a peak, from the widest on."""

_MEMORY, _COMPUTE, _LINKS = "Memory", "Dense compute", "Links"
_POWER, _BUILD = "Power and partitions", "Build"

_MADE = (
    CatalogField("vendor", "Maker", _BUILD),
    CatalogField("launch_year", "Launched", _BUILD),
)

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
    CatalogField("pcie_generation", "PCIe generation", _LINKS),
    CatalogField("tdp", "Power", _POWER, "W", says="at most"),
    CatalogField("mig_instances", "MIG instances", _POWER, says="at most"),
    CatalogField("architecture", "Architecture", _BUILD),
    CatalogField("form_factor", "Form", _BUILD),
    CatalogField(
        "host",
        "Time to launch a kernel",
        _BUILD,
        says="times that of an x86 server",
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
    CatalogField("power", "Power", _POWER, "W", says="highest planned"),
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
    CatalogField("power", "Power", _POWER, "W", says="at most"),
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
    CatalogField("ports", "Ports", _LINKS, says="at most"),
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
"""What every kind of part has, in the order in which it is shown."""

UNITS: dict[str, str] = {
    **{f.name: f.unit for fields in FIELDS.values() for f in fields if f.unit},
    "nvlink_both_ways": "B/s",
    "pcie": "B/s",
}
"""Base units of fields and of what follows from them; the rest are plain numbers."""

_ROWS = {
    "nvlink_both_ways": "nvlink",
    "pcie": "pcie_generation",
    "shown": "capacity",
    "memory_read_on": "driver_memory",
    "switching_convention": "switching_capacity",
}


def row_of(field: str) -> str:
    """The row of a part's page on which a field stands.

    >>> row_of("nvlink_both_ways"), row_of("memory")
    ('nvlink', 'memory')
    """
    return _ROWS.get(field, field)
