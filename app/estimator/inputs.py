"""What an estimate can be asked: the declaration of its inputs, and their reading."""

import dataclasses
from collections.abc import Mapping
from typing import Any


@dataclasses.dataclass(frozen=True, slots=True)
class Input:
    """One input of an estimate, declared once for every face.

    `kind`: number (float in base units), count (int), choice, flag, model (a
    catalogue name or a size such as 70B), gpu (a catalogue name), text (long
    text such as a config.json). `unit` is the base unit the value has inside;
    `typed_unit` is what a bare number means when a person types it ("GB").
    `minimum` and `maximum` are inclusive and in base units.
    """

    label: str
    kind: str = "number"
    unit: str = ""
    typed_unit: str = ""
    minimum: float | None = None
    maximum: float | None = None
    choices: tuple[tuple[str, str], ...] = ()
    help: str = ""
    term: str = ""
    group: str = ""
    topic: str = ""
    optional: bool = False
    advanced: bool = False


def ask(default: Any, label: str, **declared: Any) -> Any:  # noqa: ANN401
    """Declare one input: a dataclass field with its default and its `Input`.

    A default of None makes it optional: the estimate decides what it means.
    """
    meaning = Input(label=label, optional=default is None, **declared)
    return dataclasses.field(default=default, metadata={"input": meaning})


@dataclasses.dataclass(frozen=True, slots=True)
class InputProblem:
    """Why one typed value cannot be used, as a sentence that says what can."""

    field: str
    value: str
    message: str


class BadInputs(ValueError):  # noqa: N818 - reads as what it is at the raise
    """Every problem of one set of inputs, never only the first."""

    def __init__(self, problems: tuple[InputProblem, ...]) -> None:
        super().__init__("; ".join(p.message for p in problems))
        self.problems = problems


def declared(inputs: type) -> dict[str, Input]:
    """The inputs of an estimate by field name, in the order of the form."""
    return {f.name: f.metadata["input"] for f in dataclasses.fields(inputs)}


def read(inputs: type, typed: Mapping[str, Any]) -> Any:  # noqa: ANN401
    """Turn typed words ("70B", "128k", "8 GB", "fp8", True) into the dataclass.

    Missing fields take their defaults; unknown fields, unreadable values and
    values out of range raise `BadInputs` with one problem each. Numbers given as
    int or float are base units already.
    """
    raise NotImplementedError


def write(value: Any) -> dict[str, str]:  # noqa: ANN401
    """The inverse of `read`: an inputs dataclass as the words of a query string.

    `read(type(value), write(value)) == value`; fields at their default are left out.
    """
    raise NotImplementedError
