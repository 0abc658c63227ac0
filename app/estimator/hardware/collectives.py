"""Time and bytes of collectives (NCCL ring and tree)."""

import dataclasses
import math
from typing import Literal, NamedTuple

from app.estimator import data_files
from app.estimator.hardware.catalog import OWN_CARD, Accelerator

Collective = Literal["all_reduce", "all_gather", "reduce_scatter", "alltoall", "broadcast"]

# How often the message passes over the ring; see nccl-tests, PERFORMANCE.md.
_PASSES_BY_OPERATION: dict[Collective, int] = {
    "all_reduce": 2,
    "all_gather": 1,
    "reduce_scatter": 1,
    "alltoall": 1,
}


def bytes_sent_per_rank(operation: Collective, ranks: int, message_bytes: float) -> float:
    """Bytes that one rank sends in a ring, in one direction.

    2(n−1)/n·S for all-reduce, (n−1)/n·S for all-gather, reduce-scatter and
    all-to-all, S for broadcast. S is the whole buffer: the reduced data, the
    gathered result, or the data that one rank exchanges; of n ranks. From nccl-tests.

    >>> bytes_sent_per_rank("all_reduce", 8, 1e9)
    1750000000.0
    """
    if ranks < 1:
        raise ValueError(f"a collective needs at least one rank, not {ranks}")
    if ranks == 1:
        return 0.0
    if operation == "broadcast":
        return message_bytes
    return _PASSES_BY_OPERATION[operation] * (ranks - 1) * message_bytes / ranks


def data_parallel_bytes_per_rank(
    parameters: float, bytes_per_value: float, zero_stage: int = 0
) -> float:
    """Bytes sent per rank and step for gradients and weights, many ranks.

    2Ψ·W for plain data parallelism and ZeRO 1 and 2 (reduce-scatter and all-gather, or an
    all-reduce); 3Ψ·W for ZeRO 3, which gathers weights twice. From zero, section 7.

    >>> data_parallel_bytes_per_rank(7.5e9, 2)
    30000000000.0
    """
    return (3 if zero_stage == 3 else 2) * parameters * bytes_per_value


def tensor_parallel_microbatch_bytes_per_rank(
    layers: int, message_bytes: float, ranks: int
) -> float:
    """Bytes sent per rank for one micro-batch, forward and backward.

    Four all-reduces per layer (two forward, two backward) of the activations b·s·h·W; sequence
    parallelism sends the same as gathers and scatters. From megatron-2019.

    >>> tensor_parallel_microbatch_bytes_per_rank(1, 1e6, 2)
    4000000.0
    """
    return layers * 4 * bytes_sent_per_rank("all_reduce", ranks, message_bytes)


def pipeline_boundary_bytes_per_rank(message_bytes: float, sender_ranks: int = 1) -> float:
    """Bytes per micro-batch over one stage boundary in one direction.

    b·s·h·W, divided by the tensor-parallel ranks that each send their part. From megatron-2021,
    section 4.1.

    >>> pipeline_boundary_bytes_per_rank(1e6, 8)
    125000.0
    """
    return message_bytes / sender_ranks


def expert_parallel_layer_bytes_per_rank(
    tokens_per_rank: float,
    experts_per_token: float,
    hidden: int,
    dispatch_and_combine_bytes_per_value: float,
) -> float:
    """Bytes sent per rank and layer to remote experts and back, one pass.

    T·k·h·(W_dispatch + W_combine) when no expert is local.

    `dispatch_and_combine_bytes_per_value` are of dispatch and combine together [B]. From deepseek-insights, section
    2.3.2.

    >>> expert_parallel_layer_bytes_per_rank(32, 9, 7000, 3)
    6048000
    """
    return tokens_per_rank * experts_per_token * hidden * dispatch_and_combine_bytes_per_value


# How latency and transfer, or two tiers of links, combine: 1 means one after the other,
# infinity means at the same time.
OVERLAP_EXPONENT = 1.5
TIER_OVERLAP_EXPONENT = 2.0
# Share of each rank's own block that is copied within its memory at the same time.
_LOCAL_COPY = 0.33
# All-to-all reaches a little less of a link, and starts all of its hops at once.
_ALLTOALL_SHARE = 0.96
_ALLTOALL_HOPS = 0.76
# Time per hop of the kernels of inference engines [s].
_KERNEL_STEP = 2.5e-7
# From this many GPUs NCCL uses in-network reduction, on links where that is faster.
_SWITCH_GPUS = 6


@dataclasses.dataclass(frozen=True, slots=True)
class LinkModel:
    """Measured behavior of one kind of link; latencies [s], shares of its rate [1]."""

    id: str
    name: str
    base: float
    step: float
    share: float
    ramp: float
    switch_gain: float = 1.0
    crowding: float = 0.0


class LinkWithinDomain(NamedTuple):
    """A link within a domain, and its rate [B/s, one way, per GPU]."""

    link_model: LinkModel
    rate: float


@dataclasses.dataclass(frozen=True, slots=True)
class Interconnect:
    """Links that join GPUs: inside a domain, and between domains.

    `gpus_per_domain` GPUs [1] reach each other at `link_rate` [B/s, one way, per GPU] over
    `link`; beyond it each GPU has `nic_rate` [B/s, one way] over `nic`. A `bridge`
    joins each `bridged_gpus` neighbors [1] of a domain besides.
    """

    link: LinkModel
    link_rate: float
    gpus_per_domain: int = 8
    nic: LinkModel | None = None
    nic_rate: float = 0.0
    bridge: LinkWithinDomain | None = None
    bridged_gpus: int = 1

    def find_link_within_domain(self, gpus: int) -> LinkWithinDomain:
        """Return the link that joins so many neighbors: the bridge if it reaches all of them."""
        if self.bridge is not None and gpus <= self.bridged_gpus:
            return self.bridge
        return LinkWithinDomain(self.link, self.link_rate)


class LinkTime(NamedTuple):
    """Latency of a message, and its transfer [s]; they partly overlap."""

    latency: float
    transfer: float

    @property
    def overlapped_sum(self) -> float:
        return _combine_overlapping_times(self.latency, self.transfer, OVERLAP_EXPONENT)


def find_link_model(link_id: str) -> LinkModel:
    """Return the measured behavior of a kind of link by id; raises KeyError.

    >>> find_link_model("nvlink-4").share
    0.973
    """
    fields = data_files.pick_dataclass_fields(
        data_files.load_table_entries_by_id("links.toml", "link")[link_id], LinkModel
    )
    latencies = {latency: fields[latency] * 1e-6 for latency in ("base", "step", "ramp")}
    return LinkModel(**fields | latencies)


def find_link_within_server(gpu: Accelerator) -> LinkModel:
    """Return the kind of link that connects GPUs of this type within a server.

    A link that was not measured behaves like one that was; its name says which.

    >>> from app.estimator.hardware.catalog import find_accelerator
    >>> find_link_within_server(find_accelerator("L40S")).id
    'pcie-4'
    >>> find_link_within_server(find_accelerator("h100-pcie-80")).id  # Bridges join only pairs.
    'pcie-5'
    >>> find_link_within_server(find_accelerator("V100")).name
    'NVLink 2, modeled as NVLink 3 with NVSwitch'
    """
    if not gpu.nvlink or gpu.bridged_gpus:
        return find_link_model("pcie-5" if (gpu.pcie_generation or 4) >= 5 else "pcie-4")
    if gpu.vendor == "AMD":
        return find_link_model("mesh")
    name = "nvlink-4" if gpu.architecture == "Hopper" else "nvlink-3"
    link = find_link_model("nvlink-5" if gpu.nvlink > 600e9 else name)
    if link.name.removesuffix(" with NVSwitch") in gpu.interconnect:
        return link
    own_link = "NVLink" if gpu.kind == OWN_CARD else gpu.interconnect
    return dataclasses.replace(link, name=f"{own_link}, modeled as {link.name}")


def _bridge_link(gpu: Accelerator) -> LinkWithinDomain | None:
    """Return the link over the bridge between neighboring cards; None without one."""
    if not gpu.nvlink or not gpu.bridged_gpus:
        return None
    name = "nvlink-4-bridge" if gpu.architecture == "Hopper" else "nvlink-3-bridge"
    return LinkWithinDomain(find_link_model(name), gpu.nvlink)


def build_gpu_interconnect(
    gpu: Accelerator, nic_rate: float = 50e9, nic_id: str = "infiniband", gpus_per_domain: int = 0
) -> Interconnect:
    """Return the links of a GPU: the inner links and one network adapter per GPU.

    Its PCIe lanes are the link without NVLink, and beyond a bridge. `nic_rate` is one way [B/s]:
    50 GB/s is NDR; `nic_id` an id of links.toml; 0 `gpus_per_domain` are 72 for a rack-wide domain,
    and 8 otherwise.
    """
    bridge = _bridge_link(gpu)
    rate = (None if bridge else gpu.nvlink) or gpu.pcie_bandwidth or 15.75e9
    size = gpus_per_domain or (72 if "72" in gpu.interconnect else 8)
    return Interconnect(
        find_link_within_server(gpu),
        rate,
        size,
        find_link_model(nic_id),
        nic_rate,
        bridge,
        gpu.bridged_gpus or 1,
    )


def collective_time(
    operation: Collective,
    ranks: int,
    message_bytes: float,
    fabric: Interconnect,
    groups_per_domain: int = 1,
) -> float:
    """Time of one collective [s].

    Within a domain: (latency^1.5 + transfer^1.5)^(1/1.5), where latency = base +
    step·hops and transfer = w + 2√(ramp·w) for w = bytes / (share·rate): the time
    on the wire, and filling a pipeline of chunks. Over several domains the inner
    and the outer part overlap: (inner² + outer²)^½.

    `groups_per_domain`: neighbors of a rank in its domain that belong to other groups; 8 where
    tensor parallelism fills the domain. From nccl-tests, ml-engineering.

    >>> from app.estimator.hardware.catalog import find_accelerator
    >>> fabric = build_gpu_interconnect(find_accelerator("H100"))
    >>> round(collective_time("all_reduce", 8, 512 * 2**20, fabric) * 1e3, 2)
    2.26
    """
    if ranks <= 1 or message_bytes <= 0:
        return 0.0
    ranks_per_domain = max(1, min(ranks, fabric.gpus_per_domain // max(1, groups_per_domain)))
    groups = math.ceil(ranks / ranks_per_domain)
    inner = collective_time_within_domain(
        operation, ranks_per_domain, message_bytes, fabric, groups_per_domain
    ).overlapped_sum
    if groups == 1:
        return inner
    outer = collective_time_between_domains(
        operation, ranks_per_domain, groups, message_bytes, fabric
    )
    return _combine_overlapping_times(inner, outer, TIER_OVERLAP_EXPONENT)


def inference_engine_collective_time(
    operation: Collective, ranks: int, message_bytes: float, fabric: Interconnect, latency: float
) -> float:
    """Time of one collective with the kernels of an inference engine [s].

    Same as `collective_time`, but with `latency` and a quarter of a microsecond per hop
    instead of the library's values if all ranks share a domain.
    """
    if ranks <= 1 or message_bytes <= 0:
        return 0.0
    if ranks > fabric.gpus_per_domain:
        return collective_time(operation, ranks, message_bytes, fabric)
    transfer = collective_time_within_domain(operation, ranks, message_bytes, fabric).transfer
    return LinkTime(latency + _KERNEL_STEP * _count_hops(operation, ranks), transfer).overlapped_sum


def point_to_point_send_time(
    message_bytes: float,
    fabric: Interconnect,
    *,
    crosses_domains: bool = False,
    uses_bridge: bool = False,
) -> float:
    """Time to send a message from one GPU to another, in or outside of its domain [s].

    `uses_bridge`: to one that a bridge joins to it, where the cards have bridges.

    >>> from app.estimator.hardware.catalog import find_accelerator
    >>> fabric = build_gpu_interconnect(find_accelerator("H100"))
    >>> point_to_point_send_time(1e6, fabric) < point_to_point_send_time(1e6, fabric, crosses_domains=True)
    True
    """
    if message_bytes <= 0:
        return 0.0
    inner = fabric.find_link_within_domain(
        fabric.bridged_gpus if uses_bridge else fabric.gpus_per_domain
    )
    link, rate = (fabric.nic, fabric.nic_rate) if crosses_domains else inner
    if link is None or rate <= 0:
        raise ValueError("GPUs of different domains need a network")
    if link.id == "mesh":
        rate /= fabric.gpus_per_domain - 1
    return _link_time(link, 1, message_bytes / (rate * link.share)).overlapped_sum


def collective_time_within_domain(
    operation: Collective,
    ranks: int,
    message_bytes: float,
    fabric: Interconnect,
    groups_per_domain: int = 1,
) -> LinkTime:
    """Return latency and transfer within one domain.

    A ring enters and leaves every bridge once, so bridged cards crowd the host like one.
    """
    if ranks == 1:
        return LinkTime(0.0, 0.0)
    link, rate = fabric.find_link_within_domain(ranks * max(1, groups_per_domain))
    rate *= link.share
    if link.crowding:
        ranks_per_bridge = max(1, fabric.bridged_gpus // max(1, groups_per_domain))
        bridges = ranks if operation == "alltoall" else math.ceil(ranks / ranks_per_bridge)
        rate *= (2 / bridges) ** link.crowding
    if link.id == "mesh":
        rate *= (ranks - 1) / (fabric.gpus_per_domain - 1)
    if operation == "alltoall":
        rate *= _ALLTOALL_SHARE
    elif operation == "all_reduce" and ranks >= _SWITCH_GPUS:
        rate *= link.switch_gain
    bytes_moved = (
        bytes_sent_per_rank(operation, ranks, message_bytes) + _LOCAL_COPY * message_bytes / ranks
    )
    return _link_time(link, _count_hops(operation, ranks), bytes_moved / rate)


def _count_hops(operation: Collective, ranks: int) -> float:
    """Sequential hops from rank to rank within one domain [1]."""
    if operation == "alltoall":
        return (ranks - 1.0) * _ALLTOALL_HOPS
    return (ranks - 1.0) * (2 if operation == "all_reduce" else 1)


def collective_time_between_domains(
    operation: Collective,
    ranks_per_domain: int,
    domains: int,
    message_bytes: float,
    fabric: Interconnect,
) -> float:
    """Time of the part between domains, where every GPU uses its own adapter."""
    link = fabric.nic
    if link is None or fabric.nic_rate <= 0:
        raise ValueError(f"{ranks_per_domain * domains} GPUs need a network beyond one domain")
    if operation == "alltoall":
        bytes_moved = message_bytes * (domains - 1) / domains
    else:
        bytes_moved = bytes_sent_per_rank(operation, domains, message_bytes / ranks_per_domain)
    hops = math.ceil(math.log2(domains)) * (2 if operation == "all_reduce" else 1)
    return _link_time(link, hops, bytes_moved / (fabric.nic_rate * link.share)).overlapped_sum


def _link_time(link: LinkModel, hops: float, wire_time: float) -> LinkTime:
    """Return latency, and transfer with the filling of a pipeline of chunks."""
    transfer = wire_time + 2 * math.sqrt(link.ramp * wire_time)
    return LinkTime(link.base + link.step * hops, transfer)


def _combine_overlapping_times(first: float, second: float, power: float) -> float:
    total: float = (first**power + second**power) ** (1 / power)
    return total


def bus_bandwidth(operation: Collective, ranks: int, message_bytes: float, seconds: float) -> float:
    """Rate that nccl-tests prints as busbw: bytes sent per rank over time [B/s].

    >>> bus_bandwidth("all_reduce", 8, 1e9, 0.004)
    437500000000.0
    """
    return bytes_sent_per_rank(operation, ranks, message_bytes) / seconds
