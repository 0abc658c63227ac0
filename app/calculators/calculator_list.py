"""List of calculators, example questions, operator prices."""

import dataclasses
import datetime as dt
import functools
from collections.abc import Collection, Mapping
from urllib.parse import urlencode

from app.calculators.url_inputs import query_of
from app.content.library import Library
from app.estimator import data_files, registry
from app.estimator.estimates.accelerator_choice import gpus
from app.estimator.hardware.part_values import find_part
from app.estimator.hardware.prices import Per, Price, PriceList
from app.estimator.inputs import input_specs
from app.estimator.registry import EstimateSpec
from app.estimator.result import Figure
from app.estimator.units import PLURALS, format_value
from app.widgets.calculator_form import CourseLinks, catalogued
from app.widgets.estimate_view import calculator_url


@dataclasses.dataclass(frozen=True, slots=True)
class CalculatorListItem:
    """A calculator in the list, with its answer for the inputs it starts with."""

    number: int
    name: str
    title: str
    summary: str
    example: str
    label: str
    value: str


@dataclasses.dataclass(frozen=True, slots=True)
class ExampleQuestion:
    """A question people come with: the estimate that answers it, and its inputs."""

    question: str
    example: str
    estimate: str
    typed: Mapping[str, str]

    @property
    def address(self) -> str:
        """The calculator, filled in."""
        return calculator_url(self.estimate, urlencode(self.typed))


STARTS = tuple(
    ExampleQuestion(**row) for row in data_files.load_toml("starting_points.toml")["start"]
)


def in_groups() -> dict[str, list[EstimateSpec]]:
    """All estimates by group, groups and estimates in the order of the registry."""
    found: dict[str, list[EstimateSpec]] = {}
    for entry in registry.entries():
        found.setdefault(entry.group, []).append(entry)
    return found


def number_of(entry: EstimateSpec) -> tuple[int, int]:
    """The place of a calculator in the list, and how many there are."""
    listed = [e.name for group in in_groups().values() for e in group]
    return listed.index(entry.name) + 1, len(listed)


def groups() -> dict[str, list[CalculatorListItem]]:
    """The list of calculators with an answer for each."""
    return {
        title: [_listed(entry, number_of(entry)[0]) for entry in entries]
        for title, entries in in_groups().items()
    }


def teaching_pages(entry: EstimateSpec, course: CourseLinks) -> dict[str, str]:
    """The pages that teach this calculator and its inputs: slug and title."""
    slugs = [entry.topic, *(i.topic for i in input_specs(entry.inputs).values())]
    return {s: course.topics[s] for s in slugs if s in course.topics}


def starting_inputs(entry: EstimateSpec, library: Library) -> dict[str, str]:
    """Where the course asks about what this calculator answers: address and words."""
    topic = library.topics.get(entry.topic)
    if topic is None or not topic.questions:
        return {}
    return {f"/quiz/{topic.slug}": f"{len(topic.questions)} questions, {topic.title}"}


@functools.cache
def _listed(entry: EstimateSpec, number: int) -> CalculatorListItem:
    figures = entry.compute(entry.inputs()).figures
    measured = [f for f in figures if _is_number(f)]
    first = next((f for f in measured if f.primary), measured[0] if measured else None)
    return CalculatorListItem(
        number=number,
        name=entry.name,
        title=entry.title,
        summary=entry.summary,
        example=_example(entry),
        label=_label(first) if first else "",
        value=_short(first) if first else "",
    )


def _is_number(figure: Figure) -> bool:
    return isinstance(figure.value, int | float) and not isinstance(figure.value, bool)


def _label(figure: Figure) -> str:
    """What a figure is, below its value: of `8 GPUs` that they are needed."""
    named = PLURALS.get(figure.unit) == figure.label
    return "Needed" if named else figure.label


def _short(figure: Figure) -> str:
    """A figure as the list has room for: `70.6 B` parameters, not all their digits."""
    if figure.unit == "parameter" and isinstance(figure.value, int | float):
        return f"{figure.value / 1e9:,.1f}\u00a0B"
    return format_value(figure.value, figure.unit)


def _example(entry: EstimateSpec) -> str:
    """The catalog names among the inputs that a calculator starts with."""
    inputs = entry.inputs()
    words = []
    for name, field in input_specs(entry.inputs).items():
        if field.kind in {"model", "gpu", "system", "network"} and not field.advanced:
            value = getattr(inputs, name)
            names = dict(c for group in catalogued(field.kind) for c in group.choices)
            words.append(names.get(value, value))
    return ", ".join(w for w in words if w)


# The inputs that take a price of one accelerator, by the way it is paid.
_FIELDS: Mapping[str, Per] = {
    "rent": "hour",
    "usd_per_gpu_hour": "hour",
    "cost_per_gpu_hour": "hour",
    "price": "buy",
}
_COMPUTED_IN = "USD"


@dataclasses.dataclass(frozen=True, slots=True)
class PriceLink:
    """The prices of a part as a link that writes them into the form."""

    link: str
    part: str
    words: str
    day: dt.date
    taken: bool


def offers(
    entry: EstimateSpec, typed: Mapping[str, str], prices: PriceList
) -> tuple[PriceLink, ...]:
    """What the file offers to a calculator, beside all that was typed into it."""
    inputs = {field.name for field in dataclasses.fields(entry.inputs)}
    fields = {name: per for name, per in _FIELDS.items() if name in inputs}
    usable = [p for p in prices.prices if p.currency == _COMPUTED_IN]
    if "prices" in inputs:
        return _ranked(entry, typed, usable)
    found = []
    for part in dict.fromkeys(p.part for p in usable if _is_card(p.part)):
        known = {p.per: p for p in usable if p.part == part}
        given = {name: known[per] for name, per in fields.items() if per in known}
        if given:
            filled = _filled(given, inputs)
            found.append(_offer(entry, typed, filled, list(given.values())))
    return tuple(found)


def _filled(given: Mapping[str, Price], inputs: Collection[str]) -> dict[str, str]:
    """What the form takes from these prices, with the part and the year."""
    first = next(iter(given.values()))
    oldest = min(price.day for price in given.values())
    beside = {"gpu": first.part, "priced_in": str(oldest.year)}
    filled = {name: f"{price.amount:.12g}" for name, price in given.items()}
    return filled | {name: word for name, word in beside.items() if name in inputs}


def _ranked(
    entry: EstimateSpec, typed: Mapping[str, str], usable: list[Price]
) -> tuple[PriceLink, ...]:
    """All prices of an hour at once, for the calculator that ranks GPUs."""
    ranked = {gpu.id for gpu in gpus()}
    hours = [p for p in usable if p.per == "hour" and p.part in ranked]
    if not hours:
        return ()
    words = ", ".join(f"{p.part} {p.amount:.12g}" for p in hours)
    return (_offer(entry, typed, {"prices": words}, hours),)


def _offer(
    entry: EstimateSpec, typed: Mapping[str, str], filled: Mapping[str, str], of: list[Price]
) -> PriceLink:
    names = dict.fromkeys(_name(price.part) for price in of)
    return PriceLink(
        link=calculator_url(entry.name, query_of({**typed, **filled})),
        part=", ".join(names),
        words=", ".join(price.words for price in of),
        day=min(price.day for price in of),
        taken=all(typed.get(name) == word for name, word in filled.items()),
    )


def _is_card(part: str) -> bool:
    found = find_part(part)
    return found is not None and found.kind == "accelerator"


def _name(part: str) -> str:
    found = find_part(part)
    return found.name if found else part
