"""The browser, and a server that it visits."""

import datetime as dt
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import APIResponse, Browser, Page, Route, expect

from app.clock import study_day_at, utc_now
from app.content.live_courses import LiveCourse
from tests.browser.install import find
from tests.browser.server import UNLIMITED, Server
from tests.conftest import SHIPPED, TINY

# What is expected comes about when it does; the limit is only so that nothing hangs
# for ever. Five seconds, as Playwright has them, pass where the machine is busy.
expect.set_options(timeout=60_000)
# A renderer that compiles and collects in its one thread takes less time in all.
ARGUMENTS = [
    "--js-flags=--single-threaded",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
]
WITH_WORKER = pytest.mark.browser_context_args(service_workers="allow")


@pytest.fixture(scope="session")
def browser_type_launch_args() -> dict[str, Any]:
    path = find()
    chosen: dict[str, Any] = {"executable_path": path} if path else {}
    return {**chosen, "headless": True, "args": ARGUMENTS}


@pytest.fixture(scope="session")
def browser_context_args(browser_context_args: dict[str, Any]) -> dict[str, Any]:
    """No service worker, which fetches all files at the first page of each browser.

    A module that is about it says `pytestmark = [..., WITH_WORKER]`.
    """
    return {**browser_context_args, "service_workers": "block"}


@pytest.fixture(scope="session")
def parsed(
    live_shipped: LiveCourse, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[Path], Path]:
    """Give a data folder what its server would parse of the shipped course."""
    kept = tmp_path_factory.mktemp("parsed") / "cache"
    assert live_shipped.cache
    # What another process is still writing is named by its number as well.
    half = shutil.ignore_patterns("*.json.*")
    shutil.copytree(live_shipped.cache, kept, ignore=half)
    assert len([*kept.rglob("*.json")]) > 100  # else each server reads the whole course

    def put(data: Path) -> Path:
        shutil.copytree(kept, data / "cache")
        return data

    return put


@pytest.fixture(scope="session")
def shared(
    tmp_path_factory: pytest.TempPathFactory, parsed: Callable[[Path], Path]
) -> Iterator[Server]:
    """The server of all tests that want the shipped course."""
    data = parsed(tmp_path_factory.mktemp("shared") / "data")
    # All learners come from one address.
    server = Server(data, SHIPPED, **UNLIMITED)
    yield server
    server.stop()


@pytest.fixture
def server(shared: Server) -> Server:
    """The shipped course; a browser that comes is a learner whom nobody knows yet.

    A test may stop and kill the server: the next one finds it running again.
    """
    return shared if shared.runs else shared.start()


@pytest.fixture(scope="session")
def nine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """The tiny course with a mock exam that asks every question of one domain."""
    folder = tmp_path_factory.mktemp("nine")
    with Server(folder / "data", nine_questions(folder / "course"), **UNLIMITED) as running:
        yield running


@pytest.fixture
def plain_page(browser: Browser) -> Iterator[Page]:
    """A page in a browser that runs no JavaScript."""
    context = browser.new_context(java_script_enabled=False)
    yield context.new_page()
    context.close()


def fetch(route: Route) -> APIResponse:
    """What the server answers to a request that a test has in its hands.

    Playwright's own client sends anew over a connection that the server, for which it was
    idle for five seconds, is closing just then; browsers try that once more by themselves.
    """
    return route.fetch(max_retries=3)


def sign_in(page: Page, server: Server) -> Page:
    """Let a browser onto the author's bench, as its author would."""
    page.goto(server.command("author", "link").split()[0])
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url(re.compile(r"(?<!enter)/authoring$"))
    return page


def nine_questions(course_folder: Path) -> Path:
    """Make the tiny course with a mock exam of all questions of one domain."""
    shutil.copytree(TINY, course_folder)
    exam = course_folder / "exams" / "short.toml"
    wanted = exam.read_text().replace("1 = 3\n2 = 2", "2 = 9")
    exam.write_text(wanted.replace("questions = 5", "questions = 9"))
    return course_folder


def by_hand(page: Page) -> Page:
    """Let the pages of a tab try nothing again by themselves while a test runs.

    Else the button that does so may be gone before the test presses it.
    """
    page.add_init_script(
        """for (const name of ["setInterval", "setTimeout"]) {
             const own = window[name];
             window[name] = (call, ms = 0, ...rest) =>
               own(call, ms < 1000 ? ms : ms * 1000, ...rest);
           }"""
    )
    return page


def set_exam(page: Page, server: Server, days: int) -> None:
    """Say that the exam is so many study days from now, in the time zone of the browser."""
    page.goto(f"{server.url}/settings")
    zone = str(page.evaluate("Intl.DateTimeFormat().resolvedOptions().timeZone"))
    day = study_day_at(utc_now(), zone) + dt.timedelta(days=days)
    page.get_by_label("Exam day").fill(day.isoformat())
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_text("Saved.", exact=True)).to_be_visible()
