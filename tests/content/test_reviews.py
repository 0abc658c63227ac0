"""W19: whatever is right in an item, another key asks for a review of it."""

import datetime as dt
import re
import shutil
from pathlib import Path

import pytest

from app.content.check import check_course

pytestmark = pytest.mark.usefixtures("read_once")
TINY = Path(__file__).parents[1] / "courses" / "tiny"
DAY = dt.date(2026, 11, 21)
LATER = DAY + dt.timedelta(days=9)
NOTED, NO_KEY = re.compile(r" \w{6}@"), " e3b0c4@"
TRUE_FALSE = """\
### Weights are read for every token
<!-- q: read -->

- [x] True
- [ ] False
  > They are.
"""
MATCH = """\
### Match each format with its bytes
<!-- q: bytes
type: match
-->

| Format | Width |
|---|---|
| FP16 | two bytes |
| FP8 | one byte |
| | three bytes |
"""
ORDER = """\
### Put the ways of a weight in order
<!-- q: way
type: order
-->

1. It is read from a disk
2. It is sent to the GPU
3. It is multiplied
"""
DESIGN = """\
### Make room
<!-- q: room
type: design
estimate: serving-capacity
given: {model: llama-3.1-70b, prompt_tokens: 1000, output_tokens: 300, concurrent: 200}
choose: [tensor_parallel, replicas]
accept: [fits, ttft_p95 <= 2 s]
-->
"""
SIGNS = """\
### What is an empty set of Python's dictionaries written as?
<!-- q: signs -->

- [x] `{}`
  > Braces.
- [ ] `[]`
  > A list.
- [ ] `()`
  > A tuple.
"""
CHANGES = {
    "true-false flipped": (TRUE_FALSE, "[x] True\n- [ ]", "[ ] True\n- [x]"),
    "pairs changed": (MATCH, "two bytes |\n| FP8 | one", "one byte |\n| FP8 | two"),
    "steps swapped": (ORDER, "read from a disk\n2. It is sent", "sent\n2. It is read"),
    "a limit moved": (DESIGN, "<= 2 s", "<= 3 s"),
    "what is fixed": (DESIGN, "concurrent: 200", "concurrent: 190"),
    "signs alone": (SIGNS, "[x] `{}`", "[x] `{:}`"),
}


@pytest.fixture
def course_folder(tmp_path: Path) -> Path:
    return Path(shutil.copytree(TINY, tmp_path / "course"))


def with_item(course_folder: Path, item: str) -> Path:
    """The quiz of a course, with one more item, and the list of its ids."""
    quiz = course_folder / "topics/weights/quiz.md"
    quiz.write_text(f"{quiz.read_text()}\n{item}")
    assert [p for p in check_course(course_folder, today=DAY) if p.severity == "error"] == []
    check_course(course_folder, apply_fixes=True, today=DAY)
    return quiz


def edit(quiz: Path, old: str, new: str) -> None:
    text = quiz.read_text()
    assert old in text
    quiz.write_text(text.replace(old, new))


def reviews(course_folder: Path, *, fix: bool = False) -> list[str]:
    found = check_course(course_folder, apply_fixes=fix, today=LATER)
    return [p.item for p in found if p.code == "W19"]


@pytest.mark.parametrize(("item", "old", "new"), CHANGES.values(), ids=CHANGES)
def test_another_key_asks_for_a_review(course_folder: Path, item: str, old: str, new: str) -> None:
    quiz = with_item(course_folder, item)
    assert reviews(course_folder) == []

    edit(quiz, old, new)

    assert len(reviews(course_folder)) == 1


def test_the_order_of_rows_is_no_key(course_folder: Path) -> None:
    quiz = with_item(course_folder, MATCH)

    edit(
        quiz,
        "| FP16 | two bytes |\n| FP8 | one byte |",
        "| FP8 | one byte |\n| FP16 | two bytes |",
    )

    assert reviews(course_folder) == []


def test_a_decoy_is_no_key(course_folder: Path) -> None:
    quiz = with_item(course_folder, MATCH)

    edit(quiz, "| | three bytes |", "| | four bytes |")

    assert reviews(course_folder) == []


@pytest.mark.parametrize("item", [TRUE_FALSE, MATCH, ORDER, DESIGN, SIGNS])
def test_a_key_that_was_never_noted_is_taken_over_quietly(course_folder: Path, item: str) -> None:
    with_item(course_folder, item)
    lock = course_folder / "ids.lock"
    now = lock.read_text()
    rows = [x if " card " in x else NOTED.sub(NO_KEY, x) for x in now.split("\n")]
    lock.write_text("\n".join(rows))
    assert lock.read_text() != now

    assert reviews(course_folder) == []
    assert reviews(course_folder, fix=True) == []

    keys = {x.split()[0]: x.split()[6] for x in lock.read_text().split("\n") if "@" in x}
    was = {x.split()[0]: x.split()[6] for x in now.split("\n") if "@" in x}
    assert keys == was


def test_a_figure_that_comes_into_a_card_asks_for_a_review(course_folder: Path) -> None:
    cards = course_folder / "topics/weights/cards.md"
    more = "\n### What is a byte?\n<!-- q: c-byte -->\n\nA group of bits.\n"
    cards.write_text(cards.read_text() + more)
    check_course(course_folder, apply_fixes=True, today=DAY)

    edit(cards, "A group of bits.", "A bundle of bits.")
    assert reviews(course_folder) == []

    edit(cards, "A bundle of bits.", "A bundle of 8 bits.")
    assert reviews(course_folder) == ["c-byte"]
