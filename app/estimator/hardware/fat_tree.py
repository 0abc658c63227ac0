"""Leaf, spine and core switch counts."""

import dataclasses
import math
from typing import NamedTuple


@dataclasses.dataclass(frozen=True, slots=True)
class FatTree:
    """One plane of a fat tree; links are counted once each.

    Ports of a leaf that would not spread evenly stay unused. `pods` are the groups of leaves and
    spines that cores join; 1 below three tiers. `fullest_leaf_links_to_nodes` are the links that the fullest
    leaf has to nodes if they are fewer than its ports for them; 0 if they are as many.
    """

    tiers: int
    ports_per_switch: int
    leaves: int
    spines: int
    cores: int
    downlinks_per_leaf: int
    uplinks_per_leaf: int
    pods: int = 1
    fullest_leaf_links_to_nodes: int = 0

    @property
    def switches(self) -> int:
        return self.leaves + self.spines + self.cores

    @property
    def leaf_spine_links(self) -> int:
        return self.leaves * self.uplinks_per_leaf if self.spines else 0

    @property
    def spine_core_links(self) -> int:
        """Return the links between spines and cores: half of the ports of each spine."""
        return self.spines * (self.ports_per_switch // 2) if self.cores else 0

    @property
    def oversubscription(self) -> float:
        """Return links of a leaf towards nodes over links towards spines; 1 is non-blocking."""
        downlinks = self.fullest_leaf_links_to_nodes or self.downlinks_per_leaf
        return downlinks / self.uplinks_per_leaf if self.spines else 1.0


class LeafPorts(NamedTuple):
    """The ports of a leaf towards nodes, and towards spines."""

    to_nodes: int
    to_spines: int


def split_leaf_ports(ports: int, oversubscription: float = 1.0) -> LeafPorts:
    """Divide the ports of a leaf.

    up = ⌈p / (1 + r)⌉, down = p − up, so that down/up never exceeds r. From leiserson-1985.

    >>> split_leaf_ports(64, 3.0)
    LeafPorts(to_nodes=48, to_spines=16)
    """
    if ports < 2:
        raise ValueError(f"a leaf needs two ports or more, not {ports}")
    if oversubscription < 1:
        raise ValueError(f"a ratio below 1 wastes ports: {oversubscription}")
    up = max(1, math.ceil(ports / (1 + oversubscription) - 1e-9))
    return LeafPorts(ports - up, up)


def fewest_even_spines(leaves: int, uplinks_per_leaf: int, ports: int) -> int | None:
    """Return the fewest spines that all leaves can use evenly; None if there are too few ports.

    The least s that divides `up` with leaves·up/s ≤ ports. Evenness is why three
    scalable units take as many spines as four.

    >>> fewest_even_spines(24, 32, 64), fewest_even_spines(32, 32, 64), fewest_even_spines(65, 32, 64)
    (16, 16, None)
    """
    for spines in range(max(1, -(-leaves * uplinks_per_leaf // ports)), uplinks_per_leaf + 1):
        if uplinks_per_leaf % spines == 0 and leaves * (uplinks_per_leaf // spines) <= ports:
            return spines
    return None


def list_allowed_uplink_counts(
    ports: int, oversubscription: float, fullest_leaf_links_to_nodes: int = 0
) -> range:
    """Return the uplink counts that keep the ratio of a leaf, largest first.

    A leaf has `fullest_leaf_links_to_nodes`, or all that its ports allow if 0.

    >>> list(list_allowed_uplink_counts(64, 2.0)), list(list_allowed_uplink_counts(64, 2.0, 38))
    ([22, 21], [22, 21, 20, 19])
    """
    leaf = split_leaf_ports(ports, oversubscription)
    fewest = max(
        1, math.ceil((fullest_leaf_links_to_nodes or leaf.to_nodes) / oversubscription - 1e-9)
    )
    return range(leaf.to_spines, min(fewest, leaf.to_spines) - 1, -1)


def build_two_tier_tree(
    leaves: int, ports: int, oversubscription: float = 1.0, fullest_leaf_links_to_nodes: int = 0
) -> FatTree | None:
    """Return a tree with every leaf connected to every spine; None if too large.

    `fullest_leaf_links_to_nodes`: links of the fullest leaf to nodes, 0 if its ports for them are full. From
    superpod-h100, table 4.

    >>> build_two_tier_tree(32, 64).spines, build_two_tier_tree(8, 64, 2.0).spines
    (16, 3)
    """
    down = split_leaf_ports(ports, oversubscription).to_nodes
    trees = [
        FatTree(
            2,
            ports,
            leaves,
            spines,
            0,
            down,
            up,
            fullest_leaf_links_to_nodes=fullest_leaf_links_to_nodes,
        )
        for up in list_allowed_uplink_counts(ports, oversubscription, fullest_leaf_links_to_nodes)
        if (spines := fewest_even_spines(leaves, up, ports)) is not None
    ]
    return _tree_with_fewest_switches(trees, fullest_leaf_links_to_nodes)


def _tree_with_fewest_switches(
    trees: list[FatTree], fullest_leaf_links_to_nodes: int
) -> FatTree | None:
    """Return the tree with the fewest switches, and then links where leaves are not full."""

    def count_parts(tree: FatTree) -> tuple[int, int]:
        return tree.switches, tree.uplinks_per_leaf if fullest_leaf_links_to_nodes else 0

    return min(trees, key=count_parts, default=None)


def build_three_tier_tree(
    leaves: int, ports: int, oversubscription: float = 1.0, fullest_leaf_links_to_nodes: int = 0
) -> FatTree | None:
    """Return a tree of pods connected by core switches; None if too large.

    A pod has at most p/2 leaves, as a spine gives half of its ports to leaves and half to
    cores. Pods are equally large, and the k-th spine of every pod shares its cores. From
    superpod-b200, table 3.

    >>> tree = build_three_tier_tree(512, 64)
    >>> tree.spines, tree.cores
    (512, 256)
    """
    down = split_leaf_ports(ports, oversubscription).to_nodes
    half = ports // 2
    pods = -(-leaves // half)
    cores = fewest_even_spines(pods, half, ports)
    if cores is None:
        return None
    # A group of cores has p/2 links to each pod; a pod of s spines has s such groups.
    trees = [
        FatTree(
            3,
            ports,
            leaves,
            pods * spines,
            spines * cores,
            down,
            up,
            pods,
            fullest_leaf_links_to_nodes,
        )
        for up in list_allowed_uplink_counts(ports, oversubscription, fullest_leaf_links_to_nodes)
        if (spines := fewest_even_spines(-(-leaves // pods), up, half)) is not None
    ]
    return _tree_with_fewest_switches(trees, fullest_leaf_links_to_nodes)


def build_single_switch(endpoints: int, ports: int) -> FatTree | None:
    """Return a single switch if all endpoints fit on it, else None.

    >>> build_single_switch(64, 64).switches
    1
    """
    return FatTree(1, ports, 1, 0, 0, ports, 0) if endpoints <= ports else None


def build_fat_tree(
    leaves: int,
    ports: int,
    oversubscription: float = 1.0,
    tiers: int = 0,
    fullest_leaf_links_to_nodes: int = 0,
) -> FatTree | None:
    """Return the tree with the fewest tiers for `leaves`, or with `tiers` tiers.

    None if there are too many leaves. `fullest_leaf_links_to_nodes`: those of the fullest leaf, 0 if its
    ports for them are full.

    >>> build_fat_tree(32, 64).tiers, build_fat_tree(128, 64).tiers, build_fat_tree(5000, 64)
    (2, 3, None)
    """
    builders = {2: build_two_tier_tree, 3: build_three_tier_tree}
    for wanted in (tiers,) if tiers else (2, 3):
        tree = builders[wanted](leaves, ports, oversubscription, fullest_leaf_links_to_nodes)
        if tree is not None:
            return tree
    return None


def max_leaves(ports: int, oversubscription: float = 1.0, tiers: int = 2) -> int:
    """Return the most leaves that a tree of 2 or 3 tiers can connect [1].

    p for two tiers, p²/2 for three, whatever the ratio: an oversubscribed leaf has
    fewer links up, each to another spine.

    >>> max_leaves(64), max_leaves(64, tiers=3)
    (64, 2048)
    """
    split_leaf_ports(ports, oversubscription)
    return ports if tiers == 2 else ports * (ports // 2)


def count_rail_scalable_units(nodes: int, downlinks_per_leaf: int) -> int:
    """Return the scalable units of a rail-optimized fabric.

    A unit has one leaf for each rail and as many nodes as a leaf has ports to nodes. From
    superpod-h100.

    >>> count_rail_scalable_units(127, 32), count_rail_scalable_units(129, 32)
    (4, 5)
    """
    return -(-nodes // downlinks_per_leaf)


def count_rail_leaves(nodes: int, rails: int, downlinks_per_leaf: int) -> int:
    """Return the leaves of a rail-optimized fabric: adapter i of every node on leaf i.

    A single unit that is less than half full lets several rails, adapters of a node, share a leaf.

    >>> count_rail_leaves(127, 8, 32), count_rail_leaves(4, 8, 32)
    (32, 1)
    """
    units = count_rail_scalable_units(nodes, downlinks_per_leaf)
    if units > 1:
        return units * rails
    shared = max(1, downlinks_per_leaf // nodes)
    return max(-(-rails // shared), -(-nodes * rails // downlinks_per_leaf))
