"""A sound item with one thing broken: which problem the check reports, where, and of what.

Each file of `broken` has the files of one kind of item and a table of causes: what is
written in place of what, and the problems: place, code, and what the message quotes. The
wording of a message is compared in `test_cases` only, once for each code. Nothing is said
of what does no harm.
"""

import collections
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from app.content.check import check_course
from app.content.course import load_course
from tests.amounts import sample
from tests.content.test_cases import DAY, PAGE, TINY, lay_out, put_back

TABLES = sorted((Path(__file__).parent / "broken").glob("*.toml"))
KINDS = {path.stem: tomllib.loads(path.read_text("utf-8")) for path in TABLES}
CASES = [(kind, case) for kind, table in KINDS.items() for case in table["case"]]
QUOTED = re.compile(r"“[^”]*”")


def some(kind: str) -> list[dict[str, Any]]:
    """A quarter of the causes of a kind, a few at least; `make drills`: all."""
    cases = KINDS[kind]["case"]
    return sample(cases, max(4, len(cases) // 4), kind)


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
    """Each problem as its place, its code, and what its message quotes."""
    return "".join(
        " ".join([f"{p.path}:{p.line}:{p.column}", p.code, *QUOTED.findall(p.message)]) + "\n"
        for p in check_course(folder, today=DAY)
    )


@pytest.mark.usefixtures("read_once")
@pytest.mark.parametrize("kind", KINDS)
def test_the_item_is_sound_before_it_is_broken(kind: str, tmp_path: Path) -> None:
    lay_out(tmp_path)
    lay(KINDS[kind].get("files", {}), tmp_path)

    assert told(tmp_path) == ""


@pytest.mark.drawn
@pytest.mark.usefixtures("read_once")
@pytest.mark.parametrize("kind", KINDS)
def test_what_is_broken_is_reported_with_place_and_code(kind: str, tmp_path: Path) -> None:
    sound, files, said = lay_out(tmp_path), KINDS[kind].get("files", {}), {}
    for case in some(kind):
        lay(files, tmp_path)
        edit(files, case["edits"], tmp_path)
        said[case["cause"]] = told(tmp_path)
        put_back(sound, tmp_path)

    assert said == {case["cause"]: case["told"] for case in some(kind)}


def items(folder: Path) -> list[str]:
    """The first words of all that is asked, whatever its id."""
    course = load_course(folder).with_drafts()
    fronts = [card.front.plain for card in course.cards.values()]
    return sorted([q.stem.plain[:20] for q in course.questions.values()] + fronts)


@pytest.mark.drawn
@pytest.mark.usefixtures("read_once")
@pytest.mark.parametrize("kind", KINDS)
def test_an_item_that_is_left_out_is_an_error(kind: str, tmp_path: Path) -> None:
    sound, files = lay_out(tmp_path), KINDS[kind].get("files", {})
    lay(files, tmp_path)
    whole = items(tmp_path)
    for case in some(kind):
        if re.search(r"^\S+ E\d\d\b", case["told"], re.MULTILINE):
            continue
        lay(files, tmp_path)
        edit(files, case["edits"], tmp_path)
        assert (case["cause"], len(items(tmp_path))) == (case["cause"], len(whole))
        put_back(sound, tmp_path)


SLIPS = {
    "no comment": (r"<!-- q:(?s:.*?)-->\n", ""),
    "another key": ("<!-- q:", "<!-- qq:"),
    "a semicolon": ("<!-- q:", "<!-- q;"),
    "an equals sign": ("<!-- q:", "<!-- q ="),
    "no key": ("<!-- q: ", "<!-- "),
    "a wide colon": ("<!-- q:", "<!-- q\uff1a"),
    "a dash": ("<!-- q:", "<!— q:"),
    "an escape": ("<!-- q:", "\\\\<!-- q:"),
    "in code": (r"(<!-- q:(?s:.*?)-->)\n", r"`\1`\n"),
    "indented": ("<!-- q:", "    <!-- q:"),
    "quoted": ("<!-- q:", "> <!-- q:"),
    "on the line of its heading": (r"\n<!-- q:", " <!-- q:"),
    "no hashes": (r"### (.*\n<!-- q:)", r"\1"),
    "glued hashes": (r"### (.*\n<!-- q:)", r"###\1"),
    "too many hashes": (r"### (.*\n<!-- q:)", r"####### \1"),
    "a no-break space": (r"### (.*\n<!-- q:)", "###\u00a0\\1"),
    "bold": (r"### (.*)\n(<!-- q:)", r"**\1**\n\n\2"),
}


@pytest.mark.drawn
@pytest.mark.usefixtures("read_once")
@pytest.mark.parametrize("kind", KINDS)
def test_an_item_that_is_none_any_more_is_an_error(
    kind: str, tmp_path: Path, subtests: pytest.Subtests
) -> None:
    lay_out(tmp_path)
    files = KINDS[kind].get("files", {})
    lay(files, tmp_path)
    whole = items(tmp_path)
    for name, text in files.items():
        for slip, (old, new) in sample(SLIPS.items(), 5, f"{kind} {name}"):
            # Of an exercise without its comment there is nothing left but a heading.
            if "<!-- q:" not in text or (kind, slip) == ("design", "no comment"):
                continue
            with subtests.test(file=name, slip=slip):
                (tmp_path / name).write_text(re.sub(old, new, text, count=1))
                errors = [p for p in check_course(tmp_path, today=DAY) if p.code[0] == "E"]
                assert errors or items(tmp_path) == whole
        lay(files, tmp_path)


def test_every_cause_is_another_one() -> None:
    counts = collections.Counter((kind, case["cause"]) for kind, case in CASES)

    assert [cause for cause, count in counts.items() if count > 1] == []
    assert PAGE.is_file()
    assert TINY.is_dir()
