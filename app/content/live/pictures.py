"""Pictures beside a page: which files may be shown, and what they have to hold."""

from pathlib import Path

# How a file of each kind begins; the text of an SVG file is looked at elsewhere.
_SIGNS: dict[str, tuple[bytes, ...]] = {
    ".svg": (b"",),
    ".png": (b"\x89PNG\r\n\x1a\n",),
    ".jpg": (b"\xff\xd8\xff",),
    ".jpeg": (b"\xff\xd8\xff",),
    ".webp": (b"RIFF",),
    ".gif": (b"GIF87a", b"GIF89a"),
}
PICTURES = frozenset(_SIGNS)
"""The ends of names of files that are shown."""
_WHERE = "lies in a folder of its own; only the topic's is served"


def flaw_of(folder: Path, name: str) -> str:
    """What keeps the file `topics/TOPIC/NAME` from being shown; "" for nothing."""
    file, place = folder / name, name.split("/")
    shown = "/".join(place[2:]) or place[-1]
    try:
        if not file.is_file():
            return f"There is no file “{shown}”."
        why = _WHERE if len(place) != 3 else _why_not(file)
    except (OSError, ValueError):
        return f"There is no file “{shown}”."
    return f"“{shown}” {why}." if why else ""


def _why_not(file: Path) -> str:
    if file.is_symlink():
        return "is a link to another file, which is not served"
    if file.suffix not in _SIGNS:
        return "is no picture: SVG, PNG, JPEG, WebP and GIF are"
    with file.open("rb") as stream:
        start = stream.read(12)
    fine = start.startswith(_SIGNS[file.suffix])
    if file.suffix == ".webp":
        fine = fine and start[8:] == b"WEBP"
    return "" if fine else "does not hold what the end of its name says"
