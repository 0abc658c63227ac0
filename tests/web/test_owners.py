"""No route shows or changes what is another's: not of a person, not of a course."""

import itertools
from collections.abc import Iterator
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from sqlalchemy import select
from sqlmodel import Session, SQLModel, col

from app.database.tables import Learner
from app.main import create_app
from app.settings import Settings
from tests.amounts import FACTOR
from tests.conftest import Clock, two_courses, visit
from tests.web.addresses import addressed, routes
from tests.web.test_hostile_values import SANE

MARK = "zebra-umbrella"
# What is the same for everybody, or for authors alone.
_NOBODYS = ("/calculators", "/hardware", "/api", "/authoring", "/concepts/{topic}/f")
# A person says these of themselves in all of their courses.
_OF_PERSON = ("/settings", "/continue")
_ROWS = ("run", "sitting", "report", "number", "session")
_NUMBERS = ("1", "2", "3") if FACTOR > 1 else ("1",)
pytestmark = pytest.mark.drawn


@pytest.fixture
def app(settings: Settings, clock: Clock) -> FastAPI:
    """A server with two courses, some of whose ids are the same."""
    content = two_courses(settings.data / "content")
    return create_app(settings.model_copy(update={"content": content}), clock)


def browser(app: FastAPI, course_name: str) -> TestClient:
    return visit(app, f"http://testserver/courses/{course_name}")


@pytest.fixture
def rosa(app: FastAPI) -> Iterator[TestClient]:
    """A learner of one course who has begun everything that can be begun."""
    with browser(app, "sizing") as client:
        for address, form in (
            ("/concepts/weights/notes", {"words": MARK, "section": "try-it"}),
            ("/quiz/runs", {"pick": "mixed", "count": "3"}),
            ("/quiz/weights/w-fp32/attempts", {"answer": "4", "token": "a"}),
            ("/quiz/weights/w-fp32/reports", {"words": MARK}),
            ("/quiz/weights/w-fp32/flag", {"wanted": "yes"}),
            ("/flashcards/w-c-bf16/reviews", {"rating": "3", "token": "t"}),
            ("/flashcards/own", {"front": MARK, "back": MARK, "token": "o"}),
            ("/exams/short/sittings", {"factor": "1", "token": "s"}),
            ("/plan", {"exam_day": "2026-07-01", "minutes_a_day": "30"}),
            ("/plan/calendar", {"wish": "new"}),
        ):
            assert client.post(address, data=form).status_code == 303, address
        yield client


def test_the_same_person_sees_nothing_of_it_in_another_course(
    app: FastAPI, rosa: TestClient, session: Session
) -> None:
    before = rows_of(session, "sizing")
    with browser(app, "aid") as same:
        same.cookies = rosa.cookies
        walk(app, same, spared=(*_NOBODYS, *_OF_PERSON))

    assert rows_of(session, "sizing") == before


@pytest.mark.usefixtures("rosa")
def test_another_person_sees_and_changes_nothing_of_it(app: FastAPI, session: Session) -> None:
    before = rows_of(session, "sizing")
    with browser(app, "sizing") as milo:
        walk(app, milo, spared=_NOBODYS)

    now = rows_of(session, "sizing")
    assert [row for row in before if row not in now] == []


def test_the_walk_finds_what_is_shown(app: FastAPI, rosa: TestClient) -> None:
    with pytest.raises(AssertionError, match=MARK):
        walk(app, rosa, spared=_NOBODYS)


def walk(app: FastAPI, client: TestClient, spared: tuple[str, ...]) -> None:
    """Ask every route for each of the first rows, and for the cards by name."""
    cards = ["w-c-bf16", *names_of_cards(app)]
    for method, template in routes(app):
        if template.startswith(spared):
            continue
        named = cards if "{card}" in template else cards[-1:]
        for number, card in itertools.product(_NUMBERS, named):
            address = addressed(template, **dict.fromkeys(_ROWS, number), card=card)
            asked = f"{address}?attempt={number}&card={card}"
            data = {**SANE, "attempt": number} if method == "POST" else None
            answer = client.request(method, asked, data=data)
            assert MARK not in answer.text, (method, asked)


def names_of_cards(app: FastAPI) -> list[str]:
    """The names of the cards that learners wrote themselves."""
    table = SQLModel.metadata.tables["own_card"]
    with app.state.engine.connect() as connection:
        return [str(name) for (name,) in connection.execute(select(table.c.card))]


def rows_of(session: Session, course_name: str) -> list[tuple[Any, ...]]:
    """Every row of the learners of a course, but for what each request counts."""
    session.rollback()
    own = select(col(Learner.id)).where(col(Learner.course) == course_name)
    wanted = list(session.scalars(own))
    found = []
    for table in SQLModel.metadata.sorted_tables:
        if "learner_id" not in table.c:
            continue
        columns = [c for c in table.c if c.name != "last_seen"]
        query = select(*columns).where(table.c.learner_id.in_(wanted))
        found += [(table.name, *row) for row in session.execute(query)]
    return sorted(found, key=repr)
