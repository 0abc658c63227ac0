"""GET /quiz/{topic}/{question}: what stands on the page before an answer."""

import re

import pytest

from tests.quiz.course import HandLibrary

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
    client, course: HandLibrary, kind: str
) -> None:
    """Turning every key upside down changes nothing that is sent."""

    def page() -> str:
        html = client.get(f"/quiz/kv-cache/{kind}?seed=1&since=1&token=t").text
        return re.sub(r'name="token" value="[^"]*"', "", html)

    before = page()
    answer = course.current().questions[kind].answer
    options = tuple(
        type(o)(o.key, o.text, not o.right, o.feedback, o.pinned) for o in answer.options
    )
    course.edit(kind, answer=type(answer)(answer.kind, options, answer.shuffle))

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


def test_every_control_has_a_name(client) -> None:
    html = client.get("/quiz/kv-cache/order").text + client.get("/quiz/kv-cache/match").text

    for control in re.findall(r"<select[^>]*>", html):
        assert "aria-label=" in control


def test_what_the_levels_of_certainty_mean_stands_beside_them(client) -> None:
    html = client.get("/quiz/kv-cache/single").text
    level = r'name="certainty" value="(\d)".*?<span>(.*?)</span>'
    said = re.findall(level, html, re.DOTALL)

    assert [(n, re.sub("<[^>]+>", "", words)) for n, words in said] == [
        ("1", "Guess under 67%"),
        ("2", "Think so 67 to 79%"),
        ("3", "Sure 80% or more"),
    ]
