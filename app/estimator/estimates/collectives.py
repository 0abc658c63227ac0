"""`collectives`: inputs, result, and the input values where the verdict changes."""

import bisect
import dataclasses
import math
from typing import cast

from app.estimator.common_inputs import (
    MODEL,
    NETWORK,
    counted_gpu_input,
    domain_input,
    gpus_input,
    input_error,
    model_input,
    network_input,
    network_rate_input,
)
from app.estimator.hardware.catalog import Accelerator
from app.estimator.hardware.collectives import (
    Collective,
    InnerLink,
    Interconnect,
    bytes_sent,
    collective_time,
    gpu_interconnect,
)
from app.estimator.inputs import InputGroup
from app.estimator.memory_verdict import round_past_limit
from app.estimator.result import VerdictFlip
from app.estimator.units import format_number, format_value

_MESSAGE = InputGroup("Message", "interconnects")

OPERATIONS: tuple[tuple[Collective, str], ...] = (
    ("all_reduce", "All-reduce"),
    ("all_gather", "All-gather"),
    ("reduce_scatter", "Reduce-scatter"),
    ("alltoall", "All-to-all"),
    ("broadcast", "Broadcast"),
)


@dataclasses.dataclass(frozen=True, slots=True)
class CollectivesInputs:
    operation: str = _MESSAGE.add_input(
        "all_reduce", "Operation", choices=OPERATIONS, help="What all GPUs do together."
    )
    message: float = _MESSAGE.add_input(
        1e9,
        "Message",
        unit="MB",
        limits=(1, 1e15),
        help="The whole buffer of one GPU: what is reduced, or gathered in the end.",
    )
    gpu: str = counted_gpu_input(count_field="gpus")
    gpus: int = gpus_input(default=8, topic="interconnects")
    network_rate: float = network_rate_input()
    network: str = network_input()
    domain: int | None = domain_input()
    in_network: bool = NETWORK.add_folded_input(
        False,
        "Reduction in the network",
        help="Switches between nodes add up an all-reduce (SHARP), which halves "
        "what each adapter sends.",
    )
    model: str = model_input(default="llama-3.1-8b")
    tokens: int = MODEL.add_folded_input(
        8192,
        "Tokens per micro-batch",
        unit="token",
        quantity="tokens of a micro-batch",
        limits=(1, 100_000_000),
        help="For the table of what each parallelism sends.",
        topic="parallelism",
    )

    @property
    def collective(self) -> Collective:
        return cast("Collective", self.operation)


@dataclasses.dataclass(frozen=True, slots=True)
class CollectivesResult:
    """Times of one message [s]: total, for an empty message, and within the domain alone."""

    inputs: CollectivesInputs
    fabric: Interconnect
    seconds: float
    latency_floor: float
    seconds_within_domain: float
    crosses_domains: bool

    @property
    def inner_link(self) -> InnerLink:
        """Return the link within the domain that all of the GPUs there use."""
        return self.fabric.find_inner_link(min(self.inputs.gpus, self.fabric.domain))

    @property
    def bottleneck(self) -> str:
        """Return what bounds the time: latency, links of the domain, or the network."""
        if self.seconds < 3 * self.latency_floor:
            return "latency"
        if self.crosses_domains and self.seconds_within_domain < 0.7 * self.seconds:
            return "network"
        return "links"

    @property
    def bytes_sent(self) -> float:
        """Return the bytes that one GPU sends [B]."""
        return bytes_sent(self.inputs.collective, self.inputs.gpus, self.inputs.message)

    @property
    def bytes_across(self) -> float:
        """Return the bytes that one GPU's adapter sends [B]."""
        inputs, domain = self.inputs, self.fabric.domain
        groups = math.ceil(inputs.gpus / domain)
        if groups == 1:
            return 0.0
        if inputs.operation == "alltoall":
            return inputs.message * (groups - 1) / groups
        adapter_bytes = bytes_sent(inputs.collective, groups, inputs.message / domain)
        is_halved = inputs.in_network and inputs.operation == "all_reduce"
        return adapter_bytes / 2 if is_halved else adapter_bytes

    @property
    def link_share(self) -> float:
        """Return the share of the rate of the link, or of the adapter if the network limits."""
        bytes_moved, rate = self.bytes_sent, self.inner_link.rate
        if self.bottleneck == "network":
            bytes_moved, rate = self.bytes_across, self.fabric.nic_rate
        return self.transfer_rate(bytes_moved) / rate

    def transfer_rate(self, bytes_moved: float) -> float:
        return bytes_moved / self.seconds if self.seconds else 0.0


def requested_interconnect(inputs: CollectivesInputs, gpu: Accelerator) -> Interconnect:
    """Return the links of a GPU; raises InvalidInputsError if the catalog has none."""
    if not gpu.nvlink and not gpu.pcie_bandwidth:
        message = f"The links of the {gpu.name} are not known."
        raise input_error("gpu", inputs.gpu, message)
    return gpu_interconnect(gpu, inputs.network_rate, inputs.network, inputs.domain or 0)


def compute_collectives(inputs: CollectivesInputs, fabric: Interconnect) -> CollectivesResult:
    operation, ranks, message = inputs.collective, inputs.gpus, inputs.message
    used_fabric = with_network_reduction(fabric, operation, inputs)
    seconds = collective_time(operation, ranks, message, used_fabric)
    crosses_domains = ranks > fabric.domain
    inner = collective_time(operation, min(ranks, fabric.domain), message, fabric)
    return CollectivesResult(
        inputs=inputs,
        fabric=fabric,
        seconds=seconds,
        latency_floor=collective_time(operation, ranks, 1.0, used_fabric),
        seconds_within_domain=inner if crosses_domains else seconds,
        crosses_domains=crosses_domains,
    )


def with_network_reduction(
    fabric: Interconnect, operation: Collective, inputs: CollectivesInputs
) -> Interconnect:
    """Return the links as an operation between domains uses them: SHARP, if requested."""
    if not inputs.in_network or operation != "all_reduce":
        return fabric
    # The switch returns the sum: each adapter sends the message once instead of twice.
    return dataclasses.replace(fabric, nic_rate=2 * fabric.nic_rate)


def find_flips(result: CollectivesResult) -> tuple[VerdictFlip, ...]:
    inputs, fabric = result.inputs, result.fabric
    changes = []
    if result.bottleneck == "latency":
        size = _smallest_message_bound_by_bandwidth(result)
        now, flips = (
            format_value(inputs.message, "B"),
            f"{round_past_limit(size / 1e6, up=True)} MB",
        )
        changes.append(VerdictFlip("message", "Message", now, flips, "Bound by bandwidth."))
    now, bridged_gpus = format_number(inputs.gpus), fabric.bridged_gpus
    if 1 < inputs.gpus <= bridged_gpus < fabric.domain:
        flips, becomes = format_number(bridged_gpus + 1), "Leaves the bridge for PCIe."
        changes.append(VerdictFlip("gpus", "GPUs", now, flips, becomes))
    elif not result.crosses_domains and inputs.gpus > 1:
        flips = format_number(fabric.domain + 1)
        becomes = "Leaves the link domain for the network."
        changes.append(VerdictFlip("gpus", "GPUs", now, flips, becomes))
    return tuple(changes)


def _smallest_message_bound_by_bandwidth(result: CollectivesResult) -> float:
    """Return the size from which the latency is less than a third of the time [B]."""
    inputs = result.inputs
    fabric = with_network_reduction(result.fabric, inputs.collective, inputs)
    sizes = [inputs.message * 1.01**power for power in range(1, 3000)]
    limit = 3 * result.latency_floor
    index = bisect.bisect_left(
        sizes, limit, key=lambda size: collective_time(inputs.collective, inputs.gpus, size, fabric)
    )
    return sizes[index]
