"""What every estimate returns: verdict, figures, charts, tables, formula steps, flips."""

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Literal

from app.estimator.units import format_value

Status = Literal["fits", "tight", "no", "info"]
Better = Literal["more", "less", ""]
Component = Literal["weights", "gradients", "optimizer", "activations", "kv", "overhead", "other"]


@dataclasses.dataclass(frozen=True, slots=True)
class Output:
    """An output of an estimate, declared once: every answer has its figure.

    `unit` is the base unit of a number. `better` says which direction is the better
    one; empty where that cannot be said. `modeled` outputs may be given in a range;
    all others follow exactly from the inputs.
    """

    name: str
    label: str
    unit: str = ""
    better: Better = ""
    modeled: bool = False


def by_name(outputs: Iterable[Output]) -> Mapping[str, Output]:
    """Outputs by their names."""
    return {output.name: output for output in outputs}


@dataclasses.dataclass(frozen=True, slots=True)
class Figure:
    """One answer. `value` is in the base unit of its output, or a word, or a yes/no.

    `low` and `high` bound a modeled value; None where it is exact. None as value
    means that it cannot be known from these inputs; `note` says why. A figure that
    does not apply to these inputs has no value either, and nothing unknown about it.
    """

    output: Output
    value: float | int | str | bool | None
    low: float | None = None
    high: float | None = None
    note: str = ""
    primary: bool = False
    applies: bool = True

    @property
    def name(self) -> str:
        """The name of its output."""
        return self.output.name

    @property
    def label(self) -> str:
        """What people call it."""
        return self.output.label

    @property
    def unit(self) -> str:
        """The base unit of its value."""
        return self.output.unit

    @property
    def words(self) -> str:
        """Its value as it is shown everywhere."""
        if not self.applies:
            return "does not apply"
        return format_value(self.value, self.unit)

    @property
    def exact(self) -> bool:
        """Whether the value follows from its inputs without a modeled constant."""
        return self.low is None


@dataclasses.dataclass(frozen=True, slots=True)
class FormulaStep:
    """One line of the working: formula, the same with numbers, result, source.

    `source` is a key of `sources.SOURCES`; `topic` names the concept page (its
    slug) that teaches this line; empty where there is none.
    """

    label: str
    formula: str
    substituted: str
    value: float
    unit: str
    source: str = ""
    topic: str = ""
    figure: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class BarSegment:
    """One part of a stacked bar, in base units."""

    component: Component
    label: str
    value: float


@dataclasses.dataclass(frozen=True, slots=True)
class StackedBar:
    """Parts against a limit, e.g. memory against a card's capacity."""

    label: str
    segments: tuple[BarSegment, ...]
    capacity: float | None
    capacity_label: str
    unit: str = "B"


@dataclasses.dataclass(frozen=True, slots=True)
class ChartLine:
    """A named line of an x-y chart; points in base units."""

    label: str
    points: tuple[tuple[float, float], ...]
    style: Literal["line", "dash", "dots", "mark"] = "line"


@dataclasses.dataclass(frozen=True, slots=True)
class Chart:
    """Lines over axes: a roofline, a curve with a knee."""

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
    """A piece of time on one lane of a timeline, in seconds."""

    lane: str
    label: str
    start: float
    end: float
    exposed: bool = True


@dataclasses.dataclass(frozen=True, slots=True)
class Timeline:
    """What happens when in one step; spans in seconds from its start."""

    label: str
    spans: tuple[TimelineSpan, ...]


Picture = StackedBar | Chart | Timeline


@dataclasses.dataclass(frozen=True, slots=True)
class ResultTable:
    """Rows behind a picture or a ranking; cells are (value, unit) or words."""

    label: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str | tuple[float, str], ...], ...]


@dataclasses.dataclass(frozen=True, slots=True)
class VerdictFlip:
    """An input near which the verdict turns: the nearest value that flips it.

    `also` are inputs that have to change with it, where one alone does not: field,
    label and value.
    """

    field: str
    label: str
    now: str
    flips_at: str
    becomes: str
    also: tuple[tuple[str, str, str], ...] = ()

    @property
    def at(self) -> str:
        """The value at which the verdict turns, with what has to change beside it.

        >>> VerdictFlip("saving", "While saving", "waits", "goes on", "Fits.").at
        'goes on'
        """
        beside = (f"{label.lower()} {value}" for _, label, value in self.also)
        return ", ".join((self.flips_at, *beside))

    @property
    def words(self) -> Mapping[str, str]:
        """The values to type, by field."""
        return {self.field: self.flips_at} | {f: value for f, _, value in self.also}


@dataclasses.dataclass(frozen=True, slots=True)
class Verdict:
    """The answer as one sentence: `lead` (“Does not fit.”) and `text` after it."""

    status: Status
    lead: str
    text: str


@dataclasses.dataclass(frozen=True, slots=True)
class Estimate:
    """The whole answer of one estimate.

    `notes` are the assumptions where they act; `changes` what would turn the
    verdict. Figures are looked up by name: `estimate["weights"].value`.
    """

    name: str
    verdict: Verdict
    figures: tuple[Figure, ...]
    steps: tuple[FormulaStep, ...]
    pictures: tuple[Picture, ...] = ()
    tables: tuple[ResultTable, ...] = ()
    notes: tuple[str, ...] = ()
    changes: tuple[VerdictFlip, ...] = ()

    def __getitem__(self, name: str) -> Figure:
        for figure in self.figures:
            if figure.name == name:
                return figure
        raise KeyError(name)
