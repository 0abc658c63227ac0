"""Formula lines several reports print, with numbers substituted.

A reader can type every line into a pocket calculator; what is rounded in it stands
for the value before rounding.
"""

import dataclasses
import math
from collections.abc import Iterable, Mapping

from app.estimator.memory.kv_cache import cached_elements, share
from app.estimator.models.architecture import Architecture
from app.estimator.result import FormulaStep, Output
from app.estimator.units import NBSP, format_number, format_value, parse_quantity


@dataclasses.dataclass(frozen=True, slots=True)
class StepBuilder:
    """The working of one estimate: each of its lines ends in one of its outputs.

    `topic` teaches the lines that name no other.
    """

    outputs: Mapping[str, Output]
    topic: str

    def line(
        self,
        figure: str,
        formula: str,
        substituted: str,
        value: float,
        source: str,
        **other: str,
    ) -> FormulaStep:
        """One line under the name of its output, or another label and topic."""
        output = self.outputs[figure]
        return FormulaStep(
            formula=formula,
            substituted=substituted,
            value=value,
            unit=output.unit,
            source=source,
            figure=figure,
            **{"label": output.label, "topic": self.topic, **other},
        )


def format_term(value: float, unit: str = "") -> str:
    """A quantity as it stands in a line, with five digits or more.

    A result has fewer, so the line comes to the result that stands beside it.

    >>> format_term(4.40962e9, "B").replace("\u00a0", " "), format_term(1.02345), format_term(8192)
    ('4.4096 GB', '1.02345', '8,192')
    """
    if not unit:
        return format_number(value, 6)
    for more in range(_DIGITS):
        text = format_value(value, unit, more)
        if sum(c.isdigit() for c in text.lstrip("0.")) >= _DIGITS:
            break
    return text


_DIGITS = 5


def terms(values: Iterable[float], unit: str) -> str:
    """The parts of a sum within a line, without those that are nothing.

    >>> terms([1e9, 0.0, 2.345e9], "B").replace("\u00a0", " ")
    '1 GB + 2.345 GB'
    """
    return " + ".join(format_term(value, unit) for value in values if value) or format_term(0, unit)


def decimals_that_hold(parts: Iterable[float], unit: str) -> int:
    """Decimals beyond the usual with which written parts come to their written sum.

    >>> decimals_that_hold([1e9, 2e9], "B"), decimals_that_hold([1.24e9, 1.24e9], "B")
    (0, 1)
    """
    parts = tuple(parts)
    total = format_value(math.fsum(parts), unit)
    for more in range(3):
        words = (format_value(value, unit, more) for value in parts)
        read = math.fsum(parse_quantity(w.replace(NBSP, " "), unit) for w in words)
        # Half of the last place is rounded up by some and down by others.
        either = (format_value(read * near, unit) for near in (1 - 1e-9, 1 + 1e-9))
        if set(either) == {total}:
            return more
    return 3


def format_sum(values: Iterable[float], unit: str) -> str:
    """The parts of a sum that is a line of its own, without those that are nothing.

    They have as many digits as it takes for the printed parts to come to the printed
    sum: 1 GB + 2 GB, but 1.24 GB + 1.24 GB for the 2.5 GB that they make.

    >>> [format_sum(v, "B").replace("\u00a0", " ") for v in ((1e9, 0.0, 2e9), ())]
    ['1 GB + 2 GB', '0 B']
    >>> format_sum([1.24e9, 1.24e9], "B").replace("\u00a0", " ")
    '1.24 GB + 1.24 GB'
    """
    parts = [value for value in values if value]
    more = decimals_that_hold(parts, unit)
    words = [format_value(value, unit, more) for value in parts]
    return " + ".join(words) or format_value(0.0, unit)


def split(whole: str, total: float, each: float, ways: int) -> str:
    """What one of `ways` GPUs holds of `whole`: some is divided, the rest copied.

    >>> split("8 GB", 8e9, 2e9, 4), split("8 GB", 8e9, 8e9, 1)
    ('8 GB ÷ 4', '8 GB')
    """
    if ways == 1:
        return whole
    copied = (each - total / ways) / (1 - 1 / ways)
    if abs(copied) < 1e-9 * total:
        return f"{_bracketed(whole)} ÷ {ways}"
    kept = format_term(copied, "B")
    return f"({whole} − {kept}) ÷ {ways} + {kept}"


def cached(model: Architecture, tokens: int, width: float, state: float, gpus: int = 1) -> str:
    """The cache of one sequence on one GPU, layers of a kind together.

    Bytes per token times the tokens that are kept; GPUs divide it only as far as
    there are heads, and recurrent layers keep `state` bytes.
    """
    groups: dict[tuple[int, int], float] = {}
    for layer, number in model.runs:
        mixer = layer.mixer
        ways = round(1 / share(mixer.kv_heads, gpus))
        if mixer.cache:
            kept = min(tokens, mixer.window) if mixer.window else tokens
            each = number * cached_elements(mixer, width)
            groups[kept, ways] = groups.get((kept, ways), 0.0) + each
        if mixer.near:
            kept = min(tokens, mixer.near_tokens)
            groups[kept, ways] = groups.get((kept, ways), 0.0) + number * mixer.near
    parts = []
    for (kept, ways), elements in groups.items():
        over = f" ÷ {ways}" if gpus > 1 else ""
        size = format_term(elements * width, "B")
        parts.append(f"{size} × {format_term(kept)}{over}")
    if state:
        parts.append(format_term(state, "B") + (f" ÷ {gpus}" if gpus > 1 else ""))
    return " + ".join(parts) or format_term(0.0, "B")


def cache_source(model: Architecture, usual: str) -> str:
    """The paper on the cache of a sequence that the model has, or else the usual one.

    >>> from app.estimator.models.lookup import find_model
    >>> cache_source(find_model("deepseek-v3"), "shazeer-2019")
    'deepseek-v2'
    """
    kinds = {a.mixer.kind for a, _ in model.runs if a.mixer.cache}
    if kinds == {"latent"}:
        return "deepseek-v2"
    if model.window:
        return "mistral-7b"
    return usual if kinds else "mamba"


def format_product(line: str, number: float, *, sign: str = "×") -> str:
    """A line times a number, in brackets where it is a sum.

    >>> format_product("1 + 2", 3), format_product("1 × 2", 3)
    ('(1 + 2) × 3', '1 × 2 × 3')
    """
    return f"{_bracketed(line)} {sign} {format_term(number)}"


def _bracketed(line: str) -> str:
    return f"({line})" if " + " in line or " − " in line else line


def multiplied(model: Architecture, training: float) -> str:
    """Operations to train on a token: those of weights and those of attention."""
    weights = model.embedding_parameters + sum(
        matrix.active_parameters * number
        for layer, number in model.runs
        for matrix in layer.matrices
    )
    attention = format_term(training - 6 * weights, "FLOP")
    return f"6 × {format_term(weights)} + {attention}"
