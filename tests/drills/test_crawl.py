"""A crawler asks for every address with unknown fields, and nobody waits for it."""

import asyncio
import multiprocessing
import random
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from urllib.parse import urldefrag, urlencode, urlsplit

import httpx
import pytest

from app.main import create_app
from app.settings import Settings
from tests.amounts import FACTOR
from tests.browser.server import Server
from tests.conftest import SHIPPED
from tests.web.addresses import routes
from tests.web.test_every_page import Page

pytestmark = pytest.mark.skipif(FACTOR == 1, reason="takes minutes: make drills")
AT_ONCE = 8
FIELDS = 20
# It comes from one address, and is to be answered rather than refused.
UNLIMITED = {
    "client_requests": "1000",
    **{name: "off" for name in Settings.model_fields if name.startswith("rate_")},
}
LIMIT = 0.1
"""Seconds within which 99 of 100 questions for health are answered meanwhile."""
_PAUSE = 0.02
_SEED = 18


def test_a_crawler_with_unknown_fields_holds_up_nobody(tmp_path: Path) -> None:
    server = Server(tmp_path / "data", SHIPPED, backups="off", **UNLIMITED)
    # The crawler has a process of its own: it takes no time from who measures.
    own = ProcessPoolExecutor(1, multiprocessing.get_context("spawn"))
    with server, own:
        addresses = walk(server.url) | fixed_addresses(tmp_path)
        crawling = own.submit(crawl, server.url, sorted(addresses))
        times = times_to_answer(server.url, crawling.done)
        statuses = crawling.result()

    p99 = times[int(len(times) * 0.99)]
    seen = f"{dict(statuses)}; /healthz {len(times)} times, p99 {p99:.3f} s"
    assert statuses[200] > 1000, seen
    assert not any(status == 429 or status >= 500 for status in statuses), seen
    assert p99 < LIMIT, seen


def walk(url: str) -> set[str]:
    """Every address without a query that a link leads to."""
    seen, waiting = {"/"}, ["/"]
    with httpx.Client(base_url=url, timeout=60, follow_redirects=True) as client:
        while waiting:
            answer = client.get(waiting.pop())
            if not answer.headers.get("content-type", "").startswith("text/html"):
                continue
            page = Page(answer.text)
            for link in (*page.links, *page.fetched):
                path = urlsplit(urldefrag(link).url).path
                if link.startswith("/") and path not in seen:
                    seen.add(path)
                    waiting.append(path)
    return seen


def fixed_addresses(folder: Path) -> set[str]:
    """The address of every GET route that has no parameters."""
    app = create_app(Settings(data=folder / "other", content=SHIPPED))
    try:
        return {t for method, t in routes(app) if method == "GET" and "{" not in t}
    finally:
        app.state.engine.dispose()


def unknown_fields(chance: random.Random) -> str:
    return urlencode(
        {f"x{chance.getrandbits(40):x}": chance.getrandbits(40) for _ in range(FIELDS)}
    )


def crawl(url: str, addresses: list[str]) -> Counter[int]:
    """Ask for each address with unknown fields; returns how often each status came."""
    return asyncio.run(_crawl(url, addresses))


async def _crawl(url: str, addresses: list[str]) -> Counter[int]:
    chance = random.Random(_SEED)  # noqa: S311 - drawn alike each time
    chance.shuffle(addresses)
    waiting = iter([f"{path}?{unknown_fields(chance)}" for path in addresses])
    met: Counter[int] = Counter()

    async def ask() -> None:
        async with httpx.AsyncClient(base_url=url, timeout=60) as client:
            for address in waiting:
                met[(await client.get(address)).status_code] += 1

    await asyncio.gather(*(ask() for _ in range(AT_ONCE)))
    return met


def times_to_answer(url: str, is_over: Callable[[], bool]) -> list[float]:
    """Seconds that each question for health took, the shortest first."""
    times = []
    with httpx.Client(base_url=url, timeout=60) as client:
        while not is_over():
            begun = time.perf_counter()
            assert client.get("/healthz").status_code == 200
            times.append(time.perf_counter() - begun)
            time.sleep(_PAUSE)
    return sorted(times)
