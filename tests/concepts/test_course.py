"""GET /course: every objective of the exam and the pages that serve it."""

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

    assert "Say how much memory the weights of a model take" in page
    assert '<a href="/concepts/weights">' in page
    assert '<a href="/concepts/kv-cache">' in page


def test_an_objective_has_a_name_and_its_sentence_once(client: TestClient):
    page = client.get("/course").text

    assert page.count("Cache of a conversation") == 1
    assert page.count("Say how much memory the cache of a conversation takes") == 1
    assert "Say how much memory the cache" not in client.get("/").text
    assert "Cache of a conversation" in client.get("/").text


def test_every_objective_of_the_shipped_course_has_a_name_of_its_own():
    text = (Path(__file__).parents[2] / "content/syllabus.toml").read_text("utf-8")
    domains = tomllib.loads(text)["domains"]

    names = [o.get("short", "") for d in domains for o in d["objectives"]]

    assert len(set(names)) == len(names) > 20
    assert all(1 <= len(name.split()) <= 4 for name in names)


def test_what_was_read_is_marked(rosa: TestClient):
    rosa.post("/concepts/weights/readings", data={"section": "try-it"})
    assert "1 of 3 sections read" in rosa.get("/course").text

    rosa.post("/concepts/weights/readings")

    assert "sections read" not in rosa.get("/course").text
    assert "read" in rosa.get("/course").text


def test_the_notes_of_the_course_are_said(client: TestClient):
    assert "This course exists for the tests of the app." in client.get("/course").text


@pytest.mark.usefixtures("rosa")
def test_the_list_asks_three_things(app, rosa: TestClient):
    rosa.post("/concepts/weights/readings")
    asked: list[str] = []
    event.listen(app.state.engine, "before_cursor_execute", lambda *a: asked.append(a[2]))

    rosa.get("/course")

    assert len([a for a in asked if a.startswith("SELECT")]) == 3
