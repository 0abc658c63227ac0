"""Every page that a link leads to, walked without JavaScript from Today on."""

import collections
import re
import zlib
from html.parser import HTMLParser
from urllib.parse import urldefrag, urlsplit

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from app.main import create_app
from app.settings import Settings
from tests.amounts import FACTOR, sample
from tests.conftest import FIRST_AID, SCRIPTS, TINY, visit

pytestmark = pytest.mark.drawn
_VOID = {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta"}
_VOID |= {"source", "track", "wbr"}
# What is the same beside every course is walked with one.
ALIKE = ("/hardware/", "/calculators/accuracy/")
ID = re.compile(r'\sid="([^"]+)"')
_DRAWN = {"path", "circle", "rect", "line", "use", "polyline", "polygon", "stop"}


class Page(HTMLParser):
    """What a page consists of, as far as rules ask."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids: list[str] = []
        self.links: list[str] = []
        self.fetched: list[str] = []
        self.tags: collections.Counter[str] = collections.Counter()
        self.wrong: list[str] = []
        self.labels: set[str] = set()
        self.needs_label: list[str] = []
        self._open: list[str] = []
        self.feed(text)
        if self._open:
            self.wrong.append(f"never closed: {self._open}")

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.tags[tag] += 1
        self._check(tag, given)
        if "id" in given:
            self.ids.append(given["id"])
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        if tag == "label" and "for" in given:
            self.labels.add(given["for"])
        self.fetched += [given[n] for n in ("src", "hx-get") if n in given]
        if tag not in _VOID and tag not in _DRAWN:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if self._open and self._open[-1] == tag:
            self._open.pop()

    def handle_endtag(self, tag: str) -> None:
        if tag in _VOID or tag in _DRAWN:
            return
        if tag == "p" and tag not in self._open:
            self.wrong.append("a paragraph ended twice")
        while self._open and self._open[-1] != tag:
            if self._open[-1] not in {"li", "p", "dt", "dd", "option", "tr", "td"}:
                self.wrong.append(f"</{tag}> inside of <{self._open[-1]}>")
                return
            self._open.pop()
        if self._open:
            self._open.pop()

    def _check(self, tag: str, given: dict[str, str]) -> None:
        self.wrong += [f"inline {name}" for name in given if name == "style" or name[:2] == "on"]
        if tag == "script" and "src" not in given:
            self.wrong.append("inline script")
        if tag == "style":
            self.wrong.append("inline style sheet")
        if tag == "img" and "alt" not in given:
            self.wrong.append("picture without words")
        if tag == "form" and "action" not in given and given.get("method") != "dialog":
            self.wrong.append("form without an address")


def drawn(address: str) -> bool:
    """Whether a page that many are like is walked: one in 24; `make drills`: all."""
    return FACTOR > 1 or zlib.crc32(address.encode()) % 24 == 0


@pytest.fixture(scope="module")
def pages(module_app: FastAPI) -> dict[str, Page]:
    """Every page within reach of a learner who has done a little."""
    found: dict[str, Page] = {}
    with visit(module_app) as client:
        live_course = module_app.state.live_course
        course = live_course.get_current_course()
        topic = next(iter(course.topics.values()))
        section = next(s.anchor for s in topic.sections if s.anchor)
        read = f"/concepts/{topic.slug}/readings"
        client.post(read, data={"section": section})
        waiting = ["/"]
        while waiting:
            address = waiting.pop()
            answer = client.get(address)
            assert answer.status_code == 200, address
            if not answer.headers["content-type"].startswith("text/html"):
                continue
            page = found[address] = Page(answer.text)
            for link in page.links:
                target = urldefrag(link).url
                seen = target in found or target in waiting
                if not target.startswith("/") or seen or urlsplit(link).query:
                    continue
                if not target.startswith(ALIKE) or (live_course.folder == TINY and drawn(target)):
                    waiting.append(target)
    return found


@pytest.fixture(
    scope="module", params=[TINY, *sample([FIRST_AID, *SCRIPTS], 1, "walked")], ids=lambda f: f.name
)
def module_app(request, tmp_path_factory, databases):
    data = tmp_path_factory.mktemp("walk")
    with databases.empty(data) as address:
        settings = Settings(
            data=data,
            content=request.param,
            database_url=address,
            secret="s" * 32,
            rate_estimates="off",  # a walk asks for every case of the accuracy report
        )
        app = create_app(settings)
        yield app
        app.state.engine.dispose()


def test_every_part_of_the_app_is_within_reach(pages: dict[str, Page], module_app):
    rooms = {"/", "/course", "/flashcards", "/quiz", "/progress"}
    if module_app.state.live_course.get_current_course().syllabus.offers_calculators:
        rooms |= {"/calculators", "/hardware"}
    else:
        assert not any(a.startswith(("/calculators", "/hardware")) for a in pages)

    assert rooms | {"/settings", "/glossary", "/sources", "/continue"} <= set(pages)


def test_no_page_has_anything_inline_or_unclosed(pages: dict[str, Page]):
    assert {a: p.wrong for a, p in pages.items() if p.wrong} == {}


def test_every_id_is_there_once(pages: dict[str, Page]):
    twice = {
        address: [i for i, n in collections.Counter(page.ids).items() if n > 1]
        for address, page in pages.items()
    }

    assert {a: ids for a, ids in twice.items() if ids} == {}


def test_every_page_has_one_title_one_heading_and_one_main(pages: dict[str, Page]):
    for address, page in pages.items():
        assert (page.tags["title"] >= 1, page.tags["h1"], page.tags["main"]) == (
            True,
            1,
            1,
        ), address


def test_every_link_to_a_place_on_a_page_finds_it(pages: dict[str, Page]):
    lost = [
        (address, link)
        for address, page in pages.items()
        for link in page.links
        if "#" in link and not urlsplit(link).scheme and not urlsplit(link).query
        if (there := pages.get(urldefrag(link).url or address))
        and urldefrag(link).fragment not in there.ids
    ]

    assert lost == []


def links_to_figures(address: str, page: Page) -> list[str]:
    """The links of a page to figures; of many cases a few, all in `make drills`."""
    found = [
        link
        for link in page.links
        if urlsplit(link).path.startswith("/calculators/") and urlsplit(link).fragment
    ]
    return found[:5] if FACTOR == 1 and address.startswith(ALIKE) else found


def test_every_link_to_a_figure_finds_it_on_the_page_of_the_calculator(
    pages: dict[str, Page], module_app: FastAPI
):
    named = sorted({link for a, page in pages.items() for link in links_to_figures(a, page)})
    offered = module_app.state.live_course.get_current_course().syllabus.offers_calculators
    assert any(urlsplit(link).query for link in named) == offered
    asked: dict[str, set[str]] = {}  # an address is asked once for all its figures
    for link in named:
        address, figure = urldefrag(link)
        asked.setdefault(address, set()).add(figure)
    with visit(module_app) as client:
        for address, figures in asked.items():
            answer = client.get(address)
            assert answer.status_code == 200, address
            counts = collections.Counter(ID.findall(answer.text))
            assert {f: counts[f] for f in figures} == dict.fromkeys(figures, 1), address


def test_nothing_is_fetched_from_elsewhere(pages: dict[str, Page]):
    foreign = {s for p in pages.values() for s in p.fetched if not s.startswith("/")}

    assert foreign == set()


def test_every_page_says_how_to_come_from_another_device(client: TestClient):
    assert 'href="/continue"' in client.get("/settings").text
