"""What would turn the verdict of `inference-memory`."""

from app.estimator.estimate import VerdictFlip
from app.estimator.estimates.inference_memory.asked import InferenceMemoryInputs
from app.estimator.estimates.inference_memory.compute import InferenceLimits
from app.estimator.models.formats import FORMATS, format_of
from app.estimator.models.lookup import find_model
from app.estimator.units import format_number, format_value


def changes(
    asked: InferenceMemoryInputs, limits: InferenceLimits, fits: bool
) -> tuple[VerdictFlip, ...]:
    """The inputs next to those asked for with which the verdict turns."""
    becomes = "No longer fits." if fits else "Fits."
    step = 1 if fits else 0
    changes = []
    if limits.context:
        flips = format_value(limits.context + step, "token")
        now = format_value(asked.context, "token")
        changes.append(VerdictFlip("context", "Context", now, flips, becomes))
    if limits.concurrent:
        flips = format_number(limits.concurrent + step)
        now = format_number(asked.concurrent)
        changes.append(VerdictFlip("concurrent", "Concurrent sequences", now, flips, becomes))
    if limits.gpus and limits.gpus != asked.tensor_parallel:
        now, flips = str(asked.tensor_parallel), str(limits.gpus)
        word = "The fewest that fit." if fits else "Fits."
        changes.append(VerdictFlip("tensor_parallel", "GPUs", now, flips, word))
    if limits.weights:
        now = format_of(find_model(asked.model), asked.weights).label
        flips = FORMATS[limits.weights].label
        changes.append(VerdictFlip("weights", "Weights", now, flips, "Fits."))
    if limits.attention:
        words = "Divided", "Data parallel", "Fits."
        changes.append(VerdictFlip("attention", "Attention", *words))
    return tuple(changes)
