"""How many bytes a page brings, at the first visit and at the next."""

from collections.abc import Iterator

import httpx
import pytest
from playwright.sync_api import Browser, CDPSession

from tests.browser.server import Server
from tests.browser.test_access import PAGES

FIRST_VISIT = 130_000
NEXT_VISIT = 20_000
HEAVIEST = [
    "/",
    "/concepts/training-memory",
    "/glossary",
    "/sources",
    "/calculators/training-memory",
    "/settings",
    "/flashcards/offline",
]
"""All pages have one frame, so what these pass the lighter ones pass as well."""


@pytest.fixture(scope="module")
def reader(shared: Server) -> Iterator[httpx.Client]:
    address = (shared if shared.runs else shared.start()).url
    as_browsers = {"Accept-Encoding": "gzip, deflate, br"}
    with httpx.Client(base_url=address, headers=as_browsers) as client:
        yield client


@pytest.mark.parametrize("path", PAGES)
def test_a_page_itself_is_light_on_the_wire(reader: httpx.Client, path: str) -> None:
    assert _weight(reader, path) <= NEXT_VISIT


def test_the_heaviest_pages_are_among_those_that_a_browser_weighs(
    reader: httpx.Client,
) -> None:
    heaviest = sorted(PAGES, key=lambda path: -_weight(reader, path))[:3]

    assert set(heaviest) <= set(HEAVIEST)


@pytest.mark.browser
@pytest.mark.parametrize("path", HEAVIEST)
def test_a_page_is_light_with_all_that_a_browser_loads_for_it(
    server: Server, browser: Browser, path: str
) -> None:
    context = browser.new_context()
    page = context.new_page()
    wire = Wire(context.new_cdp_session(page))

    page.goto(server.url + path, wait_until="networkidle")
    first = wire.take()
    page.goto(f"{server.url}/healthz")
    wire.take()
    page.goto(server.url + path, wait_until="networkidle")
    again = wire.take()
    context.close()

    assert first <= FIRST_VISIT
    assert again <= NEXT_VISIT


def _weight(reader: httpx.Client, path: str) -> int:
    """The bytes of an answer as they travel, headers included."""
    with reader.stream("GET", path) as answer:
        head = sum(len(name) + len(value) + 4 for name, value in answer.headers.raw)
        return head + sum(len(part) for part in answer.iter_raw())


class Wire:
    """Bytes received, headers included, as the browser's network layer counts them."""

    def __init__(self, session: CDPSession) -> None:
        self._bytes = 0.0
        session.send("Network.enable")
        session.on("Network.loadingFinished", self._count)

    def _count(self, event: dict[str, float]) -> None:
        self._bytes += event["encodedDataLength"]

    def take(self) -> float:
        """The bytes since the last time."""
        count, self._bytes = self._bytes, 0.0
        return count
