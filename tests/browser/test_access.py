"""Every page type, in both themes: accessible, and within its width."""

import importlib.resources
import re
from collections.abc import Iterator
from typing import Any, Literal

import pytest
from playwright.sync_api import Browser, Page, ViewportSize, expect

from tests.amounts import FACTOR, each_of_sample, sample
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
    "/quiz/slurm/slurm-reason-resources",
]


@pytest.fixture(scope="module")
def reader(browser: Browser, shared: Server) -> Iterator[Page]:
    context = browser.new_context(viewport=WIDE, service_workers="block")
    context.add_init_script(AXE.read_text())
    yield sign_in(context.new_page(), shared if shared.runs else shared.start())
    context.close()


OF_COLORS = ["color-contrast", "link-in-text-block"]
# What axe calls moderate at most and takes long to look for.
MODERATE = ["landmark-unique", "region"]
# What axe finds, and the looks it saw. Words of the same color and size on the same
# ground differ from it alike, and links of one look from the text around them, so of
# all that agree in this, one is looked at.
LOOK = """async ({ known, ...options }) => {
  const kind = (e) => `${e.tagName} ${e.getAttribute("class")}`;
  const placed = (s) => s.position !== "static" || s.transform !== "none";
  const kept = (ask) => {
    const answers = new Map();
    return (e) => answers.has(e) ? answers.get(e)
      : answers.set(e, ask(e)).get(e);
  };
  const over = kept((e) => [...e.children].filter((c) => placed(getComputedStyle(c)))
    .map(kind));  // may lie over or under what is beside them
  const ground = kept((e) => {  // what is painted below the words of an element
    if (e === document.documentElement) return "";
    const s = getComputedStyle(e);
    const own = [s.backgroundColor, s.backgroundImage, s.opacity];
    const paints = placed(s) || own.join(" ") !== "rgba(0, 0, 0, 0) none 1";
    return [ground(e.parentElement), ...over(e.parentElement),
      ...(paints ? [kind(e), ...own, s.position] : [])].join(" ");
  });
  const shown = (e) => /^(INPUT|SELECT|TEXTAREA)$/.test(e.tagName)
    || [...e.childNodes].some((n) => n.nodeType === Node.TEXT_NODE && n.data.trim());
  const length = (texts) => texts.join("").replace(/\\s/g, "").length;
  const letters = (s) => [s.color, s.fontSize, s.fontWeight, s.textShadow];
  const around = (e) => {  // what a link in a text stands out from
    let block = e.parentElement;
    while (getComputedStyle(block).display.startsWith("inline"))
      block = block.parentElement;
    const links = [...block.querySelectorAll("a")].map((a) => a.textContent);
    const beside = length([block.textContent]) > length(links);
    const s = getComputedStyle(block);
    return [beside, ground(block), s.fontFamily, s.fontStyle, ...letters(s)];
  };
  const found = new Map();
  for (const e of document.body.querySelectorAll("*")) {
    const link = e.matches("a[href]");
    if (!link && !shown(e)) continue;
    const s = getComputedStyle(e);
    const key = [ground(e), ...letters(s), s.visibility,
      e.getClientRects().length > 0, e.disabled,
      ...(link ? [s.textDecorationLine, s.border, s.fontFamily, s.fontStyle,
        ...around(e)] : [])].join(" ");
    if (!found.has(key)) found.set(key, e);
  }
  for (const key of known) found.delete(key);
  const looked = [...found.values()];
  if (options.runOnly && !looked.length) return [[], []];
  looked.forEach((e) => e.setAttribute("data-looked", ""));
  axe.configure({ noHtml: true, rules: [
    { id: "color-contrast", selector: "[data-looked]" },
    { id: "link-in-text-block", selector: "a[href][data-looked]" },
  ] });
  const { violations } = await axe.run(options);
  looked.forEach((e) => e.removeAttribute("data-looked"));
  return [violations, [...found.keys()]];
}"""
# Looks that axe found nothing wrong with, on whatever page: they have colors in them,
# so each theme has its own.
SOUND: set[str] = set()


def violations(page: Page, *but: str) -> list[dict[str, Any]]:
    """What axe finds in both themes, except by these rules.

    A theme changes colors and nothing else, so all but they are looked at once.
    """
    if page.evaluate("window.axe === undefined"):
        page.evaluate(AXE.read_text())
    # Whether a finger meets a target is a rule that is off unless asked for.
    rules = {"target-size": {"enabled": True}} | {rule: {"enabled": False} for rule in but}
    first, *others = THEMES
    page.emulate_media(color_scheme=first)
    found = _found(page, rules=rules)
    for theme in others:
        page.emulate_media(color_scheme=theme)
        found += _found(page, runOnly=OF_COLORS)
    return found


def _found(page: Page, **options: object) -> list[dict[str, Any]]:
    # What passes is counted and not described.
    only = {"resultTypes": ["violations"], "known": [*SOUND]}
    found: list[dict[str, Any]]
    found, looks = page.evaluate(LOOK, {**only, **options})
    if not {violation["id"] for violation in found} & {*OF_COLORS}:
        SOUND.update(looks)
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


@each_of_sample("theme, pale", [("light", "#bbb"), ("dark", "#444")], 1)
def test_one_pale_word_among_many_alike_is_found(
    server: Server, reader: Page, theme: Literal["light", "dark"], pale: str
) -> None:
    reader.goto(f"{server.url}/search?q=memory")
    reader.emulate_media(color_scheme=theme)
    words = reader.locator("main li a").last
    words.evaluate("(e, pale) => e.style.color = pale", pale)

    assert {found.partition(":")[0] for found in serious(reader)} == {"color-contrast"}


@pytest.mark.drill
def test_one_link_that_looks_like_its_text_is_found(server: Server, reader: Page) -> None:
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

    assert {found.partition(":")[0] for found in serious(reader)} == {"link-in-text-block"}


# One for each kind of screen. What is not here is of the same kind, or looked at below,
# in test_plan.py, or in another state there: `make drills` looks at all, `make test` at four of these.
KINDS = [
    "/concepts/training-memory",
    "/glossary",
    "/quiz",
    "/quiz/training-memory",
    "/flashcards?show=yes",
    "/flashcards/offline",
    "/calculators",
    "/calculators/inference-memory",
    "/hardware",
    "/hardware/h100-sxm5-80",
    "/hardware/compare?part=h100-sxm5-80&part=mi300x&part=tpu-v6e",
    "/exams/nca-aiio",
    "/search?q=qantisation",
    "/concepts/training-memory/notes",
    "/api",
    "/settings",
    "/authoring",
    "/authoring/audit",
    "/authoring/questions",
    "/authoring/questions/tm-zero3?seed=1",
    "/authoring/pages/training-memory",
    "/nothing-is-here",
]


@pytest.mark.drawn
@pytest.mark.parametrize("path", PAGES if FACTOR > 1 else sample(KINDS, 4, "axe"))
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


@pytest.mark.drill  # looks at five pages
def test_axe_finds_nothing_serious_after_an_answer_and_in_an_exam(
    server: Server, reader: Page
) -> None:
    reader.goto(f"{server.url}/quiz/dpu")
    reader.locator("main li a").first.click()
    reader.locator("main input[name=answer]").first.check()
    reader.get_by_role("button", name=re.compile("^Think so")).click()
    reader.locator(".verdict").first.wait_for()
    assert serious(reader) == []

    reader.goto(f"{server.url}/exams/nca-aiio")
    reader.get_by_role("button", name="Start the clock").click()
    reader.locator(".clock").wait_for()
    assert serious(reader) == []
    reader.get_by_role("button", name="Finish").click()
    reader.wait_for_url(re.compile("/review$"))
    assert serious(reader) == []
    reader.get_by_role("button", name=re.compile("^End the exam")).click()
    reader.wait_for_url(re.compile("/report"))
    assert serious(reader) == []
    reader.get_by_role("link", name="Start").first.click()
    reader.wait_for_url(re.compile("^(?!.*/report)"))
    assert serious(reader) == []


@pytest.mark.drill  # looks at three pages
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


@pytest.mark.drill
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
