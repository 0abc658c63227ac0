"""The errors that the document states are those of the committed result."""

import pytest

from docs.reference import accuracy
from docs.reference.parts import filled


def test_the_document_is_up_to_date() -> None:
    text = accuracy.PATH.read_text(encoding="utf-8")

    assert accuracy.document() == text, "run: make docs"


def test_a_part_without_a_mark_is_a_mistake() -> None:
    with pytest.raises(ValueError, match="no mark for units"):
        filled("Nothing is marked here.", {"units": "B"})
