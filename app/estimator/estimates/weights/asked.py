"""What `weights` asks for."""

import dataclasses

from app.estimator.models import gguf
from app.estimator.models.formats import WEIGHT_CHOICES
from app.estimator.shared_inputs import HARDWARE, MODEL, ask_model, ask_tensor_parallel

_GGUF = tuple(
    (f"gguf-{name.lower().replace('_', '-')}", f"GGUF {name}") for name in gguf.MIXTURES
)


@dataclasses.dataclass(frozen=True, slots=True)
class Weights:
    """Which model in which format, over how many GPUs."""

    model: str = ask_model()
    weights: str = MODEL.ask(
        "bf16",
        "Format",
        choices=(*WEIGHT_CHOICES, *_GGUF),
        help="Quantized formats leave some tensors in 16 bit; GGUF mixes formats.",
        term="quantisation",
        topic="number-formats",
    )
    tensor_parallel: int = ask_tensor_parallel()
    pipeline_parallel: int = HARDWARE.ask(
        1,
        "Pipeline parallel",
        minimum=1,
        maximum=1024,
        help="Stages that the layers are divided into evenly.",
        term="pipeline-parallelism",
        advanced=True,
    )
    repacked: bool = MODEL.ask(
        default=False,
        label="Repacked 4-bit weights",
        kind="flag",
        help="As kernels that keep only the weights narrow pad them on Hopper: 8.5% "
        "more than the file.",
        topic="number-formats",
        advanced=True,
    )
