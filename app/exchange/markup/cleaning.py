"""HTML of strangers, reduced to what a card may show or to what Markdown can say."""

import html
import re

import nh3

from app.cards.names import is_picture

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
"""The attribute with a formula, of which Canvas shows a picture."""
_NAMED = re.compile(r"<([a-zA-Z][\w:-]*)")
_MATHML = re.compile(r"<math\b[^<]*(?:<(?!/?math\b)[^<]*)*</math\s*>", re.IGNORECASE)
_TEX = re.compile(
    r"<annotation[^<>]*encoding=[\"']application/x-tex[\"'][^<>]*>([^<]*)",
    re.IGNORECASE,
)
_ALTTEXT = re.compile(r"<math[^<>]*\salttext=[\"']([^\"'<>]*)[\"']", re.IGNORECASE)
# Within these, tags are words, or follow rules of their own: nothing of them is read.
_UNREAD = frozenset(
    {"iframe", "math", "noembed", "noframes", "noscript", "script", "style", "svg"}
    | {"template", "title"}
)
_OTHER_RULES = _UNREAD | {"plaintext", "textarea", "xmp"}


def _kept(tag: str, name: str, value: str) -> str | None:
    """The value of an attribute; none for the address of a picture that is not ours."""
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
    attribute_filter=_kept,
    url_schemes={"http", "https", "mailto"},
    link_rel="noopener noreferrer",
)
# What is left of a link whose address is not allowed: it would look like one.
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


def safe(text: str) -> str:
    """HTML of unknown origin without scripts, styles, foreign media and classes."""
    sound = text.encode("utf-8", "replace").decode()  # JSON may hold half characters
    clean = _STRANGERS.clean(sound)
    return _DEAD_LINK.sub(r"\1", clean).strip()


def portable(text: str) -> str:
    """HTML of our pages as another program can show it."""
    return _PORTABLE.clean(text).strip()


def clean_for_reading(text: str) -> str:
    """Well-formed HTML with all that tells how its words are shown, without scripts.

    A formula in MathML becomes a picture with its TeX as `EQUATION`, as Canvas has it.
    It is to be read, not to be shown: styles and addresses are as they were.
    """
    named = {name.lower() for name in _NAMED.findall(text)}
    return nh3.clean(
        _MATHML.sub(_formula, text),
        tags=(named | {"img"}) - _OTHER_RULES,
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


def _formula(found: re.Match[str]) -> str:
    """A formula by the TeX it carries with it; by nothing where it carries none."""
    tex = _TEX.search(found[0]) or _ALTTEXT.match(found[0])
    inside = html.unescape(tex[1]).strip() if tex else ""
    return f'<img {EQUATION}="{html.escape(inside)}">'
