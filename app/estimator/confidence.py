"""How far measurements lie from what the models say, by kind of answer."""

# Factors around a modeled value within which nine of ten published measurements
# lie that no constant was fitted on, and also those of any model, accelerator or
# source that is left out (log-normal residuals, so factors; `make evidence`).
# For tpot, ttft and saturated, constants are fitted again without it.
_INTERVALS: dict[str, tuple[float, float]] = {
    "collective": (0.82, 1.27),
    "training": (0.84, 1.32),
    "training-routed": (0.76, 1.32),
    "run": (0.75, 1.46),  # a whole run whose layout is asked
    "gpu-hours": (0.70, 1.80),  # one in a usual layout
    "decode": (0.79, 1.18),
    "prefill": (0.70, 1.45),
    "tpot": (0.75, 1.48),
    "ttft": (0.59, 2.61),
    "saturated": (0.80, 1.39),
}


def error_range(kind: str, value: float) -> tuple[float, float]:
    """The lower and the upper bound around a modeled value.

    >>> error_range("training", 100.0)
    (84.0, 132.0)
    """
    low, high = _INTERVALS[kind]
    return value * low, value * high


def around_rate(kind: str, value: float) -> tuple[float, float]:
    """The bounds around a rate whose time has the interval of `kind`."""
    low, high = _INTERVALS[kind]
    return value / high, value / low
