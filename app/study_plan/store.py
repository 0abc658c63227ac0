"""SQL: what a learner did, as facts for the plan, and the lists of their study days."""

import datetime as dt
import json
from typing import Any, NamedTuple

from pydantic import TypeAdapter
from sqlalchemy import bindparam, case, exists, func, or_, select
from sqlmodel import Session

from app.accounts.current_learner import LearnerProfile
from app.accounts.learner_store import load_sitting_days
from app.clock import from_milliseconds, study_day_start, to_milliseconds
from app.content.course import Course
from app.content.reading_routes import map_sections_to_page_fractions
from app.database.engine import ATTEMPT, GRADED_ATTEMPTS, SCORE, insert_if_absent
from app.database.tables import TABLES, DayListRow, ScorePredictionRow
from app.spaced_repetition.added_card_ids_and_faces import is_added_card_id
from app.spaced_repetition.card_rows import CARD_STATES
from app.spaced_repetition.queue import load_seconds_per_card
from app.spaced_repetition.review_log import count_review_days_by_card
from app.spaced_repetition.todays_queue import REVIEW_SECONDS
from app.study_plan.cards import LATER_REVIEWS
from app.study_plan.day_list import DayActivity, DayList
from app.study_plan.facts import (
    CardFact,
    FirstAnswerFact,
    LearnerFacts,
    Paces,
    ReadingFact,
    sum_readings_by_page,
)
from app.study_plan.score import ScoreEstimate

RULE = "logistic-2"  # names this computation of the score in the log; a changed one has a new name
_READING, _RUN = TABLES["reading"], TABLES["practice_run"]
_LIST, _PREDICTION = TABLES["day_list"], TABLES["prediction"]
_LISTS, _ESTIMATES = TypeAdapter(DayList), TypeAdapter(ScoreEstimate)
_learner: Any = bindparam("learner")
_HINTED = 0.5  # a right answer after a hint counts half
_LEAST_ANSWER, _MOST_ANSWER = 5_000, 600_000  # ms; else it was not read, or the page left open
_QUESTION_SECONDS, _TRUST = 72.0, 15  # the usual time counts as much as this many answers


def load_learner_facts(
    db: Session, learner: LearnerProfile, course: Course, day: dt.date
) -> LearnerFacts:
    """Return what the learner did until now, without counts of unfinished tasks."""
    values = {"learner": learner.id}
    answers, missed, seconds = load_answers_misses_and_pace(db, learner.id, day)
    cards, added, unavailable = load_card_facts(db, learner.id, course, day)
    pace = load_seconds_per_card(db, learner.id, day)
    review = pace.review_seconds * REVIEW_SECONDS / 10 / 60
    return LearnerFacts(
        day=day,
        readings=_load_readings(db, values, learner, course),
        first_answers=answers,
        miss_day_by_question=missed,
        started_cards=cards,
        due_added_cards=added,
        unavailable_cards=unavailable,
        paces=Paces(review, pace.new_card_seconds / 60, seconds / 60),
        last_exam_day=max(load_sitting_days(db, learner, course), default=None),
    )


_READ = (
    select(_READING.c.topic, _READING.c.section, _READING.c.at)
    .where(_READING.c.learner_id == _learner)
    .order_by(_READING.c.at, _READING.c.id)
)


def _load_readings(
    db: Session, bind_values: dict[str, Any], learner: LearnerProfile, course: Course
) -> list[ReadingFact]:
    readings = []
    for topic, section, at in db.connection().execute(_READ, bind_values):
        page = course.topics.get(topic)
        parts = map_sections_to_page_fractions(page) if page else {}
        if (part := parts.get(section)) is not None:
            day = learner.study_day(from_milliseconds(at))
            readings.append(ReadingFact(topic, part.share, day, at, part.essential_share))
    return readings


_ANSWERS = (
    select(
        *ATTEMPT.c["item", "first", "study_day", "at", "context", "hints", "milliseconds"],
        SCORE.label("score"),
    )
    .select_from(GRADED_ATTEMPTS)
    .where(ATTEMPT.c.learner_id == _learner)
    .order_by(ATTEMPT.c.id)
)


def load_answers_misses_and_pace(
    db: Session, learner_id: int, today: dt.date
) -> tuple[list[FirstAnswerFact], dict[str, dt.date], float]:
    """Return the first answers, the days of questions last missed, and seconds per question."""
    firsts: list[FirstAnswerFact] = []
    missed: dict[str, dt.date] = {}
    spent, count = _QUESTION_SECONDS * _TRUST, _TRUST
    for row in db.connection().execute(_ANSWERS, {"learner": learner_id}):
        day = dt.date.fromisoformat(row.study_day)
        if row.first:
            score = row.score * _HINTED if row.hints else row.score
            firsts.append(FirstAnswerFact(row.item, score, day, row.at, row.context))
        missed.pop(row.item, None)
        if row.score < 1:
            missed[row.item] = day
        if _LEAST_ANSWER <= (row.milliseconds or 0) <= _MOST_ANSWER and day < today:
            spent, count = spent + row.milliseconds / 1000, count + 1
    return firsts, missed, min(4 * _QUESTION_SECONDS, max(_QUESTION_SECONDS / 4, spent / count))


_COLUMNS = "card", "note", "stability", "first_day", "last_day", "due_day", "set_day", "suspended"
_CARDS = select(*CARD_STATES.c[_COLUMNS]).where(CARD_STATES.c.learner_id == _learner)


def load_card_facts(
    db: Session, learner_id: int, course: Course, day: dt.date
) -> tuple[list[CardFact], list[str], frozenset[str]]:
    """Return the started cards, the added ones that are due, and those that can't be started."""
    days = count_review_days_by_card(db, learner_id)
    cards, added, unavailable = [], [], set()
    values = {"learner": learner_id}
    for row in db.connection().execute(_CARDS.order_by(CARD_STATES.c.card), values):
        of_course = row.card in course.cards
        if row.suspended or not (of_course or is_added_card_id(row.card)):
            unavailable.add(row.card)
        elif not row.last_day or not row.stability:
            unavailable.add(row.card)
            if is_added_card_id(row.card) and row.due_day <= day.isoformat():
                added.append(row.card)
        else:
            # A day that was set by hand is respected: nothing moves it forward.
            later = LATER_REVIEWS if row.set_day > day.isoformat() else days.get(row.card, 1) - 1
            written = row.first_day or row.last_day, row.last_day, row.due_day
            first, last, due = map(dt.date.fromisoformat, written)
            page = course.cards[row.card].topic if of_course else ""
            cards.append(CardFact(row.card, row.note, page, row.stability, first, last, due, later))
    return cards, added, frozenset(unavailable)


# Put aside, or skipped until a later day: nothing is left to do with it.
_is_left_out = or_(CARD_STATES.c.suspended, CARD_STATES.c.set_day > bindparam("day"))
_is_card_done = or_(
    # A card in its learning steps comes back on the same day, and isn't done yet.
    CARD_STATES.c.state == "review",
    CARD_STATES.c.due_day > bindparam("day"),
    _is_left_out,
)
_is_rated = CARD_STATES.c.last_day >= bindparam("day")
_CARDS_OF_DAY = select(CARD_STATES.c.card, _is_card_done, _is_rated).where(
    CARD_STATES.c.learner_id == _learner, or_(_is_rated, _is_left_out)
)
_ANSWERED = (
    select(ATTEMPT.c["item"], func.min(case((ATTEMPT.c.context == "page", 1), else_=0)))
    .where(ATTEMPT.c.learner_id == _learner, ATTEMPT.c.study_day >= bindparam("day"))
    .group_by(ATTEMPT.c["item"])
)


def load_day_activity(
    db: Session, learner: LearnerProfile, course: Course, day_list: DayList
) -> DayActivity:
    """Return what was done on the day of a list or since, and which pages are read at all."""
    values = {"learner": learner.id, "day": day_list.day.isoformat()}
    read = sum_readings_by_page(_load_readings(db, values, learner, course))
    pages = {page.slug for task in day_list.tasks for page in task.pages} | course.topics.keys()
    left = pages - course.topics.keys()  # pages that left the course
    sat = load_sitting_days(db, learner, course) if day_list.exam else []
    cards = db.connection().execute(_CARDS_OF_DAY, values).all()
    answered = db.connection().execute(_ANSWERED, values).all()
    return DayActivity(
        finished_cards=frozenset(card for card, is_done, _ in cards if is_done),
        begun_cards=frozenset(card for card, is_done, _ in cards if not is_done),
        left_out_cards=frozenset(card for card, _, is_rated in cards if not is_rated),
        pages_read=frozenset(p for p in pages if p in left or read[p].is_whole),
        essentials_read={p for p in pages if p in left or read[p].covers_essential_sections},
        answered_questions=frozenset(question for question, _ in answered),
        answered_only_on_pages=frozenset(question for question, on_page in answered if on_page),
        has_sat_exam=any(day >= day_list.day for day in sat),
    )


_on_its_day = ATTEMPT.c.learner_id == _learner, ATTEMPT.c.study_day == _LIST.c.day
_is_tested = exists().where(*_on_its_day, ATTEMPT.c.context == "placement").label("is_tested")
_later = (ATTEMPT.c.context == "exam") & ATTEMPT.c.first & (ATTEMPT.c.at > _LIST.c.at)
_NEWEST_LIST = (
    select(*_LIST.c["day", "tasks", "estimate"], _is_tested, exists().where(_on_its_day[0], _later))
    .where(_LIST.c.learner_id == _learner, _LIST.c.day <= bindparam("day"))
    .order_by(_LIST.c.day.desc())
    .limit(1)
)


class ListAndEstimate(NamedTuple):
    """A day's list, its score, whether placement questions were answered, and exam ones since."""

    day_list: DayList
    score_estimate: ScoreEstimate | None
    has_placement_answers: bool = False
    has_later_exam_answers: bool = False


def load_newest_list(db: Session, learner_id: int, day: dt.date) -> ListAndEstimate | None:
    """Return the list of `day`, or the last one before it; None without any."""
    values = {"learner": learner_id, "day": day.isoformat()}
    if (row := db.connection().execute(_NEWEST_LIST, values).first()) is None:
        return None
    estimate = _ESTIMATES.validate_json(row.estimate) if row.estimate else None
    return ListAndEstimate(_LISTS.validate_json(row.tasks), estimate, *map(bool, row[3:]))


def save_day_list(
    db: Session, learner: LearnerProfile, made: ListAndEstimate, exam: str, now: dt.datetime
) -> None:
    """Save the list of a study day and the score shown on it.

    The first one of the day stays, unless it was made for other choices or before a placement test
    or mock exam. Only these change the score of the day; the prediction before a mock exam stays.
    """
    new, estimate = made.day_list, made.score_estimate
    stored = load_newest_list(db, learner.id, new.day)
    if stored is not None and (last := stored.day_list).day == new.day:
        same, has_exam = last.made_for == new.made_for, stored.has_later_exam_answers
        if same and last.placement_minutes == new.placement_minutes and not has_exam:
            return
        is_kept = has_exam or stored.score_estimate == estimate
        for table in (_LIST,) if is_kept else (_LIST, _PREDICTION):
            mine = table.c.learner_id == learner.id, table.c.day == new.day.isoformat()
            db.execute(table.delete().where(*mine))
    values = {"learner_id": learner.id, "day": new.day.isoformat(), "at": to_milliseconds(now)}
    tasks = _LISTS.dump_json(new).decode()
    text = _ESTIMATES.dump_json(estimate).decode() if estimate else ""
    insert_if_absent(db, DayListRow, values | {"tasks": tasks, "estimate": text})
    if estimate is None:
        return
    score: dict[str, Any] = {"exam": exam, "rule": RULE, "expected": estimate.shown}
    score |= {"questions": estimate.questions, "answers": estimate.answers}
    score |= {"low": estimate.low, "high": estimate.high, "target": (target := learner.target)}
    chance = estimate.chance_of_scoring_at_least(target / 100) if target is not None else None
    insert_if_absent(db, ScorePredictionRow, values | score | {"chance": chance})


_PLACEMENT = (
    select(_RUN.c["items"], func.count(ATTEMPT.c["item"].distinct()).label("answered"))
    .outerjoin(ATTEMPT, ATTEMPT.c.run_id == _RUN.c.id)
    .where(_RUN.c.learner_id == _learner, _RUN.c.mode == "placement", _RUN.c.at >= bindparam("at"))
    .group_by(_RUN.c.id)
    .order_by(_RUN.c.id.desc())
    .limit(1)
)


def is_placement_finished(db: Session, learner: LearnerProfile, day: dt.date) -> bool | None:
    """Return whether the placement test started on this study day is finished; None without one."""
    values = {"learner": learner.id, "at": to_milliseconds(study_day_start(day, learner.zone))}
    run = db.connection().execute(_PLACEMENT, values).first()
    return None if run is None else run.answered >= len(json.loads(run[0]))
