"""Questions kept for mock exams: practiced after they were met in one, not before."""

import dataclasses
import re
from typing import Any

import pytest
from fastapi.testclient import TestClient

from app.content.course import Course
from app.content.course_facts import find_unseen_exam_only_question_ids
from app.content.live_courses import LiveCourse
from tests.exams.sitting import begin, finish


@pytest.fixture
def course(live_course: LiveCourse) -> Course:
    return live_course.get_current_course()


@pytest.fixture
def kept(course: Course, monkeypatch: pytest.MonkeyPatch) -> str:
    """A question that is kept for exams."""
    item = next(q for q in course.questions.values() if q.type == "single")
    change: dict[str, Any] = {"use": "exam"}
    reserved = dataclasses.replace(item, **change)
    monkeypatch.setitem(course.questions, item.id, reserved)  # type: ignore[arg-type]
    return item.id


def items_of(client: TestClient, pick: str) -> set[str]:
    body = {"pick": pick, "count": 20, "token": ""}
    run = client.post("/quiz/runs", data=body).headers["location"]
    html = client.get(f"{run}/result").text
    return set(re.findall(r'href="/quiz/[\w-]+/([\w-]+)', html))


def test_practice_does_not_show_what_is_kept_for_exams(
    client: TestClient, course: Course, kept: str
) -> None:
    topic = course.questions[kept].topic
    page = client.get(f"/quiz/{topic}").text
    alone = client.get(f"/quiz/{topic}/{kept}")

    assert f"/quiz/{topic}/{kept}" not in page
    assert "1 more is kept for" in re.sub(r"\s+", " ", page)
    assert "1 of them is kept for" in re.sub(r"\s+", " ", client.get("/quiz").text)
    assert alone.status_code == 409
    assert "kept for mock exams" in alone.text


def test_a_question_that_an_exam_has_asked_is_no_longer_kept(
    client: TestClient, course: Course, kept: str
) -> None:
    topic = course.questions[kept].topic
    sitting = begin(client)
    finish(client, sitting)

    assert find_unseen_exam_only_question_ids(course, {kept}) == frozenset()
    for _ in range(8):
        if client.get(f"/quiz/{topic}/{kept}").status_code == 200:
            return
        finish(client, begin(client))
    pytest.fail("no paper asked what is kept for papers")


def test_the_kinds_of_a_paper_are_asked_and_checked(client: TestClient) -> None:
    page = client.get("/exams/short").text
    refused = client.post("/exams/short/sittings", data={"kinds": "odd"})

    assert re.search(r'<select[^>]* name="kinds"', page)
    assert refused.status_code == 422
    assert "“odd” is neither empty nor all." in refused.text


def test_a_paper_with_too_few_choices_says_so_and_holds_no_other_kind(
    client: TestClient, course: Course, monkeypatch: pytest.MonkeyPatch
) -> None:
    short = dataclasses.replace(
        course.exams["short"], question_count=9, question_count_by_domain={"1": 5, "2": 4}
    )
    monkeypatch.setitem(course.exams, "short", short)  # type: ignore[arg-type]

    page = client.get("/exams/short").text
    sitting = client.post("/exams/short/sittings", data={"token": "t", "kinds": ""})
    paper = client.get(sitting.headers["location"]).text

    assert '<option value="all" selected>' in page
    assert (
        "“All kinds” gives all 9 questions; single and multiple choices alone give 6 of them"
        in page
    )
    assert "Question 1 of 6<" in paper
