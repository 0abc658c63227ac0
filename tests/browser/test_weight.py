"""How many bytes a page brings, at the first visit and at the next."""

import html
import re
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple
from urllib.parse import urldefrag, urljoin

import httpx
import pytest
from playwright.sync_api import Browser, CDPSession

from tests.amounts import each_of_sample
from tests.browser.server import Server
from tests.browser.test_access import PAGES
from tests.conftest import SHIPPED

FIRST_VISIT = 130_000
NEXT_VISIT = 20_000
# Two lists grow with the course: some 450 terms and 510 sources.
LISTS = {"/glossary": 8_000, "/sources": 2_000}
# At the next visit they come alone, compressed for each request: see DECISIONS, section 9.
# Their bound is in bytes for each entry, the frame included.
LISTS_AGAIN = {"/glossary": ("glossary.md", "## ", 72), "/sources": ("sources.toml", "[", 55)}
IN_A_BROWSER = ["/concepts/training-memory", "/flashcards/offline"]
"""The page of most fonts and one of other scripts; all pages have one frame."""
# Of pages and style sheets; a script loads nothing by itself.
LINK = re.compile(
    r"<(?:link|script|img|image)\b[^>]*?\s(?:src|href)=[\"']?([^\"'\s>]+)"
    r"|\burl\([\"']?(?!data:)([^\"')]+)"
)


class Answer(NamedTuple):
    """What comes from one address."""

    weight: int
    """The bytes as they travel, headers included."""
    kept: bool
    """Whether a browser has it at the next visit without asking."""
    links: frozenset[str]
    """What a browser may load for it."""


class Reader:
    """Adds up what a page brings: all that it or its style sheets link.

    A browser loads no font and no image that it does not show, so this is the most.
    """

    def __init__(self, client: httpx.Client) -> None:
        self._client = client
        self._answers: dict[str, Answer] = {}

    def first(self, path: str) -> int:
        return self.weight(self.loaded(path))

    def again(self, path: str) -> int:
        answers = map(self._answer, self.loaded(path))
        return sum(answer.weight for answer in answers if not answer.kept)

    def loaded(self, path: str) -> set[str]:
        """The addresses of a page and of all that comes with it."""
        found, new = set[str](), {path}
        while new:
            found |= new
            new = {link for one in new for link in self._answer(one).links} - found
        return found

    def weight(self, paths: Iterable[str]) -> int:
        return sum(self._answer(path).weight for path in paths)

    def _answer(self, path: str) -> Answer:
        if path not in self._answers:
            self._answers[path] = self._ask(path)
        return self._answers[path]

    def _ask(self, path: str) -> Answer:
        answer = self._client.get(path)
        head = sum(len(name) + len(value) + 4 for name, value in answer.headers.raw)
        kind = answer.headers["content-type"]
        text = answer.text if kind.startswith(("text/html", "text/css")) else ""
        return Answer(
            head + answer.num_bytes_downloaded,
            "immutable" in answer.headers.get("cache-control", ""),
            frozenset(
                urldefrag(urljoin(path, html.unescape(one or other))).url
                for one, other in LINK.findall(text)
            ),
        )


@pytest.fixture(scope="module")
def reader(shared: Server) -> Iterator[Reader]:
    address = (shared if shared.runs else shared.start()).url
    as_browsers = {"Accept-Encoding": "gzip, deflate, br"}
    with httpx.Client(base_url=address, headers=as_browsers) as client:
        yield Reader(client)


@pytest.mark.parametrize("path", PAGES)
def test_a_page_is_light_on_the_wire(reader: Reader, path: str) -> None:
    assert reader.first(path) <= FIRST_VISIT + LISTS.get(path, 0)
    assert reader.again(path) <= (_list_bound(path) if path in LISTS_AGAIN else NEXT_VISIT)


def _list_bound(path: str) -> int:
    name, mark, weight = LISTS_AGAIN[path]
    lines = (SHIPPED / name).read_text(encoding="utf-8").splitlines()
    return weight * sum(line.startswith(mark) for line in lines)


@pytest.mark.browser
@each_of_sample("path", IN_A_BROWSER, 1)
def test_a_browser_loads_for_a_page_no_more_than_it_links(
    server: Server, reader: Reader, browser: Browser, path: str
) -> None:
    context = browser.new_context()
    page = context.new_page()
    wire = Wire(context.new_cdp_session(page), server.url)

    page.goto(server.url + path, wait_until="networkidle")
    loaded, first = wire.take()
    page.goto(f"{server.url}/healthz")
    wire.take()
    page.goto(server.url + path, wait_until="networkidle")
    _, again = wire.take()
    context.close()

    assert loaded <= reader.loaded(path)
    assert first == pytest.approx(reader.weight(loaded), rel=0.01)
    assert first <= FIRST_VISIT
    assert again <= NEXT_VISIT


class Wire:
    """What the browser's network layer loads, and its bytes, headers included."""

    def __init__(self, session: CDPSession, server: str) -> None:
        self._server = server
        self._bytes = 0.0
        self._loaded = set[str]()
        session.send("Network.enable")
        session.on("Network.requestWillBeSent", self._note)
        session.on("Network.loadingFinished", self._count)

    def _note(self, event: dict[str, Any]) -> None:
        address = event["request"]["url"]
        if not address.startswith("data:"):
            self._loaded.add(address.removeprefix(self._server))

    def _count(self, event: dict[str, float]) -> None:
        self._bytes += event["encodedDataLength"]

    def take(self) -> tuple[set[str], float]:
        """The addresses and the bytes since the last time."""
        taken = self._loaded, self._bytes
        self._loaded, self._bytes = set(), 0.0
        return taken
