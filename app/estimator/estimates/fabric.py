"""`fabric`: inputs, result, and the input values where the verdict changes."""

import dataclasses

from app.estimator.common_inputs import impossible_input_error
from app.estimator.hardware.catalog import (
    NetworkPart,
    ReferenceDesign,
    System,
    find_network_part,
    find_reference_design_for_system,
    find_system,
    list_systems,
)
from app.estimator.hardware.fat_tree import (
    FatTree,
    build_fat_tree,
    build_single_switch,
    count_rail_leaves,
    count_rail_scalable_units,
    max_leaves,
    split_leaf_ports,
)
from app.estimator.inputs import InputGroup, input_specs
from app.estimator.result import Chart, ChartLine, VerdictChange
from app.estimator.units import format_number

_CLUSTER = InputGroup("Cluster", "cluster-components")
_COMPUTE_NETWORK = InputGroup("Compute network", "interconnects")
_OTHER_NETWORKS = InputGroup("Other networks", "interconnects")

LAYOUTS = (("rail", "Rail-optimized"), ("tree", "Fat tree, nodes by leaf"))

TIERS = (("auto", "Automatic"), ("2", "Leaf and spine"), ("3", "Leaf, spine and core"))


@dataclasses.dataclass(frozen=True, slots=True)
class FabricInputs:
    system: str = _CLUSTER.declare_input_field(
        "dgx-h100",
        "System",
        kind="system",
        help="What the cluster is made of; it brings adapters and their rate.",
    )
    nodes: int = _CLUSTER.declare_input_field(
        127,
        "Systems",
        unit="node",
        limits=(1, 100_000),
        help="Servers, or racks where a rack is the system.",
    )
    switch: str | None = _COMPUTE_NETWORK.declare_input_field(
        None,
        "Switch",
        kind="network",
        help="The switch of the compute network, the same in every tier; left empty: "
        "the switch with ports as fast as the adapters, of InfiniBand if they are not of "
        "Ethernet.",
    )
    layout: str = _COMPUTE_NETWORK.declare_input_field(
        "rail",
        "Layout",
        choices=LAYOUTS,
        help="Rail-optimized: adapter 1 of every node on one leaf, adapter 2 on the next.",
        term="rail-optimised",
    )
    oversubscription: float = _COMPUTE_NETWORK.declare_input_field(
        1.0,
        "Oversubscription",
        limits=(1.0, 16.0),
        help="Ports toward nodes over ports toward spines: 1 is non-blocking.",
        term="oversubscription",
    )
    tiers: str = _COMPUTE_NETWORK.declare_advanced_input_field(
        "auto",
        "Tiers",
        choices=TIERS,
        help="Leaf and spine, or leaf, spine and core; automatic takes the fewest.",
    )
    managers: int = _COMPUTE_NETWORK.declare_advanced_input_field(
        4,
        "Links of fabric managers",
        limits=(0, 64),
        help="Ports that the fabric manager takes; published designs give it four, in "
        "place of a node. They are left out where no port is free.",
    )
    planes: int = _COMPUTE_NETWORK.declare_advanced_input_field(
        1, "Planes", limits=(1, 8), help="Separate fabrics over which each adapter splits its rate."
    )
    adapters: int | None = _CLUSTER.declare_advanced_input_field(
        None,
        "Adapters per system",
        kind="count",
        limits=(1, 144),
        help="Adapters of the compute network; left empty: those of the system.",
    )
    rate: float | None = _CLUSTER.declare_advanced_input_field(
        None,
        "Rate of an adapter",
        unit="Gbit/s",
        limits=(1e8, 1e12),
        help="In one direction; left empty: that of the system.",
        topic="interconnects",
    )
    storage_links: int = _OTHER_NETWORKS.declare_advanced_input_field(
        2,
        "Storage links per node",
        limits=(0, 64),
        help="Ports that each server or compute tray has on the storage network.",
        term="storage-network",
    )
    storage_ports: int | None = _OTHER_NETWORKS.declare_advanced_input_field(
        None,
        "Ports of the storage",
        kind="count",
        limits=(0, 100_000),
        help="Ports of the storage servers; left empty: one for every four of the nodes.",
    )
    servers: int = _OTHER_NETWORKS.declare_advanced_input_field(
        5,
        "Management servers",
        limits=(0, 10_000),
        help="Servers that provision, schedule and monitor.",
        term="in-band-management",
    )


@dataclasses.dataclass(frozen=True, slots=True)
class FabricHosts:
    """The endpoints: servers or compute trays with one adapter per rail."""

    system: System
    system_count: int
    host_count: int
    rails_per_host: int
    hosts_per_system: int
    adapter_rate: float

    @property
    def ports(self) -> int:
        return self.host_count * self.rails_per_host


@dataclasses.dataclass(frozen=True, slots=True)
class SideNetwork:
    name: str
    switch: NetworkPart
    endpoints: int
    tree: FatTree


@dataclasses.dataclass(frozen=True, slots=True)
class PlaneWiring:
    """Wiring of one plane; `requested_tiers` is 0 if as few as possible are built."""

    switch_ports: int
    oversubscription: float
    layout: str
    requested_tiers: int
    manager_links: int


@dataclasses.dataclass(frozen=True, slots=True)
class FabricResult:
    """All networks of a cluster. `link_rate` is that of one link [B/s, one way]."""

    hosts: FabricHosts
    switch: NetworkPart
    plane_wiring: PlaneWiring
    plane_tree: FatTree
    planes: int
    links_per_switch_port: int
    link_rate: float
    side_networks: tuple[SideNetwork, ...]

    @property
    def placed_manager_links_per_plane(self) -> int:
        """Return the links of fabric managers on each plane; none where no port is free.

        Nobody adds a group of switches for a few links of management.
        """
        free = self.plane_tree.leaves * self.plane_tree.downlinks_per_leaf - self.hosts.ports
        return self.plane_wiring.manager_links if free >= self.plane_wiring.manager_links else 0

    @property
    def hosts_per_leaf_group(self) -> int:
        """Return the hosts of a full group: the ports of a leaf to nodes."""
        if self.plane_tree.tiers == 1:
            return max(1, self.plane_tree.ports_per_switch // self.hosts.rails_per_host)
        return self.plane_tree.downlinks_per_leaf

    @property
    def leaf_group_count(self) -> int:
        """Return the number of groups, each with one leaf per rail, partly filled ones included."""
        if self.plane_tree.tiers == 1:
            return 1
        return count_rail_scalable_units(self.hosts.host_count, self.plane_tree.downlinks_per_leaf)

    @property
    def reference_design(self) -> ReferenceDesign | None:
        return find_reference_design_for_system(self.hosts.system.id, self.switch.id)

    @property
    def systems_per_scalable_unit(self) -> int:
        """Return the systems of a scalable unit: as published, or those of a group."""
        published = self.reference_design.nodes_per_unit if self.reference_design else None
        return published or max(1, self.hosts_per_leaf_group // self.hosts.hosts_per_system)

    @property
    def scalable_unit_count(self) -> int:
        """Return the number of scalable units, partly filled ones included."""
        if self.reference_design:
            return -(-self.hosts.system_count // self.systems_per_scalable_unit)
        return self.leaf_group_count

    @property
    def link_share_of_adapter_rate(self) -> float:
        """Return the share of the adapters' bandwidth that the links carry."""
        return min(1.0, self.link_rate * self.planes / self.hosts.adapter_rate)

    @property
    def compute_network_switches(self) -> int:
        return self.plane_tree.switches * self.planes

    @property
    def node_links(self) -> int:
        return (self.hosts.ports + self.placed_manager_links_per_plane) * self.planes

    @property
    def links_between_switches(self) -> int:
        return (self.plane_tree.leaf_spine_links + self.plane_tree.spine_core_links) * self.planes

    @property
    def compute_network_cables(self) -> int:
        return self.node_links + self.links_between_switches

    @property
    def compute_network_transceivers(self) -> int:
        switch_ends = self.node_links + 2 * self.links_between_switches
        each = (
            self.hosts.system.nic_cages or self.hosts.rails_per_host * self.hosts.hosts_per_system
        )
        at_nodes = (
            self.hosts.system_count * each + self.placed_manager_links_per_plane * self.planes
        )
        return at_nodes + -(
            -switch_ends // (self.switch.ports_per_cage * self.links_per_switch_port)
        )

    @property
    def bisection(self) -> float:
        """Return the bandwidth between two halves of the nodes [B/s, one way]."""
        whole = self.hosts.ports * self.planes * self.link_rate / 2
        return whole / max(1.0, self.plane_tree.oversubscription)

    def find_side_network(self, name: str) -> SideNetwork:
        return next(side for side in self.side_networks if side.name == name)


# From slow to fast.
_INFINIBAND_SWITCHES = ("qm8700", "qm9700", "q3400-ra")
_ETHERNET_SWITCHES = ("sn5400", "sn5600")

_IN_BAND_SWITCH, _OUT_OF_BAND_SWITCH = "sn4600c", "sn2201"

# Management traffic is light, so three ports go down for one up.
_IN_BAND_RATIO = 3.0

# A system with more adapters than a server can have is a rack of trays with four each.
_MOST_ADAPTERS_OF_SERVER, _ADAPTERS_OF_TRAY = 16, 4


def compute_fabric(inputs: FabricInputs) -> FabricResult:
    """Size all networks; raises InvalidInputsError if no tree of switches is large enough."""
    hosts = split_systems_into_hosts(inputs)
    switch = find_requested_or_default_switch(inputs, hosts)
    rate = switch.port_rate or 0.0
    link = min(hosts.adapter_rate / inputs.planes, rate)
    split = 4 if rate >= 4 * link else 2 if rate >= 2 * link else 1
    wiring = PlaneWiring(
        switch_ports=(switch.ports or 0) * split,
        oversubscription=inputs.oversubscription,
        layout=inputs.layout,
        requested_tiers=0 if inputs.tiers == "auto" else int(inputs.tiers),
        manager_links=inputs.managers,
    )
    tree = build_plane_tree(wiring, hosts.host_count, hosts.rails_per_host)
    if tree is None:
        raise _too_many_hosts_error(wiring, hosts)
    sides = _build_side_networks(inputs, hosts, switch, tree.switches * inputs.planes)
    return FabricResult(hosts, switch, wiring, tree, inputs.planes, split, link, sides)


def split_systems_into_hosts(inputs: FabricInputs) -> FabricHosts:
    """Return the hosts of the chosen systems; raises InvalidInputsError for unknown ones."""
    system = find_system(inputs.system)
    similar = find_similar_system_with_adapters(system) or system
    adapters = inputs.adapters or system.nics or similar.nics
    rate = inputs.rate or system.nic or similar.nic
    if adapters is None:
        raise impossible_input_error(
            "adapters", "", _unknown_value_message("adapters", "72", system)
        )
    if rate is None:
        raise impossible_input_error(
            "rate", "", _unknown_value_message("rate", "800 Gbit/s", system)
        )
    is_rack = adapters > _MOST_ADAPTERS_OF_SERVER
    trays = adapters // _ADAPTERS_OF_TRAY if is_rack else 1
    if is_rack and adapters % _ADAPTERS_OF_TRAY:
        message = f"A rack with {adapters} adapters cannot be parted into trays of four"
        raise impossible_input_error("adapters", adapters, f"{message}.")
    rails = adapters // trays
    return FabricHosts(system, inputs.nodes, inputs.nodes * trays, rails, trays, rate)


def _unknown_value_message(field: str, example: str, system: System) -> str:
    label = input_specs(FabricInputs)[field].label
    return f"The {system.name} is listed without it: write “{label}”, for example {example}."


def find_similar_system_with_adapters(system: System) -> System | None:
    """Return a listed system with the same GPUs whose adapters stand for unknown ones.

    >>> find_similar_system_with_adapters(find_system("hgx-h100-8")).name
    'DGX H100'
    """
    return next(
        (
            other
            for other in list_systems()
            if (other.accelerator, other.gpus) == (system.accelerator, system.gpus)
            and other.nics
            and other.nic
        ),
        None,
    )


def find_requested_or_default_switch(inputs: FabricInputs, hosts: FabricHosts) -> NetworkPart:
    """Return the chosen switch, or one with ports of the kind and rate of the adapters.

    Raises InvalidInputsError if the part is not a switch.
    """
    if inputs.switch is None:
        port_rate = hosts.adapter_rate / inputs.planes
        is_ethernet = "GbE" in hosts.system.scale_out_network
        names = _ETHERNET_SWITCHES if is_ethernet else _INFINIBAND_SWITCHES
        parts = [find_network_part(name) for name in names]
        fast = [p for p in parts if (p.port_rate or 0.0) >= port_rate]
        return fast[0] if fast else parts[-1]
    part = find_network_part(inputs.switch)
    if part.kind != "switch" or not part.ports or not part.port_rate:
        message = f"The {part.name} is not a switch; take for example the QM9700."
        raise impossible_input_error("switch", inputs.switch, message)
    return part


def build_plane_tree(wiring: PlaneWiring, host_count: int, rails_per_host: int) -> FatTree | None:
    """Return the tree of one plane; None if there are more hosts than its tiers connect."""
    endpoints = host_count * rails_per_host
    single = None if wiring.requested_tiers else build_single_switch(endpoints, wiring.switch_ports)
    if single is not None:
        return single
    down = split_leaf_ports(wiring.switch_ports, wiring.oversubscription).to_nodes
    if wiring.layout == "rail":
        leaves = count_rail_leaves(host_count, rails_per_host, down)
    else:
        leaves = -(-endpoints // down)
    links_to_nodes = 0
    if wiring.oversubscription > 1:  # Published non-blocking designs connect leaves as if full.
        links_to_nodes = -(-endpoints // leaves)
    return build_fat_tree(
        leaves, wiring.switch_ports, wiring.oversubscription, wiring.requested_tiers, links_to_nodes
    )


def max_connected_systems(wiring: PlaneWiring, hosts: FabricHosts, tiers: int) -> int:
    """Return the most systems that a tree with this number of tiers can connect [1]."""
    if tiers == 1:
        return wiring.switch_ports // (hosts.rails_per_host * hosts.hosts_per_system)
    down = split_leaf_ports(wiring.switch_ports, wiring.oversubscription).to_nodes
    leaves = max_leaves(wiring.switch_ports, wiring.oversubscription, tiers)
    if wiring.layout == "rail":
        leaves -= leaves % hosts.rails_per_host
    capacity = leaves * down // hosts.rails_per_host
    return max(0, capacity // hosts.hosts_per_system)


def _too_many_hosts_error(wiring: PlaneWiring, hosts: FabricHosts) -> Exception:
    tiers = wiring.requested_tiers or 3
    most = format_number(max_connected_systems(wiring, hosts, tiers))
    return impossible_input_error(
        "nodes",
        hosts.system_count,
        f"{format_number(hosts.system_count)} systems are too many for {tiers} tiers of "
        f"switches with {wiring.switch_ports} ports: they join at most {most}.",
    )


def _build_side_networks(
    inputs: FabricInputs, hosts: FabricHosts, switch: NetworkPart, compute_switches: int
) -> tuple[SideNetwork, ...]:
    of_nodes = hosts.host_count * inputs.storage_links
    extra = inputs.storage_ports
    stored = of_nodes + (-(-of_nodes // 4) if extra is None else extra)
    in_band = 2 * (hosts.host_count + inputs.servers)
    sides = [
        _build_side_network("Storage", switch, stored, 1.0),
        _build_side_network("In-band", find_network_part(_IN_BAND_SWITCH), in_band, _IN_BAND_RATIO),
    ]
    compute_switches += sum(s.tree.switches for s in sides)
    boards = hosts.host_count + inputs.servers + compute_switches
    part = find_network_part(_OUT_OF_BAND_SWITCH)
    sides.append(
        SideNetwork("Out-of-band", part, boards, _build_leaf_only_tree(boards, part.ports or 48))
    )
    return tuple(sides)


def _build_side_network(
    name: str, switch: NetworkPart, endpoints: int, oversubscription: float
) -> SideNetwork:
    """Return a network with at least two leaves, so that one may fail."""
    ports = switch.ports or 64
    if endpoints == 0:
        return SideNetwork(name, switch, 0, _build_leaf_only_tree(0, ports))
    if endpoints <= ports:
        return SideNetwork(name, switch, endpoints, FatTree(1, ports, 2, 0, 0, ports, 0))
    down = split_leaf_ports(ports, oversubscription).to_nodes
    leaves = -(-endpoints // down)
    tree = build_fat_tree(leaves, ports, oversubscription)
    if tree is None:
        message = f"{format_number(endpoints)} ports are too many for three tiers"
        raise impossible_input_error(
            "nodes", endpoints, f"{message} of {switch.name}: {name.lower()}."
        )
    return SideNetwork(name, switch, endpoints, tree)


def _build_leaf_only_tree(endpoints: int, ports: int) -> FatTree:
    return FatTree(1, ports, -(-endpoints // ports), 0, 0, ports, 0)


_CHART_POINT_COUNT = 10


def describe_switches(tree: FatTree, planes: int = 1) -> str:
    """Return the switches of a tree as text.

    >>> describe_switches(FatTree(2, 64, 32, 16, 0, 32, 32))
    '32 leaf and 16 spine switches'
    """
    counts = (
        (tree.leaves * planes, "leaf"),
        (tree.spines * planes, "spine"),
        (tree.cores * planes, "core"),
    )
    text = [f"{format_number(n)} {what}" for n, what in counts if n]
    if not tree.spines:
        return "one switch" if planes * tree.leaves == 1 else f"{text[0]} switches"
    return f"{', '.join(text[:-1])} and {text[-1]} switches"


def build_switch_count_chart(result: FabricResult) -> Chart:
    hosts = result.hosts
    unit = max(1, result.hosts_per_leaf_group // hosts.hosts_per_system)
    reach = max(2 * hosts.system_count, 2 * unit)
    stride = max(unit, -(-reach // (_CHART_POINT_COUNT * unit)) * unit)
    points: list[tuple[float, float]] = []
    for stop in range(stride, reach + stride, stride):
        for nodes in sorted({stop - stride + 1, stop}):
            tree = build_plane_tree(
                result.plane_wiring, nodes * hosts.hosts_per_system, hosts.rails_per_host
            )
            if tree is not None:
                points.append((float(nodes), float(tree.switches * result.planes)))
    here = (float(hosts.system_count), float(result.compute_network_switches))
    return Chart(
        "Switches by number of systems",
        "Systems",
        "Compute switches",
        "node",
        "",
        (ChartLine("Needed", tuple(points)), ChartLine("Asked for", (here,), "mark")),
    )


def find_verdict_changes(inputs: FabricInputs, result: FabricResult) -> tuple[VerdictChange, ...]:
    hosts, wiring = result.hosts, result.plane_wiring
    capacity = (
        result.plane_tree.leaves
        * result.plane_tree.downlinks_per_leaf
        // hosts.rails_per_host
        // hosts.hosts_per_system
    )
    more = _next_system_count_with_other_switches(result, max(capacity, hosts.system_count) + 1)
    ratio = 1.0 if wiring.oversubscription > 1 else 2.0
    layout = "tree" if wiring.layout == "rail" else "rail"
    tried = (
        ("nodes", more, wiring, more),
        (
            "oversubscription",
            ratio,
            dataclasses.replace(wiring, oversubscription=ratio),
            hosts.system_count,
        ),
        ("layout", layout, dataclasses.replace(wiring, layout=layout), hosts.system_count),
    )
    return tuple(
        VerdictChange(
            field,
            input_specs(FabricInputs)[field].label,
            _format_layout_or_number(getattr(inputs, field)),
            _format_layout_or_number(value),
            becomes,
        )
        for field, value, other, systems in tried
        if (becomes := _describe_switch_change(result, other, systems))
    )


def _next_system_count_with_other_switches(result: FabricResult, max_system_count: int) -> int:
    """Return the first larger number of systems that needs other switches, `max_system_count` at most."""
    for systems in range(result.hosts.system_count + 1, max_system_count):
        if _describe_switch_change(result, result.plane_wiring, systems):
            return systems
    return max_system_count


def _describe_switch_change(result: FabricResult, wiring: PlaneWiring, systems: int) -> str:
    """Return the switches for another wiring or number of systems; empty if unchanged."""
    hosts = result.hosts
    tree = build_plane_tree(wiring, systems * hosts.hosts_per_system, hosts.rails_per_host)
    if tree is None:
        most = format_number(max_connected_systems(wiring, hosts, wiring.requested_tiers or 3))
        return f"Too many: {most} systems at most."
    text = describe_switches(tree, result.planes)
    if text == describe_switches(result.plane_tree, result.planes):
        return ""
    return f"{text[:1].upper()}{text[1:]}."


def describe_unplaced_manager_links(result: FabricResult) -> str:
    """Return that the links of fabric managers find no port; empty if they do, or there are none."""
    if result.placed_manager_links_per_plane == result.plane_wiring.manager_links:
        return ""
    return (
        f"All leaf ports are taken by {format_number(result.hosts.system_count)} systems, so that the "
        f"{result.plane_wiring.manager_links} links of fabric managers are left out: take one "
        "system fewer, as published designs do, and the fabric managers get its ports."
    )


def _format_layout_or_number(value: float | str) -> str:
    if isinstance(value, str):
        return dict(LAYOUTS)[value]
    return format_number(float(value))
