"""What would turn the verdict of `training-memory`."""

import dataclasses

from app.estimator.estimate import VerdictFlip
from app.estimator.estimates.training_memory.asked import TrainingMemoryInputs
from app.estimator.estimates.training_memory.compute import TrainingMemoryResult
from app.estimator.memory.training import StageMemory
from app.estimator.units import format_value


def changes(case: TrainingMemoryResult, load: StageMemory, limit: float) -> tuple[VerdictFlip, ...]:
    """GPUs, length and recipes with which the verdict turns."""
    asked, fits = case.asked, load.total <= limit
    changes = []
    if case.fewest and case.fewest != asked.gpus:
        word = "The fewest that fit." if fits else "Fits."
        changes.append(VerdictFlip("gpus", "GPUs", str(asked.gpus), str(case.fewest), word))
    longest = _longest_sequence(case, load, limit)
    if longest:
        flips = format_value(longest + (1 if fits else 0), "token")
        now = format_value(asked.sequence, "token")
        word = "No longer fits." if fits else "Fits."
        changes.append(VerdictFlip("sequence", "Sequence", now, flips, word))
    changes += [_remedy(asked, field, value) for field, value in case.remedies]
    return tuple(changes)


def _remedy(asked: TrainingMemoryInputs, field: str, value: str) -> VerdictFlip:
    """A change of the recipe with which the job fits."""
    fields = {f.name: f.metadata["input"] for f in dataclasses.fields(asked)}
    meaning = fields[field]
    labels = dict(meaning.choices)
    now = labels[getattr(asked, field)]
    return VerdictFlip(field, meaning.label, now, labels[value], "Fits.")


def _longest_sequence(case: TrainingMemoryResult, load: StageMemory, limit: float) -> int:
    """The longest sequence that fits; exact as all moving parts grow with it.

    Without flash attention scores grow with its square and this is a lower bound.
    """
    moving = load.activations + load.logits
    room = limit - (load.total - moving)
    if moving <= 0 or room <= 0:
        return 0
    ratio = room / moving
    if not case.asked.flash_attention and case.asked.recompute != "selective":
        ratio = ratio**0.5 if ratio > 1 else ratio
    return int(case.asked.sequence * ratio)
