"""How far measurements lie from what the models say, by kind of answer."""

# Factors around a modeled value within which nine of ten published measurements
# lie that no constant was fitted on (log-normal residuals, so factors).
_INTERVALS: dict[str, tuple[float, float]] = {
    "collective": (0.82, 1.25),
    "training": (0.86, 1.16),
    "training-routed": (0.76, 1.32),
    "gpu-hours": (0.60, 1.60),
    "decode": (0.86, 1.18),
    "prefill": (0.70, 1.45),
    "tpot": (0.66, 1.50),
    "ttft": (0.45, 2.20),
    "saturated": (0.80, 1.25),
}


def interval(kind: str) -> tuple[float, float]:
    """The factors for a kind of answer.

    >>> interval("training")
    (0.86, 1.16)
    """
    return _INTERVALS[kind]


def around(kind: str, value: float) -> tuple[float, float]:
    """The lower and the upper bound around a modeled value.

    >>> around("training", 100.0)
    (86.0, 115.99999999999999)
    """
    low, high = _INTERVALS[kind]
    return value * low, value * high


def around_rate(kind: str, value: float) -> tuple[float, float]:
    """The bounds around a rate whose time has the interval of `kind`."""
    low, high = _INTERVALS[kind]
    return value / high, value / low
