"""What a card of Anki shows: its note put into the templates of its type.

Only what changes the words is followed: fields, conditions, clozes and the filters
that hide something. Whatever goes beyond that falls back to the plain fields.
"""

import re
from collections.abc import Mapping, Sequence
from html import unescape
from typing import Literal
from urllib.parse import unquote

from app.cards.added_cards import LONGEST_FACE
from app.exchange.formats.apkg.notetypes import NoteType

Side = Literal["front", "back"]

# None of these looks at a character twice, however a stranger wrote the text.
_TAG = re.compile(r"<[^<>]*>")
_TOKEN = re.compile(r"\{\{([^{}]*)\}\}")
_CLOZE = re.compile(r"\{\{c([\d,]{1,20})::((?:(?!\{\{|\}\}).)*)\}\}", re.DOTALL)
_EMPTY = re.compile(r"(?:\s|&nbsp;|<br\s*/?>|</?(?:div|p|span)[^<>]*>)*\Z")
_RULE = re.compile(r"<hr\s+id=[\"']?answer[^<>]*>", re.IGNORECASE)
_SOUND = re.compile(r"\[(?:sound:|anki:)[^\[\]]*\]")
_OTHER_MEDIA = re.compile(r"<(?:audio|video|object|embed|source)\b[^<>]*>", re.IGNORECASE)
_PICTURE = re.compile(r"<img\b[^<>]*>", re.IGNORECASE)
_NAMED = re.compile(r"\bsrc\s*=\s*(?:\"([^\"<>]*)\"|'([^'<>]*)'|([^\s\"'<>]+))", re.IGNORECASE)
_MATHJAX = re.compile(
    r"<anki-mathjax(?P<how>[^<>]*)>(?P<tex>(?:(?!</?anki-mathjax).){0,2000}?)"
    r"</anki-mathjax>",
    re.IGNORECASE | re.DOTALL,
)
_LATEX = re.compile(
    r"\[\$\$\](?P<block>(?:(?!\[/?\$).){1,2000}?)\[/\$\$\]"
    r"|\[\$\](?P<inline>(?:(?!\[/?\$).){1,2000}?)\[/\$\]"
    r"|\[latex\](?P<words>(?:(?!\[/?latex).){1,2000}?)\[/latex\]",
    re.IGNORECASE | re.DOTALL,
)
_DOLLARS = re.compile(r"\$\$([^$]{1,2000})\$\$|\$([^$]{1,2000})\$")
_SPECIAL = {"FrontSide", "Tags", "Type", "Deck", "Subdeck", "Card", "CardFlag"}
_DEPTH = 6
_TOKENS = 200


class _UnsupportedTemplateError(Exception):
    """A template that goes beyond what is followed here."""


def render_card_sides(kind: NoteType, fields: Sequence[str], ordinal: int) -> tuple[str, str]:
    """Front and back of a card, in the HTML of its note; not cleaned yet.

    The back is what comes below the front, so what it repeats of it is left out.
    """
    values = dict(zip(kind.fields, fields, strict=False))
    template = kind.templates.get(0 if kind.cloze else ordinal)
    try:
        front = _filled(template and template[0], values, (kind, ordinal, "front"))
        back = _filled(template and template[1], values, (kind, ordinal, "back"))
    except _UnsupportedTemplateError:
        return _plain(kind, fields, ordinal)
    return front, _RULE.split(back, maxsplit=1)[-1]


def _plain(kind: NoteType, fields: Sequence[str], ordinal: int) -> tuple[str, str]:
    """The first field, and all others below it."""
    first, rest = fields[0], "<br>".join(filter(None, fields[1:]))
    if not kind.cloze:
        return first, rest
    below = f"<div>{rest}</div>" if rest else ""
    number = ordinal + 1
    return clozed(first, number, "front"), clozed(first, number, "back") + below


def is_blank(html: str) -> bool:
    """Whether nothing is left to read or to look at."""
    if _PICTURE.search(html):
        return False
    return _EMPTY.match(html) is not None or not _TAG.sub("", html).strip()


def pictures_in(fields: Sequence[str]) -> set[str]:
    """The names of the files that a note shows as pictures."""
    tags = (tag[0] for field in fields for tag in _PICTURE.finditer(field))
    return {name for tag in tags if (name := _name_in(tag))}


def _name_in(tag: str) -> str:
    found = _NAMED.search(tag)
    if found is None:
        return ""
    return unquote(unescape(found[1] or found[2] or found[3] or ""))


def with_pictures(html: str, addresses: Mapping[str, str]) -> tuple[str, int, frozenset[str]]:
    """HTML whose pictures have our addresses, and what became of its media.

    Sounds and pictures without an address are taken out and counted; then come the
    names of the pictures that stayed.
    """
    quiet, sounds = _SOUND.subn("", html)
    plain, others = _OTHER_MEDIA.subn("", quiet)
    lost, kept = sounds + others, set[str]()

    def placed(found: re.Match[str]) -> str:
        nonlocal lost
        name = _name_in(found[0])
        if name not in addresses:
            lost += 1
            return ""
        kept.add(name)
        return f'<img src="{addresses[name]}" alt="Picture">'

    return _PICTURE.sub(placed, plain), lost, frozenset(kept)


def with_math(html: str) -> str:
    r"""HTML whose formulas are written as \(…\) and \[…\], however Anki had them.

    >>> with_math("[$]a[/$] <anki-mathjax block='true'>b</anki-mathjax>")
    '\\(a\\) \\[b\\]'
    """
    html = _MATHJAX.sub(lambda m: _formula(m["tex"], block="block" in m["how"].lower()), html)
    return _LATEX.sub(_latex, html)


def _latex(found: re.Match[str]) -> str:
    if found["words"] is None:
        tex = found["block"] or found["inline"]
        return _formula(tex, block=found["block"] is not None)
    words: str = found["words"]
    return _DOLLARS.sub(lambda m: _formula(m[1] or m[2], block=m[1] is not None), words)


def _formula(tex: str, *, block: bool) -> str:
    plain = " ".join(_TAG.sub(" ", tex).split())
    return rf"\[{plain}\]" if block else rf"\({plain}\)"


def clozed(text: str, number: int, side: Side, *, alone: bool = False) -> str:
    """A text whose cloze of that number is hidden on the front and shown on the back.

    `alone`: nothing but the cloze itself.

    >>> clozed("{{c1::Ada}} wrote {{c2::notes::what?}}.", 2, "front")
    'Ada wrote [what?].'
    >>> clozed("{{c1::Ada}} wrote {{c2::notes::what?}}.", 1, "back")
    '<strong>Ada</strong> wrote notes.'
    """
    hit = False
    parts: list[str] = []

    def shown(found: re.Match[str]) -> str:
        nonlocal hit
        words, _, hint = found[2].partition("::")
        if str(number) not in found[1].split(","):
            return words
        hit = True
        hidden = f"[{hint or '…'}]" if side == "front" else f"<strong>{words}</strong>"
        parts.append(hidden)
        return hidden

    for _ in range(_DEPTH):  # the innermost first
        text, count = _CLOZE.subn(shown, text)
        if not count:
            break
    if not hit:
        return ""
    return ", ".join(parts) if alone else text


def _filled(
    template: str | None, values: Mapping[str, str], card: tuple[NoteType, int, Side]
) -> str:
    """A template with the fields put in; raises _Beyond."""
    if template is None or len(template) > LONGEST_FACE or template.count("{{") > _TOKENS:
        raise _UnsupportedTemplateError
    out: list[str] = []
    stack: list[tuple[str, bool]] = []
    length = at = 0
    for token in _TOKEN.finditer(template):
        shown = all(is_on for _, is_on in stack)
        words = template[at : token.start()] if shown else ""
        at = token.end()
        name = token[1].strip()
        if name[:1] in {"#", "^", "/", "=", "!"}:
            _turn(name, stack, values, card)
        elif shown:
            words += _value(name, values, card)
        length += len(words)
        if length > LONGEST_FACE:
            raise _UnsupportedTemplateError
        out.append(words)
    if stack:
        raise _UnsupportedTemplateError
    return "".join(out) + template[at:]


def _turn(
    name: str,
    stack: list[tuple[str, bool]],
    values: Mapping[str, str],
    card: tuple[NoteType, int, Side],
) -> None:
    """Begin or end a condition; comments change nothing."""
    sign, field = name[0], name[1:].strip()
    if sign == "/":
        if not stack or stack.pop()[0] != field:
            raise _UnsupportedTemplateError
    elif sign in "#^":
        if len(stack) > 20:
            raise _UnsupportedTemplateError
        stack.append((field, _is_filled(field, values, card[1]) == (sign == "#")))
    elif sign == "=":
        raise _UnsupportedTemplateError


def _is_filled(field: str, values: Mapping[str, str], ordinal: int) -> bool:
    if field in values:
        return _EMPTY.match(values[field]) is None
    if re.fullmatch(r"c\d{1,4}", field):
        return int(field[1:]) == ordinal + 1
    if field in _SPECIAL:
        return False
    raise _UnsupportedTemplateError


def _value(name: str, values: Mapping[str, str], card: tuple[NoteType, int, Side]) -> str:
    *filters, field = (part.strip() for part in name.split(":"))
    if field in _SPECIAL or any(f.startswith("tts") for f in filters):
        return ""
    if field not in values:
        raise _UnsupportedTemplateError
    value = values[field]
    for word in reversed(filters):
        value = _sifted(word, value, card[1] + 1, card[2])
    return value


def _sifted(word: str, value: str, number: int, side: Side) -> str:
    if word == "text":
        return _TAG.sub("", value)
    if word in {"cloze", "cloze-only"}:
        return clozed(value, number, side, alone=word == "cloze-only")
    if word in {"type", "hint", "nc"} and side == "front":
        return ""  # typed in or opened there, so not to be seen yet
    return value
