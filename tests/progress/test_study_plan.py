"""The plan of days: a pure rule, its page, and the calendar made of it."""

import dataclasses
import datetime as dt
import itertools
import re

import pytest
from fastapi.testclient import TestClient
from hypothesis import given
from hypothesis import strategies as st
from sqlmodel import Session

from app.content.library import Library
from app.progress import plan_page
from app.progress.plan_page import escape_ical, fold_line, write_calendar
from app.spaced_repetition.review_pace import TimeSpent, shrink_mean
from app.study_plan import loader
from app.study_plan.calendar import (
    USUAL,
    CardsOfDay,
    MockExamOption,
    PageToRead,
    RemainingWork,
    StudyPace,
    StudyPlan,
    TimeBudget,
    add_time_advice,
    mock_days,
    page_spent,
    plan_days,
    time_for_pages,
)
from tests.conftest import Clock
from tests.exams.sitting import begin
from tests.progress.test_today import Desk

TODAY = dt.date(2026, 6, 9)
NOW = dt.datetime(2026, 6, 9, 12, tzinfo=dt.UTC)
FULL, SHORT = MockExamOption("Mock", 60), MockExamOption("Short mock", 24)


def exam_in(days: int) -> dt.date:
    return TODAY + dt.timedelta(days=days)


def pages(count: int, minutes: float = 8.0) -> list[PageToRead]:
    return [PageToRead(f"p{n}", f"Page {n}", minutes, f"Objective {n}") for n in range(count)]


def planned(
    days: int, work: RemainingWork, minutes: float = 45, spent: float = 0.0, seed: str = "s"
) -> StudyPlan:
    student = TimeBudget(minutes, spent)
    made = plan_days(TODAY, exam_in(days), work, student, seed)
    return add_time_advice(made, TODAY, work, student)


WHOLE = RemainingWork(
    pages=pages(12),
    cards=[CardsOfDay(due=10, fresh=5, minutes=7)] * 60,
    weak=["DPUs", "Storage", "Networks"],
    mocks=[SHORT, FULL],
)


def test_the_same_arguments_give_the_same_plan():
    assert planned(20, WHOLE) == planned(20, WHOLE)


def test_every_day_up_to_the_one_before_the_exam_is_there():
    days = [day.day for day in planned(20, WHOLE).days]

    assert days == [TODAY + dt.timedelta(days=n) for n in range(20)]


@given(days=st.integers(1, 12), minutes=st.integers(5, 60))
def test_a_page_is_planned_or_does_not_fit_and_never_both(days: int, minutes: int):
    plan = planned(days, RemainingWork(pages=pages(30, 11.0)), minutes)

    assert plan.pages + len(plan.left) == 30


def test_every_page_is_read_three_days_before_the_exam():
    plan = planned(20, WHOLE)

    read = {slug for day in plan.days for slug, _, _ in day.pages}
    assert read == {page.slug for page in WHOLE.pages}
    assert plan.left == ()
    assert not any(day.pages for day in plan.days[-3:])


@given(
    days=st.integers(0, 60),
    minutes=st.integers(5, 240),
    count=st.integers(0, 30),
    spent=st.floats(0, 300),
)
def test_no_day_without_a_mock_is_longer_than_the_minutes(days, minutes, count, spent):
    work = RemainingWork(pages=pages(count), weak=["DPUs"], mocks=[FULL])
    plan = planned(days, work, minutes, spent)

    for place, day in enumerate(plan.days):
        left = max(0.0, minutes - (spent if place == 0 else 0))
        assert day.minutes <= left + 1e-6 or day.mock == FULL


def test_what_was_spent_today_is_charged_to_today_alone():
    fresh, tired = (
        planned(10, RemainingWork(pages=pages(20))),
        planned(10, RemainingWork(pages=pages(20)), spent=45),
    )

    assert fresh.days[0].minutes > 0
    assert tired.days[0].minutes == 0
    assert tired.days[1].minutes > 0


def test_a_missed_day_spreads_its_pages_over_the_others():
    before = planned(12, RemainingWork(pages=pages(9)))
    later = plan_days(exam_in(2), exam_in(12), RemainingWork(pages=pages(9)), TimeBudget(45), "s")

    assert {s for d in later.days for s, _, _ in d.pages} == {
        s for d in before.days for s, _, _ in d.pages
    }


def test_a_page_too_long_for_a_day_goes_on_the_next():
    plan = planned(10, RemainingWork(pages=[PageToRead("long", "Long", 25.0)]), minutes=10)

    parts = [again for day in plan.days for _, _, again in day.pages]
    assert parts == [False, True, True, True]


def test_what_does_not_fit_is_named():
    plan = planned(4, RemainingWork(pages=pages(30)), minutes=15)

    assert plan.left
    assert "Page 29" in plan.left
    read = {title for day in plan.days for _, title, _ in day.pages}
    assert not read & set(plan.unread)
    assert [said.removesuffix(" (the rest of it)") for said in plan.unread] == [*plan.left]
    assert plan.over >= 8 * (len(plan.left) - 1) > 0


@pytest.mark.parametrize("days", [4, 9, 30])
@pytest.mark.parametrize("minutes", [10, 25])
@pytest.mark.parametrize("rate", [0.8, 1.0, 1.3])
def test_with_the_minutes_that_are_advised_it_fits_beside_the_cards(
    days: int, minutes: float, rate: float
):
    """Cards take half of each day, also of the minutes that come to it."""
    pace = dataclasses.replace(USUAL, page=rate)

    def plan(day: float) -> StudyPlan:
        cards = [CardsOfDay(minutes=day / 2)] * days
        work = RemainingWork(pages=pages(20), mocks=[SHORT], cards=cards)
        student = TimeBudget(day, pace=pace)
        made = plan_days(TODAY, exam_in(days), work, student, "s")
        return add_time_advice(made, TODAY, work, student)

    short = plan(minutes)

    whole = [t for t in short.left if f"{t} (the rest of it)" not in short.unread]
    assert 8 * len(whole) <= short.over <= 8 * len(short.left)
    assert short.more > 0 or not short.left
    assert plan(minutes + short.more).left == ()


@pytest.mark.parametrize("days", [4, 9, 30])
@pytest.mark.parametrize("minutes", [10, 25])
def test_with_the_minutes_that_are_advised_it_fits(days: int, minutes: float):
    work = RemainingWork(pages=pages(20), mocks=[SHORT])
    short = planned(days, work, minutes)

    assert short.more > 0 or not short.left
    assert planned(days, work, minutes + short.more).left == ()


def test_no_day_is_advised_that_nobody_has():
    plan = planned(4, RemainingWork(pages=pages(100)), minutes=10)

    assert plan.left
    assert plan.more == 0


def test_without_a_day_to_read_on_no_minutes_are_advised():
    plan = planned(0, RemainingWork(pages=pages(3)))

    assert (len(plan.left), plan.more) == (3, 0)


@pytest.mark.parametrize("days", [2, 3, 9, 20, 60])
def test_the_last_mock_is_two_days_before_the_exam(days: int):
    assert max(mock_days(TODAY, exam_in(days))) == exam_in(days - 2)


def test_mocks_keep_their_distance_and_lie_on_saturdays():
    days = sorted(mock_days(TODAY, exam_in(60)))

    assert len(days) == 4
    assert all(day.weekday() == 5 for day in days[:-1])
    gaps = [(b - a).days for a, b in itertools.pairwise(days)]
    assert min(gaps) >= 4


def test_on_the_eve_and_on_the_day_no_mock_is_planned():
    assert mock_days(TODAY, exam_in(1)) == mock_days(TODAY, TODAY) == frozenset()


def test_a_mock_just_sat_is_not_followed_by_another():
    sat = mock_days(TODAY, exam_in(8), TODAY)

    assert all((day - TODAY).days >= 4 for day in sat)


def test_mocks_are_short_until_half_of_the_pages_are_read():
    work = RemainingWork(pages=pages(60), whole=60 * 8.0, mocks=[SHORT, FULL])
    mocks = [day.mock for day in planned(28, work, minutes=20).days if day.mock]

    assert mocks[0] == SHORT
    assert mocks[-1] == FULL
    assert [m.minutes for m in mocks] == sorted(m.minutes for m in mocks)
    read = dataclasses.replace(work, pages=pages(30))
    assert {d.mock for d in planned(28, read).days if d.mock} == {FULL}


@pytest.mark.parametrize("minutes", [10, 90])
def test_the_last_mock_is_a_whole_one_however_long_the_day(minutes: float):
    work = RemainingWork(pages=pages(60), whole=480.0, mocks=[SHORT, FULL])

    assert planned(8, work, minutes).days[-2].mock == FULL


def test_questions_follow_the_page_of_the_day():
    first = planned(20, WHOLE).days[0]

    assert first.pages[0][1] == "Page 0"
    assert (first.questions > 0, first.about) == (True, "Objective 0")


@pytest.mark.parametrize("minutes", [30, 45])
def test_every_day_with_room_holds_a_round_of_questions(minutes: float):
    full = RemainingWork(pages=pages(90), cards=[CardsOfDay(fresh=15, minutes=15)] * 20)

    assert all(day.questions >= 3 for day in planned(20, full, minutes).days)
    assert all(day.pages for day in planned(20, full, minutes).days)


def test_a_seed_turns_the_weakest_objectives_around():
    work = RemainingWork(weak=["DPUs", "Storage", "Networks"])
    about = [day.about for day in planned(9, work).days]

    assert set(about) == {"DPUs", "Storage", "Networks"}
    assert any(about != [d.about for d in planned(9, work, seed=s).days] for s in "abcdef")


def test_little_evidence_moves_the_pace_little():
    one = StudyPace(first=shrink_mean(TimeSpent(300, 1), 60))
    many = StudyPace(first=shrink_mean(TimeSpent(30_000, 1000), 60))

    assert USUAL.first < one.first < 75
    assert many.first == pytest.approx(30, abs=1)
    assert (one.look, one.question, one.page) == (
        USUAL.look,
        USUAL.question,
        USUAL.page,
    )


def test_a_slow_learner_gets_fewer_questions():
    slow = TimeBudget(45, pace=StudyPace(question=144))
    usual = planned(10, RemainingWork(weak=["DPUs"])).days[0].questions

    made = plan_days(TODAY, exam_in(10), RemainingWork(weak=["DPUs"]), slow, "s")

    assert made.days[0].questions < usual


def test_a_section_takes_from_the_mark_before_it_to_its_own(library: Library):
    topic = library.topics["weights"]
    first, second = [s for s in topic.sections if s.anchor][:2]
    took = second.minutes * 2 * 60_000
    read = [("weights", first.anchor, 0), ("weights", second.anchor, int(took))]

    spent = page_spent(read, library.topics)

    assert spent.count == 1
    assert spent.seconds == pytest.approx(2, rel=0.01)


def test_a_page_left_open_over_night_says_nothing(library: Library):
    topic = library.topics["weights"]
    first, second = [s for s in topic.sections if s.anchor][:2]
    night = 9 * 3600 * 1000

    read = [("weights", first.anchor, 0), ("weights", second.anchor, night)]

    assert page_spent(read, library.topics) == TimeSpent()


def unfolded(text: str) -> list[str]:
    return text.replace("\r\n ", "").split("\r\n")


@given(st.text(st.characters(blacklist_categories=("Cs", "Cc")), max_size=400))
def test_a_folded_line_is_short_and_comes_back(words: str):
    lines = fold_line(words).split("\r\n")

    assert all(len(line.encode()) <= 75 for line in lines)
    assert fold_line(words).replace("\r\n ", "") == words


def test_text_is_escaped():
    assert escape_ical("a, b; c\\d\ne") == "a\\, b\\; c\\\\d\\ne"


def test_the_calendar_has_an_event_a_day_and_the_exam():
    text = write_calendar(planned(5, WHOLE), "CB-1, basics", "rosa", NOW)
    lines = unfolded(text)

    assert text.endswith("END:VCALENDAR\r\n")
    assert all(len(line.encode()) <= 75 for line in text.split("\r\n"))
    assert lines.count("BEGIN:VEVENT") == lines.count("END:VEVENT") == 6
    assert "DTSTAMP:20260609T120000Z" in lines
    assert "DTSTART;VALUE=DATE:20260609" in lines
    assert "SUMMARY:Exam: CB-1\\, basics" in lines
    assert any(re.match(r"DESCRIPTION:Read: Page 0\\n", line) for line in lines)


def test_the_ids_of_events_stay_and_differ_by_learner():
    def ids(who: str, plan: StudyPlan) -> list[str]:
        text = write_calendar(plan, "CB-1", who, NOW)
        return [line for line in unfolded(text) if line.startswith("UID:")]

    changed = planned(5, WHOLE, spent=30)
    assert ids("rosa", planned(5, WHOLE)) == ids("rosa", changed)
    assert not set(ids("rosa", changed)) & set(ids("milo", changed))
    assert len(set(ids("rosa", changed))) == 6


@pytest.fixture
def aiming(rosa: TestClient) -> TestClient:
    rosa.post("/plan", data={"exam_day": "2026-06-29", "minutes_a_day": "45"})
    return rosa


def address(page: str) -> str:
    found = re.search(r"/calendar/[\w-]+\.ics", page)
    assert found
    return found[0]


def test_the_page_shows_each_day_with_its_page(aiming: TestClient, library: Library):
    page = aiming.get("/plan").text

    assert page.count('<th scope="row">') >= 20
    for topic in library.topics.values():
        assert f'href="/concepts/{topic.slug}"' in page
    assert "<b>Exam</b>" in page


def test_the_calendar_is_read_without_a_cookie(aiming: TestClient, milo: TestClient):
    aiming.post("/plan/calendar", data={"wish": "new"})

    answer = milo.get(address(aiming.get("/plan").text))

    assert answer.status_code == 200
    assert answer.headers["content-type"] == "text/calendar; charset=utf-8"
    assert answer.text.count("BEGIN:VEVENT") == 21


def test_the_calendar_is_made_again_only_when_something_has_changed(
    aiming: TestClient,
    milo: TestClient,
    clock: Clock,
    monkeypatch: pytest.MonkeyPatch,
):
    made = []
    whole = loader.whole_plan
    monkeypatch.setattr(plan_page, "whole_plan", lambda *known: made.append(1) or whole(*known))
    aiming.post("/plan/calendar", data={"wish": "new"})
    known = address(aiming.get("/plan").text)
    made.clear()

    def asked(**headers: str) -> int:
        status = milo.get(known, headers=headers).status_code
        assert status in {200, 304}
        return len(made)

    assert [asked() for _ in range(5)] == [1] * 5
    milo.post("/plan", data={"exam_day": "2026-07-29", "minutes_a_day": "20"})
    assert asked() == 1  # another learner's plan is none of its business

    aiming.post("/plan", data={"exam_day": "2026-07-09", "minutes_a_day": "45"})
    assert milo.get(known).text.count("BEGIN:VEVENT") == 31
    assert [asked() for _ in range(3)] == [2] * 3

    clock.tick(days=1)
    assert milo.get(known).text.count("BEGIN:VEVENT") == 30
    assert asked() == 3


def test_a_program_that_has_the_calendar_is_told_so(aiming: TestClient, milo: TestClient):
    aiming.post("/plan/calendar", data={"wish": "new"})
    known = address(aiming.get("/plan").text)
    tag = milo.get(known).headers["etag"]

    again = milo.get(known, headers={"if-none-match": tag})
    assert (again.status_code, again.content) == (304, b"")
    assert again.headers["etag"] == tag

    aiming.post("/plan", data={"exam_day": "2026-07-09", "minutes_a_day": "45"})
    assert milo.get(known, headers={"if-none-match": tag}).status_code == 200


def test_a_new_address_ends_the_old_one(aiming: TestClient):
    aiming.post("/plan/calendar", data={"wish": "new"})
    old = address(aiming.get("/plan").text)

    aiming.post("/plan/calendar", data={"wish": "new"})
    new = address(aiming.get("/plan").text)

    assert old != new
    assert len(new) >= len("/calendar/.ics") + 43
    assert aiming.get(old).status_code == 404
    assert aiming.get(new).status_code == 200

    aiming.post("/plan/calendar", data={"wish": "end"})
    assert aiming.get(new).status_code == 404
    assert "/calendar/" not in aiming.get("/plan").text


def test_without_an_exam_day_the_calendar_says_so(rosa: TestClient):
    rosa.post("/plan/calendar", data={"wish": "new"})
    rosa.post("/plan", data={"exam_day": "2026-06-29", "minutes_a_day": "45"})
    known = address(rosa.get("/plan").text)
    rosa.post("/plan", data={"exam_day": "", "minutes_a_day": "45"})

    assert "no exam day ahead" in rosa.get(known).text


def test_a_day_without_study_is_said_to_be_missed(
    aiming: TestClient, session: Session, clock: Clock, library: Library
):
    desk = Desk(session, clock)
    desk.answers(list(library.topics["weights"].questions)[:2], 1.0, "weights")
    assert "You missed" not in aiming.get("/plan").text

    clock.tick(days=2)
    desk._save()

    assert "You missed Wednesday, June\u00a010" in aiming.get("/plan").text


def test_a_day_on_which_a_page_was_read_was_not_missed(
    aiming: TestClient, session: Session, clock: Clock, library: Library
):
    desk = Desk(session, clock)
    desk.answers(list(library.topics["weights"].questions)[:2], 1.0, "weights")
    clock.tick(days=1)
    section = next(s.anchor for s in library.topics["weights"].sections if s.anchor)
    aiming.post("/concepts/weights/readings", data={"section": section})
    clock.tick(days=1)
    desk._save()

    assert "You missed" not in aiming.get("/plan").text


def test_a_running_exam_is_what_the_plan_has_today(aiming: TestClient):
    begin(aiming)

    today, plan = aiming.get("/").text, aiming.get("/plan").text

    assert "the clock is running" in today.lower()
    row = re.search(r'<tr aria-current="date".*?</tr>', plan, re.DOTALL)
    assert row
    assert "Mock exam:" in row[0]


def test_a_plan_without_questions_has_no_column_for_them(aiming: TestClient):
    assert '<th scope="col">Questions</th>' in aiming.get("/plan").text

    aiming.post("/plan", data={"exam_day": "2026-06-11", "minutes_a_day": "5"})

    page = aiming.get("/plan").text
    assert '<th scope="col">Questions</th>' not in page
    assert 'colspan="4"' in page


@pytest.mark.parametrize("minutes", [10.0, 30.0, 45.0, 240.0])
def test_days_hold_about_as_many_pages_as_is_said(minutes: float):
    work = dataclasses.replace(
        WHOLE, pages=pages(400), cards=[CardsOfDay(minutes=round(minutes / 2))] * 60
    )
    exam, student = exam_in(30), TimeBudget(minutes)

    held = time_for_pages(TODAY, exam, student, mock_days(TODAY, exam))

    read = 400 * 8.0 - planned(30, work, minutes).over
    assert read == pytest.approx(held, rel=0.15)
