"""Every rule: the broken file, the exact message, the line."""

import datetime as dt
import re
import shutil
from pathlib import Path

import pytest

from app.content.check import check_course, format_problems
from app.markup.problems import PROBLEM_CODES

CASES = sorted((Path(__file__).parent / "cases").glob("*.md"))
PAGE = Path(__file__).parent / "page.md"
TINY = Path(__file__).parents[1] / "courses" / "tiny"
DAY = dt.date(2026, 11, 21)
PART = re.compile(r"^~~~ (\S+)\n(.*?)^~~~$", re.DOTALL | re.MULTILINE)


def track(folder: Path, name: str) -> None:
    """An index of Git as short as one can be that knows one file."""
    (folder / ".git").mkdir()
    entry = len(name).to_bytes(2) + name.encode() + b"\0"
    (folder / ".git" / "index").write_bytes(b"DIRC" + entry)


def lay_out(folder: Path) -> dict[Path, bytes | None]:
    """A copy of the tiny course with a further topic; all that is in it."""
    shutil.copytree(TINY, folder, dirs_exist_ok=True)
    (folder / "topics" / "case").mkdir()
    shutil.copy(PAGE, folder / "topics" / "case" / "concept.md")
    order(folder)
    return {p: None if p.is_dir() else p.read_bytes() for p in folder.rglob("*")}


def put_back(sound: dict[Path, bytes | None], folder: Path) -> None:
    """Undo all that was done to a course."""
    for path in sorted(folder.rglob("*"), reverse=True):
        if path not in sound:
            path.rmdir() if path.is_dir() else path.unlink()
    for path, content in sound.items():
        if content is not None and not (path.is_file() and path.read_bytes() == content):
            path.write_bytes(content)


def order(folder: Path) -> None:
    register = folder / "syllabus.toml"
    ordered = register.read_text("utf-8").replace('"kv-cache"]', '"kv-cache", "case"]')
    register.write_text(ordered, encoding="utf-8")


def put(case: Path, folder: Path) -> str:
    """Put the files of a case over a course that is laid out; what is expected."""
    expected = ""
    for name, content in PART.findall(case.read_text(encoding="utf-8")):
        if name == "expected":
            expected = content
            continue
        if name == "without":
            (folder / content.strip()).unlink()
            continue
        if name == "tracked":
            track(folder, content.strip())
            continue
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(content, encoding="utf-8")
    order(folder)
    return expected


@pytest.mark.usefixtures("read_once")
def test_each_case_is_reported_word_for_word(tmp_path: Path) -> None:
    sound = lay_out(tmp_path)
    expected, said = {}, {}
    for case in CASES:
        expected[case.stem] = put(case, tmp_path)
        found = format_problems(check_course(tmp_path, today=DAY)).split("\n")[:-1]
        said[case.stem] = "".join(f"{line}\n" for line in found)
        put_back(sound, tmp_path)

    assert said == expected


def test_each_case_is_one_of_its_rule() -> None:
    said = {c: dict(PART.findall(c.read_text("utf-8")))["expected"] for c in CASES}

    assert [c.stem for c in CASES if f" {c.stem[:3]} " not in said[c]] == []


def test_every_rule_has_a_case() -> None:
    told = {code for case in CASES for code in re.findall(r"[EW]\d\d", case.stem)}

    assert told == set(PROBLEM_CODES)
