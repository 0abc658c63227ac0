"""Questions that are flagged in practice, and practiced again."""

import re

from fastapi.testclient import TestClient
from sqlmodel import Session, select

from app.content.course import Course
from app.database.tables import QuestionFlag
from tests.quiz.conftest import Fields


def flag(client: TestClient, course: Course, wanted: str = "yes", **more: str):
    item = course.topics["weights"].questions[1]
    address = f"/quiz/weights/{item}"
    return client.post(f"{address}/flag", data={"wanted": wanted, **more})


def test_a_flag_is_shown_at_the_question(rosa: TestClient, course: Course):
    address = f"/quiz/weights/{course.topics['weights'].questions[1]}"
    assert re.search(r'aria-pressed="false".*?Flag <kbd>', rosa.get(address).text, re.DOTALL)

    assert flag(rosa, course).headers["location"] == address

    assert re.search(r'aria-pressed="true".*?Flagged', rosa.get(address).text, re.DOTALL)


def test_a_flag_twice_is_one(rosa: TestClient, course: Course, session: Session):
    flag(rosa, course)
    flag(rosa, course)

    assert len(session.exec(select(QuestionFlag)).all()) == 1
    flag(rosa, course, wanted="no")
    session.rollback()
    assert session.exec(select(QuestionFlag)).all() == []


def test_flagged_questions_are_practiced_alone(rosa: TestClient, course: Course):
    begun = {"pick": "flagged", "token": "t"}
    assert rosa.post("/quiz/runs", data=begun).status_code == 409

    flag(rosa, course)
    assert "1\u00a0question that you flagged" in rosa.get("/quiz").text
    run = rosa.post("/quiz/runs", data=begun).headers["location"]

    item = course.topics["weights"].questions[1]
    assert "of <b>1</b>" in rosa.get(f"{run}/1").text or "of 1" in rosa.get(f"{run}/1").text
    assert f"/quiz/weights/{item}/attempts" in rosa.get(f"{run}/1").text


def test_htmx_gets_the_button_alone(htmx: TestClient, course: Course):
    fragment = flag(htmx, course, back="/quiz").text

    assert fragment.lstrip().startswith("<form")
    assert "Flagged" in fragment


def test_the_flag_of_another_learner_is_not_mine(
    rosa: TestClient, milo: TestClient, course: Course
):
    flag(rosa, course)

    assert "that you flagged" not in milo.get("/quiz").text


def test_no_flag_leads_off_the_site(rosa: TestClient, course: Course):
    assert flag(rosa, course, back="https://example.org/").status_code == 422


def test_a_question_in_the_text_of_a_page_has_its_flag(rosa: TestClient):
    page, item = "/concepts/kv-cache", "k-page-twice"
    form = re.compile(rf'<form class="flag" id="flag-{item}".*?</form>', re.DOTALL)
    shown = form.search(rosa.get(page).text)[0]
    assert 'aria-pressed="false"' in shown
    assert "data-key" not in shown
    sent = dict(re.findall(r'name="(\w+)" value="([^"]*)"', shown))

    answer = rosa.post(f"/quiz/kv-cache/{item}/flag", data=sent)

    assert answer.headers["location"] == f"{page}#q-{item}"
    assert "Flagged" in form.search(rosa.get(page).text)[0]
    assert "1\u00a0question that you flagged" in rosa.get("/quiz").text


def test_the_flag_of_a_page_stays_without_a_key(htmx: TestClient):
    sent = {"wanted": "yes", "back": "/concepts/kv-cache#q-k-page-twice"}

    fragment = htmx.post("/quiz/kv-cache/k-page-twice/flag", data=sent).text

    assert "Flagged" in fragment
    assert "data-key" not in fragment


def test_a_question_answered_in_a_page_has_its_flag_beside_the_verdict(
    rosa: TestClient,
):
    page, item = "/concepts/kv-cache", "k-page-twice"
    fields = Fields(f"{item}/attempts")
    fields.feed(rosa.get(page).text)
    answered = {**fields.values, "answer": fields.options["answer"][0]}
    verdict = rosa.post(fields.action, data=answered).headers["location"]

    assert f'id="flag-{item}"' in rosa.get(verdict).text
