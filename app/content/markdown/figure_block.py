"""What a fenced `figure` block says: computed values, to be drawn as rows."""

import math
import re

from markdown_it.common.utils import escapeHtml
from markdown_it.token import Token

from app.content import strict_yaml
from app.content.identity import did_you_mean
from app.content.limits import AN_ESTIMATE
from app.content.markdown import checked_numbers as numbers
from app.content.numbers import quantities
from app.content.numbers.estimates import FigureError
from app.content.numbers.quantities import Quantity, UnitMismatchError
from app.content.source_file import SourceFile
from app.content.strict_yaml import Node, YamlMapping, YamlText
from app.drawings.rows import LabeledSum, RowChart, draw_rows, key_of

_KEYS = ("title", "alt", "unit", "limit", "limit_label", "rows")
_TIMES = re.compile(r"^(\d+)\s*[×x*]\s*(.+)$")
_LEAST, _MOST = 1e-9, 1e15
_MOST_ROWS = 50
Parts = tuple[tuple[str, float], ...]


class _FigureBlockError(ValueError):
    def __init__(self, node: Node, code: str, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.place = (node.line, node.column)
        self.code = code
        self.hint = hint


def draw(kind: str, token: Token, sheet: SourceFile) -> str:
    """The HTML of a fenced `figure` block; a broken one is reported and left out."""
    line = token.map[0] + 2 if token.map else 1
    if kind != "bar":
        hint = "Write ```figure bar."
        sheet.report("E13", line - 1, 1, f"There is no figure “{kind}”.", hint)
        return ""
    fields = strict_yaml.read(token.content, sheet.report, line)
    sheet.spend(AN_ESTIMATE * token.content.count("calc:"), token.content)
    try:
        return _html(_read(fields))
    except _FigureBlockError as error:
        sheet.report(error.code, *error.place, str(error), error.hint)
        return ""


def _read(fields: YamlMapping) -> RowChart:
    for name, key in fields.keys.items():
        if name not in _KEYS:
            hint = did_you_mean(name, _KEYS)
            raise _FigureBlockError(key, "E12", f"“{name}” is not a key of a figure.", hint)
    unit = strict_yaml.single_text(fields.values.get("unit"))
    if unit and quantities.known_unit(unit) is None:
        hint = quantities.unit_meant(unit)
        message = f"“{unit}” is not a known unit."
        raise _FigureBlockError(fields.values["unit"], "E42", message, hint)
    rows = fields.values.get("rows")
    if not isinstance(rows, YamlMapping) or not rows.values:
        hint = "Write rows: and below it “Label: calc:…#output”."
        raise _FigureBlockError(fields, "E13", "The figure has no rows.", hint)
    if len(rows.values) > _MOST_ROWS:
        message = f"The figure has {len(rows.values)} rows."
        raise _FigureBlockError(fields, "E88", message, f"Draw at most {_MOST_ROWS}.")
    drawn = tuple(
        LabeledSum(label, _parts(label, node, unit)) for label, node in rows.values.items()
    )
    limit = fields.values.get("limit")
    return RowChart(
        strict_yaml.single_text(fields.values.get("title")),
        strict_yaml.single_text(fields.values.get("alt")),
        unit,
        drawn,
        _amount(limit, unit) if limit is not None else None,
        strict_yaml.single_text(fields.values.get("limit_label")) or "limit",
    )


def _parts(label: str, node: Node, unit: str) -> Parts:
    if isinstance(node, YamlMapping):
        return tuple((n, _amount(v, unit)) for n, v in node.values.items())
    return ((label, _amount(node, unit)),)


def _amount(node: Node, unit: str) -> float:
    """A value such as `8 × hw:h100-sxm5-80#memory` or `640 GB`, in `unit`."""
    if not isinstance(node, YamlText):
        raise _FigureBlockError(node, "E13", "A bar needs one value.")
    times = _TIMES.match(node.text)
    factor, written = (float(times[1]), times[2]) if times else (1.0, node.text)
    target = numbers.read_target(written)
    try:
        value = numbers.answer(target).value if target else quantities.parse_quantity(written)
        if not isinstance(value, Quantity):
            raise _no_number(node, written)
        amount = factor * quantities.convert(value, unit).value
    except FigureError as error:
        raise _FigureBlockError(node, error.code, error.message, error.hint) from None
    except UnitMismatchError as error:
        message = f"“{written[:60]}” does not fit: {error}."
        raise _FigureBlockError(node, "E42", message) from None
    except OverflowError:
        amount = math.inf
    if amount and not _LEAST <= amount <= _MOST:
        message = f"“{written[:60]}” cannot be drawn."
        raise _FigureBlockError(node, "E40", message, "Write 0, or 1e-9 to 1e15 of the unit.")
    return amount


def _no_number(node: YamlText, written: str) -> _FigureBlockError:
    """What is said of words that are no amount: their unit, after a number."""
    if not re.match(r"\W?\d", written):
        return _FigureBlockError(node, "E40", f"“{written}” is not a number.")
    hint = "Write a unit that the guide lists under “Units”, or the number alone."
    return _FigureBlockError(node, "E42", f"“{written}” has a unit that is not known.", hint)


def _html(rows: RowChart) -> str:
    keys = " ".join(f'<span class="key {color}">{words}</span>' for color, words in key_of(rows))
    key = f' <span class="row">{keys}</span>' if keys else ""
    return (
        f'<figure class="fig">{draw_rows(rows)}'
        f"<figcaption>{escapeHtml(rows.title)}{key}</figcaption></figure>\n"
    )
