"""The desk with an exam ahead: what comes first, what waits, when new cards stop."""

import collections
import datetime as dt
import re

import pytest
from fastapi import FastAPI
from sqlalchemy import update
from sqlmodel import Session, select

from app.database.tables import CardStateRow, Learner
from app.study_plan import todays_cards
from app.study_plan.todays_cards import ExamGoal, find_planned
from tests.cards.known import known_card
from tests.conftest import Clock, visit
from tests.flashcards.conftest import Hands, fields, shown
from tests.flashcards.course import HandLibrary, cards_of

TODAY = dt.date(2026, 6, 9)
MANY = 40


@pytest.fixture
def live_library() -> HandLibrary:
    return HandLibrary(*cards_of("weights", MANY), *cards_of("cache", 6))


class Student:
    """A learner whose memory a test writes directly."""

    def __init__(self, hands: Hands, session: Session) -> None:
        self.hands = hands
        hands.grade(4, "/flashcards?card=cache-6")
        self.session = session
        self.row = session.exec(select(Learner)).one()

    def aims(self, days: int, minutes: int = 30) -> None:
        self.row.exam_day = (TODAY + dt.timedelta(days=days)).isoformat()
        self.row.minutes_a_day = minutes
        self.row.changes += 1
        self.session.commit()

    def knows(self, number: int, stability: float, seen: int, due: int) -> None:
        """A card begun, last `seen` days ago and due in `due` days."""
        last, day = (TODAY + dt.timedelta(days=n) for n in (-seen, due))
        card = f"weights-{number}"
        self.session.add(known_card(self.row.id or 0, card, last, day, stability=stability))
        self.row.changes += 1
        self.session.commit()

    def cards(self, most: int = 60) -> list[str]:
        """The cards of the day in their order, each graded easy."""
        seen: list[str] = []
        while (card := self.hands.card()) and len(seen) < most:
            seen.append(card)
            self.hands.grade(4)
        return seen

    def page(self) -> str:
        html = self.hands.client.get("/flashcards").text.replace("\xa0", " ")
        return re.sub(r"\s+", " ", html)


@pytest.fixture
def student(hands: Hands, session: Session) -> Student:
    return Student(hands, session)


def test_what_gains_most_on_the_day_comes_first(student: Student) -> None:
    student.knows(1, stability=300, seen=200, due=-1)  # still known then
    student.knows(2, stability=9, seen=12, due=-3)  # half forgotten
    student.knows(3, stability=30, seen=33, due=-3)
    student.aims(30)

    assert student.cards()[:3] == ["weights-2", "weights-3", "weights-1"]


def test_without_an_exam_the_most_faded_comes_first(student: Student) -> None:
    student.knows(1, stability=1, seen=200, due=-190)
    student.knows(2, stability=9, seen=12, due=-3)

    assert student.cards(2) == ["weights-1", "weights-2"]


def test_a_past_exam_day_plans_nothing(student: Student) -> None:
    student.knows(1, stability=1, seen=200, due=-190)
    student.aims(-1, minutes=5)

    assert student.hands.card() == "weights-1"
    assert "cards are done" not in student.page()


def test_steps_of_minutes_come_before_the_plan(student: Student, clock: Clock) -> None:
    for number in range(1, 4):
        student.knows(number, stability=9, seen=12, due=-3)
    student.aims(30)
    lapsed = student.hands.grade(1)
    clock.tick(minutes=11)

    assert student.hands.card() == lapsed


def test_new_cards_come_after_and_at_an_even_pace(student: Student) -> None:
    student.knows(1, stability=9, seen=12, due=-3)
    student.aims(24)

    seen = student.cards()

    # 45 cards are unbegun but for the one that was graded before; 23 days are left
    # before the last one.
    assert seen[0] == "weights-1"
    assert len(seen) == 2
    assert "cards are done" in student.page()
    assert "More come tomorrow" in student.page()
    assert "You could learn 5 new cards" in student.page()


def test_in_the_last_days_every_card_is_seen_though_none_is_due(
    student: Student,
) -> None:
    for number in range(1, 13):
        student.knows(number, stability=90, seen=3, due=50)
    student.aims(1, minutes=120)  # enough for the new cards too

    seen = student.cards(12)

    assert sorted(seen[:12]) == sorted(f"weights-{n}" for n in range(1, 13))


def test_on_the_eve_new_cards_come_before_those_that_are_known(
    student: Student,
) -> None:
    for number in range(1, 13):
        student.knows(number, stability=90, seen=3, due=50)
    student.aims(1, minutes=10)  # for cards: five, where all would take 40

    assert not set(student.cards(5)) & {f"weights-{n}" for n in range(1, 13)}
    assert "seen once more" not in student.page()


def test_when_the_minutes_are_for_those_begun_new_cards_stop_and_it_is_said(
    student: Student,
) -> None:
    for number in range(1, 36):
        student.knows(number, stability=2, seen=9, due=-6)
    student.aims(1, minutes=5)  # half of them for cards

    seen = student.cards()

    assert 8 < len(seen) < 20
    assert all(int(card.split("-")[1]) < 36 for card in seen)
    page = student.page()
    assert "No more new cards are started" in page
    assert "10 stay unstarted" in page
    assert "You could learn" not in page
    assert "There is not enough time to review every card" in page
    waits = r"\d+ more cards are due; the plan has no time for (them|most of them) before"
    assert re.search(waits, page), page


def test_no_button_names_a_day_after_the_exam(student: Student) -> None:
    student.knows(1, stability=200, seen=190, due=-1)
    student.aims(9)

    page = student.hands.client.get("/flashcards?card=weights-1&show=1").text
    intervals = re.findall(r"<small>([^<]+)</small>", page.replace("\xa0", " "))

    assert intervals == ["10 min", "8 days", "8 days", "8 days"]


def test_the_deck_names_no_day_after_the_exam_while_it_lies_ahead(
    student: Student, clock: Clock
) -> None:
    student.knows(1, stability=200, seen=3, due=190)
    student.aims(9)

    deck = "/flashcards/deck?topic=weights"
    page = student.hands.client.get(deck).text.replace("\xa0", " ")
    assert "once more before your exam" in page
    assert "due December" not in page

    student.aims(9, minutes=5)  # too little for all cards: no look before is promised

    page = student.hands.client.get(deck).text
    assert "due after your exam" in page
    assert "once more before your exam" not in page

    clock.tick(days=10)
    page = student.hands.client.get(deck).text.replace("\xa0", " ")
    assert "due December 16, 2026" in page


@pytest.mark.parametrize(
    ("rating", "days"), [(4, 12), (1, 1)], ids=["due", "steps left from before"]
)
def test_the_plan_stays_as_the_day_goes_on_and_after_a_restart(
    student: Student,
    session: Session,
    course: HandLibrary,
    clock: Clock,
    rating: int,
    days: int,
) -> None:
    for _ in range(6):
        student.hands.grade(rating)
    session.rollback()
    clock.tick(days=days)
    library, learner = course.current(), student.row.id or 0
    day = TODAY + dt.timedelta(days=days)
    aim = ExamGoal(day + dt.timedelta(days=20), 240.0)
    morning = find_planned(session, learner, library, day, aim)

    graded = {student.hands.grade(3) for _ in range(4)}
    session.rollback()  # or it goes on reading what it saw this morning
    noon = find_planned(session, learner, library, day, aim)

    assert noon == morning
    assert graded <= {slot.card for slot in morning.looks}


def test_a_card_put_aside_is_passed_over(student: Student) -> None:
    for number in (1, 2):
        student.knows(number, stability=9, seen=12 + number, due=-3)
    student.aims(30)
    first = student.hands.card()
    body = {"aside": "true"}
    student.hands.client.post(f"/flashcards/{first}/suspension", data=body)

    assert student.hands.card() in {"weights-1", "weights-2"} - {first}


def test_a_step_left_from_before_does_not_wait(
    student: Student, session: Session, course: HandLibrary
) -> None:
    for number in range(1, 5):
        student.knows(number, stability=9, seen=1, due=0)
    session.execute(update(CardStateRow).values(state="learning", step=0))
    session.commit()
    aim, learner = ExamGoal(TODAY + dt.timedelta(days=20), 10.0), student.row.id or 0

    plan = find_planned(session, learner, course.current(), TODAY, aim)

    assert [slot.card for slot in plan.looks] == [f"weights-{n}" for n in range(1, 5)]
    assert plan.over == 0


def test_a_card_put_aside_is_no_longer_counted(student: Student) -> None:
    def left() -> int:
        found = re.search(r"<b>(\d+)</b> left", student.page())
        return int(found[1]) if found else 0

    for number in (1, 2, 3):
        student.knows(number, stability=9, seen=12 + number, due=-3)
    student.aims(30)
    before, first = left(), student.hands.card()
    address = f"/flashcards/{first}/suspension"

    student.hands.client.post(address, data={"aside": "yes"})
    assert left() == before - 1

    student.hands.client.post(address, data={"aside": "no"})
    assert left() == before


def test_one_topic_alone_follows_the_plan_too(student: Student) -> None:
    student.knows(1, stability=9, seen=12, due=-3)
    student.aims(24)

    assert student.hands.card("/flashcards?topic=weights") == "weights-1"
    assert student.hands.card("/flashcards?topic=cache") == "cache-1"


def test_a_card_answered_yesterday_and_today_is_planned_from_yesterday(
    student: Student, session: Session, course: HandLibrary, clock: Clock
) -> None:
    student.aims(40)
    for _ in range(2):
        student.hands.grade(3)
        clock.tick(minutes=11)
    clock.tick(days=2)
    day = TODAY + dt.timedelta(days=2)
    aim = ExamGoal(TODAY + dt.timedelta(days=40), 900.0)
    library, learner = course.current(), student.row.id or 0
    morning = find_planned(session, learner, library, day, aim)
    session.rollback()

    student.hands.grade(1)
    noon = find_planned(session, learner, library, day, aim)

    assert noon == morning


def test_the_cards_for_offline_are_those_of_the_plan(student: Student) -> None:
    for number in range(1, 11):
        student.knows(number, stability=90, seen=3, due=50)
    student.aims(1, minutes=120)

    html = student.hands.client.get("/flashcards/offline").text

    fronts = set(re.findall(r"Front of (weights-\d+)", html))
    assert {f"weights-{n}" for n in range(1, 11)} <= fronts


def test_a_second_click_changes_nothing(student: Student) -> None:
    for number in (1, 2):
        student.knows(number, stability=9, seen=12, due=-3)
    student.aims(30)
    client = student.hands.client
    card = student.hands.card()
    body = fields(
        client.get(f"/flashcards?show=1&card={card}").text,
        f"/flashcards/{card}/reviews",
    )

    for _ in range(2):
        client.post(f"/flashcards/{card}/reviews", data={**body, "rating": 4})

    assert shown(client.get("/flashcards").text) in {"weights-1", "weights-2"} - {card}


def test_the_plan_is_kept_and_narrow(
    student: Student, session: Session, course: HandLibrary
) -> None:
    student.knows(1, stability=9, seen=12, due=-3)
    learner = student.row.id or 0
    aim = ExamGoal(TODAY + dt.timedelta(days=20), 900.0)
    plans = [
        todays_cards.cached_day_plan(session, learner, course.current(), TODAY, aim)
        for _ in range(2)
    ]
    later = todays_cards.cached_day_plan(
        session, learner, course.current(), TODAY + dt.timedelta(days=1), aim
    )

    assert plans[0] is plans[1]
    assert later is not plans[0]
    assert collections.Counter(s.card for s in plans[0].looks)["weights-1"] == 1


def begin(app: FastAPI) -> Hands:
    """A new learner with four hours a day for cards."""
    hands = Hands(visit(app))
    form = {"minutes_a_day": "240", "retention": "90"}
    assert hands.client.post("/settings", data=form).status_code == 303
    return hands


def counters(hands: Hands) -> list[str]:
    """What an exam in nine days asks for today."""
    form = {"exam_day": "2026-06-18", "minutes_a_day": "240", "retention": "90"}
    assert hands.client.post("/settings", data=form).status_code == 303
    page = hands.client.get("/flashcards").text
    return re.findall(r"(\w+) <b>(\d+)</b>", page)


def test_who_begins_after_an_erasure_gets_the_plan_of_a_newcomer(
    app: FastAPI, session: Session
) -> None:
    anna = begin(app)
    student = Student(anna, session)
    for number in range(1, 15):
        student.knows(number, stability=9, seen=12, due=-3)
    assert ("Due", "14") in counters(anna)
    old = student.row.id
    session.rollback()

    anna.client.post("/settings/erasure", data={"word": "erase"})
    bert, carl = begin(app), begin(app)

    assert counters(bert) == counters(carl)
    assert ("Due", "0") in counters(bert)
    assert old not in session.exec(select(Learner.id)).all()
