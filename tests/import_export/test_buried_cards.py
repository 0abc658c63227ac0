"""Cards that are buried for the rest of a day, out of packages and into them."""

import io
import sqlite3
import zipfile

import pytest
from fastapi.testclient import TestClient
from sqlmodel import Session, select

from app.database.tables import CardStateRow, Review
from app.import_export.anki.package_writer import make_note_guid
from tests.flashcards.conftest import fields
from tests.import_export.package import Made, package
from tests.import_export.test_cards_in import (
    HISTORY,
    NOON,
    bring,
    everything,
    learners,
    standings,
)
from tests.import_export.test_cards_out import review

NOTE = Made("g1", ("What is RDMA?", "Memory access"), log=HISTORY)
HOUR = 3600
TODAY, TOMORROW = "2026-06-09", "2026-06-10"


def buried(queue: int = -3, hours: int = 1, kind: int = 2) -> str:
    """SQL: every card was buried so many hours ago."""
    return changed(NOON // 1000 - hours * HOUR, queue, kind)


def changed(moment: int, queue: int = -3, kind: int = 2) -> str:
    values = f"queue = {queue}, mod = {moment}, type = {kind}"
    return f"UPDATE cards SET {values}"  # noqa: S608 - numbers only


def acts(session: Session, learner: int) -> list[tuple[str, str | None]]:
    rows = session.exec(select(Review).where(Review.learner_id == learner))
    return [(row.act, row.until_day) for row in rows if row.act]


def bury(client: TestClient, card: str) -> None:
    page = client.get(f"/flashcards/{card}/more").text
    body = {**fields(page, f"/flashcards/{card}/acts"), "act": "bury"}
    assert client.post(f"/flashcards/{card}/acts", data=body).status_code == 303


def cards_of(client: TestClient) -> list[tuple]:
    """Type, queue, due and moment of change of each card that goes out."""
    content = client.get("/settings/cards.apkg").content
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        data = archive.read("collection.anki2")
    db = sqlite3.connect(":memory:")
    db.deserialize(data)
    rows = db.execute("SELECT type, queue, due, mod FROM cards").fetchall()
    db.close()
    return rows


@pytest.mark.parametrize("queue", [-2, -3])
@pytest.mark.parametrize("note", [NOTE, Made("g1", ("F", "B"))])
def test_a_card_buried_today_comes_tomorrow(rosa, session, queue, note) -> None:
    bring(rosa, package(note, script=buried(queue)))

    (one,) = learners(session)
    assert acts(session, one) == [("bury", TOMORROW)]
    row = session.exec(select(CardStateRow)).one()
    assert row.set_day == row.due_day >= TOMORROW


def test_a_card_buried_yesterday_is_asked_as_ever(rosa, session) -> None:
    bring(rosa, package(NOTE, script=buried(hours=24)))

    (one,) = learners(session)
    assert acts(session, one) == []
    assert session.exec(select(CardStateRow)).one().set_day == ""


def test_the_day_is_that_of_the_learner(rosa, session, clock) -> None:
    clock.tick(hours=15)  # three at night, still the study day of yesterday noon

    bring(rosa, package(NOTE, script=buried(hours=0)))

    (one,) = learners(session)
    assert acts(session, one) == [("bury", TOMORROW)]


def test_the_same_file_buries_once(rosa, session) -> None:
    content = package(NOTE, script=buried())
    bring(rosa, content)
    (one,) = learners(session)
    before = everything(session, one)

    bring(rosa, content)

    assert everything(session, one) == before


def test_a_reset_card_can_be_buried_after_it(rosa, session) -> None:
    bring(rosa, package(NOTE, script=buried(kind=0)))

    row = session.exec(select(CardStateRow)).one()
    assert (row.state, row.set_day) == ("new", TOMORROW)


def test_a_moment_of_nobody_buries_nothing(rosa, session) -> None:
    bring(rosa, package(NOTE, script=changed(2**60)))

    (one,) = learners(session)
    assert acts(session, one) == []


def test_what_is_buried_here_is_buried_in_the_package(rosa, clock) -> None:
    review(rosa, "w-c-bf16", 1)  # in its steps
    clock.tick(seconds=90.7)
    bury(rosa, "w-c-bf16")

    ((kind, queue, due, changed),) = cards_of(rosa)

    assert (kind, queue) == (1, -3)  # a learning card, with the moment of its step
    assert due > 1_000_000_000
    assert changed == NOON // 1000 + 90


def test_on_the_next_day_it_goes_out_as_any_card(rosa, clock) -> None:
    review(rosa, "w-c-bf16", 3)
    bury(rosa, "w-c-bf16")
    clock.tick(hours=24)

    ((_, queue, *_),) = cards_of(rosa)

    assert queue == 2


def test_a_buried_card_stands_the_same_with_another_learner(rosa, milo, session, clock) -> None:
    ours = Made(make_note_guid("w-c-bf16"), ("F", "B"), log=HISTORY)
    bring(rosa, package(ours, NOTE, Made("g2", ("F", "B"))))
    clock.tick(seconds=2.4)
    one = learners(session)[0]
    for card in standings(session, one):
        bury(rosa, card)
    before = everything(session, one)
    taken = rosa.get("/settings/cards.apkg").content

    bring(rosa, taken)
    bring(milo, taken)

    assert everything(session, one) == before
    other = learners(session)[1]
    mine, theirs = standings(session, one), standings(session, other)
    assert {c: (m.due_day, m.set_day) for c, m in theirs.items()} == {
        c: (m.due_day, m.set_day) for c, m in mine.items()
    }
    assert TODAY not in {m.due_day for m in theirs.values()}
