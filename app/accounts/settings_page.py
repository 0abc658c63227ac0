"""The learner's settings page."""

import datetime as dt
import functools
import zoneinfo
from typing import Annotated, Any

from fastapi import APIRouter, Form, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from pydantic import BaseModel, ConfigDict
from sqlmodel import Session

from app.accounts import learner_store
from app.accounts.current_learner import CurrentLearner, EnrolledLearner, LearnerProfile
from app.accounts.plan_calendar import CARD_AMOUNTS, plan_mock_days
from app.clock import RETENTION, Now, find_time_zone
from app.database.engine import DbSession
from app.web.render import render_page
from app.web.visitor import YEAR

Problems = list[dict[str, str]]
_DIGITS = 9  # of a number: parsing thousands of digits takes long or fails
WEEKDAYS = {
    "0": "Monday",
    "1": "Tuesday",
    "2": "Wednesday",
    "3": "Thursday",
    "4": "Friday",
    "5": "Saturday",
    "6": "Sunday",
}
"""Form values of weekdays and their names."""
_MAX_QUOTED_LENGTH = 40  # characters of an input that an error message repeats


class CodeForm(BaseModel):
    """A submitted device code, and the boxes that were ticked."""

    model_config = ConfigDict(extra="ignore")

    code: str = ""
    confirm: str = ""
    leave: str = ""


class SettingsForm(BaseModel):
    """The settings as submitted; `read` validates them."""

    model_config = ConfigDict(extra="ignore")

    name: str = ""
    exam_day: str = ""
    minutes_a_day: str = "30"
    zone: str = "UTC"
    retention: str = f"{RETENTION:.0%}".rstrip("%")
    target: str = ""
    calendar: str = "yes"
    missed: str = "yes"
    card_amount: str = "normal"
    double_last_week: str = "no"
    reminder_hour: str = ""
    days_off: list[str] = []

    def read(self, today: dt.date, kept: dt.date | None = None) -> tuple[dict[str, Any], Problems]:
        """Return column values, and problems for fields with invalid values.

        An exam day in the past is accepted only if it equals `kept`, the saved one. Another exam
        day than that comes with the dates of its mock exams.
        """
        reader = _SettingsReader(self)
        values: dict[str, Any] = {
            "name": reader.text("name", 80),
            "exam_day": reader.day("exam_day", today, kept),
            "minutes_a_day": reader.whole("minutes_a_day", 5, 480, "minutes a day"),
            "zone": reader.zone(),
            "retention": (reader.whole("retention", 70, 97, "percent") or 0) / 100,
            "target": self.target.strip() and reader.whole("target", 1, 100, "percent"),
        }
        values["target"] = values["target"] or None
        hour = self.reminder_hour.strip() and reader.whole("reminder_hour", 0, 23, "hours")
        values["reminder_hour"] = None if hour == "" else hour
        values["days_off"] = reader.read_weekdays()
        for field in ("calendar", "missed", "double_last_week"):
            values[field] = reader.yes(field)
        values["card_amount"] = reader.card_amount()
        exam = dt.date.fromisoformat(values["exam_day"]) if values["exam_day"] else None
        if exam != kept and not reader.problems:
            off = frozenset(map(int, values["days_off"]))
            mocks = plan_mock_days(today, exam, off) if exam else ()
            values["exam_result"] = ""
            values["plan_begun"] = today.isoformat() if exam else None
            values["mock_days"] = " ".join(day.isoformat() for day in mocks)
        return values, reader.problems


class _SettingsReader:
    """Validates fields one by one and collects problems."""

    def __init__(self, form: SettingsForm) -> None:
        self._form = form
        self.problems: Problems = []

    def text(self, field: str, longest: int) -> str:
        value = " ".join(self._typed(field).split())
        if len(value) > longest:
            self._refuse(field, f"At most {longest} characters; this has {len(value)}.")
        return value

    def whole(self, field: str, least: int, most: int, of: str) -> int:
        typed = self._typed(field).removesuffix("%").strip()
        digits = typed.isascii() and typed.isdigit() and len(typed) <= _DIGITS
        if digits and least <= int(typed) <= most:
            return int(typed)
        said = _quote_typed(typed) if typed else "nothing"
        self._refuse(
            field,
            f"Enter a whole number from {least} to {most} {of}; you entered {said}.",
        )
        return 0

    def day(self, field: str, today: dt.date, kept: dt.date | None) -> str | None:
        typed = self._typed(field)
        if not typed:
            return None
        try:
            day = dt.date.fromisoformat(typed)
        except ValueError:
            self._refuse(
                field, f"Enter a day such as 2026-07-03; {_quote_typed(typed)} is not one."
            )
            return None
        ahead = today <= day <= today + dt.timedelta(days=1100)
        if not ahead and day != kept:
            self._refuse(field, "Enter a day between today and three years from now.")
        return day.isoformat()

    def zone(self) -> str:
        typed = self._typed("zone")
        if typed not in list_time_zones():
            self._refuse(
                "zone",
                f"Choose a zone such as Europe/Berlin; {_quote_typed(typed)} is unknown.",
            )
        return typed

    def read_weekdays(self) -> str:
        chosen = sorted(set(self._form.days_off))
        if not set(chosen) <= set(WEEKDAYS):
            self._refuse("days_off", "Choose days from Monday to Sunday.")
        elif len(chosen) == len(WEEKDAYS):
            self._refuse("days_off", "Leave at least one day a week to study.")
        return "".join(chosen)

    def card_amount(self) -> str:
        typed = self._typed("card_amount")
        if typed not in CARD_AMOUNTS:
            self._refuse(
                "card_amount",
                f"Choose fewer, normal or more; {_quote_typed(typed)} is none of them.",
            )
        return typed

    def yes(self, field: str) -> bool:
        typed = self._typed(field)
        if typed not in {"yes", "no"}:
            self._refuse(field, f"Choose yes or no; {_quote_typed(typed)} is neither.")
        return typed == "yes"

    def _typed(self, field: str) -> str:
        return str(getattr(self._form, field)).strip()

    def _refuse(self, field: str, message: str) -> None:
        self.problems.append({"field": field, "message": message})


def _quote_typed(typed: str) -> str:
    """Return the rejected value for display, truncated if it is long."""
    return f"“{typed}”" if len(typed) <= _MAX_QUOTED_LENGTH else f"“{typed[:_MAX_QUOTED_LENGTH]}…”"


@functools.cache
def list_time_zones() -> tuple[str, ...]:
    """Return the time zones to choose from, by region and city."""
    regions = "Africa America Antarctica Arctic Asia Atlantic Australia Europe Indian"
    wanted = {*regions.split(), "Pacific"}
    known = zoneinfo.available_timezones()
    return ("UTC", *sorted(z for z in known if z.split("/")[0] in wanted and "/" in z))


def settings_page(
    request: Request,
    learner: LearnerProfile,
    db: Session,
    typed: SettingsForm,
    problems: Problems,
) -> HTMLResponse:
    """Render the settings page with the submitted values; 422 if there are problems."""
    asked = request.query_params
    return render_page(
        request,
        "learners/settings.html",
        status=422 if problems else 200,
        learner=learner,
        typed=typed,
        problems=problems,
        weekdays=WEEKDAYS,
        hours=[(str(hour), f"{hour:02}:00") for hour in range(24)],
        zones=[(zone, zone.replace("_", " ")) for zone in list_time_zones()],
        exam_over=_is_over(learner, request.app.state.clock()),
        kept=asked.get("kept") == "yes" and not problems,
        ended=asked.get("ended") == "yes" and not problems,
        zone=find_time_zone(learner.zone),
        browsers=learner_store.list_browser_sessions(
            db, learner.home, request.state.visitor.digest
        ),
        keys_off=request.cookies.get("keys") == "off",
    )


def _is_over(learner: LearnerProfile, now: dt.datetime) -> bool:
    exam = learner.exam_day
    return exam is not None and exam < learner.study_day(now)


def settings_as_typed(learner: LearnerProfile) -> SettingsForm:
    """Return the current settings as form values."""
    return SettingsForm(
        name=learner.name,
        exam_day=learner.exam_day.isoformat() if learner.exam_day else "",
        minutes_a_day=str(learner.minutes_a_day),
        zone=learner.zone,
        retention=f"{learner.retention * 100:.0f}",
        target="" if learner.target is None else str(learner.target),
        calendar="yes" if learner.calendar else "no",
        missed="yes" if learner.missed else "no",
        card_amount=learner.card_amount,
        double_last_week="yes" if learner.habits.double else "no",
        reminder_hour="" if learner.reminder_hour is None else str(learner.reminder_hour),
        days_off=[str(day) for day in sorted(learner.habits.off)],
    )


router = APIRouter()


@router.get("/settings")
def show_settings(request: Request, learner: CurrentLearner, db: DbSession) -> HTMLResponse:
    return settings_page(request, learner, db, settings_as_typed(learner), [])


@router.post("/settings")
def change_settings(
    request: Request,
    typed: Annotated[SettingsForm, Form()],
    learner: EnrolledLearner,
    db: DbSession,
    now: Now,
) -> Response:
    values, problems = typed.read(learner.study_day(now), learner.exam_day)
    if problems:
        return settings_page(request, learner, db, typed, problems)
    learner_store.change_settings(db, learner.id, values)
    return RedirectResponse("/settings?kept=yes", 303)


@router.post("/settings/appearance")
def change_appearance(
    theme: Annotated[str, Form()] = "", keys: Annotated[str, Form()] = ""
) -> Response:
    """Save appearance settings in this browser, not with the learner: they depend on the screen."""
    response = RedirectResponse("/settings?kept=yes", 303)
    for name, value in (
        ("theme", theme if theme in {"light", "dark"} else ""),
        ("keys", "off" if keys == "off" else ""),
    ):
        age = YEAR if value else 0
        response.set_cookie(name, value, max_age=age, samesite="lax")
    return response
