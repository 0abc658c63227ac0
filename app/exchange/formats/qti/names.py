"""The words of QTI 2 and 3 as one: `choiceInteraction` is `choice-interaction`."""

import html
import re
from collections.abc import Callable, Iterator
from xml.etree import ElementTree as ET

from app.exchange.items import ItemSkippedError

_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_VOID = frozenset({"br", "hr", "img"})
_UNSEEN = frozenset(
    {"feedback-inline", "feedback-block", "rubric-block", "stylesheet", "catalog-info"}
)
# What tells how an element is shown, or whether it is seen at all.
_SHOWN = (
    *("alt", "bgcolor", "class", "colspan", "color", "hidden", "href", "id", "open"),
    "popover",
    *("reversed", "rowspan", "src", "start", "style", "type", "value"),
)
Replace = Callable[[ET.Element], str | None]


def name_of(node: ET.Element) -> str:
    """The name of an element in QTI 3, without its prefix and its namespace."""
    local = str(node.tag).rpartition("}")[2]
    return _CAMEL.sub("-", local).lower().removeprefix("qti-")


def given(node: ET.Element, name: str) -> str:
    """An attribute by its QTI 3 name, however it is spelled."""
    first, *rest = name.split("-")
    camel = first + "".join(word.capitalize() for word in rest)
    return (node.get(name) or node.get(camel) or "").strip()


def within(node: ET.Element, *names: str) -> Iterator[ET.Element]:
    """All elements below `node` with one of the names, in order."""
    return (n for n in node.iter() if n is not node and name_of(n) in names)


def first(node: ET.Element, *names: str) -> ET.Element | None:
    """The first of them, or None."""
    return next(within(node, *names), None)


def is_hint(node: ET.Element) -> bool:
    """Whether a note for tutors is one of our hints."""
    return "hint" in given(node, "class").split()


def words(node: ET.Element | None) -> str:
    """The bare text of an element."""
    return "" if node is None else " ".join("".join(node.itertext()).split())


def to_fragment(node: ET.Element, replace: Replace) -> str:
    """The inside of an element as HTML; `replace` may answer for an element itself."""
    out = html.escape(node.text or "", quote=False)
    for child in node:
        out += _element(child, replace) + html.escape(child.tail or "", quote=False)
    return out


def _element(node: ET.Element, replace: Replace) -> str:
    name = name_of(node)
    said = replace(node)
    if said is not None:
        return said
    if name == "math":
        return _formula(node)
    if name in {"printed-variable", "include"}:
        raise ItemSkippedError("parts of its text are put in by a program")
    if name in _UNSEEN:
        return ""
    inside = to_fragment(node, replace)
    shown = {k: node.get(k) for k in _SHOWN}
    marks = "".join(f' {k}="{html.escape(v)}"' for k, v in shown.items() if v is not None)
    return f"<{name}{marks}>" + ("" if name in _VOID else f"{inside}</{name}>")


def _formula(node: ET.Element) -> str:
    """A formula by the TeX it carries with it."""
    for part in within(node, "annotation"):
        if part.get("encoding") == "application/x-tex" and part.text:
            left, right = ("\\[", "\\]") if node.get("display") == "block" else ("\\(", "\\)")
            return html.escape(f"{left}{part.text}{right}", quote=False)
    raise ItemSkippedError("its formulas are in MathML without TeX")
