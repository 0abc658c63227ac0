"""Numeric answers as values: ranges, and what it means to answer inside one."""

import dataclasses

from app.content.model import NO_TEXT, RichText


@dataclasses.dataclass(frozen=True, slots=True)
class AcceptedRange:
    """An accepted or foreseen number: low <= x <= high in base units of `unit`.

    `center` is the authored value; `unit` the unit it is shown in ("GB" or "").
    `significant` > 0 asks for that many significant digits instead of a range.
    """

    center: float
    low: float
    high: float
    unit: str = ""
    significant: int = 0


@dataclasses.dataclass(frozen=True, slots=True)
class NumericOption:
    """A range with what it means to answer inside it; templates until drawn."""

    key: str
    template: str
    range: AcceptedRange | None
    right: bool
    feedback: RichText = NO_TEXT
    credit: float = 0.0


@dataclasses.dataclass(frozen=True, slots=True)
class NumericAnswer:
    """A number to be typed, with tolerance and unit."""

    options: tuple[NumericOption, ...]
