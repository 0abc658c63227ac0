"""The clock of the machine jumps, back and forward, while learners answer."""

import contextlib
import datetime as dt
import random
import threading
import time
from collections.abc import Iterator

import httpx
import uvicorn
from fastapi import FastAPI

from app.content.live_courses import LiveCourse
from app.main import create_app
from app.settings import Settings
from tests.amounts import FACTOR
from tests.browser.server import free_port
from tests.conftest import Clock
from tests.drills.learners import Learners, assert_nothing_lost_or_doubled

JUMPS = (
    dt.timedelta(days=-400),
    dt.timedelta(days=400),
    dt.timedelta(hours=-25),
    dt.timedelta(seconds=-1),
    dt.timedelta(days=3),
)
PAGES = ("/", "/progress", "/plan", "/flashcards", "/settings", "/readyz")


@contextlib.contextmanager
def serving(app: FastAPI) -> Iterator[str]:
    """The address of this app, served from a thread."""
    port = free_port()
    config = uvicorn.Config(app, port=port, log_level="critical")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run)
    thread.start()
    while not server.started:
        assert thread.is_alive()
        time.sleep(0.01)
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        server.should_exit = True
        thread.join(timeout=60)
    assert not thread.is_alive()


def test_a_clock_that_jumps_loses_and_doubles_nothing(
    settings: Settings, live_course: LiveCourse, clock: Clock, database: str
):
    chance = random.Random(11)  # noqa: S311 - to be repeated
    app = create_app(settings, clock, live_course)
    with serving(app) as address, httpx.Client(base_url=address) as visitor:
        visitor.post("/quiz/weights/w-bf16-70b/attempts", data={"answer": "a"})
        with Learners(address) as learners:
            for _ in range(4 * FACTOR):
                learners.wait_for(more=chance.randrange(1, 20))
                clock.now += chance.choice(JUMPS)
                for page in PAGES:
                    answer = visitor.get(page)
                    assert answer.status_code == 200, answer.text

    assert learners.refused == set()
    assert_nothing_lost_or_doubled(learners, database)
