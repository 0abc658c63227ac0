"""`status`: what is not live is seen on the bench, and by nobody else."""

import datetime as dt
import shutil
from pathlib import Path

import pytest

from app.content.check import check_course
from app.content.course import load_course

TINY = Path(__file__).parents[1] / "courses" / "tiny"
DAY = dt.date(2026, 11, 21)


@pytest.fixture
def course_folder(tmp_path: Path) -> Path:
    return Path(shutil.copytree(TINY, tmp_path / "course"))


def change(file: Path, old: str, new: str) -> None:
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new, 1))


@pytest.mark.parametrize("status", ["draft", "review"])
def test_a_question_that_is_not_live_is_nowhere_but_on_the_bench(
    course_folder: Path, status: str
) -> None:
    change(course_folder / "topics/weights/quiz.md", "q: w-grow", f"q: w-grow\nstatus: {status}")

    made = load_course(course_folder)

    assert "w-grow" not in made.questions
    assert "w-grow" not in made.topics["weights"].questions
    authored = made.with_drafts()
    assert authored.questions["w-grow"].status == status
    assert "w-grow" in authored.topics["weights"].questions


def test_an_item_says_live_in_a_file_of_drafts(course_folder: Path) -> None:
    change(course_folder / "topics/weights/quiz.md", "\n---\n", "\nstatus: draft\n---\n")
    change(course_folder / "topics/weights/quiz.md", "q: w-grow", "q: w-grow\nstatus: live")

    held = {q.id for q in load_course(course_folder).questions.values() if q.topic == "weights"}

    assert "w-grow" in held
    assert "w-bf16-70b" not in held


def test_a_page_that_is_not_live_takes_its_items_along(course_folder: Path) -> None:
    change(course_folder / "topics/weights/concept.md", "\n---\n", "\nstatus: draft\n---\n")

    made = load_course(course_folder)

    assert set(made.topics) == {"kv-cache"}
    assert {q.topic for q in made.questions.values()} == {"kv-cache"}
    assert {c.topic for c in made.cards.values()} == {"kv-cache"}
    assert set(made.with_drafts().topics) == {"weights", "kv-cache"}


def test_a_course_without_drafts_is_the_same_to_authors(course_folder: Path) -> None:
    made = load_course(course_folder)

    assert made.with_drafts().topics == made.topics


def test_an_item_that_had_been_live_keeps_its_id(course_folder: Path) -> None:
    check_course(course_folder, apply_fixes=True, today=DAY)
    lock = (course_folder / "ids.lock").read_text()
    change(course_folder / "topics/weights/quiz.md", "q: w-grow", "q: w-grow\nstatus: draft")

    assert check_course(course_folder, apply_fixes=True, today=DAY) == []

    assert "\nw-grow " in (course_folder / "ids.lock").read_text()
    assert (course_folder / "ids.lock").read_text().count("\n") == lock.count("\n")


def told(course_folder: Path, code: str) -> list[tuple[str, str]]:
    found = check_course(course_folder, today=DAY)
    return [(p.message, p.hint) for p in found if p.code == code]


FINISH = (
    "Write their text, then delete the line “status: draft”: "
    "that of concept.md is for its whole topic."
)


def test_drafts_that_would_serve_an_objective_or_fill_an_exam_are_named(
    course_folder: Path,
) -> None:
    for name in ("concept.md", "quiz.md", "cards.md"):
        change(course_folder / "topics/kv-cache" / name, "\n---\n", "\nstatus: draft\n---\n")
    at = "topics/kv-cache"
    every = f"{at}/concept.md, {at}/quiz.md, {at}/cards.md"

    [(uncovered, finish)] = told(course_folder, "W73")
    [(unfilled, count)] = told(course_folder, "E71")

    assert uncovered == (
        "Objective 2.1 has no page and no questions and no cards that learners see."
    )
    assert finish == f"Drafts would count: {every}. {FINISH}"
    assert unfilled == ("The exam asks 2 questions of domain 2, the course has 0 that are live.")
    assert count == (f"Drafts would count: 1 of {at}/concept.md, 7 of {at}/quiz.md. {FINISH}")


def test_cards_and_questions_of_a_live_page_that_are_drafts_are_named(
    course_folder: Path,
) -> None:
    for name in ("quiz.md", "cards.md"):
        change(course_folder / "topics/kv-cache" / name, "\n---\n", "\nstatus: draft\n---\n")
    title, at = "The cache of a conversation", "topics/kv-cache"

    asked, learned = told(course_folder, "W87")

    assert asked == (
        f"“{title}” has 1 question that is live, not five.",
        f"Drafts would count: 7 questions of {at}/quiz.md. {FINISH}",
    )
    assert learned == (
        f"“{title}” has no cards that are live.",
        f"Drafts would count: 2 cards of {at}/cards.md. {FINISH}",
    )


def test_what_drafts_do_not_hold_is_asked_for_beside_them(course_folder: Path) -> None:
    change(course_folder / "topics/kv-cache/cards.md", "\n---\n", "\nstatus: draft\n---\n")
    change(course_folder / "exams/short.toml", "2 = 2", "2 = 40")
    change(
        course_folder / "topics/kv-cache/quiz.md",
        "objective: 2.1",
        "objective: 2.1\nstatus: review",
    )

    assert told(course_folder, "W73")[0][1].startswith("Drafts would count: topics/kv-cache/")
    assert told(course_folder, "E71")[0][1].endswith("Write 32 more beside them, or ask fewer.")


def test_what_exams_never_draw_is_counted_beside_what_they_lack(course_folder: Path) -> None:
    change(course_folder / "exams/short.toml", "2 = 2", "2 = 40")
    change(course_folder / "topics/kv-cache/quiz.md", "\n---\n", "\nlevel: deeper\n---\n")

    [(message, hint)] = told(course_folder, "E71")

    assert message == "The exam asks 40 questions of domain 2, the course has 1 for exams."
    assert hint.startswith("Write more questions, or ask fewer. Exams never draw “level: deeper” (")


def test_a_live_page_that_leads_to_a_draft_is_told(course_folder: Path) -> None:
    change(course_folder / "topics/weights/concept.md", "\n---\n", "\nstatus: draft\n---\n")

    found = [p for p in check_course(course_folder, today=DAY) if p.code == "E61"]

    assert found
    assert {p.message for p in found} == {"“weights” is no live page (status: draft)."}
    assert {p.path for p in found} == {"topics/kv-cache/concept.md"}


def test_an_unknown_status_is_a_draft_and_told(course_folder: Path) -> None:
    quiz = course_folder / "topics/weights/quiz.md"
    change(quiz, "q: w-grow", "q: w-grow\nstatus: finished")

    found = check_course(course_folder, today=DAY)

    assert [(p.code, p.hint) for p in found] == [("E13", "Write status: draft, review or live.")]
    assert "w-grow" not in load_course(course_folder).questions
