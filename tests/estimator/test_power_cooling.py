"""Power and cooling against published sites and sheets, and what must always hold."""

import dataclasses
import doctest
from pathlib import Path

import pint
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.estimator.estimates import power_cooling
from app.estimator.estimates import power_cooling_report as entry
from app.estimator.estimates.power_cooling import PowerCoolingInputs
from app.estimator.inputs import InvalidInputsError, input_specs, parse_inputs
from app.estimator.registry import require_estimate, run_estimate

watts = st.floats(1.0, 1e9)


def estimate(**changed):
    return entry.estimate(dataclasses.replace(PowerCoolingInputs(), **changed))


def found(**changed):
    """The figures of an estimate by name."""
    return {f.name: f.value for f in estimate(**changed).figures}


def test_examples_in_the_docstrings_hold():
    assert doctest.testmod(power_cooling).failed == 0


@pytest.mark.parametrize("load", [None, 0.7])
def test_energy_says_that_its_running_time_has_no_range(load):
    # A training's own range of energy, which its duration is part of, is wider.
    notes = {figure.name: figure.note for figure in estimate(load=load).figures}
    assert notes["energy"] == "The running time is taken as given, without a range."
    assert notes["carbon"] == notes["energy"]
    assert not notes["site_typical"]


@pytest.mark.parametrize(
    ("system", "kilowatts"),
    # User guides of the systems.
    [("dgx-a100", 6.5), ("dgx-h100", 10.2), ("dgx-b200", 14.3), ("dgx-b300", 14.5)],
)
def test_a_system_draws_what_its_guide_says(system, kilowatts):
    of = found(system=system, nodes=1, other=0.0, pue=1.0)
    assert of["machines_power"] == of["site_power"] == kilowatts * 1e3


@pytest.mark.parametrize(
    ("system", "slows"),
    # User guide of the DGX H100 and H200: six supplies, four of them needed; where a
    # distribution unit fails, three are left and the system runs on at reduced
    # performance. Half of the six of a DGX A100 are spare.
    [("dgx-h100", True), ("dgx-h200", True), ("dgx-a100", False)],
)
def test_two_feeds_do_not_carry_a_system_that_needs_four_of_six_supplies(system, slows):
    words = "3 of the 6 power supplies of a system still work. Full power needs 4"
    assert (words in estimate(system=system, feeds="2n").verdict.text) is slows
    assert words not in estimate(system=system, feeds="n").verdict.text


def test_energy_and_carbon_cite_a_paper_on_energy_and_carbon():
    # Patterson et al. 2021: energy with PUE, times the carbon of the electricity.
    steps = {s.output_name: s.source for s in estimate().steps}
    assert steps["energy"] == steps["carbon"] == "patterson-2021"


def test_the_average_pue_is_the_one_that_the_page_says():
    # Uptime Institute, Global Data Center Survey 2025: 1.54.
    assert "1.54 (2025)" in input_specs(PowerCoolingInputs)["pue"].help
    page = Path("content/topics/power-and-cooling/concept.md").read_text("utf-8")
    assert "2025 survey, operators reported an average PUE of 1.54" in page


def test_a_scalable_unit_of_b200_takes_16_racks_and_458_kilowatts():
    # DGX SuperPOD with DGX B200: 32 systems, two in a rack, more than 25 kW each.
    of = found(system="dgx-b200", nodes=32, rack_limit=30e3, other=0.0)
    assert (of["racks"], of["nodes_per_rack"]) == (16, 2)
    assert of["rack_power"] == 28.6e3
    assert of["machines_power"] == pytest.approx(458e3, rel=0.002)


def test_the_systems_of_a_rack_are_shown_first_and_do_not_depend_on_their_number():
    assert "nodes_per_rack" in require_estimate("power-cooling").most_important_outputs
    counts = [run_estimate("power-cooling", {"nodes": n})["nodes_per_rack"] for n in (1, 2, 32)]
    assert [count.value for count in counts] == [3, 3, 3]
    assert counts[0].output.label == "Systems per rack"


def test_four_b300_stand_in_a_rack_of_about_57_kilowatts():
    # DGX SuperPOD with DGX B300: four systems in a rack of about 56 kW.
    of = found(system="dgx-b300", rack_limit=60e3)
    assert of["nodes_per_rack"] == 4
    assert of["rack_power"] == pytest.approx(56e3, rel=0.04)


@pytest.mark.parametrize(("system", "cfm"), [("dgx-h100", 1105), ("dgx-b200", 1550)])
def test_air_flows_are_those_of_the_user_guides(system, cfm):
    assert found(system=system)["air_node"] == pytest.approx(cfm, rel=0.02)


def test_a_server_in_training_is_near_what_was_measured():
    # Latif et al. 2025: an HGX H100 drew 8.4 kW at most of its 10.2.
    figure = estimate(nodes=1, other=0.0)["machines_typical"]
    assert figure.low < 8.4e3 < figure.high
    assert figure.value == pytest.approx(8.4e3, rel=0.03)


def test_the_carbon_of_llama_2_is_that_of_its_paper():
    # Table 2: 1,720,320 hours of 400 W for the 70B model, PUE 1.1, 0.385 kg/kWh.
    of = found(
        node_power=400.0,
        node_units=1,
        nodes=1720,
        other=0.0,
        pue=1.1,
        load=1.0,
        duration=1720320 / 1720 * 3600,
        carbon_intensity=0.385,
    )
    assert of["carbon"] / 1e3 == pytest.approx(291.42, rel=1e-3)


def test_a_system_too_strong_for_its_rack_is_a_no_and_not_an_error():
    answer = estimate(system="gb200-nvl72", rack_limit=40e3)
    assert answer.verdict.lead == "Too dense for the racks."
    assert answer["racks"].value is None
    assert answer.changes[0].new_value == "132 kW"


def test_the_rack_power_of_one_rack_more_or_less_is_named_with_that_of_none():
    # A DGX H100 draws 10.2 kW: below 30.6 kW there is place for two, from 51 kW for five.
    three, five = (estimate(system="dgx-h100", nodes=n, rack_limit=40e3) for n in (3, 5))
    assert [(c.new_value, c.verdict_after) for c in three.changes] == [
        ("30.5 kW", "Holds 2 systems: 2 racks."),
        ("10.1 kW", "Holds none."),
    ]
    assert [(c.new_value, c.verdict_after) for c in five.changes] == [
        ("51 kW", "Holds 5 systems: 1 rack."),
        ("30.5 kW", "Holds 2 systems: 3 racks."),
        ("10.1 kW", "Holds none."),
    ]


def test_a_system_too_high_for_its_rack_says_so():
    answer = estimate(rack_units=6)
    assert answer.verdict.text == "The DGX H100 is 8 units high and a rack 6."


def test_a_site_without_enough_power_is_a_no():
    answer = estimate(site_limit=400e3)
    assert answer.verdict.lead == "Too much for the site."
    assert {c.field for c in answer.changes} >= {"nodes"}


def test_systems_whose_power_nobody_published_ask_for_it():
    with pytest.raises(InvalidInputsError, match="write it") as refused:
        estimate(system="hgx-b200-8")
    assert refused.value.problems[0].field == "node_power"
    assert estimate(system="hgx-b200-8", node_power=14e3, node_units=10)["fits"].value


def test_most_heat_of_a_liquid_cooled_rack_leaves_by_water():
    of = found(system="gb200-nvl72", nodes=1, rack_limit=140e3, other=0.0)
    # 115 kW to liquid and 17 to air of 132, as sellers of the rack put it.
    assert of["coolant"] > 0
    assert of["air_node"] < 2500


@given(st.integers(1, 10_000), st.floats(1.0, 3.0))
def test_parts_sum_to_the_power_of_the_site(nodes, pue):
    answer = estimate(nodes=nodes, pue=pue)
    parts = sum(s.value for s in answer.pictures[0].segments)
    assert parts == pytest.approx(answer["site_power"].value)


@given(st.integers(1, 100_000))
def test_racks_hold_all_systems(nodes):
    of = found(nodes=nodes)
    assert of["racks"] * of["nodes_per_rack"] >= nodes
    assert of["nodes_per_rack"] * 10.2e3 <= 40e3


@given(watts, st.floats(1.0, 2.0))
def test_more_pue_never_takes_less(power, pue):
    assert power_cooling.site_power(power, pue) >= power


@given(st.floats(20e3, 500e3))
def test_the_changes_turn_the_verdict(limit):
    answer = estimate(site_limit=limit)
    for change in answer.changes:
        if change.field not in {"nodes", "pue"}:
            continue
        words = {"site_limit": f"{limit / 1e3} kW", change.field: change.new_value}
        turned = entry.estimate(parse_inputs(PowerCoolingInputs, words))
        assert turned["fits"].value is not answer["fits"].value, change


@pytest.mark.parametrize("call", [power_cooling.air_flow, power_cooling.coolant_flow])
def test_what_is_not_warmed_carries_nothing(call):
    with pytest.raises(ValueError, match="carries no heat"):
        call(1.0, 0.0)


def test_impossible_circuits_are_refused():
    with pytest.raises(ValueError, match="must be positive"):
        power_cooling.phase_current(1.0, 0.0)
    with pytest.raises(ValueError, match="below 1"):
        power_cooling.site_power(1.0, 0.9)


def test_formulas_have_the_dimensions_they_name():
    unit = pint.UnitRegistry()
    amperes = power_cooling.phase_current(10.2e3 * unit.watt, 415 * unit.volt)
    assert amperes.check("[current]")
    assert power_cooling.site_power(1e6 * unit.watt, 1.5).check("[power]")
