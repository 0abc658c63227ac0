"""Rules for links, pictures and drawings."""

import dataclasses
import itertools
import re
from collections.abc import Iterable, Mapping
from html import unescape
from pathlib import Path

from app.content.parsed_file import ParsedFile
from app.markup.images import (
    IMAGE_HEADER_BYTES,
    SMALLEST_REGION,
    Size,
    build_narrow_variant_file_name,
    detect_image_format,
    read_displayed_raster_size,
)
from app.markup.model import HtmlBlock, Piece, SvgFigure, SvgProblem, Topic
from app.markup.problems import (
    ContentProblem,
    CrossReference,
    ProblemLocation,
    make_problem,
    make_reference_problem,
)
from app.markup.text import (
    find_closest_word_or_empty,
    is_inside_its_folder,
    slugify,
    write_hint_for_unknown_word,
)

_DEFAULT_LINK_HINT = "Correct the link, or create what it names."
_PAGE_PATH_PREFIX = "/concepts/"
_GLOSSARY_PATH = "/glossary"
_TERM_NAME_SEPARATOR = re.compile(r"[(),/]")
_RESERVED_ANCHORS = frozenset({"sources", "end"})
ParsedFiles = Mapping[str, ParsedFile]


def check_link_target(
    path: str, reference: CrossReference, parsed_files: ParsedFiles
) -> Iterable[ContentProblem]:
    """Report E61: a link to a missing page, heading or term."""
    address, _, anchor = reference.target.partition("#")
    if address.startswith(_GLOSSARY_PATH) or not (address or "/" in path.removeprefix("shared/")):
        term_anchors = {t.anchor for r in parsed_files.values() for t in r.glossary_terms}
        exists = not anchor or anchor in term_anchors
        hint = "" if exists else _build_nearest_name_hint(anchor, term_anchors)
    else:
        slug = address.removeprefix(_PAGE_PATH_PREFIX) or path.split("/")[-2]
        parsed_file = parsed_files.get(f"topics/{slug}/concept.md")
        is_generated = anchor.startswith(("src-", "q-")) or anchor in _RESERVED_ANCHORS
        anchors = set(parsed_file.anchors) if parsed_file else set()
        exists = parsed_file is not None and (not anchor or is_generated or anchor in anchors)
        hint = ""
        if not exists:
            topics = {r.topic.slug for r in parsed_files.values() if r.topic}
            word, known_words = (anchor, anchors) if parsed_file else (slug, topics)
            hint = _build_nearest_name_hint(word, known_words)
        if not exists and (slug.endswith(".md") or "/" in slug):
            hint = "Write ../topic/concept.md for a page, or ../../glossary.md#term."
            if (web := slug.partition("www.")[2]) and not slug.endswith(".md"):
                hint = f"Write https://www.{web} for a page of the web."
    if not exists:
        message = f"There is no page or heading “{reference.target}”."
        yield make_reference_problem(path, reference, "E61", message, hint)


def check_see_also_term(
    path: str, reference: CrossReference, parsed_files: ParsedFiles
) -> Iterable[ContentProblem]:
    """Report E61: a name after `See:` that is no glossary heading."""
    terms = [t for r in parsed_files.values() for t in r.glossary_terms]
    anchor = slugify(reference.target)
    if any(term.anchor == anchor for term in terms):
        return
    # Of “Time to first token (TTFT)” each part may be used for the heading.
    headings = {
        form: term.name
        for term in terms
        for form in (
            term.anchor,
            *filter(None, map(slugify, _TERM_NAME_SEPARATOR.split(term.name))),
        )
    }
    heading = headings.get(anchor) or headings.get(find_closest_word_or_empty(anchor, headings))
    hint = "Write the whole heading of a term, and a comma between two."
    if heading:
        hint = f"Write its whole heading: “{heading}”."
    message = f"“{reference.target}” behind See: is no heading of the glossary."
    location = ProblemLocation(path, reference.line, reference.column)
    yield make_problem(location, "E61", message, hint, is_consequence=True)


def _build_nearest_name_hint(unknown_name: str, known_names: set[str]) -> str:
    hint = write_hint_for_unknown_word(unknown_name, known_names)
    return hint if hint.startswith("Did you mean") else _DEFAULT_LINK_HINT


def check_picture(
    path: str, reference: CrossReference, fault_by_picture: Mapping[str, str]
) -> Iterable[ContentProblem]:
    """Report E61, E78: missing or invalid pictures."""
    name = f"{path.rpartition('/')[0]}/{reference.target}"
    fault = fault_by_picture.get(name, f"There is no file “{reference.target}”.")
    if not fault:
        return
    message, _, suggestion = fault.partition("\n")
    code, hint = "E61", suggestion or _DEFAULT_LINK_HINT
    if not message.startswith("There is no"):
        code = "E78"
        hint = "Put a picture into the folder of the topic, and name it here."
    yield make_reference_problem(path, reference, code, message, hint)


_MIN_TEXT_PIXELS = 11.0  # pixels
# the minimum width in pixels at which a narrow and a wide drawing are shown
_PHONE_WIDTH_PIXELS, _DESKTOP_WIDTH_PIXELS = 358.0, 600.0
_REGION_SIZE_HINT = (
    f"Put a <rect> of at least {SMALLEST_REGION} by {SMALLEST_REGION} into the group; "
    "one of class “hit” is not seen."
)
_DRAWING_CONTENT_HINT = "A drawing holds shapes, texts and groups, and no colors of its own."


def find_drawing_and_phone_variant(parsed_files: ParsedFiles, path: str) -> tuple[SvgFigure, ...]:
    """Return the drawing and its phone variant; empty if the file is an ordinary picture."""
    drawings = [
        _find_parsed_drawing(parsed_files, p) for p in (path, build_narrow_variant_file_name(path))
    ]
    if not isinstance(drawings[0], SvgFigure) or not drawings[0].uses_diagram_classes:
        return ()
    return tuple(d for d in drawings if isinstance(d, SvgFigure))


def check_drawing(
    path: str, reference: CrossReference, parsed_files: ParsedFiles
) -> Iterable[ContentProblem]:
    """Check the drawing that `reference` in the file at `path` names."""
    file, _, region = reference.target.partition("#")
    folder = path.rpartition("/")[0]
    location = ProblemLocation(path, reference.line, reference.column)
    variants = {
        n: _find_parsed_drawing(parsed_files, f"{folder}/{n}")
        for n in (file, build_narrow_variant_file_name(file))
    }
    is_required = reference.kind == "drawing"
    if not is_required and not any(d and d.uses_diagram_classes for d in variants.values()):
        return
    for name, drawing in variants.items():
        if isinstance(drawing, SvgProblem) and not region:
            place = ProblemLocation(f"{folder}/{name}", drawing.line)
            message = f"This drawing cannot be shown: {drawing.reason}."
            yield make_problem(
                place, "E58", message, drawing.remedy or _DRAWING_CONTENT_HINT, reference.item
            )
        elif isinstance(drawing, SvgFigure) and region in drawing.why_unclickable_by_region:
            message = (
                f"{name}, line {drawing.last_line}: {drawing.why_unclickable_by_region[region]}."
            )
            yield make_problem(location, "E58", message, _REGION_SIZE_HINT, reference.item)
        elif isinstance(drawing, SvgFigure) and region and region not in drawing.region_names:
            message = f"{name} has no region “{region}”."
            hint = write_hint_for_unknown_word(
                region, sorted(drawing.region_names - set(drawing.why_unclickable_by_region))
            )
            yield make_problem(location, "E59", message, hint, reference.item)
    if not region:
        figures = {n: d for n, d in variants.items() if isinstance(d, SvgFigure)}
        yield from _check_text_size(figures, location, reference.item)
        yield from _check_drawing_variants_agree(figures, location, reference.item)


def _check_text_size(
    drawing_by_variant_name: dict[str, SvgFigure], location: ProblemLocation, item_id: str
) -> Iterable[ContentProblem]:
    """Report W90: text under 11 px at the minimum width of the drawing."""
    for number, (name, drawing) in enumerate(drawing_by_variant_name.items()):
        is_wide = number == 0 and len(drawing_by_variant_name) > 1
        pixels = (
            min(1.0, (_DESKTOP_WIDTH_PIXELS if is_wide else _PHONE_WIDTH_PIXELS) / drawing.width)
            * drawing.smallest_font_size
        )
        if pixels < _MIN_TEXT_PIXELS:
            message = f"{name} has text that is shown at {pixels:.1f} px."
            minimum = _MIN_TEXT_PIXELS * drawing.smallest_font_size / pixels
            hint = f"Write it at {minimum:.1f} units or more."
            if len(drawing_by_variant_name) == 1:
                hint = f"Draw {build_narrow_variant_file_name(name)}, 358 units wide, for phones."
            yield make_problem(location, "W90", message, hint, item_id)


def _check_drawing_variants_agree(
    drawing_by_variant_name: dict[str, SvgFigure], location: ProblemLocation, item_id: str
) -> Iterable[ContentProblem]:
    """Report W91: the two variants of a drawing differ."""
    if len(drawing_by_variant_name) < 2:
        return
    (_, wide_drawing), (name, narrow_drawing) = drawing_by_variant_name.items()
    agreements = {
        "title": wide_drawing.title == narrow_drawing.title,
        "desc": wide_drawing.desc == narrow_drawing.desc,
        "regions": wide_drawing.region_names == narrow_drawing.region_names,
    }
    differing_parts = [part for part, agrees in agreements.items() if not agrees]
    if differing_parts:
        message = f"{name} differs from the wide drawing in {' and '.join(differing_parts)}."
        unshared_regions = sorted(wide_drawing.region_names ^ narrow_drawing.region_names)
        hint = f"Only one of them has {', '.join(unshared_regions)}." if unshared_regions else ""
        hint = hint or "Both say the same, in the same words."
        yield make_problem(location, "W91", message, hint, item_id)


def _find_parsed_drawing(parsed_files: ParsedFiles, path: str) -> SvgFigure | SvgProblem | None:
    parsed_file = parsed_files.get(path)
    return parsed_file.drawing if parsed_file else None


# Expected content by suffix. The text of SVG files is checked elsewhere.
_PICTURE_FORMAT_BY_SUFFIX = {
    ".svg": "",
    ".png": "png",
    ".jpg": "jpg",
    ".jpeg": "jpg",
    ".webp": "webp",
    ".gif": "gif",
    ".avif": "avif",
}
PICTURE_SUFFIXES = frozenset(_PICTURE_FORMAT_BY_SUFFIX)
"""Suffixes of picture files that are served."""
_SHOWN_PICTURE = re.compile(r'<img src="/concepts/[^/"]+/files/(?P<file>[^"]+)"')
_MOST_FILES = 1_000  # of a topic, in which a similar name is searched


def explain_unshowable_image(folder: Path, image_path: str) -> str:
    """Return why the file `topics/TOPIC/NAME` cannot be shown; "" if it can.

    NAME may include folders. A second line suggests the most similar file.
    """
    file, parts = folder / image_path, image_path.split("/")
    relative_name = "/".join(parts[2:]) or parts[-1]
    try:
        if len(parts) < 3 or not is_inside_its_folder(relative_name) or not file.is_file():
            return (
                f"There is no file “{relative_name}”.{_build_nearest_picture_hint(folder, parts)}"
            )
        fault = _describe_picture_fault(file, folder)
    except (OSError, ValueError):
        return f"There is no file “{relative_name}”."
    return f"“{relative_name}” {fault}." if fault else ""


def add_image_sizes(topic: Topic, folder: Path) -> Topic:
    """Return the topic with width and height set on each picture, to avoid layout shifts."""
    if not any(
        isinstance(piece, HtmlBlock) and _SHOWN_PICTURE.search(piece.html)
        for section in topic.sections
        for piece in section.pieces
    ):
        return topic
    topic_folder = folder / "topics" / topic.slug

    def add_size(match: re.Match[str]) -> str:
        size = _read_image_size(topic_folder / unescape(match["file"]))
        attributes = f' width="{size[0]}" height="{size[1]}"' if size else ""
        return f"{match[0]}{attributes}"

    def add_sizes(piece: Piece) -> Piece:
        if isinstance(piece, HtmlBlock):
            return HtmlBlock(_SHOWN_PICTURE.sub(add_size, piece.html))
        return piece

    sections = (
        dataclasses.replace(s, pieces=tuple(map(add_sizes, s.pieces))) for s in topic.sections
    )
    return dataclasses.replace(topic, sections=tuple(sections))


def _read_image_size(file: Path) -> Size | None:
    try:
        with file.open("rb") as stream:
            return read_displayed_raster_size(stream.read(IMAGE_HEADER_BYTES))
    except (OSError, ValueError):
        return None


def _build_nearest_picture_hint(folder: Path, path_parts: list[str]) -> str:
    """Return a second line that suggests the topic's picture with the most similar name."""
    topic = folder.joinpath(*path_parts[:2])
    if (
        len(path_parts) < 3
        or not is_inside_its_folder("/".join(path_parts[2:]))
        or not topic.is_dir()
    ):
        return ""
    files = itertools.islice(topic.rglob("*"), _MOST_FILES)
    names = [f.relative_to(topic).as_posix() for f in files if f.suffix in PICTURE_SUFFIXES]
    suggestion = find_closest_word_or_empty("/".join(path_parts[2:]), names)
    return f"\nDid you mean “{suggestion}”?" if suggestion else ""


def _describe_picture_fault(file: Path, folder: Path) -> str:
    if file.resolve() != folder.resolve() / file.relative_to(folder):
        return "is a link to another file, which is not served"
    if (
        file.suffix.lower() in _PICTURE_FORMAT_BY_SUFFIX
        and file.suffix not in _PICTURE_FORMAT_BY_SUFFIX
    ):
        return f"has to end in {file.suffix.lower()}, in lower-case letters"
    if file.suffix not in _PICTURE_FORMAT_BY_SUFFIX:
        return "is no picture: SVG, PNG, JPEG, WebP, AVIF and GIF are"
    with file.open("rb") as stream:
        start = stream.read(12)
    matches_suffix = _PICTURE_FORMAT_BY_SUFFIX[file.suffix] in {"", detect_image_format(start)}
    return "" if matches_suffix else "does not hold what the end of its name says"
