"""`headroom import` and `headroom export` on a course of two topics."""

import json
import re
import shutil
import zipfile
from pathlib import Path

import pytest

from app.cli import main
from app.content.check import check_course
from app.content.course import load_course
from app.import_export.formats import READERS, WRITERS
from tests.amounts import each_of_sample

pytestmark = pytest.mark.usefixtures("read_once")
TINY = Path(__file__).parents[1] / "courses" / "tiny"
FIRST_AID = TINY.parent / "first-aid"
GIFT = """\
// [tag:objective:1.1] [tag:objective:9.9] [tag:difficulty:2]
::Weights of 7 B::How much memory do the weights take in FP16?{
=14 GB#Two bytes each. ~7 GB#That is one byte. ~28 GB#That is four bytes. }

::Essay::Write about memory.{}

::weights of 7 b::Which format has two bytes per value?{=FP16 =BF16}
"""


@pytest.fixture
def course_folder(tmp_path: Path) -> Path:
    return Path(shutil.copytree(TINY, tmp_path / "course"))


@pytest.fixture
def gift(tmp_path: Path) -> Path:
    path = tmp_path / "some.gift"
    path.write_text(GIFT, encoding="utf-8")
    return path


def take_in(course_folder: Path, path: Path, form: str = "gift", topic: str = "weights") -> int:
    words = ["import", form, str(path), "--topic", topic, "--content", str(course_folder)]
    return main(words)


def errors(course_folder: Path) -> list[str]:
    return [p.message for p in check_course(course_folder) if p.severity == "error"]


def test_what_was_taken_in_passes_the_check_and_is_reported(
    course_folder: Path, gift: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert take_in(course_folder, gift) == 0

    assert errors(course_folder) == errors(TINY)
    assert capsys.readouterr().out.splitlines() == [
        "2 items imported into topics/weights/quiz.md.",
        "1 item refused:",
        "  line 5: Essay: an essay cannot be judged by a program",
        "1 item with a loss; correct by hand what matters:",
        "  line 2: Weights of 7 B: unknown here: 9.9",
    ]


def test_what_stood_in_the_file_stands_there_still(course_folder: Path, gift: Path) -> None:
    quiz = course_folder / "topics" / "weights" / "quiz.md"
    before = quiz.read_text(encoding="utf-8").rstrip()
    take_in(course_folder, gift)

    assert quiz.read_text(encoding="utf-8").startswith(before)
    assert {"weights-of-7-b", "weights-of-7-b-2"} <= set(load_course(course_folder).questions)


def test_a_second_time_nothing_is_doubled(
    course_folder: Path, gift: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    take_in(course_folder, gift)
    before = set(load_course(course_folder).questions)
    capsys.readouterr()
    take_in(course_folder, gift)

    assert set(load_course(course_folder).questions) == before
    assert "the topic has this question already" in capsys.readouterr().out


@each_of_sample("form", sorted(set(READERS) & set(WRITERS)), 2)
def test_a_course_leaves_and_comes_back(course_folder: Path, tmp_path: Path, form: str) -> None:
    target = tmp_path / "out"
    assert main(["export", form, str(target), "--content", str(course_folder)]) == 0
    known = load_course(course_folder)
    for name in ("quiz.md", "cards.md"):
        (course_folder / "topics" / "weights" / name).unlink(missing_ok=True)
    lost = set(known.questions) - set(load_course(course_folder).questions)
    take_in(course_folder, target, form)

    if form != "aiken":  # knows no ids
        assert lost <= set(load_course(course_folder).questions)
    assert errors(course_folder) == errors(TINY)


def draft(path: Path, below: str = "---\n", status: str = "draft") -> None:
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace(below, f"{below}status: {status}\n", 1))


@each_of_sample("form", sorted(WRITERS), 2)
def test_what_is_not_live_stays_and_is_counted(
    course_folder: Path, form: str, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    draft(course_folder / "topics" / "kv-cache" / "concept.md")
    draft(course_folder / "topics" / "weights" / "cards.md", status="review")
    draft(course_folder / "topics" / "weights" / "quiz.md", "<!-- q: w-bf16-70b\n")
    known = load_course(course_folder).with_drafts()
    live = set(load_course(course_folder).questions)
    assert live
    assert not load_course(course_folder).cards

    assert main(["export", form, "-", "--content", str(course_folder)]) == 0

    written, said = capfdbinary.readouterr()
    if form in {"csv", "json", "gift", "moodle"}:
        assert all(name.encode() in written for name in live)
    gone = {*known.questions, *known.cards} - live
    assert not [name for name in gone if name.encode() in written]
    count = int(said.decode().partition(" left out as not live")[0].split()[-2])
    assert count >= 4
    assert b"draft or review" in said


@pytest.mark.parametrize("form", ["qti", "qti21"])
def test_an_item_says_the_language_of_its_course(tmp_path: Path, form: str) -> None:
    target = tmp_path / "out.zip"
    assert main(["export", form, str(target), "--content", str(FIRST_AID)]) == 0
    with zipfile.ZipFile(target) as package:
        items = [package.read(n) for n in package.namelist() if n.startswith("items/")]

    assert items
    assert all(b'xml:lang="de"' in item for item in items)


def test_a_file_of_json_says_the_language_of_its_course(tmp_path: Path) -> None:
    target = tmp_path / "out.json"
    assert main(["export", "json", str(target), "--content", str(FIRST_AID)]) == 0

    assert json.loads(target.read_text(encoding="utf-8"))["language"] == "de"


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--topic", "nowhere"], "There is no topic “nowhere” with a concept.md"),
        (["--topic", "../weights"], "There is no topic “../weights”"),
    ],
)
def test_a_topic_that_is_not_there_is_named(
    course_folder: Path, gift: Path, words: list[str], sentence: str, capsys: object
) -> None:
    status = main(["import", "gift", str(gift), "--content", str(course_folder), *words])

    assert status == 2
    assert sentence in capsys.readouterr().err


def test_a_file_that_is_not_there_is_named(
    course_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert take_in(course_folder, course_folder / "none.gift") == 2
    assert "none.gift cannot be read (No such file or directory)." in (capsys.readouterr().err)


def test_every_item_that_loses_something_is_named(
    course_folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    quiz = course_folder / "topics" / "kv-cache" / "quiz.md"
    text = quiz.read_text(encoding="utf-8")
    match = text[text.index("### Match each part") : text.index("### Complete")]
    more = [match.replace("q: k-match", f"q: k-match-{n}") for n in range(6)]
    quiz.write_text("\n".join([text, *more]), encoding="utf-8")

    words = ["export", "gift", str(tmp_path / "out"), "--content", str(course_folder)]
    assert main(words) == 0

    said = capsys.readouterr().out
    line = next(x for x in said.splitlines() if "titles of its columns" in x)
    names = re.findall(r"([\w-]+) \(topics/kv-cache/quiz\.md:\d+\)", line)
    assert names == ["k-match", *(f"k-match-{n}" for n in range(6))]
    assert "k-order: the wrong steps are listed in the explanation" in said
    assert "hints are appended to the explanation" in said


@pytest.mark.parametrize("content", [b"", b"\xff\x00rubbish\x80", b"PK\x03\x04"])
@pytest.mark.parametrize("form", sorted(READERS))
def test_rubbish_is_refused_in_our_words(
    course_folder: Path, form: str, content: bytes, capsys: pytest.CaptureFixture[str]
) -> None:
    path = course_folder / "some.file"
    path.write_bytes(content)
    before = (course_folder / "topics" / "weights" / "quiz.md").read_bytes()

    status = take_in(course_folder, path, form)

    said = capsys.readouterr()
    assert status == 2 or "0 items imported; nothing was written." in said.out
    if status == 2:
        assert f"{path} cannot be used." in said.err
        assert " is needed." in said.err
    for foreign in ("zip file", "char 0", "codec", "Error"):
        assert foreign not in said.err + said.out
    assert (course_folder / "topics" / "weights" / "quiz.md").read_bytes() == before
