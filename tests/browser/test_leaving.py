"""After somebody has left a browser, Back shows nothing of theirs."""

from typing import Any

import pytest
from playwright.sync_api import BrowserType, expect

from tests.amounts import each_of_sample
from tests.browser.conftest import ARGUMENTS
from tests.browser.server import Server

pytestmark = pytest.mark.browser
NAME = "Rosa Meyer"


@each_of_sample("host", ["study.example", "localhost"], 1)
def test_back_names_nobody_after_leaving(
    browser_type: BrowserType,
    browser_type_launch_args: dict[str, Any],
    server: Server,
    host: str,
) -> None:
    """Also from the pages that the browser keeps whole, which Playwright turns off."""
    site = f"http://{host}:{server.port}"
    options = {
        **browser_type_launch_args,
        "args": [*ARGUMENTS, f"--host-resolver-rules=MAP {host} 127.0.0.1"],
        "ignore_default_args": ["--disable-back-forward-cache"],
    }
    with browser_type.launch(**options) as browser:
        page = browser.new_page()
        page.goto(f"{site}/settings")
        page.get_by_label("Name").fill(NAME)
        page.get_by_role("button", name="Save", exact=True).click()
        expect(page.get_by_text("Saved.", exact=True)).to_be_visible()
        page.goto(f"{site}/glossary")
        expect(page.locator("header.top")).to_contain_text(NAME)
        page.goto(f"{site}/settings")
        page.get_by_label("I have access elsewhere").check()
        page.get_by_role("button", name="Leave", exact=True).click()
        page.wait_for_url(f"{site}/")

        for path in ("/settings", "/glossary"):
            page.go_back()
            assert page.url == site + path
            expect(page.locator("header.top")).to_contain_text("Settings")
            assert NAME not in page.content()
