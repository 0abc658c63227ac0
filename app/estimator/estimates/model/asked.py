"""What `model` asks for."""

import dataclasses

from app.estimator.shared_inputs import LOAD, MODEL, ask_model


@dataclasses.dataclass(frozen=True, slots=True)
class ModelInputs:
    """Which model is asked about."""

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
        minimum=1,
        maximum=100_000_000,
        help="Length over which attention is counted in the operations.",
        topic="training-versus-inference",
    )
