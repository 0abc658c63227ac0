"""`headroom check --fix`: what it shows of what it writes, and what it leaves alone."""

import datetime as dt
import shutil
import subprocess
from pathlib import Path

import pytest

from app.cli import main
from app.content.check import (
    check_course,
    fix_course_files,
    format_diff,
    is_tracked_by_git,
    plan_course_file_fixes,
)
from app.markup.problems import PROBLEM_CODES, describe_problem_code

pytestmark = pytest.mark.usefixtures("read_once")
TINY = Path(__file__).parents[1] / "courses" / "tiny"
DAY = dt.date(2026, 11, 21)
MORE = "\n### How wide is FP8?\n\n- [x] True\n- [ ] False\n  > No.\n"


@pytest.fixture
def course_folder(tmp_path: Path) -> Path:
    return Path(shutil.copytree(TINY, tmp_path / "course"))


def written(course_folder: Path) -> dict[Path, bytes]:
    return {f: f.read_bytes() for f in course_folder.rglob("*") if f.is_file()}


@pytest.fixture
def unfinished(course_folder: Path) -> Path:
    """A course with an item without an id and a stale figure."""
    check_course(course_folder, apply_fixes=True, today=DAY)
    quiz = course_folder / "topics/weights/quiz.md"
    quiz.write_text(quiz.read_text() + MORE)
    page = course_folder / "topics/weights/concept.md"
    page.write_text(page.read_text().replace("[140 GB](calc:", "[150 GB](calc:"))
    return course_folder


def test_a_dry_run_shows_what_fix_writes_and_writes_nothing(unfinished: Path) -> None:
    before = written(unfinished)
    shown = format_diff(plan_course_file_fixes(unfinished, DAY))
    assert written(unfinished) == before

    assert format_diff(fix_course_files(unfinished, DAY)) == shown

    assert check_course(unfinished, today=DAY) == []
    assert plan_course_file_fixes(unfinished, DAY) == []


def test_the_difference_names_file_and_lines(unfinished: Path) -> None:
    shown = format_diff(plan_course_file_fixes(unfinished, DAY)).split("\n")

    assert "--- a/topics/weights/quiz.md" in shown
    assert "+<!-- q: how-wide-is-fp8 -->" in shown
    assert any(line.startswith("+how-wide-is-fp8 true-false ") for line in shown)
    assert sum(line.startswith(("-", "+")) for line in shown) == 3 * 2 + 1 + 2 + 1


def test_patch_makes_the_same_of_the_difference(unfinished: Path) -> None:
    if shutil.which("patch") is None:
        pytest.skip("patch is not installed")
    shown = format_diff(plan_course_file_fixes(unfinished, DAY))
    copy = Path(shutil.copytree(unfinished, unfinished.parent / "copy"))
    fix_course_files(unfinished, DAY)

    subprocess.run(["patch", "-p1", "-s"], input=f"{shown}\n", cwd=copy, text=True, check=True)

    for name in ("ids.lock", "topics/weights/quiz.md", "topics/weights/concept.md"):
        assert (copy / name).read_bytes() == (unfinished / name).read_bytes()


def test_a_list_of_ids_that_cannot_be_read_is_not_written_anew(course_folder: Path) -> None:
    check_course(course_folder, apply_fixes=True, today=DAY)
    lock = course_folder / "ids.lock"
    lock.write_bytes(lock.read_bytes() + b"\xff\n")
    before = lock.read_bytes()

    check_course(course_folder, apply_fixes=True, today=DAY)

    assert lock.read_bytes() == before


def test_the_command_prints_the_difference(
    course_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["check", str(course_folder), "--fix", "--dry-run"]) == 0

    said = capsys.readouterr().out
    assert said.startswith("--- /dev/null\n+++ b/ids.lock\n")
    assert "ids.lock does not exist yet: --fix without --dry-run would write" in said
    assert "is new" not in said
    assert said.endswith("No problems.\n")
    assert not (course_folder / "ids.lock").exists()


def test_programs_get_the_problems_alone(
    course_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["check", str(course_folder), "--fix", "--format", "json"]) == 0

    said = capsys.readouterr()
    assert said.out == "[]\n"
    assert "+++ b/ids.lock" in said.err


def test_a_dry_run_of_nothing_is_refused(
    course_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["check", str(course_folder), "--dry-run"]) == 2
    assert "add --fix" in capsys.readouterr().err


def test_every_code_can_be_explained(
    capsys: pytest.CaptureFixture[str], subtests: pytest.Subtests
) -> None:
    for code in PROBLEM_CODES:
        with subtests.test(code=code):
            assert main(["check", "--explain", code.lower()]) == 0

            said = capsys.readouterr().out
            assert said.startswith(f"{code}, ")
            assert all(words.strip() for words in said.split("\n\n"))


def test_an_unknown_code_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "--explain", "E4"]) == 2
    assert "E4 is not a code of the check. Did you mean" in capsys.readouterr().err


def test_an_example_is_shown_below_its_meaning() -> None:
    assert describe_problem_code("E43") == (
        "E43, an error, its item is left out: "
        "A foreseen wrong value lies inside the accepted range.\n\n"
        "For example:\n\n"
        "    - [x] `140 GB ± 10%`\n"
        "    - [ ] `150 GB`\n\n"
        "Narrow the tolerance, or delete the wrong value."
    )


def test_a_repository_knows_a_file_that_is_gone(course_folder: Path) -> None:
    if shutil.which("git") is None:
        pytest.skip("git is not installed")
    check_course(course_folder, apply_fixes=True, today=DAY)
    for words in (["init", "-q"], ["add", "ids.lock", "exams"]):
        subprocess.run(["git", *words], cwd=course_folder, check=True)
    (course_folder / "ids.lock").unlink()

    assert is_tracked_by_git(course_folder / "ids.lock")
    assert not is_tracked_by_git(course_folder / "glossary.md")
    assert not is_tracked_by_git(course_folder / "exams/ids.lock")
    assert [p.code for p in check_course(course_folder, today=DAY)] == ["E79"]


def rekeyed(course_folder: Path) -> None:
    quiz = course_folder / "topics/weights/quiz.md"
    text = quiz.read_text()
    quiz.write_text(text.replace("- [x] About 140 GB", "- [x] About 141 GB"))


def read_again(course_folder: Path, day: str) -> None:
    page = course_folder / "topics/weights/concept.md"
    lines = page.read_text().split("\n")
    said = [f"reviewed: {day}" if x.startswith("reviewed:") else x for x in lines]
    page.write_text("\n".join(said))


def test_a_changed_key_asks_for_a_review_until_there_was_one(course_folder: Path) -> None:
    check_course(course_folder, apply_fixes=True, today=DAY)
    rekeyed(course_folder)
    later = DAY + dt.timedelta(days=9)

    assert [p.code for p in check_course(course_folder, apply_fixes=True, today=later)] == ["W19"]

    read_again(course_folder, later.isoformat())
    assert check_course(course_folder, apply_fixes=True, today=later) == []
    assert check_course(course_folder, today=later + dt.timedelta(days=9)) == []


def test_an_edited_reason_asks_for_no_review(course_folder: Path) -> None:
    check_course(course_folder, apply_fixes=True, today=DAY)
    quiz = course_folder / "topics/weights/quiz.md"
    quiz.write_text(quiz.read_text().replace("One byte each would", "One byte would"))

    assert check_course(course_folder, today=DAY + dt.timedelta(days=9)) == []


def test_the_figure_of_a_card_asks_for_a_review(course_folder: Path) -> None:
    cards = course_folder / "topics/weights/cards.md"
    more = "\n### How many bits has a byte?\n<!-- q: c-bits -->\n\nA byte has 8 bits.\n"
    cards.write_text(cards.read_text() + more)
    check_course(course_folder, apply_fixes=True, today=DAY)
    later = DAY + dt.timedelta(days=9)
    cards.write_text(cards.read_text().replace("A byte has 8", "Each has 8"))
    assert check_course(course_folder, today=later) == []

    cards.write_text(cards.read_text().replace("has 8 bits", "has 9 bits"))

    assert [p.code for p in check_course(course_folder, today=later)] == ["W19"]


def test_a_list_of_ids_of_before_is_read_as_it_was(course_folder: Path) -> None:
    check_course(course_folder, apply_fixes=True, today=DAY)
    lock = course_folder / "ids.lock"
    lines = lock.read_text().split("\n")
    lock.write_text("\n".join(x if x[:1] == "#" else " ".join(x.split()[:6]) for x in lines))
    rekeyed(course_folder)

    assert check_course(course_folder, today=DAY + dt.timedelta(days=9)) == []


def test_without_a_code_all_codes_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "--explain"]) == 0

    said = capsys.readouterr().out
    assert [
        code for code in PROBLEM_CODES if f"{code}  {PROBLEM_CODES[code].meaning}\n" not in said
    ] == []


UNNAMED = """
### How wide is FP8?

- [x] One byte
- [ ] Two bytes
- [ ] Four bytes

### What is it called?
<!-- type: short -->

- [x] `byte`
- [ ] `byte`
"""


def test_what_an_item_without_an_id_has_is_told_with_the_missing_id(course_folder: Path) -> None:
    check_course(course_folder, apply_fixes=True, today=DAY)
    quiz = course_folder / "topics/weights/quiz.md"
    quiz.write_text(quiz.read_text() + UNNAMED)
    first = quiz.read_text().split("\n").index("### How wide is FP8?") + 1

    before = [(p.line, p.code) for p in check_course(course_folder, today=DAY)]
    fix_course_files(course_folder, DAY)
    after = [p.code for p in check_course(course_folder, today=DAY)]

    assert before == [
        (first, "E01"),
        (first + 3, "W25"),
        (first + 4, "W25"),
        (first + 7, "E01"),
        (first + 10, "E23"),
        (first + 10, "W25"),
    ]
    assert after == [code for _, code in before if code != "E01"]
    assert "<!-- q: what-is-it-called\ntype: short -->" in quiz.read_text()


def test_a_lock_changes_in_the_lines_of_what_changed_alone(course_folder: Path) -> None:
    check_course(course_folder, apply_fixes=True, today=DAY)
    lock, quiz = course_folder / "ids.lock", course_folder / "topics/weights/quiz.md"
    head, *lines = lock.read_text().split("\n#\n")
    rows = "".join(lines).splitlines(keepends=True)
    turned = f"{head}\n#\n{rows[0]}# A comment of an author.\n{''.join(reversed(rows[1:]))}"
    lock.write_bytes(turned.replace("\n", "\r\n").encode())
    quiz.write_text(quiz.read_text() + MORE)

    fix_course_files(course_folder, DAY)

    old, new = turned.splitlines(), lock.read_bytes().decode().split("\r\n")[:-1]
    added = [line for line in new if line not in old]
    assert [line.split(" ")[0] for line in added] == ["how-wide-is-fp8"]
    assert [line for line in new if line in old] == old
