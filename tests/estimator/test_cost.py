"""Renting against owning: published sums, the way they meet, and what must hold."""

import dataclasses
import doctest
import math

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from app.estimator.estimates import cost_report as entry
from app.estimator.estimates.cost import CostInputs
from app.estimator.hardware.prices import default_rental_price_of_h100, find_rental_price
from app.estimator.inputs import InvalidInputsError, non_default_inputs_to_query, parse_inputs
from app.estimator.training import run_costs as ownership
from app.estimator.training.run_costs import annuity_factor

YEAR = 365.25 * 86400
offers = st.fixed_dictionaries(
    {
        "utilisation": st.floats(0.05, 0.95),
        "rent": st.floats(0.5, 15),
        "price": st.floats(5e3, 9e4),
        "staff": st.floats(0, 1e6),
        "electricity": st.floats(0, 0.5),
    }
)


def estimate(**changed):
    return entry.estimate(dataclasses.replace(CostInputs(), **changed))


def found(**changed):
    """The figures of an estimate by name."""
    return {f.name: f.value for f in estimate(**changed).figures}


def test_examples_in_the_docstrings_hold():
    assert doctest.testmod(ownership).failed == 0


def test_deepseek_v3_cost_five_and_a_half_million():
    # Its report, table 1: 2.788 M hours of an H800 at 2 USD.
    assert found(rent=2.0, run=2.788e6)["run_rented"] == pytest.approx(5.576e6)


def test_a_million_tokens_cost_what_their_rate_says():
    # 2,919 tokens per second from eight H100 at 3 USD, always busy.
    of = found(rent=3.0, token_rate=2919 / 8, egress=0.0, utilisation=1.0, availability=1.0)
    assert of["tokens_rented"] == pytest.approx(2.2839, rel=1e-4)


def test_money_at_8_percent_is_repaid_in_equal_parts():
    # The annuity that repays 1 in four years at 8%: 0.30192.
    assert annuity_factor(0.08, 4) == pytest.approx(0.30192, rel=1e-4)


def test_without_interest_a_purchase_is_worn_off_evenly():
    of = ownership.capital_cost_per_year(100.0, 20.0, 0.0, 8.0)
    assert of == pytest.approx(10.0)


def test_the_verdict_names_the_cheaper_way_and_where_they_meet():
    verdict = estimate().verdict
    assert verdict.lead == "Buying is cheaper."
    assert " they meet at 56.1%. Of the owned hour, 53.8% is machines" in verdict.text.replace(
        "\u00a0", " "
    )
    assert estimate(utilisation=0.3).verdict.lead == "Renting is cheaper."
    assert estimate(rent=3.8).verdict.lead == "About the same."


def test_staff_that_nobody_typed_is_among_what_would_change_the_verdict():
    answer = estimate(gpus=8, life=3 * YEAR)
    staff = next(change for change in answer.changes if change.field == "staff")
    assert staff.current_value == "88,388 USD/year"
    changes_at = float(staff.new_value.partition(" ")[0].replace(",", ""))
    assert changes_at == pytest.approx(18_100, rel=0.01)
    below, above = (estimate(gpus=8, life=3 * YEAR, staff=changes_at * f) for f in (1, 1.01))
    assert below["buying"].value is True
    assert above["buying"].value is False
    usual = next(f for f in dataclasses.fields(CostInputs) if f.name == "staff").metadata["input"]
    assert usual.compute_usual_value(dataclasses.replace(CostInputs(), gpus=8)) == 88_388


def test_a_single_server_is_said_to_need_no_network():
    said = "a single server needs no network between servers"
    assert said in " ".join(estimate(gpus=8).notes)
    assert said not in " ".join(estimate(gpus=8, infrastructure=0.05).notes)
    assert said not in " ".join(estimate(gpus=64).notes)


def test_on_demand_is_explained_by_what_is_paid_and_what_is_not_kept():
    paid = "only used hours are paid; nobody promises that they are free again later."
    assert paid in " ".join(estimate(commitment="used").notes)
    assert paid not in " ".join(estimate(commitment="all").notes)


def test_cheap_rent_is_never_beaten():
    answer = estimate(rent=1.0)
    assert answer["break_even"].value is None
    assert answer["break_even"].formatted_value == "does not apply"
    assert answer["break_even"].note == "Renting is cheaper at any utilization."


def test_gpus_cannot_work_more_than_they_are_up():
    with pytest.raises(InvalidInputsError, match="cannot work") as refused:
        estimate(utilisation=0.99)
    assert refused.value.problems[0].field == "utilisation"


def test_a_reservation_costs_the_same_whether_used_or_not():
    half, full = (found(commitment="all", utilisation=u) for u in (0.45, 0.9))
    assert half["rented_year"] == full["rented_year"]
    assert half["rented_hour"] == pytest.approx(2 * full["rented_hour"])


def test_every_price_says_that_it_is_an_example():
    for name in ("price", "electricity", "staff", "egress_price", "place"):
        field = next(f for f in dataclasses.fields(CostInputs) if f.name == name)
        assert "example" in field.metadata["input"].help, name
    assert "2019" in estimate(priced_in=2019).notes[0]
    with pytest.raises(InvalidInputsError, match=r"is too small: 2000 to 2100\."):
        parse_inputs(CostInputs, {"priced_in": "1999"})


def test_the_rent_that_stands_there_is_the_list_price_of_an_h100():
    rent = default_rental_price_of_h100()
    assert CostInputs().rent == rent.usd_per_hour == find_rental_price("h100-sxm5-80").usd_per_hour
    field = next(f for f in dataclasses.fields(CostInputs) if f.name == "rent")
    assert rent.provider_and_date in field.metadata["input"].help
    assert rent.provider_and_date in estimate().notes[0]
    assert rent.provider_and_date not in estimate(rent=3.0).notes[0]


@given(offers)
def test_the_parts_sum_to_an_owned_hour(offer):
    answer = estimate(**offer)
    bar = next(p for p in answer.pictures if hasattr(p, "segments"))
    whole = answer["owned_hour"].value
    assert sum(s.value for s in bar.segments) == pytest.approx(whole)


@given(offers)
def test_at_the_break_even_both_ways_cost_the_same(offer):
    meets = found(**offer)["break_even"]
    assume(meets is not None and meets < 0.95)
    of = found(**{**offer, "utilisation": meets})
    assert of["owned_hour"] == pytest.approx(of["rented_hour"], rel=1e-6)


@given(offers, st.floats(1.05, 2.0))
def test_more_use_makes_an_owned_hour_cheaper(offer, more):
    assume(offer["utilisation"] * more <= 0.95)
    often = {**offer, "utilisation": offer["utilisation"] * more}
    assert found(**often)["owned_hour"] <= found(**offer)["owned_hour"]


@given(offers)
def test_the_changes_turn_the_verdict(offer):
    asked = parse_inputs(
        CostInputs, non_default_inputs_to_query(dataclasses.replace(CostInputs(), **offer))
    )
    answer = entry.estimate(asked)
    owned, rented = answer["owned_hour"].value, answer["rented_hour"].value
    assume(not math.isclose(owned, rented, rel_tol=0.01))
    for change in answer.changes:
        turned = entry.estimate(
            parse_inputs(
                CostInputs, {**non_default_inputs_to_query(asked), change.field: change.new_value}
            )
        )
        assert turned["buying"].value is not answer["buying"].value, change
