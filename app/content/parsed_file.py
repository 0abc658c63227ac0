"""The result of parsing one file, and the links to glossary terms."""

import dataclasses
import re
from collections.abc import Mapping, Sequence
from html import unescape
from typing import NamedTuple

from app.content.uncomputed_amounts import NO_AMOUNTS, FileAmounts
from app.markup.model import (
    CitedSource,
    ExamBlueprint,
    Flashcard,
    GlossaryTerm,
    SvgFigure,
    SvgProblem,
    Syllabus,
    Topic,
)
from app.markup.problems import (
    BrokenCommentId,
    ContentProblem,
    CrossReference,
    TextEdit,
    TextPosition,
    UnidentifiedItem,
)
from app.questions.model import Question

_FILE_START = TextPosition(1, 1)


class HashedOption(NamedTuple):
    key: str
    text_hash: str


@dataclasses.dataclass(frozen=True, slots=True)
class ItemIdentityFingerprint:
    """The data that tells whether an item was edited, replaced or copied.

    `options` are in authored order. `answer_key_hash` is a hash of the correct answer, for cards of their figures.
    `sketch` samples the words (see `text.bottom_k_sketch`); `heading_hash` and `body_hash` are
    hashes, all without the comment. `sketch_with_comment` includes the comment, as older lines
    of ids.lock did.
    """

    id: str
    type: str
    line: int
    column: int
    sketch: tuple[int, ...]
    has_stem_words: bool
    options: tuple[HashedOption, ...] = ()
    is_broken: bool = False
    answer_key_hash: str = ""
    heading_hash: str = ""
    body_hash: str = ""
    sketch_with_comment: tuple[int, ...] = ()
    id_position: TextPosition = _FILE_START


@dataclasses.dataclass(frozen=True, slots=True)
class LockEntry:
    """A line of ids.lock: an id that is or was in use.

    `reviewed_key_hash` is the item's key at its last review, on the date `reviewed_on`; both are empty
    before the first review. `heading_hash` and `body_hash` are hashes of the text and `path` the
    file when the line was written; older lines lack them.
    """

    id: str
    type: str
    first_seen: str
    retired_on: str
    sketch: tuple[int, ...]
    options: tuple[HashedOption, ...]
    line: int
    reviewed_key_hash: str = ""
    reviewed_on: str = ""
    heading_hash: str = ""
    body_hash: str = ""
    path: str = ""


class AlertLine(NamedTuple):
    kind: str
    line: int


@dataclasses.dataclass(frozen=True, slots=True)
class ParsedFile:
    """The result of parsing one file. `text_digest` is a hash of its text.

    `fingerprints` and the items are in file order and include duplicate ids. `line_by_register_entry`
    are the lines of domains, objectives or sources. `is_outdated` means that this is the last good version with the
    problems of the current one.
    """

    path: str
    text_digest: str = ""
    topic: Topic | None = None
    questions: tuple[Question, ...] = ()
    cards: tuple[Flashcard, ...] = ()
    fingerprints: tuple[ItemIdentityFingerprint, ...] = ()
    unidentified_items: tuple[UnidentifiedItem, ...] = ()
    broken_comment_ids: tuple[BrokenCommentId, ...] = ()
    glossary_terms: tuple[GlossaryTerm, ...] = ()
    syllabus: Syllabus | None = None
    cited_sources: tuple[CitedSource, ...] = ()
    exam: ExamBlueprint | None = None
    lock_entries: tuple[LockEntry, ...] = ()
    drawing: SvgFigure | SvgProblem | None = None
    anchors: tuple[str, ...] = ()
    line_by_register_entry: Mapping[str, int] = dataclasses.field(default_factory=dict)
    alert_lines: tuple[AlertLine, ...] = ()
    cross_references: tuple[CrossReference, ...] = ()
    text_edits: tuple[TextEdit, ...] = ()
    problems: tuple[ContentProblem, ...] = ()
    amounts: FileAmounts = NO_AMOUNTS
    is_outdated: bool = False


def list_used_ids(parsed_files: Mapping[str, ParsedFile]) -> set[str]:
    """Return every id that is or was in use, or appears in a broken comment."""
    files = parsed_files.values()
    ids = {fingerprint.id for file in files for fingerprint in file.fingerprints}
    ids |= {entry.id for file in files for entry in file.lock_entries}
    return ids | {broken.id for file in files for broken in file.broken_comment_ids}


def map_lock_entries_by_id(parsed_files: Mapping[str, ParsedFile]) -> dict[str, LockEntry]:
    """Return the lines of ids.lock; empty if the course has none."""
    lock = parsed_files.get("ids.lock")
    return {entry.id: entry for entry in lock.lock_entries} if lock else {}


_HTML_TAG = re.compile(r"(<[^>]*>)")
# Text inside these elements is not linked.
_TAGS_WITHOUT_LINKED_TERMS = frozenset(
    {"a", "b", "button", "code", "figcaption", "h1", "h2", "h3", "h4", "h5", "h6"}
    | {"kbd", "math", "pre", "summary", "svg", "th"}
)


@dataclasses.dataclass(frozen=True, slots=True)
class GlossaryNames:
    """The names of a glossary: a pattern for all, and the anchor by lower-case name.

    Names with inner capitals are abbreviations or brands: "zero" is not ZeRO.
    """

    pattern: re.Pattern[str] | None
    anchor_by_name: dict[str, str]
    fingerprint: str
    capitalized_names: frozenset[str] = frozenset()


class TermAnchor(NamedTuple):
    name: str
    anchor: str


def compile_glossary_names(terms: Sequence[TermAnchor]) -> GlossaryNames:
    """Prepare the names of terms for linking, longest names first.

    "Time to first token (TTFT)" is also found as either of its two forms, and "Fat tree (Clos
    network, fabric)" as any of its three.
    """
    forms = [(form, anchor) for name, anchor in terms for form in _split_alternative_names(name)]
    anchors: dict[str, str] = {}
    for form, anchor in forms:
        anchors.setdefault(form.lower(), anchor)
    if not anchors:
        return GlossaryNames(None, {}, "")
    ordered = sorted(anchors, key=lambda n: (-len(n), n))
    alternatives = "|".join(re.escape(n).replace(r"\ ", r"\s+") for n in ordered)
    pattern = re.compile(rf"(?<![\w-])({alternatives})(?:(?:e?s)?(?![\w-]))")
    capitals = frozenset(f.lower() for f, _ in forms if f[1:].lower() != f[1:])
    return GlossaryNames(
        pattern, anchors, "\n".join(f"{n}={a}" for n, a in sorted(anchors.items())), capitals
    )


def _split_alternative_names(name: str) -> list[str]:
    match = re.match(r"^(.*?)\s*\(([^()]+)\)$", name)
    alternatives = re.split(r"\s*[,;\u060c\u3001\uff0c]\s*", match[2]) if match else ()
    return [match[1], *filter(None, alternatives)] if match else [name]


class FirstMentionLinker:
    """Links the first mention of each term on one page, across all its pieces."""

    def __init__(self, names: GlossaryNames) -> None:
        self.names = names
        self.linked: dict[str, None] = {}

    def link_first_mentions(self, html: str) -> str:
        pattern = self.names.pattern
        if pattern is None:
            return html
        open_elements: list[str] = []
        parts: list[str] = []
        for part in _HTML_TAG.split(html):
            if part.startswith("<"):
                _track_unlinked_elements(part, open_elements)
                parts.append(part)
            elif open_elements or not part.strip():
                parts.append(part)
            else:
                parts.append(self._link_in_text(part, pattern))
        return "".join(parts)

    def _link_in_text(self, text: str, pattern: re.Pattern[str]) -> str:
        """Insert the links. Matches in lower case, because ignoring case is five times slower."""
        lower = text.lower()
        if len(lower) != len(text):
            return text
        parts: list[str] = []
        end = 0
        for match in pattern.finditer(lower):
            mention = text[match.start() : match.end()]
            name = " ".join(unescape(match[1]).split())
            anchor = self.names.anchor_by_name.get(name)
            if anchor is None or anchor in self.linked:
                continue
            if mention.islower() and (len(name) <= 3 or name in self.names.capitalized_names):
                continue  # an ordinary word: "it" is not IT
            self.linked[anchor] = None
            link = f'<a class="term" href="/glossary#{anchor}">{mention}</a>'
            parts += [text[end : match.start()], link]
            end = match.end()
        return "".join([*parts, text[end:]])


def _track_unlinked_elements(tag: str, open_elements: list[str]) -> None:
    match = re.match(r"</?([a-zA-Z0-9]+)", tag)
    if match is None or match[1].lower() not in _TAGS_WITHOUT_LINKED_TERMS:
        return
    if tag.startswith("</"):
        if open_elements:
            open_elements.pop()
    elif not tag.endswith("/>"):
        open_elements.append(match[1])
