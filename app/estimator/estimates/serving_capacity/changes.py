"""What would turn the verdict on a service: the nearest values that do."""

import math

from app.estimator.estimate import VerdictFlip
from app.estimator.estimates.serving_capacity.asked import ServingCapacityInputs
from app.estimator.serving.capacity import CapacityResult
from app.estimator.serving.profile import OperatingPoint
from app.estimator.units import format_number, format_value

_SHARES = {"p50": 0.5, "p95": 0.95, "p99": 0.99}


def changes_of(asked: ServingCapacityInputs, found: CapacityResult) -> tuple[VerdictFlip, ...]:
    """The inputs near which the verdict turns, with the values that turn it."""
    if not found.memory:
        return _more_memory(asked, found)
    if found.top is None or found.replicas is None:
        return _looser(asked, found)
    return _more_load(asked, found, found.top, found.replicas)


def _more_memory(asked: ServingCapacityInputs, found: CapacityResult) -> tuple[VerdictFlip, ...]:
    """The fewest GPUs per replica in which weights and a request fit."""
    if found.enough is None:
        return ()
    now, then = str(asked.tensor_parallel), str(found.enough)
    label = "GPUs that share the model"
    return (VerdictFlip("tensor_parallel", label, now, then, "The weights fit."),)


def _looser(asked: ServingCapacityInputs, found: CapacityResult) -> tuple[VerdictFlip, ...]:
    """The targets that one request alone just keeps."""
    if found.alone is None:
        return ()
    changes, share = [], _SHARES[asked.percentile]
    for kind, label in (("ttft", "first token"), ("tpot", "per token")):
        limit = getattr(asked, f"{kind}_target")
        value = getattr(found.alone, kind)[share]
        if limit is not None and value > limit:
            now, then = format_value(limit, "s"), format_value(value, "s")
            reason = "One request alone keeps it."
            change = VerdictFlip(f"{kind}_target", f"Target: {label}", now, then, reason)
            changes.append(change)
    return tuple(changes)


def _more_load(
    asked: ServingCapacityInputs, found: CapacityResult, top: OperatingPoint, replicas: int
) -> tuple[VerdictFlip, ...]:
    if asked.requests_per_second is not None:
        most = top.rate * replicas / asked.peak
        field, label = "requests_per_second", "Requests per second"
        now, flips = asked.requests_per_second, format_number(most)
    else:
        most = math.floor(top.batch * replicas / asked.peak)
        field, label, now = "concurrent", "Users at once", float(asked.concurrent)
        flips = format_number(most + (1 if found.met else 0))
    becomes = "Meets the targets."
    if found.met:
        becomes = "Too slow." if asked.replicas else "Takes one more replica."
    changes = [VerdictFlip(field, label, format_number(now), flips, becomes)]
    if not found.met and asked.replicas:
        needed = math.ceil(now / max(1e-9, most) * asked.replicas)
        now_words, then = str(asked.replicas), str(needed)
        changes.append(VerdictFlip("replicas", "Replicas", now_words, then, "Meets the targets."))
    return tuple(changes)
