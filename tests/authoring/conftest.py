"""The stage of the bench: a course of its own that a test may edit, and a crowd."""

import dataclasses
import json
import random
import shutil
from pathlib import Path

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import insert
from sqlmodel import Session

from app.content.course import Course
from app.content.live_courses import LiveCourse
from app.database.tables import Attempt, ItemRevision, Learner
from app.settings import Settings
from tests.authoring.mended import Author
from tests.conftest import SECRET, TINY, let_in


@pytest.fixture(autouse=True)
def _no_reuse(monkeypatch: pytest.MonkeyPatch) -> None:
    """Statistics are always of this moment, on a busy machine too."""
    monkeypatch.setattr("app.authoring.statistics_tables._REUSE_PER_COMPUTATION_TIME", 0)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A copy of the tiny course."""
    copy = tmp_path / "course"
    shutil.copytree(TINY, copy)
    return copy


@pytest.fixture
def live_course(request: pytest.FixtureRequest, folder: Path) -> LiveCourse:
    """The course as it is now; a file is read once for all tests in which it says the same."""
    request.getfixturevalue("read_once")
    return LiveCourse(folder)


@pytest.fixture
def course(live_course: LiveCourse) -> Course:
    return live_course.get_current_course()


@pytest.fixture
def settings(tmp_path: Path, database: str, folder: Path) -> Settings:
    return Settings(
        data=tmp_path,
        content=folder,
        database_url=database,
        secret=SECRET,
    )


@pytest.fixture
def client(client: TestClient) -> TestClient:
    """A browser that was let onto the bench."""
    return let_in(client)


@pytest.fixture
def htmx(htmx: TestClient) -> TestClient:
    """The same, with every request one of htmx."""
    return let_in(htmx)


@pytest.fixture
def author(folder: Path, live_course: LiveCourse) -> Author:
    """Somebody who edits the course of the test."""
    return Author(folder, live_course)


@dataclasses.dataclass
class Crowd:
    """Learners who answer: `crowd.answer(item, revision, learner, score, chosen)`."""

    session: Session
    learners: int = 0
    rows: int = 0

    def join(self, count: int) -> list[int]:
        rows = [Learner(key=f"key-{self.learners + n}", created_at=0) for n in range(count)]
        self.learners += count
        self.session.add_all(rows)
        self.session.flush()
        return [row.id for row in rows]

    def answer(self, question, learner: int, score: float, chosen: str = "", **more):
        self.session.add(self.attempt(question, learner, score, chosen, **more))

    def attempt(
        self,
        question,
        learner: int,
        score: float,
        chosen: str = "",
        *,
        first: bool = True,
        revision: str = "",
        **more: object,
    ) -> Attempt:
        self.rows += 1
        parsed = {"chosen": [chosen]} if chosen else {}
        values = {
            "learner_id": learner,
            "token": f"token-{self.rows}",
            "item": question.id,
            "revision": revision or question.revision,
            "topic": question.topic,
            "seed": 1,
            "context": "quiz",
            "raw": "{}",
            "parsed": json.dumps(parsed),
            "score": score,
            "first": first,
            "study_day": "2026-06-09",
            "at": 1000 + self.rows,
        }
        return Attempt(**{**values, **more})

    def worded(self, item: str, revision: str, at: int) -> None:
        self.session.add(ItemRevision(item=item, revision=revision, body="{}", first_seen=at))

    def all_answer(self, questions, learners, seed: int = 7, *, wrong_key: str = ""):
        """Learners of rising skill; at `wrong_key` the strong choose a wrong option."""
        chance = random.Random(seed)  # noqa: S311 - repeatable, not secret
        rows = []
        for place, learner in enumerate(learners):
            skill = (place + 1) / (len(learners) + 1)
            for question in questions:
                options = getattr(question.answer, "options", ())
                right = [o.key for o in options if getattr(o, "right", False)]
                wrong = [o.key for o in options if not getattr(o, "right", False)]
                good = chance.random() < skill
                if question.id == wrong_key:
                    good = not good
                keys = right if good or not wrong else wrong
                key = keys[0] if keys else ""
                row = self.attempt(question, learner, float(good), key)
                rows.append(row.model_dump(exclude={"id"}))
        # In one statement, for there may be many thousands.
        self.session.execute(insert(Attempt), rows)
        self.session.commit()


@pytest.fixture
def crowd(session: Session) -> Crowd:
    return Crowd(session)
