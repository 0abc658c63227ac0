"""What `cost` asks for."""

import dataclasses

from app.estimator.hardware.rents import example
from app.estimator.inputs import InputGroup, input_field
from app.estimator.shared_inputs import ask_gpus, ask_pue

TOPIC = "on-premises-and-cloud"

_USE = InputGroup("Use", TOPIC)
_RENTING = InputGroup("Renting", TOPIC)
_OWNING = InputGroup("Owning", TOPIC)

_LISTED = example()

COMMITMENTS = (("used", "Used hours"), ("all", "All hours, reserved"))

_YEAR = 365.25 * 86400


@dataclasses.dataclass(frozen=True, slots=True)
class CostInputs:
    """What is needed, what renting asks for it, and what owning takes."""

    gpus: int = ask_gpus(64, TOPIC)
    utilisation: float = _USE.ask(
        0.6,
        "Utilization",
        typed_unit="%",
        minimum=0.001,
        maximum=1.0,
        help="Share of all hours of the year in which the GPUs work.",
    )
    rent: float = _RENTING.ask(
        _LISTED.usd_per_hour,
        "Rent of a GPU-hour",
        unit="USD/h",
        minimum=0.001,
        maximum=10_000.0,
        help=f"Write your offer; {_LISTED.usd_per_hour:g} is {_LISTED.words} for an "
        "H100. DeepSeek reckoned with 2 for an H800 in December 2024.",
    )
    commitment: str = _RENTING.ask(
        "used",
        "Rent is paid for",
        choices=COMMITMENTS,
        help="Used hours on demand, or all hours of a reservation.",
    )
    price: float = _OWNING.ask(
        30_000.0,
        "Price of a GPU in its server",
        unit="USD",
        minimum=1.0,
        maximum=1e7,
        help="A server's price over its GPUs. An example of 2024, no offer: write yours.",
    )
    life: float = _OWNING.ask(
        4 * _YEAR,
        "Life",
        unit="s",
        typed_unit="years",
        minimum=0.25 * _YEAR,
        maximum=30 * _YEAR,
        help="Years until the machines are sold.",
    )
    electricity: float = _OWNING.ask(
        0.10,
        "Electricity",
        unit="USD/kWh",
        minimum=0.0,
        maximum=10.0,
        help="An example of 2024, about what industry paid in the United States; write yours.",
        topic="power-and-cooling",
    )
    staff: float = _OWNING.ask(
        250_000.0,
        "Staff",
        unit="USD/year",
        minimum=0.0,
        maximum=1e10,
        help="People who run the machines, beyond those that renting needs. An "
        "example; write yours.",
    )
    discount: float = _RENTING.ask(
        0.0,
        "Discount",
        typed_unit="%",
        minimum=0.0,
        maximum=0.95,
        help="Off the rent, for example for a reservation.",
        advanced=True,
    )
    egress: float = _RENTING.ask(
        10e12,
        "Data moved out each month",
        unit="B",
        typed_unit="TB",
        minimum=0.0,
        maximum=1e18,
        help="Out of the cloud; moving in is usually free.",
        advanced=True,
    )
    egress_price: float = _RENTING.ask(
        0.08,
        "Price of data moved out",
        unit="USD/GB",
        minimum=0.0,
        maximum=10.0,
        help="An example of 2024; write yours.",
        advanced=True,
    )
    infrastructure: float = _OWNING.ask(
        0.25,
        "Network, storage and racks",
        typed_unit="%",
        minimum=0.0,
        maximum=5.0,
        help="Bought beside the servers, over their price.",
        topic="cluster-components",
        advanced=True,
    )
    interest: float = _OWNING.ask(
        0.08,
        "Interest",
        typed_unit="%",
        minimum=0.0,
        maximum=1.0,
        help="A year, on the money that is tied up. An example; write yours.",
        advanced=True,
    )
    resale: float = _OWNING.ask(
        0.1,
        "Resale",
        typed_unit="%",
        minimum=0.0,
        maximum=1.0,
        help="What the servers bring at the end, over their price.",
        advanced=True,
    )
    upkeep: float = _OWNING.ask(
        0.05,
        "Support and repair",
        typed_unit="%",
        minimum=0.0,
        maximum=1.0,
        help="A year, over the price of all that was bought.",
        advanced=True,
    )
    power: float = _OWNING.ask(
        1275.0,
        "Power of a GPU in its server",
        unit="W",
        minimum=1.0,
        maximum=1e5,
        help="A server's highest power over its GPUs: 10.2 kW over 8 for a DGX H100.",
        term="tdp",
        topic="power-and-cooling",
        advanced=True,
    )
    idle: float = _OWNING.ask(
        0.35,
        "Idle power",
        typed_unit="%",
        minimum=0.0,
        maximum=1.0,
        help="Of a server without work, over its highest power.",
        topic="power-and-cooling",
        advanced=True,
    )
    pue: float = ask_pue(_OWNING, topic="power-and-cooling")
    place: float = _OWNING.ask(
        150.0,
        "Place",
        unit="USD/kW/month",
        minimum=0.0,
        maximum=10_000.0,
        help="Rent of a hall or the cost of one's own, by power of the machines, "
        "without electricity. An example of 2024; write yours.",
        advanced=True,
    )
    availability: float = _OWNING.ask(
        0.95,
        "Availability",
        typed_unit="%",
        minimum=0.01,
        maximum=1.0,
        help="Share of all hours in which owned machines can work at all.",
        advanced=True,
    )
    run: float = input_field(
        100_000.0,
        "Hours of a training run",
        unit="GPU-h",
        minimum=0.001,
        maximum=1e12,
        help="GPUs times hours, for the cost of one run.",
        group="Work",
        topic="training-memory",
        advanced=True,
    )
    token_rate: float = input_field(
        400.0,
        "Tokens per second of a GPU",
        unit="token/s",
        minimum=0.001,
        maximum=1e7,
        help="Output tokens of a GPU at work, for the cost of a million of them.",
        group="Work",
        topic="batching-and-latency",
        advanced=True,
    )
    priced_in: int = _USE.ask(
        2024,
        "Year of the prices",
        minimum=2000,
        maximum=2100,
        help="Stands beside the result, so that everybody knows how old it is.",
        advanced=True,
    )
