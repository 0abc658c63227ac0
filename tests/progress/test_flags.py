"""Questions that are flagged in practice, and practiced again."""

import re

from fastapi.testclient import TestClient
from sqlmodel import Session, select

from app.content.live.library import Library
from app.db.tables import QuestionFlag


def flag(client: TestClient, library: Library, wanted: str = "yes", **more: str):
    item = library.topics["weights"].questions[1]
    address = f"/quiz/weights/{item}"
    return client.post(f"{address}/flag", data={"wanted": wanted, **more})


def test_a_flag_is_shown_at_the_question(rosa: TestClient, library: Library):
    address = f"/quiz/weights/{library.topics['weights'].questions[1]}"
    assert re.search(
        r'aria-pressed="false".*?Flag <kbd>', rosa.get(address).text, re.DOTALL
    )

    assert flag(rosa, library).headers["location"] == address

    assert re.search(
        r'aria-pressed="true".*?Flagged', rosa.get(address).text, re.DOTALL
    )


def test_a_flag_twice_is_one(rosa: TestClient, library: Library, session: Session):
    flag(rosa, library)
    flag(rosa, library)

    assert len(session.exec(select(QuestionFlag)).all()) == 1
    flag(rosa, library, wanted="no")
    session.rollback()
    assert session.exec(select(QuestionFlag)).all() == []


def test_flagged_questions_are_practiced_alone(rosa: TestClient, library: Library):
    begun = {"pick": "flagged", "token": "t"}
    assert rosa.post("/quiz/runs", data=begun).status_code == 409

    flag(rosa, library)
    assert "1\u00a0question that you flagged" in rosa.get("/quiz").text
    run = rosa.post("/quiz/runs", data=begun).headers["location"]

    item = library.topics["weights"].questions[1]
    assert (
        "of <b>1</b>" in rosa.get(f"{run}/1").text
        or "of 1" in rosa.get(f"{run}/1").text
    )
    assert f"/quiz/weights/{item}/attempts" in rosa.get(f"{run}/1").text


def test_htmx_gets_the_button_alone(htmx: TestClient, library: Library):
    fragment = flag(htmx, library, back="/quiz").text

    assert fragment.lstrip().startswith("<form")
    assert "Flagged" in fragment


def test_the_flag_of_another_learner_is_not_mine(
    rosa: TestClient, milo: TestClient, library: Library
):
    flag(rosa, library)

    assert "that you flagged" not in milo.get("/quiz").text


def test_no_flag_leads_off_the_site(rosa: TestClient, library: Library):
    assert flag(rosa, library, back="https://example.org/").status_code == 422
