"""Numbers of other formats, read as learners type them."""

import pytest

from app.import_export.formats.gift import read_gift
from app.import_export.formats.moodle_xml import parse_embedded_answers, read_moodle
from app.import_export.formats.qti_reader import read_qti
from app.import_export.items import ImportResult, Item
from app.import_export.text_conversion import PicturesAndLosses

WRITTEN = [
    ("1,024", 1024),
    ("12,500,000", 12_500_000),
    ("1.024,5", 1024.5),
    ("1,5", 1.5),
]


def gift(number: str) -> ImportResult:
    return read_gift(f"How many?{{#{number}}}")


def moodle(number: str) -> ImportResult:
    return read_moodle(
        f"""<quiz><question type="numerical"><questiontext><text>How many?</text>
        </questiontext><answer fraction="100"><text>{number}</text></answer>
        </question></quiz>""".encode()
    )


def classic(number: str) -> ImportResult:
    return read_qti(
        f"""<questestinterop><item ident="i"><presentation><material>
        <mattext>How many?</mattext></material><response_num ident="r"/></presentation>
        <resprocessing><respcondition><conditionvar>
        <vargte respident="r">{number}</vargte><varlte respident="r">{number}</varlte>
        </conditionvar><setvar>100</setvar></respcondition></resprocessing></item>
        </questestinterop>""".encode()
    )


def newer(number: str, tolerance: str = "") -> ImportResult:
    return read_qti(
        f"""<assessmentItem identifier="i" title="t"><responseDeclaration
        identifier="R" cardinality="single" baseType="float"><correctResponse>
        <value>{number}</value></correctResponse></responseDeclaration><itemBody>
        <p>How many?</p><p><textEntryInteraction responseIdentifier="R"/></p></itemBody>
        <responseProcessing><responseCondition><responseIf><equal {tolerance}>
        <variable identifier="R"/><baseValue baseType="float">{number}</baseValue>
        </equal><setOutcomeValue identifier="SCORE"><baseValue>1</baseValue>
        </setOutcomeValue></responseIf></responseCondition></responseProcessing>
        </assessmentItem>""".encode()
    )


def center(item: Item) -> float:
    span = item.options[0].span
    assert span is not None
    return span.center


@pytest.mark.parametrize("form", [gift, moodle, classic, newer])
def test_a_comma_before_three_digits_groups_and_any_other_is_decimal(form) -> None:
    for written, meant in WRITTEN:
        assert center(form(written).items[0]) == meant


@pytest.mark.parametrize("form", [gift, classic, newer])
def test_what_is_no_number_is_refused_with_what_was_written(form) -> None:
    for written in ("12,34,567", "≈5", "1.2.3"):
        (refused,) = form(written).refused_items

        assert refused.sentence == f"“{written}” is not a number"


def test_a_weight_has_a_decimal_comma_and_is_never_a_thousand() -> None:
    (item,) = read_gift("Which?{=a ~%33,333%b ~c}").items
    refused = read_gift("Which?{=a ~%150%b ~c}").refused_items

    assert round(item.options[1].credit, 4) == 0.3333
    assert refused[0].sentence == "the weight “150” is more than 100%"


def test_a_weight_that_cannot_be_read_does_not_make_an_answer_wrong() -> None:
    reading = read_moodle(
        b"""<quiz><question type="multichoice"><single>true</single><questiontext>
        <text>Which?</text></questiontext><answer fraction="full"><text>a</text>
        </answer><answer fraction="0"><text>b</text></answer></question></quiz>"""
    )

    assert [r.sentence for r in reading.refused_items] == ["“full” is not a number"]


def test_a_number_in_a_gap_counts_with_and_without_its_comma() -> None:
    _, (gap,) = parse_embedded_answers(
        "It has {1:NUMERICAL:=1,024:0.5} bytes.", PicturesAndLosses()
    )

    assert gap.answers == ("1,024", "1024")


@pytest.mark.parametrize(
    ("tolerance", "low", "high"),
    [
        ('toleranceMode="absolute" tolerance="2"', 198, 202),
        ('toleranceMode="absolute" tolerance="2 6"', 198, 206),
        ('toleranceMode="relative" tolerance="5"', 190, 210),
    ],
)
def test_a_tolerance_of_qti_is_read_in_its_own_way(tolerance: str, low: float, high: float) -> None:
    span = newer("200", tolerance).items[0].options[0].span

    assert span is not None
    assert (span.low, span.high) == (low, high)


def test_a_comma_that_may_be_decimal_is_not_taken_for_a_group() -> None:
    clear = read_gift("How many?{#1,024}\n\nHow much?{#2,048:16}")
    mixed = read_gift("How many?{#1,024}\n\nHow much?{#1,5:0,1}\n\nAnd?{#2048}")
    beside = moodle("1,024</text></answer><answer fraction='0'><text>1,5")

    assert [center(item) for item in clear.items] == [1024, 2048]
    assert [center(item) for item in mixed.items] == [1.5, 2048]
    assert "can be 1024 or 1.024" in mixed.refused_items[0].sentence
    assert "can be 1024 or 1.024" in beside.losses[0].sentence
