"""What would turn the verdict of `latency`."""

from app.estimator.estimate import Change
from app.estimator.estimates.latency.asked import Latency
from app.estimator.estimates.latency.compute import Timed
from app.estimator.units import format_number


def changes(asked: Latency, timed: Timed) -> tuple[Change, ...]:
    """The batch from which memory no longer bounds a decoding step."""
    if timed.bound != "memory" or timed.flips is None:
        return ()
    now, then = format_number(asked.batch), format_number(timed.flips)
    becomes = "Memory no longer bounds it."
    return (Change("batch", "Sequences at once", now, then, becomes),)
