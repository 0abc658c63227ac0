"""What `weights` asks for."""

import dataclasses

from app.estimator.models import gguf
from app.estimator.models.formats import PUBLISHED, PUBLISHED_CHOICES
from app.estimator.shared_inputs import HARDWARE, MODEL, ask_model, ask_tensor_parallel

_GGUF = tuple((f"gguf-{name.lower().replace('_', '-')}", f"GGUF {name}") for name in gguf.MIXTURES)


@dataclasses.dataclass(frozen=True, slots=True)
class WeightsInputs:
    """Which model in which format, over how many GPUs."""

    model: str = ask_model()
    weights: str = MODEL.ask(
        PUBLISHED,
        "Format",
        choices=(*PUBLISHED_CHOICES, *_GGUF),
        help="As published: as the checkpoint is quantized, BF16 where it is not. "
        "Quantized formats leave some tensors in 16 bit; GGUF mixes formats.",
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
        help="As kernels that keep only the weights narrow hold MXFP4 experts on "
        "Hopper and older cards: widths are padded to multiples of 256 and 128.",
        topic="number-formats",
        advanced=True,
    )
