"""`fabric`: verdict, figures, charts and formula steps of a result."""

from app.estimator.estimates.fabric import (
    FabricInputs,
    FabricResult,
    build_switch_count_chart,
    compute_fabric,
    describe_switches,
    describe_unplaced_manager_links,
    find_similar_system_with_adapters,
    find_verdict_changes,
    max_connected_systems,
)
from app.estimator.formula_steps import StepBuilder, format_term, multiply_or_divide_formula
from app.estimator.hardware.catalog import NetworkPart
from app.estimator.hardware.fat_tree import FatTree
from app.estimator.registry import EstimateSpec
from app.estimator.result import (
    Estimate,
    FormulaStep,
    OutputSpec,
    OutputValue,
    ResultTable,
    TableCell,
    Verdict,
    read_figures,
)
from app.estimator.units import format_number, format_value


def _compute_network_power_value(result: FabricResult) -> OutputValue:
    switch_power = result.switch.power
    note = "At most, without cooling."
    if not switch_power:
        note = f"The power of the {result.switch.name} is not known."
    return OutputValue(
        None if switch_power is None else switch_power * result.compute_network_switches, note=note
    )


def _side_switches_output_name(side_network: str) -> str:
    """Return the name of the output for the switches of a side network.

    >>> _side_switches_output_name("Out-of-band")
    'out_of_band_switches'
    """
    return f"{side_network.lower().replace('-', '_')}_switches"


def _side_switches_output(name: str) -> OutputSpec[FabricResult]:
    return OutputSpec(
        _side_switches_output_name(name),
        f"{name} switches",
        read=lambda r: r.find_side_network(name).tree.switches,
    )


OUTPUTS: tuple[OutputSpec[FabricResult], ...] = (
    OutputSpec(
        "switches",
        "Switches",
        better="less",
        read=lambda r: OutputValue(
            r.compute_network_switches, note=describe_unplaced_manager_links(r)
        ),
        primary=True,
    ),
    OutputSpec("leaves", "Leaf switches", read=lambda r: r.plane_tree.leaves * r.planes),
    OutputSpec("spines", "Spine switches", read=lambda r: r.plane_tree.spines * r.planes),
    OutputSpec("cores", "Core switches", read=lambda r: r.plane_tree.cores * r.planes),
    OutputSpec("tiers", "Tiers", read=lambda r: r.plane_tree.tiers),
    OutputSpec("cables", "Cables", better="less", read=lambda r: r.compute_network_cables),
    OutputSpec("node_links", "Cables to nodes"),
    OutputSpec(
        "leaf_spine_links",
        "Cables from leaf to spine",
        read=lambda r: r.plane_tree.leaf_spine_links * r.planes,
    ),
    OutputSpec(
        "spine_core_links",
        "Cables from spine to core",
        read=lambda r: r.plane_tree.spine_core_links * r.planes,
    ),
    OutputSpec("transceivers", "Transceivers", read=lambda r: r.compute_network_transceivers),
    OutputSpec(
        "oversubscription", "Oversubscription", "", "less", lambda r: r.plane_tree.oversubscription
    ),
    OutputSpec("bisection", "Bisection bandwidth", "B/s", "more"),
    OutputSpec("scalable_units", "Scalable units", read=lambda r: r.scalable_unit_count),
    OutputSpec(
        "nodes_per_unit", "Nodes of a full unit", "node", read=lambda r: r.systems_per_scalable_unit
    ),
    OutputSpec(
        "most_systems",
        "Most systems in these tiers",
        "node",
        "more",
        lambda r: max_connected_systems(r.plane_wiring, r.hosts, r.plane_tree.tiers),
    ),
    *(_side_switches_output(name) for name in ("Storage", "In-band", "Out-of-band")),
    OutputSpec("power", "Power of the compute switches", "W", "less", _compute_network_power_value),
)
_STEPS = StepBuilder(OUTPUTS, "interconnects")


def estimate(inputs: FabricInputs) -> Estimate:
    result = compute_fabric(inputs)
    return Estimate(
        name="fabric",
        verdict=_build_verdict(result),
        figures=read_figures(OUTPUTS, result),
        steps=_build_steps(inputs, result),
        pictures=(build_switch_count_chart(result),),
        tables=(_build_networks_table(result),),
        notes=_build_notes(inputs, result),
        changes=find_verdict_changes(inputs, result),
    )


def _build_verdict(result: FabricResult) -> Verdict:
    hosts = result.hosts
    text = describe_switches(result.plane_tree, result.planes)
    gpus = format_value(hosts.system_count * hosts.system.gpus, "GPU")
    size = f"{format_number(hosts.system_count)} {hosts.system.name} with {gpus}"
    units = ""
    if result.scalable_unit_count > 1:
        units = f" in {format_number(result.scalable_unit_count)} scalable units"
    is_slow = result.link_share_of_adapter_rate < 1
    join = "It joins" if text == "one switch" else "They join"
    lead = f"{text[:1].upper()}{text[1:]}"
    kind = "InfiniBand" if "Quantum" in result.switch.name else "Ethernet"
    rate = f"{format_number(result.link_rate * result.planes * 8e-9)} Gbit/s"
    network_text = f"by {kind} of {rate} for each adapter ({result.switch.name})"
    return Verdict(
        "tight" if is_slow else "info",
        f"{lead}, slower than the adapters." if is_slow else f"{lead}.",
        f"{join} {size}{units} {network_text}, {_describe_oversubscription_or_slow_links(result)}, over "
        f"{format_number(result.compute_network_cables)} cables of the compute network. "
        f"{describe_unplaced_manager_links(result)}".strip(),
    )


def _describe_oversubscription_or_slow_links(result: FabricResult) -> str:
    if result.link_share_of_adapter_rate < 1:
        return (
            f"at {format_value(result.link_share_of_adapter_rate, '%')} of the rate of the adapters"
        )
    ratio = result.plane_tree.oversubscription
    return "non-blocking" if ratio <= 1 else f"{format_number(ratio)}:1 oversubscribed"


def _build_steps(inputs: FabricInputs, result: FabricResult) -> tuple[FormulaStep, ...]:
    hosts = result.hosts
    nodes = "hosts × adapters + links to the fabric manager"
    steps = [
        _STEPS.build_step(
            "node_links",
            f"({nodes}) × planes" if result.planes > 1 else nodes,
            _multiply_by_planes(
                f"{format_term(hosts.host_count)} × {hosts.rails_per_host} + {result.placed_manager_links_per_plane}",
                result.planes,
            ),
            result.node_links,
            "superpod-h100",
        )
    ]
    if result.plane_tree.spines:
        steps += _tree_steps(inputs, result)
    steps.append(
        _STEPS.build_step_from_template(
            "bisection",
            "[adapters] × [rate] ÷ 2 ÷ [oversubscription]",
            (
                hosts.ports,
                (result.link_rate * result.planes, "B/s"),
                result.plane_tree.oversubscription,
            ),
            result.bisection,
            "leiserson-1985",
        )
    )
    return (*steps, *_side_network_steps(result))


def _tree_steps(inputs: FabricInputs, result: FabricResult) -> list[FormulaStep]:
    tree, planes = result.plane_tree, result.planes
    free_ports = tree.ports_per_switch - tree.downlinks_per_leaf - tree.uplinks_per_leaf
    steps = [
        _STEPS.build_step(
            "leaves",
            "ports − uplinks to spines" + " − ports left free" * bool(free_ports),
            f"{tree.ports_per_switch} − {tree.uplinks_per_leaf}"
            + f" − {free_ports}" * bool(free_ports),
            tree.downlinks_per_leaf,
            "leiserson-1985",
            label="Ports of a leaf to nodes",
        ),
        _leaf_count_step(inputs, result),
        _STEPS.build_step(
            "spines",
            "uplinks of a leaf ÷ its links to each spine × pods",
            _spine_count_formula(tree, planes),
            tree.spines * planes,
            "superpod-h100",
        ),
    ]
    if tree.cores:
        steps.append(
            _STEPS.build_step(
                "cores",
                "spines of a pod × cores that each of them joins",
                _multiply_by_planes(
                    f"{tree.spines // tree.pods} × {tree.cores * tree.pods // tree.spines}", planes
                ),
                tree.cores * planes,
                "superpod-b200",
            )
        )
    if tree.fullest_leaf_links_to_nodes:
        steps.append(
            _STEPS.build_step(
                "oversubscription",
                "links of the fullest leaf to nodes ÷ its uplinks",
                f"{tree.fullest_leaf_links_to_nodes} ÷ {tree.uplinks_per_leaf}",
                tree.oversubscription,
                "leiserson-1985",
            )
        )
    steps.append(
        _STEPS.build_step(
            "leaf_spine_links",
            "leaves × uplinks of a leaf" + (" + spines × half of the ports" * bool(tree.cores)),
            _multiply_by_planes(
                f"{tree.leaves} × {tree.uplinks_per_leaf}"
                + (f" + {tree.spines} × {tree.ports_per_switch // 2}" if tree.cores else ""),
                planes,
            ),
            result.links_between_switches,
            "superpod-b200",
            label="Cables between switches",
        )
    )
    return steps


def _leaf_count_step(inputs: FabricInputs, result: FabricResult) -> FormulaStep:
    tree, rails, planes = result.plane_tree, result.hosts.rails_per_host, result.planes
    is_rail_aligned = inputs.layout == "rail" and tree.leaves == result.leaf_group_count * rails
    if is_rail_aligned:
        formula = "leaf switches for each adapter × adapters of a host"
        line = f"{result.leaf_group_count} × {rails}"
    else:
        formula = "⌈cables to nodes ÷ ports⌉"
        line = f"⌈{format_term(result.node_links // planes)} ÷ {tree.downlinks_per_leaf}⌉"
        rails_per_leaf = max(1, tree.downlinks_per_leaf // result.hosts.host_count)
        if inputs.layout == "rail" and tree.leaves == -(-rails // rails_per_leaf) > 1:
            formula = f"max(⌈adapters ÷ rails of a leaf⌉, {formula})"
            line = f"max(⌈{rails} ÷ {rails_per_leaf}⌉, {line})"
    return _STEPS.build_step(
        "leaves", formula, _multiply_by_planes(line, planes), tree.leaves * planes, "superpod-h100"
    )


def _multiply_by_planes(formula: str, planes: int) -> str:
    return multiply_or_divide_formula(formula, planes) if planes > 1 else formula


def _spine_count_formula(tree: FatTree, planes: int) -> str:
    spines_per_pod = tree.spines // tree.pods
    line = f"{tree.uplinks_per_leaf} ÷ {tree.uplinks_per_leaf // spines_per_pod}"
    return _multiply_by_planes(f"{line} × {tree.pods}" if tree.pods > 1 else line, planes)


def _side_network_steps(result: FabricResult) -> list[FormulaStep]:
    return [
        _STEPS.build_step(
            _side_switches_output_name(side.name),
            f"leaf + spine + core switches: {format_term(side.endpoints)} ports on {side.switch.name}",
            " + ".join(
                str(count)
                for count in (side.tree.leaves, side.tree.spines, side.tree.cores)
                if count
            )
            or "0",
            side.tree.switches,
            "basepod",
        )
        for side in result.side_networks
    ]


def _build_networks_table(result: FabricResult) -> ResultTable:
    rows = [
        _network_row("Compute", result.switch, result.node_links, result.plane_tree, result.planes),
        *(_network_row(s.name, s.switch, s.endpoints, s.tree) for s in result.side_networks),
    ]
    columns = ("Network", "Switch", "Ports", "Leaf", "Spine", "Core", "Cables")
    return ResultTable("The four networks", columns, tuple(rows))


def _network_row(
    name: str, switch: NetworkPart, ports: int, tree: FatTree, planes: int = 1
) -> tuple[TableCell, ...]:
    cables = ports + (tree.leaf_spine_links + tree.spine_core_links) * planes
    switches = (tree.leaves * planes, tree.spines * planes, tree.cores * planes)
    counts = ((float(count), "") for count in (ports, *switches, cables))
    return (name, switch.name, *counts)


def _build_notes(inputs: FabricInputs, result: FabricResult) -> tuple[str, ...]:
    hosts, tree = result.hosts, result.plane_tree
    notes = [_CABLES_NOTE, _AS_LINKED if tree.fullest_leaf_links_to_nodes else _FULL_LEAVES_NOTE]
    if result.reference_design:
        notes.append(
            "A scalable unit is the group of systems by which a cluster grows: "
            f"{format_number(result.systems_per_scalable_unit)} in {result.reference_design.name}."
        )
    if inputs.managers > 0 and (tree.leaves * tree.downlinks_per_leaf) % hosts.rails_per_host == 0:
        notes.append(_FABRIC_MANAGER_NOTE)
    if hosts.hosts_per_system > 1:
        notes.append(
            f"The {hosts.system.name} counts as {hosts.hosts_per_system} compute trays with "
            f"{hosts.rails_per_host} adapters each, as a leaf counts ports."
        )
    if inputs.layout == "rail" and 0 < tree.leaves < hosts.rails_per_host and tree.spines:
        notes.append(
            f"Few nodes: {hosts.rails_per_host} rails share {tree.leaves} leaves, and growing "
            "means new cables."
        )
    return (
        *_assumed_adapter_notes(inputs, result),
        *notes,
        *_link_rate_notes(result),
        _STORAGE_PORTS_NOTE,
    )


def _assumed_adapter_notes(inputs: FabricInputs, result: FabricResult) -> tuple[str, ...]:
    """Say whose adapters are taken for a system that is listed without any."""
    system = result.hosts.system
    similar = find_similar_system_with_adapters(system)
    is_given = (inputs.adapters or system.nics) and (inputs.rate or system.nic)
    if is_given or similar is None:
        return ()
    adapters = inputs.adapters or similar.nics
    rate = format_number(result.hosts.adapter_rate * 8e-9)
    note = (
        f"The {system.name} is listed without adapters, which makers of servers choose: "
        f"{adapters} of {rate} Gbit/s are assumed, as in the {similar.name}. Write "
        "yours in “Adapters per system” and “Rate of an adapter”."
    )
    return (note,)


def _link_rate_notes(result: FabricResult) -> tuple[str, ...]:
    notes = []
    if result.links_per_switch_port > 1:
        notes.append(
            f"Each port of {format_value((result.switch.port_rate or 0) * 8e-9)} Gbit/s "
            f"is split into {result.links_per_switch_port}."
        )
    if result.link_share_of_adapter_rate < 1:
        notes.append(
            "The switch is slower than the adapters, which run at its rate: "
            f"{format_value(result.link_rate, 'B/s')} in one direction."
        )
    return tuple(notes)


_CABLES_NOTE = (
    "A cable is one link; transceivers stand at both ends, two links to a module where "
    "cages take two. Copper cables within a rack need none."
)

_FULL_LEAVES_NOTE = (
    "Counted are full leaves: a cluster that grows to its scalable units needs no new switch."
)

_AS_LINKED = (
    "Leaves that are not full have only the uplinks that keep the oversubscription with the "
    "fewest switches: a cluster that grows to its scalable units needs more of them."
)

_FABRIC_MANAGER_NOTE = (
    "The links of the fabric manager take ports of a node: published designs leave one "
    "place of the last unit free for it."
)

_STORAGE_PORTS_NOTE = (
    "Ports of the storage network: the links of the nodes and, unless written, a "
    "quarter more for the storage itself. In-band management: two for each node and "
    "server, oversubscribed 3:1 on full leaves. Out-of-band: one for each node, server and switch; "
    "power strips and storage controllers come on top."
)


ENTRY = EstimateSpec(
    name="fabric",
    title="Network fabric",
    summary="Switches, cables and transceivers that join a number of systems.",
    group="Cluster",
    inputs_type=FabricInputs,
    compute_estimate=estimate,
    outputs=OUTPUTS,
    most_important_outputs=("switches", "cables", "power"),
    main_inputs=("system", "nodes", "switch"),
    topic="interconnects",
)
