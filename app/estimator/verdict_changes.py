"""Find and word the input value at which a verdict changes."""

import bisect
import dataclasses
import math
from collections.abc import Callable
from typing import Any

from app.estimator.inputs import input_specs
from app.estimator.memory.engine_memory import MaxNumSeqsRefusal
from app.estimator.result import InputChange, VerdictChange
from app.estimator.units import format_number

MAX_NUM_SEQS = "--max-num-seqs"
MOST_SEQUENCES = ("max_sequences", f"Most sequences of the engine ({MAX_NUM_SEQS})")
"""The field of what vLLM calls max-num-seqs, and its label as a change of its own."""


def build_max_num_seqs_changes(refusal: MaxNumSeqsRefusal | None) -> tuple[VerdictChange, ...]:
    """Return the most sequences with which vLLM starts, if it refuses those it has."""
    if refusal is None or not refusal.advised_sequences:
        return ()
    now, then = (
        format_number(refusal.refused_sequences),
        format_number(refusal.advised_sequences),
    )
    return (VerdictChange(*MOST_SEQUENCES, now, then, "vLLM starts."),)


def add_max_num_seqs_change(
    change: VerdictChange, refusal: MaxNumSeqsRefusal | None
) -> VerdictChange:
    """Return a change with fewer sequences as a second change, if vLLM refuses to start with it alone.

    `refusal` are the sequences that it refuses then.
    """
    if refusal is None or not refusal.advised_sequences:
        return change
    most = format_number(refusal.advised_sequences)
    if change.field == MOST_SEQUENCES[0]:
        return dataclasses.replace(change, new_value=most)
    return dataclasses.replace(
        change,
        other_changes=(*change.other_changes, InputChange(MOST_SEQUENCES[0], MAX_NUM_SEQS, most)),
    )


def find_largest_fit(fits: Callable[[int], bool], guess: int, most: int) -> int:
    """Return the largest number from 1 to `most` that fits; 0 if none does.

    Whatever is smaller than a number that fits has to fit as well. The nearer the guess, the
    fewer numbers are tried.

    >>> [find_largest_fit(lambda n: n <= 60, guess, 100) for guess in (1, 60, 61, 500)]
    [60, 60, 60, 60]
    >>> find_largest_fit(lambda n: n <= 60, 7, 50), find_largest_fit(lambda n: False, 7, 50)
    (50, 0)
    """
    low, high = 0, max(1, min(guess, most))
    while high <= most and fits(high):
        low, high = high, 2 * high
    while high > 2 * low + 1 and not fits(high // 2):
        high //= 2
    low, high = max(low, high // 2), min(high, most + 1)
    return bisect.bisect_left(range(high), True, low + 1, key=lambda number: not fits(number)) - 1


def find_root_by_secants(
    excess: Callable[[float], float], first_guess: float, second_guess: float
) -> float | None:
    """Find a zero of a smooth function with secants; None if not found.

    >>> round(find_root_by_secants(lambda x: x * x - 2, 1.0, 2.0), 6)
    1.414214
    """
    low, high = excess(first_guess), excess(second_guess)
    for _ in range(12):
        if high == low:
            break
        first_guess, second_guess = (
            second_guess,
            second_guess - high * (second_guess - first_guess) / (high - low),
        )
        if not math.isfinite(second_guess) or abs(second_guess) > 600:
            return None
        low, high = high, excess(second_guess)
        if abs(high) < 1e-9:
            return second_guess
    return second_guess if abs(high) < 1e-6 else None


def format_rounded_past_limit(value: float, *, rounds_up: bool) -> str:
    """Round to three digits, toward the side on which the verdict has changed.

    >>> format_rounded_past_limit(4.9862, rounds_up=True), format_rounded_past_limit(4.9862, rounds_up=False)
    ('4.99', '4.98')
    """
    if value <= 0:
        return "0"
    scale = 10.0 ** (math.floor(math.log10(value)) - 2)
    steps = math.ceil(value / scale) if rounds_up else math.floor(value / scale)
    return format_number(float(f"{steps * scale:.6g}"))


def is_allowed_after_rounding(inputs_type: type, field: str, value: float) -> bool:
    """Return whether a value in base units is valid for a field after rounding."""
    spec = input_specs(inputs_type)[field]
    low, high = spec.minimum or 0.0, spec.maximum or math.inf
    return low * 1.01 <= value <= high * 0.99


def build_number_change(
    inputs: Any,
    field: str,
    value: float,
    verdict_after: str,
    *,
    unit: str,
    unit_factor: float = 1.0,
    rounds_up: bool,
) -> tuple[VerdictChange, ...]:
    """Return the change at a value in base units, rounded past it; none if the field forbids it.

    `unit` is written behind the number, `unit_factor` that of the unit to the base unit.
    """
    inputs_type: type = type(inputs)
    if not is_allowed_after_rounding(inputs_type, field, value):
        return ()
    now = f"{format_number(getattr(inputs, field) / unit_factor)}{unit}"
    then = f"{format_rounded_past_limit(value / unit_factor, rounds_up=rounds_up)}{unit}"
    return (VerdictChange(field, input_specs(inputs_type)[field].label, now, then, verdict_after),)


TIGHT_FIT = "Tight, but fits."
"""What is said of a change that leads to the verdict “Tight.”."""


def describe_fewest_gpus(sure: int, by_central_estimate: int) -> str:
    """Return a note that names both numbers of GPUs; empty if they are the same.

    >>> describe_fewest_gpus(4, 3), describe_fewest_gpus(4, 4)
    ('4 surely fit, 3 by the central estimate.', '')
    """
    if sure == by_central_estimate:
        return ""
    central = format_number(by_central_estimate)
    return f"{format_number(sure)} surely fit, {central} by the central estimate."


def round_up_to_usual_gpu_count(gpus: int, step: int = 1) -> int:
    """Return 1, 2, 4, 8 or a multiple of eight GPUs that is a multiple of `step` as well.

    >>> [round_up_to_usual_gpu_count(*job) for job in ((3, 1), (13, 1), (13, 6), (2, 2))]
    [4, 16, 24, 2]
    """
    usual = (count for count in (1, 2, 4, 8) if count >= gpus and count % step == 0)
    machines = math.lcm(_MACHINE_GPUS, step)
    return next(usual, math.ceil(gpus / machines) * machines)


_MACHINE_GPUS = 8
