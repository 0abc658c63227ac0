"""The picture of the house is drawn from the imports of today."""

import pytest

from docs.reference import house
from docs.reference.parts import filled

GRAPH = {
    "top": frozenset({"middle", "low"}),
    "middle": frozenset({"low"}),
    "low": frozenset(),
    "apart": frozenset({"low"}),
}


def test_the_document_is_up_to_date() -> None:
    text = house.PATH.read_text(encoding="utf-8")

    assert house.document() == text, "run: make docs"


def test_the_pictures_are_up_to_date() -> None:
    for name, drawing in house.pictures().items():
        assert (house.PICTURES / name).read_text(encoding="utf-8") == drawing, name


def test_every_import_of_a_picture_points_down() -> None:
    rows = house.levels(GRAPH)

    assert rows == (("top",), ("apart", "middle"), ("low",))


def test_who_imports_each_other_shares_a_row() -> None:
    ring = {**GRAPH, "low": frozenset({"middle"})}

    assert house.levels(ring) == (("apart", "top"), ("low", "middle"))


def test_a_line_that_others_imply_is_not_drawn() -> None:
    assert house.needed(GRAPH) == {**GRAPH, "top": frozenset({"middle"})}


def test_a_line_that_passes_a_row_goes_around_its_boxes() -> None:
    drawing = house.svg({**GRAPH, "far": frozenset({"top", "apart"})})

    assert drawing.count("<rect") == 5
    assert drawing.count("<path") == 1 + 6  # the roof, five lines, one in two pieces


def test_the_document_names_every_room_with_what_it_is_for() -> None:
    text = house.PATH.read_text(encoding="utf-8")

    for name in (room for row in house.contract_rows() for room in row):
        assert f"| `{name}` | " in text
    assert "|  |  |" not in text


def test_a_part_without_a_mark_is_a_mistake() -> None:
    with pytest.raises(ValueError, match="no mark for units"):
        filled("Nothing is marked here.", {"units": "B"})
