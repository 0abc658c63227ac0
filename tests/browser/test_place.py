"""A part of a drawing: pointed at, chosen by key, chosen from the list, judged."""

import pytest
from playwright.sync_api import Browser, Page, expect

from app.content.live_courses import LiveCourse
from tests.amounts import FACTOR, each_of_sample, sample
from tests.browser.server import Server
from tests.browser.test_access import violations

pytestmark = pytest.mark.browser
WIDTHS = (390, 1280)
# On a phone less is hidden and all is closer together.
ACCESSIBLE = WIDTHS if FACTOR > 1 else WIDTHS[:1]
SMALLEST_WORDS = """() => Math.min(...[...document.querySelectorAll('.place text')]
  .map((t) => [t, t.ownerSVGElement.getBoundingClientRect()])
  .filter(([, box]) => box.width)
  .map(([t, box]) => parseFloat(getComputedStyle(t).fontSize)
    * box.width / t.ownerSVGElement.viewBox.baseVal.width))"""
QUESTION = "/quiz/cluster-components/cluster-node-console"


def faults(page: Page) -> list[str]:
    """What axe finds in both themes."""
    return [f"{v['id']}: {v['nodes'][0]['target']}" for v in violations(page)]


def point_at(page: Page, key: str) -> None:
    page.locator(f"svg:visible [data-region='{key}'] .hit").first.scroll_into_view_if_needed()
    box = page.locator(f"svg:visible [data-region='{key}'] .hit").bounding_box()
    assert box is not None
    page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)


def test_a_part_is_chosen_by_pointing_by_key_and_from_the_list(page: Page, server: Server) -> None:
    page.goto(f"{server.url}{QUESTION}")
    expect(page.locator(".opts input")).to_have_count(6)

    point_at(page, "storage-nic")
    expect(page.get_by_role("radio", name="The storage NIC")).to_be_checked()
    page.keyboard.press("ArrowDown")
    expect(page.get_by_role("radio", name="The BMC")).to_be_checked()
    page.keyboard.press("d")
    expect(page.get_by_role("radio", name="The host NIC")).to_be_checked()
    point_at(page, "bmc")
    page.keyboard.press("Enter")

    expect(page.locator(".verdict")).to_contain_text("Right.")
    expect(page.locator("svg:visible .pick.ok")).to_have_count(1)
    expect(page.locator(".placed .opt.is-good")).to_contain_text("The BMC")


def test_it_works_without_a_script(plain_page: Page, server: Server) -> None:
    plain_page.goto(f"{server.url}{QUESTION}")
    point_at(plain_page, "host-nic")
    expect(plain_page.get_by_role("radio", name="The host NIC")).to_be_checked()
    plain_page.get_by_role("button", name="Think so").click()

    expect(plain_page.locator(".verdict")).to_contain_text("Not right.")
    expect(plain_page.locator("svg:visible .pick.no")).to_have_count(1)
    expect(plain_page.locator("svg:visible .pick.ok")).to_have_count(1)


@pytest.mark.drawn
def test_it_is_accessible_and_fits_the_screen(page: Page, server: Server) -> None:
    page.goto(f"{server.url}{QUESTION}")
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 900})
        if width in ACCESSIBLE:
            assert faults(page) == []
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert page.evaluate(SMALLEST_WORDS) >= 11

        point_at(page, "gpus")
        seen = page.evaluate("scrollY")
        point_at(page, "host-nic")
        stayed = page.evaluate("scrollY") == seen
        assert stayed, "who points stays where the drawing is"

    page.get_by_role("button", name="Think so").click()
    page.locator(".verdict").wait_for()
    for width in ACCESSIBLE:
        page.set_viewport_size({"width": width, "height": 900})
        assert faults(page) == []


LETTERS_ON_WORDS = """() => [...document.querySelectorAll('.place svg')].flatMap((svg) => {
  const shown = svg.getBoundingClientRect().width;
  const half = 5.5 * shown / svg.viewBox.baseVal.width;  // of the height of a capital
  const words = shown ? [...svg.querySelectorAll('text:not(.on-tag)')] : [];
  return words.flatMap((text) => {
    const t = text.getBoundingClientRect();
    const middle = (t.top + t.bottom) / 2;
    const { of } = svg.closest("[data-of]").dataset;
    return [...svg.querySelectorAll('circle.tag')]
      .map((tag) => tag.getBoundingClientRect())
      .filter((r) => r.left < t.right && r.right > t.left + 1
        && r.top < middle + half && r.bottom > middle - half)
      .map(() => [of, text.textContent]);
  });
})"""


# The other questions below the one that is shown, each as its own page has it.
GATHER = """async (addresses) => {
  const main = document.querySelector("main");
  const [shown, ...others] = addresses;
  for (const e of main.children) e.dataset.of = shown;
  for (const address of others) {
    const text = await (await fetch(address)).text();
    const page = new DOMParser().parseFromString(text, "text/html");
    const parts = [...page.querySelector("main").children];
    for (const e of parts) e.dataset.of = address;
    main.append(...parts);
  }
  return addresses.filter((address) =>
    ![...main.querySelectorAll(`[data-of="${address}"] .place svg`)]
      .some((svg) => svg.querySelector("circle.tag")));
}"""


@pytest.mark.drawn
def test_no_letter_covers_a_word_in_any_drawing(
    page: Page, server: Server, live_shipped: LiveCourse
) -> None:
    questions = [
        q
        for q in live_shipped.get_current_course().questions.values()
        if q.type == "place" and not q.is_reserved_for_exams and not q.level
    ]
    assert len(questions) > 30
    some = sample(questions, 10, "letters")
    addresses = [f"/quiz/{question.topic}/{question.id}" for question in some]
    page.goto(f"{server.url}{addresses[0]}")
    assert page.evaluate(GATHER, addresses) == []
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 844})
        assert page.evaluate(LETTERS_ON_WORDS) == [], width


@each_of_sample("scripts", [True, False], 1)
def test_on_a_phone_the_answer_of_a_card_with_a_drawing_comes_into_view(
    browser: Browser, server: Server, *, scripts: bool
) -> None:
    context = browser.new_context(
        viewport={"width": 390, "height": 700}, java_script_enabled=scripts, service_workers="block"
    )
    page = context.new_page()
    page.goto(f"{server.url}/quiz/kubernetes-gpus/k8s-place-plugin")
    page.get_by_role("button", name="I don\N{RIGHT SINGLE QUOTATION MARK}t know").click()
    page.locator(".verdict").wait_for()
    page.goto(f"{server.url}/flashcards?card=q:k8s-place-plugin")
    page.get_by_role("button", name="Show the answer").click()
    page.locator("#answer").wait_for()

    expect(page.locator("#answer > div").first).to_be_in_viewport(ratio=0.2)
    context.close()


def test_without_scripts_an_answer_in_a_text_leads_back_to_what_was_recorded(
    browser: Browser, server: Server
) -> None:
    context = browser.new_context(java_script_enabled=False, service_workers="block")
    page = context.new_page()
    page.goto(f"{server.url}/concepts/interconnects?route=short")
    question = page.locator(".inst .question").first
    question.get_by_role("button", name="I don\N{RIGHT SINGLE QUOTATION MARK}t know").click()
    page.locator(".turns").get_by_role("link", name="Back to the page").click()

    recorded = page.get_by_text("1 attempt, missed last time").bounding_box()
    frame = page.locator("header.top").bounding_box()
    assert recorded
    assert frame
    assert frame["y"] + frame["height"] <= recorded["y"] < 200
    context.close()
