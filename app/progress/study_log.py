"""The study log: a square for each day of the last weeks, darker where more was."""

import dataclasses
import datetime as dt
from collections.abc import Mapping

WEEKS = 13
STEP = 19
SIDE = 17
LEFT = 32
TOP = 20
_LEVELS = (1, 10, 30, 60)  # answers and reviews of a day
_LOOKS = ("h0", "h1", "h2", "h3", "h4")
_FEW_WEEKS = 2


@dataclasses.dataclass(frozen=True, slots=True)
class Square:
    """One day; x and y in pixels, `look` from h0 (nothing) to h4 (much)."""

    x: int
    y: int
    look: str
    today: bool


@dataclasses.dataclass(frozen=True, slots=True)
class Label:
    """A month above its first week."""

    x: int
    words: str


@dataclasses.dataclass(frozen=True, slots=True)
class Row:
    """A week in numbers, from Monday on; this week ends with today."""

    monday: dt.date
    counts: tuple[int, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class StudyLog:
    """The squares of the last weeks; `studied` of `days` had anything in them."""

    squares: tuple[Square, ...]
    months: tuple[Label, ...]
    rows: tuple[Row, ...]
    studied: int
    days: int
    first: dt.date
    width: int = LEFT + WEEKS * STEP
    height: int = TOP + 7 * STEP


def first_day(today: dt.date) -> dt.date:
    """The Monday with which the log begins."""
    return today - dt.timedelta(days=today.weekday(), weeks=WEEKS - 1)


def study_log(counts: Mapping[str, int], today: dt.date) -> StudyLog:
    """The log up to `today`; `counts` are answers and reviews by ISO date."""
    first = first_day(today)
    days = [first + dt.timedelta(days=n) for n in range((today - first).days + 1)]
    found = [counts.get(day.isoformat(), 0) for day in days]
    return StudyLog(
        squares=tuple(
            _square(n, found[n], today=day == today) for n, day in enumerate(days)
        ),
        months=_months(first),
        rows=tuple(
            Row(days[n], tuple(found[n : n + 7])) for n in range(0, len(days), 7)
        ),
        studied=sum(count > 0 for count in found),
        days=len(days),
        first=first,
    )


def _square(number: int, count: int, *, today: bool) -> Square:
    week, weekday = divmod(number, 7)
    level = sum(count >= least for least in _LEVELS)
    return Square(LEFT + week * STEP, TOP + weekday * STEP, _LOOKS[level], today)


def _months(first: dt.date) -> tuple[Label, ...]:
    mondays = [first + dt.timedelta(weeks=n) for n in range(WEEKS)]
    starts = [
        n
        for n, day in enumerate(mondays)
        if n == 0 or day.month != mondays[n - 1].month
    ]
    # A month that ends at once would stand in the way of the next one's name.
    if len(starts) > 1 and starts[1] - starts[0] < _FEW_WEEKS:
        starts = starts[1:]
    return tuple(Label(LEFT + n * STEP, f"{mondays[n]:%b}") for n in starts)
