"""Markup of other editors is named, and what is only like it isn't."""

# ruff: noqa: RUF001 - characters that are mistaken for others are what is tested

import shutil
from pathlib import Path

import pytest

from app.content.check import check_course
from app.content.misread_markup import report_foreign_markup
from app.markup.markdown_tokens import parse_markdown
from app.markup.problems import ParseContext
from tests.content.test_cases import DAY, PAGE, lay_out

FOREIGN = {
    "*[HTML]: a language": "*[HTML]: a language",
    "alias:: other name": "alias:: other name",
    "水［［H2O］］。": "［［H2O］］",
    "［！NOTE］": "［！NOTE］",
    "[！NOTE]": "[！NOTE]",
    "看[这里]（#one）": "[这里]（#one）",
    "看［这里］（#one）": "［这里］（#one）",
    "｀｀｀": "｀｀｀",
    "＃＃ 一": "＃＃ 一",
    "｜a｜b｜": "｜a｜b｜",
    "＊＊重＊＊": "＊＊重＊＊",
    r"The force \(F\) here": r"\(F\)",
    r"Here \[ H = \frac{W}{F} \] is": r"\[ H = \frac{W}{F} \]",
    r"So \begin{align} a": r"\begin{align}",
    r"The angle \alpha of it": r"\alpha",
    "See https://example.org/a for it": "https://example.org/a",
    "See www.example.org for it": "www.example.org",
    "A ==marked word== here": "==marked word==",
    "An ||unseen word|| here": "||unseen word||",
    "An ++underlined++ word": "++underlined++",
    "A %%private comment%% here": "%%private comment%%",
    "H~2~O": "~2~",
    "x^10^": "^10^",
    "Done :smile: now": ":smile:",
    "See :ref:`there` now": ":ref:",
    "Words.\n{: .lead}": "{: .lead}",
    "[words]{.underline}": "{.underline}",
    "A heading {#anchor}": "{#anchor}",
    "{{< figure >}} and more": "{{< figure >}}",
    "{% include x %}": "{% include x %}",
    "It is {{ site.name }} here": "{{ site.name }}",
    "{{c1::Paris}} is a capital": "{{c1::Paris}}",
    "[b]bold[/b]": "[/b]",
    "Words^[a note of some words] here": "^[a note of some words]",
    "As @doe2020 says": "@doe2020",
    "A block. ^block-1": "^block-1",
    "[TOC]": "[TOC]",
    "[/] half done": "[/]",
    "??? tip": "??? tip",
    ".. note:: words": ".. note:: words",
    "::: {.note}": "::: {.note}",
    '=== "Tab"': '=== "Tab"',
    "== Heading ==": "== Heading ==",
    "+---+---+\n| a | b |": "+---+---+",
    "Term\n:   Its definition.": ":   Its definition.",
    "| a line of a poem": "| a line of a poem",
    "![two](a.svg){width=50%}": "{width=50%}",
    "![two](a.svg){ width=50% }": "{ width=50% }",
    '[words](https://example.org){:target="_blank"}': '{:target="_blank"}',
    "`code`{lang=c} here": "{lang=c}",
    "A heading {-}": "{-}",
    "![two|300x200](a.svg)": "![two|300x200]",
    "It is $$n^2$$ here": "$$n^2$$",
    "So $ n $ is it": "$ n $",
    "So $`n`$ is it": "$`n`$",
}
PLAIN = (
    "a == b == c, and a || b || c",
    "100% of 50%, 5%% is no number",
    "C++ and G++ are languages",
    "`==x==` and `{{x}}` and ``%%x%%``",
    "10:30:45 and std::vector and a:b:c",
    "$x^2^3$ and $\\frac{a}{b}$ and $H~2~O$",
    "an e-mail to a@example.org, or to me@host2024.example",
    "x^2 and 2^10 and ~5 of ~10",
    "\\[not a link\\] and \\[ \\]",
    "[words](https://example.org/{id}) and <https://example.org/==a==>",
    r"C:\Users\name, a\b and \* and line\\",
    "**bold** and ~~struck~~ and [^key]",
    "A set {a, b} of {n} things",
    "#tag and 3 -- 4 --- 5",
    "The ratio is 1:2, or 3 : 4",
    "It costs $ 5 and that $ 6, or 7 US$ and 8 US$",
    "The `set`{n} and $x${n} of it, {a=1}",
    "![a|b](a.svg) and |x|",
)


def foreign(text: str) -> list[str]:
    sheet = ParseContext("x.md", text)
    for token in parse_markdown(text):
        if token.type == "inline":
            report_foreign_markup(token, sheet)
    return [problem.message.split("”")[0].removeprefix("“") for problem in sheet.problems]


@pytest.mark.parametrize("text", FOREIGN)
def test_what_another_editor_means_is_named(text: str) -> None:
    assert FOREIGN[text] in foreign(text)


@pytest.mark.parametrize("text", PLAIN)
def test_what_is_meant_as_it_stands_is_not(text: str) -> None:
    assert foreign(text) == []


def test_it_is_named_with_its_line_in_headings_lists_tables_and_items() -> None:
    text = "## A ==heading==\n\n- one\n- two ==words==\n\n| a | b |\n|---|---|\n| ==c== | d |\n"
    sheet = ParseContext("x.md", text)
    for token in parse_markdown(text):
        if token.type == "inline":
            report_foreign_markup(token, sheet)

    assert [(p.line, p.column) for p in sheet.problems] == [(1, 6), (4, 7), (8, 3)]


@pytest.fixture
def course_folder(tmp_path: Path) -> Path:
    lay_out(tmp_path)
    return tmp_path


def problems(course_folder: Path) -> list[tuple[str, int, str]]:
    return [(p.path, p.line, p.code) for p in check_course(course_folder, today=DAY)]


def test_the_glossary_is_looked_at_as_well(course_folder: Path) -> None:
    glossary = course_folder / "glossary.md"
    glossary.write_text(glossary.read_text() + "\n## Mark\n\nA ==word== is marked.[^herd]\n")
    line = len(glossary.read_text().splitlines())

    assert ("glossary.md", line, "W74") in problems(course_folder)
    assert ("glossary.md", line, "W96") in problems(course_folder)


def test_a_file_with_a_slip_in_its_name_is_named(course_folder: Path) -> None:
    (course_folder / "glossary.md").rename(course_folder / "glossery.md")
    (course_folder / "README.md").write_text("Words.")
    (course_folder / "LICENSE").write_text("Words.")
    (course_folder / "docs").mkdir()
    (course_folder / "exam").mkdir()

    found = [p for p in check_course(course_folder, today=DAY) if p.code == "E00"]
    assert {p.path: p.hint for p in found} == {
        "exam": "Is it to be exams?",
        "glossery.md": "Is it to be glossary.md?",
    }


def test_a_topic_inside_of_another_folder_is_named(course_folder: Path) -> None:
    (course_folder / "topics" / "week1" / "dough").mkdir(parents=True)
    shutil.copy(PAGE, course_folder / "topics" / "week1" / "dough" / "concept.md")

    assert ("topics/week1/dough/concept.md", 1, "E00") in problems(course_folder)


def test_a_title_that_yaml_would_cut_is_named_and_kept(course_folder: Path) -> None:
    page = course_folder / "topics" / "case" / "concept.md"
    page.write_text(page.read_text().replace("title: Case", "title: Case #1 of two"))

    found = [
        p for p in check_course(course_folder, today=DAY) if p.path.endswith("case/concept.md")
    ]
    assert [(p.line, p.code, p.hint) for p in found] == [
        (2, "E10", 'Write title: "Case #1 of two"')
    ]


def test_marks_that_begin_or_end_nothing_are_named() -> None:
    assert foreign("Some **bold **text") == ["**"]
    assert foreign("Some ~~struck text") == ["~~"]
    assert foreign(r"2 ** 3, \*\*kwargs and `**kwargs`") == []


def test_markup_in_a_title_is_named(course_folder: Path) -> None:
    page = course_folder / "topics" / "case" / "concept.md"
    page.write_text(page.read_text().replace("title: Case", 'title: "A **case** of $x$"'))

    assert ("topics/case/concept.md", 2, "W74") in problems(course_folder)


def test_options_on_a_card_are_named(course_folder: Path) -> None:
    page = course_folder / "topics" / "case" / "concept.md"
    page.write_text(page.read_text().replace("One of many.", "- [x] One\n- [ ] Many"))

    found = [p for p in check_course(course_folder, today=DAY) if p.code == "E24"]
    assert [p.message for p in found] == ["A card reads no options in boxes."]


def test_a_number_that_toml_cuts_is_told_with_its_line(course_folder: Path) -> None:
    syllabus = course_folder / "syllabus.toml"
    text = syllabus.read_text()
    first = text.index("[[domains.objectives]]")
    extra = '[[domains.objectives]]\nnumber = 1.10\ntitle = "T"\n\n'
    syllabus.write_text(text[:first] + extra + text[first:])
    line = text[:first].count("\n") + 2

    found = [p for p in check_course(course_folder, today=DAY) if p.code == "E11"]
    assert [(p.path, p.line) for p in found] == [("syllabus.toml", line)]
    assert 'number = "1.10"' in found[0].hint


def test_a_mock_exam_without_a_title_is_named(course_folder: Path) -> None:
    exam = course_folder / "exams" / "short.toml"
    lines = [line for line in exam.read_text().splitlines() if not line.startswith("title")]
    exam.write_text("\n".join(lines) + "\n")

    assert ("exams/short.toml", 1, "W38") in problems(course_folder)
