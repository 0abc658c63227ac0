"""Sanitize foreign HTML: remove scripts, styles and hidden text."""

import html
import re
from collections.abc import Mapping
from typing import NamedTuple

import nh3

from app.spaced_repetition.added_card_ids_and_faces import is_own_picture_url

_ALLOWED_TAGS = (
    "a abbr b blockquote br caption cite code dd del div dl dt em figcaption figure h1"
    " h2 h3 h4 h5 h6 hr i ins kbd li mark ol p pre q rp rt ruby s samp small span"
    " strong sub sup table tbody td tfoot th thead tr u ul var"
)
_ALLOWED_MATH_TAGS = (
    "math mrow mi mn mo mtext mspace msup msub msubsup mfrac msqrt mroot mover munder"
    " munderover mtable mtr mtd mstyle mpadded mphantom menclose"
)
_NOT_EVEN_WORDS = (
    "script style object applet noscript template title iframe textarea select button svg"
)
_CELL_ATTRIBUTES = {"colspan", "rowspan"}


EQUATION_ATTRIBUTE = "data-equation-content"
"""The attribute with the TeX of a formula; Canvas shows the formula as a picture."""
_TAG_NAME = re.compile(r"<([a-zA-Z][\w:-]*)")
_MATH_ELEMENT = re.compile(r"<math\b[^<]*(?:<(?!/?math\b)[^<]*)*</math\s*>", re.IGNORECASE)
_TEX_ANNOTATION = re.compile(
    r"<annotation[^<>]*encoding=[\"']application/x-tex[\"'][^<>]*>([^<]*)", re.IGNORECASE
)
_MATH_ALTTEXT = re.compile(r"<math[^<>]*\salttext=[\"']([^\"'<>]*)[\"']", re.IGNORECASE)
# Tags within these are text or have rules of their own, so they are not read.
_UNREAD_TAGS = "iframe math noembed noframes noscript script style svg template title"
_UNREAD_TAG_SET = frozenset(_UNREAD_TAGS.split())
_OTHER_RULES = _UNREAD_TAG_SET | {"plaintext", "textarea", "xmp"}


def _drop_foreign_picture_url(tag: str, name: str, value: str) -> str | None:
    """Return the value of an attribute, or None for a picture URL that is not ours."""
    return None if (tag, name) == ("img", "src") and not is_own_picture_url(value) else value


_FOREIGN_CARD_CLEANER = nh3.Cleaner(
    tags={"img", *_ALLOWED_TAGS.split(), *_ALLOWED_MATH_TAGS.split()},
    clean_content_tags=set(_NOT_EVEN_WORDS.split()),
    attributes={
        "a": {"href"},
        "td": _CELL_ATTRIBUTES,
        "th": _CELL_ATTRIBUTES,
        "img": {"src", "alt"},
        "math": {"display"},
    },
    attribute_filter=_drop_foreign_picture_url,
    url_schemes={"http", "https", "mailto"},
    link_rel="noopener noreferrer",
)
# A link whose URL was removed would still look like a link.
_DEAD_LINK = re.compile(r'<a rel="noopener noreferrer">((?:(?!</?a\b).)*)</a>', re.DOTALL)
_PORTABLE_HTML_CLEANER = nh3.Cleaner(
    tags=set(f"{_ALLOWED_TAGS} {_ALLOWED_MATH_TAGS}".split()),
    clean_content_tags=set(_NOT_EVEN_WORDS.split()),
    attributes={
        "a": {"href"},
        "td": _CELL_ATTRIBUTES,
        "th": _CELL_ATTRIBUTES,
        "math": {"display"},
        "ol": {"type"},
    },
    url_schemes={"http", "https", "mailto"},
    link_rel=None,
)


def sanitize_html(text: str) -> str:
    """Remove scripts, styles, foreign media and classes from untrusted HTML."""
    valid_text = text.encode("utf-8", "replace").decode()  # JSON may contain lone surrogates
    clean = _FOREIGN_CARD_CLEANER.clean(valid_text)
    return _DEAD_LINK.sub(r"\1", clean).strip()


def make_html_portable_without_pictures(text: str) -> str:
    """Return HTML of our pages in a form that other programs can show."""
    return _PORTABLE_HTML_CLEANER.clean(text).strip()


def sanitize_html_for_parsing_only(text: str) -> str:
    """Return well-formed HTML without scripts, with all styling that affects visibility.

    A formula in MathML becomes a picture with its TeX in `EQUATION_ATTRIBUTE`, as in Canvas. The result is
    for parsing only, not for display: styles and URLs are unchanged.
    """
    tag_names = {name.lower() for name in _TAG_NAME.findall(text)}
    return nh3.clean(
        _MATH_ELEMENT.sub(_mathml_to_tex_image, text),
        tags=(tag_names | {"img"}) - _OTHER_RULES,
        clean_content_tags=_UNREAD_TAG_SET,
        attributes={
            "*": {"style", "class", "id", "hidden", "open", "popover", "bgcolor"},
            "a": {"href"},
            "font": {"color"},
            "img": {"src", "alt", EQUATION_ATTRIBUTE},
            "ol": {"type", "start", "reversed"},
            "ul": {"type"},
            "li": {"type", "value"},
            "td": _CELL_ATTRIBUTES,
            "th": _CELL_ATTRIBUTES,
        },
        url_schemes={"http", "https", "mailto", "data"},
        link_rel=None,
    )


def _mathml_to_tex_image(match: re.Match[str]) -> str:
    """Return a formula as its TeX; empty if it has none."""
    tex = _TEX_ANNOTATION.search(match[0]) or _MATH_ALTTEXT.match(match[0])
    tex_text = html.unescape(tex[1]).strip() if tex else ""
    return f'<img {EQUATION_ATTRIBUTE}="{html.escape(tex_text)}">'


_ZERO_LENGTH_PATTERN = r"0*\.?0*(?:px|pt|em|rem|%)?\s*(?:!important)?\s*(?:;|$)"
_HIDING_STYLE = re.compile(
    rf"""(?:^|[;{{\s])(?:
    display\s*:\s*none | visibility\s*:\s*(?:hidden|collapse)
    | content-visibility\s*:\s*hidden
    | (?:opacity|font-size|zoom|scale)\s*:\s*{_ZERO_LENGTH_PATTERN} | font-size\s*:\s*1p[xt]
    | opacity\s*:\s*(?:0*\.0\d*\s*(?:;|$)|[0-9]\s*%)
    | font-size\s*:\s*0*\.\d+p[xt] | font\s*:\s*0(?:p[xt])?[\s/]
    | filter\s*:[^;]*opacity\(\s*0*\.?0*%?\s*\)
    | translate\s*:\s*-\d{{4,}}
    | (?:left|right|top|bottom|text-indent|margin(?:-left|-top)?)\s*:
      \s*-(?:\d{{3,}}|\d\d(?:\.\d+)?r?em)
    | clip\s*:\s*rect\(\s*[01](?:px)?[\s,]+[01](?:px)?[\s,]+[01](?:px)?[\s,]+[01](?:px)?
    | clip-path\s*:\s*(?:inset\(\s*(?:50|100)%|circle\(\s*0
      |polygon\([0px%\s,]*\))
    | transform\s*:[^;]*(?:scale[xy]?\(\s*0\s*[,)]|translate[xy]?\(\s*-\d{{4,}})
    )""",
    re.IGNORECASE | re.VERBOSE,
)
_TINY_SIZE_STYLE = re.compile(
    r"(?:^|[;\s])(?:max-)?(?:width|height)\s*:\s*[01](?:\D|$)", re.IGNORECASE
)
_CLIPPED_OVERFLOW_STYLE = re.compile(r"overflow[^:;]*:\s*(?:hidden|clip)", re.IGNORECASE)
_TEXT_COLOR_STYLE = re.compile(
    r"(?:^|;)\s*(?:-webkit-text-fill-)?color\s*:\s*([^;!]+)", re.IGNORECASE
)
_BACKGROUND_STYLE = re.compile(r"background(?:-color)?\s*:\s*([^;!]+)", re.IGNORECASE)
_HEX_COLOR = re.compile("#([0-9a-f]{3,4}|[0-9a-f]{6}|[0-9a-f]{8})")
_VISIBILITY_NAMED = {
    **dict.fromkeys(("white", "snow", "ivory", "ghostwhite", "whitesmoke"), "#fff"),
    **dict.fromkeys(("floralwhite", "mintcream", "azure"), "#fff"),
    "black": "#000",
    "transparent": "#0000",
}
_MIN_WHITISH_COLOR_VALUE, _MAX_UNSEEN_ALPHA = 240, 0.1
# Class names that platforms use for text that only screen readers get, or that is hidden.
_HIDING_CLASS_NAMES = (
    "a11y-hidden accesshide assistive-text cdk-visually-hidden clip-hide d-none"
    " element-invisible hidden hidden-readable hide invisible is-hidden is-invisible"
    " is-sr-only is-visually-hidden katex-mathml mjx-assistive-mml mjx_assistive_mathml"
    " off-screen offscreen opacity-0 qti-hidden qti-visually-hidden screenreader-only"
    " screen-reader-text show-for-sr slds-assistive-text slds-hide sr-only sr-only-focusable"
    " text-hide u-hidden u-visually-hidden ui-helper-hidden ui-helper-hidden-accessible"
    " uk-hidden visually-hidden visually-hidden-focusable visuallyhidden w3-hide"
)
_HIDING_CLASSES = frozenset(_HIDING_CLASS_NAMES.split())
_CLOSED_ELEMENTS = frozenset({"datalist", "details", "dialog"})  # visible only when open
_CSS_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
_STYLE_SHEET = re.compile(r"<style\b[^<>]*>([^<]*)", re.IGNORECASE)
_AT_RULE = re.compile(r"@[^{};]*(?:;|\{(?:[^{}]*\{[^{}]*\})*[^{}]*\})")
_CSS_RULE = re.compile(r"([^{}]+)\{([^{}]*)\}")
_SIMPLE_CSS_SELECTOR = re.compile(r"[a-z0-9]*(?:[.#][\w-]+)+", re.IGNORECASE)
HIDING_MARKUP = re.compile(
    r"<(?:style|script|template|details|dialog|datalist)\b|\bhidden\b"
    r"|display\s*:|visibility\s*:|opacity\s*[:(]|-\d{3,}|\bcollapse\b|\bpopover\b"
    r"|\bscale\s*:|\bzoom\s*:",
    re.IGNORECASE,
)
"""Matches HTML that may hide part of itself."""


def find_hiding_selectors(html: str) -> frozenset[str]:
    """Return the classes (`.x`) and ids (`#x`) that style sheets in the HTML hide."""
    selectors_found: set[str] = set()
    for style_sheet in _STYLE_SHEET.findall(html):
        plain = _AT_RULE.sub(" ", _CSS_COMMENT.sub(" ", style_sheet))
        for selectors, style in _CSS_RULE.findall(plain):
            if is_hiding_style(style):
                last_parts = (s.split()[-1:] for s in selectors.split(","))
                selectors_found |= {
                    s[0].lower() for s in last_parts if s and _SIMPLE_CSS_SELECTOR.fullmatch(s[0])
                }
    return frozenset(
        part for selector in selectors_found for part in re.findall(r"[.#][\w-]+", selector)
    )


def is_hiding_style(style: str, *, is_background_dark: bool = False) -> bool:
    """Return whether a style hides text, on a white page unless its background is dark."""
    plain = _CSS_COMMENT.sub("", style)
    tiny = _TINY_SIZE_STYLE.search(plain) and _CLIPPED_OVERFLOW_STYLE.search(plain)
    return bool(
        tiny
        or _HIDING_STYLE.search(plain)
        or _is_text_color_invisible(plain, is_background_dark=is_background_dark)
    )


def _is_text_color_invisible(style: str, *, is_background_dark: bool) -> bool:
    """Return whether text has the color of its background, or is transparent."""
    colors = _TEXT_COLOR_STYLE.findall(style)
    backgrounds = _BACKGROUND_STYLE.findall(style)
    if colors and backgrounds and colors[-1].strip().lower() == backgrounds[-1].strip().lower():
        return True
    color = _parse_color(colors[-1]) if colors else None
    if color is None:
        return False
    background = _parse_color(backgrounds[-1]) if backgrounds else None
    if color.opacity < _MAX_UNSEEN_ALPHA or color == background:
        return True
    on_white = background.is_nearly_white if background else not (backgrounds or is_background_dark)
    return on_white and color.is_nearly_white


class _Color(NamedTuple):
    """Red, green and blue (0..255), and the opacity (0..1)."""

    red: float
    green: float
    blue: float
    opacity: float = 1.0

    @property
    def is_nearly_white(self) -> bool:
        return min(self.red, self.green, self.blue) >= _MIN_WHITISH_COLOR_VALUE


def _parse_color(text: str) -> _Color | None:
    """Return a CSS color; None if unknown.

    >>> _parse_color("rgb(0 0 0 / 50%)")
    _Color(red=0.0, green=0.0, blue=0.0, opacity=0.5)
    """
    color_text = text.strip().lower()
    color_text = _VISIBILITY_NAMED.get(color_text, color_text)
    if match := _HEX_COLOR.fullmatch(color_text):
        digits = match[1] if len(match[1]) > 4 else "".join(d * 2 for d in match[1])
        parts = [int(digits[n : n + 2], 16) for n in range(0, len(digits), 2)]
        opacity = parts[3] / 255 if len(parts) > 3 else 1.0
        return _Color(parts[0], parts[1], parts[2], opacity)
    name, _, arguments = color_text.partition("(")
    numbers = re.findall(r"(\d*\.?\d+)(%?)", arguments)[:4]
    if name not in {"rgb", "rgba", "hsl", "hsla"} or len(numbers) < 3:
        return None
    opacity = float(numbers[3][0]) / (100 if numbers[3][1] else 1) if numbers[3:] else 1.0
    if name.startswith("hsl"):  # only black and white, which have no hue, are supported
        light = float(numbers[2][0]) * 2.55
        return _Color(light, light, light, opacity)
    red, green, blue = (float(v) * (2.55 if percent else 1) for v, percent in numbers[:3])
    return _Color(red, green, blue, opacity)


def has_nonwhite_background(attributes: Mapping[str, str | None]) -> bool:
    """Return whether white text is visible on an element's background."""
    attribute_style = f"background:{attributes['bgcolor']};" if attributes.get("bgcolor") else ""
    backgrounds = _BACKGROUND_STYLE.findall(attribute_style + (attributes.get("style") or ""))
    color = _parse_color(backgrounds[-1]) if backgrounds else None
    return bool(backgrounds) and not (color and color.is_nearly_white)


def is_element_hidden(
    tag: str,
    attributes: Mapping[str, str | None],
    hiding_selectors: frozenset[str],
    *,
    is_background_dark: bool = False,
) -> bool:
    """Return whether an element is hidden; `hiding_selectors` are those that style sheets hide.

    >>> is_element_hidden("p", {"style": "color: red; display:none"}, frozenset())
    True
    """
    color = f"color:{attributes.get('color') or ''};" if tag == "font" else ""
    classes = {name.lower() for name in (attributes.get("class") or "").split()}
    styled = {f".{name}" for name in classes} | {f"#{(attributes.get('id') or '').lower()}"}
    return bool(
        "hidden" in attributes
        or (tag in _CLOSED_ELEMENTS and "open" not in attributes)
        or "popover" in attributes
        or classes & _HIDING_CLASSES
        or ("collapse" in classes and not classes & {"in", "show"})
        or styled & hiding_selectors
        or is_hiding_style(
            color + (attributes.get("style") or ""),
            is_background_dark=is_background_dark or has_nonwhite_background(attributes),
        )
    )
