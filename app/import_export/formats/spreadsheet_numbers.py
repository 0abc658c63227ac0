"""Format spreadsheet numbers as their cells show them (ECMA-376 formats)."""

import datetime as dt
import re
from collections.abc import Iterator, Sequence
from decimal import ROUND_HALF_UP, Decimal
from typing import NamedTuple

# The built-in formats; those left out differ by country.
BUILTIN_FORMATS = {
    0: "General",
    1: "0",
    2: "0.00",
    3: "#,##0",
    4: "#,##0.00",
    9: "0%",
    10: "0.00%",
    11: "0.00E+00",
    14: "yyyy-mm-dd",
    15: "d-mmm-yy",
    16: "d-mmm",
    17: "mmm-yy",
    18: "h:mm AM/PM",
    19: "h:mm:ss AM/PM",
    20: "h:mm",
    21: "h:mm:ss",
    22: "yyyy-mm-dd h:mm",
    37: "#,##0;-#,##0",
    38: "#,##0;-#,##0",
    39: "#,##0.00;-#,##0.00",
    40: "#,##0.00;-#,##0.00",
    45: "mm:ss",
    46: "[h]:mm:ss",
    47: "mm:ss.0",
    49: "@",
}
_TOKEN = re.compile(
    r"""(?P<general>General)|"(?P<quoted>[^"]*)"|\\(?P<escaped>.)|[_*](?P<padding>.)
    |\[\$(?P<sign>[^\]-]*)(?:-(?P<country>[^\]]*))?\]|\[(?P<elapsed>h+|m+|s+)\]
    |\[(?:black|blue|cyan|green|magenta|red|white|yellow|colou?r\ ?\d+)\]
    |(?P<halves>AM/PM|A/P)|(?P<date>y+|m+|d+|h+|s+(?:\.0+)?)
    |(?P<digits>[0\#?][0\#?,.]*(?:E[+-]0+)?|\.0+)|(?P<slash>/)|(?P<other>[^\[\]@;])""",
    re.VERBOSE | re.IGNORECASE,
)
_PART = re.compile(r'"[^"]*"|\\.|\[[^\]]*\]|[_*].|(?P<end>;)|.', re.DOTALL)
_DIGITS = re.compile(r"(?P<whole>[0#?,]*?)(?:\.(?P<part>[0#?]*))?(?P<scale>,*)(?P<power>E[+-]0+)?")
_DATES = frozenset({"date", "elapsed", "halves"})
_LAST = 2_958_465  # the last day that a spreadsheet can show, 9999-12-31
_LARGEST = 1e21


class _FormatToken(NamedTuple):
    kind: str
    text: str


def format_number(value: float, code: str, *, since_1904: bool = False) -> str | None:
    """Return a number as a cell of this format shows it; None for an unsupported format.

    >>> format_number(0.5, "0%"), format_number(0.5, "# ?/?")
    ('50%', None)
    >>> format_number(1024, "#,##0"), format_number(13 / 12, "[h]:mm")
    ('1,024', '26:00')
    """
    if code in {"", "@"}:
        return _format_general(value)
    section, negative = _section_for(value, code)
    tokens = list(_split_tokens(section))
    kinds = {token.kind for token in tokens}
    if not tokens or "unknown" in kinds:
        return None
    if kinds & _DATES:
        return _format_date(value, tokens, since_1904=since_1904) or None
    if "general" in kinds:
        return _join_tokens(tokens, "general", _format_general(value))
    shown = _format_positive(abs(value), tokens)
    return f"-{shown}" if negative and shown else shown or None


def _section_for(value: float, code: str) -> tuple[str, bool]:
    """Return the section of a format for a number, and whether to add a minus sign."""
    sections = [""]
    for part in _PART.finditer(code):
        if part["end"]:
            sections.append("")
        else:
            sections[-1] += part[0]
    if value < 0 and len(sections) > 1:
        return sections[1], False
    if value == 0 and len(sections) > 2:
        return sections[2], False
    return sections[0], value < 0


def _split_tokens(section: str) -> Iterator[_FormatToken]:
    at = 0
    while at < len(section):
        found = _TOKEN.match(section, at)
        if found is None:
            yield _FormatToken("unknown", section[at])
            return
        at = found.end()
        kind = "sign" if found["sign"] is not None else found.lastgroup or ""
        text = found[kind] if kind else ""
        if kind == "sign" and not _is_english(found["country"] or ""):
            yield _FormatToken("foreign", "")
        if kind in {"quoted", "escaped", "sign", "other"}:
            yield _FormatToken("words", text)
        elif kind and kind != "padding":
            yield _FormatToken(kind, text.lower() if kind in _DATES else text)


def _is_english(country: str) -> bool:
    """Return whether month names are English in a locale, given as a Windows id."""
    if not re.fullmatch("[0-9A-Fa-f]{3,8}", country):
        return country in {"", "x-sysdate", "x-systime"}
    return country.upper() in {"F800", "F400"} or int(country, 16) & 0x3FF == 9


def _join_tokens(tokens: Sequence[_FormatToken], kind: str, instead: str) -> str:
    words = (instead if t.kind == kind else t.text for t in tokens)
    return "".join(words).strip()


def _format_general(value: float) -> str:
    """Format with at most fifteen digits, as a cell without a format does."""
    if value == int(value) and abs(value) < _LARGEST:
        return str(int(value))
    return f"{value:.15g}".upper()


def _format_positive(value: float, tokens: Sequence[_FormatToken]) -> str | None:
    """Format a non-negative number with the digits of its format."""
    holders = [token for token in tokens if token.kind == "digits"]
    slash = any(token.kind == "slash" for token in tokens)
    if len(holders) > 1 or slash or value >= _LARGEST:
        return None  # a telephone number, or a fraction
    if not holders:  # text only
        return _join_tokens(tokens, "", "")
    percents = sum(t.text.count("%") for t in tokens if t.kind == "words")
    form = _DIGITS.fullmatch(holders[0].text)
    if form is None:
        return None
    exact = Decimal(repr(value)) * 100**percents
    return _join_tokens(tokens, "digits", _format_digits(exact, form))


def _format_digits(value: Decimal, form: re.Match[str]) -> str:
    whole, part = form["whole"], form["part"] or ""
    bare = whole.rstrip(",")
    value /= 1000 ** (len(whole) - len(bare) + len(form["scale"]))
    if form["power"]:
        text = f"{value:.{len(part)}E}"
        digits, _, power = text.partition("E")
        return f"{digits}E{int(power):+0{form['power'].count('0') + 1}d}"
    rounded = value.quantize(Decimal(1).scaleb(-len(part)), ROUND_HALF_UP)
    text = f"{rounded:,f}" if "," in bare else f"{rounded:f}"
    above, _, below = text.partition(".")
    if "," not in bare:
        above = above.zfill(bare.count("0"))
    kept = len(part.rstrip("#?"))
    below = below[:kept] + below[kept:].rstrip("0")
    if above == "0" and "0" not in bare:
        above = ""
    return f"{above}.{below}" if below else above


def _format_date(value: float, tokens: Sequence[_FormatToken], *, since_1904: bool) -> str | None:
    """Format a date, a time of day or a duration."""
    if not 0 <= value <= _LAST or any(t.kind == "digits" for t in tokens):
        return None
    start = dt.datetime(1904, 1, 1) if since_1904 else dt.datetime(1899, 12, 30)  # noqa: DTZ001
    parts = any(token.kind == "date" and "." in token.text for token in tokens)
    moment = start + dt.timedelta(seconds=round(value * 86_400, 3 if parts else 0))
    twelve = any(token.kind == "halves" for token in tokens)
    named = any(t.kind == "date" and t.text[:3] in {"mmm", "ddd"} for t in tokens)
    if named and any(token.kind == "foreign" for token in tokens):
        return None  # months have other names in this locale
    said = []
    for at, token in enumerate(tokens):
        near = [t.text[:1] for t in tokens[:at] if t.kind in _DATES][-1:]
        follows = [t.text[:1] for t in tokens[at + 1 :] if t.kind in _DATES][:1]
        minutes = near == ["h"] or follows == ["s"]
        if token.kind == "elapsed":
            said.append(_format_elapsed(value, token.text))
        elif token.kind == "halves":
            said.append("AM" if moment.hour < 12 else "PM")
        elif token.kind == "date":
            said.append(_format_moment_part(moment, token.text, minutes, twelve))
        else:
            said.append(token.text)
    return "".join(said).strip()


def _format_elapsed(value: float, letters: str) -> str:
    seconds = round(value * 86_400)
    length = {"h": 3600, "m": 60, "s": 1}[letters[0]]
    return str(seconds // length).zfill(len(letters))


def _format_moment_part(moment: dt.datetime, letters: str, minutes: bool, twelve: bool) -> str:
    """Format one part of a date or time: `yyyy`, `mmm`, `ss.0`."""
    first, width = letters[0], len(letters)
    if first == "y":
        return f"{moment:%Y}" if width > 2 else f"{moment:%y}"
    if first == "d" and width > 2:
        return f"{moment:%A}" if width > 3 else f"{moment:%a}"
    if first == "m" and not minutes and width > 2:
        return f"{moment:%b}" if width == 3 else f"{moment:%B}"[: 1 if width == 5 else 9]
    if first == "s":
        whole, _, part = letters.partition(".")
        seconds = f"{moment.second:0{len(whole)}d}"
        return f"{seconds}.{moment:%f}"[: len(seconds) + 1 + len(part)] if part else seconds
    hour = (moment.hour % 12 or 12) if twelve else moment.hour
    numbers = {
        "d": moment.day,
        "h": hour,
        "m": moment.minute if minutes else moment.month,
    }
    return f"{numbers[first]:0{min(width, 2)}d}"
