"""Code, lists and formulas of other programs: lines and labels stay what they are."""

import pytest

from app.import_export.formats.spreadsheet_reader import read_spreadsheet
from app.import_export.html_to_markdown import (
    convert_html_to_markdown,
    convert_plain_text_to_markdown,
    join_into_one_line,
)
from app.import_export.items import ItemSkippedError
from app.import_export.markdown_to_html import convert_tokens_to_markdown
from app.markup.markdown_tokens import parse_markdown

LOOP = "for i in range(3):\n    if i == 1:\n        print(i)"


def test_lines_of_plain_text_stay_lines(subtests: pytest.Subtests) -> None:
    for words, markdown in [
        (f"What is shown?\n{LOOP}", f"What is shown?\n\n```\n{LOOP}\n```"),
        (f"```python\n{LOOP}\n```\nWhat?", f"```\n{LOOP}\n```\n\nWhat?"),
        (
            "Look:\n\n    int a = 3;\n\n    int b = a++;\n\n    What is b?",
            "Look:\n\n```\nint a = 3;\n\nint b = a++;\n```\n\nWhat is b?",
        ),
        ("if (x) {\n\ty = 1;\n}", "```\nif (x) {\n    y = 1;\n}\n```"),
        ("def f():\n  return 1", "```\ndef f():\n  return 1\n```"),
        ("SELECT a\nFROM t", "SELECT a\\\nFROM t"),
        ("| a | b |\n|---|---|\n| 1 | * |", "| a | b |\n|---|---|\n| 1 | \\* |"),
        ("x   y\n1   2", "```\nx   y\n1   2\n```"),
        ("Steps:\n  1. Do (this)\n  2. That", "Steps:\\\n1\\. Do (this)\\\n2\\. That"),
        ("Sum:\n  \\[x\n  = y\\]\nand \\(z\\)", "Sum:\n\n$$x = y$$\n\nand $z$"),
        ("__init__ and *x*", "\\_\\_init\\_\\_ and \\*x\\*"),
    ]:
        with subtests.test(words=words):
            assert convert_plain_text_to_markdown(words) == markdown
            assert convert_tokens_to_markdown(parse_markdown(markdown)) == markdown


def test_code_in_an_option_keeps_its_lines_and_indents() -> None:
    cell = LOOP.replace('"', '""')
    table = f'question,A,B,answer\nWhich?,"{cell}",__init__,A\n'
    (item,) = read_spreadsheet(table.encode()).items
    indent = "\N{NO-BREAK SPACE}" * 4

    assert join_into_one_line(item.options[0].text) == (
        f"`for i in range(3):`<br>`{indent}if i == 1:`<br>`{indent * 2}print(i)`"
    )
    assert item.options[1].text == "\\_\\_init\\_\\_"


def test_lines_of_html_code_stay_lines(subtests: pytest.Subtests) -> None:
    for html, markdown in [
        ("<code>a<br>b</code>", "`a`\\\n`b`"),
        ("<code>if x:<br>&nbsp;&nbsp;y</code>", "`if x:`\\\n`\xa0\xa0y`"),
        ("<code><div>a</div><div>b</div></code>", "`a`\\\n`b`"),
        ("<code>ls <var>file</var> here</code>", "`ls file here`"),
        ("<div style='white-space: pre'>a\nb</div>", "a\\\nb"),
        ("if x:<br>&nbsp; &nbsp; y<br>z", "if x:\\\n" + "&nbsp;" * 4 + "y\\\nz"),
        ("<p>&nbsp;</p><p>a&nbsp;&nbsp;b&nbsp;</p>", "a b"),
        (
            "<table><tr><th>a</th></tr><tr><td><pre>x\n  y</pre></td></tr></table>",
            "| a |\n|---|\n| `x`<br>`\xa0\xa0y` |",
        ),
    ]:
        with subtests.test(html=html):
            assert convert_html_to_markdown(html).markdown == markdown
            assert convert_tokens_to_markdown(parse_markdown(markdown)) == markdown


def test_items_of_lists_keep_their_labels(subtests: pytest.Subtests) -> None:
    for html, markdown in [
        ('<ol type="A"><li>x</li><li>y</li></ol>', "A. x\n\nB. y"),
        ('<ol style="list-style-type: lower-latin"><li>x</ol>', "a. x"),
        ('<ol type="i"><li>x<li>y<li>z<li>w</ol>', "i. x\n\nii. y\n\niii. z\n\niv. w"),
        ('<ol start="3"><li>x</li><li>y</li></ol>', "3. x\n4. y"),
        ('<ol type="a" start="27"><li>x</li></ol>', "aa. x"),
        ('<ol><li>x</li><li value="5">y</li></ol>', "1. x\n\n5\\. y"),
        ("<ol reversed start=2><li>x</li><li>y</li></ol>", "2\\. x\n\n1\\. y"),
        ("<ol reversed><li>x</li><li>y</li></ol>", "x\n\ny"),
        ('<ol type="A"><li><p>x</p><p>y</p></li></ol>', "A. x\n\ny"),
        ('<ol type="I"><li>x<ol type="a"><li>y</ol></ol>', "I. x\n\na. y"),
        ('<ol type="A"><li><pre>x = 1</pre></li></ol>', "A.\n\n```\nx = 1\n```"),
        ("<ol><li>x</li><li>y</li></ol>", "1. x\n2. y"),
        (
            "<table><tr><th>a<tr><td><ol type=A><li>x<li>y</ol><ul><li>z</ul></table>",
            "| a |\n|---|\n| A. x<br>B. y<br>• z |",
        ),
        ("<ul><li>x</li><li>y</li></ul>", "- x\n- y"),
    ]:
        with subtests.test(html=html):
            assert convert_html_to_markdown(html).markdown == markdown
            assert convert_tokens_to_markdown(parse_markdown(markdown)) == markdown


def test_a_formula_in_mathml_is_its_tex_or_refused() -> None:
    tex = '<annotation encoding="application/x-tex">2^{10}</annotation>'
    power = "<msup><mn>2</mn><mn>10</mn></msup>"

    assert convert_html_to_markdown(f"<math>{power}{tex}</math> bytes").markdown == "$2^{10}$ bytes"
    assert (
        convert_html_to_markdown(f"<math alttext='2^{{10}}'>{power}</math>").markdown == "$2^{10}$"
    )
    with pytest.raises(ItemSkippedError, match="MathML without TeX"):
        convert_html_to_markdown(f"<math>{power}</math>")


def test_what_html_shows_beside_words_is_told(subtests: pytest.Subtests) -> None:
    for html, text, lost in [
        ("Which <u>word</u>?", "Which word?", "underlining is left out"),
        ("<video>no video</video>x", "x", "a recording or an embedded object"),
        ("<svg><text>y</text></svg>x", "x", "a drawing or a frame is left out"),
        ("<a href='@@PLUGINFILE@@/a.pdf'>x</a>", "x", "the link to @@PLUGINFILE@@/a"),
        ("<table><tr><td colspan=2>x</table>", "| x |\n|---|", "a cell of a table"),
    ]:
        with subtests.test(html=html):
            turned = convert_html_to_markdown(html)

            assert turned.markdown == text
            assert len(turned.losses) == 1
            assert turned.losses[0].startswith(lost)


def test_words_are_not_joined_where_html_parts_them() -> None:
    assert convert_html_to_markdown("<header>a</header><main>b</main>").markdown == "a\n\nb"
    assert convert_html_to_markdown("<table><caption>c</caption><tr><td>x</table>").markdown == (
        "c\n\n| x |\n|---|"
    )
