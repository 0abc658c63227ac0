"""QTI 2.1 and 3.0 in and out."""

import io
import zipfile

import pytest
from hypothesis import given

from app.import_export import UnusableFileError
from app.import_export.formats.qti_reader import read_qti
from app.import_export.formats.qti_writer import write_qti
from app.import_export.items import Item
from tests.import_export.bank import QUESTIONS, bare, items

V3 = "http://www.imsglobal.org/xsd/imsqtiasi_v3p0"
CHOICE = f"""<qti-assessment-item xmlns="{V3}" identifier="a" title="Sky">
<qti-response-declaration identifier="RESPONSE" cardinality="single"
  base-type="identifier"><qti-correct-response><qti-value>B</qti-value>
  </qti-correct-response></qti-response-declaration>
<qti-item-body><p>Look up.</p>
<qti-choice-interaction response-identifier="RESPONSE" max-choices="1">
<qti-prompt>Which color?</qti-prompt>
<qti-simple-choice identifier="A">Green</qti-simple-choice>
<qti-simple-choice identifier="B">Blue</qti-simple-choice>
<qti-simple-choice identifier="C">Red</qti-simple-choice>
</qti-choice-interaction></qti-item-body></qti-assessment-item>"""


def packed(**files: str | bytes) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name.replace("__", "/"), content)
    return out.getvalue()


@pytest.mark.parametrize("version", ["2.1", "3.0"])
@given(item=items(*QUESTIONS))
def test_what_is_written_is_read_again(version: str, item: Item) -> None:
    written = write_qti((item,), version)

    assert written.refused_items == ()
    assert [bare(i) for i in read_qti(written.file_content).items] == [bare(item)]


def test_a_choice_of_another_program_is_read() -> None:
    item = read_qti(CHOICE.encode()).items[0]

    assert item.stem == "Look up.\n\nWhich color?"
    assert [(o.text, o.right) for o in item.options] == [
        ("Green", False),
        ("Blue", True),
        ("Red", False),
    ]


def test_an_older_spelling_says_the_same() -> None:
    old = CHOICE.replace("qti-assessment-item", "assessmentItem")
    for name in ("response-declaration", "correct-response", "item-body"):
        old = old.replace(f"qti-{name}", name.split("-")[0] + name.split("-")[1].title())
    old = old.replace("qti-choice-interaction", "choiceInteraction")
    old = old.replace("qti-simple-choice", "simpleChoice").replace("qti-", "")
    old = old.replace("response-identifier", "responseIdentifier")
    old = old.replace("max-choices", "maxChoices")

    assert read_qti(old.encode()).items == read_qti(CHOICE.encode()).items


def test_a_broken_item_is_named_and_its_neighbors_stay() -> None:
    reading = read_qti(packed(a__xml=b"", **{"a.xml": CHOICE, "b.xml": "<oops"}))

    assert [i.name for i in reading.items] == ["Sky"]
    assert str(reading.refused_items[-1]).startswith("b.xml: The file is not XML")


def test_a_hostile_file_is_refused_with_a_sentence(subtests: pytest.Subtests) -> None:
    for data, sentence in [
        (packed(**{"../a.xml": CHOICE}), "names a file outside of it"),
        (packed(**{"/etc/a.xml": CHOICE}), "names a file outside of it"),
        (packed(**{"c:\\a.xml": CHOICE}), "names a file outside of it"),
        (packed(**{"a.xml": b"0" * 40_000_000}), "unpack to far more than its size"),
        (packed(**{f"{n}.txt": "" for n in range(5001)}), "more than 5,000 files"),
        (b"PK\x03\x04 no archive", "cannot be read"),
        (packed(**{"a.txt": "x"}), "The package holds no items."),
        (b"<manifest/>", "not with an item"),
    ]:
        with subtests.test(sentence), pytest.raises(UnusableFileError, match=sentence):
            read_qti(data)


@pytest.mark.parametrize("version", ["2.1", "3.0"])
def test_a_package_lists_its_files(version: str) -> None:
    written = write_qti((Item("x-1", "card", "a", text="b"),), version)
    assert str(written.refused_items[0]) == "x-1: QTI has no question of the type card"

    item = read_qti(CHOICE.encode()).items[0]
    archive = zipfile.ZipFile(io.BytesIO(write_qti((item, item), version).file_content))

    assert archive.namelist() == ["imsmanifest.xml", "items/Sky.xml", "items/Sky-2.xml"]
    assert b'href="items/Sky-2.xml"' in archive.read("imsmanifest.xml")


def test_a_mapping_says_what_each_tick_brings() -> None:
    entries = (("a", "1"), ("b", "1"), ("c", "-1"))
    mapped = "".join(f'<mapEntry mapKey="{key}" mappedValue="{value}"/>' for key, value in entries)
    choices = "".join(
        f'<simpleChoice identifier="{key}">{key}</simpleChoice>' for key, _ in entries
    )
    text = (
        '<assessmentItem identifier="i" title="t"><responseDeclaration identifier="R"'
        ' cardinality="multiple" baseType="identifier"><correctResponse>'
        "<value>a</value><value>b</value></correctResponse>"
        f"<mapping>{mapped}</mapping></responseDeclaration><itemBody><p>Which?</p>"
        f'<choiceInteraction responseIdentifier="R" maxChoices="0">{choices}'
        '</choiceInteraction></itemBody><responseProcessing template="map_response"/>'
        "</assessmentItem>"
    )
    (weighed,) = read_qti(text.encode()).items
    (whole,) = read_qti(text.replace("map_response", "match_correct").encode()).items

    assert [o.right for o in weighed.options] == [True, True, False]
    assert (weighed.partial, whole.partial) == ("net", "off")


def test_feedback_that_follows_no_choice_and_ranges_are_told() -> None:
    text = (
        '<assessmentItem identifier="i" title="t"><responseDeclaration identifier="R"'
        ' cardinality="single" baseType="float"><correctResponse><value>5</value>'
        "</correctResponse></responseDeclaration><itemBody><p>How many?</p><p>"
        '<textEntryInteraction responseIdentifier="R"/></p></itemBody>'
        "<responseProcessing><responseCondition><responseIf><and>"
        '<gte><variable identifier="R"/><baseValue baseType="float">4</baseValue></gte>'
        '<lte><variable identifier="R"/><baseValue baseType="float">6</baseValue></lte>'
        '</and><setOutcomeValue identifier="SCORE"><baseValue>1</baseValue>'
        "</setOutcomeValue></responseIf></responseCondition></responseProcessing>"
        '<modalFeedback identifier="x" outcomeIdentifier="F">Near.</modalFeedback>'
        "</assessmentItem>"
    )
    lost = [remark.sentence.partition(":")[0] for remark in read_qti(text.encode()).losses]

    assert lost == [
        "its range is not read",
        "feedback that belongs to no choice is left out",
    ]


V2 = "http://www.imsglobal.org/xsd/imsqti_v2p1"


def text_entry(base: str, declared: str) -> bytes:
    return (
        f'<assessmentItem xmlns="{V2}" identifier="i" title="Memory">'
        '<responseDeclaration identifier="R" cardinality="single" '
        f'baseType="{base}">{declared}</responseDeclaration><itemBody>'
        '<p>It has <textEntryInteraction responseIdentifier="R"/> bytes.</p>'
        "</itemBody></assessmentItem>"
    ).encode()


@pytest.mark.parametrize("base", ["float", "integer"])
def test_a_number_in_a_gap_may_be_typed_as_its_digits(base: str) -> None:
    right = "<correctResponse><value>1,024</value></correctResponse>"
    reading = read_qti(text_entry(base, right))

    assert reading.items[0].blanks[0].answers == ("1,024", "1024")
    assert "a number in a gap is compared as words" in reading.losses[0].sentence


def test_a_word_in_a_gap_that_is_worth_a_part_is_told() -> None:
    mapped = (
        '<mapping><mapEntry mapKey="HBM" mappedValue="1"/>'
        '<mapEntry mapKey="DRAM" mappedValue="0.5"/></mapping>'
    )
    reading = read_qti(text_entry("string", mapped))

    assert reading.items[0].blanks[0].answers == ("HBM",)
    assert "partly right counts as wrong" in reading.losses[0].sentence
