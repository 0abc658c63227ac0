"""Below a path of somebody's site, behind a real nginx."""

import re
import shutil
import socket
import subprocess
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import WITH_WORKER
from tests.browser.server import Server, free_port
from tests.conftest import TINY

pytestmark = [
    pytest.mark.browser,
    WITH_WORKER,
    pytest.mark.drill,  # starts nginx; tests/web/test_proxies.py asks below a prefix, too
    pytest.mark.skipif(not shutil.which("nginx"), reason="needs nginx"),
]
CONCEPT = "/concepts/weights"


@pytest.fixture
def site(tmp_path: Path) -> Iterator[str]:
    """The address of the server as nginx offers it: …/study"""
    data = tmp_path / "data"
    port = free_port()
    url = f"http://localhost:{port}/study"
    server = Server(data, TINY, proxies="127.0.0.1", hosts="localhost", url=url).start()
    config = tmp_path / "nginx.conf"
    config.write_text(
        textwrap.dedent(
            f"""
            daemon off; master_process off; pid {tmp_path}/nginx.pid; error_log stderr;
            events {{ }}
            http {{
              access_log off;
              client_body_temp_path {tmp_path}/body; proxy_temp_path {tmp_path}/proxy;
              fastcgi_temp_path {tmp_path}/fastcgi; uwsgi_temp_path {tmp_path}/uwsgi;
              scgi_temp_path {tmp_path}/scgi;
              server {{
                listen 127.0.0.1:{port};
                location /study/ {{
                  proxy_pass {server.url}/;
                  proxy_set_header Host $host;
                  proxy_set_header X-Forwarded-For $remote_addr;
                  proxy_set_header X-Forwarded-Proto $scheme;
                }}
              }}
            }}
            """
        )
    )
    nginx = subprocess.Popen(["nginx", "-p", str(tmp_path), "-c", str(config)])
    while not listens(port):
        assert nginx.poll() is None
    yield url
    nginx.terminate()
    nginx.wait()
    server.stop()


def listens(port: int) -> bool:
    """Whether somebody takes connections at a port of this machine."""
    try:
        socket.create_connection(("127.0.0.1", port), timeout=5).close()
    except OSError:
        return False
    return True


def test_an_evening_below_a_prefix(page: Page, site: str) -> None:
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))

    # Reading, by the keys.
    page.goto(site + "/")
    page.wait_for_load_state()
    page.keyboard.press("g")
    page.keyboard.press("c")
    expect(page).to_have_url(site + "/course")
    page.goto(site + CONCEPT)
    page.wait_for_load_state()

    # A calculator in the text, asked by htmx.
    instrument = page.locator("section.inst").first
    verdict = instrument.locator(".verdict").first
    before = verdict.inner_text()
    instrument.locator("select[name=model]").select_option(label="Llama 3.1 405B")
    expect(verdict).not_to_have_text(before)

    # A setting, with a redirect and a cookie.
    page.goto(site + "/settings")
    page.get_by_label("Colors").select_option("dark")
    page.get_by_label("Colors").locator("xpath=ancestor::form").locator("button").click()
    expect(page).to_have_url(re.compile(re.escape(site) + "/settings"))
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")

    # Cards, and what they need without a network.
    page.goto(site + "/flashcards")
    page.evaluate("navigator.serviceWorker.ready.then(() => true)")
    scope = page.evaluate("navigator.serviceWorker.ready.then((r) => r.scope)")
    assert scope == site + "/"
    page.get_by_role("button", name=re.compile("Show")).first.click()
    page.get_by_role("button", name=re.compile("Good")).click()
    expect(page.get_by_role("button", name="Undo")).to_be_visible()

    cookies = {cookie["name"]: cookie for cookie in page.context.cookies()}
    assert {cookie["path"] for cookie in cookies.values()} == {"/study/"}
    elsewhere = [url for url in asked if not url.startswith(site + "/")]
    assert [u for u in elsewhere if not u.startswith("data:")] == []
