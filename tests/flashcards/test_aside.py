"""Cards put aside, leeches, and the deck."""

import re

from sqlmodel import select

from app.database.tables import CardStateRow, Suspension
from tests.conftest import Clock
from tests.flashcards.conftest import Hands, fields, shown


def put_aside(client, card: str, aside: str = "yes"):
    return client.post(f"/flashcards/{card}/suspension", data={"aside": aside})


def test_a_card_put_aside_is_not_asked(hands, client) -> None:
    put_aside(client, "weights-1")

    assert hands.card() == "weights-2"


def test_a_known_card_put_aside_keeps_what_was_learned(
    hands, client, session, clock: Clock
) -> None:
    hands.grade(4)
    before = session.exec(select(CardStateRow.due_day)).one()
    put_aside(client, "weights-1")
    clock.tick(days=8)
    assert hands.card() == "weights-2"

    put_aside(client, "weights-1", "no")

    assert hands.card() == "weights-1"
    session.rollback()
    assert session.exec(select(CardStateRow.due_day)).one() == before
    assert session.exec(select(Suspension)).all() == []


def test_every_card_is_one_step_from_the_top_of_the_deck(client) -> None:
    put_aside(client, "weights-3")

    top = client.get("/flashcards/deck?topic=weights").text.partition('class="deck"')[0]

    assert 'href="#own"' in top
    assert 'href="#aside"' in top
    assert "Weights (6)" in top
    assert "Cache (6)" in top


def test_all_cards_begin_with_how_many_there_are_and_list_none(hands, client) -> None:
    hands.grade(4)

    html = client.get("/flashcards/deck").text.replace("\xa0", " ")

    assert "The course has 12 cards. You have started 1 card, own ones" in html
    assert 'class="deck"' not in html
    assert "Weights (6)" in html


def test_putting_aside_twice_is_putting_aside(client, session) -> None:
    for _ in range(2):
        put_aside(client, "weights-1")

    assert len(session.exec(select(Suspension)).all()) == 1
    put_aside(client, "weights-1", "no")
    put_aside(client, "weights-1", "no")
    session.rollback()
    assert session.exec(select(CardStateRow)).all() == []


def test_the_deck_lists_every_card_with_its_state(hands, client) -> None:
    hands.grade(4)
    hands.grade(1)
    put_aside(client, "weights-3")

    html = client.get("/flashcards/deck?topic=weights").text.replace("\xa0", " ")

    assert "due June 17, 2026" in html
    assert "sooner for your exam" not in html
    assert "being learned" in html
    assert "Bring back" in html


def test_a_card_is_due_on_the_day_that_its_button_named(hands, client) -> None:
    client.post("/plan", data={"exam_day": "2026-06-25", "minutes_a_day": "30"})
    page = client.get("/flashcards?card=weights-1&show=1").text.replace("\xa0", " ")
    days = re.findall(r"<small>([^<]+)</small></button>", page)
    hands.grade(4, "/flashcards?card=weights-1")

    pages = "/flashcards/deck?topic=weights", "/flashcards/weights-1/more"
    texts = [client.get(page).text.replace("\xa0", " ") for page in pages]

    assert days[-1] == "5 days"
    assert all("due June 14, 2026" in text and "sooner" not in text for text in texts)


def test_taking_up_from_the_deck_returns_to_the_deck(client) -> None:
    put_aside(client, "cache-2")

    answer = client.post("/flashcards/cache-2/suspension", data={"aside": "no", "deck": "yes"})

    assert answer.headers["location"] == "/flashcards/deck?topic=cache"


def test_a_card_forgotten_eight_times_sends_the_learner_to_its_page(
    hands: Hands, client, clock: Clock
) -> None:
    at = "/flashcards?card=weights-1"
    hands.grade(4, at)
    for lapse in range(1, 9):
        clock.tick(days=30)
        page = client.get(f"{at}&show=1").text
        body = {**fields(page, "/flashcards/weights-1/reviews"), "rating": 1}
        answer = client.post("/flashcards/weights-1/reviews", data=body)
        assert ("leech" in answer.headers["location"]) == (lapse == 8)
        clock.tick(minutes=10)
        if lapse < 8:
            hands.grade(3, at)

    html = client.get(answer.headers["location"]).text
    assert "This card does not stick." in html
    assert 'href="/concepts/weights"' in html
    assert shown(html) == ""


def test_everything_put_aside_is_said(client, live_course) -> None:
    for card in live_course.get_current_course().cards:
        put_aside(client, card)

    assert "Every card of the course is put aside." in client.get("/flashcards").text
