"""A mock exam in the browser: what counts as answered, and what its page counts."""

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import APIResponse, Page, Route, expect

from tests.amounts import each_of_sample
from tests.browser.conftest import WITH_WORKER, fetch
from tests.browser.server import Server

pytestmark = [pytest.mark.browser, WITH_WORKER]
OWN = "This order is my answer"


@pytest.fixture
def server(nine: Server) -> Server:
    return nine


def begin(page: Page, server: Server) -> str:
    """Start the clock and go to the question about an order; returns its number."""
    sitting = start(page, server)
    (number,) = numbers_of(page, sitting, 'class="steps')
    page.goto(f"{sitting}/{number}")
    return number


def start(page: Page, server: Server) -> str:
    """Start the clock; returns what all addresses of questions begin with."""
    page.goto(f"{server.url}/exams/short")
    page.get_by_role("button", name="Start the clock").click()
    page.wait_for_url("**/questions/1")
    return page.url.rpartition("/")[0]


def numbers_of(page: Page, sitting: str, words: str) -> list[str]:
    """The questions of a sitting in whose HTML some words are; no page is drawn."""
    return [
        str(number)
        for number in range(1, 10)
        if words in page.request.get(f"{sitting}/{number}").text()
    ]


def test_a_changed_order_ticks_itself_and_the_tick_takes_it_back(
    server: Server, page: Page
) -> None:
    number = begin(page, server)
    address = page.url

    # Who passes by has not answered.
    page.get_by_role("button", name=re.compile("^(Next|Review)")).click()
    page.wait_for_url(lambda url: url != address)
    page.goto(address)
    expect(page.get_by_label(f"{number}, unanswered")).to_be_visible()
    expect(page.get_by_label(OWN)).not_to_be_checked()

    page.locator(".steps select").first.select_option("doesn\u2019t belong")
    expect(page.get_by_label(OWN)).to_be_checked()
    expect(page.get_by_label(f"{number}, answered")).to_be_visible()
    page.get_by_label(OWN).uncheck()
    expect(page.get_by_label(f"{number}, unanswered")).to_be_visible()
    page.get_by_text("Flag", exact=False).first.click()
    expect(page.get_by_label(f"{number}, unanswered, flagged")).to_be_visible()


def test_without_javascript_the_shown_order_is_kept_by_its_tick(
    server: Server, plain_page: Page
) -> None:
    page = plain_page
    number = begin(page, server)
    address = page.url
    expect(page.locator("aside noscript")).to_be_visible()
    expect(page.get_by_text("Every change is saved at once")).to_be_hidden()

    page.get_by_role("button", name=re.compile("^(Next|Review)")).click()
    page.wait_for_url(lambda url: url != address)
    page.goto(address)
    expect(page.get_by_label(f"{number}, unanswered")).to_be_visible()
    page.get_by_label(OWN).check()
    page.get_by_role("button", name=re.compile("^(Next|Review)")).click()
    page.wait_for_url(lambda url: url != address)
    page.goto(address)

    expect(page.get_by_label(f"{number}, answered")).to_be_visible()
    expect(page.get_by_label(OWN)).to_be_checked()


@pytest.mark.parametrize("with_scripts", [False, True])
def test_every_way_on_from_a_question_saves_its_answer(
    server: Server, page: Page, plain_page: Page, *, with_scripts: bool
) -> None:
    page = page if with_scripts else plain_page
    sitting = start(page, server)
    first, second, third, *_ = numbers_of(page, sitting, 'type="radio"')
    ways = {
        first: ("8, unanswered", f"{sitting}/8"),
        second: ("Finish", f"{sitting.removesuffix('/questions')}/review"),
        third: (re.compile("^unanswered"), "/review?show=incomplete"),
    }
    for number, (name, address) in ways.items():
        page.goto(f"{sitting}/{number}")
        page.locator("input[type=radio]").nth(1).check()
        page.get_by_role("button", name=name, exact=True).click()
        page.wait_for_url(lambda url, end=address: url.endswith(end))

        page.goto(f"{sitting}/{number}")
        expect(page.locator("input[type=radio]").nth(1)).to_be_checked()
        expect(page.get_by_label(f"{number}, answered")).to_be_visible()


def test_enter_in_a_field_goes_on_and_does_not_finish(server: Server, plain_page: Page) -> None:
    page = plain_page
    sitting = start(page, server)
    number = next(n for n in numbers_of(page, sitting, 'class="in') if int(n) < 8)
    page.goto(f"{sitting}/{number}")
    page.locator("main form input.in").first.fill("42")

    page.keyboard.press("Enter")

    page.wait_for_url(f"**/questions/{int(number) + 1}")


def test_a_letter_answers_and_enter_goes_on(server: Server, page: Page) -> None:
    sitting = start(page, server)
    number = next(n for n in numbers_of(page, sitting, 'type="radio"') if int(n) < 9)
    page.goto(f"{sitting}/{number}")
    page.keyboard.press("a")
    expect(page.locator("input[type=radio]").first).to_be_checked()
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/{int(number) + 1}")


def test_a_kept_copy_counts_what_this_browser_knows(server: Server, page: Page) -> None:
    page.goto(server.url)
    page.evaluate("navigator.serviceWorker.ready.then(() => true)")
    number = int(begin(page, server))
    sitting = page.url.rpartition("/")[0]
    others = [n for n in range(1, 9) if n != number]
    wait_for_copies(page, [f"{sitting}/{n}" for n in range(1, 9)])
    page.locator(".steps select").first.select_option("doesn\u2019t belong")
    expect(page.get_by_text("answered 1", exact=True)).to_be_visible()

    page.context.set_offline(True)
    page.goto(f"{sitting}/{others[0]}")
    expect(page.locator("#kept")).to_contain_text("Kept copy")
    expect(page.get_by_text("answered 1", exact=True)).to_be_visible()
    expect(page.get_by_label(f"{number}, answered")).to_be_visible()
    page.get_by_text("Flag", exact=False).first.click()
    expect(page.get_by_label(f"{others[0]}, unanswered, flagged")).to_be_visible()
    answer_here(page)
    expect(page.get_by_text("answered 2", exact=True)).to_be_visible()
    page.goto(f"{sitting}/{others[1]}")

    expect(page.get_by_text("answered 2", exact=True)).to_be_visible()
    expect(page.get_by_text("unanswered 6", exact=True)).to_be_visible()
    expect(page.get_by_text("flagged 1", exact=True)).to_be_visible()
    expect(page.get_by_label(f"{others[0]}, kept in this browser, flagged")).to_be_visible()
    expect(page.locator("#pace")).to_be_hidden()
    expect(page.locator("#saved")).to_have_text("Kept in this browser")

    page.context.set_offline(False)
    expect(page.locator("#outbox")).to_contain_text("saved.")
    expect(page.locator("#saved")).to_contain_text("Saved")
    expect(page.get_by_text("answered 2", exact=True)).to_be_visible()
    page.reload()
    expect(page.locator("#kept")).to_be_empty()
    expect(page.get_by_text("answered 2", exact=True)).to_be_visible()
    expect(page.locator("#pace")).to_be_visible()


@each_of_sample("last", ["what waited", "what was given here"], 1)
def test_an_answer_that_waited_hides_none_given_meanwhile(
    server: Server, page: Page, last: str
) -> None:
    sitting = start(page, server)
    first, other, *_ = numbers_of(page, sitting, 'class="opt')
    page.goto(f"{sitting}/{first}")
    page.context.set_offline(True)
    answer_here(page)
    expect(page.get_by_label(f"{first}, kept in this browser")).to_be_visible()

    # Both are on the server before the browser hears of either.
    held: dict[str, tuple[Route, APIResponse]] = {}
    page.route(
        "**/answers/*",
        lambda route: held.update({number_of(route): (route, fetch(route))}),
    )
    page.context.set_offline(False)
    page.goto(f"{sitting}/{other}")
    until(page, lambda: first in held)
    answer_here(page)
    until(page, lambda: other in held)
    for number in [first, other][:: -1 if last == "what waited" else 1]:
        route, response = held[number]
        route.fulfill(response=response)
        page.wait_for_timeout(300)  # for what the answer might do wrong

    expect(page.get_by_label(f"{first}, answered")).to_be_visible()
    expect(page.get_by_label(f"{other}, answered")).to_be_visible()
    expect(page.get_by_text("answered 2", exact=True)).to_be_visible()
    expect(page.locator("#saved")).to_contain_text("Saved")
    if last == "what was given here":
        saved = re.findall(r'datetime="([^"]+)"', held[other][1].text())
        expect(page.locator("#saved time")).to_have_attribute("datetime", saved[0])


def number_of(route: Route) -> str:
    """The number of the question that a request answers."""
    return route.request.url.rpartition("/")[2]


def until(page: Page, is_so: Callable[[], bool]) -> None:
    """Let the browser go on until it is so."""
    for _ in range(600):  # a minute, only so that nothing hangs for ever
        if is_so():
            return
        page.wait_for_timeout(100)
    kept = page.evaluate("() => JSON.stringify(localStorage)")
    locks = page.evaluate("async () => JSON.stringify(await navigator.locks.query())")
    raise AssertionError(f"it never was: {page.url} keeps {kept} with the locks {locks}")


def wait_for_copies(page: Page, addresses: list[str]) -> None:
    """Wait until the browser keeps a copy of each of these pages."""
    for _ in range(600):  # a minute, only so that nothing hangs for ever
        kept = page.evaluate(
            """async () => (await (await caches.open("pages")).keys())
                 .map((request) => request.url)"""
        )
        if set(addresses) <= set(kept):
            return
        page.wait_for_timeout(100)
    raise AssertionError(f"not kept: {addresses}")


def answer_here(page: Page) -> None:
    """Give some whole answer, whatever kind of question stands here."""
    options = page.locator("main .opt input")
    boxes = page.locator("main form input.in")
    if options.count():
        options.first.check()
    elif boxes.count():
        for gap in boxes.all():
            gap.fill("42")
            gap.blur()
    else:
        for row in page.locator("main form select").all():
            row.select_option(index=1)
