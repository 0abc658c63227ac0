"""Markdown to HTML: what a page shows, in the markup of the design."""

import re

import pytest

from app.content.file_reader import parse_file
from app.content.parsed_file import FirstMentionLinker, ParsedFile, compile_glossary_names
from app.markup.checked_figures import compare_figure_with_value, parse_displayed_number
from app.markup.html_renderer import resolve_relative_link
from app.markup.markdown_tokens import parse_markdown, plain_text
from app.markup.mathml import MathError, latex_to_mathml
from app.markup.model import CalculatorBlock, HtmlBlock, Topic
from app.markup.quantities import Quantity

FRONT = "---\ntitle: Case\nsources: herd\n---\n\n"
NAMES = compile_glossary_names([("KV cache", "kv-cache"), ("Time to first token (TTFT)", "ttft")])


def read(body: str) -> ParsedFile:
    return parse_file(FRONT + body, "topics/case/concept.md", NAMES)


def page(body: str) -> Topic:
    topic = read(body).topic
    assert topic is not None
    return topic


def html(body: str) -> str:
    pieces = [p for s in page(body).sections for p in s.pieces]
    return "".join(p.html for p in pieces if isinstance(p, HtmlBlock))


def codes(body: str) -> list[str]:
    return [p.code for p in read(body).problems]


def test_sections_are_numbered_and_hold_no_heading_of_their_own() -> None:
    topic = page("Before.\n\n## First thing\n\nText.\n\n### Detail\n\n## First thing\n\nX.\n")

    assert [(s.number, s.anchor, s.title) for s in topic.sections] == [
        (0, "", ""),
        (1, "first-thing", "First thing"),
        (2, "first-thing-2", "First thing"),
    ]
    assert "<h2" not in html("## First thing\n\nText.\n")
    assert '<h3 id="detail">Detail</h3>' in html("## A\n\n### Detail\n\nText.\n")


def test_a_figure_leads_to_its_calculator_and_stays_on_one_line() -> None:
    found = html("It takes [140 GB](calc:inference-memory?model=70B&weights=bf16#weights).")

    assert (
        '<a class="num" href="/calculators/inference-memory?'
        'model=70B&amp;weights=bf16#weights">140\u00a0GB</a>'
    ) in found


def test_a_datum_of_the_catalogue_leads_to_its_line_on_the_page_of_the_part() -> None:
    found = html("It has [900 GB/s](hw:h100-sxm5-80#nvlink-both-ways).")

    assert (
        '<a class="num" href="/hardware/h100-sxm5-80#nvlink" title="H100 SXM5 80GB, '
        'nvlink-both-ways">900\u00a0GB/s</a>'
    ) in found


def test_the_working_stands_beside_the_paragraph_of_a_figure() -> None:
    found = html("It keeps [131 kB](calc:kv-cache?model=llama-3.1-8b#per_token).\n\nMore.")

    paragraph, aside, more = re.split(r"(?=<aside)|(?<=</aside>)", found)
    assert paragraph.startswith("<p>It keeps")
    assert aside.startswith('<aside class="side" aria-label="Working for 131\u00a0kB">')
    assert "<code>" in aside
    assert more.strip() == "<p>More.</p>"


def test_an_option_of_a_command_in_the_text_is_not_broken() -> None:
    found = html("Write `srun --ntasks-per-node=4 a-b` here.")

    option = '<span class="option">--ntasks-per-node=4</span>'
    assert f"<code>srun {option} a-b</code>" in found


def test_one_working_to_a_section_unless_more_are_asked_for() -> None:
    link = "[131 kB](calc:kv-cache?model=llama-3.1-8b#per_token{})"
    body = f"One {link.format('')}.\n\nTwo {link.format('')}.\n\n"

    assert html(body).count("<aside") == 1
    asked = body.replace("per_token)", 'per_token "working")')
    assert html(asked).count("<aside") == 2


def test_a_text_is_the_value_rounded_to_what_it_shows(
    subtests: pytest.Subtests,
) -> None:
    for text, value, verdict in [
        ("140 GB", Quantity(140e9, "B"), ""),
        ("141 GB", Quantity(141.1e9, "B"), ""),
        ("141.1 GB", Quantity(141.14e9, "B"), ""),
        ("0.14 TB", Quantity(141e9, "B"), ""),
        ("131 GiB", Quantity(140.7e9, "B"), ""),
        ("about 1,120 GB", Quantity(1120e9, "B"), ""),
        ("1 120 GB", Quantity(1120e9, "B"), ""),
        ("eight", Quantity(8), ""),
        ("8 times", Quantity(8), ""),
        ("80 layers", Quantity(80), ""),
        ("70.6 billion", Quantity(70.55e9), ""),
        ("70.6B", Quantity(70.55e9), ""),
        ("12.5 %", Quantity(0.125), ""),
        ("$1.20", Quantity(1.2, "USD"), ""),
        ("3.35 TB/s", Quantity(3.35e12, "B/s"), ""),
        ("989 TFLOPS", Quantity(989.4e12, "FLOP/s"), ""),
        ("42.7 ms", Quantity(0.0427, "s"), ""),
        ("19 tokens/s in all", Quantity(19.2, "token/s"), ""),
        ("142 GB", Quantity(141.1e9, "B"), "E82"),
        ("141.0 GB", Quantity(141.1e9, "B"), "E82"),
        ("1,100 GB", Quantity(1120e9, "B"), "E82"),
        ("many GB", Quantity(1120e9, "B"), "E82"),
        ("140", Quantity(140e9, "B"), "E83"),
        ("140 s", Quantity(140e9, "B"), "E83"),
        ("yes", True, ""),
        ("yes", False, "E82"),
    ]:
        with subtests.test(text=text, value=value, verdict=verdict):
            assert compare_figure_with_value(text, value)[0] == verdict


def test_a_stale_figure_is_rewritten_in_its_own_form() -> None:
    assert (
        compare_figure_with_value("about 1,119.5 GB", Quantity(1120e9, "B"))[1]
        == "about 1,120.0 GB"
    )


def test_words_are_numbers_up_to_twelve() -> None:
    assert [parse_displayed_number(w).value for w in ("two", "Twelve")] == [2, 12]  # type: ignore[union-attr]


def test_alerts_have_fixed_meanings_on_a_page() -> None:
    found = html(
        "> [!IMPORTANT]\n> Multiply.\n\n> [!TIP]\n> To use keep **W K**.\n\n"
        "> [!WARNING]\n> **Wrong unit.** It is bytes.\n\n> [!NOTE]\n> By the way.\n"
    )

    assert "<p><b>What the exam tests.</b> Multiply.</p>" in found
    assert '<div class="hook">' in found
    assert '<b class="k-w">W</b><b class="k-k">K</b>' in found
    assert '<div class="msg warn" role="note">' in found
    assert "Common error." not in found
    assert '<aside class="side" aria-label="Aside">' in found
    assert "[!" not in found


def test_a_table_scrolls_and_names_its_rows() -> None:
    found = html("| Part | GB |\n|---|--:|\n| KV | 1 |\n| **Total** | 1 |\n")

    assert found.startswith('<div class="scroll" role="region" tabindex="0" aria-label="')
    assert '<table class="t">' in found
    assert '<th scope="col" class="n">GB</th>' in found
    assert '<th scope="row">KV</th>\n<td class="n">1</td>' in found
    assert '<tr class="sum"><th scope="row"><strong>Total</strong></th>' in found
    assert "style=" not in found


def test_footnotes_are_numbered_by_mention_and_end_in_the_sources() -> None:
    topic = page("One.[^zero] Two.[^herd] Again.[^zero]\n\n[^zero]: Section *3*.\n")

    assert topic.sources == ("zero", "herd")
    assert topic.note_by_source_key["zero"].html == "Section <em>3</em>."
    found = html("One.[^zero] Two.[^herd] Again.[^zero]\n")
    assert re.findall(r'href="#src-(\w+)"[^>]*>&#8288;\[(\d)\]', found) == [
        ("zero", "1"),
        ("herd", "2"),
        ("zero", "1"),
    ]


def test_the_first_mention_of_a_term_is_linked_and_no_other() -> None:
    topic = page("The KV cache, `KV cache`.\n\n## KV cache\n\nKV caches and the TTFT.\n")
    found = html("The KV cache, `KV cache`.\n\n## KV cache\n\nKV caches and the TTFT.\n")

    assert found.count('class="term"') == 2
    assert '<a class="term" href="/glossary#kv-cache">KV cache</a>, <code>' in found
    assert '<a class="term" href="/glossary#ttft">TTFT</a>' in found
    assert topic.terms == ("kv-cache", "ttft")


def test_a_term_is_not_found_inside_another_word_or_link() -> None:
    linker = FirstMentionLinker(compile_glossary_names([("node", "node"), ("MIG", "mig")]))

    assert linker.link_first_mentions('<a href="/x">node</a> nodejs <b>node</b>').count("term") == 0
    assert linker.link_first_mentions("A mig is not MIG.").endswith(">MIG</a>.")


def test_a_name_with_capitals_inside_is_not_found_in_lower_case() -> None:
    linker = FirstMentionLinker(compile_glossary_names([("ZeRO", "zero"), ("Warp", "warp")]))

    assert linker.link_first_mentions("A warp skips zeros.").count("term") == 1
    assert linker.link_first_mentions("ZeRO shards.").startswith("<a ")


def test_math_becomes_mathml_without_a_namespace_or_style() -> None:
    found = html("So $70\\times10^9$ and\n\n$$\\frac{a}{b}$$\n")

    assert '<math display="inline"><mrow><mn>70</mn><mo>×</mo>' in found
    assert '<div class="scroll math" role="region" tabindex="0"' in found
    assert '<math display="block">' in found
    assert "xmlns" not in found


def test_bad_math_is_refused(subtests: pytest.Subtests) -> None:
    for latex in [r"\frac{a}{b", r"\nonsense{x}", "x_", r"\left( x", "a}", "x" * 3000]:
        with subtests.test(latex=latex), pytest.raises(MathError):
            latex_to_mathml(latex)


def test_color_and_style_of_math_are_dropped() -> None:
    assert "red" not in latex_to_mathml(r"\color{red} x")


def test_a_formula_begins_a_text_that_ends_in_a_digit() -> None:
    assert "<math" in html("$n$ is 4")
    assert "<math" in html("- $n \\times 2$ is 8")


def test_prices_are_not_math() -> None:
    assert html("From $2 to $3 an hour.") == "<p>From $2 to $3 an hour.</p>"


def test_code_is_colored_by_classes() -> None:
    found = html("```python\nx = 1  # <b>\n```\n")

    assert '<pre class="hl" role="region" tabindex="0" aria-label="Code, python">' in found
    assert '<span class="hl-' in found
    assert "&lt;b&gt;" in found
    assert "style=" not in found


def test_a_calculator_block_stands_by_itself_in_the_text() -> None:
    section = page(
        "Before.\n\n```calculator kv-cache\nmodel: llama-3.1-8b\ncontext: 8k\n```\n\nAfter.\n"
    ).sections[0]

    before, calculator, after = section.pieces
    assert calculator == CalculatorBlock("kv-cache", {"model": "llama-3.1-8b", "context": "8k"})
    assert (before, after) == (HtmlBlock("<p>Before.</p>"), HtmlBlock("<p>After.</p>"))


FIGURE = """\
```figure bar
title: Two cards
unit: GB
limit: 8 × hw:h100-sxm5-80#memory
limit_label: eight H100
rows:
  To change it:
    weights: 140 GB
    optimizer: 840 GB
  To use it: 140 GB
```
"""


def test_a_figure_says_in_words_what_it_draws() -> None:
    found = html(FIGURE)

    assert (
        'aria-label="Two cards. To change it: 980 GB, of which weights 140 GB, '
        'optimizer 840 GB; To use it: 140 GB; the limit is 640 GB."'
    ) in found
    assert ">To change it: 980\u00a0GB, 340\u00a0GB over</text>" in found
    assert '<rect class="over"' in found
    assert '<line class="cap"' in found
    assert "style=" not in found
    assert codes(FIGURE) == []


def test_a_figure_that_cannot_be_drawn_is_reported_and_left_out(
    subtests: pytest.Subtests,
) -> None:
    for old, new, code, line in [
        ("figure bar", "figure pie", "E13", 6),
        ("title:", "titel:", "E12", 7),
        ("unit: GB", "unit: GBs", "E42", 8),
        ("140 GB\n    opt", "140 s\n    opt", "E42", 13),
        ("140 GB\n    opt", "many\n    opt", "E40", 13),
        ("hw:h100-sxm5-80#memory", "hw:zzzz#memory", "E80", 9),
        ("hw:h100-sxm5-80#memory", "hw:h100-sxm5-80#nothing", "E81", 9),
    ]:
        with subtests.test(old=old, new=new, code=code):
            body = FIGURE.replace(old, new)

            assert [(p.code, p.line) for p in read(body).problems] == [(code, line)]
            assert "<svg" not in html(body)


def test_html_is_written_by_us_or_not_at_all(subtests: pytest.Subtests) -> None:
    for written, shown in [
        ("<kbd>A</kbd>", "<kbd>A</kbd>"),
        ("H<sub>2</sub>O<br>", "H<sub>2</sub>O<br>"),
        ('<span class="key k-w">W</span>', '<span class="key k-w">W</span>'),
        ('<abbr title="a &amp; b">x</abbr>', '<abbr title="a &amp;amp; b">x</abbr>'),
        ("a <!-- note --> b", "a  b"),
        ("<b>open", "&lt;b&gt;open"),
        ("shut</b>", "shut&lt;/b&gt;"),
        ('<b class="evil">x</b>', '&lt;b class="evil"&gt;x&lt;/b&gt;'),
        ('<b onclick="x">x</b>', "onclick"),
        ("<script>alert(1)</script>", ""),
        ("[x](javascript:alert(1))", "<span>x</span>"),
        ("[x](data:text/html,1)", "<span>x</span>"),
        ("[x](JaVaScRiPt:alert(1))", "<span>x</span>"),
        ("![x](http://example.org/a.png)", ""),
        ("![x](../../secret.svg)", ""),
    ]:
        with subtests.test(written=written, shown=shown):
            found = html(f"Text {written}.")

            assert shown.replace('"', "&quot;") in found or shown in found
            assert not re.search(r"<[^>]*(?:onclick|javascript:|data:|<script)", found)


def test_links_between_files_become_addresses_of_the_app(
    subtests: pytest.Subtests,
) -> None:
    for href, address in [
        ("../kv-cache/concept.md#why", "/concepts/kv-cache#why"),
        ("../kv-cache", "/concepts/kv-cache"),
        ("../../glossary.md#weights", "/glossary#weights"),
        ("#here", "#here"),
        ("/calculators/kv-cache", "/calculators/kv-cache"),
    ]:
        with subtests.test(href=href, address=address):
            assert resolve_relative_link(href, "case") == address


def test_a_link_elsewhere_is_kept() -> None:
    assert '<a href="https://example.org/a?b&amp;c">x</a>' in html("[x](https://example.org/a?b&c)")


def test_a_card_in_the_text_can_be_turned_over() -> None:
    found = html("## A\n\nText.\n\n### Front\n<!-- q: c\ntype: card\n-->\n\nBack.\n")

    assert "<details><summary>Front</summary><p>Back.</p></details>" in found


def test_reading_time_counts_words_questions_and_calculators() -> None:
    body = "word " * 400 + "\n\n```calculator kv-cache\nmodel: llama-3.1-8b\n```\n"

    assert page(body).minutes == pytest.approx(3.5)


def test_a_drawing_is_searched_by_its_words_and_not_by_its_formulas() -> None:
    body = (
        "Before.\n\n```figure bar\ntitle: What is kept\nalt: Two bars\nunit: GB\n"
        "rows:\n  - One: K calc:kv-cache?model=llama-3.1-8b#total\n```\n"
    )

    words = plain_text(parse_markdown(body))

    assert "What is kept Two bars" in words
    assert "calc:" not in words


def test_a_footnote_within_a_quotation_is_not_shown_there() -> None:
    found = html("> Text.[^herd]\n>\n> [^herd]: Chapter 2.\n")

    assert "Chapter 2." not in found
    assert "<>" not in found
