"""What was missed in a mock exam comes back as cards, once it is closed."""

import datetime as dt
import json
import re

from fastapi.testclient import TestClient
from sqlmodel import Session, select

from app.database.tables import AddedCard, CardStateRow, Sitting
from app.exams.sitting import close_overdue_sittings
from tests.conftest import Clock
from tests.exams.sitting import begin, finish, save


def comebacks(session: Session) -> set[str]:
    session.rollback()
    return set(session.exec(select(AddedCard.card)).all())


def papers(session: Session) -> list[str]:
    session.rollback()
    return list(session.exec(select(Sitting.paper).order_by(Sitting.id)).all())


def reach_the_end(client: TestClient, sitting: str) -> None:
    """Flag the last question and leave it open."""
    save(client, sitting, 5, flag="yes")


def test_what_was_not_reached_does_not_come_back(rosa, session: Session) -> None:
    sitting = begin(rosa)
    save(rosa, sitting, 2, flag="yes")

    finish(rosa, sitting)

    first = [item for _, item, *_ in json.loads(papers(session)[0])][:2]
    assert comebacks(session) == {f"q:{item}" for item in first}


def test_nothing_comes_back_while_the_exam_is_sat(rosa, session: Session) -> None:
    sitting = begin(rosa)
    save(rosa, sitting, 1, answer="x")

    assert comebacks(session) == set()


def test_wrong_and_open_questions_come_back_the_day_after(rosa, session: Session, right) -> None:
    sitting = begin(rosa)
    reach_the_end(rosa, sitting)
    number, response = next(iter(right().items()))
    save(rosa, sitting, number, **response)

    finish(rosa, sitting)

    assert len(comebacks(session)) == 4
    rows = session.exec(select(CardStateRow)).all()
    assert {(row.state, row.due_day) for row in rows} == {("new", "2026-06-10")}
    assert {row.card for row in rows} == comebacks(session)
    assert all(row.topic for row in rows)


def test_a_second_submission_adds_nothing(rosa, session: Session) -> None:
    sitting = begin(rosa)
    reach_the_end(rosa, sitting)

    for _ in range(2):
        finish(rosa, sitting)

    assert len(session.exec(select(AddedCard)).all()) == 5


def test_a_paper_closed_by_the_clock_brings_its_questions_back(
    app, rosa, clock: Clock, session: Session
) -> None:
    reach_the_end(rosa, begin(rosa))

    close_overdue_sittings(
        app.state.engine, app.state.live_course, clock.now + dt.timedelta(days=3)
    )

    rows = session.exec(select(CardStateRow.due_day)).all()
    assert set(rows) == {"2026-06-10"}


def test_nothing_comes_back_to_who_does_not_want_it(rosa, session: Session) -> None:
    rosa.post("/settings", data={"missed": "no", "zone": "UTC"})
    sitting = begin(rosa)

    finish(rosa, sitting)

    assert comebacks(session) == set()
    report = rosa.get(f"{sitting}/report").text
    assert "back as" not in report
    assert re.search(r"<p>The 5 blank ones aren.t in <a [^>]+>your cards</a>\.</p>", report)


def test_the_report_says_how_many_come_back(rosa, right) -> None:
    sitting = begin(rosa)
    reach_the_end(rosa, sitting)
    number, response = next(iter(right().items()))
    save(rosa, sitting, number, **response)
    finish(rosa, sitting)

    html = rosa.get(f"{sitting}/report").text

    assert "<p>The 4 blank ones are in <a" in html
    assert 'href="/flashcards/deck#own"' in html


def test_the_report_marks_the_questions_that_come_back(rosa) -> None:
    sitting = begin(rosa)
    save(rosa, sitting, 2, flag="yes")
    finish(rosa, sitting)

    html = rosa.get(f"{sitting}/report").text
    rows = re.findall(r'<span class="no">Q(\d)</span>(.*?)</li>', html, re.DOTALL)

    assert sorted(number for number, _ in rows) == ["1", "2", "3", "4", "5"]
    assert sorted(number for number, row in rows if "in your cards" in row) == ["1", "2"]
    assert (
        "<p>Of the 5 blank ones, 2 are in "
        '<a href="/flashcards/deck#own">your cards</a> now, marked below; the other 3 '
        "aren\N{RIGHT SINGLE QUOTATION MARK}t: they were left blank at the end. "
        "New cards come a few a day.</p>"
    ) in html


def test_a_question_left_out_in_the_solution_is_not_counted(rosa, session: Session) -> None:
    sitting = begin(rosa)
    reach_the_end(rosa, sitting)
    finish(rosa, sitting)
    html = rosa.get(f"{sitting}/questions/1").text
    assert "Added to your cards." in html
    card = session.exec(select(AddedCard.card)).first()

    answer = rosa.post(
        f"/flashcards/{card}/addition",
        data={"wanted": "no", "back": f"{sitting}/questions/1"},
    )

    assert answer.headers["location"] == f"{sitting}/questions/1"
    assert "<p>Of the 5 blank ones, 4 are in <a" in (report := rosa.get(f"{sitting}/report").text)
    assert "reach" not in report


def test_a_card_whose_question_is_being_sat_stays_away(
    rosa, session: Session, clock: Clock
) -> None:
    sitting = begin(rosa)
    reach_the_end(rosa, sitting)
    finish(rosa, sitting)
    clock.tick(days=1)
    card = rosa.get("/flashcards").text
    assert "A question you missed" in card

    asked: set[str] = set()
    known: set[str] = set()
    while not asked & known:  # papers are drawn by chance, and this bank is small
        finish(rosa, sitting)
        sitting = begin(rosa)
        asked = {f"q:{slot[1]}" for slot in json.loads(papers(session)[-1])}
        known = comebacks(session)
    for name in known:
        status = rosa.get(f"/flashcards/{name}/answer").status_code
        assert status == (409 if name in asked else 200)
    for address in ("/flashcards", "/flashcards/offline"):
        html = rosa.get(address).text
        assert not [name for name in asked if f"{name}." in html]
    finish(rosa, sitting)
    for name in known:
        assert rosa.get(f"/flashcards/{name}/answer").status_code == 200


def test_a_report_about_a_question_leads_back_to_its_solution(rosa) -> None:
    sitting = begin(rosa)
    finish(rosa, sitting)

    html = rosa.get(f"{sitting}/questions/1?reported=1").text

    assert "The author sees your report" in html
