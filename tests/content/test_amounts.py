"""Figures stand in one place: items and drawings check them, and plain ones are told."""

import random
import re
import sys
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from app.content.file_reader import parse_file
from app.content.parsed_file import ParsedFile
from app.content.uncomputed_amounts import (
    KEEP_PLAIN,
    check_plain_amounts,
    find_amounts_in_source,
)
from app.estimator import data_files
from app.estimator.hardware import catalog
from app.estimator.hardware.part_values import find_part
from app.estimator.units import format_value
from app.markup.checked_figures import (
    FIGURE_LINK,
    SVG_FIGURE,
    parse_figure_link,
    replace_figure_links_by_text,
)
from app.markup.model import Flashcard, SvgFigure
from app.questions.model import Question
from app.questions.types.numeric import NumericSpec
from tests.amounts import FACTOR
from tests.conftest import SHIPPED

MEMORY = "hw:h100-sxm5-80#memory"


def targets(text: str) -> list[tuple[str, str]]:
    """The plain amounts of a text that a figure has, with that figure."""
    return [
        (a.text, a.equal_figure_target)
        for a in find_amounts_in_source(text).plain_amounts
        if a.equal_figure_target
    ]


def test_an_amount_is_told_if_a_part_beside_it_has_this_value(
    subtests: pytest.Subtests,
) -> None:
    for text, expected in {
        "An H100 has 80 GB.": [("80 GB", MEMORY)],
        "An H100 reads 3.35 TB/s.": [("3.35 TB/s", "hw:h100-sxm5-80#memory_bandwidth")],
        "An H100 reads 3,350 GB/s.": [("3,350 GB/s", "hw:h100-sxm5-80#memory_bandwidth")],
        "BF16 on an H100: 989 TFLOPS.": [("989 TFLOPS", "hw:h100-sxm5-80#bf16")],
        "Two DGX H100 draw 20.4 kW.": [("20.4 kW", "hw:dgx-h100?count=2#power")],
        "An L4 draws 72 W. It has 24 GB.": [("72 W", "hw:l4#tdp"), ("24 GB", "hw:l4#memory")],
        "Llama 3.1 70B in BF16 takes 141 GB.": [
            ("141 GB", "calc:weights?model=llama-3.1-70b&weights=bf16#total")
        ],
        "---\ntitle: The L4\n---\n\nIt draws 72 W.": [("72 W", "hw:l4#tdp")],
        '<svg><title>An L4</title><text x="1">72 W</text></svg>': [("72 W", "hw:l4#tdp")],
    }.items():
        with subtests.test(text):
            assert targets(text) == expected


def test_what_is_no_plain_value_of_a_named_part_is_not_told(subtests: pytest.Subtests) -> None:
    for text in (
        "An H100 has 81 GB.",
        "A card has 80 GB.",
        f"An H100 has [80 GB]({MEMORY}).",
        f"An H100 once had 80 GB{KEEP_PLAIN}.",
        "An H100 <!-- has 80 GB -->.",
        "```text\nNVIDIA H100, 80 GB\n```",
        "An NVIDIA H100 80GB HBM3",
        "A chip with 80 TB/s is 24 times as fast as an H100.",
        "## L4\n\nSmall.\n\n## Another\n\nIt draws 72 W.",
        f'<svg><desc>An H100: <tspan data-figure="{MEMORY}">80 GB</tspan></desc></svg>',
    ):
        with subtests.test(text):
            assert targets(text) == []


def test_an_estimate_of_the_page_is_told_in_the_questions_of_its_topic() -> None:
    page = "It takes [1,120 GB](calc:training-memory?model=70B#states)."
    question = "The state takes 1120 GB."
    files = {
        "topics/a/concept.md": find_amounts_in_source(page),
        "topics/a/quiz.md": find_amounts_in_source(question),
        "topics/b/quiz.md": find_amounts_in_source(question),
    }

    found = list(check_plain_amounts(files))

    assert [(p.path, p.code, p.column) for p in found] == [("topics/a/quiz.md", "W98", 17)]
    assert "[1120 GB](calc:training-memory?model=70B#states)" in found[0].hint


def test_reading_the_amounts_of_a_hostile_file_ends() -> None:
    for text in ("<!--" * 50_000, "```\n" * 50_001, "H100 80 GB 7 " * 9_000, "[" * 99_999):
        assert len(find_amounts_in_source(text).plain_amounts) <= 1_000


QUIZ = f"""---
title: Case
objective: 1.1
source: herd
---

### What has an H100 of [700 W](hw:h100-sxm5-80#tdp)?
<!-- q: case-memory
type: numeric
-->

- [x] [`80 GB ± 2%`]({MEMORY})
- [ ] `700 GB`
  > That's the power: [700 W](hw:h100-sxm5-80#tdp).

> [!TIP]
> Two have [160 GB](hw:h100-sxm5-80?count=2#memory).

> [!NOTE]
> An H100 has [80 GB]({MEMORY}).
"""


def question_in(text: str) -> tuple[ParsedFile, Question]:
    parsed = parse_file(text, "topics/case/quiz.md")
    return parsed, parsed.questions[0]


def test_a_figure_in_a_question_changes_neither_revision_nor_keys() -> None:
    linked, question = question_in(QUIZ)
    plain, same = question_in(replace_figure_links_by_text(QUIZ))

    assert linked.problems == ()
    assert question.revision == same.revision
    assert isinstance(question.answer, NumericSpec)
    assert [o.key for o in question.answer.options] == [
        o.key for o in getattr(same.answer, "options", ())
    ]
    for name in (
        "sketch",
        "options",
        "answer_key_hash",
        "heading_hash",
        "body_hash",
        "sketch_with_comment",
    ):
        assert getattr(linked.fingerprints[0], name) == getattr(plain.fingerprints[0], name)


def test_another_value_is_another_revision() -> None:
    other = QUIZ.replace("of [700 W]", "of [0.7 kW]")

    assert parse_file(other, "topics/case/quiz.md").problems == ()
    assert question_in(other)[1].revision != question_in(QUIZ)[1].revision


def test_what_is_asked_shows_no_link_and_what_explains_it_does() -> None:
    question = question_in(QUIZ)[1]

    assert question.stem.html == "What has an H100 of 700 W?"
    assert question.hints[0].html == "Two have 160 GB."
    assert 'href="/hardware/h100-sxm5-80#memory"' in question.explanation.html
    assert isinstance(question.answer, NumericSpec)
    assert 'href="/hardware/h100-sxm5-80#tdp"' in question.answer.options[1].feedback.html


def test_a_stale_figure_in_an_item_is_told_and_mended(subtests: pytest.Subtests) -> None:
    for right, wrong in (
        ("[700 W](", "[650 W]("),
        ("[`80 GB ± 2%`](", "[`90 GB ± 2%`]("),
        ("[160 GB](", "[150 GB]("),
        ("An H100 has [80 GB](", "An H100 has [70 GB]("),
    ):
        with subtests.test(wrong):
            text = QUIZ.replace(right, wrong, 1)
            parsed = parse_file(text, "topics/case/quiz.md")
            assert [p.code for p in parsed.problems] == ["E82"]
            assert mended(text, parsed) == QUIZ


def mended(text: str, parsed: ParsedFile) -> str:
    lines = text.split("\n")
    for edit in parsed.text_edits:
        line = lines[edit.line - 1]
        start = edit.column - 1
        assert line.startswith(edit.old_text, start)
        lines[edit.line - 1] = line[:start] + edit.new_text + line[start + len(edit.old_text) :]
    return "\n".join(lines)


def test_the_same_stale_figure_twice_in_a_line_is_mended_twice() -> None:
    text = QUIZ.replace("An H100 has [80 GB]", f"It's [70 GB]({MEMORY}), yes, [70 GB]")
    parsed = parse_file(text, "topics/case/quiz.md")

    assert mended(text, parsed) == text.replace("70 GB", "80 GB")


def test_a_card_shows_its_figures_as_text() -> None:
    card = f"---\ntitle: C\n---\n\n### H100?\n<!-- q: c -->\n\nIt has [80 GB]({MEMORY}).\n"
    shown = parse_file(card, "topics/case/cards.md").cards[0]

    assert isinstance(shown, Flashcard)
    assert shown.back.html == "It has 80 GB."


SVG = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 40 20"><title>An L4</title>'
    '<desc>It draws <tspan data-figure="hw:l4#tdp">72 W</tspan>.</desc>'
    '<text x="1" y="9"><tspan data-figure="hw:l4#memory">24 GB</tspan>, small</text></svg>'
)


def test_a_drawing_is_checked_and_shown_as_if_its_figures_were_text() -> None:
    found = parse_file(SVG, "topics/case/l4.svg")
    plain = parse_file(SVG_FIGURE.sub(lambda m: m["text"], SVG), "topics/case/l4.svg")

    assert found.problems == ()
    assert isinstance(found.drawing, SvgFigure)
    assert found.drawing == plain.drawing
    assert found.drawing.desc == "It draws 72 W."
    stale = parse_file(SVG.replace("72 W", "75 W"), "topics/case/l4.svg")
    assert [(p.code, p.column) for p in stale.problems] == [("E82", SVG.index("<tspan") + 1)]
    assert mended(SVG.replace("72 W", "75 W"), stale) == SVG


def test_a_caption_and_a_drawing_of_bars_are_checked(subtests: pytest.Subtests) -> None:
    front = "---\ntitle: Case\nsources: herd\n---\n\n"
    for body in (
        f'![An H100](h100.svg "It has [70 GB]({MEMORY}).")\n',
        f"```figure bar\ntitle: An H100 of [70 GB]({MEMORY})\nalt: A\nunit: GB\nrows:\n  A: 1 GB\n```\n",
    ):
        with subtests.test(body):
            parsed = parse_file(front + body, "topics/case/concept.md")
            assert [p.code for p in parsed.problems if p.code != "E61"] == ["E82"]
            assert "](" not in str(parsed.topic)


# --- the shipped course, when a value of the catalog changes ---

_TABLES = (
    ("accelerators.toml", "accelerator"),
    ("systems.toml", "system"),
    ("networks.toml", "network"),
)


def catalog_values() -> list[tuple[str, str]]:
    """The (part, key in its table) of each number of the catalog."""
    return sorted(
        (part, key)
        for table in _TABLES
        for part, row in data_files.load_table_entries_by_id(*table).items()
        for key, value in row.items()
        if isinstance(value, int | float) and not isinstance(value, bool)
    )


def shown_values(files: Mapping[str, str]) -> list[tuple[str, str]]:
    """Those of them that a figure of the course shows."""
    links = (
        m["target"]
        for t in files.values()
        for p in (FIGURE_LINK, SVG_FIGURE)
        for m in p.finditer(t)
    )
    shown = {
        (t.estimate_or_entry_name, t.output_or_field_name)
        for link in links
        if (t := parse_figure_link(link)) and t.scheme == "hw"
    }
    return [(p, key) for p, key in catalog_values() if (p, catalog.field_of_toml_key(key)) in shown]


def forget_computed_values() -> None:
    """Clear every cache of the app that may hold a value of the catalog."""
    for name, module in list(sys.modules.items()):
        if name.startswith(("app.estimator", "app.markup", "app.content")):
            for value in list(vars(module).values()):
                if callable(getattr(value, "cache_clear", None)) and value not in (
                    data_files.load_toml,
                    data_files.load_table_entries_by_id,
                ):
                    value.cache_clear()


@pytest.fixture
def changed_row() -> Iterator[dict[str, Any]]:
    """Holds the row that a test changes; puts it back."""
    kept: dict[str, Any] = {}
    yield kept
    if kept:
        kept["row"].update(kept["before"])
    forget_computed_values()


def old_amounts(part: str, key: str) -> set[str]:
    """How the course may write a value: as the catalog pages do, and with digits in groups."""
    found = find_part(part)
    value = found.get(catalog.field_of_toml_key(key)) if found else None
    if value is None or not value.field.unit or not isinstance(value.number, int | float):
        return set()
    units = {value.field.display_unit or value.field.unit, value.field.unit}
    texts = {format_value(value.number, unit).replace("\u00a0", " ") for unit in units}
    return {text for text in texts if re.match(r"\d", text)}


def plain_places(files: Mapping[str, str], part: str, key: str) -> Iterator[tuple[str, int]]:
    """Lines that name a part and show a value of it outside of figures and marked amounts."""
    found = find_part(part)
    names = [n for n in (found.aliases if found else ()) if re.match("[A-Z]", n)]
    named = re.compile(rf"(?<![\w-])(?:{'|'.join(map(re.escape, names)) or '$^'})(?![\w-])")
    shown = [
        re.compile(rf"(?<![\d.,]){re.escape(t)}\b(?! ?<!-- plain)") for t in old_amounts(part, key)
    ]
    for path, text in files.items():
        bare = SVG_FIGURE.sub("…", FIGURE_LINK.sub("…", text))
        for number, line in enumerate(bare.split("\n"), 1):
            if named.search(line) and any(s.search(line) for s in shown):
                yield path, number


@pytest.mark.drawn
def test_each_place_that_shows_a_changed_value_is_told(changed_row: dict[str, Any]) -> None:
    files = {
        path.relative_to(SHIPPED).as_posix(): path.read_text("utf-8")
        for path in sorted(SHIPPED.rglob("*"))
        if path.suffix in {".md", ".svg"}
    }
    chance = random.Random(7)  # noqa: S311
    for part, key in chance.sample(catalog_values(), 4 * FACTOR):
        assert list(plain_places(files, part, key)) == []
    for part, key in chance.sample(shown_values(files), 2 * FACTOR):
        field = catalog.field_of_toml_key(key)
        assert list(plain_places(files, part, key)) == []
        figure = re.compile(rf"hw:{re.escape(part)}(?:\?count=\d+)?#{field}[)\"]")
        places = {
            (path, number)
            for path, text in files.items()
            for number, line in enumerate(text.split("\n"), 1)
            if figure.search(line)
        }
        row = next(r for t in _TABLES if (r := data_files.load_table_entries_by_id(*t).get(part)))
        changed_row.update(row=row, before={key: row[key]})
        row[key] = 3 * row[key] + 1
        forget_computed_values()
        told = {
            (p.path, p.line)
            for path in {path for path, _ in places}
            for p in parse_file(files[path], path).problems
            if p.code == "E82"
        }
        row[key] = changed_row["before"][key]
        forget_computed_values()
        assert places <= told, (part, key)
