"""A part of a drawing: pointed at, chosen by key, chosen from the list, judged."""

import pytest
from playwright.sync_api import Page, expect

from tests.amounts import FACTOR
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
