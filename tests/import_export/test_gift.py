"""GIFT in and out."""

import re
from pathlib import Path

import pytest
from hypothesis import given

from app.import_export.formats.gift import read_gift, write_gift
from app.import_export.items import Item, ItemOption, ItemPair
from tests.import_export.bank import bare, items

REAL = sorted((Path(__file__).parent / "fuhrmanator").glob("*.gift"))


def only(text: str) -> Item:
    reading = read_gift(text)
    assert reading.refused_items == ()
    assert len(reading.items) == 1
    return reading.items[0]


@given(items("single", "multiple", "true-false", "numeric", "short", "order", "match"))
def test_what_is_written_is_read_again(item: Item) -> None:
    written = write_gift((item,))

    assert written.refused_items == ()
    assert [bare(i) for i in read_gift(written.file_content.decode()).items] == [bare(item)]


def test_real_files_survive_a_second_round(subtests: pytest.Subtests) -> None:
    for path in REAL:
        with subtests.test(path.stem):
            first = read_gift(path.read_text(encoding="utf-8")).items
            again = read_gift(write_gift(first).file_content.decode()).items

            assert [bare(i) for i in again] == [bare(i) for i in first]


def test_every_question_of_the_real_files_is_read_or_named() -> None:
    readings = [read_gift(p.read_text(encoding="utf-8")) for p in REAL]

    assert sum(len(r.items) for r in readings) == 66
    assert {x.sentence for r in readings for x in r.refused_items} == {
        "an essay cannot be judged by a program",
        "it asks nothing: a description has no place in a quiz",
    }


def test_a_range_of_numbers_is_read_by_its_ends() -> None:
    span = only("Pi? {#3.141..3.142}").options[0].span

    assert span is not None
    assert (span.low, span.high) == (3.141, 3.142)


def test_a_unit_travels_in_the_stem() -> None:
    item = only("How much?\\n\\nAnswer in GB.{#=140:4}")

    assert item.stem == "How much?"
    assert item.options[0].span.unit == "GB"


def test_answers_in_the_middle_leave_a_gap() -> None:
    item = only("Two plus two equals {=four =4} today.")

    assert item.stem == "Two plus two equals \\_\\_\\_\\_\\_ today."
    assert [o.text for o in item.options] == ["four", "4"]


@pytest.mark.parametrize("text", ["Which?{~a ~%50%b =c}", "Which?{=%0%a =%50%b =%100%c}"])
def test_half_credit_is_kept(text: str) -> None:
    reading = read_gift(text)

    assert reading.losses == ()
    (item,) = reading.items
    assert [(o.text, o.right, o.credit) for o in item.options] == [
        ("a", False, 0.0),
        ("b", False, 0.5),
        ("c", True, 0.0),
    ]


def test_half_credit_beside_two_full_ones_is_named_as_lost() -> None:
    reading = read_gift("Which?{=a ~%50%b =c}")

    assert [str(x) for x in reading.losses] == [
        "line 1: Which?: either answer counted in full; here both must be ticked",
        "line 1: Which?: “b” is worth 50%; here nothing",
    ]


def test_an_unclosed_brace_does_not_swallow_the_file() -> None:
    text = "Broken?{=a ~b\n\n" + "\n\n".join(f"Q{n}?{{=a ~b ~c}}" for n in range(300))

    assert len(read_gift(text).items) > 50


def test_the_right_number_may_stand_before_what_is_said_to_others() -> None:
    (item,) = read_gift("::n:: How many? {#3:2~#Count again.}\n").items

    assert [(o.right, o.span.low, o.span.high) for o in item.options] == [(True, 1, 5)]
    assert item.mistake == "Count again."


@pytest.mark.parametrize(
    ("text", "stem"),
    [
        ("He was from {~Rome =Kyiv}.", "He was from \\_\\_\\_\\_\\_."),
        ("It came from {=China}, in Asia", "It came from \\_\\_\\_\\_\\_, in Asia"),
        ("Who was it? {~a ~b =c}.", "Who was it?"),
        ("The sun rises{T}.", "The sun rises."),
    ],
)
def test_a_sentence_that_goes_on_after_its_answers_has_a_gap(text: str, stem: str) -> None:
    assert only(text).stem == stem


def order(*texts: str, partial: str = "") -> Item:
    steps = tuple(ItemOption(text, True) for text in texts)
    return Item("o", "order", "In order?", steps=steps, partial=partial)


@pytest.mark.parametrize(
    ("partial", "name"),
    [
        ("", "ALL_OR_NOTHING"),
        ("off", "ALL_OR_NOTHING"),
        ("each", "ABSOLUTE_POSITION"),
        # Moodle's own name for it, LONGEST_ORDERED_SUBSET, becomes a step there.
        ("lcs", "LONGEST_CONTIGUOUS_SUBSET"),
    ],
)
def test_an_order_names_its_rule_as_moodle_knows_it(partial: str, name: str) -> None:
    text = write_gift((order("a", "b", "c", partial=partial),)).file_content.decode()

    assert f"{{>3 ALL VERTICAL {name} SHOW none\na\nb\nc\n}}" in text
    assert only(text).partial == partial


def test_a_rule_of_moodle_that_is_none_of_ours_is_named_as_lost() -> None:
    reading = read_gift("In order?{>2 RANDOM VERTICAL RELATIVE_TO_CORRECT\na\nb\nc\n}")

    assert reading.items[0].partial == "each"
    assert [r.sentence for r in reading.losses] == [
        "all 3 steps are asked, not 2 of them",
        "its rule of credit is replaced by the nearest one",
    ]


def test_steps_stand_as_moodle_takes_them_without_marks_and_escapes() -> None:
    steps = (
        "0",
        "// a",
        r"a = b: \~1",
        "`x`",
        "{y}",
        "a ##### b",
        r"$\frac{1}{2}$",
        "\\<b",
    )
    text = write_gift((order(*steps),)).file_content.decode()
    inside = text.partition("SHOW none\n")[2].rpartition("\n}")[0]

    assert inside.split("\n") == [
        "<span>0</span>",
        "<span>// a</span>",
        "a = b: ~1",
        "<code>x</code>",
        "<span>&#123;y&#125;</span>",
        "<span>a #&#35;&#35;&#35;&#35; b</span>",
        r"<span>\\(\\frac&#123;1&#125;&#123;2&#125;\\)</span>",
        "<span>&lt;b</span>",
    ]
    assert tuple(s.text for s in only(text).steps) == steps


def test_right_sides_have_no_mark_since_moodle_would_show_it() -> None:
    pairs = (ItemPair("**a**", "`x`"), ItemPair("b", "c = d"), ItemPair("e", "f"))
    item = Item("m", "match", "Which?", pairs=pairs)
    text = write_gift((item,)).file_content.decode()

    assert re.findall(r"-> (.+)", text) == ["<code>x</code>", r"c \= d", "f"]
    assert only(text).pairs == pairs


def stems(text: str) -> list[str]:
    return [item.stem for item in read_gift(text).items]


def test_questions_without_an_empty_line_between_them_are_parted(
    subtests: pytest.Subtests,
) -> None:
    for text, expected in [
        ("::a:: One?{=a ~b}\n::b:: Two?{T}\n::c:: Three?{#5}", 3),
        ("One?{=a ~b}\nTwo?{=c ~d}\nThree?{\n=a\n~b\n}\nFour?{T}", 4),
        ("Two and two is {=4} today.\nNext?{T}", 2),
        ("::a:: A note.\n::b:: Two?{T}", 1),
        ("One?{T}\n// [tag:x]\nTwo?{F}", 2),
    ]:
        with subtests.test(text=text):
            reading = read_gift(text)

            assert len(reading.items) == expected
            assert all("{" not in item.stem for item in reading.items)
            assert len({item.line for item in reading.items}) == expected


def test_a_comment_between_questions_belongs_to_the_one_below() -> None:
    first, second = read_gift("One?{T}\n// [tag:x]\nTwo?{F}").items

    assert (first.tags, second.tags) == ((), ("x",))


def test_where_a_question_ends_is_not_guessed(subtests: pytest.Subtests) -> None:
    for text, reason in [
        ("Two and two is {=4} and\nthree. Next {T}", "put an empty line between"),
        ("One?{T} Two?{F}", "put an empty line between"),
        ("One?{=a {b} ~c}", "its answers are not closed"),
    ]:
        with subtests.test(text=text):
            (refused,) = read_gift(text).refused_items

            assert reason in refused.sentence


@pytest.mark.parametrize("between", ["\n", "\n\n"])
def test_a_brace_that_is_not_closed_takes_no_other_question_along(between: str) -> None:
    reading = read_gift(f"One?{{=a ~b{between}Two?{{=c ~d}}\n\nThree?{{T}}")

    assert [item.stem for item in reading.items] == ["Two?", "Three?"]
    assert [r.line_number for r in reading.refused_items] == [1]
    assert "its answers are not closed" in reading.refused_items[0].sentence


def test_words_below_the_answers_are_told() -> None:
    reading = read_gift("He was {=a ~b}\nborn there.")

    assert reading.items[0].stem == "He was \\_\\_\\_\\_\\_\\\nborn there."
    assert "the text below its answers" in reading.losses[0].sentence
    assert read_gift("He was {=a ~b}\n.").losses == ()


def test_one_right_of_several_boxes_is_a_single_choice() -> None:
    reading = read_gift("Which?{~%100%a ~%-100%b ~%-100%c}")

    assert [(i.kind, i.partial) for i in reading.items] == [("single", "")]
    assert [r.sentence for r in reading.losses] == [
        "several boxes could be ticked there; here it is a single choice"
    ]


def test_words_of_another_format_are_words(subtests: pytest.Subtests) -> None:
    for text, stem in [
        ("Is __init__ *it*?{T}", "Is \\_\\_init\\_\\_ \\*it\\*?"),
        ("Is vector<int> it?{T}", "Is vector\\<int> it?"),
        ("Is it <b>bold</b>\nhere?{T}", "Is it **bold**\\\nhere?"),
        ("[markdown]Is $$E=mc^2$$ **so**?{T}", "Is $E=mc^2$ **so**?"),
    ]:
        with subtests.test(text=text):
            assert only(text).stem == stem


def test_lines_of_code_in_a_stem_stay_lines() -> None:
    text = "Look\\:\nfor i in range(3)\\:\n    print(i)\nWhat is shown?{=a ~b}"

    assert only(text).stem == (
        "Look:\n\n```\nfor i in range(3):\n    print(i)\n```\n\nWhat is shown?"
    )


def test_pairs_of_which_one_has_no_partner_are_no_words_to_type() -> None:
    reading = read_gift("Match.{=HBM -> GPU =DDR -&gt; CPU =tape → shelf}")

    assert not reading.items
    assert "have no “->”" in reading.refused_items[0].sentence


def test_a_comment_behind_answers_is_no_part_of_the_question() -> None:
    reading = read_gift("::a::Is it?{T} // checked\n\n::b::And this?{F}")

    assert [i.name for i in reading.items] == ["b"]
    assert "a comment follows its answers" in reading.refused_items[0].sentence


@pytest.mark.parametrize(
    ("answers", "lost"),
    [
        ("~%50%a ~%50%b ~%-100%c", "was worth a part of the mark; here none"),
        ("=a ~%-25%b ~c", "a wrong choice cost a part of the mark"),
        ("~%100%a ~%-100%b ~%-100%c", "here it is a single choice"),
    ],
)
def test_marks_that_count_otherwise_here_are_told(answers: str, lost: str) -> None:
    (remark,) = read_gift(f"Which?{{{answers}}}").losses

    assert lost in remark.sentence


def test_the_rule_that_a_tag_names_needs_no_remark() -> None:
    text = "// [tag:partial:off]\nWhich?{~%50%a ~%50%b ~%-100%c}"

    assert not read_gift(text).losses
