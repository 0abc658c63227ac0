"""`status`: what is not live is seen on the bench, and by nobody else."""

import datetime as dt
import shutil
from pathlib import Path

import pytest

from app.content.check import check
from app.content.live.library import load

TINY = Path(__file__).parents[1] / "courses" / "tiny"
DAY = dt.date(2026, 11, 21)


@pytest.fixture
def course(tmp_path: Path) -> Path:
    return Path(shutil.copytree(TINY, tmp_path / "course"))


def change(file: Path, old: str, new: str) -> None:
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new, 1))


@pytest.mark.parametrize("status", ["draft", "review"])
def test_a_question_that_is_not_live_is_nowhere_but_on_the_bench(
    course: Path, status: str
) -> None:
    change(
        course / "topics/weights/quiz.md", "q: w-grow", f"q: w-grow\nstatus: {status}"
    )

    made = load(course)

    assert "w-grow" not in made.questions
    assert "w-grow" not in made.topics["weights"].questions
    authored = made.as_authored()
    assert authored.questions["w-grow"].status == status
    assert "w-grow" in authored.topics["weights"].questions
    assert made.authored.unfinished == 1


def test_an_item_says_live_in_a_file_of_drafts(course: Path) -> None:
    change(course / "topics/weights/quiz.md", "\n---\n", "\nstatus: draft\n---\n")
    change(course / "topics/weights/quiz.md", "q: w-grow", "q: w-grow\nstatus: live")

    held = {q.id for q in load(course).questions.values() if q.topic == "weights"}

    assert "w-grow" in held
    assert "w-bf16-70b" not in held


def test_a_page_that_is_not_live_takes_its_items_along(course: Path) -> None:
    change(course / "topics/weights/concept.md", "\n---\n", "\nstatus: draft\n---\n")

    made = load(course)

    assert set(made.topics) == {"kv-cache"}
    assert {q.topic for q in made.questions.values()} == {"kv-cache"}
    assert {c.topic for c in made.cards.values()} == {"kv-cache"}
    assert set(made.as_authored().topics) == {"weights", "kv-cache"}


def test_a_course_without_drafts_is_the_same_to_authors(course: Path) -> None:
    made = load(course)

    assert made.as_authored().topics == made.topics
    assert made.authored.unfinished == 0


def test_an_item_that_had_been_live_keeps_its_id(course: Path) -> None:
    check(course, fix=True, today=DAY)
    lock = (course / "ids.lock").read_text()
    change(course / "topics/weights/quiz.md", "q: w-grow", "q: w-grow\nstatus: draft")

    assert check(course, fix=True, today=DAY) == []

    assert "\nw-grow " in (course / "ids.lock").read_text()
    assert (course / "ids.lock").read_text().count("\n") == lock.count("\n")


def test_drafts_do_not_fill_exams_or_serve_objectives(course: Path) -> None:
    for name in ("concept.md", "quiz.md", "cards.md"):
        change(course / "topics/kv-cache" / name, "\n---\n", "\nstatus: draft\n---\n")

    codes = {p.code for p in check(course, today=DAY)}

    assert {"E71", "W73"} <= codes


def test_a_live_page_that_leads_to_a_draft_is_told(course: Path) -> None:
    change(course / "topics/weights/concept.md", "\n---\n", "\nstatus: draft\n---\n")

    found = [p for p in check(course, today=DAY) if p.code == "E61"]

    assert found
    assert {p.message for p in found} == {"“weights” is no live page (status: draft)."}
    assert {p.path for p in found} == {"topics/kv-cache/concept.md"}


def test_an_unknown_status_is_a_draft_and_told(course: Path) -> None:
    quiz = course / "topics/weights/quiz.md"
    change(quiz, "q: w-grow", "q: w-grow\nstatus: finished")

    found = check(course, today=DAY)

    assert [(p.code, p.hint) for p in found] == [
        ("E13", "Write status: draft, review or live.")
    ]
    assert "w-grow" not in load(course).questions
