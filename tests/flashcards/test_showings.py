"""One showing of a card is graded once, wherever it is shown again."""

import datetime as dt
import re

import pytest
from fastapi.testclient import TestClient
from sqlmodel import Session, select

from app.database.tables import CardStateRow, Review
from tests.conftest import Clock
from tests.flashcards.conftest import Hands, fields, shown

FIRST = "weights-1"
REVIEWS = f"/flashcards/{FIRST}/reviews"


def ratings(session: Session) -> list[int]:
    session.rollback()
    return [row.rating for row in session.exec(select(Review).order_by(Review.id))]


def front(client: TestClient) -> dict[str, str]:
    """The form that shows the answer, as a page of the history still has it."""
    return fields(client.get("/flashcards").text, "/flashcards#answer")


def graded(client: TestClient, form: dict[str, str], rating: int = 3):
    """Show the answer and grade it, from a page as it was."""
    page = client.get("/flashcards", params=form)
    body = fields(page.text, REVIEWS)
    return client.post(REVIEWS, data={**body, "rating": rating})


def test_a_front_of_the_history_shows_no_answer_of_a_graded_showing(
    client: TestClient, session: Session
) -> None:
    form = front(client)
    graded(client, form)

    again = client.get("/flashcards", params=form)

    assert again.status_code == 200
    assert "Already graded: Good." in again.text
    assert shown(again.text) == "weights-2"
    assert 'name="rating"' not in again.text
    assert ratings(session) == [3]


def test_with_htmx_the_desk_is_replaced_by_the_next_card(htmx: TestClient) -> None:
    form = front(htmx)
    htmx.post(REVIEWS, data={"token": form["token"], "rating": 3})

    again = htmx.get(f"/flashcards/{FIRST}/answer", params=form)

    assert again.status_code == 409
    assert again.headers["hx-retarget"] == "#desk"
    assert "Already graded: Good." in again.text
    assert shown(again.text) == "weights-2"
    assert "<html" not in again.text


def test_a_back_of_the_history_counts_once(client: TestClient, session: Session) -> None:
    page = client.get("/flashcards", params=front(client)).text
    body = fields(page, REVIEWS)
    client.post(REVIEWS, data={**body, "rating": 3})

    again = client.post(REVIEWS, data={**body, "rating": 1})

    assert again.status_code == 303
    assert "Already graded: Good." in client.get(again.headers["location"]).text
    assert ratings(session) == [3]
    assert [m.reviews for m in session.exec(select(CardStateRow))] == [1]


def test_with_htmx_a_second_grade_is_409_and_lays_out_the_next_card(
    htmx: TestClient, session: Session
) -> None:
    body = {"token": front(htmx)["token"], "rating": 4}
    htmx.post(REVIEWS, data=body)

    again = htmx.post(REVIEWS, data={**body, "rating": 2})

    assert again.status_code == 409
    assert "Already graded: Easy." in again.text
    assert shown(again.text) == "weights-2"
    assert ratings(session) == [4]


def test_it_stays_so_after_other_cards_days_and_an_undo(
    client: TestClient, hands: Hands, session: Session, clock: Clock
) -> None:
    form = front(client)
    graded(client, form)
    hands.grade(4)
    clock.tick(days=20)
    assert "Already graded: Good." in client.get("/flashcards", params=form).text
    graded_now = hands.grade(3)
    hands.undo()

    token = f"{graded_now}.1"
    again = client.get("/flashcards", params={"card": graded_now, "token": token})

    assert "Already graded: Good." in again.text
    assert ratings(session) == [3, 4, 3, 0]


def test_a_tab_that_shows_a_card_keeps_its_showing_through_the_answer(
    client: TestClient, session: Session
) -> None:
    """Graded in another tab between the front and the answer, or after the answer."""
    form = front(client)
    other = client.get("/flashcards", params=form).text
    graded(client, form)

    late = client.post(REVIEWS, data={**fields(other, REVIEWS), "rating": 1})

    assert late.headers["location"].endswith("graded=3")
    assert ratings(session) == [3]


def test_a_card_that_comes_back_is_another_showing(
    hands: Hands, session: Session, clock: Clock
) -> None:
    hands.grade(1)
    clock.tick(minutes=2)

    assert hands.grade(3) == FIRST
    assert ratings(session) == [1, 3]


def test_what_was_shown_before_an_act_is_graded_once(client: TestClient, session: Session) -> None:
    form = front(client)
    act = {"act": "bury", "token": form["token"]}
    client.post(f"/flashcards/{FIRST}/acts", data=act)

    graded(client, form)
    client.post(REVIEWS, data={"token": form["token"], "rating": 1})

    assert [rating for rating in ratings(session) if rating] == [3]


class TestLate:
    def late(self, client: TestClient, clock: Clock, rating: int, token: str):
        given = int((clock.now - dt.timedelta(minutes=5)).timestamp() * 1000)
        body = {"rating": rating, "token": token, "given": given}
        return client.post(REVIEWS, data=body)

    def showing(self, client: TestClient) -> str:
        page = client.get("/flashcards/offline").text
        return str(re.findall(r'data-showing="([^"]+)"', page)[0])

    @pytest.mark.parametrize(("rating", "status"), [(3, 204), (1, 409)])
    def test_a_showing_that_was_graded_with_a_network_counts_once(
        self,
        client: TestClient,
        session: Session,
        clock: Clock,
        rating: int,
        status: int,
    ) -> None:
        token = self.showing(client)
        graded(client, front(client))

        late = self.late(client, clock, rating, token)

        assert late.status_code == status
        assert ratings(session) == [3]
        if status == 409:
            assert "was graded Good on another page already" in late.text

    def test_a_showing_that_was_graded_without_a_network_counts_once(
        self, client: TestClient, session: Session, clock: Clock
    ) -> None:
        form = front(client)
        self.late(client, clock, 3, self.showing(client))

        again = client.get("/flashcards", params=form)

        assert "Already graded: Good." in again.text
        assert ratings(session) == [3]
