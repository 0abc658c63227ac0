"""Neutral items written as a QTI package."""

import io
import re
import zipfile
from collections.abc import Callable
from xml.etree import ElementTree as ET

from app.exchange.formats.carrying import convert_items
from app.exchange.formats.qti.arranging import cloze, match, order
from app.exchange.formats.qti.making import NAMESPACES, QtiBuilder
from app.exchange.formats.qti.scoring import choices, hinted, typed
from app.exchange.formats.tagged import lost_column_titles, tags_of
from app.exchange.items import ExportResult, Item, ItemSkippedError, label
from app.exchange.markup.pictures import content_of
from app.exchange.markup.xml import add, document

_MANIFESTS = {
    "2.1": "http://www.imsglobal.org/xsd/imscp_v1p1",
    "3.0": "http://www.imsglobal.org/xsd/qti/qtiv3p0/imscp_v1p1",
}
_LONGEST_LABEL = 256
_LANGUAGE = "{http://www.w3.org/XML/1998/namespace}lang"
_WRITERS: dict[str, Callable[[QtiBuilder, ET.Element, Item], None]] = {
    "single": choices,
    "multiple": choices,
    "true-false": choices,
    "numeric": typed,
    "short": typed,
    "order": order,
    "match": match,
    "cloze": cloze,
}


def write_qti(items: tuple[Item, ...], version: str, language: str = "") -> ExportResult:
    """A package of QTI 2.1 or 3.0 with one file for each item that fits.

    Each says the `language` of its words where it is known.
    """
    files: dict[str, bytes] = {}
    beside: dict[str, dict[str, bytes]] = {}

    def put(item: Item) -> None:
        root = _item(QtiBuilder(version), item)
        if language:
            root.set(_LANGUAGE, language)
        name = f"items/{_identifier(item, files)}.xml"
        beside[name] = _with_files(root, item)
        files[name] = document(root, indent=False)

    put_in, refused, lost = convert_items(items, put, _losses)
    return ExportResult(_packed(files, beside, version), len(put_in), refused, lost)


def _with_files(root: ET.Element, item: Item) -> dict[str, bytes]:
    """Have an item show files of the package; those that it shows, by their names."""
    held = {picture.name: content_of(picture) for picture in item.pictures}
    shown: dict[str, bytes] = {}
    for node in root.iter("img"):
        name = node.get("src", "")
        if name in held:
            file = f"images/{name.replace('/', '-')}"
            node.set("src", f"../{file}")
            shown[file] = held[name]
    return shown


def _item(make: QtiBuilder, item: Item) -> ET.Element:
    write = _WRITERS.get(item.kind)
    if write is None:
        raise ItemSkippedError(f"QTI has no question of the type {item.kind}")
    root = make.root(
        "assessment_item",
        identifier=_identifier(item, ()),
        title=item.name or label(item),
        adaptive="false",
        time_dependent="false",
    )
    root.set("xmlns", NAMESPACES[make.version])
    told = "; ".join(tags_of(item))
    if told and len(told) <= _LONGEST_LABEL:
        root.set("label", told)
    write(make, root, item)
    body = root.find(make.name("item_body"))
    if body is not None:
        hinted(make, body, item)
    if item.mistake:
        make.say(root, "MISTAKEN", "MISTAKE", item.mistake)
    if item.explanation:
        make.say(root, "EXPLAINED", "EXPLANATION", item.explanation)
    return root


def _identifier(item: Item, taken: dict[str, bytes] | tuple[()]) -> str:
    """An XML name from the item's, used once."""
    name = re.sub(r"[^A-Za-z0-9_.-]+", "-", item.name or "item").strip("-.") or "item"
    name = name if re.match(r"[A-Za-z_]", name) else f"q-{name}"
    found, count = name, 1
    while f"items/{found}.xml" in taken:
        count += 1
        found = f"{name}-{count}"
    return found


def _packed(files: dict[str, bytes], beside: dict[str, dict[str, bytes]], version: str) -> bytes:
    """The package: its items, and the pictures `beside` each."""
    pictures = {name: c for shown in beside.values() for name, c in shown.items()}
    needed = {name: list(beside[name]) for name in files}
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("imsmanifest.xml", _manifest(needed, version))
        for name, content in {**files, **pictures}.items():
            archive.writestr(name, content)
    return out.getvalue()


def _manifest(needed: dict[str, list[str]], version: str) -> bytes:
    root = ET.Element("manifest", identifier="headroom", xmlns=_MANIFESTS[version])
    metadata = add(root, "metadata")
    older = version == "2.1"
    add(metadata, "schema", "QTIv2.1 Package" if older else "QTI Package")
    add(metadata, "schemaversion", "1.0.0" if older else "3.0.0")
    add(root, "organizations")
    resources = add(root, "resources")
    kind = f"imsqti_item_xmlv{version.replace('.', 'p')}"
    for number, (name, pictures) in enumerate(needed.items(), 1):
        node = add(resources, "resource", identifier=f"r{number}", type=kind, href=name)
        for file in (name, *pictures):
            add(node, "file", href=file)
    return document(root)


def _losses(item: Item) -> list[str]:
    found = []
    if item.hints:
        found.append("hints are shown to tutors only")
    if len("; ".join(tags_of(item))) > _LONGEST_LABEL:
        found.append("its tags are too long for QTI")
    return found + lost_column_titles(item)
