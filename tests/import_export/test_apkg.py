"""Cards as an Anki package."""

import io
import json
import sqlite3
import zipfile
from pathlib import Path

from app.import_export.anki.package_writer import write_cards_as_apkg
from app.import_export.items import Item

CARDS = (
    Item("c-one", "card", "KV **cache**", text="It grows.", topic="cache"),
    Item("c-two", "card", "GQA", text="Shared $K$.", reverse=True, topic="cache"),
)


def opened(content: bytes, folder: Path) -> sqlite3.Connection:
    archive = zipfile.ZipFile(io.BytesIO(content))
    assert sorted(archive.namelist()) == ["collection.anki2", "media"]
    return sqlite3.connect(archive.extract("collection.anki2", folder))


def rows(content: bytes, folder: Path, query: str) -> list[tuple]:
    connection = opened(content, folder)
    try:
        return connection.execute(query).fetchall()
    finally:
        connection.close()


def test_a_card_has_one_note_and_its_reverse_a_second_side(tmp_path: Path) -> None:
    content = write_cards_as_apkg(CARDS, "course", 1_800_000_000).file_content

    assert rows(content, tmp_path, "SELECT flds FROM notes ORDER BY sfld") == [
        ("GQA\x1fShared \\(K\\).",),
        ("KV <strong>cache</strong>\x1fIt grows.",),
    ]
    assert rows(content, tmp_path, "SELECT count(*) FROM cards") == [(3,)]


def test_a_later_package_has_the_same_notes_with_a_later_time(tmp_path: Path) -> None:
    query = "SELECT id, guid, mid, mod FROM notes ORDER BY id"
    first = rows(write_cards_as_apkg(CARDS, "c", 1_800_000_000).file_content, tmp_path, query)
    later = rows(write_cards_as_apkg(CARDS[::-1], "c", 1_800_000_060).file_content, tmp_path, query)

    assert [r[:3] for r in later] == [r[:3] for r in first]
    assert {r[3] for r in later} == {1_800_000_060}


def test_cards_stand_in_a_deck_of_their_topic(tmp_path: Path) -> None:
    content = write_cards_as_apkg(CARDS, "course", 1_800_000_000).file_content
    decks = json.loads(rows(content, tmp_path, "SELECT decks FROM col")[0][0])

    assert {d["name"] for d in decks.values()} == {"Default", "Headroom::course::cache"}
    (numbers,) = rows(content, tmp_path, "SELECT DISTINCT did FROM cards")
    assert str(numbers[0]) in decks


def test_questions_are_refused() -> None:
    written = write_cards_as_apkg((Item("q", "short", "Which?"),), "course", 1)

    assert str(written.refused_items[0]) == "q: an Anki package takes cards only"
