"""Packages of Anki made by hand: sound ones, and ones that no program would write."""

import dataclasses
import io
import json
import sqlite3
import tempfile
import zipfile
from pathlib import Path

from app.import_export.anki.package_format import COLLECTION_SCHEMA, PackageArchiveWriter

BASIC = ("{{Front}}", "{{FrontSide}}<hr id=answer>{{Back}}")
CLOZE = ("{{cloze:Text}}", "{{cloze:Text}}<br>{{Extra}}")


@dataclasses.dataclass
class Made:
    """A note with its cards by ordinal, and the rows of their log."""

    guid: str
    fields: tuple[str, ...]
    kind: int = 1
    cards: tuple[int, ...] = (0,)
    # (card, moment in ms, ease, type, ms taken)
    log: tuple[tuple[int, int, int, int, int], ...] = ()
    data: str = ""
    queue: int = 0


def types(**templates: tuple[str, str]) -> str:
    """SectionNote types: 1 is basic, 2 a cloze, 3 as given by `templates`."""
    own = tuple(templates.values()) or (BASIC,)
    rows = [
        (1, 0, ("Front", "Back"), (BASIC,)),
        (2, 1, ("Text", "Extra"), (CLOZE,)),
        (3, 0, ("Front", "Back"), own),
    ]
    return json.dumps(
        {
            str(number): {
                "id": number,
                "name": f"Type {number}",
                "type": kind,
                "flds": [{"name": n, "ord": i} for i, n in enumerate(names)],
                "tmpls": [
                    {"name": f"T{i}", "ord": i, "qfmt": q, "afmt": a}
                    for i, (q, a) in enumerate(faces)
                ],
            }
            for number, kind, names, faces in rows
        }
    )


def database(*notes: Made, models: str = "", script: str = "") -> bytes:
    """The bytes of a collection; `script` is SQL that is run at the end."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "c"
        db = sqlite3.connect(path)
        db.executescript(COLLECTION_SCHEMA)
        decks = json.dumps({"7": {"id": 7, "name": "Networks::RDMA"}})
        values = (1, 0, 0, 0, 11, 0, 0, 0, "{}", models or types(), decks, "{}", "{}")
        db.execute(f"INSERT INTO col VALUES ({','.join('?' * 13)})", values)  # noqa: S608
        number, taken = 0, set[int]()
        for place, note in enumerate(notes, 1):
            row = (place, note.guid, note.kind, "\x1f".join(note.fields))
            db.execute("INSERT INTO notes VALUES (?,?,?,0,-1,'',?,'',0,0,'')", row)
            for ordinal in note.cards:
                number += 1
                card = (number, place, ordinal, note.queue, place, note.data)
                db.execute(
                    "INSERT INTO cards VALUES (?,?,7,?,0,-1,2,?,?,0,0,0,0,0,0,0,0,?)",
                    card,
                )
                for side, at, ease, kind, took in note.log:
                    if side == ordinal:
                        while at in taken:  # a moment is a number and there once
                            at += 1  # noqa: PLW2901
                        taken.add(at)
                        entry = (at, number, ease, took, kind)
                        db.execute("INSERT INTO revlog VALUES (?,?,-1,?,1,1,0,?,?)", entry)
        db.commit()
        if script:
            db.executescript(script)
        db.close()
        return path.read_bytes()


def zipped(**files: bytes) -> bytes:
    """An archive of files; two underscores in a name stand for a dot."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name.replace("__", "."), content)
    return out.getvalue()


def written(database: bytes, media: dict[str, bytes], *, modern: bool) -> bytes:
    """A package of a collection and its media files by name, as we write them."""
    out = io.BytesIO()
    package = PackageArchiveWriter(out, newer_format=modern)
    for name, content in media.items():
        package.add_media(name, content)
    with tempfile.NamedTemporaryFile() as file:
        file.write(database)
        file.flush()
        package.write_collection_and_finish(Path(file.name))
    return out.getvalue()


def package(*notes: Made, models: str = "", script: str = "") -> bytes:
    """A package as Anki writes it for older versions."""
    content = database(*notes, models=models, script=script)
    return zipped(collection__anki21=content, media=b"{}")
