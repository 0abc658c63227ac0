"""The calendar feed: today's list, the mock exams and the exam, for calendar programs."""

import re

import pytest
from fastapi.testclient import TestClient
from hypothesis import given
from hypothesis import strategies as st

from app.progress.plan_page import escape_ical, fold_ical_line
from tests.conftest import Clock
from tests.exams.sitting import begin, finish, save


def unfolded(text: str) -> list[str]:
    return text.replace("\r\n ", "").split("\r\n")


@given(st.text(st.characters(blacklist_categories=("Cs", "Cc")), max_size=400))
def test_a_folded_line_is_short_and_comes_back(words: str):
    lines = fold_ical_line(words).split("\r\n")

    assert all(len(line.encode()) <= 75 for line in lines)
    assert fold_ical_line(words).replace("\r\n ", "") == words


def test_text_is_escaped():
    assert escape_ical("a, b; c\\d\ne") == "a\\, b\\; c\\\\d\\ne"


@pytest.fixture
def aiming(rosa: TestClient) -> TestClient:
    rosa.post("/plan", data={"exam_day": "2026-06-29", "minutes_a_day": "45"})
    return rosa


def address(page: str) -> str:
    found = re.search(r"/calendar/[\w-]+\.ics", page)
    assert found
    return found[0]


def test_the_calendar_is_read_without_a_cookie(aiming: TestClient, milo: TestClient):
    aiming.post("/plan/calendar", data={"wish": "new"})

    answer = milo.get(address(aiming.get("/plan").text))

    assert answer.status_code == 200
    assert answer.headers["content-type"] == "text/calendar; charset=utf-8"
    assert re.findall("SUMMARY:(.*)", answer.text.replace("\r", "")) == [
        "Headroom: Mock exam",
        "Headroom: Mock exam",
        "Exam: CB-1",
    ]


def test_a_program_that_has_the_calendar_is_told_so(aiming: TestClient, milo: TestClient):
    aiming.post("/plan/calendar", data={"wish": "new"})
    known = address(aiming.get("/plan").text)
    tag = milo.get(known).headers["etag"]

    again = milo.get(known, headers={"if-none-match": tag})
    assert (again.status_code, again.content) == (304, b"")
    assert again.headers["etag"] == tag

    aiming.post("/plan", data={"exam_day": "2026-07-09", "minutes_a_day": "45"})
    assert milo.get(known, headers={"if-none-match": tag}).status_code == 200


def test_the_list_leaves_the_calendar_with_the_exam(aiming: TestClient, clock: Clock):
    aiming.post("/concepts/weights/readings", data={"section": "two-bytes-each"})
    aiming.post("/plan/calendar", data={"wish": "new"})
    feed = address(aiming.get("/plan").text)
    assert re.search(r"SUMMARY:Headroom: \d+ minutes", aiming.get(feed).text)

    clock.tick(days=21)

    assert re.findall("SUMMARY:(.*)", aiming.get(feed).text.replace("\r", "")) == [
        "Headroom: no exam day ahead"
    ]


def test_a_mock_exam_taken_early_leaves_the_calendar(aiming: TestClient):
    aiming.post("/plan/calendar", data={"wish": "new"})
    sitting = begin(aiming)
    save(aiming, sitting, 1, answer="1")
    finish(aiming, sitting)

    feed = aiming.get(address(aiming.get("/plan").text)).text

    assert feed.count("SUMMARY:Headroom: Mock exam") == 1


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


def test_an_alarm_rings_at_the_hour_of_the_setting(aiming: TestClient, milo: TestClient):
    aiming.post("/plan/calendar", data={"wish": "new"})
    known = address(aiming.get("/plan").text)
    assert "VALARM" not in milo.get(known).text

    form = {"exam_day": "2026-06-29", "minutes_a_day": "45", "reminder_hour": "18"}
    assert aiming.post("/settings", data=form).headers["location"] == "/settings?kept=yes"

    lines = unfolded(milo.get(known).text)
    assert lines.count("TRIGGER:PT18H") == lines.count("BEGIN:VALARM") == 2  # not for the exam
    assert aiming.post("/settings", data=form | {"reminder_hour": "24"}).status_code == 422
