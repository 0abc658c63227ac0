"""`weights`: inputs, result, and the input values where the verdict changes."""

import dataclasses

from app.estimator.common_inputs import HARDWARE, MODEL, ask_model, ask_tensor_parallel
from app.estimator.models import number_formats
from app.estimator.models.architecture import Architecture
from app.estimator.models.number_formats import (
    PUBLISHED,
    PUBLISHED_CHOICES,
    find_format,
    padding_bytes,
    weight_table,
)

_GGUF = tuple(
    (f"gguf-{name.lower().replace('_', '-')}", f"GGUF {name}") for name in number_formats.MIXTURES
)


@dataclasses.dataclass(frozen=True, slots=True)
class WeightsInputs:
    """The model, the format, and the number of GPUs."""

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
    pipeline_parallel: int = HARDWARE.ask_more(
        1,
        "Pipeline parallel",
        limits=(1, 1024),
        help="Stages that the layers are divided into evenly.",
        term="pipeline-parallelism",
    )
    repacked: bool = MODEL.ask_more(
        False,
        "Repacked 4-bit weights",
        help="As kernels that keep only the weights narrow hold MXFP4 experts on "
        "Hopper and older cards: widths are padded to multiples of 256 and 128.",
        topic="number-formats",
    )


MIXTURE = {f"gguf-{name.lower().replace('_', '-')}": name for name in number_formats.MIXTURES}
"""The choices that are GGUF mixtures, with their names."""


@dataclasses.dataclass(frozen=True, slots=True)
class WeightsResult:
    """Bytes in total, in the format, in wider formats, of a vision tower, and on one GPU.

    `covered` counts the parameters in the format, `language` those of the language
    model and `parameters` all that are loaded; `padding` is what repacking adds.
    """

    total: float
    quantized: float
    rest: float
    tower: float
    per_gpu: float
    covered: int
    language: int
    parameters: int
    padding: float

    @property
    def bits_per_parameter(self) -> float:
        """Return the average bits per parameter [1]."""
        return 8 * self.total / self.parameters

    @property
    def bits_per_weight(self) -> float | None:
        """Return the bits of a weight in the format, with scales [1]; None if no weight has it."""
        return 8 * self.quantized / self.covered if self.covered else None

    @property
    def saved(self) -> float:
        """Return the share saved compared with BF16 [1]."""
        return 1 - self.total / (2.0 * self.parameters)


def compute_weights(model: Architecture, inputs: WeightsInputs) -> WeightsResult:
    """Compute the bytes of a model in a format, as stored or as repacked by a kernel."""
    mixture = MIXTURE.get(inputs.weights)
    gpus, stages = inputs.tensor_parallel, inputs.pipeline_parallel
    tower, counted, padding = 0.0, model.parameters, 0.0
    if mixture:  # The tower is a separate file.
        total = quantized = number_formats.file_bytes(model, mixture)
        each, covered = total / gpus, model.parameters
    else:
        table, form = (weight_table(model, inputs.weights), find_format(model, inputs.weights))
        padding = padding_bytes(model, form, gpus) if inputs.repacked else 0.0
        covered = model.parameters if form.covers == "all" else table.quantized
        total, quantized = table.total + padding, covered * form.bits / 8 + padding
        each = table.per_gpu(gpus) + padding / gpus
        tower, counted = table.tower, model.loaded_parameters
    return WeightsResult(
        total=total,
        quantized=quantized,
        rest=total - quantized - tower,
        tower=tower,
        per_gpu=each / stages,
        covered=covered,
        language=model.parameters,
        parameters=counted,
        padding=padding,
    )
