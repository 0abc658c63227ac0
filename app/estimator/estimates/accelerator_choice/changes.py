"""What would make another accelerator the best one."""

import dataclasses
from typing import Any

from app.estimator.estimate import VerdictFlip
from app.estimator.estimates.accelerator_choice.asked import AcceleratorChoiceInputs
from app.estimator.estimates.accelerator_choice.search import (
    USABLE,
    GpuCandidate,
    GpuRanking,
    search,
)
from app.estimator.estimates.accelerator_choice.terms import named
from app.estimator.inputs import InvalidInputsError
from app.estimator.models.formats import FORMATS, format_of
from app.estimator.thresholds import within
from app.estimator.units import format_number, format_value


def changes_of(asked: AcceleratorChoiceInputs, found: GpuRanking) -> tuple[VerdictFlip, ...]:
    """Values of inputs near those asked for with which another GPU is the best."""
    changes = []
    for field, label, value, now, flips in _tries(asked, found):
        changed: dict[str, Any] = {field: value}
        try:
            other = search(dataclasses.replace(asked, **changed))
        except InvalidInputsError:
            continue
        if _first(other) != _first(found):
            changes.append(VerdictFlip(field, label, now, flips, _becomes(other)))
    return tuple(changes)


def _first(found: GpuRanking) -> tuple[str, int]:
    best = found.found[0] if found.found else None
    return (best.gpu.id, best.count) if best else ("", 0)


def _becomes(found: GpuRanking) -> str:
    if not found.found:
        return "No GPU of the catalog does it."
    best = found.found[0]
    return f"{named(best.gpu, best.count)}."


_Try = tuple[str, str, Any, str, str]


def _tries(asked: AcceleratorChoiceInputs, found: GpuRanking) -> tuple[_Try, ...]:
    best = found.found[0] if found.found else None
    if asked.job == "training":
        return _training_tries(asked)
    tries: list[_Try] = []
    if best is not None:
        tries += _fuller(asked, found, best)
    form = format_of(found.model, asked.weights)
    lighter = {"bf16": "fp8", "fp16": "fp8", "fp8": "int4"}.get(form.id)
    if best is None:
        now, value = f"{format_number(asked.slowest * 1e3)} ms", asked.slowest * 4
        flips = f"{format_number(value * 1e3)} ms"
        tries.append(("slowest", "Slowest token", min(value, 100.0), now, flips))
    if lighter:
        now, flips = form.label, FORMATS[lighter].label
        tries.append(("weights", "Weights", lighter, now, flips))
    return tuple(tries)


def _training_tries(asked: AcceleratorChoiceInputs) -> tuple[_Try, ...]:
    now = format_value(asked.days, "s").replace("\u00a0", " ")
    half = asked.days / 2
    if not within(type(asked), "days", half):
        return ()
    days = f"{format_number(half / 86400)} days"
    return (("days", "Time for the training", half, now, days),)


def _fuller(
    asked: AcceleratorChoiceInputs, found: GpuRanking, best: GpuCandidate
) -> tuple[_Try, ...]:
    """One sequence more than fits on the best."""
    load = found.loads[best.count]
    room = best.gpu.capacity * USABLE - load.fixed
    each = load.cache / asked.concurrent
    if each <= 0 or room <= 0:
        return ()
    more = max(int(room // each), asked.concurrent) + 1
    if more > 1_000_000:
        return ()
    now, flips = format_number(asked.concurrent), format_number(more)
    return (("concurrent", "Concurrent sequences", more, now, flips),)
