"""`model`: inputs, result, and the input values where the verdict changes."""

import dataclasses

from app.estimator.common_inputs import LOAD, MODEL, ask_model, input_error
from app.estimator.models.architecture import Architecture
from app.estimator.models.hf_config import UnreadableConfigError
from app.estimator.models.lookup import find_model, read_pasted


@dataclasses.dataclass(frozen=True, slots=True)
class ModelInputs:
    """The model."""

    model: str = ask_model()
    config: str = MODEL.ask(
        "",
        "config.json",
        kind="text",
        maximum=200_000,
        help="Paste a configuration of the Hugging Face Hub to read that model.",
    )
    sequence: int = LOAD.ask(
        4096,
        "Sequence",
        unit="token",
        limits=(1, 100_000_000),
        help="Length over which attention is counted in the operations.",
        topic="training-versus-inference",
    )


def requested_model(inputs: ModelInputs) -> Architecture:
    """Return the chosen model; raises InvalidInputsError for an invalid configuration."""
    pasted = inputs.config.strip()
    if not pasted:
        return find_model(inputs.model)
    try:
        return read_pasted(pasted)
    except UnreadableConfigError as error:
        raise input_error("config", pasted[:40], str(error)) from error


@dataclasses.dataclass(frozen=True, slots=True)
class ModelResult:
    """The model, and the operations to train on a token [FLOP]."""

    model: Architecture
    training_flops: float
