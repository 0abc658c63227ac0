"""The page that is announced in the evening is the first one on the next morning's list."""

import html
import json
import re

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from sqlmodel import Session, col, select

from app.content.course import Course
from app.content.course_facts import cached_course_facts
from app.content.live_courses import LiveCourse
from app.database.tables import DayListRow, Learner
from app.main import create_app
from app.questions.model import draw_variant
from app.settings import Settings
from tests.amounts import each_of_sample
from tests.conftest import Clock
from tests.progress.test_placement import begin, fields, give_up


@pytest.fixture
def app(settings: Settings, clock: Clock, live_shipped: LiveCourse) -> FastAPI:
    return create_app(settings, clock, live_shipped)


class Reader:
    """A learner who does nothing but read the pages of each list."""

    def __init__(self, browser: TestClient, session: Session, exam_day: str) -> None:
        self.browser = browser
        self.session = session
        self.exam_day = exam_day

    def set_plan(self) -> None:
        self.browser.post("/plan", data={"exam_day": self.exam_day, "minutes_a_day": "45"})

    def set_key(self, key: str) -> None:
        """Draw the same questions in each run of a test: the key seeds the draws."""
        learner = self.session.exec(select(Learner)).one()
        learner.key = key
        self.session.add(learner)
        self.session.commit()

    def load_list(self) -> DayListRow:
        self.browser.get("/")  # makes the list
        self.session.rollback()
        return self.session.exec(select(DayListRow).order_by(col(DayListRow.day).desc())).first()

    def pages(self) -> list[str]:
        tasks = json.loads(self.load_list().tasks)["tasks"]
        return [
            f"/concepts/{page['slug']}{'?route=short' if page['short'] else ''}"
            for task in tasks
            for page in task["pages"]
        ]

    def drop_other_tasks(self) -> None:
        row = self.load_list()
        day_list = json.loads(row.tasks)
        day_list["tasks"] = [task for task in day_list["tasks"] if task["pages"]]
        row.tasks = json.dumps(day_list)
        self.session.add(row)
        self.session.commit()
        # Without a write of the learner, an unchanged page would be sent from the cache.
        self.set_plan()

    def read(self, address: str) -> str:
        path, _, query = address.partition("?")
        sent = self.browser.post(f"{path}/readings?{query}", data={"then": "next"})
        assert sent.status_code == 303
        return sent.headers["location"]

    def named_on_course(self) -> str:
        page = self.browser.get("/course").text
        return re.search(r'<a class="btn main" href="([^"]+)" data-key="c">Next page', page)[1]

    def named_on_today(self) -> str:
        return re.search(r'the next page, <a href="([^"]+)">', self.browser.get("/").text)[1]


@pytest.fixture
def exam_day() -> str:
    return "2026-06-23"


@pytest.fixture
def reader(rosa: TestClient, session: Session, shipped: Course, exam_day: str) -> Reader:
    reader = Reader(rosa, session, exam_day)
    reader.set_plan()
    rosa.post(f"/concepts/{shipped.syllabus.topics[0]}/readings")
    return reader


@each_of_sample("exam_day", ["2026-06-23", ""], 1)
def test_the_page_announced_in_the_evening_comes_first_the_next_morning(
    reader: Reader, clock: Clock, shipped: Course
):
    course_slugs, announced_pages = list(cached_course_facts(shipped).pages), []
    for _evening in range(7):  # the mock exam of the seventh day is never sat
        pages = reader.pages()
        for page, following in zip(pages, [*pages[1:], "/"], strict=True):
            assert reader.named_on_course() == page
            assert reader.read(page) == following
        reader.drop_other_tasks()

        announced = reader.named_on_course()
        assert reader.named_on_today() == announced
        announced_pages.append(announced)
        clock.tick(days=1)
        while not reader.pages():
            assert reader.named_on_course() == announced
            clock.tick(days=1)

        assert reader.pages()[0] == announced
    assert announced_pages != sorted(
        announced_pages, key=lambda page: course_slugs.index(page[10:].partition("?")[0])
    )


def test_no_page_is_next_once_no_day_before_the_exam_has_pages(reader: Reader, clock: Clock):
    assert reader.named_on_course()
    for days in (13, 1):  # the eve, the exam day
        clock.tick(days=days)
        assert reader.pages() == []
        assert "Next page" not in reader.browser.get("/course").text
        assert "the next page, <a" not in reader.browser.get("/").text


def test_pages_read_in_essentials_count_as_read_and_their_rest_waits(
    reader: Reader, clock: Clock, shipped: Course
):
    reader.exam_day = "2026-09-09"
    reader.set_plan()
    course_slugs = list(cached_course_facts(shipped).pages)
    begun = [
        s for s in course_slugs if not all(part.essential for part in shipped.topics[s].sections)
    ]
    begun = [s for s in begun if s != shipped.syllabus.topics[0]][:6]
    for slug in begun:
        reader.browser.post(f"/concepts/{slug}/readings?route=short")
    clock.tick(days=1)

    pages = reader.pages()
    plan = " ".join(reader.browser.get("/plan").text.replace("\xa0", " ").split())

    assert len(pages) > 1
    assert not {page.removeprefix("/concepts/") for page in pages} & set(begun)
    assert reader.named_on_course() == pages[0]
    assert reader.read(pages[0]) == pages[1]
    assert (
        f"{len(course_slugs) - 7} pages left, plus the rest of 6 whose essentials you read:" in plan
    )
    assert f"Pages read</dt><dd>7 of {len(course_slugs)}" in plan


@pytest.mark.parametrize("exam_day", ["2026-06-23", ""])
def test_before_the_first_list_a_page_promises_no_other(rosa: TestClient, exam_day: str):
    rosa.post("/plan", data={"exam_day": exam_day, "minutes_a_day": "45"})

    assert 'value="next"' not in rosa.get("/concepts/neural-networks").text


@pytest.mark.parametrize("exam_day", ["2026-06-23", ""])
def test_a_list_without_pages_lets_a_page_name_no_other(reader: Reader, shipped: Course):
    for page in reader.pages():
        reader.read(page)
    row = reader.load_list()
    day_list = json.loads(row.tasks)
    day_list["tasks"] = [task for task in day_list["tasks"] if not task["pages"]]
    row.tasks = json.dumps(day_list)
    reader.session.add(row)
    reader.session.commit()
    reader.set_plan()  # else an unchanged page would be sent from the cache

    page = reader.browser.get(f"/concepts/{shipped.syllabus.topics[-1]}").text

    assert "go on to" in page
    assert 'value="next"' not in page


def take_placement_test(browser: TestClient) -> str:
    """Answer nothing of it, and return the address of its result."""
    run, page, place = begin(browser), "", 0
    while "See the result" not in page:
        place += 1
        page = give_up(browser, run, place)
    return f"{run}/result"


def take_placement_test_missing(browser: TestClient, course: Course, count: int) -> str:
    """Miss the first questions of it, answer the others right, and return its result."""
    run, page, place = begin(browser), "", 0
    while "See the result" not in page:
        place += 1
        if place <= count:
            page = give_up(browser, run, place)
            continue
        action, hidden = fields(browser.get(f"{run}/{place}").text)
        variant = draw_variant(course.questions[action.split("/")[3]], int(hidden["seed"]))
        right = [option.key for option in variant.answer.options if option.right]
        sent = browser.post(action, data=hidden | {"answer": right})
        page = browser.get(sent.headers["location"]).text
    return html.unescape(browser.get(f"{run}/result").text)


@pytest.mark.parametrize(("key", "count"), [("k6", 0), ("k9", 6)])
def test_a_first_page_is_explained_only_by_questions_that_are_listed_as_missed(
    reader: Reader, shipped: Course, key: str, count: int
):
    reader.set_key(key)
    reader.set_plan()

    result = take_placement_test_missing(reader.browser, shipped, count)

    assert pages_named(result)
    listed = re.findall(r"</a> <small[^>]*>([^<]*)</small></li>", result)
    assert len(listed) == count
    needing = re.findall(r"Needed for “([^”]*)”, where you missed (\d+)\xa0question", result)
    assert len(needing) == result.count("Needed for")
    reasons = re.findall(r"</h3>\s*<p>([^<]*)</p></div>\s*<a href=\"/concepts/", result)
    assert len(reasons) == len(pages_named(result))
    assert all(" · " in " ".join(reason.split()) for reason in reasons)
    assert bool(needing) == bool(count)
    for title, missed in needing:
        assert listed.count(title) == int(missed)


def pages_named(result: str) -> list[str]:
    return re.findall(r'<a href="(/concepts/[\w?=-]+)">Read', result)


def test_after_todays_list_is_begun_a_placement_test_names_the_pages_of_tomorrow(
    reader: Reader, clock: Clock
):
    reader.set_key("draws-a-question-of-a-page-that-others-need")
    todays = reader.pages()
    reader.read(todays[0])
    stored = reader.load_list().tasks
    result = reader.browser.get(address := take_placement_test(reader.browser)).text
    named = pages_named(result)

    assert re.search(r"As things stand,\ntomorrow.s list begins with", result)
    assert "Needed for" not in result  # of the pages missed, those that need no other come first
    assert named
    assert not set(named) & set(todays)
    assert reader.load_list().tasks == stored
    for page in todays[1:]:
        reader.read(page)
    clock.tick(days=1)
    assert reader.pages()[: len(named)] == named
    later = reader.browser.get(address).text
    assert pages_named(later) == []
    assert "list begins with" not in later
    assert "Expected exam score" not in later
    assert '<a class="btn main" href="/"' in later


def test_a_list_that_is_not_begun_is_made_anew_from_a_placement_test(reader: Reader, clock: Clock):
    reader.set_key("draws-no-question-that-is-on-the-list")  # answering that begins the list
    before = reader.pages()
    reader.browser.post("/quiz/runs", data={"pick": "today"})  # looking at it begins nothing
    result = reader.browser.get(address := take_placement_test(reader.browser)).text

    after = reader.pages()
    assert after != before
    assert "The first pages on your list" in result
    assert pages_named(result) == after[:3]
    assert re.search(r"\d+\xa0pages whose questions you missed\nfollow on later lists", result)
    assert "these answers count from tomorrow" not in result
    assert "Placement test taken" in reader.browser.get("/").text
    row = reader.load_list()
    questions = [q for task in json.loads(row.tasks)["tasks"] for q in task["questions"]]
    run = reader.browser.post("/quiz/runs", data={"pick": "today"}).headers["location"]
    assert f"of {len(questions)}" in reader.browser.get(run, follow_redirects=True).text
    reader.read(after[0])
    reader.browser.get(address)
    assert reader.load_list().tasks == row.tasks
    clock.tick(days=1)
    later = reader.browser.get(address).text
    assert pages_named(later) == []
    assert "pages on your list" not in later


def test_an_unfinished_placement_test_changes_no_list_and_names_no_pages(reader: Reader):
    reader.pages()
    stored = reader.load_list().tasks
    give_up(reader.browser, run := begin(reader.browser), 1)

    assert pages_named(reader.browser.get(f"{run}/result").text) == []
    assert reader.load_list().tasks == stored


VERDICTS = (
    "Some pages may not fit",
    "The essentials of every page fit",
    "There is time for the essentials of every page",
    "Every page fits",
    "There is time for every page",
)


def rank_verdict(plan: str) -> int:
    return next(n for n, words in enumerate(VERDICTS) if words in plan)


@pytest.mark.parametrize("minutes", [28, 34, 40])
def test_reading_what_is_on_the_list_never_makes_the_verdict_worse(app: FastAPI, minutes: int):
    browser = TestClient(app, follow_redirects=False)
    browser.post("/plan", data={"exam_day": "2026-07-03", "minutes_a_day": str(minutes)})
    browser.post("/concepts/dpu/readings")
    before = rank_verdict(read_plan(browser))
    todo = browser.get("/").text.partition('class="todo"')[2]
    while page := re.search(r'href="(/concepts/[\w-]+)[^"]*" data-key="c"', todo):
        browser.post(f"{page[1]}/readings")
        after = rank_verdict(read_plan(browser))
        assert after >= before
        before, todo = after, browser.get("/").text.partition('class="todo"')[2]


@pytest.mark.parametrize(("exam_day", "minutes"), [("2026-06-29", "45"), ("2026-07-03", "60")])
def test_pages_are_listed_in_full_if_the_plan_says_that_they_fit_so(
    app: FastAPI, clock: Clock, exam_day: str, minutes: str
):
    browser = TestClient(app, follow_redirects=False)
    browser.post("/plan", data={"exam_day": exam_day, "minutes_a_day": minutes})
    browser.post("/concepts/dpu/readings")
    for _ in range(3):
        clock.tick(days=1)
        is_short = "?route=short" in browser.get("/").text.partition('class="todo"')[2]
        assert is_short is (", their essentials" in read_plan(browser))


def test_more_minutes_never_make_the_verdict_worse(app: FastAPI):
    browser, ranks = TestClient(app, follow_redirects=False), []
    shortened = set()
    for minutes in (20, 45, 50, 60, 80, 90, 105, 120):
        form = {"exam_day": "2026-06-25", "minutes_a_day": str(minutes), "page": "plan"}
        assert browser.post("/plan", data=form).headers["location"] == "/plan?kept=yes"
        plan = read_plan(browser)
        ranks.append(rank_verdict(plan))
        shortened |= {ranks[-1]} if ", their essentials" in plan else set()
    assert ranks == sorted(ranks)
    assert ranks[0] == 0
    assert ranks[-1] == 4
    assert 2 in ranks
    assert shortened
    assert shortened <= {1, 2}


def read_plan(browser: TestClient) -> str:
    return " ".join(browser.get("/plan").text.replace("\xa0", " ").split())


def test_minutes_that_the_plan_suggests_are_enough(app: FastAPI):
    browser = TestClient(app, follow_redirects=False)
    form = {"exam_day": "2026-06-25", "minutes_a_day": "20", "page": "plan"}
    browser.post("/plan", data=form)
    plan = read_plan(browser)
    found = re.search(
        r"About (\d+) of the \d+ pages will fit; .* With (\d+) minutes a day, the essentials of all",
        plan,
    )
    assert found
    assert 0 < int(found[1]) < 59
    for other in ("5", "30"):
        browser.post("/plan", data=form | {"minutes_a_day": other})
        assert f"With {found[2]} minutes a day, the essentials of all fit" in read_plan(browser)
    browser.post("/plan", data=form | {"minutes_a_day": found[2]})
    assert "The essentials of every page fit" in read_plan(browser)
    browser.post("/plan", data=form | {"minutes_a_day": str(int(found[2]) - 5)})
    assert "Some pages may not fit" in read_plan(browser)


def test_today_says_after_missed_days_whether_pages_may_not_fit_any_more(
    app: FastAPI, clock: Clock
):
    browser = TestClient(app, follow_redirects=False)
    browser.post("/plan", data={"exam_day": "2026-06-29", "minutes_a_day": "120"})
    browser.post("/concepts/gpu-and-cpu/readings")
    clock.tick(days=2)

    for minutes, fits in (("120", True), ("20", False)):
        browser.post("/plan", data={"exam_day": "2026-06-29", "minutes_a_day": minutes})
        today = " ".join(browser.get("/").text.split())
        assert "You missed 1 day." in today
        assert ("Some pages may not fit" in today) is not fits
        assert ("Some pages may not fit" in read_plan(browser)) is not fits


def test_another_number_of_cards_changes_no_length_of_pages(app: FastAPI, clock: Clock):
    browser = TestClient(app, follow_redirects=False)
    form = {"exam_day": "2026-06-29", "minutes_a_day": "40", "page": "plan"}
    browser.post("/plan", data=form)
    for _ in range(6):
        page = browser.get("/").text.partition('href="/concepts/')[2].partition('"')[0]
        slug, _, query = page.partition("?")
        browser.post(f"/concepts/{slug}/readings?{query}")
    clock.tick(days=1)
    assert "Essentials only" in browser.get("/").text

    for amount in ("more", "normal"):
        browser.post("/plan", data=form | {"card_amount": amount, "page_route": "auto"})
        assert "Essentials only" in browser.get("/").text


def test_a_short_mock_exam_counts_at_once_and_in_full(reader: Reader, clock: Clock):
    before = json.loads(reader.load_list().estimate)
    form = reader.browser.get("/exams/nca-aiio~short").text
    token = re.search(r'name="token" value="([^"]+)"', form)[1]
    begun = reader.browser.post("/exams/nca-aiio~short/sittings", data={"token": token})
    sitting = begun.headers["location"].rpartition("/questions/")[0]
    clock.tick(minutes=1)
    for number in range(1, 21):
        reader.browser.post(f"{sitting}/answers/{number}", data={"answer": "no option"})
    reader.browser.post(f"{sitting}/submission")
    clock.tick(minutes=1)

    after = json.loads(reader.load_list().estimate)

    assert after["shown"] == after["mean"] < before["shown"] - 2
