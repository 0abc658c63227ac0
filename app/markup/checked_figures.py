"""Recompute the checked numbers in authored text and compare them with what is written."""

import dataclasses
import math
import re
from collections.abc import Mapping
from html import unescape
from typing import NamedTuple
from urllib.parse import parse_qsl, unquote

from markdown_it.common.utils import escapeHtml

from app.estimator.hardware.part_values import part_url
from app.estimator.result import Estimate, FormulaStep
from app.estimator.units import (
    COUNT_SUFFIX,
    MINUS,
    NBSP,
    format_value,
    matches_displayed_measurement,
)
from app.markup import expressions, quantities
from app.markup.expressions import FigureError, Value
from app.markup.problems import (
    ParseContext,
    TextEdit,
    TextPosition,
    parsing_effort_of_estimate,
)
from app.markup.quantities import Quantity, UnitMismatchError

SCHEMES = ("calc", "hw", "model")
FIGURE_LINK = re.compile(
    r"\[(?P<text>[^\[\]\n]*)\]\((?P<target>(?:calc|hw|model):[^\s()]*)(?: \"working\")?\)"
)
"""A checked figure in Markdown source."""
SVG_FIGURE = re.compile(r'<tspan data-figure="(?P<target>[^"<>]*)">(?P<text>[^<>]*)</tspan>')
"""A checked figure in a drawing."""
_PADDED_FIGURE = re.compile(
    r"\{(?P<target>(?:calc|hw|model):[^\s{}]*?#[\w-]+)(?: in (?P<unit>[^\s{}:]+))?"
    r"(?::(?P<align>[<>]?)(?P<width>\d{0,2})(?:\.(?P<digits>\d))?f?)?\}"
)
"""A checked figure in the output of a lab's command, such as `{hw:h100#memory in MiB:>8}`."""
KEEP_PLAIN = "<!-- plain -->"
"""Comment right behind an amount that is history or a quotation, and stays as it is."""
_NUMBER_WORDS = [
    "zero",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
]
_FACTOR_BY_WORD = {"thousand": 1e3, "million": 1e6, "billion": 1e9, "trillion": 1e12}
_DISPLAYED_NUMBER = re.compile(
    r"^(?P<before>(?:about |around |nearly |over |~|≈ ?)?\$?)"
    r"(?P<number>[-−+]?\d(?:[\d,]|[ \u00a0\u202f](?=\d{3}))*(?:\.\d+)?)"
    r"(?P<gap>[ \u00a0\u202f]*)(?P<unit>.*)$",
    re.DOTALL,
)
_UNITS_OF_AMOUNTS = frozenset(
    [
        "B",
        "B/s",
        "FLOP",
        "FLOP/s",
        "W",
        "Wh",
        "s",
        "USD",
        "USD/h",
        "USD/kWh",
        "USD/month",
        "USD/Mtoken",
        "kg",
        "m3/s",
        "A",
        "V",
    ]
)


@dataclasses.dataclass(frozen=True, slots=True)
class FigureLink:
    scheme: str
    estimate_or_entry_name: str
    inputs: Mapping[str, str]
    output_or_field_name: str


@dataclasses.dataclass(frozen=True, slots=True)
class ComputedFigure:
    """The computed value of a target, a link to its working, and the estimate it came from."""

    value: Value
    url: str
    title: str
    estimate: Estimate | None = None


def parse_figure_link(href: str) -> FigureLink | None:
    """Parse the target of a link; None for any other link."""
    scheme, colon, rest = href.partition(":")
    if not colon or scheme not in SCHEMES:
        return None
    path, _, field = unquote(rest).partition("#")
    raw_query = rest.partition("#")[0].partition("?")[2]
    name = path.partition("?")[0]
    pairs = parse_qsl(raw_query.replace("+", "%2B"), keep_blank_values=True)
    return FigureLink(scheme, name, dict(pairs), field)


def compute_linked_figure(figure_link: FigureLink) -> ComputedFigure:
    """Compute the value of a target; raises FigureError."""
    if not figure_link.output_or_field_name:
        hint = "End the address with #output, for example #total."
        raise FigureError(
            "E81", f"The link to {figure_link.estimate_or_entry_name} names no output.", hint
        )
    name, field_name = figure_link.estimate_or_entry_name, figure_link.output_or_field_name
    if figure_link.scheme == "calc":
        estimate = expressions.compute_estimate(name, figure_link.inputs)
        value = expressions.compute_output_value(name, figure_link.inputs, field_name)
        address = expressions.calculator_url(name, figure_link.inputs, field_name)
        return ComputedFigure(value, address, "", estimate)
    value, entry = expressions.read_catalog_field(figure_link.scheme, name, field_name)
    value = _multiply_by_count(value, figure_link.inputs)
    title = f"{getattr(entry, 'name', name)}, {field_name.replace('_', ' ')}"
    if figure_link.scheme == "hw":  # The page of the hardware part shows the source of each value.
        field = field_name.replace("-", "_")
        return ComputedFigure(value, part_url(getattr(entry, "id", name), field), title)
    sources = [s for s in getattr(entry, "source", ()) if s.startswith("https://")]
    return ComputedFigure(value, sources[0].split()[0] if sources else "", title)


def _multiply_by_count(value: Value, inputs: Mapping[str, str]) -> Value:
    """Return the value of `count` parts; raises FigureError for any other input."""
    if not inputs:
        return value
    count = inputs.get("count", "")
    if len(inputs) > 1 or not re.fullmatch(r"[1-9]\d{0,5}", count):
        hint = "Write ?count= and a whole number, for example ?count=8."
        raise FigureError("E81", "A catalog value takes no input but a count.", hint)
    if not isinstance(value, Quantity):
        raise FigureError("E81", "Only a number can be multiplied by a count.")
    return dataclasses.replace(value, value=int(count) * value.value)


@dataclasses.dataclass(frozen=True, slots=True)
class DisplayedNumber:
    """A number as it is written in the text."""

    text_before: str
    value: float
    decimal_places: int
    has_commas: bool
    space_before_unit: str
    unit: str


def parse_displayed_number(text: str) -> DisplayedNumber | None:
    """Parse the number at the start of a link text; None if there is none."""
    first_word, _, rest = text.strip().partition(" ")
    if first_word.lower() in _NUMBER_WORDS:
        return DisplayedNumber("", _NUMBER_WORDS.index(first_word.lower()), 0, False, " ", rest)
    match = _DISPLAYED_NUMBER.match(text.strip())
    if match is None:
        return None
    digits = re.sub(r"[, \u00a0\u202f]", "", match["number"]).replace(MINUS, "-")
    decimal_places = len(digits.partition(".")[2])
    has_commas = "," in match["number"] or float(digits) < 1000
    return DisplayedNumber(
        match["before"], float(digits), decimal_places, has_commas, match["gap"], match["unit"]
    )


class FigureComparison(NamedTuple):
    """The code of the problem, and the text to write instead; both empty if equal."""

    problem_code: str = ""
    right_text: str = ""

    @property
    def is_equal(self) -> bool:
        return not self.problem_code


def compare_figure_with_value(text: str, value: Value) -> FigureComparison:
    """Compare a text with its computed value.

    The text must be the value rounded to the digits it shows, in its own unit, or to the
    three digits that calculators show of a measured amount.
    """
    if not isinstance(value, Quantity):
        text_by_bool = {True: "yes", False: "no"}
        right_text = text_by_bool.get(value, "") if isinstance(value, bool) else value
        equal = text.strip().lower() == right_text.lower()
        return FigureComparison() if equal else FigureComparison("E82", right_text)
    displayed = parse_displayed_number(text)
    if displayed is None:
        return FigureComparison("E82", _format_in_readable_unit(value))
    scale = _factor_to_displayed_unit(displayed, value)
    if scale is None:
        return FigureComparison("E83", _format_in_readable_unit(value))
    scaled = value.value * scale
    if abs(scaled - displayed.value) <= 0.5000001 * 10.0**-displayed.decimal_places:
        return FigureComparison()
    if matches_displayed_measurement(displayed.value / scale, value.value, value.unit or ""):
        return FigureComparison()
    return FigureComparison("E82", _format_like_displayed_number(displayed, scaled))


def replace_figure_links_by_text(source: str) -> str:
    """Return Markdown source with the text of checked figures in place of their links.

    >>> replace_figure_links_by_text("An H100 has [80 GB](hw:h100-sxm5-80#memory).")
    'An H100 has 80 GB.'
    """
    return FIGURE_LINK.sub(lambda m: m["text"], source).replace(KEEP_PLAIN, "")


def check_and_unlink_figures(
    text: str,
    figure_pattern: re.Pattern[str],
    parse_context: ParseContext,
    first_line: int,
    last_line: int,
) -> str:
    """Return a text with each checked figure replaced by its words, and report wrong ones.

    `figure_pattern` is FIGURE_LINK or SVG_FIGURE.
    """

    def resolve(match: re.Match[str]) -> str:
        target = parse_figure_link(unescape(match["target"]))
        if target is None:
            message = f"“{match['target'][:60]}” is not the target of a figure."
            location = parse_context.locate_text(match[0], first_line, last_line)
            parse_context.report("E81", *location, message, "Write calc:…, hw:… or model:….")
            return match["text"]
        parse_context.spend_parsing_effort(
            parsing_effort_of_estimate(target.estimate_or_entry_name), match["target"]
        )
        try:
            comparison = compare_figure_with_value(
                match["text"], compute_linked_figure(target).value
            )
        except FigureError as error:
            location = parse_context.locate_text(match[0], first_line, last_line)
            parse_context.report(error.code, *location, error.message, error.hint)
            return match["text"]
        if not comparison.is_equal:
            lines = first_line, last_line
            report_wrong_figure_with_edit(comparison, match["text"], match[0], parse_context, lines)
        return match["text"]

    return figure_pattern.sub(resolve, text).replace(KEEP_PLAIN, "")


def fill_figure_placeholders(text: str, line: int, parse_context: ParseContext) -> str:
    """Replace `{TARGET in UNIT:>WIDTH}` with the value; reports E42, E80, E81, E84."""

    def fill(match: re.Match[str]) -> str:
        target = parse_figure_link(match["target"])
        assert target is not None  # noqa: S101 - the pattern begins with a scheme
        location = parse_context.locate_text(match[0], line, line)
        if target.scheme == "calc":
            parse_context.spend_parsing_effort(
                parsing_effort_of_estimate(target.estimate_or_entry_name), match["target"]
            )
        try:
            value = compute_linked_figure(target).value
            if isinstance(value, Quantity):
                unit = match["unit"]
                number = quantities.convert_quantity(value, unit).value if unit else value.value
                value = f"{number:.{match['digits'] or 0}f}"
        except FigureError as error:
            parse_context.report(error.code, *location, error.message, error.hint)
            return match[0]
        except (UnitMismatchError, KeyError) as error:
            hint = "Write a unit of the same kind behind “in”, such as MiB."
            parse_context.report("E42", *location, f"{error}.", hint)
            return match[0]
        width = int(match["width"] or 0)
        return f"{value}".ljust(width) if match["align"] == "<" else f"{value}".rjust(width)

    return _PADDED_FIGURE.sub(fill, text)


def report_wrong_figure_with_edit(
    comparison: FigureComparison,
    figure_text: str,
    figure_source: str,
    parse_context: ParseContext,
    first_and_last_line: tuple[int, int],
) -> None:
    """Report a figure whose text is not its value, with the edit that corrects it.

    `figure_source` is the figure as it stands in one of the `first_and_last_line` from first to last.
    """
    right = comparison.right_text
    replacement = figure_source.replace(figure_text, right, 1)
    line, column = parse_context.locate_text(figure_source, *first_and_last_line)
    # The same figure may stand there several times; each is reported once.
    while (
        TextEdit(line, column, figure_source, replacement) in parse_context.edits
        and line <= first_and_last_line[1]
    ):
        offset = parse_context.lines[line - 1].find(figure_source, column)
        line, column = (
            TextPosition(line, offset + 1)
            if offset >= 0
            else parse_context.locate_text(figure_source, line + 1, first_and_last_line[1])
        )
    message = f"“{figure_text}” is not the computed value, which is {right}."
    if comparison.problem_code == "E83":
        message = f"“{figure_text}” shows no unit that fits; the value is {right}."
    hint = f"Write [{right}](…)." if figure_source.startswith("[") else f"Write {right}."
    parse_context.report(comparison.problem_code, line, column, message, hint)
    parse_context.edits.append(TextEdit(line, column, figure_source, replacement))


def _factor_to_displayed_unit(displayed: DisplayedNumber, value: Quantity) -> float | None:
    """Return the factor that converts `value` to the unit shown; None if the units do not fit."""
    unit_word, _, _ = displayed.unit.partition(" ")
    factor = _FACTOR_BY_WORD.get(unit_word.lower())
    base_unit = value.unit or ""
    if base_unit not in _UNITS_OF_AMOUNTS:
        if factor is None and unit_word in COUNT_SUFFIX and displayed.space_before_unit == "":
            factor = COUNT_SUFFIX[unit_word]
        percent = 100.0 if unit_word.startswith("%") else 1.0
        return percent / (factor or 1.0)
    unit = "USD" if "$" in displayed.text_before else _recognize_leading_unit(displayed.unit)
    if unit is None or quantities.format_unit_dimension(unit) != quantities.format_unit_dimension(
        base_unit
    ):
        return None
    return quantities.convert_quantity(Quantity(1.0, base_unit), unit).value


def _recognize_leading_unit(text: str) -> str | None:
    """Return the unit at the start of a text such as "GB per GPU" or "tokens/s in all"."""
    words = text.strip()[:60].split()[:4]
    for count in range(len(words), 0, -1):
        unit = quantities.recognize_unit(" ".join(words[:count]).rstrip(".,;"))
        if unit:
            return unit
    return None


def _format_in_readable_unit(value: Quantity) -> str:
    return format_value(value.value, value.unit or "").replace(NBSP, " ")


def _format_like_displayed_number(displayed: DisplayedNumber, value: float) -> str:
    commas = "," if displayed.has_commas else ""
    number = f"{value:{commas}.{displayed.decimal_places}f}".replace("-", MINUS)
    return f"{displayed.text_before}{number}{displayed.space_before_unit}{displayed.unit}"


def prevent_breaks_before_units(text: str) -> str:
    """Join number and unit with no-break spaces."""
    return re.sub(r"(?<=\d) (?=[A-Za-z%µ$])", NBSP, text)


_MOST_STEPS = 4


def render_figure_steps(figure_text: str, output_name: str, computed_figure: ComputedFigure) -> str:
    """Render the steps of one output as HTML; empty if the estimate records no steps for it."""
    steps = _recorded_steps_of_output(output_name.replace("-", "_"), computed_figure)
    if not steps:
        return ""
    displayed_text = escapeHtml(prevent_breaks_before_units(figure_text))
    results = [f"{s.substituted} = {format_value(s.value, s.unit)}" for s in steps]
    lines = "".join(
        f"<code>{escapeHtml(step.formula)}</code><code>{escapeHtml(result)}</code>"
        for step, result in zip(steps, results, strict=True)
    )
    address = escapeHtml(computed_figure.url)
    link = f'<p class="on-screen"><a href="{address}">Change the inputs</a></p>'
    return (
        f'<aside class="side" aria-label="Working for {displayed_text}">'
        f"<p>Working: <b>{displayed_text}</b></p>{lines}{link}</aside>\n"
    )


def _recorded_steps_of_output(output: str, computed_figure: ComputedFigure) -> list[FormulaStep]:
    """Return the recorded steps of an output, if the last one has its value."""
    if computed_figure.estimate is None or not isinstance(computed_figure.value, Quantity):
        return []
    steps = [s for s in computed_figure.estimate.steps if s.output_name == output][-_MOST_STEPS:]
    if not steps or not math.isclose(steps[-1].value, computed_figure.value.value, rel_tol=1e-6):
        return []
    return steps
