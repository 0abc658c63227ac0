"""Draws fenced `figure bar` blocks as charts."""

import math
import re

from markdown_it.common.utils import escapeHtml
from markdown_it.token import Token

from app.markup import lenient_yaml, quantities
from app.markup.checked_figures import (
    FIGURE_LINK,
    check_and_unlink_figures,
    compute_linked_figure,
    parse_figure_link,
)
from app.markup.expressions import FigureError, Value
from app.markup.lenient_yaml import Node, YamlMapping, YamlText
from app.markup.problems import (
    ESTIMATE_EFFORT,
    ParseContext,
)
from app.markup.quantities import Quantity, UnitMismatchError
from app.markup.text import write_hint_for_unknown_word
from app.widgets.bar_charts import (
    RowChart,
    RowPart,
    SegmentedRow,
    build_row_chart_legend,
    draw_row_chart,
)

_WIDE_COLON = "\uff1a"
_ROWS_HINT = (
    "Write rows: on a line, and below it each row with two spaces before it: “  Flour: 50 g”."
)
_CHART_KEYS = ("title", "alt", "unit", "limit", "limit_label", "rows")
_COUNT_TIMES_PART = re.compile(r"^(\d+)\s*[×x*]\s*(.+)$")
_MIN_CHART_AMOUNT, _MAX_CHART_AMOUNT = 1e-9, 1e15
_MOST_ROWS = 50


class _FigureBlockError(ValueError):
    def __init__(self, node: Node, code: str, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.place = (node.line, node.column)
        self.code = code
        self.hint = hint


def render_figure_block(chart_kind: str, token: Token, parse_context: ParseContext) -> str:
    """Render a fenced `figure` block as HTML; report an invalid block and leave it out."""
    line = token.map[0] + 2 if token.map else 1
    if chart_kind != "bar":
        hint = "Write ```figure bar."
        parse_context.report("E13", line - 1, 1, f"There is no figure “{chart_kind}”.", hint)
        return ""
    last = line + token.content.count("\n")
    token.content = check_and_unlink_figures(token.content, FIGURE_LINK, parse_context, line, last)
    fields = lenient_yaml.parse_mapping(
        token.content, parse_context.report, line, known_keys=_CHART_KEYS
    )
    parse_context.spend_parsing_effort(
        ESTIMATE_EFFORT * token.content.count("calc:"), token.content
    )
    try:
        return _render_row_chart(_parse_row_chart(fields))
    except _FigureBlockError as error:
        parse_context.report(error.code, *error.place, str(error), error.hint)
        return ""


def _parse_row_chart(fields: YamlMapping) -> RowChart:
    for name, key in fields.keys.items():
        if name not in _CHART_KEYS:
            hint = _ROWS_HINT
            if lenient_yaml.text_or_empty(fields.values.get("rows")):
                hint = write_hint_for_unknown_word(name, _CHART_KEYS)
            raise _FigureBlockError(key, "E12", f"“{name}” is not a key of a figure.", hint)
    unit = lenient_yaml.text_or_empty(fields.values.get("unit"))
    if unit and quantities.recognize_unit(unit) is None:
        hint = quantities.suggest_closest_unit_or_empty(unit)
        hint = hint or f"{quantities.UNIT_EXAMPLES}; or leave unit out and write the numbers alone."
        message = f"“{unit}” is not a known unit."
        raise _FigureBlockError(fields.values["unit"], "E42", message, hint)
    unit = quantities.recognize_unit(unit) or unit
    rows = fields.values.get("rows")
    if not isinstance(rows, YamlMapping) or not rows.values:
        hint = _ROWS_HINT
        if _WIDE_COLON in lenient_yaml.text_or_empty(rows):
            hint = f"Write a plain colon and a space in place of “{_WIDE_COLON}”: “  Flour: 50 g”."
        raise _FigureBlockError(fields, "E13", "The figure has no rows.", hint)
    if len(rows.values) > _MOST_ROWS:
        message = f"The figure has {len(rows.values)} rows."
        raise _FigureBlockError(fields, "E88", message, f"Draw at most {_MOST_ROWS}.")
    segmented_rows = []
    for label, node in rows.values.items():
        parts = node.values if isinstance(node, YamlMapping) else {label: node}
        amounts = tuple(
            RowPart(part, _parse_amount_in_unit(value, unit)) for part, value in parts.items()
        )
        segmented_rows.append(SegmentedRow(label, amounts))
    limit = fields.values.get("limit")
    return RowChart(
        lenient_yaml.text_or_empty(fields.values.get("title")),
        lenient_yaml.text_or_empty(fields.values.get("alt")),
        unit,
        tuple(segmented_rows),
        _parse_amount_in_unit(limit, unit) if limit is not None else None,
        lenient_yaml.text_or_empty(fields.values.get("limit_label")) or "limit",
    )


def _parse_amount_in_unit(node: Node, unit: str) -> float:
    """Read a value such as `8 × hw:h100-sxm5-80#memory` or `640 GB`, converted to `unit`."""
    if not isinstance(node, YamlText):
        raise _FigureBlockError(node, "E13", "A bar needs one value.")
    count_match = _COUNT_TIMES_PART.match(node.text)
    factor = float(count_match[1]) if count_match else 1.0
    value_text = count_match[2] if count_match else node.text
    target = parse_figure_link(value_text)
    try:
        value: Value | None = quantities.parse_quantity(value_text)
        if target:
            value = compute_linked_figure(target).value
        if not isinstance(value, Quantity):
            raise _not_an_amount_error(node, value_text)
        amount = factor * quantities.convert_quantity(value, unit).value
    except FigureError as error:
        raise _FigureBlockError(node, error.code, error.message, error.hint) from None
    except UnitMismatchError as error:
        message = f"“{value_text[:60]}” does not fit: {error}."
        raise _FigureBlockError(node, "E42", message) from None
    except OverflowError:
        amount = math.inf
    if amount and not _MIN_CHART_AMOUNT <= amount <= _MAX_CHART_AMOUNT:
        message = f"“{value_text[:60]}” cannot be drawn."
        raise _FigureBlockError(node, "E40", message, "Write 0, or 1e-9 to 1e15 of the unit.")
    return amount


def _not_an_amount_error(node: YamlText, written: str) -> _FigureBlockError:
    """Build the error for text that is not an amount; name the unit it may have meant."""
    if not re.match(r"\W?\d", written):
        return _FigureBlockError(node, "E40", f"“{written}” is not a number.")
    unit = re.sub(r"^[^A-Za-z%°µ$€]+", "", written)
    hint = quantities.suggest_closest_unit_or_empty(unit)
    hint = hint or f"{quantities.UNIT_EXAMPLES}; or write the number alone."
    return _FigureBlockError(node, "E42", f"“{written}” has a unit that is not known.", hint)


def _render_row_chart(chart: RowChart) -> str:
    legend_entries = " ".join(
        f'<span class="key {entry.css_class}">{entry.text}</span>'
        for entry in build_row_chart_legend(chart)
    )
    legend = f' <span class="row">{legend_entries}</span>' if legend_entries else ""
    return (
        f'<figure class="fig">{draw_row_chart(chart)}'
        f"<figcaption>{escapeHtml(chart.title)}{legend}</figcaption></figure>\n"
    )
