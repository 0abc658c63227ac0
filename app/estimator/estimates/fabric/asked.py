"""What `fabric` asks for."""

import dataclasses

from app.estimator.inputs import InputGroup

_CLUSTER = InputGroup("Cluster", "cluster-components")
_COMPUTE_NETWORK = InputGroup("Compute network", "interconnects")
_OTHER_NETWORKS = InputGroup("Other networks", "interconnects")

LAYOUTS = (("rail", "Rail-optimized"), ("tree", "Fat tree, nodes by leaf"))

TIERS = (("auto", "Automatic"), ("2", "Leaf and spine"), ("3", "Leaf, spine and core"))


@dataclasses.dataclass(frozen=True, slots=True)
class FabricInputs:
    """The cluster, and how its networks are to be built."""

    system: str = _CLUSTER.ask(
        "dgx-h100",
        "System",
        kind="system",
        help="What the cluster is made of; it brings adapters and their rate.",
    )
    nodes: int = _CLUSTER.ask(
        127,
        "Systems",
        unit="node",
        minimum=1,
        maximum=100_000,
        help="Servers, or racks where a rack is the system.",
    )
    switch: str | None = _COMPUTE_NETWORK.ask(
        None,
        "Switch",
        kind="network",
        help="The switch of the compute network, the same in every tier; left empty: "
        "the InfiniBand switch with ports as fast as the adapters.",
    )
    layout: str = _COMPUTE_NETWORK.ask(
        "rail",
        "Layout",
        choices=LAYOUTS,
        help="Rail-optimized: adapter 1 of every node on one leaf, adapter 2 on the next.",
        term="rail-optimised",
    )
    oversubscription: float = _COMPUTE_NETWORK.ask(
        1.0,
        "Oversubscription",
        minimum=1.0,
        maximum=16.0,
        help="Ports toward nodes over ports toward spines: 1 is non-blocking.",
        term="oversubscription",
    )
    tiers: str = _COMPUTE_NETWORK.ask(
        "auto",
        "Tiers",
        choices=TIERS,
        help="Leaf and spine, or leaf, spine and core; automatic takes the fewest.",
        advanced=True,
    )
    managers: int = _COMPUTE_NETWORK.ask(
        4,
        "Links of fabric managers",
        minimum=0,
        maximum=64,
        help="Ports that the fabric manager takes; published designs give it four, in "
        "place of a node.",
        advanced=True,
    )
    planes: int = _COMPUTE_NETWORK.ask(
        1,
        "Planes",
        minimum=1,
        maximum=8,
        help="Separate fabrics over which each adapter splits its rate.",
        advanced=True,
    )
    adapters: int | None = _CLUSTER.ask(
        None,
        "Adapters per system",
        kind="count",
        minimum=1,
        maximum=144,
        help="Adapters of the compute network; left empty: those of the system.",
        advanced=True,
    )
    rate: float | None = _CLUSTER.ask(
        None,
        "Rate of an adapter",
        unit="B/s",
        typed_unit="Gbit/s",
        minimum=1e8,
        maximum=1e12,
        help="In one direction; left empty: that of the system.",
        topic="interconnects",
        advanced=True,
    )
    storage_links: int = _OTHER_NETWORKS.ask(
        2,
        "Storage links per node",
        minimum=0,
        maximum=64,
        help="Ports that each server or compute tray has on the storage network.",
        term="storage-network",
        advanced=True,
    )
    storage_ports: int | None = _OTHER_NETWORKS.ask(
        None,
        "Ports of the storage",
        kind="count",
        minimum=0,
        maximum=100_000,
        help="Ports of the storage servers; left empty: one for every four of the nodes.",
        advanced=True,
    )
    servers: int = _OTHER_NETWORKS.ask(
        5,
        "Management servers",
        minimum=0,
        maximum=10_000,
        help="Servers that provision, schedule and monitor.",
        term="in-band-management",
        advanced=True,
    )
