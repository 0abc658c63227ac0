"""Steps to put in order, as a paper shows them: open until somebody orders them."""

import json

import pytest
from fastapi.testclient import TestClient
from sqlmodel import Session, select

from app.content.course import Course
from app.database.tables import Attempt, Sitting
from app.questions.model import draw_variant
from app.questions.types.ordering import OrderSpec
from tests.conftest import Clock
from tests.exams.sitting import begin, finish, save, shown


@pytest.fixture
def ordered(rosa: TestClient, course: Course, session: Session):
    """A running paper that asks for an order: its address, and the number there."""

    def found() -> tuple[str, int]:
        while True:  # papers are drawn by chance, and this bank is small
            sitting = begin(rosa)
            session.rollback()
            newest = select(Sitting.paper).order_by(Sitting.id.desc())  # type: ignore[union-attr]
            for number, item, _, seed, _ in json.loads(session.exec(newest).first()):
                if isinstance(draw_variant(course.questions[item], seed).answer, OrderSpec):
                    return sitting, number
            finish(rosa, sitting)

    return found()


def places(fields: dict[str, str]) -> dict[str, str]:
    return {name: v for name, v in fields.items() if name.startswith("place.")}


def turned(fields: dict[str, str]) -> dict[str, str]:
    """The same form with its first two steps in each other's place."""
    one, two = list(places(fields))[:2]
    return {**fields, one: fields[two], two: fields[one]}


def state(client: TestClient, sitting: str, number: int) -> str:
    page = client.get(f"{sitting}/review").text
    rows = page.partition(f'<li value="{number}"')[2]
    return "answered" if '"small quiet">answered' in rows.split("</li>")[0] else "open"


def test_an_order_that_nobody_touched_is_left_open(rosa, ordered, session) -> None:
    sitting, number = ordered
    save(rosa, sitting, number, **shown(rosa, sitting, number), go="next", flag="yes")

    assert state(rosa, sitting, number) == "open"
    other = 1 if number > 1 else 2
    palette = rosa.get(f"{sitting}/questions/{other}").text
    assert f"{number}, unanswered, flagged" in palette
    assert "answered 0" in palette
    finish(rosa, sitting)
    assert session.exec(select(Attempt)).all() == []


def test_a_changed_order_is_the_answer(rosa, ordered) -> None:
    sitting, number = ordered
    sent = turned(shown(rosa, sitting, number))

    save(rosa, sitting, number, **sent, go="next")

    assert state(rosa, sitting, number) == "answered"
    again = shown(rosa, sitting, number)
    assert places(again) == places(sent)
    assert again["settled"] == "yes"


@pytest.mark.parametrize("settled", ["", "no"])
def test_a_step_moved_by_its_button_is_an_answer(rosa, ordered, settled) -> None:
    sitting, number = ordered
    sent = {**shown(rosa, sitting, number), "settled": settled}
    first = next(iter(places(sent))).removeprefix("place.")

    save(rosa, sitting, number, **sent, move=f"{first}:up")
    assert state(rosa, sitting, number) == "open"
    save(rosa, sitting, number, **sent, move=f"{first}:down")

    assert state(rosa, sitting, number) == "answered"


def test_who_finds_the_shown_order_right_can_say_so(rosa, ordered) -> None:
    sitting, number = ordered
    sent = shown(rosa, sitting, number)

    save(rosa, sitting, number, **{**sent, "settled": ["", "yes"]})

    assert state(rosa, sitting, number) == "answered"
    assert places(shown(rosa, sitting, number)) == places(sent)


def test_an_order_put_back_as_it_was_stays_the_answer(rosa, ordered) -> None:
    sitting, number = ordered
    save(rosa, sitting, number, **turned(shown(rosa, sitting, number)))

    save(rosa, sitting, number, **turned(shown(rosa, sitting, number)))

    assert state(rosa, sitting, number) == "answered"


def test_an_order_is_taken_back_by_its_tick(rosa, ordered, clock: Clock) -> None:
    sitting, number = ordered
    save(rosa, sitting, number, **turned(shown(rosa, sitting, number)))
    clock.tick(seconds=5)
    sent = {**shown(rosa, sitting, number), "settled": "no"}

    save(rosa, sitting, number, **sent)

    assert state(rosa, sitting, number) == "open"
