"""The estimate `collectives`: time and bytes of a collective, and what limits it."""

import dataclasses

from app.estimator.estimate import Estimate
from app.estimator.estimates.collectives import words
from app.estimator.estimates.collectives.words import Measured
from app.estimator.hardware.accelerators import Accelerator, find_accelerator
from app.estimator.hardware.networks import Fabric, collective_time, fabric_of
from app.estimator.hardware.traffic import Collective
from app.estimator.inputs import ask
from app.estimator.job_inputs import (
    ask_domain,
    ask_gpus,
    ask_network,
    ask_network_rate,
)
from app.estimator.models.architecture import find_model
from app.estimator.registry import Entry
from app.estimator.shared_inputs import ask_gpu, ask_model, refuse

OPERATIONS: tuple[tuple[Collective, str], ...] = (
    ("all_reduce", "All-reduce"),
    ("all_gather", "All-gather"),
    ("reduce_scatter", "Reduce-scatter"),
    ("alltoall", "All-to-all"),
    ("broadcast", "Broadcast"),
)


@dataclasses.dataclass(frozen=True, slots=True)
class Collectives:
    """A collective and the links it runs over."""

    operation: str = ask(
        "all_reduce",
        "Operation",
        kind="choice",
        choices=OPERATIONS,
        help="What all GPUs do together.",
        group="Message",
        topic="interconnects",
    )
    message: float = ask(
        1e9,
        "Message",
        unit="B",
        typed_unit="MB",
        minimum=1,
        maximum=1e15,
        help="The whole buffer of one GPU: what is reduced, or gathered in the end.",
        group="Message",
        topic="interconnects",
    )
    gpu: str = ask_gpu(count_field="gpus")
    gpus: int = ask_gpus(8, "interconnects")
    network_rate: float = ask_network_rate()
    network: str = ask_network()
    domain: int | None = ask_domain()
    in_network: bool = ask(
        default=False,
        label="Reduction in the network",
        kind="flag",
        help="Switches between nodes add up an all-reduce (SHARP), which halves "
        "what each adapter sends.",
        group="Network",
        topic="interconnects",
        advanced=True,
    )
    model: str = ask_model("llama-3.1-8b")
    tokens: int = ask(
        8192,
        "Tokens per micro-batch",
        kind="count",
        unit="token",
        minimum=1,
        maximum=100_000_000,
        help="For the table of what each parallelism sends.",
        group="Model",
        topic="parallelism",
        advanced=True,
    )


def compute(asked: Collectives) -> Estimate:
    """Time the collective, and say which links decide."""
    gpu = find_accelerator(asked.gpu)
    fabric = links_of(asked, gpu)
    measured = measure(asked, fabric, asked.message)
    model = find_model(asked.model)
    return words.answer(asked, gpu, fabric, measured, model)


def operation_of(asked: Collectives) -> Collective:
    """The operation as the formulas name it; the form offers no other."""
    return next(name for name, _ in OPERATIONS if name == asked.operation)


def links_of(asked: Collectives, gpu: Accelerator) -> Fabric:
    """The links around a card; refused where the catalogue knows none."""
    if not gpu.nvlink and not gpu.pcie:
        message = f"The links of the {gpu.name} are not known."
        raise refuse("gpu", asked.gpu, message)
    return fabric_of(gpu, asked.network_rate, asked.network, asked.domain or 0)


def measure(asked: Collectives, fabric: Fabric, message: float) -> Measured:
    """The time of a message, whole and by part."""
    operation, ranks = operation_of(asked), asked.gpus
    seconds = timed(asked, fabric, message)
    inside = min(ranks, fabric.domain)
    inner = collective_time(operation, inside, message, fabric)
    return Measured(
        seconds=seconds,
        floor=timed(asked, fabric, 1.0),
        inner=inner if ranks > fabric.domain else seconds,
        crosses=ranks > fabric.domain,
    )


def timed(asked: Collectives, fabric: Fabric, message: float) -> float:
    """Time of the collective, with the reduction of the network if it is asked for."""
    operation, ranks = operation_of(asked), asked.gpus
    whole = collective_time(operation, ranks, message, fabric)
    reduces = asked.in_network and operation == "all_reduce"
    if not reduces or ranks <= fabric.domain:
        return whole
    # The switch returns the sum: each adapter sends the message once, not twice.
    faster = dataclasses.replace(fabric, nic_rate=2 * fabric.nic_rate)
    return collective_time(operation, ranks, message, faster)


ENTRY = Entry(
    name="collectives",
    title="Collectives",
    summary="How long GPUs take to exchange data, and which links decide it.",
    group="Network",
    inputs=Collectives,
    compute=compute,
    outputs=words.OUTPUTS,
    topic="interconnects",
)
