"""Sanitize foreign HTML: remove scripts, styles and hidden text."""

import html
import re
from collections.abc import Mapping

import nh3

from app.spaced_repetition.card_ids import is_picture

_TAGS = (
    "a abbr b blockquote br caption cite code dd del div dl dt em figcaption figure h1"
    " h2 h3 h4 h5 h6 hr i ins kbd li mark ol p pre q rp rt ruby s samp small span"
    " strong sub sup table tbody td tfoot th thead tr u ul var"
)
_MATH = (
    "math mrow mi mn mo mtext mspace msup msub msubsup mfrac msqrt mroot mover munder"
    " munderover mtable mtr mtd mstyle mpadded mphantom menclose"
)
_NOT_EVEN_WORDS = (
    "script style object applet noscript template title iframe textarea select button svg"
)
_CELLS = {"colspan", "rowspan"}


EQUATION = "data-equation-content"
"""The attribute with the TeX of a formula; Canvas shows the formula as a picture."""
_NAMED = re.compile(r"<([a-zA-Z][\w:-]*)")
_MATHML = re.compile(r"<math\b[^<]*(?:<(?!/?math\b)[^<]*)*</math\s*>", re.IGNORECASE)
_TEX = re.compile(
    r"<annotation[^<>]*encoding=[\"']application/x-tex[\"'][^<>]*>([^<]*)",
    re.IGNORECASE,
)
_ALTTEXT = re.compile(r"<math[^<>]*\salttext=[\"']([^\"'<>]*)[\"']", re.IGNORECASE)
# Tags within these are text or have rules of their own, so they are not read.
_UNREAD = frozenset(
    {"iframe", "math", "noembed", "noframes", "noscript", "script", "style", "svg"}
    | {"template", "title"}
)
OTHER_RULES = _UNREAD | {"plaintext", "textarea", "xmp"}
"""Elements whose content parsers don't read as tags, or read in their own ways."""


def _allowed_attribute(tag: str, name: str, value: str) -> str | None:
    """Return the value of an attribute, or None for a picture URL that is not ours."""
    return None if (tag, name) == ("img", "src") and not is_picture(value) else value


_STRANGERS = nh3.Cleaner(
    tags={"img", *_TAGS.split(), *_MATH.split()},
    clean_content_tags=set(_NOT_EVEN_WORDS.split()),
    attributes={
        "a": {"href"},
        "td": _CELLS,
        "th": _CELLS,
        "img": {"src", "alt"},
        "math": {"display"},
    },
    attribute_filter=_allowed_attribute,
    url_schemes={"http", "https", "mailto"},
    link_rel="noopener noreferrer",
)
# A link whose URL was removed would still look like a link.
_DEAD_LINK = re.compile(r'<a rel="noopener noreferrer">((?:(?!</?a\b).)*)</a>', re.DOTALL)
_PORTABLE = nh3.Cleaner(
    tags=set(f"{_TAGS} {_MATH}".split()),
    clean_content_tags=set(_NOT_EVEN_WORDS.split()),
    attributes={
        "a": {"href"},
        "td": _CELLS,
        "th": _CELLS,
        "math": {"display"},
        "ol": {"type"},
    },
    url_schemes={"http", "https", "mailto"},
    link_rel=None,
)


def sanitize_html(text: str) -> str:
    """Remove scripts, styles, foreign media and classes from untrusted HTML."""
    sound = text.encode("utf-8", "replace").decode()  # JSON may contain lone surrogates
    clean = _STRANGERS.clean(sound)
    return _DEAD_LINK.sub(r"\1", clean).strip()


def portable_html(text: str) -> str:
    """Return HTML of our pages in a form that other programs can show."""
    return _PORTABLE.clean(text).strip()


def clean_for_reading(text: str) -> str:
    """Return well-formed HTML without scripts, with all styling that affects visibility.

    A formula in MathML becomes a picture with its TeX in `EQUATION`, as in Canvas. The result is
    for parsing only, not for display: styles and URLs are unchanged.
    """
    named = {name.lower() for name in _NAMED.findall(text)}
    return nh3.clean(
        _MATHML.sub(_formula_html, text),
        tags=(named | {"img"}) - OTHER_RULES,
        clean_content_tags=_UNREAD,
        attributes={
            "*": {"style", "class", "id", "hidden", "open", "popover", "bgcolor"},
            "a": {"href"},
            "font": {"color"},
            "img": {"src", "alt", EQUATION},
            "ol": {"type", "start", "reversed"},
            "ul": {"type"},
            "li": {"type", "value"},
            "td": _CELLS,
            "th": _CELLS,
        },
        url_schemes={"http", "https", "mailto", "data"},
        link_rel=None,
    )


def _formula_html(match: re.Match[str]) -> str:
    """Return a formula as its TeX; empty if it has none."""
    tex = _TEX.search(match[0]) or _ALTTEXT.match(match[0])
    inside = html.unescape(tex[1]).strip() if tex else ""
    return f'<img {EQUATION}="{html.escape(inside)}">'


# The ways of hiding text that editors and quiz platforms use.
_HIDING_STYLE = re.compile(
    r"""(?:^|;)\s*(?:
    display\s*:\s*none | visibility\s*:\s*(?:hidden|collapse)
    | (?:opacity|font-size)\s*:\s*0*\.?0*(?:px|pt|em|rem|%)?\s*(?:!important)?\s*(?:;|$)
    | (?:left|right|top|bottom|text-indent|margin(?:-left|-top)?)\s*:
      \s*-(?:\d{3,}|\d\d(?:\.\d+)?r?em)
    | clip\s*:\s*rect\(\s*[01](?:px)?[\s,]+[01](?:px)?[\s,]+[01](?:px)?[\s,]+[01](?:px)?
    )""",
    re.IGNORECASE | re.VERBOSE,
)
_TINY = re.compile(r"(?:^|[;\s])(?:max-)?(?:width|height)\s*:\s*[01](?:\D|$)", re.IGNORECASE)
_CUT = re.compile(r"overflow[^:;]*:\s*(?:hidden|clip)", re.IGNORECASE)
_WHITE = re.compile(
    r"(?:^|;)\s*color\s*:\s*(?:white|transparent|#fff|#ffffff)\s*(?:!important)?\s*(?:;|$)",
    re.IGNORECASE,
)
# Class names that platforms use for text that only screen readers get, or that is hidden.
_CLASSES = frozenset(
    (
        "a11y-hidden accesshide assistive-text cdk-visually-hidden clip-hide d-none"
        " element-invisible hidden hidden-readable hide invisible is-hidden is-invisible"
        " is-sr-only is-visually-hidden katex-mathml mjx-assistive-mml mjx_assistive_mathml"
        " off-screen offscreen opacity-0 qti-hidden qti-visually-hidden screenreader-only"
        " screen-reader-text show-for-sr slds-assistive-text slds-hide sr-only sr-only-focusable"
        " text-hide u-hidden u-visually-hidden ui-helper-hidden ui-helper-hidden-accessible"
        " uk-hidden visually-hidden visually-hidden-focusable visuallyhidden w3-hide"
    ).split()
)
_SHUT = frozenset({"datalist", "details", "dialog"})  # visible only when open


def has_background(attributes: Mapping[str, str | None]) -> bool:
    """Return whether an element has a background, on which white text may be visible."""
    return "bgcolor" in attributes or "background" in (attributes.get("style") or "")


def is_hidden(tag: str, attributes: Mapping[str, str | None], *, colored: bool = False) -> bool:
    """Return whether an element is hidden. `colored` says that it is on a background.

    >>> is_hidden("p", {"style": "color: red; display:none"})
    True
    """
    style = attributes.get("style") or ""
    if tag == "font":
        style = f"color:{attributes.get('color') or ''};{style}"
    classes = set((attributes.get("class") or "").lower().split())
    return bool(
        attributes.keys() & {"hidden", "popover"}
        or (tag in _SHUT and "open" not in attributes)
        or classes & _CLASSES
        or ("collapse" in classes and not classes & {"in", "show"})
        or _HIDING_STYLE.search(style)
        or (_TINY.search(style) and _CUT.search(style))
        or (_WHITE.search(style) and not colored and not has_background(attributes))
    )
