"""A mock exam in the browser: what counts as answered, and what its page counts."""

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.browser.server import ROOT, Server

pytestmark = pytest.mark.browser
OWN = "This order is my answer"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    """The tiny course with a mock exam that asks every question of one domain."""
    course = tmp_path / "course"
    shutil.copytree(ROOT / "tests" / "courses" / "tiny", course)
    exam = course / "exams" / "short.toml"
    wanted = exam.read_text().replace("1 = 3\n2 = 2", "2 = 9")
    exam.write_text(wanted.replace("questions = 5", "questions = 9"))
    running = Server(tmp_path / "data", course).start()
    yield running
    running.stop()


def begin(page: Page, server: Server) -> str:
    """Start the clock and go to the question about an order; returns its number."""
    page.goto(f"{server.url}/exams/short")
    page.get_by_role("button", name="Start the clock").click()
    expect(page).to_have_url(re.compile("/questions/1$"))
    for number in range(1, 10):
        page.goto(f"{page.url.rpartition('/')[0]}/{number}")
        if page.locator(".steps").count():
            return str(number)
    raise AssertionError("no order was asked")


def test_an_order_passed_by_is_not_answered(server: Server, page: Page) -> None:
    number = begin(page, server)
    address = page.url

    page.get_by_role("button", name=re.compile("^(Next|Review)")).click()
    page.wait_for_url(lambda url: url != address)
    page.goto(address)

    expect(page.get_by_label(f"{number}, open")).to_be_visible()
    expect(page.get_by_label(OWN)).not_to_be_checked()


def test_a_changed_order_ticks_itself_and_the_tick_takes_it_back(
    server: Server, page: Page
) -> None:
    number = begin(page, server)

    page.locator(".steps select").first.select_option("3")
    expect(page.get_by_label(OWN)).to_be_checked()
    expect(page.get_by_label(f"{number}, answered")).to_be_visible()
    page.get_by_label(OWN).uncheck()
    expect(page.get_by_label(f"{number}, open")).to_be_visible()
    page.get_by_text("Flag", exact=False).first.click()
    expect(page.get_by_label(f"{number}, open, flagged")).to_be_visible()


def test_without_javascript_the_shown_order_is_kept_by_its_tick(
    server: Server, plain_page: Page
) -> None:
    page = plain_page
    number = begin(page, server)
    address = page.url

    page.get_by_role("button", name=re.compile("^(Next|Review)")).click()
    page.goto(address)
    expect(page.get_by_label(f"{number}, open")).to_be_visible()
    page.get_by_label(OWN).check()
    page.get_by_role("button", name=re.compile("^(Next|Review)")).click()
    page.goto(address)

    expect(page.get_by_label(f"{number}, answered")).to_be_visible()
    expect(page.get_by_label(OWN)).to_be_checked()
