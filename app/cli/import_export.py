"""The commands `import` and `export`."""

import argparse
import dataclasses
import json
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from sqlalchemy import Engine
from sqlalchemy.exc import DBAPIError, SQLAlchemyError
from sqlmodel import Session

from app.content.courses import name_course
from app.database.engine import hide_passwords, make_engine, redact_url
from app.import_export.course_files import (
    add_items,
    describe_course,
    export_items,
    read_target_topic,
    write_files,
)
from app.import_export.export_store import COLUMNS, list_attempts
from app.import_export.formats.csv_json import write_table
from app.import_export.formats.registry import ATTEMPTS, CARDS, READERS, WANTED, WHOLE, WRITERS
from app.import_export.items import Item, ItemRemark, UnusableFileError, list_losses
from app.import_export.markdown_to_html import escape_braces
from app.import_export.xml_files import MOST_BYTES

_MAX_REMARKS_SHOWN = 4
_FIX_BY_HAND = "; put right by hand what matters"


def exchange_command(
    words: Sequence[str], content: Path, database: str, course: str | None = None
) -> int:
    """Run `import …` or `export …`. Returns 0, or 2 if it failed.

    `course` selects the course whose attempts are exported, None for all.
    """
    given = _build_parser(content).parse_args(words)
    folder: Path = given.content
    try:
        _expect_course(folder)
        if given.command == "import":
            report = import_file(given.format, given.file, folder, given.topic, dry=given.dry_run)
        elif given.format in ATTEMPTS:
            report = export_attempts(given.format, given.file, database, course)
        else:
            place = (folder, given.topic)
            report = export_file(given.format, given.file, place, given.seed)
    except UnusableFileError as error:
        print(f"headroom: {error}", file=sys.stderr)
        return 2
    print(report, file=sys.stderr if str(given.file) == "-" else sys.stdout)
    return 0


def _expect_course(folder: Path) -> None:
    if not folder.is_dir():
        raise UnusableFileError(f"{folder} is not a folder; name the course with --content.")


def _build_parser(content: Path) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="headroom")
    commands = parser.add_subparsers(dest="command", required=True)
    into = commands.add_parser("import", help="take questions in")
    into.add_argument("format", choices=sorted(READERS))
    into.add_argument("file", type=Path, metavar="FILE")
    into.add_argument("--topic", required=True, metavar="SLUG")
    into.add_argument("--dry-run", action="store_true", help="report only, and write nothing")
    out = commands.add_parser("export", help="write questions for others")
    out.add_argument("format", choices=sorted({*WRITERS, *ATTEMPTS}))
    out.add_argument("file", type=Path, metavar="FILE", help="- is the output")
    out.add_argument("--topic", default="", metavar="SLUG", help="one topic only")
    out.add_argument("--seed", type=int, default=0, help="draws the numbers of computed questions")
    for command in (into, out):
        command.add_argument("--content", type=Path, default=content, metavar="DIR")
        name_course(command)
    return parser


def import_file(form: str, path: Path, folder: Path, topic: str, *, dry: bool = False) -> str:
    """Import `path` into a topic of the course in `folder`; returns the report.

    With `dry`, nothing is written and the report says what would be. Raises
    UnusableFileError and writes nothing if the file or the topic cannot be used.
    """
    place = read_target_topic(folder, topic)
    content = _read_content(path)
    try:
        reading = READERS[form](content)
    except UnusableFileError as error:
        wanted = f"{WANTED[form]} is wanted."
        sentence = f"{path} cannot be used. {error} {wanted[0].upper()}{wanted[1:]}"
        raise UnusableFileError(sentence) from None
    if form not in WHOLE:  # our own format already has its placeholders filled
        items = tuple(map(escape_braces, reading.items))
        reading = dataclasses.replace(reading, items=items)
    taken = add_items(reading, place)
    if not dry:
        write_files(folder, topic, taken)
    written = (*taken.files, *taken.pictures)
    where = ", ".join(f"topics/{topic}/{name}" for name in written)
    head = f"{_format_count_noun(len(taken.carried), 'item')} {'would be ' * dry}carried"
    head += f" into {where}." if where else "; nothing was written."
    head = "\n".join((head, *reading.notes))
    return _import_report(head, taken.refused, taken.lost, _FIX_BY_HAND)


def export_file(form: str, path: Path, place: tuple[Path, str], seed: int) -> str:
    """Export a course or one of its topics to `path` (`-`: standard output); returns the report.

    `place` is the folder of the course and the slug of the topic, empty for all.
    """
    folder, topic = place
    reading = export_items(folder, topic, seed)
    wanted = tuple(i for i in reading.items if _is_supported(form, i))
    written = WRITERS[form](wanted, describe_course(folder))
    _write_output(path, written.content)
    refused = (*(reading.refused if form not in CARDS else ()), *written.refused)
    lost = (*(r for item in wanted for r in list_losses(item)), *written.lost)
    left = len(reading.items) - len(wanted)
    head = f"{_format_count_noun(written.carried, 'item')} written."
    if left and form not in CARDS:
        head += f" {_format_count_noun(left, 'card')} left out; apkg takes them."
    kept = sum(item.use == "exam" for item in wanted)
    if kept:
        head += f" {_format_count_noun(kept, 'item')} kept for mock exams among them, with answers."
    waiting = sum(_is_supported(form, item) for item in reading.waiting)
    if waiting:
        head += f" {_format_count_noun(waiting, 'item')} left out as not live (draft or review)."
    return _import_report(head, refused, lost)


def _is_supported(form: str, item: Item) -> bool:
    return form in WHOLE or (item.kind == "card") == (form in CARDS)


def export_attempts(form: str, path: Path, database: str, course: str | None) -> str:
    """Export all attempts of a database to `path` (`-`: standard output); returns the report."""
    engine = _open_engine(database)
    try:
        with Session(engine) as session:
            rows = list(list_attempts(session, course))
    except DBAPIError as error:
        raise UnusableFileError(
            f"the database {redact_url(database)} cannot be read "
            f"({hide_passwords(error.orig, database)})."
        ) from None
    finally:
        engine.dispose()
    if form == "attempts-csv":
        content = write_table(COLUMNS, rows)
    else:
        content = json.dumps(rows, ensure_ascii=False, indent=1).encode() + b"\n"
    _write_output(path, content)
    return f"{_format_count_noun(len(rows), 'attempt')} written."


def _open_engine(database: str) -> Engine:
    try:
        return make_engine(database)
    except (ModuleNotFoundError, SQLAlchemyError, ValueError) as error:
        said = hide_passwords(error, database)
        raise UnusableFileError(f"the database address cannot be used ({said}).") from None


def _read_content(path: Path) -> bytes:
    try:
        with path.open("rb") as stream:
            content = stream.read(MOST_BYTES + 1)
    except OSError as error:
        raise UnusableFileError(f"{path} cannot be read ({error.strerror}).") from None
    if len(content) > MOST_BYTES:
        raise UnusableFileError(f"{path} is larger than {MOST_BYTES // 1_000_000} MB.")
    return content


def _write_output(path: Path, content: bytes) -> None:
    if str(path) == "-":
        sys.stdout.buffer.write(content)
        return
    try:
        path.write_bytes(content)
    except OSError as error:
        raise UnusableFileError(f"{path} cannot be written ({error.strerror}).") from None


def _import_report(
    head: str, refused: Sequence[ItemRemark], lost: Sequence[ItemRemark], advice: str = ""
) -> str:
    lines = [head]
    if refused:
        lines += [f"{_format_count_noun(len(refused), 'item')} refused:", *_group_remarks(refused)]
    if lost:
        items = {(remark.name, remark.line) for remark in lost}
        lines.append(f"{_format_count_noun(len(items), 'item')} carried with a loss{advice}:")
        lines += _group_remarks(lost)
    return "\n".join(lines)


def _group_remarks(remarks: Sequence[ItemRemark]) -> list[str]:
    """Format the remarks, grouping those with the same reason if there are many.

    Every item is named, so that a loss can be found in what was written.
    """
    groups: dict[str, list[ItemRemark]] = {}
    for remark in remarks:
        groups.setdefault(remark.reason, []).append(remark)
    lines: list[str] = []
    for reason, group in groups.items():
        if len(group) <= _MAX_REMARKS_SHOWN:
            lines += [f"  {remark}" for remark in group]
        else:
            count = Counter(remark.name for remark in group)
            names = ", ".join(
                r.name if count[r.name] == 1 else f"{r.name} (line {r.line})" for r in group
            )
            lines.append(f"  {len(group)} items: {reason}: {names}")
    return lines


def _format_count_noun(number: int, word: str) -> str:
    return f"{number} {word}{'' if number == 1 else 's'}"
