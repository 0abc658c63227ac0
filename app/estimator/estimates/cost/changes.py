"""What would make the other way cheaper in the estimate `cost`."""

from app.estimator.estimate import VerdictFlip
from app.estimator.estimates.cost.asked import CostInputs
from app.estimator.estimates.cost.compute import CostResult, purchase
from app.estimator.running.money import annuity
from app.estimator.running.ownership import HOURS_PER_YEAR
from app.estimator.thresholds import round_past_limit, within
from app.estimator.units import format_number


def changes_of(asked: CostInputs, found: CostResult) -> tuple[VerdictFlip, ...]:
    """The nearest utilization, rent and price at which the cheaper way changes."""
    buys = found.owned_hour < found.rented_hour
    # Near the crossing the verdict still says that both cost about the same.
    becomes = f"{'Renting' if buys else 'Buying'} begins to be cheaper."
    changes = []
    meets = found.meets or 0.0
    if meets <= asked.availability and within(type(asked), "utilisation", meets):
        now = f"{format_number(100 * asked.utilisation)}%"
        flips = f"{round_past_limit(100 * meets, up=not buys)}%"
        changes.append(VerdictFlip("utilisation", "Utilization", now, flips, becomes))
    rent = _rent(asked, found)
    if within(type(asked), "rent", rent):
        now = f"{format_number(asked.rent)} USD/h"
        flips = f"{round_past_limit(rent, up=not buys)} USD/h"
        changes.append(VerdictFlip("rent", "Rent of a GPU-hour", now, flips, becomes))
    price = _price(asked, found)
    if within(type(asked), "price", price):
        now = f"{format_number(asked.price)} USD"
        flips = f"{round_past_limit(price, up=buys)} USD"
        changes.append(VerdictFlip("price", "Price of a GPU in its server", now, flips, becomes))
    return tuple(changes)


def _rent(asked: CostInputs, found: CostResult) -> float:
    """The rent at which both ways cost the same [USD/h]; negative if there is none."""
    share = 1.0 if asked.commitment == "all" else asked.utilisation
    hours = asked.gpus * HOURS_PER_YEAR * share
    return (found.owned.total - found.egress) / hours / (1 - asked.discount)


def _price(asked: CostInputs, found: CostResult) -> float:
    """The price at which both ways cost the same [USD]; negative if there is none."""
    bought = purchase(asked) / asked.price
    sold = asked.gpus * asked.resale / (1 + asked.interest) ** found.years
    yearly = annuity(asked.interest, found.years)
    each = (bought - sold) * yearly + bought * asked.upkeep
    rest = found.owned.total - each * asked.price
    return (found.rented - rest) / each if each > 0 else -1.0
