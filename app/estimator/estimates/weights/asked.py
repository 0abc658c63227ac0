"""What `weights` asks for."""

import dataclasses

from app.estimator.inputs import ask
from app.estimator.models import gguf
from app.estimator.models.formats import WEIGHT_CHOICES
from app.estimator.shared_inputs import ask_model, ask_tensor_parallel

_GGUF = tuple(
    (f"gguf-{name.lower().replace('_', '-')}", f"GGUF {name}")
    for name in gguf.MIXTURES
    if name not in {"F32", "F16", "BF16"}
)


@dataclasses.dataclass(frozen=True, slots=True)
class Weights:
    """Which model in which format, over how many GPUs."""

    model: str = ask_model()
    weights: str = ask(
        "bf16",
        "Format",
        kind="choice",
        choices=(*WEIGHT_CHOICES, *_GGUF),
        help="Quantised formats leave some tensors in 16 bit; GGUF mixes formats.",
        term="quantization",
        group="Model",
        topic="number-formats",
    )
    tensor_parallel: int = ask_tensor_parallel()
