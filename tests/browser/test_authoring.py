"""The author's bench in a browser: an open page follows the files as they are saved."""

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.amounts import FACTOR
from tests.browser.conftest import sign_in
from tests.browser.server import UNLIMITED, Server
from tests.conftest import TINY

pytestmark = pytest.mark.browser
TOPIC = "weights"


@pytest.fixture(scope="module")
def course_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small course: each save has all of it put together anew."""
    copy = tmp_path_factory.mktemp("bench") / "course"
    return Path(shutil.copytree(TINY, copy))


@pytest.fixture(scope="module")
def only_server(course_folder: Path) -> Iterator[Server]:
    """The server of all tests here: each starts with the course as it was."""
    with Server(course_folder.with_name("data"), course_folder, **UNLIMITED) as running:
        yield running


@pytest.fixture
def bench(only_server: Server) -> Server:
    return only_server if only_server.runs else only_server.start()


@pytest.fixture
def folder(course_folder: Path) -> Iterator[Path]:
    """The course, to be edited; what a test has done to its page is undone."""
    yield course_folder
    page = Path("topics", TOPIC, "concept.md")
    shutil.copyfile(TINY / page, course_folder / page)


@pytest.fixture
def page(page: Page, bench: Server) -> Page:
    """A browser that was let onto the bench."""
    return sign_in(page, bench)


@pytest.fixture
def plain_page(plain_page: Page, bench: Server) -> Page:
    """The same without JavaScript."""
    return sign_in(plain_page, bench)


def retitle(page: Path, title: str) -> None:
    text = re.sub(r"(?m)^title: .*$", f"title: {title}", page.read_text(), count=1)
    page.write_text(text)


@pytest.mark.drawn
def test_every_save_is_on_the_screen_without_a_hand_on_the_browser(
    bench: Server, folder: Path, page: Page
) -> None:
    source = folder / "topics" / TOPIC / "concept.md"
    page.goto(f"{bench.url}/authoring/pages/{TOPIC}")

    for number in range(1 if FACTOR == 1 else 5):
        retitle(source, f"Saved {number}")
        expect(page.locator("h1")).to_have_text(f"Saved {number}")


def test_a_problem_appears_and_goes_by_itself(bench: Server, folder: Path, page: Page) -> None:
    source = folder / "topics" / TOPIC / "concept.md"
    sound = source.read_text()
    page.goto(f"{bench.url}/authoring/pages/{TOPIC}")

    source.write_text(sound.replace("title:", "titel:", 1))
    expect(page.locator(".beside > aside")).to_contain_text("“titel” is not a key here.")

    source.write_text(sound)
    expect(page.locator(".beside > aside")).not_to_contain_text("titel")


@pytest.mark.drill  # stops the server
def test_an_open_page_does_not_hold_up_the_end_of_the_server(
    bench: Server, folder: Path, page: Page
) -> None:
    source = folder / "topics" / TOPIC / "concept.md"
    with page.expect_response("**/authoring/changes"):
        page.goto(f"{bench.url}/authoring/pages/{TOPIC}")

    assert bench.stop() == 0
    assert "graceful" not in bench.log  # as the server says when it waits in vain

    bench.start()  # and the page goes on when the server is back
    retitle(source, "Saved after a restart")
    expect(page.locator("h1")).to_have_text("Saved after a restart")


def test_an_author_tries_a_question_without_leaving_a_trace(bench: Server, page: Page) -> None:
    page.goto(f"{bench.url}/authoring/pages/{TOPIC}")
    address = page.locator(".inst a.mono").first.get_attribute("href")
    page.goto(f"{bench.url}{address}")
    page.locator("#seen input[name=answer]").first.check()
    page.get_by_role("button", name=re.compile("^Think so")).click()
    expect(page.locator("#seen .verdict")).to_be_visible()

    page.locator(".states a").nth(2).click()
    expect(page.locator("#seen .verdict")).to_be_visible()
    page.goto(f"{bench.url}/authoring/questions?show=answered")

    expect(page.locator("main")).to_contain_text("Nobody has answered anything yet.")
    expect(page.locator("main")).to_contain_text("Answered, 0")


def test_the_bench_works_without_javascript(bench: Server, folder: Path, plain_page: Page) -> None:
    page = plain_page
    source = folder / "topics" / TOPIC / "concept.md"
    page.goto(f"{bench.url}/authoring/pages/{TOPIC}")
    retitle(source, "Saved and loaded anew")
    # The server looks at the files now and then, and nothing reloads such a page by itself.
    for _ in range(100):
        page.reload()
        if page.locator("h1").inner_text() == "Saved and loaded anew":
            break
        page.wait_for_timeout(100)
    expect(page.locator("h1")).to_have_text("Saved and loaded anew")

    source.write_text(source.read_text().replace("title:", "titel:", 1))
    page.goto(f"{bench.url}/authoring")
    page.locator("label", has_text="Errors").click()
    page.get_by_role("button", name="Show").click()
    expect(page).to_have_url(re.compile("severity=error"))
    page.locator(".prob a").first.click()
    expect(page.locator(".code .hit")).to_have_count(1)


@pytest.mark.drill  # starts a command
def test_an_open_page_is_closed_when_its_author_is_signed_out(bench: Server, page: Page) -> None:
    page.goto(f"{bench.url}/authoring/pages/{TOPIC}")

    bench.command("author", "revoke", "all")

    expect(page.locator("h1")).to_have_text("For authors")
