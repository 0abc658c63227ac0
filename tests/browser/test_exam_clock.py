"""The clock of a mock exam goes on while the machine sleeps."""

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from tests.amounts import each_of_sample
from tests.browser.conftest import by_hand, nine_questions
from tests.browser.server import UNLIMITED, Server

pytestmark = pytest.mark.browser
# The clock on the wall goes on, all others stand still, as in a machine that sleeps.
SLEEP = """
  (() => {
    const [now, passed] = [Date.now.bind(Date), performance.now.bind(performance)];
    const begun = passed();
    Date.now = () => now() + Number(sessionStorage.getItem("slept") || 0);
    performance.now = () => Math.min(passed(), begun + 1000);
  })()
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """The tiny course with a mock exam of 60 minutes."""
    folder = tmp_path_factory.mktemp("clock")
    course_folder = nine_questions(folder / "course")
    exam = course_folder / "exams" / "short.toml"
    exam.write_text(re.sub(r"minutes = \d+", "minutes = 60", exam.read_text()))
    with Server(folder / "data", course_folder, **UNLIMITED) as running:
        yield running


@pytest.fixture
def exam(server: Server, page: Page) -> Page:
    """The first question, on a page that does nothing of itself after a while."""
    by_hand(page).add_init_script(SLEEP)
    page.goto(f"{server.url}/exams/short")
    page.get_by_role("button", name="Start the clock").click()
    page.wait_for_url("**/questions/1")  # and for its scripts
    return page


def minutes(page: Page) -> int:
    """The whole minutes that are left, by the clock on the page."""
    return int(page.locator(".clock").inner_text().partition(":")[0])


def sleep(page: Page, minutes: int) -> None:
    page.evaluate("(m) => sessionStorage.setItem('slept', m * 60000)", minutes)


@each_of_sample(
    "target, event",
    [("document", "visibilitychange"), ("window", "focus"), ("window", "pageshow")],
    1,
)
def test_who_comes_back_sees_what_is_left(exam: Page, target: str, event: str) -> None:
    whole = minutes(exam)
    sleep(exam, 20)

    exam.evaluate(f"{target}.dispatchEvent(new Event('{event}'))")

    assert minutes(exam) in (whole - 20, whole - 21)


def test_who_slept_too_long_is_led_to_the_report(exam: Page) -> None:
    sleep(exam, 90)

    exam.evaluate("window.dispatchEvent(new Event('focus'))")

    expect(exam.locator(".clock")).to_have_text("0:00")


def test_the_server_is_right_where_the_clock_on_the_wall_is_not(exam: Page) -> None:
    whole = minutes(exam)
    sleep(exam, 20)
    exam.evaluate("window.dispatchEvent(new Event('focus'))")
    assert minutes(exam) < whole - 10

    exam.get_by_text("Flag", exact=False).first.click()

    expect(exam.locator("#saved")).to_contain_text("Saved")
    assert minutes(exam) in (whole, whole - 1)
