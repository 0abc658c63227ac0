"""Figures drawn from computed values: stacked bars against a limit."""

import dataclasses
import math
import re

from markdown_it.common.utils import escapeHtml
from markdown_it.token import Token

from app.content import quantities, strict_yaml
from app.content.estimates import Unanswerable
from app.content.identity import did_you_mean
from app.content.limits import AN_ESTIMATE
from app.content.manuscript import Manuscript
from app.content.markdown import figures
from app.content.quantities import Quantity, UnitMismatch
from app.content.strict_yaml import Mapped, Node, Scalar
from app.estimator.units import NBSP, format_number

_KEYS = ("title", "alt", "unit", "limit", "limit_label", "rows")
# Component: class of its bar, letter, class of its key, class of a label on it.
_COMPONENTS = {
    "weights": ("w", "W", "k-w", ""),
    "gradients": ("gr", "G", "k-g", " on-gr"),
    "optimizer": ("o", "O", "k-o", ""),
    "activations": ("a", "A", "k-a", " on-a"),
    "kv": ("k", "K", "k-k", ""),
    "overhead": ("r", "R", "k-r", ""),
}
_NAMES = {"kv": "KV cache"}
_TIMES = re.compile(r"^(\d+)\s*[×x*]\s*(.+)$")
_ROW = 72
_LEAST, _MOST = 1e-9, 1e15
_MOST_ROWS = 50


@dataclasses.dataclass(frozen=True, slots=True)
class Part:
    """One segment of a bar, in the unit of the figure."""

    name: str
    value: float


@dataclasses.dataclass(frozen=True, slots=True)
class Bar:
    """One bar: what it shows, and its parts."""

    label: str
    parts: tuple[Part, ...]

    @property
    def total(self) -> float:
        """The length of the bar."""
        return sum(p.value for p in self.parts)


@dataclasses.dataclass(frozen=True, slots=True)
class Drawing:
    """All that a figure of bars shows, in one unit."""

    title: str
    alt: str
    unit: str
    bars: tuple[Bar, ...]
    limit: float | None
    limit_label: str

    @property
    def step(self) -> float:
        """The distance of two marks on the axis: 1, 2 or 5 times a power of ten."""
        high = max([b.total for b in self.bars] + [self.limit or 0.0]) or 1.0
        power = 10.0 ** math.floor(math.log10(high / 4))
        return next(power * n for n in (1, 2, 5, 10) if power * n * 5 >= high * 1.04)

    @property
    def most(self) -> float:
        """The end of the axis: the first mark beyond everything drawn."""
        high = max([b.total for b in self.bars] + [self.limit or 0.0]) or 1.0
        return math.ceil(high * 1.04 / self.step) * self.step


class _Unusable(ValueError):  # noqa: N818 - ends the drawing of one figure
    def __init__(self, node: Node, code: str, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.place = (node.line, node.column)
        self.code = code
        self.hint = hint


def draw(kind: str, token: Token, sheet: Manuscript) -> str:
    """The HTML of a fenced `figure` block; a broken one is reported and left out."""
    line = token.map[0] + 2 if token.map else 1
    if kind != "bar":
        hint = "Write ```figure bar."
        sheet.report("E13", line - 1, 1, f"There is no figure “{kind}”.", hint)
        return ""
    fields = strict_yaml.read(token.content, sheet.report, line)
    sheet.spend(AN_ESTIMATE * token.content.count("calc:"), token.content)
    try:
        return _svg(_read(fields))
    except _Unusable as error:
        sheet.report(error.code, *error.place, str(error), error.hint)
        return ""


def _read(fields: Mapped) -> Drawing:
    for name, key in fields.keys.items():
        if name not in _KEYS:
            hint = did_you_mean(name, _KEYS)
            raise _Unusable(key, "E12", f"“{name}” is not a key of a figure.", hint)
    unit = strict_yaml.word(fields.values.get("unit"))
    if unit and quantities.known_unit(unit) is None:
        raise _Unusable(fields.values["unit"], "E42", f"“{unit}” is not a known unit.")
    rows = fields.values.get("rows")
    if not isinstance(rows, Mapped) or not rows.values:
        hint = "Write rows: and below it “Label: calc:…#output”."
        raise _Unusable(fields, "E13", "The figure has no rows.", hint)
    if len(rows.values) > _MOST_ROWS:
        message = f"The figure has {len(rows.values)} rows."
        raise _Unusable(fields, "E88", message, f"Draw at most {_MOST_ROWS}.")
    bars = tuple(
        Bar(label, _parts(label, node, unit)) for label, node in rows.values.items()
    )
    limit = fields.values.get("limit")
    return Drawing(
        strict_yaml.word(fields.values.get("title")),
        strict_yaml.word(fields.values.get("alt")),
        unit,
        bars,
        _amount(limit, unit) if limit is not None else None,
        strict_yaml.word(fields.values.get("limit_label")) or "limit",
    )


def _parts(label: str, node: Node, unit: str) -> tuple[Part, ...]:
    if isinstance(node, Mapped):
        return tuple(Part(n, _amount(v, unit)) for n, v in node.values.items())
    return (Part(label, _amount(node, unit)),)


def _amount(node: Node, unit: str) -> float:
    """A value such as `8 × hw:h100-sxm5-80#memory` or `640 GB`, in `unit`."""
    if not isinstance(node, Scalar):
        raise _Unusable(node, "E13", "A bar needs one value.")
    times = _TIMES.match(node.text)
    factor, written = (float(times[1]), times[2]) if times else (1.0, node.text)
    target = figures.read_target(written)
    try:
        value = figures.answer(target).value if target else quantities.read(written)
        if not isinstance(value, Quantity):
            raise _Unusable(node, "E40", f"“{written}” is not a number.")
        amount = factor * quantities.convert(value, unit).value
    except Unanswerable as error:
        raise _Unusable(node, error.code, error.message, error.hint) from None
    except UnitMismatch as error:
        raise _Unusable(node, "E42", f"{error}.") from None
    except OverflowError:
        amount = math.inf
    if amount and not _LEAST <= amount <= _MOST:
        message = f"“{written[:60]}” cannot be drawn."
        raise _Unusable(node, "E40", message, "Write 0, or 1e-9 to 1e15 of the unit.")
    return amount


# --- the drawing ---


def _svg(figure: Drawing) -> str:
    height = len(figure.bars) * _ROW + 34
    inside = [_bar(bar, figure, index) for index, bar in enumerate(figure.bars)]
    inside += _axis(figure, height)
    label = escapeHtml(figure.alt or _sentence(figure))
    names = dict.fromkeys(p.name for b in figure.bars for p in b.parts)
    keys = " ".join(
        f'<span class="key {_COMPONENTS[n][2]}">{_label(n)}</span>'
        for n in names
        if n in _COMPONENTS
    )
    row = f' <span class="row">{keys}</span>' if keys else ""
    return (
        f'<figure class="fig"><svg class="g" role="img" aria-label="{label}" '
        f'height="{height}">{"".join(inside)}</svg>'
        f"<figcaption>{escapeHtml(figure.title)}{row}</figcaption></figure>\n"
    )


def _bar(bar: Bar, figure: Drawing, index: int) -> str:
    top = index * _ROW
    reading = _written(bar.total, figure)
    over = bar.total - figure.limit if figure.limit is not None else 0.0
    if over > 0:
        reading += f", {_written(over, figure)} over"
    label = f"{escapeHtml(bar.label)}: {reading}"
    out = [f'<text class="b" x="0" y="{top + 18}">{label}</text>']
    start = 0.0
    for part in bar.parts:
        out.append(_segment(part, start, top, figure))
        start += part.value
    if figure.limit is not None:
        x, width = _percent(figure.limit, figure), _percent(max(over, 0.0), figure)
        if over > 0:
            place = f'x="{x}" y="{top + 26}" width="{width}" height="34"'
            out.append(f'<rect class="over" {place}/>')
        ends = f'y1="{top + 22}" y2="{top + 66}"'
        out.append(f'<line class="cap" x1="{x}" x2="{x}" {ends}/>')
    return "".join(out)


def _segment(part: Part, start: float, top: int, figure: Drawing) -> str:
    look, letter, _, on = _COMPONENTS.get(part.name, ("fill", "", "", ""))
    x, width = _percent(start, figure), _percent(part.value, figure)
    rect = (
        f'<rect class="{look} gap" x="{x}" y="{top + 26}" width="{width}" height="34"/>'
    )
    share = part.value / figure.most
    if not letter or share < 0.045:
        return rect
    number = format_number(float(f"{part.value:.3g}"))
    name = _label(part.name) if share > 0.3 else letter
    text = f"{name} {number}" if share > 0.1 else letter
    middle = _percent(start + part.value / 2, figure)
    return (
        f'{rect}<text class="in-bar{on} m" x="{middle}" y="{top + 47.5}">{text}</text>'
    )


def _axis(figure: Drawing, height: int) -> list[str]:
    base = height - 34
    out = []
    marks = round(figure.most / figure.step)
    for mark in range(marks + 1):
        x = f"{mark / marks * 100:.2f}%"
        look = {0: "", marks: ' class="e"'}.get(mark, ' class="m"')
        value = format_number(float(f"{mark * figure.step:.6g}"))
        text = f"{value}{NBSP}{figure.unit}".strip() if mark == marks else value
        out.append(f'<line class="ax" x1="{x}" x2="{x}" y1="{base - 6}" y2="{base}"/>')
        out.append(f'<text{look} x="{x}" y="{base + 14}">{text}</text>')
    if figure.limit is not None:
        x = _percent(figure.limit, figure)
        words = f"{_written(figure.limit, figure)}, {escapeHtml(figure.limit_label)}"
        side = "e" if figure.limit > figure.most / 2 else "s"
        out.append(f'<text class="{side}" x="{x}" y="{base + 31}">{words}</text>')
    return out


def _percent(value: float, figure: Drawing) -> str:
    return f"{value / figure.most * 100:.2f}%"


def _written(value: float, figure: Drawing) -> str:
    number = format_number(float(f"{value:.6g}"))
    return f"{number}{NBSP}{figure.unit}".strip()


def _label(name: str) -> str:
    return _NAMES.get(name, name.capitalize())


def _sentence(figure: Drawing) -> str:
    """The whole drawing in words, for those who do not see it."""
    said = []
    for bar in figure.bars:
        parts = ", ".join(
            f"{_label(p.name).lower()} {_written(p.value, figure)}" for p in bar.parts
        )
        alone = len(bar.parts) == 1 and bar.parts[0].name == bar.label
        text = f"{bar.label}: {_written(bar.total, figure)}"
        said.append(text if alone else f"{text}, of which {parts}")
    if figure.limit is not None:
        said.append(f"the limit is {_written(figure.limit, figure)}")
    sentence = "; ".join(said).replace(NBSP, " ")
    return f"{figure.title}. {sentence}." if figure.title else f"{sentence}."
