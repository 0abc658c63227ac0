"""Compare a need with a memory limit, and find the input value at which the verdict changes."""

import bisect
import dataclasses
import math
from collections.abc import Callable
from typing import Any

from app.estimator.formula_steps import extra_decimals_for_exact_sum
from app.estimator.hardware.catalog import OWN_CARD, Accelerator
from app.estimator.inputs import input_specs
from app.estimator.memory.inference_memory import MaxNumSeqsRefusal
from app.estimator.result import InputChange, Status, Verdict, VerdictChange
from app.estimator.units import NBSP, format_number, format_value, parse_quantity

TIGHT_MARGIN_SHARE = 0.1


def memory_status(needed_bytes: float, limit_bytes: float) -> Status:
    """Return `no` above the limit, `tight` with less than 10 % free, else `fits`.

    >>> memory_status(149.4e9, 80e9), memory_status(75e9, 80e9), memory_status(40e9, 80e9)
    ('no', 'tight', 'fits')
    """
    if needed_bytes > limit_bytes:
        return "no"
    return "tight" if limit_bytes - needed_bytes < TIGHT_MARGIN_SHARE * limit_bytes else "fits"


_LEAD_BY_STATUS: dict[Status, str] = {
    "no": "Does not fit.",
    "tight": "Tight.",
    "fits": "Fits.",
    "info": "",
}
UNSURE_LEAD = "May not fit."
"""What is said if the limit lies within the range of the estimate."""
UNCERTAIN_FIT = "Not sure: the limit lies within the range of the estimate."
"""The same as a note of the figure `fits`, which is of the most likely values."""
TIGHT_FIT = "Tight, but fits."
"""What is said of a change that leads to the verdict “Tight.”."""


@dataclasses.dataclass(frozen=True, slots=True)
class MemoryLimit:
    """Memory of a GPU: the usable part, and the size on the label [B]."""

    usable_bytes: float
    whole_bytes: float
    label_bytes: float | None = None


def build_memory_verdict(
    needed_bytes: float,
    memory_limit: MemoryLimit,
    gpus: int,
    min_needed_bytes: float | None = None,
    max_needed_bytes: float | None = None,
    *,
    subject: str = "",
) -> Verdict:
    r"""Return whether a GPU that needs `needed_bytes` bytes has enough memory.

    `min_needed_bytes` and `max_needed_bytes` bound a modeled need. If the limit is within these bounds, the
    verdict is that it may fit. `subject` starts the sentence if it is not a whole GPU that has it.

    >>> memory = MemoryLimit(80e9, 80e9)
    >>> build_memory_verdict(149.4e9, memory, 8).text.replace("\u00a0", " ")
    'Each GPU would need 149.4 GB and has 80 GB.'
    >>> build_memory_verdict(80.012e9, memory, 1).text.replace("\u00a0", " ")
    'The GPU would need 12 MB more than 80 GB and has 80 GB.'
    >>> build_memory_verdict(39.45e9, MemoryLimit(85.52e9, 85.52e9), 1).text.replace("\u00a0", " ")
    'The GPU needs 39.45 GB and has 85.52 GB: 46.1 GB free.'
    >>> close = build_memory_verdict(82e9, memory, 8, min_needed_bytes=74e9)
    >>> close.status, close.lead
    ('tight', 'May not fit.')
    >>> close.text.replace("\u00a0", " ")
    'Each GPU would need 82 GB and has 80 GB; the estimate may be as low as 74 GB.'
    >>> close = build_memory_verdict(76e9, memory, 8, max_needed_bytes=82e9)
    >>> close.status, close.lead
    ('tight', 'May not fit.')
    >>> close.text.replace("\u00a0", " ")
    'Each GPU needs 76 GB and has 80 GB; the estimate may be as high as 82 GB, 2 GB too much.'
    """
    limit, whole = memory_limit.usable_bytes, memory_limit.whole_bytes
    label = memory_limit.label_bytes
    status = memory_status(needed_bytes, limit)
    subject = subject or ("Each GPU" if gpus > 1 else "The GPU")
    exact_decimals = (
        extra_decimals_for_exact_sum((limit, -needed_bytes), "B") if needed_bytes <= limit else 0
    )
    extra_decimals = min(exact_decimals, 1)
    capacity_clause = f"has {format_capacity_with_label_size(whole, label, extra_decimals)}"
    if limit < whole:
        capacity_clause = f"may use {format_value(limit, 'B', extra_decimals)} of {format_capacity_with_label_size(whole, label)}"
    need_text = format_value(needed_bytes, "B", extra_decimals)
    if status == "no" and need_text == format_value(limit, "B"):
        need_text = f"{format_value(needed_bytes - limit, 'B')} more than {need_text}"
    if uncertainty := _range_crosses_limit_text(
        needed_bytes, limit, min_needed_bytes, max_needed_bytes
    ):
        verb = "would need" if needed_bytes > limit else "needs"
        text = f"{subject} {verb} {need_text} and {capacity_clause}; {uncertainty}"
        return Verdict("tight", UNSURE_LEAD, text)
    if status == "no":
        text = f"{subject} would need {need_text} and {capacity_clause}."
    else:
        free = format_value(limit - needed_bytes, "B")
        if exact_decimals > 1:
            free = _subtract_as_printed(format_value(limit, "B", extra_decimals), need_text)
        text = f"{subject} needs {need_text} and {capacity_clause}: {free} free."
    return Verdict(status, _LEAD_BY_STATUS[status], text)


def _range_crosses_limit_text(
    needed_bytes: float,
    limit: float,
    min_needed_bytes: float | None,
    max_needed_bytes: float | None,
) -> str:
    """Return a note if one bound of a modeled need is on the other side of the limit."""
    if needed_bytes > limit and min_needed_bytes is not None and min_needed_bytes <= limit:
        return f"the estimate may be as low as {format_value(min_needed_bytes, 'B')}."
    if needed_bytes <= limit and max_needed_bytes is not None and max_needed_bytes > limit:
        over = format_value(max_needed_bytes - limit, "B")
        return f"the estimate may be as high as {format_value(max_needed_bytes, 'B')}, {over} too much."
    return ""


LONGER_CONTEXT_LEAD = "Longer than the model takes."


def replace_verdict_if_context_exceeds_max(
    verdict: Verdict, tokens: float, most_tokens: int | None
) -> Verdict:
    r"""Return the verdict, or that engines refuse more tokens than a model is configured for.

    `most_tokens` is None if the model has no such limit. It is no refusal, because positions can
    be scaled.

    >>> fits = Verdict("fits", "Fits.", "It needs 2 GB.")
    >>> replace_verdict_if_context_exceeds_max(fits, 4096, 4096).lead
    'Fits.'
    >>> longer = replace_verdict_if_context_exceeds_max(fits, 4097, 4096)
    >>> longer.status, longer.lead, longer.text.replace("\u00a0", " ")[:36]
    ('tight', 'Longer than the model takes.', 'It is configured for 4,096 tokens, a')
    """
    if most_tokens is None or tokens <= most_tokens:
        return verdict
    text = (
        f"It is configured for {format_value(most_tokens, 'token')}, and engines refuse longer contexts "
        f"unless its positions are scaled (RoPE scaling such as YaRN). {verdict.text}"
    )
    if verdict.status == "no":
        return dataclasses.replace(verdict, text=text)
    return Verdict("tight", LONGER_CONTEXT_LEAD, text)


def memory_lacking_at_upper_bound_text(lacking_bytes: float) -> str:
    r"""Return a sentence on what GPUs lack by the upper end of an estimate; empty if nothing.

    >>> memory_lacking_at_upper_bound_text(2e9).replace("\u00a0", " "), memory_lacking_at_upper_bound_text(-1.0)
    ('It fits by the central estimate; by the upper end of its range, each GPU lacks 2 GB.', '')
    """
    if lacking_bytes <= 0:
        return ""
    lacking = format_value(lacking_bytes, "B")
    return (
        f"It fits by the central estimate; by the upper end of its range, each GPU lacks {lacking}."
    )


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


def _subtract_as_printed(limit: str, need: str) -> str:
    r"""Return what a printed limit leaves beyond a printed need, in the unit of the limit.

    >>> _subtract_as_printed("76.97\u00a0GB", "76.42\u00a0GB").replace("\u00a0", " ")
    '0.55 GB'
    """
    limit_bytes, need_bytes = (parse_quantity(w.replace(NBSP, " "), "B") for w in (limit, need))
    return format_value(limit_bytes - need_bytes, limit.partition(NBSP)[2], 1)


def uncertain_fit_note(limit: float, min_needed_bytes: float, max_needed_bytes: float) -> str:
    """Return a note that the verdict is uncertain; empty if both bounds agree.

    >>> uncertain_fit_note(80e9, 74e9, 90e9), uncertain_fit_note(80e9, 60e9, 70e9)
    ('Not sure: the limit lies within the range of the estimate.', '')
    """
    is_uncertain = min_needed_bytes <= limit < max_needed_bytes
    return UNCERTAIN_FIT if is_uncertain else ""


def format_capacity_with_label_size(
    capacity: float, label_size: float | None, extra_decimals: int = 0
) -> str:
    r"""Format the capacity of a GPU, with the label size if that differs.

    `extra_decimals` adds decimals, for a number that is used in a subtraction.

    >>> format_capacity_with_label_size(85.52e9, 80e9).replace("\u00a0", " ")
    '85.5 GB (80 GB on the label)'
    """
    text = format_value(capacity, "B", extra_decimals)
    if label_size is None or format_value(label_size, "B") == format_value(capacity, "B"):
        return text
    return f"{text} ({format_value(label_size, 'B')} on the label)"


def real_capacity_note(gpu: Accelerator) -> str:
    r"""Return a note on a GPU's real capacity and its source, if it differs from the label.

    >>> from app.estimator.hardware.catalog import find_accelerator
    >>> real_capacity_note(find_accelerator("H100")).replace("\u00a0", " ")
    'H100 SXM5 80GB: 80 GB on the label; nvidia-smi shows 85.5 GB (81,559 MiB), of which programs get 84.9 GB.'
    """
    if gpu.kind == OWN_CARD:
        return (
            f"{gpu.name}: a GB is 10⁹ bytes here. nvidia-smi shows up to 7% more than the label: "
            "write what it shows, for example 16303 MiB."
        )
    label = format_value(gpu.memory, "B") if gpu.memory else "nothing known"
    if gpu.capacity == gpu.memory or gpu.memory is None:
        return (
            f"{gpu.name}: {label} on the label; no reading of its driver is published, "
            "so the label counts."
        )
    capacity = f"{format_value(gpu.capacity, 'B')} ({format_number(gpu.capacity / 2**20)} MiB)"
    if not gpu.driver_memory:
        return f"{gpu.name}: {label} on the label; programs get {capacity}."
    tool = "rocm-smi" if gpu.vendor == "AMD" else "nvidia-smi"
    note = f"{gpu.name}: {label} on the label; {tool} shows {capacity}"
    if gpu.engine_memory:
        note += f", of which programs get {format_value(gpu.engine_memory, 'B')}"
    return f"{note}."


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
