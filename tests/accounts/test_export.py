"""GET /settings/export: an archive that says the same as the pages."""

import base64
import csv
import io
import json
import re
import tempfile
import tracemalloc
import zipfile

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from sqlmodel import Session, select

from app.accounts.learner_store import list_tables_with_learner_rows
from app.accounts.personal_data import write_personal_data_archive
from app.database.engine import open_snapshot_session
from app.database.tables import Learner, OwnPicture, SectionNoteRow
from tests.exams.sitting import begin, finish, save
from tests.flashcards.conftest import fields


def read_archive(content: bytes) -> dict[str, int]:
    """What a stranger's script would make of an archive: the totals of its rows."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        attempts = json.loads(archive.read("attempt.json"))
        reviews = json.loads(archive.read("review.json"))
        readings = archive.read("reading.csv").decode()
        answers = json.loads(archive.read("sitting_answer.json"))
        sittings = json.loads(archive.read("sitting.json"))
        days = json.loads(archive.read("study_day.json"))
    undone = {row["voids"] for row in reviews if row["voids"]}
    worked = {row["study_day"] for row in attempts}
    worked |= {row["study_day"] for row in reviews if not row["voids"] and row["id"] not in undone}
    firsts = [row for row in attempts if row["first"]]
    return {
        "answers": len(attempts),
        "answers by day": sum(row["answers"] for row in days),
        "days": len(worked),
        "days by day": sum(row["answers"] + row["reviews"] > 0 for row in days),
        "reviews by day": sum(row["reviews"] for row in days),
        "first answers": len(firsts),
        "right": sum(row["score"] == 1 for row in firsts),
        "reviews": sum(not r["voids"] and r["id"] not in undone for r in reviews),
        "cards": len(
            {row["card"] for row in reviews if not row["voids"] and row["id"] not in undone}
        ),
        "sections": len(list(csv.DictReader(io.StringIO(readings)))),
        "exams": sum(row["closed_at"] is not None for row in sittings),
        "questions sat": sum(len(row["paper"]) for row in sittings),
        "answered": sum(bool(row["raw"]) for row in answers),
    }


def review(client: TestClient, card: str, rating: int) -> None:
    page = client.get(f"/flashcards?show=1&card={card}").text
    body = {**fields(page, f"/flashcards/{card}/reviews"), "rating": rating}
    assert client.post(f"/flashcards/{card}/reviews", data=body).status_code == 303


def study(client: TestClient) -> None:
    """Read a page, review two cards, undo one of them, sit an exam."""
    client.post("/concepts/weights/readings", data={})
    review(client, "w-c-bf16", 3)
    review(client, "w-c-size", 1)
    undo = fields(client.get("/flashcards").text, "/flashcards/undo")
    client.post("/flashcards/undo", data=undo)
    sitting = begin(client)
    save(client, sitting, 1, answer="1")
    finish(client, sitting)


def test_the_archive_has_the_totals_of_its_rows(client: TestClient):
    study(client)

    totals = read_archive(client.get("/settings/export").content)

    counted = client.get("/settings/erasure").text
    for name in ("answers", "reviews", "days"):
        assert totals[name] == totals[f"{name} by day"] > 0
    assert totals["exams"] == 1
    assert (totals["reviews"], totals["cards"]) == (1, 1)
    listed = rows_of(client.get("/settings/export").content)
    # What was undone has rows, and is neither a review nor a card begun.
    listed["Reviews of cards"] = totals["reviews"]
    listed["Cards started"] = totals["cards"]
    for words, rows in listed.items():
        row = re.search(rf"{words}</th><td class=\"n\">([\d,]+)<", counted)
        assert row, words
        assert int(row[1].replace(",", "")) == rows


def test_a_card_that_was_only_added_or_put_aside_was_not_begun(client: TestClient):
    review(client, "w-c-bf16", 3)
    client.post("/flashcards/w-c-size/suspension", data={"aside": "yes"})
    client.post("/flashcards/term:weights/addition", data={"wanted": "yes"})

    listed = client.get("/settings/erasure").text

    assert rows_of(client.get("/settings/export").content)["Cards started"] == 3
    assert 'Cards started</th><td class="n">1<' in listed


def rows_of(content: bytes) -> dict[str, int]:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        rows = json.loads(archive.read("about.json"))["rows"]
    return {
        "Answers to questions": rows["attempt"],
        "Reviews of cards": rows["review"],
        "Cards started": rows["memory"],
        "Sections read": rows["reading"],
        "Exams": rows["sitting"],
    }


def test_json_and_csv_have_the_same_rows(client: TestClient):
    study(client)

    with zipfile.ZipFile(io.BytesIO(client.get("/settings/export").content)) as archive:
        names = {n.split(".")[0] for n in archive.namelist() if n.endswith(".csv")}
        for name in names:
            objects = json.loads(archive.read(f"{name}.json"))
            lines = csv.DictReader(io.StringIO(archive.read(f"{name}.csv").decode("utf-8-sig")))
            assert [str(o["id"]) for o in objects] == [row["id"] for row in lines]
    tables = {table.name for table in list_tables_with_learner_rows()}
    assert names == tables - {"device_code"}


def test_what_lets_people_in_stays_here(rosa: TestClient, own_everything):
    own_everything(rosa, "Rosa")
    key = rosa.cookies["headroom"].split(".")[0]
    rosa.post("/settings/codes")

    with zipfile.ZipFile(io.BytesIO(rosa.get("/settings/export").content)) as archive:
        words = b"".join(archive.read(name) for name in archive.namelist())

    assert b'"name": "Rosa"' in words
    assert key.encode() not in words
    assert b"digest" not in words


def give_pictures(session: Session, contents: list[bytes]) -> None:
    learner = session.exec(select(Learner.id)).one()
    for number, content in enumerate(contents):
        words = base64.b64encode(content).decode()
        name = f"{number:032x}.png"
        session.add(OwnPicture(learner_id=learner, name=name, content=words, at=1))
    session.commit()


def test_pictures_are_files_that_are_packed_as_they_are(client: TestClient, session: Session):
    study(client)
    give_pictures(session, [b"\x89PNG one" * 100, b"\x89PNG two" * 100])

    with zipfile.ZipFile(io.BytesIO(client.get("/settings/export").content)) as archive:
        rows = json.loads(archive.read("own_picture.json"))
        entries = [archive.getinfo(f"pictures/{row['name']}") for row in rows]
        contents = [archive.read(entry) for entry in entries]
        about = json.loads(archive.read("about.json"))

    assert contents == [b"\x89PNG one" * 100, b"\x89PNG two" * 100]
    assert {entry.compress_type for entry in entries} == {zipfile.ZIP_STORED}
    assert "content" not in rows[0]
    assert (about["format"], about["rows"]["own_picture"]) == (2, 2)


@pytest.mark.drill
def test_an_archive_is_never_in_memory_as_a_whole(
    client: TestClient, session: Session, app: FastAPI, clock
):
    study(client)
    give_pictures(session, [bytes(1_000_000)] * 20)
    learner = session.exec(select(Learner.id)).one()
    session.add_all(
        SectionNoteRow(learner_id=learner, topic="t", section=f"s{n}", words="word " * 999, at=n)
        for n in range(4000)
    )
    session.commit()

    with tempfile.TemporaryFile() as file, open_snapshot_session(app.state.engine) as db:
        tracemalloc.start()
        write_personal_data_archive(db, learner, clock(), file)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        size = file.tell()

    assert size > 20_000_000
    assert peak < size / 2


def test_times_can_be_read(client: TestClient):
    study(client)

    with zipfile.ZipFile(io.BytesIO(client.get("/settings/export").content)) as archive:
        rows = json.loads(archive.read("reading.json"))

    assert {row["at"] for row in rows} == {"2026-06-09T12:00:00.000Z"}


def test_nothing_of_another_learner_is_in_it(rosa: TestClient, milo: TestClient, own_everything):
    own_everything(rosa, "Rosa")
    own_everything(milo, "Milo")

    with zipfile.ZipFile(io.BytesIO(rosa.get("/settings/export").content)) as archive:
        rows = {n: json.loads(archive.read(n)) for n in archive.namelist() if n[-5:] == ".json"}

    assert {len(r) for n, r in rows.items() if n != "about.json"} == {1}
    assert "Milo" not in json.dumps(rows)


def test_who_has_done_nothing_gets_an_empty_archive(client: TestClient):
    answer = client.get("/settings/export")

    assert answer.headers["content-type"] == "application/zip"
    assert answer.headers["content-disposition"].startswith('attachment; filename="')
    assert answer.headers["cache-control"] == "no-store"
    assert set(read_archive(answer.content).values()) == {0}


def test_the_settings_lead_there(client: TestClient):
    page = client.get("/settings").text

    assert 'href="/settings/export"' in page
    assert 'href="/settings/erasure"' in page
