"""Fabrics against the tables of published reference architectures, and their laws."""

import dataclasses
import doctest

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.estimator import registry
from app.estimator.estimates import fabric as changes
from app.estimator.estimates import fabric_report as entry
from app.estimator.estimates.fabric import FabricInputs
from app.estimator.hardware import fat_tree as switches
from app.estimator.inputs import InvalidInputsError

SMALL = st.integers(1, 300)
PORTS = st.sampled_from([36, 40, 48, 64, 128, 144])
RATIOS = st.sampled_from([1.0, 1.5, 2.0, 3.0])


def found(**changed):
    """The figures of a fabric by name."""
    answer = entry.estimate(dataclasses.replace(FabricInputs(), **changed))
    return {figure.name: figure.value for figure in answer.figures}


def test_examples_in_the_docstrings_hold():
    for module in (switches, changes):
        assert doctest.testmod(module).failed == 0


# DGX SuperPOD reference architecture for DGX H100 (RA-11333) and for DGX B200, each
# table 4: nodes, GPUs, leaf, spine, cables to nodes and UFM, cables spine to leaf.
def test_a_superpod_has_the_switches_and_cables_of_its_table(subtests: pytest.Subtests):
    for nodes, leaves, spines, to_nodes, between in [
        (31, 8, 4, 252, 256),
        (63, 16, 8, 508, 512),
        (95, 24, 16, 764, 768),
        (127, 32, 16, 1020, 1024),
    ]:
        for system in ["dgx-h100", "dgx-b200"]:
            with subtests.test(nodes=nodes, leaves=leaves, spines=spines):
                of = found(system=system, nodes=nodes)
                assert (of["leaves"], of["spines"], of["cores"]) == (leaves, spines, 0)
                assert of["node_links"] == to_nodes
                assert of["leaf_spine_links"] == between


# DGX SuperPOD with DGX B200, table 3: larger deployments, without a fabric manager.
def test_larger_deployments_have_the_cores_of_the_published_table(
    subtests: pytest.Subtests,
):
    for nodes, leaves, spines, cores, cables in [
        (64, 16, 8, 0, 512),
        (128, 32, 16, 0, 1024),
        (256, 64, 32, 0, 2048),
        (512, 128, 128, 64, 4096),
        (1024, 256, 256, 128, 8192),
        (2048, 512, 512, 256, 16384),
    ]:
        with subtests.test(nodes=nodes, leaves=leaves, spines=spines):
            of = found(system="dgx-b200", nodes=nodes, managers=0)
            assert (of["leaves"], of["spines"], of["cores"]) == (leaves, spines, cores)
            assert of["node_links"] == of["leaf_spine_links"] == cables
            assert of["spine_core_links"] == (cables if cores else 0)


# DGX SuperPOD with DGX B300 and Quantum-X800, table 3. The last row of the table
# prints 9,216 GPUs for 1,296 nodes of eight; its cables say 10,368.
def test_xdr_units_hold_72_nodes_and_spread_links_evenly(subtests: pytest.Subtests):
    for nodes, leaves, spines, cables in [
        (72, 8, 4, 576),
        (144, 16, 8, 1152),
        (288, 32, 18, 2304),
        (576, 64, 36, 4608),
        (1296, 144, 72, 10368),
    ]:
        with subtests.test(nodes=nodes, leaves=leaves, spines=spines):
            of = found(system="dgx-b300", nodes=nodes, switch="q3400-ra", managers=0)
            assert (of["leaves"], of["spines"], of["cores"]) == (leaves, spines, 0)
            assert of["node_links"] == of["leaf_spine_links"] == cables
            assert of["nodes_per_unit"] == 72


# DGX SuperPOD with DGX B300 and Spectrum-4, table 3: two planes of 400 Gbit/s.
def test_two_planes_split_every_port_of_the_ethernet_switch(subtests: pytest.Subtests):
    for nodes, leaves, spines in [
        (64, 16, 8),
        (128, 32, 16),
        (256, 64, 32),
        (512, 128, 64),
        (1024, 256, 128),
    ]:
        with subtests.test(nodes=nodes, leaves=leaves, spines=spines):
            of = found(system="dgx-b300", nodes=nodes, switch="sn5600", managers=0, planes=2)
            assert (of["leaves"], of["spines"], of["cores"]) == (leaves, spines, 0)
            assert of["nodes_per_unit"] == 64


# Systems of a scalable unit in NVIDIA's DGX SuperPOD reference architectures: A100 20,
# H100 and B200 32, B300 64 with Spectrum-4 or 72 with Quantum-X800, GB200 eight racks.
def test_scalable_units_are_those_of_the_reference_architecture(
    subtests: pytest.Subtests,
):
    for system, switch, nodes, units in [
        ("dgx-a100", None, 140, 7),
        ("dgx-h100", None, 127, 4),
        ("dgx-b200", None, 128, 4),
        ("dgx-b300", "sn5600", 256, 4),
        ("dgx-b300", None, 288, 4),
        ("gb200-nvl72", None, 8, 1),
        ("gb200-nvl72", None, 128, 16),
    ]:
        with subtests.test(system=system, switch=switch, nodes=nodes):
            of = found(system=system, switch=switch, nodes=nodes)
            assert of["scalable_units"] == units
            assert of["nodes_per_unit"] == nodes / units or nodes == 127


# ConnectX-6 200, ConnectX-7 400 and ConnectX-8 800 Gbit/s.
def test_the_switch_is_as_fast_as_the_adapters_unless_another_is_asked_for(
    subtests: pytest.Subtests,
):
    for system, leaf in [
        ("dgx-a100", "Quantum QM8700 (HDR)"),
        ("dgx-h100", "Quantum-2 QM9700 (NDR)"),
        ("gb200-nvl72", "Quantum-2 QM9700 (NDR)"),
        ("dgx-b300", "Quantum-X800 Q3400-RA (XDR)"),
        ("gb300-nvl72", "Quantum-X800 Q3400-RA (XDR)"),
    ]:
        with subtests.test(system=system, leaf=leaf):
            answer = entry.estimate(FabricInputs(system=system, nodes=64))
            assert answer.tables[0].rows[0][1] == leaf
            assert "non-blocking" in answer.verdict.text


def test_a_switch_slower_than_the_adapters_is_said_before_anything_else():
    verdict = entry.estimate(FabricInputs("dgx-b300", 64, "qm9700")).verdict
    assert verdict.status == "tight"
    assert verdict.lead == "16 leaf and 8 spine switches, slower than the adapters."
    assert "at 50% of the rate of the adapters" in verdict.text
    assert "non-blocking" not in verdict.text


def test_the_verdict_says_the_switches_in_one_sentence():
    verdict = entry.estimate(FabricInputs()).verdict
    assert verdict.lead == "32 leaf and 16 spine switches."
    assert verdict.text == (
        "They join 127 DGX H100 with 1,016\u00a0GPUs in 4 scalable units by InfiniBand of "
        "400 Gbit/s for each adapter (Quantum-2 QM9700 (NDR)), non-blocking, over 2,044 cables "
        "of the compute network."
    )


def test_a_128th_node_takes_the_ports_of_the_fabric_manager_and_no_switch():
    change = next(c for c in entry.estimate(FabricInputs()).changes if c.field == "nodes")
    assert change.new_value == "129"
    full = found(nodes=128)
    assert (full["leaves"], full["switches"], full["node_links"]) == (32, 48, 1024)
    assert found(nodes=127)["node_links"] == 127 * 8 + 4


def test_what_changes_nothing_is_no_change():
    answer = entry.estimate(FabricInputs(nodes=8))  # One switch has no uplinks to leave out.
    assert answer.verdict.lead == "One switch."
    assert "oversubscription" not in {c.field for c in answer.changes}
    half = entry.estimate(FabricInputs(nodes=15))  # 30 links of a leaf need 15 uplinks, not 21.
    assert "4 leaf and 2 spine switches." in half.verdict.lead
    becomes = {c.field: c.verdict_after for c in half.changes}
    assert becomes["oversubscription"] == "4 leaf and 1 spine switches."


def test_the_chart_has_the_switches_of_the_headline_at_every_number_of_systems(
    subtests: pytest.Subtests,
):
    for nodes in (1, 20, 32, 33, 64, 65, 127, 500):
        for ratio in (1.0, 2.0):
            with subtests.test(nodes=nodes, ratio=ratio):
                inputs = FabricInputs(nodes=nodes, oversubscription=ratio)
                needed, asked = entry.estimate(inputs).pictures[0].lines
                systems = [place for place, _ in needed.points]
                assert len(set(systems)) == len(systems)
                for place, height in (*needed.points[:6], *asked.points):
                    assert found(nodes=int(place), oversubscription=ratio)["switches"] == height


def test_leaves_that_are_not_full_have_no_more_uplinks_than_the_ratio_needs():
    of = found(nodes=64, oversubscription=2.0)
    assert (of["leaves"], of["spines"], of["leaf_spine_links"]) == (16, 4, 16 * 16)
    assert of["oversubscription"] == 2
    assert of["bisection"] == 512 * 50e9 / 2 / 2
    # 33 links of a leaf need 17 uplinks, which are even only over 17 spines; 20 take five.
    of = found(nodes=65, oversubscription=2.0)
    assert (of["leaves"], of["spines"], of["oversubscription"]) == (16, 5, 33 / 20)
    text = entry.estimate(FabricInputs(nodes=65, oversubscription=2.0)).verdict.text
    assert "1.65:1 oversubscribed" in text


@given(nodes=SMALL, ratio=RATIOS)
def test_no_leaf_has_more_links_to_nodes_for_each_uplink_than_asked(nodes: int, ratio: float):
    of = found(nodes=nodes, oversubscription=ratio)
    assert 0 < of["oversubscription"] <= ratio + 1e-9
    for change in entry.estimate(FabricInputs(nodes=nodes, oversubscription=ratio)).changes:
        if change.field == "nodes":
            more = int(change.new_value.replace(",", ""))
            before, then = (found(nodes=n, oversubscription=ratio) for n in (more - 1, more))
            assert before["switches"] == of["switches"] or before["leaves"] == of["leaves"]
            assert (then["leaves"], then["spines"]) != (of["leaves"], of["spines"])


def test_eight_nodes_fit_on_one_switch_when_nothing_else_is_on_it():
    of = found(nodes=8)
    assert (of["switches"], of["tiers"]) == (1, 1)


def test_few_nodes_share_leaves_between_rails():
    assert found(nodes=16)["leaves"] == 4


def test_a_rack_of_72_counts_as_18_trays_of_four():
    of = found(system="gb200-nvl72", nodes=8)
    assert of["node_links"] == 8 * 72 + 4


def test_twin_port_cages_need_a_module_for_two_links():
    # 127 nodes with four cages, four links of managers, 3,068 switch ports in pairs.
    assert found()["transceivers"] == 127 * 4 + 4 + 1534


def test_what_cannot_be_built_is_refused_with_a_reason(subtests: pytest.Subtests):
    for changed, field, says in [
        ({"switch": "ib-ndr"}, "switch", "not a switch"),
        ({"switch": "connectx-7"}, "switch", "not a switch"),
        ({"system": "vera-rubin-nvl72"}, "adapters", "write “Adapters per system”, for example 72"),
        ({"system": "vera-rubin-nvl72", "adapters": 72}, "rate", "write “Rate of an adapter”"),
        ({"nodes": 300, "tiers": "2"}, "nodes", "at most 256"),
        ({"nodes": 9000}, "nodes", "at most 8,192"),
        ({"adapters": 30}, "adapters", "trays of four"),
    ]:
        with subtests.test(changed=changed, field=field, says=says):
            with pytest.raises(InvalidInputsError, match=says) as refused:
                found(**changed)
            assert refused.value.problems[0].field == field


@given(SMALL, PORTS, RATIOS)
def test_links_of_a_tree_end_in_ports(leaves, ports, ratio):
    tree = switches.build_fat_tree(leaves, ports, ratio)
    if tree is None:
        assert leaves > switches.max_leaves(ports, ratio, 3)
        return
    assert tree.downlinks_per_leaf == ports - max(switches.list_allowed_uplink_counts(ports, ratio))
    assert tree.downlinks_per_leaf + tree.uplinks_per_leaf <= ports
    assert tree.downlinks_per_leaf / tree.uplinks_per_leaf <= ratio + 1e-9
    assert tree.leaf_spine_links + tree.spine_core_links <= tree.spines * ports
    assert tree.spine_core_links <= tree.cores * ports


def test_a_port_stays_free_where_it_would_cost_spines():
    # 22 links up of each leaf spread evenly only over 11 spines, 21 over three.
    tree = switches.build_two_tier_tree(8, 64, 2.0)
    assert (tree.downlinks_per_leaf, tree.uplinks_per_leaf, tree.spines) == (42, 21, 3)


@given(SMALL, PORTS)
def test_a_non_blocking_tree_has_the_same_links_at_every_tier(leaves, ports):
    tree = switches.build_three_tier_tree(leaves, ports)
    if tree is not None and tree.spines * (ports // 2) == tree.leaf_spine_links:
        assert tree.spine_core_links == tree.leaf_spine_links == leaves * tree.downlinks_per_leaf


@given(st.integers(1, 2000), st.sampled_from(["rail", "tree"]))
def test_more_nodes_never_need_fewer_leaves_or_cables(nodes, layout):
    few, more = (found(nodes=n, layout=layout) for n in (nodes, nodes + 1))
    assert more["leaves"] >= few["leaves"]
    assert more["node_links"] > few["node_links"]


@given(st.integers(1, 2000), st.sampled_from(["rail", "tree"]))
def test_leaves_have_a_port_for_every_link(nodes, layout):
    of = found(nodes=nodes, layout=layout)
    down = 64 if of["tiers"] == 1 else 32
    assert of["leaves"] * down >= of["node_links"] >= nodes * 8


@given(st.integers(9, 2000), st.floats(1.0, 8.0))
def test_oversubscription_never_adds_switches_between_leaves(nodes, ratio):
    even, crowded = found(nodes=nodes), found(nodes=nodes, oversubscription=ratio)
    assert crowded["oversubscription"] <= ratio + 1e-9
    assert crowded["bisection"] <= even["bisection"]


def test_one_switch_joins_as_many_systems_as_it_has_ports_for():
    one = found(nodes=5)
    assert (one["tiers"], one["most_systems"]) == (1, 8)
    assert found(nodes=9)["most_systems"] > 8


def test_a_board_without_adapters_is_joined_with_those_of_the_system_of_its_gpus():
    board, system = (
        registry.run_estimate("fabric", {"system": name, "nodes": 64})
        for name in ("hgx-h100-8", "dgx-h100")
    )
    assert board["leaves"].value == system["leaves"].value
    assert "8 of 400 Gbit/s are assumed, as in the DGX H100" in " ".join(board.notes)
    assert "are assumed" not in " ".join(system.notes)
    typed = {"system": "hgx-h100-8", "nodes": 64, "adapters": 4, "rate": "200 Gbit/s"}
    assert "are assumed" not in " ".join(registry.run_estimate("fabric", typed).notes)
