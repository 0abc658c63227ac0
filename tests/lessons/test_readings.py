"""POST /concepts/{topic}/readings: how far a learner got."""

from fastapi.testclient import TestClient
from sqlmodel import Session, select

from app.database.tables import SectionRead

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
    assert "Read, back to Today" in page
    assert "Mark as read" not in page


def test_who_has_read_a_page_is_back_at_today_with_one_click(rosa: TestClient):
    assert rosa.post(ADDRESS, data={"then": "today"}).headers["location"] == "/"


def test_the_next_page_is_one_click_away_and_after_the_last_one_today(rosa: TestClient):
    address = "/concepts/weights"
    visited = []
    while address.startswith("/concepts/"):
        visited.append(address)
        address = rosa.post(f"{address}/readings", data={"then": "next"}).headers["location"]

    assert len(visited) == len(set(visited)) > 1
    assert address == "/"


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
