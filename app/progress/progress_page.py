"""The Progress page: mastery by objective, forecast, predictions against results."""

import dataclasses
import datetime as dt
from collections.abc import Callable, Sequence
from typing import Any

from fastapi import APIRouter, Depends, Request
from fastapi.responses import HTMLResponse
from markupsafe import Markup
from sqlmodel import Session

from app.accounts.current_learner import RequestContext
from app.clock import from_milliseconds
from app.database.engine import DbSession
from app.mastery.objectives import (
    DomainMastery,
    ObjectiveMastery,
    build_standings,
    count_answered,
    count_by_certainty,
)
from app.mastery.readiness import (
    PredictionOutcome,
    ScoreForecast,
    forecast_score,
    inside_words,
    match_predictions,
)
from app.progress import charts, store
from app.progress.store import log_prediction
from app.progress.study_log import first_log_day, study_log
from app.spaced_repetition.queue import orphaned_cards
from app.study_plan import store as study_plan_store
from app.study_plan.card_plan import CardsLeft
from app.study_plan.loader import WEEK, CurrentSnapshot, LearnerSnapshot, main_exam
from app.study_plan.today import over_words
from app.study_plan.todays_cards import todays_queue
from app.web.formatting import format_percent, format_short_date
from app.web.render import render_page
from app.widgets.scales import SHARES, PlotArea, format_in_percent
from app.widgets.svg import Box, cross_line, draw_dot, draw_line, draw_text, draw_tile, svg_root

AGO = 28  # days between the two dots of a row
MINUS = "\u2212"
_MIDDLE = 8.0


@dataclasses.dataclass(frozen=True, slots=True)
class ObjectiveRow:
    """One objective in words, and as a line from 0 to 100%.

    `now` is a share if the objective is `judged`, otherwise the reason. With `few` answers there is
    a range `low` to `high` but no number. `counting` answers count; those to questions no exam
    includes do not. `change` is the difference to four weeks ago in points, empty if nothing was
    tested then.
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
    title: str
    rows: tuple[ObjectiveRow, ...]


def domain_groups(
    now: Sequence[DomainMastery],
    before: Sequence[DomainMastery],
    target: int | None = None,
) -> tuple[DomainRows, ...]:
    """Return the rows of every domain; `before` is the mastery four weeks ago."""
    return tuple(
        DomainRows(
            domain.domain.title,
            tuple(
                _objective_row(one, other, target)
                for one, other in zip(domain.standings, earlier.standings, strict=True)
            ),
        )
        for domain, earlier in zip(now, before, strict=True)
    )


def _objective_row(
    now: ObjectiveMastery, before: ObjectiveMastery, target: int | None
) -> ObjectiveRow:
    low, high = now.belief.range
    tested, enough = now.evidence.answers > 0, now.evidence.enough
    points = round(now.belief.mean * 100)
    then = round(before.belief.mean * 100)
    return ObjectiveRow(
        number=now.objective.number,
        title=now.objective.name,
        judged=enough,
        few=tested and not enough,
        now=now.unjudged_reason or f"{points}%",
        low=format_percent(low),
        high=format_percent(high),
        change=_format_change(points - then) if enough and before.evidence.enough else "",
        answers=now.answered,
        counting=now.evidence.answers,
        questions=now.questions,
        svg=_draw_progress(now, before, target),
    )


def _draw_progress(now: ObjectiveMastery, before: ObjectiveMastery, target: int | None) -> Markup:
    """Draw the present as a dot with its range, and four weeks ago as a ring.

    A square marks an objective with too few answers for a number, or none.
    """
    at = now.belief.mean * 100
    marks = [draw_line("ax", 0, _MIDDLE, 100, _MIDDLE)]
    if target:
        marks.append(draw_line("dash", target, 0, target, 2 * _MIDDLE))
    if not now.evidence.answers:
        return svg_root([*marks, draw_tile("hole sq", at, _MIDDLE, 10)], 2 * _MIDDLE, "")
    low, high = now.belief.range
    marks.append(draw_line("thin", low * 100, _MIDDLE, high * 100, _MIDDLE))
    if not now.evidence.enough:
        return svg_root([*marks, draw_tile("hole sq", at, _MIDDLE, 10)], 2 * _MIDDLE, "")
    if before.evidence.enough:
        then = before.belief.mean * 100
        marks.append(draw_line("edge", then, _MIDDLE, at, _MIDDLE))
        marks.append(draw_dot("hole", then, _MIDDLE, 4))
    marks.append(draw_dot("ink", at, _MIDDLE, 5))
    return svg_root(marks, 2 * _MIDDLE, "")


def _format_change(points: int) -> str:
    """Return a change in points with its sign; zero has none."""
    if points == 0:
        return "0"
    return f"{'+' if points > 0 else MINUS}{abs(points)}"


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


def mastery_context(snapshot: LearnerSnapshot) -> dict[str, Any]:
    """Return the template variables for mastery by objective, now and four weeks ago."""
    before = build_standings(snapshot.library, snapshot.record, snapshot.day, AGO)
    return {
        "groups": domain_groups(snapshot.domains, before, snapshot.learner.target),
        "ahead": snapshot.ahead,
        "ahead_drawn": snapshot.ahead_drawn,
        "lacking": snapshot.lacking,
        "chance": snapshot.chance,
        "others": _other_forecasts(snapshot),
    }


def prediction_chart(snapshot: LearnerSnapshot, db: Session) -> PredictionChart:
    """Return each mock exam with the prediction made before it."""
    learner = snapshot.learner
    results = store.load_exam_results(db, learner.id, _SITTINGS) if learner.id else ()
    # Without a mock exam there is no result to compare a prediction with.
    told = store.load_predictions(db, learner.id) if results else ()
    # A paper of one domain or of missed questions is not the exam that was predicted.
    foretold = {one.exam for one in told} | snapshot.library.exams.keys()
    results = tuple(one for one in results if one.exam in foretold)
    return build_prediction_chart(
        match_predictions(told, results), lambda at: learner.study_day(from_milliseconds(at))
    )


def _other_forecasts(snapshot: LearnerSnapshot) -> list[tuple[str, ScoreForecast]]:
    """Return the forecasts for the other mock exams of the course, by title."""
    main = main_exam(snapshot.library)
    answers = count_answered(snapshot.library, snapshot.record.firsts)
    made = [
        (exam.title, forecast_score(snapshot.domains, exam, answers))
        for exam in snapshot.library.exams.values()
        if exam is not main
    ]
    return [(title, ahead) for title, ahead in made if isinstance(ahead, ScoreForecast)]


router = APIRouter()


@router.get("/progress", dependencies=[Depends(log_prediction)])
def show_progress(request: Request, snapshot: CurrentSnapshot, db: DbSession) -> HTMLResponse:
    return render_page(
        request,
        "progress/index.html",
        learner=snapshot.learner,
        **mastery_context(snapshot),
        turnouts=prediction_chart(snapshot, db),
        **_progress_charts(request, snapshot, db),
    )


def _progress_charts(request: Request, snapshot: LearnerSnapshot, db: Session) -> dict[str, Any]:
    """Return the charts; a visitor without a row costs no query."""
    learner, today = snapshot.learner, snapshot.day
    desk = RequestContext(request, snapshot.library, learner, db, snapshot.now)
    # The study log starts a week earlier than the weekly charts.
    days = study_plan_store.study_days(db, learner.id, first_log_day(today))
    weeks = charts.last_weeks(days.recent, today)
    firsts = snapshot.record.firsts
    left = todays_queue(desk).left
    begun = days.first or today
    return {
        "days": days,
        "summary": charts.study_summary(days, len(firsts), today),
        "recall": charts.recall_by_week(weeks, learner.retention),
        "least": charts.MIN_REVIEWS,
        "due": charts.due_chart(_due_by_day(snapshot, left, db), today, learner.exam_day),
        "over": over_words(left.over, left.passed),
        "calibration": charts.calibration_chart(count_by_certainty(firsts)),
        "hours": charts.time_chart(weeks, begun),
        "log": study_log(days.counts, today, begun) if learner.calendar else None,
    }


def _due_by_day(snapshot: LearnerSnapshot, left: CardsLeft, db: Session) -> dict[str, int]:
    """Return the cards due on each coming day; for today those `left` in the review queue.

    The backlog that the plan leaves for another day counts neither as today's nor as overdue.
    """
    learner, today = snapshot.learner, snapshot.day.isoformat()
    if not learner.id:
        return {}
    week, last = snapshot.day + WEEK, charts.last_day(snapshot.day, learner.exam_day)
    planned = left.over or left.final
    due = {day: row.cards for day, row in snapshot.coming.items() if day > today or not planned}
    overdue = sum(cards for day, cards in due.items() if day < today)
    due[today] = max(0, left.returning - overdue)
    if last > week:
        gone = orphaned_cards(db, learner.id, snapshot.library).gone
        return due | study_plan_store.load_later_counts(db, learner.id, (week, last), gone)
    return {day: cards for day, cards in due.items() if day <= last.isoformat()}
