"""What is said beside a question: carried by each format as far as it goes."""

import dataclasses
from collections.abc import Callable

from hypothesis import given

from app.import_export.formats.gift import read_gift, write_gift
from app.import_export.formats.moodle_xml import read_moodle, write_moodle
from app.import_export.formats.qti_reader import read_qti
from app.import_export.formats.qti_writer import write_qti
from app.import_export.items import ExportResult, ImportResult, Item, ItemPair
from tests.amounts import each_of_sample
from tests.import_export.bank import bare, told

MOST = ("single", "multiple", "true-false", "numeric", "short", "order", "match")
Write = Callable[[tuple[Item, ...]], ExportResult]
Read = Callable[[bytes], ImportResult]
FORMATS: dict[str, tuple[Write, Read]] = {
    "gift": (write_gift, lambda content: read_gift(content.decode())),
    "moodle": (write_moodle, read_moodle),
    "qti 2.1": (lambda items: write_qti(items, "2.1"), read_qti),
    "qti 3.0": (lambda items: write_qti(items, "3.0"), read_qti),
}
# What a format says it loses, and the item without it.
LOST: dict[str, Callable[[Item], Item]] = {
    "the titles of its columns are not exported": lambda i: dataclasses.replace(i, titles=("", "")),
    "feedback on wrong steps is not exported": lambda i: dataclasses.replace(
        i, options=tuple(dataclasses.replace(o, feedback="") for o in i.options)
    ),
}
KEPT = {
    "the wrong steps are listed in the explanation, and not among the steps",
    "common mistakes and reasons are appended to the explanation",
    "the common mistake is appended to the explanation",
    "the reasons of the pairs are appended to the explanation",
    "the hint of a gap is shown after a wrong answer",
    "hints are shown to tutors only",
    "hints are appended to the explanation",
    "feedback on single steps is appended to the explanation",
    "the titles of its columns are in its tags",
    "there its rule of partial credit is only similar",
}


@each_of_sample("form", FORMATS, 2)
@given(item=told(*MOST))
def test_all_comes_back_but_what_is_reported_lost(form: str, item: Item) -> None:
    comes_back(form, item)


def test_the_reason_of_a_pair_whose_left_side_is_a_sign_comes_back() -> None:
    pairs = (ItemPair("\\-", "0000", "A"), ItemPair("b", "c"))
    comes_back("gift", Item(name="n", kind="match", stem="Q", pairs=pairs))


@each_of_sample("form", [f for f in FORMATS if f != "gift"], 1)
@given(item=told("cloze"))
def test_the_hint_of_a_gap_comes_back(form: str, item: Item) -> None:
    comes_back(form, item)


def comes_back(form: str, item: Item) -> None:
    write, read = FORMATS[form]

    written = write((item,))

    assert written.refused_items == ()
    expected = bare(item)
    for remark in written.losses:
        assert remark.sentence in {*LOST, *KEPT}
        expected = LOST.get(remark.sentence, lambda i: i)(expected)
    assert [bare(i) for i in read(written.file_content).items] == [expected]
