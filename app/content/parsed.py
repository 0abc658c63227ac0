"""What one file says: values, mentions of other files, and problems."""

import dataclasses
from collections.abc import Mapping

from app.content.model import (
    CitedSource,
    ExamBlueprint,
    Flashcard,
    GlossaryTerm,
    SvgFigure,
    SvgProblem,
    Syllabus,
    Topic,
)
from app.content.problems import ContentProblem
from app.content.source_file import CrossReference, TextEdit, Unidentified
from app.questions.model import Question


@dataclasses.dataclass(frozen=True, slots=True)
class ItemFingerprint:
    """What the bank must know of one item to tell edited from replaced or copied.

    `options` are (key, hash of its words) in authored order; `asks` is whether its stem
    has words; `key` stands for what is right: the key of a question, the figures of a
    card. `sketch` samples its words, see `identity.sketch`, and `heading` and `body`
    are hashes of them, all without its comment; `full_sketch` is with it, as in older
    lines of ids.lock. `id_at` is the line and the column of its id.
    """

    id: str
    type: str
    line: int
    column: int
    sketch: tuple[int, ...]
    asks: bool
    options: tuple[tuple[str, str], ...] = ()
    broken: bool = False
    key: str = ""
    heading: str = ""
    body: str = ""
    full_sketch: tuple[int, ...] = ()
    id_at: tuple[int, int] = (1, 1)


@dataclasses.dataclass(frozen=True, slots=True)
class LockEntry:
    """A line of ids.lock: an id ever used.

    `key` is that of the item when its page was reviewed on the day `read`; both are
    empty where nobody has noted them yet. `heading` and `body` are the hashes of its
    words and `path` its file when the line was written; older lines have none.
    """

    id: str
    type: str
    first_seen: str
    retired: str
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
    """One file of the course as read by itself; `digest` stands for its text.

    `facts` and items are in the order of the file, with all that have the same id.
    `claims` are ids with their lines in comments that cannot be read as those of items.
    `entries` are the lines of objectives and sources in their registers. `outdated` is
    whether this is the last good version, and only the problems are of the newest.
    """

    path: str
    digest: str = ""
    topic: Topic | None = None
    questions: tuple[Question, ...] = ()
    cards: tuple[Flashcard, ...] = ()
    facts: tuple[ItemFingerprint, ...] = ()
    unidentified: tuple[Unidentified, ...] = ()
    claims: tuple[tuple[str, int], ...] = ()
    terms: tuple[GlossaryTerm, ...] = ()
    syllabus: Syllabus | None = None
    sources: tuple[CitedSource, ...] = ()
    exam: ExamBlueprint | None = None
    lock: tuple[LockEntry, ...] = ()
    drawing: SvgFigure | SvgProblem | None = None
    anchors: tuple[str, ...] = ()
    entries: tuple[tuple[str, int], ...] = ()
    alerts: tuple[tuple[str, int], ...] = ()
    mentions: tuple[CrossReference, ...] = ()
    edits: tuple[TextEdit, ...] = ()
    problems: tuple[ContentProblem, ...] = ()
    outdated: bool = False


def used_ids(readings: Mapping[str, ParsedFile]) -> set[str]:
    """Every id that is in use, was ever used, or stands in a broken comment."""
    every = readings.values()
    used = {fact.id for r in every for fact in r.facts}
    used |= {entry.id for r in every for entry in r.lock}
    return used | {name for r in every for name, _ in r.claims}
