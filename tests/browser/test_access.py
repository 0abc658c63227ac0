"""Every page type, in both themes: accessible, and within its width."""

import importlib.resources
import re
from collections.abc import Iterator
from typing import Any, Literal

import pytest
from playwright.sync_api import Browser, Page, ViewportSize, expect

from tests.browser.conftest import set_exam, sign_in
from tests.browser.server import Server

pytestmark = pytest.mark.browser
AXE = importlib.resources.files("axe_playwright_python") / "axe.min.js"
THEMES: tuple[Literal["dark", "light"], ...] = ("dark", "light")
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


OF_COLORS = ["color-contrast", "link-in-text-block"]
# What axe calls moderate at most and takes long to look for.
MODERATE = ["landmark-unique", "region"]
# What axe finds. Words of the same color and size on the same ground differ from it
# alike, and links of one look from the text around them, so of all that agree in this
# and in their place the colors of one are looked at.
LOOK = """async (options) => {
  const grounds = new Map([[document.documentElement, ""]]);
  const ground = (e) => {
    if (!grounds.has(e)) {
      const s = getComputedStyle(e);
      grounds.set(e, [ground(e.parentElement), e.tagName, e.getAttribute("class"),
        s.backgroundColor, s.backgroundImage, s.opacity, s.position].join(" "));
    }
    return grounds.get(e);
  };
  const shown = (e) => /^(INPUT|SELECT|TEXTAREA)$/.test(e.tagName)
    || [...e.childNodes].some((n) => n.nodeType === Node.TEXT_NODE && n.data.trim());
  const length = (texts) => texts.join("").replace(/\\s/g, "").length;
  const around = (e) => {  // what a link in a text stands out from
    let block = e.parentElement;
    while (getComputedStyle(block).display.startsWith("inline"))
      block = block.parentElement;
    const links = [...block.querySelectorAll("a")].map((a) => a.textContent);
    return [length([block.textContent]) > length(links), getComputedStyle(block).color];
  };
  const found = new Map();
  for (const e of document.body.querySelectorAll("*")) {
    const link = e.matches("a[href]");
    if (!link && !shown(e)) continue;
    const s = getComputedStyle(e);
    const key = [ground(e), s.color, s.fontSize, s.fontWeight, s.visibility,
      e.getClientRects().length > 0, e.disabled,
      ...(link ? [s.textDecorationLine, ...around(e)] : [])].join(" ");
    if (!found.has(key)) found.set(key, e);
  }
  const looked = [...found.values()];
  looked.forEach((e) => e.setAttribute("data-looked", ""));
  axe.configure({ noHtml: true, rules: [
    { id: "color-contrast", selector: "[data-looked]" },
    { id: "link-in-text-block", selector: "a[href][data-looked]" },
  ] });
  const { violations } = await axe.run(options);
  looked.forEach((e) => e.removeAttribute("data-looked"));
  return violations;
}"""


def violations(page: Page, *but: str) -> list[dict[str, Any]]:
    """What axe finds in both themes, except by these rules.

    A theme changes colors and nothing else, so all but they are looked at once.
    """
    page.evaluate(AXE.read_text())
    # Whether a finger meets a target is a rule that is off unless asked for.
    rules = {"target-size": {"enabled": True}} | {
        rule: {"enabled": False} for rule in but
    }
    first, *others = THEMES
    page.emulate_media(color_scheme=first)
    # What passes is counted and not described.
    only = {"resultTypes": ["violations"]}
    found: list[dict[str, Any]] = page.evaluate(LOOK, {**only, "rules": rules})
    for theme in others:
        page.emulate_media(color_scheme=theme)
        found += page.evaluate(LOOK, {**only, "runOnly": OF_COLORS})
    return found


def serious(page: Page) -> list[str]:
    """What axe calls serious or critical in either theme, as rule and place."""
    return [
        f"{v['id']}: {node['target']} {node['failureSummary']}"
        for v in violations(page, *MODERATE)
        if v["impact"] in {"serious", "critical"}
        for node in v["nodes"]
    ]


def overhang(page: Page) -> float:
    """By how many pixels a page is wider than the window."""
    wide = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    return float(page.evaluate(wide))


def cut_words(page: Page) -> list[str]:
    """The words of drawings that end outside of the window, where nobody can scroll."""
    return list(
        page.locator("svg text").evaluate_all(
            """(texts) => {
              const { clientWidth } = document.documentElement;
              const cut = (e) => e.getBoundingClientRect().right > clientWidth;
              return texts
                .filter((e) => e.checkVisibility() && !e.closest(".scroll") && cut(e))
                .map((e) => e.textContent);
            }"""
        )
    )


@pytest.mark.parametrize(("theme", "pale"), [("light", "#bbb"), ("dark", "#444")])
def test_one_pale_word_among_many_alike_is_found(
    server: Server, reader: Page, theme: Literal["light", "dark"], pale: str
) -> None:
    reader.goto(f"{server.url}/search?q=memory")
    reader.emulate_media(color_scheme=theme)
    words = reader.locator("main li a").last
    words.evaluate("(e, pale) => e.style.color = pale", pale)

    assert {found.partition(":")[0] for found in serious(reader)} == {"color-contrast"}


def test_one_link_that_looks_like_its_text_is_found(
    server: Server, reader: Page
) -> None:
    reader.goto(f"{server.url}/concepts/training-memory")
    reader.evaluate(
        """() => {
          const beside = (e) => e.parentElement.textContent.length - e.text.length;
          const links = [...document.querySelectorAll("main p > a[href]")];
          const link = links.filter((e) => e.checkVisibility() && beside(e) > 40).pop();
          link.style.cssText = "color: var(--ink-2); font: inherit; background: none;"
            + "border: 0; text-decoration: none";
        }"""
    )

    assert {found.partition(":")[0] for found in serious(reader)} == {
        "link-in-text-block"
    }


@pytest.mark.parametrize("path", PAGES)
def test_axe_finds_nothing_serious_and_no_page_scrolls_sideways(
    server: Server, reader: Page, path: str
) -> None:
    reader.goto(server.url + path)

    assert serious(reader) == []
    assert overhang(reader) <= 0
    reader.set_viewport_size(NARROW)
    assert overhang(reader) <= 0
    assert cut_words(reader) == []
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
    reader.wait_for_url(re.compile("/review$"))
    assert serious(reader) == []
    reader.get_by_role("button", name=re.compile("^End the exam")).click()
    reader.wait_for_url(re.compile("/report"))
    assert serious(reader) == []
    reader.get_by_role("link", name="Start").first.click()
    reader.wait_for_url(re.compile("^(?!.*/report)"))
    assert serious(reader) == []


def test_axe_finds_nothing_serious_with_cards_of_ones_own_and_a_day_of_the_exam(
    server: Server, reader: Page
) -> None:
    reader.goto(f"{server.url}/glossary?cards=1")
    reader.get_by_role("button", name="Make it a card").first.click()
    reader.get_by_role("button", name="Remove").first.wait_for()
    set_exam(reader, server, 30)
    for path in ("/flashcards/deck", "/settings/cards", "/"):
        reader.goto(server.url + path)
        assert serious(reader) == [], path


def test_with_colors_of_ones_own_the_choice_and_the_place_are_still_seen(
    server: Server, browser: Browser
) -> None:
    context = browser.new_context(forced_colors="active", viewport=WIDE)
    page = context.new_page()
    page.goto(f"{server.url}/exams/nca-aiio")
    page.get_by_role("button", name="Start the clock").click()
    options, ground = page.locator(".opt"), "e => getComputedStyle(e).backgroundColor"

    options.nth(0).click()

    expect(options.nth(0).locator("input")).to_be_checked()
    assert options.nth(0).evaluate(ground) != options.nth(1).evaluate(ground)
    page.goto(f"{server.url}/quiz")
    edge = "e => getComputedStyle(e).borderBottomColor"
    current = page.locator(".nav [aria-current]").evaluate(edge)
    assert page.locator(".nav a:not([aria-current])").first.evaluate(edge) != current
    context.close()
