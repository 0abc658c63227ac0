"""Watches the files of a course for changes, and parses changed ones in parallel."""

import contextlib
import dataclasses
import gc
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from typing import NamedTuple

from app.content.file_reader import parse_file
from app.content.parse_cache import LastGoodFiles, ParseCacheFolder
from app.content.parsed_file import GlossaryNames, ParsedFile, TermAnchor, compile_glossary_names
from app.markup.model import SvgProblem
from app.markup.problems import MOST_BYTES, ContentProblem, ProblemLocation, make_problem
from app.markup.text import find_closest_word_or_empty


class ParseJob(NamedTuple):
    text: str
    path: str
    glossary_names: GlossaryNames


_MIN_FILES_PER_PROCESS = 60  # files from which starting processes pays off
_MOST_PROCESSES = 8


def parse_files(jobs: Sequence[ParseJob]) -> list[ParsedFile]:
    count = min(_count_processors(), _MOST_PROCESSES)
    # Forking with other threads running would copy their locks in locked state.
    can_fork = threading.active_count() == 1 and hasattr(os, "fork")
    if len(jobs) < _MIN_FILES_PER_PROCESS or count < 2 or not can_fork:
        return [parse_file(*job) for job in jobs]
    return _parse_in_parallel(jobs, count)


def _count_processors() -> int:
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not available on every system
        return os.cpu_count() or 1


def _parse_in_parallel(jobs: Sequence[ParseJob], process_count: int) -> list[ParsedFile]:
    """Distribute the jobs round-robin, so that long files spread evenly."""
    context = multiprocessing.get_context("fork")
    workers = []
    for offset in range(1, process_count):
        receiver, sender = context.Pipe(duplex=False)
        # A daemon process is terminated, not waited for, if reading fails here.
        worker = context.Process(
            target=_parse_and_send, args=(jobs[offset::process_count], sender), daemon=True
        )
        worker.start()
        sender.close()
        workers.append((offset, receiver, worker))
    parsed_files: list[ParsedFile | None] = [None] * len(jobs)
    parsed_files[::process_count] = [parse_file(*job) for job in jobs[::process_count]]
    for offset, receiver, worker in workers:
        try:
            parsed_files[offset::process_count] = receiver.recv()
        except EOFError:  # the worker was killed: parse its part here
            parsed_files[offset::process_count] = [
                parse_file(*job) for job in jobs[offset::process_count]
            ]
        worker.join()
    return [parsed_file for parsed_file in parsed_files if parsed_file is not None]


def _parse_and_send(
    jobs: Sequence[ParseJob], result_pipe: "Connection[list[ParsedFile], None]"
) -> None:
    """Parse the jobs and send the results. Exits if the parent process ends first.

    Writing to the pipe would not fail then, because the fork also holds its read end;
    the worker would hang forever.
    """
    for signal_number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(signal_number, signal.SIG_DFL)  # drop the server's signal handlers
    threading.Thread(target=_exit_when_parent_ends, daemon=True).start()
    result_pipe.send([parse_file(*job) for job in jobs])
    result_pipe.close()


def _exit_when_parent_ends() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


SHARED_FOLDER = "shared"
"""The folder next to the courses, and the path prefix of its files in each of them."""
_SHARED_FILES = ("sources.toml", "glossary.md")


def list_shared_files(course_folder: Path) -> list[str]:
    """Return the shared files next to the course `course_folder` that it also reads.

    A folder named “shared” with a syllabus is an ordinary course.
    """
    shared_folder = course_folder.absolute().parent / SHARED_FOLDER
    try:
        if shared_folder == course_folder.absolute() or (shared_folder / "syllabus.toml").is_file():
            return []
        return [
            f"{SHARED_FOLDER}/{name}" for name in _SHARED_FILES if (shared_folder / name).is_file()
        ]
    except OSError:
        return []


def locate_course_file(course_folder: Path, path: str) -> Path:
    top_folder, _, name = path.partition("/")
    if top_folder == SHARED_FOLDER and name in _SHARED_FILES:
        return course_folder.absolute().parent / SHARED_FOLDER / name
    return course_folder / path


def drop_overridden_shared_entries(parsed_files: Mapping[str, ParsedFile]) -> dict[str, ParsedFile]:
    """Remove entries from shared files that the course defines itself."""
    return {
        path: _remove_overridden_entries(
            parsed_file, parsed_files.get(path.removeprefix(f"{SHARED_FOLDER}/"))
        )
        if path.startswith(f"{SHARED_FOLDER}/")
        else parsed_file
        for path, parsed_file in parsed_files.items()
    }


def _remove_overridden_entries(
    shared_file: ParsedFile, course_file: ParsedFile | None
) -> ParsedFile:
    if course_file is None:
        return shared_file
    terms = {t.anchor for t in course_file.glossary_terms}
    sources = {s.key for s in course_file.cited_sources}
    return dataclasses.replace(
        shared_file,
        glossary_terms=tuple(t for t in shared_file.glossary_terms if t.anchor not in terms),
        cited_sources=tuple(s for s in shared_file.cited_sources if s.key not in sources),
    )


_SINGLE_FILES = ("syllabus.toml", "sources.toml", "glossary.md", "ids.lock")
_GLOSSARY_PATHS = ("glossary.md", f"{SHARED_FOLDER}/glossary.md")
TOPIC_FILES = ("concept.md", "quiz.md", "cards.md")
_TOO_LARGE = ("it is larger than 2 MB", "Split it into several topics.")
_EMPTY_FILE_PROBLEM = ("it is empty", "Write it, or delete it.")
_NEAR_NAME = 0.75  # similarity of “glossery.md” and “glossary.md”
_FRESH_SECONDS = 0.1  # seconds in which a file may change again without a new timestamp

NO_GLOSSARY_NAMES = compile_glossary_names(())


class FileStamp(NamedTuple):
    modified_ns: int
    size: int
    inode: int


def list_course_files(folder: Path) -> list[str]:
    names = [name for name in _SINGLE_FILES if file_exists(folder / name)]
    names += list_shared_files(folder)
    names += sorted(f"exams/{f.name}" for f in folder.glob("exams/*.toml"))
    for topic in sorted(folder.glob("topics/*")):
        names += [f"topics/{topic.name}/{n}" for n in TOPIC_FILES if file_exists(topic / n)]
        names += sorted(f.relative_to(folder).as_posix() for f in topic.rglob("*.svg"))
    return [path for path in names if _is_encodable(path)]


def file_exists(file: Path) -> bool:
    """Return whether a file exists; False for an invalid name."""
    try:
        return file.is_file()
    except OSError:
        return False


def _is_encodable(path: str) -> bool:
    try:
        path.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def list_undecodable_names(folder: Path) -> list[str]:
    """Return topic folders and exams whose names are not UTF-8, with replacement characters."""
    files = (*folder.glob("topics/*"), *folder.glob("exams/*.toml"))
    paths = (str(file.relative_to(folder)) for file in files)
    return sorted(
        os.fsencode(path).decode("utf-8", "replace") for path in paths if not _is_encodable(path)
    )


def list_ignored_files(folder: Path) -> list[str]:
    """Return files of topics and exams that are ignored because of their names."""
    paths = [f for f in folder.glob("topics/*/*.md") if f.name not in TOPIC_FILES]
    paths += folder.glob("topics/*/*.txt")
    paths += [f for f in folder.glob("exams/[!.]*") if f.suffix != ".toml"]
    return sorted(
        str(file.relative_to(folder))
        for file in paths
        if _is_encodable(str(file)) and file.name.lower() != "readme.md"
    )


def map_misnamed_files_to_right_names(folder: Path) -> dict[str, str]:
    """Return what is named nearly like a file or folder of a course, with that name."""
    known_names = {*_SINGLE_FILES, "topics", "exams"}
    names = {f.name for f in folder.glob("[!.]*")} - known_names
    names = {name for name in names if _is_encodable(name)}
    pairs = (
        (name, find_closest_word_or_empty(name.lower(), known_names, _NEAR_NAME))
        for name in sorted(names)
    )
    return {name: nearest_name for name, nearest_name in pairs if nearest_name}


def list_nested_topic_pages(folder: Path) -> list[str]:
    paths = (str(file.relative_to(folder)) for file in folder.glob("topics/*/**/concept.md"))
    return sorted(path for path in paths if path.count("/") > 2 and _is_encodable(path))


def list_empty_topic_folders(folder: Path) -> list[str]:
    return sorted(
        f"topics/{topic.name}"
        for topic in folder.glob("topics/*/")
        if _is_encodable(str(topic)) and next(topic.iterdir(), None) is None
    )


def _read_file_stamp(path: str) -> FileStamp | None:
    try:
        status = os.stat(path)  # noqa: PTH116 - faster than Path.stat, and called for every file
    except OSError:
        return None
    return FileStamp(status.st_mtime_ns, status.st_size, status.st_ino)


@dataclasses.dataclass(frozen=True, slots=True)
class FileStamps:
    stamp_by_path: Mapping[str, FileStamp | None]
    are_reliable: bool

    def is_reload_due(self) -> bool:
        """Return whether any file has changed, appeared or disappeared."""
        if not self.are_reliable:
            return True
        return any(_read_file_stamp(path) != stamp for path, stamp in self.stamp_by_path.items())


def read_file_and_folder_stamps(folder: Path, course_paths: list[str]) -> FileStamps:
    """Record the timestamps of the files, and of folders in which new files may appear."""
    folders = [folder, folder / "exams", folder / "topics", *folder.glob("topics/*")]
    folders += folder.glob("topics/*/**/")  # folders with pictures
    folders += [folder.absolute().parent / SHARED_FOLDER]
    files = [locate_course_file(folder, path) for path in course_paths]
    stamps = {path: _read_file_stamp(path) for path in map(str, [*folders, *files])}
    newest = max((s.modified_ns for s in stamps.values() if s), default=0)
    return FileStamps(stamps, time.time() - newest / 1e9 > _FRESH_SECONDS)


class CurrentFiles(NamedTuple):
    """The parsed files of a course, and their timestamps before they were read."""

    parsed_files: dict[str, ParsedFile]
    stamps: FileStamps


class FileToParse(NamedTuple):
    """The bytes of a file, and the glossary names that it links."""

    path: str
    content: bytes
    glossary_names: GlossaryNames


class MemoryCachedFile(NamedTuple):
    file: FileToParse
    parsed_file: ParsedFile


class CachingCourseFileParser:
    """Parses each file once per content. A broken file keeps its last good version."""

    def __init__(
        self, course_folder: Path, cache_folder: Path | None, last_good: LastGoodFiles | None = None
    ) -> None:
        self.folder = course_folder
        self.last_good_files = last_good
        self.cache = ParseCacheFolder(cache_folder) if cache_folder else None
        self.remembered: dict[str, MemoryCachedFile] = {}
        self.last_good: dict[str, ParsedFile] = {}

    def parse_current_files(self) -> CurrentFiles:
        paths = list_course_files(self.folder)
        stamps = read_file_and_folder_stamps(self.folder, paths)
        with pause_garbage_collection():
            names = self._parse_glossary_names(paths)
            parsed_files = self._parse_or_reuse(paths, names)
            served_files = {
                p: self._choose_served_version(p, r, names) for p, r in parsed_files.items()
            }
            visible_files = drop_overridden_shared_entries(served_files)
        for path in set(self.last_good) - set(paths):
            del self.last_good[path]
            self.remembered.pop(path, None)
        if self.cache:
            self.cache.prune_if_mostly_unused()
        return CurrentFiles(visible_files, stamps)

    def save_last_good_files(self, skipped_paths: Collection[str] = ()) -> None:
        """Save a copy of every file whose current version has no errors."""
        if self.last_good_files is None:
            return
        self.last_good_files.delete_copies_except(list_course_files(self.folder))
        for path, (file, parsed_file) in self.remembered.items():
            is_good = path not in skipped_paths and not _count_errors(parsed_file)
            if is_good and self.last_good.get(path) is parsed_file:
                self.last_good_files.write_copy(path, file.content)

    def _parse_glossary_names(self, paths: list[str]) -> GlossaryNames:
        current_files = self._parse_or_reuse(
            [p for p in paths if p in _GLOSSARY_PATHS], NO_GLOSSARY_NAMES
        )
        served_files = {
            p: self._choose_served_version(p, r, NO_GLOSSARY_NAMES)
            for p, r in current_files.items()
        }
        terms = [
            t
            for r in drop_overridden_shared_entries(served_files).values()
            for t in r.glossary_terms
        ]
        return compile_glossary_names([TermAnchor(t.name, t.anchor) for t in terms])

    def _choose_served_version(
        self, path: str, current: ParsedFile, names: GlossaryNames
    ) -> ParsedFile:
        """Return the current version, or the last good one with the current problems."""
        last_good = self.last_good.get(path)
        if last_good is None and _count_errors(current):
            last_good = self._parse_last_good_copy(path, names)
        if last_good is None or _count_errors(current) <= _count_errors(last_good):
            self.last_good[path] = current
            return current
        self.last_good[path] = last_good
        return dataclasses.replace(last_good, problems=current.problems, is_outdated=True)

    def _parse_last_good_copy(self, path: str, names: GlossaryNames) -> ParsedFile | None:
        """Parse the copy that an earlier run of the server saved; None if there is none."""
        content = self.last_good_files.read_copy(path) if self.last_good_files else None
        if content is None:
            return None
        return parse_file(
            content.decode("utf-8", "replace"), path, _select_linked_glossary_names(path, names)
        )

    def _parse_or_reuse(self, paths: list[str], names: GlossaryNames) -> dict[str, ParsedFile]:
        """Return the parsed files: known, cached or newly parsed."""
        parsed_files: dict[str, ParsedFile] = {}
        uncached_files: list[FileToParse] = []
        for path in paths:
            content = self._read_bytes_or_unreadable_file(path)
            if isinstance(content, ParsedFile):
                parsed_files[path] = content
                continue
            file = FileToParse(path, content, _select_linked_glossary_names(path, names))
            if (cached_file := self._find_cached(file)) is None:
                uncached_files.append(file)
            else:
                parsed_files[path] = cached_file
        jobs = [
            ParseJob(f.content.decode("utf-8"), f.path, f.glossary_names) for f in uncached_files
        ]
        for file, parsed_file in zip(uncached_files, parse_files(jobs), strict=True):
            self._cache_in_memory_and_folder(file, parsed_file)
            parsed_files[file.path] = parsed_file
        return {path: parsed_files[path] for path in paths}

    def _read_bytes_or_unreadable_file(self, path: str) -> bytes | ParsedFile:
        """Return the bytes of a file, or an empty result with the error."""
        try:
            with locate_course_file(self.folder, path).open("rb") as stream:
                content = stream.read(MOST_BYTES + 1)
            content.decode("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            return _build_unreadable_file(path, error)
        if len(content) > MOST_BYTES:
            return _build_unreadable_file(path, ValueError(*_TOO_LARGE))
        if not content.strip():  # truncated by an editor or a full disk, or never written
            return _build_unreadable_file(path, ValueError(*_EMPTY_FILE_PROBLEM))
        return content

    def _find_cached(self, file: FileToParse) -> ParsedFile | None:
        remembered = self.remembered.get(file.path)
        key = file.content, file.glossary_names.fingerprint
        if remembered and key == (
            remembered.file.content,
            remembered.file.glossary_names.fingerprint,
        ):
            return remembered.parsed_file
        if self.cache is None:
            return None
        parsed_file = self.cache.read_entry(self.cache.make_entry_file_name(*file))
        if parsed_file is not None:
            self.remembered[file.path] = MemoryCachedFile(file, parsed_file)
        return parsed_file

    def _cache_in_memory_and_folder(self, file: FileToParse, parsed_file: ParsedFile) -> None:
        self.remembered[file.path] = MemoryCachedFile(file, parsed_file)
        # Do not cache unexpected failures: they may succeed at the next start.
        if self.cache and not any(p.code == "E00" for p in parsed_file.problems):
            self.cache.write_entry(self.cache.make_entry_file_name(*file), parsed_file)


def _select_linked_glossary_names(path: str, glossary_names: GlossaryNames) -> GlossaryNames:
    """Return the glossary names to link in a file: only pages have links."""
    return glossary_names if path.endswith("concept.md") else NO_GLOSSARY_NAMES


@contextlib.contextmanager
def pause_garbage_collection() -> Iterator[None]:
    """Disable the garbage collector while creating permanent objects.

    It would scan them repeatedly, which takes a fifth of a cold start.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _build_unreadable_file(path: str, error: Exception) -> ParsedFile:
    if path.endswith(".svg"):  # it may still be shown as a picture
        return ParsedFile(path, drawing=SvgProblem(1, "it cannot be read as a short text"))
    location = ProblemLocation(path)
    if isinstance(error, UnicodeDecodeError):
        before = error.object[: error.start]
        column = len(before.rpartition(b"\n")[2].decode("utf-8")) + 1
        location = ProblemLocation(path, before.count(b"\n") + 1, column)
        reason, hint = "it is not UTF-8 text", "Save it with the encoding UTF-8."
    elif isinstance(error, OSError):
        reason, hint = (error.strerror or str(error)).lower(), "See who may read it."
    else:
        reason, hint = error.args
    message = f"The file cannot be read: {reason}."
    return ParsedFile(path, problems=(make_problem(location, "E00", message, hint),))


def _count_errors(parsed_file: ParsedFile) -> int:
    return sum(p.severity == "error" for p in parsed_file.problems)


def check_folder_layout(
    parsed_files: Mapping[str, ParsedFile], folder: Path
) -> Iterator[ContentProblem]:
    """Report E00: files and folders that are missing, empty, or read by nothing."""
    yield from _check_required_files(parsed_files)
    for path in list_ignored_files(folder):
        yield _build_ignored_file_problem(path)
    for name, intended_name in map_misnamed_files_to_right_names(folder).items():
        message = "Nothing reads a file or folder of this name."
        yield _build_layout_problem(name, message, f"Is it to be {intended_name}?")
    for path in list_nested_topic_pages(folder):
        message = "A topic inside of another folder is not read."
        yield _build_layout_problem(path, message, "Move its folder right below topics/.")
    for path in list_empty_topic_folders(folder):
        hint = "Write its concept.md, or delete the folder."
        yield _build_layout_problem(path, "The folder of this topic is empty.", hint)
    for path in list_undecodable_names(folder):
        hint = "Rename it in lower-case letters, digits and hyphens."
        yield _build_layout_problem(path, "This name is not UTF-8 text.", hint)


def _build_layout_problem(path: str, message: str, hint: str) -> ContentProblem:
    return make_problem(ProblemLocation(path), "E00", message, hint)


def _check_required_files(parsed_files: Mapping[str, ParsedFile]) -> list[ContentProblem]:
    return [
        _build_layout_problem(name, f"The course has no {name}.", hint)
        for name, hint in (
            ("syllabus.toml", "Name the exam, its domains and the order of topics."),
            ("sources.toml", "List what the pages rest on."),
        )
        if name not in parsed_files and f"{SHARED_FOLDER}/{name}" not in parsed_files
    ]


def _build_ignored_file_problem(path: str) -> ContentProblem:
    hint = "Name it concept.md, quiz.md or cards.md, or move it out of the topic."
    nearest_name = find_closest_word_or_empty(path.rpartition("/")[2].lower(), TOPIC_FILES)
    if nearest_name:
        hint = f"Is it to be {nearest_name}? {hint}"
    if path.startswith("exams/"):
        hint = "A mock exam is a file with .toml at its end."
    return _build_layout_problem(path, "Nothing reads a file of this name.", hint)
