"""The estimator as content asks it: by name, typed inputs and one output."""

import functools
from collections.abc import Mapping
from urllib.parse import urlencode

from app.content.identity import did_you_mean
from app.content.numbers.quantities import Quantity
from app.estimator import registry
from app.estimator.estimate import Estimate, Figure
from app.estimator.hardware import accelerators, fields
from app.estimator.inputs import InvalidInputsError, input_specs
from app.estimator.models.lookup import find_model
from app.instruments import links

Value = Quantity | str | bool
CATALOGUED = frozenset({"model", "gpu", "system", "network"})  # kinds of inputs


class FigureError(ValueError):
    """Why a figure cannot be computed: the code of the rule, and a hint."""

    def __init__(self, code: str, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.hint = hint


@functools.lru_cache(maxsize=1024)  # of about 17 kB each
def _estimate(name: str, inputs: tuple[tuple[str, str], ...]) -> Estimate:
    try:
        return registry.run_estimate(name, dict(inputs))
    except InvalidInputsError as error:
        raise _refused(name, error) from None
    except (ArithmeticError, ValueError, LookupError) as error:
        raise FigureError("E84", f"{name} cannot answer: {error}.") from None


def _refused(name: str, error: InvalidInputsError) -> FigureError:
    entry = registry.find_estimate(name)
    fields = input_specs(entry.inputs) if entry else {}
    first = error.problems[0]
    field = fields.get(first.field)
    code = "E80" if field is not None and field.kind in CATALOGUED else "E84"
    return FigureError("E81" if field is None else code, first.message)


def require_estimate(name: str) -> registry.EstimateSpec:
    """The estimate called `name` (hyphens or underscores); raises Unanswerable."""
    entry = registry.find_estimate(name)
    if entry is None:
        names = [n if "-" in name else n.replace("-", "_") for n in registry.NAMES]
        raise FigureError("E80", f"There is no estimate “{name}”.", did_you_mean(name, names))
    return entry


def compute(name: str, inputs: Mapping[str, str]) -> Estimate:
    """The whole estimate for typed inputs; raises Unanswerable."""
    entry = require_estimate(name)
    fields = input_specs(entry.inputs)
    for field in inputs:
        if field not in fields:
            message = f"“{field}” is not an input of {entry.name}."
            raise FigureError("E81", message, did_you_mean(field, fields))
    return _estimate(entry.name, tuple(sorted(inputs.items())))


def figure(name: str, inputs: Mapping[str, str], output: str) -> Figure:
    """One figure of an estimate; raises Unanswerable."""
    entry = require_estimate(name)
    estimate = compute(name, inputs)
    word = output.replace("-", "_")
    for found in estimate.figures:
        if found.name == word:
            return found
    names = [f.name for f in estimate.figures]
    message = f"“{output}” is not an output of {entry.name}."
    raise FigureError("E81", message, did_you_mean(output, names))


def value(name: str, inputs: Mapping[str, str], output: str) -> Value:
    """The value of one output with its unit; raises Unanswerable."""
    return _value(name.replace("_", "-"), tuple(inputs.items()), output)


@functools.lru_cache(maxsize=16384)
def _value(name: str, inputs: tuple[tuple[str, str], ...], output: str) -> Value:
    found = figure(name, dict(inputs), output)
    if found.value is None:
        note = found.note or "these inputs do not tell"
        raise FigureError("E84", f"{output} of {name} is unknown: {note}")
    if isinstance(found.value, bool | str):
        return found.value
    return Quantity(found.value, found.unit)


def address(name: str, inputs: Mapping[str, str], output: str = "") -> str:
    """Where the calculator shows this estimate with these inputs."""
    return links.calculator_url(name.replace("_", "-"), urlencode(dict(inputs)), anchor=output)


def _hardware(name: str) -> object:
    finders = (
        accelerators.find_accelerator,
        accelerators.find_system,
        accelerators.find_network,
    )
    failure = ""
    for find in finders:
        try:
            return find(name)
        except LookupError as error:
            failure = failure or str(error.args[0])
    raise FigureError("E80", failure)


def _model(name: str) -> object:
    try:
        return find_model(name)
    except LookupError as error:
        raise FigureError("E80", str(error.args[0])) from None


def catalogue_value(scheme: str, name: str, field: str) -> tuple[Value, object]:
    """A field of an entry of the catalog (`hw` or `model`), and that entry.

    Raises Unanswerable.
    """
    entry = _hardware(name) if scheme == "hw" else _model(name)
    word = field.replace("-", "_")
    found = None if word.startswith("_") else getattr(entry, word, None)
    if found is None or callable(found):
        known_fields = [f for f in dir(entry) if not f.startswith("_")]
        if word in known_fields:
            raise FigureError("E81", f"The {field} of {name} is not known.")
        hint = did_you_mean(field, known_fields)
        raise FigureError("E81", f"{name} has no field “{field}”.", hint)
    if isinstance(found, bool | str):
        return found, entry
    if not isinstance(found, int | float):
        raise FigureError("E81", f"The {field} of {name} is not a number.")
    unit = fields.UNITS.get(word, "") if scheme == "hw" else ""
    return Quantity(found, unit), entry
