"""Compare a need with a memory limit, and word the verdict."""

import dataclasses

from app.estimator.formula_steps import extra_decimals_for_exact_sum
from app.estimator.hardware.catalog import OWN_CARD, Accelerator
from app.estimator.result import Status, Verdict
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
