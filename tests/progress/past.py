"""Learners with a past, written straight into the tables: a newcomer and a veteran."""

import dataclasses
import datetime as dt
import random
from collections.abc import Iterator
from typing import Any

from fastapi import FastAPI
from sqlalchemy import Engine, insert
from sqlmodel import Session

from app.accounts.learner_store import find_learner_by_session
from app.clock import to_milliseconds
from app.content.course import Course
from app.database.tables import Attempt, CardStateRow, Learner, LearnerSession, Review, SectionRead
from app.markup.model import Flashcard
from app.questions.model import Question
from app.questions.question_type import GradeResult
from app.quiz import store as quiz
from app.spaced_repetition import review_log
from app.spaced_repetition.scheduler import (
    CardState,
    ReviewEvent,
    apply_review,
    compute_retrievability_on_day,
)
from app.web.visitor import hash_session_key
from tests.spaced_repetition.rebuilding import rebuild_days

Row = dict[str, Any]


@dataclasses.dataclass(frozen=True, slots=True)
class Past:
    """How much a learner has done, on how many days."""

    cards: int
    reviews: int
    answers: int
    days: int


NEWCOMER = Past(cards=8, reviews=16, answers=20, days=2)
VETERAN = Past(cards=2000, reviews=20_000, answers=4000, days=90)


def live(engine: Engine, course: Course, key: str, past: Past, now: dt.datetime) -> None:
    """Write a learner down with everything that the past led to."""
    with Session(engine) as db:
        db.connection(execution_options={"writes": True})
        exam = (now + dt.timedelta(days=24)).date().isoformat()
        learner = Learner(key=key, created_at=1, exam_day=exam, target=75)
        db.add(learner)
        db.flush()
        number = learner.id or 0
        at = to_milliseconds(now)
        db.add(
            LearnerSession(
                learner_id=number, digest=hash_session_key(key), created_at=1, last_seen=at
            )
        )
        for table, rows in written(course, past, now).items():
            db.execute(insert(table), [{"learner_id": number, **r} for r in rows])
        rebuild_days(db, number)
        db.commit()


_WRITTEN: dict[tuple[str, Past, dt.datetime], dict[type, list[Row]]] = {}


def written(course: Course, past: Past, now: dt.datetime) -> dict[type, list[Row]]:
    """The rows of a past, which are the same for each test of a process."""
    key = (course.version, past, now)
    if key not in _WRITTEN:
        rng = random.Random(1)  # noqa: S311 - a past is no secret
        memories, log = remember(course, past, now, rng)
        _WRITTEN[key] = {
            CardStateRow: memories,
            Review: log,
            Attempt: list(answers(course, past, now, rng)),
            SectionRead: list(readings(course, past, now)),
        }
    return _WRITTEN[key]


def remember(
    course: Course, past: Past, now: dt.datetime, rng: random.Random
) -> tuple[list[Row], list[Row]]:
    """The memory of each card and the log of its reviews, the oldest first."""
    memories, log = [], []
    cards = list(course.cards.values())[: past.cards]
    each = past.reviews // past.cards
    for place, card in enumerate(cards):
        begun = place * past.days * 2 // (past.cards * 3)
        days = sorted(rng.randrange(begun, past.days) for _ in range(each))
        standing: CardState | None = None
        for number, day in enumerate(days):
            at = now - dt.timedelta(days=past.days - day, seconds=-60 * number)
            grade = ReviewEvent(rng.choice((1, 2, 3, 3, 3, 3, 4)), at, at.date())
            log.append(reviewed(card, grade, standing, number))
            standing = apply_review(standing, grade, card.id)
        if standing is not None:
            memories.append(memory_of(card, standing, each))
    return memories, sorted(log, key=lambda row: row["at"])


def reviewed(card: Flashcard, grade: ReviewEvent, before: CardState | None, number: int) -> Row:
    steady = before is not None and before.state == "review"
    return {
        "token": f"{card.id}.{number}.{grade.rated_at.timestamp()}",
        "card": card.id,
        "rating": grade.rating,
        "recall": compute_retrievability_on_day(before, grade.day) if before and steady else None,
        "milliseconds": 8000,
        "study_day": grade.day.isoformat(),
        "at": to_milliseconds(grade.rated_at),
    }


def memory_of(card: Flashcard, standing: CardState, turns: int) -> Row:
    days = ("due_day", "first_day", "last_day")
    moments = ("due_at", "last_at")
    row: Row = {f.name: getattr(standing, f.name) for f in dataclasses.fields(standing)}
    row |= {name: row[name].isoformat() for name in days}
    row |= {name: to_milliseconds(row[name]) for name in moments}
    note = min(card.id, card.sibling) if card.sibling else card.id
    return {**row, "card": card.id, "note": note, "topic": card.topic, "turns": turns}


def known(course: Course) -> list[Question]:
    """The questions that a veteran has answered: three of four that practice shows."""
    return [
        q for n, q in enumerate(course.questions.values()) if n % 4 and not q.is_reserved_for_exams
    ]


def unanswered(course: Course) -> list[Question]:
    """The questions that nobody has answered."""
    return [q for n, q in enumerate(course.questions.values()) if not n % 4]


def answer(app: FastAPI, key: str, question: Question, now: dt.datetime) -> None:
    """Answer one more question, right."""
    given = quiz.NewAttempt(
        question=question,
        seed=1,
        raw_response={"answer": ["a"]},
        verdict=GradeResult(score=1.0, parsed_response={}),
        submission_token=question.id,
        context="quiz",
        certainty=2,
        milliseconds=60_000,
    )
    with Session(app.state.engine) as db:
        db.connection(execution_options={"writes": True})
        learner = find_learner_by_session(db, hash_session_key(key))
        if learner is not None:
            quiz.save_attempt_once(db, learner.id, given, now.date(), now)
        db.commit()


def grade(app: FastAPI, key: str, card: Flashcard, token: str, now: dt.datetime) -> None:
    """Grade one card once more, well."""
    with Session(app.state.engine) as db:
        db.connection(execution_options={"writes": True})
        learner = find_learner_by_session(db, hash_session_key(key))
        if learner is not None:
            given = ReviewEvent(3, now, now.date())
            review_log.record_review(db, learner.id, card, given, token, 8000)
        db.commit()


def answers(course: Course, past: Past, now: dt.datetime, rng: random.Random) -> Iterator[Row]:
    """Answers to all questions in turn, some of them with a certainty."""
    questions = known(course)
    rng.shuffle(questions)
    for number in range(past.answers):
        question = questions[number % len(questions)]
        at = now - dt.timedelta(days=past.days * (1 - number / past.answers))
        yield {
            "token": f"{past.answers}.{number}",
            "item": question.id,
            "revision": question.revision,
            "topic": question.topic,
            "seed": number,
            "context": "quiz",
            "raw": '{"answer": ["a"]}',
            "parsed": '{"chosen": ["a"]}',
            "score": float(rng.random() < 0.7),
            "first": number < len(questions),
            "certainty": rng.choice((None, 1, 2, 3)),
            "milliseconds": 60_000,
            "study_day": at.date().isoformat(),
            "at": to_milliseconds(at),
        }


def readings(course: Course, past: Past, now: dt.datetime) -> Iterator[Row]:
    """A newcomer has read one page, a veteran half of them."""
    topics = list(course.topics.values())
    for topic in topics[: max(1, len(topics) * min(past.days, 90) // 180)]:
        for section in topic.sections:
            if section.anchor:
                yield {
                    "topic": topic.slug,
                    "section": section.anchor,
                    "at": to_milliseconds(now),
                }
