"""What is set by hand: cards buried, forgotten, given a due date; cards searched."""

import datetime as dt
import re

import pytest
from fastapi.testclient import TestClient
from sqlmodel import Session, select

from app.database.tables import CardStateRow, Learner, Review
from app.spaced_repetition.scheduler import (
    ManualEdit,
    ReviewEvent,
    compute_last_settable_due_day,
    explain_invalid_due_date,
    replay_log,
)
from tests.conftest import Clock
from tests.flashcards.conftest import Hands, fields
from tests.flashcards.course import EditableLiveCourse
from tests.spaced_repetition.rebuilding import rebuild

TODAY = dt.date(2026, 6, 9)


def act(client: TestClient, card: str, what: str, day: str = "", **more: str):
    page = client.get(f"/flashcards/{card}/more").text
    body = {**fields(page, f"/flashcards/{card}/acts"), "act": what, "day": day}
    body.pop("page")
    return client.post(f"/flashcards/{card}/acts", data={**body, **more})


def memory(session: Session, card: str) -> CardStateRow | None:
    session.rollback()
    return session.exec(select(CardStateRow).where(CardStateRow.card == card)).first()


def is_as_rebuilt(session: Session, live_course: EditableLiveCourse) -> bool:
    """Whether the log alone leads to the same memory."""
    names = [c for c in CardStateRow.__table__.columns.keys() if c != "id"]  # noqa: SIM118

    def rows() -> list[list[object]]:
        found = session.exec(select(CardStateRow).order_by(CardStateRow.card)).all()
        return [[getattr(row, name) for name in names] for row in found]

    session.rollback()
    learner = session.exec(select(Learner)).one()
    before = rows()
    rebuild(session, learner.id, live_course.get_current_course().cards)
    session.expire_all()
    same = before == rows()
    session.rollback()
    return same


def test_the_page_about_a_card_explains_each_thing_that_can_be_set(client) -> None:
    page = " ".join(client.get("/flashcards/weights-1/more").text.split())

    assert ">Skip until tomorrow</button>" in page
    assert "Skip (in Anki: bury) brings the card back on the next study day." in page
    assert "A card put aside (in Anki: suspend) stays out until you bring it back." in page


class TestBury:
    def test_a_new_card_waits_for_the_next_study_day(
        self, hands: Hands, client, clock: Clock, session, live_course
    ) -> None:
        act(client, "weights-1", "bury")

        assert hands.card() == "weights-2"
        clock.tick(days=1)
        assert hands.card() == "weights-1"
        assert is_as_rebuilt(session, live_course)

    def test_a_due_card_comes_back_tomorrow_as_it_stood(
        self, hands: Hands, client, clock: Clock, session
    ) -> None:
        hands.grade(4)
        known = memory(session, "weights-1")
        clock.tick(days=30)
        assert hands.card() == "weights-1"

        act(client, "weights-1", "bury")

        assert hands.card() != "weights-1"
        later = memory(session, "weights-1")
        assert (later.stability, later.last_day) == (known.stability, known.last_day)
        clock.tick(days=1)
        assert hands.card() == "weights-1"

    def test_a_card_in_its_steps_waits_too(self, hands: Hands, client, clock: Clock) -> None:
        hands.grade(1)
        act(client, "weights-1", "bury")
        clock.tick(minutes=30)

        assert hands.card() == "weights-2"
        clock.tick(days=1)
        assert hands.card() == "weights-1"

    def test_a_card_due_later_comes_no_sooner(self, hands: Hands, client, session) -> None:
        hands.grade(4)
        due = memory(session, "weights-1").due_day

        act(client, "weights-1", "bury")

        assert memory(session, "weights-1").due_day == due


class TestForget:
    def test_a_card_is_new_again_and_its_log_stays(
        self, hands: Hands, client, clock: Clock, session, live_course
    ) -> None:
        hands.grade(4)
        clock.tick(days=30)

        act(client, "weights-1", "forget")

        assert memory(session, "weights-1") is None
        rows = session.exec(select(Review).order_by(Review.id)).all()
        assert [(r.rating, r.act) for r in rows] == [(4, ""), (0, "forget")]
        assert hands.card() == "weights-1"
        hands.grade(3)
        again = memory(session, "weights-1")
        assert (again.reviews, again.state, again.turns) == (1, "learning", 3)
        assert is_as_rebuilt(session, live_course)

    def test_undo_remembers_it_again(self, hands: Hands, client, session) -> None:
        hands.grade(4)
        before = memory(session, "weights-1").model_dump(exclude={"id", "turns"})
        act(client, "weights-1", "forget")

        assert hands.undo() == "weights-1"

        after = memory(session, "weights-1")
        assert after.model_dump(exclude={"id", "turns"}) == before
        assert (after.note, after.topic) == ("weights-1", "weights")

    def test_a_card_of_ones_own_begins_anew(self, rosa: TestClient, session: Session) -> None:
        rosa.post("/flashcards/own", data={"front": "a", "back": "b", "token": "t"})
        card = session.exec(select(CardStateRow)).one().card
        hands = Hands(rosa)
        page = rosa.get(f"/flashcards?card={card}&show=1").text
        body = {**fields(page, f"/flashcards/{card}/reviews"), "rating": 4}
        rosa.post(f"/flashcards/{card}/reviews", data=body)

        act(rosa, card, "forget")

        assert memory(session, card).state == "new"
        assert hands.client.get(f"/flashcards?card={card}").status_code == 200


class TestDueDate:
    def test_a_card_comes_on_its_day_and_not_before(
        self, hands: Hands, client, clock: Clock, session, live_course
    ) -> None:
        act(client, "weights-1", "due", "2026-06-12")

        for _ in range(3):
            assert hands.card() == "weights-2"
            clock.tick(days=1)
        assert hands.card() == "weights-1"
        assert is_as_rebuilt(session, live_course)
        hands.grade(3)
        assert memory(session, "weights-1").set_day == ""

    def test_a_card_due_in_a_week_may_be_due_today(
        self, hands: Hands, client, session, clock: Clock
    ) -> None:
        hands.grade(4)
        clock.tick(days=1)
        act(client, "weights-1", "due", "2026-06-10")

        assert memory(session, "weights-1").due_day == "2026-06-10"
        assert hands.card() == "weights-1"

    @pytest.mark.parametrize("day", ["", "tomorrow", "2026-06-08", "2036-07-01"])
    def test_other_days_are_refused(self, client, session, day: str) -> None:
        assert act(client, "weights-1", "due", day).status_code == 422
        assert session.exec(select(Review)).all() == []

    def test_the_exam_is_the_end(self) -> None:
        exam = TODAY + dt.timedelta(days=10)

        assert compute_last_settable_due_day(TODAY, exam) == exam - dt.timedelta(days=1)
        assert "Your exam is on June 19, 2026" in explain_invalid_due_date(exam, TODAY, exam)
        assert explain_invalid_due_date(exam - dt.timedelta(days=1), TODAY, exam) == ""


class TestTowardAnExam:
    @pytest.fixture
    def soon(self, hands: Hands, session, clock: Clock) -> list[str]:
        """Two cards that are due three days before an exam."""
        names = [hands.grade(4), hands.grade(4)]
        clock.tick(days=9)
        session.exec(select(Learner)).one().exam_day = "2026-06-21"
        session.commit()
        assert hands.card() in names
        return names

    def test_the_plan_keeps_the_days_that_were_set(
        self, hands: Hands, client, clock: Clock, soon: list[str]
    ) -> None:
        act(client, soon[0], "bury")
        assert hands.card() == soon[1]
        act(client, soon[1], "due", "2026-06-20")
        assert hands.card() not in soon
        clock.tick(days=1)
        assert hands.grade(3) == soon[0]
        assert hands.card() not in soon
        clock.tick(days=1)
        assert hands.card() == soon[1]

    def test_a_forgotten_card_leaves_the_plan_and_undo_brings_it_back(
        self, hands: Hands, client, soon: list[str]
    ) -> None:
        act(client, soon[0], "forget")

        assert hands.card() == soon[1]
        assert hands.undo() == soon[0]


def test_acts_count_once_however_often_they_are_sent(client, session) -> None:
    page = client.get("/flashcards/weights-1/more").text
    body = {**fields(page, "/flashcards/weights-1/acts"), "act": "bury"}
    for _ in range(2):
        sent = client.post("/flashcards/weights-1/acts", data=body)
        assert sent.headers["location"] == "/flashcards/weights-1/more?done=bury"

    assert len(session.exec(select(Review)).all()) == 1


def test_acts_are_no_reviews(hands: Hands, client, clock: Clock) -> None:
    hands.grade(4)
    act(client, "weights-1", "due", "2026-06-10")
    act(client, "weights-2", "bury")

    assert "1 of 11 done" in client.get("/flashcards").text
    clock.tick(days=1)
    assert "0 of 12 done" in client.get("/flashcards").text


def test_htmx_gets_the_next_card(htmx: TestClient) -> None:
    page = htmx.get("/flashcards").text
    body = {**fields(page, "/flashcards/weights-1/acts"), "act": "bury"}

    answer = htmx.post("/flashcards/weights-1/acts", data=body)

    assert "Front of weights-2" in answer.text
    assert "/flashcards/undo" in answer.text


def test_the_page_of_a_card_tells_its_log(hands: Hands, client) -> None:
    hands.grade(3)
    act(client, "weights-1", "due", "2026-06-20")
    act(client, "weights-1", "forget")

    html = client.get("/flashcards/weights-1/more").text.replace("\xa0", " ")

    assert re.findall(r"<li><span>([^<]+)</span>", html) == [
        "Reset to new",
        "Due date set to June 20, 2026",
        "Good",
    ]
    assert "<dd>new</dd>" in html


def test_a_card_that_is_not_there_cannot_be_set(client) -> None:
    body = {"act": "bury", "token": "t"}
    assert client.post("/flashcards/nothing/acts", data=body).status_code == 404
    assert client.get("/flashcards/nothing/more").status_code == 404


def test_forgetting_takes_all_that_came_before() -> None:
    noon = dt.datetime(2026, 6, 9, 12, tzinfo=dt.UTC)
    first, later = ReviewEvent(3, noon, TODAY), ReviewEvent(1, noon, TODAY + dt.timedelta(days=9))

    forgotten = replay_log([first, first, ManualEdit("forget"), later])

    assert forgotten == replay_log([later])
    assert (
        replay_log([first, ManualEdit("forget"), ManualEdit("due", TODAY)]).manual_due_day == TODAY
    )


class TestSearch:
    def found(self, client: TestClient, words: str) -> list[str]:
        html = client.get("/flashcards/deck", params={"q": words}).text
        part = html.partition('id="matches"')[2].partition("</section>")[0]
        return re.findall(r'/flashcards\?card=([^"]+)"', part)

    def test_all_words_in_any_order_and_case(self, client) -> None:
        assert self.found(client, "WEIGHTS-3 front") == ["weights-3"]
        assert self.found(client, "front weights-3 zebra") == []
        assert self.found(client, " ") == []
        found = self.found(client, "c")  # begins “cache”, and is inside words of the others
        assert [name.partition("-")[0] for name in found] == ["cache"] * 6 + ["weights"] * 6

    def test_own_cards_are_found_by_what_is_read_on_them(
        self, rosa: TestClient, milo: TestClient
    ) -> None:
        data = {"front": "A <b>switch</b> & *leaf*", "back": "Größe", "token": "t"}
        rosa.post("/flashcards/own", data=data)

        assert len(self.found(rosa, "leaf")) == 1
        assert len(self.found(rosa, "GRÖSSE")) == 1
        assert len(self.found(rosa, "größe &")) == 1
        assert self.found(rosa, "em") == self.found(rosa, "strong") == []
        assert self.found(milo, "leaf") == []

    def test_what_nobody_sees_hides_no_card(self, rosa: TestClient) -> None:
        data = {"front": "A pre\u00adfill\u200b", "back": "caf\u00e9", "token": "t"}
        rosa.post("/flashcards/own", data=data)

        for typed in ("prefill", "„prefill“", "pre\u00adfill", "CAFE\u0301", "«café»"):
            assert len(self.found(rosa, typed)) == 1
        assert self.found(rosa, "\ufefffront «weights-3»") == ["weights-3"]

    def test_questions_that_were_missed_are_found(self, client) -> None:
        assert (
            "No card has all of these words."
            in client.get("/flashcards/deck?q=nothinglikethis").text
        )
