"""Cards written as an Anki package: stable notes, so that an import updates them."""

import base64
import contextlib
import hashlib
import html
import io
import re
import sqlite3
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from app.exchange.formats.apkg.packing import PackageWriter
from app.exchange.formats.apkg.schema import BOTH_WAYS, ONE_WAY, TABLES, collection
from app.exchange.items import ExportResult, Item, ItemImage, ItemRemark, label
from app.exchange.markup.pictures import content_of
from app.exchange.markup.rendering import illustrated

_FIRST_NUMBER = 1_500_000_000_000  # numbers look like milliseconds, as Anki expects
_NUMBERS = 200_000_000_000


def write_apkg(items: tuple[Item, ...], title: str, moment: int) -> ExportResult:
    """A package of the cards among `items`; `moment` in seconds since 1970.

    The GUID of a note comes from the id of its card alone, and `moment` is when it was
    last changed: a later package updates the notes of an earlier one and leaves what
    was learned as it is.
    """
    cards = tuple(i for i in items if i.kind == "card")
    refused = tuple(
        ItemRemark(label(i), i.line, "an Anki package takes cards only")
        for i in items
        if i.kind != "card"
    )
    names = {i.topic: "::".join(p for p in ("Headroom", title, i.topic) if p) for i in cards}
    decks = {name: number_of(f"deck {name}", set()) for name in names.values()}
    folders = {i.topic: decks[names[i.topic]] for i in cards}
    media = {_file_of(picture): content_of(picture) for card in cards for picture in card.pictures}
    out = io.BytesIO()
    package = PackageWriter(out, modern=False)
    for name, content in media.items():
        package.add_media(name, content)
    with new_collection() as (db, path):
        add_row(db, "col", collection(decks, moment))
        _add(db, cards, folders, moment)
        db.commit()
        package.finish(path)
    return ExportResult(out.getvalue(), len(cards), refused)


@contextlib.contextmanager
def new_collection() -> Iterator[tuple[sqlite3.Connection, Path]]:
    """The tables of a collection in a temporary file, and where it lies."""
    with tempfile.TemporaryDirectory(prefix="headroom-") as folder:
        path = Path(folder) / "collection.anki2"
        with contextlib.closing(sqlite3.connect(path)) as connection:
            connection.executescript(TABLES)
            yield connection, path


def add_row(connection: sqlite3.Connection, table: str, values: Sequence[object]) -> None:
    """Write a row of a collection, with all of its columns."""
    marks = ",".join("?" * len(values))
    connection.execute(
        f"INSERT INTO {table} VALUES ({marks})",  # noqa: S608 - a table of ours
        values,
    )


def _add(
    connection: sqlite3.Connection,
    cards: tuple[Item, ...],
    decks: dict[str, int],
    moment: int,
) -> None:
    taken: set[int] = set()
    for place, card in enumerate(cards):
        note = number_of(card.name, taken)
        add_row(connection, "notes", (note, *_note(card, moment)))
        for side in range(1 + card.reverse):
            number = number_of(f"{card.name}~{side}", taken)
            values = (number, note, decks[card.topic], side, moment, -1, 0, 0, place)
            add_row(connection, "cards", (*values, *[0] * 8, ""))


def _note(card: Item, moment: int) -> tuple[object, ...]:
    tags = [*card.tags, *(f"objective::{o}" for o in card.objectives)]
    model = BOTH_WAYS if card.reverse else ONE_WAY
    faces = (_face(card, card.stem), _face(card, card.text))
    return guid(card.name), *note_columns(model, faces, tags, moment)


def _face(card: Item, text: str) -> str:
    """A side as HTML, whose pictures are files of the package."""
    face = illustrated(text)
    for picture in card.pictures:
        shown = f'src="{html.escape(picture.name)}"'
        face = face.replace(shown, f'src="{_file_of(picture)}"')
    return face


def _file_of(picture: ItemImage) -> str:
    """A name of a file that no other package has for another picture."""
    ending = picture.name.rpartition(".")[2].lower()
    digest = hashlib.sha256(content_of(picture)).hexdigest()[:32]
    return f"headroom-{digest}.{ending}"


def note_columns(
    model: int, faces: tuple[str, ...], tags: Iterable[str], moment: int
) -> tuple[object, ...]:
    """The columns of a note after its number and GUID; `faces` are HTML."""
    words = html.unescape(re.sub(r"<[^>]*>", "", faces[0]))
    checksum = int(hashlib.sha1(words.encode(), usedforsecurity=False).hexdigest()[:8], 16)
    joined = " ".join(re.sub(r"\s+", "-", t) for t in tags)
    written = f" {joined} " if joined else ""
    return model, moment, -1, written, "\x1f".join(faces), words, checksum, 0, ""


def guid(name: str) -> str:
    """The lasting name of a note, from the id of its card."""
    digest = hashlib.sha256(f"headroom card {name}".encode()).digest()
    return base64.urlsafe_b64encode(digest[:12]).decode()


def number_of(name: str, taken: set[int]) -> int:
    """A number for a row that is the same in every package."""
    digest = hashlib.sha256(name.encode()).digest()
    number = _FIRST_NUMBER + int.from_bytes(digest[:8]) % _NUMBERS
    while number in taken:
        number += 1
    taken.add(number)
    return number
