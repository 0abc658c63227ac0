"""Terms and sources that the courses of one folder have in common."""

import dataclasses
from collections.abc import Mapping
from pathlib import Path

from app.content.parsed import ParsedFile

SHARED = "shared"
"""The folder beside the courses, and how its files are named in each of them."""
_FILES = ("sources.toml", "glossary.md")


def shared_files(folder: Path) -> list[str]:
    """The files beside the course under `folder` that it reads as well.

    A folder of that name that has a syllabus is a course like the others.
    """
    beside = folder.absolute().parent / SHARED
    try:
        if beside == folder.absolute() or (beside / "syllabus.toml").is_file():
            return []
        return [f"{SHARED}/{name}" for name in _FILES if (beside / name).is_file()]
    except OSError:
        return []


def file_of(folder: Path, path: str) -> Path:
    """Where a file of a course lies, or one that it shares."""
    beside, _, name = path.partition("/")
    if beside == SHARED and name in _FILES:
        return folder.absolute().parent / SHARED / name
    return folder / path


def drop_overridden(readings: Mapping[str, ParsedFile]) -> dict[str, ParsedFile]:
    """The readings, what is shared without what the course defines itself."""
    return {
        path: _less(reading, readings.get(path.removeprefix(f"{SHARED}/")))
        if path.startswith(f"{SHARED}/")
        else reading
        for path, reading in readings.items()
    }


def _less(reading: ParsedFile, own: ParsedFile | None) -> ParsedFile:
    if own is None:
        return reading
    terms, sources = {t.anchor for t in own.terms}, {s.key for s in own.sources}
    return dataclasses.replace(
        reading,
        terms=tuple(t for t in reading.terms if t.anchor not in terms),
        sources=tuple(s for s in reading.sources if s.key not in sources),
    )
