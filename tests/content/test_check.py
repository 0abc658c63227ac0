"""`headroom check`: forms of the report, and what --fix may write."""

import datetime as dt
import json
import shutil
from pathlib import Path

import pytest

from app.cli import main
from app.content.check import check_course, format_problems
from app.content.course import load_course
from app.markup.problems import PROBLEM_CODES, make_problem

pytestmark = pytest.mark.usefixtures("read_once")

TINY = Path(__file__).parents[1] / "courses" / "tiny"
DAY = dt.date(2026, 11, 21)
ONE = make_problem(("topics/a/quiz.md", 3, 7), "E24", "A box, malformed: 50%.", "Mend it.")


@pytest.fixture
def course_folder(tmp_path: Path) -> Path:
    return Path(shutil.copytree(TINY, tmp_path / "course"))


def test_text_names_place_code_message_and_remedy() -> None:
    assert format_problems([ONE]) == (
        "topics/a/quiz.md:3:7 E24 A box, malformed: 50%.\n    Mend it.\n1 error, 0 warnings."
    )


def test_nothing_wrong_is_one_sentence() -> None:
    assert format_problems([]) == "No problems."


def test_json_is_a_list_of_objects() -> None:
    assert json.loads(format_problems([ONE], "json")) == [
        {
            "path": "topics/a/quiz.md",
            "line": 3,
            "column": 7,
            "code": "E24",
            "severity": "error",
            "message": "A box, malformed: 50%.",
            "hint": "Mend it.",
        }
    ]


def test_annotations_escape_what_the_code_host_would_read() -> None:
    assert format_problems([ONE], "github") == (
        "::error file=topics/a/quiz.md,line=3,col=7,title=E24::A box, malformed: 50%25. Mend it."
    )


def test_every_rule_says_what_it_is_about_and_what_to_do() -> None:
    for code, rule in PROBLEM_CODES.items():
        assert code[0] in "EW"
        assert rule.meaning.endswith(".")
        assert rule.remedy.endswith(".")


def test_the_tiny_course_passes() -> None:
    assert check_course(TINY, today=DAY) == []


def test_fix_writes_ids_from_headings(course_folder: Path) -> None:
    quiz = course_folder / "topics/weights/quiz.md"
    more = "\n### How wide is FP8?\n\n- [x] True\n- [ ] False\n  > No.\n"
    empty = more.replace("FP8?\n", "FP4?\n<!-- q:\ndifficulty: 1\n-->\n")
    quiz.write_text(quiz.read_text() + more + empty)

    assert check_course(course_folder, apply_fixes=True, today=DAY) == []

    text = quiz.read_text()
    assert "### How wide is FP8?\n<!-- q: how-wide-is-fp8 -->\n" in text
    assert "### How wide is FP4?\n<!-- q: how-wide-is-fp4\ndifficulty: 1\n" in text


def test_fix_enters_every_id_into_the_lock_and_then_rests(course_folder: Path) -> None:
    check_course(course_folder, apply_fixes=True, today=DAY)
    lock = (course_folder / "ids.lock").read_text()
    assert "\nw-bf16-70b single 2026-11-21 - " in lock

    check_course(course_folder, apply_fixes=True, today=DAY + dt.timedelta(days=9))

    assert (course_folder / "ids.lock").read_text() == lock


def test_fix_never_reuses_an_id_of_the_lock(course_folder: Path) -> None:
    (course_folder / "ids.lock").write_text("how-wide short 2026-01-01 2026-02-02 - -\n")
    quiz = course_folder / "topics/weights/quiz.md"
    more = "\n### How wide?\n\n- [x] True\n- [ ] False\n  > No.\n"
    quiz.write_text(quiz.read_text() + more)

    check_course(course_folder, apply_fixes=True, today=DAY)

    assert "<!-- q: how-wide-2 -->" in quiz.read_text()


def test_fix_gives_a_copy_an_id_of_its_own(course_folder: Path) -> None:
    check_course(course_folder, apply_fixes=True, today=DAY)
    quiz = course_folder / "topics/weights/quiz.md"
    text = quiz.read_text()
    start = text.index("### How much memory do the BF16")
    end = text.index("### Which of these make")
    quiz.write_text(text + "\n" + text[start:end].replace("do the", "would the"))

    found = check_course(course_folder, apply_fixes=True, today=DAY)

    assert [p.code for p in found if p.severity == "error"] == []
    assert "<!-- q: w-bf16-70b-2\n" in quiz.read_text()


def test_fix_gives_new_ids_to_a_copied_topic_and_none_to_its_original(
    course_folder: Path,
) -> None:
    original = (course_folder / "topics/weights/quiz.md").read_bytes()
    shutil.copytree(course_folder / "topics/weights", course_folder / "topics/a-copy")
    before = check_course(course_folder, today=DAY)

    check_course(course_folder, apply_fixes=True, today=DAY)

    copied = {p.path for p in before if p.code == "E08"}
    assert copied
    assert all(path.startswith("topics/a-copy/") for path in copied)
    assert (course_folder / "topics/weights/quiz.md").read_bytes() == original
    assert "q: w-grow-2\n" in (course_folder / "topics/a-copy/quiz.md").read_text()


def test_an_item_of_a_copied_topic_is_asked_where_its_original_stands(
    course_folder: Path,
) -> None:
    shutil.copytree(course_folder / "topics/weights", course_folder / "topics/a-copy")

    assert load_course(course_folder).questions["w-grow"].topic == "weights"


@pytest.mark.parametrize("comment", ["<!-- q: w-grow\n", "<!-- Q: w-grow -->\n"])
def test_fix_writes_no_second_id_beside_a_broken_comment(course_folder: Path, comment: str) -> None:
    check_course(course_folder, apply_fixes=True, today=DAY)
    quiz = course_folder / "topics/weights/quiz.md"
    text = quiz.read_text()
    start = text.index("<!-- q: w-grow")
    end = text.index("-->\n", start) + 4
    broken = text[:start] + comment + text[end:]
    quiz.write_text(broken)
    lock = (course_folder / "ids.lock").read_text()

    found = check_course(course_folder, apply_fixes=True, today=DAY)

    assert quiz.read_text() == broken
    assert (course_folder / "ids.lock").read_text() == lock
    assert [p.code for p in found if p.severity == "error"] in (["E10"], ["E12"])


def test_fix_rewrites_a_stale_figure_in_its_own_form(course_folder: Path) -> None:
    page = course_folder / "topics/weights/concept.md"
    text = page.read_text()
    assert "[140 GB](calc:" in text
    page.write_text(text.replace("[140 GB](calc:", "[about 139.5 GB](calc:"))

    assert check_course(course_folder, apply_fixes=True, today=DAY) == []

    assert page.read_text() == text.replace("[140 GB](calc:", "[about 140.0 GB](calc:")


def test_fix_keeps_the_line_ends_of_a_file(course_folder: Path) -> None:
    page = course_folder / "topics/weights/concept.md"
    text = page.read_text().replace("[140 GB](calc:", "[150 GB](calc:")
    page.write_bytes(text.replace("\n", "\r\n").encode())

    check_course(course_folder, apply_fixes=True, today=DAY)

    raw = page.read_bytes()
    assert b"[140 GB](calc:" in raw
    assert raw.count(b"\n") == raw.count(b"\r\n")


def test_fix_changes_nothing_in_a_sound_course(course_folder: Path) -> None:
    before = {f: f.read_bytes() for f in course_folder.rglob("*.*")}

    check_course(course_folder, apply_fixes=True, today=DAY)

    assert {f: f.read_bytes() for f in before} == before


def test_a_typo_mended_keeps_the_id_quiet(course_folder: Path) -> None:
    check_course(course_folder, apply_fixes=True, today=DAY)
    quiz = course_folder / "topics/weights/quiz.md"
    quiz.write_text(quiz.read_text().replace("About 70 GB", "Roughly 70 GB"))

    assert check_course(course_folder, today=DAY) == []


def test_a_deleted_item_is_missed_until_it_is_retired(course_folder: Path) -> None:
    check_course(course_folder, apply_fixes=True, today=DAY)
    cards = course_folder / "topics/kv-cache/cards.md"
    text = cards.read_text()
    cards.write_text(text[: text.index("### Keys and values")])
    assert [p.code for p in check_course(course_folder, today=DAY)] == ["E06"]

    lock = course_folder / "ids.lock"
    lock.write_text(
        lock.read_text().replace(
            "k-c-name card 2026-11-21 -", "k-c-name card 2026-11-21 2026-11-22"
        )
    )

    assert check_course(course_folder, today=DAY) == []


def test_items_that_are_gone_together_are_told_together(course_folder: Path) -> None:
    check_course(course_folder, apply_fixes=True, today=DAY)
    (course_folder / "topics/weights/quiz.md").unlink()

    gone, missing = check_course(course_folder, today=DAY)

    assert gone.code == "E06"
    assert gone.message == (
        "6 items are gone and were not retired: “w-bf16-70b”, “w-computed”, “w-fp32” and 3 more."
    )
    assert "If a file was deleted or renamed, bring it back" in gone.hint
    assert missing.message.startswith("“Weights in memory” has no quiz.md")


def test_reviews_grow_old(course_folder: Path) -> None:
    found = check_course(course_folder, today=dt.date(2028, 1, 1))

    assert {p.code for p in found} == {"W18"}


@pytest.mark.parametrize("spoil", ["name", "comment"])
def test_what_cannot_be_read_is_not_called_gone(course_folder: Path, spoil: str) -> None:
    assert main(["check", str(course_folder), "--fix"]) == 0
    quiz = course_folder / "topics/weights/quiz.md"
    if spoil == "name":
        quiz.rename(quiz.with_name("quizz.md"))
    else:
        quiz.write_text(quiz.read_text().replace("difficulty: 1", "difficulty 1", 1))

    assert [p.code for p in check_course(course_folder)] == ["E00" if spoil == "name" else "E10"]


def test_a_renamed_folder_is_told_once_with_what_to_change(course_folder: Path) -> None:
    (course_folder / "topics/weights").rename(course_folder / "topics/bytes-of-a-model")
    now = "bytes-of-a-model"

    every = check_course(course_folder, today=DAY)

    [found] = [p for p in every if p.path == "syllabus.toml"]
    assert found.message == "“weights” is not a topic of this course."
    assert found.hint == (
        f'If its folder is “{now}” now, write "{now}" in its place in order; '
        "else take the name out."
    )
    assert "W36" not in {p.code for p in every}
    [required] = [p for p in every if p.message == found.message and p is not found]
    assert required.path == "topics/kv-cache/concept.md"
    assert required.hint == f"Did you mean “{now}”?"
