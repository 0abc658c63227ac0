"""Packages that were built to do harm, or that are none: refused with a sentence."""

import io
import sqlite3
import zipfile

import pytest
from fastapi.testclient import TestClient
from sqlmodel import Session, select

from app.database.tables import CardStateRow, Learner, OwnCard, Review
from app.import_export.anki import package_reader as opening
from app.import_export.anki.package_reader import open_package_database
from app.import_export.anki.package_writer import make_note_guid
from app.settings import Settings
from tests.amounts import each_of_sample
from tests.import_export.package import Made, database, package, types, zipped
from tests.import_export.test_cards_in import HISTORY, bring, words

NOTE = Made("g1", ("F", "B"), log=HISTORY)


@pytest.fixture
def settings(settings: Settings) -> Settings:
    """Without the limit of one browser, which sends ten damaged files in a row."""
    return settings.model_copy(update={"rate_imports_browser": "off"})


def refused(client: TestClient, content: bytes, name: str = "deck.apkg") -> str:
    """The sentence that refuses a file, which is named in it."""
    answer = client.post("/settings/cards", files={"file": (name, content)})
    assert answer.status_code == 422
    said = words(answer.text)
    assert f"“{name}” cannot be used." in said
    assert "An .apkg or .colpkg file of Anki with at most 20 MB is needed." in said
    return said


def view(name: str, query: str) -> str:
    return f"DROP TABLE {name}; CREATE VIEW {name} AS {query};"


def test_what_is_no_archive_is_refused(rosa) -> None:
    assert "It is no .apkg or .colpkg of Anki" in refused(rosa, b"plain text", "a.txt")


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        (b"", "the file is empty"),
        (b"SQLite format 3", "the file is not a zip archive"),
        (b"PK\x03\x04", "the archive is damaged or cut off"),
        (b"PK\x05\x06 no end", "the archive is damaged or cut off"),
        (package(NOTE)[:-30], "the archive is damaged or cut off"),
    ],
)
def test_what_is_wrong_with_an_archive_is_said_in_our_words(
    rosa, content: bytes, fault: str
) -> None:
    said = refused(rosa, content)

    assert f"It is no .apkg or .colpkg of Anki: {fault}." in said
    assert "zip file" not in said


@each_of_sample("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2], 1)
def test_flipped_bytes_never_break_the_page(rosa, method: int) -> None:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as archive:
        archive.writestr("collection.anki21", database(NOTE))
    for at in range(40, len(out.getvalue()), len(out.getvalue()) // 9):
        content = bytearray(out.getvalue())
        content[at] ^= 0x5A

        answer = rosa.post("/settings/cards", files={"file": ("d.apkg", bytes(content))})

        assert answer.status_code in {303, 422}, at


def test_an_archive_without_a_collection_is_refused(rosa) -> None:
    said = refused(rosa, zipped(readme__txt=b"hello"))

    assert "It holds no collection of Anki" in said


def test_without_zstd_a_package_of_the_newest_format_says_how_to_export_it(
    rosa, monkeypatch
) -> None:
    monkeypatch.setattr(opening, "import_zstd_or_none", lambda: None)
    content = zipped(collection__anki21b=b"(\xb5/\xfd", collection__anki2=database())

    assert "“Support older Anki versions”" in refused(rosa, content)


def test_an_archive_that_leaves_its_folder_is_refused(rosa) -> None:
    out = io.BytesIO(package(NOTE))
    with zipfile.ZipFile(out, "a") as archive:
        archive.writestr("../../etc/cron.d/x", b"x")

    assert "names a file outside of it" in refused(rosa, out.getvalue())


def test_an_archive_that_grows_without_measure_is_refused(rosa) -> None:
    content = zipped(collection__anki21=b"\0" * 40_000_000)

    assert "unpack to far more than its size" in refused(rosa, content)


def test_an_archive_that_is_cut_off_is_refused(rosa) -> None:
    whole = package(NOTE)

    refused(rosa, whole[: len(whole) // 2])


def test_a_collection_that_is_no_database_is_refused(rosa) -> None:
    said = refused(rosa, zipped(collection__anki21=b"SQLite format 4\0" * 100))

    assert "is no SQLite database" in said


@each_of_sample("at", [16, 30, 100, 200, 1030, 5000], 2)
def test_a_damaged_database_is_refused_or_read_but_never_breaks(rosa, at) -> None:
    content = bytearray(database(NOTE))
    content[at : at + 60] = b"\xff" * 60

    answer = rosa.post(
        "/settings/cards",
        files={"file": ("d.apkg", zipped(collection__anki21=bytes(content)))},
    )

    assert answer.status_code in {303, 422}


@pytest.mark.parametrize(
    "script",
    [
        view("notes", "SELECT 1 id, 'g' guid, 1 mid, 'F' || char(31) || 'B' flds"),
        view("revlog", "SELECT 1 id, 1 cid, 3 ease, 1 time, 1 type"),
        "DROP TABLE notes; CREATE VIRTUAL TABLE notes USING fts5(guid, mid, flds);",
        "DROP TABLE cards;",
    ],
)
def test_what_is_no_ordinary_table_is_refused(rosa, script) -> None:
    assert "has no ordinary table" in refused(rosa, package(NOTE, script=script))


def test_a_column_that_computes_is_refused(rosa) -> None:
    script = """ALTER TABLE notes RENAME TO old; CREATE TABLE notes (id integer primary
        key, guid text, mid integer, flds text as (zeroblob(1000000000)));
        INSERT INTO notes (id, guid, mid) SELECT id, guid, mid FROM old;"""

    assert "is damaged" in refused(rosa, package(NOTE, script=script))


def test_a_missing_column_is_refused(rosa) -> None:
    script = "ALTER TABLE notes DROP COLUMN flds;"

    assert "is damaged" in refused(rosa, package(NOTE, script=script))


def test_triggers_of_a_stranger_never_run(rosa, session: Session) -> None:
    script = "CREATE TRIGGER t AFTER INSERT ON notes BEGIN DELETE FROM notes; END;"

    bring(rosa, package(NOTE, script=script))

    assert session.exec(select(OwnCard)).one().front == "F"


def test_a_package_without_notes_is_refused(rosa) -> None:
    assert "It holds no notes." in refused(rosa, package())


def test_more_notes_than_can_be_taken_in_are_refused(rosa) -> None:
    script = """WITH RECURSIVE n(i) AS (SELECT 2 UNION ALL SELECT i + 1 FROM n
        WHERE i <= 20000) INSERT INTO notes
        SELECT i, 'g' || i, 1, 0, -1, '', 'F', '', 0, 0, '' FROM n;"""

    said = refused(rosa, package(NOTE, script=script))

    assert "It holds more than 20,000 notes" in said


def test_a_value_that_is_larger_than_a_note_can_be_is_refused(rosa) -> None:
    # Random enough that the archive around it is not refused first.
    script = "UPDATE notes SET flds = hex(randomblob(5000000));"

    assert "is damaged" in refused(rosa, package(NOTE, script=script))


@each_of_sample(
    "script",
    [
        "UPDATE col SET models = '[' || replace(hex(zeroblob(50000)), '0', '[');",
        'UPDATE col SET models = \'{"1": {"flds": 7, "tmpls": [3, null]}}\';',
        "UPDATE col SET models = x'00ff', decks = 7;",
        "UPDATE notes SET mid = 'x', flds = x'ff1ffe';",
        "UPDATE cards SET ord = -4, did = 99;",
        "UPDATE cards SET ord = 9223372036854775807, due = 'soon';",
        'UPDATE cards SET data = \'{"cd": 7, "dr": "x"}\';',
        'UPDATE cards SET data = \'{"cd": "{\\"since\\": 1e400}", "dr": 1e400}\';',
        "UPDATE revlog SET id = -id;",
        "UPDATE revlog SET time = -5, ease = 'good';",
        "UPDATE notes SET guid = '';",
    ],
    3,
)
def test_odd_values_are_left_out_without_a_fault(rosa, script) -> None:
    bring(rosa, package(NOTE, script=script))


def test_half_a_character_in_a_template_does_no_harm(rosa, session) -> None:
    models = types(one=("\ud83d {{Front}}", "{{Back}}"))

    bring(rosa, package(Made("g", ("F", "B"), kind=3), models=models))

    assert session.exec(select(OwnCard)).one().front == "? F"


def test_two_notes_with_one_name_are_one_card(rosa, session) -> None:
    said = bring(rosa, package(NOTE, Made("g1", ("Other", "B"))))

    assert session.exec(select(OwnCard)).one().front == "F"
    assert "1 in the file twice" in said


def test_a_name_of_ours_that_the_course_lacks_a_side_of_is_left_out(rosa) -> None:
    note = Made(make_note_guid("w-c-bf16"), ("F", "B"), cards=(0, 1, 5))

    assert "2 a side that the course does not have" in bring(rosa, package(note))


def test_sending_no_file_is_refused_with_what_is_wanted(rosa) -> None:
    for files in ({}, {"file": ("", b"")}):
        answer = rosa.post("/settings/cards", files=files, data={"x": "y"})

        assert answer.status_code == 422
        assert "Choose a file first." in words(answer.text)


def test_a_file_that_is_too_large_is_refused_before_it_is_read(rosa) -> None:
    answer = rosa.post("/settings/cards", files={"file": ("d.apkg", b"x" * 22 * 1024 * 1024)})

    assert answer.status_code == 413
    assert "At most 21 MB can be sent at once. Go back and send less." in words(answer.text)


def test_other_addresses_take_no_more_than_before(rosa) -> None:
    answer = rosa.post("/settings", content=b"x" * 300_000)

    assert answer.status_code == 413


def test_a_refused_file_leaves_nothing_behind(rosa, session) -> None:
    refused(rosa, b"nothing")

    for table in (OwnCard, Review, CardStateRow):
        assert session.exec(select(table)).all() == []
    assert len(session.exec(select(Learner)).all()) <= 1


def test_the_collection_is_opened_for_reading_alone(tmp_path) -> None:
    with open_package_database(io.BytesIO(package(NOTE)), tmp_path) as db:
        for statement in (
            "DELETE FROM notes",
            "ATTACH 'x' AS y",
            "SELECT load_extension('x')",
            "SELECT * FROM pragma_database_list",
            "PRAGMA writable_schema=ON",
            "CREATE TEMP TABLE t (a)",
        ):
            with pytest.raises(sqlite3.Error):
                db.execute(statement)
