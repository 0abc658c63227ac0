"""An SVG file on a line of its own: a figure of the page where it is a diagram."""

import re
import shutil
from pathlib import Path

from app.content.course import Course, load_course
from app.markup.model import HtmlBlock

TINY = Path(__file__).parents[1] / "courses" / "tiny"
SVG = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} 60">
  <title>A host</title>
  <desc>One host &amp; nothing else.</desc>
  <g data-region="host">
    <rect class="box" x="10" y="10" width="60" height="40"/>
    <text class="b" x="40" y="34">Host</text>
  </g>
</svg>
"""
LINE = '![A host](host.svg "One host, <no> more.")'


def load_course_with(folder: Path, files: dict[str, str], line: str = LINE) -> Course:
    """The tiny course with `line` and `files` in one page."""
    shutil.copytree(TINY, folder, dirs_exist_ok=True)
    page = folder / "topics" / "weights" / "concept.md"
    page.write_text(f"{page.read_text(encoding='utf-8')}\n\n## Seen\n\n{line}\n")
    for name, text in files.items():
        page.with_name(name).write_text(text, encoding="utf-8")
    return load_course(folder)


def seen(course: Course) -> str:
    pieces = course.topics["weights"].sections[-1].pieces
    return "".join(p.html for p in pieces if isinstance(p, HtmlBlock))


def test_both_drawings_are_in_the_page_with_ids_of_their_own(tmp_path: Path) -> None:
    files = {
        "host.svg": SVG.format(width=680),
        "host.narrow.svg": SVG.format(width=358),
    }
    html = seen(load_course_with(tmp_path, files, f"{LINE}\n\n{LINE}"))

    assert html.count("<figure") == 2
    assert html.count('viewBox="0 0 680') == html.count('viewBox="0 0 358') == 2
    assert "<figcaption>One host, &lt;no&gt; more.</figcaption>" in html
    ids = re.findall(r' id="([^"]+)"', html)
    assert len(ids) == len(set(ids)) == 8
    for name in re.findall(r' aria-(?:labelledby|describedby)="([^"]+)"', html):
        assert name in ids
    assert ">One host &amp; nothing else.</desc>" in html


def test_the_words_of_a_diagram_are_found(tmp_path: Path) -> None:
    course = load_course_with(tmp_path, {"host.svg": SVG.format(width=340)})

    assert "One host, <no> more." in course.topics["weights"].sections[-1].plain


def test_a_file_in_another_language_stays_a_picture(tmp_path: Path) -> None:
    svg = '<svg xmlns="http://www.w3.org/2000/svg"><image href="x.png"/></svg>'
    course = load_course_with(tmp_path, {"host.svg": svg})

    assert '<img src="/concepts/weights/files/host.svg" alt="A host"' in seen(course)
    assert not [p for p in course.problems if p.code == "E58"]


def test_a_diagram_that_is_not_clean_is_no_part_of_the_page(tmp_path: Path) -> None:
    bad = SVG.format(width=340).replace("<rect", "<script>x</script><rect")
    course = load_course_with(tmp_path, {"host.svg": bad})

    assert "<script>" not in seen(course)
    assert "<svg" not in seen(course)
    assert [p.code for p in course.problems if "script" in p.message] == ["E58"]


def test_an_image_within_a_sentence_stays_one(tmp_path: Path) -> None:
    files = {"host.svg": SVG.format(width=340)}
    html = seen(load_course_with(tmp_path, files, f"It is {LINE} this."))

    assert "<img " in html
    assert "<figure" not in html
