"""Moodle XML in and out."""

import pytest
from hypothesis import given

from app.exchange.formats.moodle import read_moodle, write_moodle
from app.exchange.formats.moodle.gaps import read_gaps, write_gap
from app.exchange.items import Blank, Item, Unusable
from app.exchange.markup.texts import Losses
from tests.exchange.bank import QUESTIONS, bare, items

QUESTION = """<?xml version="1.0" encoding="UTF-8"?>
<quiz>
<question type="category"><category><text>$course$/top</text></category></question>
{}
</quiz>"""


def read(body: str) -> Item:
    reading = read_moodle(QUESTION.format(body).encode())
    assert [str(r) for r in reading.refused] == []
    return reading.items[0]


def refusal(body: str) -> str:
    return str(read_moodle(QUESTION.format(body).encode()).refused[0])


@given(items(*QUESTIONS))
def test_what_is_written_is_read_again(item: Item) -> None:
    written = write_moodle((item,), "a & b")

    assert written.refused == ()
    assert [bare(i) for i in read_moodle(written.content).items] == [bare(item)]


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


@pytest.mark.parametrize(
    ("kind", "option"), [("gapselect", "selectoption"), ("ddwtos", "dragbox")]
)
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
    assert item.blanks == (Blank(("RoCE",)), Blank(("lossless",), wrong=("lossy",)))


def test_choices_of_a_gap_are_carried_and_partial_credit_is_told() -> None:
    losses = Losses()

    _, (gap,) = read_gaps("A {1:MC:~%50%card#no~=GPU~CPU}.", losses)

    assert gap == Blank(("GPU",), wrong=("card", "CPU"))
    assert write_gap(gap) == "{1:MULTICHOICE_S:=GPU~card~CPU}"
    assert any("partly right" in words for words in losses.found)


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
        f'<answer fraction="{mark}"><text>8</text>'
        f"<tolerance>{width}</tolerance></answer>"
        for mark, width in ((50, 1), (100, 0.1))
    )
    text = f"""<quiz><question type="numerical"><name><text>n</text></name>
<questiontext format="html"><text>How many?</text></questiontext>
{near}{exact}</question></quiz>"""
    reading = read_moodle(text.encode())

    assert reading.lost == ()
    (item,) = reading.items
    assert [(o.span.low, o.right, o.credit) for o in item.options if o.span] == [
        (7.9, True, 0.0),
        (7.0, False, 0.5),
    ]


def test_an_unknown_type_is_named_with_its_line() -> None:
    body = '<question type="calculated"><name><text>sum</text></name></question>'

    assert refusal(body) == (
        "line 4: sum: questions of the type “calculated” have no counterpart here"
    )


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (
            b'<!DOCTYPE a [<!ENTITY b "cc"><!ENTITY c "&b;&b;">]><quiz>&c;</quiz>',
            "The file has a document type (DTD); remove it and try again.",
        ),
        (
            '<?xml version="1.0"?><!DOCTYPE quiz SYSTEM "file:///x"><quiz/>'.encode(
                "utf-16"
            ),
            "The file has a document type (DTD); remove it and try again.",
        ),
        (b"<quiz><question>", "The file is no XML: no element found in line 1."),
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
        (b"<qu\0iz/>", "The file holds zero bytes, so it is no text."),
    ],
)
def test_a_hostile_file_is_refused_with_a_sentence(data: bytes, sentence: str) -> None:
    with pytest.raises(Unusable) as refused:
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
    assert "Frog" in found.lost[0].reason
