"""A cheat sheet takes one printed page."""

import re

import pytest
from playwright.sync_api import Page

from tests.amounts import each_of_sample
from tests.browser.server import Server

pytestmark = pytest.mark.browser


@each_of_sample("format_", ["A4", "Letter"], 1)
def test_each_domain_prints_on_one_page(page: Page, server: Server, format_: str) -> None:
    for number in "123":
        page.goto(f"{server.url}/cheatsheets/{number}")
        pdf = page.pdf(format=format_)

        assert len(re.findall(rb"/Type\s*/Page\b", pdf)) == 1, number
