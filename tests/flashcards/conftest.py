"""The stage of the card tests: hand-held cards, and a learner who reviews."""

import re

import pytest
from fastapi.testclient import TestClient

from tests.flashcards.course import EditableLiveCourse, two_topics


@pytest.fixture
def live_course() -> EditableLiveCourse:
    """The course behind the app; `live_course.remove(…)` is an author at work."""
    return EditableLiveCourse(*two_topics())


def count_left(html: str) -> int:
    """The new, learning and due cards that the desk counts together."""
    kinds = re.findall(r"(?:New|Learning|Due) <b>(\d+)</b>", " ".join(html.split()))
    return sum(map(int, kinds))


class Hands:
    """Reviews through plain pages, as a person without JavaScript does."""

    def __init__(self, client: TestClient) -> None:
        self.client = client

    def card(self, address: str = "/flashcards") -> str:
        """The card on the desk; empty where there is none."""
        return shown(self.client.get(address).text)

    def grade(self, rating: int, address: str = "/flashcards") -> str:
        """Grade the card on the desk; returns it."""
        card = self.card(address)
        sign = "&" if "?" in address else "?"
        page = self.client.get(f"{address}{sign}show=1&card={card}").text
        body = {**fields(page, f"/flashcards/{card}/reviews"), "rating": rating}
        answer = self.client.post(f"/flashcards/{card}/reviews", data=body)
        assert answer.status_code == 303, answer.text
        return card

    def undo(self) -> str:
        """Press undo; returns the card that is on the desk then."""
        body = fields(self.client.get("/flashcards").text, "/flashcards/undo")
        answer = self.client.post("/flashcards/undo", data=body)
        return shown(self.client.get(answer.headers["location"]).text)


def shown(html: str) -> str:
    found = re.search(r'<div class="ask">Front of ([^<]+)</div>', html)
    return found[1] if found else ""


def fields(html: str, action: str) -> dict[str, str]:
    """The hidden fields of the form that is sent to `action`."""
    form = re.search(rf'action="{re.escape(action)}".*?</form>', html, re.DOTALL)
    assert form, f"there is no form for {action}"
    pairs = re.findall(r'<input type="hidden" name="([^"]+)" value="([^"]*)"', form[0])
    return dict(pairs)


@pytest.fixture
def hands(client: TestClient) -> Hands:
    return Hands(client)
