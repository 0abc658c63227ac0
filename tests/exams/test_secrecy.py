"""While an exam is being sat, no page and no file gives its answers away."""

import io
import json
import re
import sqlite3
import zipfile

import pytest
from fastapi.testclient import TestClient
from sqlmodel import Session, select

from app.content.course import Course
from app.database.tables import Sitting
from app.import_export.anki.package_writer import make_note_guid
from tests.conftest import Clock
from tests.exams.sitting import begin, finish, save
from tests.quiz.conftest import Fields

SITTING = "This question is in the mock exam that you are sitting."


def paper(session: Session) -> list[str]:
    """The questions of the newest paper."""
    session.rollback()
    papers = session.exec(select(Sitting.paper).order_by(Sitting.id)).all()
    return [slot[1] for slot in json.loads(papers[-1])]


def notes(client: TestClient, folder) -> set[str]:
    """The names of the notes in a learner's package."""
    content = client.get("/settings/cards.apkg").content
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        path = archive.extract("collection.anki2", folder)
    with sqlite3.connect(path) as database:
        return {name for (name,) in database.execute("SELECT guid FROM notes")}


def answer_on(client: TestClient, page: str) -> tuple[str, str]:
    """Answer the question of a page somehow: which one, and where its verdict is.

    A question that wants more than one field has no verdict then.
    """
    form = Fields("/attempts")
    form.feed(client.get(page).text)
    given = {"answer": form.options.get("answer", ["1"])[0]}
    answer = client.post(form.action, data={**form.values, **given})
    return form.action.split("/")[3], answer.headers.get("location", "")


def begin_with_one_of(
    client: TestClient, session: Session, known: set[str]
) -> tuple[str, set[str]]:
    """Begin exams until one asks something known: papers are drawn by chance."""
    while True:
        sitting = begin(client)
        asked = set(paper(session))
        if asked & known:
            return sitting, asked
        finish(client, sitting)


@pytest.fixture
def verdicts(rosa: TestClient, course: Course) -> dict[str, str]:
    """Questions that were answered in practice, with the addresses of the verdicts."""
    pages = [f"/quiz/{q.topic}/{q.id}" for q in course.questions.values()]
    found = dict(answer_on(rosa, page) for page in pages)
    return {item: address for item, address in found.items() if address}


def test_cards_count_alike_on_every_page_while_an_exam_hides_some(
    rosa: TestClient, session: Session, clock: Clock, verdicts: dict[str, str]
):
    assert verdicts

    def count_cards_left() -> int:
        html = rosa.get("/flashcards").text.partition('aria-label="Cards left"')[2]
        return sum(map(int, re.findall(r"<b>(\d+)</b>", html.partition("</ul>")[0])))

    clock.tick(days=1)
    rosa.get("/")
    before = count_cards_left()
    assert before > 3
    first_card = re.search(r'name="card" value="q:([\w-]+)"', rosa.get("/flashcards").text)
    assert first_card

    begin_with_one_of(rosa, session, {first_card[1]})

    assert first_card[0] not in rosa.get("/flashcards").text
    assert count_cards_left() == before


def test_the_verdict_of_an_earlier_answer_waits_for_the_end(
    rosa: TestClient, session: Session, verdicts: dict[str, str]
):
    sitting, asked = begin_with_one_of(rosa, session, set(verdicts))

    for item, address in verdicts.items():
        answer = rosa.get(address)
        assert (answer.status_code == 409) is (item in asked)
        assert (SITTING in answer.text) is (item in asked)
    finish(rosa, sitting)
    assert {rosa.get(address).status_code for address in verdicts.values()} == {200}


def test_the_verdict_of_a_run_waits_as_well(rosa: TestClient, session: Session, course: Course):
    wanted = {"pick": "mixed", "count": len(course.questions), "token": ""}
    run = rosa.post("/quiz/runs", data=wanted).headers["location"]
    items = [answer_on(rosa, f"{run}/{n}") for n in range(1, wanted["count"] + 1)]
    sitting = begin(rosa)
    asked = set(paper(session))

    for place, (item, verdict) in enumerate(items, 1):
        status = rosa.get(f"{run}/{place}").status_code
        assert status == (409 if item in asked else 200)
        assert not verdict or verdict.endswith(f"/{place}")
    finish(rosa, sitting)


def test_the_solution_of_an_earlier_exam_waits_as_well(rosa: TestClient, session: Session):
    earlier = begin(rosa)
    before = paper(session)
    finish(rosa, earlier)
    sitting, asked = begin_with_one_of(rosa, session, set(before))

    for number, item in enumerate(before, 1):
        status = rosa.get(f"{earlier}/questions/{number}").status_code
        assert status == (409 if item in asked else 200)
    finish(rosa, sitting)
    assert rosa.get(f"{earlier}/questions/1").status_code == 200


def test_cards_of_its_questions_are_taken_along_when_it_is_over(
    rosa: TestClient, session: Session, clock: Clock, tmp_path
):
    earlier = begin(rosa)
    missed = {f"q:{item}" for item in paper(session)}
    save(rosa, earlier, 5, flag="yes")  # all were reached
    finish(rosa, earlier)
    clock.tick(days=1)
    rosa.post("/settings", data={"missed": "no", "zone": "UTC"})  # no more of them
    everything = notes(rosa, tmp_path / "before")
    sitting, items = begin_with_one_of(rosa, session, {m[2:] for m in missed})
    asked = {f"q:{item}" for item in items}

    during = notes(rosa, tmp_path / "during")

    hidden = {make_note_guid(card) for card in missed & asked}
    assert during == everything - hidden
    page = rosa.get("/settings/cards").text.replace("\xa0", " ")
    words = "card" if len(hidden) == 1 else "cards"
    assert f"{len(hidden)} {words} of questions in the exam" in page
    finish(rosa, sitting)
    assert notes(rosa, tmp_path / "after") == everything
