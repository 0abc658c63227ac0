"""A course held in the hand: one topic with a question of every type."""

import dataclasses
import datetime as dt
from pathlib import Path

from app.content.course import Course
from app.markup.model import (
    CitedSource,
    Domain,
    Objective,
    QuestionParameters,
    SourceLocation,
    Syllabus,
    Topic,
)
from app.questions.model import Question
from app.questions.types.number_parsing import NumericOption, NumericSpec
from tests.conftest import TINY
from tests.quiz.bank import EVERY_TYPE, question, text

COMPUTED = dataclasses.replace(
    question(
        NumericSpec(
            (
                NumericOption("bcdf", "{right:.4g} GB ± 1%", None, right=True),
                NumericOption(
                    "ghjk",
                    "{half:.4g} GB ± 1%",
                    None,
                    right=False,
                    feedback=text("You counted K but not V."),
                ),
            )
        ),
        "numeric",
        id_="computed",
    ),
    stem=text("How large is {n} times 10 GB?"),
    computed=QuestionParameters(
        {"n": (3.0, 5.0, 7.0, 11.0)}, (("right", "n * 10 GB"), ("half", "n * 5 GB"))
    ),
)


def a_topic(slug: str, title: str, questions: tuple[str, ...]) -> Topic:
    return Topic(
        slug=slug,
        title=title,
        summary="",
        objectives=("2.1",),
        sections=(),
        sources=(),
        requires=(),
        reviewed=dt.date(2026, 6, 1),
        minutes=3,
        questions=questions,
        cards=(),
        place=SourceLocation("topics/x/concept.md", 1),
        revision="r",
    )


def a_course(*questions: Question) -> Course:
    """A course with these questions; `version` follows their wording."""
    held = {q.id: q for q in questions}
    slugs = dict.fromkeys(q.topic for q in questions)
    topics = {
        slug: a_topic(
            slug,
            slug.replace("-", " ").title(),
            tuple(q.id for q in questions if q.topic == slug),
        )
        for slug in slugs
    }
    goals = (
        Objective("2.1", "Size the cache", "2", "Size the cache"),
        Objective("2.2", "Rest", "2", "Rest"),
    )
    return Course(
        version=str(hash(repr(questions))),
        syllabus=Syllabus("X-1", "Course", (Domain("2", "Two", 1, goals),), (*slugs,)),
        topics=topics,
        questions=held,
        cards={},
        glossary={},
        sources={"paged": CitedSource("paged", "Paged attention", "X", "https://x.org", None)},
        exams={},
        problems=(),
    )


def every_type() -> list[Question]:
    named = [dataclasses.replace(q, id=kind) for kind, q in EVERY_TYPE.items()]
    return [*named, COMPUTED]


class EditableLiveCourse:
    """Stands where the course of a running server stands; a test may edit it."""

    folder: Path = TINY

    def __init__(self, *questions: Question) -> None:
        self.held = a_course(*questions)

    def get_recently_checked_course(self) -> Course:
        return self.held

    def get_current_course(self) -> Course:
        return self.held

    def edit(self, item: str, **changes: object) -> None:
        """An author saves a change to one question."""
        questions = {
            **self.held.questions,
            item: dataclasses.replace(self.held.questions[item], **changes),
        }
        self.held = a_course(*questions.values())

    def remove(self, item: str) -> None:
        left = [q for q in self.held.questions.values() if q.id != item]
        self.held = a_course(*left)
