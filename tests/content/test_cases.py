"""Every rule: the broken file, the exact message, the line."""

import datetime as dt
import re
import shutil
from pathlib import Path

import pytest

from app.content.check import check, write
from app.content.codes import RULES

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


def lay_out(case: Path, folder: Path) -> str:
    """Put the files of a case over a copy of the tiny course; what is expected."""
    shutil.copytree(TINY, folder, dirs_exist_ok=True)
    (folder / "topics" / "case").mkdir()
    shutil.copy(PAGE, folder / "topics" / "case" / "concept.md")
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
    register = folder / "syllabus.toml"
    ordered = register.read_text("utf-8").replace('"kv-cache"]', '"kv-cache", "case"]')
    register.write_text(ordered, encoding="utf-8")
    return expected


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.stem)
def test_the_case_is_reported_word_for_word(case: Path, tmp_path: Path) -> None:
    expected = lay_out(case, tmp_path)

    found = check(tmp_path, today=DAY)

    assert "".join(f"{line}\n" for line in write(found).split("\n")[:-1]) == expected


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.stem)
def test_the_case_is_one_of_its_rule(case: Path) -> None:
    expected = dict(PART.findall(case.read_text(encoding="utf-8")))["expected"]

    assert f" {case.stem[:3]} " in expected


def test_every_rule_has_a_case() -> None:
    told = {code for case in CASES for code in re.findall(r"[EW]\d\d", case.stem)}

    assert told == set(RULES)
