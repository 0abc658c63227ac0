"""A mock exam in two tabs of one browser, with and without a network."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from tests.amounts import each_of_sample
from tests.browser.server import UNLIMITED, Server
from tests.conftest import TINY

pytestmark = pytest.mark.browser
OPTION = "main .opt input"
CONCEPT = """---
title: About {topic}
objective: "{objective}"
summary: What it is.
sources: [herd]
---

## A section

Some words.
"""
QUIZ = """---
title: "Questions"
objective: "2.1"
source: herd
---

### What does one hour of it cost?
<!-- q: hour
type: numeric
-->

- [x] `5.80 USD ± 1%`

> [!NOTE]
> So.

### Which one is it?
<!-- q: which
type: single
-->

- [x] The first of all
  > Yes.
- [ ] The second of all
  > No.
- [ ] The third of all
  > No.

> [!NOTE]
> So.
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A course with a number and a choice, and a mock exam of both."""
    folder = tmp_path_factory.mktemp("tabs")
    with Server(folder / "data", two_questions(folder / "course"), **UNLIMITED) as one:
        yield one


def two_questions(course_folder: Path) -> Path:
    for name in ("syllabus.toml", "sources.toml", "glossary.md"):
        (course_folder / name).parent.mkdir(parents=True, exist_ok=True)
        (course_folder / name).write_text((TINY / name).read_text())
    for topic, objective in (("weights", "1.1"), ("kv-cache", "2.1")):
        page = course_folder / "topics" / topic / "concept.md"
        page.parent.mkdir(parents=True)
        page.write_text(CONCEPT.format(topic=topic, objective=objective))
    (course_folder / "topics" / "kv-cache" / "quiz.md").write_text(QUIZ)
    exam = 'title = "Short"\nquestions = 2\nminutes = 60\n\n[domains]\n2 = 2\n'
    (course_folder / "exams").mkdir()
    (course_folder / "exams" / "short.toml").write_text(exam)
    return course_folder


@pytest.fixture
def context(browser: Browser) -> Iterator[BrowserContext]:
    """A browser that keeps pages for the time without a network."""
    context = browser.new_context()
    yield context
    context.close()


def start(page: Page, server: Server) -> dict[str, str]:
    """Start the clock; returns the addresses of the number and of the choice."""
    page.goto(f"{server.url}/exams/short")
    page.get_by_label("Kinds of questions").select_option("All kinds")
    page.get_by_role("button", name="Start the clock").click()
    expect(page).to_have_url(re.compile("/questions/1$"))
    page.locator("#told").wait_for(state="attached")
    base = page.url.rpartition("/")[0]
    choice = 1 if page.locator(OPTION).count() else 2
    return {"number": f"{base}/{3 - choice}", "choice": f"{base}/{choice}"}


def choose(page: Page, index: int) -> None:
    with page.expect_response("**/answers/*"):  # the page may say Saved of the last one
        page.locator("main .opt").nth(index).click()
    expect(page.locator("#saved")).to_contain_text("Saved")


def chosen(page: Page, address: str) -> list[int]:
    """Which options the server has: 0 for the first one shown."""
    page.goto(address)
    boxes = page.locator(OPTION)
    return [n for n in range(boxes.count()) if boxes.nth(n).is_checked()]


def go_on(page: Page) -> None:
    here = page.url
    page.get_by_role("button", name=re.compile("^(Next|Review)")).last.click()
    page.wait_for_url(lambda url: url != here)


@each_of_sample("scripts", [True, False], 1)
def test_an_older_tab_that_only_goes_on_changes_nothing(
    server: Server, browser: Browser, context: BrowserContext, scripts: bool
) -> None:
    page = context.new_page()
    address = start(page, server)["choice"]
    page.goto(address)
    choose(page, 0)
    kept = context.storage_state()
    plain = browser.new_context(java_script_enabled=scripts, storage_state=kept)
    older = plain.new_page()
    older.goto(address)
    choose(page, 2)

    go_on(older)

    assert chosen(context.new_page(), address) == [2]
    plain.close()


def test_who_answers_over_another_tab_is_told_and_may_go_on(
    server: Server, context: BrowserContext
) -> None:
    page, older = context.new_page(), context.new_page()
    address = start(page, server)["choice"]
    older.goto(address)
    page.goto(address)
    choose(page, 0)

    older.locator("main .opt").nth(1).click()

    expect(older.locator("#told")).to_contain_text("took the place of another one")
    go_on(older)
    assert chosen(page, address) == [1]


def test_what_is_told_of_a_typed_answer_stays_on_show(
    server: Server, context: BrowserContext
) -> None:
    page, older = context.new_page(), context.new_page()
    address = start(page, server)["number"]
    for tab, words in ((older, ""), (page, "5")):
        tab.goto(address)
        tab.locator("main input.in").fill(words)
    expect(page.get_by_label(re.compile(r"^\d, answered"))).to_be_visible()

    older.locator("main input.in").press_sequentially("6")
    expect(older.locator("#told")).to_contain_text("took the place of another one")
    older.keyboard.press("Tab")  # the field says once more that it has changed

    expect(older.locator("#told")).to_contain_text("took the place of another one")


@pytest.mark.drill
def test_two_tabs_without_a_network_keep_what_was_done_in_each(
    server: Server, context: BrowserContext
) -> None:
    page, older = context.new_page(), context.new_page()
    address = start(page, server)["choice"]
    for tab in (page, older):
        tab.goto(address)
    choose(page, 0)
    older.reload()
    context.set_offline(True)

    page.locator("main .opt").nth(2).click()
    expect(page.locator("#outbox")).to_contain_text("1 answer waits")
    older.get_by_text("Flag", exact=False).first.click()
    expect(older.locator("#outbox")).to_contain_text("2 answers wait")
    context.set_offline(False)
    expect(page.locator("#outbox")).not_to_contain_text("wait")

    assert chosen(older, address) == [2]
    expect(older.locator("input[name=flag]")).to_be_checked()


def test_what_was_typed_a_moment_ago_is_saved_by_whatever_leads_away(
    server: Server, context: BrowserContext
) -> None:
    page = context.new_page()
    addresses = start(page, server)
    page.goto(addresses["number"])

    page.locator("main input.in").press_sequentially("5.80")
    page.goto(addresses["choice"])
    expect(page.get_by_label(re.compile(r"^\d, answered"))).to_be_visible()

    page.goto(addresses["number"])
    expect(page.locator("main input.in")).to_have_value("5.80")
    expect(page.locator("#outbox")).to_be_empty()


@pytest.mark.drill
def test_a_page_of_the_history_shows_what_was_saved_since(
    server: Server, context: BrowserContext
) -> None:
    page, other = context.new_page(), context.new_page()
    address = start(page, server)["choice"]
    page.goto(address)
    choose(page, 0)
    page.goto(f"{server.url}/exams")
    other.goto(address)
    choose(other, 2)

    page.go_back()

    expect(page.locator(OPTION).nth(2)).to_be_checked()
    expect(page.locator(OPTION).nth(0)).not_to_be_checked()


@pytest.mark.drill
def test_a_number_that_cannot_be_read_is_told_before_one_goes_on(
    server: Server, context: BrowserContext
) -> None:
    page = context.new_page()
    address = start(page, server)["number"]
    page.goto(address)

    page.locator("main input.in").fill("5..80")
    page.keyboard.press("Enter")
    expect(page.locator("#told")).to_contain_text("“5..80” is not a number.")
    assert page.url == address
    expect(page.get_by_label(re.compile("can.t be read"))).to_be_visible()
    go_on(page)

    page.goto(f"{address.rpartition('/questions')[0]}/review")
    expect(page.locator("main")).to_contain_text("“5..80” is not a number.")
    page.get_by_role("button", name=re.compile("^End the exam")).click()
    page.wait_for_url("**/report")
    page.goto(address)
    expect(page.locator("main")).to_contain_text("“5..80”")
    expect(page.get_by_label(re.compile("could not be read"))).to_be_visible()
    # The legend of all questions names the one that was left open.
    expect(page.locator("main .stack").first).not_to_contain_text(
        re.compile("unanswered|not answered", re.IGNORECASE)
    )


@pytest.mark.drill
def test_a_price_is_read_in_an_exam(server: Server, context: BrowserContext) -> None:
    page = context.new_page()
    address = start(page, server)["number"]
    page.goto(address)

    page.locator("main input.in").fill("$5.80")
    go_on(page)
    page.goto(f"{address.rpartition('/questions')[0]}/review")
    page.get_by_role("button", name=re.compile("^End the exam")).click()

    expect(page.get_by_role("heading", level=1)).to_contain_text("1 of 2")
