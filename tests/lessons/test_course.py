"""GET /course: every objective of the exam and the pages that serve it."""

import re
import tomllib
from pathlib import Path

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import event


def test_the_exam_is_named_as_the_course_names_it(client: TestClient):
    page = client.get("/course").text

    assert "Capacity Basics (CB-1)" in page
    assert "60% of the exam" in page


def test_every_objective_leads_to_its_pages(client: TestClient):
    page = client.get("/course").text

    assert "Cache of a conversation" in page
    for slug in ("weights", "kv-cache"):
        assert re.search(rf'<a\s+href="/concepts/{slug}">', page)


def test_every_objective_of_the_shipped_course_has_a_name_of_its_own():
    text = (Path(__file__).parents[2] / "content/syllabus.toml").read_text("utf-8")
    domains = tomllib.loads(text)["domains"]

    names = [o.get("short", "") for d in domains for o in d["objectives"]]

    assert len(set(names)) == len(names) > 20
    assert all(1 <= len(name.split()) <= 4 for name in names)


def test_what_was_read_is_marked(rosa: TestClient):
    rosa.post("/concepts/weights/readings", data={"section": "try-it"})
    assert "1 of 3 read" in rosa.get("/course").text

    rosa.post("/concepts/weights/readings")

    page = rosa.get("/course").text
    assert "1 of 3 read" not in page
    assert "1 of 2\xa0pages" in page
    assert page.count('class="next1" aria-current="true"') == 1


def test_the_notes_of_the_course_are_said(client: TestClient):
    assert "This course exists for the tests of the app." in client.get("/course").text


@pytest.mark.usefixtures("rosa")
def test_the_list_asks_four_things_once_that_of_the_day_is_made(app, rosa: TestClient):
    rosa.post("/concepts/weights/readings")
    rosa.get("/course")
    asked: list[str] = []
    event.listen(app.state.engine, "before_cursor_execute", lambda *a: asked.append(a[2]))

    rosa.get("/course")

    assert len([a for a in asked if a.startswith("SELECT")]) == 4
