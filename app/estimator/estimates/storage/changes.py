"""What would change the verdict of the estimate `storage`."""

import dataclasses
import math

from app.estimator.estimate import VerdictFlip
from app.estimator.estimates.storage.asked import SAVING, StorageInputs
from app.estimator.estimates.storage.compute import StorageResult, losses_of, restart_within
from app.estimator.thresholds import find_root, round_past_limit, within
from app.estimator.units import format_number, format_value


def changes_of(asked: StorageInputs, found: StorageResult) -> tuple[VerdictFlip, ...]:
    """The nearest values of inputs with which storage keeps up, or no longer.

    Where both reading and saving are too much, no single input helps.
    """
    good = found.losses.lost <= asked.acceptable
    fed = found.needed_read <= asked.read_bandwidth
    saving = _saving_changes(asked, found, good=good) if fed else ()
    reading = _reading_changes(asked, fed=fed) if good else ()
    return (*saving, *reading)


def remedy(asked: StorageInputs, found: StorageResult) -> str:
    """What costs more, and what would bring the loss down."""
    restarting = found.losses.restarting
    share, limit = format_value(restarting, "%"), format_value(asked.acceptable, "%")
    if restarting * 2 <= found.losses.lost and restarting <= asked.acceptable:
        return f"Restarts alone cost {share}, saves and work done twice the rest."
    said = f"Restarts alone cost {share}"
    if restarting > asked.acceptable:
        said += f", more than the {limit} that are acceptable"
    beside = dataclasses.replace(asked, saving="beside", stall=None)
    longest = restart_within(asked, found.losses)
    if longest is not None:
        return f"{said}: a restart within {format_value(longest, 's')} would do."
    longest = restart_within(beside, losses_of(beside, found.checkpoint))
    if longest is None:
        return f"{said}."
    return (
        f"{said}: with saves beside the training, a restart within "
        f"{format_value(longest, 's')} would do."
    )


def _saving_changes(
    asked: StorageInputs, found: StorageResult, *, good: bool
) -> tuple[VerdictFlip, ...]:
    """First what costs most, restarting or saving; fewer GPUs come last."""
    becomes = "Too much is lost." if good else "Fits."
    changes = [*_mode_change(asked, found, good=good)]
    changes = changes or [*_pair_change(asked, found, good=good)]
    if found.needed_write and 1e6 < found.needed_write < 1e15:
        rate = round_past_limit(found.needed_write / 1e9, up=not good)
        now = f"{format_number(asked.write_bandwidth / 1e9)} GB/s"
        flips = f"{rate} GB/s"
        changes.append(VerdictFlip("write_bandwidth", "Write bandwidth", now, flips, becomes))
    restart = _restart_change(asked, found, becomes)
    decides = found.losses.restarting * 2 > found.losses.lost
    changes = [*restart, *changes] if decides else [*changes, *restart]
    gpus = _flipping_gpus(asked, found, good=good)
    if gpus:
        now, flips = format_number(asked.gpus), format_number(gpus)
        changes.append(VerdictFlip("gpus", "GPUs", now, flips, becomes))
    return tuple(changes)


def _mode_change(
    asked: StorageInputs, found: StorageResult, *, good: bool
) -> tuple[VerdictFlip, ...]:
    """Saving beside the training, where that alone is enough."""
    if good or asked.saving == "beside" or asked.stall is not None:
        return ()
    beside = dataclasses.replace(asked, saving="beside")
    if losses_of(beside, found.checkpoint).lost > asked.acceptable:
        return ()
    words = dict(SAVING)
    now, flips = words["wait"], words["beside"]
    return (VerdictFlip("saving", "While saving", now, flips, "Fits."),)


def _pair_change(
    asked: StorageInputs, found: StorageResult, *, good: bool
) -> tuple[VerdictFlip, ...]:
    """Saving beside the training, where that is enough with a quicker restart alone."""
    if good or asked.saving == "beside" or asked.stall is not None:
        return ()
    beside = dataclasses.replace(asked, saving="beside")
    longest = restart_within(beside, losses_of(beside, found.checkpoint))
    if longest is None or not within(StorageInputs, "restart", longest):
        return ()
    words = dict(SAVING)
    now, flips = words["wait"], words["beside"]
    minutes = f"{round_past_limit(longest / 60, up=False)} min"
    also = (("restart", "Restart", minutes),)
    return (VerdictFlip("saving", "While saving", now, flips, "Fits.", also),)


def _restart_change(
    asked: StorageInputs, found: StorageResult, becomes: str
) -> tuple[VerdictFlip, ...]:
    """The restart at which the loss crosses what is acceptable."""
    longest = restart_within(asked, found.losses)
    if longest is None or not within(StorageInputs, "restart", longest):
        return ()
    good = found.losses.lost <= asked.acceptable
    flips = f"{round_past_limit(longest / 60, up=good)} min"
    now = f"{format_number(asked.restart / 60)} min"
    return (VerdictFlip("restart", "Restart", now, flips, becomes),)


def _reading_changes(asked: StorageInputs, *, fed: bool) -> tuple[VerdictFlip, ...]:
    limit = asked.read_bandwidth / (asked.gpus * asked.gpu_rate)
    if not 0.01 < limit < 1e9:
        return ()
    return (
        VerdictFlip(
            "bytes_per_token",
            "Bytes per token",
            f"{format_number(asked.bytes_per_token)} B",
            f"{round_past_limit(limit, up=fed)} B",
            "The GPUs starve." if fed else "The GPUs are fed.",
        ),
    )


def _flipping_gpus(asked: StorageInputs, found: StorageResult, *, good: bool) -> int | None:
    """The number of GPUs at which the loss crosses what is acceptable."""

    def excess(log_gpus: float) -> float:
        other = losses_of(asked, found.checkpoint, gpus=math.exp(log_gpus))
        return other.lost - asked.acceptable

    # The loss grows with about the root of the GPUs.
    near = asked.gpus * (asked.acceptable / max(found.losses.lost, 1e-9)) ** 1.5
    near = min(max(near, 1.0), 1e6)
    crossing = find_root(excess, math.log(asked.gpus), math.log(near * 1.01))
    if crossing is None or not 0 <= crossing < math.log(1e6):
        return None
    gpus = math.exp(crossing)
    return math.floor(gpus) + 1 if good else max(1, math.floor(gpus))
