"""The learner of a request: settings, study habits, and the dates of the plan."""

import dataclasses
import datetime as dt
import math
from collections.abc import Iterable
from typing import Literal, NamedTuple

from app.clock import study_day_at, time_zone_or_utc
from app.learner_defaults import DEFAULT_MINUTES_A_DAY, DEFAULT_RETENTION

CardAmount = Literal["fewer", "normal", "more"]
CARD_AMOUNTS: tuple[CardAmount, ...] = ("fewer", "normal", "more")
PageLength = Literal["auto", "short", "full"]
PAGE_LENGTHS: tuple[PageLength, ...] = ("auto", "short", "full")

_ONE_DAY = dt.timedelta(days=1)
_FIRST_MOCK_SHARE = 0.4  # of the days until the exam, before the first mock exam
_LAST_MOCK_DAYS_BEFORE = 2  # days from the last mock exam to the exam
_MIN_DAYS_BETWEEN = 4  # days between the last mock exam and the one before it
_MOST_DAYS_LATE = 2  # days that a missed mock exam stays on the list; the last one until the eve
_OPEN_DAYS = 60  # days that the plan looks ahead while no exam day is set


@dataclasses.dataclass(frozen=True, slots=True)
class PlanCalendar:
    """The dates of a plan, from the study day on which the exam day was set.

    `weekdays_off` have no study time (Monday is 0). Without an exam day there are no mock
    exams, and the plan looks a fixed number of days ahead. Those before the first day are of an
    earlier try.
    """

    first_day: dt.date
    exam_day: dt.date | None = None
    mock_exam_days: tuple[dt.date, ...] = ()
    weekdays_off: frozenset[int] = frozenset()

    @property
    def total_days(self) -> int:
        """The days from setting the exam day to the exam, at least 1."""
        return max(1, (self.exam_day - self.first_day).days) if self.exam_day else _OPEN_DAYS

    def days_until_exam(self, day: dt.date) -> int:
        """Return the days from `day` to the exam, 0 on the exam day and after it."""
        return max(0, (self.exam_day - day).days) if self.exam_day else _OPEN_DAYS

    def count_study_days_after(self, day: dt.date) -> int:
        """Return how many days after `day` and before the exam have study time."""
        days = (day + n * _ONE_DAY for n in range(1, self.days_until_exam(day)))
        return sum(date.weekday() not in self.weekdays_off for date in days)

    def list_reading_days_after(self, day: dt.date) -> tuple[dt.date, ...]:
        """Return the days after `day` and before the exam whose lists may have pages.

        Days off, days of a mock exam and the eve of the exam have none.
        """
        days = (day + n * _ONE_DAY for n in range(1, self.days_until_exam(day) - 1))
        return tuple(d for d in days if not self.is_day_off(d) and d not in self.mock_exam_days)

    def is_day_off(self, day: dt.date) -> bool:
        """Return whether nothing is planned for a day. The exam day is never off."""
        return (
            self.exam_day is not None and day < self.exam_day and day.weekday() in self.weekdays_off
        )

    def find_due_mock_exam_day(
        self, day: dt.date, last_sitting_day: dt.date | None
    ) -> dt.date | None:
        """Return the date of the mock exam to sit on `day`, which may be an earlier one."""
        planned_day = max((mock for mock in self.mock_exam_days if mock <= day), default=None)
        if planned_day is None or self.exam_day is None or day >= self.exam_day:
            return None
        if planned_day < self.first_day <= day:
            return None  # of an earlier try
        if last_sitting_day is not None and last_sitting_day >= planned_day:
            return None
        days_late = (day - planned_day).days
        return (
            planned_day
            if days_late <= _MOST_DAYS_LATE or planned_day == self.mock_exam_days[-1]
            else None
        )

    def map_mock_exams_to_sitting_days(
        self, sitting_days: Iterable[dt.date]
    ) -> dict[dt.date, dt.date]:
        """Return the day on which each planned mock exam that was taken was sat, by its date.

        On a day on which none is due, the next one is taken early.
        """
        sat_on_by_mock: dict[dt.date, dt.date] = {}
        last = None
        for day in sorted(sitting_days):
            mock = self.find_due_mock_exam_day(day, last)
            if mock is None or mock in sat_on_by_mock:
                later = (mock for mock in self.mock_exam_days if mock > day)
                of_same_try = (m for m in later if (m < self.first_day) == (day < self.first_day))
                mock = min(of_same_try, default=None)
            if mock is not None:
                sat_on_by_mock.setdefault(mock, day)
            last = day
        return sat_on_by_mock

    def without_mock_exams_taken_early(self, sitting_days: Iterable[dt.date]) -> "PlanCalendar":
        """Return the dates without those of mock exams that were sat before."""
        sat_on_by_mock = self.map_mock_exams_to_sitting_days(sitting_days)
        left = (mock for mock in self.mock_exam_days if sat_on_by_mock.get(mock, mock) >= mock)
        return dataclasses.replace(self, mock_exam_days=tuple(left))


def plan_mock_exam_days(
    first_day: dt.date, exam_day: dt.date, weekdays_off: frozenset[int] = frozenset()
) -> tuple[dt.date, ...]:
    """Return the dates of the mock exams for an exam day that was set on `first_day`.

    The first comes after 40% of the days, then one a week, the last two days before the exam. A
    date that is a day off moves to the next day with study time. None if fewer than four days are
    left.

    >>> [day.day for day in plan_mock_exam_days(dt.date(2026, 3, 1), dt.date(2026, 3, 25))]
    [11, 18, 23]
    """
    days = (exam_day - first_day).days
    if days < _LAST_MOCK_DAYS_BEFORE + 2:
        return ()
    last = days - _LAST_MOCK_DAYS_BEFORE
    first = max(2, math.ceil(_FIRST_MOCK_SHARE * days))
    offsets = [*range(first, last - _MIN_DAYS_BETWEEN + 1, 7), last]
    dates = [
        _first_study_day_from(first_day + n * _ONE_DAY, exam_day, weekdays_off) for n in offsets
    ]
    return tuple(dict.fromkeys(dates))


def _first_study_day_from(day: dt.date, exam: dt.date, weekdays_off: frozenset[int]) -> dt.date:
    study_day = day
    while study_day < exam and study_day.weekday() in weekdays_off:
        study_day += _ONE_DAY
    return study_day if study_day < exam else day


def move_mock_exams_from_days_off(
    mock_exam_days: tuple[dt.date, ...],
    exam_day: dt.date,
    weekdays_off: frozenset[int],
    today: dt.date,
) -> tuple[dt.date, ...]:
    """Return the mock exam dates, later ones on a day off moved to the next day with study time.

    One stays where it is if that day has a mock exam already, so that none is lost.

    >>> days = dt.date(2026, 3, 9), dt.date(2026, 3, 10)
    >>> moved = move_mock_exams_from_days_off(days, dt.date(2026, 3, 20), frozenset({0}), days[0] - _ONE_DAY)
    >>> [day.day for day in moved]
    [9, 10]
    """
    moved = list(mock_exam_days)
    for number, day in enumerate(mock_exam_days):
        study_day = _first_study_day_from(day, exam_day, weekdays_off)
        if day > today and study_day not in moved:
            moved[number] = study_day
    return tuple(sorted(moved))


def move_mock_exam_day(
    calendar: PlanCalendar, old_day: dt.date, new_day: dt.date, today: dt.date
) -> tuple[dt.date, ...]:
    """Return the mock exam dates with `old_day` moved; ValueError has a sentence for the learner."""
    if calendar.exam_day is None or old_day not in calendar.mock_exam_days:
        raise ValueError(f"No mock exam is planned for {old_day.isoformat()}.")
    if not today <= new_day < calendar.exam_day:
        raise ValueError("Choose a day from today to the day before your exam.")
    if new_day != old_day and new_day in calendar.mock_exam_days:
        raise ValueError(f"A mock exam is already planned for {new_day.isoformat()}.")
    return tuple(sorted(new_day if mock == old_day else mock for mock in calendar.mock_exam_days))


class PastExam(NamedTuple):
    """An exam that the learner took; the result is passed or failed."""

    day: dt.date
    result: str

    @property
    def as_text(self) -> str:
        return f"{self.day.isoformat()}:{self.result}"


def parse_past_exams(text: str) -> tuple[PastExam, ...]:
    """Return the exams of a text such as 2026-10-14:failed, with spaces between."""
    entries = (entry.partition(":") for entry in text.split())
    return tuple(PastExam(dt.date.fromisoformat(day), result) for day, _, result in entries)


LAST_WEEK_DAYS = 7
"""Days before the exam on which the study time may be doubled."""


FIELD_BY_COLUMN = {
    "course": "course_name",
    "calendar": "shows_study_log",
    "missed": "missed_questions_become_cards",
}
"""The fields of `LearnerProfile` that aren't named as their column of the learner table."""


@dataclasses.dataclass(frozen=True, slots=True)
class LearnerProfile:
    """The learner of a request. `id` is 0 until something is saved in this course.

    The fields are the columns of the learner table, most of them settings. `key` seeds draws
    and is the same in all of the learner's browsers. `acts` counts manual edits of cards.
    `person` is shared by the learner's rows in all courses.

    `has_edited_cards` says that the learner rewrote a course card.

    Three more are about the request: `row_id_in_any_course` is 0 for a new visitor; `last_seen`
    is when this browser was last recorded, in milliseconds; `is_session_revoked` says that its
    session was ended.
    """

    key: str
    id: int = 0
    person: str = ""
    course_name: str = ""
    name: str = ""
    zone: str = "UTC"
    exam_day: dt.date | None = None
    minutes_a_day: int = DEFAULT_MINUTES_A_DAY
    retention: float = DEFAULT_RETENTION
    target: int | None = None
    shows_study_log: bool = True
    missed_questions_become_cards: bool = True
    double_last_week: bool = False
    days_off: frozenset[int] = frozenset()
    plan_begun: dt.date | None = None
    mock_days: tuple[dt.date, ...] = ()
    card_amount: CardAmount = "normal"
    page_route: PageLength = "auto"
    reminder_hour: int | None = None
    exam_result: str = ""
    past_exams: tuple[PastExam, ...] = ()
    mail: str = ""
    mail_key: str = ""
    mail_confirmed: bool = False
    mailed: str = ""
    acts: int = 0
    has_edited_cards: bool = False
    row_id_in_any_course: int = 0
    last_seen: int = 0
    is_session_revoked: bool = False

    def study_day(self, now: dt.datetime) -> dt.date:
        """Return the learner's study day at `now`. It changes at 04:00 local time."""
        return study_day_at(now, self.zone)

    def local_time(self, moment: dt.datetime) -> dt.datetime:
        """Return a moment in the learner's time zone."""
        return moment.astimezone(time_zone_or_utc(self.zone))

    def minutes_ignoring_days_off(self, day: dt.date) -> int:
        """Return the minutes to study on a day, as if no day were off; 0 after the exam."""
        if self.is_exam_over(day):
            return 0
        last_week = self.exam_day is not None and 0 <= (self.exam_day - day).days <= LAST_WEEK_DAYS
        return self.minutes_a_day * (2 if self.double_last_week and last_week else 1)

    def is_exam_over(self, day: dt.date) -> bool:
        """Return whether the exam day is before `day`, or is that day and has a result."""
        if self.exam_day is None:
            return False
        return self.exam_day < day or (self.exam_day == day and bool(self.exam_result))

    def list_exams_taken(self) -> tuple[PastExam, ...]:
        """Return the exams whose result is known, oldest first; one a day."""
        taken = {exam.day: exam for exam in self.past_exams}
        if self.exam_day is not None and self.exam_result:
            taken[self.exam_day] = PastExam(self.exam_day, self.exam_result)
        return tuple(taken[day] for day in sorted(taken))

    def plan_calendar_as_of(self, day: dt.date) -> PlanCalendar:
        """Return the dates of the plan as of a study day; without an exam day if it is over."""
        if self.exam_day is None or self.is_exam_over(day):
            return PlanCalendar(day, weekdays_off=self.days_off)
        begin = self.plan_begun or day
        return PlanCalendar(begin, self.exam_day, self.mock_days, self.days_off)
