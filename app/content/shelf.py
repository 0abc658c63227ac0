"""The files under a content folder: which there are, and what each one says."""

import dataclasses
import os
import time
from collections.abc import Mapping
from pathlib import Path

from app.content.cache import Cache
from app.content.parse import parse
from app.content.parsed import ParsedFile
from app.content.problems import problem
from app.content.terms import Names, anchors_of, names_of

_SINGLE = ("syllabus.toml", "sources.toml", "glossary.md", "ids.lock")
_TOPIC = ("concept.md", "quiz.md", "cards.md")
_FRESH = 0.1  # seconds in which a file may change again without a new time stamp
_MOST_BYTES = 2_000_000

Stamp = tuple[int, int, int]
NO_NAMES = names_of(())


def paths(folder: Path) -> list[str]:
    """The files of a course, relative to its folder, in reading order."""
    found = [name for name in _SINGLE if (folder / name).is_file()]
    found += sorted(f"exams/{f.name}" for f in folder.glob("exams/*.toml"))
    for topic in sorted(d for d in folder.glob("topics/*") if d.is_dir()):
        for name in _TOPIC:
            if (topic / name).is_file():
                found.append(f"topics/{topic.name}/{name}")
    return found


def _stamp(path: str) -> Stamp | None:
    try:
        state = os.stat(path)  # noqa: PTH116 - asked for every file at every request
    except OSError:
        return None
    return state.st_mtime_ns, state.st_size, state.st_ino


@dataclasses.dataclass(frozen=True, slots=True)
class Watch:
    """The time stamps of the files and folders of a course."""

    stamps: Mapping[str, Stamp | None]
    settled: bool

    def changed(self) -> bool:
        """Whether any file has changed, appeared or gone since."""
        if not self.settled:
            return True
        return any(_stamp(path) != stamp for path, stamp in self.stamps.items())


def watch(folder: Path, names: list[str]) -> Watch:
    """Take the stamps of files and of the folders in which new ones would appear."""
    places = [folder, folder / "exams", folder / "topics", *folder.glob("topics/*")]
    every = [str(p) for p in places] + [str(folder / name) for name in names]
    stamps = {path: _stamp(path) for path in every}
    newest = max((s[0] for s in stamps.values() if s), default=0)
    return Watch(stamps, time.time() - newest / 1e9 > _FRESH)


class Shelf:
    """Reads files, each once for each content; a broken one keeps its good reading."""

    def __init__(self, folder: Path, cache: Path | None) -> None:
        self.folder = folder
        self.cache = Cache(cache / "content") if cache else None
        self.readings: dict[str, tuple[tuple[bytes, str], ParsedFile]] = {}
        self.good: dict[str, ParsedFile] = {}

    def read(self) -> tuple[dict[str, ParsedFile], Watch]:
        """What every file says now, and the stamps it was read at."""
        found = paths(self.folder)
        stamps = watch(self.folder, found)
        names = self._names(found)
        shown = {path: self._shown(path, names) for path in found}
        for path in set(self.good) - set(found):
            del self.good[path]
            self.readings.pop(path, None)
        if self.cache:
            self.cache.prune()
        return shown, stamps

    def _names(self, found: list[str]) -> Names:
        if "glossary.md" not in found:
            return NO_NAMES
        return names_of(anchors_of(self._shown("glossary.md", NO_NAMES).terms))

    def _shown(self, path: str, names: Names) -> ParsedFile:
        """The newest reading, or the last good one with the problems of the newest."""
        now = self._reading(path, names)
        good = self.good.get(path)
        if good is None or _errors(now) <= _errors(good):
            self.good[path] = now
            return now
        return dataclasses.replace(good, problems=now.problems)

    def _reading(self, path: str, names: Names) -> ParsedFile:
        try:
            with (self.folder / path).open("rb") as stream:
                content = stream.read(_MOST_BYTES + 1)
            text = content.decode("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            return _unreadable(path, error)
        if len(content) > _MOST_BYTES:
            return _unreadable(path, ValueError("it is larger than 2 MB"))
        context = names.fingerprint if path.endswith("concept.md") else ""
        known = self.readings.get(path)
        if known and known[0] == (content, context):
            return known[1]
        reading = self._cached(path, content, text, names if context else NO_NAMES)
        self.readings[path] = ((content, context), reading)
        return reading

    def _cached(self, path: str, content: bytes, text: str, names: Names) -> ParsedFile:
        if self.cache is None:
            return parse(text, path, names)
        name = self.cache.name(path, content, names.fingerprint)
        reading = self.cache.get(name)
        if reading is None:
            reading = parse(text, path, names)
            self.cache.put(name, reading)
        return reading


def _unreadable(path: str, error: Exception) -> ParsedFile:
    if isinstance(error, UnicodeDecodeError):
        what, hint = "it is not UTF-8 text", "Save it with the encoding UTF-8."
    elif isinstance(error, OSError):
        what, hint = (error.strerror or str(error)).lower(), "See who may read it."
    else:
        what, hint = str(error), "Part it into several topics."
    message = f"The file cannot be read: {what}."
    return ParsedFile(path, problems=(problem((path, 1, 1), "E00", message, hint),))


def _errors(reading: ParsedFile) -> int:
    return sum(p.severity == "error" for p in reading.problems)
