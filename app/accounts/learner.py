"""The learner of a request, with their settings and study habits."""

import dataclasses
import datetime as dt

from app.accounts.plan_calendar import CardAmount, PageRoute, PlanCalendar
from app.clock import DEFAULT_RETENTION, study_day_at, study_day_start

LAST_WEEK = 7
"""Days before the exam on which the study time may be doubled."""


@dataclasses.dataclass(frozen=True, slots=True)
class LearnerProfile:
    """The learner of a request. `id` is 0 until something is saved in this course.

    The fields are the columns of the learner table, most of them settings. `key` seeds
    draws and is the same in all of the learner's browsers. `calendar` shows the study log;
    `missed` turns missed questions into cards. `acts` counts manual edits of cards.
    `person` is shared by the learner's rows in all courses.

    Three more are about the request: `home` is the id of their row in any course, 0 for a
    new visitor; `last_seen` is when this browser was last recorded, in milliseconds;
    `revoked` says that its session was ended.
    """

    key: str
    id: int = 0
    person: str = ""
    course: str = ""
    name: str = ""
    zone: str = "UTC"
    exam_day: dt.date | None = None
    minutes_a_day: int = 30
    retention: float = DEFAULT_RETENTION
    target: int | None = None
    calendar: bool = True
    missed: bool = True
    double_last_week: bool = False
    days_off: frozenset[int] = frozenset()
    plan_begun: dt.date | None = None
    mock_days: tuple[dt.date, ...] = ()
    card_amount: CardAmount = "normal"
    page_route: PageRoute = "auto"
    reminder_hour: int | None = None
    exam_result: str = ""
    mail: str = ""
    mail_key: str = ""
    mail_confirmed: bool = False
    mailed: str = ""
    acts: int = 0
    home: int = 0
    last_seen: int = 0
    revoked: bool = False

    def study_day(self, now: dt.datetime) -> dt.date:
        """Return the learner's study day at `now`. It changes at 04:00 local time."""
        return study_day_at(now, self.zone)

    def is_off(self, day: dt.date) -> bool:
        """Return whether nothing is planned for a day: a day off before the exam."""
        exam = self.exam_day
        return exam is not None and day < exam and day.weekday() in self.days_off

    def minutes_on(self, day: dt.date) -> int:
        """Return the minutes of a study day. A day off counts like any other day."""
        last_week = self.exam_day is not None and 0 <= (self.exam_day - day).days <= LAST_WEEK
        return self.minutes_a_day * (2 if self.double_last_week and last_week else 1)

    def plan_calendar(self, day: dt.date) -> PlanCalendar:
        """Return the dates of the plan as of a study day; without an exam day if it is over."""
        if self.exam_day is None or self.exam_day < day:
            return PlanCalendar(day, off=self.days_off)
        begin = self.plan_begun or day
        return PlanCalendar(begin, self.exam_day, self.mock_days, self.days_off)

    def next_study_day(self, now: dt.datetime) -> dt.datetime:
        """Return when the study day after `now` begins."""
        return study_day_start(self.study_day(now) + dt.timedelta(days=1), self.zone)
