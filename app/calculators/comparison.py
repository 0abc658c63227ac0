"""Two or three scenarios side by side, and the URLs that hold them."""

import dataclasses
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple, TypeGuard
from urllib.parse import urlencode

from markupsafe import Markup

from app.estimator.hardware.prices import find_rental_price
from app.estimator.inputs import (
    InputProblem,
    InvalidInputsError,
    input_specs,
    non_default_inputs_to_query,
    parse_inputs,
)
from app.estimator.registry import EstimateSpec
from app.estimator.result import Estimate, Figure, StackedBar
from app.estimator.units import (
    MINUS,
    NBSP,
    UNITS,
    append_unit,
    format_count,
    format_number,
    format_value,
    inflect_unit,
    split_number_and_unit,
)
from app.widgets.bar_charts import axis_end_of_bar, build_bar_legend, draw_stacked_bar
from app.widgets.calculator_form import (
    CourseLinkTargets,
    FormField,
    build_form_fields,
    encode_typed_query,
)
from app.widgets.estimate_view import calculator_url, format_interval_or_exact
from app.widgets.svg import VERDICT_ICONS, LegendEntry, VerdictIcon

LETTERS = ("a", "b", "c")
_SIDE_PREFIXES = frozenset(f"{letter}." for letter in LETTERS)
_SCENARIO_COUNT_FIELD = "scenarios"

QueryInputs = Mapping[str, str]


def split_scenarios(typed_by_prefixed_field: QueryInputs) -> dict[str, dict[str, str]]:
    """Return the scenarios in a URL: `gpu=` applies to all, `b.gpu=` to B alone.

    There are two; `scenarios=3` or any value for C adds a third.

    >>> split_scenarios({"model": "70B", "b.gpu": "b200-sxm"})
    {'a': {'model': '70B'}, 'b': {'model': '70B', 'gpu': 'b200-sxm'}}
    """
    shared = {
        n: v
        for n, v in typed_by_prefixed_field.items()
        if n[:2] not in _SIDE_PREFIXES and n != _SCENARIO_COUNT_FIELD
    }
    three = typed_by_prefixed_field.get(_SCENARIO_COUNT_FIELD) == "3" or any(
        n.startswith("c.") for n in typed_by_prefixed_field
    )
    return {
        letter: {
            **shared,
            **{n[2:]: v for n, v in typed_by_prefixed_field.items() if n.startswith(f"{letter}.")},
        }
        for letter in (LETTERS if three else LETTERS[:2])
    }


def build_scenarios_query(typed_by_letter: Mapping[str, QueryInputs]) -> str:
    """Return scenarios as a query string; values shared by all are written once.

    >>> build_scenarios_query({"a": {"model": "70B"}, "b": {"model": "70B", "gpus": "8"}})
    'model=70B&b.gpus=8'
    """
    filled = {s: {n: v for n, v in typed.items() if v} for s, typed in typed_by_letter.items()}
    first, *other_scenarios = filled.values()
    shared = {n: v for n, v in first.items() if all(o.get(n) == v for o in other_scenarios)}
    pairs = dict(shared)
    for letter, typed in filled.items():
        pairs |= {f"{letter}.{n}": v for n, v in typed.items() if n not in shared}
    if len(typed_by_letter) == len(LETTERS) and not any(n.startswith("c.") for n in pairs):
        pairs[_SCENARIO_COUNT_FIELD] = "3"
    return urlencode(pairs)


def is_better(figure: Figure, other: Figure) -> bool:
    """Return whether a figure is better than `other`, of the same name.

    Their output declares which direction is better; without that, neither is.

    >>> from app.estimator.result import OutputSpec
    >>> free = OutputSpec("free", "Free", "B", better="more")
    >>> is_better(Figure(free, 2e9), Figure(free, 1e9))
    True
    """
    a, b, better = _comparable_number(figure), _comparable_number(other), figure.output.better
    if a is None or b is None or a == b or not better:
        return False
    return (a > b) == (better == "more")


# What inputs are about, where it is not the most important figure.
_RELEVANT_FIGURES = dict.fromkeys(
    ("draft_tokens", "acceptance", "draft_cost"), ("tpot_p50", "tpot")
)


def summarize_comparison(
    estimates: Mapping[str, Estimate],
    differing_input_names: Collection[str] = (),
    main_figure_names: Collection[str] = (),
) -> str:
    """Return in one sentence what fits, has more room, or takes less.

    `differing_input_names` are the inputs that differ, `main_figure_names` the figures that a result shows first.
    """
    relevant_names = tuple(
        name for field in differing_input_names for name in _RELEVANT_FIGURES.get(field, ())
    )
    not_fitting = [s for s, e in estimates.items() if e.verdict.status == "no"]
    # A verdict is doubtful if it is tight and the figure says that it doesn't fit.
    doubtful = [
        s
        for s, e in estimates.items()
        if e.verdict.status == "tight" and (fits := e.find_figure("fits")) and not fits.value
    ]
    fit = [s for s in estimates if s not in {*not_fitting, *doubtful}]
    if max(len(fit), len(doubtful), len(not_fitting)) < len(estimates):
        return _describe_which_fit(fit, doubtful, not_fitting)
    return (
        _describe_which_has_most_room(estimates)
        or _describe_main_difference(estimates, relevant_names, main_figure_names)
        or "There is no difference."
    )


def _describe_which_fit(
    fits: Sequence[str], may_fit: Sequence[str], does_not_fit: Sequence[str]
) -> str:
    """Return what fits, what may not, and what does not, in a sentence.

    >>> _describe_which_fit(["a"], ["b"], ["c"]), _describe_which_fit([], ["a"], ["b"])
    ('A fits, B may not, C does not.', 'A may fit, B does not.')
    """
    clauses = []
    if fits:
        clauses.append(f"{_join_letters(fits)} {'fits' if len(fits) == 1 else 'fit'}")
    if may_fit:
        clauses.append(f"{_join_letters(may_fit)} {'may not' if fits else 'may fit'}")
    if does_not_fit:
        clauses.append(
            f"{_join_letters(does_not_fit)} {'does' if len(does_not_fit) == 1 else 'do'} not"
        )
    return f"{', '.join(clauses)}."


def _describe_which_has_most_room(estimates: Mapping[str, Estimate]) -> str:
    figures = {s.upper(): f for s, e in estimates.items() if (f := e.find_figure("free"))}
    numbers = {s: _comparable_number(f) for s, f in figures.items()}
    values = {s: number for s, number in numbers.items() if number is not None}
    if len(values) < len(estimates) or len(set(values.values())) == 1:
        return ""
    best = max(values, key=lambda s: values[s])
    comparative = "the most" if len(values) > 2 else "more"
    others_text = ", ".join(f"{figures[s].formatted_value} in {s}" for s in values if s != best)
    return f"{best} has {comparative} room: {figures[best].formatted_value} free, against {others_text}."


def _describe_main_difference(
    estimates: Mapping[str, Estimate],
    relevant_figure_names: Collection[str],
    main_figure_names: Collection[str],
) -> str:
    """Return a sentence about the figure that what differs is about, or that differs most.

    Of the main figures; if none of these differs, about the first that does.
    """
    first = next(iter(estimates.values()))
    differing = [
        f
        for f in first.figures
        if len(set(_collect_figure_texts_by_scenario(estimates, f.name).values())) > 1
    ]
    if not differing:
        return ""
    shown = min(
        differing,
        key=lambda f: (
            f.name not in relevant_figure_names,
            f.name not in main_figure_names,
            -_ratio_of_largest_to_smallest(estimates, f.name)
            if f.name in main_figure_names
            else 0.0,
            not f.primary,
        ),
    )
    texts = _collect_figure_texts_by_scenario(estimates, shown.name)
    values = ", ".join(f"{value} with {letter}" for letter, value in texts.items())
    return f"{shown.label}: {values}."


def _collect_figure_texts_by_scenario(
    estimates: Mapping[str, Estimate], name: str
) -> dict[str, str]:
    figures = {letter.upper(): e.find_figure(name) for letter, e in estimates.items()}
    return {letter: figure.formatted_value for letter, figure in figures.items() if figure}


def _ratio_of_largest_to_smallest(estimates: Mapping[str, Estimate], name: str) -> float:
    """Return the largest value of a figure over its smallest, to two digits.

    1 if they are not all positive numbers.
    """
    figures = (estimate.find_figure(name) for estimate in estimates.values())
    numbers = [_comparable_number(figure) or 0.0 if figure else 0.0 for figure in figures]
    return float(f"{max(numbers) / min(numbers):.2g}") if min(numbers) > 0 else 1.0


def _comparable_number(figure: Figure) -> float | None:
    """Return a figure as a number to compare; None for text and unknown values."""
    value = figure.value
    return None if value is None or isinstance(value, str) else float(value)


def _join_letters(letters: Sequence[str]) -> str:
    return " and ".join(letter.upper() for letter in letters)


_BAR_HEIGHT = 34


@dataclasses.dataclass(frozen=True, slots=True)
class InputRow:
    """One input in all scenarios; `differs` if their values are not the same."""

    name: str
    label: str
    fields: tuple[FormField, ...]
    differs: bool
    is_advanced: bool

    @property
    def is_wide(self) -> bool:
        """Whether a choice is too long to show the scenarios side by side."""
        return any(field.has_wide_choices for field in self.fields)


@dataclasses.dataclass(frozen=True, slots=True)
class ScenarioColumn:
    """One scenario: its letter, verdict and bar, and the link to its calculator."""

    letter: str
    verdict_icon: VerdictIcon
    verdict_lead: str
    verdict_text: str
    bar: Markup | None
    calculator_url: str


@dataclasses.dataclass(frozen=True, slots=True)
class ScenarioFigure:
    formatted_value: str
    is_best: bool
    difference_from_first: str
    likely_range: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class FigureRow:
    label: str
    values: tuple[ScenarioFigure, ...]


class ScenarioNote(NamedTuple):
    letter: str
    text: str


@dataclasses.dataclass(frozen=True, slots=True)
class Comparison:
    """The template data of `calculators/_comparison.html`.

    `overlapping_figure_labels`: the most important figures whose likely ranges overlap although they
    differ; `list_prices_note`: the list prices behind the costs, if their providers differ;
    `notes`: what one scenario assumes and not all do, with its letter.
    """

    lead: str
    differing_inputs: tuple[str, ...]
    list_prices_note: str
    overlapping_figure_labels: tuple[str, ...]
    notes: tuple[ScenarioNote, ...]
    columns: tuple[ScenarioColumn, ...]
    legend: tuple[LegendEntry, ...]
    figure_rows: tuple[FigureRow, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class Scenario:
    """One scenario with its result, or the problems that prevent one."""

    typed_by_field: QueryInputs
    inputs: Any
    estimate: Estimate | None
    problems: tuple[InputProblem, ...]


def compute_scenarios(
    entry: EstimateSpec, typed_by_letter: Mapping[str, QueryInputs]
) -> dict[str, Scenario]:
    scenarios = {}
    for letter, typed in typed_by_letter.items():
        inputs = None
        try:
            inputs = parse_inputs(entry.inputs_type, typed)
            scenarios[letter] = Scenario(typed, inputs, entry.compute(inputs), ())
        except InvalidInputsError as error:
            scenarios[letter] = Scenario(typed, inputs, None, error.problems)
    return scenarios


def build_comparison_links_and_query(
    entry: EstimateSpec, scenarios: Mapping[str, Scenario]
) -> dict[str, str]:
    """Return the URLs of a comparison: itself, swapped, with a third, and each one alone."""
    inputs_by_letter = {
        letter: s.typed_by_field if s.inputs is None else non_default_inputs_to_query(s.inputs)
        for letter, s in scenarios.items()
    }
    a, b = inputs_by_letter["a"], inputs_by_letter["b"]
    views = {
        "here": inputs_by_letter,
        "swap": {**inputs_by_letter, "a": b, "b": a},
        "third": {"a": a, "b": b} if "c" in inputs_by_letter else {**inputs_by_letter, "c": b},
    }
    links = {
        view: calculator_url(entry.name, build_scenarios_query(typed_by_letter), subpath="compare")
        for view, typed_by_letter in views.items()
    }
    first_alone = calculator_url(entry.name, encode_typed_query(a))
    return {**links, "one": first_alone, "query": build_scenarios_query(inputs_by_letter)}


def list_scenario_problems(scenarios: Mapping[str, Scenario]) -> tuple[InputProblem, ...]:
    """Return all problems, each at the field of its own scenario (`b.gpus`)."""
    return tuple(
        InputProblem(f"{letter}.{p.field}", p.value, f"{letter.upper()}: {p.message}")
        for letter, scenario in scenarios.items()
        for p in scenario.problems
    )


def build_input_rows(
    entry: EstimateSpec, scenarios: Mapping[str, Scenario], link_targets: CourseLinkTargets
) -> tuple[InputRow, ...]:
    columns = {
        letter: {
            field.name: field
            for field in build_form_fields(
                entry,
                s.typed_by_field,
                s.inputs,
                s.problems,
                element_id=letter,
                link_targets=link_targets,
            )
        }
        for letter, s in scenarios.items()
    }
    rows = []
    for name, spec in input_specs(entry.inputs_type).items():
        fields = tuple(
            dataclasses.replace(column[name], name=f"{letter}.{name}")
            for letter, column in columns.items()
        )
        differs = _input_differs(scenarios, name)
        rows.append(InputRow(name, spec.label, fields, differs, spec.advanced))
    return tuple(rows)


def compare_scenarios_if_all_computed(
    entry: EstimateSpec, scenarios: Mapping[str, Scenario]
) -> Comparison | None:
    estimates = {
        letter: scenario.estimate
        for letter, scenario in scenarios.items()
        if scenario.estimate is not None
    }
    if len(estimates) < len(scenarios):
        return None
    specs = input_specs(entry.inputs_type)
    differing = [name for name in specs if _input_differs(scenarios, name)]
    bars = {
        letter: next((p for p in e.pictures if isinstance(p, StackedBar)), None)
        for letter, e in estimates.items()
    }
    return Comparison(
        lead=summarize_comparison(estimates, differing, entry.most_important_outputs),
        differing_inputs=tuple(specs[name].label for name in differing),
        list_prices_note=_describe_differing_list_prices(scenarios),
        overlapping_figure_labels=_labels_of_figures_with_overlapping_ranges(
            list(estimates.values()), differing, entry.most_important_outputs
        ),
        notes=_list_notes_not_shared(estimates),
        columns=_scenario_columns(entry, scenarios, estimates, bars),
        legend=tuple(
            dict.fromkeys(k for bar in bars.values() if bar for k in build_bar_legend(bar))
        ),
        figure_rows=_figure_rows(list(estimates.values())),
    )


def _describe_differing_list_prices(scenarios: Mapping[str, Scenario]) -> str:
    """Return the list prices behind the costs; empty if all are of one provider."""
    price_texts, providers = [], set()
    for letter, scenario in scenarios.items():
        rates = [getattr(scenario.inputs, field, 0.0) for field in _RENT_FIELDS]
        rental_price = find_rental_price(str(getattr(scenario.inputs, "gpu", "")))
        if None in rates and rental_price is not None:
            price = format_value(rental_price.usd_per_hour, "USD/h")
            price_texts.append(f"{letter.upper()} at {rental_price.provider}'s {price}")
            providers.add(rental_price.provider)
    if len(providers) < 2:
        return ""
    texts = ", ".join(price_texts)
    return f"The costs are at on-demand prices of different providers, {texts}: write what you pay."


_RENT_FIELDS = ("cost_per_gpu_hour", "usd_per_gpu_hour")


def _input_differs(scenarios: Mapping[str, Scenario], input_name: str) -> bool:
    """Return whether the scenarios differ in an input: in its value, or in invalid text."""
    values = {
        s.typed_by_field.get(input_name, "") if s.inputs is None else getattr(s.inputs, input_name)
        for s in scenarios.values()
    }
    return len(values) > 1


def _scenario_columns(
    entry: EstimateSpec,
    scenarios: Mapping[str, Scenario],
    estimates: Mapping[str, Estimate],
    bars: Mapping[str, StackedBar | None],
) -> tuple[ScenarioColumn, ...]:
    reach = max((axis_end_of_bar(b) for b in bars.values() if b), default=0.0)
    last = list(estimates)[-1]
    columns = []
    for letter, estimate in estimates.items():
        bar = bars[letter]
        drawing = bar and draw_stacked_bar(
            bar, height=_BAR_HEIGHT, min_axis_end=reach, draws_ticks=letter == last
        )
        columns.append(
            ScenarioColumn(
                letter=letter.upper(),
                verdict_icon=VERDICT_ICONS[estimate.verdict.status],
                verdict_lead=estimate.verdict.lead,
                verdict_text=estimate.verdict.text,
                bar=drawing.svg if drawing else None,
                calculator_url=calculator_url(
                    entry.name, urlencode(non_default_inputs_to_query(scenarios[letter].inputs))
                ),
            )
        )
    return tuple(columns)


_MOST_OVERLAPPING = 4
# Where these differ, the errors of both scenarios have nothing to do with each other.
_SETUP_INPUTS = frozenset({"gpu", "engine", "model", "software"})


def _labels_of_figures_with_overlapping_ranges(
    estimates: Sequence[Estimate],
    differing_input_names: Collection[str],
    main_figure_names: Collection[str],
) -> tuple[str, ...]:
    """Return the labels of figures whose ranges overlap, of percentiles that of p95.

    Main figures, of which one is the headline, come first. On one setup an error of the model moves
    all scenarios alike, so that ranges say nothing about their order.
    """
    labels: list[str] = []
    if _SETUP_INPUTS.isdisjoint(differing_input_names):
        return ()
    for figure in sorted(
        estimates[0].figures, key=lambda figure: figure.name not in main_figure_names
    ):
        if figure.name.endswith(("_p50", "_p99")):
            continue
        figures = [f for e in estimates if (f := e.find_figure(figure.name)) is not None]
        lows = [f.low for f in figures if f.low is not None]
        highs = [f.high for f in figures if f.high is not None]
        differ = len({f.formatted_value for f in figures}) > 1
        if differ and len(lows) == len(highs) == len(estimates) and max(lows) < min(highs):
            labels.append(figure.label)
    return tuple(labels[:_MOST_OVERLAPPING])


def _list_notes_not_shared(estimates: Mapping[str, Estimate]) -> tuple[ScenarioNote, ...]:
    shared = set.intersection(*(set(e.notes) for e in estimates.values()))
    return tuple(
        ScenarioNote(letter.upper(), note)
        for letter, estimate in estimates.items()
        for note in estimate.notes
        if note not in shared
    )


def _figure_rows(estimates: Sequence[Estimate]) -> tuple[FigureRow, ...]:
    rows = []
    for figure in estimates[0].figures:
        figures = [f for e in estimates if (f := e.find_figure(figure.name)) is not None]
        if len(figures) == len(estimates):
            rows.append(FigureRow(figure.label, _compare_figure_across_scenarios(figures)))
    return tuple(rows)


def _compare_figure_across_scenarios(
    figure_in_each_scenario: Sequence[Figure],
) -> tuple[ScenarioFigure, ...]:
    first = figure_in_each_scenario[0]
    return tuple(
        ScenarioFigure(
            formatted_value=f.formatted_value,
            is_best=any(is_better(f, other) for other in figure_in_each_scenario)
            and not any(is_better(other, f) for other in figure_in_each_scenario),
            difference_from_first="" if f is first else describe_difference_from_first(f, first),
            likely_range=format_interval_or_exact(f) if f.low is not None else "",
        )
        for f in figure_in_each_scenario
    )


def describe_difference_from_first(figure: Figure, first: Figure) -> str:
    """Return the difference of a figure from that of A: `+70 GB`, `−8 GPUs`.

    It is the difference of the numbers as shown, so that a column adds up. If these are equal or in
    different units, it is that of the values.
    """
    if not (is_number(figure.value) and is_number(first.value)):
        return ""
    difference = figure.value - first.value
    if not difference:
        return "the same"
    sign = "+" if difference > 0 else MINUS
    shown_difference = _difference_as_shown(figure, first)
    if shown_difference:
        return f"{sign}{shown_difference}"
    if figure.unit == "%":
        return f"{sign}{format_number(abs(difference) * 100)} points"
    return f"{sign}{format_value(abs(difference), figure.unit)}"


def _difference_as_shown(figure: Figure, first: Figure) -> str:
    """Return the difference of two formatted values of one unit; empty if equal."""
    number, unit = split_number_and_unit(figure.formatted_value)
    base, base_unit = split_number_and_unit(first.formatted_value)
    if UNITS.get(unit) is None or UNITS.get(unit) != UNITS.get(base_unit):
        return ""
    decimals = max(_count_decimals(figure.formatted_value), _count_decimals(first.formatted_value))
    text = f"{abs(number - base):,.{decimals}f}"
    if not float(text.replace(",", "")):
        return ""
    text = text.removesuffix(".0")
    if unit == "%":
        return format_count(float(text.replace(",", "")), "point")
    if unit in {figure.unit, inflect_unit(2, figure.unit)}:
        unit = inflect_unit(float(text.replace(",", "")), figure.unit)
    return append_unit(text, unit)


def _count_decimals(formatted: str) -> int:
    return len(formatted.partition(NBSP)[0].rstrip("%").partition(".")[2])


def is_number(value: Any) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool)
