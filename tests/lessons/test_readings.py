"""POST /concepts/{topic}/readings: how far a learner got."""

import datetime as dt
import json
import re

from fastapi.testclient import TestClient
from sqlmodel import Session, select

from app.content.course import Course
from app.content.course_facts import cached_course_facts
from app.database.tables import DayListRow, SectionRead
from app.lessons.course_pages import find_first_unread_page
from app.study_plan.day_list import DayList, PageToRead, Task

ADDRESS = "/concepts/weights/readings"


def test_a_section_read_is_marked_in_the_list_of_sections(rosa: TestClient):
    rosa.post(ADDRESS, data={"section": "try-it"})

    page = rosa.get("/concepts/weights").text

    assert '<a href="#try-it" class="read">' in page


def test_htmx_gets_the_list_of_sections_alone(htmx: TestClient):
    answer = htmx.post(ADDRESS, data={"section": "try-it"})

    assert answer.text.strip().startswith("{#") is False
    assert 'href="#try-it"' in answer.text
    assert "<html" not in answer.text


def test_without_scripts_one_button_marks_the_whole_page(rosa: TestClient):
    answer = rosa.post(ADDRESS)

    assert answer.headers["location"] == "/concepts/weights#end"
    page = rosa.get("/concepts/weights").text
    assert "Read. Go on to" in page
    assert "Mark as read" not in page


def test_who_has_read_a_page_is_back_at_today_with_one_click(rosa: TestClient):
    assert rosa.post(ADDRESS, data={"then": "today"}).headers["location"] == "/"


def test_the_next_page_of_the_list_is_one_click_away_and_after_the_last_one_today(
    rosa: TestClient, course: Course
):
    rosa.post(ADDRESS, data={"section": "two-bytes-each"})
    first = re.search(r'href="(/concepts/[^"?]+)[^"]*" data-key="c"', rosa.get("/").text)
    assert first
    address, visited = first[1], []
    while address.startswith("/concepts/"):
        visited.append(address)
        named = re.search(r'value="next" data-key="t">([^<]*) <kbd>', rosa.get(address).text)
        address = rosa.post(f"{address}/readings", data={"then": "next"}).headers["location"]
        address = address.partition("?")[0]
        following = course.topics.get(address.removeprefix("/concepts/"))
        assert (named and named[1]) == (following and following.title)

    assert len(visited) == len(set(visited)) > 1
    assert address == "/"


def test_before_a_list_is_made_a_page_leads_to_today(rosa: TestClient):
    assert rosa.post(ADDRESS, data={"then": "next"}).headers["location"] == "/"


def test_after_todays_list_no_other_page_comes_next(course: Course):
    first, second = list(cached_course_facts(course).pages)[:2]
    pages = (PageToRead(second, 4, "weak", short=True),)
    todays = DayList(dt.date(2026, 6, 9), (Task("read", 4, pages=pages),))

    read = {slug: [s.anchor for s in course.topics[slug].sections] for slug in (first, second)}

    listed = find_first_unread_page(course, todays, {first: read[first]}, "full")
    after = find_first_unread_page(course, todays, read, "full")
    left = find_first_unread_page(course, todays, {}, "full", left_page=second)
    unlisted = find_first_unread_page(course, None, {second: read[second]}, "short")

    assert listed.url == f"/concepts/{second}?route=short"
    for one in (after, left):
        assert (one.topic, one.is_on_day_list, one.url) == (None, True, "/")
    assert (unlisted.url, unlisted.is_on_day_list) == (f"/concepts/{first}?route=short", False)


def test_the_rest_of_a_page_on_the_list_comes_next_though_its_essentials_are_read(shipped: Course):
    topics = shipped.topics.values()
    first, second = [
        t for t in topics if 0 < sum(section.essential for section in t.sections) < len(t.sections)
    ][:2]
    pages = (PageToRead(first.slug, 4, "begun"), PageToRead(second.slug, 4, "begun"))
    todays = DayList(dt.date(2026, 6, 9), (Task("read", 8, pages=pages),))
    essentials = {
        topic.slug: [section.anchor for section in topic.sections if section.essential]
        for topic in (first, second)
    }

    begins_with = find_first_unread_page(shipped, todays, essentials, "full")
    after = find_first_unread_page(shipped, todays, essentials, "full", left_page=first.slug)

    assert begins_with.url == f"/concepts/{first.slug}"
    assert after.url == f"/concepts/{second.slug}"


def test_the_last_page_of_the_list_says_so(rosa: TestClient, session: Session):
    rosa.post("/concepts/weights/readings", data={"section": "try-it"})
    rosa.get("/")  # makes the list
    row = session.exec(select(DayListRow)).one()
    pages = [{"slug": "weights", "minutes": 3, "reason": "begun", "short": False}]
    tasks = json.loads(row.tasks)
    tasks["tasks"] = [tasks["tasks"][0] | {"kind": "read", "pages": pages}]
    row.tasks = json.dumps(tasks)
    session.add(row)
    session.commit()

    page = rosa.get("/concepts/weights").text

    assert "No more pages on today\N{RIGHT SINGLE QUOTATION MARK}s list." in page
    assert 'value="next"' not in page
    assert rosa.post(ADDRESS, data={"then": "next"}).headers["location"] == "/"
    today, course_page = rosa.get("/").text, rosa.get("/course").text
    assert re.search(r'the next page, <a href="/concepts/kv-cache">', today)
    assert re.search(r'<a class="btn main" href="/concepts/kv-cache"[^>]*>Next page', course_page)


def test_reading_again_changes_nothing(rosa: TestClient, session: Session, clock):
    rosa.post(ADDRESS, data={"section": "try-it"})
    clock.tick(days=1)
    rosa.post(ADDRESS, data={"section": "try-it"})

    (row,) = session.exec(select(SectionRead)).all()
    assert row.section == "try-it"


def test_a_section_that_is_not_there_is_refused(rosa: TestClient):
    answer = rosa.post(ADDRESS, data={"section": "nowhere"})

    assert answer.status_code == 422
    assert "This page has no section “nowhere”." in answer.text


def test_what_one_reads_is_not_read_by_another(rosa: TestClient, milo: TestClient):
    rosa.post(ADDRESS)

    assert "Mark as read" in milo.get("/concepts/weights").text


def test_a_longer_section_must_be_stayed_with_for_longer_to_count_as_read(client: TestClient):
    page = client.get("/concepts/weights").text

    seconds = [int(found) for found in re.findall(r"intersect once delay:(\d+)s", page)]

    assert seconds
    assert all(2 <= each <= 20 for each in seconds)
    assert len(set(seconds)) > 1
