"""What every answer carries, and what is refused at the door."""

import logging

import pytest
from fastapi import FastAPI, Request
from fastapi.testclient import TestClient
from sqlalchemy import event

from app.content.live_courses import LiveCourse
from app.database.engine import DbSession
from app.lessons.page_renderer import RenderedPageCache
from tests.conftest import visit
from tests.loops import is_on_event_loop

WRITE = "/settings/appearance"


@pytest.fixture
def broken(app: FastAPI):
    """The app with three addresses that go wrong."""

    @app.get("/raises")
    def raises() -> str:
        raise RuntimeError("a bug")

    @app.get("/api/raises")
    def raises_in_the_api() -> str:
        raise RuntimeError("a bug")

    @app.post("/commits")
    def commits(db: DbSession) -> str:
        event.listen(db, "before_commit", _refuse)
        return "saved"

    return app


def _refuse(_session: object) -> None:
    raise OSError("disk full")


def test_every_page_forbids_what_it_does_not_need(client: TestClient):
    headers = client.get("/settings").headers

    policy = headers["content-security-policy"]
    assert "default-src 'self'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "same-origin"
    assert headers["cross-origin-opener-policy"] == "same-origin"
    assert "camera=()" in headers["permissions-policy"]


def test_a_file_has_the_headers_that_mean_something_on_it(client: TestClient):
    headers = client.get("/static/img/icon.svg").headers

    assert "default-src 'self'" in headers["content-security-policy"]
    assert headers["x-content-type-options"] == "nosniff"
    assert "permissions-policy" not in headers


def test_an_error_is_guarded_as_well(client: TestClient):
    assert "content-security-policy" in client.get("/nowhere").headers


def test_an_address_without_a_page_is_404_and_says_so(client: TestClient):
    answer = client.get("/nowhere")

    assert answer.status_code == 404
    assert "There is no page at this address." in answer.text


def test_htmx_gets_the_problem_alone(htmx: TestClient):
    answer = htmx.get("/nowhere")

    assert answer.status_code == 404
    assert "<html" not in answer.text
    assert 'role="alert"' in answer.text
    assert answer.headers["hx-reswap"].startswith("afterbegin")  # nothing is replaced


@pytest.mark.usefixtures("broken")
def test_a_fault_is_500_with_the_number_under_which_it_is_logged(
    client: TestClient, caplog: pytest.LogCaptureFixture
):
    with caplog.at_level(logging.ERROR, "headroom"):
        answer = client.get("/raises")

    number = answer.headers["x-request-id"]
    assert answer.status_code == 500
    assert number in answer.text
    assert number in caplog.text
    assert "a bug" not in answer.text


@pytest.mark.usefixtures("broken")
def test_a_fault_of_the_api_is_json(client: TestClient):
    answer = client.get("/api/raises")

    assert answer.status_code == 500
    assert "broken on our side" in answer.json()["problems"][0]["message"]


@pytest.mark.usefixtures("broken")
def test_what_could_not_be_saved_is_not_confirmed(client: TestClient):
    answer = client.post("/commits")

    assert answer.status_code == 500
    assert "saved" not in answer.text


def test_a_slow_request_leaves_one_line(
    client: TestClient, caplog: pytest.LogCaptureFixture, monkeypatch
):
    monkeypatch.setattr("app.web.middleware._SLOW_REQUEST_SECONDS", 0.0)

    with caplog.at_level(logging.WARNING, "headroom"):
        client.get("/settings?theme=x")

    lines = [r for r in caplog.records if "GET /settings answered 200" in r.message]
    assert len(lines) == 1


@pytest.mark.parametrize(
    "headers",
    [
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
        {"origin": "https://elsewhere.example"},
        {"origin": "null"},
    ],
)
def test_another_site_cannot_write(client: TestClient, headers: dict[str, str]):
    answer = client.post(WRITE, data={"theme": "dark"}, headers=headers)

    assert answer.status_code == 403
    assert "another site" in answer.text


@pytest.mark.parametrize(
    "headers",
    [
        {"sec-fetch-site": "same-origin"},
        {"sec-fetch-site": "none"},
        {"origin": "http://testserver"},
        {},
    ],
)
def test_our_own_pages_and_programs_can_write(client: TestClient, headers: dict[str, str]):
    assert client.post(WRITE, data={"theme": "dark"}, headers=headers).is_redirect


def test_another_site_may_link_to_us(client: TestClient):
    answer = client.get("/settings", headers={"sec-fetch-site": "cross-site"})

    assert answer.status_code == 200


def test_a_form_larger_than_any_of_ours_is_refused(client: TestClient):
    assert client.post(WRITE, content=b"x" * 300_000).status_code == 413


def test_a_large_body_that_hides_its_length_is_refused(client: TestClient):
    def pieces():
        for _ in range(40):
            yield b"x=" + b"y" * 10_000

    kind = {"content-type": "application/x-www-form-urlencoded"}

    assert client.post(WRITE, content=pieces(), headers=kind).status_code == 413


def test_head_is_get_without_a_body(client: TestClient):
    answer = client.head("/settings")

    assert answer.status_code == 200
    assert answer.content == b""
    assert int(answer.headers["content-length"]) > 1000


def test_the_app_says_that_it_is_well(client: TestClient):
    assert client.get("/healthz").text == "well"


def test_a_request_knows_its_id(app: FastAPI, client: TestClient):
    @app.get("/request-id")
    def request_id(request: Request) -> str:
        return str(request.state.request_id)

    answer = client.get("/request-id")

    assert answer.headers["x-request-id"] in answer.text


@pytest.mark.parametrize("path", ["/settings", "/settings/erasure", "/settings/cards", "/continue"])
def test_no_browser_stores_what_names_a_person(app: FastAPI, path: str):
    with visit(app, "https://study.example") as browser:
        browser.post("/concepts/weights/readings")
        answers = [browser.get(path), browser.post("/settings/departure")]

    assert {answer.headers["cache-control"] for answer in answers} == {"no-store"}


@pytest.mark.parametrize(
    ("base", "caching"),
    [
        ("http://study.example", "no-store"),
        ("https://study.example", "private, no-cache"),
        ("http://localhost:8000", "private, no-cache"),
        ("http://127.0.0.1:8000", "private, no-cache"),
    ],
)
def test_pages_of_a_learner_are_not_stored_where_they_cannot_be_cleared(
    app: FastAPI, base: str, caching: str
):
    """A browser obeys Clear-Site-Data over HTTPS and on its own machine alone."""
    with visit(app, base) as browser:
        stranger = browser.get("/glossary")
        browser.post("/concepts/weights/readings")
        pages = ["/glossary", "/", "/concepts/weights", "/notes"]
        for _ in range(2):  # the second from the kept pages
            answers = [browser.get(page) for page in pages]
            assert {a.headers["cache-control"] for a in answers} == {caching}

    assert stranger.headers["cache-control"] == "private, no-cache"


def test_course_and_pages_are_read_beside_the_event_loop(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
):
    where: list[tuple[str, bool]] = []

    def noted(owner: type, name: str) -> None:
        real = getattr(owner, name)

        def note(*given: object) -> object:
            where.append((name, is_on_event_loop()))
            return real(*given)

        monkeypatch.setattr(owner, name, note)

    noted(LiveCourse, "_reload_course_or_keep_previous")
    noted(RenderedPageCache, "_render_page")
    client.app.state.live_course._state = None

    assert client.get("/concepts/weights").status_code == 200
    assert where == [("_reload_course_or_keep_previous", False), ("_render_page", False)]
