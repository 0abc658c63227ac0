"""Where a verdict turns: the input that crosses a limit, rounded past it."""

import math
from collections.abc import Callable

from app.estimator.inputs import input_specs
from app.estimator.units import format_number


def find_root(
    excess: Callable[[float], float],
    first: float,
    second: float,
    near: float = 1e-9,
) -> float | None:
    """Where a smooth function of one number is zero, by secants; None if not found.

    >>> round(find_root(lambda x: x * x - 2, 1.0, 2.0), 6)
    1.414214
    """
    low, high = excess(first), excess(second)
    for _ in range(12):
        if high == low:
            break
        first, second = second, second - high * (second - first) / (high - low)
        if not math.isfinite(second) or abs(second) > 600:
            return None
        low, high = high, excess(second)
        if abs(high) < near:
            return second
    return second if abs(high) < 1e-6 else None


def round_past_limit(value: float, *, up: bool) -> str:
    """Three digits, rounded to the side on which the verdict has turned.

    >>> round_past_limit(4.9862, up=True), round_past_limit(4.9862, up=False)
    ('4.99', '4.98')
    """
    if value <= 0:
        return "0"
    scale = 10.0 ** (math.floor(math.log10(value)) - 2)
    whole = math.ceil(value / scale) if up else math.floor(value / scale)
    return format_number(float(f"{whole * scale:.6g}"))


def within(inputs: type, field: str, value: float) -> bool:
    """Whether a value in base units may be typed for a field, roundings included."""
    asked = input_specs(inputs)[field]
    low, high = asked.minimum or 0.0, asked.maximum or math.inf
    return low * 1.01 <= value <= high * 0.99
