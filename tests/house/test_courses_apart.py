"""The app serves any course: the one that is shipped is named by its files alone."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
OURS = re.compile(r"nvidia|nca-aiio", re.IGNORECASE)
ABOUT_HARDWARE = ROOT / "app" / "estimator"


def test_no_code_or_template_names_one_course_or_its_exam() -> None:
    named = [
        f"{path.relative_to(ROOT)}:{number}"
        for folder in ("app", "templates", "static/js")
        for path in sorted((ROOT / folder).rglob("*"))
        if path.suffix in {".py", ".html", ".js"} and not path.is_relative_to(ABOUT_HARDWARE)
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if OURS.search(line)
    ]
    assert named == []
