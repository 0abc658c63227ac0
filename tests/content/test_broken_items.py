"""A sound item with one thing broken: what the check says of it, word for word.

Each file of `broken` has the files of one kind of item and a table of causes: what is
written in place of what, and what is said. Nothing is said of what does no harm.
"""

import collections
import tomllib
from pathlib import Path

import pytest

from app.content.check import check, write
from tests.content.test_cases import DAY, PAGE, TINY, lay_out, put_back

TABLES = sorted((Path(__file__).parent / "broken").glob("*.toml"))
KINDS = {path.stem: tomllib.loads(path.read_text("utf-8")) for path in TABLES}
CASES = [(kind, case) for kind, table in KINDS.items() for case in table["case"]]
ON_PAGE = "topics/case/concept.md"


def lay(files: dict[str, str], folder: Path) -> None:
    """Put the files of a kind over a course that is laid out."""
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")


def edit(files: dict[str, str], edits: list[list[str]], folder: Path) -> None:
    """Make each edit `[file, old, new]`, or `[old, new]` in the files of the kind."""
    for *name, old, new in edits:
        where = name or [n for n, text in files.items() if old in text]
        file = folder / where[0]
        text = file.read_text(encoding="utf-8")
        assert old in text
        file.write_text(text.replace(old, new, 1), encoding="utf-8")


def told(folder: Path) -> str:
    lines = write(check(folder, today=DAY)).split("\n")[:-1]
    return "".join(f"{line}\n" for line in lines)


@pytest.mark.usefixtures("read_once")
@pytest.mark.parametrize("kind", KINDS)
def test_the_item_is_sound_before_it_is_broken(kind: str, tmp_path: Path) -> None:
    lay_out(tmp_path)
    lay(KINDS[kind].get("files", {}), tmp_path)

    assert told(tmp_path) == ""


@pytest.mark.usefixtures("read_once")
@pytest.mark.parametrize("kind", KINDS)
def test_what_is_broken_is_told_word_for_word(kind: str, tmp_path: Path) -> None:
    sound, files, said = lay_out(tmp_path), KINDS[kind].get("files", {}), {}
    for case in KINDS[kind]["case"]:
        lay(files, tmp_path)
        edit(files, case["edits"], tmp_path)
        said[case["cause"]] = told(tmp_path)
        put_back(sound, tmp_path)

    assert said == {case["cause"]: case["told"] for case in KINDS[kind]["case"]}


def test_every_cause_is_another_one() -> None:
    counts = collections.Counter((kind, case["cause"]) for kind, case in CASES)

    assert [cause for cause, count in counts.items() if count > 1] == []
    assert PAGE.is_file()
    assert TINY.is_dir()
