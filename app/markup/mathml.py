"""Convert LaTeX formulas to MathML."""

import functools
import re
from html import unescape
from xml.etree import ElementTree as ET

from latex2mathml import converter

_MOST_CHARACTERS = 2000
_MATHML_NAMESPACE = "{http://www.w3.org/1998/Math/MathML}"
_ALLOWED_ELEMENTS = frozenset(
    [
        "math",
        "mrow",
        "mi",
        "mn",
        "mo",
        "mtext",
        "mspace",
        "msup",
        "msub",
        "msubsup",
        "mfrac",
        "msqrt",
        "mroot",
        "mover",
        "munder",
        "munderover",
        "mtable",
        "mtr",
        "mtd",
        "mstyle",
        "mpadded",
        "mphantom",
        "menclose",
    ]
)
_ALLOWED_ATTRIBUTES = frozenset(
    [
        "display",
        "mathvariant",
        "width",
        "stretchy",
        "fence",
        "form",
        "linethickness",
        "accent",
        "displaystyle",
        "scriptlevel",
        "minsize",
        "maxsize",
        "movablelimits",
        "columnalign",
        "rowspacing",
        "columnspacing",
        "notation",
        "lspace",
        "rspace",
        "separator",
        "symmetric",
        "largeop",
    ]
)
# A formula contains no delimiters, so each character is scanned only once.
_TEX_IN_TEXT = re.compile(
    r"\\\((?P<inline>(?:(?!\\[(\[])[^<>]){1,2000}?)\\\)"
    r"|\\\[(?P<block>(?:(?!\\[(\[])[^<>]){1,2000}?)\\\]"
)


_TEX_TEXT_GROUP = re.compile(r"\\(?:text|mathrm|mathit|mathbf|operatorname)\{([^{}]*)\}")
_TEX_FRACTION = re.compile(r"\\[dt]?frac\{([^{}]*)\}\{([^{}]*)\}")
_TEX_ROOT = re.compile(r"\\sqrt\{([^{}]*)\}")
_TEX_COMMAND = re.compile(r"\\(?:([A-Za-z]+)(?![A-Za-z])|([,;:! {}%$_]))")
_SIGN_BY_TEX_COMMAND = {
    "times": "×",
    "cdot": "·",
    "div": "÷",
    "approx": "≈",
    "le": "≤",
    "leq": "≤",
    "ge": "≥",
    "geq": "≥",
    "ne": "≠",
    "neq": "≠",
    "pm": "±",
    "to": "→",
    "sum": "∑",
    "lceil": "⌈",
    "rceil": "⌉",
    "lfloor": "⌊",
    "rfloor": "⌋",
    "ldots": "…",
    "dots": "…",
    "quad": " ",
    "left": "",
    "right": "",
}


class MathError(ValueError):
    """A formula cannot be converted to MathML."""


@functools.lru_cache(maxsize=4096)
def latex_to_mathml(latex: str, block: bool = False) -> str:
    """Convert a formula to MathML; raises MathError naming what cannot be converted."""
    if len(latex) > _MOST_CHARACTERS:
        raise MathError("the formula is longer than 2,000 characters")
    _check_braces(latex)
    try:
        mathml = converter.convert(latex, display="block" if block else "inline")
        tree = ET.fromstring(mathml)  # noqa: S314 - our own output, without a DTD
    except ET.ParseError:
        raise MathError("a character in it has to be written as a command") from None
    except Exception as error:  # noqa: BLE001 - the converter raises any type
        reason = re.sub(r"(?<!^)(?=[A-Z])", " ", type(error).__name__).lower()
        raise MathError(reason) from None
    _check_and_clean_mathml(tree)
    return ET.tostring(tree, encoding="unicode")


def latex_to_plain_characters(text: str) -> str:
    """Write LaTeX in a text as plain characters; unknown commands stay."""
    if "\\" not in text:
        return text
    for _ in range(3):  # One pass for each level of nested groups.
        text = _TEX_ROOT.sub(r"√\1", _TEX_FRACTION.sub(r"\1/\2", _TEX_TEXT_GROUP.sub(r"\1", text)))
    text = _TEX_COMMAND.sub(_replace_latex_command, text.replace("{,}", ","))
    return re.sub(r"([_^])\{([^{}]*)\}", r"\1\2", text)


def _replace_latex_command(match: re.Match[str]) -> str:
    name, mark = match[1], match[2]
    if mark:
        return mark if mark in "{}%$_" else " "
    return _SIGN_BY_TEX_COMMAND.get(name, match[0])


def convert_html_formulas_to_mathml(html: str) -> str:
    r"""Convert formulas written as \(…\) or \[…\] in safe HTML to MathML.

    A formula that cannot be converted stays unchanged.
    """
    return _TEX_IN_TEXT.sub(_convert_match, html)


def _convert_match(match: re.Match[str]) -> str:
    inline, block = match["inline"], match["block"]
    try:
        return latex_to_mathml(unescape((inline or block).strip()), block=inline is None)
    except MathError:
        return match[0]


def _check_braces(latex: str) -> None:
    depth = 0
    for brace in re.findall(r"\\.|[{}]", latex):
        depth += {"{": 1, "}": -1}.get(brace, 0)
        if depth < 0 or depth > 50:
            break
    if depth:
        raise MathError("its braces do not match")


def _check_and_clean_mathml(node: ET.Element) -> None:
    node.tag = node.tag.removeprefix(_MATHML_NAMESPACE)
    if node.tag not in _ALLOWED_ELEMENTS:
        raise MathError(f"“{node.tag}” is not allowed in a formula")
    if node.text and re.match(r"\\[A-Za-z]+", node.text):
        raise MathError(f"the command {node.text} is not known")
    for name in set(node.attrib) - _ALLOWED_ATTRIBUTES:
        del node.attrib[name]
    for child in node:
        _check_and_clean_mathml(child)
