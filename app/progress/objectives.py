"""Mastery by objective as a table draws it: now, four weeks ago, and the range."""

import dataclasses
from collections.abc import Sequence

from app.mastery.standing import DomainStanding, Standing

AGO = 28  # days between the two dots of a row
MINUS = "\u2212"


@dataclasses.dataclass(frozen=True, slots=True)
class Row:
    """One objective; places on the line are per cent of it, e.g. “81%”.

    `now` is empty while too few answers are there to name a number. `before` is the
    place four weeks ago, empty when nothing was tested then, and `change` the
    difference in points. `few` answers have a range but no number.
    """

    number: str
    title: str
    tested: bool
    few: bool
    now: str
    place: str
    low: str
    high: str
    before: str
    change: str
    answers: int
    questions: int


@dataclasses.dataclass(frozen=True, slots=True)
class Group:
    """The rows of one domain."""

    title: str
    rows: tuple[Row, ...]


def groups(
    now: Sequence[DomainStanding], before: Sequence[DomainStanding]
) -> tuple[Group, ...]:
    """The rows of every domain; `before` is the same course four weeks ago."""
    return tuple(
        Group(
            domain.domain.title,
            tuple(
                _row(one, other)
                for one, other in zip(domain.standings, earlier.standings, strict=True)
            ),
        )
        for domain, earlier in zip(now, before, strict=True)
    )


def _row(now: Standing, before: Standing) -> Row:
    low, high = now.belief.range
    tested, enough = now.evidence.answers > 0, now.evidence.enough
    points = round(now.belief.mean * 100)
    then = round(before.belief.mean * 100)
    return Row(
        number=now.objective.number,
        title=now.objective.title,
        tested=tested,
        few=tested and not enough,
        now=f"{points}%" if enough else "",
        place=_place(now.belief.mean),
        low=_place(low),
        high=_place(high),
        before=_place(before.belief.mean) if before.evidence.answers else "",
        change=_signed(points - then) if enough and before.evidence.enough else "",
        answers=now.evidence.answers,
        questions=now.questions,
    )


def _place(share: float) -> str:
    return f"{share * 100:.4g}%"


def _signed(points: int) -> str:
    """A change in points with its sign; one that rounds to nothing has none."""
    if points == 0:
        return "0"
    return f"{'+' if points > 0 else MINUS}{abs(points)}"
