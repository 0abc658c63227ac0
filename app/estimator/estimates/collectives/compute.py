"""The numbers of `collectives`."""

import dataclasses

from app.estimator.estimates.collectives.asked import OPERATIONS, CollectivesInputs
from app.estimator.hardware.accelerators import Accelerator
from app.estimator.hardware.networks import Interconnect, collective_time, fabric_of
from app.estimator.hardware.traffic import Collective
from app.estimator.shared_inputs import input_error


@dataclasses.dataclass(frozen=True, slots=True)
class CollectiveTimes:
    """Times of one message [s]: whole, of an empty one, inside the domain alone."""

    seconds: float
    floor: float
    inner: float
    crosses: bool

    @property
    def limit(self) -> str:
        """What decides the time: latency, links of the domain, or the network."""
        if self.seconds < 3 * self.floor:
            return "latency"
        if self.crosses and self.inner < 0.7 * self.seconds:
            return "network"
        return "links"


def operation_of(asked: CollectivesInputs) -> Collective:
    """The operation as the formulas name it; the form offers no other."""
    return next(name for name, _ in OPERATIONS if name == asked.operation)


def links_of(asked: CollectivesInputs, gpu: Accelerator) -> Interconnect:
    """The links around a card; refused where the catalog knows none."""
    if not gpu.nvlink and not gpu.pcie:
        message = f"The links of the {gpu.name} are not known."
        raise input_error("gpu", asked.gpu, message)
    return fabric_of(gpu, asked.network_rate, asked.network, asked.domain or 0)


def measure(asked: CollectivesInputs, fabric: Interconnect, message: float) -> CollectiveTimes:
    """The time of a message, whole and by part."""
    operation, ranks = operation_of(asked), asked.gpus
    seconds = timed(asked, fabric, message)
    inside = min(ranks, fabric.domain)
    inner = collective_time(operation, inside, message, fabric)
    return CollectiveTimes(
        seconds=seconds,
        floor=timed(asked, fabric, 1.0),
        inner=inner if ranks > fabric.domain else seconds,
        crosses=ranks > fabric.domain,
    )


def timed(asked: CollectivesInputs, fabric: Interconnect, message: float) -> float:
    """Time of the collective, with the reduction of the network if it is asked for."""
    operation, ranks = operation_of(asked), asked.gpus
    return collective_time(operation, ranks, message, reducing(asked, fabric))


def reducing(asked: CollectivesInputs, fabric: Interconnect) -> Interconnect:
    """The fabric with what its network reduces on the way, if that is asked for."""
    reduces = asked.in_network and operation_of(asked) == "all_reduce"
    if not reduces or asked.gpus <= fabric.domain:
        return fabric
    # The switch returns the sum: each adapter sends the message once, not twice.
    return dataclasses.replace(fabric, nic_rate=2 * fabric.nic_rate)
