"""GET /: what is due, where you were, what is weakest."""

import datetime as dt
import io
import re
import zipfile

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import event
from sqlmodel import Session, select

from app.clock import to_milliseconds
from app.content.course import Course
from app.database.tables import Attempt, Learner
from tests.conftest import Clock
from tests.spaced_repetition.known import known_card
from tests.spaced_repetition.rebuilding import rebuild_days


class Desk:
    """A learner whose records a test writes directly."""

    def __init__(self, session: Session, clock: Clock) -> None:
        self.session = session
        self.clock = clock
        self.id = session.exec(select(Learner.id)).one() or 0
        self._count = 0

    def answers(self, questions: list[str], score: float, topic: str) -> None:
        for item in questions:
            self._count += 1
            self.session.add(
                Attempt(
                    learner_id=self.id,
                    token=f"t{self._count}",
                    item=item,
                    revision="r",
                    topic=topic,
                    seed=1,
                    context="quiz",
                    raw="{}",
                    parsed="{}",
                    score=score,
                    first=True,
                    study_day="2026-06-09",
                    at=to_milliseconds(self.clock.now),
                )
            )
        self.session.flush()
        rebuild_days(self.session, self.id)
        self._save()

    def card(self, card: str, due: str, state: str = "review", **wait: float) -> None:
        at = self.clock.now + dt.timedelta(**wait)
        last, day = dt.date(2026, 5, 20), dt.date.fromisoformat(due)
        kept = {"note": card.removesuffix("~r"), "state": state}
        self.session.add(known_card(self.id, card, last, day, due_at=to_milliseconds(at), **kept))
        self._save()

    def _save(self) -> None:
        learner = self.session.get(Learner, self.id)
        assert learner
        learner.changes += 1
        self.session.commit()


@pytest.fixture
def desk(rosa: TestClient, session: Session, clock: Clock) -> Desk:
    rosa.post("/concepts/weights/readings", data={"section": "two-bytes-each"})
    return Desk(session, clock)


def test_the_first_visit_says_where_to_start(client: TestClient):
    page = client.get("/").text

    assert "Start here" in page
    assert "Headroom prepares you for Capacity Basics (CB-1)" in " ".join(page.split())
    assert "When is your exam?" in page
    assert 'name="exam_day"' in page
    assert 'href="/concepts/weights"' in page


def test_an_exam_day_set_before_all_else_leads_to_its_plan(rosa: TestClient):
    form = {"exam_day": "2026-07-03", "minutes_a_day": "30", "retention": "90"}
    rosa.post("/settings", data=form)

    page = rosa.get("/").text

    assert "Start here" in page
    assert "Your exam is on Friday, July\u00a03" in page
    assert 'href="/plan"' in page


def test_the_first_visit_leaves_no_row(client: TestClient, session: Session):
    client.get("/")

    assert session.exec(select(Learner)).all() == []


@pytest.mark.usefixtures("desk")
def test_the_exam_day_is_counted_down(rosa: TestClient):
    form = {"exam_day": "2026-07-03", "minutes_a_day": "30", "retention": "90"}
    rosa.post("/settings", data=form)

    assert "<b>24</b> days to your exam" in rosa.get("/").text


@pytest.mark.usefixtures("desk")
def test_a_target_is_named_only_when_it_is_the_learners_own(rosa: TestClient):
    assert "Your target" not in rosa.get("/").text

    form = {"target": "75", "minutes_a_day": "30", "retention": "90"}
    rosa.post("/settings", data=form)

    assert re.search(r"your target is \d+\.", rosa.get("/").text)


@pytest.mark.usefixtures("desk")
def test_enter_begins_the_next_task(rosa: TestClient):
    page = rosa.get("/").text

    assert re.search(r'bigbtn"[^>]*data-key="enter"', page)
    assert page.count('data-key="enter"') == 1


def words_of(browser: TestClient) -> str:
    return " ".join(browser.get("/").text.replace("\xa0", " ").split())


def test_a_stranger_costs_one_question(app, client: TestClient):
    asked: list[str] = []
    event.listen(app.state.engine, "before_cursor_execute", lambda *a: asked.append(a[2]))

    client.get("/")

    assert len([a for a in asked if a.startswith("SELECT")]) == 1


def test_the_last_seven_days_are_summed_up(rosa: TestClient, desk: Desk, course: Course):
    rosa.post("/concepts/weights/readings")
    desk.session.rollback()
    desk.answers(list(course.questions)[:3], 1.0, "weights")

    assert "The last seven days: 1 day of study, 1 page, 3 answers." in words_of(rosa)


def test_a_new_learner_is_offered_the_placement_test_first(client: TestClient):
    offer = client.get("/").text.partition('<ul class="offers">')[2].partition("</li>")[0]

    assert "<h3>Placement test, " in offer
    assert re.search(r'<button class="[^"]*" name="pick" value="placement"', offer)


@pytest.mark.usefixtures("desk")
def test_one_button_leads_to_the_next_task_and_no_number_of_minutes_disagrees(rosa: TestClient):
    page = rosa.get("/").text

    assert page.count("btn main") == 1
    assert page.count('<li class="next">') == 1
    parts = map(int, re.findall(r'class="min">(\d+) min<', page))
    total = re.search(r"about (\d+)\xa0minutes</span></header>", page)
    assert total
    assert sum(parts) == int(total[1])
    assert f"{total[1]}\xa0minutes" in rosa.get("/plan").text


@pytest.mark.usefixtures("desk")
def test_on_the_exam_day_it_wishes_luck_and_afterwards_asks_how_it_went(
    rosa: TestClient, session: Session, clock: Clock
):
    rosa.post("/plan", data={"exam_day": "2026-06-19", "minutes_a_day": "30"})
    early = rosa.post("/exam-result", data={"result": "passed"})
    assert early.status_code == 409

    clock.tick(days=10)
    page = words_of(rosa)
    assert "Your exam is today" in page
    assert "whole pages" not in page
    assert "Good luck." in page
    assert "Photo ID" in page

    clock.tick(days=1)
    assert "How did it go?" in words_of(rosa)
    for result, heading in (
        ("", "How did it go?"),
        ("passed", "You passed"),
        ("failed", "Plan a second try"),
    ):
        assert rosa.post("/exam-result", data={"result": result}).status_code == 303
        assert heading in words_of(rosa)
        assert ("points in the last mock exam" in words_of(rosa)) == (result == "failed")
        assert 'class="todo"' not in words_of(rosa)
        assert 'id="todays"' not in rosa.get("/plan").text
        progress = text_at(rosa, "/progress")
        assert ("<h1>You passed</h1>" in rosa.get("/progress").text) == (result == "passed")
        assert ("Your expected score in another exam" in progress) == (result == "failed")

    rosa.post("/plan", data={"exam_day": "2026-07-19", "minutes_a_day": "30"})
    assert "Your expected exam score" in text_at(rosa, "/progress")
    assert "<b>29</b> days to your exam" in words_of(rosa)
    session.rollback()
    assert session.exec(select(Learner.exam_result)).one() == ""


def text_at(browser: TestClient, address: str) -> str:
    text = re.sub(r"<[^>]+>", " ", browser.get(address).text)
    return " ".join(text.replace("\xa0", " ").split())


@pytest.mark.usefixtures("desk")
def test_the_result_of_an_exam_stays_when_a_new_day_is_set(rosa: TestClient, clock: Clock):
    rosa.post("/plan", data={"exam_day": "2026-06-19", "minutes_a_day": "30"})
    clock.tick(days=11)
    rosa.post("/exam-result", data={"result": "failed"})
    rosa.post("/plan", data={"exam_day": "2026-07-19", "minutes_a_day": "30"})
    rosa.post("/plan", data={"exam_day": "2026-07-20", "minutes_a_day": "30"})

    for address in ("/plan", "/progress"):
        assert "Exam on Friday, June 19 not passed" in text_at(rosa, address)
    assert "Another try after Friday, June 19" in text_at(rosa, "/plan")

    clock.tick(days=31)
    rosa.post("/exam-result", data={"result": "passed"})
    plan = text_at(rosa, "/plan")
    assert "Exam on Friday, June 19 not passed Exam on Monday, July 20 passed" in plan

    with zipfile.ZipFile(io.BytesIO(rosa.get("/settings/export").content)) as archive:
        assert "2026-06-19:failed" in archive.read("learner.json").decode()

    assert rosa.post("/exam-result", data={"day": "2026-06-19"}).status_code == 303
    assert "June 19" not in text_at(rosa, "/plan")
    assert "Exam on Monday, July 20 passed" in text_at(rosa, "/plan")


def test_a_result_on_the_exam_day_ends_the_plan_and_due_cards_are_a_choice(
    rosa: TestClient, desk: Desk, course: Course, clock: Clock
):
    desk.card(next(iter(course.cards)), "2026-06-18")
    rosa.post("/plan", data={"exam_day": "2026-06-19", "minutes_a_day": "30"})
    clock.tick(days=10)
    assert "Your exam is today" in words_of(rosa)
    assert 'id="todays"' in rosa.get("/plan").text

    rosa.post("/exam-result", data={"result": "passed"})
    for _ in range(2):
        assert "You passed" in words_of(rosa)
        assert "review 1 card" in words_of(rosa)
        assert "when you are about to forget it, not earlier because of the exam." in words_of(rosa)
        assert "Nothing is planned" in text_at(rosa, "/plan")
        assert 'id="todays"' not in rosa.get("/plan").text
        assert "New 0 Learning 0 Due 1" in text_at(rosa, "/flashcards")
        clock.tick(days=1)


def test_a_card_left_in_its_steps_counts_as_learning_with_and_without_a_list(
    rosa: TestClient, desk: Desk, course: Course, clock: Clock
):
    first, second, *_ = course.cards
    desk.card(first, "2026-06-08", "learning")
    desk.card(second, "2026-06-08")
    rosa.post("/plan", data={"exam_day": "2026-06-19", "minutes_a_day": "30"})
    rosa.get("/")

    assert "Review 2 cards" in words_of(rosa)
    assert "New 0 Learning 1 Due 1" in text_at(rosa, "/flashcards?task=review")
    clock.tick(days=11)
    assert "review 2 cards" in words_of(rosa)
    assert "New 0 Learning 1 Due 1" in text_at(rosa, "/flashcards")


def test_of_a_card_and_its_reverse_one_waits_for_a_later_list(rosa: TestClient, desk: Desk):
    for card in ("w-c-size", "w-c-size~r"):
        desk.card(card, "2026-06-01")
    rosa.get("/")

    deck = rosa.get("/flashcards/deck?topic=weights").text

    states = re.findall(r'class="small quiet">(due[^<]*)<', deck)
    assert sorted(states) == ["due", "due, on a later list"]


def test_a_new_learner_who_set_the_plan_is_told_what_starts_the_first_list(client: TestClient):
    client.post("/plan", data={"exam_day": "2026-06-30", "minutes_a_day": "45"})

    page = " ".join(client.get("/").text.replace("\xa0", " ").split())

    assert "21 days, 45 minutes a day. The placement test or the first page starts" in page


@pytest.mark.usefixtures("desk")
def test_days_after_the_exam_are_no_days_to_come(rosa: TestClient):
    rosa.post("/plan", data={"exam_day": "2026-06-10", "minutes_a_day": "30"})

    week = rosa.get("/").text.partition('id="week"')[2].partition("</ol>")[0]

    assert week.count("after your exam") == 4  # Thursday to Sunday
    assert "to come" not in week
