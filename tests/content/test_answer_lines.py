"""A line that looks like a part of an answer becomes one, or an error; never words."""

import pytest

from app.content.file_reader import parse_file
from app.content.parsed_file import ParsedFile

QUIZ = "topics/case/quiz.md"
FRONT = "---\ntitle: Case\nobjective: 1.1\nsource: herd\n---\n\n"
OPTIONS = (
    "- [x] Four bytes\n  > They are 32 bits.",
    "- [ ] Two bytes\n  > That is BF16.",
    "- [ ] One byte\n  > That is FP8.",
)
# fmt: off
BEGINNINGS = (
    "- [ ] ", "* [ ] ", "+ [ ] ", "– [ ] ", "— [ ] ", "• [ ] ", "o [ ] ", "· [ ] ",
    "1. [ ] ", "1) [ ] ", "10. [ ] ", "a) [ ] ", "A. [ ] ", "-> [ ] ", "-- [ ] ",
    "--- [ ] ", "* * [ ] ", "| [ ] ", "> - [ ] ", "\\- [ ] ", "- \\[ ] ", "- `[ ]` ",
    "- [X] ", "- [ x ] ", "- [] ", "- [  ] ", "- [x]", "-[ ] ", "[ ] ", "[x]", "- [y] ",
    "- [1] ", "- [✓] ", "- [50%] ", "- [50 %] ", "- [0.5] ", "- [\u0445] ", "- (x) ",
    "- ( ) ", "(x) ", "( ) ", "☐ ", "☑ ", "- ☒ ", "– ", "— ", "• ", "− [ ] ",
    "-\u00a0[ ] ", "- [\u00a0] ", "-\u00a0[x]\u00a0", "- [ ]\u00a0", "-\t[ ]\t",
    "\t- [ ] ", " - [ ] ", "   - [ ] ", "       - [ ] ", "\u3000- [ ] ", "\u200b- [ ] ",
    "\ufeff- [ ] ", "\uff0d [ ] ", "- \uff3b \uff3d ", "- \uff3b\uff58\uff3d ",
    "\uff08\uff58\uff09 ", "- \u3010x\u3011", "\u2010 [ ] ", "\u2002- [ ] ",
    "* ", "+ ", "4. ", "4) ", "d) ", "(d) ", "✗ ", "✓ ", "❌ ", "✅ ", "◯ ", "⚪ ",
    "▢ ", "» [ ] ", "\u30fc [ ] ", "_ [ ] ", "&bull; [ ] ", "&nbsp;- [ ] ", "&ndash; ",
)
# fmt: on


def quiz(*lines: str, comment: str = "") -> ParsedFile:
    text = "\n".join(lines)
    return parse_file(f"{FRONT}### How wide is FP32?\n<!-- q: w\n{comment}-->\n\n{text}\n", QUIZ)


def errors(read: ParsedFile) -> list[tuple[str, int]]:
    return [(p.code, p.line) for p in read.problems if p.severity == "error"]


def test_an_option_is_read_or_told_however_it_begins(
    subtests: pytest.Subtests,
) -> None:
    for begin in BEGINNINGS:
        for at in range(4):
            with subtests.test(begin=begin, at=at):
                new = f"{begin}Half a byte\n  > That is FP4."
                read = quiz(*OPTIONS[:at], new, *OPTIONS[at:])

                if told := errors(read):
                    line = 11 + 2 * at
                    assert line in {n for _, n in told}
                else:
                    assert len(read.questions[0].answer.options) == 4


def test_options_are_read_or_told_where_all_begin_alike(
    subtests: pytest.Subtests,
) -> None:
    for begin in BEGINNINGS:
        with subtests.test(begin=begin):
            read = quiz(*(o.replace("- [ ] ", begin) for o in OPTIONS))
            assert errors(read) or len(read.questions[0].answer.options) == 3


@pytest.mark.parametrize(
    "reason",
    [
        *(
            "  » It is FP4.",
            "  \uff1e It is FP4.",
            "  &gt; It is FP4.",
            "  \u203a It is FP4.",
        ),
        *("  \u00a0> It is FP4.", "  | It is FP4.", "  -> It is FP4.", "It is FP4."),
        "  > It is\nFP4.",
    ],
)
def test_what_was_to_be_a_reason_is_no_part_of_the_option(reason: str) -> None:
    read = quiz(f"- [ ] Half a byte\n{reason}", *OPTIONS)

    told = [code for code, _ in errors(read)]
    assert told == ["E24"]


def test_lines_with_spaces_before_them_go_on_with_an_option() -> None:
    read = quiz("- [ ] Half\n  a byte\n  > That is\n  > FP4, or\n  INT4.", *OPTIONS)

    assert errors(read) == []
    assert len(read.questions[0].answer.options) == 4


def test_a_list_that_stands_apart_from_the_options_is_text() -> None:
    read = quiz(*OPTIONS, "", "* One", "* Two")

    assert errors(read) == []


@pytest.mark.parametrize(
    "words",
    [
        "Of `- [ ] text` and of `[x]`.",
        "[x](https://example.org) is a link.",
        "[x]: https://example.org",
        "A [x] within words.",
        "```text\n- [ ] text\n– [x] text\n```",
        "$$\n[x]\n$$",
        "– said in passing.",
        "f(x) and (x) alone",
    ],
)
def test_words_and_code_are_no_options(words: str) -> None:
    assert errors(quiz(words, "", *OPTIONS)) == []


STEPS = ("1. It arrives", "2. It is read", "3. It is answered", "4. It is freed")


@pytest.mark.parametrize(
    "number",
    [
        "3.",
        "3)",
        "\uff13.",
        "3\uff0e",
        "3 .",
        "3\u3001",
        "\u00a03.",
        "3.\u00a0",
        "  3.",
    ],
)
def test_a_step_is_read_or_told_however_it_is_numbered(number: str) -> None:
    new = STEPS[2].replace("3.", number)
    read = quiz(*STEPS[:2], new, STEPS[3], comment="type: order\n")

    assert errors(read) or len(read.questions[0].answer.steps) == 4


TABLE = ("| Part | Grows with |", "|---|---|", "| A | b |", "| C | d |", "| E | f |")


@pytest.mark.parametrize("at", [3, 4])
def test_a_row_behind_an_empty_line_is_told(at: int) -> None:
    read = quiz(*TABLE[:at], "", *TABLE[at:], comment="type: match\n")

    assert ("E52", 12 + at + 1) in errors(read)


def test_a_table_without_its_line_keeps_the_item_out_and_says_so() -> None:
    read = quiz(TABLE[0], *TABLE[2:], comment="type: match\n")

    assert errors(read) == [("E52", 12)]


def test_a_card_may_hold_a_list_of_boxes() -> None:
    card = "### Before the start\n<!-- q: c\ntype: card\n-->\n\n– [ ] Look\n• [ ] Think\n"
    read = parse_file(f"{FRONT}{card}", "topics/case/cards.md")

    assert errors(read) == []
    assert "Think" in read.cards[0].back.plain
