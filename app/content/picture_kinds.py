"""Kinds of pictures, told by how their bytes begin and not by their names."""

import re

_BEGINNINGS = (
    (re.compile(rb"\x89PNG\r\n\x1a\n"), "png"),
    (re.compile(rb"\xff\xd8\xff"), "jpg"),
    (re.compile(rb"GIF8[79]a"), "gif"),
    (re.compile(rb"RIFF....WEBP", re.DOTALL), "webp"),
    (re.compile(rb"....ftypavi[fs]", re.DOTALL), "avif"),
    # Of text, other words may come first.
    (re.compile(rb"\s*<(?:\?xml|!--|svg)[^\0]*?<?svg", re.DOTALL), "svg"),
)


def kind_of(content: bytes) -> str:
    r"""png, jpg, gif, webp, avif or svg; "" for what is none of them.

    Twelve bytes are enough for all but SVG.

    >>> kind_of(b"GIF89a and more"), kind_of(b"<svg></svg>"), kind_of(b"words")
    ('gif', 'svg', '')
    """
    return next((kind for begin, kind in _BEGINNINGS if begin.match(content)), "")
