"""What `collectives` asks for."""

import dataclasses

from app.estimator.hardware.traffic import Collective
from app.estimator.inputs import InputGroup
from app.estimator.shared_inputs import (
    MODEL,
    NETWORK,
    ask_domain,
    ask_gpu,
    ask_gpus,
    ask_model,
    ask_network,
    ask_network_rate,
)

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
    """A collective and the links it runs over."""

    operation: str = _MESSAGE.ask(
        "all_reduce",
        "Operation",
        choices=OPERATIONS,
        help="What all GPUs do together.",
    )
    message: float = _MESSAGE.ask(
        1e9,
        "Message",
        unit="B",
        typed_unit="MB",
        minimum=1,
        maximum=1e15,
        help="The whole buffer of one GPU: what is reduced, or gathered in the end.",
    )
    gpu: str = ask_gpu(count_field="gpus")
    gpus: int = ask_gpus(8, "interconnects")
    network_rate: float = ask_network_rate()
    network: str = ask_network()
    domain: int | None = ask_domain()
    in_network: bool = NETWORK.ask(
        default=False,
        label="Reduction in the network",
        kind="flag",
        help="Switches between nodes add up an all-reduce (SHARP), which halves "
        "what each adapter sends.",
        advanced=True,
    )
    model: str = ask_model("llama-3.1-8b")
    tokens: int = MODEL.ask(
        8192,
        "Tokens per micro-batch",
        unit="token",
        minimum=1,
        maximum=100_000_000,
        help="For the table of what each parallelism sends.",
        topic="parallelism",
        advanced=True,
    )
