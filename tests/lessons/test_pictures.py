"""Pictures in the folder of a topic, and in folders inside of it."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from app.content.live_courses import LiveCourse
from app.main import create_app
from app.settings import Settings
from tests.amounts import each_of_sample

TINY = Path(__file__).parents[1] / "courses" / "tiny"
PICTURES = {
    "board.png": b"\x89PNG\r\n\x1a\n and more",
    "img/board.jpg": b"\xff\xd8\xff and more",
    "img/old/board.gif": b"GIF89a",
    "img/board.webp": b"RIFF1234WEBP and more",
    "img/board.avif": b"\0\0\0\x1cftypavif and more",
    "img/board.svg": b'<svg xmlns="http://www.w3.org/2000/svg"></svg>',
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The tiny course, with pictures in one topic."""
    shutil.copytree(TINY, tmp_path / "course")
    topic = tmp_path / "course" / "topics" / "weights"
    for name, content in PICTURES.items():
        file = topic / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
    return tmp_path / "course"


def show(folder: Path, name: str) -> None:
    """Have the page show a picture within a sentence."""
    page = folder / "topics" / "weights" / "concept.md"
    text = page.read_text(encoding="utf-8")
    page.write_text(f"{text}\n\n## Seen\n\nA board: ![A board]({name}).\n")


@pytest.fixture
def visit(folder: Path, settings: Settings, clock) -> Callable[[str], tuple[int, str, bytes]]:
    app = create_app(settings, clock, LiveCourse(folder))
    client = TestClient(app)

    def asked(name: str) -> tuple[int, str, bytes]:
        answer = client.get(f"/concepts/weights/files/{name}")
        return answer.status_code, answer.headers["content-type"], answer.content

    return asked


@each_of_sample("name", PICTURES, 2)
def test_a_page_may_show_it(folder: Path, name: str):
    show(folder, name)

    course = LiveCourse(folder).get_current_course()

    assert not [p for p in course.problems if p.code in {"E61", "E62", "E78"}]
    last = course.topics["weights"].sections[-1]
    assert any(
        f'src="/concepts/weights/files/{name}" alt="A board"' in getattr(p, "html", "")
        for p in last.pieces
    )


@each_of_sample("name", PICTURES, 2)
def test_it_is_served_as_what_it_is(visit, name: str):
    status, kind, content = visit(name)

    assert (status, content) == (200, PICTURES[name])
    assert kind.startswith("image/")


def test_nothing_in_it_can_run(folder: Path, settings: Settings, clock):
    """Its own policy takes the place of the one that pages have."""
    app = create_app(settings, clock, LiveCourse(folder))
    with TestClient(app) as client:
        headers = client.get("/concepts/weights/files/img/board.svg").headers

    assert headers.get_list("content-security-policy") == [
        "sandbox; default-src 'none'; style-src 'unsafe-inline'"
    ]
    assert headers["x-content-type-options"] == "nosniff"


def test_what_lies_elsewhere_is_not_served(folder: Path, visit):
    topic = folder / "topics" / "weights"
    (folder / "secret.png").write_bytes(PICTURES["board.png"])
    (topic / "link.png").symlink_to(folder / "secret.png")
    (topic / "linked").symlink_to(folder)

    for name in ("link.png", "linked/secret.png", "img", "..%2f..%2fsecret.png"):
        assert visit(name)[0] == 404


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("linked/secret.png", "is a link to another file"),
        (".hidden/board.png", "not a local file"),
        ("img/../board.png", "not a local file"),
        ("img/none.png", "There is no file “img/none.png”"),
        ("img/false.avif", "does not hold what the end of its name says"),
    ],
)
def test_the_check_says_why_a_picture_is_not_shown(folder: Path, name: str, why: str):
    topic = folder / "topics" / "weights"
    (folder / "secret.png").write_bytes(PICTURES["board.png"])
    (topic / "linked").symlink_to(folder)
    (topic / "img" / "false.avif").write_bytes(PICTURES["board.png"])
    show(folder, name)

    told = [p.message for p in LiveCourse(folder).get_current_course().problems]

    assert any(why in message for message in told), told


def test_a_picture_that_comes_later_is_seen(folder: Path):
    show(folder, "img/later.png")
    live = LiveCourse(folder)
    assert any(p.code == "E61" for p in live.get_current_course().problems)

    (folder / "topics" / "weights" / "img" / "later.png").write_bytes(PICTURES["board.png"])

    assert not any(p.code == "E61" for p in live.get_current_course().problems)


def test_a_drawing_in_a_folder_of_its_own_is_part_of_the_page(folder: Path):
    topic = folder / "topics" / "weights"
    drawing = next(TINY.parents[2].glob("content/topics/*/*.narrow.svg"))
    shutil.copy(drawing, topic / "img" / "host.svg")
    page = topic / "concept.md"
    text = page.read_text(encoding="utf-8")
    page.write_text(f"{text}\n\n## Seen\n\n![A host](img/host.svg)\n")

    course = LiveCourse(folder).get_current_course()

    seen = "".join(getattr(p, "html", "") for p in course.topics["weights"].sections[-1].pieces)
    assert '<svg class="g dia' in seen
    assert 'id="fig-img-host-1-wide-title"' in seen
