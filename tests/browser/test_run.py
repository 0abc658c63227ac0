"""A practice run by keys alone: two to answer, one to go on, and no page is loaded."""

import re

import pytest
from playwright.sync_api import Page, expect

from tests.browser.server import Server

pytestmark = pytest.mark.browser
COUNTS = {"two": 2, "three": 3}


def test_a_run_takes_a_letter_a_digit_and_enter(page: Page, server: Server) -> None:
    page.goto(server.url + "/quiz")
    page.get_by_role("button", name=re.compile("^Start the placement test")).first.click()
    expect(page).to_have_url(re.compile("/1$"))
    page.wait_for_load_state("domcontentloaded")  # the keys are read from then on
    page.evaluate("document.body.dataset.loaded = 'once'")

    # The draw is the learner's own, and some questions want several options.
    several = re.search(r"\(Choose (\w+)\.\)", page.locator(".stem").inner_text())
    for letter in "abc"[: COUNTS[several[1]] if several else 1]:
        page.keyboard.press(letter)
    page.keyboard.press("3")
    expect(page.locator(".verdict")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("/2$"))
    expect(page.locator(".stem")).to_be_focused()
    if page.locator(".numq").count():  # The draw is the learner's own; a 0 would be typed.
        page.locator("button[name=unknown]").press("Enter")
    else:
        page.keyboard.press("0")
    expect(page.locator(".verdict")).to_contain_text("You did not know it.")

    assert page.locator("body").get_attribute("data-loaded") == "once"
    expect(page.locator(".dots li > .i")).to_have_count(2)


def test_digits_go_into_the_field_of_a_number(page: Page, server: Server) -> None:
    page.goto(server.url + "/quiz/cluster-components/cluster-su-gpus")
    page.wait_for_load_state("domcontentloaded")

    page.keyboard.type("105")

    expect(page.get_by_label("Your answer")).to_have_value("105")
    expect(page.locator(".verdict")).to_have_count(0)


def test_where_a_digit_is_typed_no_button_shows_one(page: Page, server: Server) -> None:
    page.goto(server.url + "/quiz/cluster-components/cluster-su-gpus")
    page.wait_for_load_state("domcontentloaded")
    keys = page.locator(".sure3 kbd")
    expect(keys).to_have_count(3)
    expect(keys.first).to_be_hidden()  # the field is empty, so that a digit goes there

    page.keyboard.type("16")
    expect(keys.first).to_be_hidden()
    page.keyboard.press("3")
    expect(page.get_by_label("Your answer")).to_have_value("163")
    page.keyboard.press("Tab")
    expect(keys.last).to_be_visible()
    page.keyboard.press("3")

    expect(page.locator(".verdict")).to_be_visible()


def test_keys_that_answer_mean_the_question_at_hand_of_two_on_the_screen(
    page: Page, server: Server
) -> None:
    page.set_viewport_size({"width": 1280, "height": 20_000})
    page.goto(server.url + "/concepts/gpu-and-cpu")
    page.wait_for_load_state()
    choice, number = page.locator("#q-gvc-page-which"), page.locator("#q-gvc-page-cores")
    field = number.get_by_label("Your answer")
    expect(choice).to_be_in_viewport()
    expect(field).to_be_in_viewport()

    page.keyboard.press("b")
    page.keyboard.press("3")
    expect(choice.locator(".verdict")).to_be_focused()
    for key in ("3", "0", "Enter"):
        page.keyboard.press(key)
    expect(field).to_have_value("")

    choice.get_by_role("link", name=re.compile("^(Try|Answer it) again")).click()
    expect(choice.locator("[name=certainty]")).to_have_count(3)
    field.fill("7")
    number.get_by_role("button", name="Sure").focus()
    page.keyboard.press("0")
    page.keyboard.press("1")
    expect(number.locator(".verdict")).to_be_focused()
    page.keyboard.press("0")
    expect(choice.locator("[name=certainty]")).to_have_count(3)
    expect(page.locator(".question .msg")).to_have_count(0)


def test_the_keyboard_map_scrolls_in_a_low_window(page: Page, server: Server) -> None:
    page.set_viewport_size({"width": 1280, "height": 500})
    page.goto(server.url + "/quiz")
    page.wait_for_load_state("domcontentloaded")

    page.keyboard.press("?")

    box = page.locator("#keys").bounding_box()
    assert box
    assert box["y"] >= 0
    assert box["y"] + box["height"] <= 500


def test_keys_leave_a_question_alone_that_is_scrolled_away(page: Page, server: Server) -> None:
    page.goto(server.url + "/concepts/gpu-and-cpu")
    page.wait_for_load_state("domcontentloaded")
    page.locator("#sources").evaluate("e => scrollTo(0, document.body.scrollHeight)")
    expect(page.locator(".question").last).not_to_be_in_viewport()

    page.keyboard.press("a")
    page.keyboard.press("3")

    expect(page.locator(".question input:checked")).to_have_count(0)
    expect(page.locator(".verdict")).to_have_count(0)


def test_space_shows_the_answer_from_the_skip_link(page: Page, server: Server) -> None:
    page.goto(server.url + "/flashcards")
    page.wait_for_load_state("domcontentloaded")
    page.keyboard.press("Tab")
    expect(page.locator(".skip")).to_be_focused()

    page.keyboard.press(" ")

    expect(page.locator(".grades")).to_be_visible()


def test_a_page_is_read_and_the_new_cards_are_begun_by_key(page: Page, server: Server) -> None:
    page.goto(server.url)
    page.keyboard.press("c")
    expect(page).to_have_url(re.compile("/concepts/"))
    page.wait_for_load_state("domcontentloaded")

    page.keyboard.press("r")
    expect(page).to_have_url(f"{server.url}/")
    expect(page.get_by_role("link", name=re.compile("^Learn"))).to_have_count(1)
    page.wait_for_load_state("domcontentloaded")
    page.keyboard.press("l")
    expect(page).to_have_url(f"{server.url}/flashcards?task=new")


def test_a_question_with_a_drawing_shows_it_as_a_card_on_a_phone(
    page: Page, server: Server
) -> None:
    page.set_viewport_size({"width": 390, "height": 800})
    page.goto(server.url + "/quiz/dcgm/dcgm-pipeline-place")
    page.get_by_role("button", name=re.compile("^I don.t know")).click()
    expect(page.locator(".verdict")).to_contain_text("You did not know it.")

    page.goto(server.url + "/flashcards?card=q:dcgm-pipeline-place")
    expect(page.locator(".ask svg:visible")).to_have_count(1)


def test_the_question_stays_in_sight_while_its_long_answer_is_graded_on_a_phone(
    page: Page, server: Server
) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto(server.url + "/quiz/dcgm/dcgm-fleet")
    page.get_by_role("button", name=re.compile("^I don.t know")).click()
    expect(page.locator(".verdict")).to_contain_text("You did not know it.")
    page.goto(server.url + "/flashcards?card=q:dcgm-fleet")
    page.wait_for_load_state()

    page.get_by_role("button", name=re.compile("^Show the answer")).click()
    expect(page.locator("#answer")).to_be_in_viewport()

    tops = [
        page.locator(part).evaluate("e => e.getBoundingClientRect().top")
        for part in (".ask", "#answer")
    ]
    assert page.locator("header").first.evaluate("e => e.offsetHeight") < tops[0] < tops[1] < 600
