"""The first visit, and the placement test that it proposes."""

import html
import json
import re

import pytest
from fastapi.testclient import TestClient
from sqlmodel import Session, col, select

from app.content.course import Course
from app.database.tables import AddedCard, Attempt, DayListRow, ScorePredictionRow
from app.quiz.selection import draw_placement_test
from tests.conftest import Clock


def begin(client: TestClient) -> str:
    sent = client.post("/quiz/runs", data={"pick": "placement", "token": "t"})
    assert sent.status_code == 303
    return sent.headers["location"]


def fields(page: str) -> tuple[str, dict[str, str]]:
    action = re.search(r'action="(/quiz/[^"]+/attempts)"', page)
    assert action
    form = page[action.start() :]
    found = re.findall(r'type="hidden" name="(\w+)" value="([^"]*)"', form)
    return action[1], {name: html.unescape(value) for name, value in found}


def give_up(client: TestClient, run: str, place: int) -> str:
    action, hidden = fields(client.get(f"{run}/{place}").text)
    sent = client.post(action, data=hidden | {"unknown": "yes"})
    assert sent.status_code == 303, sent.text
    return client.get(sent.headers["location"]).text


def test_the_list_of_added_cards_says_which_missed_questions_it_will_hold(
    rosa: TestClient, session: Session
):
    give_up(rosa, begin(rosa), 1)

    deck = " ".join(rosa.get("/flashcards/deck").text.split())
    assert session.exec(select(AddedCard)).all() == []
    assert "Questions missed on a page, in practice or in a mock exam appear here" in deck
    assert "Those missed in the placement test don" in deck

    assert "not in the placement test" in rosa.get("/settings").text

    rosa.post("/settings", data={"missed": "no"})
    deck = " ".join(rosa.get("/flashcards/deck").text.split())
    assert "Questions missed" not in deck
    assert "terms that you make cards appear here." in deck


def test_a_draw_is_the_same_for_a_seed_and_covers_the_blueprint(course: Course):
    questions, domains = list(course.questions.values()), course.syllabus.domains

    drawn = draw_placement_test(questions, domains, {}, "one")

    assert drawn == draw_placement_test(questions, domains, {}, "one")
    assert drawn != draw_placement_test(questions, domains, {}, "two")
    assert len(set(drawn)) == len(drawn) <= 15
    asked = {o for item in drawn for o in course.questions[item].objectives}
    assert {o.number for d in domains for o in d.objectives} <= asked


def test_no_domain_is_asked_more_than_its_share(course: Course):
    domains = course.syllabus.domains
    drawn = draw_placement_test(list(course.questions.values()), domains, {}, "x")

    for domain in domains:
        numbers = {o.number for o in domain.objectives}
        mine = [i for i in drawn if numbers & set(course.questions[i].objectives)]
        assert len(mine) <= round(domain.weight * 15) + 1


def test_a_first_visit_says_what_the_exam_is(client: TestClient, course: Course):
    page = " ".join(client.get("/").text.split())

    exam = next(iter(course.exams.values()))
    assert f"{exam.question_count} questions" in page
    assert f"{exam.minutes} minutes" in page
    for domain in course.syllabus.domains:
        assert domain.title in page
        assert f"{round(domain.weight * 100)}%, " in page
    assert 'name="pick" value="placement"' in page


def test_saying_that_one_does_not_know_is_an_answer(rosa: TestClient, session: Session):
    page = give_up(rosa, begin(rosa), 1)

    assert "You did not know it." in page
    row = session.exec(select(Attempt)).one()
    assert (row.context, row.raw, row.score, row.first) == (
        "placement",
        "{}",
        0.0,
        True,
    )
    assert session.exec(select(AddedCard)).all() == []


def test_a_solution_is_shown_to_who_does_not_know(rosa: TestClient):
    page = give_up(rosa, begin(rosa), 1)

    assert "right answer" in page
    assert "your answer" not in page


def test_a_test_that_was_left_is_the_next_thing(rosa: TestClient):
    run = begin(rosa)
    assert "Go on with the test" in rosa.get("/").text
    practice = rosa.get("/quiz").text
    assert "Go on with the placement test" in practice
    assert 'value="placement"' not in practice

    give_up(rosa, run, 1)
    page = rosa.get("/").text

    assert "Go on with the test" in page
    assert f'href="{run}"' in page


def test_a_run_that_was_only_opened_is_not_where_one_stopped(rosa: TestClient):
    run = rosa.post("/quiz/runs", data={"pick": "mixed", "token": "t"}).headers["location"]
    assert "Where you stopped" not in rosa.get("/quiz").text

    give_up(rosa, run, 1)
    assert "Where you stopped" in rosa.get("/quiz").text


def test_who_skipped_the_test_is_offered_it_on_today_until_it_is_begun(rosa: TestClient):
    rosa.post("/concepts/weights/readings")
    assert "Take the placement test" in rosa.get("/").text

    begin(rosa)

    today = rosa.get("/").text
    assert "Take the placement test" not in today
    assert "Go on with the placement test" in today


def test_practice_offers_no_second_test(rosa: TestClient):
    offer = 'value="placement"'
    page = rosa.get("/quiz").text
    assert offer in page
    offered = re.search(r"Placement test</h2>\s*<p>(\d+)\squestions from all domains", page)
    run = begin(rosa)
    assert offered
    assert f"Question 1 of {offered[1]}" in " ".join(rosa.get(f"{run}/1").text.split())
    assert offer not in rosa.get("/quiz").text


def test_a_finished_test_names_the_pages_to_read(rosa: TestClient, course: Course):
    run = begin(rosa)
    page, place = "", 0
    while "See the result" not in page:
        place += 1
        page = give_up(rosa, run, place)

    result = rosa.get(f"{run}/result").text
    assert "Back to Today" in result
    heaviest = max(course.syllabus.domains, key=lambda domain: domain.weight)
    assert f"Most exam points to gain in {heaviest.title}: you missed" in " ".join(result.split())
    assert re.search(r"Guessing alone scores about \d+\.", result)
    assert result.count('class="btn main"') == 1
    assert "Expected exam score: about" in result
    today = rosa.get("/").text
    listed = re.search(r'<a class="btn main bigbtn" href="(/concepts/[\w?=-]+)"', today)
    pages = re.findall(r'<a href="(/concepts/[\w?=-]+)">Read', result)
    assert listed
    assert pages[0] == listed[1]
    assert len(pages) <= 3
    assert "Placement test:" not in today
    assert "Take the placement test" not in today


def test_the_day_of_the_test_lists_it_as_done_and_the_rest_of_its_minutes(rosa: TestClient):
    run = begin(rosa)
    page, place = "", 0
    while "See the result" not in page:
        place += 1
        page = give_up(rosa, run, place)

    today = rosa.get("/").text.replace("\xa0", " ")
    assert f'Placement test taken</h3>\n<span class="min">{place} min' in today
    minutes = [int(n) for n in re.findall(r'class="min">(\d+) min', today)]
    assert place < sum(minutes) <= 30
    assert f"{sum(minutes) - place} of {sum(minutes)} minutes left" in " ".join(today.split())


def read_score(page: str) -> tuple[int, int, int]:
    """Return the score in the headline, by how much it rose, and where its curve ends."""
    text = " ".join(page.replace("\xa0", " ").split())
    shown = re.search(r"About <b>(\d+) of \d+</b>, <span.*?(?:up (\d+) since|the same as on)", text)
    curve = re.search(r"Expected score, from \d+ on Jun 9 to (\d+) today", text)
    assert shown
    assert curve
    return int(shown[1]), int(shown[2] or 0), int(curve[1])


def lower_score_of_today(session: Session) -> str:
    """Store a lower score for the list of today, and return it as it is stored.

    Its questions are dropped, because the test of the tiny course asks the same ones.
    """
    session.rollback()
    row = session.exec(select(DayListRow).order_by(col(DayListRow.day).desc())).first()
    assert row
    row.estimate = json.dumps(json.loads(row.estimate) | {"mean": 0.0, "shown": 0.0})
    made = json.loads(row.tasks)
    made["tasks"] = [task for task in made["tasks"] if task["kind"] != "practice"]
    row.tasks = json.dumps(made)
    predictions = select(ScorePredictionRow).where(ScorePredictionRow.day == row.day)
    session.exec(predictions).one().expected = 0.0
    session.commit()
    return row.estimate


def test_headline_change_and_curve_agree_before_and_after_the_test(
    rosa: TestClient, session: Session, clock: Clock
):
    rosa.post("/concepts/weights/readings")
    rosa.get("/")
    lower_score_of_today(session)
    clock.tick(days=1)
    rosa.get("/")
    lower_score_of_today(session)
    morning = rosa.get("/").text
    assert read_score(morning) == (0, 0, 0)
    assert "after the placement test" not in morning

    run = begin(rosa)
    page, place = "", 0
    while "See the result" not in page:
        place += 1
        page = give_up(rosa, run, place)
    today = rosa.get("/").text
    after, change, end = read_score(today)

    assert after > 0
    assert (change, end) == (after, after)
    assert "Updated each morning, and after a placement test" in today
    assert f"to {after} today" in rosa.get("/progress").text


def test_a_changed_plan_does_not_change_the_score_of_the_day(rosa: TestClient, session: Session):
    rosa.post("/concepts/weights/readings")
    rosa.get("/")
    estimate = lower_score_of_today(session)
    made_for = json.loads(session.exec(select(DayListRow)).one().tasks)["made_for"]

    rosa.post("/plan", data={"exam_day": "2026-07-03", "minutes_a_day": "45"})
    rosa.get("/")

    session.rollback()
    after = session.exec(select(DayListRow)).one()
    assert json.loads(after.tasks)["made_for"] != made_for
    assert json.loads(after.estimate) == json.loads(estimate)


@pytest.mark.parametrize(("day", "status"), [("2026-07-03", 303), ("", 303), ("yesterday", 422)])
def test_the_exam_day_can_be_set_at_once(rosa: TestClient, day: str, status: int):
    rosa.post("/settings", data={"name": "Rosa", "zone": "Europe/Berlin"})

    sent = rosa.post("/plan", data={"exam_day": day, "minutes_a_day": "45"})

    assert sent.status_code == status
    if status == 303:  # to where the placement test is
        assert sent.headers["location"] == "/?kept=yes#when"
        assert (" Saved.</b> Your exam" in rosa.get("/?kept=yes").text) is bool(day)
        assert "Saved." not in rosa.get("/").text
    kept = rosa.get("/settings").text
    assert 'value="Rosa"' in kept
    assert '<option value="Europe/Berlin" selected' in kept
    assert ('value="45"' in kept) == (status == 303)
