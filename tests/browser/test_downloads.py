"""Files that a learner takes along: a browser saves them, and shows a refusal."""

import contextlib
import zipfile
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import WITH_WORKER
from tests.browser.server import Server
from tests.conftest import TINY
from tests.import_export.package import Made, database, written

pytestmark = [pytest.mark.browser, WITH_WORKER]
LINK = "Download my data"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    with Server(tmp_path / "data", TINY) as server:
        yield server


def give_pictures(page: Page, server: Server) -> httpx.Cookies:
    """Import pictures that are more than waits on a connection; returns the cookie."""
    cookies = httpx.Cookies({c["name"]: c["value"] for c in page.context.cookies()})
    names = [f"{n}.png" for n in range(8)]
    media = {n: (b"\x89PNG\r\n\x1a\n" + n.encode()).ljust(1_900_000) for n in names}
    notes = [Made(n, (f"<img src='{n}'>", "Back")) for n in names]
    content = written(database(*notes), media, modern=False)
    with httpx.Client(base_url=server.url, cookies=cookies, timeout=60) as client:
        sent = {"file": ("deck.apkg", content)}
        assert client.post("/settings/cards", files=sent).status_code == 303
        while "Look again" in client.get("/settings/cards/import").text:
            pass
    return cookies


@pytest.mark.drill  # imports pictures of 15 MB
def test_a_file_is_saved_and_a_refusal_is_shown(page: Page, server: Server):
    page.goto(f"{server.url}/settings")
    page.evaluate("navigator.serviceWorker.ready.then(() => true)")
    cookies = give_pictures(page, server)

    with page.expect_download() as coming:
        page.get_by_role("link", name=LINK).click()
    with zipfile.ZipFile(coming.value.path()) as packed:
        assert sum(name.startswith("pictures/") for name in packed.namelist()) == 8

    with taking(server, cookies):
        page.get_by_role("link", name=LINK).click()
        expect(page.get_by_text("Another file for you is being created or sent")).to_be_visible()


@contextlib.contextmanager
def taking(server: Server, cookies: httpx.Cookies) -> Iterator[None]:
    """A download that has begun; the one before is perhaps still being put away."""
    while True:
        with httpx.stream("GET", f"{server.url}/settings/export", cookies=cookies) as answer:
            if answer.status_code == 200:
                yield
                return
