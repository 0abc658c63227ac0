"""Questions from elsewhere whose words hold braces, which mean nothing there."""

import shutil
from pathlib import Path

from app.cli.import_export import import_file
from app.content.check import check_course
from tests.content.test_cases import DAY, TINY

AIKEN = """What does ${HOME} or {name} stand for in a template?
A. A value such as {name:.2f}
B. Nothing at all
ANSWER: A
"""


def test_a_name_in_braces_is_taken_in_as_words(tmp_path: Path) -> None:
    course_folder = tmp_path / "course"
    shutil.copytree(TINY, course_folder)
    file = tmp_path / "quiz.txt"
    file.write_text(AIKEN, encoding="utf-8")
    before = [p for p in check_course(course_folder, today=DAY) if p.severity == "error"]

    said = import_file("aiken", file, course_folder, "kv-cache")

    assert said.startswith("1 item imported")
    written = (course_folder / "topics/kv-cache/quiz.md").read_text("utf-8")
    assert r"or \{name} stand" in written
    assert [p for p in check_course(course_folder, today=DAY) if p.severity == "error"] == before


def test_the_same_file_again_brings_nothing_new(tmp_path: Path) -> None:
    course_folder = tmp_path / "course"
    shutil.copytree(TINY, course_folder)
    file = tmp_path / "quiz.txt"
    file.write_text(AIKEN, encoding="utf-8")
    import_file("aiken", file, course_folder, "kv-cache")

    said = import_file("aiken", file, course_folder, "kv-cache")

    assert "the topic has this question already" in said
