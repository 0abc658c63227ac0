"""The desk, Today and the plan say one number of the cards that a day still holds."""

import dataclasses
import datetime as dt
import re

import pytest
from fastapi.testclient import TestClient
from sqlmodel import Session, select

from app.database.tables import Learner, StudyDay
from tests.cards.known import known_card
from tests.conftest import Clock
from tests.flashcards.conftest import Hands
from tests.flashcards.course import HandLibrary, cards_of

TODAY = dt.date(2026, 6, 9)


@pytest.fixture
def live_library() -> HandLibrary:
    return HandLibrary(*cards_of("weights", 60), *cards_of("cache", 6))


@dataclasses.dataclass
class Student:
    """A learner at the desk, and what each page says of the cards left."""

    hands: Hands
    session: Session

    @property
    def row(self) -> Learner:
        return self.session.exec(select(Learner)).one()

    def aims(self, days: int) -> None:
        self.row.exam_day = (TODAY + dt.timedelta(days=days)).isoformat()
        self.changed()

    def spent(self, minutes: int) -> None:
        """So much of today's minutes was spent."""
        day = self.session.exec(select(StudyDay)).one()
        day.milliseconds = minutes * 60_000
        self.changed()

    def knows(self, number: int, due: int = -3) -> None:
        """A card begun long ago, and due in `due` days."""
        last, day = dt.date(2026, 5, 28), TODAY + dt.timedelta(days=due)
        card = f"weights-{number}"
        self.session.add(known_card(self.row.id or 0, card, last, day))
        self.changed()

    def changed(self) -> None:
        self.row.changes += 1
        self.session.commit()

    def page(self, address: str) -> str:
        html = self.hands.client.get(address).text.replace("\xa0", " ")
        return re.sub(r"\s+", " ", html)

    def on_the_desk(self) -> int:
        found = re.search(r"<b>(\d+)</b> left", self.page("/flashcards"))
        return int(found[1]) if found else 0

    def on_today(self) -> tuple[int, int]:
        """Cards and minutes of the step that leads to the desk."""
        found = re.search(
            r"(?:Review|Study|Learn) (\d+) (?:new )?cards?<.*?about (\d+) min",
            self.page("/").split("If you took it")[0],
        )
        return (int(found[1]), int(found[2])) if found else (0, 0)

    def on_the_plan(self) -> tuple[int, int]:
        """Cards and minutes of the first day."""
        row = re.search(r'"row">Today</th>(.*?)</tr>', self.page("/plan"))
        assert row
        *cards, minutes = (int(n) for n in re.findall(r'"n">(\d+)<', row[1]))
        return sum(cards), minutes


@pytest.fixture
def student(client: TestClient, session: Session) -> Student:
    client.post("/concepts/weights/readings", data={"section": "any"})
    hands = Hands(client)
    hands.grade(4, "/flashcards?card=cache-6")
    return Student(hands, session)


def test_due_and_new_cards_are_one_number(student: Student) -> None:
    for number in range(1, 19):
        student.knows(number)

    page = student.page("/")

    assert student.on_the_desk() == student.on_today()[0] == 18 + 11
    assert "18 reviews, 11 new cards" in page
    desk = student.page("/flashcards")
    assert "29</b> left" in desk
    assert "New <b>11</b>" in desk
    assert "Due <b>18</b>" in desk


def test_the_number_goes_down_with_the_desk(student: Student, clock: Clock) -> None:
    for number in range(1, 6):
        student.knows(number)
    before = student.on_today()[0]

    for rating in (3, 1, 4, 2, 3, 3, 1, 4):
        student.hands.grade(rating)
        clock.tick(minutes=1)
        cards, minutes = student.on_today()
        assert cards == student.on_the_desk()
        assert minutes > 0

    assert student.on_today()[0] < before
