"""How long a large course takes to read: 2,000 questions and 200 pages.

Run: python -m benchmarks.content. The course is made of the tiny one in the tests,
copied under other names, so that every rule has something to look at.
"""

import re
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from app.content.check import check
from app.content.library import load

ROOT = Path(__file__).resolve().parents[1]
TINY = ROOT / "tests" / "courses" / "tiny"
SHIPPED = ROOT / "content"
PAGES, QUESTIONS = 200, 2000
AIMS = {"cold": 3.0, "from the cache": 0.5, "check": 1.0}


def main() -> int:
    with tempfile.TemporaryDirectory() as made:
        course, cache = Path(made) / "content", Path(made) / "cache"
        grow(course)
        library = load(course)
        print(f"{len(library.topics)} pages, {len(library.questions)} questions")
        show("cold", lambda: load(course, cache))
        show("from the cache", lambda: load(course, cache))
        show("check", lambda: check(course))
    return 0


def show(label: str, work: Callable[[], object]) -> None:
    begun = time.perf_counter()
    work()
    seconds = time.perf_counter() - begun
    print(f"{label:16} {seconds:6.2f} s   aim {AIMS[label]:.1f} s", flush=True)


def grow(course: Path, original: Path = TINY, copies: int = 0) -> None:
    """Copy a course until it is large; ids and slugs get a number.

    `copies` of each page, the first included; 0 for as many as the aims ask for.
    """
    shutil.copytree(original, course)
    originals = sorted((course / "topics").iterdir())
    asked = sum(len(ids(topic / "quiz.md")) for topic in originals)
    copies = copies or max(PAGES // len(originals), QUESTIONS // max(asked, 1))
    for number in range(1, copies):
        for topic in originals:
            name = f"{topic.name}-{number}"
            shutil.copytree(topic, course / "topics" / name)
            for file in (course / "topics" / name).glob("*.md"):
                file.write_text(
                    re.sub(
                        r"<!-- q: ([a-z0-9-]+)",
                        rf"<!-- q: \1-{number}",
                        file.read_text(),
                    )
                )
    (course / "ids.lock").unlink(missing_ok=True)


def ids(file: Path) -> list[str]:
    return re.findall(r"<!-- q: ([a-z0-9-]+)", file.read_text())


if __name__ == "__main__":
    sys.exit(main())
