"""A lab: typed by keyboard alone, without a script, on a phone, in two tabs, without a network."""

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.amounts import FACTOR
from tests.browser.server import UNLIMITED, Server
from tests.browser.test_access import violations
from tests.conftest import TINY

pytestmark = pytest.mark.browser
LABS = Path(__file__).parents[1] / "quiz" / "labs.md"
LAB = "/quiz/kv-cache/lab-xid"
HOST = "document.querySelector('.console .bar b').textContent"


@pytest.fixture(scope="module")
def lab_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """The tiny course with three labs."""
    folder = tmp_path_factory.mktemp("labs")
    shutil.copytree(TINY, folder / "course")
    quiz = folder / "course" / "topics" / "kv-cache" / "quiz.md"
    labs = LABS.read_text(encoding="utf-8").split("---\n", 2)[2]
    quiz.write_text(f"{quiz.read_text(encoding='utf-8')}\n{labs}", encoding="utf-8")
    (folder / "data").mkdir()
    with Server(folder / "data", folder / "course", **UNLIMITED) as server:
        yield server


def field(page: Page) -> Locator:
    return page.locator("[name=command]")


def run(page: Page, command: str) -> None:
    count = page.locator(".log .entry").count()
    field(page).fill(command)
    field(page).press("Enter")
    expect(page.locator(".log .entry")).to_have_count(count + 1)


def disconnect(page: Page) -> None:
    """Take the page off the network, and wait until its requests fail.

    The browser's network process learns of it later than the page, so that a request that is
    sent at once can still be answered.
    """
    page.context.set_offline(True)
    page.wait_for_function("fetch('/healthz').then(() => false, () => true)")


def test_the_whole_lab_is_done_by_keyboard(page: Page, lab_server: Server) -> None:
    page.goto(f"{lab_server.url}{LAB}")
    host = page.evaluate(HOST)
    for _ in range(40):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.name") == "command":
            break
    page.keyboard.type("dme")
    page.keyboard.press("Tab")
    expect(field(page)).to_have_value("dmesg ")
    page.keyboard.type("| grep -i xid")
    page.keyboard.press("Enter")
    expect(page.locator(".log .entry pre")).to_contain_text("GPU has fallen off the bus.")
    expect(field(page)).to_be_focused()
    expect(field(page)).to_have_value("")

    page.keyboard.type(f"scontrol update nodename={host} state=drain reason='Xid 79'")
    page.keyboard.press("Enter")
    expect(page.get_by_role("status").filter(has_text="Goal reached")).to_be_visible()
    page.keyboard.press("ArrowUp")
    page.keyboard.press("ArrowUp")
    expect(field(page)).to_have_value("dmesg | grep -i xid")
    page.keyboard.press("ArrowDown")
    expect(field(page)).to_have_value(
        f"scontrol update nodename={host} state=drain reason='Xid 79'"
    )
    page.keyboard.press("ArrowDown")
    expect(field(page)).to_have_value("")

    page.keyboard.press("Tab")  # nothing to complete: the focus goes on
    expect(page.get_by_role("button", name="Run")).to_be_focused()
    page.keyboard.press("Tab")
    page.keyboard.press("Space")
    right = page.get_by_role("radio", name="The GPU fell off the bus")
    for _ in range(3):
        if right.is_checked():
            break
        page.keyboard.press("ArrowDown")
    page.keyboard.press("3")
    expect(page.locator(".verdict")).to_contain_text("Right.")
    expect(page.locator(".way li")).to_have_count(2)


def test_the_live_region_stays_and_clear_empties_it_alone(page: Page, lab_server: Server) -> None:
    page.goto(f"{lab_server.url}{LAB}")
    page.evaluate("window.region = document.querySelector('[role=log]')")
    run(page, "sinfo")
    run(page, "nvidia-sm")

    assert page.evaluate("window.region === document.querySelector('[role=log]')")
    expect(page.locator(".refused")).to_contain_text("Did you mean nvidia-smi?")
    field(page).fill("clear")
    field(page).press("Enter")
    expect(page.locator(".log .entry")).to_have_count(0)
    run(page, "history")
    expect(page.locator(".log pre")).to_contain_text("1  sinfo")


def test_it_works_without_a_script(plain_page: Page, lab_server: Server) -> None:
    plain_page.goto(f"{lab_server.url}{LAB}")
    for command in ("reboot", "dmesg | tail -2"):
        field(plain_page).fill(command)
        field(plain_page).press("Enter")

    expect(plain_page.locator(".log .entry")).to_have_count(2)
    expect(plain_page.locator(".harm")).to_contain_text("It would have erased the evidence")
    expect(plain_page.locator(".log code").first).to_be_visible()
    expect(plain_page.locator(".log pre").last).to_be_in_viewport()
    plain_page.get_by_role("radio", name="The GPU fell off the bus").check(force=True)
    plain_page.get_by_role("button", name="Think so").click()
    expect(plain_page.locator(".verdict")).to_contain_text("50%")
    expect(plain_page.locator(".way li")).to_have_count(2)


@pytest.mark.drawn
def test_it_is_accessible_and_fits_the_screen(page: Page, lab_server: Server) -> None:
    # On a phone less is hidden and all is closer together.
    for width in (390, 1280) if FACTOR > 1 else (390,):
        page.set_viewport_size({"width": width, "height": 800})
        page.goto(f"{lab_server.url}{LAB}")
        for command in ("nvidia-smi -L", "nope", "reboot"):
            run(page, command)
        assert violations(page) == []
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        page.get_by_role("radio").first.check(force=True)
        page.get_by_role("button", name="Think so").click()
        page.locator(".way").wait_for()
        page.get_by_text("What you typed").click()
        assert violations(page) == []
        assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_field_and_last_output_are_in_sight_over_a_keyboard_on_the_screen(
    page: Page, lab_server: Server
) -> None:
    page.set_viewport_size({"width": 390, "height": 420})
    page.goto(f"{lab_server.url}{LAB}")
    for command in ("dmesg", "sinfo", "nvidia-smi -L"):
        run(page, command)

    expect(field(page)).to_be_in_viewport()
    expect(page.locator(".log .entry pre").last).to_be_in_viewport()


@pytest.mark.drill
def test_two_tabs_do_not_know_of_each_other(page: Page, lab_server: Server) -> None:
    other = page.context.new_page()
    for tab in (page, other):
        tab.goto(f"{lab_server.url}{LAB}")
    run(page, "dmesg")
    run(other, "sinfo")

    expect(page.locator("[name=ran]")).to_have_count(1)
    expect(other.locator("[name=ran]")).to_have_value("sinfo")
    expect(other.locator(".typed")).to_contain_text("Goal: 0 of 2")
    for tab, line in ((page, "dmesg"), (other, "sinfo")):
        tab.get_by_role("radio", name="The GPU fell off the bus").check(force=True)
        tab.get_by_role("button", name="Think so").click()
        expect(tab.locator(".verdict")).to_be_visible()
        expect(tab.locator("details .line code")).to_have_text([line])


def test_without_a_network_the_line_is_kept_and_the_page_says_so(
    page: Page, lab_server: Server
) -> None:
    page.goto(f"{lab_server.url}{LAB}")
    run(page, "sinfo")
    disconnect(page)
    field(page).fill("dmesg")
    field(page).press("Enter")

    expect(page.get_by_role("alert")).to_contain_text("No answer from the server.")
    expect(field(page)).to_have_value("dmesg")
    page.context.set_offline(False)
    page.get_by_role("button", name="Try now").click()
    expect(page.locator(".log .entry")).to_have_count(2)
    expect(page.get_by_role("alert")).to_have_count(0)


@pytest.mark.drill
def test_without_a_network_the_diagnosis_is_kept_and_sent_later(
    page: Page, lab_server: Server
) -> None:
    page.goto(f"{lab_server.url}{LAB}")
    run(page, "sinfo")
    disconnect(page)
    right = page.get_by_role("radio", name="The GPU fell off the bus")
    right.check(force=True)
    page.get_by_role("button", name="Think so").click()

    expect(page.get_by_role("alert")).to_contain_text("No answer from the server.")
    expect(right).to_be_checked()
    page.context.set_offline(False)
    page.get_by_role("button", name="Try now").click()
    expect(page.locator(".verdict")).to_be_visible()
    expect(page.locator("details .line code")).to_have_text(["sinfo"])


@pytest.mark.drill
def test_a_screen_reader_finds_each_part_by_its_role(page: Page, lab_server: Server) -> None:
    page.goto(f"{lab_server.url}{LAB}")
    host = page.evaluate(HOST)
    terminal = page.get_by_role("region", name=f"Terminal of {host}", exact=True)
    run(page, "sinfo")

    expect(terminal.get_by_role("textbox", name="Command")).to_be_focused()
    expect(terminal.get_by_role("log")).to_contain_text("You typed sinfo")
    expect(terminal.get_by_role("status").filter(has_text="Goal: 0 of 2")).to_be_visible()
    expect(page.get_by_role("radiogroup", name="Diagnosis").get_by_role("radio")).to_have_count(3)


@pytest.mark.drill
def test_its_page_leads_to_it(page: Page, lab_server: Server) -> None:
    page.goto(f"{lab_server.url}/concepts/kv-cache")
    page.get_by_role("link", name=re.compile(r"^A job on dgx-\w+ died")).click()

    expect(field(page)).to_be_visible()


def test_tab_lists_what_fits_and_never_holds_the_focus(page: Page, lab_server: Server) -> None:
    page.goto(f"{lab_server.url}{LAB}")
    field(page).press_sequentially("s")
    page.keyboard.press("Tab")
    expect(page.locator("[data-found]")).to_have_text("scontrol  shutdown  sinfo")
    expect(field(page)).to_be_focused()
    page.keyboard.press("Tab")
    expect(page.get_by_role("button", name="Run")).to_be_focused()


def test_no_line_beyond_the_last_one_is_sent(page: Page, lab_server: Server) -> None:
    lines = "&ran=sinfo" * 39
    page.goto(f"{lab_server.url}{LAB}?seed=0{lines}")
    run(page, "sinfo")
    field(page).fill("dmesg")
    field(page).press("Enter")

    expect(page.get_by_role("status").filter(has_text="No more than 40")).to_be_visible()
    expect(field(page)).to_have_value("dmesg")
    expect(page.locator(".log .entry")).to_have_count(40)
