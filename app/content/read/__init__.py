"""One file of the course into values and problems; pure, and never raising."""

import dataclasses
import hashlib
import re
from collections.abc import Callable
from pathlib import PurePosixPath

from app.content.limits import MOST_LINES, LimitExceededError
from app.content.parsed import ParsedFile
from app.content.read.glossary import read_glossary
from app.content.read.lock import read_lock
from app.content.read.registers import (
    entries,
    read_exam,
    read_sources,
    read_syllabus,
)
from app.content.read.topics import read_topic_file
from app.content.rules.source_text import check_source
from app.content.source_file import SourceFile
from app.content.svg_cleaning import read_drawing
from app.content.terms import GlossaryNames, names_of

_NO_NAMES = names_of(())


def parse(text: str, path: str, names: GlossaryNames = _NO_NAMES) -> ParsedFile:
    """Read one file; `path` is relative to the content folder and says what it is.

    `names` are the glossary's, for the links of a page. Broken items are left out.
    """
    clean = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    valid = clean.replace("\0", "\ufffd").encode(errors="replace").decode()
    sheet = SourceFile(path, valid)
    try:
        parsed = _read(sheet, names)
    except Exception as error:  # noqa: BLE001 - no file may stop the server
        sheet.item = ""
        sheet.give_up(error, "This file")
        sheet.mentions.clear()
        sheet.edits.clear()
        sheet.unidentified.clear()
        parsed = ParsedFile(path)
    return _closed(sheet, parsed)


def _read(sheet: SourceFile, names: GlossaryNames) -> ParsedFile:
    where = PurePosixPath(sheet.path)
    if where.suffix == ".svg":
        return ParsedFile(sheet.path, drawing=read_drawing(sheet.text))
    if len(sheet.lines) > MOST_LINES:
        message = f"The file has {len(sheet.lines):,} lines; the limit is {MOST_LINES:,}."
        raise LimitExceededError(message, "Split it into several topics.", MOST_LINES)
    if where.parts[:1] == ("exams",):
        exam = read_exam(sheet, where.stem)
        return ParsedFile(sheet.path, exam=exam, entries=_counted(sheet))
    check_source(sheet)
    read = _READERS.get(sheet.path)
    return read(sheet) if read else read_topic_file(sheet, where, names)


_COUNT = re.compile(r"""^\s*["']?([\w.-]+)["']?\s*=""")


def _counted(sheet: SourceFile) -> tuple[tuple[str, int], ...]:
    """Where the domains of a mock exam stand: (number, line)."""
    lines = [text.strip() for text in sheet.lines]
    first = lines.index("[domains]") + 1 if "[domains]" in lines else len(lines)
    found = enumerate(map(_COUNT.match, lines[first:]), first + 1)
    return tuple((match[1], line) for line, match in found if match)


def _sources(sheet: SourceFile) -> ParsedFile:
    return ParsedFile(sheet.path, sources=read_sources(sheet), entries=entries(sheet))


_READERS: dict[str, Callable[[SourceFile], ParsedFile]] = {
    "syllabus.toml": lambda s: ParsedFile(s.path, syllabus=read_syllabus(s), entries=entries(s)),
    "sources.toml": _sources,
    "shared/sources.toml": _sources,
    "glossary.md": lambda s: ParsedFile(s.path, terms=read_glossary(s)),
    "shared/glossary.md": lambda s: ParsedFile(s.path, terms=read_glossary(s)),
    "ids.lock": lambda s: ParsedFile(s.path, lock=read_lock(s)),
}


def _closed(sheet: SourceFile, parsed: ParsedFile) -> ParsedFile:
    """The file with the notes that were taken while reading it."""
    text = hashlib.sha256(sheet.text.encode())
    return dataclasses.replace(
        parsed,
        digest=text.hexdigest()[:16],
        mentions=tuple(sheet.mentions),
        edits=tuple(sheet.edits),
        claims=tuple(dict.fromkeys(sheet.claims)),
        unidentified=tuple(sheet.unidentified),
        problems=tuple(sorted(set(sheet.problems))),
    )
