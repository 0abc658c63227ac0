"""Map each kind of reference case to its function, one module per family."""

import functools
import importlib
from collections.abc import Callable
from typing import Any

from evidence.accuracy.cases import CaseInputs, ReferenceCase
from evidence.accuracy.question import CalculatorQuery, FormulaValue

Translator = Callable[[CaseInputs], CalculatorQuery | FormulaValue]

# Each module defines KINDS, kind to function, and may define CALIBRATION, the ids of
# the cases that its constants were fitted to.
_FAMILIES = (
    "shapes",
    "memory",
    "serving_memory",
    "training",
    "operations",
    "planning",
    "time",
    "serving",
)


@functools.cache
def translators() -> dict[str, Translator]:
    """Return the function of every known kind."""
    found: dict[str, Translator] = {}
    for family in _FAMILIES:
        found.update(_family(family).KINDS)
    return found


def find(kind: str) -> Translator | None:
    """Return the function for `kind`; None if there is none."""
    return translators().get(kind)


@functools.cache
def calibration() -> frozenset[str]:
    """Return the ids of all cases that some constant was fitted to."""
    ids: set[str] = set()
    for family in _FAMILIES:
        ids |= set(getattr(_family(family), "CALIBRATION", ()))
    return frozenset(ids)


def is_calibration(case: ReferenceCase) -> bool:
    """Return whether a case was used for fitting, so that it does not count as evidence."""
    return case.calibration or case.id in calibration()


def _family(name: str) -> Any:
    return importlib.import_module(f"evidence.accuracy.{name}")
