"""Anki's newer packages, and what else of a note comes along and goes back."""

import gc
import html
import io
import json
import sqlite3
import zipfile

import pytest
from fastapi.testclient import TestClient
from sqlmodel import select

from app.database.tables import CardStateRow, OwnCard, OwnPicture, Review
from app.import_export.anki import package_format
from app.import_export.anki import package_format as packing
from app.import_export.anki import package_reader as opening
from app.import_export.anki.card_templates import convert_anki_formulas_to_tex
from app.import_export.anki.package_format import (
    build_stored_picture_name_or_empty,
    decode_protobuf_fields,
    parse_media_name_by_entry,
)
from tests.amounts import each_of_sample
from tests.import_export.package import Made, database, package, written, zipped
from tests.import_export.test_cards_in import (
    HISTORY,
    NOON,
    bring,
    everything,
    learners,
)
from tests.import_export.test_hostile_packages import refused

PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010806000000"
    "1f15c4890000000d49444154789c6360000002000001e221bc33"
    "0000000049454e44ae426082"
)
NOTE = Made("g1", ("F", "B"), log=HISTORY)
needs_zstd = pytest.mark.skipif(
    packing.import_zstd_or_none() is None, reason="this environment was made without zstd"
)
PATHS = ["cards.apkg", "cards.apkg?newest=yes", "cards.colpkg"]
pytestmark = pytest.mark.filterwarnings("error")


def modern(*notes: Made, media: dict[str, bytes] | None = None, script: str = ""):
    return written(database(*notes, script=script), media or {}, modern=True)


@needs_zstd
def test_a_package_of_the_newest_format_brings_cards_grades_and_pictures(rosa, session) -> None:
    note = Made("g1", ('<img src="a b.png">', "B"), log=HISTORY)

    said = bring(rosa, modern(note, media={"other.mp3": b"x", "a b.png": PNG}))

    assert "1 new card, 0 cards changed, 4 grades carried" in said
    own = session.exec(select(OwnCard)).one()
    address = f"/flashcards/pictures/{build_stored_picture_name_or_empty(PNG)}"
    assert own.front == f'<img src="{address}" alt="Picture">'
    shown = rosa.get(address)
    assert (shown.content, shown.headers["content-type"]) == (PNG, "image/png")
    assert address in rosa.get(f"/flashcards?card={own.card}").text


@needs_zstd
@each_of_sample("path", PATHS, 1)
def test_what_goes_out_comes_back_the_same(rosa, milo, session, path: str) -> None:
    own = Made("g'1", ("{{c1::Ada}} {{c2::wrote}} <img src=x>", ""), kind=2, cards=(0, 1))
    bring(rosa, modern(own, NOTE, media={"x": PNG}))
    (one,) = learners(session)
    before = everything(session, one)
    taken = rosa.get(f"/settings/{path}").content

    again = bring(rosa, taken)
    bring(milo, taken)

    assert "0 new cards, 0 cards changed, 0 grades carried" in again
    assert everything(session, one) == before
    pictures = session.exec(select(OwnPicture)).all()
    assert len({(p.learner_id, p.content) for p in pictures}) == 2
    cards = session.exec(select(OwnCard).where(OwnCard.learner_id != one)).all()
    words = ("card", "front", "back", "guid", "ordinal", "tags")
    assert sorted(tuple(getattr(c, w) for w in words) for c in cards) == sorted(
        tuple(row[w] for w in words) for row in before["own_card"]
    )


def test_cards_of_one_note_go_back_as_that_note(rosa) -> None:
    two = Made("g1", ("{{c1::a}} {{c3::b}}", ""), kind=2, cards=(0, 2))
    bring(rosa, package(two, Made("g2", ("F", "B"))))

    with collection_of(rosa) as db:
        notes = dict(db.execute("SELECT guid, flds FROM notes"))
        cards = db.execute("SELECT ord FROM cards ORDER BY ord").fetchall()

    assert set(notes) == {"g1", "g2"}
    assert notes["g1"].split("\x1f")[2:4] == ["", ""]
    assert [row[0] for row in cards] == [0, 0, 2]


def collection_of(client: TestClient) -> sqlite3.Connection:
    content = client.get("/settings/cards.apkg").content
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        data = archive.read("collection.anki2")
    db = sqlite3.connect(":memory:")
    db.deserialize(data)
    return db


def by_hand(days: int, factor: int, columns: str) -> str:
    """What Anki writes where something is set by hand, for days since 1970."""
    row = f"{NOON - 5000}, 1, -1, 0, {days}, 8, {factor}, 0, 4"
    return (
        f"INSERT INTO revlog VALUES ({row}); UPDATE col SET crt = 0;"  # noqa: S608
        f"UPDATE cards SET {columns}"
    )


def test_a_card_that_was_reset_is_new_and_its_log_comes(rosa, session) -> None:
    script = by_hand(0, 0, "type = 0, queue = 0")

    bring(rosa, package(NOTE, script=script))

    row = session.exec(select(CardStateRow)).one()
    assert (row.state, row.stability) == ("new", None)
    acts = [r.act for r in session.exec(select(Review).order_by(Review.at))]
    assert acts == ["", "", "", "", "forget"]
    with collection_of(rosa) as db:
        (kind,) = db.execute("SELECT type FROM cards").fetchone()
        last = db.execute("SELECT ease, factor, type FROM revlog ORDER BY id").fetchall()
    assert kind == 0
    assert last[-1] == (0, 0, 4)


def test_a_new_card_with_grades_was_reset_whatever_its_log_says(rosa, session) -> None:
    bring(rosa, package(NOTE, script="UPDATE cards SET type = 0, queue = 0"))

    assert session.exec(select(CardStateRow)).one().state == "new"


def test_a_due_date_is_kept_and_goes_back(rosa, session) -> None:
    day = NOON // 86_400_000  # days since 1970, and so does the collection count
    script = by_hand(40, 100, f"type = 2, queue = 2, due = {day + 40}")

    bring(rosa, package(NOTE, script=script))

    row = session.exec(select(CardStateRow)).one()
    assert row.due_day == row.set_day == "2026-07-19"
    assert row.reviews == 4
    (one,) = learners(session)
    before = everything(session, one)
    bring(rosa, rosa.get("/settings/cards.apkg").content)
    assert everything(session, one) == before


def test_what_is_set_here_is_set_in_the_package(rosa, session) -> None:
    bring(rosa, package(NOTE))
    card = session.exec(select(CardStateRow)).one().card
    body = {"act": "due", "day": "2026-06-30", "token": "t"}
    assert rosa.post(f"/flashcards/{card}/acts", data=body).status_code == 303

    with collection_of(rosa) as db:
        born, due = db.execute("SELECT c.crt, due FROM col c, cards").fetchone()
        ease, days, kind = db.execute(
            "SELECT ease, ivl, type FROM revlog ORDER BY id DESC"
        ).fetchone()

    assert born // 86_400 + due == 20_634  # 30 June 2026
    assert (ease, days, kind) == (0, 21, 4)


def test_an_occlusion_is_left_out_with_its_reason(rosa, session) -> None:
    masked = "{{c1::image-occlusion:rect:left=.1:top=.1:width=.2:height=.2}}"

    said = bring(rosa, package(Made("g1", (masked, "<img src=a.png>"), kind=2)))

    assert session.exec(select(OwnCard)).all() == []
    assert "1 image occlusion, which only Anki can draw over its picture" in said


def test_tags_and_formulas_come_along(rosa, session) -> None:
    front = "<anki-mathjax>x^2</anki-mathjax> [$$]a &lt; b[/$$] <math><mi>z</mi></math>"
    script = "UPDATE notes SET tags = ' net rdma::x '"

    bring(rosa, package(Made("g1", (front, "B")), script=script))

    own = session.exec(select(OwnCard)).one()
    assert own.tags == "net rdma::x"
    assert own.front == r"\(x^2\) \[a &lt; b\] <math><mi>z</mi></math>"
    page = rosa.get(f"/flashcards?card={own.card}").text
    assert "<msup>" in page
    assert "<mi>z</mi>" in page
    assert 'id="found"' in rosa.get("/flashcards/deck?q=rdma::x").text
    with collection_of(rosa) as db:
        (tags,) = db.execute("SELECT tags FROM notes").fetchone()
    assert tags.split() == ["net", "rdma::x"]


def test_formulas_are_written_in_one_way(subtests: pytest.Subtests) -> None:
    for anki, ours in [
        ("[$]a[/$]", r"\(a\)"),
        ("[latex]$a$ and $$b$$[/latex]", r"\(a\) and \[b\]"),
        ("[$]a", "[$]a"),
        ("<anki-mathjax block=true>a<br>b</anki-mathjax>", r"\[a b\]"),
        (r"\(E = <strong>m</strong> c\)", r"\(E = m c\)"),
        (r"[latex]\begin{equation} a^2 \end{equation}[/latex]", r"\[a^2\]"),
        (r"[latex]\begin{align*}a\end{align*}[/latex]", r"\[\begin{aligned}a\end{aligned}\]"),
        (r"\(" * 20_000, r"\(" * 20_000),
        ("[$]" * 20_000, "[$]" * 20_000),
    ]:
        with subtests.test(anki=anki, ours=ours):
            assert convert_anki_formulas_to_tex(anki) == ours


def test_only_pictures_are_kept_as_pictures(rosa, session) -> None:
    svg = b'<svg xmlns="http://www.w3.org/2000/svg" onload="alert(1)"/>'
    front = 'A <img src="a.svg"><img src="/settings"><img src="b.png" onerror="x()">'
    files = {"collection__anki21": database(Made("g1", (front, "B")))}
    listed = json.dumps({"0": "a.svg", "1": "b.png"}).encode()

    bring(rosa, zipped(**files, media=listed, **{"0": svg, "1": PNG}))

    own = session.exec(select(OwnCard)).one()
    assert own.front.count("<img") == 1
    assert "onerror" not in own.front
    assert len(session.exec(select(OwnPicture)).all()) == 1


def test_pictures_are_seen_by_their_learner_alone(rosa, milo) -> None:
    files = {"collection__anki21": database(Made("g1", ("<img src=b>", "B")))}
    bring(rosa, zipped(**files, media=b'{"0": "b"}', **{"0": PNG}))
    address = f"/flashcards/pictures/{build_stored_picture_name_or_empty(PNG)}"

    assert rosa.get(address).status_code == 200
    assert milo.get(address).status_code == 404
    assert rosa.get(f"{address}x").status_code == 404


def test_pictures_go_with_the_last_card_that_shows_them(rosa, session) -> None:
    files = {"collection__anki21": database(Made("g1", ("<img src=b>", "B")))}
    bring(rosa, zipped(**files, media=b'{"0": "b"}', **{"0": PNG}))

    sent = {"what": "deck", "deck": "Networks::RDMA"}
    assert rosa.post("/settings/cards/removal", data=sent).status_code == 303

    session.rollback()
    assert session.exec(select(OwnPicture)).all() == []


class TestHostile:
    @needs_zstd
    def test_a_frame_that_grows_without_measure_is_refused(self, rosa) -> None:
        packed = packing.import_zstd_or_none().compress(b"\0" * 65_000_000)

        assert "larger than 64 MB" in refused(rosa, zipped(collection__anki21b=packed))

    @needs_zstd
    def test_pictures_that_grow_without_measure_are_not_all_unpacked(self, monkeypatch) -> None:
        unpacked = []
        reading = package_format.open_zstd_stream
        monkeypatch.setattr(opening, "open_zstd_stream", lambda s: unpacked.append(s) or reading(s))
        names = [f"p{number}" for number in range(150)]
        large = b"\0" * (opening.MAX_FILE_BYTES + 1)
        content = written(database(NOTE), dict.fromkeys(names, large), modern=True)

        assert opening.read_media_by_name(io.BytesIO(content), set(names)) == {}
        assert len(unpacked) < 110

    def test_no_more_media_are_listed_than_an_archive_may_hold(self) -> None:
        entry = b"\x0a\x03\x0a\x01a"  # the name “a”

        assert len(parse_media_name_by_entry(entry * 300_000, newer_format=True)) == 5_000

    @needs_zstd
    @pytest.mark.parametrize("cut", [4, 40, -1])
    def test_a_frame_that_is_cut_off_is_refused(self, rosa, cut: int) -> None:
        packed = packing.import_zstd_or_none().compress(database(NOTE))[:cut]

        refused(rosa, zipped(collection__anki21b=packed))

    @needs_zstd
    def test_bytes_that_are_no_frame_are_refused(self, rosa) -> None:
        said = refused(rosa, zipped(collection__anki21b=b"no frame at all"))

        assert "The collection in the package is damaged." in said

    @needs_zstd
    def test_a_damaged_list_of_media_loses_the_pictures_alone(self, rosa, session) -> None:
        pack = packing.import_zstd_or_none().compress
        note = Made("g1", ("A <img src=a>", "B"))
        for media in (b"no frame", pack(b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\x7f")):
            bring(rosa, zipped(collection__anki21b=pack(database(note)), media=media))

        assert session.exec(select(OwnCard)).one().front == "A"

    @pytest.mark.parametrize("listed", [b"", b"[]", b"[" * 9000, b'{"0": {}}', b"\xff"])
    def test_a_list_of_media_may_be_anything(self, listed: bytes) -> None:
        gc.collect()  # What earlier tests left can't be finalized thousands of calls deep.
        assert isinstance(parse_media_name_by_entry(listed, newer_format=False), dict)
        assert isinstance(parse_media_name_by_entry(listed, newer_format=True), dict)

    def test_a_message_never_reads_past_its_end(self) -> None:
        assert list(decode_protobuf_fields(b"\x0a\x05ab")) == [(1, b"ab")]
        assert list(decode_protobuf_fields(b"\xff" * 30)) == []


@needs_zstd
def test_the_list_of_media_names_each_file() -> None:
    media = {"a.png": PNG, "ü" * 60: b"x" * 300}
    content = written(b"data", media, modern=True)

    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        listed = packing.import_zstd_or_none().decompress(archive.read("media"))
        assert archive.read("meta") == b"\x08\x03"
    assert list(parse_media_name_by_entry(listed, newer_format=True).values()) == list(media)


def test_without_zstd_the_newest_format_is_not_offered(rosa, monkeypatch) -> None:
    for room in ("app.import_export.anki_card_pages", "app.import_export.anki.package_reader"):
        monkeypatch.setattr(f"{room}.import_zstd_or_none", lambda: None)

    page = html.unescape(rosa.get("/settings/cards").text)

    assert "Support older Anki versions" in page
    assert 'colpkg" download' not in page
    assert rosa.get("/settings/cards.colpkg").status_code == 404
