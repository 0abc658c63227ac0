"""What the estimator says to a case: a value and, where modelled, an interval."""

import dataclasses


@dataclasses.dataclass(frozen=True, slots=True)
class Prediction:
    """A predicted value in the unit of the case; no bounds where it is exact."""

    value: float
    low: float | None = None
    high: float | None = None


def between(value: float, low: float, high: float) -> Prediction:
    """A modelled value with its interval as factors around it.

    >>> between(100.0, 0.9, 1.2)
    Prediction(value=100.0, low=90.0, high=120.0)
    """
    return Prediction(value, value * low, value * high)
