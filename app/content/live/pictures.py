"""Pictures beside a page: which files may be shown, and what they have to hold."""

import dataclasses
import itertools
import re
from html import unescape
from pathlib import Path

from app.content.identity import closest_word, lies_within
from app.content.model import HtmlBlock, Topic
from app.content.picture_kinds import kind_of
from app.content.picture_sizes import ENOUGH, Size, size_of

# What a file has to hold; the text of an SVG file is looked at elsewhere.
_KINDS = {
    ".svg": "",
    ".png": "png",
    ".jpg": "jpg",
    ".jpeg": "jpg",
    ".webp": "webp",
    ".gif": "gif",
    ".avif": "avif",
}
PICTURES = frozenset(_KINDS)
"""The ends of names of files that are shown."""
_SHOWN = re.compile(r'<img src="/concepts/[^/"]+/files/(?P<file>[^"]+)"')
_MOST_FILES = 1_000  # of a topic, among which a near name is looked for


def image_problem(folder: Path, name: str) -> str:
    """What keeps the file `topics/TOPIC/NAME` from being shown; "" for nothing.

    NAME may have folders in it. A second line names the nearest file there is.
    """
    file, place = folder / name, name.split("/")
    shown = "/".join(place[2:]) or place[-1]
    try:
        if len(place) < 3 or not lies_within(shown) or not file.is_file():
            return f"There is no file “{shown}”.{_near(folder, place)}"
        why = _why_not(file, folder)
    except (OSError, ValueError):
        return f"There is no file “{shown}”."
    return f"“{shown}” {why}." if why else ""


def with_sizes(topic: Topic, folder: Path) -> Topic:
    """The topic with width and height at each picture, so that nothing jumps."""
    if not any(
        isinstance(piece, HtmlBlock) and _SHOWN.search(piece.html)
        for section in topic.sections
        for piece in section.pieces
    ):
        return topic
    own = folder / "topics" / topic.slug

    def sized(found: re.Match[str]) -> str:
        size = _size(own / unescape(found["file"]))
        sides = f' width="{size[0]}" height="{size[1]}"' if size else ""
        return f"{found[0]}{sides}"

    return dataclasses.replace(
        topic,
        sections=tuple(
            dataclasses.replace(
                section,
                pieces=tuple(
                    HtmlBlock(_SHOWN.sub(sized, piece.html))
                    if isinstance(piece, HtmlBlock)
                    else piece
                    for piece in section.pieces
                ),
            )
            for section in topic.sections
        ),
    )


def _size(file: Path) -> Size | None:
    try:
        with file.open("rb") as stream:
            return size_of(stream.read(ENOUGH))
    except (OSError, ValueError):
        return None


def _near(folder: Path, place: list[str]) -> str:
    """The picture of the topic whose name is the nearest, as a second line."""
    topic = folder.joinpath(*place[:2])
    if len(place) < 3 or not lies_within("/".join(place[2:])) or not topic.is_dir():
        return ""
    found = itertools.islice(topic.rglob("*"), _MOST_FILES)
    names = [f.relative_to(topic).as_posix() for f in found if f.suffix in PICTURES]
    near = closest_word("/".join(place[2:]), names)
    return f"\nDid you mean “{near}”?" if near else ""


def _why_not(file: Path, folder: Path) -> str:
    if file.resolve() != folder.resolve() / file.relative_to(folder):
        return "is a link to another file, which is not served"
    if file.suffix not in _KINDS:
        return "is no picture: SVG, PNG, JPEG, WebP, AVIF and GIF are"
    with file.open("rb") as stream:
        start = stream.read(12)
    fine = _KINDS[file.suffix] in {"", kind_of(start)}
    return "" if fine else "does not hold what the end of its name says"
