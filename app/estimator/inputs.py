"""Declare and parse the inputs of an estimate."""

import dataclasses
import difflib
import functools
import json
import math
import re
from collections.abc import Callable, Mapping
from typing import Any

from app.estimator import units
from app.estimator.hardware.catalog import (
    find_gpu_id_by_gpu_or_system,
    find_network_part_id,
    find_system_id,
)
from app.estimator.models.lookup import (
    LONGEST_CONFIG,
    compress_config_to_key,
    describe_longest_field,
    is_config_key,
    is_config_text,
    normalize_model_name,
)
from app.estimator.result import label_in_sentence

LONGEST_VALUE = 200
"""Maximum length of one typed value; text inputs have their own maximum."""
MOST_INPUTS = 200
"""Maximum number of inputs in one request, including unknown ones."""


@dataclasses.dataclass(frozen=True, slots=True)
class InputSpec:
    """One input of an estimate, for the form, the API and the command line.

    `kind`: number (float in base units), count (int), choice, flag, model (a
    catalog name, a Hub id, a size such as 70B or a config.json), gpu, system or
    network (catalog names), text (long text such as a config.json). `unit` is
    the base unit of the value; `typed_unit` is the unit of a number typed without one
    ("GB"). `minimum` and `maximum` are inclusive and in base units (for text: characters).
    A `clearable` input has a default and can be emptied, which means that there is none.
    `choices` are values with their labels; for a catalog, the entries that the list
    offers, all if empty. `aliases` are values of other estimates and the choices they mean
    here. `count_field` is the field that takes the 8 of a GPU typed as
    `8x H100`. `compute_usual_value` returns the value that counts if an optional field is empty.
    `replaced_by` is a field instead of which this one counts only while it is empty. `quantity`
    tells inputs of different estimates apart that have one name and mean different things: no
    value is passed from one to the other.
    """

    label: str
    kind: str = "number"
    unit: str = ""
    typed_unit: str = ""
    minimum: float | None = None
    maximum: float | None = None
    choices: tuple[tuple[str, str], ...] = ()
    aliases: tuple[tuple[str, str], ...] = ()
    help: str = ""
    term: str = ""
    group: str = ""
    topic: str = ""
    optional: bool = False
    clearable: bool = False
    advanced: bool = False
    count_field: str = ""
    replaced_by: str = ""
    quantity: str = ""
    compute_usual_value: Callable[[Any], Any] | None = None

    @property
    def is_year(self) -> bool:
        """Return whether the values are years, which have no commas."""
        bounds = (self.minimum or 0, self.maximum or 0)
        return self.kind == "count" and all(1900 <= bound <= 2100 for bound in bounds)


def input_field(
    default: Any,
    label: str,
    *,
    limits: tuple[float | None, float | None] = (None, None),
    **spec: Any,
) -> Any:
    """Declare one input: a dataclass field with its default and its `InputSpec`.

    A default of None makes it optional: the estimate decides what it means. The kind
    follows from the type of the default for flags, counts, choices and numbers; other
    kinds must be given. A `unit` that isn't a base unit, such as GB, is the typed unit.
    """
    kind = {bool: "flag", int: "count", str: "choice"}.get(type(default), "number")
    minimum, maximum = limits
    defaults = {"kind": kind, "optional": default is None, "minimum": minimum, "maximum": maximum}
    spec = {**defaults, **spec}
    unit = str(spec.get("unit", ""))
    base = units.UNITS[unit].base_unit if unit in units.UNITS else unit
    if base != unit:
        spec |= {"unit": base, "typed_unit": unit}
    return dataclasses.field(default=default, metadata={"input": InputSpec(label, **spec)})


def reuse_input(inputs_type: type, name: str, **changes: Any) -> Any:
    """Declare an input of another estimate again, with some changes.

    A `default` changes the default value, everything else the `InputSpec`.
    """
    field = next(f for f in dataclasses.fields(inputs_type) if f.name == name)
    default = changes.pop("default", field.default)
    spec = dataclasses.replace(field.metadata["input"], **changes)
    return dataclasses.field(default=default, metadata={"input": spec})


@dataclasses.dataclass(frozen=True, slots=True)
class InputGroup:
    """Inputs under one heading of a form.

    `topic` is the concept page for inputs that name no other.
    """

    heading: str
    default_topic: str

    def declare_input_field(self, default: Any, label: str, **spec: Any) -> Any:
        return input_field(
            default, label, **{"group": self.heading, "topic": self.default_topic, **spec}
        )

    def declare_advanced_input_field(self, default: Any, label: str, **spec: Any) -> Any:
        """Declare an input that the form shows under “More inputs”."""
        return self.declare_input_field(default, label, advanced=True, **spec)


@dataclasses.dataclass(frozen=True, slots=True)
class InputProblem:
    """Why one typed value is invalid, as a sentence that says what is valid."""

    field: str
    value: str
    message: str


class InvalidInputsError(ValueError):
    """All problems of one set of inputs."""

    def __init__(self, problems: tuple[InputProblem, ...]) -> None:
        super().__init__("; ".join(p.message for p in problems))
        self.problems = problems


@functools.cache
def input_specs(inputs_type: type) -> dict[str, InputSpec]:
    """Return the inputs of an estimate by field name, in form order."""
    return {f.name: f.metadata["input"] for f in dataclasses.fields(inputs_type)}


def parse_inputs(inputs_type: type, typed_by_field: Mapping[str, Any]) -> Any:
    """Convert typed values ("70B", "128k", "8 GB", "fp8", True) to the inputs dataclass.

    Missing and empty fields take their defaults; unknown fields, unreadable values
    and values out of range raise `InvalidInputsError` with one problem each. Numbers given as
    int or float are base units already.
    """
    fields = input_specs(inputs_type)
    if len(typed_by_field) > MOST_INPUTS:
        message = f"{len(typed_by_field):,} inputs are too many: at most {MOST_INPUTS}."
        raise InvalidInputsError((InputProblem("", "", message),))
    problems: list[InputProblem] = []
    values: dict[str, Any] = {}
    for name, raw in _split_gpu_and_its_count(fields, typed_by_field).items():
        field = fields.get(name)
        if field is None:
            problems.append(_unknown_field_problem(name, raw, fields))
        elif raw == "" and field.clearable:
            values[name] = None
        elif raw is not None and (raw != "" or field.kind == "flag"):
            try:
                values[name] = _parse_value(field, raw)
            except ValueError as error:
                problems.append(InputProblem(name, _shorten_value(raw), str(error)))
    if problems:
        raise InvalidInputsError(tuple(problems))
    return inputs_type(**values)


def non_default_inputs_to_query(inputs: Any) -> dict[str, str]:
    """Convert an inputs dataclass to the values of a query string.

    The inverse of `parse_inputs`; fields at their default are left out.
    """
    text = {}
    for field in dataclasses.fields(inputs):
        current = getattr(inputs, field.name)
        if current == field.default:
            continue
        if current is not None:
            text[field.name] = format_value_as_typed(field.metadata["input"], current)
        elif field.metadata["input"].clearable:
            text[field.name] = ""
    return text


def format_value_as_typed(spec: InputSpec, value: Any) -> str:
    """Format one value as a person would type it into its field.

    A configuration becomes its key, which is short enough for a URL.

    >>> format_value_as_typed(InputSpec("Memory", unit="B", typed_unit="GB"), 80e9)
    '80'
    """
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str):
        return (
            compress_config_to_key(value)
            if spec.kind == "model" and is_config_text(value)
            else value
        )
    if spec.typed_unit:
        typed = units.convert_unit(float(value), spec.unit, spec.typed_unit)
        for text in (f"{typed:.12g}", _format_shortest_number(typed)):
            if units.parse_quantity(text, spec.unit, spec.typed_unit) == value:
                return text
        if not spec.unit:  # Shares are always typed without another unit.
            return f"{typed:.12g}"
    number = _format_shortest_number(value)
    return f"{number} {spec.unit}" if spec.typed_unit and spec.unit else number


def describe_how_k_suffixes_were_read(inputs_type: type, typed_by_field: Mapping[str, Any]) -> str:
    """Say how tokens that are typed with k or K were read, as sentences; empty without any.

    >>> from app.estimator.estimates.inference_memory import InferenceMemoryInputs
    >>> describe_how_k_suffixes_were_read(InferenceMemoryInputs, {"context": "128k"})
    'Context: 128k is 128,000 tokens; 128K would be 131,072.'
    """
    sentences = []
    for name, field in input_specs(inputs_type).items():
        text = str(typed_by_field.get(name, "")).strip()
        if field.unit == "token" and (match := _THOUSANDS_SUFFIX.match(text)):
            other = f"{match[1]}{match[2].swapcase()}"
            read, otherwise = (units.parse_quantity(t, "token") for t in (text, other))
            sentences.append(
                f"{field.label}: {match[0]} is {units.format_number(read)} tokens; {other} would be "
                f"{units.format_number(otherwise)}."
            )
    return " ".join(sentences)


_THOUSANDS_SUFFIX = re.compile(r"^(\d[\d.,]*) ?([kK])\b")


def describe_valid_values(spec: InputSpec) -> str:
    """Describe the valid values of a field: `1 to 1,024`, `bf16, fp8 or int4`.

    >>> describe_valid_values(InputSpec("GPUs", kind="count", minimum=1, maximum=8))
    '1 to 8'
    >>> describe_valid_values(InputSpec("Year", kind="count", minimum=2000, maximum=2100))
    '2000 to 2100'
    """
    if spec.kind == "choice":
        return _join_with_or(tuple(value for value, _ in spec.choices))
    if spec.kind == "flag":
        return "yes or no"
    minimum, maximum = (_format_bound(spec, b) for b in (spec.minimum, spec.maximum))
    if minimum and maximum:
        return f"{minimum} to {maximum}"
    if minimum:
        return f"at least {minimum}"
    return f"at most {maximum}" if maximum else "a number"


def _split_gpu_and_its_count(
    specs_by_field: dict[str, InputSpec], typed_by_field: Mapping[str, Any]
) -> dict[str, Any]:
    """Split a counted GPU, `8x H100`, into the GPU and the count field."""
    values = dict(typed_by_field)
    for name, raw in typed_by_field.items():
        field = specs_by_field.get(name)
        if field is None or not field.count_field or not isinstance(raw, str):
            continue
        if len(raw) <= LONGEST_VALUE and (match := _COUNTED_TEXT.match(raw)):
            values[name] = match["what"]
            if typed_by_field.get(field.count_field) in (None, ""):
                values[field.count_field] = match["count"]
    return values


_COUNTED_TEXT = re.compile(r"^\s*(?P<count>\d[\d,]*)\s*[x×*]\s*(?P<what>\S.*)$")


def _unknown_field_problem(
    name: str, typed_value: Any, specs_by_field: dict[str, InputSpec]
) -> InputProblem:
    if len(name) > LONGEST_VALUE:
        message = f"The name of an input has {len(name):,} characters; none here has."
        return InputProblem(_shorten_value(name), _shorten_value(typed_value), message)
    hint = f"Known: {_join_with_or(tuple(specs_by_field))}."
    if close := difflib.get_close_matches(name.replace("-", "_"), specs_by_field, n=1, cutoff=0.4):
        hint = f"Did you mean “{close[0]}”?"
    return InputProblem(name, _shorten_value(typed_value), f"“{name}” is not an input here. {hint}")


def _shorten_value(typed_value: Any) -> str:
    text = str(typed_value)
    return text if len(text) <= LONGEST_VALUE else f"{text[: LONGEST_VALUE - 1]}…"


def _parse_value(spec: InputSpec, typed_value: Any) -> Any:
    max_length = _max_typed_length_unless_text(spec, typed_value)
    if max_length is not None and len(str(typed_value)) > max_length:
        message = f"The value for {_input_label_in_sentence(spec)} has {len(str(typed_value)):,} characters"
        message += f"; at most {max_length:,} can be read."
        raise ValueError(f"{message} {_describe_what_to_leave_out(typed_value)}".strip())
    if spec.kind in _PARSER_BY_KIND:
        return _PARSER_BY_KIND[spec.kind](spec, typed_value)
    number = _parse_number(spec, typed_value)
    if spec.kind == "count":
        if number != int(number):
            raise ValueError(
                f"“{typed_value}” for {_input_label_in_sentence(spec)} is not a whole number."
            )
        number = int(number)
    _require_in_range(spec, typed_value, number)
    return number


def _max_typed_length_unless_text(spec: InputSpec, typed_value: Any) -> int | None:
    """Return the maximum length of a value; None for texts, which have their own maximum."""
    if spec.kind == "text":
        return None
    text = str(typed_value)
    is_long = spec.kind == "model" and (is_config_text(text) or is_config_key(text))
    return LONGEST_CONFIG if is_long else LONGEST_VALUE


def _describe_what_to_leave_out(typed_value: Any) -> str:
    """Return how to shorten a configuration that is too long; empty for other values."""
    longest = describe_longest_field(typed_value) if is_config_text(str(typed_value)) else ""
    if not longest:
        return ""
    return f"Take out its longest field, {longest}; then choose the format of the weights yourself."


def _parse_number(spec: InputSpec, typed_value: Any) -> float:
    if isinstance(typed_value, bool) or not isinstance(typed_value, int | float | str):
        message = f"“{typed_value}” for {_input_label_in_sentence(spec)} is not a number."
        raise ValueError(message)  # noqa: TRY004 - all errors of typed values are ValueError
    try:
        if isinstance(typed_value, str):
            number = units.parse_quantity(typed_value, spec.unit, spec.typed_unit)
        else:
            number = float(typed_value)
    except (ValueError, OverflowError):
        message = f"“{typed_value}” for {_input_label_in_sentence(spec)} cannot be read; {_hint_what_to_write(spec)}."
        raise ValueError(message) from None
    if not math.isfinite(number):
        raise ValueError(
            f"“{typed_value}” for {_input_label_in_sentence(spec)} is not a finite number."
        )
    return number


def _require_in_range(spec: InputSpec, typed_value: Any, number: float) -> None:
    too_small = spec.minimum is not None and number < spec.minimum
    if too_small or (spec.maximum is not None and number > spec.maximum):
        size = "small" if too_small else "large"
        message = f"“{typed_value}” for {_input_label_in_sentence(spec)} is too {size}: {describe_valid_values(spec)}."
        raise ValueError(message)


def _parse_choice(spec: InputSpec, typed_value: Any) -> str:
    text = str(typed_value).strip().lower()
    text = dict(spec.aliases).get(text, text)
    for value, label in spec.choices:
        if text in {value.lower(), label.lower()}:
            return value
    message = f"“{typed_value}” is not a choice for {_input_label_in_sentence(spec)}: {describe_valid_values(spec)}."
    raise ValueError(message)


_TRUE_WORDS = frozenset({"yes", "true", "on", "1", "y"})
_FALSE_WORDS = frozenset({"no", "false", "off", "0", "n", ""})


def _parse_flag(spec: InputSpec, typed_value: Any) -> bool:
    if isinstance(typed_value, bool):
        return typed_value
    text = str(typed_value).strip().lower()
    if text in _TRUE_WORDS or text in _FALSE_WORDS:
        return text in _TRUE_WORDS
    raise ValueError(f"“{typed_value}” for {_input_label_in_sentence(spec)} is neither yes nor no.")


def _parse_text(spec: InputSpec, typed_value: Any) -> str:
    text = typed_value if isinstance(typed_value, str) else json.dumps(typed_value)
    if spec.maximum is not None and len(text) > spec.maximum:
        raise ValueError(
            f"The text for {_input_label_in_sentence(spec)} is too long: {describe_valid_values(spec)}."
        )
    return text


def _parse_catalog_name(find_id: Callable[[str], str], _: InputSpec, typed_value: Any) -> str:
    try:
        return find_id(str(typed_value))
    except LookupError as error:
        raise ValueError(error.args[0]) from None


_PARSER_BY_KIND: dict[str, Callable[[InputSpec, Any], Any]] = {
    "choice": _parse_choice,
    "flag": _parse_flag,
    "text": _parse_text,
    "model": functools.partial(_parse_catalog_name, normalize_model_name),
    "gpu": functools.partial(_parse_catalog_name, find_gpu_id_by_gpu_or_system),
    "system": functools.partial(_parse_catalog_name, find_system_id),
    "network": functools.partial(_parse_catalog_name, find_network_part_id),
}


def _input_label_in_sentence(spec: InputSpec) -> str:
    return label_in_sentence(spec.label or "the field")


def _hint_what_to_write(spec: InputSpec) -> str:
    if spec.minimum is not None or spec.maximum is not None:
        return f"write {describe_valid_values(spec)}"
    unit = spec.typed_unit or units.inflect_unit(2, spec.unit)
    return f"write a number{' in ' + unit if unit else ''}"


def _format_bound(spec: InputSpec, bound: float | None) -> str:
    if bound is None:
        return ""
    if spec.typed_unit:
        bound = units.convert_unit(bound, spec.unit, spec.typed_unit)
        text = units.append_unit(units.format_number(bound), spec.typed_unit)
        return text.replace(units.NBSP, " ")
    if spec.is_year:
        return f"{bound:.0f}"
    unit = units.inflect_unit(bound, spec.unit) if bound != 1 else ""
    return f"{units.format_number(bound)} {unit}".rstrip()


def _join_with_or(choices: tuple[str, ...]) -> str:
    return " or ".join((", ".join(choices[:-1]), choices[-1])) if len(choices) > 1 else choices[0]


def _format_shortest_number(number: float) -> str:
    return repr(number).removesuffix(".0")
