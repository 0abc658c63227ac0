"""GET what is known, and from what."""

from typing import Any

from fastapi import APIRouter, Depends, Request
from fastapi.responses import HTMLResponse
from sqlmodel import Session

from app.db.engine import DbSession
from app.flashcards.left_words import over_words
from app.flashcards.review_table import todays_queue
from app.flashcards.store import orphaned_cards
from app.learners.desk import RequestContext
from app.mastery.standing import certainties
from app.progress import figures, store
from app.progress.mastery_table import mastery_of, turnouts_of
from app.progress.prediction_log import log_prediction
from app.progress.snapshot import WEEK, CurrentSnapshot, LearnerSnapshot
from app.progress.study_log import first_day, study_log
from app.scheduling import CardsLeft
from app.web.page_cache import allow_caching
from app.web.render import render_page

router = APIRouter()


@router.get("/progress", dependencies=[Depends(log_prediction)])
def progress(request: Request, snapshot: CurrentSnapshot, db: DbSession) -> HTMLResponse:
    allow_caching(request, snapshot.until, strangers=True)
    return render_page(
        request,
        "progress/index.html",
        learner=snapshot.learner,
        **mastery_of(snapshot),
        turnouts=turnouts_of(snapshot, db),
        **_figures(request, snapshot, db),
    )


def _figures(request: Request, snapshot: LearnerSnapshot, db: Session) -> dict[str, Any]:
    """The drawings, from sums; a stranger costs no question."""
    learner, today = snapshot.learner, snapshot.day
    desk = RequestContext(request, snapshot.library, learner, db, snapshot.now)
    # The study log reaches a week farther back than the figures by week.
    days = store.study_days(db, learner.id, first_day(today))
    weeks = figures.weeks(days.recent, today)
    firsts = snapshot.record.firsts
    left = todays_queue(desk).left
    begun = days.first or today
    return {
        "days": days,
        "summary": figures.summary(days, len(firsts), today),
        "recall": figures.recall_by_week(weeks, learner.retention),
        "least": figures.LEAST,
        "due": figures.upcoming(_due(snapshot, left, db), today, learner.exam_day),
        "over": over_words(left.over, left.passed),
        "calibration": figures.certainty(certainties(firsts)),
        "hours": figures.hours(weeks, begun),
        "log": study_log(days.counts, today, begun) if learner.calendar else None,
    }


def _due(snapshot: LearnerSnapshot, left: CardsLeft, db: Session) -> dict[str, int]:
    """The cards of each day ahead; of today those `left` on the desk.

    What a plan leaves for another day is no card of today, nor overdue.
    """
    learner, today = snapshot.learner, snapshot.day.isoformat()
    if not learner.id:
        return {}
    week, last = snapshot.day + WEEK, figures.last_day(snapshot.day, learner.exam_day)
    planned = left.over or left.final
    due = {day: row.cards for day, row in snapshot.coming.items() if day > today or not planned}
    overdue = sum(cards for day, cards in due.items() if day < today)
    due[today] = max(0, left.returning - overdue)
    if last > week:
        gone = orphaned_cards(db, learner.id, snapshot.library).gone
        return due | store.coming_later(db, learner.id, (week, last), gone)
    return {day: cards for day, cards in due.items() if day <= last.isoformat()}
