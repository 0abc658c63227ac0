"""GET /progress: what is known by objective, and how that is known."""

from fastapi.testclient import TestClient
from sqlmodel import Session

from app.content.library import Library
from tests.conftest import Clock
from tests.progress.test_today import Desk


def test_every_objective_has_a_row(client: TestClient):
    page = client.get("/progress").text

    assert "Say how much memory the weights of a model take" in page
    assert page.count("untested") == 2


def test_a_share_is_shown_with_its_count_and_range(
    rosa: TestClient, session: Session, clock: Clock, library: Library
):
    rosa.post("/concepts/weights/readings", data={"section": "two-bytes-each"})
    questions = list(library.topics["weights"].questions)
    Desk(session, clock).answers(questions[:5], 1.0, "weights")

    page = rosa.get("/progress").text

    assert "100%" in page
    assert f"5 of {len(questions)}" in page
    assert "range 65% to 100%" in page


def test_few_answers_are_too_few(
    rosa: TestClient, session: Session, clock: Clock, library: Library
):
    rosa.post("/concepts/weights/readings", data={"section": "two-bytes-each"})
    questions = list(library.topics["weights"].questions)
    Desk(session, clock).answers(questions[:2], 1.0, "weights")

    assert "too few" in rosa.get("/progress").text


def test_no_pass_mark_is_printed(client: TestClient):
    page = client.get("/progress").text

    assert "No pass mark is assumed anywhere." in page
    assert "70%" not in page
