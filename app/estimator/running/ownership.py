"""What owning machines costs by the year, and where it meets renting."""

from app.estimator.running.money import annuity

HOURS_PER_YEAR = 8766.0


def capital_per_year(price: float, resale: float, rate: float, years: float) -> float:
    """What a purchase costs each year with interest, less what it is sold for.

    (P − S/(1+i)ⁿ) · CRF(i, n).

    Where:
        price: paid at the start P [USD].
        resale: received at the end S [USD].
        rate: interest a year i [1].
        years: life n [year], positive.

    Source: barroso-2018.

    >>> round(capital_per_year(100_000.0, 0.0, 0.08, 4.0))
    30192
    >>> capital_per_year(100_000.0, 20_000.0, 0.0, 4.0)
    20000.0
    """
    today: float = resale / (1 + rate) ** years
    return (price - today) * annuity(rate, years)


def average_power(watts: float, idle: float, utilization: float) -> float:
    """Power of machines that work part of the time [W].

    P · (q + (1 − q) · u).

    Where:
        watts: power under load P [W].
        idle: idle over loaded power q [1].
        utilization: share of the time under load u [1].

    >>> average_power(1000.0, 0.5, 0.5)
    750.0
    """
    return watts * (idle + (1 - idle) * utilization)


def electricity_per_year(watts: float, pue: float, usd_per_kwh: float) -> float:
    """Cost of a constant power for a year with what the site adds [USD/year].

    >>> round(electricity_per_year(1000.0, 1.0, 0.1), 1)
    876.6
    """
    return watts / 1000 * HOURS_PER_YEAR * pue * usd_per_kwh


def break_even(fixed: float, owned_slope: float, rented_slope: float) -> float | None:
    """Utilization at which owning costs what renting does; None if they never meet.

    u = F / (r − e): what owning costs beyond renting when idle, over what each
    further share of use saves.

    Where:
        fixed: cost of owning less that of renting at no use [USD/year].
        owned_slope: further cost of owning per share of use e [USD/year].
        rented_slope: further cost of renting per share of use r [USD/year].

    Source: barroso-2018.

    >>> break_even(600.0, 100.0, 1100.0)
    0.6
    >>> break_even(600.0, 100.0, 50.0) is None
    True
    """
    if rented_slope <= owned_slope or fixed < 0:
        return None
    return fixed / (rented_slope - owned_slope)
