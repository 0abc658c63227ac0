"""What `quantization` asks for."""

import dataclasses

from app.estimator.inputs import ask
from app.estimator.models.formats import WEIGHT_CHOICES
from app.estimator.shared_inputs import ask_gpu, ask_model, ask_tensor_parallel


@dataclasses.dataclass(frozen=True, slots=True)
class Quantization:
    """Which two formats are compared, and on what."""

    model: str = ask_model()
    weights: str = ask(
        "awq-int4",
        "To",
        choices=WEIGHT_CHOICES,
        help="The format to change to.",
        term="quantisation",
        group="Formats",
        topic="number-formats",
    )
    before: str = ask(
        "bf16",
        "From",
        choices=WEIGHT_CHOICES,
        help="The format to compare with.",
        group="Formats",
        topic="number-formats",
    )
    gpu: str = ask_gpu(count_field="tensor_parallel")
    tensor_parallel: int = ask_tensor_parallel(2)
    bandwidth_share: float = ask(
        0.65,
        "Reached bandwidth",
        typed_unit="%",
        minimum=0.05,
        maximum=1.0,
        help="Share of the memory bandwidth that decoding reaches.",
        group="Hardware",
        topic="batching-and-latency",
        advanced=True,
    )
