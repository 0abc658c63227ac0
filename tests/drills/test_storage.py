"""The disk is full, a folder gone, the database locked: writes fail and say so."""

import contextlib
import os
import shutil
import sqlite3
import subprocess
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.amounts import FACTOR
from tests.browser.server import UNLIMITED, Server
from tests.conftest import TINY
from tests.databases import ABOUT_SQLITE
from tests.drills.learners import (
    Learners,
    assert_nothing_lost_or_doubled,
    wait_until,
)

pytestmark = ABOUT_SQLITE
processes = pytest.mark.parametrize("workers", ["1", "2"] if FACTOR > 1 else ["1"])


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Path]:
    """A folder on a disk of six megabytes."""
    folder = tmp_path / "small"
    folder.mkdir()
    mount = shutil.which("mount")
    if not mount or os.geteuid() != 0:
        pytest.skip("only root can make a small disk")
    words = [mount, "-t", "tmpfs", "-o", "size=6m", "none", str(folder)]
    if subprocess.run(words, check=False, capture_output=True).returncode:
        pytest.skip("this system lets nobody make a small disk")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


def address_of(folder: Path) -> str:
    return f"sqlite:///{folder / 'headroom.db'}"


@processes
def test_a_full_disk_loses_nothing_and_says_so(small: Path, workers: str):
    server = Server(small / "data", TINY, backups="off", workers=workers, **UNLIMITED)
    with server, Learners(server.url) as learners:
        learners.wait_for(more=20)

        ballast = small / "ballast"
        with contextlib.suppress(OSError), ballast.open("wb", buffering=0) as file:
            while True:
                file.write(b"x" * 4096)
        wait_until(lambda: 507 in learners.refused)
        with httpx.Client(base_url=server.url, timeout=30) as visitor:
            assert visitor.get("/concepts/weights").status_code == 200
            ready = visitor.get("/readyz")
            assert ready.status_code == 503
            assert "disk" in ready.text
            assert visitor.get("/healthz").status_code == 200

        assert learners.refused == {507}

        ballast.unlink()
        learners.wait_for(more=20)
    assert_nothing_lost_or_doubled(learners, address_of(small / "data"))


def test_a_start_on_a_full_disk_says_that_it_is_full(small: Path):
    server = Server(small / "data", TINY, backups="off")
    with server:
        pass
    for beside in ("-wal", "-shm"):  # as after a stop that closed the database
        (server.data / f"headroom.db{beside}").unlink(missing_ok=True)
    ballast = small / "ballast"
    with contextlib.suppress(OSError), ballast.open("wb", buffering=0) as file:
        while True:
            file.write(b"x" * 4096)

    with pytest.raises(RuntimeError, match="the server ended at once"):
        server.start()
    said = server.log.splitlines()[-1]

    assert said == (
        f"headroom: the disk of {server.data} is full: free some space, then start again."
    )


def _beside(server: Server) -> sqlite3.Connection:
    """Another program on its database; among learners who write it waits its turn."""
    return sqlite3.connect(
        server.data / "headroom.db",
        timeout=60,  # SQLite's own five seconds pass where the machine is busy
        isolation_level=None,
    )


def test_a_lock_held_by_somebody_else_is_waited_out(tmp_path: Path):
    server = Server(tmp_path / "data", TINY, **UNLIMITED)
    with server, Learners(server.url) as learners:
        learners.wait_for(more=10)

        with contextlib.closing(_beside(server)) as other:
            other.execute("BEGIN IMMEDIATE")
            with httpx.Client(base_url=server.url, timeout=60) as visitor:
                assert visitor.get("/concepts/weights").status_code == 200
                assert visitor.get("/healthz").status_code == 200
                assert visitor.get("/readyz").status_code == 503
            other.execute("ROLLBACK")

        learners.wait_for(more=10)
    assert_nothing_lost_or_doubled(learners, address_of(server.data))


@processes
def test_a_folder_that_vanishes_ends_writes_at_once(tmp_path: Path, workers: str):
    server = Server(tmp_path / "data", TINY, workers=workers, **UNLIMITED)
    with server, Learners(server.url) as learners:
        learners.wait_for(more=10)

        server.data.rename(tmp_path / "moved")
        wait_until(lambda: learners.all_refused)
        assert learners.refused == {500}
        known = len(learners.acknowledged)
        with httpx.Client(base_url=server.url, timeout=30) as visitor:
            assert visitor.get("/readyz").status_code == 503
        assert len(learners.acknowledged) == known

        (tmp_path / "moved").rename(server.data)
        learners.wait_for(more=10)
    assert_nothing_lost_or_doubled(learners, address_of(server.data))
