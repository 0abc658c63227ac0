"""GET and POST /concepts/{topic}/notes, GET /notes and /notes.md."""

import pytest
from fastapi.testclient import TestClient
from sqlmodel import Session, select

from app.content.course import Course
from app.database.tables import Learner, SectionNoteRow

PAGE = "/concepts/weights/notes"


@pytest.fixture
def section(course: Course) -> str:
    return next(s.anchor for s in course.topics["weights"].sections if s.anchor)


def write(client: TestClient, section: str, words: str = "", **fields: str):
    return client.post(PAGE, data={"section": section, "words": words, **fields})


def test_a_note_is_shown_where_it_was_written(client: TestClient, section: str):
    answer = write(client, section, "Two bytes each.\r\nAlways.")

    assert answer.headers["location"] == f"{PAGE}#n-{section}"
    assert "Two bytes each.\nAlways.</textarea>" in client.get(PAGE).text
    assert "Two bytes each." in client.get("/notes").text


def test_a_section_has_one_note(client: TestClient, session: Session, section: str):
    write(client, section, "First.")
    write(client, section, "Second.")

    assert [n.words for n in session.exec(select(SectionNoteRow))] == ["Second."]


def test_an_empty_note_is_taken_away(client: TestClient, session: Session, section: str):
    write(client, section, "First.")
    write(client, section, "  ")

    assert session.exec(select(SectionNoteRow)).all() == []


def test_a_bookmark_needs_no_words(client: TestClient, section: str):
    write(client, section, marked="yes")

    page = client.get("/notes").text
    assert 'aria-label="Bookmark"' in page
    assert f'href="/concepts/weights#{section}"' in page


def test_markdown_holds_titles_links_and_words(client: TestClient, course: Course, section: str):
    write(client, section, "- two bytes\n- each", marked="yes")

    answer = client.get("/notes.md")

    title = next(s.title for s in course.topics["weights"].sections if s.anchor)
    assert answer.headers["content-type"] == "text/markdown; charset=utf-8"
    assert answer.text == (
        "# Notes\n\n"
        f"## {course.topics['weights'].title}\n\n"
        f"### [{title}](http://testserver/concepts/weights#{section}) (bookmark)\n\n"
        "- two bytes\n- each\n"
    )


def test_a_note_outlives_its_section_and_its_page(
    client: TestClient, session: Session, section: str
):
    write(client, section, "Here.")
    learner = session.exec(select(Learner)).one()
    for topic in ("weights", "gone-page"):
        session.add(
            SectionNoteRow(learner_id=learner.id, topic=topic, section="gone", words="Kept.", at=1)
        )
    session.commit()

    assert "Kept." in client.get(PAGE).text
    assert write(client, "gone", "Moved.").status_code == 303
    everything = client.get("/notes").text
    assert "Moved." in everything
    assert "Kept." in everything


def test_notes_are_nobody_elses(rosa: TestClient, milo: TestClient, section: str):
    write(rosa, section, "Secret of Rosa.")

    assert "Secret" not in milo.get(PAGE).text
    assert "Secret" not in milo.get("/notes").text
    assert "Secret" not in milo.get("/notes.md").text


def test_what_is_written_is_only_text(client: TestClient, section: str):
    write(client, section, "</textarea><script>alert(1)</script>")

    for address in (PAGE, "/notes"):
        assert "<script>alert" not in client.get(address).text


def test_a_section_that_never_was_is_refused(client: TestClient):
    answer = write(client, "nowhere", "Lost.")

    assert answer.status_code == 422
    assert "no section “nowhere”" in answer.text


def test_a_note_has_an_end(client: TestClient, section: str):
    answer = write(client, section, "x" * 10_001)

    assert answer.status_code == 422
    assert "at most 10,000 characters; this has 10,001" in answer.text


def test_a_page_leads_to_its_notes_and_the_empty_list_says_where(client: TestClient):
    assert f'href="{PAGE}"' in client.get("/concepts/weights").text
    assert "You have no notes or bookmarks yet." in client.get("/notes").text


def test_an_unknown_page_has_no_notes(client: TestClient):
    assert client.get("/concepts/nowhere/notes").status_code == 404


def test_with_htmx_one_section_answers_and_the_others_stay(htmx: TestClient, section: str):
    answer = write(htmx, section, "Two bytes each.")

    assert answer.status_code == 200
    assert answer.text.count("<section") == 1
    assert "Two bytes each.</textarea>" in answer.text
    assert "Saved" in answer.text
    assert "Removed" in write(htmx, section, "").text
