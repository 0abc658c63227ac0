"""What would change the verdict of the estimate `storage`."""

import math

from app.estimator.estimate import Change
from app.estimator.estimates.storage.asked import Storage
from app.estimator.estimates.storage.compute import Plan, losses_of
from app.estimator.thresholds import root, rounded
from app.estimator.units import format_number


def changes_of(asked: Storage, found: Plan) -> tuple[Change, ...]:
    """The nearest values of inputs with which storage keeps up, or no longer.

    Where both reading and saving are too much, no single input helps.
    """
    good = found.losses.lost <= asked.acceptable
    fed = found.needed_read <= asked.read_bandwidth
    saving = _saving_changes(asked, found, good=good) if fed else ()
    reading = _reading_changes(asked, fed=fed) if good else ()
    return (*saving, *reading)


def _saving_changes(asked: Storage, found: Plan, *, good: bool) -> tuple[Change, ...]:
    becomes = "Too much is lost." if good else "Fits."
    changes = []
    if found.needed_write and 1e6 < found.needed_write < 1e15:
        rate = rounded(found.needed_write / 1e9, up=not good)
        now = f"{format_number(asked.write_bandwidth / 1e9)} GB/s"
        flips = f"{rate} GB/s"
        changes.append(
            Change("write_bandwidth", "Write bandwidth", now, flips, becomes)
        )
    gpus = _flipping_gpus(asked, found, good=good)
    if gpus:
        now, flips = format_number(asked.gpus), format_number(gpus)
        changes.append(Change("gpus", "GPUs", now, flips, becomes))
    return tuple(changes)


def _reading_changes(asked: Storage, *, fed: bool) -> tuple[Change, ...]:
    limit = asked.read_bandwidth / (asked.gpus * asked.gpu_rate)
    if not 0.01 < limit < 1e9:
        return ()
    return (
        Change(
            "bytes_per_token",
            "Bytes per token",
            f"{format_number(asked.bytes_per_token)} B",
            f"{rounded(limit, up=fed)} B",
            "The GPUs starve." if fed else "The GPUs are fed.",
        ),
    )


def _flipping_gpus(asked: Storage, found: Plan, *, good: bool) -> int | None:
    """The number of GPUs at which the loss crosses what is acceptable."""

    def excess(log_gpus: float) -> float:
        other = losses_of(asked, found.checkpoint, gpus=math.exp(log_gpus))
        return other.lost - asked.acceptable

    # The loss grows with about the root of the GPUs.
    near = asked.gpus * (asked.acceptable / max(found.losses.lost, 1e-9)) ** 1.5
    near = min(max(near, 1.0), 1e6)
    crossing = root(excess, math.log(asked.gpus), math.log(near * 1.01))
    if crossing is None or not 0 <= crossing < math.log(1e6):
        return None
    gpus = math.exp(crossing)
    return math.floor(gpus) + 1 if good else max(1, math.floor(gpus))
