"""A learner's plan until the exam, made of what is kept about them."""

import dataclasses
import datetime as dt

from app.flashcards.desk import Desk, pace_of, plan_of, stack_of
from app.mastery.weakest import weakest_first
from app.progress import store
from app.progress.ahead import Ahead, Held, ahead_of, asked_of, pace_words
from app.progress.figures import StudyDays
from app.progress.picture import Picture
from app.progress.steps import minutes_left, reading_order
from app.progress.study_plan import (
    Cards,
    Mock,
    Page,
    Student,
    StudyPlan,
    Work,
    cards_by_day,
    plan_days,
)
from app.scheduling import card_seconds
from app.scheduling.outlook import HORIZON
from app.web.clock import moment


def cards_ahead(desk: Desk, held: Held) -> tuple[Ahead | None, str]:
    """The cards of the days until the exam, and how many new ones a day in words."""
    learner, exam = desk.learner, desk.learner.exam_day
    if exam is None:
        return None, ""
    seconds = card_seconds(learner.minutes_a_day)
    times = seconds, desk.day, learner.retention, pace_of(desk)
    asked = asked_of(held, exam, *times)
    asked = dataclasses.replace(asked, habits=learner.habits)
    ahead = ahead_of(held, asked, stack_of(desk).left)
    today = plan_of(desk)
    return ahead, pace_words(today.outline) if today else ""


def study_plan(
    desk: Desk, picture: Picture, ahead: Ahead | None, days: StudyDays
) -> StudyPlan | None:
    """The plan of days; None without an exam day, or while it is far or over.

    `days` are those studied, of which today's minutes are charged.
    """
    exam, day = desk.learner.exam_day, desk.day
    if exam is None or not 0 <= (exam - day).days <= HORIZON:
        return None
    learner, db = desk.learner, desk.db
    spent = days.recent.get(day.isoformat())
    student = Student(
        minutes=learner.minutes_a_day,
        spent=spent.milliseconds / 60_000 if spent else 0.0,
        pace=store.pace(db, learner.id, desk.library, day),
        habits=learner.habits,
    )
    return plan_days(day, exam, work_of(desk, picture, ahead), student, learner.key)


def work_of(desk: Desk, picture: Picture, ahead: Ahead | None) -> Work:
    """What there is to do until the exam."""
    library, record, domains = desk.library, picture.record, picture.domains
    names = {s.objective.number: s.objective.name for d in domains for s in d.standings}
    last = picture.pages[0].topic if picture.pages else ""
    topics = reading_order(library, record, domains)
    topics.sort(key=lambda topic: topic.slug != last)  # the page left open comes first
    sat = store.last_sat(desk.db, desk.learner.id)
    return Work(
        pages=[
            Page(
                topic.slug,
                topic.title,
                left,
                names.get("".join(topic.objectives[:1]), ""),
            )
            for topic in topics
            if (left := minutes_left(topic, record))
        ],
        cards=_cards(desk, ahead),
        weak=[
            w.standing.objective.name for w in weakest_first(library, record, domains)
        ],
        mocks=sorted(
            (Mock(exam.title, exam.minutes) for exam in library.exams.values()),
            key=lambda mock: mock.minutes,
        ),
        mock_on=desk.learner.study_day(moment(sat)) if sat else None,
    )


def _cards(desk: Desk, ahead: Ahead | None) -> tuple[Cards, ...]:
    if ahead is None:
        return ()
    days = ahead.outlook.days
    found = {dt.date.fromordinal(d.day): Cards(d.due, d.fresh, d.final) for d in days}
    return cards_by_day(desk.day, found, len(days))
