"""GET /settings/cards.apkg: what a learner studies, for Anki."""

import base64
import datetime as dt
import html
import io
import json
import random
import re
import sqlite3
import tempfile
import tracemalloc
import zipfile
from pathlib import Path

import pytest
from fastapi.testclient import TestClient
from sqlmodel import Session, select

from app.database.engine import open_snapshot_session
from app.database.tables import AddedCard, CardStateRow, Learner, OwnCard, OwnPicture
from app.import_export.anki.package_format import PackageArchiveWriter, import_zstd_or_none
from app.import_export.anki.package_writer import make_note_guid
from app.import_export.anki_card_export import ExportedCourse, write_learner_cards_to_anki_package
from app.import_export.card_import_store import summarize_own_decks_and_imported_reviews
from app.import_export.export_store import LearnerCards
from tests.conftest import TINY
from tests.flashcards.conftest import fields


def review(client: TestClient, card: str, rating: int) -> None:
    page = client.get(f"/flashcards?show=1&card={card}").text
    body = {**fields(page, f"/flashcards/{card}/reviews"), "rating": rating}
    assert client.post(f"/flashcards/{card}/reviews", data=body).status_code == 303


class Package:
    """The collection in an answer, opened in a folder."""

    def __init__(self, content: bytes, folder: Path) -> None:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            path = archive.extract("collection.anki2", folder)
        self.database = sqlite3.connect(path)

    def __call__(self, query: str, *values: object) -> list[tuple]:
        return self.database.execute(query, values).fetchall()


@pytest.fixture
def package(tmp_path: Path):
    opened = []

    def take(client: TestClient) -> Package:
        answer = client.get("/settings/cards.apkg")
        assert answer.status_code == 200
        opened.append(Package(answer.content, tmp_path / f"p{len(opened)}"))
        return opened[-1]

    yield take
    for one in opened:
        one.database.close()


def the_learner(session: Session) -> int:
    return session.exec(select(Learner)).one().id


def test_a_card_that_was_begun_comes_with_each_of_its_grades(rosa, clock, package) -> None:
    review(rosa, "w-c-bf16", 3)
    clock.tick(minutes=12)
    review(rosa, "w-c-bf16", 3)
    clock.tick(days=3)
    review(rosa, "w-c-bf16", 1)

    taken = package(rosa)

    assert taken("SELECT guid FROM notes") == [(make_note_guid("w-c-bf16"),)]
    assert taken("SELECT type, queue, reps, lapses FROM cards") == [(3, 1, 3, 1)]
    log = taken("SELECT ease, type, ivl, lastIvl FROM revlog ORDER BY id")
    assert log == [(3, 0, -600, 0), (3, 0, 2, -600), (1, 1, -600, 2)]


def test_the_moment_of_a_grade_is_its_number(rosa, clock, package) -> None:
    moment = int(clock.now.timestamp() * 1000)
    review(rosa, "w-c-bf16", 3)
    review(rosa, "k-c-name", 4)

    numbers = package(rosa)("SELECT id FROM revlog ORDER BY id")

    assert numbers == [(moment,), (moment + 1,)]


def test_days_are_counted_from_the_first_day_of_study(rosa, clock, package) -> None:
    review(rosa, "w-c-bf16", 3)
    clock.tick(days=5)
    review(rosa, "k-c-name", 4)

    taken = package(rosa)

    ((born,),) = taken("SELECT crt FROM col")
    assert born == 1780977600  # four in the morning of 9 June 2026 in UTC
    ((due, interval),) = taken("SELECT due, ivl FROM cards WHERE type = 2")
    assert due == 5 + interval


def test_what_fsrs_remembers_stands_in_the_data_of_the_card(rosa, session, package) -> None:
    review(rosa, "w-c-bf16", 4)

    ((data,),) = package(rosa)("SELECT data FROM cards")

    memory = session.exec(select(CardStateRow)).one()
    known = json.loads(data)
    assert known["s"] == round(memory.stability, 4)
    assert known["d"] == round(memory.difficulty, 3)
    assert known["dr"] == 0.9


def test_a_grade_that_was_undone_stays_behind(rosa, package) -> None:
    review(rosa, "w-c-bf16", 4)
    review(rosa, "w-c-size", 2)
    undo = fields(rosa.get("/flashcards").text, "/flashcards/undo")
    rosa.post("/flashcards/undo", data=undo)

    taken = package(rosa)

    assert taken("SELECT guid FROM notes") == [(make_note_guid("w-c-bf16"),)]
    assert taken("SELECT ease FROM revlog") == [(4,)]


def test_an_edited_card_comes_with_its_text_and_its_grades(rosa, session, package) -> None:
    review(rosa, "w-c-bf16", 3)
    rosa.post("/flashcards/own/w-c-bf16", data={"front": "My words?", "back": "Yes."})

    taken = package(rosa)

    assert ["My words?" in fields for (fields,) in taken("SELECT flds FROM notes")] == [True]
    assert taken("SELECT count(*) FROM revlog") == [(1,)]
    assert (
        summarize_own_decks_and_imported_reviews(session, the_learner(session)).own_decks == ()
    )  # to remove


def test_a_card_and_its_reverse_are_one_note(rosa, package) -> None:
    review(rosa, "w-c-size~r", 3)

    taken = package(rosa)

    assert taken("SELECT guid FROM notes") == [(make_note_guid("w-c-size"),)]
    assert taken("SELECT ord, reps FROM cards ORDER BY ord") == [(0, 0), (1, 1)]


def test_added_cards_come_along_and_declined_ones_do_not(rosa, session, package) -> None:
    review(rosa, "w-c-bf16", 3)
    number = the_learner(session)
    for card, declined in (("own:a1", False), ("own:b2", True)):
        session.add(
            AddedCard(learner_id=number, card=card, declined=declined, at=1),
        )
        own = OwnCard(learner_id=number, card=card, deck="D", front=card, back="B")
        own.at = 1
        session.add(own)
    session.commit()

    taken = package(rosa)

    assert taken("SELECT flds FROM notes WHERE guid = 'own:a1'") == [("own:a1\x1fB",)]
    assert taken("SELECT count(*) FROM notes") == [(2,)]


def faces_of(client, session, package, question: str) -> list[str]:
    """Front and back of a missed question, as they are taken along."""
    client.post("/concepts/weights/readings")
    number = the_learner(session)
    session.add(AddedCard(learner_id=number, card=f"q:{question}", seed=3, at=1))
    session.commit()
    ((words,),) = package(client)("SELECT flds FROM notes")
    return html.unescape(words).split("\x1f")


def test_the_number_of_a_missed_question_is_taken_along_in_its_unit(rosa, session, package) -> None:
    front, back = faces_of(rosa, session, package, "w-computed")

    assert "A number in the unit GB." in front
    told = re.search(r"<b>([\d.]+)\xa0GB</b>", back)
    explained = re.search(r"Parameters times bytes: ([\d.]+) GB", back)
    assert told
    assert explained
    assert float(told[1]) == float(explained[1])


def test_the_options_of_a_missed_question_keep_their_letters(rosa, session, package) -> None:
    front, back = faces_of(rosa, session, package, "w-grow")

    options = re.findall("<li>(.*?)</li>", front)
    right = "AB"[options.index("False")]
    assert '<ol type="A">' in front
    assert f"<b>{right}.</b> False" in back
    assert "All conversations read the same weights." in back


def test_a_gap_of_a_missed_question_can_be_seen(rosa, session, package) -> None:
    front, _ = faces_of(rosa, session, package, "k-cloze")

    assert "keeps the […] and the [what is read] of every token" in front


def test_a_card_that_left_the_course_stays_behind(rosa, session, package) -> None:
    review(rosa, "w-c-bf16", 3)
    number = the_learner(session)
    session.add(AddedCard(learner_id=number, card="q:gone", at=1))
    session.commit()

    assert package(rosa)("SELECT count(*) FROM notes") == [(1,)]


def test_whoever_has_begun_nothing_takes_an_empty_package(rosa, package) -> None:
    assert package(rosa)("SELECT count(*) FROM cards") == [(0,)]


@pytest.mark.drill
@pytest.mark.parametrize("modern", [False, True])
def test_a_package_is_never_in_memory_as_a_whole(
    app, rosa, session, course, clock, modern: bool
) -> None:
    if modern and import_zstd_or_none() is None:
        pytest.skip("this environment was made without zstd")
    review(rosa, "w-c-bf16", 3)
    number = the_learner(session)
    chance = random.Random(1)  # noqa: S311 - repeatable, not secret
    for n in range(20):
        words = base64.b64encode(chance.randbytes(1_000_000)).decode()
        name = f"{n:032x}.png"
        session.add(OwnPicture(learner_id=number, name=name, content=words, at=1))
    for n in range(2000):
        picture = f'<img src="/flashcards/pictures/{n % 20:032x}.png" alt="Picture">'
        own = OwnCard(learner_id=number, card=f"own:{n}", front=picture, back="", at=1)
        own.back = f"{n} " * 2000
        session.add(own)
        session.add(AddedCard(learner_id=number, card=own.card, at=1))
    session.commit()
    exported = ExportedCourse(course, TINY)

    with tempfile.TemporaryFile() as file, open_snapshot_session(app.state.engine) as db:
        cards = LearnerCards(db, number)
        package = PackageArchiveWriter(file, newer_format=modern)
        tracemalloc.start()
        write_learner_cards_to_anki_package(exported, cards, package, clock().astimezone(dt.UTC))
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        with zipfile.ZipFile(file) as archive:
            entries = archive.infolist()
        size = file.seek(0, io.SEEK_END)

    assert len(entries) == 22 + modern
    assert size > 20_000_000
    assert peak < size / 2
