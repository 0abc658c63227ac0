"""List of calculators, example questions, operator prices."""

import dataclasses
import datetime as dt
import functools
from collections.abc import Collection, Mapping
from urllib.parse import urlencode

from app.calculators.url_inputs import build_query
from app.content.library import Library
from app.estimator import data_files, registry
from app.estimator.estimates.accelerator_choice import list_gpus
from app.estimator.hardware.part_values import find_part
from app.estimator.hardware.prices import PartPrice, Per, PriceList
from app.estimator.inputs import input_specs
from app.estimator.registry import EstimateSpec
from app.estimator.result import Figure
from app.estimator.units import PLURALS, format_value
from app.widgets.calculator_form import CourseLinks, catalog_options
from app.widgets.estimate_view import calculator_url


@dataclasses.dataclass(frozen=True, slots=True)
class CalculatorListItem:
    """A calculator in the list, with its result for the default inputs."""

    number: int
    name: str
    title: str
    summary: str
    example: str
    label: str
    value: str


@dataclasses.dataclass(frozen=True, slots=True)
class ExampleQuestion:
    """A common question: the estimate that answers it, and its inputs.

    Inputs of two scenarios are named as in the URL of a comparison, such as `b.gpu`.
    """

    question: str
    example: str
    estimate: str
    typed: Mapping[str, str]

    @property
    def address(self) -> str:
        """URL of the calculator with these inputs, or of the comparison if they are of two."""
        part = "compare" if any(name[1:2] == "." for name in self.typed) else ""
        return calculator_url(self.estimate, urlencode(self.typed), part=part)


STARTS = tuple(
    ExampleQuestion(**row) for row in data_files.load_toml("starting_points.toml")["start"]
)


def group_estimates() -> dict[str, list[EstimateSpec]]:
    """Return all estimates by group, in registry order."""
    groups: dict[str, list[EstimateSpec]] = {}
    for entry in registry.entries():
        groups.setdefault(entry.group, []).append(entry)
    return groups


def calculator_position(entry: EstimateSpec) -> tuple[int, int]:
    """Return the position of a calculator in the list, and the length of the list."""
    listed = [e.name for group in group_estimates().values() for e in group]
    return listed.index(entry.name) + 1, len(listed)


def list_calculator_groups() -> dict[str, list[CalculatorListItem]]:
    """Return the list of calculators, each with a result."""
    return {
        title: [_calculator_list_item(entry, calculator_position(entry)[0]) for entry in entries]
        for title, entries in group_estimates().items()
    }


def find_teaching_pages(entry: EstimateSpec, course: CourseLinks) -> dict[str, str]:
    """Return the lessons on this calculator and its inputs: slug and title."""
    slugs = [entry.topic, *(i.topic for i in input_specs(entry.inputs).values())]
    return {s: course.topics[s] for s in slugs if s in course.topics}


def find_quizzes(entry: EstimateSpec, library: Library) -> dict[str, str]:
    """Return links to course questions on this calculator's topic: URL and label."""
    topic = library.topics.get(entry.topic)
    if topic is None or not topic.questions:
        return {}
    return {f"/quiz/{topic.slug}": f"{len(topic.questions)} questions, {topic.title}"}


@functools.cache
def _calculator_list_item(entry: EstimateSpec, number: int) -> CalculatorListItem:
    figures = entry.compute(entry.inputs()).figures
    measured = [f for f in figures if _is_number(f)]
    first = next((f for f in measured if f.primary), measured[0] if measured else None)
    return CalculatorListItem(
        number=number,
        name=entry.name,
        title=entry.title,
        summary=entry.summary,
        example=_example_inputs(entry),
        label=_figure_label(first) if first else "",
        value=_short_figure(first) if first else "",
    )


def _is_number(figure: Figure) -> bool:
    return isinstance(figure.value, int | float) and not isinstance(figure.value, bool)


def _figure_label(figure: Figure) -> str:
    """Return the label of a figure; “Needed” if the label only repeats its unit."""
    named = PLURALS.get(figure.unit) == figure.label
    return "Needed" if named else figure.label


def _short_figure(figure: Figure) -> str:
    """Return a figure in short form: `70.6 B` parameters instead of all digits."""
    if figure.unit == "parameter" and isinstance(figure.value, int | float):
        return f"{figure.value / 1e9:,.1f}\u00a0B"
    return format_value(figure.value, figure.unit)


def _example_inputs(entry: EstimateSpec) -> str:
    """Return the catalog names among the default inputs of a calculator."""
    inputs = entry.inputs()
    text = []
    for name, field in input_specs(entry.inputs).items():
        if field.kind in {"model", "gpu", "system", "network"} and not field.advanced:
            value = getattr(inputs, name)
            names = dict(c for group in catalog_options(field.kind) for c in group.choices)
            text.append(names.get(value, value))
    return ", ".join(w for w in text if w)


# The inputs that take a price of one accelerator, by billing unit.
_FIELDS: Mapping[str, Per] = {
    "rent": "hour",
    "usd_per_gpu_hour": "hour",
    "cost_per_gpu_hour": "hour",
    "price": "buy",
}
_COMPUTED_IN = "USD"


@dataclasses.dataclass(frozen=True, slots=True)
class PriceLink:
    """The prices of a part, as a link that fills them into the form."""

    link: str
    part: str
    label: str
    day: dt.date
    current: bool


def list_price_links(
    entry: EstimateSpec, typed: Mapping[str, str], prices: PriceList
) -> tuple[PriceLink, ...]:
    """Return the prices that fit a calculator's inputs, keeping everything already typed."""
    inputs = {field.name for field in dataclasses.fields(entry.inputs)}
    fields = {name: per for name, per in _FIELDS.items() if name in inputs}
    usable = [p for p in prices.prices if p.currency == _COMPUTED_IN]
    if "prices" in inputs:
        return _ranking_price_links(entry, typed, usable)
    links = []
    for part in dict.fromkeys(p.part for p in usable if _is_card(p.part)):
        known = {p.per: p for p in usable if p.part == part}
        chosen = {name: known[per] for name, per in fields.items() if per in known}
        if chosen:
            filled = _fill_prices(chosen, inputs)
            links.append(_price_link(entry, typed, filled, list(chosen.values())))
    return tuple(links)


def _fill_prices(given: Mapping[str, PartPrice], inputs: Collection[str]) -> dict[str, str]:
    """Return the form values for these prices, with the part and the year."""
    first = next(iter(given.values()))
    oldest = min(price.day for price in given.values())
    beside = {"gpu": first.part, "priced_in": str(oldest.year)}
    filled = {name: f"{price.amount:.12g}" for name, price in given.items()}
    return filled | {name: word for name, word in beside.items() if name in inputs}


def _ranking_price_links(
    entry: EstimateSpec, typed: Mapping[str, str], usable: list[PartPrice]
) -> tuple[PriceLink, ...]:
    """Return all hourly prices at once, for the calculator that ranks GPUs."""
    ranked = {gpu.id for gpu in list_gpus()}
    hours = [p for p in usable if p.per == "hour" and p.part in ranked]
    if not hours:
        return ()
    text = ", ".join(f"{p.part} {p.amount:.12g}" for p in hours)
    return (_price_link(entry, typed, {"prices": text}, hours),)


def _price_link(
    entry: EstimateSpec, typed: Mapping[str, str], filled: Mapping[str, str], of: list[PartPrice]
) -> PriceLink:
    names = dict.fromkeys(_part_name(price.part) for price in of)
    return PriceLink(
        link=calculator_url(entry.name, build_query({**typed, **filled})),
        part=", ".join(names),
        label=", ".join(price.words for price in of),
        day=min(price.day for price in of),
        current=all(typed.get(name) == word for name, word in filled.items()),
    )


def _is_card(part: str) -> bool:
    known = find_part(part)
    return known is not None and known.kind == "accelerator"


def _part_name(part: str) -> str:
    known = find_part(part)
    return known.name if known else part
