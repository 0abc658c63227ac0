"""What is kept for mock exams, or lies beyond them, stays so in other files."""

import shutil
from pathlib import Path

import pytest

from app.cli.import_export import export_items, import_file
from app.content.course import load_course
from tests.amounts import each_of_sample

TINY = Path(__file__).parents[1] / "courses" / "tiny"
QUIZ = "topics/weights/quiz.md"


@pytest.mark.usefixtures("read_once")
@each_of_sample("form", ["gift", "moodle", "qti", "qti21", "csv", "json"], 2)
def test_the_reserve_comes_back_as_such(tmp_path: Path, form: str) -> None:
    course_folder = Path(shutil.copytree(TINY, tmp_path / "course"))
    quiz = course_folder / QUIZ
    text = quiz.read_text()
    kept = text.replace("q: w-bf16-70b\n", "q: w-bf16-70b\nuse: exam\n")
    quiz.write_text(kept.replace("q: w-smaller\n", "q: w-smaller\nlevel: deeper\n"))
    before = load_course(course_folder).questions
    assert before["w-bf16-70b"].is_reserved_for_exams
    assert before["w-smaller"].level == "deeper"

    said = export_items(form, tmp_path / "out", course_folder, "weights", 0)
    assert "1 item reserved for mock exams among them, with answers." in said
    quiz.write_text(text.split("###")[0] + "### Filler\n<!-- q: f -->\n- [x] `a`\n")
    import_file(form.replace("qti21", "qti"), tmp_path / "out", course_folder, "weights")

    after = load_course(course_folder).questions
    stems = {q.stem.plain: q for q in after.values()}
    assert stems[before["w-bf16-70b"].stem.plain].is_reserved_for_exams
    assert stems[before["w-smaller"].stem.plain].level == "deeper"
    others = [q for q in before.values() if not (q.use or q.level)]
    assert not any(stems[q.stem.plain].use for q in others if q.stem.plain in stems)


def test_aiken_says_that_it_does_not_carry_it(tmp_path: Path) -> None:
    course_folder = Path(shutil.copytree(TINY, tmp_path / "course"))
    quiz = course_folder / QUIZ
    quiz.write_text(quiz.read_text().replace("difficulty: 2\n", "use: exam\n", 1))

    said = export_items("aiken", tmp_path / "out", course_folder, "weights", 0)

    assert "1 item reserved for mock exams among them, with answers." in said
    assert "w-bf16-70b" in said.partition("with a loss")[2]
