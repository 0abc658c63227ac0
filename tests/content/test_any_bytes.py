"""Any bytes in any content file: problems with a place, and the rest of the course."""

import json
import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.content.check import format_problems
from app.content.course import Course
from app.content.live_courses import LiveCourse
from tests.amounts import FACTOR

TINY = Path(__file__).parents[1] / "courses" / "tiny"
PATHS = (
    "syllabus.toml",
    "sources.toml",
    "glossary.md",
    "ids.lock",
    "exams/short.toml",
    "topics/weights/concept.md",
    "topics/weights/quiz.md",
    "topics/weights/cards.md",
)
READERS = (PATHS[:2] + PATHS[4:5], PATHS[2:3], PATHS[3:4], PATHS[5:6], PATHS[6:])
"""The files that one reader reads, together."""
LOCK = b"w-grow true-false 2026-01-01 - 1a.2b bcdf:aaaaaa,ghjk:bbbbbb\n"
# What breaks readers: deep, endless, half, or not text at all.
HOSTILE: tuple[bytes, ...] = (
    b"\0",
    b"\xff",
    b"\xed\xa0\x80",
    b"\xef\xbb\xbf",
    "\u2028\u202e\ufdfa\U0001f600".encode(),
    b"1e400",
    b"-1e-400",
    b"9" * 400,
    b"0x" + b"f" * 5_000,
    b"nan",
    b"inf",
    b"{n} {right:,.99f} {a:zz}",
    b"[" * 300,
    b"{" * 300,
    b"- " * 300,
    b"> " * 300,
    b"![" * 300,
    b"<b>" * 300,
    b"<!--",
    b"-->",
    b"`" * 300,
    b"$" * 301,
    b"*_" * 300,
    b"\\" * 301,
    b"|a" * 100 + b"|\n" + b"|-" * 100 + b"|\n|b\n",
    b"```figure bar\nrows:\n  a: 1e308\n  b: 1e308\n```\n",
    b"```calculator inference-memory\nmodel: 70B\ncontext: 1e400\n```\n",
    b"[1 GB](calc:inference-memory?model=1e400B#weights)",
    b"[1](hw:h100-sxm5-80#__class__)",
    b"$\\frac{1}{" + b"{" * 60 + b"}" * 60 + b"}$",
    b"---\n",
    b"&a [*a, *a]\n",
    b"? ? ? a\n",
    b"!!python/object:os.system x\n",
    b"params:\n  n: 1..1e400\nlet:\n  right: n*n*n\n",
    b"type: numeric\n",
    b"type: cloze\n",
    b"[[a|b?c]]",
    b"\r\n\r\r",
    b"a" * 30_000,
    b"[[domains]]\n",
    b"a." * 600 + b"b = 1\n",
)

Workplace = tuple[Path, Path]


@pytest.fixture(scope="module")
def workplace(tmp_path_factory: pytest.TempPathFactory) -> Workplace:
    """A copy of the tiny course with a lock, and the cache of its readings."""
    folder = tmp_path_factory.mktemp("any-bytes")
    course_folder = Path(shutil.copytree(TINY, folder / "course"))
    (course_folder / "ids.lock").write_bytes(LOCK)
    LiveCourse(course_folder, folder / "cache").get_current_course()
    return course_folder, folder / "cache"


def served(workplace: Workplace, path: str, content: bytes) -> Course:
    """What a server that starts now serves of the course with these bytes in a file."""
    course_folder, cache = workplace
    before = (course_folder / path).read_bytes()
    (course_folder / path).write_bytes(content)
    try:
        return LiveCourse(course_folder, cache).get_current_course()
    finally:
        (course_folder / path).write_bytes(before)


def assert_sound(course: Course, path: str) -> None:
    lost = {"weights"} if path == "topics/weights/concept.md" else set()
    assert {"weights", "kv-cache"} - lost <= set(course.topics)
    for problem in course.problems:
        assert problem.line >= 1
        assert problem.column >= 1
        assert problem.path
        assert problem.message
        assert "Headroom failed" not in problem.message
    for form in ("text", "json", "github"):
        format_problems(course.problems, form).encode("utf-8", "strict")


@st.composite
def changed(draw: st.DrawFn) -> tuple[str, bytes]:
    """A file of the course after a few changes of the kinds that accidents make."""
    path = draw(st.sampled_from(PATHS))
    source = TINY / path
    content = source.read_bytes() if source.is_file() else LOCK
    for _ in range(draw(st.integers(1, 4))):
        first, second = sorted(draw(st.lists(st.integers(0, len(content)), min_size=2, max_size=2)))
        new: Sequence[bytes] = (
            content[:first] + draw(st.sampled_from(HOSTILE)) + content[first:],
            content[:first] + content[second:],
            content[:second] + content[first:second] * draw(st.integers(1, 9)) + content[second:],
            content[:first] + draw(st.sampled_from(HOSTILE)) + content[second:],
            content[:first] + draw(st.binary(max_size=20)) + content[second:],
        )
        content = draw(st.sampled_from(range(len(new))).map(new.__getitem__))
    return path, content


@given(st.sampled_from(PATHS), st.binary(max_size=400))
def test_any_bytes_leave_the_rest_of_the_course(
    workplace: Workplace, path: str, content: bytes
) -> None:
    assert_sound(served(workplace, path, content), path)


@given(st.sampled_from(PATHS), st.text(max_size=400))
def test_any_text_leaves_the_rest_of_the_course(
    workplace: Workplace, path: str, content: str
) -> None:
    data = content.encode("utf-8", "surrogatepass")

    assert_sound(served(workplace, path, data), path)


@given(changed())
def test_a_damaged_file_leaves_the_rest_of_the_course(
    workplace: Workplace, damage: tuple[str, bytes]
) -> None:
    path, content = damage

    assert_sound(served(workplace, path, content), path)


@pytest.mark.drawn
def test_what_is_said_of_hostile_bytes_can_be_kept(workplace: Workplace) -> None:
    """Of each piece one file of a reader in turn; `make drills`: in every file."""
    for nth, piece in enumerate(HOSTILE):
        alike = READERS[nth % len(READERS)]
        in_turn = [alike[nth // len(READERS) % len(alike)]]
        for path in in_turn if FACTOR == 1 else PATHS:
            course = served(workplace, path, (workplace[0] / path).read_bytes() + piece)
            assert_sound(course, path)
            assert json.dumps([p.message for p in course.problems])
