"""The Progress page: expected score, totals, objectives, and earlier predictions."""

import collections
import dataclasses
import datetime as dt
from collections.abc import Callable, Collection, Mapping, Sequence

from fastapi import APIRouter
from fastapi.responses import HTMLResponse
from markupsafe import Markup

from app.accounts.current_learner import ReadContext, RequestContext
from app.clock import from_milliseconds
from app.content.course import Course
from app.content.course_facts import cached_course_facts
from app.lessons.course_pages import build_domain_progress
from app.progress import store as progress_store
from app.progress.calibration import build_calibration_chart
from app.progress.predictions import (
    PredictionOutcome,
    attach_predictions_to_results,
    build_score_trend,
    describe_count_of_results_in_range,
    draw_score_trend,
)
from app.progress.study_record import build_study_heatmap, load_study_record
from app.progress.today_page import compute_target_right_answers
from app.study_plan.facts import FirstAnswerFact
from app.study_plan.loader import DayListEnsured, find_planned_route, load_study_plan
from app.study_plan.score import ScoreEstimate
from app.study_plan.store import load_answers_misses_and_pace
from app.web.formatting import (
    format_percent,
    format_points_rounded,
    format_short_date,
)
from app.widgets.bar_charts import ScoreRange, draw_score_range
from app.widgets.svg import (
    SHARE_AXIS,
    Box,
    PlotArea,
    build_svg_element,
    draw_dot,
    draw_line,
    draw_short_horizontal_line,
    draw_text,
)


def draw_score_estimate(estimate: ScoreEstimate, target_right_answers: int | None) -> Markup:
    """Draw the expected score and its range; `target` is in questions."""
    question_count = estimate.questions
    alt_text = f"About {estimate.shown_score} of {question_count}, likely {estimate.low} to {estimate.high}"
    target_label = f"your target, {target_right_answers}" if target_right_answers else ""
    score = ScoreRange(
        score=estimate.shown_score,
        low=estimate.low,
        high=estimate.high,
        max_score=question_count,
        target=target_right_answers or 0,
        target_text=target_label,
    )
    return draw_score_range(
        score,
        f"{alt_text}; {target_label}" if target_label else alt_text,
        (0, question_count // 2, question_count),
    )


_CHANCE_TEXTS = (
    "hardly any chance",
    "about one chance in ten",
    "about two chances in ten",
    "about three chances in ten",
    "about four chances in ten",
    "an even chance",
    "about six chances in ten",
    "about seven chances in ten",
    "about eight chances in ten",
    "about nine chances in ten",
    "more than nine chances in ten",
)


def describe_chance_of_target(estimate: ScoreEstimate | None, target_percent: int | None) -> str:
    """Return the chance of reaching a target (percent), to the nearest tenth; "" without one."""
    if estimate is None or target_percent is None:
        return ""
    return _CHANCE_TEXTS[
        round(10 * min(max(estimate.chance_of_scoring_at_least(target_percent / 100), 0.0), 1.0))
    ]


MAX_PREDICTIONS = 12
_PROGRESS_PLOT_AREA = PlotArea(Box(0, 6.0, 87, 120.0), SHARE_AXIS)


@dataclasses.dataclass(frozen=True, slots=True)
class PredictionRow:
    """One exam as a table row, in words."""

    sitting_id: int
    day: str
    predicted: str
    prediction_day_text: str
    result: str
    verdict: str


@dataclasses.dataclass(frozen=True, slots=True)
class PredictionChart:
    """All exams as a table and a chart; `sentence` counts the results inside the range."""

    rows: tuple[PredictionRow, ...]
    svg: Markup
    sentence: str


def build_prediction_chart(
    outcomes: Sequence[PredictionOutcome], study_day_of_ms: Callable[[int], dt.date]
) -> PredictionChart:
    """Return the last exams; `study_day_of_ms` maps a moment in ms to the learner's study day."""
    sentence = describe_count_of_results_in_range(outcomes)
    caption = sentence or "No result can be held against a prediction yet."
    return PredictionChart(
        rows=tuple(
            _build_prediction_row(outcome, study_day_of_ms) for outcome in reversed(outcomes)
        ),
        svg=_draw_predictions(
            outcomes[-MAX_PREDICTIONS:], study_day_of_ms, f"{caption} The table has each."
        ),
        sentence=sentence,
    )


def _draw_predictions(
    last_outcomes: Sequence[PredictionOutcome],
    study_day_of_ms: Callable[[int], dt.date],
    alt_text: str,
) -> Markup:
    marks = _PROGRESS_PLOT_AREA.draw_gridlines_with_labels(format_percent)
    for index, outcome in enumerate(last_outcomes):
        x = _PROGRESS_PLOT_AREA.box.width * (index + 0.5) / len(last_outcomes)
        marks += _draw_prediction(outcome, x)
        if outcome in (last_outcomes[0], last_outcomes[-1]):
            day = format_short_date(study_day_of_ms(outcome.result.started_at_ms))
            marks.append(draw_text(day, x, 146, "m"))
    return build_svg_element(marks, 150, alt_text)


def _draw_prediction(outcome: PredictionOutcome, x: float) -> list[str]:
    """Draw the predicted range, the expected score in it, and the result."""
    prediction, result = outcome.last_prediction_before, outcome.result
    questions = (prediction.question_count if prediction else result.question_count) or 1
    marks = []
    if prediction is not None:
        low, high = (
            _PROGRESS_PLOT_AREA.y_pixels(n / questions) for n in (prediction.low, prediction.high)
        )
        marks = [
            draw_line("thin", x, high, x, low),
            draw_short_horizontal_line("thin", x, high),
            draw_short_horizontal_line("thin", x, low),
            draw_short_horizontal_line(
                "edge",
                x,
                _PROGRESS_PLOT_AREA.y_pixels(prediction.expected_right_answers / questions),
            ),
        ]
    dot_class = "ink" if outcome.is_inside_range else "hole"
    return [
        *marks,
        draw_dot(dot_class, x, _PROGRESS_PLOT_AREA.y_pixels(outcome.scaled_score / questions), 5),
    ]


def _build_prediction_row(
    outcome: PredictionOutcome, study_day_of_ms: Callable[[int], dt.date]
) -> PredictionRow:
    prediction, result = outcome.last_prediction_before, outcome.result
    return PredictionRow(
        sitting_id=result.sitting_id,
        day=format_short_date(study_day_of_ms(result.started_at_ms)),
        predicted=f"{prediction.expected_right_answers:.0f}, {prediction.low} to {prediction.high}"
        if prediction
        else "",
        prediction_day_text=format_short_date(prediction.day) if prediction else "",
        result=f"{format_points_rounded(result.score)} of {result.question_count}",
        verdict=_compare_result_with_prediction(outcome),
    )


def _compare_result_with_prediction(outcome: PredictionOutcome) -> str:
    if outcome.last_prediction_before is None:
        return "nothing predicted before"
    if not outcome.is_comparable:
        open_count = outcome.result.question_count - outcome.result.answered_count
        return f"not compared: {open_count} unanswered, counted as wrong"
    if outcome.is_inside_range:
        return "inside"
    return "above" if outcome.scaled_score > outcome.last_prediction_before.high else "below"


_MAX_SHOWN_SITTINGS = 40


def load_prediction_chart(ctx: RequestContext) -> PredictionChart:
    """Return each mock exam with the prediction made before it."""
    learner, db = ctx.learner, ctx.db
    results = (
        progress_store.load_closed_sitting_results(db, learner.id, _MAX_SHOWN_SITTINGS)
        if learner.id
        else ()
    )
    # Without a mock exam there is no result to compare a prediction with.
    predictions = progress_store.load_score_predictions(db, learner.id) if results else ()
    # A paper of one domain or of missed questions is not the exam that was predicted.
    predicted_exams = {prediction.exam for prediction in predictions} | ctx.course.exams.keys()
    results = tuple(result for result in results if result.exam in predicted_exams)
    return build_prediction_chart(
        attach_predictions_to_results(results, predictions),
        lambda at: learner.study_day(from_milliseconds(at)),
    )


@dataclasses.dataclass(frozen=True, slots=True)
class ObjectiveAnswers:
    """First answers to questions on an objective, and how many questions practice still has."""

    answered_count: int
    right_count: int
    unanswered_count: int


def count_first_answers_by_objective(
    course: Course, first_answers: Collection[FirstAnswerFact]
) -> Mapping[str, ObjectiveAnswers]:
    course_facts, score = cached_course_facts(course), {a.question: a.score for a in first_answers}
    answered, right, unanswered = (collections.Counter[str]() for _ in range(3))
    for question_id, facts in course_facts.questions.items():
        if question_id in score:
            answered.update(facts.objectives)
            right.update(facts.objectives if score[question_id] >= 1 else ())
        elif not facts.is_exam_only:
            unanswered.update(facts.objectives)
    return {
        n: ObjectiveAnswers(answered[n], right[n], unanswered[n]) for n in course_facts.objectives
    }


router = APIRouter()


@router.get("/progress")
def show_progress(ctx: ReadContext, _ensured: DayListEnsured) -> HTMLResponse:
    learner = ctx.learner
    plan, record = load_study_plan(ctx), load_study_record(ctx)
    estimate = plan.estimate if plan else None
    predictions = progress_store.load_score_predictions(ctx.db, learner.id) if learner.id else ()
    trend = build_score_trend(predictions, cached_course_facts(ctx.course).main_exam_slug, estimate)
    target = compute_target_right_answers(plan, learner.target)
    first_answer_counts = (
        progress_store.count_first_answers_by_confidence_and_correctness(ctx.db, learner.id)
        if learner.id
        else {}
    )
    first_answers = (
        load_answers_misses_and_pace(ctx.db, learner.id, ctx.study_day)[0] if learner.id else ()
    )
    first_day = record.first_study_day or ctx.study_day
    return ctx.render_page(
        "progress/index.html",
        day=ctx.study_day,
        estimate=estimate,
        estimate_drawn=draw_score_estimate(estimate, target) if estimate else "",
        change=trend.change_since_first(),
        trend=draw_score_trend(trend, target),
        chance=describe_chance_of_target(estimate, learner.target),
        target_questions=target,
        guessing=cached_course_facts(ctx.course).describe_guessing_score(),
        progress=plan,
        domains=build_domain_progress(
            ctx.course,
            plan.ready_objectives if plan else (),
            estimate,
            record.opened_topics,
            record.essentials_read_day_by_topic,
            plan.questions_answered_today if plan else (),
            find_planned_route(ctx),
        ),
        answers_by_objective=count_first_answers_by_objective(ctx.course, first_answers),
        predictions=load_prediction_chart(ctx),
        calibration=build_calibration_chart(first_answer_counts),
        log=build_study_heatmap(record.activity_by_day, ctx.study_day, first_day)
        if learner.shows_study_log
        else None,
    )
