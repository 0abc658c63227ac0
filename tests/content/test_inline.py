"""Text without marks is read by a short way, and comes out as by the long one."""

from hypothesis import given
from hypothesis import strategies as st
from markdown_it.rules_core import StateCore, inline

from app.markup.markdown_tokens import _markdown_parser, _parse_inline

MARKS = r"word [x] [ ] [ ] (b) * _ ` $ <b> &amp; \ ~~ ! https://x.org {n} # - : ^ [^k] é ×"
PARTS = st.sampled_from([*MARKS.split(" "), "[ ] ", "[x] ", " ", "\n"])
TEXTS = st.one_of(st.lists(PARTS, max_size=8).map("".join), st.text(max_size=30))
DEFINED = st.sampled_from(["", "\n\n[x]: https://example.org\n"])


@given(TEXTS, DEFINED)
def test_the_short_way_reads_what_the_long_way_reads(text: str, defined: str) -> None:
    assert children(text + defined, _parse_inline) == children(text + defined, inline)


def children(text: str, rule: object) -> list[object]:
    """The inline tokens of a text when `rule` reads them."""
    state = StateCore(text.replace("\0", "\ufffd"), _markdown_parser(), {})
    for step in _markdown_parser().core.ruler.getRules(""):
        (rule if step in (_parse_inline, inline) else step)(state)  # type: ignore[operator]
    return [[c.as_dict() for c in t.children or []] for t in state.tokens]
