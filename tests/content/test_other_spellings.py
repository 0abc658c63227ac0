"""What people write in place of our forms is told with the form that is meant."""

from pathlib import Path

import pytest

from app.content.check import check_course
from app.content.course import load_course
from app.content.file_reader import parse_file
from app.content.parsed_file import FirstMentionLinker, compile_glossary_names
from tests.amounts import each_of_sample
from tests.content.test_cases import DAY, lay_out
from tests.content.test_picture_sizes import PNG

HEAD = "---\ntitle: T\nobjective: 1.1\nsource: a\n---\n\n### Which is it?\n<!-- q: one\n"
TWO = "- [x] Word\n- [ ] Other\n  > No.\n"


def told(text: str, path: str = "topics/a/quiz.md") -> list[tuple[str, str]]:
    return [(p.code, p.hint) for p in parse_file(text, path).problems if p.code != "W22"]


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("word", "short"),
        ("lab", "console"),
        ("number", "numeric"),
        ("multiple choice", "single, or multiple if several are right"),
        ("Multiple-Choice", "single, or multiple if several are right"),
        ("sort", "order"),
        ("fill_in_the_blank", "cloze"),
        ("flashcard", "card"),
    ],
)
def test_other_names_of_types_are_known(name: str, meant: str) -> None:
    assert told(f"{HEAD}type: {name}\n-->\n\n{TWO}") == [("E13", f"Write type: {meant}.")]


@pytest.mark.parametrize(
    ("key", "said"),
    [
        ("tolerance: 5%", "Write it behind the number: `50 g ± 2%`."),
        ("points: 2", "Delete it: all questions weigh the same."),
        ("options: a", "Tick the right answer: - [x] text."),
        ("topic: a", "Delete it: the folder of the file is its topic."),
    ],
)
def test_other_keys_have_a_remedy(key: str, said: str) -> None:
    assert told(f"{HEAD}{key}\n-->\n\n{TWO}") == [("E12", said)]


def test_an_unknown_key_lists_each_known_one_once() -> None:
    ((code, hint),) = told(f"{HEAD}zzzzz: a\n-->\n\n{TWO}")
    keys = hint.removeprefix("Known: ").removesuffix(".").split(", ")

    assert code == "E12"
    assert len(keys) == len(set(keys)) > 10


def test_ranges_and_tolerances_in_words_are_told_as_they_are_written_here() -> None:
    spans = "- [x] `900 to 1100 W`\n- [ ] `1200 to 1300 W`\n  > No.\n"
    typed = "write a range with two dots: `900 .. 1100 W`"
    assert [hint for code, hint in told(f"{HEAD}-->\n\n{spans}") if typed in hint]
    ((code, hint),) = told(f"{HEAD}-->\n\n- [x] `1000 +- 5 W`\n")
    assert (code, hint) == (
        "E42",
        "Write the unit behind the number as well: 1000 W ± 5 W.",
    )
    ((code, hint),) = told(f"{HEAD}-->\n\n- [x] `900 to 1100 W`\n")
    assert code == "E22"
    assert "`40 .. 60 g`" in hint


@pytest.mark.parametrize("begin", ["Hint:", "**Hint:**", "**Tip**:", "> **Hint:**", "> Hint:"])
def test_a_hint_without_its_box_is_told(begin: str) -> None:
    (told_,) = told(f"{HEAD}-->\n\n{TWO}\n{begin} words.\n")

    assert told_[0] == "W74"
    assert "> [!TIP]" in told_[1]


@pytest.mark.parametrize("text", ["Explanation: words.", "Hints are words.", "Tip the scale."])
def test_other_text_below_the_answers_is_the_explanation(text: str) -> None:
    assert told(f"{HEAD}-->\n\n{TWO}\n{text}\n") == []


QUOTES = {
    "> **Note**\n> Words.": "NOTE",
    "> **Warning:** words.": "WARNING",
    "> Tip: words.": "TIP",
    "> \u26a0\ufe0f Words.": "WARNING",
    "> \U0001f4d8 Words.": "NOTE",
    "> [!info]\n> Words.": "NOTE",
    "> [!danger] Title\n> Words.": "WARNING",
}


@pytest.fixture
def page(tmp_path: Path) -> Path:
    lay_out(tmp_path)
    return tmp_path / "topics" / "case" / "concept.md"


def page_problems(page: Path, text: str) -> list[tuple[str, str]]:
    page.write_text(page.read_text("utf-8").replace("## Check", f"{text}\n\n## Check"), "utf-8")
    return [(p.code, p.hint) for p in check_course(page.parents[2], today=DAY)]


@each_of_sample("quote", QUOTES, 2)
def test_boxes_of_other_editors_are_told(page: Path, quote: str) -> None:
    ((code, hint),) = page_problems(page, quote)

    assert code in {"W74", "E74"}
    assert f"[!{QUOTES[quote]}]" in hint


@pytest.mark.parametrize("quote", ["> Noted: words.", "> A tip: words.", "> Words."])
def test_other_quotes_are_not(page: Path, quote: str) -> None:
    assert page_problems(page, quote) == []


def test_a_list_of_things_to_do_above_a_quote_is_no_question(page: Path) -> None:
    assert page_problems(page, "## To do\n\n- [ ] A cable\n- [x] A port\n\nWords.\n\n> Said.") == []


def test_a_question_on_a_page_without_an_id_says_what_a_list_of_things_to_do_is(
    page: Path,
) -> None:
    problems = page_problems(page, "## Have you all?\n\n- [ ] A cable\n- [x] A port")

    assert "If nothing is asked here, write the list without boxes." in problems[0][1]


def test_a_block_of_math_says_how_a_formula_is_written(page: Path) -> None:
    ((code, hint),) = page_problems(page, "```math\nn^2\n```")

    assert code == "E74"
    assert "$$ on a line" in hint


def test_each_broken_link_of_a_line_is_told_where_it_stands(page: Path) -> None:
    page_problems(page, "See [a](../one) and [b](../two) and [c](#three).")
    found = [p for p in check_course(page.parents[2], today=DAY) if p.code == "E61"]

    assert [(p.column, p.message.split("“")[1].rstrip("”.")) for p in found] == [
        (7, "/concepts/one"),
        (23, "/concepts/two"),
        (39, "#three"),
    ]


def test_a_term_has_as_many_names_as_its_parentheses_hold() -> None:
    names = compile_glossary_names([("Fat tree (Clos network, fabric)", "fat-tree")])

    for name in ("fat trees", "Clos network", "fabric"):
        assert "fat-tree" in FirstMentionLinker(names).link_first_mentions(f"A {name} here")


@pytest.mark.parametrize(
    "text",
    [
        "Tree :: a graph",
        "What is a tree\n?\nA graph",
        "| Front | Back |\n|---|---|\n| Tree | graph |",
        "- Tree: a graph\n- Leaf: low",
        "**Tree**: a graph",
        "Q: What is it?\nA: A tree.",
        "## Tree\n\nA graph.",
        "Tree\ta graph",
    ],
)
def test_cards_in_another_form_are_told(text: str) -> None:
    ((code, hint),) = told(f"---\ntitle: T\n---\n\n{text}\n", "topics/a/cards.md")

    assert code == "E01"
    assert "Write the front behind ###" in hint


@pytest.mark.parametrize(
    "text", ["# Cards\n\nOf the first week.", "## Part one\n\n### A\n<!-- q: a -->\n\nB.", "Words."]
)
def test_a_title_and_a_note_of_cards_are_not(text: str) -> None:
    assert told(f"---\ntitle: T\n---\n\n{text}\n", "topics/a/cards.md") == []


@pytest.mark.parametrize("answer", ["tree / trees", "tree or trees", "fat tree or Clos network"])
def test_two_answers_to_be_typed_in_one_are_told(answer: str) -> None:
    short = told(f"{HEAD}type: short\n-->\n\n- [x] `{answer}`\n")
    blank = told(f"{HEAD}-->\n\nA [[{answer}]] it is.\n")

    assert [code for code, _ in (*short, *blank)] == ["W40", "W40"]


@pytest.mark.parametrize("answer", ["TCP/IP", "find / -name a", "oracle", "a or"])
def test_one_answer_is_not(answer: str) -> None:
    assert told(f"{HEAD}type: short\n-->\n\n- [x] `{answer}`\n") == []


PAGE_HEAD = "---\ntitle: A\nobjective: 1.1\nsource: s\nsummary: S.\nreviewed: 2026-01-01\n---\n\n"


def messages(text: str, path: str = "topics/a/quiz.md") -> list[tuple[str, str]]:
    return [(p.code, p.message) for p in parse_file(text, path).problems if p.code != "W22"]


@pytest.mark.parametrize("address", ["quiz.md", "cards.md#one", "../b/quiz.md"])
def test_a_link_to_questions_or_cards_is_told_to_lead_to_the_page(address: str) -> None:
    lines = messages(f"{PAGE_HEAD}See [these]({address}).\n", "topics/a/concept.md")

    assert [line for line in lines if line[0] == "W74" and "to the page of its topic" in line[1]]
    assert "W74" not in dict(messages(f"{PAGE_HEAD}See [it](concept.md).\n", "topics/a/concept.md"))


def test_a_caption_that_is_not_shown_is_told() -> None:
    picture = '![A jar](jar.png "Its caption")'
    question = f"### Which?\n<!-- q: one -->\n\n{picture}\n\n- [x] A\n- [ ] B\n  > C.\n"
    missing = ("W74", "The caption “Its caption” is not shown here.")

    assert missing in messages(question)
    assert missing in messages(f"{PAGE_HEAD}See {picture} here.\n", "topics/a/concept.md")
    assert missing not in messages(f"{PAGE_HEAD}{picture}\n", "topics/a/concept.md")


@pytest.mark.parametrize(
    ("heading", "message"),
    [
        ("## Rank, process", "“Rank, process” is one name, with its comma."),
        ("### Sub", "“Sub” is a term of its own, though its heading is deeper."),
    ],
)
def test_headings_of_terms_that_are_likely_meant_otherwise_are_messages(
    heading: str, message: str
) -> None:
    text = "# Glossary\n\n## First (one, two)\n\nA meaning.\n\n"

    assert messages(text, "glossary.md") == []
    assert messages(f"{text}{heading}\n\nIts meaning.\n", "glossary.md") == [("W70", message)]


def test_a_photo_on_a_line_of_its_own_shows_its_caption(tmp_path: Path) -> None:
    lay_out(tmp_path)
    page = tmp_path / "topics" / "case" / "concept.md"
    picture = '\n## Jars\n\n![A jar](jar.png "Its <caption>")\n'
    page.write_text(page.read_text() + picture)
    (page.parent / "jar.png").write_bytes(PNG)
    html = str(load_course(tmp_path).topics["case"].sections)

    assert 'alt="A jar"' in html
    assert "<figcaption>Its &lt;caption&gt;</figcaption>" in html
