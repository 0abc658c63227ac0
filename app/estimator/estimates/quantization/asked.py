"""What `quantization` asks for."""

import dataclasses

from app.estimator.inputs import InputGroup
from app.estimator.models.formats import WEIGHT_CHOICES
from app.estimator.shared_inputs import (
    HARDWARE,
    ask_gpu,
    ask_model,
    ask_tensor_parallel,
)

_FORMATS = InputGroup("Formats", "number-formats")


@dataclasses.dataclass(frozen=True, slots=True)
class QuantizationInputs:
    """Which two formats are compared, and on what."""

    model: str = ask_model()
    weights: str = _FORMATS.ask(
        "awq-int4",
        "To",
        choices=WEIGHT_CHOICES,
        help="The format to change to.",
        term="quantisation",
    )
    before: str = _FORMATS.ask(
        "bf16",
        "From",
        choices=WEIGHT_CHOICES,
        help="The format to compare with.",
    )
    gpu: str = ask_gpu(count_field="tensor_parallel")
    tensor_parallel: int = ask_tensor_parallel(2)
    bandwidth_share: float = HARDWARE.ask(
        0.65,
        "Reached bandwidth",
        typed_unit="%",
        minimum=0.05,
        maximum=1.0,
        help="Share of the memory bandwidth that decoding reaches.",
        topic="batching-and-latency",
        advanced=True,
    )
