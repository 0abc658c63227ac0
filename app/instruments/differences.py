"""What a second scenario begins with, so that a comparison opens with a difference."""

from collections.abc import Iterator, Mapping
from typing import Any

from app.estimator import inputs as given_inputs
from app.estimator.estimate import Estimate
from app.estimator.hardware.accelerators import accelerators
from app.estimator.inputs import InputSpec
from app.estimator.models import lookup
from app.estimator.registry import EstimateSpec


def difference(
    entry: EstimateSpec, inputs: Any, words: Mapping[str, str], estimate: Estimate
) -> tuple[str, str]:
    """A field and another value for it, which leads to another answer.

    That is what would turn the verdict; else the next choice of a field that has
    some, twice a count, another model or GPU, or a list without its last. Empty where
    nothing makes a difference.
    """
    if estimate.changes:
        return estimate.changes[0].field, estimate.changes[0].flips_at
    for field, value in _others(entry.inputs, inputs):
        if _differs(entry, {**words, field: value}, estimate):
            return field, value
    return "", ""


_TRIED = 3  # models or GPUs, before nothing is said


def _others(kind: type, inputs: Any) -> Iterator[tuple[str, str]]:
    """Other values for fields, those that people vary first."""
    fields = given_inputs.input_specs(kind)
    for vary in (_choices, _counts, _named):
        for name, declared in fields.items():
            value = getattr(inputs, name)
            yield from ((name, other) for other in vary(declared, value))


def _choices(declared: InputSpec, value: Any) -> list[str]:
    """The choices behind the one that was made, then those before it."""
    if declared.kind != "choice" or declared.advanced:
        return []
    choices = [choice for choice, _ in declared.choices]
    place = choices.index(value) if value in choices else -1
    return [*choices[place + 1 :], *choices[: max(0, place)]]


def _counts(declared: InputSpec, value: Any) -> list[str]:
    return [str(2 * value)] if declared.kind == "count" and value else []


def _named(declared: InputSpec, value: Any) -> list[str]:
    """Another model or GPU, or a list without its last."""
    if declared.kind == "model":
        return [name for name, _ in lookup.models()[:_TRIED]]
    if declared.kind == "gpu":
        return [card.id for card in accelerators()[:_TRIED]]
    return [value.rpartition(",")[0]] if declared.kind == "text" and value else []


def _differs(entry: EstimateSpec, words: Mapping[str, str], estimate: Estimate) -> bool:
    """Whether the calculator answers, and the figure that matters first is another."""
    try:
        other = entry.compute(given_inputs.parse_inputs(entry.inputs, words))
    except (ValueError, LookupError, ArithmeticError):
        return False
    return any(other[name].value != estimate[name].value for name in entry.first)
