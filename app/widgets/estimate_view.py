"""An estimate as text, tables and charts; the URL of a calculator."""

import dataclasses
import math
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from html import escape
from typing import Any, NamedTuple
from urllib.parse import quote_plus, urlencode

from markupsafe import Markup

from app.estimator import data_files, registry
from app.estimator import inputs as given_inputs
from app.estimator.hardware.part_values import find_part, part_url
from app.estimator.inputs import InputSpec
from app.estimator.models import lookup
from app.estimator.models.weight_formats import replace_published_or_fp8_format
from app.estimator.registry import EstimateSpec
from app.estimator.result import (
    Chart,
    Estimate,
    Figure,
    FormulaStep,
    Picture,
    ResultTable,
    StackedBar,
    SubEstimate,
    VerdictChange,
)
from app.estimator.units import NBSP, format_range, format_value
from app.widgets.bar_charts import choose_segment_styles, draw_stacked_bar
from app.widgets.line_charts import draw_line_chart, draw_timeline
from app.widgets.svg import VERDICT_ICONS, SvgChart, VerdictIcon

_SUM_LABELS = frozenset({"Needed", "Total", "Sum", "All"})
_PLAIN_NUMBER = re.compile(rf"[−\d][\d,.]*(?:[ {NBSP}]?%)?")


class TableCell(NamedTuple):
    text: str
    is_number: bool


def draw_estimate_chart(picture: Picture, bar_height: int = 44) -> SvgChart:
    if isinstance(picture, StackedBar):
        return draw_stacked_bar(picture, height=bar_height)
    if isinstance(picture, Chart):
        return draw_line_chart(picture)
    return draw_timeline(picture)


def render_result_table(table: ResultTable, color_class_by_label: Mapping[str, str]) -> Markup:
    """Render a table; rows named like a component get its color from `color_class_by_label`.

    Columns that contain a number are aligned as numbers. A row whose first cell is a
    number has no row header.
    """
    read = [[_build_cell(cell) for cell in row] for row in table.rows if row]
    kinds = [
        ' class="n"' if any(row[i].is_number for row in read) else ""
        for i in range(len(table.columns))
    ]
    label = escape(table.label)
    heads = "".join(
        f'<th scope="col"{kind}>{escape(text)}</th>'
        for text, kind in zip(table.columns, kinds, strict=True)
    )
    rows = "".join([_row_html(cells, kinds, color_class_by_label) for cells in read])
    return Markup(  # noqa: S704 - every text in it is escaped
        f'<div class="scroll" role="region" tabindex="0" aria-label="{label}">\n'
        f'<table class="t"><caption class="sr">{label}</caption><thead><tr>{heads}'
        f"</tr></thead><tbody>\n{rows}</tbody></table></div>"
    )


def _row_html(
    cells: Sequence[TableCell],
    class_attributes: Sequence[str],
    color_class_by_label: Mapping[str, str],
) -> str:
    shown = [
        f"<td{kind}>{escape(cell.text)}</td>"
        for cell, kind in zip(cells, class_attributes, strict=True)
    ]
    if cells[0].is_number:
        return f"<tr>{''.join(shown)}</tr>\n"
    name = cells[0].text
    key, text = color_class_by_label.get(name), escape(name)
    if key:
        text = f'<span class="key {key}">{text}</span>'
    kind = ' class="sum"' if name in _SUM_LABELS else ""
    return f'<tr{kind}><th scope="row">{text}</th>{"".join(shown[1:])}</tr>\n'


def _build_cell(cell: str | tuple[float, str]) -> TableCell:
    if isinstance(cell, str):
        return TableCell(cell, is_number=_PLAIN_NUMBER.fullmatch(cell) is not None)
    return TableCell(format_value(cell[0], cell[1]), is_number=True)


def calculator_url(name: str, query: str = "", *, subpath: str = "", anchor: str = "") -> str:
    """Return the URL of a calculator, or of a `subpath` of it such as `result`.

    >>> calculator_url("kv-cache", "context=8k", anchor="total")
    '/calculators/kv-cache?context=8k#total'
    """
    path = f"/calculators/{name}{'/' if subpath else ''}{subpath}"
    url = f"{path}?{query}" if query else path
    return f"{url}#{anchor}" if anchor else url


LONGEST_LINK = 6000
"""Maximum length of a query string in a link [character]; the key of a long config.json fits."""

_MAX_PRIMARY_FIGURES = 3
_HARDWARE_FIELD_KINDS = frozenset({"gpu", "system", "network"})
# Headings by what the unit of a figure measures; the last one takes all other units.
_OTHER_FIGURES_TITLE = "Counts and shares"
_UNITS_BY_GROUP_TITLE: dict[str, tuple[str, ...]] = {
    "Memory and data": ("B",),
    "Time": ("s", "GPU-h"),
    "Rates": ("B/s", "token/s", "request/s", "FLOP/s", "FLOP"),
    "Money": ("USD", "USD/h", "USD/month", "USD/year", "USD/Mtoken"),
    "Power and air": ("W", "Wh", "kg", "A", "V", "BTU/h", "m3/s", "CFM"),
    _OTHER_FIGURES_TITLE: (),
}
_GROUP_TITLE_BY_UNIT = {
    unit: title for title, units in _UNITS_BY_GROUP_TITLE.items() for unit in units
}
_WORD_VALUE_TYPES = (bool, str)
_NUMBER_WITH_UNIT = re.compile(
    rf"(?<![\w.])[−\d][\d,.]*(?:×10[⁰¹²³⁴⁵⁶⁷⁸⁹⁻]+)?(?:{NBSP}[^\s,;.)]+)?"
)


@dataclasses.dataclass(frozen=True, slots=True)
class StepView:
    """A formula step; `source` names its source."""

    label: str
    formula: str
    substituted: str
    value: str
    source: str
    source_url: str
    topic: str


@dataclasses.dataclass(frozen=True, slots=True)
class ChartView:
    """A chart with its legend and its table; the table is None if the page shows it elsewhere."""

    drawing: SvgChart
    table: Markup | None


@dataclasses.dataclass(frozen=True, slots=True)
class VerdictChangeView:
    """An input that changes the verdict, with the URL of the calculator after the change."""

    label: str
    current_value: str
    new_value: str
    verdict_after: str
    url: str


@dataclasses.dataclass(frozen=True, slots=True)
class SectionView:
    """One section of a larger estimate; `url` opens its calculator with the same inputs."""

    heading: str
    calculator_title: str
    verdict_icon: VerdictIcon
    verdict_lead: str
    verdict_text: str
    figures: tuple[Figure, ...]
    url: str


class TextLink(NamedTuple):
    url: str
    text: str


class FigureGroup(NamedTuple):
    title: str
    figures: tuple[Figure, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class EstimateView:
    """Everything that `calculators/_result.html` shows.

    `legend_classes` are the CSS classes of figures that are components of a chart, by label.
    `inapplicable_figures` do not apply to these inputs. `next_estimate_links` lead to what the estimate leads
    on to, `other_calculators` to other calculators with the inputs that they share. `url` is
    that of the calculator with these inputs, empty if they are too long for a URL; `query` is
    its query string.
    """

    name: str
    title: str
    verdict_icon: VerdictIcon
    verdict_lead: Markup
    verdict_text: Markup
    legend_classes: Mapping[str, str]
    main_figures: tuple[Figure, ...]
    other_figure_groups: tuple[FigureGroup, ...]
    inapplicable_figures: tuple[Figure, ...]
    hardware_links: tuple[TextLink, ...]
    pictures: tuple[ChartView, ...]
    tables: tuple[Markup, ...]
    changes: tuple[VerdictChangeView, ...]
    steps: tuple[StepView, ...]
    notes: tuple[str, ...]
    url: str
    query: str
    other_calculators: tuple[TextLink, ...] = ()
    sections: tuple[SectionView, ...] = ()
    next_estimate_links: tuple[TextLink, ...] = ()

    @property
    def other_figure_count(self) -> int:
        return sum(len(group.figures) for group in self.other_figure_groups)


def build_estimate_view(
    entry: EstimateSpec,
    inputs: Any,
    estimate: Estimate,
    *,
    linkable_topics: Collection[str] = (),
    bar_height: int = 44,
) -> EstimateView:
    """Prepare an estimate for display. `linkable_topics` are the concept pages that can be linked."""
    text = given_inputs.non_default_inputs_to_query(inputs)
    query = encode_inputs_query(text)
    short = len(query) <= LONGEST_LINK
    sign = VERDICT_ICONS[estimate.verdict.status]
    keys = {
        segment.label: style.legend_class
        for picture in estimate.pictures
        if isinstance(picture, StackedBar)
        for segment, style in zip(picture.segments, choose_segment_styles(picture), strict=True)
    }
    figures = estimate.figures
    numbers = {f.formatted_value for f in figures if format_interval_or_exact(f)}
    first = _most_important_figures(entry, inputs, estimate)
    return EstimateView(
        name=entry.name,
        title=entry.title,
        verdict_icon=sign,
        verdict_lead=_highlight_numbers(estimate.verdict.lead, numbers),
        verdict_text=_highlight_numbers(estimate.verdict.text, numbers),
        legend_classes=keys,
        main_figures=first,
        other_figure_groups=_group_figures_by_measure(f for f in figures if f not in first),
        inapplicable_figures=tuple(f for f in figures if not f.applies),
        hardware_links=_hardware_links(entry, inputs),
        pictures=_chart_views(estimate, keys, bar_height),
        tables=tuple(render_result_table(t, keys) for t in estimate.tables),
        changes=tuple(_change_view(entry.name, c, text) for c in estimate.changes),
        steps=tuple(_step_view(s, linkable_topics) for s in estimate.steps),
        notes=estimate.notes,
        url=calculator_url(entry.name, query) if short else "",
        query=query if short else "",
        other_calculators=_other_calculator_links(entry, inputs, estimate),
        sections=tuple(_section_view(section) for section in estimate.sections),
        next_estimate_links=tuple(
            TextLink(
                calculator_url(link.estimate_name, encode_inputs_query(link.typed_inputs)),
                link.text,
            )
            for link in estimate.links
        ),
    )


def _section_view(section: SubEstimate) -> SectionView:
    entry, verdict = registry.require_estimate(section.estimate_name), section.estimate.verdict
    query = encode_inputs_query(given_inputs.non_default_inputs_to_query(section.inputs))
    return SectionView(
        heading=section.full_heading,
        calculator_title=entry.title,
        verdict_icon=VERDICT_ICONS[verdict.status],
        verdict_lead=verdict.lead,
        verdict_text=verdict.text,
        figures=_most_important_figures(entry, section.inputs, section.estimate),
        url=calculator_url(entry.name, query) if len(query) <= LONGEST_LINK else "",
    )


def _other_calculator_links(
    entry: EstimateSpec, inputs: Any, estimate: Estimate
) -> tuple[TextLink, ...]:
    """Return the calculators that ask for the same model, with all inputs they share.

    Those of the estimate's own sections are left out: they have links with every input.
    """
    specs = given_inputs.input_specs(entry.inputs_type)
    if "model" not in specs:
        return ()
    values = {name: getattr(inputs, name) for name in specs}
    if values.get("config"):
        values["model"] = lookup.drop_irrelevant_config_fields(values["config"])
    if "weights" in values and values["model"]:
        model = lookup.find_model(values["model"])
        values["weights"] = replace_published_or_fp8_format(model, values["weights"])
    shown = {entry.name, *(section.estimate_name for section in estimate.sections)}
    if values.get("method", "full") != "full":
        shown.add("accelerator-choice")  # Which counts only training of all parameters.
    others = (other for other in registry.list_estimates() if other.name not in shown)
    return tuple(
        TextLink(
            calculator_url(
                other.name,
                encode_inputs_query(_translate_inputs_for_other_estimate(other, specs, values)),
            ),
            other.title,
        )
        for other in others
        if "model" in given_inputs.input_specs(other.inputs_type)
    )


def _translate_inputs_for_other_estimate(
    other_estimate: EstimateSpec, specs: Mapping[str, InputSpec], values: Mapping[str, Any]
) -> dict[str, str]:
    """Return the inputs of another calculator that mean the same, as they are typed."""
    shared: dict[str, str] = {}
    wanted, same = given_inputs.input_specs(other_estimate.inputs_type), _SIMILAR_FIELD_NAMES
    is_choice = other_estimate.name == "accelerator-choice"
    is_choice_for_training = is_choice and "sequence" in specs
    if is_choice_for_training:
        same = _SIMILAR_FIELD_NAMES | _SAME_OF_TRAINING
    for name, spec in wanted.items():
        if name == "context" and name not in specs:
            if length := _sequence_tokens_or_zero(values):
                shared[name] = given_inputs.format_value_as_typed(spec, length)
            continue
        if name == "prompt" and "context" in wanted:
            continue  # A part of the context, which has the whole.
        names = (name, *same.get(name, ()))
        value = _find_equivalent_input_value(spec, names, specs, values, asks_for_users=is_choice)
        if value and name in _PROMPT_FIELD_NAMES and not any(map(values.get, _PROMPT_FIELD_NAMES)):
            defaults = other_estimate.inputs_type()
            answer = next(getattr(defaults, n) for n in ("output_tokens", "answer") if n in wanted)
            value = value - answer if value > answer else value  # The context is of both.
        if value is not None and (spec.kind != "choice" or value in dict(spec.choices)):
            shared[name] = given_inputs.format_value_as_typed(spec, value)
    # Where no targets are asked, nobody set those that another calculator has by default.
    known = {*specs, *shared}
    unset = {name: "" for name, spec in wanted.items() if spec.clearable and name not in known}
    return shared | unset | ({"job": "training"} if is_choice_for_training else {})


def _find_equivalent_input_value(
    spec: InputSpec,
    names: Sequence[str],
    specs: Mapping[str, InputSpec],
    values: Mapping[str, Any],
    *,
    asks_for_users: bool,
) -> Any:
    """Return the value of the first input of these names that has one; None if it means another.

    `asks_for_users`: the sequences at once are those of all users, not of one of many replicas.
    """
    source = next((name for name in names if values.get(name) is not None), names[0])
    mine = specs.get(source)
    value: Any = values.get(source)
    if mine is None or (mine.kind, mine.quantity) != (spec.kind, spec.quantity):
        return None
    is_same_load = asks_for_users or mine.unit == "sequence" or values.get("replicas") == 1
    if mine.unit != spec.unit and not (names[0] == "concurrent" and is_same_load):
        return None  # Users are more than the sequences of one replica.
    is_replaced = mine.replaced_by and values.get(mine.replaced_by) is not None
    if is_replaced or (spec.kind == "count" and value and value > (spec.maximum or math.inf)):
        return None
    return dict(spec.aliases).get(value, value) if spec.kind == "choice" else value


_PROMPT_FIELD_NAMES = ("prompt", "prompt_tokens")
_SAME_OF_TRAINING = {"days": ("deadline",), "only": ("gpu",)}
_SIMILAR_FIELD_NAMES: dict[str, tuple[str, ...]] = {
    "batch": ("concurrent", "sequences"),
    "concurrent": ("batch", "sequences"),
    "sequences": ("concurrent", "batch"),
    "prompt": ("prompt_tokens", "context"),
    "prompt_tokens": ("prompt", "context"),
    "slowest": ("tpot_target",),
    "tpot_target": ("slowest",),
    "answer": ("output_tokens",),
    "output_tokens": ("answer",),
}
"""Inputs of calculators, and those of other names that mean the same."""


def _sequence_tokens_or_zero(values: Mapping[str, Any]) -> int:
    """Return the tokens of prompt and answer together; 0 where they are not asked."""
    names = (("prompt", "answer"), ("prompt_tokens", "output_tokens"))
    return next((sum(values[n] for n in both) for both in names if set(both) <= set(values)), 0)


def encode_inputs_query(query_values: Mapping[str, str]) -> str:
    # Field names need no quoting; most values were read from a URL before.
    return "&".join([f"{name}={quote_plus(value)}" for name, value in query_values.items()])


def _most_important_figures(
    entry: EstimateSpec, inputs: Any, estimate: Estimate
) -> tuple[Figure, ...]:
    """Return the three most important figures; unknown ones are skipped."""
    known = {figure.name: figure for figure in estimate.figures if figure.value is not None}
    names = entry.list_most_important_outputs(inputs)
    return tuple(known[name] for name in names if name in known)[:_MAX_PRIMARY_FIGURES]


def _group_figures_by_measure(figures: Iterable[Figure]) -> tuple[FigureGroup, ...]:
    groups: dict[str, list[Figure]] = {title: [] for title in _UNITS_BY_GROUP_TITLE}
    for figure in figures:
        if figure.applies:
            groups[_GROUP_TITLE_BY_UNIT.get(figure.unit, _OTHER_FIGURES_TITLE)].append(figure)
    return tuple(FigureGroup(title, tuple(some)) for title, some in groups.items() if some)


def _hardware_links(entry: EstimateSpec, inputs: Any) -> tuple[TextLink, ...]:
    chosen = [
        getattr(inputs, name)
        for name, declared in given_inputs.input_specs(entry.inputs_type).items()
        if declared.kind in _HARDWARE_FIELD_KINDS
    ]
    known = (find_part(str(name)) for name in dict.fromkeys(chosen) if name)
    return tuple(TextLink(part_url(p.id), p.name) for p in known if p is not None)


def format_interval_or_exact(figure: Figure) -> str:
    """Format the interval of a modeled figure: `72.1 to 86.4 GB`; empty if it is not known."""
    if figure.value is None or isinstance(figure.value, _WORD_VALUE_TYPES):
        return ""
    if figure.low is None or figure.high is None:
        return "exact" if figure.is_exact else ""
    return format_range(figure.low, figure.high, figure.unit, figure.value)


def _highlight_numbers(sentence: str, numbers: Collection[str]) -> Markup:
    marked = []
    end = 0
    for match in _NUMBER_WITH_UNIT.finditer(sentence):
        if (
            match[0] in numbers and len(match[0]) > 2
        ):  # Small numbers are too common to be matched to a figure.
            marked.append(escape(sentence[end : match.start()]))
            marked.append(f'<span class="num">{match[0]}</span>')
            end = match.end()
    marked.append(escape(sentence[end:]))
    return Markup("".join(marked))  # noqa: S704 - every piece is escaped or digits


def _chart_views(
    estimate: Estimate, color_class_by_label: Mapping[str, str], bar_height: int
) -> tuple[ChartView, ...]:
    labels = {row[0] for table in estimate.tables for row in table.rows if row}
    labels |= {f.label for f in estimate.figures}
    shown = []
    for picture in estimate.pictures:
        drawing = draw_estimate_chart(picture, bar_height)
        is_repeated = isinstance(picture, StackedBar) and all(
            segment.label in labels for segment in picture.segments
        )
        table = None if is_repeated else render_result_table(drawing.table, color_class_by_label)
        shown.append(ChartView(drawing, table))
    return tuple(shown)


def _change_view(
    calculator: str, change: VerdictChange, query_values: Mapping[str, str]
) -> VerdictChangeView:
    query = encode_inputs_query({**query_values, **change.typed_values_by_field})
    return VerdictChangeView(
        label=change.label,
        current_value=change.current_value,
        new_value=change.new_values_text,
        verdict_after=format_verdict_within_sentence(change.verdict_after),
        url=calculator_url(calculator, query) if len(query) <= LONGEST_LINK else "",
    )


def format_verdict_within_sentence(sentence: str) -> str:
    """Write a verdict as part of a longer sentence.

    >>> format_verdict_within_sentence("Does not fit.")
    'does not fit'
    """
    return f"{sentence[:1].lower()}{sentence[1:]}".rstrip(".")


def _step_view(step: FormulaStep, topics: Collection[str]) -> StepView:
    source = data_files.SOURCES.get(step.source)
    return StepView(
        label=step.label,
        formula=step.formula,
        substituted=step.substituted,
        value=format_value(step.value, step.unit),
        source=f"{source.publisher}, {source.title}" if source else "",
        source_url=source.url if source else "",
        topic=step.topic if step.topic in topics else "",
    )


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
    def calculator_url(self) -> str:
        """URL of the calculator with these inputs, or of the comparison if they are of two."""
        part = "compare" if any(name[1:2] == "." for name in self.typed) else ""
        return calculator_url(self.estimate, urlencode(self.typed), subpath=part)


EXAMPLE_QUESTIONS = tuple(
    ExampleQuestion(**row) for row in data_files.load_toml("starting_points.toml")["start"]
)
