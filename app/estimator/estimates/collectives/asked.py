"""What `collectives` asks for."""

import dataclasses

from app.estimator.hardware.traffic import Collective
from app.estimator.inputs import ask
from app.estimator.job_inputs import ask_domain, ask_gpus, ask_network, ask_network_rate
from app.estimator.shared_inputs import ask_gpu, ask_model

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
        unit="token",
        minimum=1,
        maximum=100_000_000,
        help="For the table of what each parallelism sends.",
        group="Model",
        topic="parallelism",
        advanced=True,
    )
