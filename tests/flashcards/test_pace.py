"""How many new cards a day holds for one who is quick, and for one who is slow."""

import re

import pytest
from sqlmodel import Session, select

from app.database.tables import Learner, Review
from tests.conftest import Clock
from tests.flashcards.conftest import Hands


def fresh(hands: Hands) -> int:
    found = re.search(r"New <b>(\d+)</b>", hands.client.get("/flashcards").text)
    return int(found[1]) if found else 0


@pytest.mark.parametrize(
    ("milliseconds", "token", "cards"),
    [
        (None, "", 5),
        (115_000, "", 3),
        (12_000, "", 9),
        (115_000, "file:", 5),
    ],
)
def test_new_cards_follow_what_the_log_shows(
    hands: Hands, session: Session, clock: Clock, milliseconds, token, cards
) -> None:
    hands.grade(4)
    learner = session.exec(select(Learner)).one()
    learner.minutes_a_day = 10
    session.commit()
    assert fresh(hands) == 4
    for n in range(30 if milliseconds else 0):
        row = {"learner_id": learner.id, "token": f"{token}{n}", "card": f"gone-{n}"}
        row |= {"rating": 3, "study_day": "2026-06-09", "at": n}
        session.add(Review(**row, milliseconds=milliseconds))
    session.commit()
    clock.tick(days=1)

    assert fresh(hands) == cards
