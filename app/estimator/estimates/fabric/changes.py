"""What would turn the verdict of `fabric`."""

import dataclasses

from app.estimator.estimate import Chart, ChartLine, VerdictFlip
from app.estimator.estimates.fabric.asked import LAYOUTS, FabricInputs
from app.estimator.estimates.fabric.compute import FabricResult, PlaneWiring, most_systems, tree_of
from app.estimator.hardware.switches import FatTree
from app.estimator.units import format_number

_POINTS = 10


def named(tree: FatTree, planes: int = 1) -> str:
    """The switches of a tree as words.

    >>> named(FatTree(2, 64, 32, 16, 0, 32, 32))
    '32 leaf and 16 spine switches'
    """
    counts = (
        (tree.leaves * planes, "leaf"),
        (tree.spines * planes, "spine"),
        (tree.cores * planes, "core"),
    )
    words = [f"{format_number(n)} {what}" for n, what in counts if n]
    if not tree.spines:
        return "one switch" if planes * tree.leaves == 1 else f"{words[0]} switches"
    return f"{', '.join(words[:-1])} and {words[-1]} switches"


def steps_chart(found: FabricResult) -> Chart:
    """Switches of the compute network by number of systems, in steps."""
    hosts, planes = found.hosts, found.planes
    unit = max(1, found.per_group // hosts.per_system)
    reach = max(2 * hosts.systems, 2 * unit)
    stride = max(unit, -(-reach // (_POINTS * unit)) * unit)
    # Full units have no port left for a fabric manager, as in the published tables.
    way = dataclasses.replace(found.way, managers=0)
    points: list[tuple[float, float]] = []
    for nodes in range(stride, reach + stride, stride):
        tree = tree_of(way, nodes * hosts.per_system, hosts.rails)
        if tree is None:
            break
        height = float(tree.switches * planes)
        points += [(float(nodes - stride), height), (float(nodes), height)]
    here = (float(hosts.systems), float(found.switches))
    return Chart(
        "Switches by number of systems",
        "Systems",
        "Compute switches",
        "node",
        "",
        (ChartLine("Full leaves", tuple(points)), ChartLine("Asked for", (here,), "mark")),
    )


def changes_of(asked: FabricInputs, found: FabricResult) -> tuple[VerdictFlip, ...]:
    """The nearest values of inputs that need other switches."""
    hosts, way, tree = found.hosts, found.way, found.tree
    room = (tree.leaves * tree.down - way.managers) // hosts.rails // hosts.per_system
    more = max(room, hosts.systems) + 1
    ratio = 1.0 if way.ratio > 1 else 2.0
    layout = "tree" if way.layout == "rail" else "rail"
    other = dataclasses.replace
    tried = (
        ("nodes", "Systems", hosts.systems, more, way),
        (
            "oversubscription",
            "Oversubscription",
            way.ratio,
            ratio,
            other(way, ratio=ratio),
        ),
        ("layout", "Layout", asked.layout, layout, other(way, layout=layout)),
        (
            "managers",
            "Links of fabric managers",
            way.managers,
            0,
            other(way, managers=0),
        ),
    )
    return tuple(
        VerdictFlip(field, label, _worded(now), _worded(value), becomes)
        for field, label, now, value, new in tried
        if (becomes := _becomes(found, new, more if field == "nodes" else 0))
    )


def _becomes(found: FabricResult, way: PlaneWiring, systems: int) -> str:
    """The switches of another wiring or number of systems; empty if the same."""
    hosts = found.hosts
    count = (systems or hosts.systems) * hosts.per_system
    tree = tree_of(way, count, hosts.rails)
    if tree is None:
        most = format_number(most_systems(way, hosts, way.tiers or 3))
        return f"Too many: {most} systems at most."
    words = named(tree, found.planes)
    if words == named(found.tree, found.planes):
        return ""
    return f"{words[:1].upper()}{words[1:]}."


def _worded(value: float | str) -> str:
    if isinstance(value, str):
        return dict(LAYOUTS)[value]
    return format_number(float(value))
