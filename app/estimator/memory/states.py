"""Weights, gradients and optimizer: bytes per parameter and who keeps them."""

import dataclasses

from app.estimator.memory.layouts import ParallelLayout, ParameterShare


@dataclasses.dataclass(frozen=True, slots=True)
class BytesPerParameter:
    """Bytes per parameter of a training recipe."""

    weights: float
    gradients: float
    master: float
    moments: float

    @property
    def optimizer(self) -> float:
        """Master copy and moments together."""
        return self.master + self.moments

    @property
    def total(self) -> float:
        """All bytes per parameter."""
        return self.weights + self.gradients + self.optimizer


# Precision: bytes of weights, gradients, master copy, and of each moment.
_PRECISION: dict[str, tuple[float, float, float, float]] = {
    "bf16-mixed": (2, 2, 4, 4),
    "bf16-mixed-fp32-grads": (2, 4, 4, 4),
    "bf16": (2, 2, 0, 2),
    "fp32": (4, 4, 0, 4),
}
# Optimizer: moments kept for each parameter; 8-bit ones take one byte each.
_MOMENTS: dict[str, float] = {
    "adamw": 2,
    "adamw-8bit": 2,
    "sgd": 0,
    "sgd-momentum": 1,
    "adafactor": 0,
    "muon": 1,
    "lion": 1,
}
OPTIMIZERS: tuple[tuple[str, str], ...] = (
    ("adamw", "AdamW"),
    ("adamw-8bit", "AdamW, 8-bit moments"),
    ("sgd", "SGD"),
    ("sgd-momentum", "SGD with momentum"),
    ("adafactor", "Adafactor"),
    ("muon", "Muon"),
    ("lion", "Lion"),
)
PRECISIONS: tuple[tuple[str, str], ...] = (
    ("bf16-mixed", "BF16 with FP32 master"),
    ("bf16-mixed-fp32-grads", "BF16 with FP32 master and gradients"),
    ("bf16", "BF16 alone"),
    ("fp32", "FP32"),
)


def recipe(optimizer: str = "adamw", precision: str = "bf16-mixed") -> BytesPerParameter:
    """Bytes per parameter for an optimizer and a precision.

    Adafactor's factored moments (a row and a column per matrix) round to nothing.
    Sources: Rajbhandari (2020); Dettmers (2021); Shazeer and Stern (2018).

    >>> recipe("adamw", "bf16-mixed").total
    16
    >>> recipe("adamw", "bf16-mixed-fp32-grads").total
    18
    """
    weights, gradients, master, width = _PRECISION[precision]
    width = 1 if optimizer == "adamw-8bit" else width
    return BytesPerParameter(weights, gradients, master, _MOMENTS[optimizer] * width)


def zero_bytes(
    parameters: float, bytes_each: BytesPerParameter, shards: int, stage: int
) -> tuple[float, float, float]:
    """Weights, gradients and optimizer of one GPU under a ZeRO stage.

    Stage 1 divides the optimizer by the shards, stage 2 the gradients as well,
    stage 3 the weights as well. Source: Rajbhandari (2020), section 5.

    >>> sum(zero_bytes(7.5e9, recipe(), 64, 3))
    1875000000.0
    """
    weights = parameters * bytes_each.weights / (shards if stage >= 3 else 1)
    gradients = parameters * bytes_each.gradients / (shards if stage >= 2 else 1)
    optimizer = parameters * bytes_each.optimizer / (shards if stage >= 1 else 1)
    return weights, gradients, optimizer


def state_bytes(
    share: ParameterShare, bytes_each: BytesPerParameter, layout: ParallelLayout
) -> tuple[float, float, float]:
    """Weights, gradients and optimizer of a share; experts have their own shards."""
    dense = zero_bytes(share.dense, bytes_each, layout.shards, layout.zero)
    if not share.experts:
        return dense
    routed = zero_bytes(share.experts, bytes_each, layout.expert_shards, layout.zero)
    return (dense[0] + routed[0], dense[1] + routed[1], dense[2] + routed[2])
