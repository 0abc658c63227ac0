"""A page whose question lost its comment keeps the key to itself."""

import re

import pytest

from app.content.file_reader import parse_file
from app.content.item_splitter import reduce_page_source_to_prose
from app.content.parsed_file import ParsedFile
from app.markup.model import HtmlBlock

PAGE = """---
title: Widths
objective: 1.1
---

## Formats

Words before.

### How wide is an FP32 value?
<!-- q: width -->

- [ ] Two bytes
  > Half of it.
- [x] Four bytes
  > Thirty-two bits.

The reason is arithmetic.

## Afterwards

Words behind, and `[x]` in code.
"""
ASKED = "### How wide is an FP32 value?"
UNNAMED = PAGE.replace("<!-- q: width -->\n", "")
BROKEN = {
    "no comment": PAGE.replace("<!-- q: width -->\n", ""),
    "an open comment": PAGE.replace("width -->", "width"),
    "no heading": PAGE.replace(f"{ASKED}\n", ""),
    "a glued heading": PAGE.replace("### How", "###How"),
    "a misspelled comment": PAGE.replace("<!-- q:", "<!-- question"),
    "a quotation": PAGE.replace("- [", "> - [").replace("<!-- q: width -->\n", ""),
    "no comment, a glued box": UNNAMED.replace("- [x]", "-[x]"),
    "no comment, numbers": UNNAMED.replace("- [", "1. ["),
    "no comment, a check mark": UNNAMED.replace("- [x]", "- [✓]"),
    "no comment, Cyrillic": UNNAMED.replace("- [x]", "- [\u0445]"),
    "no comment, round boxes": UNNAMED.replace("- [x]", "- (x)").replace("[ ]", "( )"),
    "no comment, in a list": UNNAMED.replace("- [", "- Choose:\n  - ["),
    "neither": PAGE.replace(f"{ASKED}\n<!-- q: width -->\n", ""),
}


def html_of(page: ParsedFile) -> str:
    assert page.topic
    pieces = [piece for part in page.topic.sections for piece in part.pieces]
    return "\n".join(piece.html for piece in pieces if isinstance(piece, HtmlBlock))


def test_learners_are_not_shown_the_answers(subtests: pytest.Subtests) -> None:
    for how, text in BROKEN.items():
        with subtests.test(how=how):
            html = html_of(parse_file(text, "topics/widths/concept.md"))

            assert "Words before." in html
            assert "Words behind" in html
            assert not re.search(r"Four bytes|Thirty-two|The reason", html)


def test_programs_are_not_told_the_answers(subtests: pytest.Subtests) -> None:
    for how, text in BROKEN.items():
        with subtests.test(how=how):
            told = reduce_page_source_to_prose(text)

            assert "Words before." in told
            assert "`[x]` in code" in told
            assert not re.search(r"Four bytes|Thirty-two|The reason", told)


def test_the_author_is_told_where_they_are(subtests: pytest.Subtests) -> None:
    for how, text in BROKEN.items():
        with subtests.test(how=how):
            errors = {"E01", "E02", "E10", "E24"}
            told = parse_file(text, "topics/widths/concept.md").problems

            assert [p.line for p in told if p.code in errors and 6 <= p.line <= 18]


TYPED = """### Complete the sentence
<!-- q: width
type: cloze
-->

It takes [[four]] bytes.

1. The first step
2. The second step
"""
OPENINGS = {
    "none": ("<!-- q: width\ntype: cloze\n-->\n", "E54"),
    "half": ("<!-- q", "<- q", "E10"),
    "never begun": ("<!-- q: width\ntype: cloze\n-->", "q: width\ntype: order", "E10"),
    "never ended": ("-->\n", "E10"),
}


@pytest.mark.parametrize("how", OPENINGS)
def test_blanks_and_steps_are_not_shown_either(how: str) -> None:
    old, *new, code = OPENINGS[how]
    asked = TYPED.replace(old, new[0] if new else "")
    page = PAGE.replace("## Afterwards", f"{asked}\n## Afterwards")
    read = parse_file(page, "topics/widths/concept.md")

    assert "Words behind" in html_of(read)
    assert not re.search("four|first step", html_of(read) + reduce_page_source_to_prose(page))
    assert code in {p.code for p in read.problems}


@pytest.mark.parametrize(
    "words", ["`[[domains]]` in code", "[[1]](https://example.org)", "f(x) of (x)"]
)
def test_brackets_of_another_kind_stay(words: str) -> None:
    read = parse_file(PAGE.replace("Words before.", words), "topics/widths/concept.md")

    assert "Words behind" in html_of(read)
    assert {p.code for p in read.problems} == {"E16"}


def test_a_list_without_a_tick_stays() -> None:
    page = PAGE.replace("[x]", "[ ]").replace("<!-- q: width -->\n", "")

    assert "Four bytes" in html_of(parse_file(page, "topics/widths/concept.md"))
    assert "- [ ] Four bytes" in reduce_page_source_to_prose(page)


@pytest.mark.parametrize("link", ["[x](https://example.org)", "[x][1]\n\n[1]: https://example.org"])
@pytest.mark.parametrize("sign", ["", "- "])
def test_a_link_is_no_tick(sign: str, link: str) -> None:
    page = parse_file(PAGE.replace("Words before.", f"{sign}{link}"), "topics/widths/concept.md")

    assert 'href="https://example.org">x</a>' in html_of(page)
    assert {p.code for p in page.problems} == {"E16"}  # the page names no source


TASKS = ("- [x] Buy flour\n- [ ] Buy salt\n", "1. [x] Buy flour\n", "* [x] Buy flour\n")


@pytest.mark.parametrize("tasks", TASKS)
@pytest.mark.parametrize("heading", ["## Before you bake\n\n", "### Flour\n\n", ""])
def test_a_list_of_tasks_on_a_page_stays_one(heading: str, tasks: str) -> None:
    page = PAGE.replace("Words before.", f"Words before.\n\n{heading}{tasks}\nAnd so on.")
    read = parse_file(page, "topics/widths/concept.md")

    assert "☑ Buy flour" in html_of(read)
    assert ("☐ Buy salt" in html_of(read)) == ("salt" in tasks)
    assert "And so on." in html_of(read)
    assert "[x] Buy flour" in reduce_page_source_to_prose(page)
    assert {p.code for p in read.problems} == {"E16"}  # the page names no source
    assert not read.unidentified_items


@pytest.mark.parametrize("heading", ["Which is it?", "どれですか\uff1f", "أيهما\u061f"])
def test_a_ticked_list_below_a_question_is_its_answer(heading: str) -> None:
    page = PAGE.replace("Words before.", f"### {heading}\n\n{TASKS[0]}")
    read = parse_file(page, "topics/widths/concept.md")

    assert "Buy flour" not in html_of(read)
    assert "E01" in {p.code for p in read.problems}


def test_a_heading_of_a_quiz_that_nothing_reads_is_told() -> None:
    quiz = "### What we meant here\n\nThat the reader knows both.\n\n### Later\n"
    read = parse_file(quiz, "topics/widths/quiz.md")

    told, later = read.problems
    assert (told.code, told.line, told.severity) == ("E01", 1, "error")
    assert "put all of it between <!-- and -->" in told.hint
    assert (later.code, later.line) == ("E01", 5)
    assert later.message == "Nothing stands below “Later”, so that it is no question."
    assert not read.unidentified_items


@pytest.mark.parametrize(
    "comment",
    [
        *(
            "<!\u2014 q: width \u2014>",
            "<!\u2013 q: width \u2013>",
            "<!\u2013- q: width -->",
        ),
        *(
            "<!--- q: width --->",
            "<!\u2212\u2212 q: width -->",
            "&lt;!-- q: width --&gt;",
        ),
        *("<q: width>", "[q: width]", "q: width", "// q: width", "{# q: width #}"),
        *('<!-- "q": width -->', "\\<!-- q: width -->", "`<!-- q: width -->`"),
        *("\uff1c!-- q: width --\uff1e", "<!\u2014\ndifficulty: 2\nq: width\n\u2014>"),
        *("    <!-- q: width -->", "<!-- TODO -->\n\n<!\u2014 q: width \u2014>"),
    ],
)
def test_a_question_whose_id_stands_in_no_comment_gets_no_other_id(
    comment: str,
) -> None:
    page = PAGE.replace("<!-- q: width -->", comment)
    read = parse_file(page, "topics/case/quiz.md")

    errors = [p for p in read.problems if p.severity == "error"]
    assert {p.code for p in errors} == {"E10"}
    assert read.unidentified_items == ()
