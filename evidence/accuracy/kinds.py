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
_MODULES = (
    "shapes",
    "memory",
    "serving_memory",
    "training_memory",
    "operations",
    "planning",
    "training_time",
    "serving",
)


@functools.cache
def _load_modules() -> list[Any]:
    return [importlib.import_module(f"evidence.accuracy.{name}") for name in _MODULES]


def find_translator(kind: str) -> Translator | None:
    """Return the function for `kind`; None if there is none."""
    found = (module.KINDS[kind] for module in _load_modules() if kind in module.KINDS)
    return next(found, None)


def was_used_for_fitting(case: ReferenceCase) -> bool:
    """Return whether a constant was fitted to a case, so that it does not count as evidence."""
    return case.calibration or any(
        case.id in getattr(module, "CALIBRATION", ()) for module in _load_modules()
    )
