"""What `parallelism-plan` asks for."""

import dataclasses

from app.estimator import shared_inputs
from app.estimator.shared_inputs import BATCH, HARDWARE, RECIPE


@dataclasses.dataclass(frozen=True, slots=True)
class ParallelismPlanInputs:
    """A training job and the cluster it should be laid out on."""

    model: str = shared_inputs.ask_model("llama-3.1-70b")
    gpu: str = shared_inputs.ask_gpu(count_field="gpus")
    gpus: int = shared_inputs.ask_gpus(256)
    sequence: int = BATCH.ask(
        8192,
        "Sequence",
        unit="token",
        minimum=16,
        maximum=10_000_000,
        help="Tokens of one training sequence.",
    )
    global_batch: int | None = BATCH.ask(
        None,
        "Global batch",
        kind="count",
        unit="sequence",
        minimum=1,
        maximum=10**7,
        help="Sequences per optimizer step; left empty: about eight million tokens, "
        "in a multiple of the GPUs.",
        term="batch-size",
        topic="parallelism",
    )
    tokens: float = shared_inputs.ask_training_tokens("Tokens of the whole run, for time and cost.")
    number_format: str = shared_inputs.ask_number_format()
    objective: str = RECIPE.ask(
        "time",
        "Rank by",
        choices=(("time", "time of the run"), ("cost", "cost of the run")),
        help="By cost, half, a quarter and fewer of the GPUs are tried as well.",
        topic="parallelism",
    )
    usable_memory: float = HARDWARE.ask(
        0.95,
        "Usable share of memory",
        typed_unit="%",
        minimum=0.1,
        maximum=1.0,
        help="A plan may fill this share of each GPU.",
        topic="training-memory",
        advanced=True,
    )
    software: str = shared_inputs.ask_training_software()
    network_rate: float = shared_inputs.ask_network_rate()
    network: str = shared_inputs.ask_network()
    domain: int | None = shared_inputs.ask_domain()
    usd_per_gpu_hour: float | None = shared_inputs.ask_price()
