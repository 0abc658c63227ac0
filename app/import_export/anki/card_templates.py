"""Anki note types, and rendering of card templates.

Only what changes the text is supported: fields, conditions, clozes and the filters that hide
something. Other templates fall back to the plain fields.
"""

import dataclasses
import json
import re
import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from html import unescape
from typing import Any, Literal, NamedTuple
from urllib.parse import unquote

from app.import_export.anki.package_format import decode_protobuf_fields
from app.spaced_repetition.added_card_ids_and_faces import LONGEST_FACE

_CLOZE_NOTE_TYPE_KIND = 1
_DECK_LEVEL_SEPARATOR = "\x1f"  # between the levels of a deck name in newer collections
_LONGEST_NAME = 120


class CardTemplate(NamedTuple):
    front: str
    back: str


@dataclasses.dataclass(frozen=True, slots=True)
class NoteType:
    """The fields of a note type, and the templates of its cards by ordinal.

    A cloze type has one template for all of its cards.
    """

    name: str
    field_names: tuple[str, ...]
    template_by_ordinal: Mapping[int, CardTemplate]
    is_cloze: bool = False
    max_template_length: int = 0


def read_note_types_by_id(db: sqlite3.Connection) -> dict[int, NoteType]:
    """Return every note type by id; unreadable ones are left out."""
    ((models,),) = db.execute("SELECT models FROM col LIMIT 1").fetchall() or ((None,),)
    if models:
        return _read_legacy_note_types(_parse_json_object_values(models))
    return _read_note_type_table(db)


def read_deck_names_by_id(db: sqlite3.Connection) -> dict[int, str]:
    ((decks,),) = db.execute("SELECT decks FROM col LIMIT 1").fetchall() or ((None,),)
    if not decks:
        rows = db.execute("SELECT id, name FROM decks").fetchmany(10_000)
        return {_whole_number_or_minus_one(deck): _clean_deck_name(name) for deck, name in rows}
    return {
        _whole_number_or_minus_one(deck.get("id")): _clean_deck_name(deck.get("name"))
        for deck in _parse_json_object_values(decks)
    }


def _clean_deck_name(name: Any) -> str:
    title = " ".join(str(name).replace(_DECK_LEVEL_SEPARATOR, "::").split())
    return "".join(c for c in title if c.isprintable())[:_LONGEST_NAME]


def _read_legacy_note_types(models: Iterable[dict[str, Any]]) -> dict[int, NoteType]:
    to_key = _whole_number_or_minus_one
    types = {}
    for model in models:
        fields = sorted(_dicts_only(model.get("flds")), key=lambda f: to_key(f.get("ord")))
        templates = {
            to_key(t.get("ord")): CardTemplate(str(t.get("qfmt", "")), str(t.get("afmt", "")))
            for t in _dicts_only(model.get("tmpls"))
        }
        types[to_key(model.get("id"))] = NoteType(
            str(model.get("name", "")),
            tuple(str(f.get("name", "")) for f in fields),
            templates,
            model.get("type") == _CLOZE_NOTE_TYPE_KIND,
            _max_template_length(templates),
        )
    return types


def _read_note_type_table(db: sqlite3.Connection) -> dict[int, NoteType]:
    """Read note types from separate tables, with settings as protocol buffers."""
    to_key = _whole_number_or_minus_one
    fields = defaultdict[int, list[tuple[int, str]]](list)
    for note_type_id, ordinal, name in db.execute("SELECT ntid, ord, name FROM fields"):
        fields[to_key(note_type_id)].append((to_key(ordinal), str(name)))
    templates = defaultdict[int, dict[int, CardTemplate]](dict)
    for note_type_id, ordinal, config in db.execute("SELECT ntid, ord, config FROM templates"):
        parts = _decode_protobuf_message(config)
        template = CardTemplate(_decode_text(parts.get(1)), _decode_text(parts.get(2)))
        templates[to_key(note_type_id)][to_key(ordinal)] = template
    types = {}
    for note_type_id, name, config in db.execute("SELECT id, name, config FROM notetypes"):
        key = to_key(note_type_id)
        names = tuple(field_name for _, field_name in sorted(fields[key]))
        cloze = _decode_protobuf_message(config).get(1) == _CLOZE_NOTE_TYPE_KIND
        type_templates = templates[key]
        types[key] = NoteType(
            str(name), names, type_templates, cloze, _max_template_length(type_templates)
        )
    return types


def _max_template_length(templates: Mapping[int, CardTemplate]) -> int:
    return max((len(t.front) + len(t.back) for t in templates.values()), default=0)


def _decode_protobuf_message(raw: Any) -> dict[int, int | bytes]:
    return dict(decode_protobuf_fields(raw)) if isinstance(raw, bytes) else {}


def _decode_text(value: int | bytes | None) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else ""


def _parse_json_object_values(text: Any) -> list[dict[str, Any]]:
    """Return the values of a JSON object that are objects themselves."""
    try:
        document = json.loads(text)
    except (ValueError, TypeError, RecursionError):
        return []
    return _dicts_only(list(document.values()) if isinstance(document, dict) else None)


def _dicts_only(value: Any) -> list[dict[str, Any]]:
    return [v for v in value if isinstance(v, dict)] if isinstance(value, list) else []


def _whole_number_or_minus_one(value: Any) -> int:
    """Return a whole number, −1 for anything else."""
    if isinstance(value, str) and value.isdigit() and len(value) < 20:
        return int(value)
    return value if isinstance(value, int) else -1


Side = Literal["front", "back"]

# None of these patterns reads a character twice, so malicious text cannot make them slow.
_HTML_TAG = re.compile(r"<[^<>]*>")
_TEMPLATE_TOKEN = re.compile(r"\{\{([^{}]*)\}\}")
_SHOWING_CLOZE = re.compile(r"\{\{c([\d,]{1,20})::((?:(?!\{\{|\}\}).)*)\}\}", re.DOTALL)
_EMPTY_HTML = re.compile(r"(?:\s|&nbsp;|<br\s*/?>|</?(?:div|p|span)[^<>]*>)*\Z")
_ANSWER_RULE = re.compile(r"<hr\s+id=[\"']?answer[^<>]*>", re.IGNORECASE)
_SOUND_MARKUP = re.compile(r"\[(?:sound:|anki:)[^\[\]]*\]")
_OTHER_MEDIA = re.compile(r"<(?:audio|video|object|embed|source)\b[^<>]*>", re.IGNORECASE)
_IMG_TAG = re.compile(r"<img\b[^<>]*>", re.IGNORECASE)
_SRC_ATTRIBUTE = re.compile(
    r"\bsrc\s*=\s*(?:\"([^\"<>]*)\"|'([^'<>]*)'|([^\s\"'<>]+))", re.IGNORECASE
)
_MATHJAX_ELEMENT = re.compile(
    r"<anki-mathjax(?P<how>[^<>]*)>(?P<tex>(?:(?!</?anki-mathjax).){0,2000}?)"
    r"</anki-mathjax>",
    re.IGNORECASE | re.DOTALL,
)
_LATEX_MARKUP = re.compile(
    r"\[\$\$\](?P<block>(?:(?!\[/?\$).){1,2000}?)\[/\$\$\]"
    r"|\[\$\](?P<inline>(?:(?!\[/?\$).){1,2000}?)\[/\$\]"
    r"|\[latex\](?P<words>(?:(?!\[/?latex).){1,2000}?)\[/latex\]",
    re.IGNORECASE | re.DOTALL,
)
_TEX_DELIMITERS = re.compile(
    r"\\\((?P<inline>(?:(?!\\[()\[\]]).){1,2000}?)\\\)"
    r"|\\\[(?P<block>(?:(?!\\[()\[\]]).){1,2000}?)\\\]",
    re.DOTALL,
)
_TEX_ENVIRONMENT = re.compile(
    r"\\begin\{(?P<name>(?:equation|displaymath|math|align|gather)\*?)\}"
    r"(?P<tex>(?:(?!\\begin|\\end).){1,2000})\\end\{(?P=name)\}",
    re.DOTALL,
)
_FURIGANA_READING = re.compile(r" ?([^ >\[\]]{1,200})\[(?!sound:)([^\[\]]{1,200})\]")
_DOLLAR_MATH = re.compile(r"\$\$([^$]{1,2000})\$\$|\$([^$]{1,2000})\$")
_SPECIAL_FIELD_NAMES = {"FrontSide", "Tags", "Type", "Deck", "Subdeck", "Card", "CardFlag"}
_MAX_SECTION_DEPTH = 6
_MAX_TEMPLATE_TOKENS = 200


class _UnsupportedTemplateError(Exception):
    """A template with unsupported syntax."""


class CardSides(NamedTuple):
    """Front and back of a card as HTML, not sanitized."""

    front: str
    back: str


def render_card_sides(
    note_type: NoteType, field_values: Sequence[str], card_ordinal: int
) -> CardSides:
    """Return a card as the HTML of its note.

    The back leaves out what repeats the front above the line `<hr id=answer>`.
    """
    values = dict(zip(note_type.field_names, field_values, strict=False))
    template = note_type.template_by_ordinal.get(0 if note_type.is_cloze else card_ordinal)
    try:
        front = _fill_template(template and template.front, values, card_ordinal, "front")
        back = _fill_template(template and template.back, values, card_ordinal, "back")
    except _UnsupportedTemplateError:
        return _show_first_field_then_others(note_type, field_values, card_ordinal)
    return CardSides(front, _remove_repeated_front(front, back))


def _remove_repeated_front(front: str, back: str) -> str:
    """Return the back without what stands above its line and is read on the front too."""
    above, *answer_parts = _ANSWER_RULE.split(back, maxsplit=1)
    if not answer_parts:
        return back
    remaining = above
    if front.strip():  # not where a reading in brackets follows, which belongs to it
        remaining = re.sub(rf"{re.escape(front.strip())}(?!\[)", "", above, count=1)
    if is_blank_html(remaining) or _extract_visible_text(remaining) in _extract_visible_text(front):
        return answer_parts[0]
    return f"<div>{remaining.strip()}</div>{answer_parts[0]}"


def _extract_visible_text(html: str) -> str:
    return " ".join(unescape(_HTML_TAG.sub(" ", _SOUND_MARKUP.sub("", html))).split())


def _show_first_field_then_others(
    note_type: NoteType, field_values: Sequence[str], card_ordinal: int
) -> CardSides:
    first, other_fields = field_values[0], "<br>".join(filter(None, field_values[1:]))
    if not note_type.is_cloze:
        return CardSides(first, other_fields)
    rest_html = f"<div>{other_fields}</div>" if other_fields else ""
    number = card_ordinal + 1
    back = render_cloze(first, number, "back") + rest_html
    return CardSides(render_cloze(first, number, "front"), back)


def is_blank_html(html: str) -> bool:
    """Return whether HTML has neither text nor a picture."""
    if _IMG_TAG.search(html):
        return False
    return _EMPTY_HTML.match(html) is not None or not _HTML_TAG.sub("", html).strip()


def find_picture_names(field_values: Sequence[str]) -> set[str]:
    tags = (tag[0] for field in field_values for tag in _IMG_TAG.finditer(field))
    return {name for tag in tags if (name := _find_picture_name_in_tag(tag))}


def _find_picture_name_in_tag(tag: str) -> str:
    match = _SRC_ATTRIBUTE.search(tag)
    return unquote(unescape(match[1] or match[2] or match[3] or "")) if match else ""


def replace_media_with_stored_pictures(
    html: str, url_by_picture_name: Mapping[str, str]
) -> tuple[str, int, frozenset[str]]:
    """Return HTML with our picture URLs, the number of media removed, and the pictures kept.

    Sounds, and pictures without a URL in `url_by_picture_name`, are removed.
    """
    without_sounds, sounds = _SOUND_MARKUP.subn("", html)
    without_media, others = _OTHER_MEDIA.subn("", without_sounds)
    lost_count, used_names = sounds + others, set[str]()

    def replace(match: re.Match[str]) -> str:
        nonlocal lost_count
        name = _find_picture_name_in_tag(match[0])
        if name not in url_by_picture_name:
            lost_count += 1
            return ""
        used_names.add(name)
        return f'<img src="{url_by_picture_name[name]}" alt="Picture">'

    replaced = _IMG_TAG.sub(replace, without_media)
    return replaced, lost_count, frozenset(used_names)


def convert_anki_formulas_to_tex(html: str) -> str:
    r"""Return HTML with all formulas as \(…\) and \[…\], whichever way Anki wrote them.

    >>> convert_anki_formulas_to_tex("[$]a[/$] <anki-mathjax block='true'>b</anki-mathjax>")
    '\\(a\\) \\[b\\]'
    """
    html = _MATHJAX_ELEMENT.sub(
        lambda m: _write_formula(m["tex"], is_block="block" in m["how"].lower()), html
    )
    return _TEX_DELIMITERS.sub(_convert_tex, _LATEX_MARKUP.sub(_convert_latex, html))


def _convert_tex(match: re.Match[str]) -> str:
    return _write_formula(match["block"] or match["inline"], is_block=match["block"] is not None)


def _convert_latex(match: re.Match[str]) -> str:
    if match["words"] is None:
        return _convert_tex(match)
    text = _TEX_ENVIRONMENT.sub(_convert_environment, match["words"])
    return _DOLLAR_MATH.sub(lambda m: _write_formula(m[1] or m[2], is_block=m[1] is not None), text)


def _convert_environment(match: re.Match[str]) -> str:
    name, tex = match["name"].rstrip("*"), match["tex"]
    if name in {"align", "gather"}:
        tex = rf"\begin{{{name}ed}}{tex}\end{{{name}ed}}"
    return _write_formula(tex, is_block=name != "math")


def _write_formula(tex: str, *, is_block: bool) -> str:
    """Return a formula without tags, such as those around the answer of a cloze."""
    plain = " ".join(_HTML_TAG.sub(" ", tex).split())
    return rf"\[{plain}\]" if is_block else rf"\({plain}\)"


def render_cloze(text: str, cloze_number: int, side: Side, *, only_cloze: bool = False) -> str:
    """Return a text with one of its clozes hidden on the front, or shown on the back.

    `only_cloze` returns only the cloze itself.

    >>> render_cloze("{{c1::Ada}} wrote {{c2::notes::what?}}.", 2, "front")
    'Ada wrote [what?].'
    >>> render_cloze("{{c1::Ada}} wrote {{c2::notes::what?}}.", 1, "back")
    '<strong>Ada</strong> wrote notes.'
    """
    hit = False
    parts: list[str] = []

    def show_or_hide(match: re.Match[str]) -> str:
        nonlocal hit
        answer, _, hint = match[2].partition("::")
        if str(cloze_number) not in match[1].split(","):
            return answer
        hit = True
        hidden = f"[{hint or '…'}]" if side == "front" else f"<strong>{answer}</strong>"
        parts.append(hidden)
        return hidden

    for _ in range(_MAX_SECTION_DEPTH):  # innermost first
        text, count = _SHOWING_CLOZE.subn(show_or_hide, text)
        if not count:
            break
    if not hit:
        return ""
    return ", ".join(parts) if only_cloze else text


def _fill_template(
    template: str | None, field_values: Mapping[str, str], card_ordinal: int, side: Side
) -> str:
    """Return a template with its fields filled in; raises _UnsupportedTemplateError."""
    if (
        template is None
        or len(template) > LONGEST_FACE
        or template.count("{{") > _MAX_TEMPLATE_TOKENS
    ):
        raise _UnsupportedTemplateError
    out: list[str] = []
    stack: list[tuple[str, bool]] = []  # Fields whose conditions are open, and whether met.
    length = position = 0
    for token in _TEMPLATE_TOKEN.finditer(template):
        is_shown = all(is_met for _, is_met in stack)
        text = template[position : token.start()] if is_shown else ""
        position = token.end()
        name = token[1].strip()
        if name[:1] in {"#", "^", "/", "=", "!"}:
            _enter_or_leave_condition(name, stack, field_values, card_ordinal)
        elif is_shown:
            text += _evaluate_field_reference(name, field_values, card_ordinal, side)
        length += len(text)
        if length > LONGEST_FACE:
            raise _UnsupportedTemplateError
        out.append(text)
    if stack:
        raise _UnsupportedTemplateError
    return "".join(out) + template[position:]


def _enter_or_leave_condition(
    tag: str,
    open_conditions: list[tuple[str, bool]],
    field_values: Mapping[str, str],
    card_ordinal: int,
) -> None:
    """Push or pop a condition; comments are ignored."""
    sign, field = tag[0], tag[1:].strip()
    if sign == "/":
        if not open_conditions or open_conditions.pop()[0] != field:
            raise _UnsupportedTemplateError
    elif sign in "#^":
        if len(open_conditions) > 20:
            raise _UnsupportedTemplateError
        is_filled = _is_filled(field, field_values, card_ordinal)
        open_conditions.append((field, is_filled == (sign == "#")))
    elif sign == "=":
        raise _UnsupportedTemplateError


def _is_filled(field: str, field_values: Mapping[str, str], card_ordinal: int) -> bool:
    if field in field_values:
        return _EMPTY_HTML.match(field_values[field]) is None
    if re.fullmatch(r"c\d{1,4}", field):
        return int(field[1:]) == card_ordinal + 1
    if field in _SPECIAL_FIELD_NAMES:
        return False
    raise _UnsupportedTemplateError


def _evaluate_field_reference(
    name: str, field_values: Mapping[str, str], card_ordinal: int, side: Side
) -> str:
    *filters, field = (piece.strip() for piece in name.split(":"))
    if field in _SPECIAL_FIELD_NAMES or any(f.startswith("tts") for f in filters):
        return ""
    if field not in field_values:
        raise _UnsupportedTemplateError
    value = field_values[field]
    for filter_name in reversed(filters):
        value = _apply_field_filter(filter_name, value, card_ordinal + 1, side)
    return value


def _apply_field_filter(filter_name: str, value: str, cloze_number: int, side: Side) -> str:
    if filter_name == "text":
        return _HTML_TAG.sub("", value)
    if filter_name in {"cloze", "cloze-only"}:
        return render_cloze(value, cloze_number, side, only_cloze=filter_name == "cloze-only")
    if filter_name in {"kanji", "kana"}:
        return _FURIGANA_READING.sub(r"\1" if filter_name == "kanji" else r"\2", value)
    if filter_name in {"type", "hint", "nc"} and side == "front":
        return ""  # the learner types it or opens it, so it is hidden at first
    return value
