"""Accelerators, servers and network parts in base units."""

import dataclasses
import functools
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from app.estimator import data_files
from app.estimator.units import format_number

ACCELERATORS = data_files.CatalogTable("accelerators.toml", "accelerator")
SYSTEMS = data_files.CatalogTable("systems.toml", "system")
NETWORK_PARTS = data_files.CatalogTable("networks.toml", "network")
_REFERENCE_DESIGNS = data_files.CatalogTable("systems.toml", "reference_architecture")

# The number format whose peak applies. Formats without their own hardware units are
# unpacked to 16 bit first.
_PEAK_FIELDS = {
    "bf16": ("bf16", "fp16"),
    "fp16": ("fp16", "bf16"),
    "fp32": ("fp32",),
    "tf32": ("tf32",),
    "fp8": ("fp8",),
    "int8": ("int8",),
    "fp4": ("fp4",),
    "nvfp4": ("fp4",),
    "mxfp4": ("fp4",),
    "mxfp8": ("fp8",),
}

_BEFORE_ADA = ("Volta", "Turing", "Ampere")
_ARCHITECTURES_WITHOUT: dict[str, tuple[str, ...]] = {
    "bf16": ("Volta", "Turing"),
    "tf32": ("Volta", "Turing", "CDNA 2", "CDNA 4"),
    "fp8": (*_BEFORE_ADA, "CDNA 2"),
    "mxfp8": (*_BEFORE_ADA, "Ada Lovelace", "Hopper", "CDNA 2", "CDNA 3"),
    "fp4": (*_BEFORE_ADA, "Ada Lovelace", "Hopper", "CDNA 2", "CDNA 3"),
}


@dataclasses.dataclass(frozen=True, slots=True)
class Accelerator:
    """One accelerator. None is a value that no source gives.

    `memory` [B] is the size on the label, `driver_memory` the total that the driver prints,
    `engine_memory` the total that a program sees; `memory_bandwidth` [B/s], peaks
    [FLOP/s, dense], `nvlink` and `pcie` [B/s, one way, per GPU], `tdp` [W];
    `bridged_gpus`: the most GPUs that a bridge joins, None if no bridge carries `nvlink` [1];
    `host`: time to launch a kernel relative to an x86 server [1];
    `announced` parts are not sold yet, and their values may change.
    """

    id: str
    name: str
    vendor: str = ""
    kind: str = "accelerator"
    architecture: str = ""
    launch_year: int | None = None
    form_factor: str = ""
    memory: float | None = None
    driver_memory: float | None = None
    engine_memory: float | None = None
    memory_source: tuple[str, ...] = ()
    memory_read_on: str = ""
    memory_type: str = ""
    memory_bandwidth: float | None = None
    fp32: float | None = None
    tf32: float | None = None
    bf16: float | None = None
    fp16: float | None = None
    fp8: float | None = None
    int8: float | None = None
    fp4: float | None = None
    tdp: float | None = None
    interconnect: str = ""
    nvlink: float | None = None
    bridged_gpus: int | None = None
    pcie_generation: int | None = None
    mig_instances: int = 0
    host: float | None = None
    announced: bool = False
    note: str = ""
    unverified: tuple[str, ...] = ()
    source: tuple[str, ...] = ()
    read_on: str = ""

    @property
    def capacity(self) -> float:
        """Return the bytes that the driver shows, or else the label [B].

        >>> find_accelerator("H100").capacity / 2**20
        81559.0
        """
        return self.driver_memory or self.engine_memory or self.memory or 0.0

    @property
    def engine_visible_memory(self) -> float:
        """Return the bytes that programs get, where that is known, or else the capacity [B].

        Estimates use these; calculations by hand and the choice of a GPU use the capacity.

        >>> find_accelerator("H100").engine_visible_memory / 2**20
        80998.4
        """
        return self.engine_memory or self.capacity

    @property
    def nvlink_both_ways(self) -> float | None:
        """Return the value in data sheets: both directions of all links [B/s]."""
        return None if self.nvlink is None else 2 * self.nvlink

    @property
    def pcie_bandwidth(self) -> float | None:
        """Return the rate of 16 lanes of its PCIe generation, one way [B/s]."""
        return _PCIE_RATE_BY_GENERATION.get(self.pcie_generation or 0)

    def dense_peak_rate(self, number_format: str) -> float | None:
        """Return the dense peak for a number format [FLOP/s]; None if there is none.

        >>> find_accelerator("H100").dense_peak_rate("fp8")
        1978900000000000.0
        >>> find_accelerator("A100").dense_peak_rate("fp8") is None
        True
        """
        rates = (getattr(self, f) for f in _PEAK_FIELDS.get(number_format, ()))
        return next((rate for rate in rates if rate), None)

    def lacks_format(self, number_format: str) -> bool:
        """Return whether the GPU is known to have no units for a number format.

        >>> find_accelerator("A100").lacks_format("fp8"), find_accelerator("H100").lacks_format("fp8")
        (True, False)
        """
        return self.architecture in _ARCHITECTURES_WITHOUT.get(number_format, ())


@dataclasses.dataclass(frozen=True, slots=True)
class System:
    """A server or rack sold as one unit: its GPUs, links, adapters and power.

    `nvlink` [B/s, one way, per GPU], `nic` [B/s, one way, per adapter],
    `power` [W, maximum planned], memories [B]. At full power it needs
    `power_supplies_needed` of its `power_supplies`. It is also
    made with the `other_accelerators`.
    """

    id: str
    name: str
    accelerator: str
    gpus: int
    other_accelerators: tuple[str, ...] = ()
    vendor: str = ""
    launch_year: int | None = None
    gpu_memory: float | None = None
    nvswitches: int | None = None
    nvlink: float | None = None
    nics: int | None = None
    nic: float | None = None
    nic_cages: int | None = None
    scale_out_network: str = ""
    cpu: str = ""
    system_memory: float | None = None
    power: float | None = None
    power_supplies: int | None = None
    power_supplies_needed: int | None = None
    rack_units: int | None = None
    cooling: str = ""
    note: str = ""
    unverified: tuple[str, ...] = ()
    source: tuple[str, ...] = ()
    read_on: str = ""

    @property
    def capacity(self) -> float:
        """Return the usable bytes of all its GPUs [B]; `gpu_memory` is the label.

        >>> find_system("dgx-h100").capacity == 8 * find_accelerator("H100").capacity
        True
        """
        return self.gpus * find_accelerator(self.accelerator).capacity


@dataclasses.dataclass(frozen=True, slots=True)
class ReferenceDesign:
    """A published reference architecture, for a `switch` if it is made for one.

    It grows by scalable units, of which it may have none.
    """

    id: str
    name: str
    systems: tuple[str, ...] = ()
    switch: str = ""
    nodes_per_unit: int | None = None
    gpus_per_unit: int | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class NetworkPart:
    """A link standard, adapter, DPU or switch; rates in B/s, one way."""

    id: str
    name: str
    kind: str
    vendor: str = ""
    ports: int | None = None
    ports_per_cage: int = 1
    port_rate: float | None = None
    bandwidth: float | None = None
    switching_capacity: float | None = None
    switching_convention: str = ""
    pcie_generation: int | None = None
    form_factor: str = ""
    power: float | None = None
    note: str = ""
    unverified: tuple[str, ...] = ()
    source: tuple[str, ...] = ()
    read_on: str = ""


# Typed values of a custom card: the unit gives the field, or the word before a peak.
_CUSTOM_VALUE = re.compile(
    r"(?:(?P<what>[A-Za-z]+\d*)\s+)?(?P<number>\d[\d,]*(?:\.\d+)?)\s*"
    r"(?P<unit>GB/s|TB/s|GiB|MiB|GB|TFLOPS|PFLOPS|TOPS|W)\s*"
)
_CUSTOM_UNITS = {
    "GB": ("memory", 1e9),
    "GiB": ("memory", 2.0**30),
    "MiB": ("memory", 2.0**20),
    "GB/s": ("memory_bandwidth", 1e9),
    "TB/s": ("memory_bandwidth", 1e12),
    "TFLOPS": ("bf16", 1e12),
    "TOPS": ("int8", 1e12),
    "PFLOPS": ("bf16", 1e15),
    "W": ("tdp", 1.0),
}
_CUSTOM_PEAKS = {"fp32", "tf32", "bf16", "fp16", "fp8", "int8", "fp4"}
_CUSTOM_DISPLAY_UNITS = {
    "memory": (1e9, "GB"),
    "memory_bandwidth": (1e9, "GB/s"),
    "tdp": (1.0, "W"),
}


def _parse_if_custom_gpu(text: str) -> dict[str, float] | None:
    """Return the typed values of a custom card; None if the text is a name.

    Raises LookupError if some of it cannot be read.
    """
    parts = re.split(r",\s+|;", text.strip())
    matches = [_CUSTOM_VALUE.fullmatch(part.strip()) for part in parts]
    first_words = {*_CUSTOM_PEAKS, "nvlink"}
    if matches[0] is None or (matches[0]["what"] or "fp8").lower() not in first_words:
        return None
    values: dict[str, float] = {}
    for part, match in zip(parts, matches, strict=True):
        if match is None:
            raise LookupError(f"“{part}” of this card cannot be read; {_CUSTOM_EXAMPLE}.")
        field, factor = _CUSTOM_UNITS[match["unit"]]
        word = (match["what"] or "").lower()
        if word == "nvlink" and field == "memory_bandwidth":
            field = "nvlink"
        elif word and (word not in _CUSTOM_PEAKS or "/" in match["unit"]):
            raise LookupError(f"“{part}” of this card cannot be read; {_CUSTOM_EXAMPLE}.")
        field = word if word in _CUSTOM_PEAKS else field
        values[field] = float(match["number"].replace(",", "")) * factor
    if not 1e8 <= values.get("memory", 0.0) <= _LARGEST_CARD:
        raise LookupError(
            f"A card of your own needs its memory, 0.1 to 10,000 GB; {_CUSTOM_EXAMPLE}."
        )
    if not all(0 < value < _LARGEST_RATE for value in values.values()):
        raise LookupError("A value of this card is zero or larger than any card's.")
    return values


OWN_CARD = "own"
"""Kind of a custom card: its values were typed and are not from the catalog."""
_LARGEST_CARD = 1e13
_LARGEST_RATE = 1e18
_CUSTOM_EXAMPLE = "write its values like 24 GB (or 24564 MiB), 936 GB/s, 71 TFLOPS, FP8 142 TFLOPS, NVLink 56 GB/s, 350 W"


def _format_custom_gpu_value(field: str, value: float) -> str:
    """Format one value of a custom card as it is typed.

    >>> _format_custom_gpu_value("memory", 16e9), _format_custom_gpu_value("memory", 16303 * 2**20)
    ('16 GB', '16303 MiB')
    """
    if field == "nvlink":
        return f"NVLink {value / 1e9:.12g} GB/s"
    if field == "memory" and value % 1e6 and not value % 2**20:
        return f"{value / 2**20:.12g} MiB"
    if field in _CUSTOM_DISPLAY_UNITS:
        factor, unit = _CUSTOM_DISPLAY_UNITS[field]
        return f"{value / factor:.12g} {unit}"
    return f"{field.upper()} {value / 1e12:.12g} TFLOPS"


def find_accelerator_id(name: str) -> str:
    """Return the catalog id for a common name (`H100`, `H100-SXM-80GB`).

    A custom card is given by its values (`24 GB, 936 GB/s, 71 TFLOPS`), which are
    returned in a normal form. Raises LookupError with the closest ids.

    >>> find_accelerator_id("H100")
    'h100-sxm5-80'
    >>> find_accelerator_id("24GB, 0.936 TB/s, FP8 142 TFLOPS")
    '24 GB, 936 GB/s, FP8 142 TFLOPS'
    >>> find_accelerator_id("16 GiB, 960 GB/s")
    '16384 MiB, 960 GB/s'
    """
    if (custom_values := _parse_if_custom_gpu(name)) is not None:
        return ", ".join(_format_custom_gpu_value(*value) for value in custom_values.items())
    return data_files.find_id_by_alias(*ACCELERATORS, name, "an accelerator")


def find_gpu_id_by_gpu_or_system(name: str) -> str:
    """Return the catalog id of an accelerator, given by its name or that of its system.

    >>> find_gpu_id_by_gpu_or_system("H100"), find_gpu_id_by_gpu_or_system("GB200 NVL72")
    ('h100-sxm5-80', 'gb200-gpu')
    """
    try:
        return find_accelerator_id(name)
    except LookupError:
        system = data_files.load_ids_by_alias(*SYSTEMS).get(data_files.normalize_catalog_name(name))
        if system is None:
            raise
        return str(data_files.load_table_entries_by_id(*SYSTEMS)[system]["accelerator"])


def find_system_id(name: str) -> str:
    """Return the catalog id of a system; raises LookupError with the closest ids."""
    return data_files.find_id_by_alias(*SYSTEMS, name, "a system")


def find_network_part_id(name: str) -> str:
    """Return the catalog id of a network part; raises LookupError with the closest ids."""
    return data_files.find_id_by_alias(*NETWORK_PARTS, name, "a network part")


@functools.lru_cache(maxsize=1024)
def find_accelerator(name: str) -> Accelerator:
    """Return the accelerator for an id, a common name or the values of a custom card.

    Raises LookupError.
    """
    values: dict[str, Any] | None = _parse_if_custom_gpu(name)
    if values is not None:
        size = _format_custom_gpu_value("memory", values["memory"])
        return Accelerator(
            find_accelerator_id(name),
            f"own {size} card",
            kind=OWN_CARD,
            pcie_generation=4,
            **values,
        )
    row = data_files.load_table_entries_by_id(*ACCELERATORS)[find_accelerator_id(name)]
    return Accelerator(**_convert_row_to_base_units(row, _ACCELERATOR_UNITS))


def find_system(name: str) -> System:
    """Return the system for an id or common name; raises LookupError."""
    row = data_files.load_table_entries_by_id(*SYSTEMS)[find_system_id(name)]
    return System(**_convert_row_to_base_units(row, _SYSTEM_UNITS))


def find_network_part(name: str) -> NetworkPart:
    """Return the network part for an id or common name; raises LookupError."""
    row = data_files.load_table_entries_by_id(*NETWORK_PARTS)[find_network_part_id(name)]
    fields = _convert_row_to_base_units(row, _NETWORK_UNITS)
    throughput = fields.pop("throughput", None)
    if "bandwidth" not in fields:
        fields["bandwidth"] = throughput or fields.get("port_rate")
    return NetworkPart(**fields)


def find_reference_design(name: str) -> ReferenceDesign:
    """Return the reference architecture for an id; raises LookupError."""
    key = data_files.find_id_by_alias(*_REFERENCE_DESIGNS, name, "a reference architecture")
    row = data_files.load_table_entries_by_id(*_REFERENCE_DESIGNS)[key]
    return ReferenceDesign(**data_files.pick_dataclass_fields(row, ReferenceDesign))


def list_accelerators() -> tuple[Accelerator, ...]:
    return tuple(
        find_accelerator(key) for key in data_files.load_table_entries_by_id(*ACCELERATORS)
    )


def list_systems() -> tuple[System, ...]:
    return tuple(find_system(key) for key in data_files.load_table_entries_by_id(*SYSTEMS))


def list_reference_designs() -> tuple[ReferenceDesign, ...]:
    return tuple(
        find_reference_design(key)
        for key in data_files.load_table_entries_by_id(*_REFERENCE_DESIGNS)
    )


def find_reference_design_for_system(
    system: str, preferred_switch_id: str = ""
) -> ReferenceDesign | None:
    """Return the published design for a system, preferably with that switch.

    >>> find_reference_design_for_system("gb200-nvl72").nodes_per_unit
    8
    >>> [find_reference_design_for_system("dgx-b300", s).nodes_per_unit for s in ("sn5600", "q3400-ra")]
    [64, 72]
    """
    matching_designs = [d for d in list_reference_designs() if system in d.systems]
    preferred_designs = [
        d for d in matching_designs if d.switch == preferred_switch_id
    ] or matching_designs
    return preferred_designs[0] if preferred_designs else None


def list_network_parts() -> tuple[NetworkPart, ...]:
    return tuple(
        find_network_part(key) for key in data_files.load_table_entries_by_id(*NETWORK_PARTS)
    )


class FieldInBaseUnit(NamedTuple):
    """The dataclass field for a TOML key, and the factor to its base unit."""

    field_name: str
    factor_to_base_unit: float


_ACCELERATOR_UNITS: dict[str, FieldInBaseUnit] = {
    "memory_gb": FieldInBaseUnit("memory", 1e9),
    "memory_gib": FieldInBaseUnit("memory", 2.0**30),
    "driver_memory_mib": FieldInBaseUnit("driver_memory", 2.0**20),
    "engine_memory_mib": FieldInBaseUnit("engine_memory", 2.0**20),
    "memory_bandwidth_gb_per_s": FieldInBaseUnit("memory_bandwidth", 1e9),
    "fp32_tflops_dense": FieldInBaseUnit("fp32", 1e12),
    "tf32_tflops_dense": FieldInBaseUnit("tf32", 1e12),
    "bf16_tflops_dense": FieldInBaseUnit("bf16", 1e12),
    "fp16_tflops_dense": FieldInBaseUnit("fp16", 1e12),
    "fp8_tflops_dense": FieldInBaseUnit("fp8", 1e12),
    "int8_tops_dense": FieldInBaseUnit("int8", 1e12),
    "fp4_tflops_dense": FieldInBaseUnit("fp4", 1e12),
    "tdp_w": FieldInBaseUnit("tdp", 1.0),
    "nvlink_gb_per_s_one_way": FieldInBaseUnit("nvlink", 1e9),
}
_SYSTEM_UNITS: dict[str, FieldInBaseUnit] = {
    "total_gpu_memory_gb": FieldInBaseUnit("gpu_memory", 1e9),
    "nvlink_gb_per_s_one_way": FieldInBaseUnit("nvlink", 1e9),
    "nic_gbit_per_s_one_way": FieldInBaseUnit("nic", 1e9 / 8),
    "system_memory_gb": FieldInBaseUnit("system_memory", 1e9),
    "power_max_kw": FieldInBaseUnit("power", 1e3),
}
_NETWORK_UNITS: dict[str, FieldInBaseUnit] = {
    "port_gbit_per_s_one_way": FieldInBaseUnit("port_rate", 1e9 / 8),
    "throughput_gbit_per_s_one_way": FieldInBaseUnit("throughput", 1e9 / 8),
    "bandwidth_gb_per_s_one_way": FieldInBaseUnit("bandwidth", 1e9),
    "switching_capacity_tbit_per_s": FieldInBaseUnit("switching_capacity", 1e12 / 8),
    "power_max_w": FieldInBaseUnit("power", 1.0),
}

# One way over 16 lanes, after line coding.
_PCIE_RATE_BY_GENERATION: dict[int, float] = {3: 15.75e9, 4: 31.5e9, 5: 63e9, 6: 121e9}

# Keys that describe the entry's values, or repeat the name of the GPU and `nvlink` of each.
_NO_FIELDS = frozenset(
    {"aliases", "cited", "sparse", "unknown", "gpu", "nvlink_total_tb_per_s_both_ways"}
)


def field_of_toml_key(key: str) -> str:
    """Return the dataclass field for a key of an entry, or the key itself.

    >>> field_of_toml_key("bf16_tflops_dense"), field_of_toml_key("launch_year")
    ('bf16', 'launch_year')
    """
    fields = {**_NETWORK_UNITS, **_SYSTEM_UNITS, **_ACCELERATOR_UNITS}
    return fields[key].field_name if key in fields else key


def _convert_row_to_base_units(
    row: dict[str, Any], fields: dict[str, FieldInBaseUnit]
) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for key, value in row.items():
        if field := fields.get(
            key
        ):  # Without the floating-point error of scaling with a power of ten.
            values[field.field_name] = float(f"{value * field.factor_to_base_unit:.12g}")
        elif key not in _NO_FIELDS:
            values[key] = tuple(value) if isinstance(value, list) else value
    return values | {key: str(row[key]) for key in ("read_on", "memory_read_on") if key in row}


# Formats whose dense rate doubles with sparsity: NVIDIA from Ampere, AMD from CDNA 3.
# The block-scaled FP4 of CDNA 4 does not double.
_NVIDIA_SPARSE_RATE_NAMES = frozenset({"tf32", "bf16", "fp16", "fp8", "int8", "fp4"})
_DOUBLED_BY_SPARSITY: Mapping[str, frozenset[str]] = {
    **dict.fromkeys(("Ampere", "Ada Lovelace", "Hopper", "Blackwell"), _NVIDIA_SPARSE_RATE_NAMES),
    "CDNA 3": frozenset({"tf32", "bf16", "fp16", "fp8", "int8"}),
    "CDNA 4": frozenset({"bf16", "fp16", "fp8", "int8"}),
}
_WITHOUT_SPARSITY = frozenset({"Volta", "Turing", "TPU", "Gaudi"})


def sparse_peak_rate(
    card: Accelerator, number_format: str, stated_sparse_tflops: Mapping[str, float]
) -> float | None:
    """Return the peak with 2:4 sparsity [FLOP/s]; None if there is none or it is unknown.

    `stated_sparse_tflops` are the rates that a source states, in units of 10^12.

    >>> sparse_peak_rate(find_accelerator("H100"), "fp8", {})
    3957800000000000.0
    """
    if number_format in stated_sparse_tflops:
        return stated_sparse_tflops[number_format] * 1e12
    dense: float | None = getattr(card, number_format)
    is_doubled = number_format in _DOUBLED_BY_SPARSITY.get(card.architecture, ())
    return 2 * dense if is_doubled and dense is not None else None


def has_no_sparsity(card: Accelerator) -> bool:
    """Return whether the GPU is known to have no sparse rate in any format."""
    return card.architecture in _WITHOUT_SPARSITY


def find_gpu_cooling(gpu_id: str) -> str:
    """Return `air`, `liquid`, or "" if the catalog does not know.

    Cards are air-cooled; a module is cooled like the systems that contain it.

    >>> find_gpu_cooling("h100-sxm5-80"), find_gpu_cooling("gb200-gpu"), find_gpu_cooling("mi355x")
    ('air', 'liquid', '')
    """
    if is_pcie_card(find_accelerator(gpu_id)):
        return "air"
    ways = {s.cooling.split()[0] for s in list_systems() if s.accelerator == gpu_id and s.cooling}
    return "air" if "air" in ways else "liquid" if ways else ""


def is_pcie_card(gpu: Accelerator) -> bool:
    return gpu.form_factor.startswith("PCIe")


# Modules that NVIDIA also sells on boards of four.
_BOARDS_OF_FOUR = {"v100-sxm2-32", "a100-sxm4-40", "a100-sxm4-80", "h100-sxm5-80", "h200-sxm5-141"}


class SalesUnit(NamedTuple):
    """GPUs that are sold together: a card, module, board or rack."""

    gpus: int
    kind: str


class GpuOrder(NamedTuple):
    """GPUs that are bought, in whole sales units of a kind."""

    gpus: int
    unit_kind: str


def list_sales_units(gpu: Accelerator) -> tuple[SalesUnit, ...]:
    """Return the units that can be bought, smallest first: cards, boards or racks.

    >>> list_sales_units(find_accelerator("H200"))
    (SalesUnit(gpus=4, kind='board'), SalesUnit(gpus=8, kind='board'))
    >>> [list_sales_units(find_accelerator(n))[0].kind for n in ("b300-sxm", "gb200-gpu", "l40s")]
    ['board', 'rack', 'card']
    """
    if "72-GPU" in gpu.interconnect:
        return (SalesUnit(72, "rack"),)
    if is_pcie_card(gpu):
        return (SalesUnit(1, "card"),)
    if gpu.form_factor.startswith("Superchip"):
        return (SalesUnit(1, "module"),)
    four = (SalesUnit(4, "board"),) if gpu.id in _BOARDS_OF_FOUR else ()
    return (*four, SalesUnit(8, "board"))


def round_up_to_sales_unit(gpu: Accelerator, count: int) -> GpuOrder:
    """Return what is bought if `count` GPUs are needed.

    >>> round_up_to_sales_unit(find_accelerator("b300-sxm"), 4)
    GpuOrder(gpus=8, unit_kind='board')
    >>> round_up_to_sales_unit(find_accelerator("gb200-gpu"), 73)
    GpuOrder(gpus=144, unit_kind='rack')
    """
    units = list_sales_units(gpu)
    unit = next((u for u in units if u.gpus >= count), units[-1])
    return GpuOrder(-(-count // unit.gpus) * unit.gpus, unit.kind)


def describe_gpu_count_with_sales_unit(gpu: Accelerator, count: int) -> str:
    """Return a number of GPUs as text, with their sales unit.

    >>> describe_gpu_count_with_sales_unit(find_accelerator("b300-sxm"), 4)
    '4x B300 SXM (Blackwell Ultra), sold on boards of 8'
    """
    text = f"{format_number(count)}x {gpu.name}"
    bought = round_up_to_sales_unit(gpu, count)
    if bought.gpus == count:
        return text
    return f"{text}, sold {_SOLD_IN[bought.unit_kind]} of {bought.gpus}"


_SOLD_IN = {"card": "as cards", "module": "as modules", "board": "on boards", "rack": "in racks"}


def largest_sales_unit_size(gpu: Accelerator) -> int:
    """Return the sales unit for a large job: a card, a board or a rack."""
    return list_sales_units(gpu)[-1].gpus


_EXPORT_VERSION_NOTE, _CONSUMER_CARD_NOTE = (
    "An export version.",
    "A consumer card; its license keeps it out of data centers.",
)
_NOTE_BY_RARE_GPU = {
    "a10g": "Sold only inside the instances of one cloud.",
    "a800-sxm4-80": _EXPORT_VERSION_NOTE,
    "h800-sxm-80": _EXPORT_VERSION_NOTE,
    "h20-sxm-96": _EXPORT_VERSION_NOTE,
    "l20": _EXPORT_VERSION_NOTE,
    "h100-sxm-96-hbm2e": "A power-capped version that is hardly sold.",
    "b100-sxm": "Announced, but hardly seen.",
    "rtx-3090": _CONSUMER_CARD_NOTE,
    "rtx-4090": _CONSUMER_CARD_NOTE,
    "rtx-5080": _CONSUMER_CARD_NOTE,
    "rtx-5090": _CONSUMER_CARD_NOTE,
    "rtx-a6000": "A workstation card.",
    "rtx-6000-ada": "A workstation card.",
    "rtx-pro-6000-bw-ws": "A workstation card.",
}


def find_sale_restriction(gpu: Accelerator) -> str:
    """Return why a GPU cannot be bought like others; empty if it can."""
    return "Announced, not sold yet." if gpu.announced else _NOTE_BY_RARE_GPU.get(gpu.id, "")


_SOLD_SINCE = 2022
"""Launch of the oldest GPUs that count as sold today; assumed."""


def list_larger_gpus_of_form(gpu: Accelerator) -> list[Accelerator]:
    """Return GPUs of the vendor with more memory, smallest first, that are sold for such a place.

    Cards, or modules on boards as large as its own, and not the parts of racks and superchips.

    >>> [other.id for other in list_larger_gpus_of_form(find_accelerator("H100"))]
    ['h200-sxm5-141', 'b200-sxm', 'b300-sxm']
    """
    unit = list_sales_units(gpu)[-1]
    if gpu.kind != "accelerator" or unit.kind == "rack":
        return []
    larger = [
        other
        for other in list_accelerators()
        if (other.vendor, other.kind, list_sales_units(other)[-1]) == (gpu.vendor, gpu.kind, unit)
        and other.capacity > gpu.capacity
        and (other.launch_year or 0) >= _SOLD_SINCE
        and find_sale_restriction(other) in ("", _NOTE_BY_RARE_GPU.get(gpu.id))
    ]
    return sorted(larger, key=lambda other: other.capacity)
