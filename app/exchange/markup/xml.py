"""XML being written: elements added, characters kept legal."""

import re
from xml.etree import ElementTree as ET

_ILLEGAL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")


def add(parent: ET.Element, tag: str, text: str = "", **attributes: str) -> ET.Element:
    """A new last child; characters that XML cannot hold are left out."""
    node = ET.SubElement(parent, tag, {k: legal(v) for k, v in attributes.items()})
    if text:
        node.text = legal(text)
    return node


def legal(text: str) -> str:
    """A text without the characters that no XML file may hold."""
    return _ILLEGAL.sub("", text)


def document(root: ET.Element, *, indent: bool = True) -> bytes:
    """The bytes of a whole document.

    Indented where elements hold no words beside other elements; elsewhere the white
    space would become a part of the text.
    """
    if indent:
        ET.indent(root)
    body: bytes = ET.tostring(root, encoding="utf-8", xml_declaration=True)
    return body + b"\n"
