"""A question in the text of a page: what the page says of it follows each answer."""

import re

from fastapi.testclient import TestClient

from tests.quiz.conftest import Fields

PAGE = "/concepts/kv-cache"
ITEM = "k-page-twice"


def answer(client: TestClient, address: str, **changes: str) -> str:
    """Fill the form of the question and send it as htmx does; what comes back."""
    fields = Fields(f"{ITEM}/attempts")
    fields.feed(client.get(address).text)
    assert fields.action
    sent = {**fields.values, "answer": fields.options["answer"][0], **changes}
    return client.post(fields.action, data=sent).text


def mark(html: str) -> str:
    """What stands beside the question."""
    html = html.replace("\u00a0", " ").replace("\n", " ")
    beside = re.search(rf'id="tries-{ITEM}"[^>]*>([^<]*)<', html)
    return beside[1].strip() if beside else ""


def test_an_answer_renews_the_mark_of_its_question(htmx: TestClient) -> None:
    assert mark(htmx.get(PAGE).text) == "not answered yet"

    for tries in ("1 attempt", "2 attempts"):
        answered = answer(htmx, PAGE)

        assert answered.count('hx-swap-oob="true"') == 1
        last = "right" if "Right." in answered else "missed"
        assert mark(answered) == f"{tries}, {last} last time"
        assert mark(htmx.get(PAGE).text) == mark(answered)


def test_a_refused_answer_and_one_elsewhere_renew_nothing(htmx: TestClient) -> None:
    refused = answer(htmx, PAGE, answer="")
    alone = answer(htmx, f"/quiz/kv-cache/{ITEM}")

    assert "hx-swap-oob" not in refused + alone
