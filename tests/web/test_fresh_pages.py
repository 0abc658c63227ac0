"""Pages: never older than what they show, and sent once if nothing has changed."""

import contextlib
import dataclasses
import functools
import sqlite3
import sys
import time

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from app.calculators.pages import ESTIMATE_RUNNER
from app.main import create_app
from app.settings import Settings
from app.web.request_limits import parse_rate_limits
from tests.amounts import sample
from tests.conftest import visit
from tests.databases import ABOUT_SQLITE
from tests.web.addresses import addressed, routes

PAGE = "/glossary"


def rename(client: TestClient, name: str) -> None:
    answer = client.post("/settings", data={"name": name, "minutes_a_day": "30", "retention": "90"})
    assert answer.status_code == 303


def test_an_unchanged_page_is_304(rosa: TestClient):
    tag = rosa.get(PAGE).headers["etag"]

    answer = rosa.get(PAGE, headers={"if-none-match": tag})

    assert (answer.status_code, answer.content) == (304, b"")


def test_what_a_learner_writes_is_on_the_next_page(rosa: TestClient):
    tag = rosa.get(PAGE).headers["etag"]

    rename(rosa, "Rosa Meyer")

    answer = rosa.get(PAGE, headers={"if-none-match": tag})
    assert answer.status_code == 200
    assert "Rosa Meyer" in answer.text


def test_a_page_is_not_shown_to_another(rosa: TestClient, milo: TestClient):
    rename(rosa, "Rosa Meyer")
    rename(milo, "Milo")

    assert "Rosa Meyer" in rosa.get(PAGE).text
    assert "Rosa Meyer" not in milo.get(PAGE).text


def test_a_stranger_sees_no_learner(app: FastAPI, rosa: TestClient):
    rename(rosa, "Rosa Meyer")
    rosa.get(PAGE)

    with visit(app) as stranger:
        answer = stranger.get(PAGE)

    assert "Rosa Meyer" not in answer.text
    assert "set-cookie" in answer.headers


def test_a_form_and_its_mistakes_have_no_tag(rosa: TestClient):
    answers = [rosa.get("/settings"), rosa.get("/nowhere"), rosa.post("/settings", data={})]

    assert [answer.headers.get("etag") for answer in answers] == [None] * 3


def test_each_stranger_gets_a_key_of_their_own(app: FastAPI):
    with visit(app) as one, visit(app) as other:
        keys = {c.get(PAGE).headers["set-cookie"] for c in (one, other)}

    assert len(keys) == 2


def test_a_write_in_another_process_is_seen(settings: Settings, live_course, rosa: TestClient):
    twin = create_app(settings, live_course=live_course)
    rename(rosa, "Rosa Meyer")
    with TestClient(twin, cookies=rosa.cookies, follow_redirects=False) as elsewhere:
        assert "Rosa Meyer" in elsewhere.get(PAGE).text

        rename(rosa, "Rosa Roth")

        assert "Rosa Roth" in elsewhere.get(PAGE).text
    twin.state.engine.dispose()


def test_a_change_of_the_course_is_seen_at_the_next_glance(
    app: FastAPI, settings: Settings, course
):
    live = ChangingLiveCourse(course)
    app = create_app(settings, live_course=live)
    with visit(app) as client:
        before = client.get(PAGE).headers["etag"]

        live.state = dataclasses.replace(course, version="next", glossary={})
        time.sleep(0.03)

        after = client.get(PAGE, headers={"if-none-match": before})
    assert after.status_code == 200
    assert "no glossary yet" in after.text
    app.state.engine.dispose()


class ChangingLiveCourse:
    """A course that changes when a test says so."""

    def __init__(self, state):
        self.state = state

    def get_recently_checked_course(self):
        return None

    def get_current_course(self):
        return self.state


def test_a_page_of_today_grows_old_at_the_turn_of_the_study_day(rosa: TestClient, clock):
    rename(rosa, "Rosa")
    rosa.post("/concepts/weights/readings")
    assert "Tuesday" in rosa.get("/").text

    clock.tick(hours=16, minutes=1)

    assert "Wednesday" in rosa.get("/").text


def test_light_and_dark_are_kept_apart(rosa: TestClient):
    light = rosa.get(PAGE).text
    rosa.cookies.set("theme", "dark")

    assert "data-theme=" not in light
    assert 'data-theme="dark"' in rosa.get(PAGE).text


@pytest.mark.parametrize("page", [PAGE, "/unreachable"])
def test_a_page_is_sent_compressed(rosa: TestClient, page: str):
    plain = rosa.get(page, headers={"accept-encoding": "identity"})
    small = rosa.get(page, headers={"accept-encoding": "br"})

    assert small.headers["content-encoding"] == "br"
    assert int(small.headers["content-length"]) < len(plain.content)
    assert small.text == plain.text


def entries_in_caches(app: FastAPI) -> dict[str, int]:
    """How much each cache of this process and of the app holds."""
    sizes = {
        f"{name}.{word}": value.cache_info().currsize
        for name, module in list(sys.modules.items())
        if name.startswith("app.")
        for word, value in list(vars(module).items())
        if isinstance(value, functools._lru_cache_wrapper)
    }
    rates = app.state.rates
    return sizes | {
        "rates": len(rates._counts),
        "pace": len(ESTIMATE_RUNNER.names_of_measured_estimates),
    }


@pytest.mark.drawn
def test_no_cache_of_any_kind_keeps_an_address_with_unknown_fields(app: FastAPI, rosa: TestClient):
    rates = app.state.rates
    rates._kinds = dict.fromkeys(rates._kinds, parse_rate_limits("1000000/day"))
    addresses = [
        addressed(template)
        for method, template in routes(app)
        if method == "GET" and not template.startswith("/calculators/accuracy")
    ]

    def ask_all(turn: str) -> dict[str, int]:
        for number, address in enumerate(sample(addresses, 25, "caches")):
            fields = {f"x{turn}{number}{n}": f"y{turn}{n}" for n in range(20)}
            rosa.get(address, params=fields, follow_redirects=False)
        return entries_in_caches(app)

    ask_all("first")

    assert ask_all("second") == ask_all("third")


@ABOUT_SQLITE
def test_a_database_that_fails_is_answered_as_any_fault(
    app: FastAPI, rosa: TestClient, caplog: pytest.LogCaptureFixture
):
    rename(rosa, "Rosa")
    path = app.state.engine.url.database
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("ALTER TABLE learner_session RENAME TO gone")

        answer = rosa.get(PAGE)

        number = answer.headers["x-request-id"]
        assert answer.status_code == 500
        assert f"It is logged as {number}." in answer.text
        assert "</html>" in answer.text
        assert f"request {number} failed" in caplog.text
        assert rosa.get("/api/v1/estimates").status_code == 200

        other.execute("ALTER TABLE gone RENAME TO learner_session")
    assert "Rosa" in rosa.get(PAGE).text
