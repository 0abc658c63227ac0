"""The course's own Markdown: written, read by the app's parser, the same again."""

import dataclasses
from pathlib import Path

import pytest
from hypothesis import given

from app.import_export.course_markdown import read_items_of_course_file, write_item_as_markdown
from app.import_export.items import Item, ItemOption
from app.import_export.text_conversion import make_range_around
from tests.amounts import FACTOR
from tests.conftest import SHIPPED
from tests.import_export.bank import QUESTIONS, bare, items

FRONT = '---\ntitle: "T"\nobjective: 1.1\nsource: herd\n---\n\n'


def again(item: Item, file: str = "quiz.md") -> Item:
    """The item after it was written as Markdown and parsed."""
    text = FRONT + write_item_as_markdown(item, item.name)
    reading = read_items_of_course_file(text, f"topics/t/{file}")
    assert [str(r) for r in reading.refused_items] == [], text
    return reading.items[0]


def asked(item: Item) -> Item:
    """What the front matter of `FRONT` adds, and what a parser cannot know."""
    shuffle = item.shuffle and item.kind != "true-false"
    front = {"objectives": ("1.1",), "sources": ("herd",)}
    left, right = item.titles
    titles = (left or "Item", right or "Match") if item.kind == "match" else ("", "")
    return dataclasses.replace(bare(item), shuffle=shuffle, titles=titles, **front)


def plain(item: Item) -> bool:
    """Whether nothing in the stem looks like an answer; such an item is refused."""
    return not (item.kind == "match" and "|---" in item.stem)


@given(items(*QUESTIONS).filter(plain))
def test_a_question_of_any_type_is_read_as_it_was_written(item: Item) -> None:
    assert bare(again(item)) == asked(item)


def test_a_number_with_its_unit_is_read_to_the_last_digit() -> None:
    options = (ItemOption("", True, span=make_range_around(2.855, 0.0, "GB")),)

    assert again(Item("a-b", "numeric", "How much?", options=options)).options == options


def test_a_list_in_the_stem_does_not_swallow_the_options() -> None:
    options = (ItemOption("first", True), ItemOption("second", False))
    item = Item("a-b", "single", "Which?\n\n- one\n- two", options=options)

    assert again(item).stem == item.stem
    assert again(item).options == options


@given(items("card").filter(lambda card: "\n\n" not in card.stem))
def test_a_card_is_read_as_it_was_written(item: Item) -> None:
    assert bare(again(item, "cards.md")) == asked(item)


@pytest.mark.drawn
def test_every_item_of_the_course_is_read_as_it_was_written(subtests: pytest.Subtests) -> None:
    """Those of every thirtieth file; `make drills`: of all."""
    for path in sorted(SHIPPED.glob("topics/*/*.md"))[:: 30 if FACTOR == 1 else 1]:
        with subtests.test(path=f"{path.parent.name}/{path.name}"):
            read_again(path)


def read_again(path: Path) -> None:
    place = f"topics/{path.parent.name}/{path.name}"
    text = path.read_text(encoding="utf-8")
    for item in read_items_of_course_file(text, place).items:
        file = "cards.md" if item.kind == "card" else "quiz.md"
        known = dataclasses.replace(
            again(item, file), objectives=item.objectives, sources=item.sources
        )
        assert dataclasses.replace(known, line=item.line) == item
