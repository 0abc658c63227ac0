"""What a long past costs: the same pages for a veteran and for a newcomer.

Run: python -m benchmarks.veteran [TIMES]. The app runs in this process on a database
file; both learners study a course of more than 2,000 cards. The two take turns, and
the medians of the processor's time are compared, which a busy machine and a slow disk
do not change.
"""

import asyncio
import datetime as dt
import itertools
import secrets
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from fastapi import FastAPI
from itsdangerous import Signer
from sqlalchemy import text
from starlette.types import Message

from app.content.course import Course
from app.database.schema import upgrade_schema
from app.main import create_app
from app.settings import Settings
from benchmarks.content import SHIPPED, grow
from tests.progress.past import NEWCOMER, VETERAN, answer, grade, live, unanswered

TIMES = 60  # at most as often as there are questions nobody answered
COPIES = 6
AIM = 1.5
SECRET = secrets.token_urlsafe()
NOON = dt.datetime(2026, 6, 9, 12, tzinfo=dt.UTC)
KEYS = {"newcomer": "n" * 43, "veteran": "v" * 43}
Ask = Callable[[str], "tuple[str, str, bytes]"]


def main() -> int:
    times = int(sys.argv[1]) if len(sys.argv) > 1 else TIMES
    with tempfile.TemporaryDirectory() as made:
        app = stage(Path(made))
        course: Course = app.state.live_course.get_current_course()
        print(
            f"{len(course.cards)} cards, {len(course.questions)} questions; veteran: "
            f"{VETERAN.reviews:,} reviews of {VETERAN.cards:,} cards, "
            f"{VETERAN.answers:,} answers, {VETERAN.days} days"
        )
        print(f"{'page':24} {'newcomer ms':>11} {'veteran ms':>10} {'ratio':>6} aim")
        asyncio.run(compare(app, pages(app, course), times))
        app.state.engine.dispose()
    return 0


def stage(folder: Path) -> FastAPI:
    """The app on a large course, with both learners."""
    grow(folder / "content", SHIPPED, COPIES)
    settings = Settings(data=folder, content=folder / "content", secret=SECRET)
    app = create_app(settings, lambda: NOON)
    upgrade_schema(app.state.engine)
    course = app.state.live_course.get_current_course()
    for name, past in (("newcomer", NEWCOMER), ("veteran", VETERAN)):
        live(app.state.engine, course, KEYS[name], past, NOON)
    return app


def pages(app: FastAPI, course: Course) -> dict[str, Ask]:
    """What is measured: method, address and body, for whom."""
    new = {who: iter(unanswered(course)) for who in KEYS}
    begun = {
        "newcomer": itertools.cycle(list(course.cards)[: NEWCOMER.cards]),
        "veteran": itertools.cycle(list(course.cards)[: VETERAN.cards]),
    }
    tokens = itertools.count()

    def graded(who: str) -> tuple[str, str, bytes]:
        body = f"rating=3&token={next(tokens)}".encode()
        return "POST", f"/flashcards/{next(begun[who])}/reviews", body

    def reviewed(who: str) -> tuple[str, str, bytes]:
        card = course.cards[next(begun[who])]
        grade(app, KEYS[who], card, str(next(tokens)), NOON)
        return "GET", "/", b""

    def answered(who: str) -> tuple[str, str, bytes]:
        answer(app, KEYS[who], next(new[who]), NOON)
        return "GET", "/", b""

    return {
        "Today": lambda _: ("GET", "/", b""),
        "Today, after an answer": answered,
        "Today, after a review": reviewed,
        "Progress": lambda _: ("GET", "/progress", b""),
        "Next card": lambda _: ("GET", "/flashcards", b""),
        "A grade, and the next": graded,
    }


async def compare(app: FastAPI, asked: dict[str, Ask], times: int) -> None:
    for name, ask in asked.items():
        taken: dict[str, list[float]] = {who: [] for who in KEYS}
        for number in range(times + 5):
            for who in KEYS:
                seconds = await once(app, who, ask(who))
                if number >= 5:  # the first ones warm up
                    taken[who].append(seconds)
        new, old = (statistics.median(taken[who]) * 1000 for who in KEYS)
        print(f"{name:24} {new:11.2f} {old:10.2f} {old / new:6.2f} {AIM}", flush=True)


async def once(app: FastAPI, who: str, request: tuple[str, str, bytes]) -> float:
    """Send one request after a change was noted; returns the seconds it took."""
    with app.state.engine.begin() as connection:
        connection.execute(
            text("UPDATE learner SET changes = changes + 1 WHERE key = :key"),
            {"key": KEYS[who]},
        )
    scope = scope_of(who, *request[:2])
    answers: list[Message] = []
    body: Message = {"type": "http.request", "body": request[2]}
    messages = iter([body])

    async def receive() -> Message:
        return next(messages, {"type": "http.disconnect"})

    async def send(message: Message) -> None:
        answers.append(message)

    begun = time.process_time()
    await app(scope, receive, send)
    seconds = time.process_time() - begun
    if answers[0]["status"] != 200:
        raise SystemExit(f"{request[1]} answered {answers[0]['status']}")
    return seconds


def scope_of(who: str, method: str, path: str) -> dict[str, object]:
    cookie = Signer(SECRET, salt="learner").sign(KEYS[who])
    form = b"application/x-www-form-urlencoded"
    return {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "root_path": "",
        "headers": [
            (b"host", b"localhost"),
            (b"cookie", b"headroom=" + cookie),
            (b"hx-request", b"true"),
            (b"sec-fetch-site", b"same-origin"),
            (b"content-type", form),
        ],
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 80),
    }


if __name__ == "__main__":
    raise SystemExit(main())
