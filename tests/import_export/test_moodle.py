"""Moodle XML in and out."""

import pytest
from hypothesis import given

from app.import_export import UnusableFileError
from app.import_export.formats.gift import read_gift, write_gift
from app.import_export.formats.moodle_xml import (
    parse_embedded_answers,
    read_moodle,
    write_embedded_answer,
    write_moodle,
)
from app.import_export.items import Item, ItemBlank, ItemImage, ItemOption, ItemPair
from app.import_export.text_conversion import PicturesAndLosses
from app.import_export.xml_files import parse_xml_and_locate_elements
from tests.import_export.bank import QUESTIONS, bare, items

QUESTION = """<?xml version="1.0" encoding="UTF-8"?>
<quiz>
<question type="category"><category><text>$course$/top</text></category></question>
{}
</quiz>"""


def read(body: str) -> Item:
    reading = read_moodle(QUESTION.format(body).encode())
    assert [str(r) for r in reading.refused_items] == []
    return reading.items[0]


def refusal(body: str) -> str:
    return str(read_moodle(QUESTION.format(body).encode()).refused_items[0])


@given(items(*QUESTIONS))
def test_what_is_written_is_read_again(item: Item) -> None:
    written = write_moodle((item,), "a & b")

    assert written.refused_items == ()
    assert [bare(i) for i in read_moodle(written.file_content).items] == [bare(item)]


def test_a_number_takes_its_unit_from_the_file() -> None:
    item = read(
        """<question type="numerical"><name><text>n</text></name>
        <questiontext format="html"><text><![CDATA[<p>How much?</p>]]></text>
        </questiontext><answer fraction="100"><text>140</text>
        <tolerance>4</tolerance></answer><units><unit><multiplier>1</multiplier>
        <unit_name>GB</unit_name></unit></units></question>"""
    )

    assert item.options[0].span.unit == "GB"
    assert item.options[0].span.tolerance == 4


def test_gaps_keep_the_answers_that_count_in_full() -> None:
    item = read(
        """<question type="cloze"><name><text>RDMA</text></name>
        <questiontext format="html"><text>It is {1:SA:=RoCE~%100%RoCE v2~%50%iWARP}
        today.</text></questiontext></question>"""
    )

    assert item.stem == "RDMA"
    assert item.blanks[0].answers == ("RoCE", "RoCE v2")


@pytest.mark.parametrize(("kind", "option"), [("gapselect", "selectoption"), ("ddwtos", "dragbox")])
def test_words_to_be_chosen_stay_words_to_choose_from(kind: str, option: str) -> None:
    item = read(
        f"""<question type="{kind}"><name><text>RDMA</text></name>
        <questiontext format="html"><text>&lt;p&gt;Fill in.&lt;/p&gt;
        &lt;p&gt;[[2]] wants a [[1]] fabric.&lt;/p&gt;</text></questiontext>
        <{option}><text>lossless</text><group>1</group></{option}>
        <{option}><text>RoCE</text><group>2</group></{option}>
        <{option}><text>lossy</text><group>1</group></{option}></question>"""
    )

    assert (item.kind, item.stem) == ("cloze", "Fill in.")
    assert item.blanks == (ItemBlank(("RoCE",)), ItemBlank(("lossless",), wrong=("lossy",)))


def test_choices_of_a_gap_are_carried_and_partial_credit_is_told() -> None:
    losses = PicturesAndLosses()

    _, (gap,) = parse_embedded_answers("A {1:MC:~%50%card#no~=GPU~CPU}.", losses)

    assert gap == ItemBlank(("GPU",), wrong=("card", "CPU"))
    assert write_embedded_answer(gap) == "{1:MULTICHOICE_S:=GPU~card~CPU}"
    assert any("partly right" in words for words in losses.loss_texts)


def test_a_gap_without_its_word_is_refused() -> None:
    assert refusal(
        """<question type="gapselect"><name><text>g</text></name><questiontext>
        <text>A [[3]].</text></questiontext><selectoption><text>b</text>
        </selectoption></question>"""
    ).endswith("a gap has no word that fits")


def test_an_answer_to_anything_else_is_the_common_mistake() -> None:
    item = read(
        """<question type="shortanswer"><questiontext format="html"><text>Which?</text>
        </questiontext><answer fraction="100"><text>this</text></answer>
        <answer fraction="0"><text>*</text><feedback format="html">
        <text>Not that.</text></feedback></answer></question>"""
    )

    assert [o.text for o in item.options] == ["this"]
    assert item.mistake == "Not that."


def test_the_words_that_moodle_puts_in_by_itself_are_no_mistake() -> None:
    body = """<question type="multichoice"><single>true</single><questiontext>
        <text>Which?</text></questiontext><incorrectfeedback format="html">
        <text>{}</text></incorrectfeedback>
        <answer fraction="100"><text>a</text></answer>
        <answer fraction="0"><text>b</text></answer></question>"""

    assert read(body.format("Your answer is incorrect.")).mistake == ""
    assert read(body.format("You forgot V.")).mistake == "You forgot V."


def test_hints_are_kept_in_order() -> None:
    item = read(
        """<question type="shortanswer"><questiontext format="html"><text>Which?</text>
        </questiontext><answer fraction="100"><text>this</text></answer>
        <hint format="html"><text>one</text></hint>
        <hint format="html"><text>two</text></hint></question>"""
    )

    assert item.hints == ("one", "two")


def test_half_the_mark_for_a_number_that_is_only_near() -> None:
    near, exact = (
        f'<answer fraction="{mark}"><text>8</text><tolerance>{width}</tolerance></answer>'
        for mark, width in ((50, 1), (100, 0.1))
    )
    text = f"""<quiz><question type="numerical"><name><text>n</text></name>
<questiontext format="html"><text>How many?</text></questiontext>
{near}{exact}</question></quiz>"""
    reading = read_moodle(text.encode())

    assert reading.losses == ()
    (item,) = reading.items
    assert [(o.span.low, o.right, o.credit) for o in item.options if o.span] == [
        (7.9, True, 0.0),
        (7.0, False, 0.5),
    ]


def test_an_unknown_type_is_named_with_its_line() -> None:
    body = '<question type="puzzle"><name><text>sum</text></name></question>'

    assert refusal(body) == "line 4: sum: questions of the type “puzzle” have no counterpart here"


def test_a_hostile_file_is_refused_with_a_sentence(subtests: pytest.Subtests) -> None:
    for data, sentence in [
        (
            b'<!DOCTYPE a [<!ENTITY b "cc"><!ENTITY c "&b;&b;">]><quiz>&c;</quiz>',
            "The file has a document type (DTD); remove it and try again.",
        ),
        (
            '<?xml version="1.0"?><!DOCTYPE quiz SYSTEM "file:///x"><quiz/>'.encode("utf-16"),
            "The file has a document type (DTD); remove it and try again.",
        ),
        (b"<quiz><question>", "The file is not XML: no element found in line 1."),
        (b"<html/>", "The file begins with <html>, not with <quiz>."),
        (
            b"<a>" * 200 + b"</a>" * 200,
            "The file is nested deeper than 100 elements.",
        ),
        (
            b'<?xml version="1.0" encoding="ebcdic"?><quiz/>',
            "The encoding “ebcdic” is not known; save the file as UTF-8.",
        ),
        (
            b"<quiz>\xff\xfa</quiz>",
            "The file is not UTF-8 text; save it with that encoding.",
        ),
        (b"<qu\0iz/>", "The file contains zero bytes, so it is not text."),
    ]:
        with subtests.test(data=data, sentence=sentence):
            with pytest.raises(UnusableFileError) as refused:
                read_moodle(data)

            assert str(refused.value) == sentence


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "latin-1"])
def test_known_encodings_are_read(encoding: str) -> None:
    declared = {"latin-1": "iso-8859-1"}.get(encoding, encoding.removesuffix("-sig"))
    text = QUESTION.replace("UTF-8", declared).format(
        """<question type="shortanswer"><questiontext format="plain_text">
        <text>Où?</text></questiontext><answer fraction="100"><text>là</text></answer>
        </question>"""
    )

    assert read_moodle(text.encode(encoding)).items[0].stem == "Où?"


def test_an_answer_that_is_no_number_does_not_take_the_others_along() -> None:
    found = read_moodle(
        b"""<quiz><question type="numerical"><name><text>n</text></name>
        <questiontext format="html"><text>How many?</text></questiontext>
        <answer fraction="100"><text>Frog*</text></answer>
        <answer fraction="100"><text>4</text></answer></question></quiz>"""
    )

    assert [o.span.center for o in found.items[0].options] == [4]
    assert "Frog" in found.losses[0].sentence


def test_an_order_has_the_field_without_which_moodle_breaks_off_the_import() -> None:
    steps = tuple(ItemOption(text, True, f"Why {text}") for text in ("a", "b", "c"))
    item = Item("o", "order", "In order?", steps=steps, explanation="So.")
    written = write_moodle((item,))
    node = next(parse_xml_and_locate_elements(written.file_content).root.iter("question"))

    assert node.findtext("shownumcorrect") == "1"
    assert node.findtext("numberingstyle") == "none"
    # Moodle keeps no feedback of single steps.
    assert node.find("answer/feedback") is None
    assert "Why b" in (node.findtext("generalfeedback/text") or "")
    assert [r.sentence for r in written.losses] == [
        "feedback on single steps is appended to the explanation"
    ]
    again = read_moodle(written.file_content).items[0]
    assert (again.steps, again.explanation) == (steps, "So.")


@pytest.mark.parametrize(
    ("partial", "name"),
    [
        ("", "ALL_OR_NOTHING"),
        ("each", "ABSOLUTE_POSITION"),
        ("lcs", "LONGEST_ORDERED_SUBSET"),
    ],
)
def test_an_order_gives_credit_by_the_same_rule_on_both_sides(partial: str, name: str) -> None:
    steps = tuple(ItemOption(text, True) for text in "abc")
    item = Item("o", "order", "In order?", steps=steps, partial=partial)
    text = write_moodle((item,)).file_content.decode()
    made_there = text.replace("<tags>", "<x>").replace("</tags>", "</x>")

    assert f"<gradingtype>{name}</gradingtype>" in text
    assert read_moodle(made_there.encode()).items[0].partial == partial


def test_pictures_on_the_right_of_a_match_are_told_and_become_words() -> None:
    pairs = (ItemPair("a", "![A rack](img/a.png) one"), ItemPair("b", "two"))
    picture = ItemImage("img/a.png", "aGk=")
    item = Item("m", "match", "Which?", pairs=pairs, pictures=(picture,))
    written = write_moodle((item,))

    assert "<text>A rack one</text>" in written.file_content.decode()
    assert [r.sentence for r in written.losses] == [
        "the pictures on the right are not exported, only their descriptions"
    ]


def test_a_match_that_is_all_or_nothing_says_that_moodle_counts_each_row() -> None:
    pairs = (ItemPair("a", "one"), ItemPair("b", "two"))
    item = Item("m", "match", "Which?", pairs=pairs, partial="off")

    assert [r.sentence for r in write_moodle((item,)).losses] == [
        "there its rule of partial credit is only similar"
    ]


def test_a_picture_in_a_field_of_older_files_is_told() -> None:
    reading = read_moodle(
        QUESTION.format(
            '<question type="truefalse"><questiontext><text>So?</text></questiontext>'
            "<image>a.png</image><image_base64>aGk=</image_base64>"
            '<answer fraction="100"><text>true</text></answer>'
            '<answer fraction="0"><text>false</text></answer></question>'
        ).encode()
    )

    assert [r.sentence for r in reading.losses] == [
        "a picture in a field of older files is left out"
    ]


def test_a_gap_that_nobody_sees_is_refused() -> None:
    assert "or one of them is hidden" in refusal(
        """<question type="cloze"><name><text>g</text></name><questiontext
        format="html"><text>It is {1:SA:=a}. &lt;p hidden=""&gt;{1:SA:=b}&lt;/p&gt;
        </text></questiontext></question>"""
    )


def test_what_is_said_to_a_right_answer_is_told() -> None:
    body = """<question type="multichoice"><single>true</single><questiontext>
        <text>Which?</text></questiontext><correctfeedback format="html">
        <text>{}</text></correctfeedback>
        <answer fraction="100"><text>a</text></answer>
        <answer fraction="0"><text>b</text></answer></question>"""

    told = [
        read_moodle(QUESTION.format(body.format(words)).encode()).losses
        for words in ("Your answer is correct.", "Yes, since V.")
    ]
    assert [len(lost) for lost in told] == [0, 1]


@pytest.mark.parametrize("gap", ["SHORTANSWER:=sun~%50%star", "NUMERICAL:=3:0~%50%4:1"])
def test_a_word_of_a_gap_that_is_partly_right_is_told(gap: str) -> None:
    losses = PicturesAndLosses()
    parse_embedded_answers(f"The {{1:{gap}}} shines.", losses)

    assert "a word of a gap that is partly right counts as wrong" in losses.loss_texts


@pytest.mark.parametrize("percent", [100, 50, 0, -50])
@pytest.mark.parametrize("note", ["", "Not that."])
@pytest.mark.parametrize("word", ["*", r"a\*b", "a*"])
def test_a_star_means_the_same_in_gift(word: str, note: str, percent: int) -> None:
    answer = f'<answer fraction="{percent}"><text>{word}</text><feedback><text>{note}</text></feedback></answer>'
    xml = f"""<question type="shortanswer"><questiontext><text>Which?</text></questiontext>
        <answer fraction="100"><text>sun</text></answer>{answer}</question>"""
    gift = f"Which? {{\n=sun\n=%{percent}%{word}{f'#{note}' * bool(note)}\n}}"

    in_xml, in_gift = read(xml), read_gift(gift).items[0]

    assert in_xml.mistake == note * (word == "*" and percent <= 0)
    assert in_xml.mistake == in_gift.mistake
    assert in_xml.options == in_gift.options
    assert in_xml.lost == in_gift.lost


def test_the_common_mistake_of_typed_answers_is_written_alike() -> None:
    options = (ItemOption("a*b", True),)
    item = Item("q", "short", "Which?", options=options, mistake="Not that.")

    gift, xml = (
        write_gift((item,)).file_content.decode(),
        write_moodle((item,), "x").file_content.decode(),
    )

    assert r"=%100%a\*b" in gift
    assert "=%0%*#Not that." in gift
    assert r"<text>a\*b</text>" in xml
    assert read_gift(gift).items[0].mistake == item.mistake
