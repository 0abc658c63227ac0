"""What sizing a service finds, before it is put into words."""

import dataclasses

from app.estimator.serving.profile import OperatingPoint
from app.estimator.serving.simulation import SimulationResult


@dataclasses.dataclass(frozen=True, slots=True)
class CapacityResult:
    """What was found: replicas, how one of them settles, and how far it could go.

    `memory`: the weights and one request fit; `met`: the promise is kept; `alone`:
    one request by itself; `enough`: GPUs per replica in which the weights fit.
    """

    replicas: int | None
    settled: OperatingPoint | None
    top: OperatingPoint | None
    met: bool
    memory: bool
    simulated: SimulationResult | None
    alone: OperatingPoint | None = None
    enough: int | None = None

    @property
    def utilization(self) -> float | None:
        """Load over the highest that keeps the promise [1]."""
        if self.settled is None or self.top is None:
            return None
        return self.settled.rate / self.top.rate
