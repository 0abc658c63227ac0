"""Decode bytes, read and write XML, and read zip files safely."""

import codecs
import contextlib
import dataclasses
import io
import lzma
import re
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath
from typing import IO, NamedTuple
from xml.etree import ElementTree as ET
from xml.parsers import expat

from app.import_export import UnusableFileError

_ILLEGAL_XML_CHARACTER = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")


def add_child(parent: ET.Element, tag: str, text: str = "", **attributes: str) -> ET.Element:
    """Append a child element; characters that XML cannot hold are left out."""
    node = ET.SubElement(
        parent, tag, {k: remove_illegal_characters(v) for k, v in attributes.items()}
    )
    if text:
        node.text = remove_illegal_characters(text)
    return node


def remove_illegal_characters(text: str) -> str:
    return _ILLEGAL_XML_CHARACTER.sub("", text)


def serialize_document(root: ET.Element, *, indent: bool = True) -> bytes:
    """Return the bytes of a whole document.

    Indented if no element mixes text and elements; otherwise the white space would become part of
    the text.
    """
    if indent:
        ET.indent(root)
    body: bytes = ET.tostring(root, encoding="utf-8", xml_declaration=True)
    return body + b"\n"


MAX_XML_BYTES = 32_000_000
_MOST_DEPTH = 100
_ENCODING_BY_BOM = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_DECLARED_ENCODING = re.compile(rb"^<\?xml[^>]*?encoding\s*=\s*[\"']([\w.-]{1,40})[\"']")
_XML_DECLARATION = re.compile(r"^\s*<\?xml[^>]*\?>")
_CODEC_BY_ENCODING = {
    "utf-8": "utf-8",
    "utf8": "utf-8",
    "us-ascii": "ascii",
    "ascii": "ascii",
    "iso-8859-1": "latin-1",
    "iso-8859-15": "iso-8859-15",
    "windows-1252": "cp1252",
}


def decode_unicode(data: bytes) -> str:
    """Decode UTF-8, or UTF-16 and UTF-32 with a byte order mark; raises UnusableFileError."""
    return _decode_and_validate_text(data, "utf-8")


# Character sequences no word has in Windows-1252: they show that the encoding is another one.
_ODD_WORD = re.compile(
    r"[^\W\d_][\u00a1-\u00a9\u00ab-\u00af\u00b4\u00b6\u00b8-\u00bf\u2020-\u2122](?=[^\W\d_])"
    r"|[a-z][\u00c0-\u00d6\u00d8-\u00de\u0160\u017d\u0178\u00b9]|[\u00b3\u00b9][^\W\d_]"
    r"|[\u00c0-\u00ff]{3}|\u201a[\u00a1-\u00ff]"
)


def decode_unicode_or_windows_1252(data: bytes) -> tuple[str, str]:
    """Return Unicode and "", or Windows-1252 as Excel writes it with a note about that guess.

    Raises UnusableFileError if the letters then form no words.
    """
    try:
        return decode_unicode(data), ""
    except UnusableFileError as error:
        try:
            text = _decode_and_validate_text(data, "cp1252")
        except UnusableFileError:
            raise error from None
    if _ODD_WORD.search(text):
        raise UnusableFileError("The file is not UTF-8 text; save it with that encoding.")
    note = (
        "The file is not UTF-8 and was read as Windows-1252: look at its accents and "
        "signs, or save it as “CSV UTF-8”."
    )
    return text, note


def _decode_and_validate_text(data: bytes, encoding: str) -> str:
    if len(data) > MAX_XML_BYTES:
        raise UnusableFileError(f"The file is larger than {MAX_XML_BYTES // 1_000_000} MB.")
    for mark, name in _ENCODING_BY_BOM:
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
        raise UnusableFileError("The file contains zero bytes, so it is not text.")
    return text.replace("\r\n", "\n").replace("\r", "\n")


@dataclasses.dataclass(frozen=True, slots=True)
class XmlDocument:
    """An XML document; `located_element_lines` are the line numbers of the requested elements, in order."""

    root: ET.Element
    located_element_lines: tuple[int, ...]


def parse_xml_and_locate_elements(data: bytes, *located_elements: str) -> XmlDocument:
    """Parse an XML document without a document type, with the lines of some elements.

    Raises UnusableFileError. A document type could define entities that grow without end or name
    other files, so a document that has one is refused before it is parsed.
    """
    declared = _DECLARED_ENCODING.match(data)
    name = declared[1].decode().lower() if declared else "utf-8"
    if name not in _CODEC_BY_ENCODING and not name.startswith(("utf-16", "utf-32")):
        raise UnusableFileError(f"The encoding “{name}” is not known; save the file as UTF-8.")
    text = _decode_and_validate_text(data, _CODEC_BY_ENCODING.get(name, "utf-8"))
    plain = _XML_DECLARATION.sub("", text, count=1).encode("utf-8", errors="replace")
    lines = _check_xml_and_find_lines(plain, located_elements)
    root = ET.fromstring(plain)  # noqa: S314 - inspected: no document type, no entity
    return XmlDocument(root, tuple(lines))


def _check_xml_and_find_lines(xml_bytes: bytes, located_elements: Sequence[str]) -> list[int]:
    """Refuse a document type, deep nesting, and malformed XML."""
    depth = 0
    lines: list[int] = []

    def refuse(*_: object) -> None:
        raise UnusableFileError("The file has a document type (DTD); remove it and try again.")

    def down(name: str, _attributes: object) -> None:
        nonlocal depth
        depth += 1
        if name.rpartition(":")[2] in located_elements:
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
        parser.Parse(xml_bytes, True)
    except expat.ExpatError as error:
        reason = expat.ErrorString(error.code)
        raise UnusableFileError(f"The file is not XML: {reason} in line {error.lineno}.") from None
    return lines


MAX_ARCHIVE_FILES = 5_000
MAX_ARCHIVE_BYTES = 64_000_000
_MOST_RATIO = 200
_SMALL_ARCHIVE_BYTES = 1_000_000  # below this size a high compression ratio does no harm
# All that zipfile and its decompressors raise for damaged data; bz2 raises an OSError without
# errno.
_BROKEN_ARCHIVE_ERRORS = (
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    EOFError,
    ValueError,
    OSError,
)


@contextlib.contextmanager
def open_checked_archive(file: IO[bytes], error_prefix: str) -> Iterator[zipfile.ZipFile]:
    """Open and inspect the archive in `file`; raises UnusableFileError starting with `error_prefix`.

    The same is raised for damage found while its files are read.
    """
    try:
        with zipfile.ZipFile(file) as archive:
            refuse_unsafe_archive_entries(archive.infolist())
            yield archive
    except UnusableFileError:
        raise
    except NotImplementedError:
        why = "the archive is packed in a way that is not known here"
        raise UnusableFileError(f"{error_prefix}: {why}.") from None
    except _BROKEN_ARCHIVE_ERRORS as error:
        if isinstance(error, OSError) and error.errno is not None:  # an error of the disk
            raise
        raise UnusableFileError(f"{error_prefix}: {_describe_broken_archive(file)}.") from None


def _describe_broken_archive(file: IO[bytes]) -> str:
    file.seek(0)
    signature = file.read(2)
    if not signature:
        return "the file is empty"
    if signature != b"PK":
        return "the file is not a zip archive"
    return "the archive is damaged or cut off"


class ArchiveFile(NamedTuple):
    path: str
    content: bytes


def read_archive_files(data: bytes, name_suffix: str) -> Iterator[ArchiveFile]:
    """Yield the files of an archive with this name ending, in order; raises UnusableFileError.

    The whole archive is refused if a name leaves its folder, if it has too many files, or if it
    would expand too much. Nothing is written to disk.
    """
    with open_checked_archive(io.BytesIO(data), "The archive cannot be read") as archive:
        for entry in archive.infolist():
            if entry.filename.lower().endswith(name_suffix) and not entry.is_dir():
                yield ArchiveFile(entry.filename, _read_entry(archive, entry))


def refuse_unsafe_archive_entries(entries: list[zipfile.ZipInfo]) -> None:
    """Raise UnusableFileError for an archive that leaves its folder or would expand too much."""
    if len(entries) > MAX_ARCHIVE_FILES:
        raise UnusableFileError(f"The archive has more than {MAX_ARCHIVE_FILES:,} files.")
    total = sum(e.file_size for e in entries)
    packed = sum(e.compress_size for e in entries) or 1
    if total > MAX_ARCHIVE_BYTES or (total > _SMALL_ARCHIVE_BYTES and total / packed > _MOST_RATIO):
        raise UnusableFileError(
            "The archive would unpack to far more than its size; it is refused."
        )
    for entry in entries:
        name = entry.filename
        path = PurePosixPath(name)
        outside = path.is_absolute() or ".." in path.parts
        if outside or "\\" in name or ":" in name or "\0" in name:
            raise UnusableFileError(f"The archive names a file outside of it: “{name[:60]}”.")
        if entry.flag_bits & 1:
            raise UnusableFileError("The archive is encrypted; unpack it first.")


def _read_entry(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> bytes:
    """Return a file, read no further than its stated size."""
    with archive.open(entry) as stream:
        content = stream.read(entry.file_size + 1)
    if len(content) > entry.file_size:
        raise UnusableFileError(f"The archive states a wrong size of “{entry.filename[:60]}”.")
    return content
