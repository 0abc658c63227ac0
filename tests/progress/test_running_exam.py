"""While the clock of a mock exam runs: Today leads back, and nothing is counted yet."""

import re

import pytest
from fastapi.testclient import TestClient
from sqlmodel import Session, select

from app.database.tables import SittingAnswer
from tests.conftest import Clock


@pytest.fixture
def sitting(rosa: TestClient) -> str:
    """The address of a sitting that has just begun."""
    token = re.search(r'name="token" value="([^"]+)"', rosa.get("/exams/short").text)
    assert token
    answer = rosa.post("/exams/short/sittings", data={"token": token[1]})
    return str(answer.headers["location"]).rpartition("/questions/")[0]


def answer_all(rosa: TestClient, sitting: str) -> None:
    """Choose the first option, or type a number, for each of the five questions."""
    for number in range(1, 6):
        html = rosa.get(f"{sitting}/questions/{number}").text
        option = re.search(r'name="answer" value="([^"]+)"', html)
        form = {"answer": option[1] if option else "1"}
        rosa.post(f"{sitting}/answers/{number}", data=form)


def test_the_running_exam_is_the_next_thing(rosa: TestClient, sitting: str):
    page = rosa.get("/").text

    first = re.search(r'class="btn main" href="([^"]+)"', page)
    assert first
    assert first[1] == f"{sitting}/review"
    assert "The clock is running · about 6\u00a0minutes left" in page


def test_nothing_is_offered_for_more_time_while_the_clock_runs(rosa: TestClient, sitting: str):
    answer_all(rosa, sitting)
    rosa.post(f"{sitting}/submission")
    more = "If you have more time"
    assert more in rosa.get("/").text

    rosa.post("/exams/short/sittings", data={"token": "a second one"})
    assert "The clock is running" in rosa.get("/").text
    assert more not in rosa.get("/").text


def test_the_minutes_on_its_clock_are_those_of_now(rosa: TestClient, sitting: str, clock: Clock):
    assert sitting
    rosa.get("/")
    clock.tick(minutes=2)

    assert "about 4\u00a0minutes" in rosa.get("/").text


def test_answers_count_when_the_exam_is_closed_and_not_before(
    rosa: TestClient, sitting: str, session: Session
):
    answer_all(rosa, sitting)
    assert session.exec(select(SittingAnswer)).all()
    assert rosa.get("/progress").text.count(">not tested<") == 2

    rosa.post(f"{sitting}/submission")

    assert rosa.get("/progress").text.count(">not tested<") == 0


def test_a_finished_exam_is_no_next_thing(rosa: TestClient, sitting: str):
    rosa.post(f"{sitting}/submission")

    assert "The clock is running" not in rosa.get("/").text
