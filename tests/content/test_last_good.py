"""The last good version of a file goes on being served, also after a restart."""

import logging
import os
import shutil
from pathlib import Path

import pytest

from app.content.live.library import CourseState, Library, LiveLibrary, build
from app.content.parsed import ParsedFile
from app.content.read import parse

TINY = Path(__file__).parents[1] / "courses" / "tiny"
QUIZ = "topics/weights/quiz.md"
PATHS = [
    str(f.relative_to(TINY))
    for f in sorted(TINY.rglob("*"))
    if f.suffix and f.is_file()
]
BROKEN = {
    "half of it is missing": b"---\ntitle: Weights\nobjec",
    "it is empty": b"\n",
    "it is not text": b"\xff\xfe\x00",
    "it is larger than 2 MB": b"a" * 2_000_001,
    "an answer is wrong": b"---\nsource: herd\n---\n\n### Which?\n<!-- q: w-grow -->\n",
}


@pytest.fixture
def course(tmp_path: Path) -> Path:
    return Path(shutil.copytree(TINY, tmp_path / "course"))


@pytest.fixture
def data(tmp_path: Path) -> Path:
    (tmp_path / "data").mkdir()
    return tmp_path / "data"


def start(course: Path, data: Path) -> LiveLibrary:
    """The library of a server process that starts now."""
    return LiveLibrary(course, data / "cache", kept=data / "last-good")


def errors_of(library: Library) -> set[str]:
    return {p.path for p in library.problems if p.severity == "error"}


def copies(data: Path) -> dict[str, bytes]:
    files = [f for f in (data / "last-good").rglob("*") if f.is_file()]
    return {"/".join(f.parts[-3:]): f.read_bytes() for f in files}


@pytest.mark.parametrize("name", BROKEN)
def test_a_restart_on_a_broken_file_serves_what_was_last_good(
    name: str, course: Path, data: Path
) -> None:
    before = start(course, data).current()
    (course / QUIZ).write_bytes(BROKEN[name])

    for _ in range(2):  # what is broken is never kept in place of what was good
        after = start(course, data).current()

        assert after.questions == before.questions
        assert errors_of(after) == {QUIZ}
        assert after.outdated == (QUIZ,)


@pytest.mark.parametrize(
    "path", ["syllabus.toml", "sources.toml", "exams/short.toml", "glossary.md"]
)
def test_a_restart_on_a_broken_register_serves_what_was_last_good(
    path: str, course: Path, data: Path
) -> None:
    before = start(course, data).current()
    (course / path).write_bytes(b"= [[[\xff")

    after = start(course, data).current()

    assert (after.syllabus, after.sources) == (before.syllabus, before.sources)
    assert (after.exams, after.glossary) == (before.exams, before.glossary)
    assert after.topics == before.topics
    assert errors_of(after) == {path}


def test_a_file_that_broke_while_it_was_served_is_the_same_after_a_restart(
    course: Path, data: Path
) -> None:
    live = start(course, data)
    live.current()
    (course / QUIZ).write_bytes(b"---\nbroken")

    assert live.current().questions == start(course, data).current().questions


def test_a_mended_file_is_served_as_it_is(course: Path, data: Path) -> None:
    start(course, data).current()
    good = (course / QUIZ).read_text(encoding="utf-8")
    (course / QUIZ).write_bytes(b"\xff")
    live = start(course, data)
    live.current()

    (course / QUIZ).write_text(good.replace("dense 70B", "large"), encoding="utf-8")

    assert "large" in live.current().questions["w-bf16-70b"].stem.plain
    assert live.current().outdated == ()
    (course / QUIZ).write_bytes(b"\xff")
    after = start(course, data).current()
    assert "large" in after.questions["w-bf16-70b"].stem.plain


def test_without_a_good_version_what_is_sound_is_served(
    course: Path, data: Path
) -> None:
    text = (course / QUIZ).read_text(encoding="utf-8")
    broken = text.replace("- [x] About 140 GB", "- [ ] About 140 GB")
    (course / QUIZ).write_text(broken, encoding="utf-8")

    library = start(course, data).current()

    assert "w-bf16-70b" not in library.questions
    assert "w-grow" in library.questions
    assert QUIZ not in copies(data)


def test_a_deleted_file_is_deleted(course: Path, data: Path) -> None:
    live = start(course, data)
    live.current()
    assert QUIZ in copies(data)

    (course / QUIZ).unlink()

    assert "w-grow" not in live.current().questions
    assert "w-grow" not in start(course, data).current().questions
    assert QUIZ not in copies(data)


def test_a_course_whose_disk_is_missing_loses_no_copy(course: Path, data: Path) -> None:
    start(course, data).current()
    kept = copies(data)
    away = course.rename(course.with_name("away"))

    assert start(course, data).current().topics == {}

    assert copies(data) == kept
    away.rename(course)
    assert set(start(course, data).current().topics) == {"weights", "kv-cache"}


def test_courses_do_not_share_their_copies(
    course: Path, data: Path, tmp_path: Path
) -> None:
    start(course, data).current()
    other = Path(shutil.copytree(TINY, tmp_path / "other"))
    (other / "syllabus.toml").write_bytes(b"\xff")

    assert start(other, data).current().syllabus.exam == ""


def test_where_nothing_can_be_kept_the_course_is_served(
    course: Path, data: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (data / "last-good").write_text("a file, not a folder")
    live = start(course, data)

    assert set(live.current().topics) == {"weights", "kv-cache"}

    os.utime(course / QUIZ, (1, 1))
    live.current()
    refused = [r for r in caplog.records if "cannot be kept" in r.getMessage()]
    assert len(refused) == 1


def test_two_processes_keep_the_same_copies(course: Path, data: Path) -> None:
    one, other = start(course, data), start(course, data)
    one.current()
    other.current()
    text = (course / QUIZ).read_text(encoding="utf-8")

    (course / QUIZ).write_text(text.replace("dense 70B", "large"), encoding="utf-8")
    other.current()
    one.current()

    assert b"large" in copies(data)[QUIZ]
    assert one.current().version == other.current().version
    assert not [name for name in copies(data) if "/." in name]


def test_the_state_says_what_is_served(course: Path, data: Path) -> None:
    live = start(course, data)
    assert live.state == CourseState(loaded=True, outdated=(), errors=0)

    (course / QUIZ).write_bytes(b"\xff")
    assert live.state == CourseState(loaded=True, outdated=(QUIZ,), errors=1)

    shutil.rmtree(course)
    assert live.state == CourseState(loaded=False, outdated=(), errors=2)


def test_a_failed_reading_is_logged_once(
    course: Path, data: Path, caplog: pytest.LogCaptureFixture
) -> None:
    live = start(course, data)
    live.current()
    (course / QUIZ).write_bytes(b"\xff")

    live.current()
    os.utime(course / QUIZ, (1, 1))
    live.current()

    said = [r.getMessage() for r in caplog.records]
    why = "E00 The file cannot be read: it is not UTF-8 text."
    assert said == [f"content {QUIZ}:1: its last good version is served: {why}"]


# --- what no rule foresees ---


def test_a_file_at_which_the_reader_fails_is_named(
    caplog: pytest.LogCaptureFixture,
) -> None:
    text = (TINY / "topics/weights/concept.md").read_text(encoding="utf-8")

    reading = parse(text, "topics/weights/concept.md", None)  # type: ignore[arg-type]

    problem = reading.problems[-1]
    assert (problem.code, problem.severity) == ("E00", "error")
    assert problem.line >= 1
    assert problem.message == (
        "This file could not be read: Headroom failed at it (attribute error)."
    )
    assert reading.topic is None
    failures = [r for r in caplog.records if r.exc_info]
    assert len(failures) == 1


def hostile(path: str) -> ParsedFile:
    """A reading that no reader makes and at which the course cannot be built."""
    return ParsedFile(path, facts=(None,))  # type: ignore[arg-type]


def test_a_file_at_which_building_fails_is_left_out(course: Path) -> None:
    readings = {p: parse((TINY / p).read_text(encoding="utf-8"), p) for p in PATHS}

    library = build({**readings, QUIZ: hostile(QUIZ)}, course)

    assert set(library.topics) == {"weights", "kv-cache"}
    assert "w-grow" not in library.questions
    assert [p.path for p in library.problems if p.code == "E00"] == [QUIZ]


def test_a_file_at_which_building_fails_is_served_as_it_was(course: Path) -> None:
    readings = {p: parse((TINY / p).read_text(encoding="utf-8"), p) for p in PATHS}

    library = build({**readings, QUIZ: hostile(QUIZ)}, course, earlier=readings)

    assert "w-grow" in library.questions
    assert library.outdated == (QUIZ,)
    assert [p.path for p in library.problems if p.code == "E00"] == [QUIZ]


def test_a_course_with_two_such_files_is_served_as_it_was(course: Path) -> None:
    readings = {p: parse((TINY / p).read_text(encoding="utf-8"), p) for p in PATHS}
    both = {p: hostile(p) for p in (QUIZ, "topics/kv-cache/quiz.md")}

    library = build({**readings, **both}, course, earlier=readings)

    assert "w-grow" in library.questions
    assert set(library.outdated) == set(both)
    assert "E00" in {p.code for p in library.problems}


def test_a_course_that_cannot_be_built_at_all_is_empty(
    course: Path, caplog: pytest.LogCaptureFixture
) -> None:
    both = {p: hostile(p) for p in (QUIZ, "topics/kv-cache/quiz.md")}

    library = build(both, course)

    assert library.topics == {}
    assert "E00" in {p.code for p in library.problems}
    assert [r for r in caplog.records if r.levelno == logging.ERROR]


def test_a_folder_that_cannot_be_looked_at_is_a_problem(tmp_path: Path) -> None:
    live = LiveLibrary(Path(f"{tmp_path}/\0"), kept=tmp_path / "kept")

    library = live.current()

    assert library.topics == {}
    assert [p.code for p in library.problems] == ["E00"]
    assert live.current() is library


def test_reading_near_the_end_of_the_stack_is_a_problem() -> None:
    text = (TINY / QUIZ).read_text(encoding="utf-8")

    def read_at(depth: int) -> ParsedFile:
        return read_at(depth - 1) if depth else parse(text, QUIZ)

    reading = read_at(850)

    assert all(p.line >= 1 for p in reading.problems)
