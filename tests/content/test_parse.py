"""Reading one file: whatever stands in it, the answer is values and problems."""

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.content.file_reader import parse_file
from app.content.parsed_file import ParsedFile
from app.questions.types.choice import ChoiceSpec
from app.questions.types.cloze import ClozeSpec
from app.questions.types.matching import MatchSpec
from app.questions.types.number_parsing import NumericSpec
from app.questions.types.ordering import OrderSpec

QUIZ = "topics/case/quiz.md"
FRONT = "---\ntitle: Case\nobjective: 1.1\nsource: herd\n---\n\n"
PATHS = (
    QUIZ,
    "topics/case/concept.md",
    "topics/case/cards.md",
    "glossary.md",
    "syllabus.toml",
    "sources.toml",
    "exams/mock.toml",
    "ids.lock",
)
SNIPPETS = [
    "### What?\n<!-- q: some-id",
    "type: numeric",
    "type: cloze",
    "type: match",
    "type: order",
    "type: card",
    "params:\n  n: [1, 2]",
    "let:\n  right: n * 2 in GB",
    "let:\n  right: kv_cache(model=n).total",
    "-->\n",
    "\n- [x] `{right:.3g} GB ± 3%`",
    "\n- [ ] `4 .. 8 s`\n  > why",
    "\n- [x] right\n- [ ] wrong",
    "[[blank|other ?hint]]",
    "[[",
    "| a | b |\n|---|--:|\n| [[x]] | y |\n",
    "\n1. one\n2. two\n",
    "> [!TIP]\n> hint",
    "> [!NOTE]",
    "$x_{n}$",
    "$$\\frac{1}{",
    "```calculator kv-cache\nmodel: llama-3.1-8b\n```",
    "```figure bar\nrows:\n  a: 1 GB\n```",
    "[1 GB](calc:kv-cache?model=70B#total)",
    "[8](hw:h100-sxm5-80#memory)",
    "[^zero]",
    "\n[^zero]: Section 3",
    "<b>",
    "</span>",
    "<script>alert(1)</script>",
    "![x](javascript:alert(1))",
    "[x](<java\nscript:alert(1)>)",
    "<img src=x onerror=alert(1)>",
    '<span class="key" onclick="x">',
    "---\n",
    "title: x",
    "# ",
    "\n## Heading\n",
    "\n\n",
    "\0",
    "\t",
    "\r\n",
    "\ud83d\ude00",
]


@given(st.sampled_from(PATHS), st.text(max_size=300))
def test_no_text_makes_the_parser_raise(path: str, text: str) -> None:
    parse_file(text, path)


@given(st.sampled_from(PATHS[:4]), st.lists(st.sampled_from(SNIPPETS), max_size=14))
def test_no_mix_of_markdown_raises_or_lets_script_through(path: str, pieces: list[str]) -> None:
    reading = parse_file(FRONT + "\n".join(pieces), path)

    for tag in re.findall(r"<[^>]*>", html_of(reading)):
        assert not re.search(r"(?i)<script|<img[^>]*script:|\son\w+=|\sstyle=", tag)
        assert not re.search(r"(?i)href=\"\s*(?:javascript|data|vbscript)", tag)


def html_of(reading: ParsedFile) -> str:
    return " ".join(re.findall(r"html='((?:[^'\\]|\\.)*)'", repr(reading)))


@given(st.data())
def test_a_damaged_file_of_the_course_never_raises(data: st.DataObject) -> None:
    files = sorted((Path(__file__).parents[1] / "courses" / "tiny").rglob("*.*"))
    file = data.draw(st.sampled_from(files))
    text = file.read_text(encoding="utf-8")
    first = data.draw(st.integers(0, len(text)))
    last = data.draw(st.integers(first, min(len(text), first + 40)))

    parse_file(text[:first] + text[last:], "/".join(file.parts[-3:]))


def test_a_broken_item_is_left_out_and_its_neighbors_stay() -> None:
    good = "### Is {} so?\n<!-- q: {} -->\n\n- [x] True\n- [ ] False\n  > No.\n\n"
    bad = "### Which?\n<!-- q: bad\ntype: single\n-->\n\n- [ ] one\n- [ ] two\n\n"

    reading = parse_file(
        FRONT + good.format("this", "one") + bad + good.format("that", "two"), QUIZ
    )

    assert [q.id for q in reading.questions] == ["one", "two"]
    assert {p.item for p in reading.problems if p.severity == "error"} == {"bad"}


def test_windows_line_ends_and_a_byte_order_mark_change_nothing() -> None:
    text = FRONT + "### Is it?\n<!-- q: one -->\n\n- [x] True\n- [ ] False\n  > No.\n"

    plain = parse_file(text, QUIZ)
    other = parse_file("\ufeff" + text.replace("\n", "\r\n"), QUIZ)

    assert plain.questions == other.questions
    assert plain.problems == other.problems


ITEM = """\
### How large is   the cache?
<!-- q: size
type: numeric
-->

- [x] `8 GB ± 2%`
"""


def test_white_space_does_not_change_the_revision_and_a_typo_does() -> None:
    def revision(text: str) -> str:
        return parse_file(FRONT + text, QUIZ).questions[0].revision

    assert revision(ITEM) == revision(ITEM.replace("   ", " ") + "\n\n\n")
    assert revision(ITEM) != revision(ITEM.replace("large", "lagre"))


def keys(*options: str) -> dict[str, str]:
    listed = "".join(f"- {o}\n  > Why.\n" for o in options)
    answer = read(f"### Which?\n<!-- q: which -->\n\n{listed}").questions[0].answer
    assert isinstance(answer, ChoiceSpec)
    return {o.text.html: o.key for o in answer.options}


def test_option_keys_tell_nothing_about_place_or_truth() -> None:
    one = keys("[x] One", "[ ] Two", "[ ] Three")
    other = keys("[ ] Three", "[ ] One", "[x] Two")

    assert one == other
    assert all(re.fullmatch(r"[a-z]{4}", key) for key in one.values())


def test_a_pinned_key_keeps_its_option_when_the_words_change() -> None:
    one = keys("[x] One <!-- = main -->", "[ ] Two", "[ ] Three")
    other = keys("[x] The first <!-- = main -->", "[ ] Two", "[ ] Three")

    assert one["One"] == other["The first"] != "main"


def test_every_heading_has_an_address_of_its_own() -> None:
    page = parse_file(
        "---\ntitle: T\n---\n\n## A\n\nOne.\n\n## A\n\nTwo.\n\n## A 2\n\nThree.\n\n## A\n\nFour.\n",
        "topics/t/concept.md",
    )

    assert page.anchors == ("a", "a-2", "a-2-2", "a-3")
    assert page.topic is not None
    assert tuple(section.anchor for section in page.topic.sections) == page.anchors


def test_a_pinned_heading_keeps_its_address_when_the_words_change() -> None:
    page = parse_file(
        "---\ntitle: T\n---\n\n## In color <!-- = in-colour -->\n\nText.\n\n"
        "### Gray <!-- = grey -->\n\nMore.\n",
        "topics/t/concept.md",
    )
    terms = parse_file("## Center <!-- = centre -->\n\nMiddle.\n", "glossary.md").glossary_terms

    assert page.topic is not None
    section = page.topic.sections[0]
    assert (section.anchor, section.title) == ("in-colour", "In color")
    assert page.anchors == ("in-colour", "grey")
    assert [(t.anchor, t.name) for t in terms] == [("centre", "Center")]
    assert not [p for p in page.problems if p.item or "comment" in p.message]


def read(body: str) -> ParsedFile:
    return parse_file(FRONT + body, QUIZ)


def test_a_numeric_answer_is_a_range_in_base_units(subtests: pytest.Subtests) -> None:
    for written, low, high, unit in [
        ("140 GB ± 5%", 133e9, 147e9, "GB"),
        ("140 GB +- 2 GB", 138e9, 142e9, "GB"),
        ("8 .. 10 s", 8, 10, "s"),
        ("3.14 sig 3", 3.135, 3.145, ""),
        ("1,120 GB ± 0.5", 1119.5e9, 1120.5e9, "GB"),
        ("25 %", 0.25, 0.25, "%"),
        ("989 TFLOPS ± 0", 989e12, 989e12, "TFLOP/s"),
    ]:
        with subtests.test(written=written, low=low, high=high):
            comment = "<!-- q: much\ntype: numeric\n-->"

            reading = read(f"### How much?\n{comment}\n\n- [x] `{written}`\n")

            assert reading.problems == ()
            answer = reading.questions[0].answer
            assert isinstance(answer, NumericSpec)
            found = answer.options[0].range
            assert found is not None
            assert found.low == pytest.approx(low, rel=1e-6)
            assert found.high == pytest.approx(high, rel=1e-6)
            assert found.unit == unit


def test_order_keeps_steps_and_distractors_apart() -> None:
    body = "### Order\n<!-- q: o\ntype: order\n-->\n\n1. a\n2. b\n   > because\n3. c\n\n"
    body += "- [ ] never\n  > No.\n"

    answer = read(body).questions[0].answer

    assert isinstance(answer, OrderSpec)
    assert [s.text.plain for s in answer.steps] == ["a", "b", "c"]
    assert answer.steps[1].feedback.plain == "because"
    assert [d.text.plain for d in answer.distractors] == ["never"]


def test_match_has_pairs_reasons_and_decoys() -> None:
    body = "### Match\n<!-- q: m\ntype: match\n-->\n\n| L | R | Why |\n|---|---|---|\n"
    body += "| NVLink | node | fast |\n| InfiniBand | cluster | far |\n|  | WAN | |\n"

    answer = read(body).questions[0].answer

    assert isinstance(answer, MatchSpec)
    assert (answer.left_title, answer.right_title) == ("L", "R")
    assert [p.left.plain for p in answer.pairs] == ["NVLink", "InfiniBand", ""]
    assert answer.pairs[0].why.plain == "fast"
    assert len({p.key for p in answer.pairs} | {p.answer for p in answer.pairs}) == 6


def test_cloze_is_cut_at_its_blanks() -> None:
    body = "### Complete\n<!-- q: c\ntype: cloze\n-->\n\n"
    body += "It is [[RoCE|RoCEv2]]; it wants a [[lossless ?no drops]] fabric.\n"

    answer = read(body).questions[0].answer

    assert isinstance(answer, ClozeSpec)
    assert [p.plain for p in answer.pieces] == ["It is ", "; it wants a ", " fabric."]
    assert answer.blanks[0].answers == ("RoCE", "RoCEv2")
    assert answer.blanks[1].hint == "no drops"


def test_a_blank_may_offer_words_to_choose_from() -> None:
    body = "### Complete\n<!-- q: c\ntype: cloze\n-->\n\n"
    body += "Over [[NVLink ~ PCIe ~ a ~b ?inside]] and [[~/.ssh]].\n"

    answer = read(body).questions[0].answer

    assert isinstance(answer, ClozeSpec)
    first, second = answer.blanks
    assert (first.answers, first.wrong) == (("NVLink",), ("PCIe", "a ~b"))
    assert first.hint == "inside"
    assert (second.answers, second.wrong) == (("~/.ssh",), ())


def test_a_reversed_card_has_a_sibling() -> None:
    body = "### Front\n<!-- q: c\ntype: card\nreverse: yes\n-->\n\nBack.\n"

    one, other = parse_file(FRONT + body, "topics/case/cards.md").cards

    assert (one.id, one.sibling) == ("c", "c~r")
    assert (other.id, other.sibling) == ("c~r", "c")
    assert other.front.plain == "Back."


def test_a_card_with_a_gap_and_no_back_shows_the_gap_and_then_the_filled_text() -> None:
    body = "### **Yeast** makes [[gas|CO₂]], and [[acid ? what is sour]].\n<!-- q: c -->\n"

    parsed = parse_file(FRONT + body, "topics/case/cards.md")

    [card] = parsed.cards
    assert not parsed.problems
    assert card.front.html == "<strong>Yeast</strong> makes […], and [what is sour]."
    assert card.back.plain == "Yeast makes gas or CO₂, and acid."


def test_yaml_words_stay_words() -> None:
    body = "### Which?\n<!-- q: w\ntags: [no, 1.10, on]\n-->\n\n- [x] True\n- [ ] False\n"

    assert read(body).questions[0].tags == ("no", "1.10", "on")
