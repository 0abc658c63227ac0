"""The result of an estimate: verdict, figures, charts, tables, formula steps, verdict changes."""

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Generic, Literal, NamedTuple, TypeVar

from app.estimator.units import format_value, round_estimate_to_three_digits

Status = Literal["fits", "tight", "no", "info"]
Better = Literal["more", "less", ""]
ResultT = TypeVar("ResultT")
Component = Literal["weights", "gradients", "optimizer", "activations", "kv", "overhead", "other"]


@dataclasses.dataclass(frozen=True, slots=True)
class OutputValue:
    """The value of an output: a number in base units, a word, or a bool.

    `low` and `high` bound a modeled value; None if it is exact, or `unbounded`: modeled without
    known bounds. A value of None cannot be computed from these inputs; `note` says why. A value
    that does not apply to these inputs is None as well, but not unknown.
    """

    value: float | int | str | bool | None
    low: float | None = None
    high: float | None = None
    note: str = ""
    applies: bool = True
    unbounded: bool = False


class Bounds(NamedTuple):
    """The lower and the upper bound of a modeled value, or these as multiples of it."""

    low: float
    high: float


def value_or_inapplicable(value: float | None, note: str) -> OutputValue:
    """Return a value; where it is None, one that does not apply, and the note that says why."""
    if value is None:
        return OutputValue(None, note=note, applies=False)
    return OutputValue(value)


def value_with_range_factors(
    value: float, bound_factors: tuple[float, float], note: str = ""
) -> OutputValue:
    """Return a value with a low and a high bound that are these multiples of it."""
    return OutputValue(value, value * bound_factors[0], value * bound_factors[1], note)


def value_with_range_over(value: float, other_values: Iterable[float]) -> OutputValue:
    """Return a value whose range covers what other assumptions give; exact if all give the same.

    >>> value_with_range_over(2.0, (3.0, 1.0)).low, value_with_range_over(2.0, ()).low
    (1.0, None)
    """
    values = (value, *other_values)
    if min(values) == max(values):
        return OutputValue(value)
    return OutputValue(value, min(values), max(values))


@dataclasses.dataclass(frozen=True, slots=True)
class OutputSpec(Generic[ResultT]):
    """An output of an estimate, and how to read it from the result of the computation.

    `unit` is the base unit of a number. `better` is the direction that is better, empty if
    neither is. `modeled` outputs may have a range; all others follow exactly from the
    inputs. `primary` outputs are emphasized. Without `read`, the output is the attribute of
    the result that has its name.
    """

    name: str
    label: str
    unit: str = ""
    better: Better = ""
    read: Callable[[ResultT], Any] | None = None
    modeled: bool = False
    primary: bool = False


@dataclasses.dataclass(frozen=True, slots=True)
class ModeledOutput(OutputSpec[ResultT]):
    """An output whose value may have a range."""

    modeled: bool = True


@dataclasses.dataclass(frozen=True, slots=True)
class Figure:
    """One output of a result with its value; see `OutputValue`."""

    output: OutputSpec[Any]
    value: float | int | str | bool | None
    low: float | None = None
    high: float | None = None
    note: str = ""
    applies: bool = True
    unbounded: bool = False

    @property
    def name(self) -> str:
        return self.output.name

    @property
    def label(self) -> str:
        return self.output.label

    @property
    def unit(self) -> str:
        return self.output.unit

    @property
    def primary(self) -> bool:
        return self.output.primary

    @property
    def formatted_value(self) -> str:
        """Return the formatted value; three significant digits of one that has a range."""
        if not self.applies:
            return "does not apply"
        value = self.value
        if self.low is not None and isinstance(value, int | float):
            value = round_estimate_to_three_digits(value, self.unit)
        return format_value(value, self.unit)

    @property
    def is_exact(self) -> bool:
        """Return whether the value follows from the inputs without a modeled constant."""
        return self.low is None and not self.unbounded


def read_figures(outputs: Iterable[OutputSpec[ResultT]], result: ResultT) -> tuple[Figure, ...]:
    figures = []
    for output in outputs:
        value = output.read(result) if output.read else getattr(result, output.name)
        if not isinstance(value, OutputValue):
            value = OutputValue(value)
        figures.append(Figure(output, *dataclasses.astuple(value)))
    return tuple(figures)


@dataclasses.dataclass(frozen=True, slots=True)
class FormulaStep:
    """One line of the steps: formula, the same with numbers, result, source.

    `source` is a key of the bibliography; `topic` is the slug of the concept page that
    explains this line; both may be empty.
    """

    label: str
    formula: str
    substituted: str
    value: float
    unit: str
    source: str = ""
    topic: str = ""
    output_name: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class BarSegment:
    """One segment of a stacked bar, in base units."""

    component: Component
    label: str
    value: float


@dataclasses.dataclass(frozen=True, slots=True)
class StackedBar:
    """Segments compared with a limit, e.g. memory and a GPU's capacity."""

    label: str
    segments: tuple[BarSegment, ...]
    capacity: float | None
    capacity_label: str
    unit: str = "B"


@dataclasses.dataclass(frozen=True, slots=True)
class ChartLine:
    """A named line of a chart; points in base units."""

    label: str
    points: tuple[tuple[float, float], ...]
    style: Literal["line", "dash", "dots", "mark"] = "line"


@dataclasses.dataclass(frozen=True, slots=True)
class Chart:
    """A line chart, e.g. a roofline, or latency over load."""

    label: str
    x_label: str
    y_label: str
    x_unit: str
    y_unit: str
    lines: tuple[ChartLine, ...]
    x_log: bool = False
    y_log: bool = False


@dataclasses.dataclass(frozen=True, slots=True)
class TimelineSpan:
    """A span of time on one lane of a timeline, in seconds."""

    lane: str
    label: str
    start: float
    end: float
    is_exposed: bool = True


@dataclasses.dataclass(frozen=True, slots=True)
class Timeline:
    """The timeline of one step; spans in seconds from its start."""

    label: str
    spans: tuple[TimelineSpan, ...]


Picture = StackedBar | Chart | Timeline
TableCell = str | tuple[float, str]
"""A text, or a value with its base unit."""


@dataclasses.dataclass(frozen=True, slots=True)
class ResultTable:
    """The rows of a chart or a ranking."""

    label: str
    columns: tuple[str, ...]
    rows: tuple[tuple[TableCell, ...], ...]


def label_in_sentence(label: str) -> str:
    """Return a label as it stands within a sentence; an abbreviation stays as it is.

    >>> label_in_sentence("Weights"), label_in_sentence("KV cache")
    ('weights', 'KV cache')
    """
    return label if label[1:2].isupper() else label[:1].lower() + label[1:]


class InputChange(NamedTuple):
    """Another value of an input, with its field and label."""

    field: str
    label: str
    value: str


@dataclasses.dataclass(frozen=True, slots=True)
class VerdictChange:
    """A change of one input that changes the verdict: the nearest value that does.

    `other_changes` are inputs that must change together with it, if one alone is not enough.
    """

    field: str
    label: str
    current_value: str
    new_value: str
    verdict_after: str
    other_changes: tuple[InputChange, ...] = ()

    @property
    def new_values_text(self) -> str:
        """Return the value at which the verdict changes, with the other inputs that change.

        >>> VerdictChange("saving", "While saving", "waits", "goes on", "Fits.").new_values_text
        'goes on'
        """
        other_changes = (
            f"{label_in_sentence(other.label)} {other.value}" for other in self.other_changes
        )
        return ", ".join((self.new_value, *other_changes))

    @property
    def typed_values_by_field(self) -> Mapping[str, str]:
        return {self.field: self.new_value} | {
            other.field: other.value for other in self.other_changes
        }


@dataclasses.dataclass(frozen=True, slots=True)
class Verdict:
    """The verdict as one sentence: `lead` (“Does not fit.”) and `text` after it."""

    status: Status
    lead: str
    text: str


@dataclasses.dataclass(frozen=True, slots=True)
class SubEstimate:
    """A part of a larger estimate: the result of the estimate `estimate_name` for inputs of its own."""

    heading: str
    estimate_name: str
    inputs: Any
    estimate: "Estimate"
    replaced_targets_text: str = ""

    @property
    def full_heading(self) -> str:
        """Return the heading with what the section counts with instead of what was asked."""
        return (
            f"{self.heading}, with {self.replaced_targets_text}"
            if self.replaced_targets_text
            else self.heading
        )


@dataclasses.dataclass(frozen=True, slots=True)
class EstimateLink:
    """Another estimate that answers the next question: its name, a text, and inputs as typed."""

    estimate_name: str
    text: str
    typed_inputs: Mapping[str, str]


@dataclasses.dataclass(frozen=True, slots=True)
class Estimate:
    """The whole result of one estimate.

    `notes` are its assumptions; `changes` those of single inputs that would change the verdict;
    `sections` the results of other estimates that it is made of; `links` lead on to others.
    Figures are looked up by name: `estimate["weights"].value`.
    """

    name: str
    verdict: Verdict
    figures: tuple[Figure, ...]
    steps: tuple[FormulaStep, ...]
    pictures: tuple[Picture, ...] = ()
    tables: tuple[ResultTable, ...] = ()
    notes: tuple[str, ...] = ()
    changes: tuple[VerdictChange, ...] = ()
    sections: tuple[SubEstimate, ...] = ()
    links: tuple[EstimateLink, ...] = ()

    def find_figure(self, name: str) -> Figure | None:
        return next((figure for figure in self.figures if figure.name == name), None)

    def find_verdict_change(self, field: str) -> VerdictChange | None:
        return next((change for change in self.changes if change.field == field), None)

    def __getitem__(self, name: str) -> Figure:
        figure = self.find_figure(name)
        if figure is None:
            raise KeyError(name)
        return figure
