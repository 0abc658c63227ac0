"""While the clock of a mock exam runs: Today leads back, and nothing is counted yet."""

import re

import pytest
from fastapi.testclient import TestClient

from tests.conftest import Clock


@pytest.fixture
def sitting(rosa: TestClient) -> str:
    """The address of a sitting that has just begun."""
    token = re.search(r'name="token" value="([^"]+)"', rosa.get("/exams/short").text)
    assert token
    answer = rosa.post("/exams/short/sittings", data={"token": token[1]})
    return str(answer.headers["location"]).rpartition("/questions/")[0]


def test_the_running_exam_is_the_next_thing(rosa: TestClient, sitting: str):
    page = rosa.get("/").text

    first = re.search(r'class="btn main bigbtn" href="([^"]+)"', page)
    assert first
    assert first[1] == f"{sitting}/review"
    assert "about 6\u00a0minutes left" in page


def test_the_minutes_on_its_clock_are_those_of_now(rosa: TestClient, sitting: str, clock: Clock):
    assert sitting
    rosa.get("/")
    clock.tick(minutes=2)

    assert "about 4\u00a0minutes" in rosa.get("/").text


def test_a_finished_exam_is_no_next_thing(rosa: TestClient, sitting: str):
    rosa.post(f"{sitting}/submission")

    assert "is running" not in rosa.get("/").text
