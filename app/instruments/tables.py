"""A table of an estimate as it is shown: HTML in which every text is escaped."""

import re
from collections.abc import Mapping, Sequence

from markupsafe import Markup

from app.drawings.svg import escaped
from app.estimator.estimate import ResultTable
from app.estimator.units import NBSP, format_value

_SUMS = frozenset({"Needed", "Total", "Sum", "All"})
_PLAIN_NUMBER = re.compile(rf"[−\d][\d,.]*(?:[ {NBSP}]?%)?")
_Cell = tuple[str, bool]


def show_table(table: ResultTable, keys: Mapping[str, str]) -> Markup:
    """A table in words; rows named like a component get its color from `keys`.

    Columns with a number in them are set as numbers. A row whose first cell is a
    number has no name.
    """
    read = [[_cell(cell) for cell in row] for row in table.rows if row]
    kinds = [
        ' class="n"' if any(row[i][1] for row in read) else "" for i in range(len(table.columns))
    ]
    label = escaped(table.label)
    heads = "".join(
        f'<th scope="col"{kind}>{escaped(words)}</th>'
        for words, kind in zip(table.columns, kinds, strict=True)
    )
    rows = "".join([_row(cells, kinds, keys) for cells in read])
    return Markup(  # noqa: S704 - every text in it went through `escaped`
        f'<div class="scroll" role="region" tabindex="0" aria-label="{label}">\n'
        f'<table class="t"><caption class="sr">{label}</caption><thead><tr>{heads}'
        f"</tr></thead><tbody>\n{rows}</tbody></table></div>"
    )


def _row(cells: Sequence[_Cell], kinds: Sequence[str], keys: Mapping[str, str]) -> str:
    shown = [
        f"<td{kind}>{escaped(words)}</td>" for (words, _), kind in zip(cells, kinds, strict=True)
    ]
    name, is_number = cells[0]
    if is_number:
        return f"<tr>{''.join(shown)}</tr>\n"
    key, words = keys.get(name), escaped(name)
    if key:
        words = f'<span class="key {key}">{words}</span>'
    kind = ' class="sum"' if name in _SUMS else ""
    return f'<tr{kind}><th scope="row">{words}</th>{"".join(shown[1:])}</tr>\n'


def _cell(cell: str | tuple[float, str]) -> _Cell:
    """The words of a cell, and whether they are a number."""
    if isinstance(cell, str):
        return cell, _PLAIN_NUMBER.fullmatch(cell) is not None
    return format_value(cell[0], cell[1]), True
