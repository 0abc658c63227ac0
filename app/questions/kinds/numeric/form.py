"""A number on the page: the units to choose from, and the answers to look at."""

import dataclasses
import re
from collections.abc import Iterator
from html import escape

from app.content.numbers.units import UNITS
from app.estimator.units import format_number, with_unit
from app.questions.faces import CardFaces, paragraphs, titled_block
from app.questions.kind import State
from app.questions.kinds.numeric.grade import unit_of
from app.questions.kinds.numeric.model import AcceptedRange, NumericAnswer

_UNITS = {
    "B": ("kB", "MB", "GB", "GiB", "TB", "TiB", "PB"),
    "B/s": ("MB/s", "Gbit/s", "GB/s", "TB/s"),
    "s": ("µs", "ms", "s", "min", "h", "days"),
    "W": ("W", "kW", "MW"),
    "Wh": ("Wh", "kWh", "MWh"),
    "FLOP": ("GFLOP", "TFLOP", "PFLOP", "EFLOP", "ZFLOP"),
    "FLOP/s": ("TFLOP/s", "PFLOP/s", "EFLOP/s"),
}
_TOLERANCE = re.compile(r"\s*(?:±|\+-|\+/-|\.\.|sig\b).*", re.DOTALL)
_OTHER_UNIT = "kB"


@dataclasses.dataclass(frozen=True, slots=True)
class UnitChoices:
    """The unit in which a number is asked for, and those of its kind to choose from.

    Both are empty for plain numbers; counts have no choice.
    """

    unit: str
    units: tuple[str, ...]


def units_of(answer: NumericAnswer) -> UnitChoices:
    """What stands beside the field."""
    unit = unit_of(answer)
    choices = _UNITS.get(UNITS.get(unit, (unit, 1.0))[0], ())
    return UnitChoices(unit, choices if unit in choices or not choices else (unit, *choices))


def faces_of(answer: NumericAnswer) -> CardFaces:
    """The unit that is asked for, then the number and what was foreseen."""
    right = [o.range for o in answer.options if o.right and o.range]
    unit = right[0].unit if right else ""
    foreseen = [
        f"<b>{_shown(o.range)}</b> {o.feedback.html}"
        for o in answer.options
        if not o.right and o.range and o.feedback.html
    ]
    return CardFaces(
        f"<p>A number in {escape(unit)}.</p>" if unit else "<p>A number.</p>",
        paragraphs([f"<b>{_shown(found)}</b>" for found in right[:1]])
        + titled_block("Not right", foreseen),
    )


def states_of(answer: NumericAnswer) -> Iterator[State]:
    """Each option, the right number in another unit, another number, and none."""
    right: list[str] = []
    for option in sorted(answer.options, key=lambda o: not o.right):
        number = _TOLERANCE.sub("", option.template).strip()
        if option.right:
            right.append(number)
        yield number, {"answer": [number]}
    if right:
        number, _, unit = right[0].partition(" ")
        if unit:
            other = _OTHER_UNIT if unit != _OTHER_UNIT else "TB"
            yield f"{number} {other}", {"answer": [f"{number} {other}"]}
    yield "Another number", {"answer": ["987654321"]}
    yield "What is no number", {"answer": ["many"]}


def _shown(found: AcceptedRange) -> str:
    number = format_number(found.center / UNITS.get(found.unit, ("", 1.0))[1], 6)
    return escape(with_unit(number, found.unit))
