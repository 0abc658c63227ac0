"""Plain lines of metadata are read by a short way, and come out as by YAML."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.markup.lenient_yaml import (
    YamlText,
    _parse_plain_lines_or_none,
    _parse_with_yaml_parser,
    parse_mapping,
    text_or_empty,
)

KEYS = st.sampled_from(["q", "type", "difficulty", "tags", "Q", "a b", "- q", "x_y"])
VALUES = st.one_of(
    st.sampled_from(["", "yes", "1.1", "~", "kv-cache", "a, b", "a: b", "[a]", "'a'"]),
    st.text("ab1 ,.()/_'-:#[]{}\"|>&*!%@`?=", max_size=12),
)
LINES = st.builds(
    lambda lead, key, gap, value: f"{lead}{key}:{gap}{value}",
    st.sampled_from(["", "", "", " "]),
    KEYS,
    st.sampled_from(["", " ", " ", "  ", "\t"]),
    VALUES,
)


@given(st.lists(LINES, max_size=4), st.integers(1, 9))
def test_plain_lines_come_out_as_from_yaml(lines: list[str], column: int) -> None:
    text = "\n".join(lines)
    reported: list[tuple[object, ...]] = []

    plain = _parse_plain_lines_or_none(text, 7, column)

    if plain is not None:
        assert plain == _parse_with_yaml_parser(text, lambda *p: reported.append(p), 7, column)
        assert reported == []


def test_a_plain_block_says_where_its_words_stand() -> None:
    found = _parse_plain_lines_or_none("q: kv-cache-size \ndifficulty:  2\n", 7, 6)

    assert found is not None
    assert found.values["q"] == YamlText("kv-cache-size", 7, 9)
    assert found.values["difficulty"] == YamlText("2", 8, 14)
    assert (found.line, found.column) == (7, 6)


def read(text: str) -> tuple[dict[str, str], list[tuple[str, int, str]]]:
    problems: list[tuple[str, int, str]] = []
    fields = parse_mapping(
        text,
        lambda code, line, _, __, hint: problems.append((code, line, hint)),
        known_keys=KEYS_OF_PAGE,
    )
    return {key: text_or_empty(node) for key, node in fields.values.items()}, problems


KEYS_OF_PAGE = ("title", "objective", "summary")


def test_a_sentence_may_hold_a_colon(subtests: pytest.Subtests) -> None:
    for sentence in (
        "An H100 has two ways out: NVLink and PCIe.",
        "It's simple: “no”, it says: 5",
        'He said "no": that was all',
        "What it needs:",
        "Two: three, four [five]: {six}",
    ):
        with subtests.test(sentence):
            lines = f"title: Ways: two\nsummary: {sentence}\nobjective: 1.1"
            values = {"title": "Ways: two", "summary": sentence, "objective": "1.1"}
            assert read(lines) == (values, [])


def test_a_colon_behind_a_key_is_a_missing_line_and_the_hint_has_the_whole_value() -> None:
    value = "An H100 moves 900 GB/s over NVLink, and 128 GB/s over PCIe Gen 5. objective: 1.1"

    _, problems = read(f"title: Ways\nsummary: {value}")

    assert problems == [("E10", 2, f'Write summary: "{value}", or each key on its own line.')]


def test_other_keys_take_no_colon() -> None:
    _, problems = read("title: Ways\nobjective: a: b")

    assert [problem[:2] for problem in problems] == [("E10", 2)]


def test_a_sentence_on_several_lines_is_left_to_yaml() -> None:
    values, problems = read("summary: One\n  two\ntitle: Ways: two")

    assert (values, problems) == ({"summary": "One two", "title": "Ways: two"}, [])
