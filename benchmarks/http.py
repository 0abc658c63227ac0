"""Requests per second and p99 of the main pages, as ratios to a bare response.

Run: python -m benchmarks.http [SECONDS]. Both servers run with the same settings on
the same machine; the bare one is measured before and after each page, in many short
rounds, so that a busy machine slows both.
"""

import itertools
import json
import os
import re
import secrets
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from email.message import Message
from pathlib import Path

from benchmarks.load import UNLIMITED, measure

ROOT = Path(__file__).resolve().parents[1]
CONNECTIONS = 16
LEARNERS = 200
ROUNDS = 9  # their median counts: a machine is never busy all the time


def main() -> int:
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 4.0
    with tempfile.TemporaryDirectory() as data, servers(Path(data)) as (bare, port):
        cookie = first_visit(port)
        print(f"{'page':32} {'per second':>10} {'p99 ms':>7} {'ratio':>6} {'p99 ratio':>9}")
        for name, request in requests(port, cookie).items():
            row(name, bare, port, request, seconds)
    return 0


def row(name: str, bare: int, port: int, request: Callable[[], bytes], seconds: float) -> None:
    """Measure one page in rounds, each between two measurements of the bare server."""
    measure(port, request, seconds / 4, CONNECTIONS)  # warm
    rounds = [one_round(name, bare, port, request, seconds) for _ in range(ROUNDS)]
    per_second, p99, ratio, slower = map(statistics.median, zip(*rounds, strict=True))
    print(
        f"{name:32} {per_second:10.0f} {p99 * 1000:7.1f} {ratio:6.3f} {slower:9.1f}",
        flush=True,
    )


def one_round(
    name: str, bare: int, port: int, request: Callable[[], bytes], seconds: float
) -> tuple[float, float, float, float]:
    """Requests per second, p99 [s], and the ratio of both to the bare server."""
    hello = get("/", "")
    before = measure(bare, hello, seconds / ROUNDS / 2, CONNECTIONS)
    result = measure(port, request, seconds / ROUNDS, CONNECTIONS)
    after = measure(bare, hello, seconds / ROUNDS / 2, CONNECTIONS)
    wrong = {s: n for s, n in result.statuses.items() if s not in (200, 304)}
    if wrong:
        raise SystemExit(f"{name}: answers were {wrong}")
    per_second = statistics.mean((before.per_second, after.per_second))
    p99 = statistics.mean((before.p99, after.p99))
    rate = result.per_second
    return rate, result.p99, rate / per_second, result.p99 / p99


def requests(port: int, cookie: str) -> dict[str, Callable[[], bytes]]:
    """What each row of the table asks for."""
    topic = first_topic(port)
    etag = fetch(port, f"/concepts/{topic}", cookie)[1].get("ETag", "")
    result = "/calculators/inference-memory/result?model=llama-3.1-70b&concurrent="
    return {
        "Today": get("/", cookie),
        "Concept page": get(f"/concepts/{topic}", cookie),
        "Concept page, unchanged (304)": get(
            f"/concepts/{topic}", cookie, f"If-None-Match: {etag}\r\n"
        ),
        "Calculator result, asked before": get(f"{result}16", cookie),
        "Calculator result, new inputs": new_results(result, cookie),
        "Card review": reviews(port),
    }


def get(path: str, cookie: str, more: str = "") -> Callable[[], bytes]:
    text = f"GET {path} HTTP/1.1\r\nHost: localhost\r\nCookie: {cookie}\r\n{more}\r\n"
    wire = text.encode()
    return lambda: wire


def new_results(address: str, cookie: str) -> Callable[[], bytes]:
    """Each request asks for inputs that nobody asked for before."""
    counter = itertools.count(17)

    def request() -> bytes:
        return get(f"{address}{next(counter)}", cookie)()

    return request


def reviews(port: int) -> Callable[[], bytes]:
    """Each request grades another card of another learner, as an evening does."""
    course = json.loads(fetch(port, "/api/v1/courses", "")[0])["courses"][0]["course"]
    deck = json.loads(fetch(port, f"/api/v1/courses/{course}/cards", "")[0])
    cards = [card["card"] for card in deck["cards"]]
    cookies = [first_visit(port) for _ in range(LEARNERS)]
    pairs = itertools.cycle((cookie, card) for card in cards for cookie in cookies)

    def request() -> bytes:
        cookie, card = next(pairs)
        body = f"rating=3&token={secrets.token_urlsafe(16)}"
        return (
            f"POST /flashcards/{card}/reviews HTTP/1.1\r\n"
            f"Host: 127.0.0.1:{port}\r\nCookie: {cookie}\r\n"
            f"Origin: http://127.0.0.1:{port}\r\nSec-Fetch-Site: same-origin\r\n"
            "HX-Request: true\r\nContent-Type: application/x-www-form-urlencoded\r\n"
            f"Content-Length: {len(body)}\r\n\r\n{body}"
        ).encode()

    return request


def first_visit(port: int) -> str:
    cookies = fetch(port, "/", "")[1].get_all("Set-Cookie") or []
    return "; ".join(c.split(";")[0] for c in cookies)


def first_topic(port: int) -> str:
    found = re.search(r'href="/concepts/([a-z0-9-]+)"', fetch(port, "/course", "")[0])
    if found is None:
        raise SystemExit("no topic was found on /course")
    return found[1]


def fetch(port: int, path: str, cookie: str) -> tuple[str, Message]:
    headers = {"Cookie": cookie} if cookie else {}
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", headers=headers)
    with urllib.request.urlopen(request) as answer:
        return answer.read().decode(), answer.headers


@contextmanager
def servers(data: Path) -> Iterator[tuple[int, int]]:
    """The bare server and Headroom, both as `headroom serve` runs uvicorn."""
    bare, port = 18801, 18802
    wanted = {"HEADROOM_DATA": str(data), "HEADROOM_PORT": str(port)}
    environment = {**os.environ, **UNLIMITED, **wanted}
    options = ["--loop", "asyncio", "--no-access-log", "--log-level", "warning"]
    commands = [
        [
            sys.executable,
            "-m",
            "uvicorn",
            "benchmarks.bare:app",
            "--port",
            str(bare),
            *options,
        ],
        [sys.executable, "-m", "app", "serve"],
    ]
    running = [
        subprocess.Popen(c, cwd=ROOT, env=environment, stdout=subprocess.DEVNULL) for c in commands
    ]
    try:
        wait(f"http://127.0.0.1:{bare}/")
        wait(f"http://127.0.0.1:{port}/healthz")
        yield bare, port
    finally:
        for process in running:
            process.terminate()
            process.wait()


def wait(url: str) -> None:
    for _ in range(600):
        try:
            urllib.request.urlopen(url).close()
        except (urllib.error.URLError, OSError):
            time.sleep(0.05)
        else:
            return
    raise SystemExit(f"{url} did not answer")


if __name__ == "__main__":
    raise SystemExit(main())
