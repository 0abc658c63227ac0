"""How long a large course takes to read: 2,000 questions and 200 pages.

Run: python -m benchmarks.content. The course is made of the tiny one in the tests,
copied under other names, so that every rule has something to look at. Each figure is
the median of five fresh processes; `check` is the command with its own start.
"""

import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from app.content.course import load_course

ROOT = Path(__file__).resolve().parents[1]
TINY = ROOT / "tests" / "courses" / "tiny"
SHIPPED = ROOT / "content"
PAGES, QUESTIONS = 200, 2000
ROUNDS = 5
LOAD = "from pathlib import Path; from app.content.course import load_course; "
NOW = "os.times()[:5]"  # of this process and its children, and by the clock
TIMED = f"import os, sys; {LOAD}a = {NOW}; load_course(*map(Path, sys.argv[1:])); b = {NOW}; "
TELL = "print(sum(b[:4]) - sum(a[:4]), b[4] - a[4])"


def main() -> int:
    with tempfile.TemporaryDirectory() as made:
        course_folder, cache = Path(made) / "content", Path(made) / "cache"
        grow(course_folder)
        course = load_course(course_folder, cache)
        print(f"{len(course.topics)} pages, {len(course.questions)} questions")
        show("cold", 3.0, lambda: loaded(course_folder))
        show("from the cache", 0.5, lambda: loaded(course_folder, cache))
        show("check", 1.0, lambda: checked(course_folder))
    return 0


Seconds = tuple[float, float]  # of the processors, by the clock


def loaded(course_folder: Path, *cache: Path) -> Seconds:
    """What a fresh process needs for the course, without its own start."""
    command = [sys.executable, "-c", TIMED + TELL, *map(str, (course_folder, *cache))]
    told = subprocess.run(command, cwd=ROOT, capture_output=True, check=True).stdout
    busy, passed = map(float, told.split())
    return busy, passed


def checked(course_folder: Path) -> Seconds:
    """What the whole command needs, from its start to its end."""
    before = os.times()
    command = [sys.executable, "-m", "app", "check", str(course_folder)]
    subprocess.run(command, cwd=ROOT, capture_output=True, check=True)
    after = os.times()
    return sum(after[2:4]) - sum(before[2:4]), after.elapsed - before.elapsed


def show(label: str, aim: float, work: Callable[[], Seconds]) -> None:
    """Print the medians of some rounds beside the aim."""
    rounds = [work() for _ in range(ROUNDS)]
    busy, passed = (statistics.median(r) for r in zip(*rounds, strict=True))
    print(
        f"{label:16} {passed:5.2f} s   aim {aim:.1f} s   processors {busy:5.2f} s",
        flush=True,
    )


def grow(course_folder: Path, original: Path = TINY, copies: int = 0) -> None:
    """Copy a course until it is large; ids and slugs get a number.

    `copies` of each page, the first included; 0 for the pages and questions of the
    aims, no more and no less.
    """
    shutil.copytree(original, course_folder)
    originals = sorted((course_folder / "topics").iterdir())
    for number in range(1, copies or PAGES // len(originals)):
        for topic in originals:
            name = f"{topic.name}-{number}"
            shutil.copytree(topic, course_folder / "topics" / name)
            for file in (course_folder / "topics" / name).glob("*.md"):
                file.write_text(_renamed(file.read_text(), str(number)))
    (course_folder / "ids.lock").unlink(missing_ok=True)
    if not copies:
        _top_up(course_folder)


def _top_up(course_folder: Path) -> None:
    """Ask the first questions of the quizzes once more, until there are enough."""
    quizzes = sorted(course_folder.glob("topics/*/quiz.md"))
    pages = [quiz.with_name("concept.md") for quiz in quizzes]
    asked = sum(len(_ID.findall(file.read_text())) for file in (*quizzes, *pages))
    for number in range(QUESTIONS - asked):
        round_, at = divmod(number, len(quizzes))
        quiz = quizzes[at]
        again = _HEADING.split(quiz.read_text())[1 + round_]
        with quiz.open("a") as file:
            file.write("\n" + _renamed(again, f"again-{round_}"))


_HEADING = re.compile(r"^(?=### )", re.MULTILINE)
_ID = re.compile(r"<!-- q: ([a-z0-9-]+)")


def _renamed(text: str, suffix: str) -> str:
    return _ID.sub(rf"<!-- q: \1-{suffix}", text)


if __name__ == "__main__":
    sys.exit(main())
