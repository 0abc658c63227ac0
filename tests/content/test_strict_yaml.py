"""Plain lines of metadata are read by a short way, and come out as by YAML."""

from hypothesis import given
from hypothesis import strategies as st

from app.markup.strict_yaml import YamlText, _read_plain_lines, _read_yaml

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

    plain = _read_plain_lines(text, 7, column)

    if plain is not None:
        assert plain == _read_yaml(text, lambda *p: reported.append(p), 7, column)
        assert reported == []


def test_a_plain_block_says_where_its_words_stand() -> None:
    found = _read_plain_lines("q: kv-cache-size \ndifficulty:  2\n", 7, 6)

    assert found is not None
    assert found.values["q"] == YamlText("kv-cache-size", 7, 9)
    assert found.values["difficulty"] == YamlText("2", 8, 14)
    assert (found.line, found.column) == (7, 6)
