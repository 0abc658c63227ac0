"""Power, cooling, racks, energy, carbon."""

import math

# Air at sea level and 20 °C: density [kg/m³] and specific heat [J/(kg·K)].
_AIR, _AIR_HEAT = 1.2, 1005.0
_WATER, _WATER_HEAT = 997.0, 4180.0
BTU_PER_HOUR = 3.412141633  # BTU/h per watt.
CUBIC_FEET_PER_MINUTE = 2118.880003  # Cubic feet per minute in a cubic meter per second.


def site_power(machines: float, pue: float) -> float:
    """Power that the whole site draws for its machines [W].

    P = IT · PUE.

    `machines`: power of the machines [W]; `pue`: power of the site over that of the machines,
    at least 1. From iso-30134-2.

    >>> site_power(1e6, 1.6)
    1600000.0
    """
    if pue < 1:
        raise ValueError(f"a PUE below 1 is impossible: {pue}")
    return machines * pue


def phase_current(watts: float, volts: float, power_factor: float = 1.0) -> float:
    """Current in each phase of a three-phase circuit [A].

    I = P / (√3 · V · cos φ).

    `watts`: power drawn [W]; `volts`: between two phases [V], positive; `power_factor`: real
    over apparent power, above 0 and at most 1. From ieee-1459.

    >>> round(phase_current(10_200.0, 415.0, 0.95), 1)
    14.9
    """
    if volts <= 0 or not 0 < power_factor <= 1:
        raise ValueError("voltage and power factor must be positive")
    return watts / (math.sqrt(3) * volts * power_factor)


def heat_in_btu(watts: float) -> float:
    """Heat in the unit of cooling plants [BTU/h]: all power becomes heat.

    >>> round(heat_in_btu(10_200.0))
    34804
    """
    return watts * BTU_PER_HOUR


def air_flow(watts: float, rise: float) -> float:
    """Air flow that removes heat at a given rise of its temperature [m3/s].

    V = P / (ρ · c · ΔT) with air at sea level.

    `watts`: heat [W]; `rise`: temperature of the exhaust air above the intake air [°C],
    positive. From ashrae-datacom.

    >>> round(air_flow(10_200.0, 16.2), 2)
    0.52
    """
    if rise <= 0:
        raise ValueError(f"air that is not warmed carries no heat: {rise}")
    return watts / (_AIR * _AIR_HEAT * rise)


def coolant_flow(watts: float, rise: float) -> float:
    """Water flow that removes heat at a given rise of its temperature [m3/s].

    V = P / (ρ · c · ΔT).

    `watts`: heat [W]; `rise`: return temperature above supply temperature [°C], positive. From
    ashrae-datacom.

    >>> round(coolant_flow(115_000.0, 10.0) * 60_000)
    166
    """
    if rise <= 0:
        raise ValueError(f"water that is not warmed carries no heat: {rise}")
    return watts / (_WATER * _WATER_HEAT * rise)


def nodes_in_rack(limit: float, watts: float, rack_units: int, units: int) -> int:
    """Machines per rack: the smaller of what its power and its height allow [1].

    `limit`: power of a rack [W]; `watts`: power of one machine, with its share of other
    equipment in the rack [W]; `rack_units`: height of the rack; `units`: height of one machine.

    >>> nodes_in_rack(30e3, 14.3e3, 48, 10), nodes_in_rack(60e3, 14.3e3, 48, 10)
    (2, 4)
    """
    return int(min(limit // watts, rack_units // units))


def energy(gpu_seconds: float, watts: float, pue: float = 1.0) -> float:
    """Energy drawn from the grid [W·s].

    E = GPU-time·P·PUE.

    `gpu_seconds`: accelerators times their running time [s]; `watts`: power per accelerator,
    with its share of the host if wanted [W]; `pue`: power of the whole site over that of the
    machines, at least 1. From llama-1, table 15.

    >>> round(energy(82432 * 3600.0, 400.0, 1.1) / 3.6e9, 3)
    36.27
    """
    if pue < 1:
        raise ValueError(f"a PUE below 1 is impossible: {pue}")
    return gpu_seconds * watts * pue


def carbon(energy_drawn: float, kg_per_kwh: float) -> float:
    """Carbon dioxide emitted for energy from a grid [kg].

    `energy_drawn`: energy [W·s]; `kg_per_kwh`: carbon intensity of the grid [kg/kWh]. From
    llama-2, table 2.

    >>> carbon(3.6e6, 0.385)
    0.385
    """
    return energy_drawn / 3.6e6 * kg_per_kwh
