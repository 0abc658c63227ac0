"""The browser, and a server that it visits."""

from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Page

from tests.browser.install import find
from tests.browser.server import ROOT, Server

ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
]


@pytest.fixture(scope="session")
def browser_type_launch_args() -> dict[str, Any]:
    path = find()
    chosen: dict[str, Any] = {"executable_path": path} if path else {}
    return {**chosen, "headless": True, "args": ARGUMENTS}


@pytest.fixture(scope="session")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """The server of all tests that want the shipped course."""
    folder = tmp_path_factory.mktemp("shared")
    # All learners come from one address.
    server = Server(folder / "data", ROOT / "content", rate_learners="off")
    yield server
    server.stop()


@pytest.fixture
def server(shared: Server) -> Server:
    """The shipped course; a browser that comes is a learner whom nobody knows yet.

    A test may stop and kill the server: the next one finds it running again.
    """
    return shared if shared.runs else shared.start()


@pytest.fixture
def plain_page(browser: Browser) -> Iterator[Page]:
    """A page in a browser that runs no JavaScript."""
    context = browser.new_context(java_script_enabled=False)
    yield context.new_page()
    context.close()


def sign_in(page: Page, server: Server) -> Page:
    """Let a browser onto the author's bench, as its author would."""
    page.goto(server.command("author", "link").split()[0])
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url(f"{server.url}/authoring")
    return page
