"""What would turn the verdict of `training-memory`."""

import dataclasses

from app.estimator.estimate import Change
from app.estimator.estimates.training_memory.asked import TrainingMemory
from app.estimator.estimates.training_memory.compute import Case
from app.estimator.memory.training import Load
from app.estimator.units import format_value


def changes(case: Case, load: Load, limit: float) -> tuple[Change, ...]:
    """GPUs, length and recipes with which the verdict turns."""
    asked, fits = case.asked, load.total <= limit
    changes = []
    if case.fewest and case.fewest != asked.gpus:
        word = "Still fits; with fewer no longer." if fits else "Fits."
        changes.append(Change("gpus", "GPUs", str(asked.gpus), str(case.fewest), word))
    longest = _longest_sequence(case, load, limit)
    if longest:
        flips = format_value(longest + (1 if fits else 0), "token")
        now = format_value(asked.sequence, "token")
        word = "No longer fits." if fits else "Fits."
        changes.append(Change("sequence", "Sequence", now, flips, word))
    changes += [_remedy(asked, field, value) for field, value in case.remedies]
    return tuple(changes)


def _remedy(asked: TrainingMemory, field: str, value: str) -> Change:
    """A change of the recipe with which the job fits."""
    fields = {f.name: f.metadata["input"] for f in dataclasses.fields(asked)}
    meaning = fields[field]
    labels = dict(meaning.choices)
    now = labels[getattr(asked, field)]
    return Change(field, meaning.label, now, labels[value], "Fits.")


def _longest_sequence(case: Case, load: Load, limit: float) -> int:
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
