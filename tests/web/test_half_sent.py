"""A request that never arrives whole holds nothing that somebody else needs."""

import socket
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import httpx
import pytest
from fastapi import FastAPI

from tests.browser.server import Server
from tests.conftest import TINY, two_courses
from tests.databases import ABOUT_SQLITE
from tests.web.addresses import ALONE_OR_NOT, forms

pytestmark = pytest.mark.drawn
_AT_MOST = 60  # seconds for an answer; the half requests are waited for far longer


def half_sent(port: int, path: str, cookie: str) -> socket.socket:
    """A connection on which a form has begun and goes no further."""
    line = socket.create_connection(("127.0.0.1", port), timeout=_AT_MOST)
    line.sendall(
        f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nCookie: {cookie}\r\n"
        "Content-Type: application/x-www-form-urlencoded\r\n"
        "Content-Length: 1000\r\n\r\nwords=".encode()
    )
    return line


@pytest.fixture(params=ALONE_OR_NOT)
def below(request: pytest.FixtureRequest) -> str:
    """What stands before every address: nothing, or the name of the course."""
    return str(request.param)


@pytest.fixture(params=["1", pytest.param("2", marks=[ABOUT_SQLITE, pytest.mark.drill])])
def server(
    tmp_path: Path, database: str, below: str, request: pytest.FixtureRequest
) -> Iterator[Server]:
    running = Server(
        tmp_path / "data",
        two_courses(tmp_path / "content") if below else TINY,
        database_url=database,
        workers=request.param,
        request_seconds="600",
    )
    with running:
        yield running


def test_half_sent_forms_at_every_address_hold_up_nobody_and_no_end(
    app: FastAPI, server: Server, below: str
):
    home = server.url + below
    with httpx.Client(base_url=home, timeout=_AT_MOST) as milo:
        milo.get("/settings")
        assert milo.post("/settings", data={"name": "Milo"}).status_code == 303
        cookie = f"headroom={milo.cookies['headroom']}"

    paths = forms(app)
    assert len(paths) > 25

    with ExitStack() as lines:
        for path in paths:
            lines.enter_context(half_sent(server.port, below + path, cookie))
        with httpx.Client(base_url=home, timeout=_AT_MOST) as rosa:
            assert rosa.get("/").status_code == 200
            for turn in range(6):  # so that every process is asked
                name = {"name": f"Rosa {turn}"}
                assert rosa.post("/settings", data=name).status_code == 303
                assert f"Rosa {turn}" in rosa.get("/settings").text
            assert rosa.get("/progress").status_code == 200
            assert rosa.get("/healthz").status_code == 200

        assert server.stop() is not None
