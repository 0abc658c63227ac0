"""Others hold every place for files, as slowly as they may: a newcomer gets one."""

import contextlib
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.browser.server import Server
from tests.conftest import TINY
from tests.drills.strangers import make_deck

ROOT = Path(__file__).resolve().parents[2]


@contextlib.contextmanager
def attacked(server: Server, name: str, seconds: int) -> Iterator[None]:
    """A server that has been attacked for some seconds, and goes on being attacked."""
    port = str(httpx.URL(server.url).port)
    words = [sys.executable, "-m", "tests.drills.strangers", port, "120", name]
    process = subprocess.Popen(words, cwd=ROOT, stdout=subprocess.DEVNULL)
    try:
        time.sleep(seconds)
        yield
    finally:
        process.kill()
        process.wait()


@pytest.mark.parametrize("name", ["read_slowly", "upload_from_everywhere"])
def test_slow_files_of_others_do_not_keep_a_newcomer_from_files(tmp_path: Path, name: str):
    server = Server(tmp_path / "data", TINY, backups="off", rate_imports="off")
    with (
        server,
        attacked(server, name, 20),
        httpx.Client(base_url=server.url, timeout=60) as newcomer,
    ):
        newcomer.get("/settings")
        sent = {"file": ("deck.apkg", make_deck("deck", 1))}
        assert newcomer.post("/settings/cards", files=sent).status_code == 303
        assert newcomer.get("/settings/export").status_code == 200
