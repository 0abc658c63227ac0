"""A learner keeps so many pictures; an import says which cards it left out for them."""

import base64

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from sqlalchemy import event
from sqlmodel import Session, delete, select

from app.database.tables import Learner, OwnCard, OwnPicture
from app.import_export import card_import_store as pictures
from app.import_export.card_import_store import ImportedCard
from tests.import_export.package import Made, database, written
from tests.import_export.test_cards_in import bring
from tests.turns import count_open

PNG = b"\x89PNG\r\n\x1a\n"
LEFT = "your pictures would take more than 100 MB"


def illustrated(count: int, size: int = 1000, word: str = "p") -> bytes:
    """A package of cards with a picture each."""
    names = [f"{word}{n}" for n in range(count)]
    media = {f"{name}.png": (PNG + name.encode()).ljust(size) for name in names}
    notes = [Made(n, (f'{n} <img src="{n}.png">', "Back")) for n in names]
    return written(database(*notes), media, modern=False)


def kept(session: Session) -> tuple[int, int]:
    """How many own cards and pictures there are."""
    session.rollback()
    cards = session.exec(select(OwnCard)).all()
    return len(cards), len(session.exec(select(OwnPicture)).all())


@pytest.fixture
def little_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pictures, "MAX_PICTURE_BYTES", 3500)


@pytest.mark.usefixtures("little_room")
def test_cards_whose_pictures_do_not_fit_are_left_out_and_named(rosa: TestClient, session: Session):
    said = bring(rosa, illustrated(5))

    assert "3 new cards" in said
    assert f"Cards 2 {LEFT}" in said
    assert kept(session) == (3, 3)

    again = bring(rosa, illustrated(5))
    assert "0 new cards, 0 cards changed" in again
    assert f"Cards 2 {LEFT}" in again
    assert kept(session) == (3, 3)


@pytest.mark.usefixtures("little_room")
def test_cards_without_pictures_come_however_many_there_are(rosa: TestClient):
    bring(rosa, illustrated(5))

    plain = written(database(Made("g", ("Front", "Back"))), {}, modern=False)

    assert "1 new card" in bring(rosa, plain)


@pytest.mark.usefixtures("little_room")
def test_pictures_in_another_course_count(rosa: TestClient, session: Session):
    rosa.post("/settings", data={"name": "Rosa"})
    here = session.exec(select(Learner)).one()
    there = Learner(key="k", person=here.person, course="other", created_at=1)
    session.add(there)
    session.flush()
    words = base64.b64encode(bytes(3000)).decode()
    session.add(OwnPicture(learner_id=there.id, name="x.png", content=words, at=1))
    session.commit()

    assert f"Cards 2 {LEFT}" in bring(rosa, illustrated(2))


@pytest.mark.usefixtures("little_room")
def test_pictures_of_others_do_not_count(rosa: TestClient, milo: TestClient):
    bring(milo, illustrated(3))

    assert LEFT not in bring(rosa, illustrated(3))


def test_pictures_are_measured_before_the_write_transaction(app: FastAPI, rosa: TestClient):
    bring(rosa, illustrated(3))
    turns, measured = count_open(app), []

    def note(_connection, _cursor, statement: str, *_more) -> None:
        if "length(" in statement:
            measured.append(turns.open)

    event.listen(app.state.engine, "before_cursor_execute", note)
    bring(rosa, illustrated(3, word="q"))

    assert measured == [0]


@pytest.mark.usefixtures("little_room")
def test_pictures_that_came_since_they_were_measured_count(rosa: TestClient, session: Session):
    bring(rosa, illustrated(1))
    learner = session.exec(select(Learner)).one().id
    measured = pictures.load_picture_sizes_in_all_courses(session, learner)
    bring(rosa, illustrated(2, word="q"))
    session.rollback()
    arrival = ImportedCard("own:1", "", "", "", picture_by_name={"x.png": bytes(1000)})

    def fits() -> bool:
        return bool(pictures.drop_cards_beyond_picture_quota(session, learner, [arrival], measured))

    assert not fits()
    session.exec(delete(OwnPicture))
    assert fits()


def test_the_number_of_pictures_is_bounded_as_well(
    rosa: TestClient, session: Session, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(pictures, "MAX_PICTURES", 2)

    assert "Cards 3 " in bring(rosa, illustrated(5, size=20))
    assert kept(session) == (2, 2)
