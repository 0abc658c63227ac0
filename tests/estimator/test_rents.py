"""The list prices of accelerators: declared once, told with provider and month."""

import pytest

from app.estimator import data_files as catalogue
from app.estimator import registry
from app.estimator.hardware.catalog import find_accelerator
from app.estimator.hardware.prices import find_rental_price

_COSTS = {
    "training-time": "cost",
    "parallelism-plan": "cost",
    "serving-capacity": "cost_per_month",
}


def test_every_price_is_of_an_accelerator_and_says_who_asks_it() -> None:
    for name, row in catalogue.load_table_entries_by_id("rents.toml", "rent").items():
        assert find_accelerator(name).id == name
        rent = find_rental_price(name)
        assert rent is not None
        assert 0.1 < rent.usd_per_hour < 30
        assert rent.source.startswith("https://")
        assert row["provider"] in rent.provider_and_date


@pytest.mark.parametrize("name", _COSTS)
def test_where_nobody_writes_a_price_the_list_price_counts_and_is_named(
    name: str,
) -> None:
    rent = find_rental_price("h100-sxm5-80")
    assert rent is not None
    field = "cost_per_gpu_hour" if name == "serving-capacity" else "usd_per_gpu_hour"
    asked = {"model": "8B", "gpu": "h100"}
    usual = registry.run_estimate(name, asked)
    typed = registry.run_estimate(name, {**asked, field: str(rent.usd_per_hour)})
    assert usual[_COSTS[name]].value == typed[_COSTS[name]].value
    assert any(rent.provider_and_date in note for note in usual.notes)
    assert not any(rent.provider_and_date in note for note in typed.notes)


@pytest.mark.parametrize("name", _COSTS)
def test_a_price_that_nobody_lists_leaves_the_cost_unknown(name: str) -> None:
    assert find_rental_price("mi325x") is None
    found = registry.run_estimate(name, {"model": "8B", "gpu": "mi325x"})
    assert found[_COSTS[name]].value is None
    assert "write what you pay" in found[_COSTS[name]].note
