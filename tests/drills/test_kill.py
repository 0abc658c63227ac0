"""SIGKILL in the middle of writes: one process, two, SQLite and PostgreSQL."""

import contextlib
import random
import signal
import sqlite3
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.amounts import FACTOR
from tests.browser.server import UNLIMITED, Server
from tests.conftest import TINY
from tests.databases import ABOUT_SQLITE
from tests.drills.learners import Learners, assert_nothing_lost_or_doubled


def workers_of(server: Server) -> list[int]:
    """The processes that serve, children of the one that was started."""
    said = subprocess.run(
        ["pgrep", "-P", str(server.pid), "-f", "spawn_main"],
        check=False,
        capture_output=True,
        text=True,
    )
    return [int(number) for number in said.stdout.split()]


def kill_all(server: Server, _chance: random.Random) -> None:
    server.stop(signal.SIGKILL)
    server.start()


def kill_one(server: Server, chance: random.Random) -> None:
    """One of two processes dies; a new one takes its place."""
    victims = workers_of(server)
    if victims:
        subprocess.run(["kill", "-9", str(chance.choice(victims))], check=False)


@pytest.mark.parametrize(
    ("workers", "kill"),
    [("1", kill_all), pytest.param("2", kill_one, marks=ABOUT_SQLITE)],
)
def test_nothing_acknowledged_is_lost_or_doubled_by_a_kill(
    tmp_path: Path,
    database: str,
    workers: str,
    kill: Callable[[Server, random.Random], None],
):
    chance = random.Random(7)  # noqa: S311 - to be repeated
    data = tmp_path / "data"
    server = Server(data, TINY, database_url=database, workers=workers, **UNLIMITED)
    with server:
        with Learners(server.url) as learners:
            for _ in range(3 * FACTOR):
                learners.wait_for(more=chance.randrange(1, 40))
                kill(server, chance)
            learners.wait_for(more=10)
        before = server.log
        assert server.stop() == 0
        assert server.log == before

    assert_nothing_lost_or_doubled(learners, database)
    if database.startswith("sqlite"):
        path = database.removeprefix("sqlite:///")
        with contextlib.closing(sqlite3.connect(path)) as kept:
            assert kept.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
