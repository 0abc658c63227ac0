"""Formula lines that several reports share, with numbers substituted.

Every line can be typed into a pocket calculator. A rounded number in it represents the
value before rounding.
"""

import collections
import dataclasses
import math
import re
from collections.abc import Iterable
from typing import Any, NamedTuple

from app.estimator.memory.kv_cache import cache_share_per_gpu
from app.estimator.models.architecture import Architecture
from app.estimator.result import FormulaStep, OutputSpec
from app.estimator.units import NBSP, format_number, format_value, parse_quantity

Term = float | str | tuple[float, str]
"""A number, a number with its base unit, or a formatted term."""


@dataclasses.dataclass(frozen=True, slots=True)
class StepBuilder:
    """Builds the steps of one estimate: each of its lines ends in one of its outputs.

    `default_topic` is the concept page for lines that name no other.
    """

    outputs: tuple[OutputSpec[Any], ...]
    default_topic: str

    def build_step(
        self,
        output_name: str,
        formula: str,
        substituted: str,
        value: float,
        source: str,
        **label_or_topic: str,
    ) -> FormulaStep:
        """Build one line, labeled with its output or another label and topic."""
        output = next(o for o in self.outputs if o.name == output_name)
        return FormulaStep(
            formula=formula,
            substituted=substituted,
            value=value,
            unit=output.unit,
            source=source,
            output_name=output_name,
            **{"label": output.label, "topic": self.default_topic, **label_or_topic},
        )

    def build_step_from_template(
        self,
        output_name: str,
        template: str,
        terms: tuple[Term, ...],
        value: float,
        source: str,
        **label_or_topic: str,
    ) -> FormulaStep:
        """Build a line from one template: its [names] are the formula, their values the numbers.

        `terms` are the values of the names in the order in which these first occur.
        """
        names = dict.fromkeys(_BRACKETED_NAME.findall(template))
        texts = dict(zip(names, map(_term_text, terms), strict=True))
        numbers = _BRACKETED_NAME.sub(lambda name: texts[name[1]], template)
        return self.build_step(
            output_name,
            _BRACKETED_NAME.sub(r"\1", template),
            numbers,
            value,
            source,
            **label_or_topic,
        )


_BRACKETED_NAME = re.compile(r"\[([^]]+)\]")


def _term_text(term: Term) -> str:
    if isinstance(term, str):
        return term
    return format_term(*term) if isinstance(term, tuple) else format_term(term)


def format_term(value: float, unit: str = "") -> str:
    """Format a quantity within a line, with at least five digits.

    A result has fewer digits, so that the line evaluates to the result shown.

    >>> format_term(1061.0023), format_term(1061.0)
    ('1,061.0023', '1,061')
    """
    if not unit:
        text = format_number(value, 6)
        looks_whole = "." not in text and value != int(value) and value < _WHOLE_DIGITS
        return format_number(value, 8) if looks_whole else text
    for extra_decimals in range(_MAX_EXTRA_DECIMALS):
        text = format_value(value, unit, extra_decimals)
        if sum(c.isdigit() for c in text.lstrip("0.")) >= _MAX_EXTRA_DECIMALS:
            break
    return text


_MAX_EXTRA_DECIMALS = 5
_WHOLE_DIGITS = 1e5  # Larger numbers have five digits without a fraction.


def format_sum_in_formula(values: Iterable[float], unit: str) -> str:
    """Format the terms of a sum within a line, without zeros.

    >>> format_sum_in_formula([1e9, 0.0, 2.345e9], "B").replace("\u00a0", " ")
    '1 GB + 2.345 GB'
    """
    return " + ".join(format_term(value, unit) for value in values if value) or format_term(0, unit)


def extra_decimals_for_exact_sum(parts: Iterable[float], unit: str) -> int:
    """Return the extra decimals with which rounded terms add up to their rounded sum.

    >>> extra_decimals_for_exact_sum([1e9, 2e9], "B"), extra_decimals_for_exact_sum([1.24e9, 1.24e9], "B")
    (0, 1)
    """
    parts = tuple(parts)
    total = format_value(math.fsum(parts), unit)
    for extra_decimals in range(3):
        text = (format_value(value, unit, extra_decimals) for value in parts)
        printed_sum = math.fsum(parse_quantity(w.replace(NBSP, " "), unit) for w in text)
        # Some readers round half of the last place up, others down.
        rounded_sums = (format_value(printed_sum * nudge, unit) for nudge in (1 - 1e-9, 1 + 1e-9))
        if set(rounded_sums) == {total}:
            return extra_decimals
    return 3


def format_terms_of_exact_sum(values: Iterable[float], unit: str) -> str:
    """Format the terms of a sum that is its own line, without zeros.

    They have enough digits for the printed terms to add up to the printed
    sum: 1 GB + 2 GB, but 1.24 GB + 1.24 GB for a sum of 2.5 GB.

    >>> [format_terms_of_exact_sum(v, "B").replace("\u00a0", " ") for v in ((1e9, 0.0, 2e9), ())]
    ['1 GB + 2 GB', '0 B']
    >>> format_terms_of_exact_sum([1.24e9, 1.24e9], "B").replace("\u00a0", " ")
    '1.24 GB + 1.24 GB'
    """
    parts = [value for value in values if value]
    extra_decimals = extra_decimals_for_exact_sum(parts, unit)
    terms = [format_value(value, unit, extra_decimals) for value in parts]
    return " + ".join(terms) or format_value(0.0, unit)


def share_per_gpu_formula(
    total_formula: str, total_bytes: float, gpu_bytes: float, gpus: int
) -> str:
    """Return what one of `gpus` GPUs stores of `total_formula`: one part is divided, the rest copied.

    >>> share_per_gpu_formula("8 GB", 8e9, 2e9, 4), share_per_gpu_formula("8 GB", 8e9, 8e9, 1)
    ('8 GB ÷ 4', '8 GB')
    """
    if gpus == 1:
        return total_formula
    copied = (gpu_bytes - total_bytes / gpus) / (1 - 1 / gpus)
    if abs(copied) < 1e-9 * total_bytes:
        return f"{_bracket_sum(total_formula)} ÷ {gpus}"
    copy = format_term(copied, "B")
    return f"({total_formula} − {copy}) ÷ {gpus} + {copy}"


def sequence_kv_cache_per_gpu_formula(
    model: Architecture, tokens: int, element_bytes: float, state_bytes: float, gpus: int = 1
) -> str:
    """Return the cache of one sequence on one GPU as a formula, grouped by layer kind.

    Bytes per token times the cached tokens. GPUs divide the cache only as far as there
    are heads. Recurrent layers store `state_bytes` bytes.
    """
    # By the tokens that a layer caches, and the GPUs that divide them.
    elements_by_group: dict[tuple[int, int], float] = collections.defaultdict(float)
    for layer, number in model.layer_counts:
        mixer = layer.mixer
        divisor = round(1 / cache_share_per_gpu(mixer.kv_heads, gpus))
        if mixer.cache_elements_per_token:
            cached_tokens = min(tokens, mixer.window_tokens) if mixer.window_tokens else tokens
            elements_by_group[cached_tokens, divisor] += number * mixer.cache_elements_per_token
            # Each GPU stores all keys of an indexer, which have one head.
            elements_by_group[cached_tokens, 1] += (
                number * mixer.indexer_cache_bytes_per_token / element_bytes
            )
        if mixer.extra_cache_elements_per_near_token:
            elements_by_group[min(tokens, mixer.near_tokens), divisor] += (
                number * mixer.extra_cache_elements_per_near_token
            )
    parts = []
    for (cached_tokens, divisor), elements in elements_by_group.items():
        if not elements:
            continue
        divisor_text = f" ÷ {divisor}" if gpus > 1 else ""
        size = format_term(elements * element_bytes, "B")
        parts.append(f"{size} × {format_term(cached_tokens)}{divisor_text}")
    if state_bytes:
        parts.append(format_term(state_bytes, "B") + (f" ÷ {gpus}" if gpus > 1 else ""))
    return " + ".join(parts) or format_term(0.0, "B")


def kv_cache_publication_id(model: Architecture, default_source: str) -> str:
    """Return the source for the model's kind of cache, `default_source` for standard attention.

    >>> from app.estimator.models.lookup import find_model
    >>> kv_cache_publication_id(find_model("deepseek-v3"), "shazeer-2019")
    'deepseek-v2'
    """
    kinds = {a.mixer.kind for a, _ in model.layer_counts if a.mixer.cache_elements_per_token}
    if kinds == {"latent"}:
        return "deepseek-v2"
    if model.sliding_window:
        return "mistral-7b"
    return default_source if kinds else "mamba"


def multiply_or_divide_formula(formula: str, number: float, *, sign: str = "×") -> str:
    """Multiply a line by a number, with brackets around a sum.

    >>> multiply_or_divide_formula("1 + 2", 3), multiply_or_divide_formula("1 × 2", 3)
    ('(1 + 2) × 3', '1 × 2 × 3')
    """
    return f"{_bracket_sum(formula)} {sign} {format_term(number)}"


def _bracket_sum(formula: str) -> str:
    return f"({formula})" if " + " in formula or " − " in formula else formula


def _active_weights_with_head(model: Architecture) -> float:
    """Return the active weights that multiply a token, with the output head."""
    return model.embedding_parameters + sum(
        matrix.active_parameters * number
        for layer, number in model.layer_counts
        for matrix in layer.matrices
    )


def adapter_training_flops_per_token_formula(
    model: Architecture, flops_per_token: float, adapter_parameters: float
) -> str:
    weights = _active_weights_with_head(model)
    attention = format_term(flops_per_token - 4 * weights - 6 * adapter_parameters, "FLOP")
    return f"4 × {format_term(weights)} + 6 × {format_term(adapter_parameters)} + {attention}"


class FormulaTexts(NamedTuple):
    """A formula with names, and the same with numbers."""

    formula: str
    substituted: str


def daly_interval_formula(stall: float, mtbf: float) -> FormulaTexts:
    """Return Daly's interval between checkpoints."""
    mtbf_text = format_term(mtbf, "s")
    if stall >= 2 * mtbf:
        return FormulaTexts("MTBF", mtbf_text)
    template = "√(2 × {0} × {1}) × (1 + √({0} ÷ (2 × {1})) ÷ 3 + {0} ÷ (18 × {1})) − {0}"
    formula = (
        template.format("stall", "MTBF") + "; MTBF is the mean time between failures of the job"
    )
    return FormulaTexts(formula, template.format(format_term(stall, "s"), mtbf_text))


def training_flops_per_token_formula(model: Architecture, flops_per_token: float) -> str:
    """Return the FLOPs to train on a token as a formula: weights and attention."""
    weights = _active_weights_with_head(model)
    attention = format_term(flops_per_token - 6 * weights, "FLOP")
    return f"6 × {format_term(weights)} + {attention}"
