"""A year of renting and a year of owning, part by part."""

import dataclasses

from app.estimator.estimates.cost.asked import CostInputs
from app.estimator.running.money import usd_per_million_tokens
from app.estimator.running.ownership import (
    HOURS_PER_YEAR,
    average_power,
    break_even,
    capital_per_year,
    electricity_per_year,
)
from app.estimator.shared_inputs import input_error
from app.estimator.units import format_value


@dataclasses.dataclass(frozen=True, slots=True)
class OwnershipCost:
    """What owning costs a year by what it goes to [USD/year]."""

    capital: float
    upkeep: float
    electricity: float
    place: float
    staff: float

    @property
    def total(self) -> float:
        """Their sum."""
        return self.capital + self.upkeep + self.electricity + self.place + self.staff

    @property
    def running(self) -> float:
        """What is paid year by year beside the purchase."""
        return self.total - self.capital


@dataclasses.dataclass(frozen=True, slots=True)
class CostResult:
    """Both ways. Money a year [USD/year], hours [GPU-h], utilizations [1]."""

    years: float
    purchase: float
    owned: OwnershipCost
    rented: float
    egress: float
    hours: float
    ends: tuple[float, float]
    rent_ends: tuple[float, float]
    meets: float | None

    @property
    def owned_hour(self) -> float:
        """Cost of a used hour of an owned GPU [USD/h]."""
        return self.owned.total / self.hours

    @property
    def rented_hour(self) -> float:
        """Cost of a used hour of a rented GPU, with data moved out [USD/h]."""
        return self.rented / self.hours

    def hour_at(self, share: float, hours: float) -> tuple[float, float]:
        """Used GPU-hour, owned and rented, at a utilization [USD/h].

        `hours` are all hours of the GPUs in a year; both ways grow in a straight line
        from no use to full use.
        """
        used = hours * share
        owned, rented = (idle + (full - idle) * share for idle, full in (self.ends, self.rent_ends))
        return owned / used, rented / used


_YEAR = 365.25 * 86400


def find(asked: CostInputs) -> CostResult:
    """Reckon both ways; BadInputs where GPUs would work more than they are up."""
    if asked.utilisation > asked.availability:
        message = (
            f"GPUs that are up {format_value(asked.availability, '%')} of the time "
            f"cannot work {format_value(asked.utilisation, '%')} of it."
        )
        raise input_error("utilisation", asked.utilisation, message)
    ends = owned_at(asked, 0.0).total, owned_at(asked, 1.0).total
    rent_ends = rented_at(asked, 0.0), rented_at(asked, 1.0)
    return CostResult(
        years=asked.life / _YEAR,
        purchase=purchase(asked),
        owned=owned_at(asked, asked.utilisation),
        rented=rented_at(asked, asked.utilisation),
        egress=_egress(asked),
        hours=asked.gpus * HOURS_PER_YEAR * asked.utilisation,
        ends=ends,
        rent_ends=rent_ends,
        meets=_meets(ends, rent_ends),
    )


def purchase(asked: CostInputs) -> float:
    """What is paid at the start [USD]."""
    return asked.gpus * asked.price * (1 + asked.infrastructure)


def owned_at(asked: CostInputs, utilization: float) -> OwnershipCost:
    """A year of owning at a utilization."""
    bought = purchase(asked)
    sold = asked.gpus * asked.price * asked.resale
    watts = asked.gpus * asked.power
    drawn = average_power(watts, asked.idle, utilization)
    return OwnershipCost(
        capital=capital_per_year(bought, sold, asked.interest, asked.life / _YEAR),
        upkeep=bought * asked.upkeep,
        electricity=electricity_per_year(drawn, asked.pue, asked.electricity),
        place=watts / 1000 * asked.place * 12,
        staff=asked.staff,
    )


def rented_at(asked: CostInputs, utilization: float) -> float:
    """A year of renting at a utilization [USD/year]."""
    share = 1.0 if asked.commitment == "all" else utilization
    hours = asked.gpus * HOURS_PER_YEAR * share
    return hours * asked.rent * (1 - asked.discount) + _egress(asked)


def _egress(asked: CostInputs) -> float:
    """A year of moving data out [USD/year]."""
    return asked.egress / 1e9 * asked.egress_price * 12


def _meets(owned: tuple[float, float], rented: tuple[float, float]) -> float | None:
    """The utilization at which both cost the same; None where there is none."""
    slopes = owned[1] - owned[0], rented[1] - rented[0]
    found = break_even(owned[0] - rented[0], *slopes)
    return found if found is not None and 0 < found <= 1 else None


def tokens_cost(asked: CostInputs, hour: float) -> float:
    """Cost of a million tokens at the price of a used GPU-hour [USD/Mtoken]."""
    return usd_per_million_tokens(asked.token_rate, 1, hour)
