"""GET /search: the page, and the results alone."""

import re

from fastapi.testclient import TestClient


def words(page: str) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", "", page)).replace("\xa0", " ")


def test_every_page_leads_to_the_search_by_one_key(client: TestClient):
    page = client.get("/course").text

    assert 'href="/search" data-key="/"' in page


def test_it_works_without_javascript(client: TestClient):
    page = client.get("/search", params={"q": "cache"}).text

    assert 'action="/search"' in page
    assert 'value="cache"' in page
    assert "<mark>cache</mark>" in page.casefold()
    assert 'href="/glossary#kv-cache"' in page


def test_the_results_alone_hold_no_frame(client: TestClient):
    part = client.get("/search/results", params={"q": "cache"}).text

    assert "<html" not in part
    assert "data-result" in part


def test_a_mended_word_is_said_and_can_be_looked_for(client: TestClient):
    page = client.get("/search", params={"q": "paramter"}).text

    assert "Nothing was found for “paramter”" in page
    assert 'href="/search?q=parameter"' in page


def test_what_is_left_out_of_a_long_list_is_one_link_away(client: TestClient):
    page = client.get("/search", params={"q": "a"}).text
    said = re.search(r"(\d+) results; these are the best (\d+)", words(page))
    assert said
    assert page.count("data-result") == int(said[2]) < int(said[1])

    (link,) = re.findall(r'href="(/search[^"]*whole=yes)"', page)
    whole = client.get(link.replace("&amp;", "&")).text

    assert whole.count("data-result") == int(said[1])
    assert "Show all" not in whole


def test_nothing_found_says_so_and_where_else_to_look(client: TestClient):
    page = client.get("/search", params={"q": "zzzzzzzz"}).text

    assert "Nothing was found for “zzzzzzzz”, or for words spelled like it." in page
    assert 'href="/glossary"' in page


def test_what_is_typed_is_only_text(client: TestClient):
    page = client.get("/search", params={"q": '"><script>alert(1)</script>'}).text

    assert "<script>alert" not in page


def test_looking_for_something_writes_nothing(client: TestClient, app):
    client.get("/search", params={"q": "cache"})

    with app.state.engine.connect() as connection:
        count = connection.exec_driver_sql("SELECT count(*) FROM learner").scalar()
    assert count == 0


def test_words_too_long_for_a_search_are_refused_politely(client: TestClient):
    assert client.get("/search", params={"q": "x" * 500}).status_code == 422
