"""Terms and sources that two courses of one server have in common."""

import datetime as dt
from pathlib import Path

import pytest

from app.authoring.to_do import read_lines_around
from app.cli import main
from app.content.check import check_course, fix_course_files
from app.content.course import load_course
from app.content.live_courses import LiveCourse
from tests.conftest import two_courses

TERMS = """\
# Terms of all courses

## Verband

Was eine Wunde bedeckt.

See: kv-cache

## KV cache

What another course means by it.
"""
SOURCES = """\
[who]
title = "First aid guidelines"
publisher = "World Health Organization"
address = "https://www.who.int/"

[erc]
title = "Another book under a key of the course"
address = "https://www.erc.edu/"
"""


@pytest.fixture
def content(tmp_path: Path) -> Path:
    """The courses `aid` and `sizing`, and beside them what both read."""
    folder = two_courses(tmp_path / "content")
    (folder / "shared").mkdir()
    (folder / "shared" / "glossary.md").write_text(TERMS, encoding="utf-8")
    (folder / "shared" / "sources.toml").write_text(SOURCES, encoding="utf-8")
    return folder


def edit(file: Path, old: str, new: str) -> None:
    text = file.read_text(encoding="utf-8")
    assert old in text
    file.write_text(text.replace(old, new), encoding="utf-8")


def test_both_courses_have_what_is_shared(content: Path) -> None:
    aid, sizing = load_course(content / "aid"), load_course(content / "sizing")

    assert aid.glossary["verband"].meaning.plain == "Was eine Wunde bedeckt."
    assert "verband" in sizing.glossary
    assert aid.sources["who"].publisher == sizing.sources["who"].publisher
    assert aid.sources["who"].path == "shared/sources.toml"


def test_what_a_course_defines_itself_is_its_own(content: Path) -> None:
    aid, sizing = load_course(content / "aid"), load_course(content / "sizing")

    assert "other" not in sizing.glossary["kv-cache"].meaning.plain
    assert aid.glossary["kv-cache"].meaning.plain == "What another course means by it."
    assert aid.sources["erc"].title.startswith("European Resuscitation Council")
    assert sizing.sources["erc"].title.startswith("Another book")


def test_pages_link_and_cite_what_is_shared(content: Path) -> None:
    page = content / "aid" / "topics" / "blutung" / "concept.md"
    edit(page, "kommt zuerst.[^ersthelfer]", "kommt vor dem Verband.[^who]")

    aid = load_course(content / "aid")

    html = aid.topics["blutung"].sections[0].pieces[0].html
    assert '<a class="term" href="/glossary#verband">Verband</a>' in html
    assert "who" in aid.topics["blutung"].sources
    assert not [p for p in aid.problems if p.severity == "error"]


def test_a_course_may_have_no_sources_of_its_own(content: Path) -> None:
    aid = content / "aid"
    (aid / "sources.toml").unlink()
    (aid / "glossary.md").unlink()

    found = check_course(aid)

    assert not [p for p in found if p.code == "E00"]
    assert any(p.code == "E86" and "ersthelfer" in p.message for p in found)


def test_a_problem_is_told_once_where_it_stands(content: Path, capsys) -> None:
    edit(content / "shared" / "sources.toml", "https://www.who.int/", "who.int")
    edit(content / "shared" / "glossary.md", "Was eine Wunde bedeckt.\n", "")

    assert main(["check", str(content)]) == 1

    said = capsys.readouterr().out
    assert said.count("shared/sources.toml:1:1 W17 The source “who” has no https") == 1
    assert said.count("shared/glossary.md:3:1 E10 “Verband” has no meaning.") == 1
    main(["check", str(content / "aid")])
    assert "../shared/glossary.md:3:1 E10 “Verband”" in capsys.readouterr().out


def test_authors_see_the_lines_of_a_shared_file(content: Path) -> None:
    found = read_lines_around(content / "aid", "shared/glossary.md", 3)

    assert [line.text for line in found if line.has_problem] == ["## Verband"]


def test_the_shared_file_is_mended_in_its_place(content: Path) -> None:
    shared = content / "shared" / "glossary.md"
    stale = "[15 GB](calc:inference-memory?model=70B&weights=bf16#weights)"
    edit(shared, "What another course means by it.", f"It takes {stale}.")

    fix_course_files(content / "aid", dt.date(2026, 11, 21))

    assert "[140 GB](calc:" in shared.read_text(encoding="utf-8")
    assert not (content / "aid" / "shared").exists()


def test_a_change_of_a_shared_file_is_live_in_both(content: Path) -> None:
    courses = [LiveCourse(content / name) for name in ("aid", "sizing")]
    before = [one.get_current_course().version for one in courses]
    edit(content / "shared" / "glossary.md", "Was eine Wunde bedeckt", "Ein Tuch")

    for one, version in zip(courses, before, strict=True):
        assert one.get_current_course().glossary["verband"].meaning.plain == "Ein Tuch."
        assert one.get_current_course().version != version


def test_a_shared_folder_that_appears_is_noticed(tmp_path: Path) -> None:
    content = two_courses(tmp_path / "content")
    aid = LiveCourse(content / "aid")
    assert "verband" not in aid.get_current_course().glossary
    (content / "shared").mkdir()
    (content / "shared" / "glossary.md").write_text(TERMS, encoding="utf-8")

    assert "verband" in aid.get_current_course().glossary


def test_a_broken_shared_file_keeps_its_last_good_version(content: Path) -> None:
    aid = LiveCourse(content / "aid")
    aid.get_current_course()
    edit(content / "shared" / "sources.toml", "[who]", "[who")

    now = aid.get_current_course()
    assert "who" in now.sources
    assert "shared/sources.toml" in now.outdated_paths


def test_a_course_of_that_name_shares_nothing(content: Path) -> None:
    syllabus = (content / "aid" / "syllabus.toml").read_text(encoding="utf-8")
    (content / "shared" / "syllabus.toml").write_text(syllabus, encoding="utf-8")

    assert "verband" not in load_course(content / "aid").glossary
