"""GET /static/…: hashed addresses, kept for a year, sent compressed."""

import brotli
import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from tests.loops import outcome


@pytest.fixture
def address(app: FastAPI):
    return app.state.static.versioned_url


def test_an_address_carries_the_hash_of_its_content(client: TestClient, address):
    answer = client.get(address("css/headroom.css"))

    assert answer.status_code == 200
    assert answer.headers["cache-control"] == "public, max-age=31536000, immutable"


def test_another_hash_is_answered_but_not_kept(client: TestClient):
    answer = client.get("/static/css/headroom.css?v=0000000000")

    assert answer.headers["cache-control"] == "no-cache"


def test_the_shared_styles_are_one_file_that_begins_with_the_tokens(client: TestClient, address):
    styles = client.get(address("css/headroom.css")).text

    assert styles.startswith("@layer")
    assert "--paper:" in styles
    assert ".btn" in styles


def test_scripts_are_sent_without_lines_of_comments(client: TestClient, address):
    scripts = [
        client.get(address(f"js/{name}.js")).text
        for name in ("headroom", "outbox", "exam", "exam_clock", "worker")
    ]

    lines = [line.strip() for script in scripts for line in script.split("\n")]
    assert len(lines) > 200
    assert not [line for line in lines if line.startswith("//")]


def test_styles_name_fonts_by_their_hash(client: TestClient, address):
    styles = client.get(address("css/headroom.css")).text

    assert address("fonts/faustina.woff2").removeprefix("/static") in styles


def test_text_is_sent_compressed_to_those_who_can_read_it(client: TestClient, address):
    path = address("css/headroom.css")
    plain = client.get(path, headers={"accept-encoding": "identity"})

    with client.stream("GET", path, headers={"accept-encoding": "br"}) as squeezed:
        assert squeezed.headers["content-encoding"] == "br"
        assert brotli.decompress(b"".join(squeezed.iter_raw())) == plain.content
    gzipped = client.get(path, headers={"accept-encoding": "gzip"})
    assert gzipped.headers["content-encoding"] == "gzip"
    assert gzipped.content == plain.content


def test_fonts_are_compressed_already(client: TestClient, address):
    answer = client.get(address("fonts/faustina.woff2"))

    assert "content-encoding" not in answer.headers
    assert answer.headers["content-type"] == "font/woff2"


def test_an_unchanged_file_is_not_sent_again(client: TestClient):
    path = "/static/js/headroom.js"
    tag = client.get(path).headers["etag"]

    answer = client.get(path, headers={"if-none-match": tag})

    assert (answer.status_code, answer.content) == (304, b"")


@pytest.mark.parametrize("name", ["nothing.css", "../app/main.py", "..%2fapp%2fmain.py", "css", ""])
def test_nothing_beside_the_files_can_be_read(client: TestClient, name: str):
    assert client.get(f"/static/{name}").status_code == 404


def test_a_page_cannot_ask_for_a_file_that_is_not_there(address):
    with pytest.raises(KeyError):
        address("css/never.css")


def test_the_first_visit_stays_light(app: FastAPI):
    files = app.state.static.files
    fonts = [f for n, f in files.items() if n.endswith(".woff2")]
    text = [
        files[n]
        for n in (
            "css/headroom.css",
            "js/headroom.js",
            "vendor/htmx-2.0.11.min.js",
            "img/icon.svg",
        )
    ]

    async def packed() -> list[bytes]:
        return [(await file.encode_for(b"br"))[0] for file in text]

    moved = sum(len(f.body) for f in fonts) + sum(map(len, outcome(packed())))

    assert moved < 100_000  # leaves 30 kB for the page and its own styles
