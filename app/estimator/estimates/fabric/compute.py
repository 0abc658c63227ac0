"""How the networks of a cluster are laid out: compute, storage, management."""

import dataclasses

from app.estimator.estimates.fabric.asked import FabricInputs
from app.estimator.hardware.accelerators import (
    NetworkPart,
    ReferenceDesign,
    System,
    design_of,
    find_network,
    find_system,
)
from app.estimator.hardware.switches import (
    FatTree,
    fat_tree,
    most_leaves,
    one_switch,
    rail_leaves,
    rail_units,
    split_ports,
)
from app.estimator.shared_inputs import input_error
from app.estimator.units import format_number


@dataclasses.dataclass(frozen=True, slots=True)
class FabricHosts:
    """What is joined: servers or compute trays with one adapter on each rail."""

    system: System
    systems: int
    count: int
    rails: int
    per_system: int
    rate: float

    @property
    def ports(self) -> int:
        """Adapters of all hosts."""
        return self.count * self.rails


@dataclasses.dataclass(frozen=True, slots=True)
class SideNetwork:
    """One of the smaller networks: its switch, what is on it, and its tree."""

    name: str
    switch: NetworkPart
    endpoints: int
    tree: FatTree

    @property
    def cables(self) -> int:
        """Links of endpoints and between switches."""
        return self.endpoints + self.tree.leaf_spine + self.tree.spine_core


@dataclasses.dataclass(frozen=True, slots=True)
class PlaneWiring:
    """How one plane is wired: ports of the switch, ratio, layout, tiers, managers."""

    ports: int
    ratio: float
    layout: str
    tiers: int
    managers: int


@dataclasses.dataclass(frozen=True, slots=True)
class FabricResult:
    """All networks of a cluster. `link` is the rate of one link [B/s, one way]."""

    hosts: FabricHosts
    switch: NetworkPart
    way: PlaneWiring
    tree: FatTree
    planes: int
    split: int
    link: float
    sides: tuple[SideNetwork, ...]

    @property
    def managers(self) -> int:
        """Links of fabric managers on each plane."""
        return self.way.managers

    @property
    def per_group(self) -> int:
        """Hosts of a full group: as many as a leaf has ports to nodes."""
        if self.tree.tiers == 1:
            return max(1, self.tree.ports // self.hosts.rails)
        return self.tree.down

    @property
    def groups(self) -> int:
        """Groups of one leaf for each rail that hosts and managers fill or begin."""
        if self.tree.tiers == 1:
            return 1
        hosts = self.hosts
        return rail_units(hosts.count, hosts.rails, self.tree.down, self.managers)

    @property
    def design(self) -> ReferenceDesign | None:
        """The published design of these systems; None where there is none."""
        return design_of(self.hosts.system.id, self.switch.id)

    @property
    def per_unit(self) -> int:
        """Systems of a scalable unit: as published, or those of a group."""
        published = self.design.nodes_per_unit if self.design else None
        return published or max(1, self.per_group // self.hosts.per_system)

    @property
    def units(self) -> int:
        """Scalable units that the systems fill or begin."""
        if self.design:
            return -(-self.hosts.systems // self.per_unit)
        return self.groups

    @property
    def share(self) -> float:
        """What the links carry of what the adapters can send."""
        return min(1.0, self.link * self.planes / self.hosts.rate)

    @property
    def switches(self) -> int:
        """Switches of the compute network."""
        return self.tree.switches * self.planes

    @property
    def node_links(self) -> int:
        """Links from nodes and fabric managers to leaves."""
        return (self.hosts.ports + self.managers) * self.planes

    @property
    def cables(self) -> int:
        """Links of the compute network."""
        between = self.tree.leaf_spine + self.tree.spine_core
        return self.node_links + between * self.planes

    @property
    def transceivers(self) -> int:
        """Modules at both ends of all links of the compute network."""
        between = self.tree.leaf_spine + self.tree.spine_core
        used = self.node_links + 2 * between * self.planes
        each = self.hosts.system.nic_cages or self.hosts.rails * self.hosts.per_system
        at_nodes = self.hosts.systems * each + self.managers * self.planes
        return at_nodes + -(-used // (self.switch.ports_per_cage * self.split))

    @property
    def bisection(self) -> float:
        """What one half of the nodes can send to the other [B/s, one way]."""
        whole = self.hosts.ports * self.planes * self.link / 2
        return whole / max(1.0, self.tree.oversubscription)


# From slow to fast.
_INFINIBAND = ("qm8700", "qm9700", "q3400-ra")


_IN_BAND = "sn4600c"


_OUT_OF_BAND = "sn2201"


# Management traffic is light: three ports down for one up.
_IN_BAND_RATIO = 3.0


# More adapters than a server has make the system a rack of trays of four.
_SERVER = 16


_TRAY = 4


def find(asked: FabricInputs) -> FabricResult:
    """Lay out all networks; BadInputs where no tree of switches can hold them."""
    hosts = hosts_of(asked)
    switch = switch_of(asked, hosts.rate / asked.planes)
    rate = switch.port_rate or 0.0
    link = min(hosts.rate / asked.planes, rate)
    split = 4 if rate >= 4 * link else 2 if rate >= 2 * link else 1
    way = wiring_of(asked, (switch.ports or 0) * split)
    tree = tree_of(way, hosts.count, hosts.rails)
    if tree is None:
        raise _too_many(way, hosts)
    switches = tree.switches * asked.planes
    sides = _sides(asked, hosts, switch, switches)
    return FabricResult(hosts, switch, way, tree, asked.planes, split, link, sides)


def hosts_of(asked: FabricInputs) -> FabricHosts:
    """The hosts of the systems asked for; BadInputs names what is not known."""
    system = find_system(asked.system)
    adapters = asked.adapters or system.nics
    rate = asked.rate or system.nic
    if adapters is None:
        raise input_error("adapters", "", _unknown("the number of adapters", system))
    if rate is None:
        raise input_error("rate", "", _unknown("the rate of the adapters", system))
    trays = adapters // _TRAY if adapters > _SERVER else 1
    if adapters > _SERVER and adapters % _TRAY:
        message = f"A rack with {adapters} adapters cannot be parted into trays of four"
        raise input_error("adapters", adapters, f"{message}.")
    rails = adapters // trays
    return FabricHosts(system, asked.nodes, asked.nodes * trays, rails, trays, rate)


def _unknown(what: str, system: System) -> str:
    return f"{what.capitalize()} of the {system.name} is not known: write it."


def switch_of(asked: FabricInputs, rate: float) -> NetworkPart:
    """The switch asked for, or one with ports of a rate; BadInputs if it is none."""
    if asked.switch is None:
        parts = [find_network(name) for name in _INFINIBAND]
        fast = [p for p in parts if (p.port_rate or 0.0) >= rate]
        return fast[0] if fast else parts[-1]
    part = find_network(asked.switch)
    if part.kind != "switch" or not part.ports or not part.port_rate:
        message = f"The {part.name} is not a switch; take for example the QM9700."
        raise input_error("switch", asked.switch, message)
    return part


def wiring_of(asked: FabricInputs, ports: int) -> PlaneWiring:
    """The wiring asked for, on switches with so many ports."""
    tiers = 0 if asked.tiers == "auto" else int(asked.tiers)
    ratio = asked.oversubscription
    return PlaneWiring(ports, ratio, asked.layout, tiers, asked.managers)


def tree_of(way: PlaneWiring, hosts: int, rails: int) -> FatTree | None:
    """The tree of one plane; None when the hosts are more than its tiers join."""
    endpoints = hosts * rails + way.managers
    single = None if way.tiers else one_switch(endpoints, way.ports)
    if single is not None:
        return single
    down, _ = split_ports(way.ports, way.ratio)
    if way.layout == "rail":
        leaves = rail_leaves(hosts, rails, down, way.managers)
    else:
        leaves = -(-endpoints // down)
    return fat_tree(leaves, way.ports, way.ratio, way.tiers)


def most_systems(way: PlaneWiring, hosts: FabricHosts, tiers: int) -> int:
    """The most systems that a tree of so many tiers can join [1]."""
    down, _ = split_ports(way.ports, way.ratio)
    leaves = most_leaves(way.ports, way.ratio, tiers)
    if way.layout == "rail":
        leaves -= leaves % hosts.rails
    room = (leaves * down - way.managers) // hosts.rails
    return max(0, room // hosts.per_system)


def _too_many(way: PlaneWiring, hosts: FabricHosts) -> Exception:
    tiers = way.tiers or 3
    most = format_number(most_systems(way, hosts, tiers))
    return input_error(
        "nodes",
        hosts.systems,
        f"{format_number(hosts.systems)} systems are too many for {tiers} tiers of "
        f"switches with {way.ports} ports: they join at most {most}.",
    )


def _sides(
    asked: FabricInputs, hosts: FabricHosts, switch: NetworkPart, switches: int
) -> tuple[SideNetwork, ...]:
    """Storage, in-band and out-of-band network."""
    of_nodes = hosts.count * asked.storage_links
    extra = asked.storage_ports
    stored = of_nodes + (-(-of_nodes // 4) if extra is None else extra)
    in_band = 2 * (hosts.count + asked.servers)
    sides = [
        _side("Storage", switch, stored, 1.0),
        _side("In-band", find_network(_IN_BAND), in_band, _IN_BAND_RATIO),
    ]
    switches += sum(s.tree.switches for s in sides)
    boards = hosts.count + asked.servers + switches
    part = find_network(_OUT_OF_BAND)
    sides.append(SideNetwork("Out-of-band", part, boards, _flat(boards, part.ports or 48)))
    return tuple(sides)


def _side(name: str, switch: NetworkPart, endpoints: int, ratio: float) -> SideNetwork:
    """A network with two leaves at least, so that one may fail."""
    ports = switch.ports or 64
    if endpoints == 0:
        return SideNetwork(name, switch, 0, _flat(0, ports))
    if endpoints <= ports:
        return SideNetwork(name, switch, endpoints, FatTree(1, ports, 2, 0, 0, ports, 0))
    down, _ = split_ports(ports, ratio)
    leaves = -(-endpoints // down)
    tree = fat_tree(leaves, ports, ratio)
    if tree is None:
        message = f"{format_number(endpoints)} ports are too many for three tiers"
        raise input_error("nodes", endpoints, f"{message} of {switch.name}: {name.lower()}.")
    return SideNetwork(name, switch, endpoints, tree)


def _flat(endpoints: int, ports: int) -> FatTree:
    return FatTree(1, ports, -(-endpoints // ports), 0, 0, ports, 0)
