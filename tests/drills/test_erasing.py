"""Somebody begins and erases without a pause: others go on writing as before."""

import contextlib
import sqlite3
import statistics
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from sqlmodel import Session

from app.database.engine import WRITE_OPTIONS, make_engine
from app.database.tables import Learner, OwnPicture
from tests.browser.server import UNLIMITED, Server
from tests.conftest import TINY
from tests.databases import ABOUT_SQLITE, NAME
from tests.drills.learners import wait_until

pytestmark = ABOUT_SQLITE
SECONDS = 10
PIECE = 1_000_000  # bytes


def fill(path: Path, megabytes: int) -> None:
    """Give a learner so many pictures, one of which goes again: its pages are free."""
    engine = make_engine(f"sqlite:///{path}")
    with Session(engine) as db:
        db.connection(execution_options=WRITE_OPTIONS)
        learner = Learner(key="with many pictures", created_at=0)
        db.add(learner)
        db.flush()
        for number in range(megabytes):
            db.add(picture(learner, number))
            db.flush()
        superfluous = picture(learner, megabytes)
        db.add(superfluous)
        db.flush()
        db.delete(superfluous)
        db.commit()
    engine.dispose()


def picture(learner: Learner, number: int) -> OwnPicture:
    return OwnPicture(learner_id=learner.id, name=f"{number}.png", content="x" * PIECE, at=0)


def free_pages(path: Path) -> int:
    with contextlib.closing(sqlite3.connect(path)) as file:
        return int(file.execute("PRAGMA freelist_count").fetchone()[0])


def write_for(browser: httpx.Client, seconds: float) -> list[float]:
    """How long each write of a learner took, in seconds; all of them succeed."""
    took: list[float] = []
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        begun = time.monotonic()
        answer = browser.post("/concepts/weights/readings", data={"section": "try-it"})
        took.append(time.monotonic() - begun)
        assert answer.status_code == 303, answer.text
        time.sleep(0.02)
    return took


@contextlib.contextmanager
def erasing(address: str) -> Iterator[list[int]]:
    """A client that begins and erases in a loop; the statuses of its erasures."""
    over, done = threading.Event(), []

    def loop() -> None:
        while not over.is_set():
            with httpx.Client(base_url=address, timeout=60) as browser:
                browser.get("/settings")
                form = {"name": "x", "minutes_a_day": "30", "retention": "90"}
                browser.post("/settings", data=form)
                erased = browser.post("/settings/erasure", data={"word": "erase"})
                done.append(erased.status_code)

    thread = threading.Thread(target=loop)
    thread.start()
    try:
        yield done
    finally:
        over.set()
        thread.join()


def p99(times: list[float]) -> float:
    return sorted(times)[int(len(times) * 0.99)]


@pytest.mark.parametrize("megabytes", [24, 300])
def test_erasing_in_a_loop_keeps_nobody_from_writing(tmp_path: Path, megabytes: int):
    server = Server(tmp_path / "data", TINY, backups="off", **UNLIMITED)
    path = server.data / NAME
    with server:
        pass  # the first start makes the database
    fill(path, megabytes)
    with server, httpx.Client(base_url=server.url, timeout=60) as browser:
        browser.get("/")
        free = free_pages(path)
        assert free > 200
        calm = write_for(browser, SECONDS / 2)

        with erasing(server.url) as erased:
            beside = write_for(browser, SECONDS)

        assert len(erased) > 10
        assert set(erased) == {303}
        assert p99(beside) < 2
        assert statistics.median(beside) < 10 * statistics.median(calm) + 0.05
        assert free_pages(path) > 200  # it was not rewritten
        wait_until(lambda: not Path(f"{path}-wal").stat().st_size)
