"""Today, plan, progress and course in a browser: accessible, and as wide as the screen."""

import datetime as dt
import re

import pytest
from playwright.sync_api import Page, expect

from tests.amounts import sample
from tests.browser.conftest import set_exam
from tests.browser.server import Server
from tests.browser.test_access import serious

pytestmark = pytest.mark.browser


def read_first_page(page: Page, server: Server) -> None:
    page.goto(f"{server.url}/course")
    page.get_by_role("link", name=re.compile("^First page")).click()
    page.locator("#end").get_by_role("button", name="Today").click()
    expect(page).to_have_url(f"{server.url}/")


@pytest.mark.drawn
def test_the_four_pages_are_accessible_and_as_wide_as_the_screen(
    server: Server, page: Page
) -> None:
    set_exam(page, server, 30)
    read_first_page(page, server)

    for address in sample(("/", "/plan", "/progress", "/course"), 1, "plan"):
        page.goto(server.url + address)
        page.locator("main details").evaluate_all("folds => folds.forEach(f => f.open = true)")
        for width in (1280, 390):
            page.set_viewport_size({"width": width, "height": 844})
            assert page.evaluate("document.documentElement.scrollWidth") == width, address
        # Where the page is narrow less is hidden and all is closer together.
        assert serious(page) == [], address


def test_on_a_phone_no_row_of_the_list_is_seen_in_part_around_its_button(
    server: Server, page: Page
) -> None:
    page.set_viewport_size({"width": 390, "height": 664})
    set_exam(page, server, 30)
    read_first_page(page, server)
    button = page.locator(".bigbtn")
    expect(button).to_be_in_viewport()

    shadow = button.evaluate("one => getComputedStyle(one.closest('.do > *')).boxShadow")
    sheet = page.locator(".hero").evaluate("one => getComputedStyle(one).backgroundColor")
    assert shadow.count(sheet) == 2  # above and below

    page.evaluate("scrollTo(0, document.body.scrollHeight)")
    row, box = page.locator(".todo > li").last.bounding_box(), button.bounding_box()
    assert row
    assert box
    assert row["y"] + row["height"] <= box["y"]


def test_from_today_the_plan_is_one_click_away(server: Server, page: Page) -> None:
    set_exam(page, server, 30)
    read_first_page(page, server)
    page.goto(server.url)
    page.get_by_role("link", name="Plan", exact=True).click()

    expect(page.get_by_role("heading", name="30 days to your exam")).to_be_visible()


def test_a_mock_exam_is_moved_on_the_plan(server: Server, page: Page) -> None:
    set_exam(page, server, 30)
    page.goto(f"{server.url}/plan")
    first = page.locator("input[name=new]").first
    old = dt.date.fromisoformat(first.input_value())
    new = old + dt.timedelta(days=1)

    first.fill(new.isoformat())
    page.get_by_role("button", name="Move").first.click()

    expect(page.locator("input[name=new]").first).to_have_value(new.isoformat())
