"""Width and height of pictures: told by their bytes, and written into the page."""

import shutil
import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.content.course import load_course
from app.markup.images import read_displayed_raster_size

TINY = Path(__file__).parents[1] / "courses" / "tiny"
PNG = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + struct.pack(">II", 640, 480)


def jpeg(*segments: tuple[int, bytes]) -> bytes:
    parts = (struct.pack(">BBH", 0xFF, mark, len(body) + 2) + body for mark, body in segments)
    return b"\xff\xd8" + b"".join(parts)


def exif(orientation: int, order: str = "<") -> bytes:
    name = b"II*\0" if order == "<" else b"MM\0*"
    entry = struct.pack(f"{order}HHIHH", 0x0112, 3, 1, orientation, 0)
    return b"Exif\0\0" + name + struct.pack(f"{order}IH", 8, 1) + entry


FRAME = (0xC2, struct.pack(">BHH", 8, 480, 640))


def test_a_size_is_told_as_a_browser_shows_it(subtests: pytest.Subtests) -> None:
    for content, size in [
        (PNG, (640, 480)),
        (b"GIF87a" + struct.pack("<HH", 640, 480), (640, 480)),
        (jpeg(FRAME), (640, 480)),
        (jpeg((0xE1, exif(1)), FRAME), (640, 480)),
        (jpeg((0xE1, exif(6)), FRAME), (480, 640)),
        (jpeg((0xE1, exif(8, ">")), (0xC4, b"tables"), FRAME), (480, 640)),
        (jpeg((0xE2, b"x" * 60_000), FRAME), (640, 480)),
        (PNG[:20], None),
        (jpeg((0xE0, b"JFIF")), None),
        (b"\x89PNG\r\n\x1a\n" + bytes(16), None),
        (b"<svg></svg>", None),
        (b"RIFF\0\0\0\0WEBPVP8X" + bytes(8) + b"\x7f\x02\0\xdf\x01\0", None),
    ]:
        with subtests.test(content=content, size=size):
            assert read_displayed_raster_size(content) == size


@given(st.sampled_from([PNG, jpeg((0xE1, exif(6)), FRAME)]), st.binary())
def test_no_bytes_are_too_odd(begin: bytes, rest: bytes) -> None:
    for cut in (len(begin) // 2, len(begin)):
        read_displayed_raster_size(begin[:cut] + rest)


def test_a_page_names_the_size_of_its_pictures(tmp_path: Path) -> None:
    course_folder = Path(shutil.copytree(TINY, tmp_path / "course"))
    topic = course_folder / "topics" / "weights"
    (topic / "img").mkdir()
    (topic / "img" / "board.png").write_bytes(PNG)
    (topic / "odd.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    page = topic / "concept.md"
    shown = "![A board](img/board.png) and ![odd](odd.png)"
    page.write_text(f"{page.read_text()}\n\n## Seen\n\nSee {shown}.\n")

    *_, last = load_course(course_folder).topics["weights"].sections
    html = "".join(getattr(piece, "html", "") for piece in last.pieces)

    place = "/concepts/weights/files"
    assert f'<img src="{place}/img/board.png" width="640" height="480" alt=' in html
    assert f'<img src="{place}/odd.png" alt=' in html
