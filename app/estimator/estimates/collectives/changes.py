"""What would turn the verdict of `collectives`."""

from app.estimator.estimate import VerdictFlip
from app.estimator.estimates.collectives.asked import CollectivesInputs
from app.estimator.estimates.collectives.compute import CollectiveTimes, operation_of
from app.estimator.hardware.networks import Interconnect, collective_time
from app.estimator.units import format_number, format_value


def changes(
    asked: CollectivesInputs, fabric: Interconnect, measured: CollectiveTimes
) -> tuple[VerdictFlip, ...]:
    """The size and the number of GPUs from which something else decides."""
    changes = []
    if measured.limit == "latency":
        size = asked.message
        while size < 1e15:
            size *= 2
            time = collective_time(operation_of(asked), max(2, asked.gpus), size, fabric)
            if time >= 3 * measured.floor:
                break
        changes.append(
            VerdictFlip(
                "message",
                "Message",
                format_value(asked.message, "B"),
                format_value(size, "B"),
                "Bound by bandwidth.",
            )
        )
    if not measured.crosses and asked.gpus > 1:
        changes.append(
            VerdictFlip(
                "gpus",
                "GPUs",
                format_number(asked.gpus),
                format_number(fabric.domain + 1),
                "Leaves the link domain for the network.",
            )
        )
    return tuple(changes)
