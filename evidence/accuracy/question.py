"""The two ways to compute a case: a calculator query, or a formula."""

import dataclasses
import functools
import shlex
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlencode

from app.estimator import registry
from app.estimator.inputs import format_value_as_typed, input_specs
from app.estimator.result import Figure

# Some servers and mail programs cut longer URLs.
_LONGEST_ADDRESS = 2000


@dataclasses.dataclass(frozen=True, slots=True)
class PredictedValue:
    """A value in the unit of the case, with bounds if the estimate states them."""

    value: float
    low: float | None = None
    high: float | None = None


class NoPredictionError(Exception):
    """The calculator has no number for this query; the text gives the reason."""


@functools.lru_cache(maxsize=2048)
def compute_figures(estimate: str, typed: tuple[tuple[str, str], ...]) -> Mapping[str, Figure]:
    """Return the figures of an estimate, cached because several cases share a run.

    A report clears the cache at its end, with `compute_figures.cache_clear()`.
    """
    found = registry.run_estimate(estimate, dict(typed))
    return {figure.name: figure for figure in found.figures}


@dataclasses.dataclass(frozen=True, slots=True)
class CalculatorQuery:
    """A calculator, its form inputs, and the figure that is the prediction.

    `factor` converts the base unit of the figure to the unit of the case.
    """

    estimate: str
    typed: Mapping[str, str]
    figure: str
    factor: float = 1.0

    @property
    def command(self) -> str:
        words = [f"--{name.replace('_', '-')}={v}" for name, v in self.typed.items()]
        return shlex.join(["headroom", "estimate", self.estimate, *words])

    @property
    def address(self) -> str:
        """Return the URL of the calculator with this query; empty if it is too long."""
        path = f"/calculators/{self.estimate}?{urlencode(self.typed)}#{self.figure}"
        return path if len(path) <= _LONGEST_ADDRESS else ""

    def compute(self) -> PredictedValue:
        """Compute the figure, as the form, the API and the command line do.

        Raises InvalidInputsError if the calculator rejects the inputs, and NoPredictionError if
        it has no number.
        """
        figure = compute_figures(self.estimate, tuple(self.typed.items()))[self.figure]
        if isinstance(figure.value, bool) or not isinstance(figure.value, int | float):
            why = figure.note or "It has no value."
            raise NoPredictionError(f"{self.estimate} knows no {self.figure}. {why}")
        bounds = (figure.low, figure.high)
        low, high = (None if b is None else b * self.factor for b in bounds)
        return PredictedValue(figure.value * self.factor, low, high)


@dataclasses.dataclass(frozen=True, slots=True)
class FormulaValue:
    """A case computed by a formula, with the function that computes it.

    `report_alone`: only this report calls the function.
    """

    value: float
    name: str
    report_alone: bool = False


def build_query(estimate: str, figure: str, factor: float = 1.0, **values: Any) -> CalculatorQuery:
    """Build a query for a figure from values in base units; None values are left out.

    >>> build_query("kv-cache", "per_token", model="llama-3-8b", context=8192).command
    'headroom estimate kv-cache --model=llama-3-8b --context=8192'
    """
    entry = registry.find_estimate(estimate)
    if entry is None:
        raise LookupError(f"there is no calculator “{estimate}”")
    fields = input_specs(entry.inputs_type)
    typed = {
        name: value if isinstance(value, str) else format_value_as_typed(fields[name], value)
        for name, value in values.items()
        if value is not None
    }
    return CalculatorQuery(estimate, typed, figure, factor)


def formula_value(
    function: Callable[..., Any], value: float, *, report_alone: bool = False
) -> FormulaValue:
    """Build the result of a case that `function` computed."""
    return FormulaValue(value, f"{function.__module__}.{function.__qualname__}", report_alone)
