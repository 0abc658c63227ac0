"""The list of a day through the pages: made once, ticked off, done; the plan and its dates."""

import concurrent.futures
import dataclasses
import datetime as dt
import html
import json
import re

import pytest
from fastapi.testclient import TestClient
from sqlmodel import Session, select

from app.accounts.learner import PlanCalendar
from app.content.course import Course
from app.content.course_facts import cached_course_facts
from app.content.live_courses import LiveCourse
from app.database.tables import DayListRow, Learner, PracticeRun, ScorePredictionRow
from app.main import create_app
from app.progress.plan_page import ReadingTimeVerdict
from app.progress.predictions import build_score_trend
from app.progress.store import load_score_predictions
from app.progress.study_record import StudyRecord, build_week_days
from app.quiz.next_steps import build_task_view
from app.settings import Settings
from app.spaced_repetition.added_card_ids_and_faces import build_question_card_id
from app.spaced_repetition.added_cards import (
    CardToAdd,
    schedule_missed_questions_for_tomorrow,
    set_card_declined_if_added,
)
from app.study_plan.day_list import PageToRead, Task, TaskProgress
from app.study_plan.store import load_newest_list
from tests.conftest import Clock, visit
from tests.exams.sitting import begin, finish, save
from tests.progress.test_today import Desk


def text_of(browser: TestClient, address: str = "/") -> str:
    return " ".join(browser.get(address).text.replace("\xa0", " ").split())


def read_page(browser: TestClient, course: Course, slug: str) -> None:
    for section in course.topics[slug].sections:
        if section.anchor:
            data = {"section": section.anchor}
            assert browser.post(f"/concepts/{slug}/readings", data=data).status_code < 400


def give_up(browser: TestClient, run: str, count: int) -> None:
    """Say of the first `count` questions of a placement test that one does not know."""
    for place in range(1, count + 1):
        page = browser.get(f"{run}/{place}").text
        action = re.search(r'action="(/quiz/[^"]+/attempts)"', page)
        if action is None:  # answered before, or no such question
            continue
        form = page[action.start() :].partition("</form>")[0]
        found = re.findall(r'type="hidden" name="(\w+)" value="([^"]*)"', form)
        fields = {name: html.unescape(value) for name, value in found}
        assert browser.post(action[1], data=fields | {"unknown": "yes"}).status_code == 303


@pytest.fixture
def reader(rosa: TestClient, course: Course) -> TestClient:
    """Rosa, who has read the first page."""
    read_page(rosa, course, course.syllabus.topics[0])
    return rosa


def lists(session: Session) -> list[DayListRow]:
    session.rollback()
    return list(session.exec(select(DayListRow).order_by(DayListRow.day)).all())


def test_the_list_is_made_once_a_day_and_stays(
    reader: TestClient, session: Session, course: Course, clock: Clock
):
    assert lists(session) == []
    reader.get("/")
    (row,) = lists(session)
    made = (row.tasks, row.estimate, row.at)

    read_page(reader, course, course.syllabus.topics[1])
    clock.tick(hours=3)
    for address in ("/", "/plan", "/progress", "/flashcards"):
        reader.get(address)
    (again,) = lists(session)
    assert (again.tasks, again.estimate, again.at) == made

    clock.tick(days=1)
    reader.get("/plan")
    assert [row.day for row in lists(session)] == ["2026-06-09", "2026-06-10"]


def test_two_requests_at_once_make_one_list(reader: TestClient, session: Session):
    def ask(address: str) -> int:
        return reader.get(address).status_code

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        assert set(pool.map(ask, ["/", "/plan", "/progress", "/flashcards"] * 2)) == {200}

    assert len(lists(session)) == 1


def test_before_anything_was_read_or_answered_there_is_no_list(rosa: TestClient, session: Session):
    rosa.post("/settings", data={"minutes_a_day": "30"})

    assert "Start here" in text_of(rosa)
    assert lists(session) == []


def test_a_placement_test_that_is_unfinished_waits_for_its_end(rosa: TestClient, session: Session):
    sent = rosa.post("/quiz/runs", data={"pick": "placement", "token": "t"})
    run = sent.headers["location"]
    give_up(rosa, run, 1)
    rosa.get("/")
    assert lists(session) == []

    give_up(rosa, run, 15)
    rosa.get("/")
    assert len(lists(session)) == 1


def test_two_clicks_on_practice_make_one_run(reader: TestClient, session: Session):
    reader.get("/")

    runs = {
        reader.post("/quiz/runs", data={"pick": "today", "token": token}).headers["location"]
        for token in ("a", "b", "")
    }

    assert len(runs) == 1
    (row,) = session.exec(select(PracticeRun)).all()
    assert row.mode == "today"


def test_a_day_whose_tasks_are_all_done_is_done(
    reader: TestClient, course: Course, session: Session, clock: Clock
):
    page = text_of(reader)
    assert "Done for today" not in page
    assert re.search(r"Learn \d+ card", page)

    for slug in course.topics:
        read_page(reader, course, slug)
    desk = Desk(session, clock)
    (made,) = lists(session)
    practice = next(t for t in json.loads(made.tasks)["tasks"] if t["kind"] == "practice")
    desk.answers(practice["questions"], 1.0, "weights")
    for _ in range(40):
        shown = reader.get("/flashcards?show=1").text
        card = re.search(r'action="(/flashcards/[^"]+/reviews)"', shown)
        token = re.search(r'name="token" value="([^"]+)"', shown)
        if not card or not token:
            break
        reader.post(card[1], data={"rating": "4", "token": token[1]})

    page = text_of(reader)
    assert "Done for today" in page
    assert '<a href="/course">pages</a>' in page  # all of them are read
    assert '<li class="did now">' in page
    assert page.count('<li class="did">') == 3
    assert "btn main" not in page
    assert "More, if you like" in page

    begun = reader.post("/quiz/runs", data={"pick": "mixed", "count": "1", "token": "t"})
    run = begun.headers["location"]
    give_up(reader, run, 1)
    assert "Done for today" in reader.get(f"{run}/result").text


def test_today_is_ticked_in_its_week_once_the_list_is_done(reader: TestClient):
    page = reader.get("/").text

    assert '<li class="open now">' in page
    assert '<li class="did now">' not in page


def test_days_of_the_week_before_between_and_to_come_differ():
    monday, day = dt.date(2026, 6, 8), dt.timedelta(days=1)
    record = StudyRecord(monday + day, {(monday + day).isoformat(): 4}, {}, (), {})
    calendar = PlanCalendar(
        monday,
        exam_day=monday + 20 * day,
        mock_exam_days=(monday + 2 * day, monday + 6 * day),
        weekdays_off=frozenset({5}),
    )

    week = build_week_days(monday + 4 * day, calendar, record, is_list_done=False)

    states = ["before", "studied", "missed", "unstudied", "open", "off", "mock"]
    assert [one.state for one in week] == states


def test_days_are_told_apart_by_words(reader: TestClient, clock: Clock):
    reader.post("/plan", data={"exam_day": "2026-07-03", "minutes_a_day": "30"})
    clock.tick(days=2)  # Thursday; the page was read on Tuesday

    week = text_of(reader).partition('<ol class="wk">')[2].partition("</ol>")[0]
    words = [" ".join(re.sub("<[^>]+>", " ", day).split()) for day in week.split("</li>")[:5]]
    calendar = text_of(reader, "/plan")

    assert words == [
        "Mon , before you began",
        "Tue , studied",
        "Wed , no study",
        "Thu , today",
        "Fri , to come",
    ]
    assert calendar.count("before you began") == calendar.count("<span>no study</span>") == 1


def test_an_unfinished_list_has_no_tick_but_its_share(
    reader: TestClient, clock: Clock, course: Course, session: Session
):
    reader.get("/")
    kinds = [task["kind"] for task in json.loads(lists(session)[0].tasks)["tasks"]]
    assert kinds == ["read", "practice", "new"]
    read_page(reader, course, course.syllabus.topics[1])

    for _ in range(2):  # it stays so on later days
        clock.tick(days=1)
        week = text_of(reader).partition('<ol class="wk">')[2].partition("</ol>")[0]
        tuesday = " ".join(re.sub("<[^>]+>", " ", week.split("</li>")[1]).split())
        plan = text_of(reader, "/plan")

        assert tuesday == "Tue 1 of 3 tasks done"
        assert "i-check" not in week
        assert "<span>1 of 3 tasks done</span>" in plan
        assert "<span>studied</span>" not in plan


def test_a_task_begun_says_what_is_left_of_it(course: Course):
    pages = tuple(PageToRead(slug, 4.0 + n, "weak") for n, slug in enumerate(course.topics))
    read = TaskProgress(Task("read", sum(p.minutes for p in pages), pages=pages), 0, 2, pages[:2])
    review = TaskProgress(Task("review", 17.0, cards=tuple("abcdefghijklmnopq")), 3, 17)

    view = build_task_view(read, course)
    assert (view.title, view.minutes, len(view.course_titles)) == ("Read 2\xa0pages", 9, 2)
    view = build_task_view(review, course)
    assert view.title == view.button_text == "Review 14\xa0cards"
    assert (view.detail, view.minutes) == ("3 of 17 done", 14)


def test_a_question_of_the_list_counts_wherever_it_is_answered(
    reader: TestClient, session: Session, course: Course
):
    reader.get("/")
    tasks = json.loads(lists(session)[0].tasks)["tasks"]
    first, second, *_ = (q for task in tasks for q in task["questions"])
    for item, context in ((first, "page"), (second, "quiz")):
        sent = {"context": context, "unknown": "yes", "token": item}
        reader.post(f"/quiz/{course.questions[item].topic}/{item}/attempts", data=sent)
    assert re.search(r"2 of \d+ done<", text_of(reader, "/"))


def test_a_question_answered_on_its_page_does_not_begin_the_practice_of_the_list(
    reader: TestClient, session: Session, course: Course
):
    reader.get("/")
    stored = lists(session)[0].tasks
    (practice,) = (t for t in json.loads(stored)["tasks"] if t["kind"] == "practice")
    item, count = practice["questions"][0], len(practice["questions"])
    url = f"/quiz/{course.questions[item].topic}/{item}/attempts"

    reader.post(url, data={"context": "page", "unknown": "yes", "token": "on the page"})
    page = text_of(reader, "/")
    assert f"Answer {count - 1} question" in page
    assert f"1 of these {count} answered while reading<" in page
    assert f"1 of {count} done" not in page

    reader.post(url, data={"context": "practice", "unknown": "yes", "token": "in the run"})
    assert f"1 of {count} done<" in text_of(reader, "/")
    session.expire_all()
    assert lists(session)[0].tasks == stored


def test_a_task_says_where_its_cards_and_pages_come_from(course: Course):
    first, second = course.topics
    page = PageToRead(first, 4.0, "missed in the placement test", required_by=second)

    cards = build_task_view(TaskProgress(Task("new", 2.0, cards=("a",)), 0, 1), course)
    reading = build_task_view(TaskProgress(Task("read", 4.0, pages=(page,)), 0, 1, (page,)), course)

    own = build_task_view(TaskProgress(Task("new", 2.0, cards=("a", "own:b")), 0, 2), course)

    assert cards.detail == "From pages you read, or where you missed a question"
    assert own.detail == f"{cards.detail}, or that you wrote"
    assert reading.detail == "where you missed a question"
    assert reading.needed_for == course.topics[second].title
    begun = dataclasses.replace(page, reason="begun")
    for listed, needed_for, detail in (
        (begun, course.topics[second].title, "which you started"),
        (dataclasses.replace(begun, is_rest=True), "", ""),
        (dataclasses.replace(page, required_by=""), "", "Missed in the placement test"),
    ):
        task = TaskProgress(Task("read", 4.0, pages=(listed,)), 0, 1, (listed,))
        view = build_task_view(task, course)
        assert (view.needed_for, view.detail) == (needed_for, detail)


def test_cards_after_the_list_change_nothing_on_it(reader: TestClient, session: Session):
    reader.get("/flashcards")
    before = lists(session)[0].tasks

    assert "left" in text_of(reader, "/flashcards?more=5")

    assert lists(session)[0].tasks == before


def test_mock_exams_are_dated_when_the_exam_day_is_set_and_never_again(
    reader: TestClient, session: Session, clock: Clock
):
    reader.post("/plan", data={"exam_day": "2026-07-03", "minutes_a_day": "30"})
    dates = session.exec(select(Learner.mock_days)).one()
    assert dates == "2026-06-19 2026-06-26 2026-07-01"

    for _ in range(23):
        clock.tick(days=1)
        reader.get("/plan")
        reader.post("/settings", data={"exam_day": "2026-07-03", "minutes_a_day": "45"})
        session.rollback()
        assert session.exec(select(Learner.mock_days)).one() == dates


def test_an_exam_day_moved_there_and_back_brings_the_mock_exams_back(
    reader: TestClient, session: Session, clock: Clock
):
    def dates_for(exam_day: str) -> str:
        reader.post("/plan", data={"exam_day": exam_day, "minutes_a_day": "30"})
        session.rollback()
        return session.exec(select(Learner.mock_days)).one()

    before = dates_for("2026-07-03")
    for days, expected in (5, before), (10, before):
        clock.tick(days=days)
        assert dates_for("2026-07-10") != before
        assert dates_for("2026-07-03") == expected

    clock.tick(days=10)  # the exam is over: a second try begins a new plan
    assert dates_for("2026-07-28") == f"{before} 2026-07-14 2026-07-21 2026-07-26"


def test_a_second_try_leaves_the_days_of_the_first_as_they_were(
    reader: TestClient, clock: Clock, course: Course
):
    reader.post("/plan", data={"exam_day": "2026-06-19", "minutes_a_day": "30"})
    clock.tick(days=7)  # Tuesday, June 16: the last mock exam is on Wednesday, and missed
    read_page(reader, course, course.syllabus.topics[1])
    clock.tick(days=3)
    reader.post("/exam-result", data={"result": "failed"})
    reader.post("/plan", data={"exam_day": "2026-07-19", "minutes_a_day": "30"})

    for days in (0, 1):
        clock.tick(days=days)
        week = text_of(reader).partition('<ol class="wk">')[2].partition("</ol>")[0]
        words = [" ".join(re.sub("<[^>]+>", " ", day).split()) for day in week.split("</li>")[:5]]
        plan = text_of(reader, "/plan").partition('id="todays"')[0]

        assert words == [
            "Mon , no study",
            "Tue , studied",
            "Wed mock exam missed",
            "Thu , no study",
            "Fri exam" + " , today" * (not days),
        ]
        assert plan.count("mock exam missed") == 1
        assert plan.count("<b>Exam</b>") == 2  # the first one and the one to come
        assert "Mock exam" not in plan.partition('aria-current="date"')[2].partition("</div>")[0]


def test_a_mock_exam_can_be_moved(reader: TestClient, session: Session):
    reader.post("/plan", data={"exam_day": "2026-07-03", "minutes_a_day": "30"})

    moved = reader.post("/plan/mock", data={"old": "2026-06-19", "new": "2026-06-20"})
    assert moved.status_code == 303
    session.rollback()
    dates = session.exec(select(Learner.mock_days)).one()
    assert dates == "2026-06-20 2026-06-26 2026-07-01"

    wrong = reader.post("/plan/mock", data={"old": "2026-06-20", "new": "2026-07-03"})
    assert wrong.status_code == 422
    assert "Choose a day from today to the day before your exam" in wrong.text
    assert reader.post("/plan/mock", data={"old": "", "new": "x"}).status_code == 422


def test_on_its_day_a_mock_exam_is_on_the_list(reader: TestClient, clock: Clock, course: Course):
    reader.post("/plan", data={"exam_day": "2026-07-03", "minutes_a_day": "30"})
    clock.tick(days=10)

    page = text_of(reader)

    exam = max(course.exams.values(), key=lambda exam: exam.question_count)
    assert exam.title in page
    assert 'value="today"' not in page


def test_a_mock_exam_that_was_taken_has_its_result_with_a_link_to_the_report(
    reader: TestClient, clock: Clock
):
    reader.post("/plan", data={"exam_day": "2026-07-03", "minutes_a_day": "30"})
    clock.tick(days=10)
    reader.get("/")
    finish(reader, begin(reader))
    assert "Took “" not in text_of(reader)  # nothing was answered
    sitting = begin(reader)
    save(reader, sitting, 1, answer="1")
    finish(reader, sitting)

    row = text_of(reader).partition("Took “")[2].partition("</li>")[0]
    report = text_of(reader, f"{sitting}/report")

    shown = re.search(r'<a href="([^"]+)">(\d+) of (\d+): see the report</a>', row)
    assert shown
    assert shown[1] == f"{sitting}/report"
    assert f"<b>{shown[2]}</b> of {shown[3]}</h1>" in report
    assert '<a href="/">Back to Today</a>' in report


def test_a_mock_exam_taken_early_is_not_asked_again_on_its_day(
    reader: TestClient, clock: Clock, session: Session
):
    reader.post("/plan", data={"exam_day": "2026-07-03", "minutes_a_day": "30"})
    clock.tick(days=5)
    reader.get("/")
    said = "Besides the list, you took a mock exam:"
    assert said not in text_of(reader)
    sitting = begin(reader)
    save(reader, sitting, 1, answer="1")
    finish(reader, sitting)
    today = text_of(reader)
    assert f'{said} <a href="{sitting}/report">0 of 5</a>. What is left here is still' in today
    assert re.search(r'value="today"[^>]*>Answer', today)  # the list stays

    for days in (0, 5):  # the day itself, the planned one
        clock.tick(days=days)
        plan = text_of(reader, "/plan")
        row = plan.partition('id="mocks"')[2].partition("<li")[2].partition("</li>")[0]
        assert re.search(r"Sunday, June 14</span> <span[^>]*>taken<", row)
        assert plan.count("Move the mock exam of") == 2
        calendar, _, _ = plan.partition('id="todays"')
        today = calendar.partition('aria-current="date"')[2].partition('role="cell"')[0]
        # The tick is on the day of the sitting, not on the planned one.
        assert ("<span>mock exam taken</span>" in today) is (not days)
        assert calendar.count("<span>mock exam taken</span>") == (not days)
        assert " ".join(calendar.split()).count("<span>mock exam taken on June 14</span>") == 1
    assert 'value="today"' in text_of(reader)  # questions of a usual day
    clock.tick(days=7)
    assert 'value="today"' not in text_of(reader)
    assert re.search(r"Sunday, June 14</span> <span[^>]*>taken<", text_of(reader, "/plan"))
    session.rollback()
    assert session.exec(select(Learner.mock_days)).one() == "2026-06-19 2026-06-26 2026-07-01"


def test_a_mock_exam_taken_before_the_plan_was_changed_is_noted_on_its_own_day_alone(
    reader: TestClient, clock: Clock
):
    reader.post("/plan", data={"exam_day": "2026-07-03", "minutes_a_day": "30"})
    clock.tick(days=5)
    reader.get("/")
    sitting = begin(reader)
    save(reader, sitting, 1, answer="1")
    finish(reader, sitting)
    clock.tick(days=1)
    form = {"exam_day": "2026-06-30", "minutes_a_day": "30"}
    saved = reader.post("/plan", data=form).headers["location"]

    plan = text_of(reader, saved)
    calendar, _, mocks = plan.partition('id="mocks"')

    assert "Saved. 1 mock exam fits before Tuesday, June 30, now on Sunday, June 28." in plan
    assert calendar.count("mock exam taken on") == 0  # as it would be for June 18, its planned day
    assert re.search(r"Sunday, June 14</span> <span[^>]*>taken<", mocks)
    assert mocks.count("Move the mock exam of") == 1
    reader.post("/plan", data=form | {"exam_day": "2026-07-03"})
    assert text_of(reader, "/plan").count("mock exam taken on") == 0


def test_a_day_with_a_mock_exam_besides_half_a_list_says_both(reader: TestClient, clock: Clock):
    reader.post("/plan", data={"exam_day": "2026-07-03", "minutes_a_day": "30"})
    clock.tick(days=2)
    reader.get("/")
    sitting = begin(reader)
    save(reader, sitting, 1, answer="1")
    finish(reader, sitting)
    clock.tick(days=1)

    week = text_of(reader).partition('<ol class="wk">')[2].partition("</ol>")[0]
    thursday = " ".join(re.sub("<[^>]+>", " ", week.split("</li>")[3]).split())

    assert re.fullmatch(r"Thu (\d of \d) tasks done mock exam taken", thursday), thursday
    done = thursday.removeprefix("Thu ").removesuffix(" mock exam taken")
    assert f"<span>mock exam taken, {done}</span>" in text_of(reader, "/plan")


def test_a_finished_mock_exam_counts_at_once_and_what_follows_on_the_day_does_not(
    reader: TestClient, clock: Clock, course: Course, session: Session
):
    def score() -> float:
        page = text_of(reader)
        session.rollback()
        estimate = json.loads(lists(session)[-1].estimate)
        assert f"About <b>{round(estimate['shown'])} of 5</b>" in page
        return estimate["shown"]

    def predictions() -> list[tuple[str, float]]:
        session.rollback()
        rows = session.exec(select(ScorePredictionRow).order_by(ScorePredictionRow.day)).all()
        return [(row.day, row.expected) for row in rows]

    morning, predicted = score(), predictions()
    tasks = json.loads(lists(session)[0].tasks)["tasks"]
    for answered in (False, True):
        clock.tick(minutes=1)
        sitting = begin(reader)
        if answered:
            save(reader, sitting, 1, answer="1")
        clock.tick(minutes=1)
        finish(reader, sitting)
        clock.tick(minutes=1)
        assert (score() != morning) is answered
    after = score()
    assert predictions() == predicted
    assert [json.loads(row.tasks)["tasks"] for row in lists(session)] == [tasks]

    Desk(session, clock).answers([*course.questions], 1.0, "weights")
    assert score() == after
    clock.tick(minutes=1)
    again = begin(reader)  # no question of it is answered for the first time
    save(reader, again, 1, answer="1")
    finish(reader, again)
    clock.tick(minutes=1)
    assert score() == after
    clock.tick(days=1)
    assert score() != after
    assert len(predictions()) == 2
    exam, estimate = next(iter(course.exams)), load_newest_list(session, 1, clock.now.date())[1]
    trend = build_score_trend(load_score_predictions(session, 1), exam, estimate)
    shown = [score.expected_right_answers for score in trend.predictions_oldest_first]
    assert shown == [after, score()]  # of an earlier day what was shown last stays


def test_on_its_day_the_calendar_names_a_mock_exam_once(reader: TestClient, clock: Clock):
    reader.post("/plan", data={"exam_day": "2026-07-03", "minutes_a_day": "30"})
    clock.tick(days=10)

    calendar, _, below = reader.get("/plan").text.partition('id="todays"')
    cell = calendar.partition('aria-current="date"')[2].partition('role="cell"')[0]

    assert cell.count("Mock exam") == 1
    assert ">today\N{RIGHT SINGLE QUOTATION MARK}s list</small>" in cell
    assert "minutes, with the mock exam" in below.replace("\xa0", " ")


def test_a_changed_plan_renews_a_list_on_which_nothing_was_begun(
    reader: TestClient, session: Session, course: Course
):
    reader.get("/")
    before = lists(session)[0].tasks

    reader.post("/plan", data={"exam_day": "", "minutes_a_day": "5", "card_amount": "fewer"})
    reader.get("/")
    shorter = lists(session)[0].tasks
    assert shorter != before

    read_page(reader, course, course.syllabus.topics[1])
    reader.post("/plan", data={"exam_day": "", "minutes_a_day": "60", "card_amount": "fewer"})
    reader.get("/")
    assert lists(session)[0].tasks == shorter


def test_the_estimate_comes_with_the_first_list_and_changes_once_a_day(
    reader: TestClient, clock: Clock, course: Course, session: Session
):
    def score() -> str:
        found = re.search(r"About <b>(\d+ of \d+)</b>.*likely \d+ to \d+", text_of(reader))
        assert found
        return found[0]

    morning = score()
    session.rollback()
    Desk(session, clock).answers(list(course.questions)[:8], 0.0, "weights")
    assert score() == morning

    clock.tick(days=1)
    assert score() != morning


def test_what_only_grows_is_shown_beside_it(reader: TestClient, course: Course):
    for address in ("/plan", "/progress"):
        assert "Pages read</dt><dd>1 of 2" in text_of(reader, address)
    assert "1 of 2 pages read" in text_of(reader, "/course")

    read_page(reader, course, course.syllabus.topics[1])

    for address in ("/plan", "/progress"):
        assert "Pages read</dt><dd>2 of 2" in text_of(reader, address)
    assert "2 of 2 pages read" in text_of(reader, "/course")


def test_the_amount_of_new_cards_is_a_setting(reader: TestClient, session: Session):
    form = {"exam_day": "", "minutes_a_day": "30", "card_amount": "more"}
    assert reader.post("/plan", data=form).status_code == 303
    assert session.exec(select(Learner.card_amount)).one() == "more"

    wrong = reader.post("/plan", data=form | {"card_amount": "lots"})
    assert wrong.status_code == 422
    assert "Choose fewer, normal or more" in wrong.text


def test_a_day_off_has_no_list_and_says_so(reader: TestClient):
    off = str(dt.date(2026, 6, 9).weekday())
    form = {"exam_day": "2026-07-03", "minutes_a_day": "30", "days_off": off}
    reader.post("/settings", data=form)

    page = text_of(reader)

    assert "Day off" in page
    assert '<ol class="todo">' not in page
    assert "A day off." in text_of(reader, "/plan")


def test_mock_exams_leave_a_weekday_that_becomes_a_day_off(reader: TestClient, session: Session):
    form = {"exam_day": "2026-07-03", "minutes_a_day": "30"}
    reader.post("/plan", data=form)
    planned = session.exec(select(Learner.mock_days)).one().split()
    off = dt.date.fromisoformat(planned[0]).weekday()

    reader.post("/settings", data=form | {"days_off": str(off)})

    session.rollback()
    moved = session.exec(select(Learner.mock_days)).one().split()
    assert len(moved) == len(planned)
    assert all(dt.date.fromisoformat(day).weekday() != off for day in moved)
    kept = [day for day in planned if dt.date.fromisoformat(day).weekday() != off]
    assert set(kept) <= set(moved)


def test_missed_days_are_said_until_the_list_is_done(
    reader: TestClient, session: Session, course: Course, clock: Clock
):
    reader.post("/plan", data={"exam_day": "2026-07-03", "minutes_a_day": "30"})
    clock.tick(days=1)
    assert "You missed" not in text_of(reader)

    clock.tick(days=2)  # two days after the first one without study
    note = "You missed 2 days. No pages or questions are added for them."
    assert f"{note} The next mock exam is on Friday, June 19. <a href=" in text_of(reader)
    read_page(reader, course, course.syllabus.topics[1])
    assert "You missed 2 days" in text_of(reader)
    clock.tick(days=1)
    assert "You missed" not in text_of(reader)

    mock = dt.date.fromisoformat(session.exec(select(Learner.mock_days)).one().split()[0])
    clock.tick(days=(mock - dt.date(2026, 6, 13)).days + 1)
    assert (
        "The mock exam of Friday, June 19 is on today\N{RIGHT SINGLE QUOTATION MARK}s list."
        in text_of(reader)
    )
    mocks = text_of(reader, "/plan").partition('id="mocks"')[2]
    row = mocks.partition("<li>")[2].partition("</li>")[0]
    assert "Friday, June 19 <span" in row
    assert "carried over to today" in row
    assert 'name="new" value="2026-06-20" min="2026-06-20"' in row

    clock.tick(days=7)
    dropped = "The mock exam of Friday, June 26 is on today.s list; the one before it is dropped."
    assert re.search(dropped, text_of(reader))
    clock.tick(days=2)
    assert "No pages, questions or mock exams are added for them. The next" in text_of(reader)

    reader.post("/plan", data={"exam_day": "", "minutes_a_day": "30"})
    assert "You missed" not in text_of(reader)


def test_a_score_of_few_answers_says_so_wherever_it_stands(
    reader: TestClient, session: Session, clock: Clock, course: Course
):
    def said(words: str) -> list[bool]:
        return [words in text_of(reader, address) for address in ("/", "/progress")]

    assert said("Until your answers count, a beginner is assumed") == [True] * 2
    desk, questions = Desk(session, clock), list(course.questions)
    for answered, is_said in ((questions[:2], True), (questions[2:8], False)):
        desk.answers(answered, 0.0, "weights")
        clock.tick(days=1)
        assert said("Few answers yet, so we partly assume a beginner") == [is_said] * 2


def test_the_calendar_of_the_plan_ends_with_the_exam(reader: TestClient):
    reader.post("/plan", data={"exam_day": "2026-07-03", "minutes_a_day": "30"})

    page = text_of(reader, "/plan")

    calendar = page[page.index('class="cal"') : page.index('id="todays"')]
    assert calendar.count('role="cell"') == 4 * 7
    assert calendar.count("<b>Mock exam</b>") == 3
    assert calendar.count("<b>Exam</b>") == calendar.count('aria-current="date"') == 1
    assert "There is time for every page." in page


def test_a_far_exam_shows_the_next_weeks_and_the_last_one(reader: TestClient):
    reader.post("/plan", data={"exam_day": "2028-06-09", "minutes_a_day": "30"})

    page = text_of(reader, "/plan")

    assert page.count('role="cell"') == 6 * 7
    assert "99 more weeks, then the last one" in page


def test_a_changed_plan_is_said_to_be_saved_with_its_mock_exams(reader: TestClient):
    reader.get("/")

    for exam_day, words in (
        ("2026-07-03", "Saved. 3 mock exams fit before Friday, July 3."),
        ("2026-06-19", "June 19, now on Saturday, June 13; Wednesday, June 17."),
        ("2026-06-19", "Saved. 2 mock exams fit before Friday, June 19."),
        ("2026-06-15", "Saved. 1 mock exam fits before Monday, June 15."),  # that of June 13 stays
        ("2026-06-12", "Saved. No mock exam fits before Friday, June 12."),
    ):
        sent = reader.post("/plan", data={"exam_day": exam_day, "minutes_a_day": "30"})
        assert words in text_of(reader, sent.headers["location"])
    assert "Saved" not in text_of(reader, "/plan")


def test_a_page_that_was_read_is_named_so_in_the_calendar(reader: TestClient, course: Course):
    reader.get("/")
    assert "<span>Read 1 page</span>" in text_of(reader, "/plan")

    read_page(reader, course, course.syllabus.topics[1])

    assert "<span>1 page read</span>" in text_of(reader, "/plan")


@pytest.mark.parametrize(
    ("exam_day", "words"),
    [
        ("2026-06-10", "No new pages on the day before the exam: review instead."),
        ("2026-06-11", "There is no time for pages."),
    ],
)
def test_a_plan_without_a_day_for_pages_says_so(reader: TestClient, exam_day: str, words: str):
    today_off = {"days_off": "1"}
    reader.post("/settings", data={"exam_day": exam_day, "minutes_a_day": "5"} | today_off)

    plan = text_of(reader, "/plan")
    assert words in plan
    assert "minutes a day, " not in plan


def test_what_the_plan_cannot_use_is_said_on_the_plan(reader: TestClient):
    form = {"exam_day": "2026-07-09", "minutes_a_day": "soon", "page": "plan"}
    sent = reader.post("/plan", data=form)

    assert sent.status_code == 422
    assert "Nothing was saved." in sent.text.partition("<h1>")[0]  # The form is far below.
    assert "Change the plan" in sent.text
    assert 'value="soon"' in sent.text
    assert 'aria-invalid="true"' in sent.text


def test_pages_that_fit_with_finished_lists_only_are_said_to_do_so():
    # Finished lists have 1.25 times as much; a page takes 20 minutes.
    surely, just, but_a_minute, not_all = (
        ReadingTimeVerdict(4, 1, "short", 100, minutes) for minutes in (100, 80, 79, 64)
    )

    assert surely.does_reading_fit
    assert just.does_reading_fit_if_lists_finished
    assert not just.does_reading_fit
    assert but_a_minute.does_reading_fit_if_lists_finished
    assert not not_all.does_reading_fit_if_lists_finished
    assert not_all.fitting_page_count == 3
    # Minutes that say otherwise are not shown.
    judged = [one.are_minutes_as_judged for one in (surely, just, but_a_minute, not_all)]
    assert judged == [True, True, False, True]


@pytest.mark.parametrize("days", [4, 9, 13])
def test_minutes_that_the_plan_proposes_let_the_pages_fit_once_saved(
    settings: Settings, clock: Clock, live_shipped: LiveCourse, days: int
):
    shipped = live_shipped.get_current_course()
    exam_day = (clock.now.date() + dt.timedelta(days=days)).isoformat()
    proposed = set()
    with visit(create_app(settings, clock, live_shipped)) as browser:
        for slug in shipped.syllabus.topics[:2]:
            read_page(browser, shipped, slug)
        clock.tick(days=1)
        for minutes_a_day in (10, 30, 35, 40, 50, 90, 105):
            browser.post("/plan", data={"exam_day": exam_day, "minutes_a_day": minutes_a_day})
            if found := re.search(r"With (\d+) minutes a day,", text_of(browser, "/plan")):
                proposed.add(found[1])
        (minutes,) = proposed
        browser.post("/plan", data={"exam_day": exam_day, "minutes_a_day": minutes})
        assert "fit if you finish each day" in text_of(browser, "/plan")


def test_reading_what_is_on_the_list_takes_no_more_time_than_its_minutes():
    before = ReadingTimeVerdict(9, 0, "short", 100, 80, minutes_left_on_todays_list=20)
    after = ReadingTimeVerdict(7, 0, "short", 80, 60, minutes_left_on_todays_list=0)

    assert (
        before.available_minutes_if_lists_finished - after.available_minutes_if_lists_finished == 20
    )


def test_whole_pages_fit_without_the_rest_of_begun_ones(
    reader: TestClient, course: Course, monkeypatch: pytest.MonkeyPatch
):
    course_facts, (begun, other) = cached_course_facts(course), course.syllabus.topics[:2]
    pages = {
        begun: dataclasses.replace(course_facts.pages[begun], reading_minutes=400.0),
        other: dataclasses.replace(course_facts.pages[other], reading_minutes=30.0),
    }
    longer = dataclasses.replace(course_facts, pages=pages)
    monkeypatch.setattr("app.progress.plan_page.cached_course_facts", lambda _course: longer)
    rest = PageToRead(begun, 380.0, "weak", is_rest=True)
    unread = PageToRead(other, 30.0, "weak")
    monkeypatch.setattr("app.progress.plan_page.list_unread_pages", lambda *_: [rest, unread])
    reader.post("/plan", data={"exam_day": "2026-06-23", "minutes_a_day": "30"})

    plan = text_of(reader, "/plan")
    assert "There is time for every page." in plan
    assert "1 page left: 30 min." in plan


def test_the_time_left_is_the_sum_of_the_minutes_that_pages_show(
    rosa: TestClient, course: Course, monkeypatch: pytest.MonkeyPatch
):
    course_facts = cached_course_facts(course)
    pages = {
        s: dataclasses.replace(page, reading_minutes=3.4) for s, page in course_facts.pages.items()
    }
    shown = dataclasses.replace(course_facts, pages=pages)
    monkeypatch.setattr("app.progress.plan_page.cached_course_facts", lambda _course: shown)
    rosa.post("/plan", data={"exam_day": "2026-07-09", "minutes_a_day": "60"})

    assert "2 pages left: 6 min." in text_of(rosa, "/plan")


def test_a_list_is_renewed_from_the_settings_too(reader: TestClient, session: Session):
    reader.get("/")
    before = lists(session)[0].tasks

    reader.post("/settings", data={"exam_day": "2026-07-03", "minutes_a_day": "5"})
    reader.get("/flashcards")

    assert lists(session)[0].tasks != before


def test_the_end_of_the_cards_leads_to_the_next_task_of_the_list(reader: TestClient):
    next_button = re.compile(
        r'<(?:a|button) class="btn main[^"]*"[^>]*data-key="enter">.*?<kbd>', re.DOTALL
    )
    first = next_button.search(reader.get("/").text)
    after = next_button.search(reader.get("/flashcards?task=review").text)

    assert first
    assert re.search(r"<span>Read “[^<]*”</span>", first[0])  # one flex item, without gaps
    assert after
    assert after[0] == first[0].replace(" bigbtn", "")


def test_the_reviews_of_the_list_end_before_its_new_cards(reader: TestClient):
    reader.get("/")

    end = reader.get("/flashcards?task=review").text
    assert "Back to Today" in end
    assert "/reviews" not in end
    new = reader.get("/flashcards?task=new").text
    assert "/reviews" in new or "/answer" in new
    assert (
        '<input type="hidden" name="task" value="new">'
        in reader.get("/flashcards?task=new&show=1").text
    )


def test_the_end_of_the_cards_says_how_many_missed_questions_wait(
    reader: TestClient, session: Session, course: Course, clock: Clock
):
    learner = session.exec(select(Learner.id)).one() or 0
    session.commit()
    words = "questions that you missed or left blank wait as new cards, a few a day."

    def miss(questions: list[str]) -> None:
        cards = [CardToAdd(build_question_card_id(item)) for item in questions]
        day = clock.now.date()
        schedule_missed_questions_for_tomorrow(session, learner, cards, day, clock.now)
        session.commit()

    reader.get("/")
    assert "missed question" not in text_of(reader, "/flashcards?task=review")
    first, *others = [*course.questions][:12]
    miss([first])
    assert "1 question that you missed or left blank waits as a new card." in text_of(
        reader, "/flashcards?task=review"
    )
    miss(others)
    assert f"12 {words}" in text_of(reader, "/flashcards?task=review")

    while card := re.search(
        r'action="(/flashcards/[^"]+/reviews)"', reader.get("/flashcards?show=1").text
    ):
        reader.post(card[1], data={"rating": 4, "token": card[1]})
    end = text_of(reader, "/flashcards")
    assert f"12 {words}" in end
    assert "new card from" not in end  # they would be of pages that nobody has read
    assert "new cards from" not in end

    set_card_declined_if_added(session, learner, build_question_card_id(first), declined=True)
    session.commit()
    assert f"11 {words}" in text_of(reader, "/flashcards?task=review")

    learned = session.exec(select(Learner)).one()
    learned.exam_day = (clock.now.date() + dt.timedelta(days=2)).isoformat()
    session.commit()
    assert (
        "11 questions that you missed or left blank won\N{RIGHT SINGLE QUOTATION MARK}t"
        in text_of(reader, "/flashcards?task=review")
    )


def test_the_end_of_the_cards_says_when_a_card_that_was_made_since_comes(
    reader: TestClient, session: Session, clock: Clock
):
    reader.get("/")
    tasks = json.loads(lists(session)[0].tasks)["tasks"]
    for card in next(task["cards"] for task in tasks if task["kind"] == "new"):
        reader.post(f"/flashcards/{card}/suspension", data={"aside": "yes"})
    assert "that you added" not in text_of(reader, "/flashcards")

    reader.post("/flashcards/own", data={"front": "Own front", "back": "Own back", "token": "t"})

    assert "1 card that you added comes with your next list." in text_of(reader, "/flashcards")
    assert "that you added" not in text_of(reader, "/flashcards?task=review")
    clock.tick(days=1)
    reader.get("/")
    assert "Own front" in text_of(reader, "/flashcards")


def test_a_card_put_aside_does_not_count_as_learned(reader: TestClient, session: Session):
    reader.get("/")
    tasks = json.loads(lists(session)[0].tasks)["tasks"]
    first, *others = next(task["cards"] for task in tasks if task["kind"] == "new")
    for card in others:
        reader.post(f"/flashcards/{card}/suspension", data={"aside": "yes"})
    reader.post(f"/flashcards/{first}/reviews", data={"rating": 4, "token": f"{first}.0"})

    assert "1 card learned" in reader.get("/").text.replace("\xa0", " ")


def test_a_card_that_was_skipped_leaves_nothing_to_do(reader: TestClient, session: Session):
    reader.get("/")
    tasks = json.loads(lists(session)[0].tasks)["tasks"]
    cards = next(task["cards"] for task in tasks if task["kind"] == "new")
    for card in cards:
        skipped = {"act": "bury", "token": f"{card}.0", "task": "new"}
        assert reader.post(f"/flashcards/{card}/acts", data=skipped).status_code == 303

    assert "Skipped until" in reader.get(f"/flashcards/{cards[0]}/more").text
    assert f"{len(cards)} card" in reader.get("/").text.replace("\xa0", " ")
    assert "/flashcards?task=new" not in reader.get("/").text


def grade_next(browser: TestClient, rating: str, address: str = "/flashcards?task=new") -> bool:
    """Grade the card that is shown; False if there is none."""
    shown = browser.get(f"{address}&show=1").text
    card = re.search(r'action="(/flashcards/[^"]+/reviews)"', shown)
    token = re.search(r'name="token" value="([^"]+)"', shown)
    if not card or not token:
        return False
    browser.post(card[1], data={"rating": rating, "token": token[1]})
    return True


def test_recalled_cards_are_counted_among_those_that_were_started(reader: TestClient, clock: Clock):
    assert "remembered on a later day</dt><dd>0</dd>" in text_of(reader, "/progress")
    assert grade_next(reader, "4")
    assert grade_next(reader, "4")

    clock.tick(days=1)
    known = "remembered on a later day</dt><dd>none yet of 2 <small>as of this morning</small></dd>"
    assert known in text_of(reader, "/progress")


def test_cards_newly_known_are_those_of_the_seven_days(reader: TestClient, clock: Clock):
    while grade_next(reader, "4"):
        pass
    clock.tick(days=60)
    reader.get("/")
    reviewed = 0
    while grade_next(reader, "4", "/flashcards?task=review"):
        reviewed += 1
    assert reviewed

    clock.tick(days=6)
    assert re.search(
        rf"The last seven days: .*, {reviewed} cards? remembered on a later day", text_of(reader)
    )
    clock.tick(days=1)
    assert "The last seven days: 0 days of study, 0 pages, 0 answers." in text_of(reader)


def test_a_new_card_is_ticked_once_it_does_not_come_back_today(reader: TestClient):
    count = int(found[1]) if (found := re.search(r"Learn (\d+) card", text_of(reader))) else 0
    assert count > 1
    for _ in range(count):
        assert grade_next(reader, "3")

    assert f"Learn {count} card" in text_of(reader)
    assert f"{count} to repeat" in text_of(reader)
    assert f"Learning <b>{count}</b>" in text_of(reader, "/flashcards?task=new")

    assert grade_next(reader, "4")
    left = f"Learn {count - 1} card"
    page = text_of(reader)
    assert left in page
    assert f"1 of {count} done, {count - 1} to repeat" in page
    assert f"Learning <b>{count - 1}</b>" in text_of(reader, "/flashcards?task=new")

    while grade_next(reader, "4"):
        pass
    assert f"{count} cards learned" in text_of(reader)
