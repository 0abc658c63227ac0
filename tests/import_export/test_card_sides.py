"""What a card of a package shows on its back, and which of its reviews count."""

import pytest

from app.import_export.anki.card_templates import (
    CardSides,
    CardTemplate,
    NoteType,
    render_card_sides,
)
from app.import_export.anki.package_reader import RevlogEntry
from app.import_export.anki_package_import import _convert_revlog_entry

FIELDS = ("Word", "Reading", "Meaning")
VALUES = ("日本", "日本[にほん]", "Japan")


def sides(front: str, back: str, values: tuple[str, ...] = VALUES) -> CardSides:
    template = CardTemplate(front, back)
    return render_card_sides(NoteType("Basic", FIELDS, {0: template}), values, 0)


@pytest.mark.parametrize(
    ("front", "back", "shown"),
    [
        ("{{Word}}", "{{FrontSide}}<hr id=answer>{{Meaning}}", "Japan"),
        ("{{Word}}", "{{Word}}<hr id=answer>{{Meaning}}", "Japan"),
        ("<h2>{{Word}}</h2>", "{{Word}}<hr id=answer>{{Meaning}}", "Japan"),
        ("{{Word}}", "{{Reading}}<hr id=answer>{{Meaning}}", "<div>日本[にほん]</div>Japan"),
        ("{{Word}}", "{{Word}} noun<hr id=answer>{{Meaning}}", "<div>noun</div>Japan"),
        ("{{Word}}", "{{Meaning}}", "Japan"),
    ],
)
def test_only_what_repeats_the_front_is_left_out_above_the_line(
    front: str, back: str, shown: str
) -> None:
    assert sides(front, back).back == shown


def test_the_answer_of_a_cloze_above_the_line_stays() -> None:
    kind = NoteType(
        "Cloze",
        ("Text", "Extra"),
        {0: CardTemplate("{{cloze:Text}}", "{{cloze:Text}}<hr id=answer>{{Extra}}")},
        True,
    )

    front, back = render_card_sides(kind, ("It is {{c1::so}}.", "more"), 0)

    assert (front, back) == ("It is […].", "<div>It is <strong>so</strong>.</div>more")


def test_a_reading_is_shown_by_the_filters_that_ask_for_it() -> None:
    assert sides("{{kanji:Reading}}", "{{kana:Reading}}") == ("日本", "にほん")
    assert sides("{{kanji:Word}}", "x", ("a [sound:b.mp3]", "", "")).front == "a [sound:b.mp3]"


@pytest.mark.parametrize(("factor", "counts"), [(2500, True), (0, False)])
def test_a_review_in_a_filtered_deck_counts_if_it_reschedules(factor: int, counts: bool) -> None:
    row = RevlogEntry(1, 3, 1000, revlog_kind=3, interval=5, factor=factor)

    found = _convert_revlog_entry(row, None, is_last=True)

    assert (found is not None) is counts
