"""Calculator forms: fields, groups, validation messages, and the inputs that they send."""

import collections
import dataclasses
import functools
import math
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple
from urllib.parse import parse_qsl, urlencode

from app.errors import InvalidInputError
from app.estimator import inputs as given_inputs
from app.estimator import units
from app.estimator.hardware import catalog
from app.estimator.inputs import InputProblem, InputSpec, InvalidInputsError
from app.estimator.models import lookup
from app.estimator.registry import EstimateSpec
from app.estimator.result import Estimate
from app.widgets.estimate_view import (
    EstimateView,
    build_estimate_view,
    calculator_url,
    encode_inputs_query,
)

MOST_FIELDS = 200


def parse_query_inputs(query: str) -> dict[str, str]:
    """Return the inputs in a query string. The first non-empty value of a name counts.

    So a list takes precedence over the free text field next to it, and a ticked box over the hidden
    “no” after it.
    """
    try:
        pairs = parse_qsl(query, keep_blank_values=True, max_num_fields=MOST_FIELDS)
    except ValueError:
        raise InvalidInputError(f"There are more than {MOST_FIELDS} inputs.") from None
    return first_nonempty_values(pairs)


def first_nonempty_values(pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return one value for each name: the first that is not empty."""
    typed: dict[str, str] = {}
    for name, value in pairs:
        if not typed.get(name):
            typed[name] = value
    return typed


def encode_typed_query(typed_by_field: Mapping[str, str]) -> str:
    """Return the inputs as a query string, without empty fields."""
    return urlencode({name: value for name, value in typed_by_field.items() if value})


class TypedValue(NamedTuple):
    """A field and another value for it, as typed."""

    field: str
    value: str


def find_result_changing_input(
    entry: EstimateSpec, inputs: Any, query_values: Mapping[str, str], estimate: Estimate
) -> TypedValue | None:
    """Return a change of one field that changes the result; None if none was found.

    Tries the value that changes the verdict, then the next choice of a field that has
    choices, a doubled count, another model or GPU, and a list without its last element.
    Of these, one that does not fit is taken only if no other changes the result.
    """
    if estimate.changes:
        return TypedValue(estimate.changes[0].field, estimate.changes[0].new_value)
    unfit_change = None
    for change in _alternative_inputs(entry.inputs_type, inputs):
        other = _compute_estimate_if_different(
            entry, {**query_values, change.field: change.value}, estimate
        )
        if other is not None and _verdict_fits(other):
            return change
        if other is not None:
            unfit_change = unfit_change or change
    return unfit_change


def _verdict_fits(estimate: Estimate) -> bool:
    figure = estimate.find_figure("fits")
    return estimate.verdict.status != "no" and (figure is None or figure.value is not False)


_MAX_TRIED_PARTS = 3  # Models or GPUs that are tried before giving up.


def _alternative_inputs(inputs_type: type, inputs: Any) -> Iterator[TypedValue]:
    """Yield other values for fields, starting with the fields that people vary first."""
    fields = given_inputs.input_specs(inputs_type)
    for vary in (_alternative_choices, _doubled_count, _alternative_models_gpus_or_lists):
        for name, spec in fields.items():
            value = getattr(inputs, name)
            yield from (TypedValue(name, other) for other in vary(spec, value))


def _alternative_choices(spec: InputSpec, value: Any) -> list[str]:
    if spec.kind != "choice" or spec.advanced:
        return []
    choices = [choice for choice, _ in spec.choices]
    place = choices.index(value) if value in choices else -1
    return [*choices[place + 1 :], *choices[: max(0, place)]]


def _doubled_count(spec: InputSpec, value: Any) -> list[str]:
    return [str(2 * value)] if spec.kind == "count" and value else []


def _alternative_models_gpus_or_lists(spec: InputSpec, value: Any) -> list[str]:
    """Return other models or GPUs, or the list without its last element."""
    if spec.kind == "model":
        return [model.id for model in lookup.list_models()[:_MAX_TRIED_PARTS]]
    if spec.kind == "gpu":
        return [card.id for card in catalog.list_accelerators()[:_MAX_TRIED_PARTS]]
    return [value.rpartition(",")[0]] if spec.kind == "text" and value else []


def _compute_estimate_if_different(
    entry: EstimateSpec, query_values: Mapping[str, str], estimate: Estimate
) -> Estimate | None:
    """Return the result for these inputs; None if there is none or no first figure differs."""
    try:
        other = entry.compute(given_inputs.parse_inputs(entry.inputs_type, query_values))
    except (ValueError, LookupError, ArithmeticError):
        return None
    is_changed = any(
        other[name].value != estimate[name].value for name in entry.most_important_outputs
    )
    return other if is_changed else None


Widget = Literal["select", "size", "number", "step", "tick", "line", "text"]

_LONG_WHOLE_NUMBER = re.compile(r"[0-9]{4,15}")
_WIDE_RANGE_RATIO = 1_000_000  # times the lower bound: a range that nobody leaves by mistake
_WRITTEN_SHORT = frozenset({"token", "parameter"})
_SIZES_OF_COUNTS = ((10**12, "T"), (10**9, "B"), (10**6, "M"))
_STEPPED_UNITS = frozenset({"", "GPU", "node", "system"})
_MAX_STEPPED = 1e6
# Degrees that must divide heads, layers or nodes change by doubling.
_DOUBLED_FIELD_NAMES = ("parallel", "gpus", "nodes", "replicas")
_BLOCK_BAR = 34
# Characters of a choice that are visible next to the label of its field, and below it.
_CHOICE_LENGTH_BESIDE_LABEL, _CHOICE_LENGTH_BELOW_LABEL = 13, 36
_MAX_LINE_INPUT_LENGTH = 1000  # Text up to this length is one line of a form.
_KINDS_WITH_NAMED_VALUES = frozenset({"choice", "model", "gpu", "system", "network"})


@dataclasses.dataclass(frozen=True, slots=True)
class CourseLinkTargets:
    """Pages that a calculator links to: topics by slug, and anchors of glossary terms."""

    topic_titles_by_slug: Mapping[str, str]
    glossary_anchors: Collection[str]


NO_COURSE = CourseLinkTargets({}, frozenset())


class SelectOption(NamedTuple):
    value: str
    label: str


@dataclasses.dataclass(frozen=True, slots=True)
class OptionGroup:
    title: str
    options: tuple[SelectOption, ...]


class UnlistedChoice(NamedTuple):
    """The last entry of a list that takes other values too, and an example and a hint for them."""

    label: str
    example: str
    hint: str


NO_UNLISTED_CHOICE = UnlistedChoice("", "", "")


@dataclasses.dataclass(frozen=True, slots=True)
class FormField:
    """One input of a form, with the typed value and the error message.

    `is_changed` is whether the typed value is not the default. `replaced_by` is the label of a
    field that was given instead of it; a `depends_on_other_fields` field can have it or a `value_if_empty`,
    so both change with other fields.
    """

    name: str
    id: str
    widget: Widget
    label: str
    value: str
    unit: str = ""
    options: tuple[OptionGroup, ...] = ()
    help: str = ""
    allowed_range: str = ""
    unlisted_choice: UnlistedChoice = NO_UNLISTED_CHOICE
    min_value: str = ""
    steps_by_doubling: bool = False
    topic: str = ""
    glossary_term: str = ""
    error: str = ""
    is_changed: bool = False
    value_if_empty: str = ""
    replaced_by: str = ""
    depends_on_other_fields: bool = False

    @property
    def has_wide_choices(self) -> bool:
        """Return whether a choice is too long to be shown next to its label."""
        return self._longest > _CHOICE_LENGTH_BESIDE_LABEL

    @property
    def has_long_choices(self) -> bool:
        """Return whether a choice needs a smaller font."""
        return self._longest > _CHOICE_LENGTH_BELOW_LABEL

    @property
    def effective_value_with_label(self) -> str:
        """Return what counts, with its label; empty if nothing is set or it is long."""
        if self.widget == "tick":
            return self.label if self.value == "yes" else ""
        if self.widget in {"number", "step"}:
            text = f"{self.value or self.value_if_empty} {self.unit}".strip()
            return f"{self.label}: {text}" if self.value or self.value_if_empty else ""
        labels = dict(choice for group in self.options for choice in group.options)
        text = labels.get(self.value, "") if self.value else ""
        return f"{self.label}: {text}" if text and len(text) <= _CHOICE_LENGTH_BELOW_LABEL else ""

    @property
    def _longest(self) -> int:
        labels = (option.label for group in self.options for option in group.options)
        return max(map(len, labels), default=0)


@dataclasses.dataclass(frozen=True, slots=True)
class FieldGroup:
    """Fields under one heading; `is_unfolded` if somebody changed one, or one has an error."""

    title: str
    fields: tuple[FormField, ...]
    is_unfolded: bool = False

    @property
    def first_values_text(self) -> str:
        sorted_fields = sorted(self.fields, key=lambda field: not field.is_changed)
        values = [
            field.effective_value_with_label
            for field in sorted_fields
            if field.effective_value_with_label
        ]
        return ", ".join(values[:_MAX_SUMMARY_VALUES])


_MAX_SUMMARY_VALUES = 2


@dataclasses.dataclass(frozen=True, slots=True)
class CalculatorForm:
    """A calculator ready for `calculators/_form.html`.

    The form requests a fragment: `result` on the calculator's page, `reading` (shorter) within
    a text. `estimate` is None while an input is invalid.
    """

    name: str
    title: str
    id: str
    result_fragment: str
    method: Literal["get", "post"]
    shown_groups: tuple[FieldGroup, ...]
    folded_groups: tuple[FieldGroup, ...]
    estimate: EstimateView | None
    problems: tuple[InputProblem, ...]
    url: str
    compare_url: str

    @property
    def problems_of_absent_fields(self) -> tuple[InputProblem, ...]:
        names = {field.name for field in self._fields}
        return tuple(p for p in self.problems if p.field not in names)

    @property
    def fields_with_error(self) -> tuple[FormField, ...]:
        return tuple(field for field in self._fields if field.error)

    @property
    def _fields(self) -> tuple[FormField, ...]:
        return tuple(f for group in (*self.shown_groups, *self.folded_groups) for f in group.fields)


def build_calculator_form(
    entry: EstimateSpec,
    typed_by_field: Mapping[str, str],
    *,
    link_targets: CourseLinkTargets = NO_COURSE,
    element_id: str = "calc",
    is_short_block: bool = False,
) -> CalculatorForm:
    """Build a calculator with its form filled in and its first result.

    `is_short_block` builds the short form for use within a text: only the fields in `typed_by_field`, and
    the short result. `element_id` must be unique on the page.
    """
    inputs, view = None, None
    problems: tuple[InputProblem, ...] = ()
    query = encode_typed_query(typed_by_field)
    compare = calculator_url(entry.name, query, subpath="compare")
    try:
        inputs = given_inputs.parse_inputs(entry.inputs_type, typed_by_field)
        estimate = entry.compute_with_k_suffix_notes(inputs, typed_by_field)
    except InvalidInputsError as error:
        problems = error.problems
    else:
        height = {"bar_height": _BLOCK_BAR} if is_short_block else {}
        view = build_estimate_view(
            entry, inputs, estimate, linkable_topics=link_targets.topic_titles_by_slug, **height
        )
        query = view.query
        compare = comparison_url(entry, inputs, estimate, query)
    fields = build_form_fields(
        entry, typed_by_field, inputs, problems, element_id=element_id, link_targets=link_targets
    )
    groups = _split_shown_and_folded(entry, fields, typed_by_field, is_short_block=is_short_block)
    return CalculatorForm(
        name=entry.name,
        title=entry.title,
        id=element_id,
        result_fragment="reading" if is_short_block else "result",
        method="post" if any(f.widget == "text" for f in groups.fields) else "get",
        shown_groups=groups.shown_groups,
        folded_groups=groups.folded_groups,
        estimate=view,
        problems=problems,
        url=calculator_url(entry.name, query),
        compare_url=compare,
    )


def build_form_fields(
    entry: EstimateSpec,
    typed_by_field: Mapping[str, str],
    inputs: Any,
    problems: Sequence[InputProblem],
    *,
    element_id: str,
    link_targets: CourseLinkTargets = NO_COURSE,
) -> tuple[FormField, ...]:
    """Return every field of the form in the order of its declaration.

    `inputs` are the parsed inputs, None if some are invalid.
    """
    wrong = {p.field: p.message for p in problems}
    defaults = {f.name: f.default for f in dataclasses.fields(entry.inputs_type)}
    fields = []
    specs = given_inputs.input_specs(entry.inputs_type)
    for name, spec in specs.items():
        meant = getattr(inputs, name) if inputs is not None else defaults[name]
        text = shown_field_value(spec, typed_by_field.get(name), meant, is_valid=inputs is not None)
        replaced = bool(spec.replaced_by) and getattr(inputs, spec.replaced_by, None) is not None
        usual = _value_while_empty(spec, meant, inputs) if inputs and not problems else ""
        unit = "" if _has_unit(text) else _unit_beside_field(spec, text or usual)
        fields.append(
            FormField(
                name=name,
                id=f"{element_id}-{name}",
                widget=_choose_widget(spec),
                label=spec.label,
                value=text,
                unit=_NOT_USED if replaced else unit,
                options=_option_groups(spec, text),
                unlisted_choice=_UNLISTED_CHOICE_BY_KIND.get(spec.kind, NO_UNLISTED_CHOICE),
                help=spec.help,
                allowed_range=_allowed_range_hint(spec),
                min_value=f"{spec.minimum:g}" if spec.minimum is not None else "",
                steps_by_doubling=name.endswith(_DOUBLED_FIELD_NAMES),
                topic=spec.topic if spec.topic in link_targets.topic_titles_by_slug else "",
                glossary_term=spec.term if spec.term in link_targets.glossary_anchors else "",
                error=wrong.get(name, ""),
                is_changed=name in typed_by_field and (inputs is None or meant != defaults[name]),
                value_if_empty=usual,
                replaced_by=specs[spec.replaced_by].label if replaced else "",
                depends_on_other_fields=bool(spec.compute_usual_value or spec.replaced_by),
            )
        )
    return tuple(fields)


def _value_while_empty(spec: InputSpec, replacing_value: Any, inputs: Any) -> str:
    """Return what counts while the field is empty: of another field, such as 8x H100, or usual."""
    if spec.compute_usual_value is None:
        return ""
    counted = spec.compute_usual_value(inputs) if replacing_value is None else replacing_value
    return _format_typed_value(spec, given_inputs.format_value_as_typed(spec, counted))


def shown_field_value(
    spec: InputSpec, typed_text: str | None, parsed_value: Any, *, is_valid: bool
) -> str:
    """Return the value shown in a field: the typed text, or the parsed value as text.

    Catalog names are shown in the catalog's spelling once they are recognized.
    """
    if typed_text and not (is_valid and spec.kind in _KINDS_WITH_NAMED_VALUES):
        return _format_typed_value(spec, typed_text)
    if parsed_value is None:
        return ""
    if spec.kind == "flag" and typed_text == "":
        return "no"
    return _format_typed_value(spec, given_inputs.format_value_as_typed(spec, parsed_value))


def _format_typed_value(spec: InputSpec, typed_text: str) -> str:
    """Format a number with commas, and large counts as 15T or 70B.

    The field's own unit is left out: it stands beside the field.
    """
    number, _, unit = typed_text.replace(units.NBSP, " ").strip().rpartition(" ")
    if number and unit in {_unit_beside_field(spec, number), _unit_beside_field(spec)}:
        typed_text = number
    if spec.kind not in {"count", "number"} or not _LONG_WHOLE_NUMBER.fullmatch(typed_text):
        return typed_text
    value = int(typed_text)
    if spec.is_year:
        return typed_text
    if spec.unit in _WRITTEN_SHORT and not spec.typed_unit:
        for size, letter in _SIZES_OF_COUNTS:
            if value >= size and value % (size // 100) == 0:
                return f"{value / size:g}{letter}"
    return f"{value:,}"


_NOT_USED = "not used"
"""Beside a field that another one replaces."""


def _has_unit(text: str) -> bool:
    """Return whether a number is written with a unit, so that none stands beside the field.

    >>> _has_unit("16303 MiB"), _has_unit("16.3"), _has_unit("15T"), _has_unit("")
    (True, False, False, False)
    """
    try:
        unit = units.split_number_and_unit(text).unit
    except ValueError:
        return False
    return unit in units.UNITS and unit not in units.COUNT_SUFFIX


def _unit_beside_field(spec: InputSpec, text: str = "") -> str:
    """Return the unit that stands beside a field with `text` in it; empty without one."""
    number = float(text.replace(",", "")) if _PLAIN_NUMBER.fullmatch(text) else 2
    return spec.typed_unit or units.inflect_unit(number, spec.unit)


_PLAIN_NUMBER = re.compile(r"[\d,]*\.?\d+")


def comparison_url(entry: EstimateSpec, inputs: Any, estimate: Estimate, query: str) -> str:
    """Return the URL of the page that compares this scenario, given as a `query`, with another."""
    values = given_inputs.non_default_inputs_to_query(inputs)
    change = find_result_changing_input(entry, inputs, values, estimate)
    other = encode_inputs_query({f"b.{change.field}": change.value}) if change else ""
    against = "&".join(part for part in (query, other) if part)
    return calculator_url(entry.name, against, subpath="compare")


class FormGroups(NamedTuple):
    shown_groups: tuple[FieldGroup, ...]
    folded_groups: tuple[FieldGroup, ...]

    @property
    def fields(self) -> list[FormField]:
        return [
            field for group in (*self.shown_groups, *self.folded_groups) for field in group.fields
        ]


def _split_shown_and_folded(
    entry: EstimateSpec,
    fields: Sequence[FormField],
    typed_by_field: Mapping[str, str],
    *,
    is_short_block: bool,
) -> FormGroups:
    """Return the groups shown at once, and those that are folded.

    A block within a text shows the fields in `typed_by_field` alone.
    """
    spec = given_inputs.input_specs(entry.inputs_type)
    near = [
        f
        for f in fields
        if f.name in entry.main_inputs or not (entry.main_inputs or spec[f.name].advanced)
    ]
    if is_short_block:
        chosen = [f for f in fields if f.name in typed_by_field]
        return FormGroups((FieldGroup("", tuple(chosen or near)),), folded_groups=())
    folded = _group_fields_by_heading([f for f in fields if f not in near], spec)
    far = tuple(
        dataclasses.replace(g, is_unfolded=any(f.error or f.is_changed for f in g.fields))
        for g in folded
    )
    if entry.main_inputs:
        return FormGroups((FieldGroup("", tuple(near)),), far)
    return FormGroups(_group_fields_by_heading(near, spec), far)


def _group_fields_by_heading(
    fields: Sequence[FormField], specs: Mapping[str, InputSpec]
) -> tuple[FieldGroup, ...]:
    titles = dict.fromkeys(specs[f.name].group for f in fields)
    return tuple(
        FieldGroup(t, tuple(f for f in fields if specs[f.name].group == t)) for t in titles
    )


def _choose_widget(spec: InputSpec) -> Widget:
    most = math.inf if spec.maximum is None else spec.maximum
    if spec.kind == "text":
        return "line" if most <= _MAX_LINE_INPUT_LENGTH else "text"
    if spec.kind in {"count", "number"}:
        counted = spec.kind == "count" and spec.unit in _STEPPED_UNITS
        return "step" if counted and most <= _MAX_STEPPED else "number"
    if _accepts_unlisted_values(spec):
        return "size"
    return "tick" if spec.kind == "flag" else "select"


def _accepts_unlisted_values(spec: InputSpec) -> bool:
    """Return whether a field takes more than the names that its list offers."""
    return spec.kind in _UNLISTED_CHOICE_BY_KIND and not spec.optional and not spec.choices


def list_hints_for_unfilled_fields(
    entry: EstimateSpec, typed_by_field: Mapping[str, str]
) -> tuple[str, ...]:
    """Return what to write where the last entry, “another”, was chosen and its field is empty."""
    return tuple(
        f"{spec.label}: write {_UNLISTED_CHOICE_BY_KIND[spec.kind].hint}, or choose one of the list."
        for name, spec in given_inputs.input_specs(entry.inputs_type).items()
        if _accepts_unlisted_values(spec) and typed_by_field.get(name) == ""
    )


_UNLISTED_CHOICE_BY_KIND = {
    "model": UnlistedChoice(
        "Another: size, Hub name, config.json…",
        "33B, a Hub name, config.json",
        "a size such as 33B, a name of the Hugging Face Hub, or a whole config.json",
    ),
    "gpu": UnlistedChoice(
        "A card of your own…",
        "24 GB, 936 GB/s, 71 TFLOPS",
        "the memory, bandwidth and peaks of a card of your own",
    ),
}


def _allowed_range_hint(spec: InputSpec) -> str:
    """Return the allowed range as a hint; fields with choices or a very wide range need none."""
    if spec.kind not in {"number", "count"}:
        return ""
    if spec.minimum and spec.maximum and spec.maximum > _WIDE_RANGE_RATIO * spec.minimum:
        return ""  # nobody meets these bounds, and an error names them
    return given_inputs.describe_valid_values(spec)


def _option_groups(spec: InputSpec, value: str) -> tuple[OptionGroup, ...]:
    """Return the choices of a field; an unknown value is added as another choice."""
    if spec.kind == "choice":
        groups: tuple[OptionGroup, ...] = (
            OptionGroup("", tuple(SelectOption(*choice) for choice in spec.choices)),
        )
    elif spec.kind in _KINDS_WITH_NAMED_VALUES:
        groups = _limit_options(catalog_options(spec.kind), dict(spec.choices))
    else:
        return ()
    if spec.optional:
        groups = (OptionGroup("", (SelectOption("", "Not set"),)), *groups)
    listed = {option.value for group in groups for option in group.options}
    if value.startswith("config:"):
        return (OptionGroup("", (SelectOption(value, "From config.json"),)), *groups)
    if value in listed or _accepts_unlisted_values(spec):
        return groups
    return (OptionGroup("", (SelectOption(value, value),)), *groups) if value else groups


def _limit_options(
    groups: tuple[OptionGroup, ...], labels_by_allowed_value: Mapping[str, str]
) -> tuple[OptionGroup, ...]:
    """Limit the groups to the choices that the course offers; all if it lists none."""
    if not labels_by_allowed_value:
        return groups
    left = (
        OptionGroup(
            g.title,
            tuple(option for option in g.options if option.value in labels_by_allowed_value),
        )
        for g in groups
    )
    return tuple(group for group in left if group.options)


@functools.cache
def catalog_options(kind: str) -> tuple[OptionGroup, ...]:
    if kind == "model":
        models = tuple(SelectOption(model.id, model.name) for model in lookup.list_models())
        return (OptionGroup("By name", models), OptionGroup("By size", _MODEL_SIZE_OPTIONS))
    if kind == "gpu":
        # Of chips without memory outside of them, no calculator models the pipelines.
        offered = (a for a in catalog.list_accelerators() if "on-chip" not in a.memory_type)
        return _group_parts_by("vendor", offered)
    if kind == "system":
        return _group_parts_by("vendor", catalog.list_systems())
    return _group_parts_by("kind", catalog.list_network_parts())


def _group_parts_by(attribute: str, parts: Iterable[Any]) -> tuple[OptionGroup, ...]:
    choices = collections.defaultdict[str, list[SelectOption]](list)
    for part in parts:
        choices[getattr(part, attribute)].append(SelectOption(part.id, part.name))
    return tuple(OptionGroup(title, tuple(some)) for title, some in choices.items())


_MODEL_SIZE_OPTIONS = tuple(
    SelectOption(size, f"{size}, Llama-shaped")
    for size in (
        "1B 3B 7B 8B 13B 20B 30B 34B 70B 120B 180B 250B 405B 500B 1T 2T".split()  # noqa: SIM905 - a list of words reads better
    )
)
