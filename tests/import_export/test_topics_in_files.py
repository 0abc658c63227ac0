"""A course of several topics goes out as one file and comes back into its topics."""

import shutil
from pathlib import Path

import pytest

from app.cli.import_export import export_items, import_file
from app.content.course import load_course
from app.import_export import UnusableFileError
from app.questions.model import Question
from tests.amounts import each_of_sample
from tests.conftest import TINY

FORMS = {"gift": "gift", "moodle": "moodle", "qti": "qti", "qti21": "qti", "csv": "csv"}
FORMS |= {"json": "json", "xlsx": "spreadsheet"}


@pytest.fixture
def course_folder(tmp_path: Path) -> Path:
    """The tiny course with a reserved and a deeper question."""
    course_folder = Path(shutil.copytree(TINY, tmp_path / "course"))
    quiz = course_folder / "topics/kv-cache/quiz.md"
    text = quiz.read_text().replace("q: k-trade\n", "q: k-trade\nuse: exam\n")
    quiz.write_text(text.replace("q: k-stay\n", "q: k-stay\nlevel: deeper\n"))
    return course_folder


def kept(question: Question) -> dict[str, object]:
    """What a round trip has to keep."""
    answer = question.answer
    return {
        "topic": question.topic,
        "type": question.type,
        "use": question.use,
        "level": question.level,
        "partial": question.partial,
        "difficulty": question.difficulty,
        "wrong steps": [o.text.plain for o in getattr(answer, "distractors", ())],
        "clues": [blank.hint for blank in getattr(answer, "blanks", ())],
    }


@pytest.mark.usefixtures("read_once")
@each_of_sample("form", FORMS, 2)
def test_topics_use_level_wrong_steps_and_clues_come_back(
    course_folder: Path, tmp_path: Path, form: str
) -> None:
    file = tmp_path / "out"
    export_items(form, file, course_folder, "", 0)
    before = load_course(course_folder).questions
    for path in course_folder.glob("topics/*/quiz.md"):
        path.unlink()

    report = import_file(FORMS[form], file, course_folder, "")

    assert "topics/kv-cache/quiz.md" in report
    assert "topics/weights/quiz.md" in report
    after = load_course(course_folder).questions
    gone = {"k-cloze"} if form == "gift" else set()  # GIFT has no cloze
    assert set(before) - set(after) == gone
    assert {name: kept(q) for name, q in after.items() if name in before} == {
        name: kept(q) for name, q in before.items() if name not in gone
    }


def test_items_without_a_topic_need_one(course_folder: Path, tmp_path: Path) -> None:
    file = tmp_path / "two.gift"
    file.write_text("Is it so? {T}\n")

    with pytest.raises(UnusableFileError, match=r"name one with --topic\. There are kv-cache"):
        import_file("gift", file, course_folder, "")


def test_an_item_of_an_unknown_topic_is_refused_with_its_name(
    course_folder: Path, tmp_path: Path
) -> None:
    file = tmp_path / "two.gift"
    file.write_text("// [tag:topic:weights]\nIs it so? {T}\n\n// [tag:topic:none]\nOr not? {F}\n")

    report = import_file("gift", file, course_folder, "")

    assert "1 item imported into topics/weights/quiz.md." in report
    assert "there is no topic “none” here; name one with --topic" in report
