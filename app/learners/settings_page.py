"""The page of what a learner sets, which several routes answer with."""

import datetime as dt

from fastapi import Request
from fastapi.responses import HTMLResponse
from sqlmodel import Session

from app.learners import store
from app.learners.current import LearnerProfile
from app.learners.forms import WEEKDAYS, Problems, SettingsForm, zones
from app.scheduling.study_day import zone_of
from app.web.render import render_page


def settings_page(
    request: Request,
    learner: LearnerProfile,
    db: Session,
    typed: SettingsForm,
    problems: Problems,
) -> HTMLResponse:
    """The page with what was typed, 422 where something is wrong with it."""
    asked = request.query_params
    return render_page(
        request,
        "learners/settings.html",
        status=422 if problems else 200,
        learner=learner,
        typed=typed,
        problems=problems,
        weekdays=WEEKDAYS,
        zones=[(zone, zone.replace("_", " ")) for zone in zones()],
        exam_over=_is_over(learner, request.app.state.clock()),
        kept=asked.get("kept") == "yes" and not problems,
        ended=asked.get("ended") == "yes" and not problems,
        zone=zone_of(learner.zone),
        browsers=store.browsers(db, learner.home, request.state.visitor.digest),
        keys_off=request.cookies.get("keys") == "off",
    )


def _is_over(learner: LearnerProfile, now: dt.datetime) -> bool:
    exam = learner.exam_day
    return exam is not None and exam < learner.study_day(now)


def as_typed(learner: LearnerProfile) -> SettingsForm:
    """The settings as they stand."""
    return SettingsForm(
        name=learner.name,
        exam_day=learner.exam_day.isoformat() if learner.exam_day else "",
        minutes_a_day=str(learner.minutes_a_day),
        zone=learner.zone,
        retention=f"{learner.retention * 100:.0f}",
        target="" if learner.target is None else str(learner.target),
        calendar="yes" if learner.calendar else "no",
        missed="yes" if learner.missed else "no",
        all_minutes="yes" if learner.habits.fill else "no",
        double_last_week="yes" if learner.habits.double else "no",
        days_off=[str(day) for day in sorted(learner.habits.off)],
    )
