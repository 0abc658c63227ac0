"""Element names of QTI 2 and 3, and building XML elements."""

import dataclasses
import html
import re
from collections.abc import Callable, Iterator
from xml.etree import ElementTree as ET

from app.import_export.items import BLANK_CHARACTER, ItemSkippedError
from app.import_export.markdown_to_html import convert_markdown_to_html_with_pictures
from app.import_export.xml_files import remove_illegal_characters
from app.markup.mathml import MathError, latex_to_mathml

_CAMEL_CASE_BOUNDARY = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_VOID_TAGS = frozenset({"br", "hr", "img"})
_ELEMENTS_NOT_SHOWN = frozenset(
    {"feedback-inline", "feedback-block", "rubric-block", "stylesheet", "catalog-info"}
)
# Attributes that define how an element is shown, or whether it is visible.
_KEPT_ATTRIBUTES = (
    "alt bgcolor class colspan color hidden href id open popover reversed rowspan src start style"
    " type value"
)
ReplaceElement = Callable[[ET.Element], str | None]


def normalize_tag_to_qti3_name(node: ET.Element) -> str:
    """Return the QTI 3 name of an element, without prefix and namespace."""
    local = str(node.tag).rpartition("}")[2]
    return _CAMEL_CASE_BOUNDARY.sub("-", local).lower().removeprefix("qti-")


def _to_camel_case(name: str) -> str:
    first, *others = name.split("-")
    return first + "".join(word.capitalize() for word in others)


def get_attribute_by_qti3_name(node: ET.Element, name: str) -> str:
    """Return an attribute by its QTI 3 name, in any spelling."""
    return (node.get(name) or node.get(_to_camel_case(name)) or "").strip()


def find_elements_below(node: ET.Element, *names: str) -> Iterator[ET.Element]:
    """Return all elements below `node` with one of the names, in order."""
    return (n for n in node.iter() if n is not node and normalize_tag_to_qti3_name(n) in names)


def find_first_element_below(node: ET.Element, *names: str) -> ET.Element | None:
    """Return the first element below `node` with one of the names, or None."""
    return next(find_elements_below(node, *names), None)


def is_hint_element(node: ET.Element) -> bool:
    """Return whether a note for tutors contains one of our hints."""
    return "hint" in get_attribute_by_qti3_name(node, "class").split()


def extract_plain_text_of_element(node: ET.Element | None) -> str:
    return "" if node is None else " ".join("".join(node.itertext()).split())


def render_inner_html(node: ET.Element, replace_element: ReplaceElement) -> str:
    """Return the content of an element as HTML; `replace_element` may supply HTML for an element."""
    out = html.escape(node.text or "", quote=False)
    for child in node:
        out += _render_element_html(child, replace_element) + html.escape(
            child.tail or "", quote=False
        )
    return out


def _render_element_html(node: ET.Element, replace_element: ReplaceElement) -> str:
    name = normalize_tag_to_qti3_name(node)
    replacement = replace_element(node)
    if replacement is not None:
        return replacement
    if name == "math":
        return _render_formula_html(node)
    if name in {"printed-variable", "include"}:
        raise ItemSkippedError("parts of its text are put in by a program")
    if name in _ELEMENTS_NOT_SHOWN:
        return ""
    inside = render_inner_html(node, replace_element)
    attributes = {k: node.get(k) for k in _KEPT_ATTRIBUTES.split()}
    attribute_text = "".join(
        f' {k}="{html.escape(v)}"' for k, v in attributes.items() if v is not None
    )
    return f"<{name}{attribute_text}>" + ("" if name in _VOID_TAGS else f"{inside}</{name}>")


def _render_formula_html(node: ET.Element) -> str:
    """Return a formula as the TeX in its annotation."""
    for part in find_elements_below(node, "annotation"):
        if part.get("encoding") == "application/x-tex" and part.text:
            left, right = ("\\[", "\\]") if node.get("display") == "block" else ("\\(", "\\)")
            return html.escape(f"{left}{part.text}{right}", quote=False)
    raise ItemSkippedError("its formulas are in MathML without TeX")


NAMESPACES = {
    "2.1": "http://www.imsglobal.org/xsd/imsqti_v2p1",
    "3.0": "http://www.imsglobal.org/xsd/imsqtiasi_v3p0",
}
GAP_TAG = "gap"  # placeholder in a text for a text entry
MATHML = "http://www.w3.org/1998/Math/MathML"
_TEX_FORMULA = re.compile(r"\\\((?P<inline>.+?)\\\)|\\\[(?P<block>.+?)\\\]", re.DOTALL)
_CODE_ELEMENT = re.compile(r"(<code.*?</code>)", re.DOTALL)
_INLINE_TAGS = "a b br code em i img kbd span strong sub sup"
_INLINE_ELEMENTS = {*_INLINE_TAGS.split(), GAP_TAG, f"{{{MATHML}}}math"}


@dataclasses.dataclass(frozen=True, slots=True)
class QtiElementBuilder:
    """Builds elements of one version; names are those of QTI 3 with underscores."""

    qti_version: str

    def create_root(self, name: str, **attributes: str) -> ET.Element:
        node = ET.Element(self.spell_name_for_version(name))
        self._set_attributes(node, attributes)
        return node

    def add_child_element(
        self, parent: ET.Element, name: str, text: str = "", **attributes: str
    ) -> ET.Element:
        node = ET.SubElement(parent, self.spell_name_for_version(name))
        self._set_attributes(node, attributes)
        node.text = remove_illegal_characters(text) or None
        return node

    def add_markdown(self, parent: ET.Element, markdown: str, *, as_paragraphs: bool) -> None:
        element = parse_rendered_html_with_mathml(convert_markdown_to_html_with_pictures(markdown))
        if as_paragraphs and _has_inline_content(element):
            paragraph = ET.SubElement(parent, "p")
            paragraph.text, paragraph[:] = element.text, list(element)
            return
        last_child = parent[-1] if len(parent) else None
        if last_child is None:
            parent.text = (parent.text or "") + (element.text or "")
        else:
            last_child.tail = (last_child.tail or "") + (element.text or "")
        parent.extend(list(element))

    def add_inline_feedback(
        self, parent: ET.Element, markdown: str, outcome: str, outcome_value: str
    ) -> None:
        """Add feedback in the body, shown when the outcome has the value."""
        is_inline = _has_inline_content(
            parse_rendered_html_with_mathml(convert_markdown_to_html_with_pictures(markdown))
        )
        name = "feedback_inline" if is_inline else "feedback_block"
        node = self._add_element_shown_for_outcome(parent, name, outcome, outcome_value)
        if is_inline:
            self.add_markdown(node, markdown, as_paragraphs=False)
        else:
            self.add_block_content(node, markdown)

    def add_modal_feedback(
        self, root: ET.Element, markdown: str, outcome: str, outcome_value: str
    ) -> None:
        """Add feedback on the whole item, shown when the outcome has the value."""
        node = self._add_element_shown_for_outcome(root, "modal_feedback", outcome, outcome_value)
        self.add_block_content(node, markdown)

    def _add_element_shown_for_outcome(
        self, parent: ET.Element, name: str, outcome: str, outcome_value: str
    ) -> ET.Element:
        condition = {"outcome_identifier": outcome, "identifier": outcome_value}
        return self.add_child_element(parent, name, **condition, show_hide="show")

    def add_block_content(self, node: ET.Element, markdown: str) -> None:
        """Put paragraphs into an element, in the content body that QTI 3.0 has for them."""
        if self.qti_version == "3.0":
            node = self.add_child_element(node, "content_body")
        self.add_markdown(node, markdown, as_paragraphs=True)

    def rename_element_and_set_attributes(
        self, node: ET.Element, name: str, **attributes: str
    ) -> None:
        node.tag = self.spell_name_for_version(name)
        self._set_attributes(node, attributes)

    def spell_name_for_version(self, name: str) -> str:
        prefix = "qti-" if self.qti_version == "3.0" else ""
        return prefix + self._spell_attribute(name)

    def _spell_attribute(self, name: str) -> str:
        hyphenated = name.replace("_", "-")
        return hyphenated if self.qti_version == "3.0" else _to_camel_case(hyphenated)

    def _set_attributes(self, node: ET.Element, attributes: dict[str, str]) -> None:
        for name, value in attributes.items():
            node.set(self._spell_attribute(name), remove_illegal_characters(value))


def _has_inline_content(element: ET.Element) -> bool:
    return bool((element.text or "").strip()) or any(n.tag in _INLINE_ELEMENTS for n in element)


def parse_rendered_html_with_mathml(text: str) -> ET.Element:
    """Parse HTML of our own into one element; formulas become MathML."""
    parts = _CODE_ELEMENT.split(text)
    parts[::2] = [_TEX_FORMULA.sub(_formula_to_mathml, part) for part in parts[::2]]
    document = remove_illegal_characters(f"<div>{''.join(parts)}</div>").replace("<s>", "<span>")
    document = document.replace("</s>", "</span>").replace(BLANK_CHARACTER, f"<{GAP_TAG}/>")
    return ET.fromstring(document)  # noqa: S314 - our own output, without a DTD


def _formula_to_mathml(match: re.Match[str]) -> str:
    """Return MathML with its TeX as an annotation."""
    tex = html.unescape(match["inline"] or match["block"])
    block = match["inline"] is None
    try:
        math = ET.fromstring(latex_to_mathml(tex, block))  # noqa: S314 - our own output
    except MathError:
        return match[0]
    mathml = "".join(ET.tostring(n, encoding="unicode") for n in math)
    annotation = f'<annotation encoding="application/x-tex">{html.escape(tex)}</annotation>'
    display = ' display="block"' if block else ""
    row = f"<semantics><mrow>{mathml}</mrow>{annotation}</semantics>"
    return f'<math xmlns="{MATHML}"{display}>{row}</math>'
