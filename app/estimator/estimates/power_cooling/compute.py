"""How systems are racked, fed and cooled."""

import dataclasses
import math

from app.estimator.estimates.power_cooling.asked import PowerCoolingInputs
from app.estimator.hardware.accelerators import System, find_accelerator, find_system
from app.estimator.hardware.energy import carbon, energy
from app.estimator.hardware.facility import (
    air_flow,
    coolant_flow,
    nodes_in_rack,
    phase_current,
    site_power,
)
from app.estimator.shared_inputs import input_error


@dataclasses.dataclass(frozen=True, slots=True)
class PowerCoolingResult:
    """A site; powers [W], at most and typical."""

    system: System
    node: float
    units: int
    load: float
    gpus: float | None
    others: float
    in_rack: int
    racks: int | None
    machines: float
    site: float
    current: float
    circuits: int
    liquid: float
    energy: float
    carbon: float

    @property
    def rack(self) -> float:
        """The highest power of a full rack, or of one system where none fits [W]."""
        return self.node * max(1, self.in_rack)

    @property
    def short(self) -> tuple[int, int] | None:
        """Supplies left when one of two feeds fails, and needed; None if enough."""
        supplies = self.system.power_supplies or 0
        left, needed = supplies // 2, self.system.power_supplies_needed or 0
        return (left, needed) if left < needed else None

    @property
    def typical(self) -> float:
        """Typical power of the machines [W]."""
        return self.machines * self.load

    @property
    def site_typical(self) -> float:
        """Typical power of the site [W]."""
        return self.site * self.load


# Typical over highest power: a server with eight H100 drew at most 8.4 of its 10.2 kW
# in training, and 6.5 kW under lighter loads.
LOAD = 0.8


# Share of a breaker that may flow for hours, and of heat that cold plates take.
CONTINUOUS = 0.8


COLD_PLATES = 0.85


def find(asked: PowerCoolingInputs) -> PowerCoolingResult:
    """Size a site; BadInputs names what is not known of the system."""
    system = find_system(asked.system)
    node, units = _sizes(asked, system)
    in_rack = nodes_in_rack(asked.rack_limit, node, asked.rack_units, units)
    others = asked.nodes * node * asked.other
    machines = asked.nodes * node + others
    load = asked.load or LOAD
    site = site_power(machines, asked.pue)
    full = node * max(1, in_rack)
    current = phase_current(full, asked.voltage, asked.power_factor)
    drawn = energy(asked.duration, machines * load, asked.pue)
    return PowerCoolingResult(
        system=system,
        node=node,
        units=units,
        load=load,
        gpus=_gpu_power(asked, system, node),
        others=others,
        in_rack=in_rack,
        racks=-(-asked.nodes // in_rack) if in_rack else None,
        machines=machines,
        site=site,
        current=current,
        circuits=_circuits(asked, current),
        liquid=_liquid(asked, system),
        energy=drawn / 3600,
        carbon=carbon(drawn, asked.carbon_intensity),
    )


def _sizes(asked: PowerCoolingInputs, system: System) -> tuple[float, int]:
    """Highest power [W] and rack units of a system, as typed or as published."""
    node = asked.node_power or system.power
    if node is None:
        raise input_error("node_power", "", _unknown("highest power", system))
    units = asked.node_units or system.rack_units
    if units is None:
        raise input_error("node_units", "", _unknown("height", system))
    return node, units


def _unknown(what: str, system: System) -> str:
    return f"The {what} of the {system.name} is not known: write it."


def _gpu_power(asked: PowerCoolingInputs, system: System, node: float) -> float | None:
    """Limits of all GPUs [W]; None where unknown or above the system's own power."""
    each = find_accelerator(system.accelerator).tdp
    if each is None or each * system.gpus > node:
        return None
    return each * system.gpus * asked.nodes


def _circuits(asked: PowerCoolingInputs, current: float) -> int:
    needed = math.ceil(current / (asked.circuit * CONTINUOUS) - 1e-9)
    return {"2n": 2 * needed, "n+1": needed + 1, "n": needed}[asked.feeds]


def _liquid(asked: PowerCoolingInputs, system: System) -> float:
    """Share of the heat that liquid takes."""
    if asked.liquid is not None:
        return asked.liquid
    return COLD_PLATES if system.cooling.startswith("liquid") else 0.0


def air_of(asked: PowerCoolingInputs, found: PowerCoolingResult, watts: float) -> float:
    """Air that the rest of a heat needs beside liquid [m3/s]."""
    return air_flow(watts * (1 - found.liquid), asked.air_rise)


def coolant_of(asked: PowerCoolingInputs, found: PowerCoolingResult) -> float:
    """Coolant for the systems' share of the heat [m3/s]."""
    heat = asked.nodes * found.node * found.liquid
    return coolant_flow(heat, asked.liquid_rise)
