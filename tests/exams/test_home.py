"""Mock exams are found, and their home offers whole papers and smaller ones."""

import dataclasses
import datetime as dt
import json
import re

import pytest
from fastapi.testclient import TestClient
from sqlmodel import Session, select

from app.database.tables import Sitting
from app.exams.assembly import (
    DomainQuestionCounts,
    find_exam_title,
    is_exam_of_missed_questions,
    strip_derived_exam_suffix,
    yield_exams_derived_from,
)
from app.exams.report import PastSitting, build_exam_score_trend
from app.exams.sitting import list_solvable_questions
from app.markup.model import Domain, ExamBlueprint, Objective, SourceLocation
from tests.conftest import Clock
from tests.exams.test_paper import question
from tests.quiz.bank import MULTIPLE, with_rule
from tests.quiz.course import EditableLiveCourse

WHOLE = ExamBlueprint(
    "mock", "The mock", 50, 60, {"1": 30, "2": 20}, SourceLocation("exams/mock.toml", 1)
)
DOMAINS = (
    Domain("1", "Models", 0.6, (Objective("1.1", "Know models", "1", "Know models"),)),
    Domain("2", "Racks", 0.4, (Objective("2.1", "Know racks", "2", "Know racks"),)),
)
NOON = dt.datetime(2026, 6, 9, 12, tzinfo=dt.UTC)


@pytest.fixture
def live_course() -> EditableLiveCourse:
    bank = [question(f"q{o}-{n}", o) for o in ("1.1", "2.1") for n in range(35)]
    live = EditableLiveCourse(*bank)
    held = live.held
    live.held = dataclasses.replace(
        held,
        syllabus=dataclasses.replace(held.syllabus, domains=DOMAINS),
        exams={"mock": WHOLE},
    )
    return live


def test_the_first_mock_exam_is_advised_when_the_plan_has_it(rosa: TestClient) -> None:
    assert "read at least half of the pages first" in " ".join(rosa.get("/exams").text.split())

    rosa.post("/plan", data={"exam_day": "2026-07-03", "minutes_a_day": "30"})

    page = rosa.get("/exams").text.replace("\xa0", " ")
    assert "Your plan has one on Friday, June 19." in page
    assert "at least half" not in page


def test_after_a_result_the_next_planned_mock_exam_is_named(rosa: TestClient, clock: Clock) -> None:
    rosa.post("/plan", data={"exam_day": "2026-07-03", "minutes_a_day": "30"})
    for days, next_one in ((5, "Friday, June 26"), (12, "Wednesday, July 1"), (5, "")):
        clock.tick(days=days)  # early, on the day, on the last day
        sitting = sit(rosa, "mock")
        rosa.post(f"{sitting}/answers/1", data={"answer": "1"})
        rosa.post(f"{sitting}/submission")
        page = " ".join(rosa.get("/exams").text.replace("\xa0", " ").split())
        said = re.findall(r"Your plan has the next one on ([^.]+)\.", page)
        assert said == ([next_one] if next_one else [])


def test_a_mock_exam_of_today_is_named_also_a_day_late(rosa: TestClient, clock: Clock) -> None:
    rosa.post("/plan", data={"exam_day": "2026-07-03", "minutes_a_day": "30"})
    for days, said in ((10, "today"), (1, "today"), (4, "on Friday, June 26"), (2, "today")):
        clock.tick(days=days)  # on the day, a day late, too late, on the next one's day
        page = rosa.get("/exams").text.replace("\xa0", " ")
        assert f"Your plan has one {said}." in page


@pytest.mark.parametrize("address", ["/", "/course", "/quiz", "/flashcards", "/calculators"])
def test_mock_exams_are_in_the_navigation_of_every_width(rosa: TestClient, address: str) -> None:
    page = rosa.get(address).text
    wide = page.partition('aria-label="Main"')[2].partition("</nav>")[0]
    thumb = page.partition('aria-label="Main, at thumb"')[2].partition("</nav>")[0]
    foot = page.partition("<footer")[2]

    assert all('href="/exams"' in part for part in (wide, thumb, foot))
    assert wide.count("<a ") == 7
    assert thumb.count("<a ") == 5
    header = page.partition("<header")[2].partition("</header>")[0]
    assert "</svg> Calculators</a>" in header


def test_practice_and_the_course_lead_to_them(rosa: TestClient) -> None:
    for address in ("/quiz", "/course"):
        main = rosa.get(address).text.partition("<main")[2].partition("</main>")[0]
        assert 'href="/exams"' in main


def test_the_home_names_itself_in_the_navigation(rosa: TestClient) -> None:
    found = re.findall(r'<a href="/exams" aria-current="page">', rosa.get("/exams").text)

    assert len(found) == 2


def test_the_whole_exam_comes_first_and_smaller_ones_keep_its_pace(
    rosa: TestClient,
) -> None:
    words = " ".join(re.sub(r"<[^>]*>", " ", rosa.get("/exams").text).split())
    words = words.replace("\xa0", " ")

    order = ["The mock", "Short mock exam", "Models only", "Racks only"]
    assert [words.index(name) for name in order] == sorted(map(words.index, order))
    assert "50 questions, 60 min" in words
    assert words.count("20 questions, 24 min") == 3
    assert "Only what you missed" not in words


def test_start_leads_to_the_time_and_the_rules_first(rosa: TestClient) -> None:
    page = rosa.get("/exams").text

    assert re.search(r'<a class="btn main" href="/exams/mock">Start<', page)
    assert "/sittings" not in page
    assert "Start the clock" in rosa.get("/exams/mock").text


def test_a_likely_range_has_the_same_form_everywhere(rosa: TestClient) -> None:
    sitting = sit(rosa, "mock~short")
    for number in range(1, 21):
        rosa.post(f"{sitting}/answers/{number}", data={"answer": "a" if number < 8 else "b"})
    report = rosa.get(rosa.post(f"{sitting}/submission").headers["location"]).text

    said = re.search(r"probably score (\d+ to \d+ of 20)\.", " ".join(report.split()))

    assert said
    assert f">{said[1]}<" in " ".join(rosa.get("/exams").text.split())


def sit(client: TestClient, exam: str) -> str:
    html = client.get(f"/exams/{exam}").text
    token = re.search(r'name="token" value="([^"]+)"', html)
    assert token
    begun = client.post(f"/exams/{exam}/sittings", data={"token": token[1]})
    assert begun.status_code == 303
    return begun.headers["location"].rpartition("/questions/")[0]


def test_a_running_exam_says_on_the_12_hour_clock_when_it_ends(rosa: TestClient) -> None:
    sit(rosa, "mock")

    assert "1:00 PM UTC" in " ".join(rosa.get("/exams").text.split())
    rosa.post("/settings", data={"zone": "America/New_York"})
    assert "9:00 AM EDT" in " ".join(rosa.get("/exams").text.split())


@pytest.mark.parametrize(
    ("exam", "count", "minutes"),
    [("mock", 50, 60), ("mock~short", 20, 24), ("mock~domain-2", 20, 24)],
)
def test_every_paper_is_drawn_as_it_says(
    rosa: TestClient, session: Session, exam: str, count: int, minutes: int
) -> None:
    sit(rosa, exam)

    row = session.exec(select(Sitting)).one()

    paper = json.loads(row.paper)
    assert len(paper) == count
    assert row.deadline_at - row.started_at == minutes * 60_000
    if exam.endswith("2"):
        assert {domain for *_, domain in paper} == {"2"}


def test_the_questions_of_an_ended_exam_show_their_results_with_a_legend(rosa: TestClient) -> None:
    sitting = sit(rosa, "mock~short")
    for number, key in ((1, "a"), (2, "b"), (3, "b")):
        rosa.post(f"{sitting}/answers/{number}", data={"answer": key})
    rosa.post(f"{sitting}/submission")
    page = rosa.get(f"{sitting}/questions/1").text

    looks = dict(re.findall(r'class="([\w-]*)"[^>]*aria-label="\d+, ([a-z ]+)"', page))
    legend = page.partition('class="small row leg"')[2].partition("</p>")[0]

    assert len(looks) == 3
    assert re.findall(r"<span>([a-z ]+ \d+)</span>", legend) == [
        "right 1",
        "not right 2",
        "unanswered 17",
    ]


def test_the_report_says_that_its_page_is_on_the_next_list_and_why_it_is_named(
    rosa: TestClient,
) -> None:
    sitting = sit(rosa, "mock~short")
    rosa.post(f"{sitting}/answers/1", data={"answer": "b"})

    ended = rosa.post(f"{sitting}/submission").headers["location"]

    text = " ".join(rosa.get(ended).text.split())
    assert re.search(r"<p>On your next list · [^<·]+: 0 of 1 point in what you answered</p>", text)


def test_what_was_missed_is_a_paper_of_its_own(rosa: TestClient, session: Session) -> None:
    first = sit(rosa, "mock~short")
    for number in range(1, 4):
        rosa.post(f"{first}/answers/{number}", data={"answer": "b"})
    rosa.post(f"{first}/answers/4", data={"answer": "a"})
    rosa.post(f"{first}/submission")
    missed = {item for _, item, *_ in json.loads(session.exec(select(Sitting.paper)).one())[:3]}

    assert "Only what you missed" in rosa.get("/exams").text
    start = " ".join(rosa.get("/exams/mock~missed").text.replace("\xa0", " ").split())
    assert re.search(r">3 questions that you missed last time, in \d+ minutes\.</p>", start)
    assert "drawn by the weights" not in start
    assert "drawn by the weights of the exam" in rosa.get("/exams/mock~short").text
    again = sit(rosa, "mock~missed")

    session.rollback()  # look anew
    newest = session.exec(select(Sitting.paper).order_by(Sitting.id.desc())).first()
    assert {item for _, item, *_ in json.loads(newest or "")} == missed
    rosa.post(f"{again}/submission")
    home = rosa.get("/exams").text
    assert home.count("/report") == 2
    assert "Short mock exam" in rosa.get(f"{first}/report").text
    report = " ".join(rosa.get(f"{again}/report").text.split())
    assert "Only what you missed" in report
    assert "expected score</a> stays as it was" in report
    assert (
        "expected score</a> ignores blanks and also uses your pages, cards and earlier answers, so it may differ."
        in " ".join(rosa.get(f"{first}/report").text.split())
    )


def test_missed_questions_that_exams_do_not_ask_are_counted_apart(
    rosa: TestClient, live_course: EditableLiveCourse
) -> None:
    held = live_course.held
    deeper = dataclasses.replace(held.questions["q1.1-0"], level="deeper")
    questions = {**held.questions, "q1.1-0": deeper}
    live_course.held = dataclasses.replace(held, questions=questions, version="2")
    for item in ("q1.1-0", "q1.1-1"):
        rosa.post(f"/quiz/t/{item}/attempts", data={"seed": "1", "answer": "b"})

    practice, exams = (re.sub(r"\s+", " ", rosa.get(page).text) for page in ("/quiz", "/exams"))

    assert "2 questions you missed last time" in practice
    assert re.search(
        r"1 question that you missed, \d+ minutes?; 1 more is not asked in exams", exams
    )


@pytest.mark.parametrize(
    "exam", ["mock~", "mock~long", "mock~domain-9", "mock~missed", "other~short", "x"]
)
def test_a_paper_that_cannot_be_cut_is_not_there(rosa: TestClient, exam: str) -> None:
    assert rosa.get(f"/exams/{exam}").status_code == 404
    assert rosa.post(f"/exams/{exam}/sittings", data={"token": "t"}).status_code == 404


def test_the_questions_are_tried_once_for_each_state_of_the_course(
    live_course: EditableLiveCourse,
) -> None:
    course = live_course.get_current_course()

    assert list_solvable_questions(course) is list_solvable_questions(course)
    assert len(list_solvable_questions(course)) == 70


def test_a_short_exam_is_not_cut() -> None:
    small = dataclasses.replace(
        WHOLE, question_count=20, question_count_by_domain={"1": 12, "2": 8}
    )

    assert (
        list(
            yield_exams_derived_from(
                small, DOMAINS, DomainQuestionCounts({"1": 9, "2": 9}, {"1": 3})
            )
        )
        == []
    )


def test_more_missed_questions_than_an_exam_holds_are_cut_by_domain() -> None:
    *_, missed = yield_exams_derived_from(
        WHOLE, DOMAINS, DomainQuestionCounts({}, {"1": 60, "2": 40, "9": 5})
    )

    assert is_exam_of_missed_questions(missed.slug)
    assert missed.question_count_by_domain == {"1": 30, "2": 20}
    assert DomainQuestionCounts({}, {"1": 60, "2": 40, "9": 5}).count_missed_for(WHOLE) == 100


def test_a_paper_keeps_its_name_when_the_exam_has_left() -> None:
    titles = {"2": "Racks"}

    assert find_exam_title("gone~domain-2", {}, titles) == "Racks only"
    assert find_exam_title("gone~domain-7", {}, titles) == "One domain only"
    assert find_exam_title("gone~missed", {}, titles) == "Only what you missed"
    assert find_exam_title("gone", {}, titles) == "gone"
    assert strip_derived_exam_suffix("gone~domain-2") == "gone"


def past(number: int, score: float, *, whole: bool = True) -> PastSitting:
    started = NOON + dt.timedelta(days=number)
    return PastSitting(
        number, "The mock", whole, started, score, 50, 50, 55.0, ended_by_clock=False
    )


def test_a_difference_that_may_be_chance_is_called_so() -> None:
    shown = build_exam_score_trend([past(2, 33), past(1, 28)], 70, dt.datetime.date)

    assert shown is not None
    assert "56%, then 66%" in shown.sentence
    assert "may be chance" in shown.sentence
    assert shown.svg.count("<circle") == 2


def test_a_clear_difference_is_called_so() -> None:
    shown = build_exam_score_trend([past(2, 46), past(1, 20)], None, dt.datetime.date)

    assert shown is not None
    assert "clearly better" in shown.sentence


def test_shorter_papers_are_hollow_and_not_compared() -> None:
    shown = build_exam_score_trend([past(2, 46, whole=False), past(1, 20)], None, dt.datetime.date)

    assert shown is not None
    assert "Each point is one exam" in shown.sentence
    assert build_exam_score_trend([], None, dt.datetime.date) is None


def test_no_other_exam_is_offered_while_one_is_running(rosa: TestClient) -> None:
    free = rosa.get("/exams").text
    token = re.search(r'name="token" value="([^"]+)"', rosa.get("/exams/mock").text)
    assert token
    rosa.post("/exams/mock/sittings", data={"token": token[1], "kinds": "all"})
    busy = rosa.get("/exams").text

    assert free.count(">Start<span") > 1
    assert ">Start<span" not in busy
    assert "You can start another one when it is over." in busy


def test_the_points_of_a_verdict_have_one_decimal_at_most(
    rosa: TestClient, live_course: EditableLiveCourse
) -> None:
    held = live_course.held
    other = held.questions["q1.1-0"]
    each = dataclasses.replace(
        with_rule(MULTIPLE, "each"), id=other.id, topic=other.topic, objectives=("1.1",)
    )
    one = dataclasses.replace(WHOLE, question_count=1, question_count_by_domain={"1": 1})
    questions = {**held.questions, other.id: each}
    questions = {n: q for n, q in questions.items() if n == each.id or "2.1" in q.objectives}
    live_course.held = dataclasses.replace(held, questions=questions, exams={"mock": one})
    sitting = sit(rosa, "mock")
    rosa.post(f"{sitting}/answers/1", data={"answer": "bcdf"})
    report = rosa.get(rosa.post(f"{sitting}/submission").headers["location"]).text

    assert '<h1 class="count"><b>0.8</b> of 1</h1>' in report
    assert '<td class="n">0.75</td>' in report  # the table is exact
