"""An evening of study in a real browser: by keyboard alone, and without JavaScript.

Open Today, read a page, change the calculator in it, answer a question wrong and then
right, review five cards, take one back, restart the server, find everything as it was.
"""

import re

import pytest
from playwright.sync_api import Locator, Page, expect

from app.content.course import Course
from app.questions.types.choice import ChoiceSpec
from tests.browser.conftest import WITH_WORKER
from tests.browser.server import Server

TOPIC = "training-versus-inference"
pytestmark = [pytest.mark.browser, WITH_WORKER]


@pytest.fixture(scope="module")
def question(shipped: Course) -> str:
    """A single choice that is asked on the page of the topic."""
    return next(
        q.id
        for q in shipped.questions.values()
        if q.topic == TOPIC
        and q.section
        and isinstance(q.answer, ChoiceSpec)
        and q.answer.kind == "single"
        and not q.computed
    )


def keys_of(shipped: Course, item: str) -> tuple[str, str]:
    """The key of the right option and of a wrong one."""
    answer = shipped.questions[item].answer
    assert isinstance(answer, ChoiceSpec)
    right = next(o.key for o in answer.options if o.right)
    wrong = next(o.key for o in answer.options if not o.right)
    return right, wrong


def tab_to(page: Page, selector: str, most: int = 400) -> None:
    """Press Tab until the element has the focus, as somebody without a mouse does."""
    for _ in range(most):
        if page.evaluate("s => document.activeElement.matches(s)", selector):
            return
        page.keyboard.press("Tab")
    raise AssertionError(f"Tab never reached {selector}")


def done_so_far(page: Page, cards: int) -> Locator:
    """The bar of the desk where it says that so many cards are done."""
    return page.locator(f"#desk svg[aria-label^='{cards} of']")


def arrive(page: Page, address: str) -> None:
    """Wait for a page and for its scripts, without which it does not know the keys."""
    expect(page).to_have_url(re.compile(address))
    page.wait_for_load_state("domcontentloaded")


def test_an_evening_by_keyboard_alone(
    server: Server, page: Page, shipped: Course, question: str
) -> None:
    # Today, and from there to the first page.
    page.goto(server.url)
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    page.keyboard.press("c")
    arrive(page, "/concepts/")
    page.keyboard.press("g")
    page.keyboard.press("c")
    arrive(page, "/course")
    tab_to(page, f"a[href='/concepts/{TOPIC}']")
    page.keyboard.press("Enter")
    arrive(page, f"/concepts/{TOPIC}")

    # Another model and another card: verdict, bar and working follow.
    instrument = page.locator("section.inst").first
    verdict = instrument.locator(".verdict").first
    bar = instrument.locator("svg.g").first
    before = verdict.inner_text(), bar.get_attribute("aria-label")
    tab_to(page, "section.inst select[name=model]")
    page.keyboard.type("Llama 3.1 405B")
    tab_to(page, "section.inst select[name=gpu]")
    page.keyboard.type("L4")
    expect(verdict).not_to_have_text(before[0])
    expect(bar).not_to_have_attribute("aria-label", before[1] or "")
    assert "405" in instrument.locator(".work").inner_text() or "405" in (
        instrument.locator(".out").text_content() or ""
    )

    # A question on the page: wrong first, then right.
    right, wrong = keys_of(shipped, question)
    box = f"#q-{question}"
    tab_to(page, f"{box} input[name=answer]")
    choose(page, box, wrong)
    page.keyboard.press("Enter")
    expect(page.locator(f"{box} .verdict")).to_contain_text("Not right.")
    tab_to(page, f"{box} a[hx-get]")
    page.keyboard.press("Enter")
    expect(page.locator(f"{box} input[name=answer]").first).to_be_visible()
    tab_to(page, f"{box} input[name=answer]")
    choose(page, box, right)
    page.keyboard.press("Enter")
    expect(page.locator(f"{box} .verdict")).to_contain_text("Right.")

    # Five cards, one taken back.
    page.keyboard.press("g")
    page.keyboard.press("r")
    arrive(page, "/flashcards")
    for done in range(5):
        page.keyboard.press(" ")
        page.locator(".grades").wait_for()
        page.keyboard.press("4")
        expect(done_so_far(page, done + 1)).to_have_count(1)
    page.keyboard.press("u")
    expect(done_so_far(page, 4)).to_have_count(1)

    # After a restart everything is as it was.
    shown = page.locator("#desk").inner_text()
    server.stop()
    server.start()
    page.reload()
    assert page.locator("#desk").inner_text().split("\n")[0] == shown.split("\n")[0]
    page.goto(f"{server.url}/progress")
    expect(page.locator("main")).to_contain_text("4")
    page.goto(f"{server.url}/quiz/{TOPIC}")
    expect(page.locator("main")).to_contain_text("right")


def choose(page: Page, box: str, key: str) -> None:
    """Move to an option with the arrow keys and take it."""
    for _ in range(8):
        focused = page.evaluate("document.activeElement.value")
        if focused == key:
            page.keyboard.press(" ")
            break
        page.keyboard.press("ArrowDown")
    expect(page.locator(f"{box} input[value='{key}']")).to_be_checked()


@pytest.mark.drill  # each of its steps is done without JavaScript in its own test
def test_the_same_evening_without_javascript(
    server: Server, plain_page: Page, shipped: Course, question: str
) -> None:
    page = plain_page
    page.goto(server.url)
    page.get_by_role("link", name=re.compile("^Skip the test and read")).first.click()
    expect(page).to_have_url(re.compile("/concepts/"))
    page.goto(f"{server.url}/concepts/{TOPIC}")

    # The calculator in the text is a form that leads to the calculator's own page.
    form = page.locator("section.inst form").first
    form.locator("select[name=model]").select_option("llama-3.1-405b")
    form.locator("select[name=gpu]").select_option("l4")
    form.get_by_role("button", name="Calculate").click()
    expect(page).to_have_url(re.compile("/calculators/inference-memory"))
    expect(page.locator(".verdict").first).to_contain_text("Does not fit.")
    page.go_back()

    right, wrong = keys_of(shipped, question)
    answer(page, question, wrong)
    expect(page.locator(".verdict").first).to_contain_text("Not right.")
    page.get_by_role("link", name=re.compile("^Try again")).click()
    answer(page, question, right)
    expect(page.locator(".verdict").first).to_contain_text("Right.")

    page.goto(f"{server.url}/flashcards")
    for done in range(5):
        page.get_by_role("button", name=re.compile("Show the answer")).click()
        page.get_by_role("button", name=re.compile("^Easy")).click()
        expect(done_so_far(page, done + 1)).to_have_count(1)
    page.get_by_role("button", name=re.compile("^(Undo|Take back)")).first.click()
    expect(done_so_far(page, 4)).to_have_count(1)

    page.goto(f"{server.url}/flashcards")
    expect(done_so_far(page, 4)).to_have_count(1)
    page.goto(f"{server.url}/quiz/{TOPIC}")
    expect(page.locator("main")).to_contain_text("right")


def answer(page: Page, question: str, key: str) -> None:
    box = page.locator(f"#q-{question}")
    box.locator(f"input[value='{key}']").check()
    box.get_by_role("button", name=re.compile("^Think so")).click()


@pytest.mark.drill
def test_after_the_last_card_graded_with_the_mouse_enter_goes_to_the_next_task(
    server: Server, page: Page
) -> None:
    page.goto(f"{server.url}/concepts/{TOPIC}")
    page.request.post(f"{server.url}/concepts/{TOPIC}/readings")
    page.goto(server.url)
    page.goto(f"{server.url}/flashcards?task=new")
    show = page.get_by_role("button", name=re.compile("Show the answer"))
    onward = page.locator("main .btn.main[data-key=enter]")
    show.wait_for()
    while show.count():
        show.click()
        page.get_by_role("button", name=re.compile("^Easy")).click()
        show.or_(onward).wait_for()
    expect(onward).to_be_focused()
    expect(page.get_by_role("link", name="Back to Today")).to_be_visible()
    page.keyboard.press("Enter")
    expect(page).not_to_have_url(re.compile("/flashcards"))
