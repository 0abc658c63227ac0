"""The frame of every page in a real browser: theme, keys, a server that is gone."""

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import by_hand
from tests.browser.server import Server

pytestmark = pytest.mark.browser
PAGE = "/concepts/training-versus-inference"


def test_the_theme_is_switched_and_stays(page: Page, server: Server) -> None:
    page.goto(server.url)
    page.get_by_role("button", name="Switch between light and dark").click()
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    page.goto(server.url + "/settings")

    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    expect(page.get_by_label("Colors")).to_have_value("dark")


def test_keys_lead_to_the_parts_of_the_app(page: Page, server: Server) -> None:
    page.goto(server.url)
    page.keyboard.press("g")
    page.keyboard.press("c")
    expect(page.get_by_role("heading", level=1)).to_have_text("Course")
    page.wait_for_load_state()  # the keys come with the scripts

    page.keyboard.press("?")

    expect(page.get_by_role("dialog", name="Keyboard shortcuts")).to_be_visible()


def test_the_shortcuts_are_read_to_their_end_by_keyboard(page: Page, server: Server) -> None:
    page.set_viewport_size({"width": 1280, "height": 500})
    page.goto(server.url + PAGE)
    keymap = page.get_by_role("dialog", name="Keyboard shortcuts")
    page.keyboard.press("?")
    expect(keymap.get_by_role("button", name="Close")).to_be_focused()
    expect(keymap.get_by_role("heading", name="Keyboard shortcuts")).to_be_visible()
    expect(keymap).to_have_attribute("aria-labelledby", "keys-title")
    last = keymap.get_by_role("link", name="settings")
    expect(last).not_to_be_in_viewport()

    page.keyboard.press("End")
    expect(last).to_be_in_viewport()
    assert page.evaluate("scrollY") == 0
    page.keyboard.press("Tab")
    expect(last).to_be_focused()
    page.keyboard.press("?")
    expect(keymap).to_be_hidden()
    page.get_by_role("button", name="Keyboard shortcuts").click()
    expect(keymap).to_be_visible()
    page.keyboard.press("Escape")
    expect(keymap).to_be_hidden()


def test_no_key_acts_on_the_page_behind_a_dialog(page: Page, server: Server) -> None:
    page.goto(server.url + PAGE)
    page.keyboard.press("?")
    keymap = page.get_by_role("dialog", name="Keyboard shortcuts")
    expect(keymap).to_be_visible()

    for key in ("j", "j", "k", "g", "c", "/", "n"):
        page.keyboard.press(key)

    expect(keymap.get_by_role("button", name="Close")).to_be_focused()
    assert page.evaluate("scrollY") == 0
    assert page.locator(".prose > h2[tabindex]").count() == 0
    assert page.url == server.url + PAGE
    page.keyboard.press("Escape")
    page.keyboard.press("/")
    page.locator("#search").get_by_role("button", name="Close").focus()
    page.keyboard.press("?")
    page.keyboard.press("j")
    expect(page.locator("#search")).to_be_visible()
    expect(keymap).to_be_hidden()
    assert page.locator(".prose > h2[tabindex]").count() == 0


def test_the_first_tab_shows_a_small_link_to_the_content(page: Page, server: Server) -> None:
    page.goto(server.url)

    page.keyboard.press("Tab")

    link = page.get_by_role("link", name="Skip to content")
    expect(link).to_be_focused()
    box = link.bounding_box()
    assert box
    assert box["height"] < 60
    assert box["width"] < 200


def test_keys_are_only_letters_while_one_types(page: Page, server: Server) -> None:
    page.goto(server.url + "/settings")

    page.get_by_label("Name", exact=True).press_sequentially("gc?")

    expect(page.get_by_label("Name", exact=True)).to_have_value("gc?")
    assert page.url.endswith("/settings")


def test_keys_can_be_turned_off(page: Page, server: Server) -> None:
    page.goto(server.url + "/settings")
    page.get_by_label("Keyboard shortcuts in this browser").select_option("Off")
    page.get_by_role("button", name="Save", exact=True).click()

    page.keyboard.press("?")

    expect(page.get_by_role("dialog", name="Keyboard shortcuts")).to_be_hidden()


def test_j_and_k_go_from_section_to_section(page: Page, server: Server) -> None:
    page.goto(server.url + PAGE)
    heads = page.locator(".prose > h2")

    page.keyboard.press("j")
    expect(heads.nth(0)).to_be_focused()
    page.keyboard.press("j")
    expect(heads.nth(1)).to_be_focused()
    page.keyboard.press("k")
    expect(heads.nth(0)).to_be_focused()


def test_what_was_read_is_marked_while_reading(page: Page, server: Server) -> None:
    # Who reads stays on the page for some seconds after the end of a section.
    page.add_init_script(
        """const own = setTimeout;
        window.setTimeout = (call, ms = 0, ...rest) =>
          own(call, ms >= 2000 ? 20 : ms, ...rest);"""
    )
    page.goto(server.url + PAGE)

    page.locator(".prose > h2").nth(1).scroll_into_view_if_needed()

    read = page.get_by_role("navigation", name="On this page", exact=True)
    expect(read.get_by_text(", read").first).to_be_attached()


def test_a_term_explains_itself(page: Page, server: Server) -> None:
    page.goto(server.url + PAGE)
    term = page.locator("a.term").first
    if not page.evaluate("'interestForElement' in HTMLAnchorElement.prototype"):
        pytest.skip("this browser knows no interest invokers; the term is a link")

    term.hover()

    expect(page.locator(".pop:popover-open")).to_be_visible()


@pytest.mark.drill  # stops the server; test_calculators.py loses one answer
def test_without_an_answer_the_inputs_stay_and_the_question_is_asked_again(
    page: Page, server: Server
) -> None:
    by_hand(page).goto(server.url + PAGE)
    block = page.get_by_role("region", name="Inference memory")
    before = block.locator(".verdict").inner_text()
    server.stop()

    block.get_by_role("textbox", name="Context").fill("32768")

    message = block.get_by_role("alert")
    expect(message).to_contain_text("No answer from the server.")
    expect(block.get_by_text("Trying again in")).to_be_visible()
    expect(block.get_by_role("textbox", name="Context")).to_have_value("32768")
    expect(block.locator(".verdict")).to_have_text(before)

    server.start()
    block.get_by_role("button", name="Try now").click()

    expect(message).to_have_count(0)
    expect(block.locator(".verdict")).not_to_have_text(before)


def test_a_server_that_is_busy_is_heard_and_the_answer_stays(page: Page, server: Server) -> None:
    page.goto(f"{server.url}/concepts/training-memory")
    asked = page.locator("#q-tm-page-seven")
    page.route(
        "**/attempts",
        lambda route: route.fulfill(
            status=503,
            headers={"x-request-id": "0a1b2c3d", "hx-reswap": "afterbegin show:top"},
            body='<p class="problems" role="alert">The database is busy.</p>',
        ),
    )
    for _ in range(2):
        asked.get_by_label("Your answer").fill("28")
        page.keyboard.press("Enter")

        expect(asked.get_by_role("alert")).to_contain_text("The database is busy.")
        expect(asked.get_by_role("alert")).to_contain_text("Your inputs are kept.")
        expect(asked.get_by_label("Your answer")).to_have_value("28")
        expect(page.get_by_text("No answer from the server.")).to_have_count(0)

    page.unroute("**/attempts")
    page.keyboard.press("Enter")
    expect(asked.locator(".verdict")).to_be_visible()


def test_who_pressed_a_button_that_is_replaced_goes_on_in_its_place(
    page: Page, server: Server
) -> None:
    page.goto(f"{server.url}/concepts/training-memory")
    asked = page.locator("#q-tm-page-seven")
    asked.get_by_label("Your answer").fill("28")
    page.keyboard.press("Enter")
    expect(asked.locator(".verdict")).to_be_focused()

    asked.get_by_role("link", name="Try again").focus()
    page.keyboard.press("Enter")

    expect(asked.get_by_label("Your answer")).to_be_focused()


def test_who_asks_for_a_hint_is_led_to_it(page: Page, server: Server) -> None:
    page.goto(f"{server.url}/concepts/training-memory")
    asked = page.locator("#q-tm-page-seven")

    asked.get_by_role("button", name="Hint").focus()
    page.keyboard.press("Enter")

    expect(asked.get_by_role("note").last).to_be_focused()
    expect(asked.get_by_role("note").last).to_contain_text("Hint")


@pytest.mark.drill
def test_a_wide_sheet_of_paper_takes_the_text_in_its_whole_column(
    page: Page, server: Server
) -> None:
    page.set_viewport_size({"width": 1280, "height": 900})
    page.goto(server.url + PAGE)
    text = page.locator(".prose > p").nth(1)
    shown = text.bounding_box()

    page.emulate_media(media="print")

    printed = text.bounding_box()
    assert shown
    assert printed
    assert printed["width"] >= shown["width"]


@pytest.mark.drill
def test_what_is_pressed_is_not_printed(page: Page, server: Server) -> None:
    page.goto(server.url + "/quiz")
    expect(page.locator("main .btn").first).to_be_visible()

    page.emulate_media(media="print")

    assert page.locator(".btn, .btns, .top").filter(visible=True).count() == 0


@pytest.mark.drill
def test_on_a_low_screen_nothing_stands_in_front_of_the_text(server: Server, page: Page) -> None:
    page.set_viewport_size({"width": 320, "height": 256})  # 1280 by 1024 at 400 %
    page.goto(f"{server.url}/concepts/training-versus-inference")
    page.evaluate("scrollTo(0, 800)")

    for part in (page.get_by_role("banner"), page.get_by_label("Main, at thumb")):
        assert part.evaluate("e => getComputedStyle(e).position") == "static"
        expect(part).not_to_be_in_viewport()
