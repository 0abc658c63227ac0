"""The formulas called with quantities: the result has the dimension it claims."""

import pint
import pytest

from app.estimator.hardware import collectives as networks
from app.estimator.hardware import collectives as traffic
from app.estimator.hardware import throughput as rates
from app.estimator.training import flops, run_costs

_UNITS = """
byte = [information] = B
token = [token]
parameter = [parameter]
request = [request]
flop = [operation]
usd = [money]
second = [time] = s
hour = 3600 * second
joule = [energy] = J
watt = joule / second
kilogram = [mass] = kg
kwh = 3600000 * joule
"""


@pytest.fixture(scope="module")
def units() -> pint.UnitRegistry:
    registry = pint.UnitRegistry(None)
    registry.load_definitions(_UNITS.strip().splitlines())
    return registry


def test_bytes_over_a_link_take_time(units: pint.UnitRegistry) -> None:
    sent = traffic.bytes_sent_per_rank("all_reduce", 8, 1e9 * units.byte)
    assert sent.check("[information]")
    rate = networks.bus_bandwidth("all_reduce", 8, 1e9 * units.byte, 1 * units.second)
    assert rate.check("[information]/[time]")


def test_tokens_and_bytes_per_token_give_bytes(units: pint.UnitRegistry) -> None:
    width = 4 * units.byte / units.token
    assert run_costs.dataset_bytes(1e12 * units.token, width).check("[information]")
    rate = run_costs.data_read_rate(1e6 * units.token / units.second, width)
    assert rate.check("[information]/[time]")
    size = run_costs.checkpoint_bytes(7e9 * units.parameter, 14 * units.byte / units.parameter)
    assert size.check("[information]")


def test_watts_over_time_give_energy_and_carbon(units: pint.UnitRegistry) -> None:
    drawn = run_costs.site_energy_watt_seconds(3600 * units.second, 700 * units.watt, 1.2)
    assert drawn.check("[energy]")


def test_hours_at_a_price_cost_money(units: pint.UnitRegistry) -> None:
    cost = run_costs.rental_cost(100 * units.hour, 2 * units.usd / units.hour)
    assert cost.check("[money]")


def test_a_rate_over_a_peak_is_a_share(units: pint.UnitRegistry) -> None:
    each = 5e10 * units.flop / units.token
    peak = 1e15 * units.flop / units.second
    assert (each * (8000 * units.token / units.second) / peak).check("")
    assert flops.training_flops_without_attention(1.0, 2 * units.token).check("[token]")


def test_the_crossover_is_a_number_of_tokens(units: pint.UnitRegistry) -> None:
    # Two operations per weight and token: FLOP/s · B/weight ÷ (FLOP/token · B/s).
    batch = rates.critical_batch(
        1e15 * units.flop / units.second,
        3e12 * units.byte / units.second,
        2 * units.byte / (units.flop / units.token),
    )
    assert batch.check("[token]")


def test_a_roofline_is_a_rate(units: pint.UnitRegistry) -> None:
    reached = rates.roofline_rate(
        100 * units.flop / units.byte,
        1e15 * units.flop / units.second,
        3e12 * units.byte / units.second,
    )
    assert reached.check("[operation]/[time]")


def test_failures_of_parts_add_up_to_a_time(units: pint.UnitRegistry) -> None:
    whole = run_costs.observed_mtbf(54 * 86400 * units.second, 419)
    assert whole.check("[time]")
