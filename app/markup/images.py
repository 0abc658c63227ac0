"""Images: their type and size from the first bytes, and SVG figures made safe.

A figure is written from an allowlist, so nothing else reaches a page. Figures have no colors of
their own: classes say what a shape means, and the page's CSS colors it.
"""

import dataclasses
import re
import struct
from collections.abc import Sequence
from html import escape
from typing import NamedTuple
from xml.parsers import expat

from app.markup.model import ImageBlock, RegionBox, SvgFigure, SvgProblem
from app.markup.text import SLUG_LIKE, find_closest_word_or_empty, slugify

_FORMAT_BY_FILE_START = (
    (re.compile(rb"\x89PNG\r\n\x1a\n"), "png"),
    (re.compile(rb"\xff\xd8\xff"), "jpg"),
    (re.compile(rb"GIF8[79]a"), "gif"),
    (re.compile(rb"RIFF....WEBP", re.DOTALL), "webp"),
    (re.compile(rb"....ftypavi[fs]", re.DOTALL), "avif"),
    # A text file may begin with other text, such as a comment.
    (re.compile(rb"\s*<(?:\?xml|!--|svg)[^\0]*?<?svg", re.DOTALL), "svg"),
)


def detect_image_format(content: bytes) -> str:
    r"""Return png, jpg, gif, webp, avif or svg; "" for any other content.

    Twelve bytes are enough for all but SVG.

    >>> detect_image_format(b"GIF89a and more"), detect_image_format(b"<svg></svg>"), detect_image_format(b"words")
    ('gif', 'svg', '')
    """
    return next((kind for begin, kind in _FORMAT_BY_FILE_START if begin.match(content)), "")


IMAGE_HEADER_BYTES = 1 << 20
"""The size is within this many bytes, even after a long color profile."""

Size = tuple[int, int]


def read_displayed_raster_size(content: bytes) -> Size | None:
    r"""Return width and height in pixels as displayed; None if a PNG, GIF or JPEG file has no size.

    WebP and AVIF files aren't read.

    >>> read_displayed_raster_size(b"GIF89a\x20\x00\x10\x00"), read_displayed_raster_size(b"words")
    ((32, 16), None)
    """
    image_format = detect_image_format(content[:12])
    try:
        if image_format == "png":
            width, height = struct.unpack_from(">II", content, 16)
        elif image_format == "gif":
            width, height = struct.unpack_from("<HH", content, 6)
        elif image_format == "jpg":
            width, height = _read_jpeg_size(content)
        else:
            return None
    except struct.error:
        return None
    return (width, height) if width and height else None


def _read_jpeg_size(content: bytes) -> Size:
    """Return the size in the first frame, turned as the Exif data says; raises struct.error."""
    at, is_sideways = 2, False
    while True:
        marker, length = struct.unpack_from(">HH", content, at)
        data = content[at + 4 : at + 2 + length]
        if marker == 0xFFE1 and data.startswith(b"Exif\0\0"):
            is_sideways = _is_turned_sideways(data[6:])
        if marker in _JPEG_FRAME_MARKERS:
            height, width = struct.unpack_from(">HH", data, 1)
            return (height, width) if is_sideways else (width, height)
        at += 1 if marker == 0xFFFF else 2 + length  # a marker may be padded with 0xFF


_JPEG_FRAME_MARKERS = frozenset({*range(0xFFC0, 0xFFD0)} - {0xFFC4, 0xFFC8, 0xFFCC})


def _is_turned_sideways(exif: bytes) -> bool:
    order = "<" if exif.startswith(b"II") else ">"
    (first,) = struct.unpack_from(f"{order}I", exif, 4)
    (count,) = struct.unpack_from(f"{order}H", exif, first)
    tags = (struct.unpack_from(f"{order}HHIH", exif, first + 2 + 12 * n) for n in range(count))
    return any(tag == 0x0112 and 5 <= value <= 8 for tag, _, _, value in tags)


_MOST_SVG_BYTES = 20_000
SMALLEST_REGION = 24
"""Minimum width and height of a clickable region in SVG units, for touch screens."""
_MAX_ELEMENT_DEPTH = 12
_ALLOWED_ELEMENTS = frozenset({"svg", "g", "title", "desc", "rect", "path", "circle"}) | {
    "text",
    "tspan",
}
_TEXT_ELEMENTS = frozenset({"title", "desc", "text", "tspan"})
_NUMBER_ATTRIBUTES = frozenset(
    {"x", "y", "width", "height", "rx", "ry", "cx", "cy", "r", "dx", "dy"}
    | {"stroke-width", "font-size"}
)
_SHAPE_CLASSES = {"box", "nic", "store", "gpu", "switch", "soft-box", "frame", "top", "band"}
_SHAPE_CLASSES |= {"person", "bar", "bar2", "ghost", "kv-box", "free", "hit", "paper-box"}
_LINE_CLASSES = {"data", "control", "oob", "power", "air", "copy", "thin", "core", "water"}
_LINE_CLASSES |= {"head", "water-head", "open", "hot", "hot-line", "w", "gr", "o", "a", "k", "r"}
_TEXT_CLASSES = {"b", "on-ink", "on-hot", "on-dark", "on-bar", "on-bar2", "in-bar"}
_ALLOWED_CLASSES = frozenset(_SHAPE_CLASSES | _LINE_CLASSES | _TEXT_CLASSES)
_SVG_NUMBER = re.compile(r"^-?\d{1,5}(?:\.\d{1,4})?$")
_ALLOWED_VALUE_BY_ATTRIBUTE = {
    "d": re.compile(r"^[MmLlHhVvCcSsQqTtAaZz\d\s,.-]{1,4000}$"),
    "stroke-dasharray": re.compile(r"^[\d\s.,]{1,40}$"),
    "stroke-linecap": re.compile(r"^(?:round|butt|square)$"),
    "text-anchor": re.compile(r"^(?:start|middle|end)$"),
    "font-weight": re.compile(r"^(?:[4-7]00|bold)$"),
    "fill": re.compile(r"^(?:none|currentColor)$"),
    "stroke": re.compile(r"^(?:none|currentColor)$"),
    "id": re.compile(f"^{SLUG_LIKE}$"),
    "data-region": re.compile(f"^{SLUG_LIKE}$"),
}
_NAME_ATTRIBUTES = frozenset({"id", "data-region"})
_DEFAULT_TEXT_SIZE = 13.0  # Size of text without a font size, in SVG units.
_OF_LANGUAGE = (_ALLOWED_CLASSES | {"dia"}) - {"b", "w", "gr", "o", "a", "k", "r", "top", "data"}
_CLASS_ATTRIBUTE = re.compile(r"\sclass=[\"']([^\"'<>]{0,200})[\"']")
# Attributes of the root that the page writes itself.
_OF_ROOT = frozenset(
    {"viewBox", "class", "xmlns", "role", "fill", "stroke", "font-family"}
    | {"font-size", "width", "height", "aria-labelledby", "aria-describedby"}
)
_VIEW_BOX = re.compile(r"^0 0 (\d{2,4}(?:\.\d+)?) (\d{2,4}(?:\.\d+)?)$")


class _SvgError(Exception):
    """An SVG file contains something that is not allowed; includes how to fix it."""

    def __init__(self, why: str, remedy: str = "") -> None:
        super().__init__(why)
        self.reason = why
        self.remedy = remedy


def sanitize_svg(text: str) -> SvgFigure | SvgProblem:
    """Sanitize an SVG file; return the figure, or its first problem."""
    classes = {name for m in _CLASS_ATTRIBUTE.finditer(text) for name in m[1].split()}
    return dataclasses.replace(
        _parse_and_sanitize_svg(text), uses_diagram_classes=not _OF_LANGUAGE.isdisjoint(classes)
    )


def _parse_and_sanitize_svg(text: str) -> SvgFigure | SvgProblem:
    if len(text.encode()) > _MOST_SVG_BYTES:
        remedy = "Draw it with fewer points, or as two drawings."
        return SvgProblem(1, f"it is larger than {_MOST_SVG_BYTES // 1000} KB", remedy=remedy)
    reader = _SvgParser()
    parser = expat.ParserCreate()
    parser.StartDoctypeDeclHandler = _raise_for_doctype
    parser.ProcessingInstructionHandler = _raise_for_processing_instruction
    parser.StartElementHandler = reader.start
    parser.EndElementHandler = reader.end
    parser.CharacterDataHandler = reader.add_text
    try:
        parser.Parse(text, True)
        return reader.build_figure(parser.CurrentLineNumber)
    except _SvgError as refused:
        return SvgProblem(parser.CurrentLineNumber, refused.reason, remedy=refused.remedy)
    except expat.ExpatError as error:
        return _malformed_svg_problem(error, [element.name for element in reader.open_elements])


def _malformed_svg_problem(error: expat.ExpatError, opened: list[str]) -> SvgProblem:
    """Return the problem of a file that is not valid XML, and the element left open in it."""
    if error.code in _UNCLOSED_XML_ERRORS and opened:
        why = f"its <{opened[-1]}> is not closed"
        return SvgProblem(error.lineno, why, remedy=f"Write </{opened[-1]}> at its end.")
    why = f"it is no XML ({expat.ErrorString(error.code)})"
    remedy = "Close every element that is opened; write &amp; for &, and &lt; for <."
    return SvgProblem(error.lineno, why, remedy=remedy)


_UNCLOSED_XML_ERRORS = frozenset(
    expat.errors.codes[name]
    for name in (
        expat.errors.XML_ERROR_NO_ELEMENTS,
        expat.errors.XML_ERROR_TAG_MISMATCH,
        expat.errors.XML_ERROR_UNCLOSED_TOKEN,
    )
)


def build_narrow_variant_file_name(file: str) -> str:
    """Return the file name of the narrow variant of a figure, which phones get if it exists.

    >>> build_narrow_variant_file_name("gpu-node.svg")
    'gpu-node.narrow.svg'
    """
    return f"{file.removesuffix('.svg')}.narrow.svg"


def _raise_for_doctype(*_: object) -> None:
    raise _SvgError("a document type is not allowed", "Delete <!DOCTYPE …>.")


def _raise_for_processing_instruction(*_: object) -> None:
    remedy = "Delete what stands between <? and ?>."
    raise _SvgError("a processing instruction is not allowed", remedy)


class _OpenElement(NamedTuple):
    """An element that is not closed yet; `region` is empty if it is none."""

    name: str
    region: str


@dataclasses.dataclass(slots=True)
class _SvgParser:
    """State of the parser: markup, title, description and regions so far."""

    markup_parts: list[str] = dataclasses.field(default_factory=list)
    text_alternatives: dict[str, str] = dataclasses.field(
        default_factory=lambda: {"title": "", "desc": ""}
    )
    width: float = 0.0
    height: float = 0.0
    open_elements: list[_OpenElement] = dataclasses.field(default_factory=list)
    region_boxes: dict[str, RegionBox | None] = dataclasses.field(default_factory=dict)
    font_sizes: list[float] = dataclasses.field(default_factory=list)
    smallest_font_size: float = _DEFAULT_TEXT_SIZE

    def start(self, name: str, attributes: dict[str, str]) -> None:
        if name not in _ALLOWED_ELEMENTS or (name == "svg") == bool(self.open_elements):
            raise _SvgError(
                f"the element <{name}> is not allowed here", _suggest_element_replacement(name)
            )
        if len(self.open_elements) >= _MAX_ELEMENT_DEPTH:
            remedy = f"Take groups out: at most {_MAX_ELEMENT_DEPTH} stand in each other."
            raise _SvgError("its groups are nested too deep", remedy)
        if name == "svg":
            self._check_root_and_read_size(attributes)
        elif name not in self.text_alternatives:
            self._validate_and_write_start_tag(name, attributes)
        region_name = attributes.get("id") or attributes.get("data-region", "")
        self.open_elements.append(_OpenElement(name, region_name if name == "g" else ""))
        size = self.font_sizes[-1] if self.font_sizes and name != "svg" else _DEFAULT_TEXT_SIZE
        self.font_sizes.append(float(attributes.get("font-size", size)) if name != "svg" else size)
        if name == "rect":
            self._extend_region_boxes(attributes)

    def end(self, name: str) -> None:
        self.open_elements.pop()
        self.font_sizes.pop()
        if name != "svg" and name not in self.text_alternatives:
            self.markup_parts.append(f"</{name}>")

    def add_text(self, data: str) -> None:
        """Write text where text is allowed; drop white space elsewhere."""
        name = self.open_elements[-1].name if self.open_elements else ""
        if name in self.text_alternatives:
            self.text_alternatives[name] += data
        elif name in _TEXT_ELEMENTS:
            self.markup_parts.append(escape(data))
            if data.strip():
                self.smallest_font_size = min(self.smallest_font_size, self.font_sizes[-1])
        elif data.strip():
            raise _SvgError("words stand outside of a text", "Put them into <text>.")

    def build_figure(self, last_line: int) -> SvgFigure:
        for name, text in self.text_alternatives.items():
            if not text.strip():
                remedy = f"Write <{name}>…</{name}> below its first line."
                raise _SvgError(f"it has no <{name}>", remedy)
        problem_by_region = {
            n: why
            for n, a in self.region_boxes.items()
            if (why := _explain_unclickable_region(n, a))
        }
        areas = tuple(a for n, a in self.region_boxes.items() if a and n not in problem_by_region)
        title, desc = (" ".join(text.split()) for text in self.text_alternatives.values())
        size, markup = (self.width, self.height), "".join(self.markup_parts)
        return SvgFigure(
            markup,
            *size,
            title,
            desc,
            areas,
            problem_by_region,
            self.smallest_font_size,
            last_line=last_line,
        )

    def _check_root_and_read_size(self, attributes: dict[str, str]) -> None:
        box = _VIEW_BOX.match(attributes.get("viewBox", ""))
        if box is None:
            remedy = 'Write its size in units: viewBox="0 0 680 200".'
            raise _SvgError("its viewBox is not “0 0 WIDTH HEIGHT”", remedy)
        unknown = sorted(set(attributes) - _OF_ROOT)
        if unknown:
            remedy = f"Take it out; allowed are {', '.join(sorted(_OF_ROOT))}."
            raise _SvgError(f"the attribute {unknown[0]} is not allowed on <svg>", remedy)
        if attributes.get("font-size", f"{_DEFAULT_TEXT_SIZE:g}") != f"{_DEFAULT_TEXT_SIZE:g}":
            remedy = (
                f'Write font-size="{_DEFAULT_TEXT_SIZE:g}" here, and other sizes on each <text>.'
            )
            raise _SvgError(f"its font-size is not {_DEFAULT_TEXT_SIZE:g}", remedy)
        self.width, self.height = float(box[1]), float(box[2])

    def _validate_and_write_start_tag(self, name: str, attributes: dict[str, str]) -> None:
        self.markup_parts.append(f"<{name}")
        for key, value in attributes.items():
            if not _is_attribute_allowed(key, value) or (key in _NAME_ATTRIBUTES and name != "g"):
                why = f"the attribute {key}=“{value[:40]}” is not allowed"
                raise _SvgError(why, _explain_allowed_attribute_values(key, value, name))
            if key in _NAME_ATTRIBUTES:
                if value in self.region_boxes:
                    remedy = "Give one of the two groups another id."
                    raise _SvgError(f"the id “{value}” stands twice", remedy)
                self.region_boxes[value] = None
                key = "data-region"  # noqa: PLW2901 - the page adds its own prefix to ids
            self.markup_parts.append(f' {key}="{escape(value)}"')
        self.markup_parts.append(">")

    def _extend_region_boxes(self, attributes: dict[str, str]) -> None:
        """Extend the box of every region that contains this rectangle."""
        x, y, width, height = (
            float(attributes.get(key, "0")) for key in ("x", "y", "width", "height")
        )
        for region in [e.region for e in self.open_elements if e.region]:
            area = self.region_boxes[region]
            left, top = (x, y) if area is None else (min(area.x, x), min(area.y, y))
            right, bottom = x + width, y + height
            if area is not None:
                right = max(area.x + area.width, right)
                bottom = max(area.y + area.height, bottom)
            self.region_boxes[region] = RegionBox(region, left, top, right - left, bottom - top)


def _explain_unclickable_region(name: str, box: RegionBox | None) -> str:
    """Return why a region cannot be clicked; empty if it can."""
    if box is None:
        return f"the region “{name}” has no <rect> to point at"
    if min(box.width, box.height) < SMALLEST_REGION:
        return f"the region “{name}” is smaller than {SMALLEST_REGION} × {SMALLEST_REGION}"
    return ""


def _suggest_element_replacement(element: str) -> str:
    if ":" in element:
        return "Save the drawing as plain SVG, without what the editor adds."
    allowed_elements = ", ".join(sorted(_ALLOWED_ELEMENTS - {"svg"}))
    return _HINT_BY_REFUSED_ELEMENT.get(element, f"Delete it, or draw it with {allowed_elements}.")


_HINT_BY_REFUSED_ELEMENT = {
    **dict.fromkeys(("line", "polyline", "polygon"), 'Write it as <path d="M10 10L90 10"/>.'),
    "ellipse": "Write it as <circle>, or as a <path> with arcs.",
    "style": "Delete it: a class of the guide says what a part is.",
}
_HINT_BY_REFUSED_ATTRIBUTE = {
    "fill": 'Write "none" or "currentColor"; a class such as "hot" gives a color.',
    "stroke": 'Write "none" or "currentColor"; a class such as "hot" gives a color.',
    "style": "Take it out; a class of the guide says what the part is.",
    "transform": "Take it out, and write each place as it is after the move.",
    "d": "Write letters of path commands and numbers, at most 4,000 signs.",
    "font-family": "Take it out here; it stands on <svg>.",
    "stroke-dasharray": "Write numbers: 4 3.",
    "stroke-linecap": "Write round, butt or square.",
    "text-anchor": "Write start, middle or end.",
    "font-weight": "Write 400 to 700, or bold.",
}


def _explain_allowed_attribute_values(key: str, value: str, element: str) -> str:
    """Return the allowed values of an attribute, or what to write instead."""
    if key == "class":
        return _closest_class_hint(value)
    if key in _NAME_ATTRIBUTES and element == "g":
        example = slugify(value) or "left-part"
        return f"Use lower-case letters, digits and hyphens: {example}."
    if key in _NAME_ATTRIBUTES:
        return f'Put <{element}> into a group: <g id="{slugify(value)}">.'
    if key in _NUMBER_ATTRIBUTES:
        number = re.match(r"\s*(-?\d{1,5}(?:\.\d{1,4})?)", value)
        return f"Write a number alone, such as {number[1] if number else '24'}."
    similar_key = find_closest_word_or_empty(
        key, {*_NUMBER_ATTRIBUTES, *_ALLOWED_VALUE_BY_ATTRIBUTE, "class"}, 0.75
    )
    return _HINT_BY_REFUSED_ATTRIBUTE.get(key) or (
        f"Did you mean “{similar_key}”?" if similar_key else "Take it out."
    )


def _closest_class_hint(value: str) -> str:
    """Return the allowed class closest to an unknown first class."""
    unknown = next(name for name in value.split() if name not in _ALLOWED_CLASSES)
    similar_class = find_closest_word_or_empty(unknown, _ALLOWED_CLASSES)
    guide_hint = "The guide lists the classes under “Diagrams”."
    return f"Did you mean “{similar_class}”?" if similar_class else guide_hint


def _is_attribute_allowed(key: str, value: str) -> bool:
    if key == "class":
        return set(value.split()) <= _ALLOWED_CLASSES
    if key in _NUMBER_ATTRIBUTES:
        return bool(_SVG_NUMBER.match(value))
    return key in _ALLOWED_VALUE_BY_ATTRIBUTE and bool(
        _ALLOWED_VALUE_BY_ATTRIBUTE[key].match(value)
    )


WIDTHS = ("wide", "narrow")


def render_svg_opening_tag(figure: SvgFigure, width_class: str, id_prefix: str) -> str:
    """Return the opening `<svg>` tag with its text alternative; ids begin with `id_prefix`."""
    own_prefix = f"{escape(id_prefix)}-{width_class}"
    return (
        f'<svg class="g dia {width_class}" viewBox="0 0 {figure.width:g} {figure.height:g}"'
        f' role="img" aria-labelledby="{own_prefix}-title" aria-describedby="{own_prefix}-desc"'
        ' fill="none" stroke="currentColor" font-family="sans-serif" font-size="13">'
        f'<title id="{own_prefix}-title">{escape(figure.title)}</title>'
        f'<desc id="{own_prefix}-desc">{escape(figure.desc)}</desc>'
    )


def render_image_block(
    image: ImageBlock, wide_and_narrow_figures: Sequence[SvgFigure], nth_use_on_page: int = 1
) -> str:
    """Render an image of a page as a figure; one that is not an SVG figure stays an image.

    `nth_use_on_page` counts how often the page has shown it, so that ids stay unique.
    """
    file = re.sub(r"[./]", "-", image.file.removesuffix(".svg"))
    name = f"fig-{file}-{nth_use_on_page}"
    svg_markup = "\n".join(
        f"{render_svg_opening_tag(drawing, width, name)}{drawing.inner_markup}</svg>"
        for width, drawing in zip(WIDTHS, wide_and_narrow_figures, strict=False)
    )
    caption = f"\n<figcaption>{escape(image.caption)}</figcaption>" if image.caption else ""
    if svg_markup:
        return f'<figure class="fig dias">\n{svg_markup}{caption}\n</figure>'
    return f'<figure class="fig">{image.html}{caption}</figure>' if caption else image.html
