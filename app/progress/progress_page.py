"""The Progress page: objectives, expected score, predictions against results, charts."""

import collections
import dataclasses
import datetime as dt
from collections.abc import Callable, Sequence
from typing import Any

from fastapi import APIRouter
from fastapi.responses import HTMLResponse
from markupsafe import Markup
from sqlmodel import Session

from app.accounts.current_learner import Reader, RequestContext
from app.clock import from_milliseconds, to_milliseconds
from app.content.library import Library
from app.progress import charts, store
from app.progress import history_store as history
from app.progress.predictions import PredictionOutcome, inside_words, match_predictions
from app.progress.study_log import first_log_day, study_log
from app.progress.today_page import WEEK, describe_chance, draw_estimate
from app.spaced_repetition.queue import orphaned_cards
from app.study_plan.loader import DayListEnsured, load_plan
from app.study_plan.score import ScoreEstimate
from app.web.formatting import format_percent, format_short_date
from app.widgets.scales import SHARES, PlotArea, format_in_percent
from app.widgets.svg import Box, cross_line, draw_dot, draw_line, draw_text, svg_root

_MIDDLE = 8.0


@dataclasses.dataclass(frozen=True, slots=True)
class ObjectiveRow:
    """One objective: the chance of a right answer in words and as a line from 0 to 100%.

    `answers` of its `questions` were answered.
    """

    number: str
    title: str
    now: str
    ready: bool
    answers: int
    questions: int
    svg: Markup


@dataclasses.dataclass(frozen=True, slots=True)
class DomainRows:
    title: str
    rows: tuple[ObjectiveRow, ...]


def domain_groups(
    library: Library,
    estimate: ScoreEstimate | None,
    ready: Sequence[str] = (),
    target: int | None = None,
) -> tuple[DomainRows, ...]:
    """Return the rows of every domain; `ready` are the objectives that were ready once."""
    counts = collections.Counter(
        number for q in library.questions.values() for number in set(q.objectives)
    )
    return tuple(
        DomainRows(
            domain.title,
            tuple(
                ObjectiveRow(
                    number=objective.number,
                    title=objective.name,
                    now=format_percent(chance) if chance is not None else "not started",
                    ready=objective.number in ready,
                    answers=known.answers if known else 0,
                    questions=counts[objective.number],
                    svg=_draw_chance(chance, target),
                )
                for objective in domain.objectives
                for known in [estimate.objectives.get(objective.number) if estimate else None]
                for chance in [known.chance if known else None]
            ),
        )
        for domain in library.syllabus.domains
    )


def _draw_chance(chance: float | None, target: int | None) -> Markup:
    marks = [draw_line("ax", 0, _MIDDLE, 100, _MIDDLE)]
    if target:
        marks.append(draw_line("dash", target, 0, target, 2 * _MIDDLE))
    if chance is not None:
        marks.append(draw_dot("ink", chance * 100, _MIDDLE, 5))
    return svg_root(marks, 2 * _MIDDLE, "")


MAX_PREDICTIONS = 12
_PLANE = PlotArea(Box(0, 6.0, 87, 120.0), SHARES)


@dataclasses.dataclass(frozen=True, slots=True)
class PredictionRow:
    """One exam as a table row, in words."""

    number: int
    day: str
    predicted: str
    told: str
    result: str
    verdict: str


@dataclasses.dataclass(frozen=True, slots=True)
class PredictionChart:
    """All exams as a table and a chart; `sentence` counts the results inside the range."""

    lines: tuple[PredictionRow, ...]
    svg: Markup
    sentence: str


def build_prediction_chart(
    found: Sequence[PredictionOutcome], day_of: Callable[[int], dt.date]
) -> PredictionChart:
    """Return the last exams; `day_of` maps a moment in ms to the learner's study day."""
    sentence = inside_words(found)
    told = sentence or "No result can be held against a prediction yet."
    return PredictionChart(
        lines=tuple(_prediction_row(turnout, day_of) for turnout in reversed(found)),
        svg=_draw_predictions(found[-MAX_PREDICTIONS:], day_of, f"{told} The table has each."),
        sentence=sentence,
    )


def _draw_predictions(
    last: Sequence[PredictionOutcome], day_of: Callable[[int], dt.date], says: str
) -> Markup:
    marks = _PLANE.scale(format_in_percent)
    for place, turnout in enumerate(last):
        x = _PLANE.box.width * (place + 0.5) / len(last)
        marks += _draw_prediction(turnout, x)
        if turnout in (last[0], last[-1]):
            day = format_short_date(day_of(turnout.result.started))
            marks.append(draw_text(day, x, 146, "m"))
    return svg_root(marks, 150, says)


def _draw_prediction(turnout: PredictionOutcome, x: float) -> list[str]:
    """Draw the predicted range, the expected score in it, and the result."""
    told, result = turnout.predicted, turnout.result
    questions = (told.questions if told else result.questions) or 1
    marks = []
    if told is not None:
        low, high = (_PLANE.down(n / questions) for n in (told.low, told.high))
        marks = [
            draw_line("thin", x, high, x, low),
            cross_line("thin", x, high),
            cross_line("thin", x, low),
            cross_line("edge", x, _PLANE.down(told.expected / questions)),
        ]
    look = "ink" if turnout.inside else "hole"
    return [*marks, draw_dot(look, x, _PLANE.down(turnout.score / questions), 5)]


def _prediction_row(turnout: PredictionOutcome, day_of: Callable[[int], dt.date]) -> PredictionRow:
    told, result = turnout.predicted, turnout.result
    return PredictionRow(
        number=result.number,
        day=format_short_date(day_of(result.started)),
        predicted=f"{told.expected:.0f}, {told.low} to {told.high}" if told else "",
        told=format_short_date(told.day) if told else "",
        result=f"{result.score:.3g} of {result.questions}",
        verdict=_prediction_verdict(turnout),
    )


def _prediction_verdict(turnout: PredictionOutcome) -> str:
    if turnout.predicted is None:
        return "nothing predicted before"
    if not turnout.counts:
        left = turnout.result.questions - turnout.result.answered
        return f"not counted, {left} left open"
    if turnout.inside:
        return "inside"
    return "above" if turnout.score > turnout.predicted.high else "below"


_SITTINGS = 40


def prediction_chart(desk: RequestContext) -> PredictionChart:
    """Return each mock exam with the prediction made before it."""
    learner, db = desk.learner, desk.db
    results = store.load_exam_results(db, learner.id, _SITTINGS) if learner.id else ()
    # Without a mock exam there is no result to compare a prediction with.
    told = store.load_predictions(db, learner.id) if results else ()
    # A paper of one domain or of missed questions is not the exam that was predicted.
    foretold = {one.exam for one in told} | desk.library.exams.keys()
    results = tuple(one for one in results if one.exam in foretold)
    return build_prediction_chart(
        match_predictions(told, results), lambda at: learner.study_day(from_milliseconds(at))
    )


router = APIRouter()


@router.get("/progress")
def show_progress(desk: Reader, _ensured: DayListEnsured) -> HTMLResponse:
    learner = desk.learner
    plan = load_plan(desk)
    estimate = plan.estimate if plan else None
    return desk.page(
        "progress/index.html",
        groups=domain_groups(desk.library, estimate, plan.ready if plan else (), learner.target),
        ahead=estimate,
        ahead_drawn=draw_estimate(estimate, learner.target) if estimate else "",
        chance=describe_chance(estimate, learner.target),
        progress=plan.progress if plan else None,
        turnouts=prediction_chart(desk),
        **_progress_charts(desk),
    )


def _progress_charts(desk: RequestContext) -> dict[str, Any]:
    """Return the charts; a visitor without a row costs no query."""
    learner, today, db = desk.learner, desk.day, desk.db
    # The study log starts a week earlier than the weekly charts.
    days = history.study_days(db, learner.id, first_log_day(today))
    weeks = charts.last_weeks(days.recent, today)
    begun = days.first or today
    firsts = history.count_by_certainty(db, learner.id) if learner.id else {}
    return {
        "days": days,
        "summary": charts.study_summary(days, sum(firsts.values()), today),
        "recall": charts.recall_by_week(weeks, learner.retention),
        "least": charts.MIN_REVIEWS,
        "due": charts.due_chart(_due_by_day(desk, db), today, learner.exam_day),
        "calibration": charts.calibration_chart(firsts),
        "hours": charts.time_chart(weeks, begun),
        "log": study_log(days.counts, today, begun) if learner.calendar else None,
    }


def _due_by_day(desk: RequestContext, db: Session) -> dict[str, int]:
    """Return the cards due on each coming day."""
    learner, today = desk.learner, desk.day
    if not learner.id:
        return {}
    week, last = today + WEEK, charts.last_day(today, learner.exam_day)
    gone = orphaned_cards(db, learner.id, desk.library).gone
    span = (today, week, to_milliseconds(desk.now))
    due = {
        day: row.cards
        for day, row in history.load_due_counts(db, learner.id, span, gone).items()
        if day <= last.isoformat()
    }
    if last > week:
        due |= history.load_later_counts(db, learner.id, (week, last), gone)
    return due
