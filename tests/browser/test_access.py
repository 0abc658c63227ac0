"""Every page type, in both themes: accessible, and within its width."""

import importlib.resources
import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, ViewportSize

from tests.browser.conftest import sign_in
from tests.browser.server import Server

pytestmark = pytest.mark.browser
AXE = importlib.resources.files("axe_playwright_python") / "axe.min.js"
WIDE: ViewportSize = {"width": 1280, "height": 900}
NARROW: ViewportSize = {"width": 390, "height": 800}
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
    "/hardware",
    "/hardware?kind=network&sort=ports",
    "/hardware/h100-sxm5-80",
    "/hardware/compare?part=h100-sxm5-80&part=mi300x&part=tpu-v6e",
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
    "/authoring/help",
    "/authoring/enter",
    "/authoring/questions",
    "/authoring/questions?show=all",
    "/authoring/questions/tm-zero3?seed=1",
    "/authoring/pages/training-memory",
    "/nothing-is-here",
]


@pytest.fixture(scope="module")
def reader(browser: Browser, shared: Server) -> Iterator[Page]:
    context = browser.new_context(viewport=WIDE)
    yield sign_in(context.new_page(), shared if shared.runs else shared.start())
    context.close()


def serious(page: Page) -> list[str]:
    """What axe calls serious or critical, as rule and place, in both themes.

    A theme changes colors and nothing else, so in the dark only they are looked at.
    """
    page.evaluate(AXE.read_text())
    page.emulate_media(color_scheme="light")
    # What passes is counted and not described.
    only = 'resultTypes: ["violations"]'
    found = page.evaluate(f"axe.run({{ {only} }}).then((r) => r.violations)")
    page.emulate_media(color_scheme="dark")
    colors = f'{{ {only}, runOnly: ["color-contrast"] }}'
    found += page.evaluate(f"axe.run({colors}).then((r) => r.violations)")
    page.emulate_media(color_scheme="light")
    return [
        f"{v['id']}: {node['target']} {node['failureSummary']}"
        for v in found
        if v["impact"] in {"serious", "critical"}
        for node in v["nodes"]
    ]


def overhang(page: Page) -> float:
    """By how many pixels a page is wider than the window."""
    wide = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    return float(page.evaluate(wide))


@pytest.mark.parametrize("path", PAGES)
def test_axe_finds_nothing_serious_and_no_page_scrolls_sideways(
    server: Server, reader: Page, path: str
) -> None:
    reader.goto(server.url + path)

    assert serious(reader) == []
    assert overhang(reader) <= 0
    reader.set_viewport_size(NARROW)
    assert overhang(reader) <= 0
    reader.set_viewport_size(WIDE)


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
    reader.goto(f"{server.url}/glossary?cards=1")
    reader.get_by_role("button", name="Make it a card").first.click()
    reader.get_by_role("button", name="Remove").first.wait_for()
    reader.goto(f"{server.url}/settings")
    reader.get_by_label("Day of the exam").fill("2099-01-01")
    reader.get_by_role("button", name="Save", exact=True).click()
    for path in ("/flashcards/deck", "/settings/cards", "/plan", "/"):
        reader.goto(server.url + path)
        assert serious(reader) == [], path
