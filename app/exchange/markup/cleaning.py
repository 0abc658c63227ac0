"""HTML of strangers, reduced to what a card may show; our own, made portable."""

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
    "script style object applet noscript template title iframe textarea select"
    " button svg"
)
_CELLS = {"colspan", "rowspan"}


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
_DEAD_LINK = re.compile(
    r'<a rel="noopener noreferrer">((?:(?!</?a\b).)*)</a>', re.DOTALL
)
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


def safe(html: str) -> str:
    """HTML of unknown origin without scripts, styles, foreign media and classes."""
    sound = html.encode("utf-8", "replace").decode()  # JSON may hold half characters
    clean = _STRANGERS.clean(sound)
    return _DEAD_LINK.sub(r"\1", clean).strip()


def portable(html: str) -> str:
    """HTML of our pages as another program can show it."""
    return _PORTABLE.clean(html).strip()
