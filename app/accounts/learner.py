"""The learner of a request, with their settings and study habits."""

import dataclasses
import datetime as dt

from app.clock import RETENTION, study_day_at, study_day_start

LAST_WEEK = 7
"""Days before the exam on which the study time may be doubled."""
_WEEK = 7


@dataclasses.dataclass(frozen=True, slots=True)
class StudyHabits:
    """A learner's choices for the study plan.

    `fill` uses all minutes of each day, `double` doubles the minutes in the last week,
    `off` are the weekdays without study time (Monday is 0).
    """

    fill: bool = False
    double: bool = False
    off: frozenset[int] = frozenset()

    def is_off(self, day: int) -> bool:
        """Return whether a study day (a date ordinal) is a day off."""
        return (day - 1) % _WEEK in self.off

    def share_on(self, day: int, exam: int) -> int:
        """Return the minutes of a study day as a multiple of the usual minutes: 0, 1 or 2.

        The exam day is never a day off.
        """
        if self.is_off(day) and day < exam:
            return 0
        return 2 if self.double and 0 <= exam - day <= LAST_WEEK else 1


DEFAULT_HABITS = StudyHabits()


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
    retention: float = RETENTION
    target: int | None = None
    calendar: bool = True
    missed: bool = True
    all_minutes: bool = False
    double_last_week: bool = False
    days_off: frozenset[int] = frozenset()
    acts: int = 0
    home: int = 0
    last_seen: int = 0
    revoked: bool = False

    @property
    def habits(self) -> StudyHabits:
        """The choices for the study plan."""
        return StudyHabits(self.all_minutes, self.double_last_week, self.days_off)

    def study_day(self, now: dt.datetime) -> dt.date:
        """Return the learner's study day at `now`. It changes at 04:00 local time."""
        return study_day_at(now, self.zone)

    def is_off(self, day: dt.date) -> bool:
        """Return whether nothing is planned for a day: a day off before the exam."""
        exam = self.exam_day
        return exam is not None and day < exam and self.habits.is_off(day.toordinal())

    def minutes_on(self, day: dt.date) -> int:
        """Return the minutes of a study day. A day off counts like any other day."""
        if self.exam_day is None:
            return self.minutes_a_day
        share = self.habits.share_on(day.toordinal(), self.exam_day.toordinal())
        return self.minutes_a_day * max(1, share)

    def next_study_day(self, now: dt.datetime) -> dt.datetime:
        """Return when the study day after `now` begins."""
        return study_day_start(self.study_day(now) + dt.timedelta(days=1), self.zone)
