"""The first guide: short, and its examples are a course that passes the check."""

import datetime as dt
import re
from collections import defaultdict
from pathlib import Path

import pytest

from app.content.check import check_course
from app.content.course import load_course
from docs.reference.parts import DOCS

TEXT = (DOCS / "guide.md").read_text(encoding="utf-8")
DAY = dt.date(2026, 11, 22)
_EXAMPLE = re.compile(
    r"^(?P<fence>`{3,})(?:markdown|toml) (?P<path>\S+)\n(?P<text>.*?)^(?P=fence)$",
    re.DOTALL | re.MULTILINE,
)


@pytest.fixture
def course_folder(tmp_path: Path) -> Path:
    """The course of the guide, as a reader has it who copied everything."""
    files: dict[str, list[str]] = defaultdict(list)
    for match in _EXAMPLE.finditer(TEXT):
        files[match["path"]].append(match["text"])
    for path, texts in files.items():
        file = tmp_path / "bread" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("\n".join(texts), encoding="utf-8")
    return tmp_path / "bread"


def test_it_has_at_most_1200_words_and_60_about_ids() -> None:
    ids = TEXT.partition("## Ids\n")[2].partition("\n## ")[0]

    assert len(TEXT.split()) <= 1200
    assert len(ids.split()) <= 60


def test_its_course_has_no_problem_once_ids_are_written(course_folder: Path) -> None:
    assert {p.code for p in check_course(course_folder, today=DAY)} <= {
        "E01",
        "W97",
        "E71",
        "W87",
        "W73",
    }
    assert check_course(course_folder, apply_fixes=True, today=DAY) == []


def test_it_shows_the_common_kinds(course_folder: Path) -> None:
    check_course(course_folder, apply_fixes=True, today=DAY)
    course = load_course(course_folder)

    kinds = [question.type for question in course.questions.values()]
    assert kinds == ["single", "multiple", "true-false", "numeric", "short"]
    assert len(course.cards) == 4
    assert course.exams["short"].question_count == 2


def test_its_pictures_exist() -> None:
    pictures = re.findall(r"\]\((pictures/\S+\.png)\)", TEXT)

    assert len(pictures) == 2
    assert [name for name in pictures if not (DOCS / name).is_file()] == []
