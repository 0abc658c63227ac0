"""The author's reference: its examples pass the check, and nothing is left out."""

import datetime as dt
import re
import shutil
from collections import defaultdict
from pathlib import Path

import pytest

from app.content import front_matter as metadata
from app.content.check import check_course
from app.content.course import Course
from app.content.live_courses import LiveCourse
from app.markup.quantities import format_with_spec, recognize_unit
from app.questions.question_type import is_same_phrase
from docs.reference import authoring

TEXT = authoring.PATH.read_text(encoding="utf-8")
DAY = dt.date(2026, 11, 22)
ALSO_READ = {"objectives", "sources"}  # other names of keys in the tables
_EXAMPLE = re.compile(
    r"^(?P<fence>`{3,})(?:markdown|toml|svg) (?P<path>\S+)\n(?P<text>.*?)^(?P=fence)$",
    re.DOTALL | re.MULTILINE,
)


def section(heading: str) -> str:
    """What stands below a heading, up to the next one of any level."""
    return re.split(r"^#+ .*$", TEXT.partition(f"\n{heading}\n")[2], flags=re.MULTILINE)[0]


def first_column(text: str) -> set[str]:
    """The words in code style in the first cells of a table."""
    cells = re.findall(r"^\| (.+?) \|", text, re.MULTILINE)
    return {word for cell in cells for word in re.findall(r"`([^`]+)`", cell)}


@pytest.fixture(scope="module")
def course_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The small course that the examples make up, part after part of each file."""
    folder = tmp_path_factory.mktemp("course")
    files: dict[str, list[str]] = defaultdict(list)
    for match in _EXAMPLE.finditer(TEXT):
        files[match["path"]].append(match["text"])
    for path, texts in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text("\n".join(texts), encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def course(course_folder: Path) -> Course:
    return LiveCourse(course_folder).get_current_course()


def test_the_document_is_up_to_date() -> None:
    assert authoring.document() == TEXT, "run: make docs"


def test_the_examples_make_up_a_course_without_a_problem(course_folder: Path) -> None:
    assert check_course(course_folder, today=DAY) == []


def test_every_kind_of_question_has_an_example(course: Course) -> None:
    shown = {q.type for q in course.questions.values()}
    shown |= {"card"} if course.cards else set()

    assert shown == set(metadata.ITEM_TYPES)


def test_every_kind_of_question_has_a_heading() -> None:
    headings = re.findall(r"^### `([a-z-]+)`$", TEXT, re.MULTILINE)

    assert set(headings) == set(metadata.ITEM_TYPES)


def test_every_field_of_an_item_is_explained() -> None:
    assert first_column(section("### Fields")) >= set(metadata.ITEM_KEYS) - ALSO_READ


def test_every_field_of_a_front_matter_is_explained() -> None:
    assert first_column(section("## Pages")) >= set(metadata.FRONT_KEYS) - ALSO_READ


def test_every_rule_of_partial_credit_is_explained() -> None:
    said = first_column(section("### Partial credit")) - {"partial"}

    assert said == set(metadata.PARTIAL_CREDIT_RULES) - {""}


def test_the_formats_of_numbers_are_shown_as_they_are() -> None:
    below = TEXT.partition("| format | the number 1234.5678 |")[2].partition("###")[0]
    rows = re.findall(r"^\| `\{x:?(\S*)\}` \| ([\d,.]+\d) ", below, re.MULTILINE)

    assert len(rows) == 4
    assert {spec: format_with_spec(1234.5678, spec) for spec, _ in rows} == dict(rows)


def test_a_unit_that_is_also_understood_is_so(subtests: pytest.Subtests) -> None:
    for word in ["TFLOPS", "second", "seconds", "minute", "hour", "dollars"]:
        with subtests.test(word=word):
            assert f"`{word}`" in section("### Units")
            assert recognize_unit(word) is not None


def test_what_is_said_of_short_answers_holds() -> None:
    assert is_same_phrase("pre-fill", "Prefill.")
    for other in ("the prefill", "prefills", "prefil", "préfill"):
        assert not is_same_phrase("prefill", other)


@pytest.mark.parametrize(
    ("options", "drawn"),
    [("- [x] True\n- [ ] False\n", True), ("- [x] One\n- [ ] Two\n", False)],
)
def test_what_is_said_of_two_options_in_mock_exams_holds(
    course_folder: Path, tmp_path: Path, options: str, drawn: bool
) -> None:
    copy = Path(shutil.copytree(course_folder, tmp_path / "course"))
    quiz = copy / "topics/kv-cache/quiz.md"
    asked = f"\n### Is it so?\n<!-- q: two -->\n\n{options}  > A reason.\n"
    quiz.write_text(quiz.read_text(encoding="utf-8") + asked, encoding="utf-8")

    assert LiveCourse(copy).get_current_course().questions["two"].may_be_asked_in_exams is drawn
