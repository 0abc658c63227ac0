"""Pictures go out with the questions and cards that show them, and come back in."""

import base64
import io
import json
import re
import shutil
import sqlite3
import zipfile
from pathlib import Path
from urllib.parse import unquote

import pytest
from fastapi.testclient import TestClient

from app.cli import main
from app.content.check import check_course
from app.content.live_courses import LiveCourse
from app.import_export.formats import READERS
from app.import_export.items import decode_image_or_empty, make_image_name_or_empty
from app.import_export.xml_files import parse_xml_and_locate_elements
from app.main import create_app
from app.settings import Settings
from tests.amounts import each_of_sample

pytestmark = pytest.mark.usefixtures("read_once")

TINY = Path(__file__).parents[1] / "courses" / "tiny"
PNG = b"\x89PNG\r\n\x1a\n of a rack"
GIF = b"GIF89a of a host"
QUESTION = """
### Which part is marked?
<!-- q: pic-marked
objective: 1.1
-->

![A rack, "seen" from the front](img/rack.png)

- [x] The switch
  > ![A host](host.gif) is what it joins.
- [ ] ![A host](host.gif)
  > That is a host.
- [ ] The power supply
  > It is below.

> [!NOTE]
> See ![A rack, "seen" from the front](img/rack.png) again.
"""
CARD = """
### What is this? ![A rack](img/rack.png)
<!-- q: pic-card
objective: 1.1
-->

A rack with one ![host](host.gif) in it.
"""


@pytest.fixture
def course_folder(tmp_path: Path) -> Path:
    """The tiny course with a question and a card that show pictures."""
    shutil.copytree(TINY, tmp_path / "course")
    topic = tmp_path / "course" / "topics" / "weights"
    (topic / "img").mkdir()
    (topic / "img" / "rack.png").write_bytes(PNG)
    (topic / "host.gif").write_bytes(GIF)
    for name, text in (("quiz.md", QUESTION), ("cards.md", CARD)):
        file = topic / name
        file.write_text(f"{file.read_text(encoding='utf-8').rstrip()}\n{text}")
    return tmp_path / "course"


@pytest.fixture
def other(tmp_path: Path) -> Path:
    """The tiny course as it is."""
    return Path(shutil.copytree(TINY, tmp_path / "other"))


def send(course_folder: Path, form: str, tmp_path: Path) -> Path:
    file = tmp_path / f"out.{form}"
    asked = ["export", form, str(file), "--topic", "weights", "--content", str(course_folder)]
    assert main(asked) == 0
    return file


def take(course_folder: Path, form: str, file: Path) -> None:
    asked = ["import", form, str(file), "--topic", "weights", "--content", str(course_folder)]
    assert main(asked) in {0, 1}  # others of the topic are there already


def errors(course_folder: Path) -> list[str]:
    return [p.message for p in check_course(course_folder) if p.severity == "error"]


def files(course_folder: Path) -> set[bytes]:
    """What the pictures of the topic hold."""
    folder = course_folder / "topics" / "weights"
    kinds = {".png", ".gif"}
    return {f.read_bytes() for f in folder.rglob("*") if f.suffix in kinds}


@each_of_sample("form", ["moodle", "qti", "qti21", "json", "csv"], 2)
def test_a_question_comes_with_its_pictures(
    course_folder: Path, other: Path, tmp_path: Path, form: str
) -> None:
    assert not errors(course_folder)
    before = errors(other)

    take(other, form.removesuffix("21"), send(course_folder, form, tmp_path))

    assert errors(other) == before
    assert files(other) == {PNG, GIF}
    text = (other / "topics" / "weights" / "quiz.md").read_text(encoding="utf-8")
    rack, host = (
        make_image_name_or_empty(PNG, "rack.png"),
        make_image_name_or_empty(GIF, "host.gif"),
    )
    stems = {rack.partition("-")[2], host.partition("-")[2]}
    shown = re.findall(r"!\[([^\]]*)\]\(([^)]*)\)", text)
    assert len(shown) == 4
    assert {words for words, _ in shown} == {'A rack, "seen" from the front', "A host"}
    assert {name.rpartition("-")[2] for _, name in shown} == stems


@each_of_sample("form", ["moodle", "qti", "json"], 1)
def test_what_comes_back_is_the_question_that_was_sent(
    course_folder: Path,
    other: Path,
    tmp_path: Path,
    form: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    take(other, form, send(course_folder, form, tmp_path))
    for place in (other, course_folder):
        capsys.readouterr()

        take(place, form, send(other, form, tmp_path))

        known = re.search(r"has this question already: (.*)", capsys.readouterr().out)
        assert known
        assert "pic-marked" in known[1]
        assert files(place) == {PNG, GIF}


def test_the_same_words_about_another_picture_are_another_question(
    course_folder: Path, other: Path, tmp_path: Path
) -> None:
    take(other, "json", send(course_folder, "json", tmp_path))
    changed = PNG + b" that is another"
    (course_folder / "topics" / "weights" / "img" / "rack.png").write_bytes(changed)

    take(other, "json", send(course_folder, "json", tmp_path))

    assert files(other) == {PNG, GIF, changed}


def test_moodle_finds_each_picture_beside_its_text(course_folder: Path, tmp_path: Path) -> None:
    root = parse_xml_and_locate_elements(send(course_folder, "moodle", tmp_path).read_bytes()).root
    node = next(q for q in root if q.findtext("idnumber") == "pic-marked")

    held = {}
    for holder in node.iter():
        text = holder.findtext("text") or ""
        for address in re.findall(r'src="@@PLUGINFILE@@/([^"]+)"', text):
            files_ = {f.get("name"): f for f in holder.findall("file")}
            file = files_[unquote(address)]
            assert (file.get("path"), file.get("encoding")) == ("/", "base64")
            held[unquote(address)] = base64.b64decode(file.text or "")

    assert held == {"img-rack.png": PNG, "host.gif": GIF}


@pytest.mark.parametrize("form", ["qti", "qti21"])
def test_a_package_of_qti_names_the_pictures_of_each_item(
    course_folder: Path, tmp_path: Path, form: str
) -> None:
    with zipfile.ZipFile(send(course_folder, form, tmp_path)) as package:
        inside = {name: package.read(name) for name in package.namelist()}

    assert inside["images/img-rack.png"] == PNG
    assert inside["images/host.gif"] == GIF
    manifest = parse_xml_and_locate_elements(inside["imsmanifest.xml"]).root
    item = next(r for r in manifest.iter() if "pic-marked" in (r.get("href") or ""))
    resource = next(r for r in manifest.iter() if item.get("href") == r.get("href"))
    named = [f.get("href") for f in resource]
    assert set(named) >= {"images/img-rack.png", "images/host.gif"}
    assert b'src="../images/img-rack.png"' in inside["items/pic-marked.xml"]


def test_anki_gets_the_pictures_of_cards(course_folder: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(send(course_folder, "apkg", tmp_path)) as package:
        names = json.loads(package.read("media"))
        media = {name: package.read(number) for number, name in names.items()}
        collection = tmp_path / "collection.anki2"
        collection.write_bytes(package.read("collection.anki2"))

    assert set(media.values()) == {PNG, GIF}
    with sqlite3.connect(collection) as connection:
        fields = "".join(row[0] for row in connection.execute("SELECT flds FROM notes"))
    connection.close()
    shown = set(re.findall(r'src="([^"]+)"', fields))
    assert shown == set(media)


def test_a_learner_takes_the_pictures_of_the_courses_cards_along(
    course_folder: Path, settings: Settings, clock
) -> None:
    app = create_app(settings, clock, LiveCourse(course_folder))
    with TestClient(app) as client:
        answer = client.post("/flashcards/pic-card/reviews", data={"rating": "3", "token": "one"})
        assert answer.status_code < 400
        packed = client.get("/settings/cards.apkg").content

    with zipfile.ZipFile(io.BytesIO(packed)) as package:
        names = json.loads(package.read("media"))
        assert {package.read(number) for number in names} == {PNG, GIF}


@pytest.mark.parametrize(("form", "words"), [("gift", "A rack"), ("aiken", "A rack")])
def test_formats_without_files_say_that_pictures_stay(
    course_folder: Path,
    tmp_path: Path,
    form: str,
    words: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    text = send(course_folder, form, tmp_path).read_text(encoding="utf-8")

    told = capsys.readouterr().out
    assert "pic-marked: its pictures are not exported, only their descriptions" in told
    assert words in text
    assert "rack.png" not in text


def moodle(stem: str, file: str = "") -> bytes:
    return f"""<quiz><question type="multichoice"><name><text>One</text></name>
<questiontext format="html"><text><![CDATA[{stem}]]></text>{file}</questiontext>
<single>true</single>
<answer fraction="100" format="html"><text>This</text></answer>
<answer fraction="0" format="html"><text>That</text></answer>
</question></quiz>""".encode()


def as_file(content: bytes, name: str = "a rack.png") -> str:
    data = base64.b64encode(content).decode()
    return f'<file name="{name}" path="/" encoding="base64">{data}</file>'


@pytest.mark.parametrize(
    ("stem", "file"),
    [
        ('<img src="@@PLUGINFILE@@/a%20rack.png" alt="A rack">', as_file(PNG)),
        (f'<img src="data:image/png;base64,{base64.b64encode(PNG).decode()}">', ""),
    ],
)
def test_a_picture_of_moodle_is_kept(stem: str, file: str) -> None:
    (item,) = READERS["moodle"](moodle(f"Which? {stem}", file)).items

    (picture,) = item.pictures
    assert decode_image_or_empty(picture) == PNG
    assert f"]({picture.name})" in item.stem
    assert picture.name.endswith(".png")


def test_what_is_no_picture_of_the_file_is_left_out_and_told(
    subtests: pytest.Subtests,
) -> None:
    for stem, file in [
        ('<img src="https://example.org/rack.png" alt="A rack">', ""),
        ('<img src="@@PLUGINFILE@@/rack.png" alt="A rack">', ""),
        ('<img src="@@PLUGINFILE@@/a%20rack.png" alt="A rack">', as_file(b"no")),
        ('<img src="../../secret.png" alt="A rack">', ""),
        ('<img src="data:text/html;base64,PHA+" alt="A rack">', ""),
        ('<img src="data:image/png;base64,!!" alt="A rack">', ""),
        (
            '<img src="@@PLUGINFILE@@/a%20rack.png" alt="A rack">',
            as_file(PNG + bytes(2_000_000)),
        ),
    ]:
        with subtests.test(stem=stem, file=file):
            found = READERS["moodle"](moodle(f"Which? {stem}", file))

            (item,) = found.items
            assert not item.pictures
            assert item.stem == "Which? A rack"
            assert [r.sentence for r in found.losses] == ["a picture (A rack) is left out"]


def test_a_picture_without_words_gets_some_and_is_told() -> None:
    stem = 'Which? <img src="@@PLUGINFILE@@/a%20rack.png">'
    found = READERS["moodle"](moodle(stem, as_file(PNG)))

    assert found.items[0].stem.startswith("Which? ![Picture](img/a-rack-")
    assert "a picture has no words: say what it shows" in [r.sentence for r in found.losses]


def test_canvas_names_its_files_by_a_word_of_its_own() -> None:
    stem = '&lt;img src="$IMS-CC-FILEBASE$/pics/rack.png" alt="A rack"&gt; Which?'
    item = f"""<questestinterop><item ident="i" title="One"><itemmetadata><qtimetadata>
<qtimetadatafield><fieldlabel>question_type</fieldlabel>
<fieldentry>multiple_choice_question</fieldentry></qtimetadatafield>
</qtimetadata></itemmetadata><presentation>
<material><mattext texttype="text/html">{stem}</mattext></material>
<response_lid ident="r" rcardinality="Single"><render_choice>
<response_label ident="1"><material><mattext>Yes</mattext></material></response_label>
<response_label ident="2"><material><mattext>No</mattext></material></response_label>
</render_choice></response_lid></presentation>
<resprocessing><outcomes><decvar varname="SCORE"/></outcomes>
<respcondition><conditionvar><varequal respident="r">1</varequal></conditionvar>
<setvar action="Set" varname="SCORE">100</setvar></respcondition></resprocessing>
</item></questestinterop>"""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as package:
        package.writestr("g1/g1.xml", item)
        package.writestr("web_resources/pics/rack.png", PNG)

    (found,) = READERS["qti"](out.getvalue()).items

    assert [decode_image_or_empty(p) for p in found.pictures] == [PNG]
    assert found.pictures[0].name in found.stem


def test_a_hostile_name_in_a_file_of_ours_leads_nowhere(
    other: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = base64.b64encode(PNG).decode()
    row = {
        "name": "evil",
        "kind": "single",
        "stem": "Which? ![x](../../evil.png) ![y](/etc/passwd)",
        "options": [
            {"text": "This", "right": True, "feedback": "Yes."},
            {"text": "That", "right": False, "feedback": "No."},
            {"text": "Neither", "right": False, "feedback": "No."},
        ],
        "pictures": [{"name": "../../evil.png", "data": data}],
    }
    file = tmp_path / "evil.json"
    file.write_text(json.dumps({"version": 1, "items": [row]}))

    take(other, "json", file)

    assert not list(tmp_path.rglob("evil.png"))
    assert not list(tmp_path.rglob("passwd"))
    assert files(other) == {PNG}
    text = (other / "topics" / "weights" / "quiz.md").read_text(encoding="utf-8")
    assert "passwd" not in text
    assert "the picture /etc/passwd is left out" in capsys.readouterr().out
