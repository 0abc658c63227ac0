"""GET /glossary and GET /sources."""

import re

import pytest
from fastapi.testclient import TestClient

from app.content.course import Course


def test_every_term_stands_once_under_its_own_address(client: TestClient, course: Course):
    page = client.get("/glossary").text

    assert course.glossary
    for anchor, term in course.glossary.items():
        assert page.count(f'id="{anchor}"') == 1
        assert term.name in page


def test_every_source_is_listed_with_the_day_it_was_read(client: TestClient, course: Course):
    page = client.get("/sources").text

    for source in course.sources.values():
        assert source.title in page
        assert f'href="{source.url}"' in page
    assert re.search(r"read [A-Z][a-z]+\u00a0\d+, 20\d\d", page)


def test_a_long_list_of_sources_comes_in_parts(
    client: TestClient, course: Course, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("app.lessons.course_pages._SOURCES_ON_A_PAGE", 1)
    titles = sorted((s.title for s in course.sources.values()), key=str.casefold)
    first, last = client.get("/sources?used=1"), client.get("/sources?page=999")

    assert titles[0] in first.text
    assert titles[-1] not in first.text
    assert 'href="/sources?used=1&amp;page=2" rel="next"' in first.text
    assert titles[-1] in last.text
    assert f"Part {len(titles)} of {len(titles)}" in last.text
    assert client.get("/sources?page=0").status_code == 422


def test_a_source_says_where_it_is_used(client: TestClient):
    assert "Used in" in client.get("/sources?used=1").text
