"""GET /sw.js, and how a browser is told to drop what it kept."""

import re

import pytest
from fastapi.testclient import TestClient

from tests.conftest import visit
from tests.flashcards.course import EditableLiveCourse, two_topics

FORGET = '"cache", "storage"'


def version(client: TestClient) -> str:
    found = re.search(r'const VERSION = "(\w+)";', client.get("/sw.js").text)
    assert found
    return found[1]


def test_the_worker_is_a_script_that_is_asked_for_anew_each_time(client: TestClient):
    answer = client.get("/sw.js")

    assert answer.headers["content-type"].startswith("text/javascript")
    assert "no-cache" in answer.headers["cache-control"]
    assert "default-src 'self'" in answer.headers["content-security-policy"]
    assert "worker-src" not in answer.headers["content-security-policy"]  # so 'self'


def test_every_file_that_the_worker_fetches_at_first_is_there(client: TestClient):
    files = re.findall(r'"(/static/[^"]+)"', client.get("/sw.js").text)

    assert files
    for file in files:
        answer = client.get(file)
        assert "immutable" in answer.headers["cache-control"], file
    assert client.get("/unreachable").status_code == 200


def test_the_page_without_an_answer_names_nobody(client: TestClient):
    client.post("/settings", data={"name": "Rosa"})

    assert "Rosa" in client.get("/settings").text
    assert "Rosa" not in client.get("/unreachable").text


class TestAnotherCourse:
    @pytest.fixture
    def live_course(self) -> EditableLiveCourse:
        return EditableLiveCourse(*two_topics())

    def test_is_another_worker(self, client, live_course: EditableLiveCourse):
        before = version(client)
        assert version(client) == before

        live_course.remove("weights-1")

        assert version(client) != before


class TestWhoComesAfter:
    def test_a_browser_without_a_key_is_told_to_drop_kept_pages(self, app):
        with visit(app) as client:
            first, again = client.get("/course"), client.get("/course")

        assert first.headers["x-new-browser"] == "yes"
        assert "x-new-browser" not in again.headers

    def test_a_key_that_is_not_ours_counts_as_none(self, client: TestClient):
        client.cookies.set("headroom", "made.up")

        assert client.get("/course").headers["x-new-browser"] == "yes"

    def test_leaving_a_browser_clears_what_it_kept(self, client: TestClient):
        answer = client.post("/settings/departure", data={"leave": "yes"})

        assert answer.headers["clear-site-data"] == FORGET

    def test_a_code_clears_what_was_kept_for_the_one_before(self, rosa, milo):
        page = rosa.post("/settings/codes").text
        code = re.search(r"\b[2-9A-Z]{4}-[2-9A-Z]{4}\b", page)
        assert code

        answer = milo.post("/continue", data={"code": code[0], "confirm": "yes", "leave": "yes"})

        assert answer.headers["clear-site-data"] == FORGET

    def test_a_wrong_code_clears_nothing(self, client: TestClient):
        answer = client.post("/continue", data={"code": "0000-0000"})

        assert answer.status_code == 422
        assert "clear-site-data" not in answer.headers
