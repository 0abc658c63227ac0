"""Notes beside their sections, and looking for one among all."""

import pytest
from fastapi.testclient import TestClient

from app.content.course import Course

PAGE = "/concepts/weights"


@pytest.fixture
def section(course: Course) -> str:
    return next(s.anchor for s in course.topics["weights"].sections if s.anchor)


def write(client: TestClient, section: str, words: str, **more: str):
    sent = {"section": section, "words": words, "beside": "yes", **more}
    return client.post(f"{PAGE}/notes", data=sent)


def test_a_note_stands_below_its_section(rosa: TestClient, section: str):
    answer = write(rosa, section, "Two bytes <each>.")

    assert answer.headers["location"] == f"{PAGE}#n-{section}"
    page = rosa.get(PAGE).text
    note = page.index('<p class="written">Two bytes &lt;each&gt;.</p>')
    assert page.index(f'<h2 id="{section}"') < note
    assert page.index(f'id="n-{section}"') < note


def test_every_section_has_room_for_a_note(rosa: TestClient, course: Course):
    page = rosa.get(PAGE).text

    named = [s for s in course.topics["weights"].sections if s.anchor]
    assert page.count("Save note<span") == len(named)
    assert "<script>" not in page


def test_htmx_gets_the_note_alone(htmx: TestClient, section: str):
    fragment = write(htmx, section, "Two bytes.").text

    assert fragment.lstrip().startswith("<aside")
    assert "Saved" in fragment
    assert "Removed" in write(htmx, section, "").text


def test_a_note_of_another_learner_is_not_shown(rosa: TestClient, milo: TestClient, section: str):
    write(rosa, section, "Mine alone.")

    assert "Mine alone." not in milo.get(PAGE).text


def test_all_notes_can_be_searched(rosa: TestClient, section: str):
    write(rosa, section, "Sixteen BYTES for the optimizer")

    assert "Sixteen" in rosa.get("/notes?q=optimizer+bytes").text
    assert "Sixteen" in rosa.get("/notes?q=„optim\u00adizer“").text
    nothing = rosa.get("/notes?q=%3Cb%3Ezzz").text
    assert "Sixteen" not in nothing
    assert "No note has “&lt;b&gt;zzz”" in nothing


def test_a_title_is_found_too(rosa: TestClient, section: str, course: Course):
    write(rosa, section, "x")
    title = course.topics["weights"].title

    assert "mine" not in rosa.get("/notes").text
    assert f">{title}</a></h2>" in rosa.get(f"/notes?q={title}").text


def test_what_another_tab_wrote_meanwhile_stays(rosa: TestClient, section: str):
    write(rosa, section, "first", shown="=")
    write(rosa, section, "", shown="=", marked="yes")  # opened before, bookmarks alone
    assert "first" in rosa.get("/notes.md").text

    write(rosa, section, "second", shown="=")  # and one that wrote something else
    told = rosa.get("/notes.md").text
    assert "first" in told
    assert "second" in told

    write(rosa, section, "third", shown="=first\n\nsecond")
    assert "first" not in rosa.get("/notes.md").text
