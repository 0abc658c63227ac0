"""Every page type, in both themes: accessible, within its width, light on the wire."""

import importlib.resources
import re
from collections.abc import Iterator
from typing import Literal

import pytest
from playwright.sync_api import Browser, CDPSession, Page

from tests.browser.conftest import sign_in
from tests.browser.server import Server

pytestmark = pytest.mark.browser
AXE = importlib.resources.files("axe_playwright_python") / "axe.min.js"
Quiet = Literal["load", "networkidle"]
FIRST_VISIT = 130_000
NEXT_VISIT = 20_000

PAGES = [
    "/",
    "/course",
    "/concepts/training-memory",
    "/glossary",
    "/sources",
    "/quiz",
    "/quiz/training-memory",
    "/flashcards",
    "/flashcards?show=yes",
    "/flashcards/deck",
    "/flashcards/offline",
    "/unreachable",
    "/calculators",
    "/calculators/training-memory",
    "/calculators/inference-memory",
    "/progress",
    "/plan",
    "/exams",
    "/exams/nca-aiio",
    "/search",
    "/search?q=memory",
    "/search?q=qantisation",
    "/notes",
    "/concepts/training-memory/notes",
    "/api",
    "/settings",
    "/settings/cards",
    "/settings/erasure",
    "/settings/erased",
    "/continue",
    "/authoring",
    "/authoring/audit",
    "/authoring/enter",
    "/authoring/questions",
    "/authoring/questions?show=all",
    "/authoring/questions/tm-zero3?seed=1",
    "/authoring/pages/training-memory",
    "/nothing-is-here",
]


@pytest.fixture(scope="module", params=["light", "dark"])
def reader(request, browser: Browser, shared: Server) -> Iterator[Page]:
    context = browser.new_context(
        color_scheme=request.param, viewport={"width": 1280, "height": 900}
    )
    yield sign_in(context.new_page(), shared if shared.runs else shared.start())
    context.close()


def serious(page: Page) -> list[str]:
    """What axe calls serious or critical, as rule and place.

    A theme changes colors and nothing else, so in the dark only they are looked at.
    """
    page.evaluate(AXE.read_text())
    found = page.evaluate(
        """() => axe.run(matchMedia("(prefers-color-scheme: dark)").matches
             ? { runOnly: ["color-contrast"] } : {}).then((r) => r.violations)"""
    )
    return [
        f"{v['id']}: {node['target']} {node['failureSummary']}"
        for v in found
        if v["impact"] in {"serious", "critical"}
        for node in v["nodes"]
    ]


@pytest.mark.parametrize("path", PAGES)
def test_axe_finds_nothing_serious(server: Server, reader: Page, path: str) -> None:
    reader.goto(server.url + path)

    assert serious(reader) == []


def test_axe_finds_nothing_serious_after_an_answer_and_in_an_exam(
    server: Server, reader: Page
) -> None:
    reader.goto(f"{server.url}/quiz/training-memory")
    reader.locator("main li a").first.click()
    reader.locator("main input[name=answer]").first.check()
    reader.get_by_role("button", name=re.compile("^Check")).click()
    reader.locator(".verdict").first.wait_for()
    assert serious(reader) == []

    reader.goto(f"{server.url}/exams/nca-aiio")
    reader.get_by_role("button", name="Start the clock").click()
    reader.locator(".clock").wait_for()
    assert serious(reader) == []
    reader.get_by_role("link", name="Finish").click()
    assert serious(reader) == []
    reader.get_by_role("button", name=re.compile("^End the exam")).click()
    reader.wait_for_url(re.compile("/report"))
    assert serious(reader) == []
    reader.get_by_role("link", name="Start").first.click()
    assert serious(reader) == []


def test_axe_finds_nothing_serious_with_cards_of_ones_own_and_a_plan(
    server: Server, reader: Page
) -> None:
    reader.goto(f"{server.url}/glossary")
    reader.get_by_role("button", name="Make it a card").first.click()
    reader.get_by_role("button", name="Remove").first.wait_for()
    reader.goto(f"{server.url}/settings")
    reader.get_by_label("Day of the exam").fill("2099-01-01")
    reader.get_by_role("button", name="Keep", exact=True).click()
    for path in ("/flashcards/deck", "/settings/cards", "/plan", "/"):
        reader.goto(server.url + path)
        assert serious(reader) == [], path


@pytest.mark.parametrize("width", [390, 1280])
def test_no_page_scrolls_sideways(server: Server, browser: Browser, width: int) -> None:
    context = browser.new_context(viewport={"width": width, "height": 800})
    page = context.new_page()
    wide = {}
    for path in PAGES:
        page.goto(server.url + path)
        needed = page.evaluate("document.documentElement.scrollWidth")
        if needed > width:
            wide[path] = needed
    context.close()
    assert wide == {}


@pytest.mark.parametrize("path", PAGES)
def test_a_page_is_light_on_the_wire(
    server: Server, browser: Browser, path: str
) -> None:
    context = browser.new_context()
    page = context.new_page()
    wire = Wire(context.new_cdp_session(page))
    # A page of the author's bench asks for news without end.
    quiet: Quiet = "load" if path.startswith("/authoring") else "networkidle"

    page.goto(server.url + path, wait_until=quiet)
    first = wire.take()
    page.goto(f"{server.url}/healthz")
    wire.take()
    page.goto(server.url + path, wait_until=quiet)
    again = wire.take()
    context.close()

    assert first <= FIRST_VISIT
    assert again <= NEXT_VISIT


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
