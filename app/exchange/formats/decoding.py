"""Bytes of unknown origin as text or as XML, or a sentence why not."""

import codecs
import dataclasses
import re
from collections.abc import Sequence
from xml.etree import ElementTree as ET
from xml.parsers import expat

from app.exchange.items import UnusableFileError

MOST_BYTES = 32_000_000
_MOST_DEPTH = 100
_BOMS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_DECLARED = re.compile(rb"^<\?xml[^>]*?encoding\s*=\s*[\"']([\w.-]{1,40})[\"']")
_DECLARATION = re.compile(r"^\s*<\?xml[^>]*\?>")
_KNOWN = {
    "utf-8": "utf-8",
    "utf8": "utf-8",
    "us-ascii": "ascii",
    "ascii": "ascii",
    "iso-8859-1": "latin-1",
    "iso-8859-15": "iso-8859-15",
    "windows-1252": "cp1252",
}


def decode(data: bytes) -> str:
    """UTF-8, or UTF-16 and UTF-32 with a byte order mark; raises Unusable."""
    return _decoded(data, "utf-8")


# What Windows-1252 writes into no word: it shows the bytes of another encoding.
_ODD_WORD = re.compile(
    r"[^\W\d_][\u00a1-\u00a9\u00ab-\u00af\u00b4\u00b6\u00b8-\u00bf\u2020-\u2122](?=[^\W\d_])"
    r"|[a-z][\u00c0-\u00d6\u00d8-\u00de\u0160\u017d\u0178\u00b9]|[\u00b3\u00b9][^\W\d_]"
    r"|[\u00c0-\u00ff]{3}|\u201a[\u00a1-\u00ff]"
)


def decode_or_guess(data: bytes) -> tuple[str, str]:
    """The same, or Windows-1252 as Excel writes it, with a note that it was guessed.

    Raises Unusable where the letters then make no words.
    """
    try:
        return decode(data), ""
    except UnusableFileError as error:
        try:
            text = _decoded(data, "cp1252")
        except UnusableFileError:
            raise error from None
    if _ODD_WORD.search(text):
        raise UnusableFileError("The file is not UTF-8 text; save it with that encoding.")
    return text, (
        "The file is not UTF-8 and was read as Windows-1252: look at its accents and "
        "signs, or save it as “CSV UTF-8”."
    )


def _decoded(data: bytes, encoding: str) -> str:
    if len(data) > MOST_BYTES:
        raise UnusableFileError(f"The file is larger than {MOST_BYTES // 1_000_000} MB.")
    for mark, name in _BOMS:
        if data.startswith(mark):
            data, encoding = data[len(mark) :], name
            break
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError:
        raise UnusableFileError(
            f"The file is not {encoding.upper()} text; save it with that encoding."
        ) from None
    if not text.strip():
        raise UnusableFileError("The file is empty.")
    if "\0" in text:
        raise UnusableFileError("The file holds zero bytes, so it is no text.")
    return text.replace("\r\n", "\n").replace("\r", "\n")


@dataclasses.dataclass(frozen=True, slots=True)
class XmlDocument:
    """An XML document; `lines` are those of the elements asked for, in order."""

    root: ET.Element
    lines: tuple[int, ...]


def read_xml(data: bytes, *elements: str) -> XmlDocument:
    """An XML document without a document type, with the lines of some elements.

    Raises Unusable. A document type could define entities that grow without end or
    name other files, so a document that has one is refused before it is read.
    """
    declared = _DECLARED.match(data)
    name = declared[1].decode().lower() if declared else "utf-8"
    if name not in _KNOWN and not name.startswith(("utf-16", "utf-32")):
        raise UnusableFileError(f"The encoding “{name}” is not known; save the file as UTF-8.")
    text = _decoded(data, _KNOWN.get(name, "utf-8"))
    plain = _DECLARATION.sub("", text, count=1).encode("utf-8", errors="replace")
    lines = _inspect(plain, elements)
    root = ET.fromstring(plain)  # noqa: S314 - inspected: no document type, no entity
    return XmlDocument(root, tuple(lines))


def _inspect(plain: bytes, elements: Sequence[str]) -> list[int]:
    """Refuse a document type, deep nesting, and what is not well-formed."""
    depth = 0
    lines: list[int] = []

    def refuse(*_: object) -> None:
        raise UnusableFileError("The file has a document type (DTD); remove it and try again.")

    def down(name: str, _attributes: object) -> None:
        nonlocal depth
        depth += 1
        if name.rpartition(":")[2] in elements:
            lines.append(parser.CurrentLineNumber)
        if depth > _MOST_DEPTH:
            raise UnusableFileError(f"The file is nested deeper than {_MOST_DEPTH} elements.")

    def up(*_: object) -> None:
        nonlocal depth
        depth -= 1

    parser = expat.ParserCreate("utf-8")
    parser.StartDoctypeDeclHandler = refuse
    parser.EntityDeclHandler = refuse
    parser.StartElementHandler = down
    parser.EndElementHandler = up
    try:
        parser.Parse(plain, True)
    except expat.ExpatError as error:
        what = expat.ErrorString(error.code)
        raise UnusableFileError(f"The file is no XML: {what} in line {error.lineno}.") from None
    return lines
