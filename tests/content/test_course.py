"""The course: one consistent state, live, and quick from its cache."""

import os
import shutil
import threading
from pathlib import Path

import pytest

from app.content.course import load_course
from app.content.file_reader import parse_file
from app.content.live_courses import LiveCourse
from app.content.parse_cache import ParseCacheFolder, decode_cached_value, encode_value_for_cache

TINY = Path(__file__).parents[1] / "courses" / "tiny"


@pytest.fixture
def course_folder(tmp_path: Path) -> Path:
    return Path(shutil.copytree(TINY, tmp_path / "course"))


@pytest.fixture
def live(course_folder: Path, tmp_path: Path) -> LiveCourse:
    return LiveCourse(course_folder, tmp_path / "cache")


def edit(file: Path, old: str, new: str) -> None:
    text = file.read_text(encoding="utf-8")
    assert old in text
    file.write_text(text.replace(old, new), encoding="utf-8")


def test_the_tiny_course_has_no_problems() -> None:
    course = load_course(TINY)

    assert course.problems == ()
    assert list(course.topics) == ["weights", "kv-cache"]
    assert course.syllabus.exam == "CB-1"
    assert [d.weight for d in course.syllabus.domains] == [0.6, 0.4]
    assert course.exams["short"].question_count_by_domain == {"1": 3, "2": 2}


def test_a_topic_lists_embedded_items_first_and_then_its_files() -> None:
    topic = load_course(TINY).topics["weights"]

    assert topic.questions[:3] == ("w-page-half", "w-bf16-70b", "w-smaller")
    assert topic.cards == ("w-c-bf16", "w-c-size", "w-c-size~r")


def test_sources_come_in_order_of_mention_with_what_is_meant() -> None:
    topic = load_course(TINY).topics["weights"]

    assert topic.sources == ("herd",)
    assert topic.note_by_source_key["herd"].plain == "Section on the sizes of the models."


def test_an_embedded_question_knows_its_section() -> None:
    assert load_course(TINY).questions["w-page-half"].section == "check-yourself"


def test_a_saved_file_is_live_at_the_next_look(live: LiveCourse) -> None:
    before = live.get_current_course()
    quiz = live.folder / "topics/weights/quiz.md"

    edit(quiz, "dense 70B model take", "dense model of 70B take")

    after = live.get_current_course()
    assert "model of 70B" in after.questions["w-bf16-70b"].stem.plain
    assert after.version != before.version
    old = before.questions["w-bf16-70b"]
    assert after.questions["w-bf16-70b"].revision != old.revision


def test_nothing_changed_is_the_same_state(live: LiveCourse) -> None:
    assert (
        live.get_current_course() is live.get_current_course()
        or live.get_current_course() is live.get_current_course()
    )


def test_a_broken_file_keeps_its_last_good_version(live: LiveCourse) -> None:
    live.get_current_course()
    quiz = live.folder / "topics/weights/quiz.md"

    edit(quiz, "- [x] About 140 GB", "- [ ] About 140 GB")

    after = live.get_current_course()
    assert "w-bf16-70b" in after.questions
    assert [p.code for p in after.problems if p.severity == "error"] == ["E20"]

    edit(quiz, "- [ ] About 140 GB", "- [x] About 140 GB")
    assert live.get_current_course().problems == ()


def test_a_broken_syllabus_keeps_the_course_in_order(live: LiveCourse) -> None:
    live.get_current_course()

    (live.folder / "syllabus.toml").write_text("exam = ", encoding="utf-8")

    after = live.get_current_course()
    assert after.syllabus.exam == "CB-1"
    assert {p.code for p in after.problems} == {"E10"}


def test_a_file_that_is_not_text_is_named(live: LiveCourse) -> None:
    live.get_current_course()

    (live.folder / "topics/weights/quiz.md").write_bytes(b"\xff\xfe\x00")

    after = live.get_current_course()
    assert "w-bf16-70b" in after.questions
    assert [p.code for p in after.problems] == ["E00"]


def test_a_new_topic_appears_and_a_deleted_one_goes(live: LiveCourse) -> None:
    live.get_current_course()
    folder = live.folder / "topics/new"
    folder.mkdir()
    (folder / "concept.md").write_text("---\ntitle: New\nsources: herd\n---\n\nText.\n")

    assert "new" in live.get_current_course().topics

    shutil.rmtree(folder)
    assert "new" not in live.get_current_course().topics


def test_threads_see_one_state(live: LiveCourse) -> None:
    seen: list[str] = []
    threads = [
        threading.Thread(target=lambda: seen.append(live.get_current_course().version))
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(set(seen)) == 1
    assert len(seen) == 8


def test_a_course_without_files_says_what_is_missing(tmp_path: Path) -> None:
    course = load_course(tmp_path)

    assert [p.code for p in course.problems] == ["E00", "E00"]
    assert course.topics == {}


def test_the_cache_gives_the_same_course(course_folder: Path, tmp_path: Path) -> None:
    cold = load_course(course_folder, tmp_path / "cache")
    warm = load_course(course_folder, tmp_path / "cache")

    assert warm == cold == load_course(course_folder)


def test_a_damaged_cache_is_read_anew(course_folder: Path, tmp_path: Path) -> None:
    cold = load_course(course_folder, tmp_path / "cache")
    for number, file in enumerate(sorted((tmp_path / "cache/content").iterdir())):
        file.write_text(["", "[]", "[999]", "{", "[3,1]", "null"][number % 6])

    assert load_course(course_folder, tmp_path / "cache") == cold


def test_a_cache_that_cannot_be_written_is_no_misfortune(
    course_folder: Path, tmp_path: Path
) -> None:
    (tmp_path / "cache").write_text("a file, not a folder")

    assert load_course(course_folder, tmp_path / "cache") == load_course(course_folder)


def test_a_reading_survives_its_way_through_the_cache() -> None:
    for file in sorted(TINY.rglob("*.*")):
        path = str(file.relative_to(TINY))
        reading = parse_file(file.read_text(encoding="utf-8"), path)
        assert decode_cached_value(encode_value_for_cache(reading)) == reading


def test_old_readings_are_forgotten(tmp_path: Path) -> None:
    cache = ParseCacheFolder(tmp_path)
    cache.folder.mkdir()
    for number in range(150):
        (cache.folder / f"{number}.json").write_text("[]")

    cache.prune_if_mostly_unused()

    assert len(os.listdir(cache.folder)) < 100  # noqa: PTH208 - counting only


def test_nothing_is_written_where_the_data_folder_was(tmp_path: Path) -> None:
    data, course_folder = tmp_path / "data", tmp_path / "course"
    shutil.copytree(TINY, course_folder)
    live = LiveCourse(course_folder, data / "cache", last_good_folder=data / "last-good")
    assert live.get_current_course().topics

    assert not data.exists(), "a disk that is missing comes back there"
    data.mkdir()
    quiz = course_folder / "topics/weights/quiz.md"
    quiz.write_text(quiz.read_text().replace("About 70 GB", "Roughly 70 GB"))
    assert (
        LiveCourse(course_folder, data / "cache", last_good_folder=data / "last-good")
        .get_current_course()
        .topics
    )
    assert {f.name for f in data.iterdir()} == {"cache", "last-good"}


def test_a_rewritten_option_keeps_the_key_of_the_lock(course_folder: Path) -> None:
    quiz = course_folder / "topics/weights/quiz.md"
    before = load_course(course_folder).questions["w-bf16-70b"].answer.options
    digests = ["aaaaaa"] * 3
    reading = parse_file(quiz.read_text(encoding="utf-8"), "topics/weights/quiz.md")
    fact = next(f for f in reading.fingerprints if f.id == "w-bf16-70b")
    digests = [d for _, d in fact.options]
    old = f"bcdf:aaaaaa,{before[1].key}:{digests[1]},{before[2].key}:{digests[2]}"
    (course_folder / "ids.lock").write_text(f"w-bf16-70b single 2026-01-01 - - {old}\n")

    after = load_course(course_folder)

    keys = [o.key for o in after.questions["w-bf16-70b"].answer.options]
    assert keys == ["bcdf", before[1].key, before[2].key]
    assert [p.code for p in after.problems] == ["W97"]  # of all other ids
