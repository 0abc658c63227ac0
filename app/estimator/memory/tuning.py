"""Training a part of a model: adapters of frozen weights, and offloading."""

import dataclasses
import functools

from app.estimator.models.adapters import adapter_parameters
from app.estimator.models.architecture import Architecture
from app.estimator.models.formats import weight_table


@dataclasses.dataclass(frozen=True, slots=True)
class FineTuning:
    """What is trained. With adapters the model is frozen at `base` bytes each.

    `adapters` counts trainable parameters (0: all weights are trained); `targets`
    names the matrices that have one. `host` says what waits outside of the GPU:
    none, optimizer or all.
    """

    adapters: float = 0.0
    base: float = 0.0
    targets: frozenset[str] = frozenset()
    host: str = "none"

    @property
    def is_partial(self) -> bool:
        """Whether only adapters are trained."""
        return self.adapters > 0

    def saved_inputs(self, hidden: int, width: float) -> tuple[float, float]:
        """Bytes per token that a layer need not keep, whole and divided.

        The input of a frozen matrix is kept only for the gradient of its weights:
        without an adapter on them, 2h for each half of the layer and 2f for the
        last product fall away.
        """
        if not self.is_partial:
            return 0.0, 0.0
        whole = 0.0 if {"q", "k", "v"} & self.targets else 2.0 * hidden
        whole += 0.0 if {"gate", "up"} & self.targets else 2.0 * hidden
        return whole, 0.0 if "down" in self.targets else 2.0 * width


_TARGETS: dict[str, tuple[str, ...]] = {
    "all-linear": ("q", "k", "v", "o", "gate", "up", "down"),
    "attention": ("q", "k", "v", "o"),
    "qv": ("q", "v"),
    "mlp": ("gate", "up", "down"),
}


@functools.lru_cache(maxsize=8)
def full_training(host: str) -> FineTuning:
    """All weights are trained."""
    return FineTuning(host=host)


@functools.lru_cache(maxsize=1024)
def tuning_of(model: Architecture, method: str, rank: int, targets: str, host: str) -> FineTuning:
    """Adapters of `rank` on a frozen model, in 16 bit (LoRA) or in NF4 (QLoRA).

    Sources: Hu (2021); Dettmers (2023).
    """
    names = _TARGETS[targets]
    base = 2.0
    if method == "qlora":
        table = weight_table(model, "nf4-double")
        base = (table.total - table.tower) / model.parameters
    return FineTuning(
        adapters=adapter_parameters(model, rank, names),
        base=base,
        targets=frozenset(names),
        host=host,
    )
