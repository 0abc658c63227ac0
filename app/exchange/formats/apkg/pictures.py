"""Pictures on cards: which files are some, and how they are named."""

import hashlib
import re

from app.cards.names import PICTURES
from app.content.picture_kinds import kind_of

_ADDRESS = re.compile(rf"{PICTURES}([0-9a-f]{{32}}\.[a-z]{{3,4}})")


def name_of(content: bytes) -> str:
    """The name under which a picture is kept; empty for what is none.

    SVG is none: it is a document that may do things.
    """
    kind = kind_of(content)
    if kind in {"", "svg"}:
        return ""
    return f"{hashlib.sha256(content).hexdigest()[:32]}.{kind}"


def names_in(html: str) -> list[str]:
    """The names of the kept pictures that a face shows."""
    return _ADDRESS.findall(html)


def as_files(html: str) -> str:
    """A face whose pictures are files beside it, as in a package."""
    return _ADDRESS.sub(r"headroom-\1", html)


def file_of(name: str) -> str:
    """The name of a kept picture as a file of a package."""
    return f"headroom-{name}"
