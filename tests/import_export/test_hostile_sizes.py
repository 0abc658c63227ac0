"""Files that are long on purpose: what a reader does grows as they do, no faster.

Each size is such that work that grows with its square would take many minutes.
"""

import sys
from collections.abc import Callable

import pytest

from app.import_export.formats import READERS
from app.import_export.formats.gift import split_at_marks, split_gift_blocks
from app.import_export.formats.moodle_xml import parse_embedded_answers
from app.import_export.html_sanitizer import sanitize_html
from app.import_export.html_to_markdown import (
    MAX_NESTING,
    convert_html_to_markdown,
    convert_plain_text_to_markdown,
    is_nested_too_deeply,
)
from app.import_export.items import ItemSkippedError
from app.import_export.text_conversion import PicturesAndLosses
from tests.amounts import each_of_sample
from tests.import_export.package import Made, package
from tests.import_export.test_cards_in import bring


def test_one_long_answer_of_gift_is_cut_at_its_marks_alone() -> None:
    long = "x" * 2_000_000

    assert split_at_marks(f"={long}~b\\~c", "=~") == [("", ""), ("=", long), ("~", "b\\~c")]


def test_tags_of_gift_that_are_never_closed_are_no_tags() -> None:
    assert split_gift_blocks("//" + "[tag:" * 50_000 + "\nQ{=r}")[0].tags == ()


def test_thousands_of_answers_with_something_lost_are_told_once_each() -> None:
    answers = "".join(f"=w{number}*\n" for number in range(20_000))

    reading = READERS["gift"](f"::a::Q {{{answers}=x}}".encode())

    assert len(reading.losses) == 20_000


@each_of_sample("mark", ["\\\\(", "\\\\[", "\\\\[ \\\\( ", "$$ x "], 1)
def test_formulas_that_are_never_closed_stay_words(mark: str) -> None:
    assert convert_plain_text_to_markdown(mark * 60_001)


def test_formulas_are_found_as_before() -> None:
    assert (
        convert_plain_text_to_markdown(r"a \( b \( c \) d \[e\] f \(") == r"a $b \( c$ d $e$ f \\("
    )


def test_gaps_that_are_never_closed_are_no_gaps() -> None:
    text, blanks = parse_embedded_answers("{1:SA:=a} " + "{1:SA:=" * 100_000, PicturesAndLosses())

    assert len(blanks) == 1
    assert text.endswith("{1:SA:=")
    with pytest.raises(ItemSkippedError):
        parse_embedded_answers("{1:SA:=" * 100_000, PicturesAndLosses())


def test_gaps_of_qti_are_read_once_each() -> None:
    def reading(gaps: int) -> Callable[[], object]:
        data = cloze(gaps)
        return lambda: READERS["qti"](data)

    once = calls_of(reading(100))
    twice = calls_of(reading(200))

    assert twice < 2.5 * once


def cloze(gaps: int) -> bytes:
    declared = "".join(
        f'<responseDeclaration identifier="R{n}" cardinality="single"'
        ' baseType="string"><correctResponse><value>a</value></correctResponse>'
        "</responseDeclaration>"
        for n in range(gaps)
    )
    asked = "".join(f'x <textEntryInteraction responseIdentifier="R{n}"/>' for n in range(gaps))
    return (
        '<assessmentItem xmlns="http://www.imsglobal.org/xsd/imsqti_v2p1"'
        f' identifier="i" title="t">{declared}<itemBody><p>{asked}</p></itemBody>'
        "</assessmentItem>"
    ).encode()


def calls_of(work: Callable[[], object]) -> int:
    calls = 0

    def counted(_frame: object, event: str, _argument: object) -> None:
        nonlocal calls
        calls += event == "call"

    before = sys.getprofile()
    sys.setprofile(counted)
    try:
        work()
    finally:
        sys.setprofile(before)
    return calls


def test_tags_in_tags_are_told_before_they_are_parsed(
    subtests: pytest.Subtests,
) -> None:
    for unit in [
        "<b>",
        "<i a=%d>",
        "<div><p>",
        "<ul><li>",
        "<blockquote>",
        "<b></i>",
        '<i a="%d</i>">',
        "<i a=%d><!--</i>-->",
        "<i a=%d><textarea></i></textarea>",
        "<table><tr><td>",
        "<i a=%d><table><td></i></table>",
        "<I A=%d></p>",
    ]:
        with subtests.test(unit=unit):
            html = "".join(unit.replace("%d", str(n)) for n in range(20_000))

            assert is_nested_too_deeply(html)
            turned = convert_html_to_markdown(f"{html}some words")
            assert "some words" in turned.markdown
            assert turned.losses == ("its tags are left out: more than 60 stand in each other",)


def test_tags_that_follow_each_other_are_not_deep(subtests: pytest.Subtests) -> None:
    for html in [
        "<p>one" * 500,
        "<ul>" + "<li>one" * 500 + "</ul>",
        "<ul>" + "<li><p>one</p></li>" * 500 + "</ul>",
        "<table>" + "<tr><td>a<td>b" * 500 + "</table>",
        "<dl>" + "<dt>a<dd>b" * 500 + "</dl>",
        "<b>a</b> <i>b</i><br>" * 500,
        "1 < 2 and 3 > 2 " * 500,
        "<!-- note --><hr><img src='a.png'>" * 500,
        "<div>" * MAX_NESTING + "</div>" * MAX_NESTING,
    ]:
        with subtests.test(html=html):
            assert not is_nested_too_deeply(html)
            assert sanitize_html(html)


def test_a_card_of_tags_in_tags_is_left_out_and_counted(rosa) -> None:
    deep = "".join(f"<i a={n}>" for n in range(1000)) + "word"

    said = bring(rosa, package(Made("g1", (deep, "B")), Made("g2", ("F", "B"))))

    assert "1 new card" in said
    assert "tags within more than 60 others on one side" in said
