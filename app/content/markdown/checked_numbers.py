"""Checked figures: a number in the text, and the computation that it stands for."""

import dataclasses
import re
from urllib.parse import parse_qsl, unquote

from app.content.numbers import estimates, quantities
from app.content.numbers.estimates import FigureError, Value
from app.content.numbers.quantities import Quantity
from app.estimator.estimate import Estimate
from app.estimator.hardware.parts import address_of
from app.estimator.units import COUNT_SUFFIX, MINUS, NBSP

SCHEMES = ("calc", "hw", "model")
_WORDS = [
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
_SPELLED = {"thousand": 1e3, "million": 1e6, "billion": 1e9, "trillion": 1e12}
_NUMBER = re.compile(
    r"^(?P<before>(?:about |around |nearly |over |~|≈ ?)?\$?)"
    r"(?P<number>[-−+]?\d(?:[\d,]|[ \u00a0\u202f](?=\d{3}))*(?:\.\d+)?)"
    r"(?P<gap>[ \u00a0\u202f]*)(?P<unit>.*)$",
    re.DOTALL,
)
_PHYSICAL = frozenset(
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
    """What a `calc:`, `hw:` or `model:` link asks for."""

    scheme: str
    name: str
    inputs: tuple[tuple[str, str], ...]
    field: str


@dataclasses.dataclass(frozen=True, slots=True)
class ComputedFigure:
    """The computed value of a target, where its working is, and the estimate."""

    value: Value
    address: str
    title: str
    estimate: Estimate | None = None


def read_target(href: str) -> FigureLink | None:
    """The target of a link, or None for a link to anything else."""
    scheme, colon, rest = href.partition(":")
    if not colon or scheme not in SCHEMES:
        return None
    path, _, field = unquote(rest).partition("#")
    raw_query = rest.partition("#")[0].partition("?")[2]
    name = path.partition("?")[0]
    pairs = parse_qsl(raw_query.replace("+", "%2B"), keep_blank_values=True)
    return FigureLink(scheme, name, tuple(pairs), field)


def answer(target: FigureLink) -> ComputedFigure:
    """Compute a target; raises Unanswerable."""
    if not target.field:
        hint = "End the address with #output, for example #total."
        raise FigureError("E81", f"The link to {target.name} names no output.", hint)
    inputs = dict(target.inputs)
    if target.scheme == "calc":
        estimate = estimates.compute(target.name, inputs)
        value = estimates.value(target.name, inputs, target.field)
        address = estimates.address(target.name, inputs, target.field)
        return ComputedFigure(value, address, "", estimate)
    value, entry = estimates.catalogue_value(target.scheme, target.name, target.field)
    title = f"{getattr(entry, 'name', target.name)}, {target.field.replace('_', ' ')}"
    if target.scheme == "hw":  # the page of the part has the source of each value
        field = target.field.replace("-", "_")
        return ComputedFigure(value, address_of(getattr(entry, "id", target.name), field), title)
    sources = [s for s in getattr(entry, "source", ()) if s.startswith("https://")]
    return ComputedFigure(value, sources[0].split()[0] if sources else "", title)


@dataclasses.dataclass(frozen=True, slots=True)
class DisplayedNumber:
    """A number as the text shows it."""

    before: str
    value: float
    places: int
    commas: bool
    gap: str
    unit: str


def read_shown(text: str) -> DisplayedNumber | None:
    """The number at the start of a link text, or None."""
    first, _, rest = text.strip().partition(" ")
    if first.lower() in _WORDS:
        return DisplayedNumber("", _WORDS.index(first.lower()), 0, False, " ", rest)
    match = _NUMBER.match(text.strip())
    if match is None:
        return None
    digits = re.sub(r"[, \u00a0\u202f]", "", match["number"]).replace(MINUS, "-")
    places = len(digits.partition(".")[2])
    commas = "," in match["number"] or float(digits) < 1000
    return DisplayedNumber(
        match["before"], float(digits), places, commas, match["gap"], match["unit"]
    )


def verify(text: str, value: Value) -> tuple[str, str]:
    """Compare a text with the value it claims: (code, what to write); ("", "") if so.

    The text must be the value rounded to the digits it shows, in its own unit.
    """
    if not isinstance(value, Quantity):
        words = {True: "yes", False: "no"}
        right = words.get(value, "") if isinstance(value, bool) else value
        return ("", "") if text.strip().lower() == right.lower() else ("E82", right)
    shown = read_shown(text)
    if shown is None:
        return "E82", _default(value)
    scale = _scale(shown, value)
    if scale is None:
        return "E83", _default(value)
    scaled = value.value * scale
    if abs(scaled - shown.value) <= 0.5000001 * 10.0**-shown.places:
        return "", ""
    return "E82", _rewritten(shown, scaled)


def _scale(shown: DisplayedNumber, value: Quantity) -> float | None:
    """What the value is multiplied with to be counted in the unit shown."""
    word, _, _ = shown.unit.partition(" ")
    factor = _SPELLED.get(word.lower())
    base = value.unit or ""
    if base not in _PHYSICAL:
        if factor is None and word in COUNT_SUFFIX and shown.gap == "":
            factor = COUNT_SUFFIX[word]
        percent = 100.0 if word.startswith("%") else 1.0
        return percent / (factor or 1.0)
    unit = "USD" if "$" in shown.before else _unit_of(shown.unit)
    if unit is None or quantities.kind(unit) != quantities.kind(base):
        return None
    return quantities.convert(Quantity(1.0, base), unit).value


def _unit_of(text: str) -> str | None:
    """The unit at the start of a text such as "GB per GPU" or "tokens/s in all"."""
    words = text.strip()[:60].split()[:4]
    for count in range(len(words), 0, -1):
        unit = quantities.known_unit(" ".join(words[:count]).rstrip(".,;"))
        if unit:
            return unit
    return None


def _default(value: Quantity) -> str:
    from app.estimator.units import format_value  # noqa: PLC0415 - only for messages

    return format_value(value.value, value.unit or "").replace(NBSP, " ")


def _rewritten(shown: DisplayedNumber, value: float) -> str:
    number = f"{value:,.{shown.places}f}" if shown.commas else f"{value:.{shown.places}f}"
    number = number.replace("-", MINUS)
    return f"{shown.before}{number}{shown.gap}{shown.unit}"


def unbroken(text: str) -> str:
    """A figure whose number and unit stay on one line."""
    return re.sub(r"(?<=\d) (?=[A-Za-z%µ$])", NBSP, text)
