"""GET /cheatsheets: each domain on one page, made of its pages."""

import dataclasses
import re

import pytest
from fastapi.testclient import TestClient

from app.content.course import Course
from app.lessons.page_renderer import (
    SHEET_LETTER_LIMIT,
    build_cheat_sheet,
    list_pages_with_home_domain,
)
from app.markup.model import HtmlBlock, Section

BOX = (
    '<div class="msg exam-box" role="note"><svg></svg><div>\n<p><b>What the exam '
    'tests.</b> Which <a class="term" href="/glossary#x">format</a> fits.'
    '<a class="cite" href="#src-y">[1]</a></p>\n</div></div>\n'
)
HOOK = (
    '<div class="hook">\n<p><b>Two bytes</b> each.</p>\n'
    '<p class="small quiet">Memory hook</p></div>\n'
)
ERROR = (
    '<div class="msg warn" role="note"><svg></svg><div>\n<p><b>Common error.</b> '
    "Bits are not bytes. And more.</p>\n</div></div>\n"
)


@pytest.fixture
def boxed_course(course: Course) -> Course:
    """The tiny course, whose first page has one box of each kind."""
    topic = course.topics["weights"]
    section = Section("x", "X", (HtmlBlock(BOX + HOOK + ERROR),), "", 1.0, 1)
    boxed = dataclasses.replace(topic, sections=(section,))
    return dataclasses.replace(course, topics={**course.topics, "weights": boxed})


def first(boxed_course: Course, **more):
    return build_cheat_sheet(boxed_course, boxed_course.syllabus.domains[0], **more)


def test_every_page_stands_on_one_sheet(course: Course):
    found = [
        t.slug for d in course.syllabus.domains for t in list_pages_with_home_domain(course, d)
    ]

    assert sorted(found) == sorted(course.topics)


def test_a_sheet_leads_to_the_others_with_pages_for_its_objectives(shipped: Course):
    domains = shipped.syllabus.domains
    objectives = [o.number for o in domains[0].objectives]
    served = {
        number
        for topic in list_pages_with_home_domain(shipped, domains[1])
        for number in topic.objectives
        if number in objectives
    }

    led = build_cheat_sheet(shipped, domains[0]).domains_covering_it_too

    assert [domain.number for domain, _ in led] == ["2"]
    assert led[0][1] == ", ".join(n for n in objectives if n in served) == "1.2"
    assert build_cheat_sheet(shipped, domains[2]).domains_covering_it_too == ()


def test_no_line_of_a_sheet_gives_a_task_in_place_of_a_fact(shipped: Course):
    task = re.compile(r"(Describe|Compare) .*\.")
    for domain in shipped.syllabus.domains:
        for entry in build_cheat_sheet(shipped, domain).entries:
            said = " ".join(re.sub("<[^>]+>", "", text) for text in entry.tested_html)
            assert not task.match(said), entry.slug


def test_boxes_lose_their_lead_and_their_links(boxed_course: Course):
    entry = first(boxed_course).entries[0]

    assert entry.tested_html == ("<p>Which format fits.</p>",)
    assert entry.hooks_html == ("<p><b>Two bytes</b> each.</p>",)
    assert entry.common_errors == ("Bits are not bytes.",)


def test_no_line_of_a_sheet_is_a_label_with_a_name(shipped: Course):
    """“Language models: NeMo.” says nothing alone, and a sheet may cut what follows."""
    label = re.compile(r"[^.:,]{1,50}: [^.:,]{1,40}\.")
    for domain in shipped.syllabus.domains:
        for entry in build_cheat_sheet(shipped, domain).entries:
            said = " ".join(re.sub("<[^>]+>", "", text) for text in entry.tested_html)
            lines = re.split(r"(?<=\.)\s+", said.strip())
            assert [line for line in lines if label.fullmatch(line)] == []


def test_errors_and_terms_give_way_where_there_is_no_room(boxed_course: Course):
    sheet = first(boxed_course, letter_limit=0)

    assert sheet.entries[0].hooks_html
    assert sheet.entries[0].common_errors == sheet.entries[0].terms == ()


def test_own_lines_are_cut_and_few(boxed_course: Course):
    sheet = first(boxed_course, note_texts=["a\nb", " ", "x" * 300, "c", "d", "e"])

    assert sheet.note_lines[0] == "a"
    assert len(sheet.note_lines) == 4
    assert max(map(len, sheet.note_lines)) == 140


def test_a_sheet_is_never_fuller_than_its_page(boxed_course: Course):
    filled, bare = first(boxed_course), first(boxed_course, letter_limit=0)

    assert bare.letter_count < filled.letter_count <= SHEET_LETTER_LIMIT


def test_the_page_shows_domain_share_and_notes(rosa: TestClient, course: Course):
    topic = course.topics["weights"]
    section = next(s.anchor for s in topic.sections if s.anchor)
    noted = {"section": section, "words": "Two <bytes>\nsecond line"}
    rosa.post("/concepts/weights/notes", data=noted)
    domain = next(
        d for d in course.syllabus.domains if topic in list_pages_with_home_domain(course, d)
    )

    page = rosa.get(f"/cheatsheets/{domain.number}").text

    assert f"{domain.title} on one page" in page
    assert f"{round(domain.weight * 100)}% of" in page
    assert "<p>Two &lt;bytes&gt;</p>" in page
    assert "second line" not in page


def test_the_list_leads_to_each(client: TestClient, course: Course):
    page = client.get("/cheatsheets").text

    for domain in course.syllabus.domains:
        assert f'href="/cheatsheets/{domain.number}"' in page
    assert client.get("/cheatsheets/99").status_code == 404


def test_a_page_beyond_the_exam_stands_on_none(course: Course):
    deeper = dataclasses.replace(course.topics["weights"], level="deeper")
    topics = {**course.topics, "weights": deeper}
    boxed_course = dataclasses.replace(course, topics=topics)

    found = [
        t.slug
        for d in boxed_course.syllabus.domains
        for t in list_pages_with_home_domain(boxed_course, d)
    ]

    assert "weights" not in found


def test_of_pages_too_many_for_a_sheet_most_say_what_is_tested(shipped: Course):
    domain = shipped.syllabus.domains[0]

    entries = build_cheat_sheet(shipped, domain).entries

    assert sum(any(entry.tested_html) for entry in entries) > 0.7 * len(entries)
