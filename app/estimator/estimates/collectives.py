"""`collectives`: inputs, result, verdict, charts and formula steps."""

import bisect
import dataclasses
import math
from typing import NamedTuple, cast

from app.estimator.common_inputs import (
    MODEL,
    NETWORK,
    counted_gpu_input,
    domain_input,
    gpus_input,
    impossible_input_error,
    model_input,
    network_input,
    network_rate_input,
)
from app.estimator.data_files import rate_with_error_range, time_with_error_range
from app.estimator.formula_steps import StepBuilder, format_term
from app.estimator.hardware import collectives
from app.estimator.hardware.catalog import Accelerator, find_accelerator
from app.estimator.hardware.collectives import (
    OVERLAP_EXPONENT,
    TIER_OVERLAP_EXPONENT,
    Collective,
    Interconnect,
    LinkWithinDomain,
    build_gpu_interconnect,
    bus_bandwidth,
    bytes_sent_per_rank,
    collective_time,
    collective_time_between_domains,
    collective_time_within_domain,
)
from app.estimator.inputs import InputGroup
from app.estimator.models.lookup import find_model
from app.estimator.registry import EstimateSpec
from app.estimator.result import (
    Chart,
    ChartLine,
    Estimate,
    FormulaStep,
    OutputSpec,
    OutputValue,
    ResultTable,
    TableCell,
    Verdict,
    VerdictChange,
    read_figures,
)
from app.estimator.units import format_number, format_value
from app.estimator.verdict_changes import format_rounded_past_limit

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
    operation: str = _MESSAGE.declare_input_field(
        "all_reduce", "Operation", choices=OPERATIONS, help="What all GPUs do together."
    )
    message: float = _MESSAGE.declare_input_field(
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
    in_network: bool = NETWORK.declare_advanced_input_field(
        False,
        "Reduction in the network",
        help="Switches between nodes add up an all-reduce (SHARP), which halves "
        "what each adapter sends.",
    )
    model: str = model_input(default="llama-3.1-8b")
    tokens: int = MODEL.declare_advanced_input_field(
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
    def link_within_domain(self) -> LinkWithinDomain:
        """Return the link within the domain that all of the GPUs there use."""
        return self.fabric.find_link_within_domain(
            min(self.inputs.gpus, self.fabric.gpus_per_domain)
        )

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
        return bytes_sent_per_rank(self.inputs.collective, self.inputs.gpus, self.inputs.message)

    @property
    def bytes_across(self) -> float:
        """Return the bytes that one GPU's adapter sends [B]."""
        inputs, domain = self.inputs, self.fabric.gpus_per_domain
        groups = math.ceil(inputs.gpus / domain)
        if groups == 1:
            return 0.0
        if inputs.operation == "alltoall":
            return inputs.message * (groups - 1) / groups
        adapter_bytes = bytes_sent_per_rank(inputs.collective, groups, inputs.message / domain)
        is_halved = inputs.in_network and inputs.operation == "all_reduce"
        return adapter_bytes / 2 if is_halved else adapter_bytes

    @property
    def link_share(self) -> float:
        """Return the share of the rate of the link, or of the adapter if the network limits."""
        bytes_moved, rate = self.bytes_sent, self.link_within_domain.rate
        if self.bottleneck == "network":
            bytes_moved, rate = self.bytes_across, self.fabric.nic_rate
        return self.transfer_rate(bytes_moved) / rate

    def transfer_rate(self, bytes_moved: float) -> float:
        return bytes_moved / self.seconds if self.seconds else 0.0


def requested_interconnect(inputs: CollectivesInputs, gpu: Accelerator) -> Interconnect:
    """Return the links of a GPU; raises InvalidInputsError if the catalog has none."""
    if not gpu.nvlink and not gpu.pcie_bandwidth:
        message = f"The links of the {gpu.name} are not known."
        raise impossible_input_error("gpu", inputs.gpu, message)
    return build_gpu_interconnect(gpu, inputs.network_rate, inputs.network, inputs.domain or 0)


def compute_collectives(inputs: CollectivesInputs, fabric: Interconnect) -> CollectivesResult:
    operation, ranks, message = inputs.collective, inputs.gpus, inputs.message
    used_fabric = adjust_nic_rate_for_sharp(fabric, operation, inputs)
    seconds = collective_time(operation, ranks, message, used_fabric)
    crosses_domains = ranks > fabric.gpus_per_domain
    inner = collective_time(operation, min(ranks, fabric.gpus_per_domain), message, fabric)
    return CollectivesResult(
        inputs=inputs,
        fabric=fabric,
        seconds=seconds,
        latency_floor=collective_time(operation, ranks, 1.0, used_fabric),
        seconds_within_domain=inner if crosses_domains else seconds,
        crosses_domains=crosses_domains,
    )


def adjust_nic_rate_for_sharp(
    fabric: Interconnect, operation: Collective, inputs: CollectivesInputs
) -> Interconnect:
    """Return the links as an operation between domains uses them: SHARP, if requested."""
    if not inputs.in_network or operation != "all_reduce":
        return fabric
    # The switch returns the sum: each adapter sends the message once instead of twice.
    return dataclasses.replace(fabric, nic_rate=2 * fabric.nic_rate)


def find_verdict_changes(result: CollectivesResult) -> tuple[VerdictChange, ...]:
    inputs, fabric = result.inputs, result.fabric
    changes = []
    if result.bottleneck == "latency":
        size = _smallest_message_bound_by_bandwidth(result)
        now, then = (
            format_value(inputs.message, "B"),
            f"{format_rounded_past_limit(size / 1e6, rounds_up=True)} MB",
        )
        changes.append(VerdictChange("message", "Message", now, then, "Bound by bandwidth."))
    now, bridged_gpus = format_number(inputs.gpus), fabric.bridged_gpus
    if 1 < inputs.gpus <= bridged_gpus < fabric.gpus_per_domain:
        then, becomes = format_number(bridged_gpus + 1), "Leaves the bridge for PCIe."
        changes.append(VerdictChange("gpus", "GPUs", now, then, becomes))
    elif not result.crosses_domains and inputs.gpus > 1:
        then = format_number(fabric.gpus_per_domain + 1)
        becomes = "Leaves the link domain for the network."
        changes.append(VerdictChange("gpus", "GPUs", now, then, becomes))
    return tuple(changes)


def _smallest_message_bound_by_bandwidth(result: CollectivesResult) -> float:
    """Return the size from which the latency is less than a third of the time [B]."""
    inputs = result.inputs
    fabric = adjust_nic_rate_for_sharp(result.fabric, inputs.collective, inputs)
    sizes = [inputs.message * 1.01**power for power in range(1, 3000)]
    limit = 3 * result.latency_floor
    index = bisect.bisect_left(
        sizes, limit, key=lambda size: collective_time(inputs.collective, inputs.gpus, size, fabric)
    )
    return sizes[index]


def _link_share(result: CollectivesResult) -> OutputValue:
    ceiling = math.inf if _is_reduced_in_switch_of_domain(result) else 1.0
    share = rate_with_error_range("collective", result.link_share, ceiling)
    return dataclasses.replace(share, note=_describe_limiting_link(result, share.high or 0.0))


OUTPUTS: tuple[OutputSpec[CollectivesResult], ...] = (
    OutputSpec(
        "time",
        "Time",
        "s",
        "less",
        lambda r: time_with_error_range("collective", r.seconds),
        modeled=True,
        primary=True,
    ),
    OutputSpec("bytes_sent", "Bytes sent per GPU", "B", "less"),
    OutputSpec("bytes_across", "Bytes between nodes per GPU", "B", "less"),
    OutputSpec(
        "bus_bandwidth",
        "Bus bandwidth",
        "B/s",
        "more",
        lambda r: rate_with_error_range("collective", r.transfer_rate(r.bytes_sent)),
        modeled=True,
    ),
    OutputSpec(
        "algorithm_bandwidth",
        "Message over time",
        "B/s",
        "more",
        lambda r: rate_with_error_range("collective", r.transfer_rate(r.inputs.message)),
        modeled=True,
    ),
    OutputSpec(
        "latency",
        "Latency floor",
        "s",
        "less",
        lambda r: time_with_error_range("collective", r.latency_floor),
        modeled=True,
    ),
    OutputSpec("link_share", "Share of the link", "%", read=_link_share, modeled=True),
    OutputSpec(
        "limit", "Limited by", read=lambda r: r.bottleneck if r.inputs.gpus > 1 else "nothing"
    ),
)
_STEPS = StepBuilder(OUTPUTS, "interconnects")


def estimate(inputs: CollectivesInputs) -> Estimate:
    gpu = find_accelerator(inputs.gpu)
    fabric = requested_interconnect(inputs, gpu)
    result = compute_collectives(inputs, fabric)
    return Estimate(
        name="collectives",
        verdict=_build_verdict(gpu, result),
        figures=read_figures(OUTPUTS, result),
        steps=_build_steps(result),
        pictures=(_build_bandwidth_curve(inputs, fabric),),
        tables=(_build_traffic_table(inputs, fabric),),
        notes=_build_notes(result),
        changes=find_verdict_changes(result),
    )


def _build_verdict(gpu: Accelerator, result: CollectivesResult) -> Verdict:
    inputs = result.inputs
    leads = {
        "latency": "Bound by latency.",
        "network": "Bound by the network.",
        "links": "Bound by the links inside the node.",
    }
    text = (
        f"An {dict(OPERATIONS)[inputs.collective].lower()} of {format_value(inputs.message, 'B')} over "
        f"{format_number(inputs.gpus)} {gpu.name} takes "
        f"{format_value(result.seconds, 's')}."
    )
    if inputs.operation in ("reduce_scatter", "broadcast"):
        text = "A" + text[2:]
    if inputs.gpus == 1:
        return Verdict("info", "Nothing to send.", "One GPU exchanges with nobody.")
    return Verdict("info", leads[result.bottleneck], text)


def _is_reduced_in_switch_of_domain(result: CollectivesResult) -> bool:
    """Return whether GPUs send less over the links of a domain than is counted."""
    adds = (
        result.inputs.operation == "all_reduce"
        and result.link_within_domain.link_model.switch_gain > 1
    )
    return adds and result.bottleneck != "network"


def _describe_limiting_link(result: CollectivesResult, highest_share: float) -> str:
    inputs, fabric, share = result.inputs, result.fabric, result.link_share
    if inputs.gpus == 1:
        return ""
    if result.bottleneck == "network":
        used_rate = format_value(share * fabric.nic_rate, "B/s")
        rate = format_value(fabric.nic_rate, "B/s")
        return f"{used_rate} between nodes, of the network adapter's {rate}."
    link = result.link_within_domain
    text = f"Of the {format_value(link.rate, 'B/s')} of {link.link_model.name}."
    if highest_share > 1 and _is_reduced_in_switch_of_domain(result):
        text += " The switch adds up, so a GPU sends less than is counted."
    return text


def _bytes_sent_formula(operation: collectives.Collective, ranks: str, size: str) -> str:
    """Return the bytes that each of `ranks` sends, as a formula with names or numbers."""
    if operation == "broadcast" and ranks != "1":
        return size
    passes = "2 × " if operation == "all_reduce" else ""
    return f"{passes}({ranks} − 1) ÷ {ranks} × {size}"


def _domain_time_formula(inputs: CollectivesInputs, fabric: Interconnect, message: float) -> str:
    domain_ranks = min(inputs.gpus, fabric.gpus_per_domain)
    parts = collective_time_within_domain(inputs.collective, domain_ranks, message, fabric)
    if not any(parts):
        return "0 s"
    latency, transfer = (format_term(part, "s") for part in parts)
    return (
        f"({latency}^{OVERLAP_EXPONENT} + {transfer}^{OVERLAP_EXPONENT})^(1 ÷ {OVERLAP_EXPONENT})"
    )


def _total_time_formula(inputs: CollectivesInputs, fabric: Interconnect, message: float) -> str:
    operation = inputs.collective
    domain_ranks = min(inputs.gpus, fabric.gpus_per_domain)
    groups = math.ceil(inputs.gpus / domain_ranks)
    inner = collective_time(operation, domain_ranks, message, fabric)
    used_fabric = adjust_nic_rate_for_sharp(fabric, operation, inputs)
    outer = collective_time_between_domains(operation, domain_ranks, groups, message, used_fabric)
    parts = (f"{format_term(part, 's')}^{TIER_OVERLAP_EXPONENT:g}" for part in (inner, outer))
    return f"({' + '.join(parts)})^(1 ÷ {TIER_OVERLAP_EXPONENT:g})"


_ONE_DOMAIN_FORMULA = "(latency^1.5 + transfer^1.5)^⅔"
_TIERS_FORMULA = "(within domains² + between them²)^½"


def _build_steps(result: CollectivesResult) -> tuple[FormulaStep, ...]:
    inputs, fabric = result.inputs, result.fabric
    operation, ranks = inputs.collective, inputs.gpus
    size, crosses = format_term(inputs.message, "B"), result.crosses_domains
    domain_formula = _domain_time_formula(inputs, fabric, inputs.message)
    rule, time_rule, total_formula = (
        _ONE_DOMAIN_FORMULA,
        "within the domain",
        format_term(result.seconds, "s"),
    )
    latency_formula = _domain_time_formula(inputs, fabric, 1.0)
    if crosses:
        rule = time_rule = _TIERS_FORMULA
        total_formula = _total_time_formula(inputs, fabric, inputs.message)
        latency_formula = _total_time_formula(inputs, fabric, 1.0)
    floor = f"for one byte: {rule}"
    bytes_formula = _bytes_sent_formula(operation, "GPUs", "message")
    bytes_numbers = _bytes_sent_formula(operation, format_number(ranks), size)
    source = "aiconfigurator"
    inside = (
        "Inside the link domain",
        _ONE_DOMAIN_FORMULA,
        domain_formula,
        result.seconds_within_domain,
        "s",
    )
    return (
        _STEPS.build_step(
            "bytes_sent", bytes_formula, bytes_numbers, result.bytes_sent, "nccl-tests"
        ),
        _STEPS.build_step("latency", floor, latency_formula, result.latency_floor, source),
        FormulaStep(*inside, source, "interconnects"),
        *((_build_bytes_across_step(result),) if crosses else ()),
        _STEPS.build_step("time", time_rule, total_formula, result.seconds, "ml-engineering"),
    )


def _build_bytes_across_step(result: CollectivesResult) -> FormulaStep:
    inputs = result.inputs
    groups = math.ceil(inputs.gpus / result.fabric.gpus_per_domain)
    operation, size = inputs.collective, format_term(inputs.message, "B")
    formula = "what each of the domains sends of message ÷ GPUs of a domain"
    if operation == "alltoall":
        formula = "(domains − 1) ÷ domains × message"
    else:
        size += f" ÷ {result.fabric.gpus_per_domain}"
    numbers = _bytes_sent_formula(operation, format_number(groups), size)
    if inputs.in_network and operation == "all_reduce":
        formula, numbers = f"{formula}, once", f"{numbers} ÷ 2"
    return _STEPS.build_step(
        "bytes_across", formula, numbers, result.bytes_across, "ml-engineering"
    )


def _build_bandwidth_curve(inputs: CollectivesInputs, fabric: Interconnect) -> Chart:
    operation, ranks = inputs.collective, max(2, inputs.gpus)
    used_fabric = adjust_nic_rate_for_sharp(fabric, operation, inputs)

    def point(size: float) -> tuple[float, float]:
        seconds = collective_time(operation, ranks, size, used_fabric)
        return size, bus_bandwidth(operation, ranks, size, seconds)

    points = tuple(point(2.0**exponent) for exponent in range(12, 37, 2))
    link_rate = fabric.find_link_within_domain(min(ranks, fabric.gpus_per_domain)).rate
    limit = tuple((size, link_rate) for size, _ in (points[0], points[-1]))
    return Chart(
        "Bandwidth by message size",
        "Message",
        "Bus bandwidth",
        "B",
        "B/s",
        (
            ChartLine("Bus bandwidth", points),
            ChartLine("Link, one way", limit, "dash"),
            ChartLine("This message", (point(inputs.message),), "mark"),
        ),
        x_log=True,
    )


class ParallelismTraffic(NamedTuple):
    """What a kind of parallelism exchanges, among how many GPUs, and the size of it [B]."""

    label: str
    operation: collectives.Collective
    participants: int
    message_bytes: float


def _build_traffic_table(inputs: CollectivesInputs, fabric: Interconnect) -> ResultTable:
    model, tokens, ranks = find_model(inputs.model), inputs.tokens, max(2, inputs.gpus)
    activations, weights = 2.0 * tokens * model.hidden, 2.0 * model.parameters
    cache = 2.0 * tokens * model.cache_elements / max(1, model.layers)
    experts = activations * model.experts_per_token if model.is_routed else 0.0
    domain_ranks = min(ranks, fabric.gpus_per_domain, 8)
    rows: list[tuple[TableCell, ...]] = []
    for traffic in (
        ParallelismTraffic("Data: gradients, once a step", "all_reduce", ranks, weights),
        ParallelismTraffic("ZeRO-3: weights, each micro-batch", "all_gather", ranks, weights),
        ParallelismTraffic(
            "Tensor: activations, each layer", "all_reduce", domain_ranks, activations
        ),
        ParallelismTraffic(
            "Context: keys and values, each layer", "all_gather", domain_ranks, cache
        ),
        ParallelismTraffic("Expert: tokens, each layer", "alltoall", domain_ranks, experts),
        ParallelismTraffic("Pipeline: activations, each boundary", "broadcast", 2, activations),
    ):
        if not traffic.message_bytes:
            continue
        exchange = traffic.operation, traffic.participants, traffic.message_bytes
        used_fabric = adjust_nic_rate_for_sharp(fabric, traffic.operation, inputs)
        seconds, sent = collective_time(*exchange, used_fabric), bytes_sent_per_rank(*exchange)
        rows.append(
            (traffic.label, format_number(traffic.participants), (sent, "B"), (seconds, "s"))
        )
    columns = ("Traffic", "GPUs", "Sent per GPU", "Time")
    return ResultTable(f"What {model.name} sends", columns, tuple(rows))


def _build_notes(result: CollectivesResult) -> tuple[str, ...]:
    inputs, fabric, across = result.inputs, result.fabric, result.bytes_across
    link = result.link_within_domain
    notes = [
        f"{link.link_model.name}: {format_value(link.rate, 'B/s')} in one direction.",
        "The interval holds nine of ten measurements that were not fitted.",
    ]
    bus_note = "Bus bandwidth, as NCCL's tests print it: bytes sent per GPU over the time."
    if across:
        bus_note += (
            f" Only {format_value(across, 'B')} of them cross the network, so it can "
            "exceed the rate of an adapter."
        )
    notes.append(bus_note)
    if fabric.bridge is not None:
        reach = format_number(fabric.bridged_gpus)
        notes.append(f"Bridges join up to {reach} neighboring cards; more cards use PCIe.")
    if link.link_model.crowding:
        notes.append("Cards joined by PCIe share the host's lanes and slow each other.")
    if inputs.in_network and inputs.gpus <= fabric.gpus_per_domain:
        notes.append("Within one link domain the network reduces nothing.")
    return tuple(notes)


ENTRY = EstimateSpec(
    name="collectives",
    title="Collectives",
    summary="How long GPUs take to exchange data, and which links decide it.",
    group="Network",
    inputs_type=CollectivesInputs,
    compute_estimate=estimate,
    outputs=OUTPUTS,
    most_important_outputs=("time", "bus_bandwidth", "link_share"),
    main_inputs=("message", "gpu", "gpus"),
    topic="interconnects",
)
