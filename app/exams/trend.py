"""The mock exams sat so far in the order taken: shares with their ranges."""

import dataclasses
import datetime as dt
from collections.abc import Callable, Sequence

from markupsafe import Markup

from app.drawings.planes import SHARES, PlotArea, in_percent
from app.drawings.svg import Box, dot, line, svg_root, text
from app.exams.report import interval
from app.mastery.turnout import says_enough
from app.web.words import format_percent, format_short_date

MOST = 12
_PLANE = PlotArea(Box(0, 6.0, 87, 120.0), SHARES)


@dataclasses.dataclass(frozen=True, slots=True)
class PastSitting:
    """A finished sitting; `whole` says that it was a full exam."""

    number: int
    title: str
    whole: bool
    started: dt.datetime
    score: float
    questions: int
    answered: int
    minutes: float
    by_clock: bool

    @property
    def share(self) -> float:
        """The part of the points that was reached, 0..1."""
        return self.score / self.questions if self.questions else 0.0

    @property
    def range(self) -> tuple[float, float] | None:
        """What a similar paper would most likely have given, as shares.

        None where too few of its questions were answered to say so.
        """
        if not says_enough(self.answered, self.questions):
            return None
        low, high = interval(self.score, self.questions)
        return low / self.questions, high / self.questions


@dataclasses.dataclass(frozen=True, slots=True)
class ScoreTrend:
    """The drawing, and what the last two full exams say in a sentence."""

    svg: Markup
    sentence: str


def trend_of(
    finished: Sequence[PastSitting],
    target: int | None,
    day_of: Callable[[dt.datetime], dt.date],
) -> ScoreTrend | None:
    """The last sittings, given the newest first; None before the first."""
    if not finished:
        return None
    last = list(reversed(finished[:MOST]))
    said = _sentence(finished)
    return ScoreTrend(_draw(last, target, day_of, f"{said} The table has each."), said)


def _sentence(finished: Sequence[PastSitting]) -> str:
    full = [past for past in finished if past.whole and past.range]
    if len(full) < 2:
        return "Each point is one exam; the line through it is the likely range."
    now, before = full[:2]
    was, is_ = (format_percent(past.share) for past in (before, now))
    if _overlap(now.range, before.range):
        return (
            f"Your last two full exams: {was}, then {is_}. Their ranges overlap, so "
            "the difference may be chance."
        )
    way = "better" if now.share > before.share else "worse"
    return f"Your last full exam, {is_}, was clearly {way} than the one before, {was}."


def _overlap(one: tuple[float, float] | None, other: tuple[float, float] | None) -> bool:
    return bool(one and other and one[0] <= other[1] and other[0] <= one[1])


def _draw(
    last: Sequence[PastSitting],
    target: int | None,
    day_of: Callable[[dt.datetime], dt.date],
    says: str,
) -> Markup:
    marks = _PLANE.scale(in_percent)
    if target:
        at = _PLANE.down(target / 100)
        marks.append(line("dash", 0, at, _PLANE.box.width, at))
    for place, past in enumerate(last):
        x = _PLANE.box.width * (place + 0.5) / len(last)
        if past.range:
            low, high = (_PLANE.down(share) for share in past.range)
            marks.append(line("thin", x, high, x, low))
        marks.append(dot("ink" if past.whole else "hole", x, _PLANE.down(past.share), 5))
        if past in (last[0], last[-1]):
            day = day_of(past.started)
            marks.append(text(format_short_date(day), x, 146, "m"))
    return svg_root(marks, 150, says)
