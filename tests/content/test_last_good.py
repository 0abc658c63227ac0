"""The last good version of a file goes on being served, also after a restart."""

import fcntl
import logging
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from app.content.course import Course, assemble_course
from app.content.file_reader import parse_file
from app.content.live_courses import CourseStatus, LiveCourse
from app.content.parse_cache import LastGoodFiles
from app.content.parsed_file import ParsedFile
from tests.amounts import each_of_sample

TINY = Path(__file__).parents[1] / "courses" / "tiny"
QUIZ = "topics/weights/quiz.md"
PAGE = "topics/weights/concept.md"
SYLLABUS = "syllabus.toml"
PATHS = [str(f.relative_to(TINY)) for f in sorted(TINY.rglob("*")) if f.suffix and f.is_file()]
BROKEN = {
    "half of it is missing": b"---\ntitle: Weights\nobjec",
    "it is empty": b"\n",
    "it is not text": b"\xff\xfe\x00",
    "it is larger than 2 MB": b"a" * 2_000_001,
    "an answer is wrong": b"---\nsource: herd\n---\n\n### Which?\n<!-- q: w-grow -->\n",
}


@pytest.fixture
def course_folder(tmp_path: Path) -> Path:
    return Path(shutil.copytree(TINY, tmp_path / "course"))


@pytest.fixture
def data(tmp_path: Path) -> Path:
    (tmp_path / "data").mkdir()
    return tmp_path / "data"


def start(course_folder: Path, data: Path) -> LiveCourse:
    """The course of a server process that starts now."""
    return LiveCourse(course_folder, data / "cache", last_good_folder=data / "last-good")


def errors_of(course: Course) -> set[str]:
    return {p.path for p in course.problems if p.severity == "error"}


def copies(data: Path) -> dict[str, bytes]:
    files = [f for f in (data / "last-good").rglob("*") if f.is_file()]
    return {"/".join(f.parts[-3:]): f.read_bytes() for f in files}


@each_of_sample("name", BROKEN, 2)
def test_a_restart_on_a_broken_file_serves_what_was_last_good(
    name: str, course_folder: Path, data: Path
) -> None:
    before = start(course_folder, data).get_current_course()
    (course_folder / QUIZ).write_bytes(BROKEN[name])

    for _ in range(2):  # what is broken is never kept in place of what was good
        after = start(course_folder, data).get_current_course()

        assert after.questions == before.questions
        assert errors_of(after) == {QUIZ}
        assert after.outdated_paths == (QUIZ,)


@each_of_sample("path", ["syllabus.toml", "sources.toml", "exams/short.toml", "glossary.md"], 2)
def test_a_restart_on_a_broken_register_serves_what_was_last_good(
    path: str, course_folder: Path, data: Path
) -> None:
    before = start(course_folder, data).get_current_course()
    (course_folder / path).write_bytes(b"= [[[\xff")

    after = start(course_folder, data).get_current_course()

    assert (after.syllabus, after.sources) == (before.syllabus, before.sources)
    assert (after.exams, after.glossary) == (before.exams, before.glossary)
    assert after.topics == before.topics
    assert errors_of(after) == {path}


def test_a_file_that_broke_while_it_was_served_is_the_same_after_a_restart(
    course_folder: Path, data: Path
) -> None:
    live = start(course_folder, data)
    live.get_current_course()
    (course_folder / QUIZ).write_bytes(b"---\nbroken")

    assert (
        live.get_current_course().questions
        == start(course_folder, data).get_current_course().questions
    )


def test_a_mended_file_is_served_as_it_is(course_folder: Path, data: Path) -> None:
    start(course_folder, data).get_current_course()
    good = (course_folder / QUIZ).read_text(encoding="utf-8")
    (course_folder / QUIZ).write_bytes(b"\xff")
    live = start(course_folder, data)
    live.get_current_course()

    (course_folder / QUIZ).write_text(good.replace("dense 70B", "large"), encoding="utf-8")

    assert "large" in live.get_current_course().questions["w-bf16-70b"].stem.plain
    assert live.get_current_course().outdated_paths == ()
    (course_folder / QUIZ).write_bytes(b"\xff")
    after = start(course_folder, data).get_current_course()
    assert "large" in after.questions["w-bf16-70b"].stem.plain


def test_without_a_good_version_what_is_sound_is_served(course_folder: Path, data: Path) -> None:
    text = (course_folder / QUIZ).read_text(encoding="utf-8")
    broken = text.replace("- [x] About 140 GB", "- [ ] About 140 GB")
    (course_folder / QUIZ).write_text(broken, encoding="utf-8")

    course = start(course_folder, data).get_current_course()

    assert "w-bf16-70b" not in course.questions
    assert "w-grow" in course.questions
    assert QUIZ not in copies(data)


def test_a_deleted_file_is_deleted(course_folder: Path, data: Path) -> None:
    live = start(course_folder, data)
    live.get_current_course()
    assert QUIZ in copies(data)

    (course_folder / QUIZ).unlink()

    assert "w-grow" not in live.get_current_course().questions
    assert "w-grow" not in start(course_folder, data).get_current_course().questions
    assert QUIZ not in copies(data)


def test_a_course_whose_disk_is_missing_loses_no_copy(course_folder: Path, data: Path) -> None:
    start(course_folder, data).get_current_course()
    kept = copies(data)
    away = course_folder.rename(course_folder.with_name("away"))

    assert start(course_folder, data).get_current_course().topics == {}

    assert copies(data) == kept
    away.rename(course_folder)
    assert set(start(course_folder, data).get_current_course().topics) == {"weights", "kv-cache"}


def test_courses_do_not_share_their_copies(course_folder: Path, data: Path, tmp_path: Path) -> None:
    start(course_folder, data).get_current_course()
    other = Path(shutil.copytree(TINY, tmp_path / "other"))
    (other / "syllabus.toml").write_bytes(b"\xff")

    assert start(other, data).get_current_course().syllabus.exam == ""


def test_where_nothing_can_be_kept_the_course_is_served(
    course_folder: Path, data: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (data / "last-good").write_text("a file, not a folder")
    live = start(course_folder, data)

    assert set(live.get_current_course().topics) == {"weights", "kv-cache"}

    os.utime(course_folder / QUIZ, (1, 1))
    live.get_current_course()
    refused = [r for r in caplog.records if "cannot be kept" in r.getMessage()]
    assert len(refused) == 1


def test_two_processes_keep_the_same_copies(course_folder: Path, data: Path) -> None:
    one, other = start(course_folder, data), start(course_folder, data)
    one.get_current_course()
    other.get_current_course()
    text = (course_folder / QUIZ).read_text(encoding="utf-8")

    (course_folder / QUIZ).write_text(text.replace("dense 70B", "large"), encoding="utf-8")
    other.get_current_course()
    one.get_current_course()

    assert b"large" in copies(data)[QUIZ]
    assert one.get_current_course().version == other.get_current_course().version
    assert not [name for name in copies(data) if "/." in name]


def test_a_copy_takes_the_place_of_whatever_stands_there(
    course_folder: Path, data: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (course_folder / "topics/a").mkdir()
    (course_folder / "topics/a/quiz.md").mkdir()
    drawing = '<svg viewBox="0 0 9 9"><title>A</title><path d="M0 0h9"/></svg>'
    (course_folder / "topics/a/quiz.md/icon.svg").write_text(drawing)
    (course_folder / "topics/a/concept.md").write_text((course_folder / PAGE).read_text())
    live = start(course_folder, data)
    live.get_current_course()
    [kept] = (data / "last-good").iterdir()
    assert (kept / "topics/a/quiz.md/icon.svg").is_file()

    shutil.rmtree(course_folder / "topics/a/quiz.md")
    (course_folder / "topics/a/quiz.md").write_text("# Quiz\n")
    live.get_current_course()
    assert (kept / "topics/a/quiz.md").read_text() == "# Quiz\n"

    shutil.rmtree(kept / "topics")
    (kept / "topics").write_text("a file, where a folder is needed")
    (kept / "syllabus.toml").unlink()
    (kept / "syllabus.toml").mkdir()
    (kept / "syllabus.toml" / "deep").mkdir()
    start(course_folder, data).get_current_course()

    assert copies(data)[QUIZ] == (course_folder / QUIZ).read_bytes()
    assert (kept / "syllabus.toml").read_bytes() == (TINY / SYLLABUS).read_bytes()
    assert not [r for r in caplog.records if "cannot be kept" in r.getMessage()]


def test_a_copy_that_another_process_dropped_is_written_again(
    course_folder: Path, data: Path
) -> None:
    live = start(course_folder, data)
    live.get_current_course()
    [kept] = (data / "last-good").iterdir()
    (kept / QUIZ).unlink()

    os.utime(course_folder / QUIZ, (1, 1))
    live.get_current_course()

    assert QUIZ in copies(data)


def test_half_written_copies_of_the_dead_go_and_those_of_the_living_stay(
    course_folder: Path, data: Path
) -> None:
    start(course_folder, data).get_current_course()
    [kept] = (data / "last-good").iterdir()
    (kept / "topics/weights/.quiz.md.0123").write_bytes(b"half")
    (kept / ".syllabus.toml.77").mkdir()
    written = kept / "topics/weights/.quiz.md.4567"
    with written.open("xb") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)

        start(course_folder, data).get_current_course()

        assert {n for n in copies(data) if "/." in n} == {"topics/weights/.quiz.md.4567"}
    start(course_folder, data).get_current_course()
    assert not list(kept.rglob(".*"))


_WRITER = """
import pathlib, sys
from app.content.parse_cache import LastGoodFiles
kept = LastGoodFiles(pathlib.Path(sys.argv[1]), pathlib.Path("/course"))
for number in range(int(sys.argv[2])):
    word = sys.argv[3].encode() * 20_000
    kept.delete_copies_except(["a/b/one.md", "two.md"] if number % 3 else ["two.md", "three"])
    for path in ("a/b/one.md", "two.md", "three"):
        kept.write_copy(path, word)
    print(number, flush=True)
"""


@pytest.mark.drill
def test_processes_that_write_at_once_and_one_that_is_killed_leave_whole_copies(
    data: Path,
) -> None:
    folder = data / "last-good"

    def begin(turns: int, word: str) -> subprocess.Popen[str]:
        words = [sys.executable, "-c", _WRITER, str(folder), str(turns), word]
        return subprocess.Popen(words, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    one, other, killed = begin(60, "one"), begin(60, "two"), begin(100_000, "six")
    assert killed.stdout
    for _ in range(10):
        killed.stdout.readline()
    killed.kill()
    said = [process.communicate() for process in (one, other, killed)]

    assert [errors for _, errors in said] == ["", "", ""]
    assert [one.returncode, other.returncode] == [0, 0]
    kept = LastGoodFiles(folder, Path("/course"))
    kept.delete_copies_except(["a/b/one.md", "two.md", "three"])
    found = [f for f in folder.rglob("*") if f.is_file()]
    assert {f.name for f in found} == {"one.md", "two.md", "three"}
    whole = {word.encode() * 20_000 for word in ("one", "two", "six")}
    assert {f.read_bytes() for f in found} <= whole


def test_the_state_says_what_is_served(course_folder: Path, data: Path) -> None:
    live = start(course_folder, data)
    assert live.status == CourseStatus(is_loaded=True, outdated_paths=(), error_count=0)

    (course_folder / QUIZ).write_bytes(b"\xff")
    assert live.status == CourseStatus(is_loaded=True, outdated_paths=(QUIZ,), error_count=1)

    shutil.rmtree(course_folder)
    assert live.status == CourseStatus(is_loaded=False, outdated_paths=(), error_count=2)


def test_a_failed_reading_is_logged_once(
    course_folder: Path, data: Path, caplog: pytest.LogCaptureFixture
) -> None:
    live = start(course_folder, data)
    live.get_current_course()
    (course_folder / QUIZ).write_bytes(b"\xff")

    live.get_current_course()
    os.utime(course_folder / QUIZ, (1, 1))
    live.get_current_course()

    said = [r.getMessage() for r in caplog.records]
    why = "E00 The file cannot be read: it is not UTF-8 text."
    assert said == [f"content {QUIZ}:1: its last good version is served: {why}"]


# --- what no rule foresees ---


def test_a_file_at_which_the_reader_fails_is_named(
    caplog: pytest.LogCaptureFixture,
) -> None:
    text = (TINY / "topics/weights/concept.md").read_text(encoding="utf-8")

    reading = parse_file(text, "topics/weights/concept.md", None)  # type: ignore[arg-type]

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
    return ParsedFile(path, fingerprints=(None,))  # type: ignore[arg-type]


def test_a_file_at_which_building_fails_is_left_out(course_folder: Path) -> None:
    readings = {p: parse_file((TINY / p).read_text(encoding="utf-8"), p) for p in PATHS}

    course = assemble_course({**readings, QUIZ: hostile(QUIZ)}, course_folder)

    assert set(course.topics) == {"weights", "kv-cache"}
    assert "w-grow" not in course.questions
    assert [p.path for p in course.problems if p.code == "E00"] == [QUIZ]


def test_a_file_at_which_building_fails_is_served_as_it_was(course_folder: Path) -> None:
    readings = {p: parse_file((TINY / p).read_text(encoding="utf-8"), p) for p in PATHS}

    course = assemble_course(
        {**readings, QUIZ: hostile(QUIZ)}, course_folder, previous_files=readings
    )

    assert "w-grow" in course.questions
    assert course.outdated_paths == (QUIZ,)
    assert [p.path for p in course.problems if p.code == "E00"] == [QUIZ]


def test_a_course_with_two_such_files_is_served_as_it_was(course_folder: Path) -> None:
    readings = {p: parse_file((TINY / p).read_text(encoding="utf-8"), p) for p in PATHS}
    both = {p: hostile(p) for p in (QUIZ, "topics/kv-cache/quiz.md")}

    course = assemble_course({**readings, **both}, course_folder, previous_files=readings)

    assert "w-grow" in course.questions
    assert set(course.outdated_paths) == set(both)
    assert "E00" in {p.code for p in course.problems}


def test_a_course_that_cannot_be_built_at_all_is_empty(
    course_folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    both = {p: hostile(p) for p in (QUIZ, "topics/kv-cache/quiz.md")}

    course = assemble_course(both, course_folder)

    assert course.topics == {}
    assert "E00" in {p.code for p in course.problems}
    assert [r for r in caplog.records if r.levelno == logging.ERROR]


def test_a_folder_that_cannot_be_looked_at_is_a_problem(tmp_path: Path) -> None:
    live = LiveCourse(Path(f"{tmp_path}/\0"), last_good_folder=tmp_path / "kept")

    course = live.get_current_course()

    assert course.topics == {}
    assert [p.code for p in course.problems] == ["E00"]
    assert live.get_current_course() is course


def test_reading_near_the_end_of_the_stack_is_a_problem() -> None:
    text = (TINY / QUIZ).read_text(encoding="utf-8")

    def read_at(depth: int) -> ParsedFile:
        return read_at(depth - 1) if depth else parse_file(text, QUIZ)

    reading = read_at(850)

    assert all(p.line >= 1 for p in reading.problems)
