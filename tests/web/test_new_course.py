"""A course as `headroom new course` writes it: no mock exam, and drafts alone."""

import datetime as dt
import re
from pathlib import Path
from urllib.parse import urldefrag, urlsplit

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from app.authoring.scaffold import create_course
from app.content.live_courses import LiveCourse
from app.main import create_app
from app.settings import Settings
from tests.amounts import sample
from tests.conftest import Clock, let_in, visit
from tests.web.addresses import addressed, routes

SLUG = "first-steps"
OURS = {
    "card": f"{SLUG}-card",
    "exam": "none",
    "item": f"{SLUG}-single",
    "question": f"{SLUG}-single",
    "topic": SLUG,
}
LINK = re.compile(r'href="(/[^"#]*)')


@pytest.fixture(params=["drafts", "live", "empty"])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """The course as it is begun; made live; and with its only topic deleted."""
    course_folder = tmp_path / "course"
    files = create_course(course_folder, "Backups", "", dt.date(2026, 6, 9))
    for file in files if request.param != "drafts" else ():
        text = file.read_text()
        if request.param == "live":
            file.write_text(text.replace("status: draft\n", ""))
        elif file.suffix == ".md" and "topics" in file.parts:
            file.unlink()
    return course_folder


@pytest.fixture
def app(settings: Settings, clock: Clock, folder: Path) -> FastAPI:
    live = LiveCourse(folder)
    return create_app(settings.model_copy(update={"content": folder}), clock, live)


def a_learner(client: TestClient) -> None:
    """Somebody with an exam day, who began the placement test where there is one."""
    day = {"exam_day": "2026-06-20", "minutes_a_day": "30", "name": "Rosa"}
    assert client.post("/settings", data=day).status_code == 303
    client.post("/quiz/runs", data={"pick": "placement"})


def test_a_course_without_calculators_speaks_of_none(app: FastAPI) -> None:
    with visit(app) as client:
        words = client.get("/").text.replace('data-without="calculators"', "")

    assert "alculator" not in words
    assert "show the working" not in words


VISITORS = (lambda _: None, a_learner, let_in)
UNREADY = "/readyz"
"""Answers 503 as long as there is nothing to learn."""


@pytest.mark.drawn
def test_every_link_leads_somewhere_and_no_page_breaks(
    app: FastAPI, request: pytest.FixtureRequest
) -> None:
    """One visitor of each course; `make drills`: all of all."""
    found = {addressed(t, **OURS) for method, t in routes(app) if method == "GET"}
    left = (UNREADY, "/calculators", "/hardware", "/api/")
    pages = {address for address in found if not address.startswith(left)}
    for who in sample(VISITORS, 1, request.node.name):
        with visit(app) as client:
            who(client)
            seen = walked(client, "/authoring" if who is let_in else "/")
            assert {"/course", "/quiz", "/exams", "/progress"} <= seen
            for address in pages - seen:
                assert client.get(address).status_code < 500, address


def walked(client: TestClient, start: str) -> set[str]:
    """Every page that links lead to, each of which is there."""
    seen: set[str] = set()
    waiting = {start}
    while waiting:
        address = waiting.pop()
        seen.add(address)
        answer = client.get(address)
        assert answer.status_code in {200, 303}, address
        links = {urldefrag(link).url for link in LINK.findall(answer.text)}
        waiting |= {link for link in links - seen if not urlsplit(link).query}
    return seen
