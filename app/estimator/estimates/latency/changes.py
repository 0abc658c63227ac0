"""What would turn the verdict of `latency`."""

from app.estimator.estimate import VerdictFlip
from app.estimator.estimates.latency.asked import LatencyInputs
from app.estimator.estimates.latency.compute import LatencyResult
from app.estimator.units import format_number


def changes(asked: LatencyInputs, timed: LatencyResult) -> tuple[VerdictFlip, ...]:
    """The batch from which memory no longer bounds a decoding step."""
    if timed.bound != "memory" or timed.flips is None:
        return ()
    now, then = format_number(asked.batch), format_number(timed.flips)
    becomes = "Memory no longer bounds it."
    return (VerdictFlip("batch", "Sequences at once", now, then, becomes),)
