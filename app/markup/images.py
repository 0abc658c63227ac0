"""Image type and size, read from the first bytes.

Pages write width and height, so that the layout does not move while images load.
"""

import re
import struct
from collections.abc import Iterator

_BEGINNINGS = (
    (re.compile(rb"\x89PNG\r\n\x1a\n"), "png"),
    (re.compile(rb"\xff\xd8\xff"), "jpg"),
    (re.compile(rb"GIF8[79]a"), "gif"),
    (re.compile(rb"RIFF....WEBP", re.DOTALL), "webp"),
    (re.compile(rb"....ftypavi[fs]", re.DOTALL), "avif"),
    # A text file may begin with other text, such as a comment.
    (re.compile(rb"\s*<(?:\?xml|!--|svg)[^\0]*?<?svg", re.DOTALL), "svg"),
)


def image_kind(content: bytes) -> str:
    r"""Return png, jpg, gif, webp, avif or svg; "" for any other content.

    Twelve bytes are enough for all but SVG.

    >>> image_kind(b"GIF89a and more"), image_kind(b"<svg></svg>"), image_kind(b"words")
    ('gif', 'svg', '')
    """
    return next((kind for begin, kind in _BEGINNINGS if begin.match(content)), "")


ENOUGH = 1 << 20
"""The size is within this many bytes, even after a long color profile."""

# JPEG frames that contain a size, and markers without data.
_FRAMES = frozenset({*range(0xC0, 0xD0)} - {0xC4, 0xC8, 0xCC})
_ALONE = frozenset({0x01, *range(0xD0, 0xDA)})
_SIDEWAYS = range(5, 9)  # Exif orientations that rotate the image by 90 degrees.

Size = tuple[int, int]


def image_size(content: bytes) -> Size | None:
    r"""Return width and height in pixels as displayed; None if the content has no size.

    >>> image_size(b"GIF89a\x20\x00\x10\x00"), image_size(b"words")
    ((32, 16), None)
    """
    read = _READERS.get(image_kind(content[:12]))
    try:
        size = read(content) if read else None
    except (struct.error, IndexError):
        return None
    return size if size and min(size) > 0 else None


def _png_size(content: bytes) -> Size:
    width, height = struct.unpack(">II", content[16:24])
    return width, height


def _gif_size(content: bytes) -> Size:
    width, height = struct.unpack("<HH", content[6:10])
    return width, height


def _jpeg_size(content: bytes) -> Size | None:
    turned = False
    for mark, part in _jpeg_segments(content):
        if mark == 0xE1 and part.startswith(b"Exif\0\0"):
            turned = _exif_orientation(part[6:]) in _SIDEWAYS
        if mark in _FRAMES:
            height, width = struct.unpack(">HH", part[1:5])
            return (height, width) if turned else (width, height)
    return None


def _jpeg_segments(content: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield the markers of a JPEG file with their data, up to the pixels."""
    at = 2
    while at + 4 <= len(content) and content[at] == 0xFF:
        mark = content[at + 1]
        if mark == 0xFF or mark in _ALONE:
            at += 1 if mark == 0xFF else 2
            continue
        (length,) = struct.unpack(">H", content[at + 2 : at + 4])
        yield mark, content[at + 4 : at + 2 + length]
        at += 2 + max(2, length)


def _exif_orientation(exif: bytes) -> int:
    order = "<" if exif.startswith(b"II") else ">"
    (first,) = struct.unpack(f"{order}I", exif[4:8])
    (count,) = struct.unpack(f"{order}H", exif[first : first + 2])
    for n in range(count):
        entry = exif[first + 2 + 12 * n : first + 14 + 12 * n]
        tag, _, _, value = struct.unpack(f"{order}HHIH", entry[:10])
        if tag == 0x0112:
            return int(value)
    return 1


def _webp_size(content: bytes) -> Size | None:
    form = content[12:16]
    if form == b"VP8X":
        sides = content[24:27], content[27:30]
        width, height = (1 + int.from_bytes(side, "little") for side in sides)
        return width, height
    if form == b"VP8L":
        bits = int.from_bytes(content[21:25], "little")
        return 1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF)
    if form == b"VP8 ":
        width, height = struct.unpack("<HH", content[26:30])
        return width & 0x3FFF, height & 0x3FFF
    return None


def _avif_size(content: bytes) -> Size | None:
    """Return the size of the largest image in the file; the others are parts or thumbnails."""
    found = [
        struct.unpack(">II", content[m.end() + 4 : m.end() + 12])
        for m in re.finditer(rb"ispe", content)
    ]
    if not found:
        return None
    width, height = max(found, key=lambda size: size[0] * size[1])
    turn = re.search(rb"irot(.)", content, re.DOTALL)
    return (height, width) if turn and turn[1][0] & 1 else (width, height)


_READERS = {
    "png": _png_size,
    "gif": _gif_size,
    "jpg": _jpeg_size,
    "webp": _webp_size,
    "avif": _avif_size,
}
