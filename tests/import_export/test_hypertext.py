"""HTML of strangers to Markdown, and back."""

import re

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from app.import_export.html_to_markdown import (
    convert_html_to_markdown,
    convert_plain_text_to_markdown,
)
from app.import_export.markdown_to_html import convert_markdown_to_html, convert_tokens_to_markdown
from app.markup.markdown_tokens import parse_markdown, plain_text
from tests.import_export.bank import SIGNS, STEMS

TEX = re.compile(r"\\[(\[]")
"""How mathematics begins in Moodle; it becomes ours and is not taken for words."""


def test_html_becomes_markdown(subtests: pytest.Subtests) -> None:
    for html, markdown in [
        ("<p>one</p><p>two</p>", "one\n\ntwo"),
        ("a<br>b", "a\\\nb"),
        ("<b>x </b>y", "**x** y"),
        ("<script>alert(1)</script>safe", "safe"),
        ("<img src=x onerror=alert(1)>", ""),
        ("<a href='javascript:x()'>no</a>", "no"),
        ("<a href='https://a.b/'>yes</a>", "[yes](https://a.b/)"),
        ("<ol><li>a</li><li>b</li></ol>", "1. a\n2. b"),
        ("<pre>x\n  y</pre>", "```\nx\n  y\n```"),
        ("1. no list", "1\\. no list"),
        ("\\(x < y\\)", "$x < y$"),
        ("$5 and $6", "\\$5 and \\$6"),
        ("<h2>Title</h2>text", "**Title**\n\ntext"),
        ("[[gap]] [x] <!-- q: x -->", "\\[\\[gap\\]\\] \\[x\\]"),
    ]:
        with subtests.test(html=html, markdown=markdown):
            assert convert_html_to_markdown(html).markdown == markdown


def test_a_picture_left_out_is_named() -> None:
    assert convert_html_to_markdown("<img src='a.png' alt='A cat'>").losses == (
        "a picture (A cat) is left out",
    )


@given(st.text(SIGNS, max_size=60))
def test_plain_words_stay_the_words_they_are(words: str) -> None:
    assume(not TEX.search(words))
    meant = " ".join(words.split())

    assert plain_text(parse_markdown(convert_plain_text_to_markdown(meant))) == meant


def test_mathematics_in_plain_words_becomes_ours() -> None:
    assert convert_plain_text_to_markdown(r"\[0\] and \(x\)") == "$0$ and $x$"


def canonical(markdown: str) -> str:
    """Markdown written in the one way in which the room writes it."""
    return convert_tokens_to_markdown(parse_markdown(markdown))


@given(STEMS)
def test_our_way_of_writing_is_stable(markdown: str) -> None:
    assert canonical(markdown) == markdown
    assert convert_markdown_to_html(canonical(markdown)) == convert_markdown_to_html(markdown)


@given(st.text("<>/abipdtruhcol1=\"' &;#\n\\$()[]-", max_size=80))
def test_no_html_is_too_odd(html: str) -> None:
    text = convert_html_to_markdown(html).markdown

    assert "<script" not in convert_markdown_to_html(text)
    assert canonical(canonical(text)) == canonical(text)


def test_a_formula_that_canvas_shows_as_a_picture_stays_a_formula() -> None:
    turned = convert_html_to_markdown(
        'It is <img class="equation_image" src="/equation_images/x%5E2?scale=1" '
        'alt="LaTeX: x^2" data-equation-content="x^2 &lt; y"> here.'
    )

    assert turned.markdown == "It is $x^2 < y$ here."
    assert turned.losses == ()


@pytest.mark.parametrize("style", ["hebrew", "katakana", "cjk-ideographic", "disc"])
def test_a_list_that_is_counted_in_a_way_that_is_not_known_is_told(style: str) -> None:
    turned = convert_html_to_markdown(f'<ol style="list-style-type:{style}"><li>A</li></ol>')

    assert turned.losses == ("a list has other numbers here: look at what names them",)
