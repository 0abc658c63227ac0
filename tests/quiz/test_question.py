"""GET /quiz/{topic}/{question}: what stands on the page before an answer."""

import re

import pytest
from sqlmodel import select

from app.database.tables import Attempt
from app.markup.model import RichText
from app.questions.question_form import excerpt_for_title
from tests.quiz.course import EditableLiveCourse

KINDS = ["single", "multiple", "true-false", "numeric", "short", "order", "match"]
FIELDS = ("answer", "place.", "pair.", "blank.", "choose.")
KINDS += ["cloze", "computed", "design"]


@pytest.mark.parametrize("kind", KINDS)
def test_every_type_can_be_answered_by_a_plain_form(client, form, kind: str) -> None:
    fields = form(client.get(f"/quiz/kv-cache/{kind}").text)

    assert fields.action == f"/quiz/kv-cache/{kind}/attempts"
    names = {*fields.values, *fields.options}
    assert any(n.startswith(FIELDS) for n in names)


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_on_the_page_tells_the_right_answer(client, kind: str) -> None:
    html = client.get(f"/quiz/kv-cache/{kind}").text
    # What is drawn by chance may hold the digits of any number.
    html = re.sub(r'name="(?:seed|token)" value="[^"]*"', "", html)

    for secret in (
        "The explanation.",
        "The common mistake.",
        "Why ",
        "First hint.",
        "You forgot V.",
        "In a node",
        "Never.",
        "1,120",
        "1120",
        "RoCE",
        "lossless",
        "all-reduce",
        "correct",
        "±",
    ):
        assert secret not in html, secret


@pytest.mark.parametrize("kind", ["single", "multiple", "true-false"])
def test_the_page_is_the_same_whichever_option_is_right(
    client, live_course: EditableLiveCourse, kind: str
) -> None:
    """Turning every key upside down changes nothing that is sent."""

    def page() -> str:
        html = client.get(f"/quiz/kv-cache/{kind}?seed=1&since=1&token=t").text
        return re.sub(r'name="token" value="[^"]*"', "", html)

    before = page()
    answer = live_course.get_current_course().questions[kind].answer
    options = tuple(
        type(o)(o.key, o.text, not o.right, o.feedback, o.pinned) for o in answer.options
    )
    live_course.edit(kind, answer=type(answer)(answer.kind, options, answer.shuffle))

    assert page() == before


def test_the_steps_are_not_listed_in_their_order(client, form) -> None:
    fields = form(client.get("/quiz/kv-cache/order").text)

    listed = [n.removeprefix("place.") for n in fields.values if n.startswith("place.")]
    right = ["zzzz", "yyyy", "xxxx", "wwww"]
    assert [key for key in listed if key in right] != right


def test_a_page_of_the_course_can_be_returned_to(client, form) -> None:
    address = "/quiz/kv-cache/single?context=page&back=/concepts/kv-cache%23q"
    sent = form(client.get(address).text)
    verdict = client.post(sent.action, data={**sent.values, "answer": "ghjk"})

    assert 'href="/concepts/kv-cache#q"' in client.get(verdict.headers["location"]).text


def test_without_scripts_the_main_button_leads_from_a_page_question_back_to_the_page(
    client, form
) -> None:
    address = "/quiz/kv-cache/single?context=page&back=/concepts/kv-cache%23q"
    sent = form(client.get(address).text)
    wrong = {**sent.values, "answer": "bcdf"}
    page = client.get(client.post(sent.action, data=wrong).headers["location"]).text
    fragment = client.post(sent.action, data=wrong, headers={"HX-Request": "true"}).text

    assert '<a class="btn main" href="/concepts/kv-cache#q"' in page
    assert 'href="/quiz/kv-cache/single?context=page&amp;back=/concepts/kv-cache%23q"' in page
    assert 'class="btn main"' not in fragment
    assert "Try again" in fragment


def test_every_control_has_a_name(client) -> None:
    html = client.get("/quiz/kv-cache/order").text + client.get("/quiz/kv-cache/match").text

    for control in re.findall(r"<select[^>]*>", html):
        assert "aria-label=" in control


def test_an_answer_is_sent_by_saying_how_sure_one_is(client) -> None:
    html = client.get("/quiz/kv-cache/single").text
    buttons = r'<button name="certainty" value="(\d)" data-key="(\d)">([\w ]+)'

    assert re.findall(buttons, html) == [
        ("1", "1", "Guess"),
        ("2", "2", "Think so"),
        ("3", "3", "Sure"),
    ]


def test_who_was_sure_and_wrong_is_told_so(client, form) -> None:
    sent = form(client.get("/quiz/kv-cache/single").text)
    wrong = {**sent.values, "answer": "bcdf", "certainty": "3"}
    verdict = client.post(sent.action, data=wrong, headers={"HX-Request": "true"}).text

    assert "Not right, and you were sure." in verdict


def test_not_knowing_is_no_mistake_and_shows_the_answer(client, form, session) -> None:
    sent = form(client.get("/quiz/kv-cache/single").text)
    data = {**sent.values, "unknown": "yes", "answer": "ghjk"}
    verdict = client.post(sent.action, data=data, headers={"HX-Request": "true"}).text

    assert "You did not know it." in verdict
    assert "Not right." not in verdict
    assert [a.score for a in session.exec(select(Attempt))] == [0.0]


def test_a_list_shows_the_numbers_that_the_question_asks(client) -> None:
    asked = re.search(r"How large is \d+ times 10 GB", client.get("/quiz/kv-cache/computed").text)
    assert asked
    assert asked[0] in client.get("/quiz/kv-cache").text


def test_a_choice_of_several_says_how_many_are_right(client, live_course, form) -> None:
    kind = "multiple"
    right = sum(
        option.right for option in live_course.get_current_course().questions[kind].answer.options
    )
    names = {2: "two", 3: "three"}

    page = client.get(f"/quiz/kv-cache/{kind}").text
    sent = form(page)
    headers = {"HX-Request": "true"}
    feedback = client.post(sent.action, data={**sent.values, "answer": "lmnp"}, headers=headers)

    assert page.count(f"(Choose {names[right]}.)") == 1
    assert feedback.text.count(f"(Choose {names[right]}.)") == 1


def test_an_excerpt_ends_with_the_question_above_an_output() -> None:
    stem = "What does this mean?\n| Memory | Pass |\n| PCIe | Fail |"
    assert excerpt_for_title(RichText(stem, stem)) == "What does this mean?"
