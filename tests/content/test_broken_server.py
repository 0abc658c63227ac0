"""A server on broken content answers every page, and starts."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from app.main import create_app
from app.settings import Settings
from tests.amounts import each_of_sample
from tests.conftest import TINY, Clock, visit

HOSTILE = {
    "n: [1e400]": ("params:\n  n: [1e400]", "right: n * 2"),
    "right: 999…": ("params:\n  n: [1]", f"right: {'9' * 400} * n"),
    "a nested list": (f"params:\n  n:\n    {'- ' * 5_000}1", "right: n * 2"),
}
PAGES = ("/", "/healthz", "/concepts/weights", "/quiz/weights", "/flashcards")
QUIZ = "topics/weights/quiz.md"


@pytest.fixture
def course_folder(tmp_path: Path) -> Path:
    return Path(shutil.copytree(TINY, tmp_path / "course"))


@pytest.fixture
def on_course(settings: Settings, course_folder: Path) -> Settings:
    return settings.model_copy(update={"content": course_folder})


def started(settings: Settings, clock: Clock) -> FastAPI:
    """A server process that starts now, with a course of its own."""
    return create_app(settings, clock)


@pytest.fixture
def served(on_course: Settings, clock: Clock) -> Iterator[TestClient]:
    app = started(on_course, clock)
    with visit(app) as client:
        yield client
    app.state.engine.dispose()


def damage(course_folder: Path, name: str) -> None:
    """Add a question whose numbers once stopped the server."""
    params, let = HOSTILE[name]
    comment = f"<!-- q: hostile\ntype: numeric\n{params}\nlet:\n  {let}\n-->"
    with (course_folder / QUIZ).open("a", encoding="utf-8") as quiz:
        quiz.write(f"\n### How large for {{n}}?\n{comment}\n\n- [x] `{{right}}`\n")


@each_of_sample("name", HOSTILE, 1)
def test_a_hostile_value_stops_no_page_of_a_running_server(
    name: str, served: TestClient, course_folder: Path
) -> None:
    served.get("/")
    damage(course_folder, name)

    assert {page: served.get(page).status_code for page in PAGES} == dict.fromkeys(PAGES, 200)
    assert served.get("/quiz/weights/w-grow").status_code == 200
    assert served.get("/quiz/weights/hostile").status_code == 404


@each_of_sample("name", HOSTILE, 1)
def test_a_server_starts_on_a_hostile_value(
    name: str, on_course: Settings, clock: Clock, course_folder: Path
) -> None:
    damage(course_folder, name)

    app = started(on_course, clock)
    with visit(app) as client:
        answers = {page: client.get(page).status_code for page in PAGES}
        state = app.state.live_course.status
    app.state.engine.dispose()

    assert set(answers.values()) == {200}
    assert state.is_loaded
    assert state.error_count >= 1


def test_a_restart_on_broken_content_serves_what_was_last_good(
    served: TestClient, on_course: Settings, clock: Clock, course_folder: Path
) -> None:
    assert served.get("/quiz/weights/w-grow").status_code == 200
    (course_folder / QUIZ).write_bytes(b"\xff")
    (course_folder / "syllabus.toml").write_bytes(b"[[[")

    app = started(on_course, clock)
    with visit(app) as client:
        page = client.get("/quiz/weights/w-grow")
        state = app.state.live_course.status
    app.state.engine.dispose()

    assert page.status_code == 200
    assert state.outdated_paths == ("syllabus.toml", QUIZ)
