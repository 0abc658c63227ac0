"""The learner's settings page."""

import dataclasses
import datetime as dt
import functools
import zoneinfo
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Annotated, Any, NamedTuple

from fastapi import APIRouter, Form
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from pydantic import BaseModel, ConfigDict

from app.accounts import learner_store
from app.accounts.current_learner import LearnerProfile, ReadContext, RequestContext, WriteContext
from app.accounts.learner import (
    CARD_AMOUNTS,
    FIELD_BY_COLUMN,
    PAGE_LENGTHS,
    PlanCalendar,
    move_mock_exams_from_days_off,
    plan_mock_exam_days,
)
from app.learner_defaults import DEFAULT_RETENTION
from app.web.formatting import format_time_of_day
from app.web.visitor import YEAR_SECONDS

Problems = list[dict[str, str]]
_MAX_NUMBER_DIGITS = 9  # of a number: parsing thousands of digits takes long or fails
_DAY_NAMES = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
WEEKDAYS = {str(number): name for number, name in enumerate(_DAY_NAMES)}
"""Form values of weekdays and their names."""
_MAX_NAME_LENGTH = 80
_MAX_QUOTED_LENGTH = 40  # characters of an input that an error message repeats


class DeviceCodeForm(BaseModel):
    """A submitted device code, and the boxes that were ticked."""

    model_config = ConfigDict(extra="ignore")

    code: str = ""
    confirm: str = ""
    leave: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class SettingConversion:
    """How a setting is read from a form field and shown in it.

    `parse_field` returns the value of the column. It raises ValueError with what to enter.
    `format_for_field` returns the text for an attribute of the learner.
    """

    parse_field: Callable[[Any], Any]
    format_for_field: Callable[[Any], Any] = str


def _parse_name(typed: str) -> str:
    name = " ".join(typed.split())
    if len(name) > _MAX_NAME_LENGTH:
        raise ValueError(f"At most {_MAX_NAME_LENGTH} characters; this has {len(name)}.")
    return name


def _make_whole_number_parser(least: int, limit: int, unit: str) -> Callable[[str], int]:
    def parse(typed: str) -> int:
        digits = typed.removesuffix("%").strip()
        if digits.isascii() and digits.isdigit() and len(digits) <= _MAX_NUMBER_DIGITS:
            number = int(digits)
            if least <= number <= limit:
                return number
        entered = _quote_shortened_input(digits) if digits else "nothing"
        raise ValueError(
            f"Enter a whole number from {least} to {limit} {unit}; you entered {entered}."
        )

    return parse


_parse_recall = _make_whole_number_parser(70, 97, "percent")


def _optional_number_conversion(least: int, limit: int, unit: str) -> SettingConversion:
    """Return the conversion of a number that may be left out: None, shown as an empty field."""
    parse = _make_whole_number_parser(least, limit, unit)
    return SettingConversion(
        lambda typed: parse(typed) if typed else None,
        lambda number: "" if number is None else str(number),
    )


def _parse_day(typed: str) -> str | None:
    try:
        return dt.date.fromisoformat(typed).isoformat() if typed else None
    except ValueError:
        message = f"Enter a day such as 2026-07-03; {_quote_shortened_input(typed)} is not one."
        raise ValueError(message) from None


def _parse_zone(typed: str) -> str:
    if typed not in list_time_zones():
        raise ValueError(
            f"Choose a zone such as Europe/Berlin; {_quote_shortened_input(typed)} is unknown."
        )
    return typed


def _parse_weekdays(chosen: Collection[str]) -> str:
    if not set(chosen) <= WEEKDAYS.keys():
        raise ValueError("Choose days from Monday to Sunday.")
    if len(set(chosen)) == len(WEEKDAYS):
        raise ValueError("Leave at least one day a week to study.")
    return "".join(sorted(set(chosen)))


def _make_choice_parser(choices: Sequence[str]) -> Callable[[str], str]:
    def parse(typed: str) -> str:
        if typed not in choices:
            listed = f"{', '.join(choices[:-1])} or {choices[-1]}"
            raise ValueError(f"Choose {listed}; {_quote_shortened_input(typed)} is none of them.")
        return typed

    return parse


def _parse_yes_or_no(typed: str) -> bool:
    if typed not in {"yes", "no"}:
        raise ValueError(f"Choose yes or no; {_quote_shortened_input(typed)} is neither.")
    return typed == "yes"


_YES_OR_NO = SettingConversion(_parse_yes_or_no, lambda on: "yes" if on else "no")


class ParsedSettings(NamedTuple):
    """The values of columns, and the problems by field; with a problem, nothing is saved."""

    values_by_column: dict[str, Any]
    problems: Problems


class SettingsForm(BaseModel):
    """The settings as submitted. Each field is named after its column and says how it is read."""

    model_config = ConfigDict(extra="ignore")

    name: Annotated[str, SettingConversion(_parse_name)] = ""
    exam_day: Annotated[
        str, SettingConversion(_parse_day, lambda day: day.isoformat() if day else "")
    ] = ""
    minutes_a_day: Annotated[
        str, SettingConversion(_make_whole_number_parser(5, 480, "minutes a day"))
    ] = "30"
    zone: Annotated[str, SettingConversion(_parse_zone)] = "UTC"
    retention: Annotated[
        str,
        SettingConversion(
            lambda typed: _parse_recall(typed) / 100, lambda recall: f"{recall * 100:.0f}"
        ),
    ] = f"{DEFAULT_RETENTION * 100:.0f}"
    target: Annotated[str, _optional_number_conversion(1, 100, "percent")] = ""
    days_off: Annotated[
        list[str],
        SettingConversion(_parse_weekdays, lambda days: [str(day) for day in sorted(days)]),
    ] = []
    calendar: Annotated[str, _YES_OR_NO] = "yes"
    missed: Annotated[str, _YES_OR_NO] = "yes"
    card_amount: Annotated[str, SettingConversion(_make_choice_parser(CARD_AMOUNTS))] = "normal"
    page_route: Annotated[str, SettingConversion(_make_choice_parser(PAGE_LENGTHS))] = "auto"
    reminder_hour: Annotated[str, _optional_number_conversion(0, 23, "hours")] = ""
    double_last_week: Annotated[str, _YES_OR_NO] = "no"

    def parse_values_and_plan_mock_exams(
        self, today: dt.date, learner: LearnerProfile, sitting_days: Iterable[dt.date] = ()
    ) -> ParsedSettings:
        """Return column values, and problems for fields with invalid values.

        An exam day in the past is accepted only if it is the one of `learner`. Any other exam day
        also sets the dates of its mock exams, which follow from it and the day on which the plan
        began; one whose exam is over or has no day begins today. Past dates and the result of the
        exam before stay. Of the new dates, those that earlier `sitting_days` count for are the days
        of these sittings.
        With the same exam day, planned ones on a weekday that is off now move to the next day.
        """
        saved_exam_day, mock_exam_days = learner.exam_day, learner.mock_days
        values: dict[str, Any] = {}
        problems: Problems = []
        for name, setting in _conversions_by_setting().items():
            typed = getattr(self, name)
            try:
                values[name] = setting.parse_field(
                    typed.strip() if isinstance(typed, str) else typed
                )
            except ValueError as error:
                problems.append({"field": name, "message": str(error)})
        day = dt.date.fromisoformat(values.get("exam_day") or today.isoformat())
        if not today <= day <= today + dt.timedelta(days=1100) and day != saved_exam_day:
            message = "Enter a day between today and three years from now."
            problems.append({"field": "exam_day", "message": message})
        exam = dt.date.fromisoformat(values["exam_day"]) if values.get("exam_day") else None
        weekdays_off = frozenset(map(int, values.get("days_off") or ""))
        if exam and exam == saved_exam_day and not problems:
            moved = move_mock_exams_from_days_off(mock_exam_days, exam, weekdays_off, today)
            if moved != mock_exam_days:
                values["mock_days"] = " ".join(d.isoformat() for d in moved)
        elif exam != saved_exam_day and not problems:
            is_ahead = saved_exam_day is not None and saved_exam_day > today
            begin = learner.plan_begun if learner.plan_begun and is_ahead else today
            past = (d for d in mock_exam_days if d < today)
            planned = plan_mock_exam_days(begin, exam, weekdays_off) if exam else ()
            values["exam_result"] = ""
            values["past_exams"] = " ".join(past.as_text for past in learner.list_exams_taken())
            values["plan_begun"] = begin.isoformat() if exam else None
            mock_exam_days = (*past, *(d for d in planned if d > today))
            calendar = PlanCalendar(begin, exam, mock_exam_days, weekdays_off)
            sat_on = calendar.map_mock_exams_to_sitting_days(sitting_days)
            days = {sat_on.get(d, d) if d > today else d for d in mock_exam_days}
            values["mock_days"] = " ".join(d.isoformat() for d in sorted(days))
        return ParsedSettings(values, problems)


class SettingsPageForm(SettingsForm):
    """The form of the settings page, with what is kept in the browser: it depends on the screen."""

    theme: str | None = None
    keys: str | None = None


@functools.cache
def _conversions_by_setting() -> dict[str, SettingConversion]:
    fields = SettingsForm.model_fields.items()
    return {
        name: metadata
        for name, field in fields
        for metadata in field.metadata
        if isinstance(metadata, SettingConversion)
    }


def build_settings_form(learner: LearnerProfile) -> SettingsPageForm:
    return SettingsPageForm(
        **{
            name: setting.format_for_field(getattr(learner, FIELD_BY_COLUMN.get(name, name)))
            for name, setting in _conversions_by_setting().items()
        }
    )


def _quote_shortened_input(typed: str) -> str:
    """Return the rejected value for display, truncated if it is long."""
    return f"“{typed}”" if len(typed) <= _MAX_QUOTED_LENGTH else f"“{typed[:_MAX_QUOTED_LENGTH]}…”"


@functools.cache
def list_time_zones() -> tuple[str, ...]:
    regions = "Africa America Antarctica Arctic Asia Atlantic Australia Europe Indian"
    shown_regions = {*regions.split(), "Pacific"}
    zones = zoneinfo.available_timezones()
    return ("UTC", *sorted(z for z in zones if z.split("/")[0] in shown_regions and "/" in z))


def render_settings_page(
    ctx: RequestContext, form: SettingsPageForm, problems: Problems
) -> HTMLResponse:
    """Render the settings page with the submitted values; 422 if there are problems."""
    query = ctx.request.query_params
    return ctx.render_page(
        "accounts/settings.html",
        status=422 if problems else 200,
        form=form,
        problems=problems,
        weekdays=WEEKDAYS,
        hours=[(str(hour), format_time_of_day(dt.time(hour))) for hour in range(24)],
        zones=[(zone, zone.replace("_", " ")) for zone in list_time_zones()],
        exam_over=ctx.learner.is_exam_over(ctx.study_day),
        saved=query.get("kept") == "yes" and not problems,
        ended=query.get("ended") == "yes" and not problems,
        browsers=learner_store.list_browser_sessions(
            ctx.db, ctx.learner.row_id_in_any_course, ctx.visitor.session_key_digest
        ),
        keys_off=ctx.request.cookies.get("keys") == "off",
    )


router = APIRouter()


@router.get("/settings")
def show_settings(ctx: ReadContext) -> HTMLResponse:
    return render_settings_page(ctx, build_settings_form(ctx.learner), [])


@router.post("/settings")
def change_settings(ctx: WriteContext, form: Annotated[SettingsPageForm, Form()]) -> Response:
    sitting_days = learner_store.load_sitting_days(ctx.db, ctx.learner, ctx.course)
    parsed = form.parse_values_and_plan_mock_exams(ctx.study_day, ctx.learner, sitting_days)
    if parsed.problems:
        return render_settings_page(ctx, form, parsed.problems)
    learner_store.update_learner_columns(ctx.db, ctx.learner.id, parsed.values_by_column)
    return _redirect_with_appearance_cookies(form.theme, form.keys)


@router.post("/settings/appearance")
def change_appearance(
    theme: Annotated[str, Form()] = "", keys: Annotated[str, Form()] = ""
) -> Response:
    """Save appearance settings in this browser, not with the learner: they depend on the screen."""
    return _redirect_with_appearance_cookies(theme or "system", keys or "on")


def _redirect_with_appearance_cookies(theme: str | None, keys: str | None) -> Response:
    """Lead back to the settings. A browser keeps colors and keys that differ from the default."""
    response = RedirectResponse("/settings?kept=yes", 303)
    for name, chosen, kept_values in (
        ("theme", theme, {"light", "dark"}),
        ("keys", keys, {"off"}),
    ):
        if chosen is not None:
            value = chosen if chosen in kept_values else ""
            response.set_cookie(name, value, max_age=YEAR_SECONDS if value else 0, samesite="lax")
    return response
