"""GET /concepts/{topic}: the page, finished when the course was loaded."""

import re

from fastapi.testclient import TestClient

from app.content.course import Course


def test_the_page_has_its_sections_under_their_own_addresses(client: TestClient):
    page = client.get("/concepts/kv-cache").text

    assert "<h1>The cache of a conversation</h1>" in page
    assert '<h2 id="what-a-token-leaves-behind"' in page
    assert '<a href="#what-a-token-leaves-behind">' in page


def test_the_calculator_in_the_text_is_a_form_that_works_without_scripts(
    client: TestClient,
):
    page = client.get("/concepts/kv-cache").text

    assert 'action="/calculators/kv-cache#reading"' in page
    assert "<noscript>" in page


def test_a_number_shows_its_working(client: TestClient):
    page = client.get("/concepts/kv-cache").text

    assert re.search(r'<a[^>]* href="/calculators/kv-cache\?', page)
    assert "the working" in page


def test_the_first_mention_of_a_term_is_explained(client: TestClient):
    page = client.get("/concepts/kv-cache").text

    assert re.search(r'<a[^>]* href="/glossary#[a-z-]+"', page)
    assert 'popover="hint"' in page


def test_the_page_ends_with_what_it_rests_on(client: TestClient, course: Course):
    page = client.get("/concepts/kv-cache").text

    for key in course.topics["kv-cache"].sources:
        assert f'id="src-{key}"' in page
        assert course.sources[key].url in page


def test_the_pages_are_linked_in_their_order(client: TestClient):
    first = client.get("/concepts/weights").text
    second = client.get("/concepts/kv-cache").text

    assert '<a href="/concepts/kv-cache" rel="next">' in first
    assert '<a href="/concepts/weights" rel="prev">' in second


def test_what_to_read_before_is_named(client: TestClient):
    assert "Read first:" in client.get("/concepts/kv-cache").text


def test_what_was_read_before_is_not_named(rosa: TestClient):
    rosa.post("/concepts/weights/readings")

    assert "Read first:" not in rosa.get("/concepts/kv-cache").text


def test_an_unknown_page_is_404(client: TestClient):
    answer = client.get("/concepts/nothing")

    assert answer.status_code == 404
    assert "This course has no page “nothing”." in answer.text


def test_pictures_beside_the_page_are_served_and_nothing_else(client: TestClient):
    for name in ("concept.md", "missing.png", "..%2f..%2fsyllabus.toml"):
        assert client.get(f"/concepts/weights/files/{name}").status_code == 404
