"""Text without marks is read by a short way, and comes out as by the long one."""

from hypothesis import given
from hypothesis import strategies as st
from markdown_it.rules_core import StateCore, inline

from app.markup.html_renderer import RenderContext, render_tokens
from app.markup.markdown_tokens import _markdown_parser, _parse_inline, parse_markdown
from app.markup.problems import ParseContext

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


def test_marks_beside_punctuation_work_where_no_spaces_are() -> None:
    expected = {
        "这是**“重点”**内容和**重点。**然后。": "这是<strong>“重点”</strong>内容和<strong>重点。</strong>然后。",
        "餌は**「粉と水」**だけ": "餌は<strong>「粉と水」</strong>だけ",
        "**강조(强调)**를": "<strong>강조(强调)</strong>를",
        "これは~~「誤り」~~です": "これは<s>「誤り」</s>です",
        "a**(b)**c": "a**(b)**c",
    }
    for text, html in expected.items():
        found = render_tokens(parse_markdown(text), RenderContext(ParseContext("x.md", text)))
        assert found.html == html
