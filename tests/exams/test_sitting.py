"""/exams/sittings: a paper that is saved at every change and ends when it ends."""

import json
import re

from sqlmodel import Session, select

from app.database.tables import Attempt, Sitting, SittingAnswer
from app.questions.model import draw_variant
from app.questions.types.number_parsing import NumericSpec
from tests.conftest import Clock, visit
from tests.exams.sitting import START, begin, finish, save


def test_a_paper_is_drawn_by_the_blueprint_and_waits_to_be_answered(rosa) -> None:
    sitting = begin(rosa)
    page = rosa.get(f"{sitting}/questions/1").text

    assert "Question 1 of 5" in page
    assert "6:00" in page
    assert "Right" not in page.replace("Right now", "").replace("No right", "")


def test_every_change_is_kept_when_it_is_made(htmx, right) -> None:
    sitting = begin(htmx)
    number, fields = next(iter(right().items()))

    saved = save(htmx, sitting, number, **fields, flag="yes")

    assert saved.status_code == 200
    assert "Saved" in saved.text
    assert "12:00:00\N{NO-BREAK SPACE}PM\nUTC" in saved.text
    page = htmx.get(f"{sitting}/questions/1").text
    assert f"{number}, answered, flagged" in page


def test_a_unit_beside_an_empty_field_is_no_answer(rosa, session) -> None:
    sitting = begin(rosa)

    save(rosa, sitting, 1, answer="", unit="GB", flag="yes")

    assert "1, unanswered, flagged" in rosa.get(f"{sitting}/questions/2").text
    finish(rosa, sitting)
    assert session.exec(select(Attempt)).all() == []


def test_another_tab_goes_on_with_the_same_paper(rosa) -> None:
    sitting = begin(rosa)
    again = rosa.post(f"{START}/sittings", data={"token": "of another tab"})

    assert again.headers["location"] == f"{sitting}/questions/1"


def test_a_second_click_on_start_starts_nothing(rosa, session) -> None:
    html = rosa.get(START).text
    token = re.search(r'name="token" value="([^"]+)"', html)
    assert token
    for _ in range(2):
        rosa.post(f"{START}/sittings", data={"token": token[1]})

    assert len(session.exec(select(Sitting)).all()) == 1


def test_the_report_counts_what_was_answered(rosa, right) -> None:
    rosa.post("/settings", data={"target": "70"})
    sitting = begin(rosa)
    for number, fields in right().items():
        save(rosa, sitting, number, **fields)

    done = finish(rosa, sitting)
    report = rosa.get(done.headers["location"]).text

    assert f"<b>{len(right())}</b> of 5" in report
    assert "your target 4" in report
    assert "No pass mark is assumed" in report


def test_the_clock_can_be_started_before_the_table_of_questions(client) -> None:
    page = client.get(START).text

    assert 0 < page.index("Start the clock") < page.index("Questions of all kinds")


def test_the_way_to_a_target_is_on_progress_and_where_an_exam_starts(rosa) -> None:
    rosa.post("/concepts/weights/readings")
    set_one = '<a href="/settings#target">Set '
    assert all(set_one in rosa.get(address).text for address in (START, "/progress"))
    assert 'id="target"' in rosa.get("/settings").text

    rosa.post("/settings", data={"target": "70"})

    start = " ".join(rosa.get(START).text.split())
    assert 'Your target: 4 of 5. <a href="/settings#target">Change it</a>' in start
    assert '<a href="/settings#target">Change your target</a>' in rosa.get("/progress").text


def test_submitting_twice_changes_nothing_and_says_so(rosa, session, right) -> None:
    sitting = begin(rosa)
    number, fields = next(iter(right().items()))
    save(rosa, sitting, number, **fields)
    finish(rosa, sitting)
    before = [(a.id, a.score) for a in session.exec(select(Attempt))]

    late = finish(rosa, sitting)

    assert late.headers["location"].endswith("report?late=1")
    assert "had ended already" in rosa.get(late.headers["location"]).text
    assert [(a.id, a.score) for a in session.exec(select(Attempt))] == before


def test_after_the_deadline_an_answer_is_refused_and_the_paper_is_closed(
    htmx, clock: Clock, session: Session
) -> None:
    sitting = begin(htmx)
    save(htmx, sitting, 1, answer="x")
    clock.tick(minutes=6, seconds=1)

    late = save(htmx, sitting, 2, answer="y")

    assert late.status_code == 409
    assert "the exam has ended" in late.text
    row = session.exec(select(Sitting)).one()
    assert row.closed_by == "time"
    assert row.closed_at == row.deadline_at
    assert [a.number for a in session.exec(select(SittingAnswer))] == [1]


def test_the_deadline_itself_still_counts(rosa, clock: Clock, session: Session) -> None:
    sitting = begin(rosa)
    clock.tick(minutes=6)

    save(rosa, sitting, 1, answer="x")

    assert session.exec(select(Sitting)).one().closed_at is None


def test_more_time_is_given_to_those_who_need_it(rosa, clock: Clock) -> None:
    sitting = begin(rosa, factor="1.5")
    clock.tick(minutes=8)

    assert "1:00" in rosa.get(f"{sitting}/questions/1").text


def test_a_wrong_wish_is_refused_with_its_reason_and_starts_no_clock(rosa, session) -> None:
    typed = {"token": "t", "factor": "7", "kinds": "all"}
    answer = rosa.post(f"{START}/sittings", data=typed)

    assert answer.status_code == 422
    assert "Time factor: “7” is not one of 1, 1.25, 1.5, 2, 3." in answer.text
    assert '<option value="all" selected>' in answer.text
    assert 'id="factor-err"' in answer.text
    assert session.exec(select(Sitting)).all() == []


def test_anothers_sitting_is_not_there(rosa, milo) -> None:
    sitting = begin(rosa)
    milo.get("/")

    assert milo.get(f"{sitting}/questions/1").status_code == 404
    assert save(milo, sitting, 1, answer="x").status_code == 404
    assert finish(milo, sitting).status_code == 404
    assert milo.get(f"{sitting}/report").status_code == 404


def test_a_question_of_the_running_paper_is_not_practiced(rosa, session) -> None:
    begin(rosa)
    paper = session.exec(select(Sitting.paper)).one()
    item = re.search(r'\[1, "([a-z0-9-]+)"', paper)
    assert item
    topics = ["kv-cache", "weights"]
    answers = [rosa.get(f"/quiz/{topic}/{item[1]}").status_code for topic in topics]

    assert 409 in answers
    assert 200 not in answers


def test_an_open_question_shows_its_answer_afterwards(rosa) -> None:
    sitting = begin(rosa)
    finish(rosa, sitting)

    for number in range(1, 6):
        page = rosa.get(f"{sitting}/questions/{number}")
        assert page.status_code == 200
        assert "unanswered" in page.text


def test_a_number_left_open_is_not_called_an_answer(rosa, course, session) -> None:
    numbers: list[int] = []
    while not numbers:  # papers are drawn by chance, and not each asks for one
        sitting = begin(rosa)
        finish(rosa, sitting)
        session.rollback()
        newest = select(Sitting.paper).order_by(Sitting.id)
        paper = json.loads(session.exec(newest).all()[-1])
        numbers = [
            number
            for number, item, *_ in paper
            if isinstance(draw_variant(course.questions[item], 1).answer, NumericSpec)
        ]

    for number in numbers:
        html = rosa.get(f"{sitting}/questions/{number}").text
        assert "Your answer:" not in html
        assert "Not answered." in html
        assert "Right answer: " in html


def test_the_day_of_an_exam_is_the_learners(rosa, clock: Clock) -> None:
    rosa.post("/settings", data={"zone": "Asia/Tokyo"})
    clock.now = clock.now.replace(hour=22)
    sitting = begin(rosa)
    finish(rosa, sitting)

    following = f"June\u00a0{clock.now.day + 1}, 2026"

    assert following in rosa.get(f"{sitting}/report").text
    assert following in rosa.get("/exams").text


def test_the_review_lists_what_is_open_and_flagged(rosa, right) -> None:
    sitting = begin(rosa)
    number, fields = next(iter(right().items()))
    save(rosa, sitting, number, **fields, flag="yes")

    every = rosa.get(f"{sitting}/review").text
    open_ones = rosa.get(f"{sitting}/review?show=incomplete").text
    flagged = rosa.get(f"{sitting}/review?show=flagged").text

    assert "1 of 5 answered, 4 unanswered, 1 flagged" in every
    assert open_ones.count("data-stop") == 4
    assert flagged.count("data-stop") == 1


def test_who_answered_everything_can_end_the_exam(rosa, right) -> None:
    sitting = begin(rosa, kinds="")  # choices only
    answers = right()
    for number, fields in answers.items():
        save(rosa, sitting, number, **fields)

    review = rosa.get(f"{sitting}/review")

    assert f"{len(answers)} of {len(answers)} answered" in review.text
    assert f'{sitting}/questions/1">Back to question 1</a>' in review.text
    assert "No question is unanswered." in rosa.get(f"{sitting}/review?show=incomplete").text


def test_before_the_end_there_is_no_report(rosa) -> None:
    sitting = begin(rosa)

    assert rosa.get(f"{sitting}/report").headers["location"].endswith("/questions/1")


def test_who_goes_on_gets_the_first_open_question(rosa, right) -> None:
    sitting = begin(rosa)

    def ways_to_go_on() -> set[str]:
        home, start = rosa.get("/exams").text, rosa.get("/exams/short").text
        found = re.search(r'href="([^"]+)">Go on</a>', home)
        running = re.search(r'href="([^"]+)">Go on with the exam', start)
        assert found
        assert running
        posted = rosa.post("/exams/short/sittings", data={"token": "again", "kinds": "all"})
        report = rosa.get(f"{sitting}/report")
        return {found[1], running[1], posted.headers["location"], report.headers["location"]}

    for number in (1, 2, 4):
        save(rosa, sitting, number, **right().get(number, {"answer": "1"}))
    page = rosa.get(f"{sitting}/questions/5").text
    first_open = min({1, 2, 3, 4, 5} - {*map(int, re.findall(r'"(\d), answered', page))})

    assert ways_to_go_on() == {f"{sitting}/questions/{first_open}"}
    assert f'{sitting}/questions/{first_open}">Go on answering</a>' in (
        rosa.get(f"{sitting}/review").text
    )


def test_a_question_that_the_paper_lacks_is_404(rosa) -> None:
    sitting = begin(rosa)

    assert rosa.get(f"{sitting}/questions/6").status_code == 404


def test_the_same_paper_is_found_after_a_restart(app, rosa, right) -> None:
    sitting = begin(rosa)
    number, fields = next(iter(right().items()))
    save(rosa, sitting, number, **fields)
    with visit(app) as later:
        later.cookies = rosa.cookies
        assert f"{number}, answered" in later.get(f"{sitting}/questions/2").text


def test_the_counts_beside_the_paper_lead_to_what_they_count(rosa) -> None:
    sitting = begin(rosa)
    page = rosa.get(f"{sitting}/questions/1").text

    for show, words in (("incomplete", "unanswered 5"), ("flagged", "flagged 0")):
        assert f'data-to="{sitting}/review?show={show}">{words}</button>' in page
        sent = rosa.post(f"{sitting}/answers/1", data={"go": show})
        assert sent.headers["location"] == f"{sitting}/review?show={show}"


def test_a_running_exam_has_a_map_of_its_keys(rosa) -> None:
    sitting = begin(rosa)

    for address in (f"{sitting}/questions/1", f"{sitting}/review"):
        page = rosa.get(address).text
        assert 'id="keys"' in page
        assert "flag the question" in page


def test_a_hidden_clock_comes_back_for_the_last_five_minutes(rosa, clock: Clock) -> None:
    sitting = begin(rosa)
    rosa.cookies.set("clock", "hidden")
    address = f"{sitting}/questions/1"
    assert not re.search(r"<details[^>]* open>", rosa.get(address).text)

    clock.tick(minutes=1)

    shown = rosa.get(address).text
    assert re.search(r"<details[^>]* open>", shown)


def test_the_report_leads_to_the_pages_where_most_was_lost(rosa) -> None:
    sitting = begin(rosa)
    for number in range(1, 6):
        save(rosa, sitting, number, answer="b")

    report = rosa.get(finish(rosa, sitting).headers["location"]).text

    _, _, advice = report.partition("What to do next")
    steps = re.findall(r"<h3>(\w+) “", advice)
    assert steps == ["Read", "Practice"]
    assert re.search(r'<a class="btn" href="/concepts/[^"]+">Read</a>', advice)
    assert re.search(r'name="pick" value="objective:[\d.]+">Practice</button>', advice)


def test_the_report_parts_what_was_wrong_from_what_was_left_open(rosa, right) -> None:
    sitting = begin(rosa)
    number, fields = next(iter(right().items()))
    save(rosa, sitting, number, **fields)

    done = finish(rosa, sitting)
    told = " ".join(rosa.get(done.headers["location"]).text.split())

    assert "Go over the 4 you left blank" in told
    assert "<h3>Read “" not in told
    assert "<h3>Practice “" not in told
    assert "The 4 questions without an answer count as wrong, so this says little about" in told
    assert "too many unanswered" in rosa.get("/exams").text


def test_what_is_struck_out_has_an_end(rosa, session: Session) -> None:
    sitting = begin(rosa)

    save(rosa, sitting, 1, strike=[f"option {n}" for n in range(900)])

    row = session.exec(select(SittingAnswer)).one()
    assert len(json.loads(row.struck)) == 40
