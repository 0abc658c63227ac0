"""`power-cooling`: inputs, result, and the input values where the verdict changes."""

import dataclasses
import math
from typing import TypeVar

from app.estimator.common_inputs import impossible_input_error
from app.estimator.hardware.catalog import System, find_accelerator, find_system
from app.estimator.inputs import InputGroup
from app.estimator.result import Status, VerdictChange
from app.estimator.training.run_costs import carbon_emitted_kg, site_energy_watt_seconds
from app.estimator.units import format_count, format_number
from app.estimator.verdict_changes import build_number_change, format_rounded_past_limit

TOPIC = "power-and-cooling"

# Air at sea level and 20 °C: density [kg/m³] and specific heat [J/(kg·K)].
_AIR_DENSITY, _AIR_SPECIFIC_HEAT = 1.2, 1005.0
_WATER_DENSITY, _WATER_SPECIFIC_HEAT = 997.0, 4180.0
BTU_PER_HOUR = 3.412141633  # BTU/h per watt.
BTU_PER_TON_HOUR = 12_000.0  # BTU/h that a ton of refrigeration removes.
CUBIC_FEET_PER_MINUTE = 2118.880003  # Cubic feet per minute in a cubic meter per second.

_MACHINES = InputGroup("Machines", "cluster-components")
_RACKS = InputGroup("Racks", TOPIC)
_SITE = InputGroup("Site", TOPIC)
_ELECTRICITY = InputGroup("Electricity", TOPIC)
_COOLING = InputGroup("Cooling", TOPIC)
_ENERGY = InputGroup("Energy", TOPIC)

FEED_CHOICES = (("2n", "2N"), ("n+1", "N+1"), ("n", "N"))

ValueT = TypeVar("ValueT", int, float)


def _usual_rack_limit(inputs: "PowerCoolingInputs") -> float:
    """Return the power that a rack is assumed to have, in W."""
    return max(RACK_LIMIT, find_system(inputs.system).power or 0.0)


@dataclasses.dataclass(frozen=True, slots=True)
class PowerCoolingInputs:
    system: str = _MACHINES.declare_input_field(
        "dgx-h100",
        "System",
        kind="system",
        help="Brings the highest power, the height and the way it is cooled.",
    )
    nodes: int = _MACHINES.declare_input_field(
        32,
        "Systems",
        unit="node",
        limits=(1, 1_000_000),
        help="Servers, or racks where a rack is the system.",
    )
    rack_limit: float | None = _RACKS.declare_input_field(
        None,
        "Power of a rack",
        unit="kW",
        limits=(1e3, 1e7),
        help="The most that the building powers and cools in one rack; left empty: 40 kW, or "
        "what a system draws that is a rack by itself.",
        compute_usual_value=_usual_rack_limit,
    )
    pue: float = _SITE.declare_input_field(
        1.3,
        "PUE",
        limits=(1.0, 5.0),
        help="Power of the site over that of its machines, about 1.1 to 1.6; surveys "
        "put the average of the industry at 1.54 (2025).",
        term="pue",
    )
    site_limit: float | None = _SITE.declare_input_field(
        None,
        "Power of the site",
        unit="kW",
        limits=(1e3, 1e11),
        help="What the site can draw in all, cooling included; left empty: no limit.",
    )
    load: float | None = _MACHINES.declare_advanced_input_field(
        None,
        "Typical load",
        unit="%",
        limits=(0.05, 1.0),
        help="Typical over highest power; left empty: 80%, as a server with eight "
        "H100 was measured at 82% at most while training.",
        compute_usual_value=lambda _: TYPICAL_POWER_SHARE,
        topic=TOPIC,
    )
    other: float = _MACHINES.declare_advanced_input_field(
        0.1,
        "Network and storage",
        unit="%",
        limits=(0.0, 2.0),
        help="Power of switches, storage and management over that of the systems.",
    )
    node_power: float | None = _MACHINES.declare_advanced_input_field(
        None,
        "Highest power of a system",
        unit="kW",
        limits=(10.0, 1e7),
        help="Left empty: as the vendor plans it.",
        term="tdp",
        topic=TOPIC,
    )
    node_units: int | None = _RACKS.declare_advanced_input_field(
        None,
        "Height of a system",
        kind="count",
        limits=(1, 100),
        help="In rack units of 44.45 mm; left empty: that of the system.",
        topic="cluster-components",
    )
    rack_units: int = _RACKS.declare_advanced_input_field(
        48, "Height of a rack", limits=(1, 100), help="In rack units; common are 42, 48 and 52."
    )
    voltage: float = _ELECTRICITY.declare_advanced_input_field(
        415.0,
        "Voltage",
        unit="V",
        limits=(48.0, 1000.0),
        help="Between two phases: 400 or 415 V in most of the world, 208 or 415 V in "
        "North America.",
    )
    power_factor: float = _ELECTRICITY.declare_advanced_input_field(
        0.95,
        "Power factor",
        limits=(0.1, 1.0),
        help="Real over apparent power of the supplies under load.",
    )
    circuit: float = _ELECTRICITY.declare_advanced_input_field(
        60.0,
        "Breaker of a circuit",
        unit="A",
        limits=(1.0, 10_000.0),
        help="For each phase; four fifths of it may flow for hours.",
        term="pdu",
    )
    feeds: str = _ELECTRICITY.declare_advanced_input_field(
        "2n",
        "Redundancy of feeds",
        choices=FEED_CHOICES,
        help="Two full feeds, one circuit more than needed, or none.",
    )
    air_rise: float = _COOLING.declare_advanced_input_field(
        16.0,
        "Warming of the air",
        unit="°C",
        limits=(1.0, 60.0),
        help="From the front to the back of a machine; published air flows of DGX "
        "systems come to 16 °C.",
        term="hot-aisle",
    )
    liquid: float | None = _COOLING.declare_advanced_input_field(
        None,
        "Heat taken by liquid",
        unit="%",
        limits=(0.0, 1.0),
        help="The rest warms the air; left empty: 85% of a liquid-cooled system, "
        "nothing of others.",
        term="direct-to-chip-cooling",
    )
    liquid_rise: float = _COOLING.declare_advanced_input_field(
        10.0,
        "Warming of the liquid",
        unit="°C",
        limits=(1.0, 60.0),
        help="From inlet to outlet; reckoned as water.",
        term="cdu",
    )
    duration: float = _ENERGY.declare_advanced_input_field(
        365 * 86400.0,
        "Running time",
        unit="days",
        limits=(60.0, 1e10),
        help="For energy and carbon.",
    )
    carbon_intensity: float = _ENERGY.declare_advanced_input_field(
        0.48,
        "Carbon intensity",
        unit="g/kWh",
        limits=(0.0, 3.0),
        help="Of the electricity; Ember put the world at about 480 g in 2023, Norway "
        "at 30, India at 713.",
    )


@dataclasses.dataclass(frozen=True, slots=True)
class PowerCoolingResult:
    """A site; power is maximum and typical [W].

    `all_gpus_power` is that of all GPUs, None if it is not known. `current` is that of a full rack.
    """

    inputs: PowerCoolingInputs
    system: System
    system_power: float
    system_height_units: int
    typical_load_share: float
    all_gpus_power: float | None
    network_and_storage_power: float
    systems_per_rack: int
    racks: int | None
    machines_power: float
    site_power: float
    current: float
    circuits: int
    liquid_cooled_share: float
    site_energy_wh: float
    carbon_kg: float

    @property
    def rack_power(self) -> float:
        """Return the maximum power of a full rack, or of one system if none fits [W]."""
        return self.system_power * max(1, self.systems_per_rack)

    @property
    def typical_machines_power(self) -> float:
        return self.machines_power * self.typical_load_share

    @property
    def typical_site_power(self) -> float:
        return self.site_power * self.typical_load_share

    @property
    def max_systems_power(self) -> float:
        return self.inputs.nodes * self.system_power

    @property
    def rack_limit(self) -> float:
        """Return the power that a rack may draw, typed or assumed [W]."""
        return self.inputs.rack_limit or max(RACK_LIMIT, self.system.power or 0.0)

    @property
    def rack_air_heat(self) -> float:
        """Return the heat of a full rack that liquid does not remove [W]."""
        return self.rack_power * (1 - self.liquid_cooled_share)

    @property
    def needed_coolant_flow(self) -> float:
        """Return the coolant flow for the liquid-cooled share of the heat [m3/s]."""
        return coolant_flow(
            self.max_systems_power * self.liquid_cooled_share, self.inputs.liquid_rise
        )

    @property
    def status(self) -> Status:
        """Return `no` if a system does not fit in a rack or the site lacks the power."""
        limit = self.inputs.site_limit
        if self.racks is None or (limit is not None and self.site_power > limit):
            return "no"
        is_near_site_limit = limit is not None and self.site_power > _TIGHT_SITE_POWER_SHARE * limit
        return "tight" if is_near_site_limit or self.rack_air_heat > DENSE_RACK_WATTS else "fits"

    def air_flow_for_heat_beside_liquid(self, watts: float) -> float:
        """Return the air flow for the heat that liquid does not remove [m3/s]."""
        return air_flow(watts * (1 - self.liquid_cooled_share), self.inputs.air_rise)


# Typical over maximum power: a server with eight H100 drew at most 8.4 of its 10.2 kW
# in training, and 6.5 kW under lighter loads.
TYPICAL_POWER_SHARE = 0.8

# Share of a breaker's rating for continuous load, and of heat that cold plates remove.
CONTINUOUS_LOAD_SHARE = 0.8

COLD_PLATES = 0.85

RACK_LIMIT = 40e3  # Power of a rack that many buildings can cool with air [W].

# Air-cooled racks above this are rare; published designs reach 57 kW.
DENSE_RACK_WATTS = 50e3
_TIGHT_SITE_POWER_SHARE = 0.9


def compute_power_and_cooling(inputs: PowerCoolingInputs) -> PowerCoolingResult:
    """Size a site; raises InvalidInputsError if a needed value of the system is unknown."""
    system = find_system(inputs.system)
    power, rack_units = inputs.node_power or system.power, inputs.node_units or system.rack_units
    node = _require_known_value(power, "node_power", "highest power", system)
    units = _require_known_value(rack_units, "node_units", "height", system)
    rack_limit = inputs.rack_limit or _usual_rack_limit(inputs)
    inputs = dataclasses.replace(inputs, rack_limit=rack_limit)
    in_rack = max_nodes_in_rack(rack_limit, node, inputs.rack_units, units)
    other_power = inputs.nodes * node * inputs.other
    machines = inputs.nodes * node + other_power
    load = inputs.load or TYPICAL_POWER_SHARE
    site = site_power(machines, inputs.pue)
    current = phase_current(node * max(1, in_rack), inputs.voltage, inputs.power_factor)
    circuits = math.ceil(current / (inputs.circuit * CONTINUOUS_LOAD_SHARE) - 1e-9)
    site_joules = site_energy_watt_seconds(inputs.duration, machines * load, inputs.pue)
    return PowerCoolingResult(
        inputs=inputs,
        system=system,
        system_power=node,
        system_height_units=units,
        typical_load_share=load,
        all_gpus_power=_sum_gpu_tdp_unless_above_system_power(inputs, system, node),
        network_and_storage_power=other_power,
        systems_per_rack=in_rack,
        racks=-(-inputs.nodes // in_rack) if in_rack else None,
        machines_power=machines,
        site_power=site,
        current=current,
        circuits={"2n": 2 * circuits, "n+1": circuits + 1, "n": circuits}[inputs.feeds],
        liquid_cooled_share=_liquid_cooled_share(inputs, system),
        site_energy_wh=site_joules / 3600,
        carbon_kg=carbon_emitted_kg(site_joules, inputs.carbon_intensity),
    )


def _require_known_value(
    value: ValueT | None, field: str, value_name: str, system: System
) -> ValueT:
    if value is None:
        message = f"The {value_name} of the {system.name} is not known: write it."
        raise impossible_input_error(field, "", message)
    return value


def _sum_gpu_tdp_unless_above_system_power(
    inputs: PowerCoolingInputs, system: System, system_power: float
) -> float | None:
    """Return the limits of all GPUs [W]; None if unknown or above the system's own power."""
    tdp = find_accelerator(system.accelerator).tdp
    if tdp is None or tdp * system.gpus > system_power:
        return None
    return tdp * system.gpus * inputs.nodes


def _liquid_cooled_share(inputs: PowerCoolingInputs, system: System) -> float:
    if inputs.liquid is not None:
        return inputs.liquid
    return COLD_PLATES if system.cooling.startswith("liquid") else 0.0


def find_verdict_changes(result: PowerCoolingResult) -> tuple[VerdictChange, ...]:
    """Return the limits and sizes at which the verdict on racks or site changes."""
    return (*_rack_changes(result), *_site_changes(result))


def _rack_changes(result: PowerCoolingResult) -> tuple[VerdictChange, ...]:
    """Return the rack power for fewer or more racks, or for none, or the needed rack height."""
    inputs = result.inputs
    capacity = inputs.rack_units // result.system_height_units
    if capacity == 0:
        units_now, then = str(inputs.rack_units), str(result.system_height_units)
        return (VerdictChange("rack_units", "Height of a rack", units_now, then, "Holds one."),)
    if result.racks is None:
        return _rack_limit_change(result, 1, rounds_up=True)
    changes: list[VerdictChange] = []
    if result.racks > 1 and (more := -(-inputs.nodes // (result.racks - 1))) <= capacity:
        changes += _rack_limit_change(result, more, rounds_up=True)
    fewer = -(-inputs.nodes // result.racks) - 1
    for count in sorted({fewer, 0}, reverse=True):
        changes += _rack_limit_change(result, count, rounds_up=False)
    return tuple(changes)


def _rack_limit_change(
    result: PowerCoolingResult, systems_per_rack: int, *, rounds_up: bool
) -> tuple[VerdictChange, ...]:
    """Return the least rack power for this many systems, or the most that holds no more."""
    holds = "one system" if systems_per_rack == 1 else f"{systems_per_rack} systems"
    racks = -(-result.inputs.nodes // systems_per_rack) if systems_per_rack else None
    becomes = f"Holds {holds}: {format_count(racks, 'rack')}." if racks else "Holds none."
    limit = result.system_power * (
        systems_per_rack if rounds_up else 0.999 * (systems_per_rack + 1)
    )
    return build_number_change(
        result.inputs,
        "rack_limit",
        limit,
        becomes,
        unit=" kW",
        unit_factor=1e3,
        rounds_up=rounds_up,
    )


def _site_changes(result: PowerCoolingResult) -> tuple[VerdictChange, ...]:
    inputs = result.inputs
    limit = inputs.site_limit
    if limit is None or result.racks is None:
        return ()
    site_power_per_node = result.site_power / inputs.nodes
    max_nodes = int(limit / site_power_per_node + 1e-9)
    fits = result.site_power <= limit
    becomes = "Too much for the site." if fits else "Fits."
    changes = []
    then = max_nodes + 1 if fits else max_nodes
    if 0 < then <= 1_000_000:
        now = format_number(inputs.nodes)
        changes.append(VerdictChange("nodes", "Systems", now, format_number(then), becomes))
    pue = limit / result.machines_power
    if 1 <= pue <= 5:
        now = format_number(inputs.pue)
        changes.append(
            VerdictChange(
                "pue", "PUE", now, format_rounded_past_limit(pue, rounds_up=fits), becomes
            )
        )
    return tuple(changes)


def site_power(machines_power: float, pue: float) -> float:
    """Power that the whole site draws for its machines [W].

    P = IT · PUE. From iso-30134-2.

    >>> site_power(1e6, 1.6)
    1600000.0
    """
    if pue < 1:
        raise ValueError(f"a PUE below 1 is impossible: {pue}")
    return machines_power * pue


def phase_current(watts: float, volts: float, power_factor: float = 1.0) -> float:
    """Current in each phase of a three-phase circuit [A].

    I = P / (√3 · V · cos φ), with the voltage between two phases. From ieee-1459.

    >>> round(phase_current(10_200.0, 415.0, 0.95), 1)
    14.9
    """
    if volts <= 0 or not 0 < power_factor <= 1:
        raise ValueError("voltage and power factor must be positive")
    return watts / (math.sqrt(3) * volts * power_factor)


def heat_in_btu_per_hour(watts: float) -> float:
    """Heat in the unit of cooling plants [BTU/h]: all power becomes heat.

    >>> round(heat_in_btu_per_hour(10_200.0))
    34804
    """
    return watts * BTU_PER_HOUR


def air_flow(watts: float, temperature_rise: float) -> float:
    """Air flow that removes heat at a given rise of its temperature [m3/s].

    V = P / (ρ · c · ΔT) with air at sea level. From ashrae-datacom.

    >>> round(air_flow(10_200.0, 16.2), 2)
    0.52
    """
    if temperature_rise <= 0:
        raise ValueError(f"air that is not warmed carries no heat: {temperature_rise}")
    return watts / (_AIR_DENSITY * _AIR_SPECIFIC_HEAT * temperature_rise)


def coolant_flow(watts: float, temperature_rise: float) -> float:
    """Water flow that removes heat at a given rise of its temperature [m3/s].

    V = P / (ρ · c · ΔT). From ashrae-datacom.

    >>> round(coolant_flow(115_000.0, 10.0) * 60_000)
    166
    """
    if temperature_rise <= 0:
        raise ValueError(f"water that is not warmed carries no heat: {temperature_rise}")
    return watts / (_WATER_DENSITY * _WATER_SPECIFIC_HEAT * temperature_rise)


def max_nodes_in_rack(
    rack_power: float, node_power: float, rack_units: int, node_units: int
) -> int:
    """Machines per rack: the smaller of what its power and its height allow [1].

    >>> max_nodes_in_rack(30e3, 14.3e3, 48, 10), max_nodes_in_rack(60e3, 14.3e3, 48, 10)
    (2, 4)
    """
    return int(min(rack_power // node_power, rack_units // node_units))
