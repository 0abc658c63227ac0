"""Several processes of one server: they count, log, erase, hold data and end together.

One server is for all of it, because each process of it imports the app: it ends with
the last test here, which starts it where the others ran elsewhere.
"""

import contextlib
import json
import os
import signal
import sqlite3
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from app.database.backup import create_backup, restore_backup
from app.database.installation import Installation, InstallationError
from tests.accounts.test_traces import WORD, hits, settings_of, wait_until
from tests.browser.server import Server
from tests.conftest import TINY
from tests.databases import ABOUT_SQLITE, NAME
from tests.upkeep.conftest import NOW
from tests.web.test_metrics import GIVEN, TYPED, shown

pytestmark = pytest.mark.drill


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    data = tmp_path_factory.mktemp("two") / "data"
    server = Server(data, TINY, workers="2", metrics_token=GIVEN, log="json").start()
    yield server
    server.stop(signal.SIGKILL)


def test_they_show_one_count(server: Server):
    token = {"authorization": f"Bearer {GIVEN}"}
    of_pages = ("headroom_requests_total", "GET", "/concepts/{topic}", "2xx")
    # Each request on a connection of its own, so that either process may answer.
    alone = httpx.Limits(max_keepalive_connections=0)

    def ask(visitor: httpx.Client) -> dict[tuple[str, ...], float]:
        return shown(visitor.get("/metrics", headers=token).raise_for_status().text)

    with httpx.Client(base_url=server.url, limits=alone, timeout=60) as visitor:
        for _ in range(40):  # visitors whom nobody knows: no page is kept for them
            visitor.cookies.clear()
            visitor.get("/concepts/weights").raise_for_status()
        for _ in range(100):  # a request is counted once its answer has been sent
            if ask(visitor)[of_pages] >= 40:
                break
            time.sleep(0.1)
        found = [ask(visitor) for _ in range(4)]

    assert [counted[of_pages] for counted in found] == [40] * 4
    for counted in found:
        assert sum(key[0] == "process_resident_memory_bytes" for key in counted) >= 1


@ABOUT_SQLITE
def test_each_writes_json_where_it_is_told_to(server: Server):
    with contextlib.closing(sqlite3.connect(server.data / NAME)) as other:
        other.execute(
            "CREATE TRIGGER full BEFORE INSERT ON learner BEGIN SELECT RAISE(FAIL, 'no room'); END"
        )
        answer = httpx.post(f"{server.url}/settings", data={"name": TYPED}, timeout=60)
        other.execute("DROP TRIGGER full")
    lines = [json.loads(x) for x in server.log.splitlines() if x.startswith("{")]

    assert answer.status_code == 500
    (fault,) = [line for line in lines if "exc_info" in line]
    assert fault["request"] == answer.headers["x-request-id"]
    assert fault["exc_info"].endswith("sqlalchemy.exc.IntegrityError")
    assert "horse" not in server.log


@ABOUT_SQLITE
def test_what_was_erased_is_in_no_file(server: Server):
    with httpx.Client(base_url=server.url, timeout=60) as rosa:
        rosa.get("/settings")
        for _ in range(5):
            rosa.post("/settings", data=settings_of(WORD))
            assert WORD in rosa.get("/glossary").text
        assert hits(server.data)

        answer = rosa.post("/settings/erasure", data={"word": "erase"})

        assert answer.status_code == 303
        wait_until(lambda: not hits(server.data))
        for _ in range(10):
            assert rosa.get("/healthz").text == "well"
            assert WORD not in rosa.get("/glossary").text


def test_nothing_is_restored_while_they_run(server: Server, tmp_path: Path):
    address = f"sqlite:///{server.data / NAME}"
    installation = Installation(server.data, address, "", tmp_path / "backups")
    create_backup(installation, tmp_path / "copy.zip", NOW)

    with pytest.raises(InstallationError, match="a server uses it"):
        restore_backup(installation, tmp_path / "copy.zip", NOW)

    with httpx.Client(base_url=server.url, timeout=60) as ada:
        ada.get("/")
        assert ada.post("/concepts/weights/readings").status_code == 303


def answers(server: Server) -> bool:
    """Whether anybody listens. A worker that ends may break a connection off first."""
    try:
        urllib.request.urlopen(server.url + "/healthz", timeout=30).close()  # noqa: S310 - our own address
    except urllib.error.URLError as error:
        if isinstance(error.reason, ConnectionRefusedError):
            return False
        if not isinstance(error.reason, ConnectionError):
            raise
    except ConnectionError:
        pass
    return True


def test_they_end_when_their_parent_is_killed(server: Server):
    os.kill(server.pid, signal.SIGKILL)

    while answers(server):  # until both are gone: the port refuses
        pass
    assert not answers(server)
