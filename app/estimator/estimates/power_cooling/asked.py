"""What `power-cooling` asks for."""

import dataclasses

from app.estimator.inputs import InputGroup

TOPIC = "power-and-cooling"

_MACHINES = InputGroup("Machines", "cluster-components")
_RACKS = InputGroup("Racks", TOPIC)
_SITE = InputGroup("Site", TOPIC)
_ELECTRICITY = InputGroup("Electricity", TOPIC)
_COOLING = InputGroup("Cooling", TOPIC)
_ENERGY = InputGroup("Energy", TOPIC)

FEEDS = (("2n", "2N"), ("n+1", "N+1"), ("n", "N"))


@dataclasses.dataclass(frozen=True, slots=True)
class PowerCoolingInputs:
    """The machines, their racks, and the building around them."""

    system: str = _MACHINES.ask(
        "dgx-h100",
        "System",
        kind="system",
        help="Brings the highest power, the height and the way it is cooled.",
    )
    nodes: int = _MACHINES.ask(
        32,
        "Systems",
        unit="node",
        minimum=1,
        maximum=1_000_000,
        help="Servers, or racks where a rack is the system.",
    )
    rack_limit: float = _RACKS.ask(
        40e3,
        "Power of a rack",
        unit="W",
        typed_unit="kW",
        minimum=1e3,
        maximum=1e7,
        help="The most that the building powers and cools in one rack.",
    )
    pue: float = _SITE.ask(
        1.3,
        "PUE",
        minimum=1.0,
        maximum=5.0,
        help="Power of the site over that of its machines, about 1.1 to 1.6; surveys "
        "put the average of the industry at 1.54 (2025).",
        term="pue",
    )
    site_limit: float | None = _SITE.ask(
        None,
        "Power of the site",
        unit="W",
        typed_unit="kW",
        minimum=1e3,
        maximum=1e11,
        help="What the site can draw in all, cooling included; left empty: no limit.",
    )
    load: float | None = _MACHINES.ask(
        None,
        "Typical load",
        typed_unit="%",
        minimum=0.05,
        maximum=1.0,
        help="Typical over highest power; left empty: 80%, as a server with eight "
        "H100 was measured at 82% at most while training.",
        topic=TOPIC,
        advanced=True,
    )
    other: float = _MACHINES.ask(
        0.1,
        "Network and storage",
        typed_unit="%",
        minimum=0.0,
        maximum=2.0,
        help="Power of switches, storage and management over that of the systems.",
        advanced=True,
    )
    node_power: float | None = _MACHINES.ask(
        None,
        "Highest power of a system",
        unit="W",
        typed_unit="kW",
        minimum=10.0,
        maximum=1e7,
        help="Left empty: as the vendor plans it.",
        term="tdp",
        topic=TOPIC,
        advanced=True,
    )
    node_units: int | None = _RACKS.ask(
        None,
        "Height of a system",
        kind="count",
        minimum=1,
        maximum=100,
        help="In rack units of 44.45 mm; left empty: that of the system.",
        topic="cluster-components",
        advanced=True,
    )
    rack_units: int = _RACKS.ask(
        48,
        "Height of a rack",
        minimum=1,
        maximum=100,
        help="In rack units; common are 42, 48 and 52.",
        advanced=True,
    )
    voltage: float = _ELECTRICITY.ask(
        415.0,
        "Voltage",
        unit="V",
        minimum=48.0,
        maximum=1000.0,
        help="Between two phases: 400 or 415 V in most of the world, 208 or 415 V in "
        "North America.",
        advanced=True,
    )
    power_factor: float = _ELECTRICITY.ask(
        0.95,
        "Power factor",
        minimum=0.1,
        maximum=1.0,
        help="Real over apparent power of the supplies under load.",
        advanced=True,
    )
    circuit: float = _ELECTRICITY.ask(
        60.0,
        "Breaker of a circuit",
        unit="A",
        minimum=1.0,
        maximum=10_000.0,
        help="For each phase; four fifths of it may flow for hours.",
        term="pdu",
        advanced=True,
    )
    feeds: str = _ELECTRICITY.ask(
        "2n",
        "Redundancy of feeds",
        choices=FEEDS,
        help="Two full feeds, one circuit more than needed, or none.",
        advanced=True,
    )
    air_rise: float = _COOLING.ask(
        16.0,
        "Warming of the air",
        unit="°C",
        minimum=1.0,
        maximum=60.0,
        help="From the front to the back of a machine; published air flows of DGX "
        "systems come to 16 °C.",
        term="hot-aisle",
        advanced=True,
    )
    liquid: float | None = _COOLING.ask(
        None,
        "Heat taken by liquid",
        typed_unit="%",
        minimum=0.0,
        maximum=1.0,
        help="The rest warms the air; left empty: 85% of a liquid-cooled system, "
        "nothing of others.",
        term="direct-to-chip-cooling",
        advanced=True,
    )
    liquid_rise: float = _COOLING.ask(
        10.0,
        "Warming of the liquid",
        unit="°C",
        minimum=1.0,
        maximum=60.0,
        help="From inlet to outlet; reckoned as water.",
        term="cdu",
        advanced=True,
    )
    duration: float = _ENERGY.ask(
        365 * 86400.0,
        "Running time",
        unit="s",
        typed_unit="days",
        minimum=60.0,
        maximum=1e10,
        help="For energy and carbon.",
        advanced=True,
    )
    carbon_intensity: float = _ENERGY.ask(
        0.48,
        "Carbon intensity",
        unit="kg/kWh",
        typed_unit="g/kWh",
        minimum=0.0,
        maximum=3.0,
        help="Of the electricity; Ember put the world at about 480 g in 2023, Norway "
        "at 30, India at 713.",
        advanced=True,
    )
