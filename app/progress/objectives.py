"""Mastery by objective as a table draws it: now, four weeks ago, and the range."""

import dataclasses
from collections.abc import Sequence

from markupsafe import Markup

from app.drawings.svg import dot, line, svg_root, tile
from app.mastery.standing import DomainMastery, ObjectiveMastery
from app.web.words import format_percent

AGO = 28  # days between the two dots of a row
MINUS = "\u2212"
_MIDDLE = 8.0


@dataclasses.dataclass(frozen=True, slots=True)
class ObjectiveRow:
    """One objective in words, and as a line from 0 to 100%.

    `now` is a share where the objective is `judged`, else the words why not; `few`
    answers have a range from `low` to `high` but no number, and so many are
    `counting`: not those to what no exam asks. `change` is the difference to four
    weeks ago in points, empty where nothing was tested then.
    """

    number: str
    title: str
    judged: bool
    few: bool
    now: str
    low: str
    high: str
    change: str
    answers: int
    counting: int
    questions: int
    svg: Markup


@dataclasses.dataclass(frozen=True, slots=True)
class DomainRows:
    """The rows of one domain."""

    title: str
    rows: tuple[ObjectiveRow, ...]


def groups(
    now: Sequence[DomainMastery],
    before: Sequence[DomainMastery],
    target: int | None = None,
) -> tuple[DomainRows, ...]:
    """The rows of every domain; `before` is the same course four weeks ago."""
    return tuple(
        DomainRows(
            domain.domain.title,
            tuple(
                _row(one, other, target)
                for one, other in zip(domain.standings, earlier.standings, strict=True)
            ),
        )
        for domain, earlier in zip(now, before, strict=True)
    )


def _row(now: ObjectiveMastery, before: ObjectiveMastery, target: int | None) -> ObjectiveRow:
    low, high = now.belief.range
    tested, enough = now.evidence.answers > 0, now.evidence.enough
    points = round(now.belief.mean * 100)
    then = round(before.belief.mean * 100)
    return ObjectiveRow(
        number=now.objective.number,
        title=now.objective.name,
        judged=enough,
        few=tested and not enough,
        now=now.unjudged or f"{points}%",
        low=format_percent(low),
        high=format_percent(high),
        change=_signed(points - then) if enough and before.evidence.enough else "",
        answers=now.answered,
        counting=now.evidence.answers,
        questions=now.questions,
        svg=_draw(now, before, target),
    )


def _draw(now: ObjectiveMastery, before: ObjectiveMastery, target: int | None) -> Markup:
    """Now as a dot with its range, four weeks ago as a ring.

    A square is what has too few answers for a number, or none.
    """
    at = now.belief.mean * 100
    marks = [line("ax", 0, _MIDDLE, 100, _MIDDLE)]
    if target:
        marks.append(line("dash", target, 0, target, 2 * _MIDDLE))
    if not now.evidence.answers:
        return svg_root([*marks, tile("hole sq", at, _MIDDLE, 10)], 2 * _MIDDLE, "")
    low, high = now.belief.range
    marks.append(line("thin", low * 100, _MIDDLE, high * 100, _MIDDLE))
    if not now.evidence.enough:
        return svg_root([*marks, tile("hole sq", at, _MIDDLE, 10)], 2 * _MIDDLE, "")
    if before.evidence.enough:
        then = before.belief.mean * 100
        marks.append(line("edge", then, _MIDDLE, at, _MIDDLE))
        marks.append(dot("hole", then, _MIDDLE, 4))
    marks.append(dot("ink", at, _MIDDLE, 5))
    return svg_root(marks, 2 * _MIDDLE, "")


def _signed(points: int) -> str:
    """A change in points with its sign; one that rounds to nothing has none."""
    if points == 0:
        return "0"
    return f"{'+' if points > 0 else MINUS}{abs(points)}"
