"""GET /glossary and GET /sources."""

import re

from fastapi.testclient import TestClient

from app.content.library import Library


def test_every_term_stands_once_under_its_own_address(client: TestClient, library: Library):
    page = client.get("/glossary").text

    assert library.glossary
    for anchor, term in library.glossary.items():
        assert page.count(f'id="{anchor}"') == 1
        assert term.name in page


def test_every_source_is_listed_with_the_day_it_was_read(client: TestClient, library: Library):
    page = client.get("/sources").text

    for source in library.sources.values():
        assert source.title in page
        assert f'href="{source.address}"' in page
    assert re.search(r"read [A-Z][a-z]+\u00a0\d+, 20\d\d", page)


def test_a_source_says_where_it_is_used(client: TestClient):
    assert "Used in" in client.get("/sources?used=1").text
