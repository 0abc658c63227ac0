"""The result of parsing one file, and the links to glossary terms."""

import dataclasses
import re
from collections.abc import Mapping, Sequence
from html import unescape

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
from app.markup.problems import ContentProblem, CrossReference, TextEdit, UnidentifiedItem
from app.questions.model import Question


@dataclasses.dataclass(frozen=True, slots=True)
class ItemFingerprint:
    """The data that tells whether an item was edited, replaced or copied.

    `options` are (key, text hash) pairs in authored order. `asks` is whether the stem
    has words. `key` is a hash of the correct answer, for cards of their figures.
    `sketch` samples the words (see `text.bottom_k_sketch`); `heading` and `body` are
    hashes, all without the comment. `sketch_with_comment` includes the comment, as older lines
    of ids.lock did. `id_location` is line and column of the id.
    """

    id: str
    type: str
    line: int
    column: int
    sketch: tuple[int, ...]
    has_stem_words: bool
    options: tuple[tuple[str, str], ...] = ()
    broken: bool = False
    key: str = ""
    heading: str = ""
    body: str = ""
    sketch_with_comment: tuple[int, ...] = ()
    id_location: tuple[int, int] = (1, 1)


@dataclasses.dataclass(frozen=True, slots=True)
class LockEntry:
    """A line of ids.lock: an id that is or was in use.

    `key` is the item's key at its last review, on the date `read`; both are empty
    before the first review. `heading` and `body` are hashes of the text and `path` the
    file when the line was written; older lines lack them.
    """

    id: str
    type: str
    first_seen: str
    retired_on: str
    sketch: tuple[int, ...]
    options: tuple[tuple[str, str], ...]
    line: int
    key: str = ""
    read: str = ""
    heading: str = ""
    body: str = ""
    path: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class ParsedFile:
    """The result of parsing one file. `digest` is a hash of its text.

    `facts` and the items are in file order and include duplicate ids. `claims` are ids
    and lines of comments that are not readable as an item's. `entries` are the lines of
    objectives or sources. `outdated` means that this is the last good version with the
    problems of the current one.
    """

    path: str
    digest: str = ""
    topic: Topic | None = None
    questions: tuple[Question, ...] = ()
    cards: tuple[Flashcard, ...] = ()
    facts: tuple[ItemFingerprint, ...] = ()
    unidentified: tuple[UnidentifiedItem, ...] = ()
    broken_comment_ids: tuple[tuple[str, int], ...] = ()
    terms: tuple[GlossaryTerm, ...] = ()
    syllabus: Syllabus | None = None
    sources: tuple[CitedSource, ...] = ()
    exam: ExamBlueprint | None = None
    lock: tuple[LockEntry, ...] = ()
    drawing: SvgFigure | SvgProblem | None = None
    anchors: tuple[str, ...] = ()
    entries: tuple[tuple[str, int], ...] = ()
    alert_lines: tuple[tuple[str, int], ...] = ()
    cross_references: tuple[CrossReference, ...] = ()
    edits: tuple[TextEdit, ...] = ()
    problems: tuple[ContentProblem, ...] = ()
    amounts: FileAmounts = NO_AMOUNTS
    outdated: bool = False


def list_used_ids(readings: Mapping[str, ParsedFile]) -> set[str]:
    """Return every id that is or was in use, or appears in a broken comment."""
    parsed_files = readings.values()
    ids = {fact.id for r in parsed_files for fact in r.facts}
    ids |= {entry.id for r in parsed_files for entry in r.lock}
    return ids | {name for r in parsed_files for name, _ in r.broken_comment_ids}


_TAG = re.compile(r"(<[^>]*>)")
# Text inside these elements is not linked.
_CLOSED = frozenset(
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


def compile_glossary_names(terms: Sequence[tuple[str, str]]) -> GlossaryNames:
    """Prepare (name, anchor) pairs for linking, longest names first.

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

    def link(self, html: str) -> str:
        pattern = self.names.pattern
        if pattern is None:
            return html
        open_elements: list[str] = []
        parts: list[str] = []
        for part in _TAG.split(html):
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
    if match is None or match[1].lower() not in _CLOSED:
        return
    if tag.startswith("</"):
        if open_elements:
            open_elements.pop()
    elif not tag.endswith("/>"):
        open_elements.append(match[1])


def term_anchors(terms: Sequence[GlossaryTerm]) -> list[tuple[str, str]]:
    """Return the (name, anchor) pairs for `compile_glossary_names`."""
    return [(term.name, term.anchor) for term in terms]
