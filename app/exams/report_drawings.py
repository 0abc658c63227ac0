"""The drawings of a report: the score with its range, and the time of each question."""

import dataclasses
from collections.abc import Sequence

from markupsafe import Markup

from app.drawings.ranges import ScoreRange, draw_score
from app.drawings.svg import line, rect, svg_root, text
from app.exams.report import GradedItem, ScoreReport

_BASE, _HEIGHT = 66.0, 62.0


@dataclasses.dataclass(frozen=True, slots=True)
class ReportCharts:
    """The drawings; `longest` and `even` are seconds of a question.

    The longest that one took, and what each takes at an even pace. `times` is None
    where the time of no question is known: the browser told none, or all were 0.
    """

    result: Markup
    times: Markup | None
    longest: float
    even: float


def draw_report(
    report: ScoreReport, paper: Sequence[GradedItem], target: int | None, seconds: float
) -> ReportCharts:
    """All drawings of a report; `seconds` were given for the whole paper."""
    longest = max((m.seconds for m in paper), default=0.0)
    even = seconds / max(len(paper), 1)
    return ReportCharts(
        result=draw_result(report, target),
        times=draw_times(paper, longest, even) if longest else None,
        longest=longest,
        even=even,
    )


def draw_result(report: ScoreReport, target: int | None) -> Markup:
    """The points with what a like paper would have given; `target` is in points."""
    words = f"your target {target}" if target else ""
    score = ScoreRange(
        score=report.score,
        low=report.low if report.tells else report.score,
        high=report.high if report.tells else report.score,
        of=report.count,
        target=target or 0,
        target_words=words,
    )
    says = f"{round(report.score, 1):g} of {report.count}"
    if report.tells:
        says += f"; on a similar exam probably {report.low:.0f} to {report.high:.0f}"
    return draw_score(score, f"{says}; {words}" if words else says, (0, report.count))


def draw_times(paper: Sequence[GradedItem], longest: float, even: float) -> Markup:
    """Seconds of each question; × marks what was not right, `even` is an even pace."""
    slot = 100 / (len(paper) or 1)
    marks: list[str] = []
    for place, one in enumerate(paper):
        high = _HEIGHT * one.seconds / longest
        look = "fill" if one.score >= 1 else "bad-f"
        marks.append(rect(look, slot * (place + 0.15), _BASE - high, slot * 0.7, high))
        if one.score < 1:
            marks.append(text("×", slot * (place + 0.5), 81, "m bad-f"))
    if even <= longest:
        at = _BASE - _HEIGHT * even / longest
        marks.append(line("dash", 0, at, 100, at))
    marks += [text("1", 0, 100), text(str(len(paper)), 100, 100, "e")]
    says = f"Seconds per question, {len(paper)} questions; the longest took {longest:.0f} seconds"
    return svg_root(marks, 108, says)
