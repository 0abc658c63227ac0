"""HTML that is not seen: hidden by an attribute, by a style, or off the page."""

import re
from collections.abc import Mapping

_ZERO = r"0*\.?0*(?:px|pt|em|rem|%)?\s*(?:!important)?\s*(?:;|$)"
_HIDES = re.compile(
    rf"""(?:^|[;{{\s])(?:
    display\s*:\s*none | visibility\s*:\s*(?:hidden|collapse)
    | content-visibility\s*:\s*hidden
    | (?:opacity|font-size)\s*:\s*{_ZERO} | font-size\s*:\s*1p[xt]
    | (?:left|right|top|bottom|text-indent|margin(?:-left|-top)?)\s*:
      \s*-(?:\d{{3,}}|\d\d(?:\.\d+)?r?em)
    | clip\s*:\s*rect\(\s*[01](?:px)?[\s,]+[01](?:px)?[\s,]+[01](?:px)?[\s,]+[01](?:px)?
    | clip-path\s*:\s*(?:inset\(\s*(?:50|100)%|circle\(\s*0)
    | transform\s*:[^;]*(?:scale[xy]?\(\s*0\s*[,)]|translate[xy]?\(\s*-\d{{4,}})
    | color\s*:\s*(?:transparent|rgba\([^)]*,\s*0*\.?0*\s*\))
    )""",
    re.IGNORECASE | re.VERBOSE,
)
_TINY = re.compile(
    r"(?:^|[;\s])(?:max-)?(?:width|height)\s*:\s*[01](?:\D|$)", re.IGNORECASE
)
_CUT = re.compile(r"overflow[^:;]*:\s*(?:hidden|clip)", re.IGNORECASE)
_WHITE = r"(?:white|\#fff(?:fff)?|rgb\(\s*255\s*,\s*255\s*,\s*255\s*\))"
_WHITE_WORDS = re.compile(rf"(?:^|;)\s*color\s*:\s*{_WHITE}", re.IGNORECASE)
_BACKGROUND = re.compile(rf"background[^:;]*:(?![^;]*{_WHITE})", re.IGNORECASE)
# Names that platforms give to what only programs for the blind read, or nobody.
_CLASSES = frozenset(
    {
        "accesshide",
        "d-none",
        "element-invisible",
        "hidden",
        "hidden-readable",
        "hide",
        "invisible",
        "katex-mathml",
        "mjx-assistive-mml",
        "mjx_assistive_mathml",
        "qti-hidden",
        "qti-visually-hidden",
        "screenreader-only",
        "screen-reader-text",
        "sr-only",
        "visually-hidden",
        "visuallyhidden",
    }
)
_SHUT = frozenset({"datalist", "details", "dialog"})  # seen only when they are open
_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
_SHEET = re.compile(r"<style\b[^<>]*>([^<]*)", re.IGNORECASE)
_AT_RULE = re.compile(r"@[^{};]*(?:;|\{(?:[^{}]*\{[^{}]*\})*[^{}]*\})")
_RULE = re.compile(r"([^{}]+)\{([^{}]*)\}")
_SELECTOR = re.compile(r"[a-z0-9]*(?:[.#][\w-]+)+", re.IGNORECASE)
HIDING_MARKUP = re.compile(
    r"<(?:style|script|template|details|dialog|datalist)\b|\bhidden\b"
    r"|display\s*:|visibility\s*:|opacity\s*:|-\d{3,}",
    re.IGNORECASE,
)
"""What HTML holds that may hide a part of it."""


def find_hiding_selectors(html: str) -> frozenset[str]:
    """The classes (`.x`) and ids (`#x`) that the style sheets of some HTML hide."""
    found: set[str] = set()
    for sheet in _SHEET.findall(html):
        plain = _AT_RULE.sub(" ", _COMMENT.sub(" ", sheet))
        for selectors, style in _RULE.findall(plain):
            if is_hiding_style(style):
                named = (s.split()[-1:] for s in selectors.split(","))
                found |= {
                    s[0].lower() for s in named if s and _SELECTOR.fullmatch(s[0])
                }
    return frozenset(f"{mark}{name}" for one in found for mark, name in _parts(one))


def _parts(selector: str) -> list[tuple[str, str]]:
    return re.findall(r"([.#])([\w-]+)", selector)


def is_hiding_style(style: str, *, dark: bool = False) -> bool:
    """Whether a style makes words unseen, on a white page unless it is `dark`."""
    plain = _COMMENT.sub("", style)
    white = _WHITE_WORDS.search(plain) and not dark and not _BACKGROUND.search(plain)
    tiny = _TINY.search(plain) and _CUT.search(plain)
    return bool(white or tiny or _HIDES.search(plain))


def has_dark_background(given: Mapping[str, str | None]) -> bool:
    """Whether an element has a background on which white words may be seen."""
    named = f"background:{given['bgcolor']};" if given.get("bgcolor") else ""
    return _BACKGROUND.search(named + (given.get("style") or "")) is not None


def is_hidden(
    tag: str,
    given: Mapping[str, str | None],
    names: frozenset[str],
    *,
    dark: bool = False,
) -> bool:
    """Whether an element is not seen; `names` are what style sheets hide.

    >>> is_hidden("p", {"style": "color: red; display:none"}, frozenset())
    True
    """
    color = f"color:{given.get('color') or ''};" if tag == "font" else ""
    classes = {name.lower() for name in (given.get("class") or "").split()}
    styled = {f".{name}" for name in classes} | {f"#{(given.get('id') or '').lower()}"}
    return bool(
        "hidden" in given
        or (tag in _SHUT and "open" not in given)
        or classes & _CLASSES
        or styled & names
        or is_hiding_style(
            color + (given.get("style") or ""), dark=dark or has_dark_background(given)
        )
    )
