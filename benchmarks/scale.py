"""What many learners cost one: pages alone and among 2,000 others, and a mixed load.

Run: python -m benchmarks.scale [--seconds 15] [--database ADDRESS] [--learners 2000].
Three databases: an empty one, one with a single learner who has studied for two months,
and one with 2,000 such learners (about 485,000 reviews and 160,000 answers). The table
has the median of each page, always made anew, as three learners see it: a new one on
the empty database, the same studied one alone and among the others. Only what grows
from the second to the third column grows with everybody's past.

Then some of the 2,000 learners read, review and answer at once, with one server process
and with two: fifty and three hundred who look at what they got for one to five seconds
before they go on, which is quicker than people are, and fifty who never pause, which is
all that the machine can do. Of each: requests per second, times of pages and of writes,
and the memory of all processes afterwards. The load runs on the same machine.
"""

import argparse
import asyncio
import contextlib
import dataclasses
import datetime as dt
import itertools
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx

from app.cli.people import create_author_link
from app.content.course import Course
from app.content.live_courses import LiveCourse
from app.database.engine import make_engine
from app.database.schema import upgrade_schema
from app.database.secure_delete import truncate_write_ahead_log
from app.questions.types.choice import ChoiceSpec
from benchmarks import crowd
from benchmarks.load import UNLIMITED
from benchmarks.visitor import SECRET, Request, Visitor, visitor
from tests.browser.server import free_port
from tests.progress.past import Past

ROOT = Path(__file__).resolve().parents[1]
PAST = Past(cards=61, reviews=244, answers=80, days=60)
TIMES = 15
_WARM = 10
PAUSE = (1.0, 5.0)
"""Seconds for which a learner looks at an answer before the next request."""
CROWDS = ((50, PAUSE), (300, PAUSE), (50, (0.0, 0.0)))


def main() -> int:
    given = _arguments()
    course = LiveCourse(ROOT / "content").get_current_course()
    keys = [f"{n:0>43}" for n in range(given.learners)]
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        stages: tuple[tuple[str, list[str], str], ...] = (
            ("empty", [], "new learner"),
            ("alone", keys[:1], "alone"),
            ("full", keys, "among all"),
        )
        table: dict[str, dict[str, float]] = {}
        for name, some, column in stages:
            address = _database(folder / name, given.database if name == "full" else "")
            _fill(address, course, some)
            key = some[0] if some else "n" * 43
            with _server(folder / name, address, 1) as (port, _):
                cookie = _author(address, port)
                table[column] = _pages(port, key, cookie, course)
            if name == "full":
                _print(table)
                for workers in (1, 2):
                    with _server(folder / name, address, workers) as (port, process):
                        _loads(port, keys, course, given.seconds, workers, process)
    return 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--seconds", type=float, default=15)
    parser.add_argument("--learners", type=int, default=2000)
    parser.add_argument("--database", default="", help="an empty PostgreSQL database")
    return parser.parse_args()


def _database(folder: Path, address: str) -> str:
    folder.mkdir()
    return address or f"sqlite:///{folder / 'headroom.db'}"


def _fill(address: str, course: Course, keys: list[str]) -> None:
    engine = make_engine(address)
    upgrade_schema(engine)
    begun = time.perf_counter()
    if keys:
        crowd.fill(engine, course, keys, PAST)
    truncate_write_ahead_log(Path(engine.url.database or ""))
    found = ", ".join(f"{n:,} {name}" for name, n in crowd.counts(engine).items())
    print(f"{found}; written in {time.perf_counter() - begun:.0f} s", flush=True)
    engine.dispose()


@contextlib.contextmanager
def _server(
    folder: Path, address: str, workers: int
) -> Iterator[tuple[int, subprocess.Popen[bytes]]]:
    port = free_port()
    wanted = {
        "DATA": str(folder),
        "DATABASE_URL": address,
        "PORT": str(port),
        "SECRET": SECRET,
        "WORKERS": str(workers),
        "CLIENT_CONNECTIONS": "1000",  # all learners come from one address
    }
    environment = os.environ | UNLIMITED | {f"HEADROOM_{n}": v for n, v in wanted.items()}
    process = subprocess.Popen(
        [sys.executable, "-m", "app", "serve"],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,  # under such a load every request is a slow one
    )
    try:
        _wait(f"http://127.0.0.1:{port}/healthz")
        yield port, process
    finally:
        process.terminate()
        process.wait()


def _wait(url: str) -> None:
    for _ in range(1200):
        with contextlib.suppress(urllib.error.URLError, OSError):
            urllib.request.urlopen(url).close()
            return
        time.sleep(0.05)
    raise SystemExit(f"{url} did not answer")


# --- pages ----------------------------------------------------------------------------


def _author(address: str, port: int) -> str:
    """The cookie of a browser that was let onto the author's bench."""
    engine = make_engine(address)
    link = create_author_link(engine, "", dt.datetime.now(dt.UTC))
    engine.dispose()
    entry = f"http://127.0.0.1:{port}/authoring/enter"
    answer = httpx.post(entry, data={"token": link.partition("token=")[2]})
    return "; ".join(f"{n}={v}" for n, v in answer.cookies.items() if "author" in n)


def _pages(port: int, key: str, cookie: str, course: Course) -> dict[str, float]:
    """The median time of each page in milliseconds; none where it was refused."""
    count = itertools.count()
    cards = itertools.cycle(course.cards)

    def get(path: str) -> Callable[[], Request]:
        sign = "&" if "?" in path else "?"
        return lambda: ("GET", f"{path}{sign}again={next(count)}", b"")

    def grade() -> Request:
        body = f"rating=3&token={key[-6:]}-{next(count)}"
        return "POST", f"/flashcards/{next(cards)}/reviews", body.encode()

    asked: dict[str, Callable[[], Request]] = {
        "Today": get("/"),
        "Progress": get("/progress"),
        "Plan": get("/plan"),
        "Next card": get("/flashcards"),
        "Grade and next": grade,
        "Search": get("/search?q=memory+bandwidth"),
        "Export": get("/settings/export"),
        "Cards as .apkg": get("/settings/cards.apkg"),
        "Statistics of the bench": get("/authoring/questions"),
    }
    return {
        name: asyncio.run(_median(visitor(port, key, cookie), ask, name))
        for name, ask in asked.items()
    }


async def _median(client: Visitor, ask: Callable[[], Request], name: str) -> float:
    times = []
    for number in range(TIMES + 3):
        begun = time.perf_counter()
        status, body = await client.send(ask())
        # The last file is still being closed (409), or statistics are being computed.
        while status == 409 or (name.startswith("Statistics") and b"being computed" in body):
            await asyncio.sleep(0.5)
            begun = time.perf_counter()
            status, body = await client.send(ask())
        if status != 200:
            return float("nan")
        if number >= 3:  # the first ones warm up
            times.append(time.perf_counter() - begun)
    client.close()
    return statistics.median(times) * 1000


def _print(table: dict[str, dict[str, float]]) -> None:
    columns = list(table)
    print(f"\n{'median, ms':26}" + "".join(f"{c:>13}" for c in columns) + "   growth")
    for name in table[columns[0]]:
        values = [table[c][name] for c in columns]
        shown = "".join(f"{v:13.1f}" for v in values)
        print(f"{name:26}{shown}{values[2] / values[1]:9.1f}", flush=True)


# --- mixed load -----------------------------------------------------------------------


@dataclasses.dataclass(slots=True)
class Seen:
    """How long answers took, by whether something was written."""

    reads: list[float] = dataclasses.field(default_factory=list)
    writes: list[float] = dataclasses.field(default_factory=list)
    wrong: dict[int, int] = dataclasses.field(default_factory=dict)


def _loads(
    port: int,
    keys: list[str],
    course: Course,
    seconds: float,
    workers: int,
    process: subprocess.Popen[bytes],
) -> None:
    print(f"\n{workers} process{'es' if workers > 1 else ''}")
    for count, pause in CROWDS:
        seen = Seen()
        some = keys[:: max(1, len(keys) // count)][:count]
        asyncio.run(_study(port, some, course, seconds, pause, seen))
        whole = len(seen.reads) + len(seen.writes)
        thinking = f"{pause[0]:.0f} to {pause[1]:.0f} s pause" if any(pause) else "none"
        print(
            f"{len(some)} learners, {thinking}: "
            f"{whole / seconds:.0f} requests per second; "
            f"{_quantiles('all', seen.reads + seen.writes)}; "
            f"{_quantiles('pages', seen.reads)}; {_quantiles('writes', seen.writes)}; "
            f"memory {_resident(process.pid) / 1e6:.0f} MB; "
            f"refused or failed: {seen.wrong or 'none'}",
            flush=True,
        )


def _quantiles(name: str, times: list[float]) -> str:
    ordered = sorted(times) or [0.0]
    p50, p99 = (ordered[int((len(ordered) - 1) * q)] * 1000 for q in (0.5, 0.99))
    return f"{name} p50 {p50:.0f} ms, p99 {p99:.0f} ms"


async def _study(
    port: int,
    keys: list[str],
    course: Course,
    seconds: float,
    pause: tuple[float, float],
    seen: Seen,
) -> None:
    clients = [visitor(port, key) for key in keys]
    evenings = [
        (client, _wishes(key, course), _pauses(key, pause))
        for client, key in zip(clients, keys, strict=True)
    ]
    # Every process has seen requests of each kind before it counts: the first of a
    # kind after a start compiles its template.
    for client, wishes, _ in evenings:
        for wish in itertools.islice(wishes, _WARM):
            await client.send(wish)
    end = time.perf_counter() + seconds
    await asyncio.gather(*(_evening(*one, end, seen) for one in evenings))


async def _evening(
    client: Visitor,
    wishes: Iterator[Request],
    pauses: Iterator[float],
    end: float,
    seen: Seen,
) -> None:
    await asyncio.sleep(next(pauses))
    while (begun := time.perf_counter()) < end:
        wish = next(wishes)
        status, _ = await client.send(wish)
        took = time.perf_counter() - begun
        (seen.writes if wish[0] == "POST" else seen.reads).append(took)
        if status >= 400:
            seen.wrong[status] = seen.wrong.get(status, 0) + 1
        await asyncio.sleep(next(pauses))
    client.close()


def _pauses(key: str, pause: tuple[float, float]) -> Iterator[float]:
    """Seconds before each request; the first may be short, so all begin apart."""
    chance = random.Random(f"{key} pauses")
    yield chance.uniform(0, pause[1])
    while True:
        yield chance.uniform(*pause)


def _wishes(key: str, course: Course) -> Iterator[Request]:
    """What a learner does in an evening: half of it reviews, the rest of everything."""
    chance = random.Random(key)
    cards, topics = list(course.cards), list(course.topics)
    asked = [
        (f"/quiz/{q.topic}/{q.id}", q.answer.options[0].key)
        for q in course.questions.values()
        if q.type == "single" and isinstance(q.answer, ChoiceSpec) and q.use != "exam"
    ]
    for number in itertools.count():
        token = f"{key[-6:]}-{time.time_ns()}-{number}"
        at, choice = chance.choice(asked)
        answer = f"answer={choice}&token={token}&seed=1".encode()
        grade = f"rating={chance.choice((1, 3, 3, 4))}&token={token}".encode()
        wishes = {
            ("POST", f"/flashcards/{chance.choice(cards)}/reviews", grade): 35,
            ("GET", "/flashcards", b""): 10,
            ("POST", f"{at}/attempts", answer): 10,
            ("GET", at, b""): 10,
            ("GET", "/", b""): 10,
            ("GET", "/progress", b""): 5,
            ("GET", f"/concepts/{chance.choice(topics)}", b""): 15,
            ("GET", "/search?q=memory", b""): 5,
        }
        yield chance.choices(list(wishes), list(wishes.values()))[0]


def _resident(pid: int) -> float:
    """The memory of a process and of all that it started, in bytes."""
    total = 0.0
    with contextlib.suppress(OSError):
        pages = Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1]
        total += int(pages) * os.sysconf("SC_PAGE_SIZE")
        for task in Path(f"/proc/{pid}/task").iterdir():
            children = (task / "children").read_text(encoding="ascii").split()
            total += sum(_resident(int(child)) for child in children)
    return total


if __name__ == "__main__":
    raise SystemExit(main())
