"""`cost`: inputs, result, and the input values where the verdict changes."""

import dataclasses
import math
from collections.abc import Mapping
from typing import NamedTuple

from app.estimator.common_inputs import gpus_input, impossible_input_error, pue_input
from app.estimator.hardware.prices import default_rental_price_of_h100
from app.estimator.inputs import InputGroup, input_field, input_specs
from app.estimator.result import InputChange, VerdictChange
from app.estimator.training.run_costs import (
    HOURS_PER_YEAR,
    annuity_factor,
    average_power,
    break_even_utilization,
    capital_cost_per_year,
    electricity_cost_per_year,
    usd_per_million_tokens,
)
from app.estimator.units import format_value
from app.estimator.verdict_changes import build_number_change, format_rounded_past_limit

TOPIC = "on-premises-and-cloud"

_USE = InputGroup("Use", TOPIC)
_RENTING = InputGroup("Renting", TOPIC)
_OWNING = InputGroup("Owning", TOPIC)

_DEFAULT_RENTAL_PRICE = default_rental_price_of_h100()

COMMITMENTS = (("used", "Used hours"), ("all", "All hours, reserved"))

YEAR = 365.25 * 86400

ANY_RUN = 100_000.0
"""Hours of a training run, if none are given [GPU-h]."""
EXAMPLE_PRICE, EXAMPLE_GPU = 30_000.0, "h100-sxm5-80"
"""Price of a GPU in its server [USD], if none is given, and the GPU that it is of."""


CLUSTER_INFRASTRUCTURE = 0.25
"""Price of network, storage and racks over that of the servers, if none is given [1]."""


@dataclasses.dataclass(frozen=True, slots=True)
class CostInputs:
    gpus: int = gpus_input(default=64, topic=TOPIC)
    utilisation: float = _USE.declare_input_field(
        0.6,
        "Utilization",
        unit="%",
        limits=(0.001, 1.0),
        help="Share of all hours of the year in which the GPUs work.",
    )
    rent: float = _RENTING.declare_input_field(
        _DEFAULT_RENTAL_PRICE.usd_per_hour,
        "Rent of a GPU-hour",
        unit="USD/h",
        limits=(0.001, 10_000.0),
        help=f"Write your offer; {_DEFAULT_RENTAL_PRICE.usd_per_hour:g} is {_DEFAULT_RENTAL_PRICE.provider_and_date} for an "
        "H100. DeepSeek reckoned with 2 for an H800 in December 2024.",
    )
    commitment: str = _RENTING.declare_input_field(
        "used",
        "Rent is paid for",
        choices=COMMITMENTS,
        help="Used hours on demand, or all hours of a reservation.",
    )
    price: float = _OWNING.declare_input_field(
        EXAMPLE_PRICE,
        "Price of a GPU in its server",
        unit="USD",
        limits=(1.0, 1e7),
        help="A server's price over its GPUs. An example of 2024 for an H100, no offer: write yours.",
    )
    life: float = _OWNING.declare_input_field(
        4 * YEAR,
        "Life",
        unit="years",
        limits=(0.25 * YEAR, 30 * YEAR),
        help="Years until the machines are sold.",
    )
    electricity: float = _OWNING.declare_input_field(
        0.10,
        "Electricity",
        unit="USD/kWh",
        limits=(0.0, 10.0),
        help="An example of 2024, about what industry paid in the United States; write yours.",
        topic="power-and-cooling",
    )
    staff: float | None = _OWNING.declare_input_field(
        None,
        "Staff",
        unit="USD/year",
        limits=(0.0, 1e10),
        help="People who run the machines, beyond those that renting needs; left empty, as an "
        "example: one for 64 GPUs at 250,000 USD, a third of one for 8, four for 1,024.",
        compute_usual_value=lambda inputs: round(usual_yearly_staff_cost(inputs.gpus)),
    )
    discount: float = _RENTING.declare_advanced_input_field(
        0.0,
        "Discount",
        unit="%",
        limits=(0.0, 0.95),
        help="Off the rent, for example for a reservation.",
    )
    egress: float | None = _RENTING.declare_advanced_input_field(
        None,
        "Data moved out each month",
        unit="TB",
        limits=(0.0, 1e18),
        help="Out of the cloud; moving in is usually free. Left empty, as an example: 10 TB for "
        "64 GPUs, and as much for each in other numbers.",
    )
    egress_price: float = _RENTING.declare_advanced_input_field(
        0.08,
        "Price of data moved out",
        unit="USD/GB",
        limits=(0.0, 10.0),
        help="An example of 2024; write yours.",
    )
    infrastructure: float = _OWNING.declare_advanced_input_field(
        CLUSTER_INFRASTRUCTURE,
        "Network, storage and racks",
        unit="%",
        limits=(0.0, 5.0),
        help="Bought beside the servers, over their price. 25% is an example for a cluster; a "
        "single server needs no network between servers: write what its storage and rack cost.",
        topic="cluster-components",
    )
    interest: float = _OWNING.declare_advanced_input_field(
        0.08,
        "Interest",
        unit="%",
        limits=(0.0, 1.0),
        help="A year, on the money that is tied up. An example; write yours.",
    )
    resale: float = _OWNING.declare_advanced_input_field(
        0.1,
        "Resale",
        unit="%",
        limits=(0.0, 1.0),
        help="What the servers bring at the end, over their price.",
    )
    upkeep: float = _OWNING.declare_advanced_input_field(
        0.05,
        "Support and repair",
        unit="%",
        limits=(0.0, 1.0),
        help="A year, over the price of all that was bought.",
    )
    power: float = _OWNING.declare_advanced_input_field(
        1275.0,
        "Power of a GPU in its server",
        unit="W",
        limits=(1.0, 1e5),
        help="A server's highest power over its GPUs: 10.2 kW over 8 for a DGX H100.",
        term="tdp",
        topic="power-and-cooling",
    )
    idle: float = _OWNING.declare_advanced_input_field(
        0.35,
        "Idle power",
        unit="%",
        limits=(0.0, 1.0),
        help="Of a server without work, over its highest power.",
        topic="power-and-cooling",
    )
    pue: float = pue_input(group="Owning", topic="power-and-cooling")
    place: float = _OWNING.declare_advanced_input_field(
        150.0,
        "Place",
        unit="USD/kW/month",
        limits=(0.0, 10_000.0),
        help="Rent of a hall or the cost of one's own, by power of the machines, "
        "without electricity. An example of 2024; write yours.",
    )
    availability: float = _OWNING.declare_advanced_input_field(
        0.95,
        "Availability",
        unit="%",
        limits=(0.01, 1.0),
        help="Share of all hours in which owned machines can work at all.",
    )
    run: float = input_field(
        ANY_RUN,
        "Hours of a training run",
        unit="GPU-h",
        limits=(0.001, 1e12),
        help="GPUs times hours, for the cost of one run.",
        group="Work",
        topic="training-memory",
        advanced=True,
    )
    token_rate: float = input_field(
        400.0,
        "Tokens per second of a GPU",
        unit="token/s",
        limits=(0.001, 1e7),
        help="Output tokens of a GPU at work, for the cost of a million of them.",
        group="Work",
        topic="batching-and-latency",
        advanced=True,
    )
    priced_in: int = _USE.declare_advanced_input_field(
        2024,
        "Year of the prices",
        limits=(2000, 2100),
        help="Stands beside the result, so that everybody knows how old it is.",
    )


@dataclasses.dataclass(frozen=True, slots=True)
class YearlyOwnershipCost:
    """Yearly cost of ownership by category [USD/year]."""

    capital: float
    upkeep: float
    electricity: float
    place: float
    staff: float

    @property
    def by_label(self) -> Mapping[str, float]:
        return {
            "machines": self.capital,
            "support and repair": self.upkeep,
            "electricity": self.electricity,
            "place": self.place,
            "staff": self.staff,
        }

    @property
    def total(self) -> float:
        return sum(self.by_label.values())

    @property
    def running_cost(self) -> float:
        return self.total - self.capital


class CostByUtilization(NamedTuple):
    """The cost of a year without any use and with full use; it is linear between them [USD/year]."""

    yearly_cost_idle: float
    yearly_cost_fully_used: float

    def yearly_cost_at(self, utilization: float) -> float:
        return (
            self.yearly_cost_idle
            + (self.yearly_cost_fully_used - self.yearly_cost_idle) * utilization
        )


class GpuHourCosts(NamedTuple):
    """The cost of a used GPU-hour [USD/h]."""

    owned: float
    rented: float


@dataclasses.dataclass(frozen=True, slots=True)
class CostResult:
    """Owning and renting compared. Money a year [USD/year], hours [GPU-h], utilizations [1]."""

    inputs: CostInputs
    life_years: float
    purchase: float
    ownership_cost: YearlyOwnershipCost
    yearly_rental_cost_with_egress: float
    yearly_egress_cost: float
    used_gpu_hours: float
    owned_cost_by_utilization: CostByUtilization
    rented_cost_by_utilization: CostByUtilization
    break_even_utilization: float | None

    @property
    def owned_hour(self) -> float:
        """Return the cost of a used hour of an owned GPU [USD/h]."""
        return self.ownership_cost.total / self.used_gpu_hours

    @property
    def rented_gpu_hour_with_egress(self) -> float:
        """Return the cost of a used hour of a rented GPU, including data egress [USD/h]."""
        return self.yearly_rental_cost_with_egress / self.used_gpu_hours

    def gpu_hour_costs(self, utilization: float) -> GpuHourCosts:
        used_hours = self.inputs.gpus * HOURS_PER_YEAR * utilization
        return GpuHourCosts(
            self.owned_cost_by_utilization.yearly_cost_at(utilization) / used_hours,
            self.rented_cost_by_utilization.yearly_cost_at(utilization) / used_hours,
        )

    @property
    def buying(self) -> bool:
        return self.owned_hour < self.rented_gpu_hour_with_egress

    @property
    def rental_cost_per_used_hour_without_egress(self) -> float:
        """Return what is paid for a used hour of a rented GPU, without data egress [USD/h]."""
        return (self.yearly_rental_cost_with_egress - self.yearly_egress_cost) / self.used_gpu_hours

    def million_tokens_cost(self, gpu_hour_cost: float) -> float:
        """Return the cost of a million tokens at a price per used GPU-hour [USD/Mtoken]."""
        return usd_per_million_tokens(self.inputs.token_rate, 1, gpu_hour_cost)


def compute_cost(inputs: CostInputs) -> CostResult:
    """Compute both options; raises InvalidInputsError if use exceeds the available hours."""
    if inputs.utilisation > inputs.availability:
        message = (
            f"GPUs that are up {format_value(inputs.availability, '%')} of the time "
            f"cannot work {format_value(inputs.utilisation, '%')} of it."
        )
        raise impossible_input_error("utilisation", inputs.utilisation, message)
    owned = CostByUtilization(
        yearly_ownership_cost(inputs, 0.0).total, yearly_ownership_cost(inputs, 1.0).total
    )
    rented = CostByUtilization(
        compute_yearly_rental_cost_with_egress(inputs, 0.0),
        compute_yearly_rental_cost_with_egress(inputs, 1.0),
    )
    return CostResult(
        inputs=inputs,
        life_years=inputs.life / YEAR,
        purchase=cluster_purchase_price(inputs),
        ownership_cost=yearly_ownership_cost(inputs, inputs.utilisation),
        yearly_rental_cost_with_egress=compute_yearly_rental_cost_with_egress(
            inputs, inputs.utilisation
        ),
        yearly_egress_cost=_yearly_egress_cost(inputs),
        used_gpu_hours=inputs.gpus * HOURS_PER_YEAR * inputs.utilisation,
        owned_cost_by_utilization=owned,
        rented_cost_by_utilization=rented,
        break_even_utilization=_break_even_utilization(owned, rented),
    )


def cluster_purchase_price(inputs: CostInputs) -> float:
    """Return the price of the machines with their network, storage and racks [USD]."""
    return inputs.gpus * inputs.price * (1 + inputs.infrastructure)


def yearly_ownership_cost(inputs: CostInputs, utilization: float) -> YearlyOwnershipCost:
    purchase = cluster_purchase_price(inputs)
    resale_price = inputs.gpus * inputs.price * inputs.resale
    max_power = inputs.gpus * inputs.power
    mean_power = average_power(max_power, inputs.idle, utilization)
    return YearlyOwnershipCost(
        capital=capital_cost_per_year(purchase, resale_price, inputs.interest, inputs.life / YEAR),
        upkeep=purchase * inputs.upkeep,
        electricity=electricity_cost_per_year(mean_power, inputs.pue, inputs.electricity),
        place=max_power / 1000 * inputs.place * 12,
        staff=typed_or_usual_yearly_staff_cost(inputs),
    )


def compute_yearly_rental_cost_with_egress(inputs: CostInputs, utilization: float) -> float:
    """Return the cost of a year of renting at a utilization [USD/year]."""
    share = 1.0 if inputs.commitment == "all" else utilization
    hours = inputs.gpus * HOURS_PER_YEAR * share
    return hours * inputs.rent * (1 - inputs.discount) + _yearly_egress_cost(inputs)


def _yearly_egress_cost(inputs: CostInputs) -> float:
    """Return the cost of moving data out [USD/year]."""
    monthly_bytes = (
        _USUAL_EGRESS * inputs.gpus / _USUAL_GPUS if inputs.egress is None else inputs.egress
    )
    return monthly_bytes / 1e9 * inputs.egress_price * 12


_USUAL_GPUS, _USUAL_STAFF, _USUAL_EGRESS = 64, 250_000.0, 10e12


def typed_or_usual_yearly_staff_cost(inputs: CostInputs) -> float:
    """Return the typed or the usual cost of staff [USD/year]."""
    return usual_yearly_staff_cost(inputs.gpus) if inputs.staff is None else inputs.staff


def usual_yearly_staff_cost(gpus: int) -> float:
    """Return the cost of staff, if none is given [USD/year].

    It grows with the square root of the GPUs: many machines alike need fewer people for each.
    """
    return _USUAL_STAFF * math.sqrt(gpus / _USUAL_GPUS)


def _break_even_utilization(owned: CostByUtilization, rented: CostByUtilization) -> float | None:
    """Return the utilization at which both cost the same; None if there is none."""
    utilization = break_even_utilization(
        owned.yearly_cost_idle - rented.yearly_cost_idle,
        owned.yearly_cost_fully_used - owned.yearly_cost_idle,
        rented.yearly_cost_fully_used - rented.yearly_cost_idle,
    )
    return utilization if utilization is not None and 0 < utilization <= 1 else None


def find_verdict_changes(result: CostResult) -> tuple[VerdictChange, ...]:
    """Return the nearest utilization, rent, price and staff at which the cheaper option changes."""
    staff = round(typed_or_usual_yearly_staff_cost(result.inputs))
    inputs = dataclasses.replace(result.inputs, staff=staff)
    is_buying = result.buying
    # Near the break-even point the verdict still says that both cost about the same.
    outcome = f"{'Renting' if is_buying else 'Buying'} begins to be cheaper."
    break_even = result.break_even_utilization or 0.0
    tried = [
        ("rent", _break_even_rent(result), 1.0, " USD/h", not is_buying),
        ("price", _break_even_price_per_gpu(result), 1.0, " USD", is_buying),
        ("staff", _break_even_staff_cost(result), 1.0, " USD/year", is_buying),
    ]
    if break_even <= inputs.availability:
        tried.insert(0, ("utilisation", break_even, 0.01, "%", not is_buying))
    changes = [
        change
        for field, value, factor, unit, up in tried
        for change in build_number_change(
            inputs, field, value, outcome, unit=unit, unit_factor=factor, rounds_up=up
        )
    ]
    return (*changes, *_commitment_changes(result))


def _commitment_changes(result: CostResult) -> tuple[VerdictChange, ...]:
    """Return the other commitment, if the verdict changes with it.

    The price of a reservation is not known: the discount with which renting stays cheaper is said.
    On demand, the discount of a reservation is gone.
    """
    inputs = result.inputs
    other = "used" if inputs.commitment == "all" else "all"
    discount = inputs.discount if other == "all" else 0.0
    changed = compute_cost(dataclasses.replace(inputs, commitment=other, discount=discount))
    if changed.buying == result.buying:
        return ()
    specs = input_specs(CostInputs)
    spec = specs["commitment"]
    condition = _reservation_discount_clause(changed) if other == "all" else ""
    outcome = f"{'Buying' if changed.buying else 'Renting'} is cheaper{condition}."
    labels = dict(spec.choices)
    change = VerdictChange(
        "commitment", spec.label, labels[inputs.commitment], labels[other], outcome
    )
    if discount == inputs.discount:
        return (change,)
    no_discount = InputChange("discount", specs["discount"].label, "0%")
    return (dataclasses.replace(change, other_changes=(no_discount,)),)


def _reservation_discount_clause(result: CostResult) -> str:
    """Return from which discount on a reservation costs less than owning; empty if from none."""
    inputs = result.inputs
    full_rent = inputs.gpus * HOURS_PER_YEAR * inputs.rent
    discount = 1 - (result.ownership_cost.total - result.yearly_egress_cost) / full_rent
    if not 0 < discount < 1:
        return ""
    percent = format_rounded_past_limit(discount * 100, rounds_up=True)
    return f", unless a reservation takes {percent}% or more off the rent"


def _break_even_rent(result: CostResult) -> float:
    """Return the rent at which both cost the same [USD/h]; negative if there is none."""
    inputs = result.inputs
    share = 1.0 if inputs.commitment == "all" else inputs.utilisation
    hours = inputs.gpus * HOURS_PER_YEAR * share
    return (result.ownership_cost.total - result.yearly_egress_cost) / hours / (1 - inputs.discount)


def _break_even_staff_cost(result: CostResult) -> float:
    """Return the cost of staff at which both cost the same [USD/year]; negative if none does."""
    cost = result.ownership_cost
    return result.yearly_rental_cost_with_egress - (cost.total - cost.staff)


def _break_even_price_per_gpu(result: CostResult) -> float:
    """Return the price at which both cost the same [USD]; negative if there is none."""
    inputs = result.inputs
    purchase_factor = cluster_purchase_price(inputs) / inputs.price
    resale_factor = inputs.gpus * inputs.resale / (1 + inputs.interest) ** result.life_years
    capital_factor = annuity_factor(inputs.interest, result.life_years)
    yearly_cost_factor = (
        purchase_factor - resale_factor
    ) * capital_factor + purchase_factor * inputs.upkeep
    other_costs = result.ownership_cost.total - yearly_cost_factor * inputs.price
    return (
        (result.yearly_rental_cost_with_egress - other_costs) / yearly_cost_factor
        if yearly_cost_factor > 0
        else -1.0
    )
