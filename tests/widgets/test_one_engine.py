"""Pictures are drawn in one place, with one way to write an element and one scale."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ELEMENT = re.compile(r"<(rect|line|polyline|polygon|circle|text)\s")
# Icons, and pins upon the drawing of an author.
OTHERS = {"_sprite.html", "place.html"}
# The elements, and what surrounds them in a file of its own.
WRITERS = {
    "app/widgets/svg.py",
}


def test_no_template_draws():
    drawing = [
        str(path.relative_to(ROOT))
        for path in sorted((ROOT / "templates").rglob("*.html"))
        if path.name not in OTHERS and ELEMENT.search(path.read_text())
    ]
    assert drawing == []


def test_only_the_engine_writes_elements():
    writing = {
        str(path.relative_to(ROOT))
        for path in (ROOT / "app").rglob("*.py")
        if ELEMENT.search(path.read_text())
    }
    assert writing == WRITERS
