"""An id belongs to one item: `ids.lock` says which, and `--fix` refuses in doubt."""

import dataclasses
import datetime as dt
import re
import shutil
from pathlib import Path

import pytest

from app.cli import main
from app.content.check import check_course, fix_course_files, plan_course_file_fixes
from app.content.course import load_course
from app.content.file_reader import parse_file
from app.content.lock_file import format_lock_file, parse_lock_file
from app.markup.problems import ContentProblem, ParseContext
from tests.amounts import each_of_sample

pytestmark = pytest.mark.usefixtures("read_once")
TINY = Path(__file__).parents[1] / "courses" / "tiny"
DAY = dt.date(2026, 11, 21)
QUIZ, OTHER = "topics/weights/quiz.md", "topics/kv-cache/quiz.md"


@pytest.fixture
def course_folder(tmp_path: Path) -> Path:
    """The tiny course with its list of ids."""
    folder = Path(shutil.copytree(TINY, tmp_path / "course"))
    fix_course_files(folder, DAY)
    return folder


def item(course_folder: Path, name: str, path: str = QUIZ) -> str:
    """The Markdown of an item."""
    parts = re.split(r"(?m)^(?=### )", (course_folder / path).read_text())
    return next(p for p in parts if f"q: {name}" in p.split("-->")[0])


def put(course_folder: Path, text: str, path: str = QUIZ, *, above: str = "") -> None:
    """Put an item at the end of a file, or above another one."""
    old = (course_folder / path).read_text()
    if above:
        there = item(course_folder, above, path)
        (course_folder / path).write_text(old.replace(there, f"{text.rstrip()}\n\n{there}"))
    else:
        (course_folder / path).write_text(f"{old.rstrip()}\n\n{text}")


def edit(course_folder: Path, old: str, new: str, path: str = QUIZ) -> None:
    text = (course_folder / path).read_text()
    assert old in text
    (course_folder / path).write_text(text.replace(old, new, 1))


def errors(found: list[ContentProblem]) -> list[tuple[str, str]]:
    """The errors, but for E13: a question among the cards has an id like any other."""
    return [(p.code, p.path) for p in found if p.severity == "error" and p.code != "E13"]


def line_of(course_folder: Path, name: str) -> str:
    lines = (course_folder / "ids.lock").read_text().split("\n")
    return next(line for line in lines if line.startswith(f"{name} "))


PLACES = {
    "above": {"above": "w-bf16-70b"},
    "below": {},
    "in an earlier file": {"path": OTHER},
    "at the head of an earlier file": {"path": OTHER, "above": "k-trade"},
    "in a later file": {"path": "topics/weights/cards.md"},
}


@each_of_sample("where", PLACES, 2)
def test_an_edited_copy_gets_an_id_of_its_own_wherever_it_stands(
    course_folder: Path, where: str
) -> None:
    original = item(course_folder, "w-bf16-70b")
    copy = original.replace("How much memory do", "How much room do")
    copy = copy.replace("[x] About 140", "[ ] About 140\n  > No.\n- [x] Some 142")
    before = line_of(course_folder, "w-bf16-70b")
    put(course_folder, copy, **PLACES[where])  # type: ignore[arg-type]
    path = str(PLACES[where].get("path", QUIZ))

    assert errors(check_course(course_folder, today=DAY)) == [("E08", path)]
    assert (
        load_course(course_folder).questions["w-bf16-70b"].stem.plain.startswith("How much memory")
    )

    fix_course_files(course_folder, DAY)

    assert "How much memory do" in item(course_folder, "w-bf16-70b\n")
    assert "How much room do" in item(course_folder, "w-bf16-70b-2\n", path)
    assert line_of(course_folder, "w-bf16-70b") == before
    assert errors(check_course(course_folder, today=DAY)) == []
    assert plan_course_file_fixes(course_folder, DAY) == []


@pytest.mark.parametrize("path", [OTHER, "topics/weights/cards.md"])
def test_a_copy_that_says_the_same_is_told_by_its_file(course_folder: Path, path: str) -> None:
    original = (course_folder / QUIZ).read_text()
    put(course_folder, item(course_folder, "w-bf16-70b"), path)

    fix_course_files(course_folder, DAY)

    assert (course_folder / QUIZ).read_text() == original
    assert "q: w-bf16-70b-2\n" in (course_folder / path).read_text()


def test_of_two_that_say_the_same_in_one_file_nobody_knows_the_copy(
    course_folder: Path,
) -> None:
    put(course_folder, item(course_folder, "w-bf16-70b"), above="w-smaller")
    before = (course_folder / QUIZ).read_text(), (course_folder / "ids.lock").read_text()

    found = check_course(course_folder, apply_fixes=True, today=DAY)

    assert ((course_folder / QUIZ).read_text(), (course_folder / "ids.lock").read_text()) == before
    [told] = [p for p in found if p.severity == "error"]
    assert (told.code, told.path) == ("E04", QUIZ)
    assert "ids.lock does not tell which of them had it first" in told.message
    assert "write q: alone in its comment" in told.hint
    assert "w-bf16-70b" in load_course(course_folder).questions


def test_where_words_and_file_disagree_nothing_is_written(course_folder: Path) -> None:
    put(course_folder, item(course_folder, "w-bf16-70b"), OTHER)
    edit(course_folder, "How much memory do", "Say how much memory")
    edit(course_folder, "  > One byte each would be FP8 or INT8.", "  > That is half.")
    before = (course_folder / QUIZ).read_text(), (course_folder / "ids.lock").read_text()

    found = check_course(course_folder, apply_fixes=True, today=DAY)

    assert errors(found) == [("E04", OTHER), ("E04", QUIZ)]
    assert ((course_folder / QUIZ).read_text(), (course_folder / "ids.lock").read_text()) == before
    assert "w-bf16-70b" not in load_course(course_folder).questions


def test_an_id_that_the_list_does_not_know_goes_to_none_of_two(course_folder: Path) -> None:
    new = item(course_folder, "w-bf16-70b").replace("w-bf16-70b", "w-new")
    new = new.replace("BF16", "INT2")
    put(course_folder, new)
    put(course_folder, new.replace("How much", "In full, how much"), OTHER)
    before = (course_folder / "ids.lock").read_text()

    found = check_course(course_folder, apply_fixes=True, today=DAY)

    assert errors(found) == [("E04", OTHER), ("E04", QUIZ)]
    assert (course_folder / "ids.lock").read_text() == before
    assert "w-new" not in load_course(course_folder).questions


def test_a_slip_that_takes_the_id_of_another_item_changes_no_history(
    course_folder: Path,
) -> None:
    texts = {p: p.read_text() for p in course_folder.rglob("*.*")}
    edit(course_folder, "q: w-smaller\n", "q: w-grow\n")

    found = check_course(course_folder, apply_fixes=True, today=DAY)

    assert (course_folder / "ids.lock").read_text() == texts[course_folder / "ids.lock"]
    [told] = [p for p in found if p.severity == "error"]
    assert (told.code, told.message) == (
        "E07",
        "“w-grow” stands here with the words of “w-smaller”.",
    )
    assert told.hint.startswith("Write q: w-smaller; or")
    assert (
        "### Which of these make" in (course_folder / QUIZ).read_text().split("\n")[told.line - 1]
    )
    assert load_course(course_folder).questions["w-grow"].type == "true-false"

    edit(course_folder, "q: w-grow\n", "q: w-smaller\n")
    assert check_course(course_folder, today=DAY) == []
    assert plan_course_file_fixes(course_folder, DAY) == []


def test_two_ids_that_changed_places_are_told_and_asked_under_neither(
    course_folder: Path,
) -> None:
    edit(course_folder, "q: w-smaller\n", "q: ?\n")
    edit(course_folder, "q: w-bf16-70b\n", "q: w-smaller\n")
    edit(course_folder, "q: ?\n", "q: w-bf16-70b\n")
    before = (course_folder / "ids.lock").read_text()

    found = check_course(course_folder, apply_fixes=True, today=DAY)

    assert [p.message for p in found if p.severity == "error"] == [
        "“w-smaller” stands here with the words of “w-bf16-70b”.",
        "“w-bf16-70b” stands here with the words of “w-smaller”.",
    ]
    assert (course_folder / "ids.lock").read_text() == before
    assert not {"w-smaller", "w-bf16-70b"} & {*load_course(course_folder).questions}


def test_an_item_that_has_the_right_id_all_the_same_can_be_accepted(
    course_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    new = "### Of what do racks consist?\n<!-- q: w-fp32 -->\n\n- [x] Units\n"
    edit(course_folder, item(course_folder, "w-fp32"), f"{new}- [ ] Yards\n  > No.\n\n")
    found = check_course(course_folder, apply_fixes=True, today=DAY)
    assert "W07" in [p.code for p in found if p.item == "w-fp32"]
    assert "--fix --accept w-fp32" in next(p.hint for p in found if p.item == "w-fp32")

    assert main(["check", str(course_folder), "--fix", "--accept", "w-fp32"]) == 0

    assert "W07" not in {p.code for p in check_course(course_folder, today=DAY)}
    capsys.readouterr()
    assert main(["check", str(course_folder), "--accept", "w-fp32"]) == 2
    assert "add --fix" in capsys.readouterr().err


def test_the_line_of_an_item_in_error_stays_as_it_is(course_folder: Path) -> None:
    before = line_of(course_folder, "w-bf16-70b")
    edit(course_folder, "About 70 GB", "Around 70 GB")
    edit(course_folder, "difficulty: 2", "difficulty: 9")

    check_course(course_folder, apply_fixes=True, today=DAY)
    assert line_of(course_folder, "w-bf16-70b") == before

    edit(course_folder, "difficulty: 9", "difficulty: 2")
    check_course(course_folder, apply_fixes=True, today=DAY)
    assert line_of(course_folder, "w-bf16-70b") != before


def test_a_new_item_in_error_is_entered_once_it_is_sound(course_folder: Path) -> None:
    new = "### How wide is FP8?\n<!-- q: w-fp8\ndifficulty: 9\n-->\n\n- [x] True\n"
    put(course_folder, f"{new}- [ ] False\n  > No.\n")

    check_course(course_folder, apply_fixes=True, today=DAY)
    assert "\nw-fp8 " not in (course_folder / "ids.lock").read_text()

    edit(course_folder, "difficulty: 9", "difficulty: 1")
    check_course(course_folder, apply_fixes=True, today=DAY)
    assert line_of(course_folder, "w-fp8").startswith("w-fp8 true-false ")


APART = {
    "a comment": "\n<!-- TODO -->\n",
    "words": "\nThink of the digits.\n\n",
    "both": "\n<!-- TODO\n-->\n\nThink.\n\n",
}


@pytest.mark.parametrize("between", APART)
def test_an_id_apart_from_its_heading_is_told_and_none_is_written(
    course_folder: Path, between: str
) -> None:
    heading = item(course_folder, "w-grow").split("\n")[0]
    edit(course_folder, "<!-- q: w-grow", f"{APART[between]}<!-- q: w-grow")
    before = (course_folder / QUIZ).read_text(), (course_folder / "ids.lock").read_text()

    found = check_course(course_folder, apply_fixes=True, today=DAY)

    assert ((course_folder / QUIZ).read_text(), (course_folder / "ids.lock").read_text()) == before
    [told] = [p for p in found if p.severity == "error"]
    line = before[0].split("\n").index(heading) + 1
    assert told.code == "E02"
    assert before[0].split("\n")[told.line - 1].startswith("<!-- q: w-grow")
    assert f"right below the heading in line {line};" in told.hint


def test_a_copy_beside_a_broken_original_is_not_taken_for_it(course_folder: Path) -> None:
    put(course_folder, item(course_folder, "w-grow"), OTHER)
    edit(course_folder, "<!-- q: w-grow", "<!-- TODO -->\n<!-- q: w-grow")
    before = (course_folder / OTHER).read_text(), (course_folder / "ids.lock").read_text()

    found = check_course(course_folder, apply_fixes=True, today=DAY)

    assert errors(found) == [("E04", OTHER), ("E02", QUIZ)]
    assert ((course_folder / OTHER).read_text(), (course_folder / "ids.lock").read_text()) == before
    assert "w-grow" not in load_course(course_folder).questions


LOST = {
    "no comment": ("", ""),
    "no key": ("<!-- q: w-smaller", "<!-- w-smaller"),
    "a note": ("<!-- q: w-smaller", "<!-- was: w-smaller -->\n\n<!-- partial"),
}


@pytest.mark.parametrize("how", LOST)
def test_an_item_that_lost_its_id_is_given_no_other(course_folder: Path, how: str) -> None:
    old, new = LOST[how]
    text = item(course_folder, "w-smaller")
    lost = text.replace(old, new, 1) if old else re.sub("(?s)<!--.*?-->\n", "", text)
    edit(course_folder, text, lost)
    before = (course_folder / QUIZ).read_text(), (course_folder / "ids.lock").read_text()

    found = check_course(course_folder, apply_fixes=True, today=DAY)

    assert ((course_folder / QUIZ).read_text(), (course_folder / "ids.lock").read_text()) == before
    [told] = [p for p in found if p.code in {"E01", "E06"}]
    assert before[0].split("\n")[told.line - 1] == text.split("\n")[0]
    assert told.hint.startswith("Write q: w-smaller here; or, if this is another item")


def test_a_misspelled_key_of_an_id_is_told_and_none_is_written(course_folder: Path) -> None:
    edit(course_folder, "<!-- q: w-smaller", "<!-- qq: w-smaller")
    put(course_folder, item(course_folder, "w-grow").replace("w-grow", "w-smaller"), OTHER)
    before = (course_folder / QUIZ).read_text(), (course_folder / "ids.lock").read_text()

    found = check_course(course_folder, apply_fixes=True, today=DAY)

    assert errors(found) == [("E04", OTHER), ("E01", QUIZ)]
    assert ((course_folder / QUIZ).read_text(), (course_folder / "ids.lock").read_text()) == before


def test_a_misspelled_id_is_not_entered_beside_the_right_one(course_folder: Path) -> None:
    edit(course_folder, "q: w-smaller\n", "q: w-smaler\n")
    before = (course_folder / "ids.lock").read_text()

    found = check_course(course_folder, apply_fixes=True, today=DAY)

    assert (course_folder / "ids.lock").read_text() == before
    [told] = [p for p in found if p.severity == "error"]
    assert told.message.endswith("and its words stand here as “w-smaler”.")
    assert (told.code, told.path) == ("E06", QUIZ)

    edit(course_folder, "q: w-smaler\n", "q: w-smaller\n")
    assert check_course(course_folder, today=DAY) == []


def test_an_item_may_have_a_new_id_once_the_old_one_is_retired(course_folder: Path) -> None:
    edit(course_folder, "q: w-smaller\n", "q: w-shrink\n")
    lock = course_folder / "ids.lock"
    old = line_of(course_folder, "w-smaller")
    lock.write_text(lock.read_text().replace(old, old.replace(" - ", " 2026-11-21 ", 1)))

    assert errors(check_course(course_folder, apply_fixes=True, today=DAY)) == []

    assert line_of(course_folder, "w-shrink").startswith("w-shrink multiple 2026-11-21 - ")


def test_a_copy_whose_own_id_is_gone_is_given_it_back_by_its_author(
    course_folder: Path,
) -> None:
    put(course_folder, item(course_folder, "w-grow"), OTHER)
    fix_course_files(course_folder, DAY)
    assert line_of(course_folder, "w-grow-2")
    edit(course_folder, "q: w-grow-2\n", "q: w-grow\n", OTHER)

    found = check_course(course_folder, apply_fixes=True, today=DAY)

    [told] = [p for p in found if p.severity == "error"]
    assert (told.code, told.path) == ("E08", OTHER)
    assert "“w-grow-2”, which is gone: write q: w-grow-2" in told.hint
    assert "w-grow-3" not in (course_folder / OTHER).read_text()


def test_ids_that_the_list_does_not_have_are_named(course_folder: Path) -> None:
    for number in range(4):
        new = f"### How wide is X{number}?\n<!-- q: w-x{number} -->\n\n- [x] True\n"
        put(course_folder, f"{new}- [ ] False\n  > No, it is not {number}.\n")
        told = [p for p in check_course(course_folder, today=DAY) if p.code == "W97"]
        assert f"“w-x{min(number, 0)}”" in told[0].message
        assert len(told) == (number + 1 if number < 2 else 1)
    assert "4 ids are not in ids.lock yet" in told[0].message
    assert (told[0].path, told[0].severity) == (QUIZ, "warning")

    check_course(course_folder, apply_fixes=True, today=DAY)
    assert "W97" not in {p.code for p in check_course(course_folder, today=DAY)}


@pytest.mark.parametrize("ending", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_ids_are_written_into_files_of_every_kind(
    course_folder: Path, ending: str, mark: str
) -> None:
    quiz = course_folder / OTHER
    new = "### Is it so?\n\n- [x] True\n- [ ] False\n  > No.\n\n"
    old = quiz.read_text().split("---\n", 2)[2]
    quiz.write_bytes((mark + (new + old).replace("\n", ending)).encode())

    fix_course_files(course_folder, DAY)

    written = quiz.read_bytes().decode()
    assert written.startswith(f"{mark}### Is it so?{ending}<!-- q: is-it-so -->{ending}")
    assert written.replace(f"<!-- q: is-it-so -->{ending}", "") == (
        mark + (new + old).replace("\n", ending)
    )
    assert plan_course_file_fixes(course_folder, DAY) == []


def test_lines_that_end_in_several_ways_stay_as_they_are(course_folder: Path) -> None:
    text = (course_folder / QUIZ).read_text()
    mixed = text.replace("\n", "\r\n", 9).encode()
    new = b"\n### Is it so?\n\n- [x] True\n- [ ] False\n  > No.\n"
    (course_folder / QUIZ).write_bytes(mixed + new)

    fix_course_files(course_folder, DAY)

    written = (course_folder / QUIZ).read_bytes()
    assert written.startswith(mixed)
    assert written[len(mixed) :].replace(b"<!-- q: is-it-so -->\n", b"") == new


HEADINGS = {
    "underlined": ("Faq: is it so?\n---\n\n", "---\n<!-- q: faq-is-it-so -->\n"),
    "a key": ("### Of what q: is short\n\n", "short\n<!-- q: of-what-q-is-short -->\n"),
    "an empty id": ("### Faq: so?\n<!-- q: -->\n", "so?\n<!-- q: faq-so -->\n"),
    "more": ("### So?\n<!-- q:\ndifficulty: 1\n-->\n", "<!-- q: so\ndifficulty: 1\n"),
}


@each_of_sample("how", HEADINGS, 2)
def test_an_id_is_written_below_the_whole_heading(course_folder: Path, how: str) -> None:
    heading, written = HEADINGS[how]
    put(course_folder, f"{heading}- [x] True\n- [ ] False\n  > No.\n")

    fix_course_files(course_folder, DAY)

    assert written in (course_folder / QUIZ).read_text()
    assert plan_course_file_fixes(course_folder, DAY) == []


COMMENTS = {
    "no space": "<!-- q:w-grow\n",
    "quoted": '<!-- q: "w-grow"\n',
    "on the next line": "<!--\nq: w-grow\n",
    "spaces": "<!--  q:   w-grow\n",
}


@each_of_sample("how", [c for c in COMMENTS if c != "no space"], 1)
def test_the_id_of_a_copy_is_found_however_it_is_written(course_folder: Path, how: str) -> None:
    copy = item(course_folder, "w-grow").replace("<!-- q: w-grow\n", COMMENTS[how])
    copy = copy.replace("### ", "### What does q: w-grow mean? ")
    put(course_folder, copy, above="w-bf16-70b")

    fix_course_files(course_folder, DAY)

    assert COMMENTS[how].replace("w-grow", "w-grow-2") in (course_folder / QUIZ).read_text()
    assert plan_course_file_fixes(course_folder, DAY) == []
    assert errors(check_course(course_folder, today=DAY)) == []


def test_a_fix_that_was_cut_off_between_two_files_is_finished_by_the_next(
    course_folder: Path,
) -> None:
    for path in (OTHER, "topics/weights/cards.md", QUIZ):
        put(course_folder, item(course_folder, "w-grow").replace("### ", "### In a word: "), path)
    made = plan_course_file_fixes(course_folder, DAY)
    assert len(made) == 4
    (course_folder / made[1].path).write_text(made[1].new_text)

    fix_course_files(course_folder, DAY)

    assert plan_course_file_fixes(course_folder, DAY) == []
    assert errors(check_course(course_folder, today=DAY)) == []
    ids = re.findall(
        r"q: (w-grow.*)",
        "".join(
            (course_folder / path).read_text() for path in (OTHER, "topics/weights/cards.md", QUIZ)
        ),
    )
    assert sorted(ids) == ["w-grow", "w-grow-2", "w-grow-3", "w-grow-4"]
    assert load_course(course_folder).questions["w-grow"].place.path == QUIZ


def test_a_list_with_an_id_on_two_lines_is_not_written_anew(course_folder: Path) -> None:
    lock = course_folder / "ids.lock"
    text = lock.read_text()
    again = line_of(course_folder, "w-grow").replace(" - ", " 2026-11-20 ", 1)
    lock.write_text(f"{text}{again}\n")

    found = check_course(course_folder, apply_fixes=True, today=DAY)

    assert ("E11", "ids.lock") in errors(found)
    assert lock.read_text() == f"{text}{again}\n"


def test_lines_of_before_are_read_and_completed(course_folder: Path) -> None:
    lock = course_folder / "ids.lock"
    new, lines = lock.read_text(), []
    facts = {
        fact.id: fact
        for path in course_folder.glob("topics/*/*.md")
        for fact in parse_file(path.read_text(), str(path.relative_to(course_folder))).fingerprints
    }
    for entry in parse_lock_file(ParseContext("ids.lock", new)):
        full = facts[entry.id].sketch_with_comment
        lines.append(
            dataclasses.replace(entry, sketch=full, heading_hash="", body_hash="", path="")
        )
    lock.write_text(format_lock_file(lines))

    assert check_course(course_folder, today=DAY) == []
    fix_course_files(course_folder, DAY)

    assert lock.read_text() == new
