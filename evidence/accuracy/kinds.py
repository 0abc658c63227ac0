"""Which function translates which kind of case; one module for each family."""

import functools
import importlib
from collections.abc import Callable
from typing import Any

from evidence.accuracy.cases import CaseInputs, ReferenceCase
from evidence.accuracy.question import CalculatorQuery, FormulaValue

Translator = Callable[[CaseInputs], CalculatorQuery | FormulaValue]

# Each module holds KINDS, kind to function, and may hold CALIBRATION, the ids of
# the cases that its constants were fitted on.
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
    """The function for every kind that is known."""
    found: dict[str, Translator] = {}
    for family in _FAMILIES:
        found.update(_family(family).KINDS)
    return found


def find(kind: str) -> Translator | None:
    """The function for `kind`; None when no family answers it."""
    return translators().get(kind)


@functools.cache
def calibration() -> frozenset[str]:
    """The ids of all cases that some constant was fitted on."""
    ids: set[str] = set()
    for family in _FAMILIES:
        ids |= set(getattr(_family(family), "CALIBRATION", ()))
    return frozenset(ids)


def is_calibration(case: ReferenceCase) -> bool:
    """Whether a case was used for fitting and so is no evidence."""
    return case.calibration or case.id in calibration()


def _family(name: str) -> Any:
    return importlib.import_module(f"evidence.accuracy.{name}")
