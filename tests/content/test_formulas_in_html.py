"""Formulas in HTML that somebody brought along."""

import pytest

from app.markup.mathml import convert_html_formulas_to_mathml, latex_to_plain_characters


def test_a_formula_in_a_line_becomes_mathml() -> None:
    shown = convert_html_formulas_to_mathml(r"Twice \(2 \cdot n\).")

    assert shown == (
        'Twice <math display="inline"><mrow><mn>2</mn><mo>·</mo><mi>n</mi></mrow></math>.'
    )


def test_a_formula_of_its_own_becomes_a_block() -> None:
    assert convert_html_formulas_to_mathml(r"\[n\]").startswith('<math display="block">')


def test_a_sign_that_html_escapes_stays_escaped() -> None:
    assert "<mo>&lt;</mo>" in convert_html_formulas_to_mathml(r"\(a &lt; b\)")


def test_what_is_no_formula_stays_as_it_is(subtests: pytest.Subtests) -> None:
    for html in [r"\(<b>x</b>\)", r"\(\foo{\)", r"\(" * 50, r"\)\(", "no formula"]:
        with subtests.test(html=html):
            assert convert_html_formulas_to_mathml(html) == html


def test_markup_cannot_come_in_by_a_formula() -> None:
    shown = convert_html_formulas_to_mathml(r"\(\text{&lt;script&gt;alert(1)&lt;/script&gt;}\)")

    assert "<script" not in shown


def test_a_formula_is_told_as_one_would_type_it(subtests: pytest.Subtests) -> None:
    for latex, words in [
        (r"\text{layers} \times 13\times10^{9}\,\text{B}", "layers × 13×10^9 B"),
        (r"\frac{a}{\text{per node}}, 131{,}072", "a/per node, 131,072"),
        (r"P = \sqrt{3} \times V", "P = √3 × V"),
        (r"C:\nothing known", r"C:\nothing known"),
        ("1{,}000 without LaTeX", "1{,}000 without LaTeX"),
    ]:
        with subtests.test(latex=latex, words=words):
            assert latex_to_plain_characters(latex) == words
